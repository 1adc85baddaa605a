"""Llama as Meta gives it out, against a plain formula with Meta's rotation."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from models import load_model
from models.config import FULL
from models.errors import ConfigError, WeightError
from models.families import llama, llama_meta
from models.family import Settings
from models.rope_config import Llama3Scaling, RopeConfig
from models.sources import resolve_source
from models.weight_rules import save_weights

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5]])
SCALED = Llama3Scaling(
    factor=8.0, low_frequency_factor=1.0, high_frequency_factor=4.0, original_context=8_192
)
PARAMS = {
    "dim": 42, "n_layers": 3, "n_heads": 6, "n_kv_heads": 3, "head_dim": 10, "multiple_of": 4,
    "norm_eps": 1e-5, "vocab_size": -1, "rope_theta": 500_000.0,
}  # fmt: skip


def rotate_neighbours(x: torch.Tensor, theta: float) -> torch.Tensor:
    """Meta's rotation, written with complex numbers: pairs are neighbours."""
    n_tokens, d_head = x.shape[1], x.shape[-1]
    frequencies = theta ** (-torch.arange(0, d_head, 2) / d_head)
    turns = torch.polar(
        torch.ones(n_tokens, d_head // 2), torch.arange(n_tokens)[:, None] * frequencies
    )
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns[None, :, None]).flatten(-2)


def meta_logits(w: dict[str, torch.Tensor], ids: torch.Tensor, p: dict) -> torch.Tensor:
    """Llama as a plain formula over Meta's names."""

    def norm(x, weight):
        return x * (x.square().mean(-1, keepdim=True) + p["norm_eps"]).rsqrt() * weight

    x = w["tok_embeddings.weight"][ids]
    causal = torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
    for i in range(p["n_layers"]):
        layer = {n.removeprefix(f"layers.{i}."): t for n, t in w.items() if n[:8] == f"layers.{i}"}
        h = norm(x, layer["attention_norm.weight"])
        q, k, v = (
            (h @ layer[f"attention.w{c}.weight"].T).unflatten(-1, (-1, p["head_dim"]))
            for c in "qkv"
        )
        q, k = (rotate_neighbours(part, p["rope_theta"]) for part in (q, k))
        k, v = (part.repeat_interleave(p["n_heads"] // p["n_kv_heads"], dim=2) for part in (k, v))
        scores = torch.einsum("bthd,bshd->bhts", q, k) / p["head_dim"] ** 0.5
        pattern = scores.masked_fill(~causal, -torch.inf).softmax(-1)
        z = torch.einsum("bhts,bshd->bthd", pattern, v).flatten(-2)
        x = x + z @ layer["attention.wo.weight"].T
        h = norm(x, layer["ffn_norm.weight"])
        w1, w2, w3 = (layer[f"feed_forward.w{n}.weight"] for n in (1, 2, 3))
        x = x + (torch.nn.functional.silu(h @ w1.T) * (h @ w3.T)) @ w2.T
    return norm(x, w["norm.weight"]) @ w["output.weight"].T


def meta_weights() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    shapes = {"tok_embeddings.weight": (97, 42), "output.weight": (97, 42), "norm.weight": (42,)}
    for i in range(3):
        shapes |= {
            f"layers.{i}.attention.wq.weight": (60, 42),
            f"layers.{i}.attention.wk.weight": (30, 42),
            f"layers.{i}.attention.wv.weight": (30, 42),
            f"layers.{i}.attention.wo.weight": (42, 60),
            f"layers.{i}.feed_forward.w1.weight": (52, 42),
            f"layers.{i}.feed_forward.w2.weight": (42, 52),
            f"layers.{i}.feed_forward.w3.weight": (52, 42),
            f"layers.{i}.attention_norm.weight": (42,),
            f"layers.{i}.ffn_norm.weight": (42,),
        }
    return {name: 0.3 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


@pytest.fixture
def meta_folder(tmp_path):
    folder = tmp_path / "Llama-tiny"
    folder.mkdir()
    weights = {**meta_weights(), "rope.freqs": torch.ones(5)}
    torch.save(weights, folder / "consolidated.00.pth")
    (folder / "params.json").write_text(json.dumps(PARAMS))
    return folder


@pytest.mark.parametrize("place", ["", "consolidated.00.pth"])
def test_metas_files_give_the_logits_of_the_plain_formula(meta_folder, place):
    loaded = load_model(meta_folder / place)
    expected = meta_logits(meta_weights(), IDS, PARAMS)
    torch.testing.assert_close(loaded.model(IDS), expected, atol=1e-5, rtol=0)
    assert loaded.info.family == "Llama"
    assert not loaded.config.tied_head
    assert loaded.config.context_length == 8_192  # by its base, since no preset is this small


def test_metas_rules_and_their_inverse_come_back_to_the_same_file(meta_folder):
    loaded = load_model(meta_folder)
    parameters = dict(loaded.model.named_parameters())
    saved = save_weights(llama_meta.rules(loaded.config), parameters, loaded.config)
    weights = meta_weights()
    assert saved.keys() == weights.keys()
    assert all(torch.equal(saved[name], tensor) for name, tensor in weights.items())


class Shapes:
    """A state dict of which only the shapes exist."""

    def __init__(self, vocab_size, d_model, d_ff):
        self.shapes = {
            "tok_embeddings.weight": (vocab_size, d_model),
            "output.weight": (vocab_size, d_model),
            "layers.0.feed_forward.w1.weight": (d_ff, d_model),
        }

    def equal(self, one, other):
        return False


def read_published(rows, width, d_ff, **params):
    return llama.FAMILY.state_dict.config_from_file(
        Shapes(rows, width, d_ff), Settings({"norm_eps": 1e-5, **params}, "params.json")
    )


def test_published_params_give_the_presets():
    sizes = {"dim": 4096, "n_layers": 32, "n_heads": 32}
    llama2 = {**sizes, "multiple_of": 256, "vocab_size": -1}
    assert read_published(32_000, 4096, 11_008, **llama2) == llama.LLAMA2_7B
    llama3 = {
        **sizes, "n_kv_heads": 8, "vocab_size": 128_256, "multiple_of": 1024,
        "ffn_dim_multiplier": 1.3, "rope_theta": 500_000.0,
    }  # fmt: skip
    assert read_published(128_256, 4096, 14_336, **llama3) == llama.LLAMA3_8B
    scaled = read_published(128_256, 4096, 14_336, **llama3, use_scaled_rope=True)
    assert scaled == llama.LLAMA31_8B
    small = {**llama3, "dim": 2048, "n_layers": 16, "ffn_dim_multiplier": 1.5, "multiple_of": 256}
    small = read_published(128_256, 2048, 8_192, **small, use_scaled_rope=True)
    assert replace(small, tied_head=True) == llama.LLAMA32_1B


def test_what_params_leave_out_is_filled_in_as_documented():
    sizes = {"dim": 42, "n_layers": 3, "n_heads": 3}
    assert read_published(97, 42, 52, **sizes).context_length == 4_096
    stated = read_published(97, 42, 52, **sizes, max_seq_len=77)
    assert stated.context_length == 77
    scaled = {**sizes, "rope_theta": 500_000.0, "use_scaled_rope": True}
    config = read_published(97, 42, 52, **scaled)
    assert config.context_length == 131_072
    assert config.rope[FULL] == RopeConfig(theta=500_000.0, scaling=SCALED)
    factor = read_published(97, 42, 52, **scaled, rope_scaling_factor=32).rope[FULL].scaling.factor
    assert factor == 32
    with pytest.raises(ConfigError, match=r"params\.json has no 'norm_eps'"):
        read_published(97, 42, 52, **sizes, norm_eps=None)


def test_a_tied_copy_of_the_output_is_kept_once(meta_folder):
    weights = meta_weights()
    weights["output.weight"] = weights["tok_embeddings.weight"]
    torch.save(weights, meta_folder / "consolidated.00.pth")
    loaded = load_model(meta_folder)
    assert loaded.config.tied_head
    expected = meta_logits(weights, IDS, PARAMS)
    torch.testing.assert_close(loaded.model(IDS), expected, atol=1e-5, rtol=0)


def test_several_shards_or_no_params_are_refused(meta_folder):
    (meta_folder / "params.json").rename(meta_folder / "p.txt")
    with pytest.raises(ConfigError, match=r"params\.json has no 'dim'"):
        load_model(meta_folder)
    shutil.copy(meta_folder / "consolidated.00.pth", meta_folder / "consolidated.01.pth")
    with pytest.raises(WeightError, match="cut over 2 files.*from the Hub"):
        load_model(meta_folder)
    (meta_folder / "consolidated.00.pth").unlink()
    with pytest.raises(WeightError, match="from the Hub"):
        load_model(meta_folder / "consolidated.01.pth")


def test_metas_folder_is_found_by_its_first_file(meta_folder):
    found = resolve_source(str(meta_folder))
    assert (found.kind, found.name, found.path.name) == ("pth", "Llama-tiny", "consolidated.00.pth")

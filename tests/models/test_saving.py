"""Saved models come back with the same bits, in the layout that says all of them."""

import json
import os
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open

from models import load_model, save_model
from models.config import DropoutConfig
from models.errors import ConfigError, TokenizerError, WeightError
from models.quantize import replace_with_int8
from models.registry import FAMILIES, presets
from models.saving_layout import choose_saving_layout
from models.tokenizers import ChatTemplate
from models.tokenizers.characters import train_character_tokenizer
from tests.models.saving_cases import (
    GPT2,
    IN_TRANSFORMERS,
    LLAMA,
    MOE,
    OTHERS,
    random_ids,
    random_model,
)

CASES = {
    **IN_TRANSFORMERS,
    **{name: (config, "glassbox") for name, config in OTHERS.items()},
}
# Presets that another family's layout says as well, or that only our own does.
OTHER_LAYOUTS = {
    "mistral-7b-v0.3": "Llama",
    "mla-plain-tiny": "Glassbox",
    "mla-rope-tiny": "Glassbox",
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def stored_names(folder):
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        return set(file.keys())


def test_the_layout_is_found_and_weights_and_logits_come_back_the_same(case, tmp_path):
    config, model_type = case
    model = random_model(config)
    saved = save_model(tmp_path / "m", model)
    assert saved.model_type == model_type
    assert saved.opens_in_transformers == (model_type != "glassbox")
    assert saved.size_bytes == (tmp_path / "m" / "model.safetensors").stat().st_size
    loaded = load_model(tmp_path / "m")
    ids = random_ids()
    assert torch.equal(loaded.model(ids), model(ids))
    found = dict(loaded.model.named_parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(found[name], parameter)
    assert loaded.info.n_parameters == sum(p.numel() for p in model.parameters())


def test_saved_anew_the_files_are_the_same(case, tmp_path):
    config, _ = case
    save_model(tmp_path / "one", random_model(config))
    save_model(tmp_path / "two", load_model(tmp_path / "one").model)
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_saved_in_a_layout_that_says_all_of_it(name):
    config = presets()[name]
    own = next(family.name for family in FAMILIES if name in family.presets)
    assert choose_saving_layout(config).family.name == OTHER_LAYOUTS.get(name, own)


def test_what_only_matters_before_and_during_training_decides_no_layout():
    other = replace(LLAMA, dropout=DropoutConfig(residual=0.5), initialisation="torch_default")
    assert choose_saving_layout(other).values == choose_saving_layout(LLAMA).values


@pytest.mark.parametrize("scale", [1e-200, 1e-5, 0.3, 1.5])
def test_scales_that_no_whole_number_stands_for_have_our_own_layout(scale):
    gemma, _ = IN_TRANSFORMERS["gemma3"]
    config = replace(gemma, attention=replace(gemma.attention, scale=scale))
    assert choose_saving_layout(config).model_type == "glassbox"


def test_dropout_rates_and_initialisation_that_the_layout_has_come_back(tmp_path):
    save_model(tmp_path / "gpt2", random_model(GPT2))
    assert load_model(tmp_path / "gpt2").config == GPT2
    course = OTHERS["course gpt"]
    save_model(tmp_path / "own", random_model(course))
    assert load_model(tmp_path / "own").config == course


@pytest.mark.parametrize("config", [GPT2, replace(LLAMA, tied_head=True), OTHERS["sinusoidal"]])
def test_a_tied_head_is_stored_once(config, tmp_path):
    assert config.tied_head
    save_model(tmp_path, random_model(config))
    assert not [name for name in stored_names(tmp_path) if "head" in name]


def test_experts_are_stored_one_by_one_as_on_the_hub(tmp_path):
    save_model(tmp_path, random_model(MOE))
    assert "model.layers.2.mlp.experts.4.down_proj.weight" in stored_names(tmp_path)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("config", [GPT2, OTHERS["course gpt"]])
def test_in_16_bits_the_weights_are_the_rounded_ones(config, dtype, tmp_path):
    model = random_model(config)
    whole = save_model(tmp_path / "whole", model).size_bytes
    saved = save_model(tmp_path / "half", model, dtype=dtype)
    assert saved.dtype == dtype
    assert saved.size_bytes < 0.6 * whole
    found = dict(load_model(tmp_path / "half").model.named_parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(found[name], parameter.to(getattr(torch, dtype)).float())
    assert json.loads((tmp_path / "half" / "config.json").read_text())["torch_dtype"] == dtype


def test_a_model_that_asks_for_gradients_is_saved_like_any(tmp_path):
    model = random_model(LLAMA)
    save_model(tmp_path / "one", model)
    save_model(tmp_path / "two", model.requires_grad_(True))
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]


def test_a_folder_that_is_there_holds_the_new_model_afterwards(tmp_path):
    save_model(tmp_path, random_model(LLAMA))
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 5}')
    save_model(tmp_path, random_model(GPT2))
    loaded = load_model(tmp_path)
    assert loaded.config == GPT2
    assert loaded.stop_ids == frozenset()


# ---------------------------------------------------------------------------------- tokenizer
WORDS = "the quick brown fox jumps over the lazy dog, 1 2 3!"


@pytest.mark.parametrize("config", [LLAMA, OTHERS["course gpt"]], ids=["llama", "course gpt"])
def test_the_tokenizer_and_its_end_token_come_back(config, tmp_path):
    tokenizer = train_character_tokenizer(WORDS)
    save_model(tmp_path, random_model(config), tokenizer=tokenizer)
    loaded = load_model(tmp_path)
    ids = loaded.tokenizer.encode(WORDS + "<|endoftext|>", special=True)
    assert ids == tokenizer.encode(WORDS + "<|endoftext|>", special=True)
    assert loaded.stop_ids == {tokenizer.eos_id} == {ids[-1]}
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert generation == {"bos_token_id": ids[-1], "eos_token_id": ids[-1]}
    assert json.loads((tmp_path / "config.json").read_text())["eos_token_id"] == ids[-1]
    assert loaded.config == replace(config, dropout=loaded.config.dropout)


def test_without_an_end_token_nothing_stops_an_answer(tmp_path):
    save_model(
        tmp_path,
        random_model(LLAMA),
        tokenizer=train_character_tokenizer(WORDS, special_tokens=()),
    )
    assert not (tmp_path / "generation_config.json").exists()
    assert load_model(tmp_path).stop_ids == frozenset()


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(tmp_path):
    alphabet = "".join(map(chr, range(200, 400)))
    with pytest.raises(TokenizerError, match="201"):
        save_model(
            tmp_path / "m", random_model(LLAMA), tokenizer=train_character_tokenizer(alphabet)
        )
    assert not (tmp_path / "m").exists()


def test_a_chat_template_comes_back(tmp_path):
    tokenizer = train_character_tokenizer(WORDS)
    chat = ChatTemplate("{% for m in messages %}{{ m.content }}!{% endfor %}", tokenizer)
    save_model(tmp_path, random_model(LLAMA), tokenizer=tokenizer, chat=chat)
    message = [{"role": "user", "content": "the fox"}]
    assert load_model(tmp_path).chat.encode(message) == tokenizer.encode("the fox!")


# ------------------------------------------------------------------------------------ refused
def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    model = random_model(LLAMA)
    model.blocks[1].ffn.up_proj.weight[3, 4] = float("nan")
    with pytest.raises(WeightError, match=r"1 of .* in blocks\.1\.ffn\.up_proj\.weight") as caught:
        save_model(tmp_path / "m", model)
    assert caught.value.code == "weights-not-finite"
    assert not (tmp_path / "m").exists()


def test_weights_beyond_float16_are_not_saved_in_it(tmp_path):
    model = random_model(LLAMA)
    model.embed.weight[3, 4] = 7e4
    with pytest.raises(WeightError, match="use bfloat16"):
        save_model(tmp_path, model, dtype="float16")
    save_model(tmp_path, model, dtype="bfloat16")


def test_weights_in_8_bits_are_not_saved(tmp_path):
    model = random_model(OTHERS["course gpt"])
    replace_with_int8(model)
    with pytest.raises(WeightError, match="load it in float32"):
        save_model(tmp_path, model)


def test_an_unknown_dtype_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(ConfigError, match="float32, bfloat16, float16"):
        save_model(tmp_path, random_model(LLAMA), dtype="int8")


def test_values_that_no_file_may_ask_for_are_refused_by_their_key():
    with pytest.raises(ConfigError, match=r"no layout holds.*context_length=2147483648"):
        choose_saving_layout(replace(LLAMA, context_length=2**31))
    wild = replace(LLAMA, attention=replace(LLAMA.attention, scale=1e200))
    with pytest.raises(ConfigError, match=r"no layout holds.*attention\.scale=1e\+200"):
        choose_saving_layout(wild)


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightError, match="cannot be written to file") as caught:
        save_model(tmp_path / "file", random_model(LLAMA))
    assert caught.value.code == "model-not-written"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_a_full_disk_is_said(tmp_path):
    (tmp_path / "config.json").symlink_to("/dev/full")
    with pytest.raises(WeightError, match="No space left"):
        save_model(tmp_path, random_model(LLAMA))


def test_a_part_without_a_rule_is_never_left_out_silently(tmp_path, monkeypatch):
    layout = choose_saving_layout(LLAMA)
    table = layout.family.rules(LLAMA)
    shorter = replace(table, rules=tuple(r for r in table.rules if "v_proj" not in r.theirs))
    family = replace(layout.family, rules=lambda _: shorter)
    monkeypatch.setattr(
        "models.saving.choose_saving_layout", lambda _: replace(layout, family=family)
    )
    with pytest.raises(WeightError, match=r"nothing fills: .*v_proj"):
        save_model(tmp_path, random_model(LLAMA))

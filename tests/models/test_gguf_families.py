"""GGUF files of every family give the logits of the folder that they were made from."""

import gguf
import pytest
import torch
from gguf import GGMLQuantizationType as Kind

from models import load_model
from models.gguf_file import GgufFile
from models.gguf_layout import Key
from models.registry import FAMILIES, find_gguf_family
from models.rope import inverse_frequencies
from tests.models.gguf_cases import CASES, WIDE, make_folder
from tests.models.gguf_writing import Target, write_gguf

IDS = torch.tensor([[(7 * i * i + 3 * i) % 97 for i in range(57)]])


def assert_same_model(path, folder):
    """Logits at 57 positions, past every window and original context, and the parts' values."""
    theirs, ours = load_model(folder), load_model(path)
    expected = theirs.model(IDS)
    scale = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(ours.model(IDS) / scale, expected / scale, atol=1e-5, rtol=0)
    for part in ("layer_types", "moe", "norm_position", "tied_head", "vocab_size", "d_model"):
        assert getattr(ours.config, part) == getattr(theirs.config, part)
    used = set(theirs.config.layer_types)
    for layer_type in used:
        found, wanted = (
            inverse_frequencies(config.rope[layer_type], config.attention.d_head)
            for config in (ours.config, theirs.config)
        )
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", CASES)
def test_logits_equal_those_of_the_hugging_face_folder(name, golden_folder, tmp_path):
    case = CASES[name]
    config, weights = make_folder(tmp_path / "folder", golden_folder, case)
    write_gguf(tmp_path / "a.gguf", case.target, config, weights)
    assert_same_model(tmp_path / "a.gguf", tmp_path / "folder")


@pytest.mark.parametrize("kind", [Kind.Q8_0, Kind.Q4_0], ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "name", ["llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3", "olmo3"]
)
def test_quantised_files_equal_their_rounded_weights(name, kind, golden_folder, tmp_path):
    case = CASES[name]
    wide = WIDE if name != "qwen3_moe" else WIDE | {"moe_intermediate_size": 32}
    config, weights = make_folder(tmp_path / "folder", golden_folder, case, kind, **wide)
    keys = case.target.keys
    if name == "qwen3_moe":
        keys = {**keys, "add_expert_feed_forward_length": 32}
    target = Target(case.target.architecture, keys)
    write_gguf(tmp_path / "a.gguf", target, config, weights, kind)
    with GgufFile(tmp_path / "a.gguf") as file:
        kinds = {tensor.kind for tensor in file.tensors.values() if len(tensor.shape) > 1}
        assert kinds == {kind}
    assert_same_model(tmp_path / "a.gguf", tmp_path / "folder")


# ------------------------------------------------------------------------------- names and keys
def _constants(group):
    for name, value in vars(group).items():
        if isinstance(value, str) and not name.startswith("_"):
            yield value
        elif isinstance(value, type):
            yield from _constants(value)


@pytest.mark.parametrize("key", Key, ids=lambda key: key.name)
def test_every_key_is_one_of_the_package(key):
    assert f"{{arch}}.{key}" in set(_constants(gguf.Keys))


# Named by the package and in none of the files that we open: tables instead of weights (dropped by
# nobody, since no converter of these families writes them) and the experts of Mixtral.
NOT_IN_OUR_FILES = {
    "llama": {
        "rope_freqs", "blk.{bid}.attn_rot_embd", "blk.{bid}.ffn_gate_inp",
        "blk.{bid}.ffn_gate_exps", "blk.{bid}.ffn_up_exps", "blk.{bid}.ffn_down_exps",
    },
    "qwen2": {"rope_freqs"},
    "qwen3": {"rope_freqs"},
}  # fmt: skip
ARCHITECTURES = {"gpt2": "gpt2", "llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
ARCHITECTURES |= {"qwen3moe": "qwen3_moe", "gemma2": "gemma2", "gemma3": "gemma3_text"}
ARCHITECTURES |= {"olmo2": "olmo3"}


def test_every_architecture_of_ours_is_compared_here():
    ours = {name for family in FAMILIES if family.gguf for name in family.gguf.architectures}
    assert ours == set(ARCHITECTURES)
    assert ours == {case.target.architecture for case in CASES.values()} | {"gpt2"}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rules_know_the_tensors_that_the_package_lists(architecture, golden_folder):
    config = load_model(golden_folder / ARCHITECTURES[architecture]).config
    rules = find_gguf_family(architecture).gguf.rules(config).rules
    number = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[architecture]
    listed = {gguf.TENSOR_NAMES[tensor] for tensor in gguf.MODEL_TENSORS[number]}
    listed -= NOT_IN_OUR_FILES.get(architecture, set())
    known = {rule.theirs.rsplit(".", 1)[0].replace("{i}", "{bid}") for rule in rules}
    assert listed <= known
    # one table serves all: what the package lists for another architecture may be known too
    assert known <= {gguf.TENSOR_NAMES[tensor] for tensor in gguf.MODEL_TENSOR}

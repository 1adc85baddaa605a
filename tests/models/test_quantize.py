"""Weights in 8 bits: the rounding by hand, every family, memory and the real model."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from models import KVCache, SamplingConfig, generate, load_model
from models.costs import count_weight_bytes
from models.quantize import Int8Embedding, Int8Linear, multiply_rows, quantize_rows

FAMILIES = ("llama", "gpt2", "qwen2", "qwen3_moe", "gemma3_text", "olmo3", "deepseek")


def seeded(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


# ---------------------------------------------------------------------------------- rounding
def test_rounding_by_hand():
    rows = quantize_rows(torch.tensor([[0.5, -1.27, 0.004], [0.0, 0.0, 0.0], [254.0, 1.0, -3.0]]))
    assert rows.values.tolist() == [[50, -127, 0], [0, 0, 0], [127, 0, -2]]
    torch.testing.assert_close(rows.scales, torch.tensor([0.01, 0.0, 2.0]))


def test_a_weight_moves_by_at_most_half_a_scale_of_its_row():
    weight = seeded(5_000, 44) * torch.logspace(-3, 3, 5_000)[:, None]  # more than one piece
    rows = quantize_rows(weight)
    moved = (rows.values * rows.scales[:, None] - weight).abs()
    assert (moved <= rows.scales[:, None] * 0.5001).all()
    assert (rows.values.abs().amax(dim=1) == 127).all()  # the whole range is used


@pytest.mark.parametrize("shape", [(44,), (1, 44), (2, 7, 44)])
def test_products_in_pieces_equal_those_with_the_whole_matrix(shape):
    rows = quantize_rows(seeded(9_001, 44))  # 512 KiB are 2,978 rows
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(4))
    whole = x @ (rows.values * rows.scales[:, None]).T
    torch.testing.assert_close(multiply_rows(x, rows.values, rows.scales), whole)


def test_gradients_pass_through_to_the_input():
    rows = quantize_rows(seeded(9_001, 44))
    x = seeded(2, 44).requires_grad_()
    multiply_rows(x, rows.values, rows.scales).sum().backward()
    expected = (rows.values * rows.scales[:, None]).sum(dim=0).expand(2, -1)
    torch.testing.assert_close(x.grad, expected, atol=1e-3, rtol=1e-4)


# ------------------------------------------------------------------------------------ models
@pytest.fixture(params=FAMILIES)
def folder(request, golden_folder):
    return golden_folder / request.param


def with_rounded_weights(folder):
    """The float32 model, its matrices moved to where 8 bits put them: what int8 should compute."""
    loaded = load_model(folder)
    for name, module in loaded.model.named_modules():
        is_matrix = isinstance(module, torch.nn.Linear | torch.nn.Embedding)
        if is_matrix and not name.endswith("router"):
            rows = quantize_rows(module.weight)
            module.weight.data = rows.values * rows.scales[:, None]
    return loaded.model


def test_every_family_computes_with_the_rounded_weights(folder):
    loaded = load_model(folder, dtype="int8")
    ids = torch.randint(0, 90, (2, 23), generator=torch.Generator().manual_seed(5))
    expected = with_rounded_weights(folder)(ids)
    torch.testing.assert_close(loaded.model(ids), expected, atol=1e-4, rtol=1e-4)
    exact = load_model(folder).model(ids)
    assert (loaded.model(ids) - exact).abs().max() > 1e-4  # it is another model, if slightly


def test_token_by_token_through_the_cache_equals_whole(folder):
    loaded = load_model(folder, dtype="int8")
    ids = torch.randint(0, 90, (2, 23), generator=torch.Generator().manual_seed(5))
    cache = KVCache(loaded.config, 2, 23, dtype=loaded.model.dtype)
    steps = [loaded.model(ids[:, i : i + 1], cache=cache) for i in range(23)]
    torch.testing.assert_close(torch.cat(steps, dim=1), loaded.model(ids), atol=1e-4, rtol=1e-4)


def test_what_is_stored_in_which_type(folder):
    loaded = load_model(folder, dtype="int8")
    kinds = {name: p.dtype for name, p in loaded.model.named_parameters()}
    assert {kinds[name] for name in kinds if name.endswith(".values")} == {torch.int8}
    others = {dtype for name, dtype in kinds.items() if not name.endswith(".values")}
    assert others == {torch.float32}
    in_floats = {m for m in loaded.model.modules() if isinstance(m, torch.nn.Linear)}
    assert all(m.out_features == loaded.config.moe.n_experts for m in in_floats)  # routers
    layers = [m for m in loaded.model.modules() if isinstance(m, Int8Linear | Int8Embedding)]
    assert layers
    assert loaded.model.dtype == torch.float32
    assert loaded.info.n_parameters == load_model(folder).info.n_parameters
    assert loaded.info.n_bytes == count_weight_bytes(loaded.config, "int8")


# -------------------------------------------------------------------------------- real model
@pytest.mark.slow
def test_smollm2_in_8_bits_answers_paris_with_a_quarter_of_the_bytes(smollm2_file):
    loaded = load_model(smollm2_file, dtype="int8")
    prompt = loaded.chat.encode([{"role": "user", "content": "What is the capital of France?"}])
    greedy = SamplingConfig(temperature=0.0)
    tokens = list(generate(loaded.model, prompt, sampling=greedy, stop_ids=loaded.stop_ids))
    answer = loaded.tokenizer.decode([token.id for token in tokens[:-1]])
    assert answer == "The capital of France is Paris."
    assert loaded.info.n_bytes <= 0.30 * 134_515_008 * 4


@pytest.mark.slow
def test_loading_in_8_bits_never_holds_a_copy_in_float32(smollm2_file, usual_environment):
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not tell the peak of a process")
    code = (
        "import sys, torch; from models import load_model; import models.loading\n"
        "def peak():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(s.split()[1]) for s in lines if s.startswith('VmHWM'))\n"
        "before = peak(); load_model(sys.argv[1], dtype='int8'); print((peak() - before) * 1024)"
    )
    run = [sys.executable, "-c", code, str(smollm2_file)]
    done = subprocess.run(run, check=True, capture_output=True, text=True, env=usual_environment)
    added = int(done.stdout)
    mapped_file = smollm2_file.stat().st_size  # counts while it is read, and can be dropped
    assert added - mapped_file < 134_515_008 * 4

"""One pass: its lines of PyTorch, one after the other, give the tensors that the trace shows."""

import numpy as np
import pytest
import torch

from explorer.errors import ConfigError
from explorer.one_pass import compute_one_pass
from explorer.one_pass_lines import IMPORTS, START, list_steps, make_pass_program
from models import Trace
from tests.letters import load_lettered

TEXT = "the cat sat"
FAMILIES = ("gpt2", "llama", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "olmo3", "deepseek")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_lines_compute_what_the_model_computes(golden_folder, family):
    loaded = load_lettered(golden_folder / family)
    ids = loaded.tokenizer.encode(TEXT)
    steps = list_steps(loaded.config, loaded.config.n_layers - 1)
    trace = Trace(record=tuple(step.tap for step in steps if step.tap))
    scope = {"model": loaded.model, "ids": torch.tensor([ids])}
    exec("\n".join((*IMPORTS, *START)), scope)
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([ids]), trace=trace)
        for step in steps:
            exec("\n".join(step.code), scope)
            if step.tap:
                torch.testing.assert_close(
                    scope[step.variable], trace[step.tap], atol=1e-5, rtol=1e-5
                )
    torch.testing.assert_close(scope["probabilities"], logits.softmax(dim=-1), atol=1e-6, rtol=0)


def test_a_pass_tells_what_each_tensor_holds(golden_folder):
    loaded = load_lettered(golden_folder / "llama")
    found = compute_one_pass(loaded, TEXT, 1)
    ids = torch.tensor([found.ids])
    trace = Trace(record=("blocks.1.resid_mid", "logits"))
    loaded.model(ids, trace=trace)
    by_key = {step.line.key: step for step in found.steps}
    middle = trace["blocks.1.resid_mid"]
    assert by_key["resid_mid"].shape == tuple(middle.shape)
    assert by_key["resid_mid"].mean == pytest.approx(float(middle.mean()), abs=1e-6)
    assert by_key["resid_mid"].size == pytest.approx(float(middle.square().mean().sqrt()), rel=1e-5)
    np.testing.assert_allclose(by_key["resid_mid"].first, middle[0, -1, :4].numpy(), atol=1e-6)
    norm = loaded.model.blocks[1].ffn_norm(middle)
    np.testing.assert_allclose(by_key["ffn_norm"].first, norm[0, -1, :4].detach(), atol=1e-6)
    probabilities = trace["logits"][0, -1].softmax(-1)
    assert found.answers[0][1] == pytest.approx(float(probabilities.max()), abs=1e-6)
    assert len(found.labels) == len(found.ids)
    program = make_pass_program("load_model('x')", found.ids, list_steps(loaded.config, 1))
    compile(program, "program", "exec")


def test_no_text_and_no_such_layer_are_refused(golden_folder):
    loaded = load_lettered(golden_folder / "llama")
    with pytest.raises(ConfigError, match="type some"):
        compute_one_pass(loaded, "", 0)
    with pytest.raises(ConfigError, match="choose 0 to 1"):
        compute_one_pass(loaded, TEXT, 7)

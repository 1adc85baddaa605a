"""The first curve that a newcomer sees: the default run falls without a jump."""

import pytest
import torch

from explorer.runs import Runs
from explorer.training.events import Step
from explorer.training.loop import train
from explorer.training.run_folder import RUNS_FOLDER
from explorer.training.setup import RunSetup, recommended_setup
from models import build_decoder
from models.config import ModelConfig


def test_weights_of_a_narrow_model_are_drawn_by_its_width():
    """Standard deviation = 1 / sqrt(inputs), and of tokens half of it."""
    from explorer.training.setup import model_of

    config: ModelConfig = model_of(recommended_setup("tiny"), 60)
    model = build_decoder(config, torch.Generator().manual_seed(4)).requires_grad_(False)
    for name, weight in model.named_parameters():
        if weight.ndim == 2:
            std = weight.shape[1] ** -0.5 / (2 if name == "embed.weight" else 1)
            assert float(weight.std()) == pytest.approx(std, rel=0.05), name
    wide = model_of(recommended_setup("124m"), 60)
    assert wide.initialisation == "normal_scaled"


@pytest.mark.slow
def test_the_default_run_falls_without_a_jump(tmp_path):
    *_, last = Runs(tmp_path).create(RunSetup(), "")
    steps = []
    for event in train(tmp_path / RUNS_FOLDER / str(last.run_id)):
        if isinstance(event, Step):
            steps.append(event)
        if len(steps) == 50:
            break
    losses = [step.loss for step in steps]
    rises = [after - before for before, after in zip(losses, losses[1:], strict=False)]
    assert max(rises) < 0.15  # batches differ by that much; the jump of step 10 was 1.3
    assert max(step.gradient_norm for step in steps[2:]) < 10  # it was 34
    assert losses[-1] < 0.5 * losses[0]

"""The average of weights, against its closed form."""

import copy
import io

import pytest
import torch

from explorer.errors import WeightError
from explorer.training.ema import WeightAverage
from tests.explorer.training.tiny_models import LLAMA, build_tiny, draw_ids

DECAY = 0.8
NAME = "blocks.1.ffn.up_proj.weight"


def move(model, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data += torch.randn(parameter.shape, generator=generator)


def walk(model, average: WeightAverage, seeds: range) -> list[torch.Tensor]:
    """Weights of one parameter after each update."""
    visited = []
    for seed in seeds:
        move(model, seed)
        average.update()
        visited.append(model.get_parameter(NAME).detach().double())
    return visited


def test_the_average_has_its_closed_form() -> None:
    model = build_tiny()
    average = WeightAverage(model, DECAY)
    visited = walk(model, average, range(7))
    shares = torch.tensor([DECAY ** (6 - i) for i in range(7)], dtype=torch.float64)
    expected = torch.einsum("n,nij->ij", shares / shares.sum(), torch.stack(visited))
    found = average.state_dict()["weights"][NAME]
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)


def test_the_start_does_not_count() -> None:
    model = build_tiny()
    average = WeightAverage(model, 0.999)
    walk(model, average, range(1))
    with average.swapped():
        found = model.get_parameter(NAME).clone()
    assert torch.equal(found, model.get_parameter(NAME))


def test_inside_the_model_is_the_average_and_afterwards_itself() -> None:
    model, ids = build_tiny(LLAMA), draw_ids()
    average = WeightAverage(model, DECAY)
    walk(model, average, range(4))
    averaged = build_tiny(LLAMA)
    averaged.load_state_dict(average.state_dict()["weights"])
    own = copy.deepcopy(model.state_dict())
    with average.swapped(), torch.no_grad():
        assert torch.equal(model(ids), averaged(ids))
    assert all(torch.equal(own[name], tensor) for name, tensor in model.state_dict().items())


def test_the_model_comes_back_when_an_evaluation_fails() -> None:
    model = build_tiny()
    average = WeightAverage(model, DECAY)
    walk(model, average, range(3))
    own = model.get_parameter(NAME).clone()
    with pytest.raises(ZeroDivisionError), average.swapped():
        raise ZeroDivisionError
    assert torch.equal(model.get_parameter(NAME), own)
    walk(model, average, range(3, 4))  # and the average goes on


def test_going_on_from_a_saved_average_equals_never_having_stopped() -> None:
    model = build_tiny()
    average = WeightAverage(model, DECAY)
    walk(model, average, range(3))
    file = io.BytesIO()
    torch.save(average.state_dict(), file)
    resumed = copy.deepcopy(model)
    walk(model, average, range(3, 6))

    again = WeightAverage(resumed, DECAY)
    file.seek(0)
    again.load_state_dict(torch.load(file, weights_only=True))
    walk(resumed, again, range(3, 6))
    found, expected = again.state_dict(), average.state_dict()
    assert found["n_updates"] == expected["n_updates"] == 6
    assert all(torch.equal(found["weights"][n], w) for n, w in expected["weights"].items())


def test_an_average_of_another_model_is_refused() -> None:
    average = WeightAverage(build_tiny(), DECAY)
    with pytest.raises(WeightError, match="parameters differ.*begin a new run"):
        average.load_state_dict(WeightAverage(build_tiny(LLAMA), DECAY).state_dict())
    state = average.state_dict()
    state["weights"][NAME] = torch.zeros(3, 5)
    with pytest.raises(WeightError, match=r"up_proj.weight is \(3, 5\), not \(52, 44\)"):
        WeightAverage(build_tiny(), DECAY).load_state_dict(state)

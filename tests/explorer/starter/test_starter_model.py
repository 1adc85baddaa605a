"""The starter that ships: what its card says is what it does, and its recipe builds it."""

import json
from pathlib import Path

import pytest

from explorer.head_scores import compute_head_scores
from explorer.starter.build import main, write_world
from explorer.starter.recipe import SEPARATOR, copying_run, starter_run
from explorer.starter.rows import find_pieces, write_rows
from explorer.starter.scoring import LANGUAGES, compute_world_loss, is_right, share_right
from explorer.training.evaluate import write_sample
from models import get_preset, load_model
from models.counting import count_parameters
from models.sources import ASSETS, find_local

FOLDER = ASSETS / "starter"
SCORES = json.loads((FOLDER / "scores.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def starter():
    return load_model("starter")


def test_the_starter_is_here_without_a_network():
    assert find_local("starter").origin == "bundled"
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 12_000_000
    assert 3_000_000 <= count_parameters(get_preset("starter")).unique <= 5_000_000


def test_it_is_the_model_of_the_recipe(starter):
    assert starter.config == starter_run().model
    for prefix, run in (("", starter_run()), ("copying_", copying_run())):
        assert SCORES[f"{prefix}n_steps"] == run.n_steps
        assert SCORES[f"{prefix}tokens_read"] == run.n_steps * run.data.tokens_per_step


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_its_loss_is_the_recorded_one(starter, language):
    found = compute_world_loss(starter, "validation", language)
    assert found == pytest.approx(SCORES["scores"]["losses"]["validation"][language], abs=2e-3)


def test_its_heads_are_the_recorded_ones(starter):
    heads = compute_head_scores(starter)
    for name, place in (
        ("previous_token", heads.best_previous_token),
        ("induction", heads.best_induction),
    ):
        recorded = SCORES["scores"][name]
        assert (place.layer, place.head) == (recorded["layer"], recorded["head"])
        assert place.score == pytest.approx(recorded["score"], abs=5e-3)


def test_heads_look_one_token_back_and_behind_an_earlier_copy():
    assert SCORES["scores"]["previous_token"]["score"] > 0.9
    assert SCORES["scores"]["induction"]["score"] > 0.8


def test_rows_repeat_tokens_of_the_whole_vocabulary(starter):
    pieces = find_pieces(starter.tokenizer)
    assert len(pieces) > 0.8 * starter.tokenizer.vocab_size
    assert {" the", "小"} <= set(pieces)
    rows = write_rows(1, pieces)
    first, second = next(rows), next(rows)
    assert first != second
    assert next(write_rows(1, pieces)) == first
    for row in (first, second):
        ids = starter.tokenizer.encode(row)
        period = next(n for n in range(1, 200) if ids[n : 2 * n] == ids[:n])
        assert len(set(ids)) >= 4
        assert ids[period : 2 * period] == ids[:period]


def test_it_answers_questions_about_a_text_in_words_that_it_has_seen():
    questions = SCORES["scores"]["questions"]["validation"]
    assert questions["en"] > 0.5
    assert questions["zh"] > 0.4


def test_it_tells_a_story_of_whole_sentences(starter):
    story = write_sample(
        starter.model,
        starter.tokenizer,
        "Once upon a time",
        n_tokens=60,
        temperature=0.0,
        seed=1,
    )
    assert story.count(".") >= 2
    known = set(write_world("training", 300_000, "en").replace("\n", " ").split())
    words = story.replace("\n", " ").split()[:-1]  # the last may be cut
    assert sum(word in known for word in words) > 0.95 * len(words)


def test_the_card_says_the_recorded_numbers():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{SCORES['n_parameters']:,}" in card
    for table, form in (("losses", "{:.3f}"), ("questions", "{:.1%}")):
        for values in SCORES["scores"][table].values():
            for value in values.values():
                assert form.format(value) in card


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_it_answers_about_as_many_questions_as_recorded(starter, language):
    recorded = SCORES["scores"]["questions"]["validation"][language]
    # of 60 of the 200 questions: three standard deviations of such a part are 0.16
    found = share_right(starter, "validation", language, 60)
    assert found == pytest.approx(recorded, abs=0.16)


@pytest.mark.slow
def test_the_command_builds_a_model_that_opens(tmp_path):
    assert main([str(tmp_path), "--steps", "1"]) == 0
    built = load_model(tmp_path / "starter")
    assert built.config == get_preset("starter")
    assert built.tokenizer.special_tokens == {SEPARATOR: 0}
    assert json.loads((tmp_path / "starter" / "scores.json").read_text())["n_steps"] == 1
    assert (Path(tmp_path) / "starter" / "README.md").exists()


@pytest.mark.slow
def test_a_wrong_answer_is_not_right(starter):
    from dataclasses import replace

    from explorer.starter.documents import generate_questions

    questions = generate_questions(7, 20, language="en", split="validation")
    right = [question for question in questions if is_right(starter, question)]
    assert right
    assert not is_right(starter, replace(right[0], answer="Nobody knows."))

"""Multiple choice: files read, the likeliest answer against the plain softmax."""

import json
from contextlib import nullcontext

import pytest
import torch

from explorer.errors import ConfigError, DataError
from explorer.multiple_choice import ChoiceQuestion, read_choice_set, score_choices
from explorer.starter.lessons import choice_lines
from explorer.training.answer_rows import RowWriter
from explorer.training.tuning_config import TuningConfig
from explorer.tuning_data import FOLDER
from models.initialise import build_decoder
from models.loading import load_model
from models.saving import save_model
from models.tokenizers.bpe_trainer import train_bpe
from tests.explorer.training.run_cases import TEXT
from tests.explorer.training.tiny_models import LLAMA


def test_the_right_answer_is_found_by_text_letter_or_place() -> None:
    csv = 'question,A,B,C,answer\n"2, 2?",3,four,5,B\nq,x,y,,y\nq,x,y,z,0\n'
    found = read_choice_set("typed", csv)
    assert [(q.choices, q.right) for q in found.questions] == [
        (("3", "four", "5"), 1),
        (("x", "y"), 1),
        (("x", "y", "z"), 0),
    ]
    assert found.questions[0].question == "2, 2?"
    assert found.chance == pytest.approx((1 / 3 + 1 / 2 + 1 / 3) / 3)
    arc = {"question": "q", "choices": {"text": ["a b", "c"], "label": ["A", "B"]}, "answer": "b"}
    assert read_choice_set("typed", json.dumps([arc])).questions[0].right == 1
    digits = {"question": "q", "choices": ["7", "8"], "answer": "8"}
    assert read_choice_set("typed", json.dumps([digits])).questions[0].right == 1


def test_bad_rows_are_told_by_number() -> None:
    rows = [
        {"question": "q", "choices": ["a", "b"], "answer": 0},
        {"question": "q", "choices": ["a"], "answer": 0},
        {"question": "q", "choices": ["a", "a"], "answer": 0},
        {"question": "q", "choices": ["a", "b"], "answer": "Z"},
        {"question": " ", "choices": ["a", "b"], "answer": 0},
        {"question": "q", "choices": 5, "answer": 0},
    ]
    found = read_choice_set("typed", "\n".join(map(json.dumps, rows)))
    assert [(p.number, p.code) for p in found.problems] == [
        (2, "choice_count"),
        (3, "choice_twice"),
        (4, "choice_answer"),
        (5, "empty"),
        (6, "choice_list"),
    ]
    with pytest.raises(DataError) as error:
        read_choice_set("typed", "label,text\nham,x\n")
    assert error.value.code == "choice-columns"
    with pytest.raises(ConfigError) as nothing:
        read_choice_set("typed", " ")
    assert nothing.value.code == "choice-nothing"


def test_the_sample_is_what_its_seed_writes() -> None:
    assert (FOLDER / "choices.jsonl").read_text(encoding="utf-8") == choice_lines()
    found = read_choice_set("sample")
    assert len(found.questions) == 90
    assert found.chance == pytest.approx(0.25)
    chinese = [q for q in found.questions if "\u4e00" <= q.question[0] <= "\u9fff"]
    assert len(chinese) == 30


def test_the_likeliest_answer_is_that_of_the_softmax(tmp_path) -> None:
    tokenizer = train_bpe(TEXT, vocab_size=280, special_tokens=("<|endoftext|>",)).to_tokenizer("t")
    from dataclasses import replace

    config = replace(LLAMA, vocab_size=tokenizer.vocab_size, context_length=200)
    save_model(
        tmp_path, build_decoder(config, torch.Generator().manual_seed(8)), tokenizer=tokenizer
    )
    loaded = load_model(tmp_path)
    questions = [
        ChoiceQuestion(row=1, question="Who?", choices=("Ada has two.", "Ben", "Cleo"), right=2),
        ChoiceQuestion(row=2, question="What?", choices=("red balls", "old maps of it"), right=0),
    ]
    tuning = TuningConfig(base="", template="phi3")
    scores = score_choices(loaded, questions, tuning, turn=nullcontext)
    writer = RowWriter(loaded.tokenizer, "phi3", None, 200)
    for question, sums, by_sum, by_mean in zip(
        questions, scores.sums, scores.by_sum, scores.by_mean, strict=True
    ):
        from explorer.datasets.examples import Prompt

        wanted = []
        for choice in question.choices:
            row = writer.write_row(Prompt(instruction=question.question), choice)
            logs = loaded.model(torch.tensor([row.ids]))[0].log_softmax(-1)
            places = [t for t in range(1, len(row.ids)) if row.learned[t]]
            wanted.append(sum(float(logs[t - 1, row.ids[t]]) for t in places))
        assert sums == pytest.approx(wanted, rel=1e-5)
        assert by_sum == wanted.index(max(wanted))
        each = [x / len(c.encode()) for x, c in zip(wanted, question.choices, strict=True)]
        assert by_mean == each.index(max(each))
    assert scores.accuracy() == sum(scores.hits()) / 2

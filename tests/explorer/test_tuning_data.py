"""Data sets: how files are read, divided and checked; bad input is told by its row."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from explorer.datasets.examples import ColumnMapping, Example, guess_mapping, read_examples
from explorer.datasets.records import RecordTable, read_records
from explorer.datasets.splits import (
    SplitConfig,
    count_classes,
    draw_order,
    find_duplicates,
    split_examples,
)
from explorer.datasets.word_baseline import count_words, score_baseline
from explorer.errors import DataError
from explorer.tuning_data import DataSets, DataSettings, type_out

LIMIT = 10**6


def read(content: str | bytes, name: str = "file") -> RecordTable:
    raw = content if isinstance(content, bytes) else content.encode()
    return read_records(raw, name=name, max_bytes=LIMIT)


def code_of(content: str | bytes) -> str | None:
    def use() -> None:
        table = read(content)
        mapping = guess_mapping(table)
        assert mapping is not None
        read_examples(table, mapping)

    with pytest.raises(DataError) as error:
        use()
    return error.value.code


def test_csv_is_read_as_pandas_reads_it() -> None:
    text = 'label,text\nspam,"win, now\n""today"""\nham,ok\nham,a \U0001f999\n'
    table = read(text)
    frame = pd.read_csv(pd.io.common.StringIO(text))
    assert [list(row) for row in table.rows] == frame.to_numpy().tolist()
    assert table.numbers == (2, 4, 5)


def test_a_file_is_what_its_content_is() -> None:
    rows = [{"label": "a", "text": "x"}, {"label": 1, "text": "y"}]
    whole, lines = json.dumps(rows), "\n".join(map(json.dumps, rows))
    for content in (whole, lines, "\ufeff" + whole, json.dumps({"data": rows})):
        assert read(content).rows == (("a", "x"), (1, "y"))
    talk = [{"role": "user", "content": "x"}]
    assert read(json.dumps({"messages": talk})).rows == ((talk,),)
    columns = json.dumps({"label": ["a", 1], "text": ["x", "y"]})
    assert read(columns).rows == (("a", "x"), (1, "y"))


def test_one_broken_line_is_told_and_the_others_stay() -> None:
    table = read(
        '{"label": "a", "text": "x"}\n{"label": "b", "text": \n\n{"label": "b", "text": "y"}'
    )
    assert table.numbers == (1, 4)
    assert [(p.number, p.code) for p in table.problems] == [(2, "not_json")]


def test_rows_that_cannot_be_used_are_told_by_number() -> None:
    rows = [
        {"instruction": "a", "output": {"text": "b"}},
        {"instruction": "a", "output": ""},
        {"instruction": "a"},
        {"instruction": "a", "output": "b"},
        ["no object"],
    ]
    table = read(json.dumps(rows))
    mapping = guess_mapping(table)
    assert mapping is not None
    found = read_examples(table, mapping)
    assert [(p.number, p.code) for p in found.problems] == [
        (1, "not_text"),
        (2, "empty"),
        (3, "missing"),
        (5, "no_object"),
    ]
    assert [e.row for e in found.examples] == [4]


def test_bad_files_say_what_to_do() -> None:
    assert code_of(b"label,text\nham,\xc0x\n") == "data-not-utf8"
    assert code_of("label,text\n") == "data-no-rows"
    assert code_of('[{"prompt": "a", "chosen": "b", "rejected": "b"}]') == "data-no-examples"
    assert code_of("{oops\n") == "data-not-json"
    with pytest.raises(DataError) as error:
        read_records(b"a" * 20, name="big", max_bytes=10)
    assert error.value.code == "data-too-large"
    assert read(",text\nham,x\n").columns == ("column 1", "text")
    table = read("label,text\nham,x,y\nspam,z\n")
    assert [(p.number, p.code, p.what) for p in table.problems] == [(2, "width", "3 / 2")]


@pytest.mark.parametrize("side", ["chosen", "rejected"])
def test_one_answer_of_a_pair_without_the_other_is_refused_and_never_a_class(side: str) -> None:
    other = "rejected" if side == "chosen" else "chosen"
    rows = [{"prompt": "ab"[i % 2], side: f"x {i}"} for i in range(8)]
    for content in (json.dumps(rows), "\n".join(map(json.dumps, rows))):
        settings = DataSettings(data="typed", typed=content)
        with pytest.raises(DataError, match=f"no column {other}: pairs need") as error:
            DataSets().view(settings)
        assert (error.value.code, error.value.facts["role"]) == ("data-no-side", other)
    # of one who says what the columns are, names prove nothing
    told = DataSettings(
        data="typed", typed=json.dumps(rows), kind="classification", first=side, second="prompt"
    )
    assert DataSets().view(told).examples.labels == ("a", "b")
    whole = [{"text": f"t {i}", "label": "ab"[i % 2], side: "no"} for i in range(4)]
    guess = guess_mapping(read(json.dumps(whole)))
    assert guess is not None
    assert guess.kind == "classification"


def test_a_row_that_was_left_out_is_named_where_too_few_remain() -> None:
    rows = [{"instruction": "a", "output": "b"}, {"instruction": "c", "output": {"text": "d"}}]
    with pytest.raises(DataError) as error:
        DataSets().view(DataSettings(data="typed", typed=json.dumps(rows)))
    assert error.value.code == "data-too-few-left-out"
    assert "row 2: output is an object or list, not a text" in error.value.message
    facts = error.value.facts
    assert (facts["rows"], facts["left_out"], facts["row"]) == (1, 1, 2)
    rows = [{"prompt": "a", "chosen": "b", "rejected": "b"}]
    with pytest.raises(DataError, match="row 1: both answers are the same"):
        DataSets().view(DataSettings(data="typed", typed=json.dumps(rows)))


def test_few_rows_serve_for_looking_and_the_test_and_the_view_says_so() -> None:
    rows = [Example(row=i, text=f"t {i}", label="ab"[i % 2]) for i in range(10)]
    shared = {n: split_examples(rows[:n], SplitConfig()).test_is_validation for n in (2, 4, 10)}
    assert shared == {2: True, 4: True, 10: False}


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    for begins in (b"PAR1", b"label,text\n"):
        path = tmp_path / "big"
        with path.open("wb") as file:
            file.write(begins)
            file.truncate(500 * 10**6)  # no bytes on the disk
        with pytest.raises(DataError) as error:
            read_records(path, name="big", max_bytes=LIMIT)
        assert error.value.code == "data-too-large"


def packed(columns: dict[str, list[Any]]) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def test_parquet_is_read_with_its_lists_of_messages() -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    found = read(packed({"messages": [said, said[:1]]}))
    assert found.rows[0] == (said,)
    mapping = guess_mapping(found)
    assert mapping is not None
    examples = read_examples(found, mapping)
    assert [(e.prompt.instruction, e.answer) for e in examples.examples] == [("hi", "ho")]
    assert [(p.number, p.code) for p in examples.problems] == [(2, "no_answer")]
    table = read(packed({"label": [1, 0, None], "text": ["a", "b", "c"]}))
    mapping = guess_mapping(table)
    assert mapping is not None
    examples = read_examples(table, mapping)
    assert [(e.label, e.text) for e in examples.examples] == [("1", "a"), ("0", "b")]
    assert [p.number for p in examples.problems] == [3]


def test_parquet_that_is_cut_or_unpacks_to_too_much_is_refused() -> None:
    whole = packed({"label": ["a", "b"], "text": ["x", "y"]})
    assert code_of(whole[: len(whole) // 2]) == "data-not-table"
    bomb = packed({"label": ["a"] * 100, "text": [f"{i}{'so ' * 20_000}" for i in range(100)]})
    assert len(bomb) < LIMIT
    assert code_of(bomb) == "data-too-large"


def test_an_emoji_is_a_row_and_ten_rows_are_enough() -> None:
    rows = "".join("ab"[i % 2] + ",\U0001f600" + i * "\U0001f389" + "\n" for i in range(10))
    view = DataSets().view(DataSettings(data="typed", typed=f"label,text\n{rows}"))
    assert [len(part) for part in view.parts.items().values()] == [7, 1, 2]
    assert not view.examples.problems
    assert view.examples.examples[0].text == "\U0001f600"


def test_messages_and_preferences_in_both_forms() -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    table = read(json.dumps([{"messages": said}, {"messages": said[:1]}]))
    mapping = guess_mapping(table)
    assert mapping is not None
    found = read_examples(table, mapping)
    assert (found.examples[0].prompt.instruction, found.examples[0].answer) == ("hi", "ho")
    assert [(p.number, p.code) for p in found.problems] == [(2, "no_answer")]
    pair = {"prompt": said[:1], "chosen": [said[1]], "rejected": "no"}
    table = read(json.dumps([pair]))
    mapping = guess_mapping(table)
    assert mapping is not None
    assert mapping.kind == "preference"
    example = read_examples(table, mapping).examples[0]
    assert (example.prompt.instruction, example.answer, example.rejected) == ("hi", "ho", "no")


def test_labels_are_texts() -> None:
    table = read(
        '[{"label": 0, "text": "a"}, {"label": "0", "text": "b"}, {"label": 1.0, "text": "c"}]'
    )
    mapping = ColumnMapping(kind="classification", columns={"label": "label", "text": "text"})
    assert read_examples(table, mapping).labels == ("0", "1")


def test_draws_are_those_of_pandas() -> None:
    frame = pd.DataFrame({"n": range(41)})
    assert draw_order(41, 123) == frame.sample(frac=1, random_state=123)["n"].tolist()
    assert draw_order(41, 9, 7) == frame.sample(7, random_state=9)["n"].tolist()


def test_parts_have_the_numbers_of_the_course() -> None:
    rows = [Example(row=i, text=str(i), label="ab"[i % 2]) for i in range(1494)]
    parts = split_examples(rows, SplitConfig())
    assert [len(part) for part in parts.items().values()] == [1045, 149, 300]
    in_order = SplitConfig(training=0.85, validation=0.1, seed=None)
    parts = split_examples(rows[:1100], in_order)
    assert [len(part) for part in parts.items().values()] == [935, 110, 55]
    assert [e.row for e in parts.training] == list(range(935))


def test_duplicates_and_ten_rows() -> None:
    rows = [Example(row=i, text=f"t {i % 8}", label="ab"[i % 2]) for i in range(10)]
    parts = split_examples(rows, SplitConfig(seed=None))
    found = find_duplicates(parts)
    assert [(d.row, d.training_row, d.part) for d in found] == [(8, 0, "test"), (9, 1, "test")]
    with pytest.raises(DataError) as error:
        split_examples(rows[:1], SplitConfig())
    assert error.value.code == "data-too-few"


def test_counting_words_is_naive_bayes() -> None:
    texts = [("ham", "see you"), ("spam", "win win now"), ("ham", "you win")]
    counts = count_words(texts)
    # vocabulary: see you win now; ham has 4 words in 2 texts, spam 3 in 1
    assert counts.score("win", "spam") == pytest.approx(-1.0986123 + -0.8472979)
    assert counts.score("win", "ham") == pytest.approx(-0.4054651 + -1.3862944)
    assert counts.choose("win now") == "spam"
    pair = Example(row=1, answer="a b", rejected="b a")
    assert score_baseline("preference", [pair], [pair]) == 0.5


def test_typed_rows_go_there_and_back() -> None:
    data = DataSets()
    view = data.view(DataSettings(data="messages"))
    typed = type_out(view, most_rows=len(view.examples.examples))
    again = data.view(DataSettings(data="typed", typed=typed))
    assert [e.text for e in again.examples.examples] == [e.text for e in view.examples.examples]
    assert again.parts.test[0].label == view.parts.test[0].label
    assert count_classes(view.parts.test) == {"ham": 90, "spam": 90}


@pytest.mark.slow
def test_the_sms_file_is_read_whole_and_as_pandas_reads_it() -> None:
    import os

    folder = os.environ.get("GLASSBOX_DATA")
    if folder is None:
        pytest.skip("GLASSBOX_DATA names no folder with the real files")
    path = Path(folder) / "SMSSpamCollection.tsv"
    found = {}
    for quotes in ("auto", "csv"):
        table = read_records(path, name="sms", max_bytes=10**7, quotes=quotes)  # type: ignore[arg-type]
        mapping = guess_mapping(table)
        assert mapping is not None
        found[quotes] = read_examples(table, mapping).examples
    assert count_classes(found["auto"]) == {"ham": 4827, "spam": 747}
    assert count_classes(found["csv"]) == {"ham": 4825, "spam": 747}
    frame = pd.read_csv(path, sep="\t", header=None)
    assert [e.text for e in found["csv"]] == frame[1].tolist()
    from models.tokenizers.packed_gpt2 import load_packed_gpt2_tokenizer

    tokenizer = load_packed_gpt2_tokenizer()
    assert tokenizer is not None
    parts = split_examples(found["csv"], SplitConfig(balance=True))
    assert [len(part) for part in parts.items().values()] == [1045, 149, 300]
    assert max(len(tokenizer.encode(e.text)) for e in parts.training) == 120

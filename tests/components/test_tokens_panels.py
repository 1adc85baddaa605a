"""The panels of the Tokens tab, by their handlers: what they show against what they show it of."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
from tokenizers import Tokenizer as Library

from components.context import Settings
from components.shell import build_page
from components.tabs import tokens
from components.tabs.tokens.before import EXAMPLE_TEXTS, LEARNT_FROM, BeforeHandlers
from components.tabs.tokens.choice import ChoiceHandlers, list_choices, open_tokenizer
from components.tabs.tokens.compare import COLUMNS, CompareHandlers
from components.tabs.tokens.embedding_handlers import EXAMPLES as EMBEDDING_EXAMPLES
from components.tabs.tokens.embedding_handlers import EmbeddingHandlers
from components.tabs.tokens.extend import ExtendHandlers
from components.tabs.tokens.merges import MergeHandlers
from components.tabs.tokens.pieces import Handlers
from components.tabs.tokens.train_handlers import EXAMPLES, LOW, TrainHandlers
from components.tabs.tokens.windows import WindowHandlers
from explorer.embeddings import ToySetup
from explorer.errors import ConfigError, DataError, SourceError, TokenizerError
from explorer.runs import Runs
from explorer.tokenizer_lab.before_bpe import compare_round_trips
from explorer.tokenizer_lab.bpe_training import MAX_TEXT_BYTES, BpeSetup
from explorer.tokenizer_lab.window_view import WindowSetup
from explorer.training.plan import compute_plan
from explorer.training.run_texts import build_tokenizer
from explorer.training.setup import RunSetup
from models.tokenizers import train_bpe
from tests.components.tiny_chat import TinyStore, build_tiny_chat
from tests.models.hub_server import Repository, prepared_hub

ROOT = Path(__file__).parent.parent.parent
NOBODY = gr.Request()
WORDS = Path("assets/samples/village.txt").read_text(encoding="utf-8")[:3_000]


class Store(TinyStore):
    """The tiny model with a tokenizer of byte pairs that fits its 259 rows."""

    def __init__(self) -> None:
        super().__init__()
        special = ("<|end|>",)
        self.bpe = train_bpe(WORDS, vocab_size=259, special_tokens=special).to_tokenizer()
        self.usual = replace(build_tiny_chat(), tokenizer_or_error=self.bpe)

    def tokenizer(self, source, owner):
        return self.bpe


@pytest.fixture(scope="module")
def ctx(tmp_path_factory):
    runs = Runs(tmp_path_factory.mktemp("home"))
    _demo, context = build_page(Store(), Settings(), runs=runs, tabs=(tokens.TAB,))
    return context


def event(index):
    return gr.EventData(None, {"index": index})


def page(*more):
    """Model and owner of nobody in particular."""
    return (*more, None, None, NOBODY)


# ------------------------------------------------------------------------------------------ chips
def test_escapes_are_read_only_when_asked(ctx):
    on = Handlers(ctx)
    plain = on.text(r"a\nb", False, "text", *page(None))
    escaped = on.text(r"a\nb", False, "escapes", *page(None))
    assert "characters: 4" in plain[0]
    assert "characters: 3" in escaped[0]
    assert any(unit["t"] == "\n" for unit in escaped[1]["units"])


def test_composed_and_decomposed_accents_are_told_apart(ctx):
    on = Handlers(ctx)
    assert "not NFC" in on.text("cafe\u0301", False, "text", *page(None))[0]
    assert "not NFC" not in on.text("caf\u00e9", False, "text", *page(None))[0]
    assert "U+FFFD" in on.text("\ud800", False, "text", *page(None))[0]


def test_a_conversation_goes_through_the_template_of_the_model(ctx):
    on, typed = Handlers(ctx), "system: Be kind.\nuser: Hi\nthere <|end|>\nassistant: Yes"
    told = "<|user|>Be kind.<|user|>Hi\nthere <|end|><|model|>Yes<|model|>"
    counts, chips, *_, exports = on.text(typed, False, "chat", None, "thinker", None, NOBODY)
    marks = {
        "<|user|>": 1,
        "<|model|>": 2,
    }  # the template's marks are one token, a typed one is text
    expected = [
        token
        for piece in re.split(r"(<\|user\|>|<\|model\|>)", told)
        for token in ([marks[piece]] if piece in marks else [3 + byte for byte in piece.encode()])
    ]
    assert [i for unit in chips["units"] for i in unit["ids"]] == expected
    assert [unit["t"] for unit in chips["units"] if unit.get("special")] == [
        "<|user|>",
        "<|user|>",
        "<|model|>",
        "<|model|>",
    ]
    assert f"characters: {len(told)}" in counts
    assert "compute_chat_pieces(" in exports["python"]
    alone = on.text("Hi", False, "chat", None, "thinker", None, NOBODY)[1]["units"]
    assert "".join(unit["t"] for unit in alone) == "<|user|>Hi<|model|>"
    for text, model, code in (("", None, "text-empty"), ("Hi", "base", "chat-no-template")):
        with pytest.raises(TokenizerError) as caught:
            on.text(text, False, "chat", None, model, None, NOBODY)
        assert caught.value.code == code


# ---------------------------------------------------------------------------------------- compare
def test_compare_shows_what_each_tokenizer_gives(ctx):
    bpe, text = ctx.store.bpe, "Ada has a red ball."
    shown = CompareHandlers(ctx).show(text, ["model", "model"], *page())
    table, names, chips = shown[0], shown[1:5], shown[5:9]
    assert len(table["cols"]) == len(COLUMNS)
    assert [row[1] for row in table["cells"]] == [f"{len(bpe.encode(text)):,}"] * 2
    assert len(set(table["rows"])) == 2
    assert (names[2], chips[2]["units"]) == ("", [])
    ids = [i for unit in chips[0]["units"] for i in unit["ids"]]
    assert ids == bpe.encode(text)
    with pytest.raises(TokenizerError, match="choose 1 to 4"):
        CompareHandlers(ctx).show(text, [], *page())


# ----------------------------------------------------------------------------------------- merges
def test_merges_walk_to_the_tokens(ctx):
    on = MergeHandlers(ctx)
    shown = on.show("the ball", 1, *page(None))
    split, stepper, said, tree, steps = shown[:5]
    ids = ctx.store.bpe.encode(" ball")
    assert split["selected_row"] == 1
    assert " ".join(map(str, ids)) in said
    assert [tree["value"]["nodes"][i]["id"] for i in tree["value"]["tokens"]] == ids
    assert len(steps["cells"]) == stepper["count"] - 1
    back = on.step({"index": 0, "count": 9}, "the ball", 1, *page(None))
    assert back[1]["step"] == 0


# ------------------------------------------------------------------------------------------ train
def train(ctx, text, setup, source="own"):
    *_, last = TrainHandlers(ctx).train(source, text, None, None, NOBODY, setup)
    return last


def test_train_keep_and_use_for_a_run(ctx):
    on, setup = TrainHandlers(ctx), EXAMPLES[0].setup
    shown = train(ctx, LOW, setup)
    status, stepper, said, bars = shown[:4]
    assert "23 of 24" in status or "24 tokens" in status
    first_said, first = on.step({"index": 0, "count": stepper["count"]}, shown[-2], NOBODY)
    assert "e + s" in first_said
    assert [bar["value"] for bar in first["bars"][:2]] == [9, 9]
    said, download, one, _several = on.keep(shown[-2], "low words", None, NOBODY)
    assert "low words" in said
    source = one["value"]
    library = Library.from_file(download["value"])
    assert library.encode("lowest").ids == open_tokenizer(ctx, source, *page()).encode("lowest")
    assert (f"low words ({library.get_vocab_size():,})", source) in list_choices(ctx, None, NOBODY)
    run = RunSetup(tokenizer=source)
    assert compute_plan(run, ctx.runs.tokenizers).vocab_size == library.get_vocab_size()
    made = build_tokenizer(run, "low", ctx.runs.tokenizers)
    assert made.encode("lowest") == library.encode("lowest").ids


def test_training_texts_that_cannot_be_used(ctx, tmp_path):
    for text in ("", "   "):
        with pytest.raises(TokenizerError, match="empty or blank"):
            train(ctx, text, BpeSetup())
    assert "Stopped at" in train(ctx, "aaaa" * 50, BpeSetup())[0]
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"hello \xff world")
    with pytest.raises(DataError, match="byte 6 is 0xFF"):
        list(TrainHandlers(ctx).train("upload", "", str(bad), None, NOBODY, BpeSetup()))
    with bad.open("r+b") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    with pytest.raises(DataError, match="25"):
        list(TrainHandlers(ctx).train("upload", "", str(bad), None, NOBODY, BpeSetup()))
    with pytest.raises(ConfigError, match="no file was uploaded"):
        list(TrainHandlers(ctx).train("upload", "", None, None, NOBODY, BpeSetup()))
    with pytest.raises(TokenizerError, match="press Train"):
        TrainHandlers(ctx).keep("nothing", "", None, NOBODY)


# --------------------------------------------------------------------------------- other panels
def test_before_says_why_a_text_fails(ctx):
    shown = BeforeHandlers(ctx).show(LEARNT_FROM, EXAMPLE_TEXTS[1], NOBODY)
    titles, chips, (words, unknown, characters, raw) = shown[:4], shown[4:8], shown[8:12]
    assert "“blue”" in words
    assert "<|unk|>" in unknown
    assert "玛" in characters
    assert raw == "Comes back exactly."
    assert f"{len(EXAMPLE_TEXTS[1].encode())} tokens" in titles[3]
    assert [unit["ids"][0] for unit in chips[3]["units"]] == list(EXAMPLE_TEXTS[1].encode())
    for trip in compare_round_trips(LEARNT_FROM, EXAMPLE_TEXTS[1]):
        assert not re.match("[a-z]", BeforeHandlers(ctx)._say(trip, "zh-CN"))  # no English word


def test_extend_shows_ids_and_what_the_model_says(ctx):
    on = ExtendHandlers(ctx)
    said, _, chips, _, ids = on.show("<new>", "a <new> ball", *page(None))
    assert "<new> = 259" in said
    assert "259" in ids.split()
    assert any(unit["ids"] == [259] and unit["special"] for unit in chips["units"])
    grown, before, after = on.grow("<new>", "a <new> ball", "mean", *page())[:3]
    assert "259 → 260 rows" in grown
    assert sum(bar["value"] for bar in before["bars"]) < 1
    assert len(after["bars"]) == 8
    kept = on.keep("<new>", "", *page(None))
    assert "+ 1" in kept[0]


def test_windows_are_drawn_under_their_tokens(ctx):
    setup = WindowSetup(context=4, stride=2, batch_size=2)
    said, strip, batches = WindowHandlers(ctx).show(WORDS, *page(None), setup)[:3]
    n_tokens = len(ctx.store.bpe.encode(WORDS))
    assert f"{n_tokens:,} tokens" in said
    assert [row["start"] for row in strip["rows"][:4]] == [0, 2, 4, 6]
    assert [row["batch"] for row in strip["rows"][:4]] == [0, 0, 1, 1]
    ids = ctx.store.bpe.encode(WORDS)
    assert batches["cells"][1][1] == " ".join(map(str, ids[2:6]))
    assert batches["cells"][1][2] == " ".join(map(str, ids[3:7]))


def test_embeddings_are_those_of_the_model(ctx):
    on, chosen = EmbeddingHandlers(ctx), EMBEDDING_EXAMPLES[1]
    said, one_hot, matrix, product = on.lookup(chosen.ids, NOBODY, chosen.setup)
    assert product["cells"][0][0] == pytest.approx(0.6957, abs=5e-5)
    assert [row.index(1.0) for row in one_hot["cells"]] == [2, 3, 1]
    near = on.neighbours("#70", *page())[1]["bars"]
    weight = ctx.store.usual.model.embed.weight.numpy()
    unit = weight / np.linalg.norm(weight, axis=1, keepdims=True)
    assert near[0]["value"] == pytest.approx(np.sort(unit @ unit[70])[-2], abs=1e-5)
    assert on.pick({"bars": near}, "", event(0)) == f"#{near[0]['note']}"
    vectors = on.vectors("the ball", *page())[1]
    assert len(vectors["rows"]) == 3 * len(ctx.store.bpe.encode("the ball"))
    with pytest.raises(ConfigError, match="whole numbers"):
        on.lookup("1 x", NOBODY, ToySetup())


def test_an_uploaded_tokenizer_is_chosen(ctx, tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(ctx.store.bpe.to_json(), encoding="utf-8")
    one, _ = ChoiceHandlers(ctx).upload([str(file)], None, NOBODY)
    assert open_tokenizer(ctx, one["value"], *page()).encode("ball") == ctx.store.bpe.encode("ball")


def test_of_a_model_on_the_hub_the_tokenizer_alone_is_fetched(ctx, tmp_path, monkeypatch):
    files = {
        "tokenizer.json": ctx.store.bpe.to_json().encode(),
        "config.json": b'{"model_type": "of-no-family-here"}',
        "model.safetensors": bytes(20_000),
    }
    with prepared_hub(tmp_path, monkeypatch) as hub:
        hub.repositories["org/words"] = Repository(files)
        shown = Handlers(ctx).text("the ball", False, "text", *page("org/words"))
        assert [i for unit in shown[1]["units"] for i in unit["ids"]] == ctx.store.bpe.encode(
            "the ball"
        )
        assert "fetch_hub_tokenizer('org/words')" in shown[-1]["python"]
        assert hub.requests_with("safetensors") == hub.requests_with("/storage/") == []
        compared = CompareHandlers(ctx).show("the ball", ["org/words"], *page())
        assert compared[0]["rows"] == ["words"]
        with pytest.raises(SourceError, match="nobody"):
            open_tokenizer(ctx, "org/nobody", *page())


# --------------------------------------------------------------------------------------- snippets
def run_snippet(code, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_snippets_run_and_say_what_the_page_says(ctx, tmp_path):
    exports = [
        CompareHandlers(ctx).show("a b", ["gpt2", "cl100k_base"], *page())[-1],
        MergeHandlers(ctx).show("unfamiliarword", 0, *page("gpt2"))[-1],
        BeforeHandlers(ctx).show("the cat", "the hat", NOBODY)[-1],
        WindowHandlers(ctx).show(WORDS[:1_500], *page("gpt2"), WindowSetup())[-1],
        train(ctx, LOW, EXAMPLES[0].setup)[-3],
    ]
    printed = [run_snippet(export["python"], tmp_path) for export in exports]
    assert "vocab_size=50257" in printed[0]
    assert "(403, 69, 19968, 4775)" in printed[1]
    assert "words_unknown" in printed[2]
    assert "('e', 's') 9 es" in printed[4]
    assert Library.from_file(str(tmp_path / "tokenizer.json")).get_vocab_size() == 23

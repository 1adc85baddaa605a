"""The Tokens tab in Chromium: links, copies, right-to-left, playing, stopping, uploads, keeping."""

import base64
import contextlib
import json
import random
import re

import pytest
import sentencepiece
import tiktoken
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers

from components.tabs import pretrain, tokens
from explorer.errors import JobError
from models.tokenizers import load_tokenizer, train_bpe
from models.tokenizers.byte_table import byte_to_character
from tests.components.test_tokens_panels import WORDS
from tests.components.tokens_page import serve_tokens, tokens_pages
from tests.models.test_sentencepiece_tokenizer import train as train_sentencepiece
from tests.models.test_tokenizer_files import write_gguf

pytestmark = pytest.mark.slow
CHIPS = "#tokens-chips .chips > *"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with serve_tokens(home, tabs=(tokens.TAB, pretrain.TAB)) as (url, ctx):
        yield url, ctx
        for run in ctx.runs.list("local"):
            with contextlib.suppress(JobError):  # it has ended by itself
                ctx.runs.stop(run.id, "local")


@pytest.fixture
def open_panel(chromium, served):
    with tokens_pages(chromium, served[0]) as open_one:
        yield open_one


def type_text(page, text, n_tokens):
    """Type into the first panel, and wait for its answer."""
    page.locator("#tokens-text textarea").fill(text)
    page.wait_for_function(
        "n => document.querySelector('#tokens-counts').innerText.includes(`Tokens: ${n} `)",
        arg=f"{n_tokens:,}",
    )


def upload(page, button, *files):
    with page.expect_file_chooser() as chooser:
        page.locator(button).click()
    chooser.value.set_files([str(file) for file in files])


# ------------------------------------------------------------------------------------------ chips
def test_text_ids_and_bytes_point_at_each_other(open_panel, served):
    page = open_panel("chips")
    text = "玛 ok"
    ids = served[1].store.bpe.encode(text)
    type_text(page, text, len(ids))
    page.wait_for_function("n => document.querySelectorAll(n).length === 4", arg=CHIPS)
    lanes = [page.locator(f"#tokens-chips .lane-{name} .cell") for name in ("ids", "bytes")]
    for index in range(4):
        for place in (
            page.locator(CHIPS).locator(".chip").nth(index),
            *(x.nth(index) for x in lanes),
        ):
            page.mouse.move(0, 0)
            place.hover()
            page.wait_for_function(
                """i => ['.chips .chip', '.lane-ids .cell', '.lane-bytes .cell'].every(name =>
                   [...document.querySelectorAll('#tokens-chips ' + name)].every((one, k) =>
                     one.classList.contains('linked') === (k === i)))""",
                arg=index,
            )
    told = page.locator("#tokens-chips .readout").inner_text()
    assert str(ids[-1]) in told
    shown = "".join(lanes[1].all_inner_texts())
    assert bytes.fromhex(re.sub(r"[^0-9a-fA-F]", "", shown)) == text.encode()
    assert " ".join(lanes[0].all_inner_texts()).split() == [str(i) for i in ids]


@pytest.mark.parametrize("text", ["שלום עולם", "مرحبا بالعالم"])
def test_right_to_left_text_runs_from_the_right(open_panel, served, text):
    page = open_panel("chips")
    type_text(page, text, len(served[1].store.bpe.encode(text)))
    page.wait_for_function("() => document.querySelector('#tokens-chips .chips').dir === 'rtl'")
    lefts = left_edges(page)
    assert len(lefts) == len(text)
    assert lefts == sorted(lefts, reverse=True)
    page.locator("#tokens-chips .chip").first.focus()
    page.keyboard.press("ArrowLeft")  # the key goes where the eye goes
    assert page.evaluate("document.activeElement.index") == 1
    # in either line, numbers run to the right, and these letters to the left
    for mixed, way in ((f"{text[:4]} 123", "rtl"), (f"xyz {text[:4]}", "ltr")):
        type_text(page, mixed, len(served[1].store.bpe.encode(mixed)))
        page.wait_for_function(
            "way => document.querySelector('#tokens-chips .chips').dir === way", arg=way
        )
        lefts = left_edges(page)
        assert len(lefts) == len(mixed)
        runs = [lefts[:4], lefts[-3:]] if way == "rtl" else [lefts[-4:], lefts[:3]]
        assert runs == [sorted(runs[0], reverse=True), sorted(runs[1])]


def left_edges(page):
    page.wait_for_timeout(300)
    return page.locator("#tokens-chips .chip").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().left)"
    )


def test_ids_text_and_both_are_copied_whole(open_panel, served):
    page = open_panel("chips")
    long = "每个人 x\n" * 2_000
    for text in ('Hi\n\t<b>"玛"</b> 😶', long):
        ids = served[1].store.bpe.encode(text)
        type_text(page, text, len(ids))
        page.wait_for_timeout(300)
        copied = []
        for name in ("copy", "copy-text", "copy-json"):
            button = page.locator(f"#tokens-chips .{name}")
            button.click()
            page.wait_for_function(
                "name => document.querySelector(`#tokens-chips .${name}`).innerText === 'Copied'",
                arg=name,
            )
            copied.append(page.evaluate("navigator.clipboard.readText()"))
        assert json.loads(copied[0]) == ids
        assert copied[1] == text
        assert json.loads(copied[2]) == {"text": text, "ids": ids}


# ----------------------------------------------------------------------------------------- merges
def test_the_joins_play_pause_and_step_back(open_panel, served):
    bpe = train_bpe(WORDS, vocab_size=300).to_tokenizer()
    kept = served[1].runs.tokenizers.keep(bpe, "joins", "trained", "local")
    page = open_panel("merges", width=1280, more=f"&tokenizer={kept.source}")
    page.locator("#merges-text textarea").fill("the ball the ball")
    page.locator("#merges-word input").fill("1")
    said = "document.querySelector('#merges-said').innerText"
    page.wait_for_function(f"{said}.includes('Tokens:') && {said}.includes('b')")
    page.wait_for_function("document.querySelectorAll('#merges-split tbody tr').length === 4")
    n_joins = page.locator("#merges-steps tbody tr").count()
    assert n_joins >= 2
    boxes = "document.querySelectorAll('#merges-tree .node').length"
    all_boxes = page.evaluate(boxes)
    page.locator("#merges-stepper .back").click()
    page.wait_for_function(f"{said}.startsWith('After {n_joins - 1} of {n_joins} joins')")
    page.wait_for_function(f"{boxes} === {all_boxes - 1}")
    page.locator("#merges-stepper .next").click()
    page.wait_for_function(f"{said}.startsWith('Tokens:')")
    page.locator("#merges-stepper .speed").select_option("0.5")
    play = page.locator("#merges-stepper .play")
    play.click()  # at the end: from the beginning again
    page.wait_for_function(f"{said}.startsWith('After 1 of')")
    play.click()
    assert play.get_attribute("aria-label") == "Play"
    held = page.locator("#merges-stepper .place").inner_text()
    page.wait_for_timeout(2_000)  # longer than a step takes
    assert page.locator("#merges-stepper .place").inner_text() == held
    play.click()
    page.wait_for_function(f"{said}.startsWith('Tokens:')")
    page.wait_for_function("() => !document.querySelector('#merges-stepper .playing')")


# ------------------------------------------------------------------------------------------ train
def test_a_long_training_says_how_far_it_is_and_stops(open_panel, tmp_path):
    draw = random.Random(5)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ("".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(400_000))
    file = tmp_path / "long.txt"
    file.write_text(" ".join(words), encoding="utf-8")
    page = open_panel("train")
    page.wait_for_function("document.querySelector('#train-status').innerText.includes('joins on')")
    before = page.locator("#train-said").inner_text()
    upload(page, "#train-upload", file)
    page.wait_for_function("document.querySelector('#train-source input').value.includes('upload')")
    page.locator("#train-vocab_size input").fill("32000")
    page.locator("#train-begin").click()
    status = "document.querySelector('#train-status').innerText"
    page.wait_for_function(f"/Counting words: \\d+% of [\\d,]+ characters/.test({status})")
    page.locator("#train-stop").click()
    page.wait_for_function(f"{status}.startsWith('Stopped by you')")
    page.wait_for_selector("#train-stop", state="detached")
    assert page.locator("#train-said").inner_text() == before


def test_what_is_trained_here_trains_a_model_there(open_panel, served, tmp_path):
    page = open_panel("train", width=1280)
    page.locator("#train-examples button").nth(1).click()
    status = "document.querySelector('#train-status').innerText"
    page.wait_for_function(f"{status}.includes('512 tokens')")
    page.locator("#train-name input, #train-name textarea").fill("of the village")
    page.locator("#train-keep").click()
    page.wait_for_function("document.querySelector('#train-kept').innerText.includes('is kept')")
    assert "of the village (512)" in page.locator("#tokens-tokenizer input").input_value()
    page = open_panel("setup", tab="pretrain", width=1280)
    page.locator("#pretrain-tokenizer input").click()
    page.get_by_role("option", name="of the village (512)").click()
    for name, value in (("n_steps", "2"), ("context", "16"), ("batch_size", "2")):
        if not page.is_visible(f"#pretrain-{name} input"):
            page.click("#pretrain-more button")
        page.fill(f"#pretrain-{name} input", value)
        page.press(f"#pretrain-{name} input", "Tab")
    page.wait_for_timeout(1_000)
    page.click("#pretrain-begin")
    page.wait_for_selector("#pretrain-live [data-state=finished]")
    run = served[1].runs.list("local")[0]
    step = run.checkpoints[-1]
    [folder] = served[1].runs.root.glob(f"{run.id}/step-*{step}")
    text = WORDS[:300]
    kept = served[1].runs.tokenizers.list("local")[0]
    assert load_tokenizer(folder).encode(text) == served[1].runs.tokenizers.open(
        kept.source
    ).encode(text)


# ---------------------------------------------------------------------------------------- uploads
def write_ranks(path):
    """A rank file of the 256 bytes and a few joins; gives what tiktoken makes of it."""
    joined = [b" t", b"he", b" the", b"hello", b" hello", "玛丽".encode()]
    longer = [b"hel", b"lo", "玛".encode(), "玛".encode()[:2], "丽".encode(), "丽".encode()[:2]]
    tokens = [*(bytes([byte]) for byte in range(256)), *longer, *joined]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    lines = [f"{base64.b64encode(token).decode()} {rank}" for token, rank in ranks.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return ranks


def chosen_ids(page, text, n_tokens):
    type_text(page, text, n_tokens)
    page.wait_for_timeout(300)
    return [
        int(i)
        for i in " ".join(page.locator("#tokens-chips .lane-ids .cell").all_inner_texts()).split()
    ]


def gguf_reference():
    """The vocabulary of `write_gguf`, in the library."""
    merges = [("\u0120", "t"), ("h", "e"), ("\u0120t", "he"), ("1", "2"), ("12", "3")]
    listed = [*byte_to_character(), *("".join(pair) for pair in merges)]
    library = Library(models.BPE({token: i for i, token in enumerate(listed)}, merges))
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return library


def test_files_of_every_kind_are_opened_through_the_page(open_panel, tmp_path, monkeypatch):
    import tiktoken_ext.openai_public as published

    text = "the quick dog, hello hello 玛丽 3141"
    ranks = write_ranks(tmp_path / "o200k_base (1).tiktoken")
    monkeypatch.setattr(published, "load_tiktoken_bpe", lambda *_, **__: ranks)
    (tmp_path / "llama.model").write_bytes(train_sentencepiece())
    write_gguf(tmp_path / "tiny.gguf")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "llama.model"))
    expected = {
        "o200k_base (1).tiktoken": tiktoken.Encoding(**published.o200k_base()).encode(text),
        "llama.model": pieces.encode(text),
        "tiny.gguf": gguf_reference().encode(text).ids,
    }
    page = open_panel("chips", width=1280)
    # what is missing is said, and what to do
    page.locator("#tokens-tokenizer input").click()
    page.get_by_role("option", name="o200k_base (not on this machine)").click()
    page.get_by_text("o200k_base.tiktoken is not on this machine").wait_for()
    for name, ids in expected.items():
        upload(page, "#tokens-upload", tmp_path / name)
        page.wait_for_function(
            "name => document.querySelector('#tokens-tokenizer input').value.startsWith(name)",
            arg=name.partition(".")[0].removesuffix(" (1)"),
        )
        type_text(page, text, len(ids))
        page.wait_for_function(
            """ids => [...document.querySelectorAll('#tokens-chips .lane-ids .cell')]
                 .map(one => one.textContent).join(' ') === ids""",
            arg=" ".join(map(str, ids)),
        )
    (tmp_path / "mine.tiktoken").write_text((tmp_path / "o200k_base (1).tiktoken").read_text())
    upload(page, "#tokens-upload", tmp_path / "mine.tiktoken")
    page.get_by_text("its name must say which encoding it is").wait_for()


# ------------------------------------------------------------------------------------- embeddings
def test_names_on_the_map_do_not_cover_each_other_on_a_phone(open_panel):
    draw = random.Random(7)
    points = [(draw.gauss(0, 1), draw.gauss(0, 1), f"word {i} <b>") for i in range(40)]
    figure = {
        "data": [
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [x for x, _, _ in points],
                "y": [y for _, y, _ in points],
                "text": [name.replace("<", "&lt;").replace(">", "&gt;") for *_, name in points],
            }
        ],
        "layout": {"meta": {"places": True}, "showlegend": False, "uirevision": "keep"},
    }
    shown = {}
    for width in (390, 1280):
        page = open_panel("embeddings", width=width)
        page.wait_for_selector("#embed-map .frame")
        page.wait_for_timeout(1_000)
        page.evaluate(
            """figure => window.dispatchEvent(new CustomEvent('glassbox:draw',
               {detail: {target: 'embed-map', message: {figure}}}))""",
            figure,
        )
        page.wait_for_function(
            "document.querySelector('#embed-map').innerText.includes('word 0 <b>')"
        )
        page.wait_for_timeout(500)
        boxes = page.evaluate(
            """() => [...document.querySelectorAll('#embed-map .textpoint text')]
                 .filter(one => one.textContent).map(one => one.getBoundingClientRect().toJSON())"""
        )
        covered = [
            (i, j)
            for i, a in enumerate(boxes)
            for j, b in enumerate(boxes[:i])
            if min(a["right"], b["right"]) - max(a["left"], b["left"]) > 1
            and min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 3
        ]
        assert covered == []
        shown[width] = len(boxes)
        dots = page.locator("#embed-map .points path").count()
        assert dots == 40
    assert 8 < shown[390] < shown[1280]

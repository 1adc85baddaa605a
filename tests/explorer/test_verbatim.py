"""Copied spans against looking for every piece of the sample with `in`."""

import random

import pytest

import explorer.datasets.verbatim as verbatim_module
from explorer.datasets import VerbatimIndex, find_copied_spans
from explorer.errors import ConfigError, DataError


def find_copied_characters(sample, text, n):
    """Every character of the sample that belongs to n characters which the text has."""
    starts = [i for i in range(len(sample) - n + 1) if sample[i : i + n] in text]
    return {i + k for i in starts for k in range(n)}


def check(sample, text, n):
    spans = find_copied_spans(sample, VerbatimIndex(text, min_chars=n))
    covered = [i for span in spans for i in range(span.start, span.end)]
    assert covered == sorted(set(covered))
    assert set(covered) == find_copied_characters(sample, text, n)
    for span in spans:
        piece = sample[span.start : span.end]
        assert text[span.text_start : span.text_start + len(piece)] == piece
        assert span.line == len(text[: span.text_start].split("\n"))
        # it reaches as far as any copy that begins there or earlier
        start = min(span.start, span.end + 1 - n)
        if start >= 0 and span.end < len(sample):
            assert sample[start : span.end + 1] not in text
    return spans


def make_sample(chance, text, letters, n):
    parts = []
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(text))
        parts.append(text[start : start + chance.randint(1, 4 * n)])
        parts.append("".join(chance.choices(letters, k=chance.randint(0, 6))))
    return "".join(parts)


@pytest.mark.parametrize("n", [8, 9, 15])
def test_random_texts(n):
    for seed in range(25):
        chance = random.Random(seed)
        letters = chance.choice(["ab", "abcd\n", "你好abcdefgh \n", "aaaab"])
        text = "".join(chance.choices(letters, k=chance.randint(0, 600)))
        if text:
            check(make_sample(chance, text, letters, n), text, n)
    assert find_copied_spans("x" * 50, VerbatimIndex(text, min_chars=n)) == ()


def test_a_copy_of_the_verdict_is_found_with_its_line(data_folder):
    text = (data_folder / "the-verdict.txt").read_text(encoding="utf-8")
    sample = "I said: " + text[5000:5100] + " But then the blue whale sang. " + text[300:329]
    (span,) = check(sample, text, 30)  # the second copy has 29 characters
    assert span.start <= 8
    assert 108 <= span.end < 115
    assert span.text_start == 5000 - (8 - span.start)
    assert check(text[:2000], text, 30)[0].end == 2000


@pytest.mark.parametrize("n", [29, 30])
def test_the_shortest_copy_is_found_wherever_it_stands(n):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 200)))
    for offset in range(30):
        sample = "." + text[70 + offset : 70 + offset + n] + "."
        (span,) = find_copied_spans(sample, VerbatimIndex(text, min_chars=n))
        assert (span.start, span.end, span.text_start) == (1, n + 1, 70 + offset)
        shorter = "." + text[70 + offset : 70 + offset + n - 1] + "."
        assert find_copied_spans(shorter, VerbatimIndex(text, min_chars=n)) == ()


def test_copies_that_overlap_go_on_from_each_other():
    text = "0123456789abcdef\n----\n89abcdefghijklmn"
    spans = check("0123456789abcdefghijklmn", text, 10)
    assert [(s.start, s.end, s.text_start, s.line) for s in spans] == [
        (0, 16, 0, 1), (16, 24, 30, 3)]  # fmt: skip


def test_a_text_that_repeats_itself():
    text = "la " * 600
    (span,) = find_copied_spans("so: " + "la " * 100, VerbatimIndex(text))
    assert (span.start, span.end, span.text_start) == (3, 304, 2)


@pytest.mark.parametrize("sample", ["", "short"])
def test_short_samples_and_texts(sample):
    assert (
        find_copied_spans(sample, VerbatimIndex("some text that is long enough", min_chars=8)) == ()
    )
    assert find_copied_spans(sample, VerbatimIndex("", min_chars=8)) == ()


def test_equal_hashes_are_no_copies(monkeypatch):
    monkeypatch.setattr(verbatim_module, "_FACTOR", verbatim_module.np.uint64(1))  # sums only
    check("abcdefgh hgfedcba bcdefgha", "hgfedcba abcdefgh..............", 8)


def test_limits(monkeypatch):
    with pytest.raises(ConfigError, match="choose 8 or more"):
        VerbatimIndex("text", min_chars=7)
    monkeypatch.setattr(verbatim_module, "MAX_CHARACTERS", 10)
    with pytest.raises(DataError, match="give a part"):
        VerbatimIndex("01234567890")

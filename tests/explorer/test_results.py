"""Results are kept by id and go by bytes."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest

from explorer.errors import BudgetError
from explorer.results import ResultStore, count_bytes


@dataclass(frozen=True)
class Maps:
    weights: np.ndarray
    labels: tuple[str, ...]


def maps(n_numbers: int) -> Maps:
    return Maps(np.zeros(n_numbers, dtype=np.float32), ())


def test_bytes_of_nested_results():
    result = {"a": [Maps(np.zeros((3, 5), dtype=np.float32), ("to", "kens")), 7], "b": b"123"}
    assert count_bytes(result) == 3 * 5 * 4 + 6 + 8 + 3 + 2


def test_a_result_is_found_by_its_id_only():
    store = ResultStore()
    result = maps(7)
    result_id = store.put(result)
    assert store.get(result_id) is result
    assert store.get("another") is None
    assert store.get("") is None


def test_ids_do_not_repeat():
    store = ResultStore()
    ids = {store.put(maps(1)) for _ in range(100)}
    assert len(ids) == 100
    assert all(len(result_id) >= 22 for result_id in ids)


def test_the_least_recently_used_goes_first():
    store = ResultStore(budget_bytes=100)
    first, second = store.put(maps(10)), store.put(maps(10))  # 40 bytes each
    store.get(first)
    third = store.put(maps(10))
    assert store.get(second) is None
    assert store.get(first) is not None
    assert store.get(third) is not None
    assert store.used_bytes == 80


def test_one_large_result_pushes_out_several():
    store = ResultStore(budget_bytes=100)
    small = [store.put(maps(5)) for _ in range(5)]
    large = store.put(maps(20))
    assert [store.get(result_id) is None for result_id in small] == [True] * 4 + [False]
    assert store.get(large) is not None
    assert store.used_bytes == 100


def test_a_result_larger_than_the_budget_is_refused_and_nothing_is_lost():
    store = ResultStore(budget_bytes=100)
    kept = store.put(maps(5))
    with pytest.raises(BudgetError, match="shorter text"):
        store.put(maps(26))
    assert store.get(kept) is not None


def test_removing_frees_the_bytes():
    store = ResultStore(budget_bytes=100)
    result_id = store.put(maps(25))
    store.remove(result_id)
    store.remove(result_id)
    assert store.get(result_id) is None
    assert store.used_bytes == 0


def test_many_threads_keep_the_count_right():
    store = ResultStore(budget_bytes=400)

    def work() -> None:
        for _ in range(200):
            store.get(store.put(maps(10)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.used_bytes == 400

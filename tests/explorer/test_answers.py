"""Answers token by token: numbers of each, branches and what they reuse, scores that are none."""

import itertools
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from explorer.answer_memory import AnswerMemory
from explorer.conversation import (
    AnswerSettings,
    AnswerShare,
    AnswerStep,
    choose_alternative,
    encode_prompt,
    stream_answer,
)
from explorer.errors import ConfigError, WeightError
from explorer.slots import FairSlots
from tests.components.tiny_chat import build_tiny_chat

HI = [{"role": "user", "content": "hi"}]
HOT = AnswerSettings(temperature=1.3, top_k=20, top_p=0.8, max_new_tokens=12, seed=3)


@pytest.fixture(scope="module")
def chat():
    return build_tiny_chat()


def write(chat, settings=HOT, messages=HI, **how) -> AnswerStep:
    *_, last = stream_answer(chat, messages, settings, **how)
    return last


def test_each_token_tells_entropy_rank_and_what_the_filters_left(chat) -> None:
    answer = write(chat)
    ids = encode_prompt(chat, HI)
    for token in answer.tokens:
        logits = chat.model(torch.tensor([ids]))[0, -1].double()
        shares = logits.softmax(-1)
        assert token.entropy_nats == pytest.approx(-(shares * shares.log()).sum().item(), rel=1e-4)
        assert token.rank == 1 + int((logits > logits[token.id]).sum())
        assert token.alternative_ids == tuple(shares.topk(10).indices.tolist())
        hot = (logits / 1.3).sort(descending=True)
        twenty = hot.values[:20].softmax(-1)
        n_kept = int((twenty.cumsum(-1) < 0.8).sum()) + 1  # the one that reaches it stays
        after = hot.values[:n_kept].softmax(-1)[:10]
        assert token.n_kept == n_kept
        assert [share for _, share in token.kept] == pytest.approx(after.tolist(), rel=1e-4)
        ids.append(token.id)


def test_greedy_leaves_one_token(chat) -> None:
    token = write(chat, AnswerSettings(temperature=0.0, max_new_tokens=1)).tokens[0]
    assert (token.n_kept, token.kept) == (1, ((token.alternatives[0][0], 1.0),))


def test_a_branch_keeps_what_was_before_and_the_cache(chat) -> None:
    memory = AnswerMemory()
    share = AnswerShare(memory=memory, key="me")
    first = write(chat, share=share)
    assert first.n_reused == 0
    k = 5
    other = choose_alternative(first.tokens[k], 1)
    assert (other.rank, other.chosen) == (2, True)
    start = (*first.tokens[:k], other)
    branch = write(chat, share=share, start=start)
    assert branch.tokens[: k + 1] == start
    assert len(branch.tokens) == 12
    # read again: only the token that was chosen; the rest is in the cache
    assert branch.n_reused == len(encode_prompt(chat, HI)) + k
    fresh = write(chat, start=start)
    assert fresh.n_reused == 0
    assert [t.id for t in fresh.tokens] == [t.id for t in branch.tokens]
    assert fresh.text == branch.text
    for one, two in zip(fresh.tokens, branch.tokens, strict=True):
        assert one.probability == pytest.approx(two.probability, rel=1e-4)


def test_the_next_turn_reads_only_what_is_new(chat) -> None:
    share = AnswerShare(memory=AnswerMemory(), key="me")
    first = write(chat, share=share)
    longer = [*HI, {"role": "assistant", "content": first.text}, {"role": "user", "content": "so"}]
    second = write(chat, messages=longer, share=share)
    assert second.n_reused >= len(encode_prompt(chat, HI))
    assert [t.id for t in second.tokens] == [t.id for t in write(chat, messages=longer).tokens]


def test_memory_is_of_one_visitor_and_one_model_and_has_an_end(chat) -> None:
    memory = AnswerMemory()
    write(chat, share=AnswerShare(memory=memory, key="me"))
    assert write(chat, share=AnswerShare(memory=memory, key="you")).n_reused == 0
    other = build_tiny_chat()
    assert write(other, share=AnswerShare(memory=memory, key="me")).n_reused == 0
    one_bytes = memory.used_bytes // 2
    small = AnswerMemory(budget_bytes=one_bytes)
    for key in ("a", "b", "a"):
        assert write(chat, share=AnswerShare(memory=small, key=key)).n_reused == 0
        assert small.used_bytes <= one_bytes
    assert write(chat, share=AnswerShare(memory=small, key="a")).n_reused > 0


def test_an_alternative_that_is_not_there_is_refused(chat) -> None:
    token = write(chat).tokens[0]
    for wrong in (-1, 10):
        with pytest.raises(ConfigError, match="10"):
            choose_alternative(token, wrong)


def test_two_visitors_write_in_turn_and_neither_waits_for_more_than_three_tokens() -> None:
    """Passes of the second begin while the first writes; from then on they alternate."""
    chats, order, slots = (build_tiny_chat(), build_tiny_chat()), [], FairSlots()
    second_may_begin = threading.Event()

    def count(who: int) -> None:
        order.append(who)
        if len(order) == 5:
            second_may_begin.set()
            while slots.waiting == 0:  # the first waits here until the second stands in the queue
                time.sleep(0.001)

    for who, chat in enumerate(chats):
        chat.model.register_forward_hook(lambda *_, who=who: count(who))

    def run(who: int) -> AnswerStep:
        if who == 1:
            second_may_begin.wait(30)
        settings = AnswerSettings(max_new_tokens=40, seed=who)
        return write(chats[who], settings, share=AnswerShare(turn=slots.turn))

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(run, (0, 1)))
    assert [len(answer.tokens) for answer in answers] == [40, 40]
    both = order[5 : max(i for i, who in enumerate(order) if who == 0)]
    runs = [len(list(group)) for _, group in itertools.groupby(both)]
    assert set(both) == {0, 1}
    assert max(runs) <= 3


@pytest.mark.parametrize("score", [-math.inf, math.nan])
def test_scores_that_are_none_say_what_to_do(score: float) -> None:
    chat = build_tiny_chat()
    chat.model.register_forward_hook(lambda *call: torch.full_like(call[-1], score))
    for settings in (HOT, AnswerSettings(temperature=0.0)):
        with pytest.raises(WeightError, match="float32"):
            write(chat, settings)

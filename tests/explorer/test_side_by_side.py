"""Two models on one prompt: each as if it were alone, in turns."""

import pytest
import torch

from explorer.conversation import encode_prompt, stream_answer
from explorer.side_by_side import SideSettings, compute_side_summary, stream_in_turns
from tests.components.tiny_chat import build_tiny_chat

HI = [{"role": "user", "content": "hi"}]


@pytest.mark.slow
def test_each_answers_as_alone_and_neither_waits_for_the_other() -> None:
    chats, settings = (build_tiny_chat(), build_tiny_chat(chat=False)), SideSettings()
    order: list[int] = []
    for index, chat in enumerate(chats):
        chat.model.register_forward_hook(lambda *_, index=index: order.append(index))
    seen = list(stream_in_turns([stream_answer(c, HI, settings.for_answer) for c in chats]))
    answers = seen[-1]
    for chat, answer in zip(chats, answers, strict=True):
        *_, alone = stream_answer(chat, HI, settings.for_answer)
        assert [t.id for t in answer.tokens] == [t.id for t in alone.tokens]
        assert len(answer.tokens) == settings.max_new_tokens
    assert order[:120] == [0, 1] * 60


def test_an_answer_that_ends_early_lets_the_other_go_on() -> None:
    chat = build_tiny_chat()
    short, long = SideSettings(max_new_tokens=2).for_answer, SideSettings().for_answer
    *_, last = stream_in_turns([stream_answer(chat, HI, how) for how in (short, long)])
    assert [len(step.tokens) for step in last] == [2, 60]


def test_surprise_is_the_cross_entropy_of_torch() -> None:
    chat, settings = build_tiny_chat(), SideSettings(temperature=1.0, max_new_tokens=9)
    answers = []
    for seed in (1, 2):
        how = SideSettings(temperature=1.0, max_new_tokens=9, seed=seed).for_answer
        *_, last = stream_answer(chat, HI, how)
        answers.append(last)
    summary = compute_side_summary(answers)
    prompt = encode_prompt(chat, HI)
    for answer, surprise, perplexity in zip(
        answers, summary.surprise_nats, summary.perplexity, strict=True
    ):
        ids = torch.tensor([prompt + [token.id for token in answer.tokens]])
        logits = chat.model(ids)[0, len(prompt) - 1 : -1]
        loss = torch.nn.functional.cross_entropy(logits, ids[0, len(prompt) :])
        assert surprise == pytest.approx(loss.item(), rel=1e-4)
        assert perplexity == pytest.approx(loss.exp().item(), rel=1e-4)
    texts = [answer.text for answer in answers]
    n = summary.shared_characters
    assert texts[0][:n] == texts[1][:n]
    assert texts[0][: n + 1] != texts[1][: n + 1]
    assert settings.for_answer.top_p == 1.0

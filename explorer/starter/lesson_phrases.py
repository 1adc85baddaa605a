"""Templates of the lessons on fine-tuning: what is learned from, and what is kept apart.

Nothing of one part stands in the other: templates differ here, names and keywords by halves of the
word lists (see `lessons`). Slots are those of the world's own templates (see `phrasebook`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from explorer.starter.phrasebook import Ask


@dataclass(frozen=True, kw_only=True)
class LessonPhrases:
    """Templates of one language and one part.

    Attributes:
        messages: Frames of messages; `{1}` and `{2}` are two things on offer, or two animals seen.
        tasks: Sentences that say what to do with a text and a question.
        farewells: What a polite answer ends with, and a blunt one begins with.
        asked: How somebody asks.
        asks: Questions for each relation, with answers of the forms that are learned; none where
            the world's own questions are asked.
        told: For each of these relations, which of the world's ways to tell it is kept apart.
    """

    messages: tuple[str, ...]
    tasks: tuple[str, ...]
    farewells: tuple[str, ...]
    asked: tuple[str, ...]
    asks: Mapping[str, tuple[Ask, ...]] = field(default_factory=dict)
    told: Mapping[str, int] = field(default_factory=dict)


def lesson_phrases() -> Mapping[tuple[str, bool], LessonPhrases]:
    """(language, whether it is kept apart) -> templates."""
    return {**_english(), **_chinese()}


def _ask(kind: str, question: str, answer: str, value: str) -> Ask:
    return Ask(kind=kind, question=question, answer=answer, value=value)


def _english() -> Mapping[tuple[str, bool], LessonPhrases]:
    return {
        ("en", False): LessonPhrases(
            messages=(
                "{A}, come quickly! Here is {1}, and {2} too.",
                "Look, {A}, {1}! And over there is {2}.",
                "{A} looked around and found {1}. Then {A} saw {2}.",
                "Dear {A}, I have {1} for you, and also {2}.",
                "Do you want to see {1}, {A}? I have {2} as well.",
                "Good morning, {A}! Today there is {1} {p.in}.",
                "{A} and {B} talked about {1} and {2}.",
                "What is that? It is {1}, {A}! No, it is {2}.",
                "Everyone wanted to look at {1}. {A} wanted {2}.",
                "{1.A}! {2.A}! {A} was very happy {p.in}.",
            ),
            tasks=(
                "Read the text, then answer.",
                "Answer this about the text.",
                "Look at the text. What is the answer?",
                "Here is a text with a question. Answer it.",
            ),
            farewells=("Thank you, {B}!", "Goodbye, {B}!"),
            asked=(
                '"{question}" asked {B}.',
                "{B} came to me and asked: {question}",
                "{question} {B} wants to know.",
            ),
        ),
        ("en", True): LessonPhrases(
            messages=(
                "One day {A} got {1}. The next day it was {2}.",
                "I dreamed of {1}, said {A}. I dreamed of {2}, said {B}.",
                "{A} told me about {1} {p.in}. Now I want {2}.",
                "This is {1}. Do you like it, {A}, or is {2} better?",
                "Who has seen {1}? {A} asked about it, and about {2}.",
            ),
            tasks=(
                "Tell me what the text says.",
                "Please find the answer in these words.",
            ),
            farewells=("See you tomorrow, {B}!", "Come again, {B}!"),
            asked=(
                '{B} said: "{question}"',
                "One day {B} looked at me. {question}",
            ),
            asks={
                "lives": (
                    _ask("where", "In which place does {A} live?", "{A} lives {h.in}.", "h"),
                ),
                "is_at": (_ask("where", "Can you see where {A} is?", "{A} is {p.in}.", "p"),),
                "likes": (_ask("what", "Which food does {A} like?", "{A} likes {f}.", "f"),),
                "wears": (_ask("what", "Which clothes has {A} on?", "{A} is wearing {y.a}.", "y"),),
            },
            told={"lives": 1, "is_at": 0, "likes": 0, "wears": 0},
        ),
    }


def _chinese() -> Mapping[tuple[str, bool], LessonPhrases]:
    return {
        ("zh", False): LessonPhrases(
            messages=(
                "{A}，快来！这里有{1}，还有{2}。",
                "你看，{A}，{1}！那边还有{2}。",
                "{A}找到了{1}，又看到了{2}。",
                "{A}，我有{1}，也有{2}。",
                "你想看{1}吗，{A}？还有{2}。",
                "今天{p.in}有{1}，{A}很高兴。",
                "{A}和{B}说起了{1}和{2}。",
            ),
            tasks=("读一读，再回答。", "看看上面的话，说出答案。", "请回答下面的问题。"),
            farewells=("谢谢你，{B}！", "再见，{B}！"),
            asked=("“{question}”{B}问。", "{B}来问我：{question}", "{question}{B}想知道。"),
        ),
        ("zh", True): LessonPhrases(
            messages=(
                "有一天，{A}得到了{1}，第二天是{2}。",
                "{A}说：“我梦见了{1}。”{B}说：“我梦见了{2}。”",
                "{A}喜欢{1}，可是{B}更喜欢{2}。",
                "谁见过{1}？{A}还问了{2}。",
            ),
            tasks=("告诉我这里写了什么。", "从这些话里找一找。"),
            farewells=("明天见，{B}！", "下次再来吧，{B}！"),
            asked=("{B}说：“{question}”", "有一天，{B}看着我。{question}"),
            asks={
                "owns": (_ask("who", "有{x}的是谁？", "{A}有{x}。", "A"),),
                "lives": (_ask("where", "哪里是{A}住的地方？", "{A}住在{h.in}。", "h"),),
                "is_at": (_ask("where", "到哪里能找到{A}？", "{A}在{p.in}。", "p"),),
                "likes": (_ask("what", "{A}最爱吃的是什么？", "{A}喜欢吃{f}。", "f"),),
            },
            told={"owns": 1, "lives": 0, "is_at": 1, "likes": 1},
        ),
    }

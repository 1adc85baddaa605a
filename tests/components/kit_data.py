"""Hard data for the demo of the kit: text that has broken pages, weights, words."""

from typing import Any

import numpy as np

from components.text import CHINESE, ENGLISH

# Every one has broken some page: markup, templates, invisible and two-way text, cut characters.
HARD_TEXTS = [
    "When",
    " Mary",
    "\n",
    "\t",
    "${1+1}",
    "<b>x</b>",
    "{{y}}",
    "`",
    "\\n",
    "    ",
    "👨‍👩‍👧‍👦",
    "玛",
    "丽",
    "שלום",
    " עולם",
    "مرحبا",
    "e\u0301",
    "\u0301",
    "\x00",
    "\x1b",
    "\u200b",
    "\u202e",
    "\ue000",
    "\u00a0",
    " Mary",
    "supercalifragilisticexpialidocious" * 3,
    "",
]
PARTS = {"👨‍👩‍👧‍👦": 7, "玛": 3, "丽": 2, "e\u0301": 2}
DEMO_WORDS = {
    ENGLISH: {
        "demo.note": "The first column glows in many heads: a *sink*. See `attn.pattern`.",
        "demo.one": "Who got the drink?",
        "demo.two": "A repeated phrase",
        "demo.three": "Code",
        "demo.loss": "Loss of the run",
    },
    CHINESE: {
        "demo.note": "许多头的第一列很亮：*汇聚点*。见 `attn.pattern`。",
        "demo.one": "谁拿到了饮料？",
        "demo.two": "重复的短语",
        "demo.three": "代码",
        "demo.loss": "训练损失",
    },
}
SNIPPET = """from explorer.attention_patterns import compute_attention_patterns
from models import load_model

loaded = load_model("smollm2-135m-instruct")
print(compute_attention_patterns(loaded, "When Mary and John", layer=13).weights[4, 14])
"""


def cut_bytes(text: str, n_parts: int) -> list[str]:
    """Share the bytes of a text among tokens, as hexadecimal numbers."""
    pieces = np.array_split(np.frombuffer(text.encode(), dtype=np.uint8), n_parts)
    return [bytes(piece).hex(" ") for piece in pieces]


def make_unit(text: str, index: int, **more: Any) -> dict[str, Any]:
    """Make the unit of one text; equal texts get equal ids."""
    n_parts = PARTS.get(text, 1)
    first = sum(text.encode()) * 7 % 49000
    ids = [first + part for part in range(n_parts)]
    return {"t": text, "ids": ids, "hex": cut_bytes(text, n_parts), "special": False, **more}


def make_plain_units() -> list[dict[str, Any]]:
    """Make the hard units, a special token in front."""
    start = {"t": "<|im_start|>", "ids": [1], "hex": [], "special": True}
    return [start, *(make_unit(text, index) for index, text in enumerate(HARD_TEXTS))]


def make_answer_units() -> list[dict[str, Any]]:
    """Make units with probabilities and alternatives."""
    words = ["The", " capital", " of", " France", " is", " Paris", ",", " a", " city", "<b>.</b>"]
    chances = [0.93, 0.99, 0.999, 0.998, 0.97, 0.71, 0.12, 0.33, 0.05, 0.55]
    others = [[" Lyon", 0.051], ["\n", 0.02], ["<i>", 0.01]]
    units = []
    for index, (text, chance) in enumerate(zip(words, chances, strict=True)):
        shown = [[text, chance], *others]
        units.append(make_unit(text, index, p=chance, rank=1 + (chance < 0.2), alt=shown))
    return units


WEIGHTS = (0.2898, 0.0979, 0.0105, 0.0042, 0.4508, 0.0687, 0.0501, 0.01, 0.0, 0.018)


def make_weight_units() -> list[dict[str, Any]]:
    """Make the units that `WEIGHTS`, one attention row, belong to."""
    words = ["When", " Mary", " and", " John", " to", " drink", " gave", " a", ",", " the"]
    return [make_unit(text, index) for index, text in enumerate(words)]


def make_attention(n_tokens: int, n_heads: int, seed: int = 0) -> np.ndarray:
    """Make causal attention-like weights (heads, tokens, tokens), float32."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_heads, n_tokens, n_tokens)) * 1.4
    scores[:, :, 0] += 3.0
    scores[:, np.arange(n_tokens)[1:], np.arange(n_tokens)[:-1]] += 2.0
    scores[:, ~np.tril(np.ones((n_tokens, n_tokens), dtype=bool))] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)).astype("f4")


def make_many(n_units: int, more: int = 0) -> dict[str, Any]:
    """Make a long text of chips."""
    units = [make_unit(f" word{index % 97}", index) for index in range(n_units)]
    return {"units": units, "more": more, "total": n_units + more}

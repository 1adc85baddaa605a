"""The starter's model card: what it is, how it was made, what it can do; every number computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from explorer.starter.recipe import SEPARATOR
from explorer.starter.scoring import LANGUAGES, StarterScores

CURVE_ROWS = 12
HEAD = """\
---
license: apache-2.0
language: [en, zh]
pipeline_tag: text-generation
---

# Glassbox starter

A Llama of {n_parameters:,} parameters that knows one small world: children, animals, things,
colours, places, who owns what. It writes short stories of that world in English and in Chinese and
answers simple questions about the text before them. It is there to be looked into, trained on and
tuned, not to be asked about anything else.
"""
DATA = f"""
## Data

All text is written by `explorer/starter/documents.py` from a seed: each document draws a small
scene and tells, describes, lists or asks about it, without contradicting itself. A third of the
tokens is Chinese. `{SEPARATOR}` stands between documents. No document has the instruction forms
that fine-tuning teaches later.

A first run reads the world alone. A second one goes on from its weights with more of the world and,
among its documents, rows of random tokens that are repeated (`explorer/starter/rows.py`): there the
heads form that copy. `copying_` stands before what is said of it.

## Built with

```bash
python -m explorer.starter.build FOLDER
```

## Scores

*Validation* has the words and sentences of the training text in scenes of its own; *held out*
shares no name, keyword or sentence with it. Questions count as answered when the greedy answer is
right word for word.
"""


def write_card(
    facts: Mapping[str, Any],
    scores: StarterScores,
    curves: Mapping[str, Sequence[Sequence[float]]],
    stories: Sequence[str],
) -> str:
    """The model card, as Markdown.

    Args:
        facts: See `packing.collect_facts`.
        scores: Of the packed model.
        curves: Of both runs: step, training and validation loss.
        stories: What it writes.
    """
    lines = [HEAD.format(**facts), "| | |", "|---|---|"]
    lines += [f"| {key.replace('_', ' ')} | {value} |" for key, value in facts.items()]
    lines += [DATA, *_score_lines(scores)]
    lines += _curve_lines("Curve of the first run", curves["curve"])
    lines += _curve_lines("Curve of the second run", curves["copying_curve"])
    lines += ["", "## What it writes", ""]
    lines += [f"> {story}".replace("\n", "\n> ") + "\n" for story in stories]
    return "\n".join(lines)


def _score_lines(scores: StarterScores) -> Iterator[str]:
    yield "| | English | Chinese |"
    yield "|---|---|---|"
    for kind, table, form in (
        ("loss", scores.losses, "{:.3f}"),
        ("questions answered", scores.questions, "{:.1%}"),
    ):
        for split, values in table.items():
            cells = " | ".join(form.format(values[language]) for language in LANGUAGES)
            yield f"| {kind}, {split.replace('_', ' ')} | {cells} |"
    for name, place in (
        ("previous-token", scores.previous_token),
        ("induction", scores.induction),
    ):
        yield ""
        yield (
            f"Best {name} head: layer {place.layer}, head {place.head}, score {place.score:.2f} on "
            "random tokens, each row read twice (`explorer/head_scores.py`)."
        )


def _curve_lines(title: str, curve: Sequence[Sequence[float]]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield "| step | training loss | validation loss |"
    yield "|---|---|---|"
    every = max(1, len(curve) // CURVE_ROWS)
    for step, training_loss, validation_loss in [*curve[:-1:every], curve[-1]]:
        yield f"| {int(step)} | {training_loss:.3f} | {validation_loss:.3f} |"

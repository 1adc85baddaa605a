"""The trained starter as it ships: weights in 16 bits, tokenizer, scores, and a card that says all.

The card is written from the run and the scores; no number in it is typed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from explorer.starter.recipe import SEED, SEPARATOR, VOCAB_SIZE
from explorer.starter.scoring import StarterScores, score_starter
from explorer.training.event_log import read_events
from explorer.training.events import Evaluated, Event, Started, Step
from explorer.training.run_config import RunConfig
from models.counting import count_parameters
from models.loading import LoadedModel, load_model
from models.saving import save_model

if TYPE_CHECKING:
    from explorer.training.run_folder import RunFolder

STORED_AS = "bfloat16"
SCORES_FILE = "scores.json"
CARD_FILE = "README.md"
STORIES = ("Once upon a time", "One day, Mia", "小明有一只", "从前")
STORY_TOKENS = 90
CURVE_ROWS = 12


def pack_starter(run: RunFolder, target: Path) -> None:
    """Write the model, its scores and its card.

    Args:
        run: A finished run of the recipe.
        target: Where to; its files are replaced.

    Raises:
        ExplorerError: The last checkpoint cannot be opened.
    """
    config = run.read_config()
    trained = load_model(run.checkpoint(run.checkpoint_steps()[-1]))
    save_model(target, trained.model, tokenizer=trained.tokenizer, dtype=STORED_AS)
    packed = load_model(target)  # what is scored is what ships
    scores = score_starter(packed)
    events = read_events(run.events_file)
    facts = collect_facts(config, events)
    record = {**facts, "scores": scores.to_json(), "curve": _curve(events)}
    text = json.dumps(record, ensure_ascii=False, indent=1)
    (target / SCORES_FILE).write_text(text + "\n", encoding="utf-8")
    card = write_card(facts, scores, _curve(events), tell_stories(packed))
    (target / CARD_FILE).write_text(card, encoding="utf-8")


def collect_facts(config: RunConfig, events: Sequence[Event]) -> dict[str, Any]:
    """What was trained, on what, for how long.

    Args:
        config: Of the run.
        events: Of the run.
    """
    steps = [e for e in events if isinstance(e, Step)]
    started = next(e for e in events if isinstance(e, Started))
    return {
        "n_parameters": count_parameters(config.model).unique,
        "vocab_size": VOCAB_SIZE,
        "context": config.data.context,
        "n_layers": config.model.n_layers,
        "d_model": config.model.d_model,
        "seed": SEED,
        "n_steps": config.n_steps,
        "tokens_read": steps[-1].tokens,
        "tokens_of_text": started.n_training_tokens,
        "tokens_per_step": config.data.tokens_per_step,
        "optimiser": config.optimiser.kind,
        "learning_rate": config.optimiser.learning_rate,
        "schedule": config.schedule.kind,
        "precision": config.precision,
        "training_minutes": round(sum(e.duration_s for e in steps) / 60, 1),
        "device": started.device,
        "torch": torch.__version__,
        "stored_as": STORED_AS,
        "made_on": time.strftime("%Y-%m-%d", time.gmtime(steps[-1].at)),
    }


def tell_stories(loaded: LoadedModel) -> list[str]:
    """What it writes, greedily, from a few beginnings."""
    from explorer.training.evaluate import write_sample

    return [
        start
        + write_sample(
            loaded.model,
            loaded.tokenizer,
            start,
            n_tokens=STORY_TOKENS,
            temperature=0.0,
            seed=SEED,
        )
        for start in STORIES
    ]


def write_card(
    facts: dict[str, Any],
    scores: StarterScores,
    curve: Sequence[Sequence[float]],
    stories: Sequence[str],
) -> str:
    """The model card, as Markdown.

    Args:
        facts: See `collect_facts`.
        scores: Of the packed model.
        curve: Step, training and validation loss.
        stories: What it writes.
    """
    every = max(1, len(curve) // CURVE_ROWS)
    rows = [*curve[:-1:every], curve[-1]]
    lines = [
        "---",
        "license: apache-2.0",
        "language: [en, zh]",
        "pipeline_tag: text-generation",
        "---",
        "",
        "# Glassbox starter",
        "",
        f"A Llama of {facts['n_parameters']:,} parameters that knows one small world: children, "
        "animals, things, colours, places, who owns what. It writes short stories of that world in "
        "English and in Chinese and answers simple questions about the text before them. It is "
        "there to be looked into, trained on and tuned, not to be asked about anything else.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {key.replace('_', ' ')} | {value} |" for key, value in facts.items()),
        "",
        "## Data",
        "",
        "All text is written by `explorer/starter/documents.py` from a seed: each document draws a "
        "small scene and tells, describes, lists or asks about it, without contradicting itself. A "
        f"third of the tokens is Chinese. `{SEPARATOR}` stands between documents. No document has "
        "the instruction forms of the fine-tuning tab, which are kept to be taught later.",
        "",
        "## Built with",
        "",
        "```bash",
        "python -m explorer.starter.build FOLDER",
        "```",
        "",
        "## Scores",
        "",
        "*Validation* has the words and sentences of the training text in scenes of its own; *held "
        "out* shares no name, keyword or sentence with it. Questions count as answered when the "
        "greedy answer is right word for word.",
        "",
        "| | English | Chinese |",
        "|---|---|---|",
    ]
    for kind, table, form in (
        ("loss", scores.losses, "{:.3f}"),
        ("questions answered", scores.questions, "{:.1%}"),
    ):
        for split, values in table.items():
            cells = " | ".join(form.format(values[lang]) for lang in ("en", "zh"))
            lines.append(f"| {kind}, {split.replace('_', ' ')} | {cells} |")
    for name, place in (
        ("previous-token", scores.previous_token),
        ("induction", scores.induction),
    ):
        lines += [
            "",
            f"Best {name} head: layer {place.layer}, head {place.head}, score {place.score:.2f} on "
            "random tokens repeated once (`explorer/head_scores.py`).",
        ]
    lines += ["", "## Curve", "", "| step | training loss | validation loss |", "|---|---|---|"]
    lines += [f"| {int(s)} | {train:.3f} | {valid:.3f} |" for s, train, valid in rows]
    lines += ["", "## What it writes", ""]
    lines += [f"> {story}".replace("\n", "\n> ") + "\n" for story in stories]
    return "\n".join(lines)


def _curve(events: Sequence[Event]) -> list[list[float]]:
    return [
        [e.step, round(e.training_loss, 4), round(e.validation_loss, 4)]
        for e in events
        if isinstance(e, Evaluated)
    ]

"""The trained starter as it ships: weights in 16 bits, tokenizer, scores, and a card that says all.

The card (`card.py`) is written from the run and the scores; no number in it is typed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from explorer.starter.card import write_card
from explorer.starter.recipe import SEED
from explorer.starter.scoring import score_starter
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
# What the card says of the second run besides what both have in common.
COPYING_FACTS = ("context", "n_steps", "tokens_read", "tokens_per_step", "training_minutes")


def pack_starter(world: RunFolder, copying: RunFolder, target: Path, *, n_questions: int) -> None:
    """Write the model, its scores and its card.

    Args:
        world: The finished first run of the recipe.
        copying: The finished second one, whose weights are packed.
        target: Where to; its files are replaced.
        n_questions: Questions of each language and split to score it by.

    Raises:
        ExplorerError: The last checkpoint cannot be opened.
    """
    trained = load_model(copying.checkpoint(copying.checkpoint_steps()[-1]))
    save_model(target, trained.model, tokenizer=trained.tokenizer, dtype=STORED_AS)
    packed = load_model(target)  # what is scored is what ships
    scores = score_starter(packed, n_questions=n_questions)
    events, then = read_events(world.events_file), read_events(copying.events_file)
    second = collect_facts(copying.read_config(), then)
    facts = collect_facts(world.read_config(), events)
    facts |= {f"copying_{name}": second[name] for name in COPYING_FACTS}
    curves = {"curve": _curve(events), "copying_curve": _curve(then)}
    record = {**facts, "scores": scores.to_json(), **curves}
    text = json.dumps(record, ensure_ascii=False, indent=1)
    (target / SCORES_FILE).write_text(text + "\n", encoding="utf-8")
    card = write_card(facts, scores, curves, tell_stories(packed))
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
        "vocab_size": config.model.vocab_size,
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


def _curve(events: Sequence[Event]) -> list[list[float]]:
    return [
        [e.step, round(e.training_loss, 4), round(e.validation_loss, 4)]
        for e in events
        if isinstance(e, Evaluated)
    ]

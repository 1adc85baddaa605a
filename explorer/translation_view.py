"""A translation looked at: what each written piece reads of the source, greedy beside beam search.

    in front of it    ▷      four      hundred   seven
    chosen            four   hundred   seven     ■
    reads of 4 0 7    4      0, 7      7         all          a row of (L, H, T, S) each

Greedy writing takes the likeliest piece each time; the beam keeps several texts and compares whole
ones (Vaswani et al. 2017, arXiv 1706.03762, section 6.1: 4 beams, penalty 0.6). Row t of the
cross-attention is what the decoder read when it had t pieces and chose the next: computed over all
of the text at once it is the same as step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.beam_tree import BeamText, TreeNode, name_nodes
from explorer.datasets.translations import END_ID, START_ID
from explorer.errors import ConfigError, ContextError
from explorer.translation_runs import Translator

if TYPE_CHECKING:
    from models.beam import BeamResult

MOST_CANDIDATES = 6


@dataclass(frozen=True, kw_only=True)
class TranslateSettings:
    """What is translated, and how it is searched.

    Args:
        text: The source.
        n_beams: Texts kept at once; 1 is greedy.
        length_penalty: Finished texts are compared by sum / length ** this.
    """

    text: str = field(default="4072", metadata={"text": True})
    n_beams: int = field(default=4, metadata={"least": 1, "most": 8, "step": 1})
    length_penalty: float = field(default=0.6, metadata={"least": -2.0, "most": 3.0, "step": 0.1})


@dataclass(frozen=True)
class Candidate:
    """A piece that could come next.

    Args:
        label: Its text.
        probability: Of it, given source and what is written.
    """

    label: str
    probability: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Translation:
    """One source, translated.

    Args:
        step: Optimiser steps of the translator.
        source_labels: Pieces of the source, S.
        written: What was in front of the decoder, T: the start, then the pieces so far.
        chosen: The piece that it took in each place, T, the end included.
        patterns: (L, H, T, S) cross-attention of each block and head; rows sum to 1.
        candidates: For each place the likeliest pieces.
        greedy: The text that always taking the likeliest writes.
        greedy_total: Sum of its log-probabilities, in nats.
        wanted: The right translation; None where the rule is not for this source.
        nodes: Candidates of the beam search, parents before children.
        texts: Its finished texts, best first.
    """

    step: int
    source_labels: tuple[str, ...]
    written: tuple[str, ...]
    chosen: tuple[str, ...]
    patterns: NDArray[np.float32]
    candidates: tuple[tuple[Candidate, ...], ...]
    greedy: str
    greedy_total: float
    wanted: str | None
    nodes: tuple[TreeNode, ...]
    texts: tuple[BeamText, ...]


def compute_translation(
    translator: Translator,
    settings: TranslateSettings | None = None,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Translation:
    """Translate a text greedily and with beams, and look at what is read on the way.

    Args:
        translator: A checkpoint.
        settings: The text, and how it is searched.
        turn: Entered for the work on the device; where several share it, it makes them wait.

    Raises:
        DataError: The text has something that is no piece of the task.
        ContextError: It is longer than what the model was trained for.
        ConfigError: Impossible settings.
    """
    from explorer.training.translator import translate_greedily

    settings = settings or TranslateSettings()
    task, model = translator.task, translator.model
    source = task.cut(settings.text)
    _check_length(source, task.longest[0])
    with turn():
        greedy = translate_greedily(model, source)
        patterns, log_probabilities = _read(translator, source, greedy)
        found = _search(translator, source, settings)
    ended = [*greedy, END_ID][: len(log_probabilities)]
    steps = zip(log_probabilities, ended, strict=True)
    return Translation(
        step=translator.step,
        source_labels=tuple(map(task.label, source)),
        written=tuple(map(task.label, [START_ID, *greedy]))[: len(ended)],
        chosen=tuple(map(task.label, ended)),
        patterns=patterns,
        candidates=tuple(_candidates(translator, row) for row in log_probabilities),
        greedy=task.join(greedy),
        greedy_total=float(sum(row[id_] for row, id_ in steps)),
        wanted=task.find_target(settings.text),
        nodes=name_nodes(found, task.label),
        texts=tuple(
            BeamText(task.join(beam.ids), len(beam.ids), beam.log_probability, beam.score)
            for beam in found.beams
        ),
    )


def pattern_of(found: Translation, layer: int, head: int) -> NDArray[np.float32]:
    """Cross-attention of one head, (T, S).

    Args:
        found: A translation.
        layer: Block of the decoder, from 0.
        head: From 0; -1 is the mean of all heads of the layer.

    Raises:
        ConfigError: There is no such layer or head.
    """
    n_layers, n_heads = found.patterns.shape[:2]
    if not 0 <= layer < n_layers or not -1 <= head < n_heads:
        raise ConfigError(
            f"layer={layer}, head={head} is not there; choose a layer from 0 to {n_layers - 1} and "
            f"a head from 0 to {n_heads - 1}, or -1 for the mean of all",
            code="run-setting",
            problem=f"layer={layer}, head={head} is not there",
        )
    patterns = found.patterns[layer]
    chosen: NDArray[np.float32] = patterns.mean(axis=0) if head < 0 else patterns[head]
    return chosen


def _check_length(source: list[int], most: int) -> None:
    if len(source) > most:
        raise ContextError(
            f"the text has {len(source)} pieces, the model was trained for at most {most}; shorten "
            "it",
            code="translation-long",
            asked=len(source),
            limit=most,
        )


def _read(
    translator: Translator, source: list[int], greedy: list[int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cross-attention (L, H, T, S), and log-probabilities (T, V) of the piece after each."""
    import torch

    from models.trace import Trace

    model = translator.model
    room = model.config.decoder.context_length
    target = [START_ID, *greedy][:room]
    trace = Trace(record=("decoder.blocks.*.cross_attn.pattern",))
    with torch.inference_mode():
        logits = model(torch.tensor([source]), torch.tensor([target]), trace=trace)[0]
    names = [f"decoder.blocks.{i}.cross_attn.pattern" for i in range(model.config.decoder.n_layers)]
    patterns = np.stack([trace[name][0].float().numpy() for name in names])
    return patterns, np.array(logits.float().log_softmax(dim=-1).numpy())


def _search(translator: Translator, source: list[int], settings: TranslateSettings) -> BeamResult:
    from models.beam import BeamConfig
    from models.encoder_decoder import search_target

    config = BeamConfig(
        n_beams=settings.n_beams,
        max_new_tokens=translator.model.config.decoder.context_length,
        length_penalty=settings.length_penalty,
    )
    return search_target(translator.model, source, config, start_id=START_ID, stop_ids={END_ID})


def _candidates(translator: Translator, row: NDArray[np.float32]) -> tuple[Candidate, ...]:
    best = np.argsort(-row)[:MOST_CANDIDATES]
    return tuple(Candidate(translator.task.label(int(i)), float(np.exp(row[i]))) for i in best)

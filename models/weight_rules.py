"""Checkpoint names and layouts to ours, by a table of rules.

A family lists rows such as

    WeightRule("model.layers.{i}.self_attn.q_proj.weight", "blocks.{i}.attn.q_proj.weight")
    WeightRule("h.{i}.attn.c_attn.weight", QKV_WEIGHTS, (TRANSPOSE, SPLIT_QKV))
    WeightRule("h.{i}.attn.bias", ())                         # known, and dropped

and this one engine applies them, forwards to load and backwards to save. It holds every checkpoint
to the same standard: each parameter of ours is filled exactly once, each tensor of theirs is used
or dropped by a row, and every shape fits. Anything else is an error that lists both sides; a model
with a forgotten tensor would answer, only wrongly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from models.config import ModelConfig
from models.errors import WeightError

if TYPE_CHECKING:
    from torch import Tensor

MOST_NAMES_SHOWN = 6
# Number of the block, number of the expert, and whatever follows (of parts that are dropped whole).
PLACES = {"i": r"\d+", "e": r"\d+", "rest": ".+"}


@dataclass(frozen=True)
class Layout:
    """A change of layout and its inverse, on a list of tensors."""

    name: str
    load: Callable[[list[Tensor], ModelConfig], list[Tensor]]
    save: Callable[[list[Tensor], ModelConfig], list[Tensor]]


def _transpose(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    return [t.T for t in tensors]


def _split_qkv(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    heads = config.attention
    q_width, kv_width = heads.n_heads * heads.d_head, heads.n_kv_heads * heads.d_head
    return list(tensors[0].split([q_width, kv_width, kv_width]))


def _join_qkv(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    import torch  # late: tables are read to list families, without loading torch

    return [torch.cat(tensors)]


def _neighbours_to_halves(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Rows of each head from (x0 y0 x1 y1 ...) to (x0 x1 ... y0 y1 ...); see models/rope.py."""
    half = config.attention.d_head // 2
    return [t.unflatten(0, (-1, half, 2)).transpose(1, 2).flatten(0, 2) for t in tensors]


def _halves_to_neighbours(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    half = config.attention.d_head // 2
    return [t.unflatten(0, (-1, 2, half)).transpose(1, 2).flatten(0, 2) for t in tensors]


def _split_experts(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    return list(tensors[0].unbind())


def _stack_experts(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    import torch

    return [torch.stack(tensors)]


def _split_gate_up(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    """(E, 2 F, D) to gate and up of each expert in turn."""
    return [half for expert in tensors[0].unbind() for half in expert.chunk(2)]


def _stack_gate_up(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    import torch

    pairs = zip(tensors[::2], tensors[1::2], strict=True)
    return [torch.stack([torch.cat(pair) for pair in pairs])]


TRANSPOSE = Layout("transpose", _transpose, _transpose)
SPLIT_QKV = Layout("split q, k, v", _split_qkv, _join_qkv)
SPLIT_EXPERTS = Layout("split experts", _split_experts, _stack_experts)
SPLIT_GATE_UP = Layout("split experts, gate and up", _split_gate_up, _stack_gate_up)
PAIRS_TO_HALVES = Layout("rope pairs to halves", _neighbours_to_halves, _halves_to_neighbours)


@dataclass(frozen=True)
class WeightRule:
    """One row: whose tensor becomes which of our parameters.

    Args:
        theirs: Name in the checkpoint; `{i}` stands for the number of the block, `{e}` for that of
            an expert.
        ours: Our name, several when a fused tensor is split, or () for "known and dropped".
        layouts: Changes of layout, applied from left to right on loading.
    """

    theirs: str
    ours: str | tuple[str, ...]
    layouts: tuple[Layout, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """Our names as a tuple."""
        return (self.ours,) if isinstance(self.ours, str) else self.ours


@dataclass(frozen=True)
class RuleTable:
    """All rows of a checkpoint format.

    Args:
        rules: The rows.
        optional_prefix: Left off by some files ("transformer." in GPT-2's own).
    """

    rules: tuple[WeightRule, ...]
    optional_prefix: str = ""


class Checkpoint(Protocol):
    """Named tensors on disk, read one at a time."""

    def names(self) -> Sequence[str]:
        """Names of all tensors."""

    def tensor(self, name: str) -> Tensor:
        """Read one tensor."""


class Shaped(Protocol):
    """A tensor, or what stands for one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, columns, ..."""


Converted = TypeVar("Converted", bound=Shaped)


@dataclass(frozen=True)
class Assignment:
    """One checkpoint tensor and the parameters that it fills."""

    theirs: str
    ours: tuple[str, ...]
    layouts: tuple[Layout, ...]

    def convert(self, source: Tensor, config: ModelConfig) -> list[Tensor]:
        """The tensor in our layouts, one for each of `ours`; none where it does not come out even.

        Whatever is kept for each number of a weight (a running mean of its gradient) lies as the
        weight does, so that this holds for it, too.
        """
        tensors = [source]
        try:
            for layout in self.layouts:
                tensors = layout.load(tensors, config)
        except RuntimeError:  # a split or reshape of a tensor of another size
            return []
        return tensors


def _pattern(template: str) -> re.Pattern[str]:
    escaped = re.escape(template)
    for place, kind in PLACES.items():
        escaped = escaped.replace(rf"\{{{place}\}}", f"(?P<{place}>{kind})")
    return re.compile(escaped)


def _fill_places(template: str, numbers: Mapping[str, object]) -> str:
    for place, number in numbers.items():
        template = template.replace(f"{{{place}}}", str(number))
    return template


def plan_assignments(
    table: RuleTable, their_names: Iterable[str], our_names: Iterable[str]
) -> list[Assignment]:
    """Match every name before anything is read.

    Raises:
        WeightError: Tensors that no rule knows, or parameters that nothing or two things fill.
    """
    their_names, wanted = sorted(their_names), set(our_names)
    bare = not any(name.startswith(table.optional_prefix) for name in their_names)
    prefix = table.optional_prefix if bare else ""
    patterns = [(_pattern(rule.theirs.removeprefix(prefix)), rule) for rule in table.rules]
    plan: list[Assignment] = []
    unknown: list[str] = []
    for name in their_names:
        found = [(m, rule) for pattern, rule in patterns if (m := pattern.fullmatch(name))]
        if not found:
            unknown.append(name)
            continue
        match, rule = found[0]
        targets = tuple(_fill_places(target, match.groupdict()) for target in rule.targets)
        plan.append(Assignment(name, targets, rule.layouts))
    _check_plan(plan, unknown, wanted)
    return [step for step in plan if step.ours]


def _check_plan(plan: list[Assignment], unknown: list[str], wanted: set[str]) -> None:
    filled = [name for step in plan for name in step.ours]
    extra = unknown + [s.theirs for s in plan if any(name not in wanted for name in s.ours)]
    missing = sorted(wanted - set(filled))
    if missing or extra:
        raise WeightError(
            f"the checkpoint does not fit its configuration. "
            f"Parameters that nothing fills: {_listing(missing)}. "
            f"Tensors that have no place: {_listing(extra)}. "
            "Check that config.json and the weights belong together and the download is complete",
            code="weights-do-not-fit",
            missing=_listing(missing),
            extra=_listing(extra),
        )
    twice = sorted(name for name, times in Counter(filled).items() if times > 1)
    if twice:
        raise WeightError(f"filled more than once: {_listing(twice)}; the file holds copies")


def _listing(names: Sequence[str]) -> str:
    if not names:
        return "none"
    shown = ", ".join(names[:MOST_NAMES_SHOWN])
    return (
        shown
        if len(names) <= MOST_NAMES_SHOWN
        else f"{shown} and {len(names) - MOST_NAMES_SHOWN} more"
    )


def load_weights(
    table: RuleTable,
    checkpoint: Checkpoint,
    expected_shapes: Mapping[str, tuple[int, ...]],
    config: ModelConfig,
    convert: Callable[[str, Tensor], Converted],
) -> dict[str, Converted]:
    """Read a checkpoint into our names and layouts.

    Args:
        table: The family's rules for this format.
        checkpoint: What to read.
        expected_shapes: Name and shape of each of our parameters.
        config: Head counts and widths, for the layouts.
        convert: Applied to each tensor as it is read, with our name of it (type, device, 8 bits),
            so that never more than one is held in both forms.

    Raises:
        WeightError: Names or shapes do not fit; lists them.
    """
    filled: dict[str, Converted] = {}
    wrong: list[str] = []
    for step in plan_assignments(table, checkpoint.names(), expected_shapes):
        source = checkpoint.tensor(step.theirs)
        for name, tensor in zip(step.ours, step.convert(source, config), strict=False):
            filled[name] = convert(name, tensor)
        bad = [n for n in step.ours if n not in filled or filled[n].shape != expected_shapes[n]]
        wrong += [f"{step.theirs} {tuple(source.shape)} for {n} {expected_shapes[n]}" for n in bad]
    if wrong:
        raise WeightError(
            f"shapes differ from what the configuration asks for: {_listing(wrong)}; "
            "check that config.json and the weights belong together",
            code="weights-wrong-shape",
            found=_listing(wrong),
        )
    return filled


def save_weights(
    table: RuleTable, parameters: Mapping[str, Tensor], config: ModelConfig
) -> dict[str, Tensor]:
    """The inverse of `load_weights`: our parameters in a checkpoint's names and layouts."""
    saved: dict[str, Tensor] = {}
    done: set[str] = set()  # where a table knows two forms, the first is written
    for rule in table.rules:
        first = _pattern(rule.targets[0]) if rule.targets else None
        for place in [
            m.groupdict() for name in parameters if first and (m := first.fullmatch(name))
        ]:
            names = [_fill_places(target, place) for target in rule.targets]
            if any(name not in parameters or name in done for name in names):
                continue
            tensors = [parameters[name] for name in names]
            for layout in reversed(rule.layouts):
                tensors = layout.save(tensors, config)
            saved[_fill_places(rule.theirs, place)] = tensors[0].contiguous()
            done.update(names)
    return saved

"""One text on its way through a model: every step with its tensor, its formula and its line.

The tensors are those that the pass of the model shows to a `Trace`; what lies between two taps
(norms, probabilities) is computed by its own modules. The lines of PyTorch are a program: run one
after the other, as "Copy as Python" does, they compute the same tensors again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from explorer.attention_maps import check_index
from explorer.errors import ConfigError
from explorer.one_pass_lines import StepLine, list_steps
from explorer.tokens import label_of_bytes, units_of

if TYPE_CHECKING:
    from torch import Tensor

    from models.loading import LoadedModel
    from models.trace import Trace

MOST_TOKENS = 64  # a picture of more rows says nothing more
MOST_COLUMNS = 96  # of a picture; wider tensors are shown by their first numbers
N_NUMBERS = 4
N_TOP = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class PassStep:
    """One step.

    Args:
        line: What it is, its formula and its line of PyTorch.
        shape: Of the whole tensor, batch included.
        mean: Of all its finite numbers.
        size: Root mean square of them.
        first: The first numbers of the last token.
        picture: (rows, columns): the last token's row of each head, or the text's tokens by the
            first numbers.
    """

    line: StepLine
    shape: tuple[int, ...]
    mean: float
    size: float
    first: tuple[float, ...]
    picture: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class OnePass:
    """A pass.

    Args:
        model_name: Which model.
        labels: Of the tokens.
        ids: The tokens.
        steps: In their order.
        answers: The likeliest next tokens, with their probabilities.
        n_left_out: Tokens of the text that were not read.
    """

    model_name: str
    labels: tuple[str, ...]
    ids: tuple[int, ...]
    steps: tuple[PassStep, ...]
    answers: tuple[tuple[str, float], ...]
    n_left_out: int


def compute_one_pass(
    loaded: LoadedModel,
    text: str,
    layer: int,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> OnePass:
    """Read a text and keep what each step of one block makes of it.

    Args:
        loaded: Any decoder.
        text: What is read.
        layer: The block that is looked into; the others are one step each way.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: No such layer, or no text.
    """
    import torch

    from models.trace import Trace

    check_index("layer", layer, loaded.config.n_layers)
    tokenizer = loaded.tokenizer
    ids = tokenizer.encode(text)
    if not ids:
        raise ConfigError("there is no text; type some", code="text-empty")
    if tokenizer.adds_bos and tokenizer.bos_id is not None:
        ids = [tokenizer.bos_id, *ids]
    read = ids[:MOST_TOKENS]
    steps = list_steps(loaded.config, layer)
    trace = Trace(record=tuple(step.tap for step in steps if step.tap))
    row = torch.tensor([read], device=loaded.model.device)
    with turn(), torch.inference_mode():
        loaded.model(row, trace=trace)
        tensors = _tensors(loaded, steps, trace, layer)
    return OnePass(
        model_name=loaded.info.name,
        labels=tuple(
            label_of_bytes(b"".join(unit.token_bytes)) for unit in units_of(tokenizer, read)
        ),
        ids=tuple(read),
        steps=tuple(_look(*pair) for pair in zip(steps, tensors, strict=True)),
        answers=_answers(loaded, tensors[-1]),
        n_left_out=len(ids) - len(read),
    )


def _tensors(
    loaded: LoadedModel, steps: Sequence[StepLine], trace: Trace, layer: int
) -> list[Tensor]:
    """The tensor of each step; those without a tap follow from the one that they name."""
    model = loaded.model
    block: Any = model.blocks[layer]
    found: dict[str, Tensor] = {}
    derive: dict[str, Callable[[Tensor], Tensor]] = {
        "attn_norm": lambda x: block.attn_norm(x),
        "ffn_norm": lambda x: block.ffn_norm(x),
        "final_norm": lambda x: model.final_norm(x),
        "probabilities": lambda x: x.float().softmax(dim=-1),
    }
    tensors = []
    for step in steps:
        tensor = trace[step.tap] if step.tap else derive[step.key](found[step.after])
        found[step.key] = tensor
        tensors.append(tensor)
    return tensors


def _look(line: StepLine, tensor: Tensor) -> PassStep:
    values = tensor.detach().float()
    finite = values[values.isfinite()].double()
    last = values[0, :, -1] if values.ndim == 4 else values[0]
    return PassStep(
        line=line,
        shape=tuple(tensor.shape),
        mean=float(finite.mean()),
        size=float(finite.square().mean().sqrt()),
        first=tuple(float(number) for number in _last_row(values)[:N_NUMBERS]),
        picture=np.array(last[:, :MOST_COLUMNS].cpu().numpy(), dtype=np.float32),
    )


def _last_row(values: Tensor) -> Tensor:
    return values.reshape(-1, values.shape[-1])[-1]


def _answers(loaded: LoadedModel, probabilities: Tensor) -> tuple[tuple[str, float], ...]:
    best = probabilities[0, -1].topk(min(N_TOP, probabilities.shape[-1]))
    return tuple(
        (loaded.tokenizer.decode([token]), float(probability))
        for token, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )

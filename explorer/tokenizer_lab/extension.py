"""More tokens for a vocabulary, more rows for a model, and what the model then says.

    tokenizer   V tokens        ->  V + n            ids of all old tokens stay
    embedding   (V, D)          ->  (V + n, D)       old rows stay, bit for bit
    head        (V, D) or tied  ->  the same way     so old logits stay, and n more are there

The probabilities of old tokens shrink a little all the same: the softmax divides by more terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from explorer.errors import TokenizerError
from explorer.tokens import TokenUnit, label_of, units_of

if TYPE_CHECKING:
    import torch

    from models.decoder import Decoder
    from models.loading import LoadedModel
    from models.tokenizers.tokenizer import Tokenizer

NEW_ROWS = ("mean", "normal", "zero")  # of models/growing.py, which needs torch
MOST_NEW_TOKENS = 64
MOST_PROMPT_TOKENS = 1_024


@dataclass(frozen=True, kw_only=True)
class ExtendedIds:
    """A text before and after new tokens.

    Args:
        new_ids: Text -> id of the new tokens.
        before: Ids of the text with the old vocabulary.
        after: With the new one.
        before_units: Its tokens, as they are drawn.
        after_units: The same.
    """

    new_ids: dict[str, int]
    before: tuple[int, ...]
    after: tuple[int, ...]
    before_units: tuple[TokenUnit, ...]
    after_units: tuple[TokenUnit, ...]


@dataclass(frozen=True, kw_only=True)
class NextToken:
    """One token that may come next.

    Args:
        id: Its id.
        label: Readable.
        probability: From 0 to 1.
        is_new: Whether it was added.
    """

    id: int
    label: str
    probability: float
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class GrownModel:
    """A model before and after it got more rows.

    Args:
        rows_before: Rows of the embedding.
        rows_after: The same with the new ones.
        parameters_before: Numbers in its weights; tied weights count once.
        parameters_after: The same.
        width: Numbers of a row.
        is_tied: Whether the head is the embedding, before and after.
        old_rows_equal: Whether the old rows of embedding and head are the same numbers.
        largest_logit_change: Of the old tokens after the old ids of the text.
        before: Likeliest next tokens of the old model after the old ids.
        after: Of the grown model after the new ids.
        new_probability: What all new tokens together get.
    """

    rows_before: int
    rows_after: int
    parameters_before: int
    parameters_after: int
    width: int
    is_tied: bool
    old_rows_equal: bool
    largest_logit_change: float
    before: tuple[NextToken, ...]
    after: tuple[NextToken, ...]
    new_probability: float


def read_new_tokens(typed: str) -> tuple[str, ...]:
    """Read new tokens, one a line.

    Raises:
        TokenizerError: More than are taken at once.
    """
    found = tuple(line.strip() for line in typed.splitlines() if line.strip())
    if len(found) > MOST_NEW_TOKENS:
        raise TokenizerError(
            f"{len(found)} new tokens were given; add at most {MOST_NEW_TOKENS} at once",
            code="extend-many",
            found=len(found),
            most=MOST_NEW_TOKENS,
        )
    return found


@lru_cache(maxsize=4)  # a large vocabulary takes seconds, and every letter typed asks again
def extend(tokenizer: Tokenizer, new_tokens: tuple[str, ...]) -> Tokenizer:
    """Make a tokenizer with more special tokens; see `models.tokenizers.extending`.

    Raises:
        TokenizerError: A token cannot be added, or the tokenizer is of another kind.
    """
    from models.tokenizers.extending import extend_tokenizer

    return extend_tokenizer(tokenizer, new_tokens)


def compare_extended(tokenizer: Tokenizer, new_tokens: Sequence[str], text: str) -> ExtendedIds:
    """Encode a text before and after tokens are added; special tokens are parsed.

    Args:
        tokenizer: Before.
        new_tokens: Texts of the new tokens.
        text: Any string.

    Raises:
        TokenizerError: As for `extend`.
    """
    extended = extend(tokenizer, tuple(new_tokens))
    before, after = tokenizer.encode(text, special=True), extended.encode(text, special=True)
    return ExtendedIds(
        new_ids={token: extended.special_tokens[token] for token in new_tokens},
        before=tuple(before),
        after=tuple(after),
        before_units=units_of(tokenizer, before),
        after_units=units_of(extended, after),
    )


def grow_and_predict(
    loaded: LoadedModel,
    new_tokens: Sequence[str],
    text: str,
    *,
    rows: str = "mean",
    seed: int = 123,
    n_top: int = 8,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> GrownModel:
    """Give a model rows for new tokens, and compare what it says.

    Args:
        loaded: A model with its tokenizer; it stays as it is.
        new_tokens: Their texts.
        text: What is to be continued.
        rows: What new rows start from: mean, normal or zero.
        seed: Of the draws for them.
        n_top: Likeliest tokens to give.
        turn: Entered for the forward passes.

    Raises:
        TokenizerError: A token cannot be added, or the text is empty or too long.
        ConfigError: The model's weights are in 8 bits, or `rows` is unknown.
    """
    import torch

    from models.growing import grow_vocabulary

    old, new = loaded.tokenizer, extend(loaded.tokenizer, tuple(new_tokens))
    old_ids, new_ids = _prompt(old, text), _prompt(new, text)
    n_rows = max(loaded.config.vocab_size, new.vocab_size)
    generator = torch.Generator().manual_seed(seed)
    grown = grow_vocabulary(loaded.model, n_rows, rows=rows, generator=generator)  # type: ignore[arg-type]
    with turn(), torch.inference_mode():
        first = _last_logits(loaded.model, old_ids)
        again = _last_logits(grown, old_ids)[: len(first)]
        after = _last_logits(grown, new_ids)
    added = {new.special_tokens[token] for token in new_tokens}
    chances = torch.softmax(after, dim=-1)
    return GrownModel(
        rows_before=loaded.config.vocab_size,
        rows_after=n_rows,
        parameters_before=_count(loaded.model),
        parameters_after=_count(grown),
        width=loaded.config.d_model,
        is_tied=grown.config.tied_head,
        old_rows_equal=_old_rows_equal(loaded.model, grown),
        largest_logit_change=float((first - again).abs().max()),
        before=_top(torch.softmax(first, dim=-1), old, n_top, frozenset()),
        after=_top(chances, new, n_top, frozenset(added)),
        new_probability=float(chances[sorted(added)].sum()),
    )


def _prompt(tokenizer: Tokenizer, text: str) -> list[int]:
    ids = tokenizer.encode(text, special=True)
    if tokenizer.adds_bos and tokenizer.bos_id is not None:
        ids = [tokenizer.bos_id, *ids]
    if not 0 < len(ids) <= MOST_PROMPT_TOKENS:
        raise TokenizerError(
            f"the text has {len(ids)} tokens; give 1 to {MOST_PROMPT_TOKENS}",
            code="extend-text",
            found=len(ids),
            most=MOST_PROMPT_TOKENS,
        )
    return ids


def _last_logits(model: Decoder, ids: Sequence[int]) -> torch.Tensor:
    import torch

    given = torch.tensor([list(ids)], device=model.device)
    return model(given, last_only=True)[0, -1].float().cpu()


def _count(model: Decoder) -> int:
    from models.lora import count_lora

    return count_lora(model).n_base


def _old_rows_equal(before: Decoder, after: Decoder) -> bool:
    import torch

    from models.lora import MergedWeights

    grown, named = MergedWeights(after), MergedWeights(before)
    rows = ("embed.weight", "head.weight")
    return all(torch.equal(named[n], grown[n][: len(named[n])]) for n in rows if n in named)


def _top(
    chances: torch.Tensor, tokenizer: Tokenizer, n_top: int, added: frozenset[int]
) -> tuple[NextToken, ...]:
    best = chances.topk(min(n_top, len(chances)))
    return tuple(
        NextToken(id=i, label=label_of(tokenizer, i), probability=p, is_new=i in added)
        for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )

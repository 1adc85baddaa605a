"""What a run comes to, from its form alone and at once: parameters by part, tokens, operations.

    tokens       steps x accumulation x batch x context
    operations   about 6 for each parameter and token (Kaplan et al. 2020, arXiv 2001.08361,
                 section 2.1): 2 in the forward pass, 4 in the backward pass

What it takes in minutes and memory depends on the machine: `estimate.py` takes a step to find out.
The size of a vocabulary that is made of the text is looked up in a sample text, and of an upload
not known before it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.home import find_home_folder
from explorer.tokenizer_lab.kept import KEPT_PREFIX, KeptTokenizers
from explorer.training.sample_texts import SAMPLE_TEXTS
from explorer.training.setup import RunSetup, check_tokenizer, model_of
from models.counting import count_parameters
from models.errors import ConfigError
from models.tokenizers.characters import SPECIAL_TOKENS

GPT2_VOCABULARY = 50_257
# Of a text that is not read yet: letters, digits and signs of a language with an alphabet.
USUAL_CHARACTERS = 100
OPERATIONS_PER_PARAMETER = 6
# Hoffmann et al. 2022 (arXiv 2203.15556): about so many tokens a parameter are the best use of
# compute.
BEST_TOKENS_PER_PARAMETER = 20


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a form comes to.

    Args:
        n_parameters: Numbers that are trained; a tied head counts once.
        parts: Part of the model -> its parameters.
        vocab_size: Tokens of the vocabulary.
        is_guess: Whether the vocabulary is a guess, as the text is not read yet.
        tokens_per_step: Tokens that one optimiser step reads.
        tokens: Tokens of all steps; None where the steps are counted in epochs.
        operations: Floating-point operations of all steps, or None.
    """

    n_parameters: int
    parts: Mapping[str, int]
    vocab_size: int
    is_guess: bool
    tokens_per_step: int
    tokens: int | None
    operations: float | None


def compute_plan(setup: RunSetup, kept: KeptTokenizers | None = None) -> Plan:
    """Count what the form asks for.

    Args:
        setup: What the form says.
        kept: Where a tokenizer that was made before is found; None is the usual place.

    Raises:
        ConfigError: Values that cannot be used.
    """
    check_tokenizer(setup)
    vocab_size, is_guess = _vocabulary(setup, kept)
    counted = count_parameters(model_of(setup, vocab_size))
    per_step = setup.context * setup.batch_size * setup.accumulate
    _require_whole(setup, per_step)
    tokens = None if setup.epochs > 0 else setup.n_steps * per_step
    operations = (
        None if tokens is None else float(OPERATIONS_PER_PARAMETER) * counted.unique * tokens
    )
    return Plan(
        n_parameters=counted.unique,
        parts={name: count for name, count in counted.parts.items() if count},
        vocab_size=vocab_size,
        is_guess=is_guess,
        tokens_per_step=per_step,
        tokens=tokens,
        operations=operations,
    )


def _require_whole(setup: RunSetup, per_step: float) -> None:
    for name in ("batch_size", "accumulate", "n_steps"):
        value = getattr(setup, name)
        if not isinstance(value, int) or value < (0 if name == "n_steps" else 1):
            problem = f"{name}={value!r} must be a whole number of at least 1"
            raise ConfigError(problem, code="run-setting", problem=problem)
    assert isinstance(per_step, int)


def _vocabulary(setup: RunSetup, kept: KeptTokenizers | None) -> tuple[int, bool]:
    if setup.tokenizer.startswith(KEPT_PREFIX):
        found = (kept or KeptTokenizers(find_home_folder())).find(setup.tokenizer)
        return found.vocab_size, False
    if setup.tokenizer == "gpt2":
        return GPT2_VOCABULARY, False
    if setup.tokenizer == "bpe":
        return setup.vocab_size, False
    sample = SAMPLE_TEXTS.get(setup.text)
    if sample is None:
        return USUAL_CHARACTERS, True
    return len(set(sample.read())) + len(SPECIAL_TOKENS), False

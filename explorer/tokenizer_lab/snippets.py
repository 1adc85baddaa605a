"""Python that gives the same numbers as the panels of the Tokens tab.

A test runs each of them in a fresh process.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorer.snippets import make_snippet, say_load, say_text
from explorer.tokenizer_lab.bpe_training import BpeSetup, train_recorded
from explorer.tokenizer_lab.hub_tokenizers import fetch_hub_tokenizer, find_hub_id
from explorer.tokenizer_lab.kept import KEPT_PREFIX
from explorer.tokenizer_lab.named import NAMED, load_named

_SAMPLES = "explorer.training.sample_texts"


def say_open(source: str) -> tuple[tuple[str, ...], str]:
    """How a tokenizer is opened.

    Args:
        source: Name of an encoding, `kept:...`, or a source of a model.

    Returns:
        The lines to import, and the expression.
    """
    if source in NAMED:
        return (f"from {load_named.__module__} import {load_named.__name__}",), (
            f"{load_named.__name__}({source!r})"
        )
    if source.startswith(KEPT_PREFIX):
        lines = (
            "from explorer.home import find_home_folder",
            "from explorer.tokenizer_lab.kept import KeptTokenizers",
        )
        return lines, f"KeptTokenizers(find_home_folder()).open({source!r})"
    hub_id = find_hub_id(source)
    if hub_id is not None:
        return (f"from {fetch_hub_tokenizer.__module__} import {fetch_hub_tokenizer.__name__}",), (
            f"{fetch_hub_tokenizer.__name__}({hub_id!r})"
        )
    return ("from models import load_model",), f"{say_load(source)}.tokenizer"


def make_tokenizer_snippet(
    source: str,
    function: Callable[..., Any],
    text: str,
    show: Sequence[str],
    more: str = "",
    *,
    uses: tuple[Callable[..., Any], ...] = (),
) -> str:
    """Python that opens a tokenizer, calls a function with it and a text, and prints.

    Args:
        source: As for `say_open`.
        function: Takes a tokenizer and a text.
        text: The text.
        show: What to print of `found`, the result.
        more: Further arguments, as written.
        uses: What they are made of.
    """
    imports, opened = say_open(source)
    return _join(
        imports,
        (function, *uses),
        f"tokenizer = {opened}",
        f"found = {function.__name__}(tokenizer, {say_text(text)}{more})",
        *(f"print({one})" for one in show),
    )


def make_compare_snippet(sources: Mapping[str, str], text: str, context: int | None) -> str:
    """Python that counts a text with several tokenizers.

    Args:
        sources: Name -> source, as for `say_open`.
        text: The text.
        context: Context length, or None.
    """
    from explorer.tokenizer_lab.comparison import compare_tokenizers

    opened = {name: say_open(source) for name, source in sources.items()}
    imports = tuple(dict.fromkeys(line for lines, _ in opened.values() for line in lines))
    pairs = ", ".join(f"{name!r}: {expression}" for name, (_, expression) in opened.items())
    return _join(
        imports,
        (compare_tokenizers,),
        f"tokenizers = {{{pairs}}}",
        f"for counts in compare_tokenizers(tokenizers, {say_text(text)}, "
        f"context_length={context}):",
        "    print(counts)",
    )


def make_model_snippet(
    source: str, function: Callable[..., Any], arguments: str, show: Sequence[str]
) -> str:
    """Python that loads a model, calls a function with it, and prints.

    Args:
        source: Of the model.
        function: Takes a model first.
        arguments: Those after it, as written.
        show: What to print of `found`, the result.
    """
    return make_snippet(
        (function,),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"found = {function.__name__}(loaded, {arguments})",
        *(f"print({one})" for one in show),
    )


def _join(imports: Sequence[str], functions: tuple[Callable[..., Any], ...], *lines: str) -> str:
    return make_snippet(functions, *imports, "", *lines)


def make_round_trip_snippet(learnt_from: str, text: str) -> str:
    """Python that sends a text through the older tokenizers and back.

    Args:
        learnt_from: What the vocabularies are made of.
        text: The text.
    """
    from explorer.tokenizer_lab.before_bpe import compare_round_trips

    return make_snippet(
        (compare_round_trips,),
        "",
        f"for trip in {compare_round_trips.__name__}({say_text(learnt_from)}, {say_text(text)}):",
        "    print(trip.kind, trip.ids, repr(trip.decoded), trip.is_exact)",
    )


def make_training_snippet(text: str, setup: BpeSetup, *, sample: str | None) -> str:
    """Python that trains the same vocabulary and writes its tokenizer.json.

    Args:
        text: What was learnt from.
        setup: The form.
        sample: Name of the sample text, where it was one.
    """
    given = say_text(text) if sample is None else f"SAMPLE_TEXTS[{sample!r}].read()"
    imports = [] if sample is None else [f"from {_SAMPLES} import SAMPLE_TEXTS"]
    return make_snippet(
        (train_recorded, BpeSetup),
        *imports,
        "",
        f"found = {train_recorded.__name__}({given}, {setup!r})",
        "for step in found.steps:",
        "    print(step.step, step.pair, step.count, step.new_token)",
        'open("tokenizer.json", "w", encoding="utf-8").write(found.vocabulary.to_tokenizer()'
        ".to_json())",
    )

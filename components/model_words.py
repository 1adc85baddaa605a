"""How the model bar words what the store reports."""

from collections.abc import Sequence
from typing import Any

from components.quantities import short_bytes, short_count, short_dtype, short_duration
from components.text import Words
from explorer.fitting import FitEstimate
from explorer.number_formats import DEFAULT_DTYPE, split_dtype
from explorer.store_records import CatalogueEntry, LoadStep, ModelSummary

# What the header draws: state (empty, loading or ready), name, detail, fraction (0 to 1 or None).
PillView = dict[str, Any]


def make_empty_view(words: Words, locale: str) -> PillView:
    """Describe that no model is open."""
    return {
        "state": "empty",
        "name": words.say(locale, "shell.pill_empty"),
        "detail": words.say(locale, "shell.pill_empty_detail"),
        "fraction": None,
    }


def make_ready_view(words: Words, locale: str, summary: ModelSummary) -> PillView:
    """Describe the open model: name, family, parameters, number format and bytes, origin.

    Of an adapter the bytes are its own, then those that it shares with its base.
    """
    origin = words.say(locale, f"shell.origin_{summary.origin.replace(' ', '_')}")
    memory = f"{short_dtype(summary.dtype)} {short_bytes(summary.n_bytes)}"
    if summary.base_name:
        base = {"base": summary.base_name, "bytes": short_bytes(summary.n_base_bytes)}
        memory += " " + words.say(locale, "shell.pill_on_base", **base)
    detail = (summary.family, short_count(summary.n_parameters), memory, origin)
    return {
        "state": "ready",
        "name": summary.name,
        "detail": " · ".join(detail),
        "fraction": None,
    }


def make_step_view(words: Words, locale: str, name: str, step: LoadStep) -> PillView:
    """Describe a model that is being opened.

    Args:
        words: The sentences of the page.
        locale: The reader's language.
        name: What is being opened.
        step: The store's latest report.

    Returns:
        The phase, with bytes, speed and time left as far as they are known.
    """
    parts = [words.say(locale, f"shell.phase_{step.phase}")]
    fraction = None
    if step.total_bytes and not step.done_bytes:
        # Nothing done yet, or nobody counts: the page shows that it is busy, not an empty bar.
        parts.append(short_bytes(step.total_bytes))
    elif step.total_bytes:
        fraction = min(step.done_bytes / step.total_bytes, 1.0)
        parts.append(f"{short_bytes(step.done_bytes)} / {short_bytes(step.total_bytes)}")
    if step.bytes_per_s:
        parts.append(f"{short_bytes(step.bytes_per_s)}/s")
    if step.seconds_left is not None:
        left = short_duration(step.seconds_left)
        parts.append(words.say(locale, "shell.time_left", duration=left))
    return {"state": "loading", "name": name, "detail": " · ".join(parts), "fraction": fraction}


def make_catalogue_view(
    words: Words,
    locale: str,
    entries: Sequence[CatalogueEntry],
    chosen: str | None,
    dtype: str = DEFAULT_DTYPE,
) -> dict[str, Any]:
    """Describe the models to choose from.

    Args:
        words: The sentences of the page.
        locale: The reader's language.
        entries: The store's catalogue.
        chosen: Source of the model that is open.
        dtype: Number format in which one would be opened.

    Returns:
        One row an entry, for assets/catalogue.js.
    """
    rows = [
        {
            "id": entry.id,
            "name": entry.name,
            "detail": f"{entry.family} · {_say_size(entry)} · {entry.licence}",
            "presence": entry.presence,
            "presence_text": words.say(locale, f"shell.presence_{entry.presence}"),
            "fits": entry.fits[dtype].verdict if dtype in entry.fits else None,
            "fits_text": _say_fit(words, locale, entry.fits.get(dtype)),
            "gate_text": _say_gate(words, locale, entry),
        }
        for entry in entries
    ]
    bare = None if chosen is None else split_dtype(chosen)[0]
    return {"rows": rows, "chosen": bare, "label": words.say(locale, "shell.catalogue_label")}


def _say_size(entry: CatalogueEntry) -> str:
    return ("≈ " if entry.size_is_counted else "") + short_bytes(entry.size_bytes)


def _say_gate(words: Words, locale: str, entry: CatalogueEntry) -> str:
    if entry.gate_page is None:
        return ""
    return words.say(locale, "shell.gated", page=entry.gate_page)


def _say_fit(words: Words, locale: str, fit: FitEstimate | None) -> str:
    if fit is None:
        return ""
    return words.say(
        locale,
        f"shell.fits_{fit.verdict.replace(' ', '_')}",
        needs=short_bytes(fit.needs_bytes),
        available=short_bytes(fit.available_bytes),
    )

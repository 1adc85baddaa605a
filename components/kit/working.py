"""The "Show the working" drawer: formula, where the numbers come from, the numbers, export."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.kit.number_matrix import build_number_matrix
from components.kit.views import build_view
from components.text import Words

_FACTS = '<p class="facts" hidden></p>'
_EXPORTS = """
<div class="row"><a class="button csv" hidden></a><a class="button page" hidden></a>
<button class="button png" type="button" hidden></button><a class="button file" hidden></a>
<button class="button copy" type="button" hidden></button></div>
<details class="snippet" hidden><summary class="unfold"></summary>
<pre class="source" tabindex="0"></pre></details>
"""


@dataclass(frozen=True)
class Working:
    """The parts of a drawer, for a tab to fill.

    Args:
        drawer: The accordion around them.
        formula: Markdown with KaTeX between double dollars.
        facts: `{"tensor": name, "shape": [n], "dtype": text, "file": path, "test": path}` or None;
            all but the tensor may be missing, values come from the objects themselves.
        table: The number matrix with the same numbers as the figure.
        exports: `{"csv": id of a published matrix, "png": elem_id of the view to save,
            "python": snippet}`, each of them None where there is nothing to take along; `"html"`,
            the id of a published map, offers it as a page of its own, and `"file"`,
            `{"path": below /glassbox, "words": text}`, a file.
    """

    drawer: gr.Accordion
    formula: gr.Markdown
    facts: gr.HTML
    table: gr.HTML
    exports: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What a handler fills: facts, table, exports."""
        return [self.facts, self.table, self.exports]


def build_working(
    words: Words,
    *,
    elem_id: str,
    formula: str,
    png: str | None = None,
    open_at_start: bool = False,
) -> Working:
    """Build a drawer; call it where it shall stand.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page; the parts are called `<elem_id>-table` and so on.
        formula: Markdown with KaTeX between double dollars.
        png: The `elem_id` of the view that the PNG button saves.
        open_at_start: Whether the drawer is open at first.

    Returns:
        Its parts.
    """
    first: dict[str, Any] = {"csv": None, "png": png, "python": None}
    with gr.Accordion(
        words.t("kit.working.title"),
        open=open_at_start,
        elem_id=elem_id,
        elem_classes=["working"],
    ) as drawer:
        markdown = gr.Markdown(
            formula,
            latex_delimiters=[{"left": "$$", "right": "$$", "display": True}],
            elem_id=f"{elem_id}-formula",
        )
        facts = build_view("facts", words, template=_FACTS, elem_id=f"{elem_id}-facts")
        table = build_number_matrix(words, elem_id=f"{elem_id}-table")
        exports = build_exports(words, elem_id=f"{elem_id}-exports", value=first)
    return Working(drawer, markdown, facts, table, exports)


def build_exports(words: Words, *, elem_id: str, value: dict[str, Any] | None = None) -> gr.HTML:
    """Build the buttons that take numbers along: a row of CSV, PNG and "Copy as Python".

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        value: As `Working.exports`; None has nothing to take along yet.

    Returns:
        The component.
    """
    return build_view("exports", words, template=_EXPORTS, value=value, elem_id=elem_id)

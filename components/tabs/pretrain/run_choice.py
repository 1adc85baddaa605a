"""Which run the tab is about: chosen in the list, named by the address, or the last one looked at.

The browser remembers it, so that a page that was closed comes back to the run, which went on
meanwhile. Whoever has the id may watch: it is the link by which a run is shared.
"""

from dataclasses import dataclass

import gradio as gr

from components.context import AppContext

# As that of `model_bar`: it hides nothing from the owner of the browser.
_MEMORY_SECRET = "glassbox"
MOST_ID_CHARACTERS = 40


@dataclass(frozen=True, eq=False)
class RunChoice:
    """What all panels share.

    Args:
        run: Id of the run that is looked at; None before there is one.
        asked: The id that an address asks for.
        shown: The id for "Share view".
        memory: The id that the browser remembers.
    """

    run: gr.State
    asked: gr.Textbox
    shown: gr.Textbox
    memory: gr.BrowserState


def parse_run_id(text: str) -> str:
    """Take an id as it stands in addresses.

    Raises:
        ValueError: It is none.
    """
    plain = text.replace("-", "").replace("_", "")
    if not (plain.isascii() and plain.isalnum() and len(text) <= MOST_ID_CHARACTERS):
        raise ValueError(f"{text!r} is no id of a run")
    return text


def build(ctx: AppContext, tab: str = "pretrain", *, page: str | None = None) -> RunChoice:
    """Build the components; they cannot be seen.

    Args:
        ctx: The page's context.
        tab: Whose runs.
        page: Tab whose address names the run; None is the same.
    """
    key = "glassbox_run" if tab == "pretrain" else f"glassbox_run_{tab}"
    choice = RunChoice(
        run=gr.State(None),
        asked=gr.Textbox("", visible=False),
        shown=gr.Textbox("", visible=False),
        memory=gr.BrowserState(None, storage_key=key, secret=_MEMORY_SECRET),
    )
    ctx.address.register(page or tab, "run", choice.asked, parse_run_id, shared=choice.shown)
    return choice

"""What the panels of a tab are asked about: one text, one model, one place, for all of them.

    text, model, chat, chosen token ─► route ─► the `Ask` of the panel that is open ─► its handler

Only the open panel computes, and only once a model is there, which comes after the address and its
text. Another one gets the same question when it is opened, and computes nothing when it has
answered that already: a `gr.State` tells of changes only.

Which panel is open the page itself notes, in the order of the visitor's clicks. Noted by handlers,
which may overtake each other, the panel of an address would now and then stay empty.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import wire
from components.tabs.tab import TabHead

# The value of a drawer's exports where there is nothing to take along.
NO_EXPORTS: Mapping[str, None] = MappingProxyType({"csv": None, "png": None, "python": None})


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A question to a panel.

    Args:
        text: The text; "" asks nothing.
        source: The model.
        chat: Whether the text is a message that the model answers.
        logits: Numbers typed by hand in the model's place, or "".
        position: The token that is looked at; -1 is the last.
        target: The word whose logit is asked for; "" is the likeliest.
    """

    text: str = ""
    source: str = ""
    chat: bool = False
    logits: str = ""
    position: int = -1
    target: str = ""


@dataclass(frozen=True, eq=False)
class Asking:
    """The question of a tab, on its way to its panels.

    Args:
        ctx: The page's context.
        head: Head of the tab.
        tab_id: Its id.
        held: For each panel what it is asked.
        opened: The name of the panel that is open; the page keeps it.
        tabs: For each panel its tab.
    """

    ctx: AppContext
    head: TabHead
    tab_id: str
    held: Mapping[str, gr.State]
    opened: gr.Textbox
    tabs: dict[str, gr.Tab] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """For `wire`: where errors go, and that of events only the newest counts."""
        return {"card": self.head.card, "words": self.ctx.words, "trigger_mode": "always_last"}

    @contextmanager
    def working(
        self, panel: str, request: gr.Request
    ) -> Iterator[Callable[[], AbstractContextManager[None]]]:
        """Turns for a piece of work of a panel; newer work or the Stop button ends it.

        Args:
            panel: Its name.
            request: Whose work it is.
        """
        with self.ctx.stops.armed(self._work_of(panel, request)) as switch:
            yield partial(self.ctx.slots.turn, cancelled=switch.is_set)

    def stopper(self, panel: str) -> Callable[[gr.Request], None]:
        """Handler of a panel's Stop button."""

        def stop(request: gr.Request) -> None:
            self.ctx.stops.stop(self._work_of(panel, request))

        return stop

    def _work_of(self, panel: str, request: gr.Request) -> str:
        return f"{self.tab_id}-{panel}-{request.session_hash}"

    def wire(self, controls: Mapping[str, Any]) -> None:
        """Connect the question with the panels, once all tabs are there.

        Args:
            controls: For fields of `Ask`, the components that hold them.
        """
        ctx, options = self.ctx, self.options
        inputs = [self.opened, ctx.model_id, *controls.values()]
        outputs = list(self.held.values())
        router = partial(self._router, list(controls))
        changes = [control.change for control in controls.values()]
        wire([*changes, ctx.model_id.change], router(None), inputs, outputs, **options)
        for name, tab in self.tabs.items():
            note = f"() => {json.dumps(name)}"
            tab.select(None, None, [self.opened], js=note, api_visibility="private")
            wire(tab.select, router(name), inputs, outputs, **options)

    def _router(self, names: Sequence[str], entered: str | None) -> Callable[..., Any]:
        """Handler that asks the panel which is open, or has just been entered."""

        def route(opened: str, model_id: str | None, *values: Any) -> tuple[Any, ...]:
            given = dict(zip(names, values, strict=True))
            ask = Ask(source=self.ctx.source_of(model_id), **given)
            ready = bool(model_id or ask.logits)
            told = [
                ask if ready and name == (entered or opened) else gr.skip() for name in self.held
            ]
            return tuple(told)

        return route


def build_asking(ctx: AppContext, head: TabHead, tab_id: str, panels: Sequence[str]) -> Asking:
    """Build what carries the question of a tab; call it at the top.

    Args:
        ctx: The page's context.
        head: Head of the tab.
        tab_id: Its id.
        panels: The names of its panels; the first is open at first.
    """
    with head.actions:
        report = gr.Button(ctx.words.t("shell.report"), elem_id=f"{tab_id}-report", min_width=0)
    script = f"() => window.glassbox.saveReport({json.dumps(tab_id)})"
    report.click(None, None, None, js=script, api_visibility="private")
    held = {name: gr.State(Ask()) for name in panels}
    opened = gr.Textbox(panels[0], visible=False)
    return Asking(ctx, head, tab_id, held, opened)

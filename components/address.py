"""The address of a view: `?tab=attention&panel=heads&text=...&layer=13`.

A tab registers which component belongs to which key. When the page opens, the values of the
address are checked and put into those components; "Share view" copies an address with their
present values.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

# Longer texts make addresses that mail programs and proxies cut off.
MAX_TEXT_CHARACTERS = 2_000
_SHORT_CHARACTERS = 40

Parse = Callable[[str], Any]


def parse_text(value: str) -> str:
    """Take a text, cut to what an address may hold, without NUL characters."""
    return value.replace("\0", "")[:MAX_TEXT_CHARACTERS]


def parse_integer(low: int, high: int) -> Parse:
    """Make a parser for a whole number, moved into its range.

    Args:
        low: Smallest value.
        high: Largest value.

    Returns:
        A parser that raises ValueError when the text is no whole number.
    """
    return lambda value: min(max(int(value), low), high)


def parse_number(low: float, high: float) -> Parse:
    """Make a parser for a number, moved into its range.

    Args:
        low: Smallest value.
        high: Largest value.

    Returns:
        A parser that raises ValueError when the text is no number.
    """

    def parse(value: str) -> float:
        number = float(value)
        if math.isnan(number):
            raise ValueError("NaN is no number")
        return min(max(number, low), high)

    return parse


def parse_choice(choices: Sequence[str]) -> Parse:
    """Make a parser for one of several fixed texts.

    Args:
        choices: What is allowed.

    Returns:
        A parser that raises ValueError for any other text.
    """

    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is none of {', '.join(choices)}")
        return value

    return parse


def parse_picker(value: str) -> dict[str, int]:
    """Take the number of a layer or a head, as the value of a picker.

    How many there are is not known before a model is there; the number counts as the last.

    Raises:
        ValueError: It is no whole number.
    """
    index = parse_integer(0, 8_191)(value)
    return {"index": index, "count": index + 1}


def parse_switch(value: str) -> bool:
    """Take `true` or `false`.

    Raises:
        ValueError: It is neither.
    """
    return parse_choice(("false", "true"))(value) == "true"


@dataclass(frozen=True, eq=False)
class Part:
    """One key of a view's address.

    Args:
        tab: Id of the tab it belongs to.
        key: Its name in the address.
        component: The component whose value it is.
        parse: Turns the text of the address into that value, or raises ValueError.
        shared: The component whose value "Share view" puts into an address.
    """

    tab: str
    key: str
    component: Any
    parse: Parse
    shared: Any


@dataclass(frozen=True, eq=False)
class Panels:
    """The inner tabs of a tab, which the key `panel` selects.

    Args:
        tabs: The `gr.Tabs`; it has an `elem_id`, by which the page's script finds the open one.
        ids: The ids of its panels.
    """

    tabs: Any
    ids: tuple[str, ...]


class ViewAddress:
    """Collects the parts of addresses while the page is built."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._panels: dict[str, Panels] = {}
        self._share_buttons: dict[str, list[gr.Button]] = {}

    def register(
        self,
        tab: str,
        key: str,
        component: Any,
        parse: Parse = parse_text,
        *,
        shared: Any = None,
    ) -> None:
        """Say which component a key belongs to.

        Args:
            tab: Id of the tab.
            key: Name in the address, unique in the tab; not `tab`, `panel`, `lang` or `__theme`.
            component: Holds the value.
            parse: Turns the text of the address into the value, or raises ValueError.
            shared: Holds the value for "Share view", where it is another component: what the
                handlers of a tab go on writing must not overwrite what an address has just asked.

        Raises:
            ValueError: The key is taken.
        """
        taken = {part.key for part in self._parts if part.tab == tab}
        if key in taken | {"tab", "panel", "lang", "__theme"}:
            raise ValueError(f"the key {key!r} of tab {tab!r} is taken; choose another")
        self._parts.append(Part(tab, key, component, parse, shared or component))

    def register_panels(self, tab: str, tabs: Any, ids: Sequence[str], *, card: Any) -> None:
        """Say which inner tabs the key `panel` selects.

        Args:
            tab: Id of the outer tab.
            tabs: The inner `gr.Tabs`, built with an `elem_id`.
            ids: The ids of the panels.
            card: The card slot of the outer tab; what it says of one panel ends with it.
        """
        self._panels[tab] = Panels(tabs, tuple(ids))
        tabs.select(None, None, [card], js="() => null", api_visibility="private")

    def add_share_button(self, tab: str, button: gr.Button) -> None:
        """Let a button copy the address of a tab's present view."""
        self._share_buttons.setdefault(tab, []).append(button)

    def wire(self, demo: gr.Blocks, tab: str, tab_bar: gr.HTML) -> Any:
        """Connect what a tab has registered; called once for each, after all tabs are built.

        Args:
            demo: The page.
            tab: Id of the tab.
            tab_bar: Where a visitor leaves for another tab.

        Returns:
            The event, for what must come `.then`: after the values of the address are in place.
        """
        outputs = self._outputs(tab)

        def on_address(request: gr.Request) -> dict[Any, Any] | None:
            changes = self.updates(tab, dict(request.query_params))
            # Gradio takes no empty answer where there are outputs
            return changes or dict.fromkeys(outputs[:1], gr.skip()) or None

        loaded = demo.load(
            on_address,
            None,
            outputs,
            queue=False,
            show_progress="hidden",
            # not on the outputs: for inner tabs the page would copy all that stands in them, at
            # every later update
            show_progress_on=[tab_bar],
            api_visibility="private",
        )
        self._wire_view(tab, tab_bar.leave, "leaveView")
        for button in self._share_buttons.get(tab, []):
            self._wire_view(tab, button.click, "shareView")
        return loaded

    def updates(self, tab: str, query: Mapping[str, str]) -> dict[Any, Any]:
        """Turn the query of an address into new values of components.

        A value that cannot be used is left out, so that an old or a broken link still opens.

        Args:
            tab: Id of the tab that the page shows.
            query: Keys and values of the address.

        Returns:
            The value for each component that changes; empty when the address names no view of it.
        """
        if query.get("tab") != tab:
            return {}
        changes: dict[Any, Any] = {}
        panels = self._panels.get(tab)
        if panels is not None and query.get("panel") in panels.ids:
            changes[panels.tabs] = gr.Tabs(selected=query["panel"])
        for part in self._parts_of(tab):
            if part.key in query:
                _add_parsed(changes, part, query[part.key])
        return changes

    def _parts_of(self, tab: str) -> list[Part]:
        return [part for part in self._parts if part.tab == tab]

    def _outputs(self, tab: str) -> list[Any]:
        inner = [self._panels[tab].tabs] if tab in self._panels else []
        return [*inner, *(part.component for part in self._parts_of(tab))]

    def _wire_view(self, tab: str, event: Callable[..., Any], function: str) -> None:
        """Give the present values of a tab to a function of the page's script."""
        parts = self._parts_of(tab)
        panels = self._panels.get(tab)
        view = {
            "tab": tab,
            "keys": [part.key for part in parts],
            "samples": [_sample_of(part.shared) for part in parts],
            "panels": None if panels is None else panels.tabs.elem_id,
            "limit": MAX_TEXT_CHARACTERS,
        }
        event(
            None,
            [part.shared for part in parts],
            None,
            js=f"(...values) => window.glassbox.{function}({json.dumps(view)}, values)",
            api_visibility="private",
        )


def _sample_of(component: Any) -> str | None:
    """The text that a visitor finds there: while it is unchanged, an address need not hold it."""
    value = component.value
    return value if isinstance(value, str) and len(value) > _SHORT_CHARACTERS else None


def _add_parsed(changes: dict[Any, Any], part: Part, text: str) -> None:
    try:
        changes[part.component] = part.parse(text)
    except ValueError:
        return

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
        self._share_buttons: list[tuple[str, gr.Button]] = []

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

    def register_panels(self, tab: str, tabs: Any, ids: Sequence[str]) -> None:
        """Say which inner tabs the key `panel` selects.

        Args:
            tab: Id of the outer tab.
            tabs: The inner `gr.Tabs`, built with an `elem_id`.
            ids: The ids of the panels.
        """
        self._panels[tab] = Panels(tabs, tuple(ids))

    def add_share_button(self, tab: str, button: gr.Button) -> None:
        """Let a button copy the address of a tab's present view."""
        self._share_buttons.append((tab, button))

    def wire(self, demo: gr.Blocks, tabs: gr.Tabs, tab_ids: Sequence[str]) -> Any:
        """Connect everything that was registered; called once, after all tabs are built.

        Args:
            demo: The page.
            tabs: The outer tabs.
            tab_ids: Their ids.

        Returns:
            The event, for what must come `.then`: after the values of the address are in place.
        """

        def on_address(request: gr.Request) -> dict[Any, Any]:
            return self.updates(dict(request.query_params), tabs, tab_ids)

        inner = [panels.tabs for panels in self._panels.values()]
        outputs = [tabs, *inner, *(part.component for part in self._parts)]
        loaded = demo.load(
            on_address,
            None,
            outputs,
            queue=False,
            show_progress="hidden",
            api_visibility="private",
        )
        for tab, button in self._share_buttons:
            self._wire_share(tab, button)
        return loaded

    def updates(
        self, query: Mapping[str, str], tabs: Any, tab_ids: Sequence[str]
    ) -> dict[Any, Any]:
        """Turn the query of an address into new values of components.

        A value that cannot be used is left out, so that an old or a broken link still opens.

        Args:
            query: Keys and values of the address.
            tabs: The outer tabs.
            tab_ids: Their ids.

        Returns:
            The value for each component that changes; the outer tabs only when one is named.
        """
        tab = query.get("tab", "")
        if tab not in tab_ids:
            return {tabs: gr.skip()}
        changes: dict[Any, Any] = {tabs: gr.Tabs(selected=tab)}
        panels = self._panels.get(tab)
        if panels is not None and query.get("panel") in panels.ids:
            changes[panels.tabs] = gr.Tabs(selected=query["panel"])
        for part in self._parts:
            if part.tab == tab and part.key in query:
                _add_parsed(changes, part, query[part.key])
        return changes

    def _wire_share(self, tab: str, button: gr.Button) -> None:
        parts = [part for part in self._parts if part.tab == tab]
        panels = self._panels.get(tab)
        view = {
            "tab": tab,
            "keys": [part.key for part in parts],
            "panels": None if panels is None else panels.tabs.elem_id,
            "limit": MAX_TEXT_CHARACTERS,
        }
        button.click(
            None,
            [part.shared for part in parts],
            None,
            js=f"(...values) => window.glassbox.shareView({json.dumps(view)}, values)",
            api_visibility="private",
        )


def _add_parsed(changes: dict[Any, Any], part: Part, text: str) -> None:
    try:
        changes[part.component] = part.parse(text)
    except ValueError:
        return

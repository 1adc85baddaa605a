"""What all panels of the tab are connected with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import wire
from components.tabs.pretrain.run_choice import RunChoice
from components.tabs.tab import TabHead
from explorer.tuning_runs import TuningRuns


@dataclass(frozen=True, eq=False)
class TuningTab:
    """The tab while its panels are connected.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        panels: The inner tabs together; a panel may turn to another one.
        tabs: Each inner tab by its name.
        choice: The run that is looked at.
        tunings: Makes the runs and knows them.
    """

    ctx: AppContext
    head: TabHead
    panels: gr.Tabs
    tabs: Mapping[str, gr.Tab]
    choice: RunChoice
    tunings: TuningRuns

    def wire(
        self,
        event: Callable[..., Any] | tuple[Callable[..., Any], ...],
        handler: Callable[..., Any],
        inputs: list[Any],
        outputs: list[Any],
        **options: Any,
    ) -> Any:
        """As `components.errors.wire`, with the card of this tab."""
        card, words = self.head.card, self.ctx.words
        return wire(event, handler, inputs, outputs, card=card, words=words, **options)

    def when_looked_at(self, name: str) -> tuple[Callable[..., Any], ...]:
        """The panel is opened, or another run chosen."""
        return self.tabs[name].select, self.choice.run.change

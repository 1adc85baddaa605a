"""Which tokenizer the panels look at: one choice at the top of the tab, for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import wire
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.tokenizer_lab.comparison import MOST_COMPARED
from explorer.tokenizer_lab.hub_tokenizers import find_hub_id
from explorer.tokenizer_lab.kept import KEPT_PREFIX
from explorer.tokenizer_lab.named import NAMED, list_named

# The tokenizer of the model that is chosen at the top of the page.
MODEL = "model"
FILE_TYPES = [".json", ".model", ".tiktoken", ".gguf", ".txt", ".bpe"]


@dataclass(frozen=True, eq=False)
class TokenizerChoice:
    """Components of the choice.

    Args:
        one: The tokenizer that all panels but one look at.
        several: Those that are compared.
        upload: Takes files of a tokenizer.
    """

    one: gr.Dropdown
    several: gr.Dropdown
    upload: gr.UploadButton

    @property
    def lists(self) -> list[gr.Dropdown]:
        """Both lists of tokenizers."""
        return [self.one, self.several]


def build_choice(ctx: AppContext) -> TokenizerChoice:
    """Build the choice; the list to compare is built here and stands in its panel.

    Args:
        ctx: The page's context.
    """
    t = ctx.words.t
    here = list_named()
    choices = [(t("tokens.of_model"), MODEL), *((name, name) for name in here)]
    common: dict[str, Any] = {"choices": choices, "allow_custom_value": True}
    with gr.Row(elem_classes=["tokenizer-choice"]):
        one = gr.Dropdown(
            value=MODEL,
            label=t("tokens.tokenizer"),
            info=t("tokens.tokenizer_info"),
            elem_id="tokens-tokenizer",
            **common,
        )
        upload = gr.UploadButton(
            t("tokens.upload"),
            file_types=FILE_TYPES,
            file_count="multiple",
            type="filepath",
            elem_id="tokens-upload",
            min_width=0,
        )
    several = gr.Dropdown(
        value=[MODEL, *here][:3],
        multiselect=True,
        max_choices=MOST_COMPARED,
        label=t("tokens.compare.several"),
        info=t("tokens.compare.several_info"),
        elem_id="tokens-several",
        render=False,
        **common,
    )
    ctx.address.register("tokens", "tokenizer", one)
    return TokenizerChoice(one, several, upload)


def wire_choice(ctx: AppContext, head: TabHead, choice: TokenizerChoice) -> None:
    """Connect the choice's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        choice: What `build_choice` gave.
    """
    on = ChoiceHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    wire(choice.upload.upload, on.upload, [choice.upload, ctx.owner], choice.lists, **options)
    for event in (choice.one.focus, choice.several.focus, ctx.owner.change):
        wire(event, on.refresh, [ctx.owner], choice.lists, queue=False, **options)


class ChoiceHandlers:
    """Handlers of the choice, and how every panel opens what was chosen.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def upload(
        self, files: Sequence[str], owner: str | None, request: gr.Request
    ) -> tuple[Any, Any]:
        """Keep uploaded files and choose them."""
        visitor = self._ctx.owner_of(owner, request)
        kept = self._ctx.runs.tokenizers.keep_files([Path(file) for file in files], visitor)
        choices = list_choices(self._ctx, owner, request)
        return gr.update(choices=choices, value=kept.source), gr.update(choices=choices)

    def refresh(self, owner: str | None, request: gr.Request) -> tuple[Any, Any]:
        """List what there is now."""
        choices = list_choices(self._ctx, owner, request)
        return gr.update(choices=choices), gr.update(choices=choices)


def list_choices(ctx: AppContext, owner: str | None, request: gr.Request) -> list[tuple[str, str]]:
    """Label and value of every tokenizer that this visitor may choose by name.

    Of an encoding whose file is not here, choosing it says what to do.
    """
    say, locale = ctx.words.say, locale_of(request)
    kept = ctx.runs.tokenizers.list(ctx.owner_of(owner, request))
    here = list_named()
    uploaded = [one.name for one in kept]
    missing = [name for name in NAMED if name not in (*here, *uploaded)]
    return [
        (say(locale, "tokens.of_model"), MODEL),
        *((name, name) for name in here),
        *((f"{one.name} ({one.vocab_size:,})", one.source) for one in kept),
        *((say(locale, "tokens.not_here", name=name), name) for name in missing),
    ]


def open_tokenizer(
    ctx: AppContext,
    choice: str | None,
    model_id: str | None,
    owner: str | None,
    request: gr.Request,
) -> Any:
    """Open what was chosen: the model's own, an encoding, a kept one, a Hub id or a path.

    Args:
        ctx: The page's context.
        choice: Value of the list.
        model_id: Value of the `model_id` component.
        owner: Value of the `owner` component.
        request: The request.

    Raises:
        ExplorerError: It is not there, or cannot be read.
    """
    chosen = (choice or MODEL).strip()
    if chosen in NAMED or chosen.startswith(KEPT_PREFIX):
        return ctx.runs.tokenizers.open(chosen)
    if chosen == MODEL:
        return ctx.store.tokenizer(ctx.source_of(model_id), ctx.owner_of(owner, request))
    hub_id = find_hub_id(chosen)
    if hub_id is not None:
        return ctx.runs.tokenizers.open(hub_id)
    return ctx.store.tokenizer(chosen, ctx.owner_of(owner, request))


def name_tokenizer(ctx: AppContext, choice: str, model_id: str | None) -> str:
    """What to call a chosen tokenizer in a table."""
    if choice == MODEL:
        return ctx.source_of(model_id)
    if choice.startswith(KEPT_PREFIX):
        return ctx.runs.tokenizers.find(choice).name
    return choice.rstrip("/").rpartition("/")[2] or choice


def source_of_choice(ctx: AppContext, choice: str | None, model_id: str | None) -> str:
    """The source of a chosen tokenizer, for snippets."""
    chosen = choice or MODEL
    return ctx.source_of(model_id) if chosen == MODEL else chosen

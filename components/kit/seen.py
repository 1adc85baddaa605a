"""A view that cannot be seen and tells when it could be: somebody has come to this part."""

import gradio as gr

from components.kit.views import build_view
from components.text import Words


def build_seen(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the view.

    Event `seen`, once a visit, when this part of the page comes into sight: what takes a while can
    be begun then. Its value is a text that names what is seen, such as a model: when that becomes
    another one, the event comes again, at once or when somebody looks here again.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
    """
    return build_view("seen", words, template="<span></span>", elem_id=elem_id)

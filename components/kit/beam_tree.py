"""A beam search as a tree: a column for each token, lines from parents to children."""

from collections.abc import Sequence
from typing import Any

import gradio as gr

from components.kit.views import build_view
from components.text import Words
from explorer.beam_tree import TreeNode

_TEMPLATE = """
<div class="empty"></div>
<div class="pane" tabindex="0" role="region" hidden><div class="sheet"></div></div>
"""


def build_beam_tree(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the view.

    Its value is `{"root": text, "nodes": [{"t": label, "up": index or null, "d": depth, "p":
    log-probability, "s": sum, "is": "kept", "dropped" or "finished", "best": bool}]}` or None.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    return build_view("beam_tree", words, template=_TEMPLATE, elem_id=elem_id, target=elem_id)


def make_tree(root: str, nodes: Sequence[TreeNode]) -> dict[str, Any]:
    """The value of the view.

    Args:
        root: What all texts begin with.
        nodes: Candidates, parents before children.
    """
    return {
        "root": root,
        "nodes": [
            {
                "t": node.label,
                "up": node.parent,
                "d": node.depth,
                "p": round(node.log_probability, 5),
                "s": round(node.total, 5),
                "is": node.status,
                "best": node.best,
            }
            for node in nodes
        ],
    }

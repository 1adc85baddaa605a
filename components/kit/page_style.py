"""A style sheet for the layout of one tab, put into the page with it."""

import gradio as gr

from components.text import ASSETS


def build_page_style(name: str) -> None:
    """Put `assets/<name>.css` into the page.

    Args:
        name: Of the tab.
    """
    style = (ASSETS / f"{name}.css").read_text(encoding="utf-8")
    gr.HTML(
        html_template="<i hidden></i>",
        head=f"<style>{style}</style>",
        elem_id=f"{name}-style",
        elem_classes=["page-style"],
    )

"""Gradio's theme, expressed in the custom properties of assets/style.css.

One set of colours, sizes and spacings stands at the top of that file; here every value of Gradio
that matters is pointed at one of them, so that Gradio's components and our own follow one palette.
"""

from inspect import signature

import gradio as gr

# Declared in style.css; the CJK fonts after it are what systems usually have.
_FONTS = (
    gr.themes.Font("Glassbox Sans"),
    "system-ui",
    "Noto Sans CJK SC",
    "PingFang SC",
    "Microsoft YaHei",
    "sans-serif",
)
_MONO_FONTS = (
    gr.themes.Font("Glassbox Mono"),
    "ui-monospace",
    "Noto Sans Mono CJK SC",
    "monospace",
)

_VALUES = {
    "body_background_fill": "var(--bg)",
    "body_text_color": "var(--ink)",
    "body_text_color_subdued": "var(--ink-2)",
    "body_text_size": "var(--t-m)",
    "background_fill_primary": "var(--surface)",
    "background_fill_secondary": "var(--bg)",
    "block_background_fill": "transparent",
    "block_border_width": "0px",
    "block_info_text_color": "var(--ink-3)",
    "block_label_background_fill": "transparent",
    "block_label_border_width": "0px",
    "block_label_text_color": "var(--ink)",
    "block_label_text_size": "var(--t-s)",
    "block_label_text_weight": "600",
    "block_padding": "0px",
    "block_radius": "var(--r)",
    "block_shadow": "none",
    "block_title_text_color": "var(--ink)",
    "block_title_text_size": "var(--t-s)",
    "block_title_text_weight": "600",
    "border_color_accent": "var(--accent)",
    "border_color_primary": "var(--line)",
    "button_border_width": "1px",
    "button_large_padding": "6px 10px",
    "button_large_radius": "6px",
    "button_large_text_size": "var(--t-s)",
    "button_large_text_weight": "400",
    "button_medium_padding": "6px 10px",
    "button_medium_radius": "6px",
    "button_medium_text_size": "var(--t-s)",
    "button_medium_text_weight": "400",
    "button_small_padding": "6px 10px",
    "button_small_radius": "6px",
    "button_small_text_size": "var(--t-s)",
    "button_small_text_weight": "400",
    "button_primary_background_fill": "var(--accent)",
    "button_primary_background_fill_hover": "var(--accent)",
    "button_primary_border_color": "var(--accent)",
    "button_primary_text_color": "var(--on-accent)",
    "button_secondary_background_fill": "var(--surface)",
    "button_secondary_background_fill_hover": "var(--accent-soft)",
    "button_secondary_border_color": "var(--line)",
    "button_secondary_text_color": "var(--ink)",
    "button_primary_shadow": "none",
    "button_primary_shadow_active": "none",
    "button_primary_shadow_hover": "none",
    "button_secondary_shadow": "none",
    "button_secondary_shadow_active": "none",
    "button_secondary_shadow_hover": "none",
    "checkbox_background_color": "var(--surface)",
    "checkbox_background_color_selected": "var(--accent)",
    "checkbox_border_color": "var(--ink-3)",
    "checkbox_border_color_selected": "var(--accent)",
    "checkbox_label_background_fill": "var(--surface)",
    "checkbox_label_background_fill_hover": "var(--accent-soft)",
    "checkbox_label_background_fill_selected": "var(--accent-soft)",
    "checkbox_label_border_color": "var(--line)",
    "checkbox_label_padding": "6px 10px",
    "checkbox_label_shadow": "none",
    "checkbox_label_text_color": "var(--ink)",
    "checkbox_label_text_size": "var(--t-s)",
    "code_background_fill": "var(--mask)",
    "color_accent": "var(--accent)",
    "color_accent_soft": "var(--accent-soft)",
    "container_radius": "var(--r)",
    "input_background_fill": "var(--surface)",
    "input_background_fill_focus": "var(--surface)",
    "input_border_color": "var(--line)",
    "input_border_color_focus": "var(--accent)",
    "input_border_width": "1px",
    "input_padding": "10px 12px",
    "input_placeholder_color": "var(--ink-3)",
    "input_radius": "var(--r)",
    "input_shadow": "none",
    "input_shadow_focus": "0 0 0 1px var(--accent)",
    "input_text_size": "var(--t-m)",
    "layout_gap": "var(--s4)",
    "link_text_color": "var(--accent)",
    "link_text_color_hover": "var(--accent)",
    "link_text_color_visited": "var(--accent)",
    "loader_color": "var(--accent)",
    "panel_background_fill": "var(--surface)",
    "panel_border_color": "var(--line)",
    "shadow_drop": "none",
    "shadow_drop_lg": "none",
    "slider_color": "var(--accent)",
    "table_border_color": "var(--line)",
    "table_even_background_fill": "var(--surface)",
    "table_odd_background_fill": "var(--surface)",
}


def build_theme() -> gr.themes.Base:
    """Build the theme of the page.

    Returns:
        Gradio's plainest theme with our values. Light and dark share them: the custom properties
        behind them change with the theme.
    """
    theme = gr.themes.Base(font=_FONTS, font_mono=_MONO_FONTS, radius_size="sm", text_size="md")
    dark = {f"{name}_dark" for name in _VALUES} & set(signature(theme.set).parameters)
    return theme.set(**_VALUES, **{name: _VALUES[name.removesuffix("_dark")] for name in dark})

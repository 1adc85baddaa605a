"""Python that gives the numbers of a translation again, for "Copy as Python"."""

from explorer.home import find_home_folder
from explorer.runs import Runs
from explorer.snippets import make_snippet, say_call
from explorer.translation_runs import TranslationRuns
from explorer.translation_view import TranslateSettings, compute_translation, pattern_of


def make_translation_snippet(
    run_id: str, step: int, settings: TranslateSettings, layer: int, head: int
) -> str:
    """Python that translates a text with a checkpoint, and prints what each piece read.

    Args:
        run_id: The run.
        step: Of the checkpoint.
        settings: The text, and how it is searched.
        layer: Block of the decoder.
        head: Of it; -1 is the mean of all.
    """
    runs = f"{TranslationRuns.__name__}({Runs.__name__}({find_home_folder.__name__}()))"
    return make_snippet(
        (TranslationRuns, Runs, find_home_folder)
        + (TranslateSettings, compute_translation, pattern_of),
        "",
        f"translator = {runs}.open({run_id!r}, {step})",
        f"found = {compute_translation.__name__}(translator, {say_call(settings)})",
        f"for piece, row in zip(found.chosen, {pattern_of.__name__}(found, {layer}, {head})):",
        "    print(piece, row)",
        "for text in found.texts:",
        "    print(text.text, text.log_probability, text.score)",
    )

"""Python that gives the same numbers as the panels of the Next token and Layers tabs."""

from dataclasses import fields
from typing import Any

from explorer.snippets import make_snippet, say_load, say_text


def say_settings(settings: Any) -> str:
    """A settings object as Python, with what differs from its defaults."""
    changed = [
        f"{f.name}={getattr(settings, f.name)!r}"
        for f in fields(settings)
        if getattr(settings, f.name) != f.default
    ]
    return f"{type(settings).__name__}({', '.join(changed)})"


def _say_given(source: str, text: str, chat: bool, logits: str) -> tuple[tuple[Any, ...], str]:
    """What gives the logits: a model and a text, or numbers typed by hand."""
    from explorer.next_token import compute_next_logits
    from explorer.typed_logits import parse_logits

    if logits:
        return (parse_logits,), f"given = {parse_logits.__name__}({say_text(logits)})"
    name = compute_next_logits.__name__
    return (
        (compute_next_logits,),
        f"given = {name}({say_load(source)}, {say_text(text)}, chat={chat})",
    )


def make_next_snippet(source: str, text: str, chat: bool, logits: str, settings: Any) -> str:
    """Python that takes the same steps to the next token."""
    from explorer.next_token import trace_next_token

    used, given = _say_given(source, text, chat, logits)
    load = () if logits else ("from models import load_model",)
    return make_snippet(
        (*used, trace_next_token, type(settings)),
        *load,
        "",
        given,
        f"found = {trace_next_token.__name__}(given, {say_settings(settings)})",
        "for token in found.candidates:",
        "    print(repr(token.label), token.probability, token.final)",
    )


def make_draws_snippet(
    source: str, text: str, chat: bool, logits: str, settings: Any, n_draws: int
) -> str:
    """Python that makes the same draws."""
    from explorer.draws import draw_many

    used, given = _say_given(source, text, chat, logits)
    load = () if logits else ("from models import load_model",)
    return make_snippet(
        (*used, draw_many, type(settings)),
        *load,
        "",
        given,
        f"draws = {draw_many.__name__}(given, {say_settings(settings)}, n_draws={n_draws})",
        "for token in draws.tokens:",
        "    print(repr(token.label), token.count, token.expected)",
    )


def make_pair_snippet(
    source: str, text: str, chat: bool, first: Any, second: Any, max_new_tokens: int
) -> str:
    """Python that writes the same two texts."""
    from explorer.continuations import stream_pair

    return make_snippet(
        (stream_pair, type(first)),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"first, second = {say_settings(first)}, {say_settings(second)}",
        f"*_, pair = {stream_pair.__name__}(",
        f"    loaded, {say_text(text)}, first, second,",
        f"    chat={chat}, max_new_tokens={max_new_tokens},",
        ")",
        "for tokens in (pair.first, pair.second):",
        "    print([(token.label, token.probability) for token in tokens])",
    )


def make_beam_snippet(source: str, text: str, chat: bool, settings: Any, seed: int) -> str:
    """Python that makes the same search."""
    from explorer.beam_tree import compute_beam_tree

    name = compute_beam_tree.__name__
    return make_snippet(
        (compute_beam_tree, type(settings)),
        "from models import load_model",
        "",
        f"loaded, settings = {say_load(source)}, {say_settings(settings)}",
        f"tree = {name}(loaded, {say_text(text)}, settings, chat={chat}, seed={seed})",
        "for text in tree.texts:",
        "    print(repr(text.text), text.log_probability, text.score)",
    )


def make_walk_snippet(source: str, text: str, chat: bool, settings: Any, walk: Any) -> str:
    """Python that looks at the same place of the same text."""
    from dataclasses import replace

    from explorer.next_token import trace_next_token
    from explorer.step_through import begin_walk, look_at

    return make_snippet(
        (begin_walk, look_at, replace, trace_next_token, type(settings)),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"walk = {begin_walk.__name__}(loaded, {say_text(text)}, chat={chat})",
        f"walk = replace(walk, written={walk.written!r}, at={walk.at})",
        f"look = {look_at.__name__}(loaded, walk)",
        f"found = {trace_next_token.__name__}(look.given, {say_settings(settings)})",
        "for token in found.candidates:",
        "    print(repr(token.label), token.probability, token.final)",
    )


def make_game_snippet(source: str, text: str, seed: int) -> str:
    """Python that makes the same questions."""
    from explorer.guessing_game import make_rounds

    return make_snippet(
        (make_rounds,),
        "from models import load_model",
        "",
        f"rounds = {make_rounds.__name__}({say_load(source)}, {say_text(text)}, seed={seed})",
        "for one in rounds:",
        "    print(one.context[-40:], [(o.label, o.probability) for o in one.options])",
    )


def make_lens_snippet(source: str, text: str, position: int, target: str) -> str:
    """Python that reads the same layers."""
    from explorer.lens_grid import compute_lens_grid

    name = compute_lens_grid.__name__
    return make_snippet(
        (compute_lens_grid,),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"lens = {name}(loaded, {say_text(text)}, position={position}, target={target!r})",
        "for layer in lens.layers:",
        f"    labels, shares = layer.top_labels[{position}], layer.top_probabilities[{position}]",
        "    print(layer.stage, labels, shares)",
    )


def make_checkpoint_lens_snippet(run_id: str, text: str, position: int, target: str) -> str:
    """Python that reads the same layers of the same checkpoints."""
    from explorer.checkpoint_lens import compute_checkpoint_lens
    from explorer.home import find_home_folder
    from explorer.runs import Runs

    name = compute_checkpoint_lens.__name__
    return make_snippet(
        (Runs, compute_checkpoint_lens, find_home_folder),
        "",
        f"runs = {Runs.__name__}({find_home_folder.__name__}())",
        f"text, word = {say_text(text)}, {target!r}",
        f"found = {name}(runs, {run_id!r}, text, position={position}, target=word)",
        "for step, lens in zip(found.steps, found.lenses):",
        "    print(step, lens.top_tokens[-1][0], lens.answer_probabilities)",
    )


def make_attribution_snippet(source: str, text: str, position: int, target: str) -> str:
    """Python that splits the same logit."""
    from explorer.attribution import compute_attribution
    from explorer.prompts import read_prompt

    name = compute_attribution.__name__
    return make_snippet(
        (compute_attribution, read_prompt),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"ids = {read_prompt.__name__}(loaded, {say_text(text)})",
        f"found = {name}(loaded, ids, position={position}, target={target!r})",
        "print(found.embedding, found.attention, found.feed_forward, found.total, found.logit)",
    )


def make_salience_snippet(source: str, text: str, method: str, position: int, target: str) -> str:
    """Python that measures the same salience."""
    from explorer.salience import compute_salience

    name = compute_salience.__name__
    return make_snippet(
        (compute_salience,),
        "from models import load_model",
        "",
        f"loaded, text = {say_load(source)}, {say_text(text)}",
        f"found = {name}(loaded, text, {method!r}, position={position}, target={target!r})",
        "for label, score in zip(found.labels, found.scores):",
        "    print(repr(label), score)",
    )


def make_losses_snippet(source: str, text: str) -> str:
    """Python that gives the same losses."""
    from explorer.token_losses import compute_token_losses

    return make_snippet(
        (compute_token_losses,),
        "from models import load_model",
        "",
        f"losses = {compute_token_losses.__name__}({say_load(source)}, {say_text(text)})",
        "for label, nats in zip(losses.labels[1:], losses.nats):",
        "    print(repr(label), nats)",
        "print(losses.mean_nats, losses.perplexity)",
    )


def make_comparison_snippet(sources: list[str], text: str) -> str:
    """Python that reads the same text with the same models."""
    from explorer.token_losses import compute_token_losses

    loads = ", ".join(say_load(source) for source in sources)
    return make_snippet(
        (compute_token_losses,),
        "from models import load_model",
        "",
        f"text = {say_text(text)}",
        f"for loaded in ({loads},):",
        f"    losses = {compute_token_losses.__name__}(loaded, text)",
        "    print(loaded.info.name, losses.mean_nats, losses.perplexity, losses.bits_per_byte)",
    )


def make_space_snippet(source: str, text: str, scaled: bool) -> str:
    """Python that lays the same stream into its plane."""
    from explorer.prompts import read_prompt
    from explorer.residual_space import compute_residual_space

    return make_snippet(
        (compute_residual_space, read_prompt),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"ids = {read_prompt.__name__}(loaded, {say_text(text)})",
        f"space = {compute_residual_space.__name__}(loaded, ids, scaled={scaled})",
        "print(space.points, space.cosines)",
    )


def make_steer_snippet(source: str, text: str, towards: str, away: str, settings: Any) -> str:
    """Python that writes the same two answers."""
    from explorer.steering import stream_steering

    return make_snippet(
        (stream_steering, type(settings)),
        "from models import load_model",
        "",
        f"loaded, settings = {say_load(source)}, {say_settings(settings)}",
        f"*_, found = {stream_steering.__name__}(",
        f"    loaded, {say_text(text)}, {towards!r}, {away!r}, settings",
        ")",
        "print(repr(found.plain_text))",
        "print(repr(found.steered_text))",
    )

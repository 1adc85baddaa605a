"""Python that gives the numbers of the panels on rotary positions."""

from explorer.rope_frequencies import RopeSettings, compute_rope_frequencies
from explorer.snippets import make_snippet, say_call, say_load, say_text


def make_frequencies_snippet(settings: RopeSettings) -> str:
    """Python that prints each pair's plain and scaled frequency and its region."""
    return make_snippet(
        (RopeSettings, compute_rope_frequencies),
        "",
        f"found = {compute_rope_frequencies.__name__}({say_call(settings)})",
        "for pair, numbers in enumerate(zip(found.plain, found.scaled, found.regions)):",
        "    print(pair, *numbers)",
        "print(found.attention_factor)",
    )


def make_distance_snippet(
    source: str, text: str, place: tuple[int, int, int, int, int, int], most: int, base: float
) -> str:
    """Python that prints scores against distance; `place` is layer, head, query, key, pair, n-m."""
    from explorer.rope_rotation import compute_distance_scores, read_unturned_head, with_base

    layer, head, query, key, pair, distance = place
    rebased = [f"head = {with_base.__name__}(head, {base!r})"] if base else []
    call = f"head, {query}, {key}, pair={pair}, distance={distance}, most={most}"
    used = (with_base,) if base else ()
    return make_snippet(
        (compute_distance_scores, read_unturned_head, *used),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"head = {read_unturned_head.__name__}(loaded, {say_text(text)}, {layer}, {head})",
        *rebased,
        f"found = {compute_distance_scores.__name__}({call})",
        "for distance, score in zip(found.distances, found.scores):",
        "    print(distance, score)",
        "print(found.shifted)",
    )


def make_pairing_snippet(
    source: str, text: str, layer: int, head: int, query: int, key: int, distance: int
) -> str:
    """Python that prints the three scores of the two conventions."""
    from explorer.rope_rotation import compute_pairings, read_unturned_head

    return make_snippet(
        (compute_pairings, read_unturned_head),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"head = {read_unturned_head.__name__}(loaded, {say_text(text)}, {layer}, {head})",
        f"found = {compute_pairings.__name__}(head, {query}, {key}, {distance})",
        "print(found.split_score, found.interleaved_score, found.wrong_score)",
        "print(found.order)",
    )

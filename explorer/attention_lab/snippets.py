"""Python that gives the numbers of the lab's panels again, for "Copy as Python"."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.attention_lab import (
    ablation,
    experts,
    flash,
    kv_cache,
    masks,
    patching,
    variants,
    ways_timing,
)
from explorer.attention_lab.head_kinds import (
    compute_head_kinds,
    compute_pair,
    compute_random_maps,
    compute_rollout,
)
from explorer.attention_maps import compute_attention
from explorer.snippets import make_snippet, say_load, say_text

Reading = tuple[str, str, int]  # a model, a text, and the token that its window begins with


def _say(settings: object) -> str:
    """A frozen dataclass as the call that makes it."""
    values = ", ".join(f"{name}={value!r}" for name, value in vars(settings).items())
    return f"{type(settings).__name__}({values})"


def make_mask_snippet(
    source: str,
    text: str,
    settings: masks.MaskSettings,
    rows: Sequence[str],
    layer: int,
    head: int,
) -> str:
    """Python that reads a text under the mask of the page."""
    used = (
        masks.MaskSettings,
        masks.masks_of_layers,
        masks.parse_mask,
        masks.read_masked_text,
        masks.run_masked,
    )
    return make_snippet(
        used,
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"read = {masks.read_masked_text.__name__}(loaded, {say_text(text)})",
        f"mask = {masks.parse_mask.__name__}({list(rows)!r})",
        f"settings = {_say(settings)}",
        f"layers = {masks.masks_of_layers.__name__}(settings, mask, loaded.config.n_layers)",
        f"found = {masks.run_masked.__name__}(",
        f"    loaded, read.ids, read.labels, layers, layer={layer}, head={head}",
        ")",
        "for token, before, after in zip(found.tokens, found.before, found.after):",
        "    print(repr(token), before, after)",
    )


def make_kinds_snippet(
    kind: str, first: Reading, second: Reading | None = None, *, is_random: bool = False
) -> str:
    """Python that scores all heads of a model, or the difference from another reading.

    Args:
        kind: What is scored.
        first: Model, text, and the token that its window begins with.
        second: What is taken away.
        is_random: Random tokens are read in the text's place.
    """
    read = compute_random_maps if is_random else compute_attention

    def say_scores(reading: Reading) -> str:
        source, text, begins = reading
        window = f", first={begins}" if begins else ""
        given = "" if is_random else f", {say_text(text)}{window}"
        maps = f"{read.__name__}({say_load(source)}{given})"
        return f"{compute_head_kinds.__name__}({maps}).scores[{kind!r}]"

    lines = [f"scores = {say_scores(first)}"]
    if second is not None:
        lines += [
            f"other = {say_scores(second)}",
            "rows, columns = (min(a, b) for a, b in zip(scores.shape, other.shape))",
            "scores = scores[:rows, :columns] - other[:rows, :columns]",
        ]
    return make_snippet(
        (compute_head_kinds, read),
        "from models import load_model",
        "",
        *lines,
        "print(scores.tolist())",
    )


def make_rollout_snippet(reading: Reading, layer: int) -> str:
    """Python that multiplies the layers up to one."""
    return make_snippet(
        (compute_attention, compute_rollout),
        "from models import load_model",
        "",
        _say_maps(reading),
        f"print({compute_rollout.__name__}(maps, {layer}).tolist())",
    )


def make_pair_snippet(reading: Reading, layer: int, head: int, query: int, key: int) -> str:
    """Python that gives the vectors of a query and a key."""
    return make_snippet(
        (compute_attention, compute_pair),
        "from models import load_model",
        "",
        _say_maps(reading),
        f"pair = {compute_pair.__name__}(maps, {layer}, {head}, {query}, {key})",
        "print(pair.score, pair.weight)",
        "for vector in (pair.query, pair.key, pair.products, pair.value):",
        "    print(vector.tolist())",
    )


def _say_maps(reading: Reading) -> str:
    source, text, first = reading
    window = f", first={first}" if first else ""
    return f"maps = {compute_attention.__name__}({say_load(source)}, {say_text(text)}{window})"


def make_ablation_snippet(source: str, text: str, changes: str) -> str:
    """Python that reads a text with parts of the model changed."""
    return make_snippet(
        (ablation.compute_ablation, ablation.parse_changes),
        "from models import load_model",
        "",
        f"changes = {ablation.parse_changes.__name__}({changes!r})",
        f"found = {ablation.compute_ablation.__name__}("
        f"{say_load(source)}, {say_text(text)}, changes)",
        "print(found.loss, found.loss_changed)",
        "for token, before, after in zip(found.tokens, found.before, found.after):",
        "    print(repr(token), before, after)",
    )


def make_scan_snippet(source: str, text: str) -> str:
    """Python that switches off one head after the other."""
    return make_snippet(
        (ablation.scan_heads,),
        "from models import load_model",
        "",
        f"for scan in {ablation.scan_heads.__name__}({say_load(source)}, {say_text(text)}):",
        "    pass",
        "print(scan.loss, scan.effects.tolist())",
    )


def make_patching_snippet(source: str, clean: str, corrupt: str) -> str:
    """Python that puts the stream of one text into another."""
    call = f"{patching.compute_patching.__name__}({say_load(source)}, {clean!r}, {corrupt!r})"
    return make_snippet(
        (patching.compute_patching,),
        "from models import load_model",
        "",
        f"for patched in {call}:",
        "    pass",
        "print(patched.answer, patched.other, patched.restored.tolist())",
    )


def make_ways_snippet(settings: ways_timing.WaySettings) -> str:
    """Python that measures the nine ways."""
    return make_snippet(
        (ways_timing.WaySettings, ways_timing.measure_ways),
        "",
        f"for result in {ways_timing.measure_ways.__name__}({_say(settings)}):",
        "    pass",
        "for way in result.ways:",
        "    print(way.name, way.n_parameters, way.largest_difference, way.forward_s)",
    )


def make_variants_snippet(settings: variants.VariantSettings) -> str:
    """Python that counts parameters and bytes of each variant."""
    return make_snippet(
        (variants.VariantSettings, variants.compute_variants),
        "",
        f"for variant in {variants.compute_variants.__name__}({_say(settings)}):",
        "    print(variant.name, variant.n_parameters, variant.kept_per_token,",
        "          variant.cache_bytes)",
    )


def make_decoding_snippet(
    source: str, text: str, layer: int, head: int, n_new: int, window: int
) -> str:
    """Python that reads a prompt and continues it, pass by pass."""
    return make_snippet(
        (kv_cache.trace_decoding,),
        "from models import load_model",
        "",
        f"found = {kv_cache.trace_decoding.__name__}(",
        f"    {say_load(source)}, {say_text(text)}, layer={layer}, head={head}, n_new={n_new},",
        f"    window={window},",
        ")",
        "for step in found.steps:",
        "    print(step.first, step.last, repr(step.token), step.cached_operations,",
        "          step.uncached_operations, step.cache_bytes)",
    )


def make_generation_snippet(source: str, text: str) -> str:
    """Python that writes with and without a cache, and measures."""
    call = f"{kv_cache.measure_generation.__name__}({say_load(source)}, {say_text(text)})"
    return make_snippet(
        (kv_cache.measure_generation,),
        "from models import load_model",
        "",
        f"for times in {call}:",
        "    pass",
        "for row in zip(times.cached_s, times.uncached_s, times.cache_bytes):",
        "    print(*row)",
    )


def make_traffic_snippet(lengths: Sequence[int], d_head: int, tile: int) -> str:
    """Python that counts bytes stored and moved."""
    return make_snippet(
        (flash.count_traffic,),
        "",
        f"for n_tokens in {list(lengths)}:",
        f"    print(n_tokens, {flash.count_traffic.__name__}(n_tokens, {d_head}, {tile}))",
    )


def make_peaks_snippet() -> str:
    """Python that measures the largest memory of both ways."""
    return make_snippet(
        (flash.measure_peaks,),
        "",
        f"for found in {flash.measure_peaks.__name__}():",
        "    pass",
        "for peak in found:",
        "    print(peak.n_tokens, peak.eager_bytes, peak.fused_bytes)",
    )


def make_flash_snippet(
    scores: Sequence[float], values: Sequence[Sequence[float]], tile: int
) -> str:
    """Python that walks over the tiles of one query."""
    given = ", ".join("-inf" if score == float("-inf") else repr(score) for score in scores)
    return make_snippet(
        (flash.compute_tiled_softmax,),
        "import numpy as np",
        "from math import inf",
        "",
        f"values = np.array({[list(row) for row in values]!r})",
        f"found = {flash.compute_tiled_softmax.__name__}([{given}], values, {tile})",
        "for step in found.steps:",
        "    print(step.maximum, step.rescale, step.total, step.output)",
        "print(found.output, found.plain)",
    )


def make_experts_snippet(source: str, text: str, layer: int, expert: int | None) -> str:
    """Python that shows which experts each token takes."""
    return make_snippet(
        (experts.compute_experts,),
        "from models import load_model",
        "",
        f"found = {experts.compute_experts.__name__}(",
        f"    {say_load(source)}, {say_text(text)}, layer={layer}, expert={expert}",
        ")",
        "print(found.load.tolist(), found.loss, found.loss_without)",
        f"print(found.probabilities[{layer}].tolist())",
    )


def make_layer_cost_snippet(settings: experts.LayerSettings) -> str:
    """Python that measures a layer with experts beside dense ones."""
    return make_snippet(
        (experts.LayerSettings, experts.measure_layers),
        "",
        f"for cost in {experts.measure_layers.__name__}({_say(settings)}):",
        "    print(cost.name, cost.n_parameters, cost.n_active, cost.n_bytes, cost.forward_s)",
    )

"""The panel "scaling": which frequencies are kept, blended and divided for longer contexts."""

from typing import Any

from components.kit.charts import Axes, Look, chart_message, line
from components.tabs.panel_plan import (
    LOADED,
    Panel,
    PanelPlan,
    PanelView,
    TableTwin,
    ViewPlan,
    Visit,
)
from explorer.errors import ConfigError
from explorer.rope_frequencies import (
    RopeFrequencies,
    RopeSettings,
    compute_rope_frequencies,
    get_rope_preset,
    rope_presets,
    rope_settings_of,
)
from explorer.rope_snippets import make_frequencies_snippet
from explorer.snippets import source_file_of

FORMULA = r"""
$$\theta_i = b^{-2i/d} \qquad \lambda_i = \frac{2\pi}{\theta_i} \qquad
\theta'_i = r_i\,\theta_i + (1 - r_i)\,\frac{\theta_i}{s}$$
$$r_i^{\text{linear}} = 0 \qquad
r_i^{\text{Llama 3}} = \mathrm{clip}_0^1\,\frac{L/\lambda_i - \alpha}{\beta - \alpha} \qquad
r_i^{\text{YaRN}} = 1 - \mathrm{clip}_0^1\,
\frac{i - i_{\text{fast}}}{i_{\text{slow}} - i_{\text{fast}}}$$
$$b^{\text{dynamic}} = b\,\Bigl(\frac{s\,\max(T, L)}{L} - (s - 1)\Bigr)^{d/(d-2)} \qquad
\text{attention factor}^{\text{YaRN}} = 0.1 \ln s + 1$$
"""
PLAN = PanelPlan(
    prefix="positions.scaling",
    kind=RopeSettings,
    examples=(
        RopeSettings(),
        RopeSettings(
            base=500_000.0, d_head=128, scaling="yarn", factor=8.0, original_context=8_192,
            length=65_536,
        ),
        RopeSettings(
            base=10_000.0, d_head=128, scaling="linear", factor=4.0, original_context=4_096,
            length=16_384,
        ),
    ),
    views=(ViewPlan(name="wavelengths"), ViewPlan(name="shares", height=240)),
    formula=FORMULA,
    test="tests/explorer/test_rope_frequencies.py",
    starts=tuple(rope_presets()),
)  # fmt: skip


def show(settings: RopeSettings, visit: Visit) -> PanelView:
    """Frequencies of every pair of a rotation, plain and scaled, with what was done to each."""
    found = compute_rope_frequencies(settings)
    return PanelView(
        said=_say(settings, found, visit),
        views={
            "wavelengths": _draw_wavelengths(settings, found, visit),
            "shares": _draw_shares(found, visit),
        },
        facts={
            "tensor": "inverse frequencies",
            "shape": [len(found.plain)],
            "dtype": "float32",
            "file": source_file_of(compute_rope_frequencies),
        },
        table=_tabulate(found, visit),
        python=make_frequencies_snippet(settings),
    )


def start(name: str, visit: Visit) -> RopeSettings:
    """The rotation of a preset, or of the loaded model."""
    if name != LOADED:
        return get_rope_preset(name)
    with visit.lease() as loaded:
        found = rope_settings_of(loaded.config, loaded.info.name)
        if not found:
            raise ConfigError(
                f"{loaded.info.name} has no rotary positions; choose another model",
                code="rope-missing",
                model=loaded.info.name,
            )
    return list(found.values())[-1]  # of full layers, where windows have one of their own


def _say(settings: RopeSettings, found: RopeFrequencies, visit: Visit) -> str:
    turned = int((found.scaled_wavelengths > settings.original_context).sum())
    regions = ("kept", "blended", "divided")
    counts = {region: _say_range(found.pairs_of(region)) for region in regions}  # type: ignore[arg-type]
    sentence = visit.say("said", **counts, long=turned, pairs=len(found.plain))
    if found.attention_factor == 1:
        return sentence
    factor = f"{found.attention_factor:.10g}"
    squared = f"{found.attention_factor**2:.4g}"
    return sentence + " " + visit.say("said_factor", factor=factor, squared=squared)


def _say_range(pairs: tuple[int, ...]) -> str:
    """`0–14`, or a dash; the pairs of a region stand together."""
    if not pairs:
        return "–"
    return str(pairs[0]) if len(pairs) == 1 else f"{pairs[0]}–{pairs[-1]}"


def _draw_wavelengths(settings: RopeSettings, found: RopeFrequencies, visit: Visit) -> str:
    pairs: list[float] = list(range(len(found.plain)))
    ends: list[float] = [pairs[0], pairs[-1]]
    dotted = Look(dash="dot", width=1.5)
    traces = [
        line(visit.say("line_plain"), pairs, found.plain_wavelengths.tolist(), Look(dash="dash")),
        line(visit.say("line_scaled"), pairs, found.scaled_wavelengths.tolist()),
        line(visit.say("line_original"), ends, [settings.original_context] * 2, dotted),
        line(visit.say("line_length"), ends, [settings.length] * 2, dotted),
    ]
    axes = Axes(
        x=visit.say("axis_pair"),
        y=visit.say("axis_wavelength"),
        y_kind="log",
        bands=_bands(found, visit),
        keep=f"{settings.d_head}",
    )
    return chart_message(traces, axes)


def _bands(found: RopeFrequencies, visit: Visit) -> list[tuple[float, float, str]]:
    """The blended pairs, shaded; nothing where all are treated alike."""
    blended = found.pairs_of("blended")
    if not blended or len(blended) == len(found.plain):
        return []
    return [(blended[0] - 0.5, blended[-1] + 0.5, visit.say("blended"))]


def _draw_shares(found: RopeFrequencies, visit: Visit) -> str:
    pairs: list[float] = list(range(len(found.plain)))
    ratios = (found.scaled / found.plain).tolist()
    axes = Axes(x=visit.say("axis_pair"), y=visit.say("axis_ratio"), bands=_bands(found, visit))
    return chart_message([line("θ′/θ", pairs, ratios, Look(mode="lines+markers"))], axes)


def _tabulate(found: RopeFrequencies, visit: Visit) -> TableTwin:
    columns = [
        visit.say(f"column_{name}")
        for name in ("plain", "scaled", "ratio", "plain_wavelength", "scaled_wavelength", "region")
    ]
    cells: list[list[Any]] = [
        [float(plain), float(scaled), float(scaled / plain), float(short), float(long), region]
        for plain, scaled, short, long, region in zip(
            found.plain,
            found.scaled,
            found.plain_wavelengths,
            found.scaled_wavelengths,
            (visit.say(region) for region in found.regions),
            strict=True,
        )
    ]
    rows = [str(pair) for pair in range(len(found.plain))]
    return TableTwin(
        rows=rows, columns=columns, cells=cells, corner=visit.say("axis_pair"), digits=8
    )


PANEL = Panel(plan=PLAN, show=show, start=start)

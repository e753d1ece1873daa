"""Plots of functions and sums: where everything lies, in SVG units; the template only writes it down."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from lcmat.report.figures import Contours, Lines, Stacks

WIDTH, HEIGHT = 400.0, 290.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 14.0, 24.0, 46.0
_BAR_HEIGHT = 38.0
_LETTERS = 48  # that fit side by side
_MOST_POINTS = 200  # of a trace: more cannot be told apart
_PANEL, _PANEL_HEIGHT = 266.0, 320.0
_MARK = 20.0  # half of the longest number below a panel
# Colours that grow from dark to light, and colours from blue over white to red: the colour-blind can tell them.
_RISING = (
    "#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725",
)  # fmt: skip
_SIGNED = (
    "#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b",
    "#67001f",
)  # fmt: skip


@dataclass(frozen=True)
class Tick:
    """A place on an axis with its label."""

    at: float
    label: str


@dataclass(frozen=True)
class DrawnTrace:
    """A drawn line."""

    name: str
    colour: int
    dash: int
    path: str


@dataclass(frozen=True)
class LinesDrawing:
    """A drawn `Lines`."""

    chart: Lines
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    traces: tuple[DrawnTrace, ...]
    legend: tuple[DrawnTrace, ...]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM


@dataclass(frozen=True)
class DrawnStack:
    """A drawn bar: start and length of each part, below its texts."""

    name: str
    text: str
    text_y: float
    y: float
    parts: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class StacksDrawing:
    """A drawn `Stacks`."""

    chart: Stacks
    x_ticks: tuple[Tick, ...]
    bars: tuple[DrawnStack, ...]
    height: float
    bottom: float
    width: float = WIDTH
    left: float = _RIGHT
    right: float = WIDTH - _RIGHT


@dataclass(frozen=True)
class DrawnPanel:
    """One function over the plane: a filled area for each band of values, and the scale of colours."""

    title: str
    low: str
    high: str
    bands: tuple[tuple[str, str], ...]
    swatches: tuple[tuple[str, float, float], ...]
    marks: tuple[Tick, ...]


@dataclass(frozen=True)
class ContoursDrawing:
    """A drawn `Contours`."""

    chart: Contours
    panels: tuple[DrawnPanel, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    width: float = _PANEL
    height: float = _PANEL_HEIGHT
    left: float = 36.0
    right: float = _PANEL - _MARK
    top: float = 24.0
    bottom: float = 24.0 + _PANEL - _MARK - 36


@dataclass(frozen=True)
class Scale:
    """A map from values to places."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value between low and high."""
        of = math.log if self.log else float
        share = (of(value) - of(self.low)) / (of(self.high) - of(self.low))
        return round(self.start + share * (self.end - self.start), 1)


def draw_lines(chart: Lines) -> LinesDrawing:
    """Lay out lines through many points."""
    shown = [_showable(trace.xs, trace.ys, chart) for trace in chart.traces]
    x_values = _ticks([x for points in shown for x, _ in points], chart.log_x)
    y_values = _ticks([y for points in shown for _, y in points], chart.log_y)
    xs = [x for points in shown for x, _ in points] or [x_values[0], x_values[-1]]
    # The lines use the whole width; the values above and below end at labelled places.
    low, high = (min(xs), max(xs)) if max(xs) > min(xs) else (x_values[0], x_values[-1])
    across = Scale(low, high, _LEFT, WIDTH - _RIGHT, chart.log_x)
    up = Scale(y_values[0], y_values[-1], HEIGHT - _BOTTOM, _TOP, chart.log_y)
    traces = tuple(
        DrawnTrace(
            trace.name, trace.colour, trace.dash, "M" + "L".join(f"{across(x):g},{up(y):g}" for x, y in _thin(points))
        )
        for trace, points in zip(chart.traces, shown, strict=True)
        if points
    )
    legend = tuple({(trace.name, trace.colour, trace.dash): trace for trace in traces}.values())
    return LinesDrawing(
        chart,
        tuple(Tick(across(value), number(value)) for value in x_values if low <= value <= high),
        tuple(Tick(up(value), number(value)) for value in y_values),
        traces,
        legend,
    )


def draw_stacks(chart: Stacks) -> StacksDrawing:
    """Lay out sums of parts under each other."""
    values = _ticks([0.0, *(sum(bar.parts) for bar in chart.bars)], log=False)
    across = Scale(values[0], values[-1], _RIGHT, WIDTH - _RIGHT)
    bars = []
    for place, bar in enumerate(chart.bars):
        y = _BAR_HEIGHT * place + 18
        ends = [0.0, *np.cumsum(bar.parts).tolist()]
        places = [across(end) for end in ends]
        parts = tuple((a, round(b - a, 1)) for a, b in itertools.pairwise(places))
        name = f"{bar.name}, {bar.detail}" if bar.detail else bar.name
        longest = _LETTERS - len(bar.text)
        name = name if len(name) <= longest else name[: longest - 1] + "…"
        bars.append(DrawnStack(name, bar.text, y, y + 5, parts))
    bottom = _BAR_HEIGHT * len(bars) + 6
    ticks = tuple(Tick(across(value), number(value)) for value in values)
    return StacksDrawing(chart, ticks, tuple(bars), bottom + _BOTTOM, bottom)


def draw_contours(chart: Contours) -> ContoursDrawing:
    """Fill the bands between contour lines: the panels on one scale, the differences on another."""
    blank = ContoursDrawing(chart, (), (), ())
    across = Scale(-chart.reach, chart.reach, blank.left, blank.right)
    up = Scale(-chart.reach, chart.reach, blank.bottom, blank.top)
    rising = _rising_levels(chart.scale or _range([values for _, values in chart.panels]))
    most = chart.most or max((float(values.abs().max()) for _, values in chart.differences), default=0.0) or 1e-12
    signed = np.linspace(-most, most, len(_SIGNED) + 1)
    drawn = [_draw_panel(title, values, rising, _RISING, across, up) for title, values in chart.panels]
    drawn += [_draw_panel(title, values, signed, _SIGNED, across, up) for title, values in chart.differences]
    at = (-chart.reach, 0.0, chart.reach)
    return ContoursDrawing(
        chart,
        tuple(drawn),
        tuple(Tick(across(value), number(value)) for value in at),
        tuple(Tick(up(value), number(value)) for value in at),
    )


def number(value: float) -> str:
    """A value as people read it: three digits, powers of ten where they are short.

    Example:
        >>> number(0.25), number(-3.0), number(0.0), number(1e-7), number(51234.0)
        ('0.25', '−3', '0', '1e−7', '51,234')
    """
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-3):
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{float(digits):g}e{int(power)}".replace("-", "−")
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−")


def _draw_panel(
    title: str,
    values: Tensor,
    levels: "np.typing.NDArray[np.float64]",
    colours: Sequence[str],
    across: Scale,
    up: Scale,
) -> DrawnPanel:
    from matplotlib.figure import Figure  # half a second that other pages need not wait for

    z = np.clip(values.double().cpu().numpy(), levels[0], levels[-1])
    at = np.linspace(across.low, across.high, len(z))
    areas = Figure().subplots().contourf(at, at, z, levels=levels).get_paths()
    bands = [
        (colour, _svg_path(area.vertices, area.codes, across, up)) for colour, area in zip(colours, areas, strict=True)
    ]
    step = (across.end - across.start) / len(colours)
    swatches = [(colour, round(across.start + step * place, 1), round(step, 1)) for place, colour in enumerate(colours)]
    places = (0, len(colours) // 2, len(colours))
    middle = [Tick(round(across.start + step * place, 1), number(float(levels[place]))) for place in places]
    if len(colours) % 2:  # the middle of the middle band is zero
        middle[1] = Tick(round((across.start + across.end) / 2, 1), "0")
    low, high = number(float(values.min())), number(float(values.max()))
    return DrawnPanel(title, low, high, tuple(band for band in bands if band[1]), tuple(swatches), tuple(middle))


def _svg_path(vertices: object, codes: object, across: Scale, up: Scale) -> str:
    """A path of matplotlib as one of SVG: codes 1, 2 and 79 start, continue and close an outline."""
    if codes is None:  # nothing lies in this band
        return ""
    words = []
    for (x, y), code in zip(np.asarray(vertices).tolist(), np.asarray(codes).tolist(), strict=True):
        words.append("Z" if code == 79 else f"{'M' if code == 1 else 'L'}{across(x):g},{up(y):g}")
    return "".join(words)


def _range(panels: Sequence[Tensor]) -> tuple[float, float]:
    return min(float(values.min()) for values in panels), max(float(values.max()) for values in panels)


def _rising_levels(scale: tuple[float, float]) -> "np.typing.NDArray[np.float64]":
    """Bounds of the bands: in equal ratios where the values span a decade, else in equal steps."""
    low, high = scale
    if high <= low:
        high = low + (abs(low) or 1.0) * 1e-6
    if low > 0 and high > 10 * low:
        levels = np.geomspace(low, high, len(_RISING) + 1)
    else:
        levels = np.linspace(low, high, len(_RISING) + 1)
    levels[0], levels[-1] = low, high  # rounding must not leave the extreme values outside
    return levels


def _showable(xs: Sequence[float], ys: Sequence[float], chart: Lines) -> list[tuple[float, float]]:
    return [
        (x, y)
        for x, y in zip(xs, ys, strict=True)
        if (x > 0 or not chart.log_x) and (y > 0 or not chart.log_y) and math.isfinite(y)
    ]


def _thin(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most about 200 of the points, the dense first ones whole: sorted curves fall fastest there."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    early = np.geomspace(20, len(points), _MOST_POINTS // 2).astype(int) - 1
    evenly = np.linspace(0, len(points) - 1, _MOST_POINTS // 2).astype(int)
    kept = {*range(20), *early.tolist(), *evenly.tolist()}
    return [points[place] for place in sorted(kept)]


def _ticks(values: Sequence[float], log: bool, count: int = 5) -> list[float]:
    """Round values that enclose all: powers of ten for a logarithmic axis, else about `count` equal steps."""
    if not values:
        return [1.0, 10.0] if log else [0.0, 1.0]
    low, high = min(values), max(values)
    if log:
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        stride = max(1, math.ceil((last - first) / 6))
        last = first + stride * max(1, math.ceil((last - first) / stride))
        return [10.0**power for power in range(first, last + 1, stride)]
    spread = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(spread / count))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= spread / count * 0.999)
    bottom, top = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{step * place:.12g}") for place in range(bottom, max(top, bottom + 1) + 1)]

"""Where everything of a plot lies, in SVG units; the template only writes it down.

Plots are drawn 400 units wide, so that their letters stay readable when a phone shrinks them to its width, and take
their colours from the style sheet, so that they follow the light or dark scheme of the page.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lcmat.report.colours import SHAPES, Look, looks
from lcmat.report.figures import Curves, Forest, Point, Series

WIDTH = 400.0
HEIGHT = 290.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 14.0, 12.0, 46.0
_BELOW_LABEL = 26.0  # where a plot begins below the label of its vertical axis
_LABEL_GAP = 46.0  # between the middles of two labels under the axis
_DODGE = 4.0  # between neighbouring methods at one fraction, so that their intervals do not cover each other
_BAR_HEIGHT = 38.0
_LETTERS = 48  # that fit side by side
_MARKER = 4.5


@dataclass(frozen=True)
class Tick:
    """A place on an axis with its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A marker with its interval, drawn from `low` to `high` along one axis."""

    x: float
    y: float
    low: float | None
    high: float | None
    path: str


@dataclass(frozen=True)
class Line:
    """A drawn series; its band joins the intervals and is empty where there are none to join."""

    name: str
    look: Look
    dashed: bool
    path: str
    band: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class CurvesDrawing:
    """A drawn `Curves`."""

    chart: Curves
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    level: Mark | None
    kind: str = "curves"
    width: float = WIDTH
    height: float = HEIGHT
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _BELOW_LABEL
    bottom: float = HEIGHT - _BOTTOM


@dataclass(frozen=True)
class DrawnBar:
    """A drawn bar: its texts stand above its interval."""

    name: str
    text: str
    look: Look
    dashed: bool
    text_y: float
    mark: Mark


@dataclass(frozen=True)
class ForestDrawing:
    """A drawn `Forest`."""

    chart: Forest
    x_ticks: tuple[Tick, ...]
    bars: tuple[DrawnBar, ...]
    origin: float | None
    height: float
    bottom: float
    kind: str = "forest"
    width: float = WIDTH
    left: float = _RIGHT
    right: float = WIDTH - _RIGHT
    top: float = _TOP


@dataclass(frozen=True)
class _Axis:
    """A map from values to places; values outside the limits are put on the nearer edge."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        scale = math.log if self.log else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return round(self.start + share * (self.end - self.start), 1)


def draw_curves(chart: Curves) -> CurvesDrawing:
    """Lay out lines with intervals; the horizontal axis is logarithmic when it spans a decade."""
    xs = sorted({point.x for series in chart.series for point in series.points})
    points = [point for series in chart.series for point in series.points]
    across = _horizontal_axis(xs)
    low, high = _limits([*points, chart.level] if chart.level else points)
    y_values = _nice_ticks(max(low, chart.y_limits[0]), min(high, chart.y_limits[1]))
    up = _Axis(y_values[0], y_values[-1], HEIGHT - _BOTTOM, _BELOW_LABEL)
    style = looks(series.name for series in chart.series)
    middle = (len(chart.series) - 1) / 2
    lines = tuple(
        _draw_line(series, style[series.name], across, up, _DODGE * (place - middle))
        for place, series in enumerate(chart.series)
    )
    y_ticks = tuple(Tick(up(value), _label(value, y_values)) for value in y_values)
    return CurvesDrawing(chart, _spaced(xs, across), y_ticks, lines, _draw_level(chart.level, up))


def draw_forest(chart: Forest) -> ForestDrawing:
    """Lay out values with intervals under each other."""
    points = [Point(0.0, bar.value, bar.low, bar.high) for bar in chart.bars]
    low, high = _limits(points, chart.origin)
    values = _nice_ticks(low, high)
    across = _Axis(values[0], values[-1], _RIGHT + _MARKER, WIDTH - _RIGHT - _MARKER)
    style = looks(bar.name for bar in chart.bars)
    bars = []
    for place, bar in enumerate(chart.bars):
        y = _TOP + _BAR_HEIGHT * place + 26
        look = style[bar.name]
        x = across(bar.value)
        mark = Mark(x, y, _or_none(across, bar.low), _or_none(across, bar.high), marker(look.shape, x, y))
        label = _shorten(f"{bar.name}, {bar.detail}", _LETTERS - len(bar.text))
        bars.append(DrawnBar(label, bar.text, look, bar.dashed, y - 11, mark))
    bottom = _TOP + _BAR_HEIGHT * len(bars) + 2
    ticks = tuple(Tick(across(value), _label(value, values)) for value in values)
    origin = None if chart.origin is None else across(chart.origin)
    return ForestDrawing(chart, ticks, tuple(bars), origin, bottom + _BOTTOM, bottom)


def marker(shape: str, x: float, y: float, radius: float = _MARKER) -> str:
    """The SVG path of a marker around a place.

    Example:
        >>> marker("square", 10, 20, 2)
        'M8,18h4v4h-4z'
    """
    r = radius
    if shape == "circle":
        return f"M{x - r:g},{y:g}a{r:g},{r:g} 0 1 0 {2 * r:g},0a{r:g},{r:g} 0 1 0 {-2 * r:g},0z"
    if shape == "square":
        return f"M{x - r:g},{y - r:g}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z"
    if shape == "diamond":
        return f"M{x:g},{y - 1.3 * r:g}l{1.3 * r:g},{1.3 * r:g}l{-1.3 * r:g},{1.3 * r:g}l{-1.3 * r:g},{-1.3 * r:g}z"
    if shape == "triangle":
        return f"M{x:g},{y - 1.2 * r:g}l{1.2 * r:g},{2.1 * r:g}h{-2.4 * r:g}z"
    if shape == "wedge":
        return f"M{x:g},{y + 1.2 * r:g}l{1.2 * r:g},{-2.1 * r:g}h{-2.4 * r:g}z"
    raise ValueError(f"expected one of {', '.join(SHAPES)}, got {shape!r}")


def _draw_line(series: Series, look: Look, across: _Axis, up: _Axis, shift: float) -> Line:
    marks = []
    for point in series.points:
        x, y = round(across(point.x) + shift, 1), up(point.y)
        marks.append(Mark(x, y, _or_none(up, point.low), _or_none(up, point.high), marker(look.shape, x, y)))
    path = "M" + "L".join(f"{mark.x:g},{mark.y:g}" for mark in marks)
    return Line(series.name, look, series.dashed, path, _band(marks), tuple(marks))


def _band(marks: Sequence[Mark]) -> str:
    """The outline of all intervals: along their upper ends, and back along the lower ones."""
    known = [mark for mark in marks if mark.low is not None and mark.high is not None]
    if len(known) < max(2, len(marks)):
        return ""
    there, back = [f"{mark.x:g},{mark.high:g}" for mark in known], [f"{mark.x:g},{mark.low:g}" for mark in known]
    return f"M{'L'.join([*there, *reversed(back)])}z"


def _draw_level(level: Point | None, up: _Axis) -> Mark | None:
    if level is None:
        return None
    return Mark(_LEFT, up(level.y), _or_none(up, level.low), _or_none(up, level.high), "")


def _or_none(axis: _Axis, value: float | None) -> float | None:
    return None if value is None else axis(value)


def _horizontal_axis(xs: Sequence[float]) -> _Axis:
    """From the smallest to the largest value, with room at both sides for markers and dodging."""
    start, end = _LEFT + 24, WIDTH - _RIGHT - 24
    if len(xs) == 1:
        return _Axis(xs[0] / 2, xs[0] * 1.5, start, end)
    return _Axis(xs[0], xs[-1], start, end, log=0 < xs[0] <= xs[-1] / 10)


def _spaced(xs: Sequence[float], across: _Axis) -> tuple[Tick, ...]:
    """A tick at each value; labels that would touch the one before are left out."""
    ticks, last = [], -_LABEL_GAP
    for x in xs:
        at = across(x)
        shown = at - last >= _LABEL_GAP
        ticks.append(Tick(at, (f"{x:.2g}" if x < 9.95 else f"{x:.0f}") if shown else ""))
        last = at if shown else last
    return tuple(ticks)


def _limits(points: Sequence[Point], *more: float | None) -> tuple[float, float]:
    values = [value for point in points for value in (point.y, point.low, point.high)]
    known = [value for value in (*values, *more) if value is not None]
    return min(known), max(known)


def _nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round values that enclose low and high, and at least one point of a per cent scale."""
    rough = max(high - low, 1.0) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * place, 10) for place in range(first, max(last, first + 1) + 1)]


def _label(value: float, values: Sequence[float]) -> str:
    step = values[1] - values[0]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:.{decimals}f}".replace("-", "−")


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"

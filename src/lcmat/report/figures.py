"""What the figures of a page show: frozen descriptions, without a word of SVG."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Point:
    """A value with its interval, where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """The points of one method, from left to right.

    Attributes:
        name: of the method; it decides the colour, which is the same everywhere.
        points: in the order of x.
        dashed: for a baseline.
    """

    name: str
    points: tuple[Point, ...]
    dashed: bool = False


@dataclass(frozen=True)
class Curves:
    """Values against the share of the data that is kept.

    Attributes:
        title: what it shows.
        summary: the same in words, for those who cannot see it.
        x_label: of the horizontal axis, whose values are per cent.
        y_label: of the vertical axis.
        series: the lines.
        level: a horizontal line over the whole width, its x unused, or None.
        level_name: what the level is.
        y_limits: values that cannot be left, such as 0 and 100 for per cent.
    """

    title: str
    summary: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    level: Point | None = None
    level_name: str = ""
    y_limits: tuple[float, float] = (0.0, 100.0)


@dataclass(frozen=True)
class Bar:
    """One line of a forest plot: a value with its interval."""

    name: str
    detail: str
    value: float
    low: float | None
    high: float | None
    text: str
    dashed: bool = False


@dataclass(frozen=True)
class Forest:
    """Values with intervals under each other, along one axis.

    Attributes:
        title: what it shows.
        summary: the same in words, for those who cannot see it.
        x_label: of the axis.
        bars: from top to bottom.
        origin: a value to mark with a line, such as 0 for differences, or None.
    """

    title: str
    summary: str
    x_label: str
    bars: tuple[Bar, ...]
    origin: float | None = None


@dataclass(frozen=True)
class Trace:
    """A line through many points, without markers.

    Attributes:
        name: in the legend, where traces of one name and look are listed once.
        xs: horizontal places, ascending.
        ys: values, one for each place.
        colour: number of a colour of the style sheet.
        dash: 0 for a whole line, 1 for a dashed one, 2 for a dotted one.
    """

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    colour: int
    dash: int = 0


@dataclass(frozen=True)
class Lines:
    """Values against values; what a logarithmic axis cannot show is left out.

    Attributes:
        title: what it shows.
        summary: the same in words, for those who cannot see it.
        x_label: of the horizontal axis.
        y_label: of the vertical axis.
        traces: the lines.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic.
    """

    title: str
    summary: str
    x_label: str
    y_label: str
    traces: tuple[Trace, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Stack:
    """One bar of parts laid end to end, none of them negative."""

    name: str
    detail: str
    parts: tuple[float, ...]
    text: str


@dataclass(frozen=True)
class Stacks:
    """Sums and what they are made of, under each other, along one axis from 0.

    Attributes:
        title: what it shows.
        summary: the same in words, for those who cannot see it.
        x_label: of the axis.
        part_names: what the parts of every bar are.
        bars: from top to bottom.
    """

    title: str
    summary: str
    x_label: str
    part_names: tuple[str, ...]
    bars: tuple[Stack, ...]


@dataclass(frozen=True, eq=False)
class Contours:
    """Functions over one plane, side by side.

    Attributes:
        title: what they show.
        summary: the same in words, for those who cannot see it.
        axes: what the horizontal and the vertical axis are.
        reach: both axes go from minus this to this.
        panels: title and values `[r, r]` of each, rows from bottom to top; all on one scale of colours.
        differences: likewise, on a second scale, whose middle colour is zero.
        scale: lowest and highest value of the colours; those of the panels where None.
        most: largest magnitude of the second scale; that of the differences where None.
    """

    title: str
    summary: str
    axes: tuple[str, str]
    reach: float
    panels: tuple[tuple[str, Tensor], ...]
    differences: tuple[tuple[str, Tensor], ...] = ()
    scale: tuple[float, float] | None = None
    most: float | None = None


@dataclass(frozen=True)
class HeatMap:
    """A value for each pair of a row and a column.

    Attributes:
        title: what it shows.
        summary: the same in words, for those who cannot see it.
        rows: names, from top to bottom.
        columns: names, from left to right.
        values: that decide the colour, blue above zero and orange below; None for no cell.
        texts: two short lines for each cell.
    """

    title: str
    summary: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    texts: tuple[tuple[tuple[str, str], ...], ...]

    def __post_init__(self) -> None:
        for lines in (self.values, self.texts):
            if len(lines) != len(self.rows) or any(len(line) != len(self.columns) for line in lines):
                raise ValueError(f"expected {len(self.rows)} × {len(self.columns)} cells in the map {self.title!r}")

"""Heat maps: where their cells lie, in SVG units; the template only writes it down."""

from dataclasses import dataclass

from lcmat.report.figures import HeatMap

_CELL_WIDTH, _CELL_HEIGHT = 58.0, 38.0
_LABEL_WIDTH, _HEAD_HEIGHT = 150.0, 92.0
_LETTERS = 20
STRONGEST = 0.55  # of the colour, so that the words in a cell stay readable


@dataclass(frozen=True)
class DrawnCell:
    """One coloured field with two lines of text."""

    x: float
    y: float
    colour: int
    strength: float
    text: str
    detail: str


@dataclass(frozen=True)
class HeatDrawing:
    """A drawn `HeatMap`."""

    chart: HeatMap
    cells: tuple[DrawnCell, ...]
    row_labels: tuple[tuple[float, str], ...]
    column_labels: tuple[tuple[float, str], ...]
    width: float
    height: float
    left: float = _LABEL_WIDTH
    top: float = _HEAD_HEIGHT
    cell_width: float = _CELL_WIDTH - 2
    cell_height: float = _CELL_HEIGHT - 2


def draw_heat(chart: HeatMap) -> HeatDrawing:
    """Lay out a heat map: blue above zero, orange below, the stronger the farther from it; what is None is left out."""
    largest = max((abs(value) for line in chart.values for value in line if value is not None), default=0.0) or 1.0
    cells = tuple(
        DrawnCell(
            _LABEL_WIDTH + _CELL_WIDTH * column,
            _HEAD_HEIGHT + _CELL_HEIGHT * row,
            1 if value >= 0 else 2,
            round(STRONGEST * abs(value) / largest, 3),
            *chart.texts[row][column],
        )
        for row, line in enumerate(chart.values)
        for column, value in enumerate(line)
        if value is not None
    )
    rows = tuple(
        (_HEAD_HEIGHT + _CELL_HEIGHT * (place + 0.5) + 3, _shorten(name)) for place, name in enumerate(chart.rows)
    )
    columns = tuple(
        (_LABEL_WIDTH + _CELL_WIDTH * (place + 0.5), _shorten(name)) for place, name in enumerate(chart.columns)
    )
    width = _LABEL_WIDTH + _CELL_WIDTH * len(chart.columns) + 40  # the last slanted heading leans out
    return HeatDrawing(chart, cells, rows, columns, width, _HEAD_HEIGHT + _CELL_HEIGHT * len(chart.rows) + 4)


def _shorten(text: str) -> str:
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"

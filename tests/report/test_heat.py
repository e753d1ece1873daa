"""Heat maps: colours follow signs and sizes, and every cell stands where its row and column meet."""

import pytest

from lcmat.report import HeatMap
from lcmat.report.heat import draw_heat


def heat(*lines: tuple[float | None, ...]) -> HeatMap:
    texts = tuple(tuple((str(value), "") for value in line) for line in lines)
    names = tuple(f"name {place}" for place in range(len(lines[0])))
    return HeatMap("t", "s", tuple(f"row {place}" for place in range(len(lines))), names, lines, texts)


def test_the_sign_decides_the_colour_and_the_size_its_strength() -> None:
    above, below, half = draw_heat(heat((2.0, -2.0, 1.0))).cells
    assert above.colour != below.colour
    assert above.strength == below.strength == 2 * half.strength < 1


def test_cells_stand_where_row_and_column_meet() -> None:
    drawing = draw_heat(heat((None, 1.0), (2.0, None)))
    first, second = drawing.cells
    assert first.x > second.x
    assert first.y < second.y
    assert all(cell.x + drawing.cell_width <= drawing.width for cell in drawing.cells)
    assert all(cell.y + drawing.cell_height <= drawing.height for cell in drawing.cells)


def test_a_map_without_differences_is_drawn() -> None:
    assert [cell.strength for cell in draw_heat(heat((0.0, 0.0))).cells] == [0, 0]


def test_rows_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 1 × 2 cells"):
        HeatMap("t", "s", ("a",), ("b", "c"), ((1.0,),), ((("", ""),),))

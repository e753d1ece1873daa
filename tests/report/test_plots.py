"""Lines, stacks and contours: everything lies inside and where its value says."""

import re
from dataclasses import replace

import pytest
import torch

from lcmat.report import Contours, Lines, Page, Section, Stack, Stacks, Trace, render
from lcmat.report.plots import draw_contours, draw_lines, draw_stacks
from report.html_checks import check_page


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", path)]


def lines(ys: tuple[float, ...], *, log: bool = False) -> Lines:
    xs = tuple(float(place) for place in range(1, len(ys) + 1))
    return Lines("t", "s", "x", "y", (Trace("a", xs, ys, 1), Trace("a", xs, ys, 1)), log_x=log, log_y=log)


@pytest.mark.parametrize("log", [False, True])
def test_lines_rise_with_their_values_inside_the_plot(log: bool) -> None:
    drawing = draw_lines(lines((0.002, 0.5, 3.0, 700.0), log=log))
    points = places(drawing.traces[0].path)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)
    assert points[0][0] == drawing.left
    assert points[-1][0] == drawing.right
    assert all(drawing.top <= y <= drawing.bottom for _, y in points)
    assert len({tick.label for tick in drawing.y_ticks}) == len(drawing.y_ticks) > 2
    assert len(drawing.legend) == 1


def test_what_a_logarithm_cannot_show_is_left_out() -> None:
    drawing = draw_lines(lines((5.0, 0.0, -1.0, 2.0), log=True))
    assert len(places(drawing.traces[0].path)) == 2
    assert not draw_lines(lines((0.0, -1.0), log=True)).traces


def test_equal_values_and_single_ones_still_have_an_axis() -> None:
    for ys in ((2.0, 2.0, 2.0), (0.0,), (-1e-9, -1e-9)):
        drawing = draw_lines(lines(ys))
        assert len(drawing.y_ticks) >= 2
        assert all(drawing.top <= y <= drawing.bottom for _, y in places(drawing.traces[0].path))


def test_long_lines_are_thinned_but_keep_their_ends() -> None:
    drawing = draw_lines(lines(tuple(1 / place for place in range(1, 5001))))
    points = places(drawing.traces[0].path)
    assert 100 < len(points) <= 240
    assert points[0] == (drawing.left, drawing.top)
    assert points[-1][0] == drawing.right


def test_parts_lie_end_to_end_and_are_as_long_as_their_values() -> None:
    drawing = draw_stacks(
        Stacks("t", "s", "x", ("g", "c"), (Stack("a", "1 %", (1.0, 3.0), "4"), Stack("b", "", (0.0, 0.0), "0")))
    )
    (first, second), zero = drawing.bars[0].parts, drawing.bars[1].parts
    assert first[0] == drawing.left
    assert second[0] == pytest.approx(first[0] + first[1])
    assert second[1] == pytest.approx(3 * first[1], abs=0.3)
    assert [length for _, length in zero] == [0, 0]
    assert drawing.bars[1].name == "b"


def surfaces(high: float = 40.0) -> Contours:
    at = torch.linspace(-1, 1, 9, dtype=torch.float64)
    values = 0.5 + high * (at[:, None] ** 2 + at**2)
    return Contours("t", "s", ("α", "β"), 1.0, (("T", values), ("S", values + 1)), (("T − S", at * torch.ones(9, 1)),))


def test_panels_share_a_scale_and_differences_have_their_own_with_zero_in_the_middle() -> None:
    full, kept, difference = draw_contours(surfaces()).panels
    assert full.marks == kept.marks
    assert full.swatches == kept.swatches
    assert [tick.label for tick in difference.marks] == ["−1", "0", "1"]
    assert (full.low, full.high) == ("0.5", "80.5")


def test_a_scale_that_is_given_holds_for_values_within_it() -> None:
    own, wide = (
        draw_contours(replace(surfaces(), scale=scale, most=most)) for scale, most in ((None, None), ((0.1, 200), 4.0))
    )
    assert [tick.label for tick in wide.panels[0].marks][::2] == ["0.1", "200"]
    assert [tick.label for tick in wide.panels[2].marks] == ["−4", "0", "4"]
    assert wide.panels[0].bands[0] != own.panels[0].bands[0]
    assert own.panels[0].high == wide.panels[0].high


def test_bands_cover_the_plane_from_dark_in_the_middle_to_bright_at_the_corners() -> None:
    drawing = draw_contours(surfaces())
    colours = [colour for colour, _ in drawing.panels[0].bands]
    assert colours == [colour for colour, _, _ in drawing.panels[0].swatches]
    corners = places(drawing.panels[0].bands[-1][1])
    assert (drawing.left, drawing.top) in corners
    middle = places(drawing.panels[0].bands[0][1])
    assert all(abs(x - (drawing.left + drawing.right) / 2) < 20 for x, _ in middle)
    right = [place for colour, path in drawing.panels[2].bands[-1:] for place in places(path)]
    assert all(x > drawing.right - 30 for x, _ in right)


@pytest.mark.parametrize("high", [0.0, 1e-12, 40.0])
def test_a_page_with_all_three_is_sound(high: float) -> None:
    blocks = (lines((1.0, 2.0)), Stacks("t", "s", "x", ("g",), (Stack("a", "", (1.0,), "1"),)), surfaces(high))
    reader = check_page(render(Page("A & B", (), (Section("All", blocks),))))
    assert len([1 for attributes in reader.all("svg") if attributes.get("role") == "img"]) == 5

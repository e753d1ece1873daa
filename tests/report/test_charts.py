"""Plots: everything lies inside, in its right order, and axes enclose what they show."""

import pytest

from lcmat import dynamic
from lcmat.condensation import CONDENSERS
from lcmat.report import Bar, Curves, Forest, Page, Point, Section, Series, render
from lcmat.report.charts import draw_curves, draw_forest, marker
from lcmat.report.colours import SHAPES, line_colours, looks
from lcmat.selection import SELECTORS


def curves(*fractions: float, level: Point | None = None) -> Curves:
    points = tuple(Point(x, 50 + x, 40 + x, 60 + x) for x in fractions)
    return Curves("t", "s", "x", "y", (Series("craig", points), Series("uniform", points, dashed=True)), level)


def test_higher_accuracies_are_drawn_higher_and_larger_fractions_further_right() -> None:
    line = draw_curves(curves(1, 2, 5)).lines[0]
    assert [mark.x for mark in line.marks] == sorted(mark.x for mark in line.marks)
    assert [mark.y for mark in line.marks] == sorted((mark.y for mark in line.marks), reverse=True)
    for mark in line.marks:
        assert mark.low is not None
        assert mark.high is not None
        assert mark.high < mark.y < mark.low


def test_both_axes_say_what_they_are() -> None:
    chart = Curves("t", "s", "kept, in %", "accuracy, in %", (Series("craig", (Point(1, 50),)),))
    page = render(Page("p", (), (Section("s", (chart,)),)))
    assert "kept, in %</text>" in page
    assert "accuracy, in %</text>" in page
    assert draw_curves(chart).top > 16  # below the label


def test_a_band_joins_the_ends_of_all_intervals() -> None:
    line = draw_curves(curves(1, 2)).lines[0]
    first, last = line.marks
    ends = [(first.x, first.high), (last.x, last.high), (last.x, last.low), (first.x, first.low)]
    assert line.band == "M" + "L".join(f"{x:g},{y:g}" for x, y in ends) + "z"


def test_without_two_intervals_there_is_no_band() -> None:
    assert not draw_curves(curves(1)).lines[0].band
    points = (Point(1, 50, 40, 60), Point(2, 60))
    assert not draw_curves(Curves("t", "s", "x", "y", (Series("craig", points),))).lines[0].band


@pytest.mark.parametrize(("fractions", "log"), [((1, 2, 5), False), ((0.1, 1, 10), True)])
def test_the_axis_is_logarithmic_when_it_spans_a_decade(fractions: tuple[float, ...], log: bool) -> None:
    at = [tick.at for tick in draw_curves(curves(*fractions)).x_ticks]
    evenly = at[1] - at[0] == pytest.approx(at[2] - at[1], abs=0.2)
    assert evenly == log


def test_methods_at_one_fraction_do_not_cover_each_other() -> None:
    first, second = draw_curves(curves(1, 2)).lines
    assert first.marks[0].x != second.marks[0].x


def test_everything_lies_inside_the_plot_even_where_an_interval_leaves_the_scale() -> None:
    series = (Series("craig", (Point(2.0, 97.0, 60.0, 140.0), Point(10.0, 5.0, -30.0, 40.0))),)
    drawing = draw_curves(Curves("t", "s", "x", "y", series, Point(0.0, 98.0, 97.0, 99.0)))
    assert [tick.label for tick in drawing.y_ticks] == ["0", "20", "40", "60", "80", "100"]
    for mark in (*drawing.lines[0].marks, drawing.level):
        assert mark is not None
        for y in (mark.y, mark.low, mark.high):
            assert y is not None
            assert drawing.top <= y <= drawing.bottom


def test_labels_that_would_touch_are_left_out() -> None:
    labels = [tick.label for tick in draw_curves(curves(0.1, 0.11, 10)).x_ticks]
    assert labels == ["0.1", "", "10"]


def test_a_forest_marks_its_origin_between_losses_and_gains() -> None:
    bars = (Bar("a", "2 %", -3.0, -4.0, -2.0, ""), Bar("b", "2 %", 3.0, 1.0, 5.0, ""))
    drawing = draw_forest(Forest("t", "s", "x", bars, origin=0.0))
    assert drawing.origin is not None
    loss, gain = (bar.mark for bar in drawing.bars)
    assert loss.x < drawing.origin < gain.x
    assert loss.high is not None
    assert gain.low is not None
    assert loss.high < drawing.origin < gain.low
    assert drawing.bars[0].mark.y < drawing.bars[1].mark.y < drawing.bottom
    assert "−4" in [tick.label for tick in drawing.x_ticks]


def test_equal_values_still_have_an_axis() -> None:
    drawing = draw_forest(Forest("t", "s", "x", (Bar("a", "", 0.0, 0.0, 0.0, ""),), origin=0.0))
    assert len({tick.label for tick in drawing.x_ticks}) == len(drawing.x_ticks) >= 2


def test_long_names_are_cut_beside_their_values() -> None:
    drawing = draw_forest(Forest("t", "s", "x", (Bar("n" * 90, "2 %", 1.0, 0.0, 2.0, "+1.0 (+0.0 to +2.0)"),)))
    assert drawing.bars[0].name.endswith("n…")
    assert len(drawing.bars[0].name) + len(drawing.bars[0].text) <= 48


METHODS = list(dict.fromkeys(entry.name for kind in (SELECTORS, CONDENSERS, dynamic.BASELINES) for entry in kind))


def test_lines_of_several_methods_have_colours_of_their_own() -> None:
    names = ["craig", "dm", "gradmatch", "kip", "lcmat-s", "uniform", "random"]
    found = line_colours(names)
    coloured = [found[name] for name in names[:-2]]
    assert len(set(coloured)) == 5
    assert found["uniform"] == found["random"] == 0
    assert found["craig"] == looks(["craig"])["craig"].colour
    assert set(line_colours(METHODS).values()) == set(range(8))  # more than there are colours


def test_every_method_has_a_look_of_its_own_on_every_page() -> None:
    together = looks([*METHODS, "full"])
    assert len(set(together.values())) == len(together)
    assert all(looks([name])[name] == looks(["mine", name])[name] == together[name] for name in METHODS)
    assert all(together[name].colour == 0 for name in ("uniform", "random", "full"))
    assert looks(["uniform (classes as a)"])["uniform (classes as a)"] == together["uniform"]


def test_a_variant_has_its_methods_look_unless_another_has_it_on_this_page() -> None:
    own = looks(["dm"])["dm"]
    assert looks(["dm:real_batch=16"])["dm:real_batch=16"] == looks(["static:dm"])["static:dm"] == own
    several = looks(["dm:real_batch=16", "dm:real_batch=32", "dm, R = 5", "dm"])
    assert several["dm"] == own
    assert len({look.colour for look in several.values()}) == 4


def test_names_of_ones_own_differ_in_colour_while_there_are_colours() -> None:
    seven = looks([f"my own {place}" for place in range(7)])
    assert len({look.colour for look in seven.values()}) == 7
    many = looks([f"my own {place}" for place in range(35)])
    assert len(set(many.values())) == 35
    assert looks([f"my own {place}" for place in range(40)])  # more than there are looks


def test_markers_are_told_apart() -> None:
    assert len({marker(shape, 0, 0) for shape in SHAPES}) == len(SHAPES)


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of circle, square, diamond, triangle, wedge, got 'star'"):
        marker("star", 0, 0)

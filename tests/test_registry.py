from collections.abc import Sequence
from typing import Any, Literal

import pytest

from lcmat.registry import Option, Registry

SHAPES: Registry[Any, None] = Registry("shape", reserved={"seed"})


@SHAPES.add("circle", "round", facts=None)
def circle(
    size: int,
    *,
    radius: float = 1.0,
    corners: int = 0,
    filled: bool = False,
    colour: Literal["red", "blue"] = "red",
    limit: float | None = None,
    points: Sequence[int] = (),
    seed: int = 0,
) -> None: ...


def test_options_are_the_keyword_only_parameters_without_reserved_ones() -> None:
    entry = SHAPES.find("circle")
    assert list(entry.options) == ["radius", "corners", "filled", "colour", "limit", "points"]
    assert entry.options["limit"] == Option("limit", None, (float, type(None)))
    assert entry.accepts("seed")
    assert not entry.accepts("sed")
    assert entry.describe() == (
        "round (radius=1.0, corners=0, filled=False, colour='red', limit=None, points=())"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("radius", "0.5", 0.5),
        ("radius", "1e-3", 0.001),
        ("corners", "4", 4),
        ("filled", "yes", True),
        ("filled", "False", False),
        ("colour", "blue", "blue"),
        ("limit", "none", None),
        ("limit", "2", 2.0),
    ],
)
def test_options_parse_the_text_of_a_command_line(name: str, text: str, value: object) -> None:
    parsed = SHAPES.find("circle").options[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(("name", "text"), [("radius", "wide"), ("corners", "1.5"), ("filled", "1"), ("limit", "")])
def test_text_of_a_wrong_type_is_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"option {name} takes .*, got {text!r}"):
        SHAPES.find("circle").options[name].parse(text)


def test_values_are_checked_and_widened() -> None:
    checked = SHAPES.find("circle").check_options({"radius": 2, "limit": None, "filled": True, "points": [1]})
    assert checked == {"radius": 2.0, "limit": None, "filled": True, "points": [1]}
    assert type(checked["radius"]) is float


@pytest.mark.parametrize("options", [{"radius": "1"}, {"radius": True}, {"corners": 1.0}, {"filled": 1}])
def test_values_of_a_wrong_type_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"option .* takes .*, got"):
        SHAPES.find("circle").check_options(options)


def test_unknown_options_are_answered_with_the_valid_ones() -> None:
    with pytest.raises(TypeError, match=r"unknown option of circle 'radus'; did you mean 'radius'\? valid: radius, "):
        SHAPES.find("circle").check_options({"radus": 1.0})
    with pytest.raises(TypeError, match="unknown option of circle 'seed'"):
        SHAPES.find("circle").check_options({"seed": 1})


def test_unknown_names_are_answered_with_near_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown shape 'cirle'; did you mean 'circle'\? valid: circle"):
        SHAPES.find("cirle")
    with pytest.raises(ValueError, match=r"unknown shape 'CIRCLE'; did you mean 'circle'"):
        SHAPES.find("CIRCLE")
    with pytest.raises(ValueError, match="unknown shape 'xyz'; valid: circle"):
        SHAPES.find("xyz")
    with pytest.raises(ValueError, match="valid: none"):
        Registry("thing").find("x")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="shape 'circle' is registered twice"):
        SHAPES.add("circle", "again", facts=None)(circle)
    assert [entry.name for entry in SHAPES] == ["circle"]
    assert "circle" in SHAPES

"""The style sheet: colours that can be told from their background, in both schemes."""

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

import lcmat.report
from lcmat.report.heat import STRONGEST

Vector: TypeAlias = np.typing.NDArray[np.float64]

STYLE = (Path(lcmat.report.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
SCHEMES = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", STYLE, re.S)]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    bright, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark"])
def test_texts_and_lines_stand_out(scheme: dict[str, str]) -> None:
    texts = {"ink", "soft", "good", "bad"}
    lines = {f"c{place}" for place in range(8)}
    assert texts | lines <= set(scheme)
    for name in texts | lines:
        # WCAG 2: 4.5 for texts (1.4.3), 3 for what else must be seen (1.4.11).
        assert contrast(scheme[name], scheme["paper"]) >= (4.5 if name in texts else 3), name
    assert contrast(scheme["ink"], scheme["shade"]) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark"])
@pytest.mark.parametrize("colour", ["c1", "c2"])
def test_words_in_the_strongest_cell_of_a_heat_map_can_be_read(scheme: dict[str, str], colour: str) -> None:
    mixed = STRONGEST * channels(scheme[colour]) + (1 - STRONGEST) * channels(scheme["paper"])
    cell = "#" + "".join(f"{round(255 * float(share)):02x}" for share in mixed)
    assert contrast(scheme["ink"], cell) >= 4.5


# How those see colours whose eyes lack one kind of cone: Machado, Oliveira and Fernandes, IEEE TVCG 2009 (severity 1).
EYES: dict[str, Sequence[Sequence[float]]] = {
    "all cones": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "no red cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def channels(colour: str) -> Vector:
    return np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])


def lab(colour: str, eyes: Sequence[Sequence[float]]) -> Vector:
    """CIE L*a*b* (D65) of a colour as these eyes see it; distances in it are those that people see."""
    shares = channels(colour)
    light = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(eyes) @ light, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark"])
@pytest.mark.parametrize("eyes", EYES)
def test_the_colour_blind_can_tell_all_colours_apart(scheme: dict[str, str], eyes: str) -> None:
    colours = [lab(scheme[f"c{place}"], EYES[eyes]) for place in range(8)]
    nearest = min(float(np.linalg.norm(one - other)) for one, other in combinations(colours, 2))
    assert nearest > 15  # 2 can just be seen side by side


def test_there_are_two_schemes() -> None:
    assert len(SCHEMES) == 2

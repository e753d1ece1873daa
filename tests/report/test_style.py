"""The style sheet: colours that can be told from their background, in both schemes."""

import re
from pathlib import Path

import pytest

import lcmat.report

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
        assert contrast(scheme[name], scheme["paper"]) >= 4.5, name
    assert contrast(scheme["ink"], scheme["shade"]) >= 4.5


def test_there_are_two_schemes() -> None:
    assert len(SCHEMES) == 2

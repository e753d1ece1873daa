"""A page's description in, one self-contained HTML text out."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from lcmat.report.charts import draw_curves, draw_forest, marker
from lcmat.report.figures import Contours, Curves, Forest, HeatMap, Lines, Stacks
from lcmat.report.heat import draw_heat
from lcmat.report.page import (
    Block,
    Bullets,
    Code,
    Facts,
    Gallery,
    Page,
    Pictures,
    Section,
    Strip,
    Table,
    Text,
)
from lcmat.report.pictures import GAP, data_uri, strip_png
from lcmat.report.plots import draw_contours, draw_lines, draw_stacks

_KINDS = {Table: "table", Code: "code", Bullets: "bullets", Facts: "facts", Text: "text"}
_DRAWN: dict[type, tuple[str, Callable[[Any], Any]]] = {
    Curves: ("curves", draw_curves),
    Forest: ("forest", draw_forest),
    Lines: ("lines", draw_lines),
    Stacks: ("stacks", draw_stacks),
    Contours: ("contours", draw_contours),
    HeatMap: ("heat", draw_heat),
}
_SHORTEST = 6  # tiles that a row has room for at least, so that two pictures do not fill it


@dataclass(frozen=True)
class _DrawnStrip:
    strip: Strip
    source: str
    width: int
    height: int
    share: float


def render(page: Page) -> str:
    """The page as HTML that needs no other file and no network.

    All texts are escaped. Its one script sorts tables; the page's policy allows that script and no other, and without
    it the page shows the same.

    Example:
        >>> html = render(Page("A & B", ("Nothing was found.",), ()))
        >>> "<h1>A &amp; B</h1>" in html, "<script" in html
        (True, True)
    """
    sections = [section for section in page.sections if section.blocks]
    script = "\n" + resources.files("lcmat.report").joinpath("templates/sort.js").read_text(encoding="utf-8")
    return _template().render(
        page=page,
        sections=[_prepare(section) for section in sections],
        script=Markup(script),  # our own file, not a text of the page
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lcmat.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = _unbroken
    environment.globals["marker"] = marker
    return environment.get_template("page.html.jinja")


def _unbroken(text: str) -> str:
    """The text with spaces that no line ends at, between a number and what belongs to it."""
    return text.replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0").replace(" points", "\u00a0points")


def _prepare(section: Section) -> dict[str, Any]:
    return {"title": section.title, "blocks": [_prepare_block(block) for block in section.blocks]}


def _prepare_block(block: Block) -> tuple[str, Any]:
    """The name of the template's macro for a block, and what it draws."""
    if type(block) in _DRAWN:
        name, draw = _DRAWN[type(block)]
        return name, draw(block)
    if isinstance(block, Gallery):
        return "gallery", {
            "title": block.title,
            "open": block.open,
            "pictures": [(pictures.title, _prepare_strips(pictures)) for pictures in block.pictures],
        }
    return _KINDS[type(block)], block


def _prepare_strips(pictures: Pictures) -> list[_DrawnStrip]:
    """The strips as PNG, each as wide as its share of the longest, so that all tiles are of one size."""
    longest = max(_SHORTEST, *(len(strip.images) for strip in pictures.strips))
    drawn = []
    for strip in pictures.strips:
        if not len(strip.images):
            drawn.append(_DrawnStrip(strip, "", 0, 0, 0.0))
            continue
        content, width, height = strip_png(strip.images)
        whole = (width + GAP) * longest / len(strip.images) - GAP
        drawn.append(_DrawnStrip(strip, data_uri(content), width, height, width / whole))
    return drawn

"""Rendering only: the description of a page in, one HTML file that opens anywhere out."""

from lcmat.report.page import (
    Bar,
    Block,
    Bullets,
    Code,
    Curves,
    Facts,
    Forest,
    Gallery,
    Page,
    Pictures,
    Point,
    Section,
    Series,
    Strip,
    Table,
    Text,
)
from lcmat.report.render import render

__all__ = [
    "Bar",
    "Block",
    "Bullets",
    "Code",
    "Curves",
    "Facts",
    "Forest",
    "Gallery",
    "Page",
    "Pictures",
    "Point",
    "Section",
    "Series",
    "Strip",
    "Table",
    "Text",
    "render",
]

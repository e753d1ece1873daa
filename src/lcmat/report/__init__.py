"""Rendering only: the description of a page in, one HTML file that opens anywhere out."""

from lcmat.report.figures import Bar, Contours, Curves, Forest, HeatMap, Lines, Point, Series, Stack, Stacks, Trace
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
    command_section,
    join_pages,
)
from lcmat.report.render import render

__all__ = [
    "Bar",
    "Block",
    "Bullets",
    "Code",
    "Contours",
    "Curves",
    "Facts",
    "Forest",
    "Gallery",
    "HeatMap",
    "Lines",
    "Page",
    "Pictures",
    "Point",
    "Section",
    "Series",
    "Stack",
    "Stacks",
    "Strip",
    "Table",
    "Text",
    "Trace",
    "command_section",
    "join_pages",
    "render",
]

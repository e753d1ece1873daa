"""Tables for a terminal, for other programs and for Markdown."""

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lcmat.report.wording import in_words


def aligned(lines: Sequence[Sequence[str]], numeric: Collection[int] = ()) -> list[str]:
    """The lines of a table in columns, the numeric ones flush right.

    Example:
        >>> aligned([("method", "n"), ("craig", "12")], numeric={1})
        ['method   n', 'craig   12']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if place in numeric else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def with_protocol(
    lines: Sequence[Sequence[str]],
    protocol: Mapping[str, Any],
    notes: Sequence[str],
    *,
    title: str = "",
    numeric: Collection[int] = (),
) -> str:
    """A table under its heading, and below it the settings and notes that it is to be read with."""
    drawn = aligned(lines, numeric)
    settings = [f"{name}: {in_words(value)}" for name, value in protocol.items()]
    said = [f"note: {note}" for note in notes]
    rule = "-" * max(map(len, drawn))
    return "\n".join([*([title, ""] if title else []), drawn[0], rule, *drawn[1:], "", *settings, *said])


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    r"""Rows of the same columns as CSV; nothing where there are none.

    Example:
        >>> as_csv([{"name": "craig", "n": 3}])
        'name,n\ncraig,3\n'
    """
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    r"""A table as Markdown.

    Example:
        >>> print(as_markdown_table(["a", "b"], [["1", "x|y"]]))
        | a | b |
        | --- | --- |
        | 1 | x\|y |
    """
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)

"""What a page holds: frozen descriptions, without a word of HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from lcmat.report.figures import Contours, Curves, Forest, HeatMap, Lines, Stacks


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes:
        caption: what it shows.
        columns: headings.
        rows: one text for each column; the first column names the row.
        numeric: positions of the columns that are set flush right.
        tones: for each row 'good', 'bad' or '', the mark at its last cell; empty for none at all.
        folded: whether it stays closed until a reader opens it.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    tones: tuple[str, ...] = ()
    folded: bool = False

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"expected {len(self.columns)} texts in every row of the table {self.caption!r}")
        if self.tones and len(self.tones) != len(self.rows):
            raise ValueError(f"expected a tone for each of {len(self.rows)} rows, got {len(self.tones)}")


@dataclass(frozen=True, eq=False)
class Strip:
    """A row of pictures of one class: uint8 `[k, channels, height, width]`."""

    label: str
    note: str
    images: Tensor
    alt: str


@dataclass(frozen=True, eq=False)
class Pictures:
    """Strips of one subset."""

    title: str
    strips: tuple[Strip, ...]


@dataclass(frozen=True, eq=False)
class Gallery:
    """Pictures of several subsets of one size, side by side; folded away unless open."""

    title: str
    pictures: tuple[Pictures, ...]
    open: bool = True


@dataclass(frozen=True)
class Code:
    """Lines to copy."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and values: settings, versions."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


Block: TypeAlias = (
    Table | Curves | Forest | HeatMap | Lines | Stacks | Contours | Gallery | Code | Bullets | Facts | Text
)


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page under its own heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, eq=False)
class Page:
    """A whole page.

    Attributes:
        title: of the page and the browser's tab.
        lead: the finding, in plain sentences.
        sections: from top to bottom; those without blocks are left out.
        footer: a last line.
    """

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str = ""


def command_section(commands: Sequence[str]) -> Section:
    """The commands that make the results of a page again; without any the section is left out."""
    return Section("How to repeat it", (Code("\n".join(commands)),) if commands else ())


def join_pages(pages: Sequence[Page], title: str) -> Page:
    """Several pages as one: their findings first, then all their sections, each with the title of its page.

    Example:
        >>> one, other = Page("A", ("a wins.",), (Section("Results", ()),)), Page("B", (), ())
        >>> joined = join_pages([one, other], "Both")
        >>> joined.lead, [section.title for section in joined.sections]
        (('A: a wins.',), ['A: Results'])
    """
    lead = tuple(f"{page.title}: {sentence}" for page in pages for sentence in page.lead)
    sections = (Section(f"{page.title}: {part.title}", part.blocks) for page in pages for part in page.sections)
    return Page(title, lead, tuple(sections))

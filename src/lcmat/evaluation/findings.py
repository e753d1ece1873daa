"""What a comparison found, in the forms that all comparisons share: text, JSON, CSV, Markdown and a page."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lcmat import files
from lcmat.evaluation.statistics import Comparison, Estimate
from lcmat.report import Block, Facts, Page, render
from lcmat.report.plain import as_csv, as_markdown_table, with_protocol
from lcmat.report.wording import in_words, points, span


@dataclass(frozen=True, eq=False)
class Findings(ABC):
    """What a comparison found.

    Attributes:
        rows: one for each thing compared that has results.
        records: one for each training.
        protocol: all settings, in words and numbers.
        notes: what must be known to read the numbers rightly.
        name: of the data.
    """

    rows: tuple[Any, ...]
    records: list[dict[str, Any]]
    protocol: dict[str, Any]
    notes: tuple[str, ...]
    name: str

    @property
    @abstractmethod
    def title(self) -> str:
        """Of the page."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Headings of the table for a terminal."""

    @abstractmethod
    def headline(self) -> tuple[str, ...]:
        """The finding in plain sentences."""

    @abstractmethod
    def against_random(self, row: Any) -> Comparison | None:
        """The paired differences of a row to what is random, where there is something to compare with."""

    @abstractmethod
    def caption(self) -> str:
        """What the whole table shows."""

    @abstractmethod
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The whole table, its headings first."""

    @abstractmethod
    def plain(self, row: Any) -> dict[str, Any]:
        """A row as plain numbers and texts, without what it is against random."""

    @abstractmethod
    def page(self, commands: Sequence[str] = ()) -> Page:
        """The page.

        Args:
            commands: that make the results again, to be shown.
        """

    def plain_rows(self) -> list[dict[str, Any]]:
        """The rows as plain numbers and texts, for a table of another program."""
        compared = [(row, self.against_random(row)) for row in self.rows]
        return [
            {
                **self.plain(row),
                **numbers("to_random", pairs.difference if pairs else None),
                "verdict": pairs.verdict if pairs else "",
            }
            for row, pairs in compared
        ]

    def table(self) -> str:
        """The rows and the protocol as plain text."""
        return with_protocol([self.columns, *(row.texts() for row in self.rows)], self.protocol, self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Rows, records, protocol and notes as JSON has them."""
        rows = [asdict(row) for row in self.rows]
        return {"rows": rows, "records": self.records, "protocol": self.protocol, "notes": list(self.notes)}

    def as_markdown(self) -> str:
        """The findings, the whole table, notes and protocol."""
        heads, *lines = self.lines()
        facts = "\n".join(f"- {name}: {in_words(value)}" for name, value in self.protocol.items())
        listed = "\n".join(f"- {text}" for text in (*self.headline(), *self.notes))
        parts = [f"# {self.title}", listed, f"{self.caption()}.", as_markdown_table(heads, lines)]
        return "\n\n".join([*filter(None, parts), "## How it was measured", facts]) + "\n"

    def save_html(self, path: str | Path, *, commands: Sequence[str] = ()) -> Path:
        """Write the study as one HTML file that opens offline, atomically; returns the path.

        Args:
            path: of the file.
            commands: that make the results again, to be shown.
        """
        return files.write_text(path, render(self.page(commands)))

    def save(self, folder: Path, *, commands: Sequence[str] = ()) -> Path:
        """Write records.jsonl, results.json, results.csv, results.md and report.html; returns the path of the page."""
        records = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in self.records)
        files.write_text(folder / "records.jsonl", records)
        files.write_json(folder / "results.json", self.as_dict())
        files.write_text(folder / "results.csv", as_csv(self.plain_rows()))
        files.write_text(folder / "results.md", self.as_markdown())
        return self.save_html(folder / "report.html", commands=commands)

    def against(self, row: Any) -> tuple[str, str]:
        """The mean difference to what is random, and its interval, as texts."""
        found = self.against_random(row)
        if found is None:
            return "–", "–"
        return points(found.difference.mean), span(points(found.difference.low), points(found.difference.high))

    def facts(self) -> Block:
        """The protocol."""
        return Facts(tuple((name, in_words(value)) for name, value in self.protocol.items()))


def numbers(what: str, found: Estimate | None) -> dict[str, float | None]:
    """An estimate as columns of a table.

    Example:
        >>> numbers("accuracy", Estimate(2, 0.5, 0.1, 0.3, 0.7))
        {'accuracy': 0.5, 'accuracy_sd': 0.1, 'accuracy_low': 0.3, 'accuracy_high': 0.7}
    """
    parts = {"": "mean", "_sd": "sd", "_low": "low", "_high": "high"}
    return {f"{what}{ending}": None if found is None else getattr(found, name) for ending, name in parts.items()}


def most_processes(records: Iterable[Mapping[str, Any]]) -> int:
    """The most that shared the machine while one of the records was made."""
    return max((int(record.get("processes", 1)) for record in records), default=1)


def sharing_note(most: int) -> list[str]:
    """That so many processes shared the machine, where there was more than one."""
    return [f"Up to {most} processes shared the machine: seconds are not those of a single one."] if most > 1 else []


def missing_note(done: int, total: int, missing: Sequence[str]) -> list[str]:
    """What is not there yet, where anything is not."""
    if done == total:
        return []
    without = f" Without any run so far: {'; '.join(missing)}." if missing else ""
    return [f"Not finished: {done:,} of {total:,} runs are done; n says how many count.{without}"]

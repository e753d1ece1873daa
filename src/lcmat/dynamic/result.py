"""What a comparison of static and dynamic selection found, as rows, text and page."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from lcmat import files
from lcmat.dynamic.arms import Arm
from lcmat.evaluation.statistics import Estimate, compare, estimate
from lcmat.report import Curves, Facts, Page, Point, Section, Series, Table, Text, render
from lcmat.report.page import Block, Bullets
from lcmat.report.wording import in_words, percent, points, score, seconds, span

_COLUMNS = ("arm", "per epoch", "n", "accuracy", "sd", "95 % interval", "seconds", "share of choosing")
_REFERENCE = "random"
_ARMS = (
    "An arm with R = 5 chooses anew every five epochs. random is RS2 without replacement; infobatch prunes samples of "
    "small loss; a static arm is chosen once, by a proxy, whose time counts."
)


@dataclass(frozen=True)
class Row:
    """One arm at one fraction.

    Attributes:
        name: of the arm.
        fraction: of the data that an epoch visits; None where the arm decides.
        visited: share of the data that an epoch visited on average.
        accuracy: test accuracy after the last epoch, over the seeds.
        seconds: of everything but loading and testing, mean over the seeds.
        share: of choosing in these seconds: proxy, Signals and selection.
        select_share: of the selection alone in the training.
        curve: (mean seconds, accuracy) along the way.
    """

    name: str
    fraction: float | None
    visited: float
    accuracy: Estimate
    seconds: float
    share: float
    select_share: float
    curve: tuple[tuple[float, Estimate], ...]

    def texts(self) -> tuple[str, ...]:
        """The cells of its line in a table."""
        found = self.accuracy
        return (
            self.name, percent(self.visited), str(found.n), score(found.mean), score(found.sd),
            span(score(found.low), score(found.high)), seconds(self.seconds), percent(self.share),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Study:
    """What `lcmat.dynamic.compare` gives.

    Attributes:
        rows: one for each arm and fraction.
        records: one for each training.
        protocol: all settings, in words and numbers.
        notes: what must be known to read the numbers rightly.
        name: of the data.
    """

    rows: tuple[Row, ...]
    records: list[dict[str, Any]]
    protocol: dict[str, Any]
    notes: tuple[str, ...]
    name: str

    def headline(self) -> tuple[str, ...]:
        """The finding in plain sentences: each arm against random re-sampling of the same fraction."""
        sentences = [self._compared(row) for row in self.rows if row.fraction is not None and row.name != _REFERENCE]
        full = next((row for row in self.rows if row.name == "full"), None)
        if full is not None:
            sentences.append(
                f"Training on everything reaches {score(full.accuracy.mean)} % in {seconds(full.seconds)} s."
            )
        return tuple(sentence for sentence in sentences if sentence)

    def _compared(self, row: Row) -> str:
        own, other = (self._accuracies(name, row.fraction) for name in (row.name, _REFERENCE))
        if not other:
            return ""
        found = compare([own[seed] for seed in own], [other[seed] for seed in own])
        difference = found.difference
        verdict = {"better": "better than", "worse": "worse than", "one run": "not to be judged against"}.get(
            found.verdict, "not told apart from"
        )
        interval = f", interval {span(points(difference.low), points(difference.high))}" if difference.n > 1 else ""
        return (
            f"{row.name} at {percent(row.fraction or 1)}: {verdict} random re-sampling "
            f"({points(difference.mean)} points{interval}, n = {difference.n})."
        )

    def _accuracies(self, name: str, fraction: float | None) -> dict[int, float]:
        found = [record for record in self.records if (record["name"], record["fraction"]) == (name, fraction)]
        return {record["seed"]: record["accuracy"] for record in found}

    def table(self) -> str:
        """The rows and the protocol as plain text."""
        lines = [_COLUMNS, *(row.texts() for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        drawn = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        settings = [f"{name}: {in_words(value)}" for name, value in self.protocol.items()]
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([drawn[0], "-" * max(map(len, drawn)), *drawn[1:], "", *settings, *notes])

    def as_dict(self) -> dict[str, Any]:
        """Rows, records, protocol and notes as JSON has them."""
        rows = [asdict(row) for row in self.rows]
        return {"rows": rows, "records": self.records, "protocol": self.protocol, "notes": list(self.notes)}

    def save_html(self, path: str | Path) -> Path:
        """Write the study as one HTML file that opens offline, atomically; returns the path."""
        return files.write_text(path, render(self._page()))

    def _page(self) -> Page:
        columns = (*_COLUMNS, "selection alone")
        rows = tuple((*row.texts(), percent(row.select_share)) for row in self.rows)
        caption = (
            "Test accuracy in % after the last epoch; seconds of choosing and training; choosing (proxy, Signals, "
            "selection) as a share of these seconds, and the selection alone as a share of the training"
        )
        blocks: list[Block] = [Table(caption, columns, rows, tuple(range(1, len(columns))))]
        blocks += _curves(self.rows)
        machine = sorted({str(record["machine"]) for record in self.records})
        facts = [(name, in_words(value)) for name, value in self.protocol.items()]
        sections = (
            Section("Results", tuple(blocks)),
            Section("Notes", (Bullets(self.notes),) if self.notes else ()),
            Section("How it was measured", (Text(_ARMS), Facts((*facts, ("measured on", "; ".join(machine)))))),
        )
        lead = self.headline() or ("There is no random re-sampling to compare with.",)
        return Page(f"Choosing while training: {self.name}", lead, sections)


def _curves(rows: Sequence[Row]) -> list[Block]:
    """Accuracy against seconds, one figure for each fraction, with the arms that have none in each of them."""
    charts: list[Block] = []
    for fraction in dict.fromkeys(row.fraction for row in rows if row.fraction is not None):
        shown = [row for row in rows if row.fraction in {fraction, None}]
        series = tuple(
            Series(row.name, tuple(Point(x, 100 * y.mean, _percent(y.low), _percent(y.high)) for x, y in row.curve),
                   dashed=row.name.startswith("random"))
            for row in shown
        )  # fmt: skip
        summary = "; ".join(f"{row.name}: {score(row.accuracy.mean)} % after {seconds(row.seconds)} s" for row in shown)
        title = f"Time to accuracy, {percent(fraction)} per epoch"
        y_label = "test accuracy in %, with 95 % t-intervals"
        charts.append(Curves(title, summary, "seconds of choosing and training", y_label, series))
    return charts


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def make_rows(arms: Sequence[Arm], records: Sequence[dict[str, Any]]) -> tuple[Row, ...]:
    """One row for each arm, from the records of its seeds."""
    rows = []
    for arm in arms:
        own = [record for record in records if (record["name"], record["fraction"]) == (arm.name, arm.fraction)]
        spent = [sum(record["seconds"].values()) for record in own]
        choosing = [sum(value for name, value in record["seconds"].items() if name != "train") for record in own]
        selecting = [record["seconds"].get("choice", 0.0) + record["seconds"]["select"] for record in own]
        epochs = own[0]["curve"][-1][0]
        rows.append(
            Row(
                name=arm.name,
                fraction=arm.fraction,
                visited=fmean(record["visits"] for record in own) / epochs / own[0]["samples"],
                accuracy=estimate([record["accuracy"] for record in own]),
                seconds=fmean(spent),
                share=sum(choosing) / sum(spent),
                select_share=sum(selecting) / sum(record["seconds"]["train"] for record in own),
                curve=tuple(
                    (fmean(look[1] for look in looks), estimate([look[2] for look in looks]))
                    for looks in zip(*(record["curve"] for record in own), strict=True)
                ),
            )
        )
    return tuple(rows)

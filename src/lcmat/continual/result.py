"""What a comparison of memories found, as rows, text and page."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from lcmat import files
from lcmat.continual.metrics import average_accuracy, forgetting
from lcmat.evaluation.rows import in_points
from lcmat.evaluation.statistics import Comparison, Estimate, compare, estimate
from lcmat.report import (
    Bar,
    Block,
    Bullets,
    Curves,
    Facts,
    Forest,
    Page,
    Point,
    Section,
    Series,
    Table,
    command_section,
    render,
)
from lcmat.report.plain import with_protocol
from lcmat.report.wording import in_words, listed, points, score, seconds, span

_COLUMNS = ("filled by", "n", "last accuracy", "sd", "95 % interval", "average", "forgetting", "memory", "seconds")
_BASELINES = {"selection": "uniform", "condensation": "random"}
_VERDICTS = {
    "better": "Better than",
    "worse": "Worse than",
    "not told apart": "Not told apart from",
    "one run": "Not to be judged against",
}
_SPELLED_OUT = 6  # comparisons that a reader takes in one by one
_LEGIBLE = 5  # lines whose intervals can be told apart in one figure
_TITLES = {"selection": "Selection methods", "condensation": "Condensation methods"}


@dataclass(frozen=True)
class Row:
    """One way of filling the memory.

    Attributes:
        name: of the selector or condenser.
        kind: 'selection' or 'condensation'.
        seeds: of its walks.
        last: accuracy after the last step, of each seed.
        average: over the steps, over the seeds.
        forgetting: after the last step, over the seeds.
        by_step: accuracy after each step, over the seeds, with how many classes had been seen on average.
        matrix: mean accuracy after each step on the classes of each step so far.
        memory: places taken at the end, mean over the seeds.
        seconds: of filling and training, mean over the seeds.
    """

    name: str
    kind: str
    seeds: tuple[int, ...]
    last: tuple[float, ...]
    average: Estimate
    forgetting: Estimate
    by_step: tuple[tuple[float, Estimate], ...]
    matrix: tuple[tuple[float, ...], ...]
    memory: float
    seconds: float

    def texts(self) -> tuple[str, ...]:
        """The cells of its line in a table."""
        last = estimate(self.last)
        return (
            self.name, str(last.n), score(last.mean), score(last.sd), span(score(last.low), score(last.high)),
            score(self.average.mean), score(self.forgetting.mean), f"{self.memory:,.0f}", seconds(self.seconds),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Study:
    """What `lcmat.continual.run` gives.

    Attributes:
        rows: one for each way of filling the memory.
        records: one for each step of each walk.
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
        """The finding in plain sentences: each memory against a random one of its kind, after the last step."""
        found = [(row, pairs) for row in self.rows if (pairs := self.against_random(row))]
        sentences = []
        for kind, baseline in _BASELINES.items():
            own = [(row, pairs) for row, pairs in found if row.kind == kind]
            for verdict in dict.fromkeys(pairs.verdict for _, pairs in own):
                names = [
                    row.name + (f" ({in_points(pairs.difference)})" if len(found) <= _SPELLED_OUT else "")
                    for row, pairs in own
                    if pairs.verdict == verdict
                ]
                sentences.append(f"{_VERDICTS[verdict]} {baseline} after the last step: {listed(names)}.")
        return tuple(sentences)

    def against_random(self, row: Row) -> Comparison | None:
        """The paired differences to a random memory of the same kind after the last step, where there is one."""
        baseline = next((other for other in self.rows if other.name == _BASELINES.get(row.kind)), None)
        return None if baseline is None or baseline is row else compare(row.last, baseline.last)

    def table(self) -> str:
        """The rows and the protocol as plain text."""
        return with_protocol([_COLUMNS, *(row.texts() for row in self.rows)], self.protocol, self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Rows, records, protocol and notes as JSON has them."""
        rows = [asdict(row) for row in self.rows]
        return {"rows": rows, "records": self.records, "protocol": self.protocol, "notes": list(self.notes)}

    def save_html(self, path: str | Path, *, commands: Sequence[str] = ()) -> Path:
        """Write the study as one HTML file that opens offline, atomically; returns the path.

        Args:
            path: of the file.
            commands: that make the results again, to be shown.
        """
        return files.write_text(path, render(self._page(commands)))

    def _page(self, commands: Sequence[str]) -> Page:
        caption = (
            "Test accuracy in % over all classes so far: after the last step, and averaged over the steps; forgetting "
            "in points; samples in the memory; seconds of filling and training; paired differences in points to a "
            "random memory (uniform or random) after the last step"
        )
        columns = (*_COLUMNS, "to random", "its interval")
        lines = tuple((*row.texts(), *self._against(row)) for row in self.rows)
        table = Table(caption, columns, lines, tuple(range(1, len(columns))))
        facts = [(name, in_words(value)) for name, value in self.protocol.items()]
        machines = sorted({str(record["machine"]) for record in self.records})
        sections = (
            Section("Results", (table, *self._figures())),
            Section("Notes", (Bullets(self.notes),) if self.notes else ()),
            Section("Accuracy on the classes of each step", tuple(_matrix_table(row) for row in self.rows)),
            Section("How it was measured", (Facts((*facts, ("measured on", "; ".join(machines)))),)),
            command_section(commands),
        )
        lead = self.headline() or ("There is no random memory to compare with.",)
        return Page(f"Memories for class-incremental learning: {self.name}", lead, sections)

    def _against(self, row: Row) -> tuple[str, str]:
        found = self.against_random(row)
        if found is None:
            return "–", "–"
        return points(found.difference.mean), span(points(found.difference.low), points(found.difference.high))

    def _figures(self) -> list[Block]:
        """A figure for selection methods and one for condensation methods, each with intervals after the last step."""
        figures: list[Block] = []
        for kind, title in _TITLES.items():
            rows = [row for row in self.rows if row.kind == kind]
            if rows:
                figures += [_course(title, rows), _end(title, rows)]
        return figures


def _course(title: str, rows: Sequence[Row]) -> Curves:
    legible = len(rows) <= _LEGIBLE
    series = tuple(
        Series(
            row.name,
            tuple(_point(x, y, interval=legible) for x, y in row.by_step),
            dashed=row.name in _BASELINES.values(),
        )
        for row in rows
    )
    summary = "; ".join(f"{row.name}: {score(estimate(row.last).mean)} % after the last step" for row in rows)
    y_label = "test accuracy in %, " + ("with 95 % t-intervals" if legible else "mean over the seeds")
    return Curves(title, summary, "classes seen", y_label, series)


def _end(title: str, rows: Sequence[Row]) -> Forest:
    bars = []
    for row in rows:
        found = estimate(row.last)
        point = _point(0.0, found, interval=True)
        text = score(found.mean) + (f" ({span(score(found.low), score(found.high))})" if found.n > 1 else "")
        bars.append(Bar(row.name, f"n = {found.n}", point.y, point.low, point.high, text))
    summary = "; ".join(f"{bar.name}: {bar.text}" for bar in bars)
    return Forest(f"{title}, after the last step", summary, "test accuracy in %, with 95 % t-intervals", tuple(bars))


def _point(x: float, y: Estimate, *, interval: bool) -> Point:
    low, high = (100 * end if interval and end is not None else None for end in (y.low, y.high))
    return Point(x, 100 * y.mean, low, high)


def _matrix_table(row: Row) -> Table:
    steps = len(row.matrix)
    heads = ("after step", *(f"classes of {number + 1}" for number in range(steps)))
    body = tuple(
        (str(number + 1), *map(score, line), *([""] * (steps - len(line)))) for number, line in enumerate(row.matrix)
    )
    return Table(f"{row.name}: mean over {len(row.seeds)} seeds, in %", heads, body, tuple(range(1, steps + 1)))


def make_rows(records: Sequence[dict[str, Any]]) -> tuple[Row, ...]:
    """One row for each way of filling, from the records of all its steps."""
    return tuple(
        _make_row(name, [record for record in records if record["fill"] == name])
        for name in dict.fromkeys(record["fill"] for record in records)
    )


def _make_row(name: str, records: Sequence[dict[str, Any]]) -> Row:
    walks = {seed: list(own) for seed, own in groupby(records, key=lambda record: record["seed"])}
    steps = list(zip(*walks.values(), strict=True))
    matrices = [[record["accuracies"] for record in walk] for walk in walks.values()]
    return Row(
        name=name,
        kind=records[0]["kind"],
        seeds=tuple(walks),
        last=tuple(walk[-1]["accuracy"] for walk in walks.values()),
        average=estimate([average_accuracy([record["accuracy"] for record in walk]) for walk in walks.values()]),
        forgetting=estimate([forgetting(matrix) for matrix in matrices]),
        by_step=tuple(
            (fmean(record["seen"] for record in own), estimate([record["accuracy"] for record in own])) for own in steps
        ),
        matrix=tuple(
            tuple(fmean(matrix[t][j] for matrix in matrices) for j in range(t + 1)) for t in range(len(steps))
        ),
        memory=fmean(walk[-1]["memory"] for walk in walks.values()),
        seconds=fmean(sum(sum(record["seconds"].values()) for record in walk) for walk in walks.values()),
    )

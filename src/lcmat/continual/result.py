"""What a comparison of memories found, as rows, text and page."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Any

from lcmat.continual.metrics import average_accuracy, forgetting
from lcmat.evaluation.findings import Findings, numbers
from lcmat.evaluation.rows import in_points
from lcmat.evaluation.statistics import Comparison, Estimate, compare, estimate
from lcmat.report import (
    Bar,
    Block,
    Bullets,
    Curves,
    Forest,
    Page,
    Point,
    Section,
    Series,
    Table,
    command_section,
)
from lcmat.report.wording import listed, score, seconds, span

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


class Study(Findings):
    """What `lcmat.continual.run` gives: a row for each way of filling the memory, a record for each step of a walk."""

    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """Of the page."""
        return f"Memories for class-incremental learning: {self.name}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of the table for a terminal."""
        return _COLUMNS

    def headline(self) -> tuple[str, ...]:
        """The finding in plain sentences: each memory against a random one of its kind, after the last step."""
        found = [(row, pairs) for row in self.rows if (pairs := self.against_random(row))]
        sentences = []
        for kind, baseline in _BASELINES.items():
            own = [(row, pairs) for row, pairs in found if row.kind == kind]
            for verdict in (known for known in _VERDICTS if known in {pairs.verdict for _, pairs in own}):
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
        if baseline is None or baseline is row:
            return None
        own, other = (dict(zip(found.seeds, found.last, strict=True)) for found in (row, baseline))
        seeds = [seed for seed in own if seed in other]
        return compare([own[seed] for seed in seeds], [other[seed] for seed in seeds]) if seeds else None

    def caption(self) -> str:
        """What the whole table shows."""
        return (
            "Test accuracy in % over all classes so far: after the last step, and averaged over the steps; forgetting "
            "in points; samples in the memory; seconds of filling and training; paired differences in points to a "
            "random memory (uniform or random) after the last step"
        )

    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The whole table, its headings first."""
        heads = (*_COLUMNS, "to random", "its interval")
        return heads, *((*row.texts(), *self.against(row)) for row in self.rows)

    def plain(self, row: Row) -> dict[str, Any]:
        """A row as plain numbers and texts."""
        return {
            "name": row.name,
            "kind": row.kind,
            "n": len(row.last),
            **numbers("last", estimate(row.last)),
            **numbers("average", row.average),
            **numbers("forgetting", row.forgetting),
            "memory": row.memory,
            "seconds": row.seconds,
        }

    def page(self, commands: Sequence[str] = ()) -> Page:
        """The page, with the commands that make the results again."""
        columns, *lines = self.lines()
        table = Table(self.caption(), columns, tuple(lines), tuple(range(1, len(columns))))
        sections = (
            Section("Results", (table, *self._figures())),
            Section("Notes", (Bullets(self.notes),) if self.notes else ()),
            Section("Accuracy on the classes of each step", tuple(_matrix_table(row) for row in self.rows)),
            Section("How it was measured", (self.facts(),)),
            command_section(commands),
        )
        lead = self.headline() or (
            "There is no random memory to compare with; `uniform` or `random` among what fills would be one.",
        )
        return Page(self.title, lead, sections)

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


def make_rows(names: Sequence[str], records: Sequence[dict[str, Any]]) -> tuple[Row, ...]:
    """One row for each way of filling that has records, from those of all steps of its walks."""
    own = {name: [record for record in records if record["fill"] == name] for name in names}
    return tuple(_make_row(name, found) for name, found in own.items() if found)


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

"""What a comparison of static and dynamic selection found, as rows, text and page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lcmat.dynamic.arms import Arm
from lcmat.dynamic.baselines import BASELINES
from lcmat.evaluation.findings import Findings, numbers
from lcmat.evaluation.rows import in_points
from lcmat.evaluation.statistics import Comparison, Estimate, compare, estimate
from lcmat.report import (
    Block,
    Bullets,
    Curves,
    Lines,
    Page,
    Point,
    Section,
    Series,
    Table,
    Text,
    Trace,
    command_section,
)
from lcmat.report.colours import line_colours
from lcmat.report.wording import hundredfold, listed, percent, score, seconds, span

_COLUMNS = ("arm", "per epoch", "n", "accuracy", "sd", "95 % interval", "seconds", "choosing")
_REFERENCE = "random"
_SPELLED_OUT = 6  # comparisons that a reader takes in one by one
_VERDICTS = {"better": "better", "worse": "worse", "not told apart": "not told apart", "one run": "not to be judged"}
_ARMS = (
    "An arm with R = 5 chooses anew every five epochs. random is RS2 without replacement; infobatch prunes samples of "
    "small loss; a static arm is chosen once, by a proxy, whose time counts."
)


@dataclass(frozen=True)
class Row:
    """One arm at one fraction.

    Attributes:
        name: of the arm.
        method: the selector or baseline.
        baseline: whether it is one of these.
        fraction: of the data that an epoch visits; None where the arm decides.
        visited: share of the data that an epoch visited on average.
        accuracy: test accuracy after the last epoch, over the seeds.
        seconds: of everything but loading and testing, mean over the seeds.
        share: of choosing in these seconds: proxy, Signals and selection.
        select_share: of the selection alone in the training.
        training_passes: over the whole data, each sample that is trained on counted, the proxy's training included.
        forward_passes: over the whole data, without gradients, to choose by.
        curve: (mean seconds, accuracy) along the way.
    """

    name: str
    method: str
    baseline: bool
    fraction: float | None
    visited: float
    accuracy: Estimate
    seconds: float
    share: float
    select_share: float
    training_passes: float
    forward_passes: float
    curve: tuple[tuple[float, Estimate], ...]

    def texts(self) -> tuple[str, ...]:
        """The cells of its line in a table."""
        found = self.accuracy
        return (
            self.name, percent(self.visited), str(found.n), score(found.mean), score(found.sd),
            span(score(found.low), score(found.high)), seconds(self.seconds), percent(self.share),
        )  # fmt: skip

    def effort(self) -> tuple[str, ...]:
        """What choosing and training took, as the cells of the whole table."""
        return percent(self.select_share), f"{self.training_passes:.3g} + {self.forward_passes:.3g}"


class Study(Findings):
    """What `lcmat.dynamic.compare` gives: a row for each arm and fraction, a record for each training."""

    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """Of the page."""
        return f"Choosing while training: {self.name}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of the table for a terminal."""
        return _COLUMNS

    def headline(self) -> tuple[str, ...]:
        """The finding in plain sentences: each arm against random re-sampling of the same fractions."""
        found = [(row, pairs) for row in self.rows if (pairs := self.against_random(row))]
        names = dict.fromkeys(row.name for row, _ in found)
        sentences = [self._compared(name) for name in names] if len(names) <= _SPELLED_OUT else list(_grouped(found))
        full = next((row for row in self.rows if row.name == "full"), None)
        if full is not None:
            sentences.append(
                f"Training on everything reaches {score(full.accuracy.mean)} % in {seconds(full.seconds)} s."
            )
        return tuple(sentence for sentence in sentences if sentence)

    def _compared(self, name: str) -> str:
        """The verdicts of one arm; fractions of one verdict stand together."""
        found = [(row, pairs) for row in self.rows if row.name == name and (pairs := self.against_random(row))]
        spelled_out = sum(self.against_random(row) is not None for row in self.rows) <= _SPELLED_OUT
        parts = []
        for verdict in dict.fromkeys(pairs.verdict for _, pairs in found):
            sizes = [
                percent(row.visited) + (f" ({in_points(pairs.difference)})" if spelled_out else "")
                for row, pairs in found
                if pairs.verdict == verdict
            ]
            parts.append(f"{_VERDICTS[verdict]} at {listed(sizes)}")
        return f"{name}, against random re-sampling: {'; '.join(parts)}." if parts else ""

    def against_random(self, row: Row) -> Comparison | None:
        """The paired differences of an arm to random re-sampling of the same fraction, where there is one."""
        if row.fraction is None or row.name == _REFERENCE:
            return None
        own, other = (self._accuracies(name, row.fraction) for name in (row.name, _REFERENCE))
        seeds = [seed for seed in own if seed in other]
        return compare([own[seed] for seed in seeds], [other[seed] for seed in seeds]) if seeds else None

    def _accuracies(self, name: str, fraction: float | None) -> dict[int, float]:
        found = [record for record in self.records if (record["name"], record["fraction"]) == (name, fraction)]
        return {record["seed"]: record["accuracy"] for record in found}

    def caption(self) -> str:
        """What the whole table shows."""
        return (
            "Test accuracy in % after the last epoch; seconds of choosing and training; choosing (proxy, Signals, "
            "selection) as a share of these seconds, and the selection alone as a share of the training; passes over "
            "the whole data, in training (a proxy's included) + forward only, to choose by; paired differences in "
            "points to random re-sampling"
        )

    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The whole table, its headings first."""
        heads = (*_COLUMNS, "selection", "passes", "to random", "its interval")
        return heads, *((*row.texts(), *row.effort(), *self.against(row)) for row in self.rows)

    def plain(self, row: Row) -> dict[str, Any]:
        """A row as plain numbers and texts."""
        return {
            "name": row.name,
            "method": row.method,
            "fraction": row.fraction,
            "visited": row.visited,
            "n": row.accuracy.n,
            **numbers("accuracy", row.accuracy),
            "seconds": row.seconds,
            "choosing_share": row.share,
            "selection_share": row.select_share,
            "training_passes": row.training_passes,
            "forward_passes": row.forward_passes,
        }

    def page(self, commands: Sequence[str] = ()) -> Page:
        """The page, with the commands that make the results again."""
        columns, *rows = self.lines()
        table = Table(self.caption(), columns, tuple(rows), tuple(range(1, len(columns))))
        sections = (
            Section("Results", (table, *_shares(self.rows))),
            Section("Time to accuracy", tuple(_times(self.rows))),
            Section("Notes", (Bullets(self.notes),) if self.notes else ()),
            Section("How it was measured", (Text(_ARMS), self.facts())),
            command_section(commands),
        )
        lead = self.headline() or (
            "There is no random re-sampling to compare with; `random` among the methods would be it.",
        )
        return Page(self.title, lead, sections)


def _grouped(found: Sequence[tuple[Row, Comparison]]) -> Iterator[str]:
    """The arms of one fraction and verdict together: with many arms, a sentence for each would hide the finding."""
    for fraction in dict.fromkeys(row.fraction for row, _ in found):
        own = [(row, pairs.verdict) for row, pairs in found if row.fraction == fraction]
        parts = [
            f"{_VERDICTS[verdict]}: {'; '.join(row.name for row, other in own if other == verdict)}"
            for verdict in _VERDICTS
            if verdict in {found for _, found in own}
        ]
        yield from (f"Against random re-sampling at {percent(own[0][0].visited)}, {part}." for part in parts)


def _families(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The arms of each selector, with the baselines beside them: more in one figure could not be told apart."""
    others = [row for row in rows if row.baseline]
    selectors = dict.fromkeys(row.method for row in rows if not row.baseline)
    return {method: [*(row for row in rows if row.method == method), *others] for method in selectors} or {"": others}


def _shares(rows: Sequence[Row]) -> list[Block]:
    """Accuracy against what an epoch visits, a figure for each selector."""
    charts: list[Block] = []
    for method, family in _families(rows).items():
        shown = [row for row in family if row.fraction is not None]
        if not shown:
            continue
        series = tuple(
            Series(
                name,
                tuple(
                    Point(
                        100 * row.visited,
                        100 * row.accuracy.mean,
                        hundredfold(row.accuracy.low),
                        hundredfold(row.accuracy.high),
                    )
                    for row in shown
                    if row.name == name
                ),
                dashed=name.startswith(_REFERENCE),
            )
            for name in dict.fromkeys(row.name for row in shown)
        )
        full = next((row.accuracy for row in rows if row.name == "full"), None)
        level = None if full is None else Point(100, 100 * full.mean, hundredfold(full.low), hundredfold(full.high))
        summary = "; ".join(f"{row.name} at {percent(row.visited)}: {score(row.accuracy.mean)} %" for row in shown)
        title = f"Accuracy, {method}" if method else "Accuracy"
        y_label = "test accuracy in %, with 95 % t-intervals"
        charts.append(Curves(title, summary, "visited in an epoch, in %", y_label, series, level, "full"))
    return charts


def _times(rows: Sequence[Row]) -> list[Block]:
    """Accuracy against seconds, a figure for each selector and fraction, with the arms that have none in each."""
    charts: list[Block] = []
    for fraction in dict.fromkeys(row.fraction for row in rows if row.fraction is not None):
        for method, family in _families(rows).items():
            shown = [row for row in family if row.fraction in {fraction, None}]
            style = line_colours(row.name for row in shown if row.method != _REFERENCE)  # which has the neutral colour
            traces = tuple(
                Trace(
                    row.name,
                    tuple(x for x, _ in row.curve),
                    tuple(100 * y.mean for _, y in row.curve),
                    style.get(row.name, 0),
                    0 if row.name in style else 1 if row.name == _REFERENCE else 2,
                )
                for row in shown
            )
            title = f"{method}, {percent(fraction)} per epoch" if method else f"{percent(fraction)} per epoch"
            summary = "; ".join(
                f"{row.name}: {score(row.accuracy.mean)} % after {seconds(row.seconds)} s" for row in shown
            )
            x_label, y_label = "seconds of choosing and training", "test accuracy in %, mean over the seeds"
            charts.append(Lines(title, summary, x_label, y_label, traces, log_x=True))
    return charts


def make_rows(arms: Sequence[Arm], records: Sequence[dict[str, Any]]) -> tuple[Row, ...]:
    """One row for each arm that has records, from those of its seeds."""
    rows = []
    for arm in arms:
        own = [record for record in records if (record["name"], record["fraction"]) == (arm.name, arm.fraction)]
        if not own:
            continue
        spent = [sum(record["seconds"].values()) for record in own]
        choosing = [sum(value for name, value in record["seconds"].items() if name != "train") for record in own]
        selecting = [record["seconds"].get("choice", 0.0) + record["seconds"]["select"] for record in own]
        epochs, proxy = own[0]["curve"][-1][0], own[0]["settings"]["proxy_epochs"] if arm.static else 0
        passes = fmean(record["visits"] for record in own) / own[0]["samples"]
        rows.append(
            Row(
                name=arm.name,
                method=arm.method,
                baseline=arm.method in BASELINES,
                fraction=arm.fraction,
                visited=passes / epochs,
                accuracy=estimate([record["accuracy"] for record in own]),
                seconds=fmean(spent),
                share=sum(choosing) / sum(spent),
                select_share=sum(selecting) / sum(record["seconds"]["train"] for record in own),
                training_passes=passes + proxy,
                forward_passes=arm.forward_passes(epochs),
                curve=tuple(
                    (fmean(look[1] for look in looks), estimate([look[2] for look in looks]))
                    for looks in zip(*(record["curve"] for record in own), strict=True)
                ),
            )
        )
    return tuple(rows)

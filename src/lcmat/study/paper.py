"""The paper's values beside ours."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lcmat.evaluation import Row


@dataclass(frozen=True)
class PaperValue:
    """One value of a table of the paper.

    Attributes:
        data: name of the data set, as studies call it.
        amount: share of the data, or samples of each class.
        method: as studies write it.
        net: that was trained; empty for times.
        value: accuracy in per cent, or seconds.
        sd: standard deviation of the accuracy; None for times.
    """

    data: str
    amount: float
    method: str
    net: str
    value: float
    sd: float | None


@dataclass(frozen=True)
class Beside:
    """One of our results beside the paper's; accuracies in per cent, or seconds.

    Attributes:
        data: name of the data set.
        amount: share of the data, or samples of each class.
        method: as the study calls it.
        net: that was trained; empty for times.
        n: our independent runs.
        ours: mean of them.
        sd: standard deviation; None with a single run.
        paper: the paper's mean; None where it gives none.
        paper_sd: its standard deviation.
        difference: ours − paper.
        low: lower end of our 95 % t-interval, less the paper's mean, which is taken as it is; None with a single run.
        high: upper end, likewise.
    """

    data: str
    amount: float
    method: str
    net: str
    n: int
    ours: float
    sd: float | None
    paper: float | None = None
    paper_sd: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None


class HasTime(Protocol):
    """What took so long, over so many seeds."""

    @property
    def n(self) -> int:
        """Seeds."""

    @property
    def total(self) -> float:
        """Seconds, mean over them."""


def read_paper(path: Path) -> tuple[PaperValue, ...]:
    """The values of a CSV file with the columns data, amount, method, net, value and sd.

    Raises:
        ValueError: naming the line that is no value.
    """
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                sd = float(row["sd"]) if row["sd"] else None
                found.append(
                    PaperValue(row["data"], float(row["amount"]), row["method"], row["net"], float(row["value"]), sd)
                )
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path}:{number}: expected data, amount, method, net, value, sd: {error}") from None
    return tuple(found)


def compare_rows(rows: Sequence[tuple[str, float, Row]], paper: Sequence[PaperValue]) -> Iterator[Beside]:
    """Our accuracies beside the paper's; nothing where a study has no table of the paper."""
    known = {(value.data, value.amount, value.method, value.net): value for value in paper}
    for data, amount, row in rows if paper else ():
        sd = None if row.sd is None else 100 * row.sd
        value = known.get((data, amount, row.name, row.net))
        yield _beside(data, amount, row.name, row.net, row.n, 100 * row.mean, sd, (row.low, row.high), value)


def compare_times(times: Sequence[tuple[str, float, str, HasTime]], paper: Sequence[PaperValue]) -> Iterator[Beside]:
    """Our seconds beside the paper's."""
    known = {(value.data, value.amount, value.method): value for value in paper if not value.net}
    for data, amount, method, time in times if paper else ():
        value = known.get((data, amount, method))
        yield _beside(data, amount, method, "", time.n, time.total, None, (None, None), value)


def _beside(
    data: str,
    amount: float,
    method: str,
    net: str,
    n: int,
    ours: float,
    sd: float | None,
    interval: tuple[float | None, float | None],
    value: PaperValue | None,
) -> Beside:
    if value is None:
        return Beside(data, amount, method, net, n, ours, sd)
    low, high = (None if end is None else 100 * end - value.value for end in interval)
    return Beside(data, amount, method, net, n, ours, sd, value.value, value.sd, ours - value.value, low, high)

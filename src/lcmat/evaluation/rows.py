"""The rows of a report: one for each name, size and network, made from the records, and their texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from lcmat.evaluation import curve
from lcmat.evaluation.plan import Entry
from lcmat.evaluation.statistics import Estimate, compare, estimate
from lcmat.report.wording import percent, points, score, seconds, span

NUMERIC = {"n", "accuracy", "interval", "− uniform", "its interval", "won/tied/lost", "s/training", "oracle"}


@dataclass(frozen=True)
class Row:
    """One name at one size with one network.

    Accuracies and their differences are shares, from 0 to 1; what needs more than one run is None with a single one.

    Attributes:
        name: of the method, the baseline, or 'full'.
        size: how many samples were trained on.
        fraction: their share of the data.
        net: the network.
        n: runs, one for each seed.
        subsets: what the runs were trained on; fewer than n when one subset served several seeds.
        mean: mean test accuracy.
        sd: its standard deviation over the runs.
        low: lower end of the 95 % t-interval of the mean.
        high: upper end of it.
        seconds: mean time of one training.
        test_seconds: mean time of one pass over the test set.
        baseline: what it is compared with; empty for baselines and 'full'.
        difference: mean of the paired differences to the baseline.
        difference_low: lower end of its 95 % t-interval.
        difference_high: upper end of it.
        wins: seeds with a higher accuracy than the baseline.
        ties: seeds with the same accuracy.
        losses: seeds with a lower accuracy.
        verdict: 'better than uniform', 'worse than uniform', 'not told apart', 'one run' or empty.
        oracle: mean accuracy of each run's best epoch on the test set, no result; None where it was not asked for.
        reach: the accuracy whose time was asked for.
        reached: runs that had it after some epoch.
        reach_seconds: of training until then, mean over these runs.
    """

    name: str
    size: int
    fraction: float
    net: str
    n: int
    subsets: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    seconds: float
    test_seconds: float
    baseline: str = ""
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    wins: int = 0
    ties: int = 0
    losses: int = 0
    verdict: str = ""
    oracle: float | None = None
    reach: float | None = None
    reached: int = 0
    reach_seconds: float | None = None


def texts(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The cells of the result table by their headings; networks are left out where there is only one."""
    several = len({row.net for row in rows}) > 1
    oracle = any(row.oracle is not None for row in rows)
    reach = next((row.reach for row in rows if row.reach is not None), None)
    return [
        {
            **({"network": row.net} if several else {}),
            "kept": f"{percent(row.fraction)} ({row.size:,})",
            "trained on": row.name,
            "n": str(row.n) + (" (1 subset)" if row.subsets < row.n else ""),
            "accuracy": score(row.mean) + ("" if row.sd is None else f" ± {score(row.sd)}"),
            "interval": span(score(row.low), score(row.high)),
            "− uniform": points(row.difference),
            "its interval": span(points(row.difference_low), points(row.difference_high)),
            "won/tied/lost": f"{row.wins}/{row.ties}/{row.losses}" if row.baseline else "–",
            **({} if not oracle else {"oracle": "–" if row.oracle is None else score(row.oracle)}),
            "s/training": seconds(row.seconds),
            **({} if reach is None else {f"s to {percent(reach)}": _reached(row)}),
            "against uniform": row.verdict or "–",
        }
        for row in rows
    ]


def in_points(difference: Estimate) -> str:
    """A difference of accuracies in a sentence, with its interval where there is one.

    Example:
        >>> in_points(estimate([0.01, 0.02, 0.03]))
        '+2.0 points, interval −0.5 to +4.5, n = 3'
    """
    interval = f", interval {span(points(difference.low), points(difference.high))}" if difference.n > 1 else ""
    return f"{points(difference.mean)} points{interval}, n = {difference.n}"


def is_numeric(heading: str) -> bool:
    """Whether a column of the result table holds numbers."""
    return heading in NUMERIC or heading.startswith("s to ")


def _reached(row: Row) -> str:
    if row.reach_seconds is None:
        return "not reached"
    return seconds(row.reach_seconds) + (f" ({row.reached} of {row.n})" if row.reached < row.n else "")


def make_rows(
    entries: Sequence[Entry],
    nets: Sequence[str],
    records: Sequence[Mapping[str, Any]],
    *,
    oracle: bool = False,
    reach: float | None = None,
) -> tuple[Row, ...]:
    """The rows of all records, sorted by network, size and the order of the entries; none where there is no record."""
    runs: dict[tuple[str, int, str], list[Mapping[str, Any]]] = {}
    for record in records:
        runs.setdefault((record["net"], record["size"], record["name"]), []).append(record)
    measured = [(entry, net) for net in nets for entry in entries if (net, entry.size, entry.name) in runs]
    rows = (_make_row(entry, net, runs) for entry, net in measured)
    return tuple(_add_curves(row, runs[row.net, row.size, row.name], oracle, reach) for row in rows)


def _add_curves(row: Row, records: Sequence[Mapping[str, Any]], oracle: bool, reach: float | None) -> Row:
    """The row with what the tests after each epoch say, as far as that is asked for."""
    if oracle or reach is not None:
        row = replace(row, oracle=curve.best(records))
    found = None if reach is None else curve.time_to(reach, records)
    if found is None:
        return row
    return replace(row, reach=reach, reached=found.runs, reach_seconds=found.seconds)


def _make_row(entry: Entry, net: str, runs: Mapping[tuple[str, int, str], list[Mapping[str, Any]]]) -> Row:
    own = runs[net, entry.size, entry.name]
    accuracies = [record["accuracy"] for record in own]
    accuracy = estimate(accuracies)
    row = Row(
        name=entry.name,
        size=entry.size,
        fraction=entry.fraction,
        net=net,
        n=accuracy.n,
        subsets=1 if entry.shared else accuracy.n,
        mean=accuracy.mean,
        sd=accuracy.sd,
        low=accuracy.low,
        high=accuracy.high,
        seconds=fmean(record["seconds"]["train"] for record in own),
        test_seconds=fmean(record["seconds"]["test"] for record in own),
    )
    other = {record["seed"]: record["accuracy"] for record in runs.get((net, entry.size, entry.baseline), ())}
    # Every seed has both, except in a study that is not finished.
    common = [record for record in own if record["seed"] in other]
    if not common:
        return row
    pairs = compare([record["accuracy"] for record in common], [other[record["seed"]] for record in common])
    return replace(
        row,
        baseline=entry.baseline,
        difference=pairs.difference.mean,
        difference_low=pairs.difference.low,
        difference_high=pairs.difference.high,
        wins=pairs.wins,
        ties=pairs.ties,
        losses=pairs.losses,
        verdict=f"{pairs.verdict} than uniform" if pairs.verdict in {"better", "worse"} else pairs.verdict,
    )

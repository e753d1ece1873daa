"""The rows of a report: one for each name, size and network, made from the records, and their texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from lcmat.evaluation.plan import Entry
from lcmat.evaluation.statistics import compare, estimate
from lcmat.report.wording import percent, points, score, seconds, span

NUMERIC = {"n", "accuracy", "interval", "− uniform", "its interval", "won/tied/lost", "s/training"}


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


def texts(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The cells of the result table by their headings; networks are left out where there is only one."""
    several = len({row.net for row in rows}) > 1
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
            "s/training": seconds(row.seconds),
            "against uniform": row.verdict or "–",
        }
        for row in rows
    ]


def make_rows(entries: Sequence[Entry], nets: Sequence[str], records: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    """The rows of all records, sorted by network, size and the order of the entries; none where there is no record."""
    runs: dict[tuple[str, int, str], list[Mapping[str, Any]]] = {}
    for record in records:
        runs.setdefault((record["net"], record["size"], record["name"]), []).append(record)
    measured = [(entry, net) for net in nets for entry in entries if (net, entry.size, entry.name) in runs]
    return tuple(_make_row(entry, net, runs) for entry, net in measured)


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

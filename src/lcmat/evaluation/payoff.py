"""When a choice pays: after how many trainings, beside a random set that is as accurate and costs nothing to choose."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from lcmat.evaluation.plan import FULL
from lcmat.evaluation.rows import Row
from lcmat.report import Table
from lcmat.report.wording import percent, seconds

HEADS = (
    "network",
    "kept",
    "trained on",
    "choosing",
    "one training",
    "as accurate at random",
    "its training",
    "pays from",
)


@dataclass(frozen=True)
class Payoff:
    """A chosen set beside the random one that networks train from as well.

    Attributes:
        row: of the chosen set, which is better than random sets of its size.
        choosing: seconds of all that came before training: proxy, extraction and selection.
        training: seconds of one training on a set of its size.
        fraction: of the data, of the random set; None where more would be needed than was tried.
        seconds: of one training on it.
    """

    row: Row
    choosing: float
    training: float
    fraction: float | None
    seconds: float | None

    @property
    def trainings(self) -> int | None:
        """The least m with choosing + m·t ≤ m·t', t and t' the seconds of one training; None where there is none."""
        if self.seconds is None or self.seconds <= self.training:
            return None
        return max(1, math.ceil(self.choosing / (self.seconds - self.training)))


def payoffs(rows: Sequence[Row], choosing: Mapping[str, float]) -> tuple[Payoff, ...]:
    """For each row that is better than random sets of its size, with an interval that says so.

    The accuracy of random sets is taken as linear in the logarithm of their size between the sizes that were tried,
    everything among them, and the seconds of a training as linear in the size: those of one size are the mean over
    all sets of that size, as what is in a set makes no difference to them.

    Args:
        rows: of a report.
        choosing: seconds before the training by name.
    """

    def training(like: Row) -> float:
        return fmean(one.seconds for one in rows if (one.net, one.size) == (like.net, like.size))

    found = []
    for row in rows:
        if row.verdict != "better than uniform" or row.name not in choosing:
            continue
        line = sorted(
            (one for one in rows if one.net == row.net and one.name in {row.baseline, FULL} and one.size >= row.size),
            key=lambda one: one.size,
        )
        fraction = spent = None
        for below, above in pairwise(line):
            if below.mean < row.mean <= above.mean:
                part = (row.mean - below.mean) / (above.mean - below.mean)
                fraction = below.fraction * (above.fraction / below.fraction) ** part
                along = (fraction - below.fraction) / (above.fraction - below.fraction)
                spent = training(below) + along * (training(above) - training(below))
                break
        found.append(Payoff(row, choosing[row.name], training(row), fraction, spent))
    return tuple(found)


def payoff_table(rows: Sequence[Row], choosing: Mapping[str, float]) -> Table | None:
    """The table of a page; None where nothing was chosen in a time that is known, or nothing was better than random."""
    lines = [_line(one) for one in payoffs(rows, choosing)]
    if not lines:
        return None
    caption = (
        "What is better than random sets of its size, beside the larger random set that is as accurate (between the "
        "sizes that were tried), in seconds: from how many trainings on the chosen set its choice pays"
    )
    return Table(caption, HEADS, tuple(lines), (3, 4, 6, 7))


def _line(payoff: Payoff) -> tuple[str, ...]:
    row = payoff.row
    if payoff.fraction is None:
        random, pays = "more than was tried", "–"
    else:
        random = percent(payoff.fraction)
        pays = "never" if payoff.trainings is None else f"{payoff.trainings:,} training{'s' * (payoff.trainings > 1)}"
    kept = f"{percent(row.fraction)} ({row.size:,})"
    return (
        row.net,
        kept,
        row.name,
        seconds(payoff.choosing),
        seconds(payoff.training),
        random,
        seconds(payoff.seconds),
        pays,
    )

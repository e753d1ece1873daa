"""Means, Student intervals and paired differences: pure functions of accuracies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean with its uncertainty.

    Attributes:
        n: how many values it is the mean of.
        mean: their mean.
        sd: their standard deviation, divided by n − 1; None for one value.
        low: lower end of the 95 % t-interval of the mean; None for one value.
        high: its upper end; None for one value.
    """

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Comparison:
    """Paired differences between two series: first minus second, pair by pair.

    Attributes:
        difference: the mean difference with its interval; n counts pairs.
        wins: pairs in which the first is higher.
        ties: pairs in which both are equal.
        losses: pairs in which the first is lower.
    """

    difference: Estimate
    wins: int
    ties: int
    losses: int

    @property
    def verdict(self) -> str:
        """'better' or 'worse' where the interval leaves out zero, else 'not told apart'."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None:
            return "one run"
        return "better" if low > 0 else "worse" if high < 0 else "not told apart"


def t_quantile(df: int, confidence: float = CONFIDENCE) -> float:
    """The t with P(|T| ≤ t) = confidence for Student's distribution with df degrees of freedom.

    With θ = atan(t / √df) the probability is a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4), increasing in
    θ, which is found by bisection.

    Args:
        df: degrees of freedom, 1 or more.
        confidence: the probability inside, between 0 and 1.

    Example:
        >>> [round(t_quantile(df), 4) for df in (1, 4, 5, 30)]
        [12.7062, 2.7764, 2.5706, 2.0423]
    """
    if df < 1 or not 0 < confidence < 1:
        raise ValueError(f"expected df ≥ 1 and a confidence between 0 and 1, got {df} and {confidence}")
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _probability_within(middle, df) < confidence else (low, middle)
    return math.sqrt(df) * math.tan((low + high) / 2)


def estimate(values: Sequence[float]) -> Estimate:
    """Mean, standard deviation and 95 % interval: mean ± t(n − 1) · sd / √n.

    Example:
        >>> found = estimate([0.8, 0.9, 1.0])
        >>> round(found.mean, 3), round(found.sd, 3), round(found.low, 3), round(found.high, 3)
        (0.9, 0.1, 0.652, 1.148)
    """
    n, mean = len(values), fmean(values)
    if n == 1:
        return Estimate(1, mean, None, None, None)
    sd = stdev(values)
    reach = t_quantile(n - 1) * sd / math.sqrt(n)
    return Estimate(n, mean, sd, mean - reach, mean + reach)


def compare(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """The differences first − second, value by value, which must be paired.

    Example:
        >>> found = compare([0.9, 0.8, 0.7], [0.8, 0.8, 0.8])
        >>> found.wins, found.ties, found.losses, found.verdict
        (1, 1, 1, 'not told apart')
    """
    if len(first) != len(second):
        raise ValueError(f"expected pairs, got {len(first)} and {len(second)} values")
    # Accuracies over one test set differ by at least 1/n or not at all; rounding must not make a tie a win.
    differences = [0.0 if math.isclose(a, b, abs_tol=1e-12) else a - b for a, b in zip(first, second, strict=True)]
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return Comparison(estimate(differences), wins, len(differences) - wins - losses, losses)


def _probability_within(theta: float, df: int) -> float:
    """P(|T| ≤ √df · tan θ)."""
    odd = df % 2
    cosine, total = math.cos(theta), 0.0
    term = cosine if odd else 1.0
    for power in range(odd, df - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    inside = math.sin(theta) * total
    return 2 / math.pi * (theta + inside) if odd else inside

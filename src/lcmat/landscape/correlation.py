"""Whether two quantities rise together: Spearman's rank correlation, with an interval."""

import math
from collections.abc import Sequence

import numpy as np

from lcmat import seeding

FEWEST = 4  # pairs of which a rank correlation says anything


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Spearman's ρ: the correlation of the ranks, where equal values share the mean of theirs; nan for constants.

    Example:
        >>> rank_correlation([1, 2, 3, 4], [1, 4, 9, 16]), rank_correlation([1, 2, 3, 4], [8, 4, 2, 1])
        (1.0, -1.0)
    """
    first, second = _ranks(_checked(xs, ys)[0]), _ranks(ys)
    first, second = first - first.mean(), second - second.mean()
    scale = math.sqrt(float((first @ first) * (second @ second)))
    return float("nan") if scale == 0 else round(float(first @ second) / scale, 12)


def bootstrap_interval(
    xs: Sequence[float], ys: Sequence[float], *, confidence: float = 0.95, draws: int = 4000, seed: int = 0
) -> tuple[float, float]:
    """A percentile interval of the rank correlation, over draws of the pairs with replacement.

    Pairs are taken as independent; where they share a network or a method they are not, and the interval is too narrow.
    """
    checked = [np.asarray(values, dtype=float) for values in _checked(xs, ys)]
    generator = np.random.default_rng(seeding.derive(seed, "bootstrap"))
    found = [
        rank_correlation(checked[0][rows].tolist(), checked[1][rows].tolist())
        for rows in generator.integers(0, len(xs), (draws, len(xs)))
    ]
    low, high = np.nanpercentile(found, [50 * (1 - confidence), 50 * (1 + confidence)])
    return float(low), float(high)


def _checked(xs: Sequence[float], ys: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    if len(xs) != len(ys) or len(xs) < FEWEST:
        raise ValueError(f"expected at least {FEWEST} pairs, got {len(xs)} and {len(ys)} values")
    return xs, ys


def _ranks(values: Sequence[float]) -> "np.typing.NDArray[np.float64]":
    _, places, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: np.typing.NDArray[np.float64] = (last - (counts - 1) / 2)[places]
    return ranks

"""How far the correlation of bound and accuracy is one of methods, which the proxies only see again.

A bootstrap over the pairs of a proxy and a method takes them as independent. Here the methods are what is drawn and
dealt, each with all its proxies, so that ten proxies do not make five methods more than five.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from lcmat import seeding
from lcmat.landscape.correlation import FEWEST, rank_correlation
from lcmat.study.bound import SCOPES, Plan

_DRAWS, _MOST_ORDERS = 4000, 5040

Table: TypeAlias = "np.typing.NDArray[np.float64]"


def count_by_methods(plan: Plan, cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each fraction and scope: the rank correlation of bound and accuracy, with methods as what is counted.

    Returns:
        A row for each fraction with at least four methods that every proxy has: the correlation over the methods within
        each proxy (`proxy_0`, ...) and of the methods' means (`means`), over all pairs but those of uniform
        (`without_uniform`, nan where it is not among them), the 95 % interval of a bootstrap that draws methods with
        all their proxies (`low`, `high`), and of how many `orders` of the methods' accuracies, alike in all proxies,
        the mean correlation within proxies is `as_low` as the one found.
    """
    found = []
    for fraction in plan.fractions:
        places = {(cell["proxy"], cell["method"]): cell for cell in cells if cell["fraction"] == fraction}
        methods = [name for name in plan.methods if all((proxy, name) in places for proxy in range(plan.proxies))]
        if len(methods) < FEWEST:
            continue
        for scope in SCOPES:
            bounds, accuracies = (
                np.array([[places[proxy, name][key] for name in methods] for proxy in range(plan.proxies)], dtype=float)
                for key in (f"bound_{scope}", "accuracy")
            )
            counted = {"fraction": fraction, "scope": scope, "methods": len(methods)}
            found.append(counted | _row(methods, bounds, accuracies))
    return found


def _row(methods: Sequence[str], bounds: Table, accuracies: Table) -> dict[str, Any]:
    """The row of tables `[proxies, methods]`."""
    within = [_correlation(*lines) for lines in zip(bounds, accuracies, strict=True)]
    others = [place for place, name in enumerate(methods) if name != "uniform"]
    rest, told = bounds[:, others], len(others) < len(methods)
    without = _correlation(rest, accuracies[:, others]) if told and rest.size >= FEWEST else math.nan
    low, high = _interval(bounds, accuracies)
    orders = list(_orders(len(methods)))
    dealt = [fmean(map(_correlation, bounds, accuracies[:, order])) for order in orders]
    return {
        **{f"proxy_{proxy}": value for proxy, value in enumerate(within)},
        "means": _correlation(bounds.mean(axis=0), accuracies.mean(axis=0)),
        "without_uniform": without,
        "low": low,
        "high": high,
        "as_low": sum(value <= fmean(within) + 1e-9 for value in dealt),
        "orders": len(orders),
    }


def _correlation(first: Table, second: Table) -> float:
    return rank_correlation(first.ravel().tolist(), second.ravel().tolist())


def _interval(bounds: Table, accuracies: Table) -> tuple[float, float]:
    """A percentile interval over draws of methods."""
    methods = bounds.shape[1]
    generator = np.random.default_rng(seeding.derive(0, "bootstrap over methods"))
    drawn = [_correlation(bounds[:, o], accuracies[:, o]) for o in generator.integers(0, methods, (_DRAWS, methods))]
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _orders(methods: int) -> Iterator[list[int]]:
    """Every order of the methods, or so many of them at random."""
    if math.factorial(methods) <= _MOST_ORDERS:
        yield from map(list, itertools.permutations(range(methods)))
        return
    generator = np.random.default_rng(seeding.derive(0, "orders of methods"))
    yield list(range(methods))  # the one that is there counts among them
    for _ in range(_MOST_ORDERS - 1):
        yield generator.permutation(methods).tolist()

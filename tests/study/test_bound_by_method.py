"""The correlation of bound and accuracy, counted by methods."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from scipy.stats import spearmanr

from lcmat.study.bound import SCOPES, Plan
from lcmat.study.bound_by_method import count_by_methods

PLAN = Plan(
    data="", net="mlp:width=4", methods=("uniform", "a", "b", "c", "d"), fractions=(0.1,), proxies=2, proxy_epochs=1,
    seeds=1, epochs=1, rho=0.1, samples=50, products=60, tolerance=1e-4, precision="auto", batch_size=2048,
)  # fmt: skip
BOUNDS, ACCURACIES = ((1, 5, 2, 4, 3), (2, 3, 9, 8, 1)), ((9, 4, 8, 5, 6), (7, 6, 3, 1, 5))


def cells(
    plan: Plan, bound: Callable[[int, int], float], accuracy: Callable[[int, int], float]
) -> list[dict[str, Any]]:
    return [
        {"proxy": proxy, "method": method, "fraction": fraction, "accuracy": accuracy(proxy, place)}
        | {f"bound_{scope}": bound(proxy, place) for scope in SCOPES}
        for fraction in plan.fractions
        for proxy in range(plan.proxies)
        for place, method in enumerate(plan.methods)
    ]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    return float(spearmanr(first, second)[0])


def test_the_correlations_are_those_of_scipy() -> None:
    row = count_by_methods(PLAN, cells(PLAN, lambda p, m: BOUNDS[p][m], lambda p, m: ACCURACIES[p][m]))[0]
    within = [spearman(list(BOUNDS[p]), list(ACCURACIES[p])) for p in range(2)]
    assert [row["proxy_0"], row["proxy_1"]] == pytest.approx(within)
    means = [[fmean(table[p][m] for p in range(2)) for m in range(5)] for table in (BOUNDS, ACCURACIES)]
    assert row["means"] == pytest.approx(spearman(*means))
    others = [[table[p][m] for p in range(2) for m in range(1, 5)] for table in (BOUNDS, ACCURACIES)]
    assert row["without_uniform"] == pytest.approx(spearman(*others))
    dealt = [
        fmean(spearman(list(BOUNDS[p]), [ACCURACIES[p][m] for m in order]) for p in range(2))
        for order in itertools.permutations(range(5))
    ]
    assert (row["as_low"], row["orders"]) == (sum(value <= fmean(within) + 1e-9 for value in dealt), 120)


def test_proxies_that_repeat_each_other_make_no_method_more() -> None:
    """Of one order of the methods, seen by two proxies or by twenty, is known as much."""
    few, many = (
        count_by_methods(plan, cells(plan, lambda _, m: BOUNDS[0][m], lambda _, m: ACCURACIES[0][m]))[0]
        for plan in (PLAN, replace(PLAN, proxies=20))
    )
    for name in ("means", "without_uniform", "low", "high", "as_low", "orders"):
        assert few[name] == pytest.approx(many[name])
    assert few["low"] == -1
    assert few["as_low"] == 1


def test_a_fraction_wants_four_methods_of_every_proxy() -> None:
    plan = replace(PLAN, fractions=(0.1, 0.2))
    found = cells(plan, lambda p, m: p + m, lambda p, m: p - m)
    kept = [cell for cell in found if cell["fraction"] == 0.1 or cell["method"] in {"a", "b"} or cell["proxy"] == 0]
    assert [(row["fraction"], row["scope"]) for row in count_by_methods(plan, kept)] == [(0.1, s) for s in SCOPES]


def test_many_methods_are_dealt_at_random_with_their_own_order_among_them() -> None:
    plan = replace(PLAN, methods=tuple("abcdefghij"))
    row = count_by_methods(plan, cells(plan, lambda _, m: m, lambda _, m: -m))[0]
    assert (row["as_low"], row["orders"], row["means"]) == (1, 5040, -1)
    assert math.isnan(row["without_uniform"])


def test_too_few_pairs_without_random_sets_give_no_number() -> None:
    plan = replace(PLAN, methods=("uniform", "a", "b", "c"), proxies=1)
    row = count_by_methods(plan, cells(plan, lambda _, m: m, lambda _, m: -m))[0]
    assert math.isnan(row["without_uniform"])
    assert row["orders"] == 24

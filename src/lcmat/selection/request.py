"""What a caller of `select` asked for, checked before any work begins."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from lcmat.registry import Entry
from lcmat.selection.budget import BALANCES
from lcmat.selection.registry import SELECTORS, SelectorFacts, facts_of
from lcmat.types import Array, Signals


@dataclass(frozen=True)
class Budgets:
    """How much to keep: numbers of samples, shares of the cost, or coverages; one of the three is not empty."""

    counts: tuple[int, ...] = ()
    cost_shares: tuple[float, ...] = ()
    coverages: tuple[float, ...] = ()
    several: bool = False

    @property
    def number(self) -> int:
        """How many subsets are wanted."""
        return len(self.counts) + len(self.cost_shares) + len(self.coverages)


@dataclass(frozen=True, eq=False)
class Constraints:
    """What is settled about single samples.

    Attributes:
        given: rows picked before, in their order, `[g]`.
        excluded: rows that are left out as if the data did not have them, `[e]`.
        cost: of each row, float64 and above 0, `[n]`, or None where all cost the same.
    """

    given: Tensor
    excluded: Tensor
    cost: Tensor | None


def read_budgets(n: int, fraction: Any, count: Any, coverage: Any, *, with_cost: bool) -> Budgets:
    """The budgets of a call of `select`.

    Raises:
        ValueError: unless exactly one kind is given, with values in range.
        TypeError: for values that are no numbers.
    """
    given = {
        name: value
        for name, value in (("fraction", fraction), ("count", count), ("coverage", coverage))
        if value is not None
    }
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise ValueError(f"expected exactly one of fraction, count and coverage, got {found}")
    ((name, value),) = given.items()
    several = isinstance(value, Sequence) and not isinstance(value, str)
    values = [_amount(name, item, n) for item in (value if several else [value])]
    if not values:
        raise ValueError(f"expected at least one {name}, got an empty list")
    if name == "coverage":
        return Budgets(coverages=tuple(float(item) for item in values), several=several)
    if with_cost:
        if name == "count":
            raise ValueError("with costs the budget is a share of their sum; give fraction instead of count")
        return Budgets(cost_shares=tuple(float(item) for item in values), several=several)
    counts = values if name == "count" else [max(1, round(item * n)) for item in values]
    return Budgets(counts=tuple(counts), several=several)


def _amount(name: str, item: Any, n: int) -> Any:
    """One budget as a plain number, NumPy's numbers too."""
    fits = isinstance(item, Integral if name == "count" else Real) and not isinstance(item, bool)
    if not fits:
        raise TypeError(f"expected {name} as {'an integer' if name == 'count' else 'a number'}, got {item!r}")
    number = int(item) if name == "count" else float(item)
    if name == "count" and not 1 <= number <= n:
        raise ValueError(f"expected a count from 1 to {n:,}, the number of samples, got {number:,}")
    if name != "count" and not 0 < number <= 1:
        raise ValueError(f"expected a {name} above 0 and at most 1, got {number}")
    return number


def read_constraints(n: int, given: Any, exclude: Any, cost: Array | Sequence[float] | None) -> Constraints:
    """The constraints of a call of `select`.

    Raises:
        ValueError: for rows that the data does not have, rows both given and excluded, or costs that are no costs.
    """
    kept, dropped = _rows("given", given, n), _rows("exclude", exclude, n)
    both = set(kept.tolist()) & set(dropped.tolist())
    if both:
        raise ValueError(f"{len(both)} samples are both given and excluded, such as {min(both)}")
    if len(dropped) == n:
        raise ValueError(f"all {n:,} samples are excluded; nothing is left to choose from")
    if cost is None:
        return Constraints(kept, dropped, None)
    prices = torch.as_tensor(cost).double().cpu()
    if prices.shape != (n,) or not torch.isfinite(prices).all() or prices.min() <= 0:
        raise ValueError(
            f"expected a finite cost above 0 for each of the {n:,} samples, got {list(prices.shape)} values"
        )
    return Constraints(kept, dropped, prices)


def _rows(name: str, rows: Any, n: int) -> Tensor:
    if rows is None:
        return torch.empty(0, dtype=torch.int64)
    tensor = torch.as_tensor(list(rows) if isinstance(rows, Sequence) else rows).cpu()
    if tensor.numel() == 0:
        return torch.empty(0, dtype=torch.int64)
    if tensor.ndim != 1 or tensor.is_floating_point() or tensor.dtype == torch.bool:
        raise TypeError(f"expected {name} as a list of row numbers, got {tensor.dtype} of shape {list(tensor.shape)}")
    if tensor.min() < 0 or tensor.max() >= n:
        raise ValueError(f"expected {name} rows from 0 to {n - 1}, got {int(tensor.min())} to {int(tensor.max())}")
    if len(set(tensor.tolist())) != len(tensor):
        raise ValueError(f"a row is named twice in {name}")
    return tensor.long()


def check_method(entry: Entry[Any, SelectorFacts], budgets: Budgets, constraints: Constraints, balance: str) -> None:
    """Refuse what a method cannot do, naming those that can.

    Raises:
        ValueError: for a coverage or costs with a method that has no use for them, or an unknown balance.
    """
    for wanted, parameter, words in (
        (bool(budgets.coverages), "coverage", "has no coverage to stop at; give fraction or count"),
        (constraints.cost is not None, "purse", "cannot weigh costs"),
    ):
        if wanted and not entry.accepts(parameter):
            able = ", ".join(other.name for other in SELECTORS if other.accepts(parameter))
            raise ValueError(f"method {entry.name!r} {words}, or use one of: {able}")
    if balance not in BALANCES:
        raise ValueError(f"expected balance as one of {', '.join(BALANCES)}, got {balance!r}")


def check_points(
    entry: Entry[Any, SelectorFacts], options: dict[str, Any], signals: Signals | Sequence[Signals]
) -> tuple[Signals, ...]:
    """The Signals of each parameter point, with all that the method needs.

    Raises:
        ValueError: when something is missing, or the points are not of the same samples.
        TypeError: when something else than Signals is given.
    """
    facts = facts_of(entry.name, options)
    points = (signals,) if isinstance(signals, Signals) or not isinstance(signals, Sequence) else tuple(signals)
    if strange := [type(point).__name__ for point in points if not isinstance(point, Signals)]:
        raise TypeError(
            f"expected Signals, or a list of them, got {strange[0]}; lcmat.extract(model, data) gives the Signals of "
            "data, and lcmat.Signals(features=..., logits=..., labels=...) those of your own arrays"
        )
    if not points:
        raise ValueError("expected Signals, got an empty list of them")
    if len(points) > 1 and not facts.several_points:
        able = ", ".join(other.name for other in SELECTORS if other.facts.several_points)
        raise ValueError(f"method {entry.name!r} takes the Signals of one point, got {len(points)}; several: {able}")
    for point in points:
        if point.regression and not facts.regression:
            able = ", ".join(other.name for other in SELECTORS if other.facts.regression)
            raise ValueError(
                f"method {entry.name!r} looks at classes, which real-valued labels do not have; use: {able}"
            )
        if "record" in facts.needs and point.record is None:
            raise ValueError(f"{entry.name} needs the per-epoch record: train with record=True")
        for name in facts.needs:
            point.need(name)
        if point.n != points[0].n:
            raise ValueError(
                f"expected Signals of the same samples at every point, got {points[0].n:,} and {point.n:,}"
            )
        if point.labels is not None and points[0].labels is not None and not point.labels.equal(points[0].labels):
            raise ValueError("expected Signals of the same samples at every point, but their labels differ")
    return points

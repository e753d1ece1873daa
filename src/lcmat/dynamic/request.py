"""What a sampler was asked for, checked before anything is chosen."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lcmat.dynamic.baselines import BASELINES
from lcmat.dynamic.reselection import Asked
from lcmat.dynamic.schedule import Plan
from lcmat.report.wording import percent
from lcmat.selection import SELECTORS
from lcmat.selection.budget import BALANCES


@dataclass(frozen=True)
class Request:
    """One way of choosing, with all its settings.

    Attributes:
        method: a selector or a baseline.
        options: its own, defaults included.
        plan: sizes and turns.
        asked: how the selector is called; None for a baseline.
    """

    method: str
    options: Mapping[str, Any]
    plan: Plan
    asked: Asked | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values that tell requests apart."""
        asked = None if self.asked is None else {**asdict(self.asked), "options": dict(self.asked.options)}
        return {"method": self.method, "options": dict(self.options), **asdict(self.plan), "asked": asked}


def methods() -> dict[str, str]:
    """Name -> one line on every way of choosing: the baselines, and all selectors."""
    return {**BASELINES.describe(), **SELECTORS.describe()}


def read_request(
    n: int,
    method: str,
    fraction: float | None,
    *,
    every: int,
    warmup: int,
    pool: int | float | None,
    epochs: int | None,
    balance: str,
    weighted: bool,
    seed: int,
    options: Mapping[str, Any],
) -> Request:
    """The settings of a sampler, checked.

    Raises:
        ValueError: for a value out of range or an unknown method.
        TypeError: for an unknown option or a value of a wrong type.
    """
    baseline = method in BASELINES
    if not baseline and method not in SELECTORS:
        names = ", ".join(entry.name for entry in BASELINES)
        try:
            SELECTORS.find(method)
        except ValueError as error:
            raise ValueError(f"{error}; and, while training: {names}") from None
    _check_whole("every", every, 1)
    _check_whole("warmup", warmup, 0)
    if epochs is not None:
        _check_whole("epochs", epochs, 1)
    takes_fraction = not baseline or BASELINES.find(method).facts.takes_fraction
    plan = Plan(n, _count(n, method, fraction, takes_fraction), every, warmup, epochs, seed)
    if not takes_fraction and every != 1:
        raise ValueError(f"{method} goes by no turns; leave every= out")
    if baseline:
        if pool is not None or weighted or balance != "proportional":
            raise ValueError(f"{method} draws from all samples and has its own weights: no pool, weighted or balance")
        entry = BASELINES.find(method)
        chosen = {name: option.default for name, option in entry.options.items()} | entry.check_options(options)
        entry.function(plan, **chosen)
        return Request(method, chosen, plan, None)
    selector = SELECTORS.find(method)
    chosen = {name: option.default for name, option in selector.options.items()} | selector.check_options(options)
    if balance not in BALANCES:
        raise ValueError(f"expected a balance of {', '.join(BALANCES)}, got {balance!r}")
    if weighted and not selector.facts.weighted:
        raise ValueError(f"{method} defines no weights; leave weighted= out")
    asked = Asked(method, chosen, balance, _pool_size(n, plan.count, pool), weighted)
    if "record" in asked.needs and warmup < 1:
        raise ValueError(f"{method} goes by how the training went so far; give warmup= of at least one epoch")
    return Request(method, chosen, plan, asked)


def _count(n: int, method: str, fraction: float | None, takes_fraction: bool) -> int:
    if not takes_fraction:
        if fraction is not None:
            raise ValueError(f"{method} decides by itself how much it visits; leave the fraction out, got {fraction}")
        return n
    if fraction is None:
        raise ValueError(f"expected the fraction of the data that {method} visits in an epoch, got none")
    if isinstance(fraction, bool) or not isinstance(fraction, int | float):
        raise TypeError(f"expected fraction as a number, got {fraction!r}")
    if not 0 < fraction <= 1:
        raise ValueError(f"expected a fraction above 0 and at most 1, got {fraction}")
    return max(1, round(fraction * n))


def _pool_size(n: int, count: int, pool: int | float | None) -> int | None:
    if pool is None:
        return None
    if isinstance(pool, bool) or not isinstance(pool, int | float):
        raise TypeError(f"expected pool as a number of samples or a share of them, got {pool!r}")
    if isinstance(pool, float) and not 0 < pool <= 1:
        raise ValueError(f"expected pool as a share above 0 and at most 1, or a whole number, got {pool}")
    if isinstance(pool, float) and round(pool * n) < count:
        raise ValueError(
            f"expected a pool of {percent(count / n)} (what is chosen) to 100 % of the data, got {percent(pool)}"
        )
    size = round(pool * n) if isinstance(pool, float) else pool
    if not count <= size <= n:
        raise ValueError(f"expected a pool of {count:,} (what is chosen) to {n:,} samples, got {size:,}")
    return None if size == n else size


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected {name} as a whole number of epochs, got {value!r}")
    if value < least:
        raise ValueError(f"expected {name} of at least {least}, got {value}")

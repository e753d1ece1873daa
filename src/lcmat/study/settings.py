"""All that decides which samples a run keeps: read at the edge, checked at once, stored with the result."""

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch

from lcmat import files
from lcmat.data.loading import absolute
from lcmat.networks.build import parse as parse_net
from lcmat.selection import SELECTORS, select
from lcmat.selection.budget import BALANCES
from lcmat.selection.registry import facts_of
from lcmat.types import Data, ImageData, Record, Signals

BUDGETS = ("fraction", "count", "coverage")
DEFAULT_METHOD = "auto"


@dataclass(frozen=True)
class Settings:
    """What is asked of one run, and nothing about the machine it runs on.

    Attributes:
        source: what `lcmat.load` reads; a path is kept absolute.
        reading: further arguments of `lcmat.load` that were given, such as resize.
        method: the selector.
        options: all its options, defaults included.
        budget: 'fraction', 'count' or 'coverage'.
        amounts: the budgets, ascending.
        balance: of the classes.
        net: the proxy network; empty until the data is known.
        epochs: of the proxy.
        points: epochs of the proxy whose Signals are used; empty for those that the method looks at by itself, the
            last one for most.
        seed: of proxy and selection.
    """

    source: str
    reading: Mapping[str, Any] = field(default_factory=dict)
    method: str = DEFAULT_METHOD
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: str = "fraction"
    amounts: tuple[float, ...] = (0.01,)
    balance: str = "proportional"
    net: str = ""
    epochs: int = 10
    points: tuple[int, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        entry = SELECTORS.find(self.method)
        defaults = {name: option.default for name, option in entry.options.items()}
        resolved = {
            "source": absolute(self.source),
            "options": {**defaults, **entry.check_options(self.options)},
            "amounts": tuple(sorted(set(self.amounts))),
            "points": tuple(sorted(set(self.points or own_points(self.method, self.epochs)))),
        }
        for name, value in resolved.items():
            object.__setattr__(self, name, value)
        self._check_budget()
        if self.budget == "coverage" and not entry.accepts("coverage"):
            raise ValueError(f"{self.method} has no coverage to stop at; give a fraction or a count")
        try_options(self.method, self.options)
        if self.balance not in BALANCES:
            raise ValueError(f"expected a balance of {', '.join(BALANCES)}, got {self.balance!r}")
        if self.net:
            parse_net(self.net)
        if self.epochs < 1:
            raise ValueError(f"expected at least 1 epoch for the proxy, got {self.epochs}")
        if self.points and not 1 <= self.points[0] <= self.points[-1] <= self.epochs:
            raise ValueError(f"expected points from 1 to {self.epochs}, the epochs of the proxy, got {self.points}")
        if self.points and not self.needs_proxy:
            raise ValueError(f"{self.method} looks at no proxy, so that it has no points; leave them out")
        if len(self.points) > 1 and not facts_of(self.method, self.options).several_points:
            raise ValueError(f"{self.method} works with one point of the proxy's path, got {self.points}")

    def _check_budget(self) -> None:
        if self.budget not in BUDGETS:
            raise ValueError(f"expected a budget of {', '.join(BUDGETS)}, got {self.budget!r}")
        if not self.amounts:
            raise ValueError(f"expected at least one {self.budget}, got none")
        for amount in self.amounts:
            if self.budget == "count" and (amount < 1 or amount != int(amount)):
                raise ValueError(f"expected a count of at least 1, got {amount}")
            if self.budget != "count" and not (math.isfinite(amount) and 0 < amount <= 1):
                raise ValueError(f"expected a {self.budget} above 0 and at most 1, got {amount}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Settings":
        """The settings that `as_dict` gave.

        Raises:
            ValueError: when these are no settings of this version.
        """
        known = {item.name for item in fields(cls)}
        if not isinstance(values, Mapping) or set(values) != known:
            raise ValueError("these are no settings of a run of this version of lcmat")
        return cls(**{**values, "amounts": tuple(values["amounts"]), "points": tuple(values["points"])})

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return {**asdict(self), "amounts": list(self.amounts), "points": list(self.points)}

    def digest(self) -> str:
        """Eight hexadecimal digits that tell settings apart."""
        return files.fingerprint(json.dumps(self.as_dict(), sort_keys=True))[:8]

    @property
    def needs_proxy(self) -> bool:
        """Whether the method looks at a model at all."""
        return not set(facts_of(self.method, self.options).needs) <= {"labels"}

    @property
    def needs_record(self) -> bool:
        """Whether the method wants to know how the proxy did on every sample after every epoch."""
        return "record" in facts_of(self.method, self.options).needs

    @property
    def proxy_key(self) -> Hashable:
        """Equal for settings that look at the same proxy of a seed."""
        return (self.needs_proxy, self.needs_record, self.net, self.epochs, self.points)


def own_points(method: str, epochs: int) -> tuple[int, ...]:
    """The epochs of a proxy that a method looks at when none are named; empty for the last one alone.

    Example:
        >>> own_points("auto", 10), own_points("auto", 3), own_points("craig", 10)
        ((1, 2, 4, 7, 10), (1, 2, 3), ())
    """
    return tuple(sorted({max(1, round(share * epochs)) for share in SELECTORS.find(method).facts.path}))


def default_net(data: Data) -> str:
    """The proxy for data of this kind: a small one for tiny images and for tables."""
    if not isinstance(data, ImageData):
        return "mlp"
    return "resnet18" if min(data.images.shape[2:]) >= 16 else "convnet:width=32"


def try_options(method: str, options: Mapping[str, Any]) -> None:
    """Select from four made-up samples, so that a value out of range is refused before a proxy is trained."""
    samples = torch.tensor([[0.0, 2.0], [2.0, 0.0], [2.0, 1.0], [1.0, 3.0]])
    record = Record(samples.T > 0, samples.T / 3)
    select(Signals(samples, samples, torch.tensor([0, 0, 1, 1]), record=record), method, count=2, **options)

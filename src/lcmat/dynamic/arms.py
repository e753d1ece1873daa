"""The arms of a comparison: static subsets, dynamic ones and baselines, each under a name."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lcmat.dynamic.baselines import BASELINES
from lcmat.dynamic.request import read_request
from lcmat.report.wording import percent
from lcmat.selection import SELECTORS

_STATIC = "static:"
_REPLACEMENT = "random:replacement"


@dataclass(frozen=True)
class Arm:
    """One way of choosing what is trained on.

    Attributes:
        name: as in tables and figures.
        method: a selector or a baseline.
        fraction: that an epoch visits; None for those that decide by themselves.
        static: whether it is chosen once, by a proxy, before the training.
        choose: further settings of the sampler, or options of the static selector.
    """

    name: str
    method: str
    fraction: float | None
    static: bool = False
    choose: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name with the fraction, for messages."""
        return self.name if self.fraction is None else f"{self.name}, {percent(self.fraction)}"

    def forward_passes(self, epochs: int) -> float:
        """How often choosing looks at the whole data in a training: one look at each turn, at a pool as far as it goes.

        Example:
            >>> Arm("lcmat-s, R = 5", "lcmat-s", 0.1, choose={"every": 5, "warmup": 0, "pool": 0.5}).forward_passes(60)
            6.0
            >>> Arm("random", "random", 0.1).forward_passes(60)
            0.0
        """
        if self.static:
            return 1.0
        if self.method in BASELINES:
            return 0.0
        turns = math.ceil(max(0, epochs - int(self.choose["warmup"])) / int(self.choose["every"]))
        pool = self.choose["pool"]
        return turns * (1.0 if pool is None else float(pool))


def make_arms(
    methods: Sequence[str],
    fractions: Sequence[float],
    every: Sequence[int],
    pools: Sequence[float | None],
    *,
    n: int,
    epochs: int,
    warmup: int = 0,
    weighted: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Arm]:
    """Every combination that makes sense, in the order of the methods.

    Args:
        methods: selectors, 'static:SELECTOR', 'random', 'random:replacement', 'infobatch', 'full'.
        fractions: of the data that an epoch visits.
        every: epochs between two choices of a selector.
        pools: shares of the data that a selector chooses from; None for all.
        n: samples there are.
        epochs: of each training.
        warmup: first epochs of dynamic selectors that visit everything.
        weighted: selectors whose weights go into the loss.
        options: of selectors and baselines, by name.

    Raises:
        ValueError: for an unknown method, a value out of range, or an empty or repeated list.
    """
    for name, values in (("methods", methods), ("fractions", fractions), ("every", every), ("pools", pools)):
        if not values or len(set(values)) != len(values):
            raise ValueError(f"expected distinct {name}, at least one, got {list(values)}")
    if unused := sorted(set(weighted) - set(methods)):
        raise ValueError(f"weights are asked for of {', '.join(unused)}, not among the methods that choose anew")
    if unused := sorted(set(options or {}) - {method.removeprefix(_STATIC) for method in methods}):
        raise ValueError(f"options are given for {', '.join(unused)}, not among the methods")
    arms = []
    for text in methods:
        method = text.removeprefix(_STATIC)
        own = dict((options or {}).get(method, {}))
        if text.startswith(_STATIC):
            SELECTORS.find(method)
            arms += [Arm(f"{method}, static", method, fraction, static=True, choose=own) for fraction in fractions]
        elif text == _REPLACEMENT:
            arms += [
                Arm("random, replaced", "random", fraction, choose={"replacement": True}) for fraction in fractions
            ]
        elif method in BASELINES:
            takes = BASELINES.find(method).facts.takes_fraction
            arms += [Arm(method, method, fraction, choose=own) for fraction in (fractions if takes else [None])]
        else:
            arms += _dynamic_arms(method, fractions, every, pools, warmup, method in weighted, own)
    for arm in arms:
        _check(arm, n, epochs)
    return arms


def _dynamic_arms(
    method: str,
    fractions: Sequence[float],
    every: Sequence[int],
    pools: Sequence[float | None],
    warmup: int,
    weighted: bool,
    options: Mapping[str, Any],
) -> Iterator[Arm]:
    for turns in every:
        for pool in pools:
            name = f"{method}, R = {turns}" + ("" if pool is None else f", pool {percent(pool)}")
            choose = {"every": turns, "warmup": warmup, "pool": pool, "weighted": weighted, **options}
            for fraction in fractions:
                yield Arm(name, method, fraction, choose=choose)


def _check(arm: Arm, n: int, epochs: int) -> None:
    """Refuse now what a sampler would refuse after hours of training the others."""
    settings: dict[str, Any] = {"every": 1, "warmup": 0, "pool": None, "balance": "proportional", "weighted": False}
    given = dict(arm.choose)
    known = {name: given.pop(name, value) for name, value in settings.items()}
    if arm.static:  # its proxy may keep a record, which a sampler has only after a warm-up
        known["warmup"] = 1
    read_request(n, arm.method, arm.fraction, epochs=epochs, seed=0, options=given, **known)

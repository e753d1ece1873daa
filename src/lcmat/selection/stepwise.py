"""Greedy for set functions that know the gains of all samples after every pick.

With costs and a budget instead of a count, the picks are those of largest gain per cost that can still be paid, or
those of largest gain if they reach a larger value: for a monotone submodular function the better of the two has at
least (1 − 1/e)/2 of the best value (Leskovec et al., 2007).
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from lcmat.selection.course import pick_repeatedly
from lcmat.selection.lazy import Purse
from lcmat.selection.ties import Picker
from lcmat.types import Picks


class SetFunction(Protocol):
    """A set function, and the samples picked so far."""

    @property
    def merits(self) -> Tensor:
        """A number for each sample that is the larger the larger its gain, float64, `[n]`."""

    def gains(self, merits: Tensor) -> Tensor:
        """By how much samples of these merits raise the function, `[k]`."""

    def take(self, pick: Tensor) -> None:
        """Add a sample `[1]` to the picks, in place and without waiting for a device."""


def pick_stepwise(make: Callable[[], SetFunction], count: int, *, picker: Picker, purse: Purse | None) -> Picks:
    """Pick again and again the sample of largest gain.

    Without a purse no pick is waited for: on a GPU one is captured and replayed.

    Args:
        make: the function before the first pick.
        count: how many to pick; at most how many with a purse.
        picker: takes the best.
        purse: costs of the samples, and a budget that takes the place of the count.
    """
    if purse is None:
        return Picks(*_run(make(), count, picker))
    runs = [_run_within(make(), count, picker, purse, per_cost=per_cost) for per_cost in (True, False)]
    return Picks(*max(runs, key=lambda run: float(run[1].sum())))


def _run(function: SetFunction, count: int, picker: Picker) -> tuple[Tensor, Tensor]:
    """`count` picks and their gains."""
    order, merits = pick_repeatedly(lambda: function.merits, function.take, count, picker)
    return order, function.gains(merits)


def _run_within(
    function: SetFunction, count: int, picker: Picker, purse: Purse, *, per_cost: bool
) -> tuple[Tensor, Tensor]:
    """The picks that the purse pays for, by gain per cost or by gain, and their gains."""
    order = torch.empty(count, dtype=torch.int64, device=picker.given.device)
    gains: list[float] = []
    left = purse.budget
    for t in range(count):
        found = function.gains(function.merits)
        values = (found / purse.costs if per_cost else found).masked_fill(purse.costs > left, -torch.inf)
        pick = picker.pick(values, order[:t])
        # Where the best cannot be paid nothing can; a sample that is given has been paid already.
        if t >= len(picker.given) and (values[pick] == -torch.inf or bool((order[:t] == pick).any())):
            return order[:t], torch.tensor(gains, dtype=torch.float64, device=order.device)
        order[t] = pick[0]
        gains.append(float(found[pick]))
        left -= float(purse.costs[pick])
        function.take(pick)
    return order, torch.tensor(gains, dtype=torch.float64, device=order.device)

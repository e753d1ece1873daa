"""The baseline that everything is compared with: a uniform draw."""

from collections.abc import Sequence

import torch

from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.types import Picks, Signals


@SELECTORS.add(
    "uniform",
    "a random draw without replacement, the same number or share of each class",
    facts=SelectorFacts(needs=(), reference="the baseline", cost="O(n) time and memory", random=True, regression=True),
)
def uniform(points: Sequence[Signals], count: int, *, generator: torch.Generator) -> Picks:
    """Draw `count` samples, each set of that size being equally likely.

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.randn(9, 2))
        >>> len(set(uniform([signals], 4, generator=torch.Generator()).order.tolist()))
        4
    """
    return Picks(torch.randperm(points[0].n, generator=generator)[:count])

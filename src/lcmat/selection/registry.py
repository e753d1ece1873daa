"""The table of selection methods; a method is a function of Signals, registered with `SELECTORS.add`.

A method is called as `function(points, count, *, ...)`: the Signals of one group of samples (a tuple of them, one for
each parameter point), how many to pick, and those of the reserved keywords below that it declares. Its remaining
keyword-only parameters are its options.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lcmat.registry import Registry
from lcmat.types import Picks

RESERVED = (
    "generator",  # torch.Generator on the CPU, derived from the seed, the method and the class
    "memory",  # bytes the method may use for a cache
    "coverage",  # stop at this coverage instead of at the count; only methods with a coverage declare it
)


@dataclass(frozen=True)
class SelectorFacts:
    """What users want to know of a method before they run it.

    Attributes:
        needs: the parts of Signals it uses: features, logits, labels.
        reference: the paper that defines it.
        cost: time and memory for n samples of d features and C classes, and k picks, in one group.
        weighted: whether it defines weights; else they are all n/k.
        prefix: whether the first j of k picks are the picks for j.
        several_points: whether it works with the Signals of several parameter points.
        random: whether the seed decides more than ties.
    """

    needs: tuple[str, ...]
    reference: str
    cost: str
    weighted: bool = False
    prefix: bool = True
    several_points: bool = False
    random: bool = False


SELECTORS: Registry[Callable[..., Picks], SelectorFacts] = Registry("method", reserved=RESERVED)


def selectors() -> dict[str, str]:
    """Name -> one-line description and options of every selection method."""
    return SELECTORS.describe()

"""The table of selection methods; a method is a function of Signals, registered with `SELECTORS.add`.

A method is called as `function(points, count, *, ...)`: the Signals of one group of samples (a tuple of them, one for
each parameter point), how many to pick, and those of the reserved keywords below that it declares. Its remaining
keyword-only parameters are its options.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lcmat.registry import Entry, Registry
from lcmat.types import Picks

RESERVED = (
    "generator",  # torch.Generator on the CPU, derived from the seed, the method and the class
    "memory",  # bytes the method may use for a cache
    "coverage",  # stop at this coverage instead of at the count; only methods with a coverage declare it
    "given",  # samples of the group that are picked already; others get the group without them
    "purse",  # costs and a budget instead of the count; only methods that can weigh costs declare it
)


@dataclass(frozen=True)
class SelectorFacts:
    """What users want to know of a method before they run it.

    Attributes:
        needs: the parts of Signals it uses: features, logits, labels, record.
        reference: the paper that defines it.
        cost: time and memory for n samples of d features and C classes, and k picks, in one group.
        weighted: whether it defines weights; else they are all n/k.
        prefix: whether the first j of k picks are the picks for j.
        several_points: whether it works with the Signals of several parameter points.
        random: whether the seed decides more than ties, which it always does.
        regression: whether it works with real-valued labels.
        score: whether it keeps the samples of highest score, which are its gains.
        validation: whether it looks at validation Signals where they are given.
        path: shares of a proxy's training after which it looks at it, where a run names no points; empty for the end.
    """

    needs: tuple[str, ...]
    reference: str
    cost: str
    weighted: bool = False
    prefix: bool = True
    several_points: bool = False
    random: bool = False
    regression: bool = False
    score: bool = False
    validation: bool = False
    path: tuple[float, ...] = ()

    def describe(self) -> tuple[str, str, str]:
        """What it needs and gives, its cost, and where it is defined: a line each.

        Example:
            >>> facts = SelectorFacts(needs=("logits",), reference="Shannon, 1948", cost="O(n C) time")
            >>> facts.describe()[0]
            'needs logits; no weights; deterministic but for ties'
        """
        needs = ", ".join(self.needs) or "nothing"
        traits = [
            f"needs {needs}{' (and validation, where given)' if self.validation else ''}",
            "weights" if self.weighted else "no weights",
            "drawn by the seed" if self.random else "deterministic but for ties",
        ]
        return "; ".join(traits), f"cost: {self.cost}", f"source: {self.reference}"


SELECTORS: Registry[Callable[..., Picks], SelectorFacts] = Registry("method", reserved=RESERVED)


def selectors() -> dict[str, str]:
    """Name -> one-line description and options of every selection method."""
    return SELECTORS.describe()


def facts_of(method: str, options: Mapping[str, Any]) -> SelectorFacts:
    """The facts of a method with these options: one that wraps a score needs what the score needs."""
    entry = SELECTORS.find(method)
    return find_score(options["score"]).facts if "score" in options else entry.facts


def find_score(name: str) -> Entry[Callable[..., Picks], SelectorFacts]:
    """The entry of a method that ranks by a score.

    Raises:
        ValueError: for any other name; the valid ones are listed.
    """
    scores = [entry.name for entry in SELECTORS if entry.facts.score]
    if name not in scores:
        raise ValueError(f"expected score as one of {', '.join(scores)}, got {name!r}")
    return SELECTORS.find(name)

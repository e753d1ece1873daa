"""The memory: a few samples of each class that has been, never more than its budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lcmat.selection.budget import shares
from lcmat.types import Data, FeatureData, ImageData


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of one class, the most valuable first.

    Attributes:
        inputs: samples as the data stores them, `[m · views, ...]`.
        views: samples that one place in the memory holds: f² for a multi-formation condensed image, else 1.
    """

    inputs: Tensor
    views: int = 1

    def __post_init__(self) -> None:
        if self.views < 1 or len(self.inputs) % self.views:
            raise ValueError(f"expected {self.views} samples for every place, got {len(self.inputs)} in all")

    def __len__(self) -> int:
        """Places taken."""
        return len(self.inputs) // self.views

    def first(self, count: int) -> "Kept":
        """The first places."""
        return self if count >= len(self) else replace(self, inputs=self.inputs[: count * self.views])


@dataclass(frozen=True)
class Budget:
    """How much a memory may hold; exactly one of the two is given.

    Attributes:
        per_class: samples of each class.
        total: samples in all: as classes arrive, each is cut to an equal share.
    """

    per_class: int | None = None
    total: int | None = None

    def __post_init__(self) -> None:
        given = {name: value for name in ("per_class", "total") if (value := getattr(self, name)) is not None}
        if len(given) != 1:
            raise ValueError(f"expected either per_class or total, got {' and '.join(given) or 'none of them'}")
        ((name, value),) = given.items()
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"expected {name} as a number of samples, at least 1, got {value!r}")

    def share(self, available: Mapping[int, int]) -> dict[int, int]:
        """How many of each class, where so many are at hand; of a total, others take what a small class leaves.

        Raises:
            ValueError: when the total has no place for every class.

        Example:
            >>> Budget(total=10).share({0: 50, 1: 3, 2: 50}), Budget(per_class=5).share({0: 50, 1: 3})
            ({0: 4, 1: 3, 2: 3}, {0: 5, 1: 3})
        """
        if self.per_class is not None:
            return {index: min(self.per_class, size) for index, size in available.items()}
        assert self.total is not None  # one of the two is given
        if self.total < len(available):
            raise ValueError(
                f"expected a total of at least {len(available)}, one sample for each class that has arrived, "
                f"got {self.total}"
            )
        amounts = shares(min(self.total, sum(available.values())), list(available.values()), "equal")
        return dict(zip(available, amounts, strict=True))


@dataclass(frozen=True, eq=False)
class Memory:
    """A replay memory; `filled` gives the next one.

    Attributes:
        like: data of the same kind, for the classes and the normalisation.
        budget: never exceeded.
        kept: class -> what is kept of it.
    """

    like: Data
    budget: Budget
    kept: Mapping[int, Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        amounts = {index: len(part) for index, part in self.kept.items()}
        limit, found = self.budget.per_class, max(amounts.values(), default=0)
        if limit is None:
            limit, found = self.budget.total, sum(amounts.values())
        if found > (limit or 0):
            raise ValueError(f"the memory would hold {found} samples, its budget is {limit}")

    def __len__(self) -> int:
        """Places taken, which is what the budget counts."""
        return sum(len(part) for part in self.kept.values())

    def plan(self, arriving: Mapping[int, int]) -> dict[int, int]:
        """How many of each class the memory will hold when classes arrive with so many samples at hand."""
        return self.budget.share({**{index: len(part) for index, part in self.kept.items()}, **arriving})

    def filled(self, amounts: Mapping[int, int], new: Mapping[int, Kept]) -> "Memory":
        """The memory with new classes, and the old ones cut to their first samples.

        Args:
            amounts: of each class, from `plan`.
            new: what is kept of the classes that arrive; what was kept of them before is given up.

        Raises:
            ValueError: when this would exceed the budget, or a class has another number of samples than planned.
        """
        kept = {index: {**self.kept, **new}[index].first(amount) for index, amount in amounts.items()}
        if wrong := [index for index, amount in amounts.items() if len(kept[index]) != amount]:
            raise ValueError(f"expected the planned number of samples of every class, but not so for classes {wrong}")
        return replace(self, kept=kept)

    def data(self, classes: Sequence[int] | None = None) -> Data | None:
        """All that is kept, of some classes or of all, as it is trained on; None where that is nothing."""
        chosen = [index for index in self.kept if (classes is None or index in classes) and len(self.kept[index])]
        if not chosen:
            return None
        inputs = torch.cat([self.kept[index].inputs for index in chosen])
        labels = torch.cat([torch.full((len(self.kept[index].inputs),), index) for index in chosen])
        return with_samples(self.like, inputs, labels)


def with_samples(like: Data, inputs: Tensor, labels: Tensor) -> Data:
    """Other samples in the place of the data's own; classes and normalisation stay.

    Example:
        >>> like = FeatureData(torch.randn(5, 2), torch.arange(5) % 2, ("a", "b"))
        >>> more = with_samples(like, torch.zeros(1, 2), torch.tensor([1]))
        >>> len(more), more.mean == like.mean
        (1, True)
    """
    if isinstance(like, ImageData):
        return replace(like, images=inputs, labels=labels, names=(), known_fingerprint="")
    assert isinstance(like, FeatureData)  # there are two kinds
    return replace(like, features=inputs, labels=labels, names=(), known_fingerprint="")


def joined(first: Data, second: Data | None, *, times: int = 1) -> Data:
    """The samples of both, the second's repeated."""
    if second is None:
        return first
    inputs = torch.cat([first.inputs, *[second.inputs] * times])
    return with_samples(first, inputs, torch.cat([first.labels, *[second.labels] * times]))

"""Which samples an epoch visits, and how much each counts: the form that all ways of choosing share."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Picks:
    """What one epoch visits.

    Attributes:
        rows: of the data, int64, `[k]`; a row may stand there twice.
        weights: of the rows' losses, float32, `[k]`, or None where all count the same.
    """

    rows: Tensor
    weights: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Losses:
    """What was recorded in one epoch.

    Attributes:
        rows: that were recorded, each once, `[m]`.
        loss: the mean of each row's losses in that epoch, float64, `[m]`.
        correct: whether the row was classified rightly, bool, `[m]`.
    """

    rows: Tensor
    loss: Tensor
    correct: Tensor


@dataclass(frozen=True)
class Plan:
    """What every way of choosing needs to know of a training.

    Attributes:
        n: samples there are.
        count: samples an epoch visits; n where no fraction was given.
        every: epochs between two choices.
        warmup: first epochs, which visit everything.
        epochs: of the whole training, or None when unknown.
        seed: of everything that is drawn.
    """

    n: int
    count: int
    every: int
    warmup: int
    epochs: int | None
    seed: int

    def turn(self, epoch: int) -> int:
        """The number of the choice that an epoch after the warm-up goes by."""
        return (epoch - self.warmup) // self.every


class Schedule(Protocol):
    """One way of choosing; epochs are counted from 0."""

    wants_losses: bool

    def pick(self, epoch: int, /) -> Picks:
        """What an epoch visits, in any order."""
        ...

    def size(self, epoch: int, /) -> int | None:
        """How many rows an epoch will visit, or None where that is not known before."""
        ...

    def learn(self, losses: Losses, /) -> None:
        """Take in what was recorded in an epoch."""
        ...

    def adopt(self, epoch: int, picks: Picks, /) -> None:
        """Go by what the first rank chose for an epoch."""
        ...

    def state(self) -> dict[str, Tensor]:
        """All that later choices depend on."""
        ...

    def load(self, state: dict[str, Tensor]) -> None:
        """Take back what `state` gave."""
        ...


def everything(n: int) -> Picks:
    """All rows, each counting the same."""
    return Picks(torch.arange(n))

"""What choosing costs, beside the training that it steers."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

# Below this many seconds a verdict would be about noise.
_WORTH_A_WARNING = 1.0


@dataclass(frozen=True)
class Cost:
    """Seconds so far.

    Attributes:
        turns: how often samples were chosen anew.
        signals: passes over the data for Signals.
        select: the choosing itself.
        training: between the beginning of an epoch and its last recorded losses, or the next epoch where none are
            recorded.
        saved: what the samples that were left out would have taken, at the mean time of a visited one.
    """

    turns: int
    signals: float
    select: float
    training: float
    saved: float

    @property
    def spent(self) -> float:
        """On Signals and choosing."""
        return self.signals + self.select

    @property
    def share(self) -> float:
        """Of choosing, Signals included, in the time of everything; 0 before anything was done."""
        total = self.spent + self.training
        return self.spent / total if total else 0.0


class Clock:
    """Measures the training between two choices."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._started: float | None = None
        self._recorded: float | None = None
        self._visits = 0
        self.training, self.visited, self.left_out = 0.0, 0, 0
        self._warned = False

    def begin(self, visits: int, epoch_size: int) -> None:
        """An epoch begins that visits so many rows here, and so many on all ranks."""
        self._started, self._recorded, self._visits = time.perf_counter(), None, visits
        self.left_out += round((self._n - epoch_size) * visits / max(epoch_size, 1))

    def tick(self) -> None:
        """Losses were recorded: the epoch lasts at least until now."""
        self._recorded = time.perf_counter()

    def end(self) -> None:
        """The epoch is over, if there was one."""
        if self._started is not None:
            stop = time.perf_counter() if self._recorded is None else self._recorded
            self.training += stop - self._started
            self.visited += self._visits
            self._started = None

    def state(self) -> dict[str, float]:
        """What was counted up to the end of the last epoch, the one under way included."""
        self.end()
        return {"training": self.training, "visited": self.visited, "left_out": self.left_out}

    def load(self, state: Mapping[str, float]) -> None:
        """Go on counting from there."""
        self.training = state["training"]
        self.visited, self.left_out = int(state["visited"]), int(state["left_out"])

    def saved(self) -> float:
        """Seconds for the samples left out, at the mean time of those visited."""
        return self.left_out * self.training / self.visited if self.visited else 0.0

    def warn(self, cost: Cost) -> None:
        """Say once that choosing takes longer than training on everything would."""
        if self._warned or cost.spent < max(cost.saved, _WORTH_A_WARNING):
            return
        self._warned = True
        warnings.warn(
            f"choosing the samples has taken {cost.spent:.1f} s in {cost.turns} turns and has saved about "
            f"{cost.saved:.1f} s of training: training on everything would have been faster; choose less often "
            "(every=), from a pool (pool=), or with method 'random'",
            stacklevel=4,
        )

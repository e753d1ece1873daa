"""How a training came to its accuracy: a test after each epoch, for the oracle's column and for time to an accuracy.

Neither is a result. The best epoch on the test set is known to nobody who has no test set; it is measured because
papers quote it, and shown under the name oracle alone.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch import nn

from lcmat import training
from lcmat.types import Data


class Watch:
    """Tests a network after each epoch; given to `train` as `after_epoch`.

    Attributes:
        points: (epoch, seconds of training, accuracy) of each epoch.
        spent: seconds of the tests, which are no part of the training.
    """

    def __init__(self, test: Data, device: torch.device | str | None) -> None:
        self.test, self.device = test, device
        self.points: list[list[float]] = []
        self.spent = 0.0

    def __call__(self, epoch: int, seconds: float, model: nn.Module) -> None:
        """Test it as it is now."""
        start = time.perf_counter()
        self.points.append([epoch, seconds, training.accuracy(model, self.test, device=self.device)])
        self.spent += time.perf_counter() - start


@dataclass(frozen=True)
class Reached:
    """When trainings reached an accuracy.

    Attributes:
        runs: that reached it.
        of: runs in all.
        seconds: of training until then, mean over those that reached it; None where none did.
    """

    runs: int
    of: int
    seconds: float | None


def best(records: Sequence[Mapping[str, Any]]) -> float | None:
    """The accuracy of the best epoch on the test set, mean over the runs; None where a run was not tested after each.

    Example:
        >>> best([{"curve": [[1, 0.1, 0.7], [2, 0.2, 0.6]]}])
        0.7
    """
    if not all("curve" in record for record in records):
        return None
    return fmean(max(accuracy for _, _, accuracy in record["curve"]) for record in records)


def time_to(accuracy: float, records: Sequence[Mapping[str, Any]]) -> Reached | None:
    """When runs first had an accuracy after an epoch; None where one was not tested after each.

    Example:
        >>> time_to(0.6, [{"curve": [[1, 0.5, 0.4], [2, 1.0, 0.7]]}, {"curve": [[1, 0.5, 0.3]]}])
        Reached(runs=1, of=2, seconds=1.0)
    """
    if not all("curve" in record for record in records):
        return None
    firsts = [next((s for _, s, a in record["curve"] if a >= accuracy - 1e-12), None) for record in records]
    found = [seconds for seconds in firsts if seconds is not None]
    return Reached(len(found), len(records), fmean(found) if found else None)

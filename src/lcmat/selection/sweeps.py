"""Facility location with every gain computed anew for every pick: on a GPU one pass over a cached matrix.

A pass over the distances of a few thousand samples takes such a device less time than it takes to start, and to wait
for, the operations that would look at fewer of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from lcmat import kernels
from lcmat.selection.distances import Cached

LARGEST = 8192  # samples; with more of them a pass takes longer than keeping gains up to date
ROUND = 64  # picks after which it is asked whether they are enough


@dataclass(frozen=True, eq=False)
class Sweep:
    """The tensors of one run, all of which stay where they are.

    Attributes:
        matrix: D, `[n, n]`.
        permutation: of equal gains the first in it wins, `[n]`.
        nearest: c, the distance of each sample to its nearest pick, `[n]`.
        barred: −∞ for the samples that are picked, else 0, float64, `[n]`.
        gains: of the samples in the order of the permutation, float64, `[n]`.
        order: the picks, `[count]`.
        totals: Σ_i c_i after each pick, float64, `[count]`.
    """

    matrix: Tensor
    permutation: Tensor
    nearest: Tensor
    barred: Tensor
    gains: Tensor
    order: Tensor
    totals: Tensor

    @classmethod
    def of(cls, distances: Cached, count: int, permutation: Tensor) -> "Sweep":
        """A run before its first pick."""
        matrix = distances.matrix.contiguous()
        zeros = torch.zeros(distances.n, dtype=torch.float64, device=matrix.device)
        return cls(
            matrix=matrix,
            permutation=permutation,
            nearest=torch.full_like(matrix[0], distances.largest),
            barred=zeros,
            gains=zeros.clone(),
            order=torch.empty(count, dtype=torch.int64, device=matrix.device),
            totals=zeros.new_empty(count),
        )

    def take(self, picks: Tensor) -> None:
        """Settle the first picks, `[g]`."""
        size = len(picks)
        self.order[:size] = picks
        self.barred.index_fill_(0, picks, -torch.inf)
        for t in range(size):
            torch.minimum(self.nearest, self.matrix.index_select(0, picks[t : t + 1])[0], out=self.nearest)
            self.totals[t] = self.nearest.sum(dtype=torch.float64)


Step: TypeAlias = Callable[[Sweep, int], None]


def plain_step(run: Sweep, t: int) -> None:
    """Make the pick at place t: the largest Σ_i max(c_i − D_ij, 0)."""
    gains = (run.nearest - run.matrix).clamp_(min=0).sum(1, dtype=torch.float64).add_(run.barred)
    run.gains.copy_(gains[run.permutation])
    pick = run.permutation[run.gains.argmax()]
    run.order[t] = pick
    run.barred[pick] = -torch.inf
    torch.minimum(run.nearest, run.matrix[pick], out=run.nearest)
    run.totals[t] = run.nearest.sum(dtype=torch.float64)


def pick_by_sweeps(
    distances: Cached,
    count: int,
    permutation: Tensor,
    *,
    start: list[int],
    enough: Callable[[list[float]], bool],
    step: Step = plain_step,
) -> tuple[Tensor, Tensor]:
    """At most `count` picks of largest gain, and L after each; see `lcmat.selection.lazy.pick_lazily`.

    Example:
        >>> from lcmat.selection.distances import from_matrix
        >>> points = torch.tensor([0.0, 1.0, 2.0, 9.0])
        >>> distances = from_matrix((points[:, None] - points).abs())
        >>> order, totals = pick_by_sweeps(distances, 2, torch.arange(4), start=[], enough=lambda _: False)
        >>> order.tolist(), totals.tolist()
        ([1, 3], [10.0, 2.0])
    """
    run = Sweep.of(distances, count, permutation)
    run.take(permutation.new_tensor(start))
    with torch.cuda.device_of(run.matrix):  # kernels start on the current device
        for t in range(len(start), count):
            step(run, t)
            if (t + 1) % ROUND == 0 and enough(run.totals[: t + 1].tolist()):
                return run.order[: t + 1], run.totals[: t + 1]
    return run.order, run.totals


@cache
def sweeping_kernels(device: torch.device) -> Any:
    """The module whose `step` is two kernels in Triton, if there is one and it does there what the plain one does."""
    return kernels.tried(
        "lcmat.selection.fused_sweeps", lambda module: _compare(module.step, device), doing="selecting"
    )


def _compare(step: Step, device: torch.device) -> None:
    """Whether a step does what the plain one does.

    Raises:
        AssertionError: when it does not.
    """
    # Whole-numbered distances in the plane, so that ties abound and sums are exact; no generator is touched.
    places = torch.arange(70.0, device=device)
    points = torch.stack([places.mul(1.7).sin(), places.mul(2.3).cos()], 1).mul_(9).round_()
    matrix = (points[:, None] - points).abs().sum(2)
    distances = Cached(matrix, float(matrix.max()), matrix.sum(1, dtype=torch.float64))
    found, truth = (
        pick_by_sweeps(distances, 40, places.long().flip(0), start=[3], enough=lambda _: False, step=one)
        for one in (step, plain_step)
    )
    torch.testing.assert_close(found, truth, rtol=1e-12, atol=0)

"""Non-negative ridge regression on a set that grows: min_{w ≥ 0} ‖Σ_i w_i g_i − T‖² + λ‖w‖², from inner products.

The active-set method of Lawson and Hanson (1974), started each time from the last solution. With P the samples of
positive weight and L the Cholesky factor of K = (⟨g_i, g_j⟩)_PP + λI, it is the inverse M = L⁻¹ that is kept: a sample
that enters P adds a row, one that leaves takes plane rotations, and every solve is a product with M, which reads it in
place. (A triangular solve would copy its matrix each time.) No step costs more than O(k²).

Vectors go through NumPy, whose calls take a fraction of the time that torch's take to begin; matrices through torch,
whose threads `lcmat.runtime.one_thread` holds back. Both look at the same memory.
"""

import math
from bisect import insort
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

INDEPENDENT = 1e-12  # of ‖g‖² + λ: with less left beside the others, a sample is a combination of them
NEGLIGIBLE = 1e-12  # of the largest ⟨g, T⟩: a smaller slope is rounding

Weights: TypeAlias = NDArray[np.float64]


class GrowingRegression:
    """The weights of the samples added so far, float64, on the CPU.

    Args:
        capacity: how many samples may be added.
        penalty: λ.
        signed: let weights be negative, for plain orthogonal matching pursuit.
    """

    def __init__(self, capacity: int, penalty: float, *, signed: bool = False) -> None:
        self.signed = signed
        self.penalty = penalty
        self.size = 0
        self.largest = 0.0  # |⟨g, T⟩| so far
        self.weights = torch.zeros(capacity, dtype=torch.float64)
        self.inverse = torch.zeros(capacity, capacity, dtype=torch.float64)  # M
        self.outside: list[int] = []  # those without a weight, in ascending order
        self._weights, self._inverse = self.weights.numpy(), self.inverse.numpy()
        self._targets = np.zeros(capacity)
        self._kernel = np.zeros((capacity, capacity))
        self._inside = np.zeros(capacity, dtype=np.int64)  # the support, and how many there are in it
        self._count = 0
        self._half = np.zeros(capacity)  # M times the targets of the support

    @property
    def support(self) -> Tensor:
        """The samples with a weight, in the order in which they came to it."""
        return torch.from_numpy(self._inside[: self._count].copy())

    @property
    def explained(self) -> float:
        """By how much the objective is below ‖T‖²: Σ_i w_i ⟨g_i, T⟩ at its minimum."""
        return float(self._targets[: self.size] @ self._weights[: self.size])

    def add(self, products: Tensor, target: float) -> None:
        """Add a sample and make the weights the best ones again.

        Args:
            products: ⟨g, g_i⟩ with the samples already there, and last ‖g‖², `[size + 1]`.
            target: ⟨g, T⟩.
        """
        new, k = self.size, self.size + 1
        self.size = k
        self._kernel[new, :k] = self._kernel[:k, new] = products.numpy()
        self._kernel[new, new] += self.penalty
        self._targets[new] = target
        self.outside.append(new)
        if self.signed:
            self._enter(new)
            return
        self.largest = max(self.largest, abs(target))
        closed: set[int] = set()
        # Each entry lowers the objective, so that this ends; the bound is for rounding.
        for _ in range(3 * k):
            candidates = [sample for sample in self.outside if sample not in closed]
            if not candidates:
                break
            # A product by BLAS could start threads here; this is a plain loop.
            fitted = np.einsum("ij,j->i", self._kernel[candidates, :k], self._weights[:k])
            slopes = self._targets[candidates] - fitted
            best = int(slopes.argmax())
            if slopes[best] <= NEGLIGIBLE * self.largest:
                break
            self._enter(candidates[best])
            if candidates[best] in self.outside:
                closed.add(candidates[best])

    def _enter(self, sample: int) -> None:
        """Let a sample have a weight, and take those out whose weights would become negative.

        With l = M k, k its products with the support, the new row of L is [l, π], hence that of M [−lᵀM, 1]/π; and
        what the weights move by, where they may, is that row times the new entry of M times the targets.
        """
        m = self._count
        support = self._inside[:m]
        inverse = self.inverse[:m, :m]
        row = torch.mv(inverse, torch.from_numpy(self._kernel[sample, support]))
        known = row.numpy()
        own = float(self._kernel[sample, sample])
        rest = own - float(known @ known)
        if rest <= INDEPENDENT * own:
            return
        pivot = math.sqrt(rest)
        half = (self._targets[sample] - known @ self._half[:m]) / pivot
        new = self._inverse[m, : m + 1]
        np.divide(torch.mv(inverse.T, row).numpy(), -pivot, out=new[:m])
        new[m] = 1 / pivot
        self._half[m] = half
        self._inside[m] = sample
        self._count = m + 1
        self.outside.remove(sample)
        goal = half * new  # K⁻¹ times the targets of the support
        goal[:m] += self._weights[support]
        while not self._move(goal):
            m = self._count
            goal = torch.mv(self.inverse[:m, :m].T, torch.from_numpy(self._half[:m])).numpy()

    def _move(self, goal: Weights) -> bool:
        """Whether the weights of the support get to a goal; where not, those are out of it that would be negative."""
        support = self._inside[: self._count]
        if self.signed or not len(goal) or goal.min() > 0:
            self._weights[support] = goal
            return True
        # As far towards the goal as no weight becomes negative.
        falling = goal <= 0
        current = self._weights[support]
        steps = np.where(falling, 0.0, np.inf)
        np.divide(current, current - goal, out=steps, where=falling & (goal < current))
        step = steps.min()
        leaving = steps <= step
        current += step * (goal - current)
        current[leaving] = 0
        self._weights[support] = current
        for place in reversed(leaving.nonzero()[0].tolist()):
            self._leave(place)
        return False

    def _leave(self, place: int) -> None:
        """Take one sample out of the inverse.

        Without it K⁻¹ = MᵀM becomes Mᵀ(I − uuᵀ)M, u its column of M scaled to length one: the Schur complement. The
        rotations that turn u, entry by entry, into a multiple of one axis make a row out of each two neighbours,

            (s_i/s_{i+1}) M_{i+1} − u_{i+1}/(s_i s_{i+1}) Σ_{j ≤ i} u_j M_j,    s_i² = Σ_{j ≤ i} u_j²,

        from the sample's own row on, which leaves M triangular; running sums do them all at once.
        """
        m = self._count
        inverse, half, inside = self._inverse, self._half, self._inside
        column = inverse[place:m, place].copy()
        rows = np.concatenate(
            [inverse[place:m, :place], inverse[place:m, place + 1 : m], half[place:m, None]], axis=1
        )  # fmt: skip
        sums = (column[:, None] * rows).cumsum(0)
        lengths = np.sqrt(np.square(column).cumsum())
        before, after = lengths[:-1, None], lengths[1:, None]
        rotated = rows[1:] * (before / after) - sums[:-1] * (column[1:, None] / (before * after))
        inverse[place : m - 1, : m - 1] = rotated[:, :-1]
        inverse[m - 1, :m] = 0
        half[place : m - 1] = rotated[:, -1]
        insort(self.outside, int(inside[place]))
        inside[place : m - 1] = inside[place + 1 : m].copy()
        self._count = m - 1

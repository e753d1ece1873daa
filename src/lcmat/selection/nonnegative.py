"""Non-negative ridge regression on a set that grows: min_{w ≥ 0} ‖Σ_i w_i g_i − T‖² + λ‖w‖², from inner products.

The active-set method of Lawson and Hanson (1974), started each time from the last solution. With P the samples of
positive weight and L the Cholesky factor of K = (⟨g_i, g_j⟩)_PP + λI, it is the inverse M = L⁻¹ that is kept: a sample
that enters P adds a row, one that leaves takes plane rotations, and every solve is a product with M, which reads it in
place. (A triangular solve would copy its matrix each time.) No step costs more than O(k²).
"""

import math
from bisect import insort

import torch
from torch import Tensor

INDEPENDENT = 1e-12  # of ‖g‖² + λ: with less left beside the others, a sample is a combination of them
NEGLIGIBLE = 1e-12  # of the largest ⟨g, T⟩: a smaller slope is rounding


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
        self.targets = torch.zeros(capacity, dtype=torch.float64)
        self.kernel = torch.zeros(capacity, capacity, dtype=torch.float64)
        self.support = torch.empty(0, dtype=torch.int64)
        self.outside: list[int] = []  # those without a weight, in ascending order
        self.inverse = torch.zeros(capacity, capacity, dtype=torch.float64)  # M
        self.half = torch.zeros(capacity, dtype=torch.float64)  # M times the targets of the support

    @property
    def explained(self) -> float:
        """By how much the objective is below ‖T‖²: Σ_i w_i ⟨g_i, T⟩ at its minimum."""
        return float(self.targets @ self.weights)

    def add(self, products: Tensor, target: float) -> None:
        """Add a sample and make the weights the best ones again.

        Args:
            products: ⟨g, g_i⟩ with the samples already there, and last ‖g‖², `[size + 1]`.
            target: ⟨g, T⟩.
        """
        new, k = self.size, self.size + 1
        self.size = k
        self.kernel[new, :k] = products
        self.kernel[:k, new] = products
        self.kernel[new, new] += self.penalty
        self.targets[new] = target
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
            rows = torch.tensor(candidates)
            slopes = self.targets[rows] - self.kernel[rows, :k] @ self.weights[:k]
            best = int(slopes.argmax())
            if float(slopes[best]) <= NEGLIGIBLE * self.largest:
                break
            self._enter(candidates[best])
            if candidates[best] in self.outside:
                closed.add(candidates[best])

    def _enter(self, sample: int) -> None:
        """Let a sample have a weight, and take those out whose weights would become negative.

        With l = M k, k its products with the support, the new row of L is [l, π], hence that of M [−lᵀM, 1]/π.
        """
        m = len(self.support)
        inverse = self.inverse[:m, :m]
        row = inverse @ self.kernel[sample].index_select(0, self.support)
        own = float(self.kernel[sample, sample])
        rest = own - float(row @ row)
        if rest <= INDEPENDENT * own:
            return
        pivot = math.sqrt(rest)
        self.inverse[m, :m] = (inverse.T @ row) / -pivot
        self.inverse[m, m] = 1 / pivot
        self.half[m] = (self.targets[sample] - row @ self.half[:m]) / pivot
        self.support = torch.cat([self.support, torch.tensor([sample])])
        self.outside.remove(sample)
        while len(self.support):
            m = len(self.support)
            goal = self.inverse[:m, :m].T @ self.half[:m]  # K⁻¹ times the targets of the support
            falling = goal <= 0
            if self.signed or not falling.any():
                self.weights[self.support] = goal
                return
            # As far towards the goal as no weight becomes negative.
            current = self.weights[self.support]
            steps = torch.where(falling, current / (current - goal), torch.inf)
            current += steps.min() * (goal - current)
            leaving = falling & (steps <= steps.min())
            current[leaving] = 0
            self.weights[self.support] = current
            for place in reversed(leaving.nonzero().flatten().tolist()):
                self._leave(place)

    def _leave(self, place: int) -> None:
        """Take one sample out of the inverse.

        Without it K⁻¹ = MᵀM becomes Mᵀ(I − uuᵀ)M, u its column of M scaled to length one: the Schur complement. The
        rotations that turn u, entry by entry, into a multiple of one axis make a row out of each two neighbours,

            (s_i/s_{i+1}) M_{i+1} − u_{i+1}/(s_i s_{i+1}) Σ_{j ≤ i} u_j M_j,    s_i² = Σ_{j ≤ i} u_j²,

        from the sample's own row on, which leaves M triangular; running sums do them all at once.
        """
        m = len(self.support)
        column = self.inverse[place:m, place].clone()
        rows = torch.cat(
            [self.inverse[place:m, :place], self.inverse[place:m, place + 1 : m], self.half[place:m, None]], dim=1
        )
        sums = (column[:, None] * rows).cumsum(0)
        lengths = column.square().cumsum(0).sqrt()
        before, after = lengths[:-1, None], lengths[1:, None]
        rotated = rows[1:] * (before / after) - sums[:-1] * (column[1:, None] / (before * after))
        self.inverse[place : m - 1, : m - 1] = rotated[:, :-1]
        self.inverse[m - 1, :m] = 0
        self.half[place : m - 1] = rotated[:, -1]
        insort(self.outside, int(self.support[place]))
        self.support = torch.cat([self.support[:place], self.support[place + 1 :]])

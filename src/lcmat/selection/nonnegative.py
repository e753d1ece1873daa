"""Non-negative ridge regression on a set that grows: min_{w ≥ 0} ‖Σ_i w_i g_i − T‖² + λ‖w‖², from inner products.

The active-set method of Lawson and Hanson (1974), started each time from the last solution. With P the samples of
positive weight, a Cholesky factor of K = (⟨g_i, g_j⟩)_PP + λI is kept: a sample that enters P adds a row, one that
leaves takes a rank-one correction, so that no step costs more than O(k²).
"""

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
        self.weights = torch.zeros(capacity, dtype=torch.float64)
        self.targets = torch.zeros(capacity, dtype=torch.float64)
        self.kernel = torch.zeros(capacity, capacity, dtype=torch.float64)
        self.support = torch.empty(0, dtype=torch.int64)
        self.factor = torch.zeros(capacity, capacity, dtype=torch.float64)

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
        if self.signed:
            self._enter(new)
            return
        closed = torch.zeros(k, dtype=torch.bool)
        least = NEGLIGIBLE * float(self.targets[:k].abs().max())
        # Each entry lowers the objective, so that this ends; the bound is for rounding.
        for _ in range(3 * k):
            slopes = self.targets[:k] - self.kernel[:k, :k] @ self.weights[:k]
            slopes[self.support] = -torch.inf
            slopes[closed] = -torch.inf
            best = int(slopes.argmax())
            if slopes[best] <= least:
                break
            self._enter(best)
            closed[best] = not (self.support == best).any()

    def _enter(self, sample: int) -> None:
        """Let a sample have a weight, and take those out whose weights would become negative."""
        m = len(self.support)
        row = self._solve(self.kernel[sample, self.support])
        pivot = self.kernel[sample, sample] - row @ row
        if pivot <= INDEPENDENT * self.kernel[sample, sample]:
            return
        self.factor[m, :m] = row
        self.factor[m, m] = pivot.sqrt()
        self.support = torch.cat([self.support, torch.tensor([sample])])
        while len(self.support):
            goal = self._refit()
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
        """Take one sample out of the factor.

        Below its row, B Bᵀ becomes B Bᵀ + l lᵀ, with l the column that goes. With p = B⁻¹l and t_i = 1 + Σ_{j ≤ i} p_j²
        the factor of I + p pᵀ is known (Gill, Golub, Murray and Saunders, 1974), and the product of B with it takes
        running sums over the columns only.
        """
        m = len(self.support)
        below = self.factor[place + 1 : m, place + 1 : m].clone()
        column = self.factor[place + 1 : m, place].clone()
        self.factor[place : m - 1, :place] = self.factor[place + 1 : m, :place].clone()
        p = torch.linalg.solve_triangular(below, column[:, None], upper=False)[:, 0]
        after = 1 + p.square().cumsum(0)
        before = torch.cat([after.new_ones(1), after[:-1]])
        scaled = below * p
        later = scaled.flip(1).cumsum(1).flip(1) - scaled
        diagonal, column_scale = (after / before).sqrt(), p / (after * before).sqrt()
        self.factor[place : m - 1, place : m - 1] = below * diagonal + later * column_scale
        self.factor[m - 1, :m] = 0
        self.support = torch.cat([self.support[:place], self.support[place + 1 :]])

    def _solve(self, values: Tensor) -> Tensor:
        """L⁻¹ times a vector."""
        m = len(self.support)
        solution: Tensor = torch.linalg.solve_triangular(self.factor[:m, :m], values[:, None], upper=False)
        return solution[:, 0]

    def _refit(self) -> Tensor:
        """K⁻¹ times the targets of the support."""
        m = len(self.support)
        half = self._solve(self.targets[self.support])
        solution: Tensor = torch.linalg.solve_triangular(self.factor[:m, :m].T, half[:, None], upper=True)
        return solution[:, 0]

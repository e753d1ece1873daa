"""Distances between samples, for the greedy: from a cached matrix when it fits the memory, else on the fly.

Both come from the same `Pairs`, so that the choice changes memory and speed, not the result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from lcmat import runtime
from lcmat.linear_head import Factors
from lcmat.selection.differences import FEW, direct_distances

Index: TypeAlias = Tensor | slice
TILE = 512  # rows and columns worked on at once: a tile of this size stays in a processor's cache
GPU_TILE = 4096  # on a GPU large tiles count: each operation on one must outlast its start
CANCELLED = 1e-3  # of |x|² + |y|²: a smaller |x − y|² has lost digits in single precision and is computed again


class Pairs(Protocol):
    """A symmetric distance between the n samples of one group."""

    @property
    def n(self) -> int:
        """The number of samples."""

    def block(self, rows: Index, columns: Index) -> Tensor:
        """The distances of some samples to others, `[rows, columns]`; exactly 0 of a sample to itself."""


class Rows(Protocol):
    """What farthest first needs: the distances of one sample to all."""

    @property
    def device(self) -> torch.device:
        """Where the distances are."""

    def of(self, candidates: Tensor) -> Tensor:
        """The distances of b candidates to all samples, `[b, n]`, in a tensor that the caller may overwrite."""


class Distances(Protocol):
    """What the greedy needs: distances of a few candidates to all samples, their largest value and their sums."""

    @property
    def n(self) -> int:
        """The number of samples."""

    @property
    def largest(self) -> float:
        """The largest distance."""

    @property
    def sums(self) -> Tensor:
        """For each sample the sum of its distances to all, float64, `[n]`."""

    def of(self, candidates: Tensor) -> Tensor:
        """The distances of b candidates to all samples, `[b, n]`, in a tensor that the caller may overwrite."""


@dataclass(frozen=True, eq=False)
class Cached:
    """Distances that lie in memory whole: a symmetric matrix `[n, n]`."""

    matrix: Tensor
    largest: float
    sums: Tensor

    @property
    def n(self) -> int:
        """See `Distances`."""
        return len(self.matrix)

    @property
    def device(self) -> torch.device:
        """See `Rows`."""
        return self.matrix.device

    def of(self, candidates: Tensor) -> Tensor:
        """See `Distances`."""
        return self.matrix.index_select(0, candidates)


@dataclass(frozen=True, eq=False)
class Streamed:
    """Distances that are computed from the pairs whenever they are asked for."""

    pairs: Pairs
    largest: float
    sums: Tensor

    @property
    def n(self) -> int:
        """See `Distances`."""
        return self.pairs.n

    def of(self, candidates: Tensor) -> Tensor:
        """See `Distances`."""
        return self.pairs.block(candidates, slice(None))


@dataclass(frozen=True, eq=False)
class Unmeasured:
    """Distances that nobody has gone over: computed when asked for, their sums and largest value unknown."""

    pairs: Pairs
    device: torch.device

    def of(self, candidates: Tensor) -> Tensor:
        """See `Rows`."""
        return self.pairs.block(candidates, slice(None))


def from_matrix(matrix: Tensor) -> Cached:
    """Distances given as a symmetric matrix `[n, n]`.

    Example:
        >>> import torch
        >>> from_matrix(torch.tensor([[0.0, 2.0], [2.0, 0.0]])).largest
        2.0
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
        raise ValueError(f"expected a square matrix of distances, got shape {list(matrix.shape)}")
    tile = _tile_side(matrix.device)

    def look(part: Tensor) -> tuple[Tensor, Tensor]:
        # A few rows at a time stay in a processor's cache for the second look.
        looks = [(few.sum(1).double(), few.max()) for few in torch.split(part, tile // 32)]
        return torch.cat([sums for sums, _ in looks]), torch.stack([top for _, top in looks]).max()

    with runtime.workers(matrix.device) as workers:
        sums, tops = zip(*workers.map(look, torch.split(matrix, tile)), strict=True)
    return Cached(matrix, float(torch.stack(tops).max()), torch.cat(sums))


def measure(pairs: Pairs, *, memory: int) -> Cached | Streamed:
    """Go over all pairs once, and keep the matrix when it takes at most `memory` bytes.

    Only the tiles on and above the diagonal are computed; those below mirror them.
    """
    n = pairs.n
    sample = pairs.block(slice(0, 1), slice(0, 1))
    matrix = sample.new_empty(n, n) if n * n * sample.element_size() <= memory else None
    sums = torch.zeros(n, dtype=torch.float64, device=sample.device)
    largest = sums.new_zeros(())

    def look(place: tuple[slice, slice]) -> tuple[Tensor, Tensor, Tensor]:
        """Sums over the rows and over the columns of one tile, and its largest value."""
        rows, columns = place
        tile = pairs.block(rows, columns)
        if matrix is not None:
            matrix[rows, columns] = tile
            if rows != columns:
                matrix[columns, rows] = tile.T
        # Single precision serves for a sum over one tile, not for the total.
        return tile.sum(1).double(), tile.sum(0).double(), tile.max()

    places = list(_upper_tiles(n, _tile_side(sample.device)))
    with runtime.workers(sample.device) as workers:
        for (rows, columns), (over_columns, over_rows, top) in zip(places, workers.map(look, places), strict=True):
            sums[rows] += over_columns
            if rows != columns:
                sums[columns] += over_rows
            largest = torch.maximum(largest, top)
    return Streamed(pairs, float(largest), sums) if matrix is None else Cached(matrix, float(largest), sums)


def measure_mean_of_points(points: Sequence[Pairs], *, memory: int) -> Cached | Streamed:
    """The distances of several parameter points, each divided by its mean over all pairs, summed.

    One point alone is left as it is: a factor changes no pick, and the objective keeps its unit.
    """
    if len(points) == 1:
        return measure(points[0], memory=memory)
    total: Tensor | None = None
    means = []
    for pairs in points:
        found = measure(pairs, memory=memory // 2)
        means.append(float(found.sums.sum()) / pairs.n**2 or 1.0)
        if isinstance(found, Cached):
            scaled = found.matrix.div_(means[-1])
            total = scaled if total is None else total.add_(scaled)
    return measure(Scaled(points, means), memory=memory) if total is None else from_matrix(total)


class Scaled:
    """A sum of distances, each divided by its own constant."""

    def __init__(self, parts: Sequence[Pairs], divisors: Sequence[float]) -> None:
        self.parts, self.divisors = parts, divisors
        self.n = parts[0].n

    def block(self, rows: Index, columns: Index) -> Tensor:
        """See `Pairs`."""
        total = self.parts[0].block(rows, columns).div_(self.divisors[0])
        for part, divisor in zip(self.parts[1:], self.divisors[1:], strict=True):
            total.add_(part.block(rows, columns), alpha=1 / divisor)
        return total


class Euclidean:
    """‖f_i − f_j‖₂ between feature vectors `[n, d]`."""

    def __init__(self, features: Tensor) -> None:
        self.n = len(features)
        # Distances do not change with the origin, and around the mean fewer digits cancel.
        self.centred = features - features.mean(0)
        self.squares = self.centred.square().sum(1)

    def block(self, rows: Index, columns: Index) -> Tensor:
        """See `Pairs`."""
        return self.squared_block(rows, columns).sqrt_()

    def squared_block(self, rows: Index, columns: Index) -> Tensor:
        """All ‖f_i‖² + ‖f_j‖² − 2⟨f_i, f_j⟩; in float64 where that cancels, and exactly 0 for i = j."""
        left, right = self.centred[rows], self.centred[columns]
        if left.device.type != "cpu" and len(left) <= FEW:
            return direct_distances(left, right, power=2)
        left_squares, right_squares = self.squares[rows, None], self.squares[columns]
        squared = torch.addmm(right_squares.expand(len(left), -1), left, right.T, alpha=-2).add_(left_squares)
        cancelled = squared < (left_squares + right_squares).mul_(CANCELLED)
        first, second = cancelled.nonzero(as_tuple=True)
        if len(first) > squared.numel() // 50:
            exact = torch.cdist(left.double(), right.double(), compute_mode="use_mm_for_euclid_dist")
            squared = exact.square_().to(squared.dtype)
        for part in torch.split(torch.arange(len(first), device=squared.device), _tile_side(squared.device)):
            i, j = first[part], second[part]
            squared[i, j] = (left[i].double() - right[j].double()).square().sum(1).to(squared.dtype)
        return squared.clamp_(min=0)


class Gradients:
    """‖g_i − g_j‖₂ of the last layer's per-sample gradients g = r ⊗ a, plus scaled curvature if columns are given.

    With Δr² = ‖r_i − r_j‖², Δa² = ‖a_i − a_j‖², R = ‖r‖² and A = ‖a‖²,

        ‖g_i − g_j‖² = ½ [Δr² (A_i + A_j − Δa²) + Δa² (R_i + R_j) + (R_i − R_j)(A_i − A_j)],

    which loses far fewer digits than ‖g_i‖² + ‖g_j‖² − 2⟨g_i, g_j⟩: every term vanishes when i and j agree.

    Args:
        head: the factors r and a.
        curvature: columns of the Hessian diagonal times ρ/2, `[n, K]`: Σ_k |λ_ik − λ_jk| is added.
    """

    def __init__(self, head: Factors, curvature: Tensor | None = None) -> None:
        self.n = len(head.residuals)
        self.residuals = head.residuals
        self.inputs = Euclidean(head.inputs)
        self.residual_squares = head.residuals.square().sum(1)
        self.input_squares = head.inputs.square().sum(1)
        self.curvature = curvature

    def block(self, rows: Index, columns: Index) -> Tensor:
        """See `Pairs`."""
        # Residuals have few columns, so their differences are taken directly: nothing cancels.
        total = direct_distances(self.residuals[rows], self.residuals[columns], power=2)
        inputs = self.inputs.squared_block(rows, columns)
        r_left, r_right = self.residual_squares[rows, None], self.residual_squares[columns]
        a_left, a_right = self.input_squares[rows, None], self.input_squares[columns]
        total.mul_((a_left + a_right).sub_(inputs))
        total.addcmul_(inputs, r_left + r_right)
        total.addcmul_(r_left - r_right, a_left - a_right)
        total.mul_(0.5).clamp_(min=0).sqrt_()
        if self.curvature is not None:
            total.add_(direct_distances(self.curvature[rows], self.curvature[columns], power=1))
        return total


class Divergences:
    """½ KL(p_i ‖ p_j) + ½ KL(p_j ‖ p_i) between predictions p = softmax(z), float64.

    In matrix form ½ (h_i + h_j − p_iᵀ log p_j − p_jᵀ log p_i) with h = pᵀ log p; log p stays finite where p is 0.

    Args:
        logits: z, `[n, C]`.
    """

    def __init__(self, logits: Tensor) -> None:
        self.n = len(logits)
        self.logarithms = torch.log_softmax(logits.double(), dim=1)
        self.probabilities = self.logarithms.exp()
        self.negative_entropies = (self.probabilities * self.logarithms).sum(1)

    @property
    def sums(self) -> Tensor:
        """For each sample the sum of its divergences to all, `[n]`, without going over the pairs."""
        crossed = self.probabilities @ self.logarithms.sum(0) + self.logarithms @ self.probabilities.sum(0)
        return (self.n * self.negative_entropies + self.negative_entropies.sum() - crossed) / 2

    def block(self, rows: Index, columns: Index) -> Tensor:
        """See `Pairs`."""
        total = self.negative_entropies[rows, None] + self.negative_entropies[columns]
        total.addmm_(self.probabilities[rows], self.logarithms[columns].T, alpha=-1)
        total.addmm_(self.logarithms[rows], self.probabilities[columns].T, alpha=-1)
        everyone = torch.arange(self.n, device=total.device)
        itself = everyone[rows, None] == everyone[columns]
        return total.mul_(0.5).clamp_(min=0).masked_fill_(itself, 0.0)


def _tile_side(device: torch.device) -> int:
    """How many rows and columns are worked on at once."""
    return TILE if device.type == "cpu" else GPU_TILE


def _upper_tiles(n: int, side: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the tiles on and above the diagonal."""
    for i in range(0, n, side):
        for j in range(i, n, side):
            yield slice(i, min(i + side, n)), slice(j, min(j + side, n))

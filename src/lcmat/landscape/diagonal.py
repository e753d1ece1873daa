"""The diagonal form of the curvature term, max_k |λ^T_k − λ^S_k|, and which coordinates hold it."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lcmat.linear_head import Factors, hessian_variances, top_coordinates

EVERYTHING = "all classes"


@dataclass(frozen=True)
class DiagonalGap:
    """Where the Hessian diagonals of T and S differ most, among one class or all of them.

    Attributes:
        group: a class, or 'all classes'.
        largest: max_k |λ^T_k − λ^S_k|.
        coordinate: the k of it: class and input index; the bias is the last input.
        rank: its place, from 1, among the coordinates sorted by Var(λ_k) over the group's samples of T, descending; the
            smallest K that holds it.
        coordinates: how many there are.
    """

    group: str
    largest: float
    coordinate: tuple[int, int]
    rank: int
    coordinates: int

    def held_by(self, count: int) -> bool:
        """Whether the K coordinates of largest variance hold it."""
        return self.rank <= count


def diagonal_gap(head: Factors, full: Tensor, reduced: Tensor, *, group: str = EVERYTHING) -> DiagonalGap:
    """Compare the mean Hessian diagonals of T and S and find where they differ most.

    Args:
        head: factors of the samples of both.
        full: t, the share of each sample in T, `[n]`.
        reduced: s, the share of each sample in S, `[n]`.
        group: what the samples are.
    """
    difference = _mean_diagonal(head, full - reduced).abs()
    order = _sorted_coordinates(sorted_variances(head, full)[1])
    best = int(difference.flatten().argmax())
    rank = int(order.tolist().index(best)) + 1
    place = divmod(best, difference.shape[1])
    return DiagonalGap(group, float(difference.flatten()[best]), place, rank, difference.numel())


def diagonal_gaps(
    head: Factors, full: Tensor, reduced: Tensor, labels: Tensor, class_names: tuple[str, ...]
) -> Iterator[DiagonalGap]:
    """The comparison over all samples, then within each class that both hold, as a selection by class makes it."""
    yield diagonal_gap(head, full, reduced)
    for index, name in enumerate(class_names):
        inside = labels == index
        shares = [torch.where(inside, part, 0.0) for part in (full, reduced)]
        if all(float(part.sum()) > 0 for part in shares):
            whole, kept = (part / part.sum() for part in shares)
            yield diagonal_gap(head, whole, kept, group=name)


def sorted_variances(head: Factors, full: Tensor) -> tuple[Tensor, Tensor]:
    """Var(λ_k) over the samples of T, descending `[C(d+1)]` and by coordinate `[C, d+1]`."""
    rows = full.nonzero().flatten()
    of_t = Factors(head.residuals[rows], head.inputs[rows], head.spreads[rows])
    variances = hessian_variances(of_t)
    return variances.flatten().sort(descending=True, stable=True).values, variances


def _sorted_coordinates(variances: Tensor) -> Tensor:
    """Flat indices in the order in which `top_coordinates` takes them."""
    classes, columns = top_coordinates(variances, None)
    return classes * variances.shape[1] + columns


def _mean_diagonal(head: Factors, shares: Tensor) -> Tensor:
    """Σ_i c_i s_i ⊗ a_i², float64, `[C, d+1]`."""
    return (head.spreads.double() * shares[:, None]).T @ head.inputs.double().square()

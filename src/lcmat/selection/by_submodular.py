"""Submodular functions of the features alone: no labels and no logits are needed."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lcmat.selection.distances import Euclidean, measure_mean_of_points
from lcmat.selection.greedy import facility_location
from lcmat.selection.lazy import Purse
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.selection.stepwise import pick_stepwise
from lcmat.selection.ties import Picker, Ties
from lcmat.types import Picks, Signals

ROWS = 8192  # rows summed in double precision at once


@SELECTORS.add(
    "facility-location",
    "covers the features: every sample has a pick near it",
    facts=SelectorFacts(
        needs=("features",),
        reference="Nemhauser, Wolsey and Fisher, An analysis of approximations for maximizing submodular set "
        "functions, 1978; for data in Wei, Iyer and Bilmes, ICML 2015",
        cost="O(n² d) time and O(n²) memory with the distances cached, else O(n d) memory",
        weighted=True,
        several_points=True,
        regression=True,
    ),
)
def facility_location_of_features(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    memory: int,
    coverage: float | None = None,
    given: Tensor | None = None,
    purse: Purse | None = None,
) -> Picks:
    """Maximise F(S) = Σ_i [max D − min_{j ∈ S} D_ij] greedily, D_ij = ‖f_i − f_j‖₂.

    The weight of a pick is the number of samples it is nearest to. Several parameter points give Σ_p D^p / mean(D^p).

    Example:
        >>> signals = Signals(features=torch.tensor([[0.0], [1.0], [2.0], [9.0]]))
        >>> generator = torch.Generator().manual_seed(0)
        >>> facility_location_of_features([signals], 2, generator=generator, memory=1000).order.tolist()
        [1, 3]
    """
    distances = measure_mean_of_points([Euclidean(signals.need("features")) for signals in points], memory=memory)
    return facility_location(distances, count, generator=generator, coverage=coverage, given=given, purse=purse)


@SELECTORS.add(
    "graph-cut",
    "picks samples similar to all and unlike each other",
    facts=SelectorFacts(
        needs=("features",),
        reference="Iyer, Khargoankar, Bilmes and Asanani, Submodular combinatorial information measures, ALT 2021; for "
        "coresets in Guo, Zhao and Bai, DeepCore, DEXA 2022",
        cost="O(k n d) time, O(n d) memory",
        regression=True,
    ),
)
def graph_cut(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    given: Tensor | None = None,
    purse: Purse | None = None,
    trade: float = 2.0,
) -> Picks:
    """Maximise f(S) = λ Σ_{i ∈ V, j ∈ S} s_ij − Σ_{i, j ∈ S} s_ij greedily, s_ij = (1 + cos(f_i, f_j))/2.

    f is submodular, and monotone from λ = 2 on; below, late gains may be negative and are taken all the same. With
    u = f/‖f‖ the sums over samples are inner products with sums of u, so that no similarity matrix is built. A feature
    vector of zeros has u = 0, hence similarity 1/2 to all.

    Args:
        points: the Signals of the group.
        count: how many to pick.
        generator: orders the samples for breaking ties.
        given: samples that are picked already, `[g]`.
        purse: costs and a budget instead of the count.
        trade: λ, how much being similar to all counts beside being unlike the other picks.

    Example:
        >>> signals = Signals(features=torch.tensor([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.0, 1.0]]))
        >>> graph_cut([signals], 2, generator=torch.Generator().manual_seed(0)).order.tolist()
        [2, 1]
    """
    if not (math.isfinite(trade) and trade >= 0):
        raise ValueError(f"expected trade of 0 or more, got {trade}; from 2 on more picks are never worse")
    directions = _directions(points[0].need("features"))
    picker = Picker(Ties(len(directions), generator, directions.device), given)
    start = _Cut.starting_values(directions, trade)
    return pick_stepwise(lambda: _Cut(directions, start.clone()), count, picker=picker, purse=purse)


@SELECTORS.add(
    "log-determinant",
    "picks samples whose features span the largest volume: the greedy mode of a determinantal point process",
    facts=SelectorFacts(
        needs=("features",),
        reference="Chen, Zhang and Zhou, Fast greedy MAP inference for determinantal point process, NeurIPS 2018",
        cost="O(k (n + k) d) time, O((n + k) d) memory",
        regression=True,
    ),
)
def log_determinant(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    given: Tensor | None = None,
    purse: Purse | None = None,
    ridge: float = 0.1,
) -> Picks:
    """Maximise f(S) = log det(I + K_SS/δ) greedily, K_ij = (1 + cos(f_i, f_j))/2.

    f is monotone and submodular. With v_j = K_jj − K_jS (K_SS + δI)⁻¹ K_Sj, what the picks leave unexplained of sample
    j, its gain is log(1 + v_j/δ): a copy of a pick has the least. The picks are those of log det(K_SS + δI).

    K = ΦΦᵀ for φ = [1, u]/√2, u = f/‖f‖, so the incremental Cholesky rows of the paper, `[k, n]`, are inner products of
    φ with k vectors of d + 1 numbers, which are kept instead.

    Args:
        points: the Signals of the group.
        count: how many to pick.
        generator: orders the samples for breaking ties.
        given: samples that are picked already, `[g]`.
        purse: costs and a budget instead of the count.
        ridge: δ, the variance that is taken for noise; a smaller one punishes near copies harder.

    Example:
        >>> signals = Signals(features=torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        >>> sorted(log_determinant([signals], 2, generator=torch.Generator().manual_seed(0)).order.tolist())[1]
        2
    """
    if not (math.isfinite(ridge) and ridge > 0):
        raise ValueError(f"expected a ridge above 0, got {ridge}; 0.1 is usual")
    directions = _directions(points[0].need("features"))
    picker = Picker(Ties(len(directions), generator, directions.device), given)
    capacity = count if purse is None else max(purse.most, len(picker.given))
    return pick_stepwise(lambda: _Volume(directions, capacity, ridge), capacity, picker=picker, purse=purse)


class _Cut:
    """f(S) = λ Σ_{i ∈ V, j ∈ S} s_ij − Σ_{i, j ∈ S} s_ij of directions `[n, d]`; a merit is the gain itself."""

    def __init__(self, directions: Tensor, merits: Tensor) -> None:
        self.directions = directions
        self.merits = merits

    @staticmethod
    def starting_values(directions: Tensor, trade: float) -> Tensor:
        """The f of each sample alone, `[n]`."""
        parts = torch.split(directions, ROWS)
        total = torch.stack([part.sum(0, dtype=torch.float64) for part in parts]).sum(0)
        to_all = (len(directions) + torch.cat([part.double() @ total for part in parts])) / 2
        return trade * to_all - (1 + _squares(directions)) / 2

    def gains(self, merits: Tensor) -> Tensor:
        """See `SetFunction`."""
        return merits

    def take(self, pick: Tensor) -> None:
        """Both s_ij and s_ji leave with a pick: twice (1 + ⟨u_i, u_j⟩)/2."""
        self.merits -= (self.directions @ self.directions.index_select(0, pick)[0]).add_(1)


class _Volume:
    """f(S) = log det(I + K_SS/δ) of directions `[n, d]`; a merit is v, what the picks leave unexplained."""

    def __init__(self, directions: Tensor, capacity: int, ridge: float) -> None:
        self.directions, self.ridge = directions, ridge
        self.merits = (1 + _squares(directions)) / 2
        self.basis = self.merits.new_zeros(capacity, directions.shape[1] + 1)
        self.one = self.basis.new_ones(1)
        self.place = torch.zeros(1, dtype=torch.int64, device=directions.device)
        self.size = 0

    def gains(self, merits: Tensor) -> Tensor:
        """See `SetFunction`."""
        return torch.log1p(merits / self.ridge)

    def take(self, pick: Tensor) -> None:
        """Add the row of the Cholesky factor, as a vector of d + 1 numbers."""
        # On a GPU all rows, of which those to come are 0, so that shapes are the same at every pick.
        known = self.basis[: self.size] if self.basis.device.type == "cpu" else self.basis
        lifted = torch.cat([self.one, self.directions.index_select(0, pick)[0].double()]) / math.sqrt(2)
        rest = lifted - known.T @ (known @ lifted)
        new = rest / (self.ridge + rest @ lifted).sqrt()
        self.basis.index_copy_(0, self.place, new[None])
        self.place.add_(1)
        self.size += 1
        row = (self.directions @ new[1:].to(self.directions.dtype)).double().add_(new[0])
        self.merits.sub_(row.square_().div_(2)).clamp_(min=0)


def _directions(features: Tensor) -> Tensor:
    """The features as unit vectors; zeros stay zeros."""
    # The largest entry first, so that very large or small features neither overflow nor vanish when squared.
    scaled = features / features.abs().amax(1, keepdim=True).clamp(min=torch.finfo(features.dtype).tiny)
    return torch.nn.functional.normalize(scaled, dim=1)


def _squares(directions: Tensor) -> Tensor:
    """‖u‖², float64, `[n]`: exactly 1 or 0, so that samples that are equally good tie and rounding has no say."""
    return directions.any(1).double()

"""Facility location by greedy: one algorithm, lazy on a processor; by sweeps or by updates on a GPU.

With distances D and an auxiliary point e at the largest distance from everything,

    L(S) = Σ_i min_{j ∈ S} D_ij,    F(S) = L({e}) − L(S ∪ {e}),

F is monotone and submodular, so the greedy set of k points has F(S) ≥ (1 − 1/e)·max F (Nemhauser, Wolsey and
Fisher, 1978). Ties fall to the sample that comes first in a seeded permutation.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lcmat.selection.distances import Cached, Distances
from lcmat.selection.lazy import Purse, pick_lazily
from lcmat.selection.sweeps import LARGEST, pick_by_sweeps, sweeping_kernels
from lcmat.selection.ties import Ties
from lcmat.types import Picks

BLOCK = 2**25  # distances looked at together when gains are updated: 134 MB in single precision
ROUND = 64  # picks after which L is computed for all of them at once


def facility_location(
    distances: Distances,
    count: int,
    *,
    generator: torch.Generator,
    coverage: float | None = None,
    given: Tensor | None = None,
    purse: Purse | None = None,
    lazy: bool | None = None,
) -> Picks:
    """Pick greedily the `count` samples of largest F, or the fewest that reach a coverage.

    With a purse the picks are those of largest gain per cost that can still be paid, or those of largest gain if they
    reach a larger F: the better of the two has at least (1 − 1/e)/2 of the best F (Leskovec et al., 2007).

    Args:
        distances: of all pairs of samples.
        count: how many to pick, or at most how many with `coverage`.
        generator: orders the samples for breaking ties.
        coverage: stop once 1 − L(S)/L({first pick}) has reached this.
        given: samples that are picked already, `[g]`; they come first and count.
        purse: costs of the samples, and a budget that takes the place of the count.
        lazy: look again only at candidates whose old gain could still win, the other way is to know all gains at every
            pick; both pick the same. None decides by the device.

    Returns:
        Picks with gains F(S ∪ {j}) − F(S), the coverage after each pick, and weights: how many samples each pick is
        nearest to.

    Example:
        >>> import torch
        >>> from lcmat.selection.distances import from_matrix
        >>> points = torch.tensor([0.0, 1.0, 2.0, 9.0])
        >>> distances = from_matrix((points[:, None] - points).abs())
        >>> picks = facility_location(distances, 2, generator=torch.Generator().manual_seed(0))
        >>> picks.order.tolist(), picks.weigh(2).tolist()
        ([1, 3], [3.0, 1.0])
    """
    if not 0 < count <= distances.n:
        raise ValueError(f"expected to pick 1 to {distances.n} of {distances.n} samples, got {count}")
    device = distances.sums.device
    ties = Ties(distances.n, generator, device)
    if lazy is None:
        # Lazily, far fewer distances are looked at, which counts where each is computed anew; the other way, far fewer
        # operations are started and waited for.
        lazy = device.type == "cpu" or not isinstance(distances, Cached) or purse is not None
    start = [] if given is None else given.tolist()

    def enough(totals: list[float]) -> bool:
        return coverage is not None and len(totals) > 0 and 1 - totals[-1] / (totals[0] or 1.0) >= coverage

    if lazy:
        runs = [
            pick_lazily(distances, count, ties.permutation, start=start, enough=enough, purse=purse, per_cost=per_cost)
            for per_cost in ([False] if purse is None else [True, False])
        ]
        order, totals = min(runs, key=lambda run: float(run[1][-1]) if len(run[1]) else math.inf)
    elif isinstance(distances, Cached) and (kernels := _kernels_for(distances)):
        order, totals = pick_by_sweeps(
            distances, count, ties.permutation, start=start, enough=enough, step=kernels.step
        )
    else:
        order, totals = _pick_by_updates(distances, count, ties, start=start, enough=enough)
    covered = _coverage(totals)
    count = len(order) if coverage is None else max(len(start), _first_reaching(covered, coverage))
    before = torch.cat([totals.new_tensor([distances.n * distances.largest]), totals[:-1]])
    order = order[:count]
    return Picks(
        order=order,
        gains=(before - totals)[:count],
        coverage=covered[:count],
        weigh=lambda k: cluster_sizes(distances, order[:k]),
    )


def cluster_sizes(distances: Distances, order: Tensor) -> Tensor:
    """How many samples each pick is nearest to, float64, `[k]`; a tie falls to the earlier pick."""
    nearest = torch.full((distances.n,), torch.inf, dtype=torch.float64, device=order.device)
    owner = torch.zeros(distances.n, dtype=torch.int64, device=order.device)
    for start in range(0, len(order), 64):
        values, positions = distances.of(order[start : start + 64]).min(dim=0)
        closer = values < nearest
        nearest = torch.where(closer, values.double(), nearest)
        owner = torch.where(closer, positions + start, owner)
    return torch.bincount(owner, minlength=len(order)).double()


def _coverage(totals: Tensor) -> Tensor:
    """1 − L(S)/L({first pick}) after each pick; 1 where the first pick covers everything."""
    return 1 - totals / totals[0] if len(totals) and totals[0] > 0 else torch.ones_like(totals)


def _first_reaching(covered: Tensor, coverage: float) -> int:
    reached = (covered >= coverage).nonzero().flatten()
    return int(reached[0]) + 1 if len(reached) else len(covered)


def _kernels_for(distances: Cached) -> Any:
    """The kernels to sweep over these distances, or None where there are none or another way is quicker."""
    device = distances.device
    return sweeping_kernels(device) if device.type == "cuda" and distances.n <= LARGEST else None


def _pick_by_updates(
    distances: Distances,
    count: int,
    ties: Ties,
    *,
    start: list[int],
    enough: Callable[[list[float]], bool],
) -> tuple[Tensor, Tensor]:
    """Every gain kept up to date: picks, and L after each.

    When a pick brings the distance of sample i to the nearest pick down from c_i to c'_i, the gain of each j falls by

        Σ_i c_i − min(max(D_ij, c'_i), c_i),

    where only samples that came nearer count. They become few soon, so that all k picks together look at about
    n² log k distances, not at n² k. The first part of the sum is the same for all j and is left out: what is kept are
    gains up to a constant. All sums are in double precision, or they would drift.
    """
    n, device = distances.n, ties.permutation.device
    everyone = torch.arange(n, device=device)
    block = max(1, BLOCK // n)
    nearest = torch.full_like(distances.of(everyone[:1])[0], distances.largest)
    # The sums that `Distances` know come from single precision.
    gains = -torch.cat([distances.of(part).sum(1, dtype=torch.float64) for part in everyone.split(block)])
    orders: list[Tensor] = []
    totals: list[Tensor] = []
    for first in range(0, count, ROUND):
        nearest_before, picks = nearest.clone(), []
        for t in range(first, min(first + ROUND, count)):
            pick = ties.permutation.new_tensor(start[t : t + 1]) if t < len(start) else ties.best(gains)
            row = distances.of(pick)[0]
            for nearer in (row < nearest).nonzero().flatten().split(block):
                rows = distances.of(nearer).clamp_(min=row[nearer, None], max=nearest[nearer, None])
                gains.add_(rows.sum(0, dtype=torch.float64))
            torch.minimum(nearest, row, out=nearest)
            gains.index_fill_(0, pick, -torch.inf)  # and so it stays
            picks.append(pick)
        orders.append(torch.cat(picks))
        rows = distances.of(orders[-1])
        torch.minimum(rows[0], nearest_before, out=rows[0])
        totals.append(rows.cummin(0).values.sum(1, dtype=torch.float64))
        if enough(torch.cat(totals).tolist()):
            break
    return torch.cat(orders), torch.cat(totals)

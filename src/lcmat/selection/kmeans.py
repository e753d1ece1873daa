"""k-means: Lloyd's algorithm from a seeded k-means++ start, in memory that does not grow with n × k."""

import math
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from lcmat.runtime import one_thread

BLOCK = 2**24  # numbers in the largest temporary: 64 MB in single precision
ENOUGH = 1e-4  # stop once a round takes off no more than this share of the inertia


@dataclass(frozen=True, eq=False)
class Clusters:
    """Samples and the cluster each belongs to; no cluster is empty.

    Attributes:
        owner: cluster of each sample, `[n]`.
        squares: squared distance of each sample to its cluster's centre, `[n]`.
        sizes: samples of each cluster, `[k]`.
    """

    owner: Tensor
    squares: Tensor
    sizes: Tensor

    @property
    def inertia(self) -> float:
        """The sum of the squared distances: what k-means makes small."""
        return float(self.squares.sum(dtype=torch.float64))


def k_means(features: Tensor, k: int, *, generator: torch.Generator, iterations: int = 100) -> Clusters:
    """Split the samples into k clusters of small Σ_i ‖f_i − μ_{owner(i)}‖².

    A cluster that loses all its samples is given the sample farthest from its centre.

    Args:
        features: f, `[n, d]`.
        k: how many clusters, at most n.
        generator: draws the start.
        iterations: the most rounds of Lloyd's algorithm.

    Example:
        >>> features = torch.tensor([[0.0], [0.2], [5.0], [5.2], [5.4]])
        >>> sorted(k_means(features, 2, generator=torch.Generator().manual_seed(0)).sizes.tolist())
        [2, 3]
    """
    if not 0 < k <= len(features):
        raise ValueError(f"expected 1 to {len(features)} clusters of {len(features)} samples, got {k}")
    centred = features - features.mean(0)  # around the mean, fewer digits cancel
    # The start is many short operations, for which a second thread is a hindrance until they are long.
    with one_thread() if centred.numel() < BLOCK else nullcontext():
        centres = centred[_plus_plus(centred, k, generator)]
    before = math.inf
    for _ in range(iterations):
        owner, squares = _nearest(centred, centres)
        owner = _fill_empty(owner, squares, k)
        centres = _means(centred, owner, k)
        inertia = float(squares.sum(dtype=torch.float64))
        if before - inertia <= ENOUGH * inertia:
            break
        before = inertia
    parts = zip(centred.split(4096), owner.split(4096), strict=True)
    squares = torch.cat([(part - centres[mine]).square().sum(1) for part, mine in parts])
    return Clusters(owner, squares, torch.bincount(owner, minlength=k))


def _plus_plus(features: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Samples drawn one after the other, each in proportion to its squared distance to those before, `[k]`.

    Of 2 + log k draws the one that leaves the smallest sum is taken (Arthur and Vassilvitskii, 2007).
    """
    n, trials = len(features), 2 + int(math.log(k))
    draws = torch.rand(k, trials, generator=generator, dtype=torch.float64, device=generator.device).to(features.device)
    squares = features.square().sum(1)
    chosen = torch.empty(k, dtype=torch.int64, device=features.device)
    chosen[0] = (draws[0, 0] * n).long()
    nearest = _squares_to(features, squares, chosen[:1])[0]
    for t in range(1, k):
        cumulative = nearest.cumsum(0, dtype=torch.float64)
        candidates = torch.searchsorted(cumulative, draws[t] * cumulative[-1], right=True).clamp_(max=n - 1)
        options = torch.minimum(nearest, _squares_to(features, squares, candidates))
        best = options.sum(1).argmin().reshape(1)
        chosen[t] = candidates.index_select(0, best)[0]
        nearest = options.index_select(0, best)[0]
    return chosen


def _squares_to(features: Tensor, squares: Tensor, candidates: Tensor) -> Tensor:
    """Squared distances of some samples to all, `[b, n]`; exactly 0 of a sample to itself."""
    rows = features[candidates]
    found = torch.addmm(squares.expand(len(rows), -1), rows, features.T, alpha=-2).add_(squares[candidates, None])
    return found.clamp_(min=0).scatter_(1, candidates[:, None], 0.0)


def _nearest(features: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest centre of each sample, and its squared distance."""
    centre_squares = centres.square().sum(1)
    owners, squares = [], []
    for part in features.split(max(1, BLOCK // len(centres))):
        found = torch.addmm(centre_squares.expand(len(part), -1), part, centres.T, alpha=-2).min(dim=1)
        owners.append(found.indices)
        squares.append((found.values + part.square().sum(1)).clamp_(min=0))
    return torch.cat(owners), torch.cat(squares)


def _fill_empty(owner: Tensor, squares: Tensor, k: int) -> Tensor:
    """Move to each empty cluster the sample farthest from its centre whose cluster keeps another."""
    sizes = torch.bincount(owner, minlength=k).tolist()
    empty = [cluster for cluster, size in enumerate(sizes) if size == 0]
    if not empty:
        return owner
    owners = owner.tolist()
    for sample in torch.sort(squares, descending=True, stable=True).indices.tolist():
        if not empty:
            break
        if sizes[owners[sample]] > 1:
            sizes[owners[sample]] -= 1
            owners[sample] = empty.pop()
    return owner.new_tensor(owners)


def _means(features: Tensor, owner: Tensor, k: int) -> Tensor:
    """The mean of each cluster, `[k, d]`; summed in a fixed order, so that every device gives the same each time."""
    by_owner = torch.sort(owner, stable=True).indices
    means: Tensor = torch.segment_reduce(
        features[by_owner], "mean", lengths=torch.bincount(owner, minlength=k), unsafe=True
    )
    return means

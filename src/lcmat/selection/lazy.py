"""Lazy greedy: only gains that could still win are computed anew (Minoux, 1978).

A gain never grows, so an old one bounds the new one from above: once the best bound is of this round, it is the best
gain.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lcmat import runtime
from lcmat.selection.distances import Cached, Distances

BATCH = 8  # candidates looked at again together at first: most picks need no more
LARGE_BATCH = 128  # and at most, once the smaller ones did not settle the pick


@dataclass(frozen=True, eq=False)
class Purse:
    """What each sample costs, float64 and above 0, `[n]`, and how much may be spent in all."""

    costs: Tensor
    budget: float

    @property
    def most(self) -> int:
        """No more samples than this can be paid: that many of the cheapest.

        Example:
            >>> Purse(torch.tensor([3.0, 1.0, 2.0]), 4.0).most
            2
        """
        return int((self.costs.sort().values.cumsum(0) <= self.budget).sum())


def pick_lazily(
    distances: Distances,
    count: int,
    permutation: Tensor,
    *,
    start: list[int],
    enough: Callable[[list[float]], bool],
    purse: Purse | None = None,
    per_cost: bool = False,
) -> tuple[Tensor, Tensor]:
    """At most `count` picks of largest gain, and L after each.

    Args:
        distances: of all pairs.
        count: how many to pick at most, those of the start included.
        permutation: of the samples; of equal gains the first in it wins.
        start: picks that are settled.
        enough: whether the picks with these L may end the run.
        purse: what can be paid; None pays for everything.
        per_cost: divide gains by costs.
    """
    device = permutation.device
    with runtime.workers(device) as workers:
        evaluate = _Evaluator(distances, workers)
        order, totals = list(start), [evaluate.accept(pick) for pick in start]
        frontier = _Frontier(distances, permutation, set(start), purse, per_cost=per_cost)
        frontier.pay(start)
        while len(order) < count and not enough(totals):
            pick = frontier.best(evaluate, len(order))
            if pick is None:
                break
            order.append(pick)
            frontier.pay([pick])
            totals.append(evaluate.accept(pick))
    return (
        torch.tensor(order, dtype=torch.int64, device=device),
        torch.tensor(totals, dtype=torch.float64, device=device),
    )


class _Frontier:
    """The candidates by the largest gain that each could still have."""

    def __init__(
        self, distances: Distances, permutation: Tensor, taken: set[int], purse: Purse | None, *, per_cost: bool
    ) -> None:
        n = distances.n
        self.prices = [0.0] * n if purse is None else purse.costs.tolist()
        self.left = 0.0 if purse is None else purse.budget
        self.divisors = self.prices if per_cost else [1.0] * n
        bounds = (n * distances.largest - distances.sums).tolist()
        # (−bound, place in the permutation, candidate): the heap's smallest entry is the next to look at.
        self.heap = [
            (-bounds[candidate] / self.divisors[candidate], place, candidate)
            for place, candidate in enumerate(permutation.tolist())
            if candidate not in taken
        ]
        heapq.heapify(self.heap)
        self.known_at = [0] * n  # how many picks there were when a candidate's bound was computed

    def pay(self, picks: list[int]) -> None:
        """Take the picks' prices from the purse."""
        self.left -= sum(self.prices[pick] for pick in picks)

    def best(self, evaluate: "_Evaluator", picked: int) -> int | None:
        """The candidate of largest gain that can be paid, taken off the frontier; None when there is none left."""
        batch = BATCH
        while self.heap and not self._settled(picked):
            stale: list[tuple[float, int, int]] = []
            while self.heap and len(stale) < batch and not self._settled(picked):
                entry = heapq.heappop(self.heap)
                if self.prices[entry[2]] <= self.left:  # else it can never be paid again
                    stale.append(entry)
            gains = evaluate([candidate for _, _, candidate in stale])
            for (_, place, candidate), gain in zip(stale, gains, strict=True):
                self.known_at[candidate] = picked
                heapq.heappush(self.heap, (-gain / self.divisors[candidate], place, candidate))
            batch = min(2 * batch, LARGE_BATCH)
        return heapq.heappop(self.heap)[2] if self.heap else None

    def _settled(self, picked: int) -> bool:
        """Whether the first candidate's bound is its gain, and it can be paid."""
        first = self.heap[0][2]
        return self.known_at[first] == picked and bool(self.prices[first] <= self.left)


class _Evaluator:
    """The running minimum of the distances to the picks, and gains against it, in buffers made once."""

    def __init__(self, distances: Distances, workers: runtime.Workers) -> None:
        self.distances, self.workers = distances, workers
        self.device = distances.sums.device
        sample = distances.of(torch.zeros(1, dtype=torch.int64, device=self.device))
        self.current = torch.full_like(sample[0], distances.largest)
        self.buffer = sample.new_empty(LARGE_BATCH, distances.n) if isinstance(distances, Cached) else None

    def __call__(self, candidates: list[int]) -> list[float]:
        """The gain of each candidate; small batches are not worth a second worker."""
        if len(candidates) < 4 * BATCH or self.workers.number == 1:
            return self._gains((0, candidates))
        share = -(-len(candidates) // self.workers.number)
        parts = [(start, candidates[start : start + share]) for start in range(0, len(candidates), share)]
        return [gain for gains in self.workers.map(self._gains, parts) for gain in gains]

    def _gains(self, part: tuple[int, list[int]]) -> list[float]:
        start, candidates = part
        indices = torch.tensor(candidates, dtype=torch.int64, device=self.device)
        if self.buffer is not None and isinstance(self.distances, Cached):
            rows = self.buffer[start : start + len(candidates)]
            torch.index_select(self.distances.matrix, 0, indices, out=rows)
        else:
            rows = self.distances.of(indices)
        gains: list[float] = torch.sub(self.current, rows, out=rows).clamp_(min=0).sum(1).tolist()
        return gains

    def accept(self, pick: int) -> float:
        """Take the pick and say what L is now."""
        row = self.distances.of(torch.tensor([pick], device=self.device))[0]
        torch.minimum(self.current, row, out=self.current)
        return float(self.current.sum(dtype=torch.float64))

"""Choosing anew without looking at the model: random draws, loss-based pruning, and everything."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from lcmat import seeding
from lcmat.dynamic.schedule import Losses, Picks, Plan, Schedule, everything
from lcmat.registry import Registry


@dataclass(frozen=True)
class BaselineFacts:
    """What is known of a baseline.

    Attributes:
        takes_fraction: whether it visits a share of the data that is asked for; else it decides by itself.
        reference: the paper that defines it.
    """

    takes_fraction: bool
    reference: str


Maker: TypeAlias = Callable[..., Schedule]
BASELINES: Registry[Maker, BaselineFacts] = Registry("dynamic baseline")


@BASELINES.add(
    "random",
    "RS2: a new random set at every turn; without replacement until all samples were visited",
    facts=BaselineFacts(
        takes_fraction=True,
        reference="Okanovic et al., Repeated random sampling for minimizing the time-to-accuracy, ICLR 2024",
    ),
)
def random(plan: Plan, *, replacement: bool = False) -> Schedule:
    """Random sets.

    Args:
        plan: of the training.
        replacement: whether a set is drawn from all samples again, instead of from those not visited yet. Within one
            set no sample stands twice with it.

    Example:
        >>> schedule = random(Plan(n=4, count=2, every=1, warmup=0, epochs=None, seed=0))
        >>> sorted([*schedule.pick(0).rows.tolist(), *schedule.pick(1).rows.tolist()])
        [0, 1, 2, 3]
    """
    return _Random(plan, replacement)


@BASELINES.add(
    "infobatch",
    "prunes samples of small loss at random, and weighs the others of them up",
    facts=BaselineFacts(
        takes_fraction=False,
        reference="Qin et al., InfoBatch: lossless training speed up by unbiased dynamic data pruning, ICLR 2024",
    ),
)
def infobatch(plan: Plan, *, prune: float = 0.5, anneal: float = 0.875) -> Schedule:
    """Loss-based pruning that keeps the expected gradient.

    Every sample has a score H, its latest loss (1 before the first). In an epoch t < anneal · epochs a sample with
    H < mean(H) is left out with probability r = prune, and weighs 1/(1 − r) when it is not; the others weigh 1. The
    last epochs visit everything.

    Args:
        plan: of the training; its number of epochs must be known.
        prune: r, in [0, 1).
        anneal: the share of the epochs after which everything is visited, in [0, 1].
    """
    if plan.epochs is None:
        raise ValueError("infobatch visits everything in the last epochs: give epochs=, the number of all epochs")
    if not 0 <= prune < 1:
        raise ValueError(f"expected prune as a probability in [0, 1), got {prune}")
    if not 0 <= anneal <= 1:
        raise ValueError(f"expected anneal as a share of the epochs in [0, 1], got {anneal}")
    return _InfoBatch(plan, prune, anneal * plan.epochs)


@BASELINES.add(
    "full", "every sample in every epoch", facts=BaselineFacts(takes_fraction=False, reference="the usual training")
)
def full(plan: Plan) -> Schedule:
    """Everything, always."""
    return _Full(plan)


class _Stateless:
    """What visits the same whatever has been recorded."""

    wants_losses = False

    def learn(self, _: Losses) -> None:
        raise AssertionError("nothing is handed to a schedule that wants no losses")

    def adopt(self, _epoch: int, _picks: Picks) -> None:
        """What is drawn by seed and epoch is the same on every rank."""

    def state(self) -> dict[str, Tensor]:
        return {}

    def load(self, state: dict[str, Tensor]) -> None:
        if state:
            raise ValueError(f"expected no state of a choice that keeps none, got {', '.join(state)}")


class _Full(_Stateless):
    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def pick(self, _: int) -> Picks:
        return everything(self.plan.n)

    def size(self, _: int) -> int:
        return self.plan.n


class _Random(_Stateless):
    """Without replacement the sets are consecutive parts of one endless row of permutations."""

    def __init__(self, plan: Plan, replacement: bool) -> None:
        self.plan = plan
        self.replacement = replacement

    def pick(self, epoch: int) -> Picks:
        plan = self.plan
        if epoch < plan.warmup:
            return everything(plan.n)
        turn = plan.turn(epoch)
        if self.replacement:
            return Picks(self._permutation(turn)[: plan.count])
        start = turn * plan.count
        first, last = start // plan.n, (start + plan.count - 1) // plan.n
        row = torch.cat([self._permutation(number) for number in range(first, last + 1)])
        return Picks(row[start - first * plan.n :][: plan.count])

    def size(self, epoch: int) -> int:
        return self.plan.n if epoch < self.plan.warmup else self.plan.count

    def _permutation(self, number: int) -> Tensor:
        return torch.randperm(self.plan.n, generator=seeding.generator(self.plan.seed, "random", number))


class _InfoBatch:
    wants_losses = True

    def __init__(self, plan: Plan, prune: float, last: float) -> None:
        self.plan = plan
        self.prune = prune
        self.last = last
        self.scores = torch.ones(plan.n, dtype=torch.float64)

    def pick(self, epoch: int) -> Picks:
        plan = self.plan
        if epoch < plan.warmup or epoch >= self.last:
            return everything(plan.n)
        # A mean is rounded, so that equal scores may come out just below it.
        low = self.scores < self.scores.mean() * (1 - 1e-12)
        draws = torch.rand(plan.n, generator=seeding.generator(plan.seed, "infobatch", epoch), dtype=torch.float64)
        rows = (~low | (draws >= self.prune)).nonzero().flatten()
        return Picks(rows, torch.where(low[rows], 1 / (1 - self.prune), 1.0).float())

    def size(self, epoch: int) -> int | None:
        return self.plan.n if epoch < self.plan.warmup or epoch >= self.last else None

    def learn(self, losses: Losses) -> None:
        self.scores[losses.rows] = losses.loss

    def adopt(self, _epoch: int, _picks: Picks) -> None:
        """Later draws depend on the scores alone, which all ranks share."""

    def state(self) -> dict[str, Tensor]:
        return {"scores": self.scores.clone()}

    def load(self, state: dict[str, Tensor]) -> None:
        self.scores = state["scores"].clone()

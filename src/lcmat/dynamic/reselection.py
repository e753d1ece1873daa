"""Choosing anew by what the model says of the data now: any selector, every few epochs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from lcmat import seeding
from lcmat.dynamic.schedule import Losses, Picks, Plan, everything
from lcmat.selection import SELECTORS, select
from lcmat.selection.registry import facts_of
from lcmat.types import Record, Signals, Subset


@dataclass(frozen=True, eq=False)
class Asked:
    """How a selector is called at every turn.

    Attributes:
        method: its name.
        options: its own, checked.
        balance: of the classes.
        pool: how many samples it chooses from; a new random draw at every turn, the classes in proportion; None: all.
        weighted: whether its weights go into the loss.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    balance: str = "proportional"
    pool: int | None = None
    weighted: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of Signals that the method looks at."""
        entry = SELECTORS.find(self.method)
        defaults = {name: option.default for name, option in entry.options.items()}
        return facts_of(self.method, {**defaults, **self.options}).needs


@dataclass
class Timing:
    """Seconds spent on choosing, and how often."""

    signals: float = 0.0
    select: float = 0.0
    turns: int = 0

    def load(self, state: Mapping[str, float]) -> None:
        """Go on counting from there."""
        self.signals, self.select, self.turns = state["signals"], state["select"], int(state["turns"])


class Reselection:
    """A selector asked again at every turn.

    Attributes:
        timing: of all turns so far.
        subset: what the last turn kept, as rows of the samples it chose from; None before the first.
    """

    def __init__(
        self, plan: Plan, asked: Asked, labels: Tensor | None, look: Callable[[Tensor | None], Signals]
    ) -> None:
        """Prepare the turns.

        Args:
            plan: of the training.
            asked: the selector and how it is called.
            labels: of all samples, where they are known: a pool then keeps the classes' shares.
            look: rows (None for all) -> what the model says of them now.
        """
        self.plan, self.asked = plan, asked
        self.timing = Timing()
        self.subset: Subset | None = None
        self.wants_losses = "record" in asked.needs
        self._labels, self._look = labels, look
        self._turn: int | None = None
        self._picks = everything(plan.n)
        self._correct: list[Tensor] = []
        self._probability: list[Tensor] = []

    def pick(self, epoch: int) -> Picks:
        """Everything while warming up; then what the turn chose, which is chosen when it is first asked for."""
        if epoch < self.plan.warmup:
            return everything(self.plan.n)
        turn = self.plan.turn(epoch)
        if turn != self._turn:
            self._picks = self._choose(turn)
            self._turn = turn
        return self._picks

    def size(self, epoch: int) -> int:
        """Known before."""
        return self.plan.n if epoch < self.plan.warmup else self.plan.count

    def fresh(self, epoch: int) -> bool:
        """Whether `pick` will choose anew."""
        return epoch >= self.plan.warmup and self.plan.turn(epoch) != self._turn

    def adopt(self, epoch: int, picks: Picks) -> None:
        """Go by what the first rank chose."""
        if epoch >= self.plan.warmup:
            self._turn, self._picks = self.plan.turn(epoch), picks

    def _choose(self, turn: int) -> Picks:
        plan, asked = self.plan, self.asked
        seed = seeding.derive(plan.seed, "turn", turn)
        pool = self._draw_pool(seed)
        start = time.perf_counter()
        signals = self._look(pool)
        if self.wants_losses:
            signals = self._with_record(signals, pool)
        looked = time.perf_counter()
        self.subset = select(
            signals, asked.method, count=plan.count, balance=asked.balance, seed=seed, **dict(asked.options)
        )
        self.timing.signals += looked - start
        self.timing.select += time.perf_counter() - looked
        self.timing.turns += 1
        rows = self.subset.indices if pool is None else pool[self.subset.indices]
        if not asked.weighted:
            return Picks(rows)
        return Picks(rows, (self.subset.weights * (plan.count / self.subset.n)).float())

    def _draw_pool(self, seed: int) -> Tensor | None:
        size = self.asked.pool
        if size is None:
            return None
        if self._labels is None:
            return torch.randperm(self.plan.n, generator=seeding.generator(seed, "pool"))[:size].sort().values
        return select(Signals(labels=self._labels), "uniform", count=size, seed=seed).indices.sort().values

    def _with_record(self, signals: Signals, pool: Tensor | None) -> Signals:
        if not self._correct:
            raise ValueError(
                f"{self.asked.method} looks at the losses of every epoch, but none were recorded: call "
                "sampler.record(indices, losses) for every batch, and give warmup= of at least one epoch"
            )
        record = Record(torch.stack(self._correct), torch.stack(self._probability))
        return replace(signals, record=record if pool is None else record.take(pool))

    def learn(self, losses: Losses) -> None:
        """Add an epoch to the record; samples that it did not visit stay as they were."""
        n = self.plan.n
        correct = self._correct[-1].clone() if self._correct else torch.zeros(n, dtype=torch.bool)
        probability = self._probability[-1].clone() if self._probability else torch.zeros(n)
        correct[losses.rows] = losses.correct
        probability[losses.rows] = torch.exp(-losses.loss).float()
        self._correct.append(correct)
        self._probability.append(probability)

    def state(self) -> dict[str, Tensor]:
        """The last choice, and the record where the method looks at one."""
        state = {} if self._turn is None else {"turn": torch.tensor(self._turn), "rows": self._picks.rows}
        if self._turn is not None and self._picks.weights is not None:
            state["weights"] = self._picks.weights
        if self._correct:
            state |= {"correct": torch.stack(self._correct), "probability": torch.stack(self._probability)}
        return state

    def load(self, state: dict[str, Tensor]) -> None:
        """Take back what `state` gave."""
        self._turn = int(state["turn"]) if "turn" in state else None
        self._picks = Picks(state["rows"], state.get("weights")) if "turn" in state else everything(self.plan.n)
        self._correct = list(state["correct"]) if "correct" in state else []
        self._probability = list(state["probability"]) if "probability" in state else []

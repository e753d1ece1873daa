"""The sampler: what a DataLoader visits in each epoch, chosen anew as the model learns."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Sampler as TorchSampler

from lcmat import seeding
from lcmat.dynamic.baselines import BASELINES
from lcmat.dynamic.cost import Clock, Cost
from lcmat.dynamic.losses import LossTable
from lcmat.dynamic.ranks import Ranks
from lcmat.dynamic.reading import Look, check_data, known_labels, look_at
from lcmat.dynamic.request import read_request
from lcmat.dynamic.reselection import Reselection
from lcmat.dynamic.schedule import Picks, Schedule
from lcmat.networks import find_head
from lcmat.types import Data, Signals, Subset


class Sampler(TorchSampler[int]):
    """Visits in each epoch what is worth training on now.

    Every `every` epochs the method chooses `fraction` of the data by the Signals of the model as it is then; each
    epoch visits the chosen samples once, in a new order. Iterating begins an epoch.

    Example:
        >>> import torch
        >>> from lcmat import FeatureData
        >>> data = FeatureData(torch.randn(20, 3), torch.arange(20) % 2, ("a", "b"))
        >>> model = torch.nn.Linear(3, 2)
        >>> sampler = Sampler(model, data, "craig", 0.2, every=5)
        >>> len(list(sampler)), sampler.weights(torch.tensor([0, 1])).tolist()
        (4, [1.0, 1.0])
    """

    def __init__(
        self,
        model: nn.Module,
        data: Any,
        method: str = "lcmat-s",
        fraction: float | None = None,
        *,
        every: int = 1,
        warmup: int = 0,
        pool: int | float | None = None,
        epochs: int | None = None,
        balance: str = "proportional",
        weighted: bool = False,
        seed: int = 0,
        validation: Data | None = None,
        signals: Look | None = None,
        head: str | None = None,
        device: str | None = None,
        rank: int | None = None,
        world: int | None = None,
        **options: Any,
    ) -> None:
        """Prepare the choice; nothing is chosen before the first epoch begins.

        Args:
            model: that is being trained; it is read at every turn, and never changed.
            data: what the DataLoader loads, without augmentation and in the same order: `ImageData` or `FeatureData`,
                or any data set of (input, class) pairs.
            method: any selector, or 'random' (RS2), 'infobatch' or 'full'.
            fraction: the share of the data that an epoch visits, in (0, 1]; 'infobatch' and 'full' take none.
            every: R, epochs between two choices.
            warmup: first epochs, which visit everything.
            pool: choose from a new random pool, of this many samples or of this share of the data (a float).
            epochs: of the whole training; 'infobatch' must know.
            balance: of the classes, as in `lcmat.select`.
            weighted: whether `weights` gives the selector's weights; 'infobatch' always has its own.
            seed: of everything that is drawn.
            validation: held-out data, for the selectors that use it.
            signals: (model, rows) -> Signals of these rows, for models or samples of another form.
            head: name of the model's last linear layer, where it is not the last that it defines.
            device: to compute Signals on; the model's if not given.
            rank: of this process; that of torch's process group if not given.
            world: number of processes, likewise.
            **options: the method's own; an unknown one is a TypeError that names the valid ones.

        Raises:
            ValueError: for a value out of range, an unknown method, or a model without a linear layer.
            TypeError: for data of which no Signals can be read.
        """
        n = check_data(data, signals)
        self.request = read_request(
            n, method, fraction, every=every, warmup=warmup, pool=pool, epochs=epochs, balance=balance,
            weighted=weighted, seed=seed, options=options,
        )  # fmt: skip
        current = Ranks.current()
        self.ranks = Ranks(current.rank if rank is None else rank, current.world if world is None else world)
        self.n = n
        self.epoch = 0
        self._model, self._data, self._validation = model, data, validation
        self._look, self._head, self._device = signals, head, device
        self._schedule = self._make_schedule()
        self._losses = LossTable(n)
        self._clock = Clock(n)
        self._order = torch.empty(0, dtype=torch.int64)
        self._visited = torch.zeros(n, dtype=torch.bool)
        self._weights: Tensor | None = None
        self._length: int | None = None

    def _make_schedule(self) -> Schedule:
        request = self.request
        if request.asked is None:
            return BASELINES.find(request.method).function(request.plan, **request.options)
        if self._looks_at_the_model and self._look is None:
            find_head(self._model, self._head)
        return Reselection(request.plan, request.asked, known_labels(self._data), self._signals)

    @property
    def _looks_at_the_model(self) -> bool:
        asked = self.request.asked
        return asked is not None and not (
            set(asked.needs) <= {"labels", "record"} and known_labels(self._data) is not None
        )

    def _signals(self, rows: Tensor | None) -> Signals:
        if not self._looks_at_the_model:
            labels = known_labels(self._data)
            assert labels is not None
            return Signals(labels=labels if rows is None else labels[rows])
        found = look_at(self._model, self._data, rows, head=self._head, device=self._device, signals=self._look)
        if self._validation is None:
            return found
        held_out = look_at(self._model, self._validation, None, head=self._head, device=self._device, signals=None)
        return replace(found, validation=held_out)

    def __iter__(self) -> Iterator[int]:
        """Begin the next epoch: choose if it is time to, and give this rank's share in a new order."""
        self._end_epoch()
        if isinstance(self._schedule, Reselection) and self._schedule.fresh(self.epoch) and self.cost.turns:
            self._clock.warn(self.cost)
        picks = self._pick(self.epoch)
        order = seeding.generator(self.request.plan.seed, "order", self.epoch)
        self.epoch += 1
        self._order = picks.rows
        self._visited.zero_()
        self._visited[picks.rows] = True
        self._weights = None
        if picks.weights is not None:
            self._weights = torch.zeros(self.n).index_put_((picks.rows,), picks.weights)
        own = self.ranks.share(picks.rows[torch.randperm(len(picks.rows), generator=order)])
        self._length = len(own)
        self._clock.begin(len(own), len(picks.rows))
        return iter(own.tolist())

    def _pick(self, epoch: int) -> Picks:
        picks = self.ranks.agree(lambda: self._schedule.pick(epoch))
        if self.ranks.connected:
            self._schedule.adopt(epoch, picks)
        return picks

    def _end_epoch(self) -> None:
        self._clock.end()
        if not self._schedule.wants_losses or self.epoch == 0:
            return
        if not self._losses:
            raise ValueError(
                f"{self.request.method} goes by the losses, but none were recorded since the last epoch began: call "
                "sampler.record(indices, losses) for every batch"
            )
        self._schedule.learn(self._losses.close(self.ranks))

    def __len__(self) -> int:
        """Samples of this rank in the epoch begun last; before the first, in the first."""
        if self._length is None:
            return self.ranks.length(self._schedule.size(self.epoch) or self.n)
        return self._length

    @property
    def picks(self) -> Tensor:
        """The rows that the epoch begun last visits on all ranks, in pick order, `[k]`."""
        return self._order

    @property
    def subset(self) -> Subset | None:
        """What the selector gave at the last turn, on the rank that chose; its rows are those of the pool, if any."""
        return self._schedule.subset if isinstance(self._schedule, Reselection) else None

    @property
    def cost(self) -> Cost:
        """Seconds spent on choosing and on training so far."""
        clock = self._clock
        if isinstance(self._schedule, Reselection):
            timing = self._schedule.timing
            return Cost(timing.turns, timing.signals, timing.select, clock.training, clock.saved())
        return Cost(0, 0.0, 0.0, clock.training, clock.saved())

    def weights(self, indices: Tensor) -> Tensor:
        """What the losses of these samples are to be multiplied with, float32, `[b]`, on the indices' device.

        They have mean 1 over what an epoch visits (for 'infobatch' over all samples, in expectation).
        """
        if self._weights is None:
            return torch.ones(len(indices), device=indices.device)
        return self._weights[indices.cpu()].to(indices.device)

    def record(self, indices: Tensor, losses: Tensor, correct: Tensor | None = None) -> None:
        """Hand over the losses of a batch, before weights; nothing waits for the device that computes them.

        Args:
            indices: rows of the batch, `[b]`.
            losses: of each sample, `[b]`.
            correct: whether each was classified rightly; taken to be so where the loss is below ln 2 if not given.

        Raises:
            ValueError: for samples that this epoch does not visit, or another number of losses.
        """
        rows = indices.detach().cpu().long()
        if rows.ndim != 1 or losses.shape != rows.shape or (correct is not None and correct.shape != rows.shape):
            raise ValueError(
                f"expected a loss for each of the {len(rows)} samples, before any mean, got {list(losses.shape)}; "
                "compute it with reduction='none'"
            )
        if len(rows) and (rows.min() < 0 or rows.max() >= self.n or not bool(self._visited[rows].all())):
            raise ValueError(
                "losses were recorded of samples that this epoch does not visit; does the DataLoader have "
                "sampler= this sampler, and a data set wrapped in lcmat.dynamic.Indexed?"
            )
        self._clock.tick()
        if self._schedule.wants_losses:
            self._losses.add(rows, losses, correct)

    def set_epoch(self, epoch: int) -> None:
        """The next epoch is this one, counted from 0; some training loops say so before each epoch."""
        if epoch < 0:
            raise ValueError(f"expected an epoch of at least 0, got {epoch}")
        self.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """All that later picks depend on: tensors and plain values, as `torch.save` and `weights_only` take them.

        Save it at the end of an epoch, with the model. Where losses are recorded on several ranks, all must call it.
        """
        pending = self._losses.peek(self.ranks) if self._losses else None
        cost = self.cost
        return {
            "request": self.request.as_dict(),
            "epoch": self.epoch,
            "schedule": self._schedule.state(),
            "losses": {} if pending is None else vars(pending),
            "cost": {"turns": cost.turns, "signals": cost.signals, "select": cost.select, **self._clock.state()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called; the model is loaded by whoever saved it.

        Raises:
            ValueError: for the state of a sampler with other settings.
        """
        try:
            found, own = dict(state["request"]), self.request.as_dict()
            other = [
                f"{name} ({found.get(name)!r} there, {own[name]!r} here)"
                for name in own
                if found.get(name) != own[name]
            ]
            if other:
                raise ValueError(f"this state is of another sampler: it differs in {', '.join(other)}")
            self.epoch = int(state["epoch"])
            self._schedule.load(state["schedule"])
            self._losses = LossTable(self.n)
            if losses := state["losses"]:
                self._losses.add(losses["rows"], losses["loss"], losses["correct"])
            self._clock.load(state["cost"])
            if isinstance(self._schedule, Reselection):
                self._schedule.timing.load(state["cost"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no state of a sampler: {error!r}") from None
        self._length = None

"""Training on what a sampler visits, by the same steps as `lcmat.train`."""

import copy
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lcmat import networks, runtime, seeding
from lcmat.dynamic.cost import Cost
from lcmat.dynamic.sampler import Sampler
from lcmat.training import precision as number_formats
from lcmat.training.batches import Batches
from lcmat.training.inputs import Normaliser, batch_bounds
from lcmat.training.optimiser import Optimiser, rate_at
from lcmat.training.settings import Settings, check_data
from lcmat.training.step import GraphStep, PlainStep
from lcmat.types import Data

# (model after the epoch, epochs done, seconds spent on training and choosing so far)
Watch = Callable[[nn.Module, int, float], None]


@dataclass(frozen=True, eq=False)
class Trained:
    """What `train` gives.

    Attributes:
        model: in evaluation mode, on the device that trained it.
        losses: mean loss of each epoch over what it visited, before weights.
        visits: samples visited in each epoch.
        seconds: of training and choosing.
        cost: of choosing, beside that of training.
    """

    model: nn.Module
    losses: tuple[float, ...]
    visits: tuple[int, ...]
    seconds: float
    cost: Cost


def train(
    net: str | nn.Module,
    data: Data,
    method: str = "lcmat-s",
    fraction: float | None = None,
    *,
    epochs: int,
    choose: Mapping[str, Any] | None = None,
    batch_size: int = 128,
    lr: float = 0.1,
    momentum: float = 0.9,
    nesterov: bool = True,
    weight_decay: float = 5e-4,
    schedule: str = "cosine",
    optimizer: str = "sgd",
    seed: int = 0,
    augment: bool = True,
    device: torch.device | str | None = None,
    precision: str = "auto",
    graph: bool = True,
    watch: Watch | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trained:
    """Train a network while the samples of each epoch are chosen anew.

    The steps are those of `lcmat.train`. The schedule of the rate goes by epochs, whatever each of them visits, so that
    it ends where it does for the whole data.

    Args:
        net: a network's name, or any classifier, which is copied.
        data: what to train on.
        method: as `lcmat.dynamic.Sampler` takes it.
        fraction: likewise.
        epochs: of what the method visits.
        choose: further settings of the sampler by name, such as {'every': 5, 'pool': 0.2, 'rho': 0.1}.
        batch_size: samples in a step.
        lr: learning rate.
        momentum: of SGD.
        nesterov: whether the momentum is Nesterov's.
        weight_decay: added to the gradient as weight_decay·w.
        schedule: 'constant', or 'cosine' to 10⁻⁴ over all epochs.
        optimizer: 'sgd' or 'adam'.
        seed: of weights, picks, order, augmentation and dropout.
        augment: as in `lcmat.train`.
        device: None takes the first CUDA device, else the CPU.
        precision: 'auto', 'float32', 'tf32' or 'bf16'.
        graph: on CUDA, whether a whole step is captured as a CUDA graph.
        watch: called after each epoch with the model, the epochs done and the seconds so far; its own do not count.
        progress: called with (epochs done, epochs in all).

    Returns:
        The trained network, what it visited, and what choosing cost.

    Raises:
        ValueError: for settings out of range, data of one class, or a loss that is no longer finite.
    """
    place = runtime.pick_device(device)
    settings = Settings(
        epochs=epochs, steps=None, batch_size=batch_size, lr=lr, momentum=momentum, nesterov=nesterov,
        weight_decay=weight_decay, schedule=schedule, optimizer=optimizer, seed=seed, augment=augment, snapshots=(),
        record=False, precision=number_formats.resolve(precision, place),
    )  # fmt: skip
    check_data(data)
    with (
        seeding.isolated(seed, "training", device=place),
        number_formats.float32_products(settings.precision, place),
        torch.cuda.device(place) if place.type == "cuda" else nullcontext(),
    ):
        model = copy.deepcopy(net) if isinstance(net, nn.Module) else networks.build(net, data, seed=seed)
        normalise = Normaliser.of(model, data, place)
        model = model.to(device=place, memory_format=normalise.memory_format)  # type: ignore[call-overload]
        sampler = Sampler(
            model, data, method, fraction, epochs=epochs, **{"seed": seeding.derive(seed, "sampler"), **(choose or {})}
        )
        return _Training(model, data, sampler, normalise, settings, place, graph=graph).run(watch, progress)


class _Training:
    """One training by a sampler: its parts put together, then epoch after epoch."""

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        sampler: Sampler,
        normalise: Normaliser,
        settings: Settings,
        device: torch.device,
        *,
        graph: bool,
    ) -> None:
        self.model, self.sampler, self.settings, self.device = model, sampler, settings, device
        self.epochs = settings.epochs or 0
        self.n = len(data)
        self.optimiser = Optimiser(model, settings, device)
        augmentation = seeding.generator(settings.seed, "augmentation", device=device)
        largest = min(self.n, settings.batch_size + 1)
        self.losses = torch.zeros(largest, device=device)
        self.batches = Batches(
            data, torch.ones(self.n), normalise=normalise, largest=largest, augmented=bool(settings.augment),
            generator=augmentation, device=device,
        )  # fmt: skip
        plain = PlainStep(
            model, self.optimiser, self.batches, classes=len(data.class_names), precision=settings.precision,
            device=device, losses=self.losses,
        )  # fmt: skip
        self.step: Callable[[int], Tensor] = plain
        if graph and device.type == "cuda":
            self.step = GraphStep(plain, [augmentation])

    def run(self, watch: Watch | None, progress: Callable[[int, int], None] | None) -> Trained:
        """All epochs."""
        losses, visits, seconds = [], [], 0.0
        for epoch in range(self.epochs):
            started = time.perf_counter()
            rows = torch.tensor(list(self.sampler))
            losses.append(self.train_epoch(epoch, rows))
            visits.append(len(rows))
            seconds += time.perf_counter() - started
            if watch is not None:
                watch(self.model, epoch + 1, seconds)
            if progress is not None:
                progress(epoch + 1, self.epochs)
        self.sampler.state_dict()  # ends the last epoch's time
        return Trained(self.model.eval(), tuple(losses), tuple(visits), seconds, self.sampler.cost)

    def train_epoch(self, epoch: int, rows: Tensor) -> float:
        """One pass over these rows, in this order; returns the mean loss."""
        settings = self.settings
        self.batches.reweigh(self.sampler.weights(torch.arange(self.n)))
        self.batches.begin(rows)
        self.model.train()
        bounds = batch_bounds(len(rows), settings.batch_size)
        losses = torch.zeros(len(rows), device=self.device)
        for index, (start, stop) in enumerate(bounds):
            if settings.schedule != "constant":
                done, steps = epoch * len(bounds) + index, self.epochs * len(bounds)
                self.optimiser.rate.fill_(rate_at(done, steps, settings.lr, settings.schedule))
            self.batches.stage(start, stop)
            self.step(stop - start)
            losses[start:stop].copy_(self.losses[: stop - start])
        mean = float(losses.double().mean())  # waits for the device, so that the epoch's seconds are whole
        if not torch.isfinite(losses).all():
            raise ValueError(
                f"the training diverged in epoch {epoch + 1}: a loss is no longer finite; give a lower learning rate "
                f"than lr={settings.lr:g}"
            )
        self.sampler.record(rows, losses.cpu())
        return mean

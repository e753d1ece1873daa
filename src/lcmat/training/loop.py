"""The one training loop."""

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lcmat import networks, runtime, seeding
from lcmat.training import precision as number_formats
from lcmat.training.batches import Batches
from lcmat.training.checkpoint import Checkpoint
from lcmat.training.inference import evaluating, outputs
from lcmat.training.inputs import Normaliser
from lcmat.training.log import TrainingLog
from lcmat.training.optimiser import Optimiser, rate_at
from lcmat.training.settings import Plan, Settings, check_data, describe, dsa_operations, relative_weights, soft_targets
from lcmat.training.state import TrainingState, state_on_cpu
from lcmat.training.step import GraphStep, PlainStep
from lcmat.types import Data, Record


def train(
    net: str | nn.Module,
    data: Data,
    *,
    epochs: int | None = None,
    steps: int | None = None,
    batch_size: int = 128,
    lr: float = 0.1,
    momentum: float = 0.9,
    nesterov: bool = True,
    weight_decay: float = 5e-4,
    schedule: str = "constant",
    optimizer: str = "sgd",
    weights: Tensor | None = None,
    seed: int = 0,
    augment: bool | str = True,
    cutmix: float = 0.0,
    targets: Tensor | None = None,
    snapshots: Sequence[int] = (),
    record: bool = False,
    checkpoint: str | Path | None = None,
    device: torch.device | str | None = None,
    precision: str = "auto",
    graph: bool = True,
    progress: Callable[[int, int], None] | None = None,
    after_epoch: Callable[[int, float, nn.Module], None] | None = None,
) -> nn.Module:
    """Train a network on a data set; the same arguments give the same weights on the CPU.

    The defaults are those of the LCMat paper's appendix (rate 0.1, momentum 0.9, decay 5·10⁻⁴, batch 128) and, where it
    is silent, of its official code (Nesterov, constant rate for a proxy; `schedule="cosine"` for evaluation). The last,
    smaller batch of an epoch counts like every other. The global generators are left as they were.

    Args:
        net: a network's name, with options as in 'convnet:width=32'; or any classifier, which is copied: the
            one that is given stays as it is. It gets samples normalised by the data's mean and standard deviation.
        data: what to train on.
        epochs: passes over the data; give this or `steps`.
        steps: optimiser steps; the last pass over the data may be cut short.
        batch_size: samples in a step; data smaller than that make one smaller batch.
        lr: learning rate; for Adam give a smaller one, such as 1e-3.
        momentum: of SGD.
        nesterov: whether the momentum is Nesterov's; without momentum it means nothing.
        weight_decay: added to the gradient as weight_decay·w, for SGD and Adam.
        schedule: 'constant', 'cosine' to 10⁻⁴ over all steps, or 'drops': times 0.2 after 2/3 and 5/6 of them.
        optimizer: 'sgd' or 'adam'.
        weights: of the samples' losses, `[n]`, ≥ 0; scaled to mean 1.
        seed: of weights, order, augmentation and dropout, each with a generator of its own.
        augment: crop images reflected outwards by size // 8, and flip them where `data.flip` allows; or the
            operations of DSA by name, such as 'color_crop_flip', drawn for each image.
        cutmix: probability that a batch of images is mixed by CutMix.
        targets: distributions over the classes to train on instead of the labels, `[n, C]`.
        snapshots: epochs after which the weights are kept; 0 is before the first step.
        record: whether to keep, after every epoch, if each sample is classified rightly and how probable its class is.
        checkpoint: a folder; a killed training goes on from there, and a finished one is read from it.
        device: None takes the first CUDA device, else the CPU.
        precision: 'auto' (float32 on the CPU, bf16 on CUDA), 'float32', 'tf32' or 'bf16'.
        graph: on CUDA, whether a whole step is captured as a CUDA graph.
        progress: called with (steps done, steps in all).
        after_epoch: called with (epoch, seconds of training so far, the network), which it leaves as it is; its own
            time does not count.

    Returns:
        The trained network on the device, in evaluation mode, with the attribute `training_log`.

    Raises:
        ValueError: for settings out of range, data of one class, a checkpoint of another training, or a loss that is
            no longer finite.
        TypeError: when the data or the network are none.
    """
    place = runtime.pick_device(device)
    settings = Settings(
        epochs=epochs,
        steps=steps,
        batch_size=batch_size,
        lr=lr,
        momentum=momentum,
        nesterov=nesterov,
        weight_decay=weight_decay,
        schedule=schedule,
        optimizer=optimizer,
        seed=seed,
        augment=augment,
        snapshots=tuple(sorted(set(snapshots))),
        record=record,
        precision=number_formats.resolve(precision, place),
        cutmix=cutmix,
    )
    check_data(data)
    loss_weights = relative_weights(weights, len(data))
    soft = soft_targets(targets, data)
    config = describe(net, data, loss_weights, settings, place, soft)
    with (
        seeding.isolated(seed, "training", device=place),
        number_formats.float32_products(settings.precision, place),
        torch.cuda.device(place) if place.type == "cuda" else nullcontext(),
    ):
        training = _Training(net, data, loss_weights, settings, config, place, targets=soft, graph=graph)
        return training.run(checkpoint, progress, after_epoch)


class _Training:
    """One training: its parts put together, then epoch after epoch."""

    def __init__(
        self,
        net: str | nn.Module,
        data: Data,
        weights: Tensor | None,
        settings: Settings,
        config: dict[str, Any],
        device: torch.device,
        *,
        targets: Tensor | None,
        graph: bool,
    ) -> None:
        self.data, self.settings, self.config, self.device = data, settings, config, device
        self.plan = Plan.of(settings, len(data))
        model = copy.deepcopy(net) if isinstance(net, nn.Module) else networks.build(net, data, seed=settings.seed)
        normalise = Normaliser.of(model, data, device)
        model = model.to(device=device, memory_format=normalise.memory_format)  # type: ignore[call-overload]
        self.state = TrainingState(
            model,
            Optimiser(model, settings, device),
            seeding.generator(settings.seed, "order"),
            seeding.generator(settings.seed, "augmentation", device=device),
        )
        self.batches = Batches(
            data,
            weights,
            normalise=normalise,
            largest=max(stop - start for start, stop in self.plan.bounds),
            augmented=settings.augment is True,
            generator=self.state.augmentation,
            device=device,
            operations=dsa_operations(settings, data),
            cutmix=settings.cutmix,
            targets=targets,
        )
        plain = PlainStep(
            model,
            self.state.optimiser,
            self.batches,
            classes=len(data.class_names),
            precision=settings.precision,
            device=device,
        )
        self.step: Callable[[int], Tensor] = plain
        if graph and device.type == "cuda":
            self.step = GraphStep(plain, [self.state.augmentation])

    def run(
        self,
        folder: str | Path | None,
        progress: Callable[[int, int], None] | None,
        after_epoch: Callable[[int, float, nn.Module], None] | None,
    ) -> nn.Module:
        """All epochs that are not done yet."""
        state, plan = self.state, self.plan
        checkpoint = Checkpoint(folder, self.config, self.device)
        checkpoint.load(state)
        if state.epoch == 0 and 0 in self.settings.snapshots:
            state.snapshots[0] = state_on_cpu(state.model)
        while state.epoch < plan.epochs:
            started = time.perf_counter()
            state.losses.append(self.train_epoch(state.epoch + 1, progress))
            state.epoch += 1
            if self.settings.record:
                state.records.append(self.recorded())
            if state.epoch in self.settings.snapshots:
                state.snapshots[state.epoch] = state_on_cpu(state.model)
            state.seconds += time.perf_counter() - started
            if after_epoch is not None:
                after_epoch(state.epoch, state.seconds, state.model)
            checkpoint.save(state, finished=state.epoch == plan.epochs)
        model = state.model.eval()
        model.training_log = TrainingLog(  # type: ignore[assignment]
            dict(state.snapshots), state.record(), tuple(state.losses), state.seconds, self.config
        )
        return model

    def train_epoch(self, epoch: int, progress: Callable[[int, int], None] | None) -> float:
        """One pass over the data, in an order of its own; returns the mean loss."""
        bounds = self.plan.batches(epoch)
        done = (epoch - 1) * len(self.plan.bounds)
        losses = torch.zeros(len(bounds), dtype=torch.float64, device=self.device)
        self.state.model.train()
        self.batches.begin(torch.randperm(len(self.data), generator=self.state.order))
        for index, (start, stop) in enumerate(bounds):
            if self.settings.schedule != "constant":
                self.state.optimiser.rate.fill_(
                    rate_at(done + index, self.plan.steps, self.settings.lr, self.settings.schedule)
                )
            self.batches.stage(start, stop)
            losses[index].copy_(self.step(stop - start))
            if progress is not None:
                progress(done + index + 1, self.plan.steps)
        return self.mean_loss(losses.cpu(), done)

    def mean_loss(self, losses: Tensor, done: int) -> float:
        """The mean over the samples, from the means over batches; read once an epoch, as reading waits for the device.

        Raises:
            ValueError: when a loss is not finite.
        """
        if len(bad := (~torch.isfinite(losses)).nonzero()):
            raise ValueError(
                f"the training diverged: the loss of step {done + int(bad[0]) + 1:,} of {self.plan.steps:,} is "
                f"{float(losses[bad[0]])}; give a lower learning rate than lr={self.settings.lr:g}"
            )
        sizes = torch.tensor([stop - start for start, stop in self.plan.bounds[: len(losses)]], dtype=torch.float64)
        return float((losses * sizes).sum() / sizes.sum())

    def recorded(self) -> Record:
        """What the model makes of every sample now, in evaluation mode and without augmentation."""
        with evaluating(self.state.model, self.device) as model:
            parts = list(outputs(model, self.data, self.device, self.settings.precision, stored=self.batches.stored))
        probabilities = torch.cat(parts).double().softmax(1).cpu()
        labels = self.data.labels
        own = probabilities.gather(1, labels[:, None]).float().T
        return Record((probabilities.argmax(1) == labels)[None], own)

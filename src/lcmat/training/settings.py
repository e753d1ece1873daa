"""Everything that a training's result depends on, checked at once, and its key."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lcmat import files, runtime
from lcmat.augment import parse_operations
from lcmat.training.inputs import batch_bounds
from lcmat.types import Data, FeatureData, ImageData

SCHEDULES = ("constant", "cosine", "drops")
OPTIMIZERS = ("sgd", "adam")


@dataclass(frozen=True)
class Settings:
    """The settings of one training, as `lcmat.train` describes them; `precision` is resolved."""

    epochs: int | None
    steps: int | None
    batch_size: int
    lr: float
    momentum: float
    nesterov: bool
    weight_decay: float
    schedule: str
    optimizer: str
    seed: int
    augment: bool | str
    snapshots: tuple[int, ...]
    record: bool
    precision: str
    cutmix: float = 0.0

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError(f"expected either epochs or steps, got epochs={self.epochs} and steps={self.steps}")
        for name in ("epochs", "steps", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"expected {name} of at least 1, got {value}")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise ValueError(f"expected a learning rate lr above 0, got {self.lr}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"expected a momentum in [0, 1), got {self.momentum}")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(f"expected a weight_decay of at least 0, got {self.weight_decay}")
        if not 0 <= self.cutmix <= 1:
            raise ValueError(f"expected a probability cutmix in [0, 1], got {self.cutmix}")
        if isinstance(self.augment, str):
            parse_operations(self.augment)
        for name, valid in (("schedule", SCHEDULES), ("optimizer", OPTIMIZERS)):
            if getattr(self, name) not in valid:
                raise ValueError(f"expected {name} to be {' or '.join(map(repr, valid))}, got {getattr(self, name)!r}")


def check_loop(
    *, epochs: int, batch_size: int, lr: float, schedule: str = "constant", augment: bool | str = True
) -> None:
    """Refuse now what `lcmat.train` would refuse after other work was done.

    Raises:
        ValueError: for a value out of range or an unknown name.
    """
    Settings(
        epochs=epochs, steps=None, batch_size=batch_size, lr=lr, momentum=0.0, nesterov=False, weight_decay=0.0,
        schedule=schedule, optimizer="sgd", seed=0, augment=augment, snapshots=(), record=False, precision="float32",
    )  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """How a training walks over n samples.

    Attributes:
        bounds: the rows (start, stop) of each batch within an epoch's order.
        steps: in all.
        epochs: in all; the last one may be cut short by the number of steps.
    """

    bounds: tuple[tuple[int, int], ...]
    steps: int
    epochs: int

    @classmethod
    def of(cls, settings: Settings, n: int) -> "Plan":
        """The plan of these settings for n samples.

        Raises:
            ValueError: for a snapshot of an epoch that will not be.
        """
        bounds = tuple(batch_bounds(n, settings.batch_size))
        steps = settings.steps or (settings.epochs or 0) * len(bounds)
        plan = cls(bounds, steps, math.ceil(steps / len(bounds)))
        if wrong := [epoch for epoch in settings.snapshots if not 0 <= epoch <= plan.epochs]:
            raise ValueError(f"expected snapshots of epochs from 0 to {plan.epochs}, got {wrong}")
        return plan

    def batches(self, epoch: int) -> tuple[tuple[int, int], ...]:
        """The rows of each batch of an epoch, counted from 1."""
        return self.bounds[: self.steps - (epoch - 1) * len(self.bounds)]


def check_data(data: object) -> None:
    """Refuse what nothing can be trained on.

    Raises:
        TypeError: when this is no labelled data, or both parts of a data set.
        ValueError: when it has one class only.
    """
    if not isinstance(data, ImageData | FeatureData):
        hint = "; give its part .train" if hasattr(data, "train") else ""
        raise TypeError(f"expected ImageData or FeatureData to train on, got {type(data).__name__}{hint}")
    if data.labels.min() == data.labels.max():
        name = data.class_names[int(data.labels[0])]
        raise ValueError(
            f"expected samples of at least two classes to train on, got only {len(data)} of class {name!r}"
        )


def relative_weights(weights: Tensor | None, n: int) -> Tensor | None:
    """The weights of the samples' losses, float32, scaled to mean 1.

    Raises:
        ValueError: unless there are n finite weights ≥ 0, some above 0.
    """
    if weights is None:
        return None
    values = torch.as_tensor(weights).detach().cpu().double()
    if values.shape != (n,):
        raise ValueError(f"expected {n} weights, one for each sample, got shape {list(values.shape)}")
    if not torch.isfinite(values).all() or values.min() < 0 or values.sum() == 0:
        raise ValueError("expected finite weights of at least 0, not all of them 0")
    return (values / values.mean()).float()


def dsa_operations(settings: Settings, data: Data) -> tuple[str, ...]:
    """The operations of DSA that the settings name, without mirroring where the data does not allow it."""
    if isinstance(settings.augment, bool):
        return ()
    return parse_operations(settings.augment, flip=not isinstance(data, ImageData) or data.flip)


def soft_targets(targets: Tensor | None, data: Data) -> Tensor | None:
    """Distributions over the classes, float32 on the CPU.

    Raises:
        ValueError: unless there is one for each sample.
    """
    if targets is None:
        return None
    values, shape = torch.as_tensor(targets).detach().cpu().float(), (len(data), len(data.class_names))
    if values.shape != shape:
        raise ValueError(f"expected targets of shape {list(shape)}, a row for each sample, got {list(values.shape)}")
    if not torch.isfinite(values).all() or values.min() < 0 or (values.sum(1) - 1).abs().max() > 1e-3:
        raise ValueError("expected targets as distributions: values of at least 0 that sum to 1 in each row")
    return values


def describe(
    net: str | nn.Module,
    data: Data,
    weights: Tensor | None,
    settings: Settings,
    device: torch.device,
    targets: Tensor | None = None,
) -> dict[str, Any]:
    """The training in JSON values: network, data, weights, settings, versions and kind of device."""
    versions = runtime.versions()
    return {
        "net": f"{type(net).__qualname__} {state_fingerprint(net)}" if isinstance(net, nn.Module) else net,
        "data": data.fingerprint,
        "normalisation": [list(data.mean), list(data.std)],
        "flip": isinstance(data, ImageData) and data.flip,
        "weights": None if weights is None else files.fingerprint(weights),
        "targets": None if targets is None else files.fingerprint(targets),
        **asdict(settings),
        "snapshots": list(settings.snapshots),
        "device": device.type,
        "lcmat": versions["lcmat"],
        "torch": versions["torch"],
    }


def state_fingerprint(model: nn.Module) -> str:
    """A digest of a model's parameters and buffers."""
    state = model.state_dict()
    return files.fingerprint(list(state), *(value for value in state.values() if isinstance(value, Tensor)))


def training_key(config: Mapping[str, Any]) -> str:
    """A key of a training: equal when everything that the result depends on is equal.

    Args:
        config: a training's `training_log.config`.

    Example:
        >>> training_key({"lr": 0.1, "seed": 0}) == training_key({"seed": 0, "lr": 0.1})
        True
        >>> training_key({"lr": 0.1}) == training_key({"lr": 0.2})
        False
    """
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()

"""What a training leaves beside the weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from lcmat.types import Record


@dataclass(frozen=True, eq=False)
class TrainingLog:
    """What a training leaves beside the weights, as `model.training_log`.

    Attributes:
        snapshots: epoch -> `state_dict` after that epoch, on the CPU; epoch 0 is before the first step.
        record: of every sample after every epoch, if it was asked for.
        losses: mean loss of each epoch, weighted as trained.
        seconds: of the training, over all resumed parts.
        config: every setting that the result depends on.
    """

    snapshots: Mapping[int, dict[str, Tensor]]
    record: Record | None
    losses: tuple[float, ...]
    seconds: float
    config: Mapping[str, Any]


def log_of(model: nn.Module) -> TrainingLog | None:
    """The log of a model that `lcmat.train` returned, or None."""
    log = getattr(model, "training_log", None)
    return log if isinstance(log, TrainingLog) else None

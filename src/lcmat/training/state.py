"""A training under way: all that a checkpoint has to keep."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lcmat.training.optimiser import Optimiser
from lcmat.types import Record


@dataclass
class TrainingState:
    """All that changes during a training.

    Attributes:
        model: with its weights and buffers.
        optimiser: with its momentum.
        order: draws the order of the samples in each epoch, on the CPU.
        augmentation: draws crops and flips, on the device.
        epoch: epochs done.
        seconds: spent on them.
        losses: mean loss of each.
        records: what was asked to be kept of every sample, of each.
        snapshots: epoch -> state on the CPU.
    """

    model: nn.Module
    optimiser: Optimiser
    order: torch.Generator
    augmentation: torch.Generator
    epoch: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    snapshots: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    def record(self) -> Record | None:
        """The records of all epochs as one, or None."""
        if not self.records:
            return None
        return Record(
            torch.cat([part.correct for part in self.records]), torch.cat([part.probability for part in self.records])
        )


def state_on_cpu(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the model's `state_dict` in main memory."""
    return {
        name: value.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, value in model.state_dict().items()
    }

"""Features and logits of given samples, read from a model at its last layer, and a probe that they stay as they are."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lcmat import runtime
from lcmat.training import precision as number_formats
from lcmat.training.inference import full_type
from lcmat.training.inputs import Normaliser
from lcmat.training.step import check_logits
from lcmat.types import Data

_PROBE_ROWS = 48  # passed more than once, before all


@contextmanager
def watched(layer: nn.Linear) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """The layer's input and output of the latest forward pass, as the only item of a list."""
    seen: list[tuple[Tensor, Tensor]] = []

    def keep(_: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        seen[:] = [(inputs[0], output)]

    handle = layer.register_forward_hook(keep)
    try:
        yield seen
    finally:
        handle.remove()


@dataclass(frozen=True)
class Reader:
    """Reads features and logits of given rows from a model in evaluation mode.

    Attributes:
        model: on the device.
        head: name of its last layer, for messages.
        data: whose rows are read.
        seen: what `watched` gives of that layer.
        normalise: of the stored inputs.
        device: to compute on.
        precision: of the forward pass, resolved.
    """

    model: nn.Module
    head: str
    data: Data
    seen: list[tuple[Tensor, Tensor]]
    normalise: Normaliser
    device: torch.device
    precision: str

    def read(self, stored: Tensor) -> tuple[Tensor, Tensor]:
        """Features `[b, d]` and logits `[b, C]` of one batch."""
        self.seen.clear()
        with number_formats.autocast(self.precision, self.device):
            output = self.model(self.normalise(stored.to(self.device)))
        check_logits(output, len(stored), len(self.data.class_names))
        if not self.seen:
            raise ValueError(f"the linear layer {self.head!r} takes no part in the forward pass; name another as head=")
        inputs, logits = self.seen[0]
        if inputs.ndim != 2 or len(inputs) != len(stored):
            raise ValueError(
                f"expected the linear layer {self.head!r} to get one vector for each of the {len(stored)} samples, "
                f"got {list(inputs.shape)}; pool or flatten before it, or name another layer as head="
            )
        self.check_output(full_type(output), full_type(logits))
        return full_type(inputs), full_type(logits)

    def check_output(self, output: Tensor, logits: Tensor) -> None:
        """Whether the model's output is the layer's output, or a softmax or log-softmax of it."""
        tolerance = 1e-2 if self.precision == "bf16" else 1e-4
        same = output.shape == logits.shape
        if same and (torch.equal(output, logits) or not torch.isfinite(logits).all()):
            return
        probabilities = logits.softmax(1)
        if same and torch.allclose(output.softmax(1), probabilities, atol=tolerance):
            return
        if same and torch.allclose(output, probabilities, atol=tolerance):
            warnings.warn(
                f"the model gives probabilities, not logits; the output of its layer {self.head!r}, before softmax, is "
                "taken as logits. For training leave the softmax out, as lcmat.train applies it itself",
                stacklevel=2,
            )
            return
        raise ValueError(
            f"the output of the linear layer {self.head!r}, {list(logits.shape)}, is not the output of the model, "
            f"{list(output.shape)}; name the layer that gives the logits as head=, or let the model return them as "
            "they come from that layer"
        )

    def read_rows(self, rows: Tensor, bounds: Sequence[tuple[int, int]]) -> tuple[Tensor, Tensor]:
        """Features and logits of some rows, in these batches."""
        parts = [self.read(self.data.inputs[rows[start:stop]]) for start, stop in bounds]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    def read_all(self, batches: Iterable[slice | Tensor]) -> tuple[Tensor, Tensor]:
        """Features `[n, d]` and logits `[n, C]`, on the device where they leave it half of its free memory."""
        whole: tuple[Tensor, Tensor] | None = None
        for rows in batches:
            parts = self.read(self.data.inputs[rows])
            if whole is None:
                needed = sum(part[0].nbytes for part in parts) * len(self.data)
                roomy = needed < runtime.free_memory(self.device) // 2
                place = self.device if roomy else torch.device("cpu")
                features, logits = (part.new_empty((len(self.data), part.shape[1]), device=place) for part in parts)
                whole = features, logits
            for target, part in zip(whole, parts, strict=True):
                target[rows.to(target.device) if isinstance(rows, Tensor) else rows] = part
        if whole is None:
            raise AssertionError("data without samples cannot be made")
        return whole


@dataclass(frozen=True)
class Probe:
    """Some rows, and what the model gave for them before the pass over all.

    Attributes:
        rows: their numbers, `[m]`.
        features: `[m, d]`.
        logits: `[m, C]`.
    """

    rows: Tensor
    features: Tensor
    logits: Tensor

    def check(self, features: Tensor, logits: Tensor, tolerance: float) -> None:
        """Refuse a pass over all that gave these rows anything else."""
        rows = self.rows.to(features.device)
        if not _agree((features[rows], logits[rows]), (self.features, self.logits), tolerance):
            raise ValueError(
                "the model's outputs for the same samples changed between two passes over the data, or depend on "
                "which samples share a batch; expected a model and data that stay as they are in evaluation mode"
            )


def probe(reader: Reader, tolerance: float) -> Probe:
    """Pass a few rows twice in the same batches, then in others.

    Raises:
        ValueError: when the passes disagree.
    """
    n = len(reader.data)
    count = min(n, _PROBE_ROWS)
    rows = torch.arange(count) * n // count
    first = reader.read_rows(rows, [(0, count)])
    if not _agree(first, reader.read_rows(rows, [(0, count)]), tolerance):
        raise ValueError(
            "two passes over the same samples in evaluation mode gave different outputs; expected a model without "
            "dropout, augmentation or other change while it is evaluated"
        )
    if count > 3 and not _agree(first, reader.read_rows(rows, [(0, count // 3), (count // 3, count)]), tolerance):
        raise ValueError(
            "the model's outputs for a sample depend on which other samples share its batch; expected a model whose "
            "evaluation mode uses no batch statistics (such as BatchNorm with its running statistics)"
        )
    return Probe(rows, *first)


def _agree(these: tuple[Tensor, Tensor], those: tuple[Tensor, Tensor], tolerance: float) -> bool:
    """Whether features and logits are equal up to rounding; what is not finite is refused elsewhere."""
    return all(
        bool(((this - that).abs() <= tolerance * that.abs().max() + 1e-12).all())
        or not bool(torch.isfinite(this).all())
        for this, that in ((this.cpu(), that.cpu()) for this, that in zip(these, those, strict=True))
    )

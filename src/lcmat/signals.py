"""From a trained model to Signals: the one place where a model is read out."""

import copy
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, overload

import torch
from torch import Tensor, nn

from lcmat import runtime
from lcmat.networks import find_head
from lcmat.training import log_of
from lcmat.training import precision as number_formats
from lcmat.training.inference import evaluating, full_type
from lcmat.training.inputs import Normaliser, batch_bounds, inference_batch_size
from lcmat.training.step import check_logits
from lcmat.types import Data, FeatureData, ImageData, Record, Signals

STATISTICS = ("running", "class-batch")  # of batch normalisation

# Rows of the probe, and the largest difference between two passes that rounding explains, relative to the values.
_PROBE_ROWS = 48
_ROUNDING = {"float32": 1e-3, "tf32": 2e-2, "bf16": 1e-1}


@overload
def extract(
    model: nn.Module,
    data: Data,
    *,
    points: None = None,
    head: str | None = None,
    batch_size: int | None = None,
    device: torch.device | str | None = None,
    precision: str = "auto",
    statistics: str = "running",
) -> Signals: ...


@overload
def extract(
    model: nn.Module,
    data: Data,
    *,
    points: Sequence[int],
    head: str | None = None,
    batch_size: int | None = None,
    device: torch.device | str | None = None,
    precision: str = "auto",
    statistics: str = "running",
) -> list[Signals]: ...


def extract(
    model: nn.Module,
    data: Data,
    *,
    points: Sequence[int] | None = None,
    head: str | None = None,
    batch_size: int | None = None,
    device: torch.device | str | None = None,
    precision: str = "auto",
    statistics: str = "running",
) -> Signals | list[Signals]:
    """Features and logits of every sample: the input of the model's last linear layer, and its output.

    One pass in evaluation mode, in the order of the data. The model's `state_dict` and training mode are afterwards as
    they were. A few samples are passed three times first, once in other batches: a model or data that change from pass
    to pass, or whose outputs depend on the other samples of a batch, are refused.

    Args:
        model: any classifier that ends in an `nn.Linear`; it gets the samples normalised by the data's mean and
            standard deviation.
        data: the samples.
        points: epochs of snapshots that the model was trained with; one Signals for each of them.
        head: name of the last linear layer, where it is not the last one that the model defines.
        batch_size: rows at a time; None fits the device. The result depends on it in rounding only.
        device: where to compute; None takes the first CUDA device, else the CPU.
        precision: 'auto' (float32 on the CPU, TF32 on CUDA), 'float32', 'tf32' or 'bf16'.
        statistics: of batch normalisation: 'running' ones, as evaluation mode has them, or those of batches of one
            class, 'class-batch', as the official code of LCMat happens to use; a sample's Signals then depend on its
            batch, and `batch_size` (128 if None) on the result.

    Returns:
        Signals on the device that computed them, with the data's labels, class names and fingerprint, and with the
        training record, where the model was trained on this data with `record=True`.

    Raises:
        ValueError: when the model has no such layer or changes from pass to pass, or gives NaN; when a snapshot is
            missing.
        TypeError: when the model or the data are none.
    """
    _check_kinds(model, data)
    place = runtime.pick_device(device)
    precision = number_formats.resolve(precision, place, on_cuda="tf32")
    if statistics not in STATISTICS:
        raise ValueError(f"expected statistics of {' or '.join(map(repr, STATISTICS))}, got {statistics!r}")
    how = _How(head, batch_size, place, precision, by_class=statistics == "class-batch")
    if points is None:
        return _extract(model, data, how)
    snapshots = _snapshots(model, points)
    twin = copy.deepcopy(model)
    signals = []
    for snapshot in snapshots:
        twin.load_state_dict(snapshot)
        signals.append(_extract(twin, data, how))
    return signals


@dataclass(frozen=True)
class _How:
    """How a model is read out."""

    head: str | None
    batch_size: int | None
    device: torch.device
    precision: str
    by_class: bool


def _extract(model: nn.Module, data: Data, how: _How) -> Signals:
    device, precision = how.device, how.precision
    with evaluating(model, device) as ready, number_formats.float32_products(precision, device):
        name, layer = find_head(ready, how.head)
        with _watched(layer) as seen:
            reader = _Reader(ready, name, data, seen, Normaliser.of(ready, data, device), device, precision)
            if how.by_class:
                with _batch_statistics(ready):
                    features, logits = reader.read_all(_batches_of_one_class(data.labels, how.batch_size or 128))
            else:
                probe = _probe(reader, _ROUNDING[precision])
                features, logits = reader.read_all(_in_order(data, inference_batch_size(data, device, how.batch_size)))
                probe.check(features, logits, _ROUNDING[precision])
        return Signals(
            features,
            logits,
            data.labels.to(features.device),
            bias=layer.bias is not None,
            record=_record(model, data),
            fingerprint=data.fingerprint,
            class_names=data.class_names,
        )


@contextmanager
def _batch_statistics(model: nn.Module) -> Iterator[None]:
    """Batch normalisation by the statistics of each batch, its running ones neither used nor changed."""
    parts = [part for part in model.modules() if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)]
    if not parts:
        raise ValueError("statistics='class-batch' needs a model with batch normalisation; this one has none")
    before = [(part.training, part.track_running_stats) for part in parts]
    try:
        for part in parts:
            part.training, part.track_running_stats = True, False
        yield
    finally:
        for part, (training, tracking) in zip(parts, before, strict=True):
            part.training, part.track_running_stats = training, tracking


def _in_order(data: Data, size: int) -> Iterator[slice]:
    return (slice(start, stop) for start, stop in batch_bounds(len(data), size))


def _batches_of_one_class(labels: Tensor, size: int) -> Iterator[Tensor]:
    """The rows of each class in turn, `size` at a time; a single one left over joins the batch before it."""
    for label in labels.unique():
        rows = (labels == label).nonzero().flatten()
        bounds = [*range(0, len(rows), size), len(rows)]
        if len(bounds) > 2 and bounds[-1] - bounds[-2] == 1:
            del bounds[-2]
        yield from (rows[start:stop] for start, stop in pairwise(bounds))


def _check_kinds(model: object, data: object) -> None:
    if not isinstance(data, ImageData | FeatureData):
        advice = "give its part .train" if hasattr(data, "train") else "lcmat.load reads data of many kinds"
        raise TypeError(f"expected ImageData or FeatureData to extract from, got {type(data).__name__}; {advice}")
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a trained nn.Module, got {type(model).__name__}; lcmat.train(net, data) gives one")


@contextmanager
def _watched(layer: nn.Linear) -> Iterator[list[tuple[Tensor, Tensor]]]:
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
class _Reader:
    """Reads features and logits of given rows from a model in evaluation mode."""

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
class _Probe:
    """Some rows, and what the model gave for them before the pass over all."""

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


def _probe(reader: _Reader, tolerance: float) -> _Probe:
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
    return _Probe(rows, *first)


def _agree(these: tuple[Tensor, Tensor], those: tuple[Tensor, Tensor], tolerance: float) -> bool:
    """Whether features and logits are equal up to rounding; what is not finite is refused elsewhere."""
    return all(
        bool(((this - that).abs() <= tolerance * that.abs().max() + 1e-12).all())
        or not bool(torch.isfinite(this).all())
        for this, that in ((this.cpu(), that.cpu()) for this, that in zip(these, those, strict=True))
    )


def _snapshots(model: nn.Module, points: Sequence[int]) -> list[dict[str, Tensor]]:
    log = log_of(model)
    kept = log.snapshots if log is not None else {}
    if not points:
        raise ValueError("expected points as epochs of kept snapshots, got none")
    if missing := [point for point in points if point not in kept]:
        found = f"it has those of epochs {sorted(kept)}" if kept else "it has none"
        raise ValueError(
            f"the model has no snapshot of epochs {missing}; {found}; train it with snapshots={list(points)}"
        )
    return [kept[point] for point in points]


def _record(model: nn.Module, data: Data) -> Record | None:
    """The training record, where the model was trained on exactly this data."""
    log = log_of(model)
    return log.record if log is not None and log.config.get("data") == data.fingerprint else None

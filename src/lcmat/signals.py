"""From a trained model to Signals: the one place where a model is read out."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import torch
from torch import Tensor, nn

from lcmat import runtime
from lcmat.networks import find_head
from lcmat.training import log_of
from lcmat.training import precision as number_formats
from lcmat.training.inference import evaluating
from lcmat.training.inputs import Normaliser, batch_bounds, inference_batch_size
from lcmat.training.reading import Reader, probe, watched
from lcmat.types import Data, FeatureData, ImageData, Record, Signals

STATISTICS = ("running", "class-batch")  # of batch normalisation

# The largest difference between two passes that rounding explains, relative to the values.
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
        with watched(layer) as seen:
            reader = Reader(ready, name, data, seen, Normaliser.of(ready, data, device), device, precision)
            if how.by_class:
                with _batch_statistics(ready):
                    features, logits = reader.read_all(_batches_of_one_class(data.labels, how.batch_size or 128))
            else:
                probed = probe(reader, _ROUNDING[precision])
                features, logits = reader.read_all(_in_order(data, inference_batch_size(data, device, how.batch_size)))
                probed.check(features, logits, _ROUNDING[precision])
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

"""Signals of the samples that a training sees, whatever holds them."""

from collections.abc import Callable, Sized
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data import Subset as Part

from lcmat.dynamic.indexed import Indexed
from lcmat.networks import find_head
from lcmat.signals import extract
from lcmat.training.inference import evaluating
from lcmat.types import FeatureData, ImageData, Signals

# (model, rows) -> what the model says of these rows, in this order
Look: TypeAlias = Callable[[nn.Module, Tensor], Signals]

_BATCH = 256
_PROBE_ROWS = 8


def look_at(
    model: nn.Module, data: Any, rows: Tensor | None, *, head: str | None, device: str | None, signals: Look | None
) -> Signals:
    """What the model says now of some rows of the data, or of all.

    Args:
        model: as it trains; wrapped for several devices or not. Its mode and state are afterwards as before.
        data: `ImageData` or `FeatureData`, or a data set of (input, class) pairs without augmentation.
        rows: of the data; None for all.
        head: name of the last linear layer, where it is not the last one that the model defines.
        device: to compute on; None takes the model's.
        signals: takes the place of all this.

    Raises:
        TypeError: for samples that are no pairs of a tensor and a class.
        ValueError: when the model has no linear layer, or the data give other samples every time.
    """
    # A wrapped model talks to the other ranks in its forward pass, and they would not answer.
    bare = model.module if isinstance(model, DistributedDataParallel | DataParallel) else model
    if signals is not None:
        return signals(bare, torch.arange(len(data)) if rows is None else rows)
    place = device or _device_of(bare)
    if isinstance(data, ImageData | FeatureData):
        return extract(bare, data if rows is None else data.take(rows), head=head, device=place)
    return _read(bare, data, rows, head, torch.device(place))


def known_labels(data: Any) -> Tensor | None:
    """The classes of all samples, where the data has them at hand."""
    return data.labels if isinstance(data, ImageData | FeatureData) else None


def check_data(data: Any, signals: Look | None) -> int:
    """How many samples there are.

    Raises:
        TypeError: for data that no Signals can be read of.
    """
    if not isinstance(data, ImageData | FeatureData) and (
        not isinstance(data, Sized) or (signals is None and not hasattr(data, "__getitem__"))
    ):
        hint = "; give its part .train" if hasattr(data, "train") else ""
        raise TypeError(
            f"expected ImageData, FeatureData or a data set with a length and samples by number, "
            f"got {type(data).__name__}{hint}"
        )
    if len(data) == 0:
        raise ValueError("expected at least one sample to choose from, got none: the data is empty")
    return len(data)


def _device_of(model: nn.Module) -> str:
    return str(next((weight.device for weight in model.parameters()), torch.device("cpu")))


def _read(model: nn.Module, data: Dataset[Any], rows: Tensor | None, head: str | None, device: torch.device) -> Signals:
    if isinstance(data, Indexed):
        data = data.dataset
    wanted = list(range(len(data))) if rows is None else rows.tolist()  # type: ignore[arg-type]
    _probe(data, wanted[:_PROBE_ROWS])
    features, logits, labels = [], [], []
    with evaluating(model, device) as ready:
        _, layer = find_head(ready, head)
        seen: list[Tensor] = []
        handle = layer.register_forward_hook(lambda _, inputs, output: seen.extend((inputs[0], output)))
        try:
            for inputs, classes in DataLoader(Part(data, wanted), batch_size=_BATCH):
                seen.clear()
                ready(inputs.to(device))
                features.append(seen[-2].float())
                logits.append(seen[-1].float())
                labels.append(classes)
        finally:
            handle.remove()
    return Signals(torch.cat(features), torch.cat(logits), torch.cat(labels).to(device), bias=layer.bias is not None)


def _probe(data: Any, rows: list[int]) -> None:
    """Read a few samples twice."""
    for row in rows:
        first, second = data[row], data[row]
        if not (isinstance(first, tuple | list) and len(first) == 2 and isinstance(first[0], Tensor)):
            raise TypeError(
                "expected a data set whose samples are pairs of a tensor and a class, got "
                f"{type(first).__name__}; give signals=, a function of (model, rows) that returns lcmat.Signals"
            )
        if not torch.equal(first[0], second[0]):
            raise ValueError(
                f"sample {row} of the data set was another one when it was read again; give data= without "
                "augmentation (the DataLoader may still augment)"
            )

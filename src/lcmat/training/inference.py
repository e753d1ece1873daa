"""Passes over a data set in evaluation mode, in order, without a trace on the model."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from lcmat import runtime, seeding
from lcmat.training import precision as number_formats
from lcmat.training.inputs import Normaliser, batch_bounds, inference_batch_size
from lcmat.types import Data


def predict(
    model: nn.Module,
    data: Data,
    *,
    batch_size: int | None = None,
    device: torch.device | str | None = None,
    precision: str = "auto",
) -> Tensor:
    """The logits of every sample, in order, on the CPU, `[n, C]`.

    The model runs in evaluation mode; its training mode and its `state_dict` are afterwards as they were. Where it is
    on another device, a copy of it does the work.

    Args:
        model: any classifier; it gets the samples normalised by the data's mean and standard deviation.
        data: the samples.
        batch_size: rows at a time; None fits the device. The result depends on it in rounding only.
        device: where to compute; None takes the first CUDA device, else the CPU.
        precision: 'auto' (float32 on the CPU, bf16 on CUDA), 'float32', 'tf32' or 'bf16'.
    """
    place = runtime.pick_device(device)
    precision = number_formats.resolve(precision, place)
    with evaluating(model, place) as ready, number_formats.float32_products(precision, place):
        return torch.cat([full_type(part).cpu() for part in outputs(ready, data, place, precision, batch_size)])


def accuracy(model: nn.Module, data: Data, *, device: torch.device | str | None = None) -> float:
    """The share of the samples whose largest logit is that of their class, in [0, 1]."""
    return float((predict(model, data, device=device).argmax(1) == data.labels).double().mean())


@contextmanager
def evaluating(model: nn.Module, device: torch.device) -> Iterator[nn.Module]:
    """The model in evaluation mode on the device, without gradients; afterwards it is as it was.

    Training modes are kept for each part, since some may be frozen; buffers that a forward pass changes in spite of
    evaluation mode are put back; random draws of a forward pass leave the global generators alone.
    """
    if any(part.device != device for part in (*model.parameters(), *model.buffers())):
        model = copy.deepcopy(model).to(device)
    modes = {part: part.training for part in model.modules()}
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    model.eval()
    try:
        with torch.no_grad(), seeding.isolated(0, "evaluation", device=device):
            yield model
    finally:
        for part, mode in modes.items():
            part.training = mode
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def outputs(
    model: nn.Module,
    data: Data,
    device: torch.device,
    precision: str,
    batch_size: int | None = None,
    stored: Tensor | None = None,
) -> Iterator[Tensor]:
    """The model's outputs batch by batch, in the order of the data; for use inside `evaluating`.

    `stored` are the data's samples, where they are on the device already.
    """
    stored = data.inputs if stored is None else stored
    size = inference_batch_size(data, device, batch_size)
    normalise = Normaliser.of(model, data, device)
    for start, stop in batch_bounds(len(data), size):
        with number_formats.autocast(precision, device):
            yield model(normalise(stored[start:stop].to(device)))


def full_type(values: Tensor) -> Tensor:
    """The values in single or double precision."""
    return values if values.dtype == torch.float64 else values.float()

"""The samples of a training, on the device: whole where they fit, else brought batch by batch."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from lcmat import augment, runtime
from lcmat.training.inputs import Normaliser
from lcmat.types import Data, ImageData


class Batches:
    """Batches in fixed buffers, so that a captured graph finds each new batch where it found the first.

    `stage` puts a batch into the buffers and is not captured; `take` makes inputs of it and can be.

    Attributes:
        stored: all samples, on the device where they fit.
    """

    def __init__(
        self,
        data: Data,
        weights: Tensor | None,
        *,
        normalise: Normaliser,
        largest: int,
        augmented: bool,
        generator: torch.Generator,
        device: torch.device,
        resident: bool | None = None,
        operations: Sequence[str] = (),
        cutmix: float = 0.0,
        targets: Tensor | None = None,
    ) -> None:
        """Prepare the buffers.

        Args:
            data: the samples.
            weights: of the samples' losses, `[n]`, or None.
            normalise: applied after augmentation.
            largest: rows of the largest batch.
            augmented: whether images are cropped and flipped.
            generator: of the augmentation, on the device.
            device: that trains.
            resident: whether the samples are on the device as a whole; None: where they take less than half of what
                is free, or the device is the CPU.
            operations: of DSA, drawn for each image and applied to normalised images.
            cutmix: the probability that a batch of images is mixed.
            targets: distributions over the classes instead of the labels, `[n, C]`, or None.
        """
        stored = data.inputs
        if resident is None:
            resident = device.type == "cpu" or stored.nbytes < runtime.free_memory(device) // 2
        self._normalise = normalise
        self._generator = generator
        self._padding = min(stored.shape[-2:]) // 8 if augmented and isinstance(data, ImageData) else 0
        self._flip = augmented and isinstance(data, ImageData) and data.flip
        self._operations = tuple(operations) if isinstance(data, ImageData) else ()
        self._cutmix = cutmix if isinstance(data, ImageData) else 0.0
        if self._cutmix and targets is None:
            targets = functional.one_hot(data.labels, len(data.class_names)).float()
        self._labels = (data.labels if targets is None else targets).to(device)
        self._weights = None if weights is None else weights.to(device)
        self._rows = torch.zeros(largest, dtype=torch.int64, device=device)
        self._order = self._rows
        self.stored = stored.to(device) if resident else stored
        self._stream = None if resident else _Stream(stored, largest, device)

    def begin(self, order: Tensor) -> None:
        """Start an epoch with the rows in this order, `[n]` on the CPU."""
        self._order = order.to(self._rows.device)
        if self._stream is not None:
            self._stream.order = order

    def reweigh(self, weights: Tensor) -> None:
        """Replace the weights of the samples' losses, `[n]`, where there were some."""
        if self._weights is None:
            raise ValueError("these batches were made without weights; give some, such as ones, to change them later")
        self._weights.copy_(weights)

    def stage(self, start: int, stop: int) -> None:
        """Put the rows from `start` to `stop` of the epoch's order into the buffers."""
        self._rows[: stop - start].copy_(self._order[start:stop])
        if self._stream is not None:
            self._stream.stage(start, stop)

    def take(self, size: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """The staged batch: inputs, labels (classes, or distributions over them), and weights if there are any."""
        rows = self._rows[:size]
        stored = self._stream.buffer[:size] if self._stream is not None else self.stored[rows]
        if self._padding:
            stored = augment.random_crop(stored, padding=self._padding, generator=self._generator)
        if self._flip:
            stored = augment.random_flip(stored, generator=self._generator)
        weights = None if self._weights is None else self._weights[rows]
        inputs, labels = self._normalise(stored), self._labels[rows]
        if self._operations:
            inputs = augment.draw(self._operations, size, generator=self._generator, device=inputs.device)(inputs)
        if self._cutmix:
            inputs, labels = augment.cutmix(inputs, labels, probability=self._cutmix, generator=self._generator)
        return inputs, labels, weights


class _Stream:
    """Rows brought to a buffer on the device through two pinned buffers in turn.

    While the device copies from one, the next batch is gathered into the other.
    """

    def __init__(self, stored: Tensor, largest: int, device: torch.device) -> None:
        shape = (largest, *stored.shape[1:])
        pinned = device.type == "cuda"
        self.order = torch.zeros(0, dtype=torch.int64)
        self.buffer = torch.zeros(shape, dtype=stored.dtype, device=device)
        self._source = stored
        self._staging = [torch.zeros(shape, dtype=stored.dtype, pin_memory=pinned) for _ in range(2)]
        self._copied = [torch.cuda.Event() for _ in range(2)] if pinned else []
        self._turn = 0

    def stage(self, start: int, stop: int) -> None:
        """Gather the rows of the order and send them to the device."""
        self._turn = 1 - self._turn
        if self._copied:
            self._copied[self._turn].synchronize()
        rows = self._staging[self._turn][: stop - start]
        torch.index_select(self._source, 0, self.order[start:stop], out=rows)
        self.buffer[: stop - start].copy_(rows, non_blocking=True)
        if self._copied:
            self._copied[self._turn].record()

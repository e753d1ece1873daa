"""Real samples drawn class by class, and the synthetic samples as they begin."""

import torch
from torch import Tensor

from lcmat import seeding
from lcmat.training.inputs import Normaliser
from lcmat.types import Data, ImageData
from lcmat.types.formation import encode


class RealSamples:
    """The data on the device, normalised as it is drawn; nothing here waits for the device.

    Attributes:
        labels: class indices, `[n]`.
    """

    def __init__(self, data: Data, device: torch.device) -> None:
        self._stored = data.inputs.to(device)
        self._normalise = Normaliser(data, torch.float32, device)
        counts = torch.bincount(data.labels, minlength=len(data.class_names))
        self.labels = data.labels.to(device)
        self._order = data.labels.argsort(stable=True).to(device)
        self._counts = counts.to(device)
        self._starts = (counts.cumsum(0) - counts).to(device)

    def of_classes(self, classes: Tensor, numbers: Tensor) -> Tensor:
        """Samples of each class, with replacement, `[K, b, ...]`.

        Args:
            classes: class indices, `[K]`.
            numbers: uniform in [0, 1), `[K, b]`.
        """
        counts = self._counts[classes][:, None]
        # A number just below 1 may be rounded up to the count itself.
        places = torch.minimum((numbers * counts).long(), counts - 1)
        rows = self._order[self._starts[classes][:, None] + places]
        samples: Tensor = self._normalise(self._stored[rows.flatten()]).unflatten(0, rows.shape)
        return samples

    def of_all(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Samples of the whole data, with replacement, and their labels."""
        rows = torch.randint(len(self.labels), (size,), generator=generator, device=self.labels.device)
        return self._normalise(self._stored[rows]), self.labels[rows]


def pixel_bounds(data: Data, device: torch.device) -> tuple[Tensor, Tensor] | None:
    """The least and the largest normalised value of an image, per channel; None for feature vectors."""
    if not isinstance(data, ImageData):
        return None
    mean, std = (torch.tensor(part, device=device).reshape(-1, 1, 1) for part in (data.mean, data.std))
    return -mean / std, (1 - mean) / std


def first_samples(data: Data, classes: Tensor, per_class: int, *, start: str, factor: int, seed: int) -> Tensor:
    """The synthetic samples before the first step, normalised, `[K, per_class, ...]` on the CPU.

    'noise' is clamp(½ + N(0, 1)/4) for pixels and N(0, 1) for normalised features; 'real' are samples drawn without
    replacement, f² of them shrunk into each stored image. A class draws the same whichever others are condensed.

    Raises:
        ValueError: when a class has too few samples for 'real'.
    """
    shape = tuple(data.inputs.shape[1:])
    normalise = Normaliser(data, torch.float32, torch.device("cpu"))
    first = []
    for index in classes.tolist():
        draws = seeding.generator(seed, "condensation", "start", index)
        if start == "noise":
            values = torch.randn(per_class, *shape, generator=draws)
            if isinstance(data, ImageData):
                values = normalise((0.5 + values / 4).clamp(0, 1) * 255)
            first.append(values)
            continue
        rows = (data.labels == index).nonzero().flatten()
        needed = per_class * factor**2
        if needed > len(rows):
            raise ValueError(
                f"expected at least {needed} samples of class {data.class_names[index]!r} to start from real ones, "
                f"there are {len(rows)}; give a smaller per_class or start='noise'"
            )
        chosen = rows[torch.randperm(len(rows), generator=draws)[:needed]]
        first.append(encode(normalise(data.inputs[chosen]), factor))
    return torch.stack(first)

"""Data sets in memory: labelled images or feature vectors, and their train and test parts."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor

from lcmat import files
from lcmat.types.checks import check_finite


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Labelled images, kept as bytes until they are on the device that works on them.

    Attributes:
        images: uint8, `[n, channels, height, width]`.
        labels: class indices, int64, `[n]`.
        class_names: the classes in the order of their indices.
        names: file name or path of each row, or empty.
        mean: per channel, of values in [0, 1]; computed from these images when empty.
        std: likewise.
        flip: whether a mirrored image keeps its label (a mirrored digit does not).
        known_fingerprint: the fingerprint where it is known already, from a cache.
    """

    images: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    names: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    flip: bool = True
    known_fingerprint: str = ""

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise ValueError(
                f"expected uint8 images of shape [n, channels, height, width], "
                f"got {self.images.dtype} of shape {list(self.images.shape)}"
            )
        _check_labels(self.labels, len(self.images), self.class_names, self.names)
        if not self.mean:
            mean, std = _channel_statistics(self.images)
            object.__setattr__(self, "mean", mean)
            object.__setattr__(self, "std", std)

    @property
    def inputs(self) -> Tensor:
        """What a network is fed with, before normalisation."""
        return self.images

    @cached_property
    def fingerprint(self) -> str:
        """A digest of images, labels and class names in order."""
        return self.known_fingerprint or files.fingerprint(self.images, self.labels, self.class_names)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return _described(self, "image")

    def take(self, indices: Tensor) -> "ImageData":
        """The rows at these indices, in this order, with this data set's mean and standard deviation."""
        names = tuple(self.names[i] for i in indices.tolist()) if self.names else ()
        return replace(
            self, images=self.images[indices], labels=self.labels[indices], names=names, known_fingerprint=""
        )


@dataclass(frozen=True, eq=False, repr=False)
class FeatureData:
    """Labelled feature vectors: table rows or embeddings.

    Attributes:
        features: float32, `[n, d]`, finite.
        labels: class indices, int64, `[n]`.
        class_names: the classes in the order of their indices.
        names: a name for each row, or empty.
        mean: per feature; computed from these rows when empty.
        std: likewise; 1 for a constant feature.
        known_fingerprint: the fingerprint where it is known already, from a cache.
        feature_names: of the columns, or empty.
    """

    features: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    names: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    known_fingerprint: str = ""
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.features.dtype != torch.float32 or self.features.ndim != 2:
            raise ValueError(
                f"expected float32 features of shape [n, d], "
                f"got {self.features.dtype} of shape {list(self.features.shape)}"
            )
        _check_labels(self.labels, len(self.features), self.class_names, self.names)
        check_finite("features", self.features)
        if self.feature_names and len(self.feature_names) != self.features.shape[1]:
            raise ValueError(
                f"expected a name for each of the {self.features.shape[1]:,} features or none at all, "
                f"got {len(self.feature_names):,}"
            )
        if not self.mean:
            std, mean = torch.std_mean(self.features.double(), dim=0, correction=0)
            object.__setattr__(self, "mean", tuple(mean.tolist()))
            object.__setattr__(self, "std", tuple(torch.where(std > 0, std, 1.0).tolist()))

    @property
    def inputs(self) -> Tensor:
        """What a network is fed with, before normalisation."""
        return self.features

    @cached_property
    def fingerprint(self) -> str:
        """A digest of features, labels and class names in order."""
        return self.known_fingerprint or files.fingerprint(self.features, self.labels, self.class_names)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return _described(self, "feature vector")

    def take(self, indices: Tensor) -> "FeatureData":
        """The rows at these indices, in this order, with this data set's mean and standard deviation."""
        names = tuple(self.names[i] for i in indices.tolist()) if self.names else ()
        return replace(
            self,
            features=self.features[indices],
            labels=self.labels[indices],
            names=names,
            known_fingerprint="",
        )


Data: TypeAlias = ImageData | FeatureData


@dataclass(frozen=True, eq=False, repr=False)
class Splits:
    """A data set as `lcmat.load` gives it.

    Attributes:
        train: what is selected from.
        test: what networks are judged on; the training data's mean and standard deviation.
        name: what it was loaded from, for people.
        notes: what the loader decided on its own, such as a split it made.
        rows: of the source, for each training sample, int64, `[n]`; None where that is not known.
    """

    train: Data
    test: Data
    name: str
    notes: tuple[str, ...] = ()
    rows: Tensor | None = None

    def source_rows(self, subset: Iterable[int]) -> list[int]:
        """The rows that a subset of the training part has in the source.

        They differ from the subset's own indices where the loader held out a test part: those count what is left.

        Raises:
            ValueError: when the rows are not known, or the subset holds others than the training part has.
        """
        indices = torch.tensor(list(subset), dtype=torch.int64)
        if self.rows is None:
            raise ValueError("expected data as lcmat.load gives it; the source's rows of this part are not known")
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < len(self.train):
            raise ValueError(
                f"expected rows of the training part, from 0 to {len(self.train) - 1}, "
                f"got {int(indices.min())} to {int(indices.max())}"
            )
        found: list[int] = self.rows[indices].tolist()
        return found

    def __repr__(self) -> str:
        return f"Splits: {self.summary()}"

    def summary(self) -> str:
        """A few lines that say what was found."""
        train, test = self.train, self.test
        shape = " × ".join(map(str, train.inputs.shape[1:]))
        kind = "images (channels × height × width)" if isinstance(train, ImageData) else "features"
        shown = ", ".join(train.class_names[:10]) + (", …" if len(train.class_names) > 10 else "")
        lines = [
            f"{self.name}: {len(train):,} train, {len(test):,} test, {shape} {kind}",
            f"{len(train.class_names)} classes: {shown}",
        ]
        if isinstance(train, ImageData):
            rounded = [[round(value, 3) for value in part] for part in (train.mean, train.std)]
            lines.append(f"mean {rounded[0]}, standard deviation {rounded[1]}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def _described(data: Data, kind: str) -> str:
    """A line such as 'ImageData: 4 images of 3 × 2 × 2, 2 classes', in place of all the numbers."""
    n, shape = len(data), " × ".join(map(str, data.inputs.shape[1:]))
    return (
        f"{type(data).__name__}: {n:,} {kind}{'' if n == 1 else 's'} of {shape}, "
        f"{len(data.class_names)} class{'' if len(data.class_names) == 1 else 'es'}"
    )


def _check_labels(labels: Tensor, n: int, class_names: tuple[str, ...], names: tuple[str, ...]) -> None:
    if n == 0:
        raise ValueError("expected at least one sample, got none: the data is empty")
    if labels.dtype != torch.int64 or labels.ndim != 1:
        raise ValueError(f"expected an int64 label vector, got {labels.dtype} of shape {list(labels.shape)}")
    if len(labels) != n:
        raise ValueError(f"expected one label for each of the {n:,} samples, got {len(labels):,}")
    if labels.min() < 0 or labels.max() >= len(class_names):
        raise ValueError(
            f"expected labels from 0 to {len(class_names) - 1}, one for each class name, "
            f"got {int(labels.min())} to {int(labels.max())}"
        )
    if names and len(names) != n:
        raise ValueError(f"expected a name for each of the {n:,} samples or none at all, got {len(names):,}")


def _channel_statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel of values in [0, 1], exactly, from a count of the 256 byte values."""
    levels = torch.arange(256, dtype=torch.float64) / 255
    means, stds = [], []
    for channel in range(images.shape[1]):
        counts = torch.bincount(images[:, channel].flatten().to(torch.uint8), minlength=256).double()
        share = counts / counts.sum()
        mean = float((share * levels).sum())
        means.append(mean)
        stds.append(math.sqrt(float((share * (levels - mean) ** 2).sum())) or 1.0)
    return tuple(means), tuple(stds)

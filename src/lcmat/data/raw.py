"""What a source gives: inputs in memory, labels as they were found, a name for each row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RawPart:
    """The training or the test part of a source.

    Attributes:
        inputs: images as uint8 `[n, channels, height, width]`, or features as float32 `[n, d]`.
        labels: `[n]`, as found: whole numbers or text; class indices after `assemble.index_labels`.
        names: file name, path or row of each sample.
        rows: of the source, where others were held out; None when they are all there, in order.
    """

    inputs: NDArray[Any]
    labels: NDArray[Any]
    names: tuple[str, ...]
    rows: NDArray[np.int64] | None = None

    @property
    def is_images(self) -> bool:
        """Whether the inputs are images, not feature vectors."""
        return self.inputs.ndim == 4


@dataclass(frozen=True, eq=False)
class Raw:
    """What a source gives.

    Attributes:
        train: the training part, or everything where the source has one part only.
        test: the test part, or None.
        class_names: in the order of the labels, where the source knows them; else empty.
        flip: whether a mirrored image keeps its label, where the source knows it; else None.
        notes: what the source decided on its own.
        feature_names: of the columns of features, where they have names.
    """

    train: RawPart
    test: RawPart | None = None
    class_names: tuple[str, ...] = ()
    flip: bool | None = None
    notes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceFacts:
    """How a kind of source is recognised and kept.

    Attributes:
        detect: whether a source (an existing `Path`, a text that is no path, or an object) is of this kind.
        cached: whether decoding it is slow enough for its result to be kept.
    """

    detect: Callable[[Any], bool]
    cached: bool


def as_features(array: NDArray[Any], where: str) -> NDArray[np.float32]:
    """Feature vectors `[n, d]` as float32.

    Raises:
        ValueError: for something else than numbers, or vectors of no length.
    """
    if array.dtype.kind not in "iufb" or array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"expected numbers of shape [n, d] in {where}, got {array.dtype} of shape {list(array.shape)}")
    with np.errstate(over="ignore"):  # too large for float32 is infinity, which `FeatureData` refuses by row
        return np.ascontiguousarray(array, np.float32)

"""What condensation gives: a few synthetic samples of each class, with all that is needed to use and trust them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import TensorDataset

from lcmat import files
from lcmat.types.checks import check_finite
from lcmat.types.data import Data, FeatureData, ImageData
from lcmat.types.formation import check_factor, decode
from lcmat.types.pictures import as_picture, png_bytes

_TILE = 48  # pixels; smaller images are enlarged to about this side in a picture grid
_PLAIN_FIELDS = (
    "class_names", "mean", "std", "method", "options", "seed", "n", "factor", "flip", "fingerprint", "soft_from",
    "recipe", "notes", "versions",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticSet:
    """A few synthetic samples of each class.

    `len()` is the number of stored samples, which is the budget; with a factor f each holds f² images to train on.

    Attributes:
        inputs: the stored samples: images `[m, channels, height, width]`, float32 in [0, 1] or uint8, or feature
            vectors `[m, d]`, float32.
        labels: the class that each stored sample was made for, int64, `[m]`.
        class_names: of the data, in order; a shard of the classes keeps all names.
        mean: of the data, per channel or feature; what networks are fed with is normalised by it.
        std: likewise.
        method: the condenser's registered name.
        options: its options as used, defaults included.
        seed: of the condensation.
        n: rows of the data that was condensed.
        soft: a distribution over the classes for each decoded sample, float32, `[m·f², C]`; None for hard labels.
        soft_from: where soft labels come from, in words; empty for hard labels.
        factor: f; the images in each stored one are f × f.
        flip: whether a mirrored image keeps its label.
        fingerprint: of the data that was condensed.
        recipe: everything else that decided the result: network, steps, start.
        notes: what must be known to read it rightly.
        versions: of lcmat and what it ran on.
    """

    inputs: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    method: str
    options: Mapping[str, Any]
    seed: int
    n: int
    soft: Tensor | None = None
    soft_from: str = ""
    factor: int = 1
    flip: bool = True
    fingerprint: str = ""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        m = len(self.inputs)
        _check_inputs(self.inputs)
        check_factor(self.factor, tuple(self.inputs.shape[1:]))
        if self.labels.dtype != torch.int64 or self.labels.shape != (m,):
            raise ValueError(f"expected {m} int64 labels, got {self.labels.dtype} of shape {list(self.labels.shape)}")
        if self.labels.min() < 0 or self.labels.max() >= len(self.class_names):
            raise ValueError(
                f"expected labels from 0 to {len(self.class_names) - 1}, got {int(self.labels.min())} to "
                f"{int(self.labels.max())}"
            )
        if self.soft is not None:
            _check_soft(self.soft, m * self.factor**2, len(self.class_names))
        if (self.soft is None) == bool(self.soft_from):
            raise ValueError("expected soft_from to say where soft labels come from, and to be empty for hard labels")
        if not self.n >= 1:
            raise ValueError(f"expected data of at least one row behind the set, got n={self.n}")

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.inputs.shape[1:]))
        return f"SyntheticSet: {len(self):,} samples of {shape} for {self.n:,}, by {self.method}, seed {self.seed}"

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def are_images(self) -> bool:
        """Whether the samples are images."""
        return self.inputs.ndim == 4

    @property
    def images(self) -> Tensor:
        """The stored samples under the name that images have."""
        return self.inputs

    @property
    def per_class(self) -> tuple[int, ...]:
        """Stored samples of each class; 0 for the classes that a shard leaves out."""
        return tuple(torch.bincount(self.labels, minlength=len(self.class_names)).tolist())

    @property
    def fraction(self) -> float:
        """Stored samples as a share of the data."""
        return len(self) / self.n

    @property
    def label_kind(self) -> str:
        """'hard', or 'soft' with where they come from."""
        return "hard" if self.soft is None else f"soft ({self.soft_from})"

    def decoded(self) -> tuple[Tensor, Tensor]:
        """What networks train on: samples `[m·f², ...]`, images as float32 in [0, 1], and their classes."""
        inputs = self.inputs.float() / 255 if self.inputs.dtype == torch.uint8 else self.inputs
        return decode(inputs, self.factor), self.labels.repeat_interleave(self.factor**2)

    def data(self) -> Data:
        """The decoded samples with their hard labels, as `lcmat.train` takes them; images are rounded to bytes."""
        inputs, labels = self.decoded()
        if self.are_images:
            return ImageData(_to_bytes(inputs), labels, self.class_names, mean=self.mean, std=self.std, flip=self.flip)
        return FeatureData(inputs, labels, self.class_names, mean=self.mean, std=self.std)

    def apply(self, data: Data) -> Data:
        """`data()`, after a check that this set was condensed from the given data.

        Raises:
            ValueError: when it was condensed from other data.
        """
        if self.class_names != data.class_names:
            raise ValueError(
                "this set was condensed from data with other classes, or with its classes in another order"
            )
        if self.inputs.shape[1:] != data.inputs.shape[1:]:
            raise ValueError(
                f"this set has samples of shape {list(self.inputs.shape[1:])}, but this data of shape "
                f"{list(data.inputs.shape[1:])}"
            )
        if self.fingerprint and data.fingerprint != self.fingerprint:
            raise ValueError(
                "this set was condensed from other data: the fingerprints differ "
                f"({self.fingerprint[:12]} and {data.fingerprint[:12]}); load the data that it was condensed from"
            )
        return self.data()

    def dataset(self) -> TensorDataset:
        """A `torch.utils.data.Dataset` that trains at once: normalised float32 samples with their labels.

        Labels are class indices, or distributions `[C]` where the set has soft labels; `nn.CrossEntropyLoss` takes
        both.
        """
        data = self.data()
        shape = (-1, 1, 1) if self.are_images else (-1,)
        inputs = data.inputs.float() / 255 if self.are_images else data.inputs
        inputs = (inputs - torch.tensor(self.mean).reshape(shape)) / torch.tensor(self.std).reshape(shape)
        return TensorDataset(inputs, data.labels if self.soft is None else self.soft)

    def rounded(self) -> "SyntheticSet":
        """The set with its images as 8-bit values, a quarter of the size; feature vectors stay as they are."""
        if not self.are_images or self.inputs.dtype == torch.uint8:
            return self
        return replace(self, inputs=_to_bytes(self.inputs))

    def grid(self, path: str | Path, *, most: int = 20) -> Path:
        """Write the stored images as one picture, a row for each class; returns the path.

        Args:
            path: of the PNG.
            most: images of a class to show.

        Raises:
            ValueError: for feature vectors.
        """
        if not self.are_images:
            raise ValueError("a picture grid needs images, and this set has feature vectors")
        images = _to_bytes(self.inputs)
        height, width = images.shape[2:]
        scale = max(1, round(_TILE / max(height, width)))
        present = [index for index, count in enumerate(self.per_class) if count]
        columns = min(most, max(self.per_class))
        size = (columns * (width * scale + 2) + 2, len(present) * (height * scale + 2) + 2)
        sheet = Image.new("RGB", size, (255, 255, 255))
        for row, index in enumerate(present):
            for column, image in enumerate(images[self.labels == index][:columns]):
                tile = as_picture(image).resize((width * scale, height * scale), Image.Resampling.NEAREST)
                sheet.paste(tile.convert("RGB"), (2 + column * (width * scale + 2), 2 + row * (height * scale + 2)))
        return files.write_bytes(path, png_bytes(sheet))

    def save(self, path: str | Path) -> Path:
        """Write the set into the folder `path`, atomically: `synthetic.json` and a safetensors file."""
        tensors = {"inputs": self.inputs, "labels": self.labels}
        if self.soft is not None:
            tensors["soft"] = self.soft
        meta = {name: getattr(self, name) for name in _PLAIN_FIELDS}
        return files.save_artifact(path, "synthetic", {"format": 1, "count": len(self), **meta}, tensors)

    @classmethod
    def load(cls, path: str | Path) -> "SyntheticSet":
        """Read what `save` wrote.

        Raises:
            ValueError: when the folder holds no synthetic set, or a damaged one.
        """
        meta, tensors = files.load_artifact(path, "synthetic")
        if meta.pop("format", None) != 1:
            raise ValueError(f"{path} holds a set of a format that this version of lcmat does not know; update lcmat")
        meta.pop("count", None)
        for name in ("class_names", "mean", "std", "notes"):
            meta[name] = tuple(meta.get(name, ()))
        try:
            return cls(tensors["inputs"], tensors["labels"], soft=tensors.get("soft"), **meta)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} does not hold a whole synthetic set: {error}") from None

    @classmethod
    def join(cls, shards: Sequence["SyntheticSet"]) -> "SyntheticSet":
        """One set from shards of the classes, in the order of the classes.

        Raises:
            ValueError: when they come from different data or settings, or share a class.
        """
        if not shards:
            raise ValueError("expected at least one shard to join, got none")
        first = shards[0]
        for name in _PLAIN_FIELDS:
            if name in {"recipe", "notes", "versions"}:
                continue
            if any(getattr(shard, name) != getattr(first, name) for shard in shards):
                raise ValueError(f"these shards do not belong together: they differ in {name}")
        if any(_shared_recipe(shard) != _shared_recipe(first) for shard in shards):
            raise ValueError("these shards do not belong together: they differ in their recipes")
        if any(
            (shard.inputs.dtype, shard.soft is None) != (first.inputs.dtype, first.soft is None) for shard in shards
        ):
            raise ValueError("these shards do not belong together: they differ in the type of pixels or labels")
        labels = torch.cat([shard.labels for shard in shards])
        if sum(len(shard.labels.unique()) for shard in shards) != len(labels.unique()):
            raise ValueError("these shards share classes; join shards that have none in common")
        order = labels.argsort(stable=True)
        soft = None
        if first.soft is not None:
            parts = [shard.soft.unflatten(0, (len(shard), -1)) for shard in shards if shard.soft is not None]
            soft = torch.cat(parts)[order].flatten(0, 1)
        recipe = {**first.recipe, "classes": sorted(labels.unique().tolist())}
        notes = tuple(dict.fromkeys(note for shard in shards for note in shard.notes))
        inputs = torch.cat([shard.inputs for shard in shards])[order]
        return replace(first, inputs=inputs, labels=labels[order], soft=soft, recipe=recipe, notes=notes)


def _check_inputs(inputs: Tensor) -> None:
    images = inputs.ndim == 4 and inputs.dtype in {torch.uint8, torch.float32}
    vectors = inputs.ndim == 2 and inputs.dtype == torch.float32
    if not (images or vectors) or len(inputs) == 0:
        raise ValueError(
            "expected samples as images [m, channels, height, width], float32 or uint8, or as float32 vectors [m, d], "
            f"m ≥ 1, got {inputs.dtype} of shape {list(inputs.shape)}"
        )
    if inputs.dtype == torch.float32:
        check_finite("samples", inputs)
        if images and (inputs.min() < 0 or inputs.max() > 1):
            raise ValueError(
                f"expected images with values in [0, 1], got {float(inputs.min()):.3g} to {float(inputs.max()):.3g}"
            )


def _check_soft(soft: Tensor, rows: int, classes: int) -> None:
    if soft.dtype != torch.float32 or soft.shape != (rows, classes):
        raise ValueError(
            f"expected float32 soft labels of shape [{rows}, {classes}], got {soft.dtype} {list(soft.shape)}"
        )
    check_finite("soft labels", soft)
    if soft.min() < 0 or (soft.sum(1) - 1).abs().max() > 1e-4:
        raise ValueError("expected soft labels as distributions: values of at least 0 that sum to 1 in each row")


def _to_bytes(images: Tensor) -> Tensor:
    return images if images.dtype == torch.uint8 else (images.clamp(0, 1) * 255).round().to(torch.uint8)


def _shared_recipe(shard: SyntheticSet) -> dict[str, Any]:
    """What shards of one condensation have in common."""
    return {name: value for name, value in shard.recipe.items() if name not in {"classes", "seconds", "together"}}

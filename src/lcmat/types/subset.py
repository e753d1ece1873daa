"""What selection gives: the Picks of one method call, and the Subset that users keep."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lcmat import files
from lcmat.types.data import Data

# What the metadata of a saved subset are, so that a file changed by hand is refused by name.
_KINDS: dict[str, type] = {
    "method": str,
    "options": dict,
    "seed": int,
    "n": int,
    "per_class": list,
    "class_names": list,
    "fingerprint": str,
    "weighted": bool,
    "balance": str,
    "notes": list,
    "versions": dict,
}
_KINDS_OF_ITEMS: dict[str, type] = {"per_class": int, "class_names": str, "notes": str}


@dataclass(frozen=True, eq=False)
class Picks:
    """What a method chose among the samples it was given.

    Attributes:
        order: indices into the given samples, in pick order, int64, `[k]`.
        gains: what each pick added to the method's objective or its score, float64, `[k]`, or None.
        coverage: 1 − L(first t picks)/L(first pick) after each pick, `[k]`, where the method has such an L.
        weigh: k -> the weights of the first k picks, `[k]`; None where the method defines none.
        note: what a user should know of how the method decided.
    """

    order: Tensor
    gains: Tensor | None = None
    coverage: Tensor | None = None
    weigh: Callable[[int], Tensor] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.order.dtype != torch.int64 or self.order.ndim != 1:
            raise ValueError(f"expected picks as an int64 vector, got {self.order.dtype} {list(self.order.shape)}")
        if len(set(self.order.tolist())) != len(self.order):
            raise ValueError("a method picked the same sample twice")
        for name in ("gains", "coverage"):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.order):
                raise ValueError(f"expected {len(self.order)} {name}, one for each pick, got {len(value)}")


@dataclass(frozen=True, eq=False, repr=False)
class Subset(Sequence[int]):
    """The samples that are KEPT, with all that is needed to use and trust them.

    It is a sequence of plain indices: `dataset.select(subset)` and `torch.utils.data.Subset(dataset, subset)` work, for
    the data set that it was chosen from. Where `lcmat.load` held out a test part of your data set, the indices count
    the rows that are left, and `data.source_rows(subset)` gives those of your data set.

    Attributes:
        indices: rows of the data, int64, `[k]`; in pick order within a class.
        weights: ≥ 0, float64, `[k]`; they sum to n.
        gains: what each pick added, float64, `[k]`, or None.
        method: its registered name.
        options: its options as used, defaults included.
        seed: of the selection.
        n: rows of the data it was chosen from.
        per_class: picks of each class; empty for unlabelled data.
        class_names: in order; empty when unknown.
        fingerprint: of the data it was chosen from; empty when unknown.
        weighted: whether the method defines weights; if not they are all n/k.
        balance: how the budget was spread over the classes.
        notes: what the selection decided on its own.
        versions: of lcmat and what it ran on.
    """

    indices: Tensor
    weights: Tensor
    gains: Tensor | None
    method: str
    options: Mapping[str, Any]
    seed: int
    n: int
    per_class: tuple[int, ...] = ()
    class_names: tuple[str, ...] = ()
    fingerprint: str = ""
    weighted: bool = False
    balance: str = "proportional"
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        k = len(self.indices)
        if self.indices.dtype != torch.int64 or self.indices.ndim != 1 or not 0 < k <= self.n:
            raise ValueError(
                f"expected 1 to {self.n} int64 indices, got {self.indices.dtype} {list(self.indices.shape)}"
            )
        if self.indices.min() < 0 or self.indices.max() >= self.n:
            raise ValueError(f"expected indices from 0 to {self.n - 1}, got {int(self.indices.max())}")
        if len(set(self.indices.tolist())) != k:
            raise ValueError("a subset cannot hold the same sample twice")
        if len(self.weights) != k or not torch.isfinite(self.weights).all() or self.weights.min() < 0:
            raise ValueError(f"expected {k} finite weights ≥ 0, got {len(self.weights)}")
        if abs(float(self.weights.sum()) - self.n) > 1e-6 * self.n:
            raise ValueError(f"expected weights that sum to {self.n}, got {float(self.weights.sum())}")
        if self.gains is not None and len(self.gains) != k:
            raise ValueError(f"expected {k} gains, got {len(self.gains)}")

    def __repr__(self) -> str:
        return f"Subset: {len(self):,} of {self.n:,} samples ({self.fraction:.2%}), by {self.method}, seed {self.seed}"

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices.tolist())

    def __getitem__(self, position: Any) -> Any:
        return self.indices[position].tolist()

    @property
    def fraction(self) -> float:
        """The share of the data that is kept."""
        return len(self) / self.n

    def apply(self, data: Data) -> Data:
        """The kept rows of the data.

        Raises:
            ValueError: when this is not the data that the subset was chosen from.
        """
        if len(data) != self.n:
            raise ValueError(f"this subset was chosen from {self.n:,} samples, but this data has {len(data):,}")
        if self.class_names and data.class_names != self.class_names:
            raise ValueError(
                "this subset was chosen from data with other classes, or with its classes in another order"
            )
        if self.fingerprint and data.fingerprint != self.fingerprint:
            raise ValueError(
                "this subset was chosen from other data: the fingerprints differ "
                f"({self.fingerprint[:12]} and {data.fingerprint[:12]}); load the data that it was selected from"
            )
        return data.take(self.indices)

    def save(self, path: str | Path) -> Path:
        """Write the subset into the folder `path`, atomically: `subset.json` and a safetensors file."""
        tensors = {"indices": self.indices, "weights": self.weights}
        if self.gains is not None:
            tensors["gains"] = self.gains
        names = (
            "method",
            "options",
            "seed",
            "n",
            "per_class",
            "class_names",
            "fingerprint",
            "weighted",
            "balance",
            "notes",
        )
        meta = {name: getattr(self, name) for name in (*names, "versions")}
        return files.save_artifact(path, "subset", {"format": 1, "count": len(self), **meta}, tensors)

    @classmethod
    def load(cls, path: str | Path) -> "Subset":
        """Read what `save` wrote.

        Raises:
            ValueError: when the folder holds no subset, or a damaged one.
        """
        meta, tensors = files.load_artifact(path, "subset")
        if meta.pop("format", None) != 1:
            raise ValueError(
                f"{path} holds a subset of a format that this version of lcmat does not know; update lcmat"
            )
        meta.pop("count", None)
        for name, kind in _KINDS.items():
            if not isinstance(meta.get(name), kind):
                raise ValueError(f"{path} does not hold a whole subset: its {name} is {meta.get(name)!r}")
        for name, kind in _KINDS_OF_ITEMS.items():
            if wrong := [item for item in meta[name] if not isinstance(item, kind)]:
                raise ValueError(f"{path} does not hold a whole subset: {wrong[0]!r} stands in its {name}")
            meta[name] = tuple(meta[name])
        try:
            return cls(tensors["indices"], tensors["weights"], tensors.get("gains"), **meta)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} does not hold a whole subset: {error}") from None

"""Signals: what a trained model says of every sample, all that selection needs."""

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lcmat.types.checks import check_finite, look_like_probabilities

Array: TypeAlias = Tensor | np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Record:
    """What a training kept of every sample after every epoch.

    Attributes:
        correct: whether the sample was classified rightly, bool, `[epochs, n]`.
        probability: of the true class, float32, `[epochs, n]`.
    """

    correct: Tensor
    probability: Tensor

    def __post_init__(self) -> None:
        if self.correct.dtype != torch.bool or self.correct.ndim != 2 or self.correct.shape != self.probability.shape:
            raise ValueError(
                f"expected a record of shape [epochs, n], correct as bool, got {self.correct.dtype} of shape "
                f"{list(self.correct.shape)} and probabilities of shape {list(self.probability.shape)}"
            )
        check_finite("probability", self.probability)

    def take(self, indices: Tensor) -> "Record":
        """The record of some samples."""
        indices = indices.to(self.correct.device)  # a record stays on the processor
        return Record(self.correct[:, indices], self.probability[:, indices])


@dataclass(frozen=True, eq=False, repr=False)
class Signals:
    """What a model says of every sample: all that selection needs.

    Attributes:
        features: input of the last linear layer, `[n, d]`, or None.
        logits: output of the last layer before softmax, `[n, C]`, or None.
        labels: class indices, `[n]`; real numbers for regression; or None for unlabelled data.
        bias: whether the last layer has a bias, whose gradient then counts.
        record: per-epoch training record, for methods that need one.
        validation: Signals of held-out data from the same model, for methods that use them.
        fingerprint: of the data they were extracted from; empty when unknown.
        class_names: of the data; empty when unknown.
    """

    features: Tensor | None = None
    logits: Tensor | None = None
    labels: Tensor | None = None
    bias: bool = True
    record: Record | None = None
    validation: "Signals | None" = None
    fingerprint: str = ""
    class_names: tuple[str, ...] = ()

    if TYPE_CHECKING:  # the attributes are tensors, but NumPy arrays may be given

        def __init__(
            self,
            features: Array | None = None,
            logits: Array | None = None,
            labels: Array | None = None,
            bias: bool = True,
            record: Record | None = None,
            validation: "Signals | None" = None,
            fingerprint: str = "",
            class_names: tuple[str, ...] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("features", "logits"):
            object.__setattr__(self, name, _matrix(name, getattr(self, name)))
        object.__setattr__(self, "labels", _label_vector(self.labels))
        sizes = {
            name: len(value) for name in ("features", "logits", "labels") if (value := getattr(self, name)) is not None
        }
        if not sizes:
            raise ValueError("expected features, logits or labels, got none of them; Signals need at least one")
        if len(set(sizes.values())) > 1:
            found = ", ".join(f"{size:,} {name}" for name, size in sizes.items())
            raise ValueError(f"expected as many labels as rows, got {found}")
        if next(iter(sizes.values())) == 0:
            raise ValueError("expected at least one sample, got none: the data is empty")
        if self.record is not None and self.record.correct.shape[1] != self.n:
            raise ValueError(f"the record is of {self.record.correct.shape[1]:,} samples, the Signals of {self.n:,}")
        if self.logits is not None:
            self._check_logits(self.logits)

    def _check_logits(self, logits: Tensor) -> None:
        classes = logits.shape[1]
        if self.regression:
            if classes != 1:
                raise ValueError(f"expected one prediction for each real-valued label, got {classes} columns of logits")
            return
        if self.labels is not None and (self.labels.min() < 0 or self.labels.max() >= classes):
            raise ValueError(
                f"expected labels from 0 to {classes - 1}, one for each of the {classes} logits, "
                f"got {int(self.labels.min())} to {int(self.labels.max())}"
            )
        # Probabilities that were kept in half precision sum to one within a hundredth only.
        if look_like_probabilities(logits, within=1e-2):
            warnings.warn(
                "the logits look like probabilities: they are not negative and every row sums to one; "
                "give the values before softmax, or their logarithm",
                stacklevel=4,
            )

    def __repr__(self) -> str:
        parts = [
            f"{name} {list(value.shape)}"
            for name in ("features", "logits", "labels")
            if (value := getattr(self, name)) is not None
        ]
        extras = [name for name in ("record", "validation") if getattr(self, name) is not None]
        return f"Signals: {', '.join([*parts, *extras])}"

    @property
    def n(self) -> int:
        """The number of samples."""
        for part in (self.features, self.logits, self.labels):
            if part is not None:
                return len(part)
        raise AssertionError("Signals without any part cannot be made")

    @property
    def regression(self) -> bool:
        """Whether the labels are real numbers."""
        return self.labels is not None and self.labels.is_floating_point()

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        part = self.features if self.features is not None else self.logits
        return torch.device("cpu") if part is None else part.device

    @cached_property
    def probabilities(self) -> Tensor:
        """The probabilities softmax(z), float64, `[n, C]`.

        In single precision 1 − p of a confident sample would lose its digits.
        """
        if self.regression:
            raise ValueError("real-valued labels have no class probabilities; give class indices as labels")
        return torch.softmax(self.need("logits").double(), dim=1)

    @cached_property
    def residuals(self) -> Tensor:
        """The residuals r, float64, `[n, C]`: the gradient of the loss in the logits.

        r = softmax(z) − onehot(y) for classes under cross-entropy, and z − y for real-valued labels under ½(z − y)².
        """
        return self._residuals(self.need("logits"), None if self.regression else self.probabilities)

    def residuals_at(self, logits: Tensor) -> Tensor:
        """The residuals of the same samples under other logits, float64, `[n, C]`; these are not checked.

        Nothing in it waits for a device, so that a method may call it for every pick.
        """
        return self._residuals(logits, None if self.regression else torch.softmax(logits.double(), dim=1))

    def _residuals(self, logits: Tensor, probabilities: Tensor | None) -> Tensor:
        labels = self.need("labels")
        if probabilities is None:
            return logits.double() - labels[:, None]
        classes = torch.arange(logits.shape[1], device=logits.device)
        return probabilities - (labels[:, None] == classes).to(probabilities.dtype)

    def need(self, name: str) -> Tensor:
        """The tensor of this name.

        Raises:
            ValueError: when these Signals have none.
        """
        value: Tensor | None = getattr(self, name)
        if value is None:
            raise ValueError(f"this method needs {name}, which these Signals do not have; give Signals({name}=...)")
        return value

    def tempered(self, temperature: float) -> "Signals":
        """The same Signals with logits z/τ."""
        if not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(f"expected a temperature above 0, got {temperature}")
        return self if temperature == 1 else replace(self, logits=self.need("logits") / temperature)

    def take(self, indices: Tensor) -> "Signals":
        """The Signals of some samples; validation Signals stay whole."""
        return replace(
            self,
            features=None if self.features is None else self.features[indices],
            logits=None if self.logits is None else self.logits[indices],
            labels=None if self.labels is None else self.labels[indices],
            record=None if self.record is None else self.record.take(indices),
        )

    def to(self, device: torch.device | str) -> "Signals":
        """The same Signals on another device."""
        return replace(
            self,
            features=None if self.features is None else self.features.to(device),
            logits=None if self.logits is None else self.logits.to(device),
            labels=None if self.labels is None else self.labels.to(device),
            validation=None if self.validation is None else self.validation.to(device),
        )


def _matrix(name: str, value: Array | None) -> Tensor | None:
    if value is None:
        return None
    tensor = torch.as_tensor(value).detach()
    if tensor.ndim != 2 or tensor.shape[1] == 0:
        raise ValueError(f"expected {name} as a matrix with a row for each sample, got shape {list(tensor.shape)}")
    if tensor.dtype not in {torch.float32, torch.float64}:
        tensor = tensor.float()
    check_finite(name, tensor)
    return tensor


def _label_vector(value: Array | None) -> Tensor | None:
    if value is None:
        return None
    if not isinstance(value, Tensor) and np.asarray(value).dtype.kind in "OSU":
        raise ValueError(
            "expected labels as class indices or real numbers, got text or objects; "
            "class_names, labels = np.unique(labels, return_inverse=True) gives indices"
        )
    tensor = torch.as_tensor(value).detach()
    if tensor.ndim != 1:
        raise ValueError(f"expected labels as a vector of class indices, got shape {list(tensor.shape)}")
    if tensor.dtype == torch.bool:
        raise ValueError("expected labels as class indices or real numbers, got booleans; give 0 and 1")
    if tensor.is_floating_point():
        check_finite("labels", tensor)
        return tensor.double()
    return tensor.long()

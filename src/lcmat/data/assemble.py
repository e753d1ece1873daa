"""Raw parts -> checked data sets: labels become indices, a missing test part is made, statistics are shared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lcmat import seeding
from lcmat.data.pixels import mixed_sizes
from lcmat.data.raw import Raw, RawPart
from lcmat.types import Data, FeatureData, ImageData


@dataclass(frozen=True)
class Facts:
    """What takes a pass over finished data to know, and so is kept beside it."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    train_fingerprint: str = ""
    test_fingerprint: str = ""


def index_labels(raw: Raw) -> Raw:
    """The same data with class indices as labels, class names, one number of channels, and `flip` decided.

    Labels become indices in sorted order, or in the order of the source's own class names.

    Raises:
        ValueError: for missing or unusable labels, a test label that training lacks, or parts that differ in shape.
    """
    train, test = _match_inputs(raw.train, raw.test)
    labels = _clean(train, "training")
    known: NDArray[Any]
    if not raw.class_names:
        known = np.unique(labels)
    elif labels.dtype.kind == "U":
        known = np.array(raw.class_names)
    else:
        known = np.arange(len(raw.class_names))
    class_names = raw.class_names or tuple(str(value) for value in known.tolist())
    train = replace(train, labels=_indices(labels, known, train, "training"))
    if test is not None:
        test = replace(test, labels=_indices(_clean(test, "test"), known, test, "test"))

    notes = list(raw.notes)
    counts = np.bincount(train.labels, minlength=len(class_names))
    if empty := [name for name, count in zip(class_names, counts, strict=True) if count == 0]:
        notes.append(f"classes without a training sample: {_some(empty)}")
    flip = raw.flip
    # A number that stands for a class says nothing, unless the picture is grey as those of written digits are.
    telling = bool(raw.class_names) or labels.dtype.kind == "U" or train.inputs.shape[1] == 1
    if flip is None and train.is_images and telling and all(len(name) == 1 for name in class_names):
        flip = False
        notes.append("classes named by single characters were taken for digits or letters: no mirroring (see flip=)")
    return Raw(train, test, class_names, flip, tuple(notes), raw.feature_names)


def split(raw: Raw, *, test_fraction: float, seed: int) -> tuple[RawPart, RawPart, tuple[str, ...]]:
    """Training part, test part and notes: the source's own parts, else stratified ones drawn from the seed.

    Every class gives `round(test_fraction · its size)` samples, at least one and never all; a class of one sample
    gives none.

    Raises:
        ValueError: when no class has two samples.
    """
    if raw.test is not None:
        return raw.train, raw.test, ()
    labels = torch.from_numpy(raw.train.labels)
    draw = seeding.generator(seed, "test split")
    held_out = torch.zeros(len(labels), dtype=torch.bool)
    singles = 0
    for index in range(len(raw.class_names)):
        members = (labels == index).nonzero().flatten()
        n = len(members)
        singles += n == 1
        if n > 1:
            count = min(max(1, round(test_fraction * n)), n - 1)
            held_out[members[torch.randperm(n, generator=draw)[:count]]] = True
    total = int(held_out.sum())
    if total == 0:
        raise ValueError(
            "expected a test part, or a class of at least two samples to take one from; got neither: add samples"
        )
    notes = [f"no test part was found: {total:,} of {len(labels):,} samples were held out, stratified, seed {seed}"]
    if singles:
        notes.append(f"classes of one sample, kept in training: {singles}")
    return _rows(raw.train, ~held_out), _rows(raw.train, held_out), tuple(notes)


def build(raw: Raw, train: RawPart, test: RawPart, *, flip: bool | None, facts: Facts) -> tuple[Data, Data]:
    """Training and test data; the test data carries the training data's mean and standard deviation.

    Args:
        raw: where class names and the source's own `flip` stand.
        train: from `split`.
        test: from `split`.
        flip: overrides what the source says; for images only.
        facts: what is known already.
    """
    if flip is not None and not train.is_images:
        raise ValueError("flip= is for images, but this source has feature vectors; leave it out")
    mirrored = flip if flip is not None else raw.flip is not False
    fitted = _data(train, raw, mirrored, replace(facts, test_fingerprint=""))
    held_out = Facts(fitted.mean, fitted.std, facts.test_fingerprint)
    return fitted, _data(test, raw, mirrored, held_out)


def _data(part: RawPart, raw: Raw, flip: bool, facts: Facts) -> Data:
    inputs, labels = torch.from_numpy(part.inputs), torch.from_numpy(part.labels)
    known = facts.train_fingerprint
    if part.is_images:
        return ImageData(inputs, labels, raw.class_names, part.names, facts.mean, facts.std, flip, known)
    return FeatureData(
        inputs, labels, raw.class_names, part.names, facts.mean, facts.std, known, feature_names=raw.feature_names
    )


def _rows(part: RawPart, chosen: torch.Tensor) -> RawPart:
    rows = chosen.nonzero().flatten().numpy()
    return RawPart(part.inputs[rows], part.labels[rows], tuple(part.names[row] for row in rows.tolist()), rows)


def _match_inputs(train: RawPart, test: RawPart | None) -> tuple[RawPart, RawPart | None]:
    """Both parts with as many channels as the more colourful one."""
    for part, where in ((train, "training"), (test, "test")):
        if part is not None and len(part.inputs) == 0:
            raise ValueError(f"expected at least one {where} sample, got none: the data is empty")
        if part is not None and not part.is_images:
            _check_features(part, where)
    if test is None or train.inputs.shape[1:] == test.inputs.shape[1:]:
        return train, test
    ours, theirs = train.inputs.shape, test.inputs.shape
    if train.is_images != test.is_images:
        raise ValueError("expected training and test data of one kind, got images in one and features in the other")
    if not train.is_images:
        raise ValueError(f"expected as many features in training and test data, got {ours[1]} and {theirs[1]}")
    if ours[2:] != theirs[2:]:
        raise mixed_sizes(train.names[0], ours, test.names[0], theirs)
    channels = max(ours[1], theirs[1])
    return _with_channels(train, channels), _with_channels(test, channels)


def _check_features(part: RawPart, where: str) -> None:
    """Refuse NaN and infinities while the rows still have the numbers and names of the source."""
    bad = np.flatnonzero(~np.isfinite(part.inputs).all(1))
    if len(bad):
        raise ValueError(
            f"expected finite features, got NaN or infinity in {len(bad):,} of {len(part.inputs):,} {where} rows, "
            f"the first {part.names[bad[0]]}; fill or drop them"
        )


def _with_channels(part: RawPart, channels: int) -> RawPart:
    if part.inputs.shape[1] == channels:
        return part
    return replace(part, inputs=np.repeat(part.inputs, channels, axis=1))


def _clean(part: RawPart, where: str) -> NDArray[Any]:
    """Labels as int64 or text."""
    labels = part.labels
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != len(part.inputs):
        raise ValueError(
            f"expected one label for each of the {len(part.inputs):,} {where} samples, "
            f"got labels of shape {list(labels.shape)}"
        )
    if labels.dtype.kind in "OST":
        labels = _plain(labels, part, where)
    if labels.dtype.kind == "f":
        bad = np.flatnonzero(labels != np.rint(labels))  # NaN differs from itself; infinity fails the cast below
        if len(bad) or not np.isfinite(labels).all():
            row = int(bad[0]) if len(bad) else int(np.flatnonzero(~np.isfinite(labels))[0])
            raise ValueError(
                f"expected whole numbers or text as labels, got {labels[row]} for {part.names[row]}; "
                "name another label column, or turn the values into classes"
            )
    if labels.dtype.kind == "U":
        return labels
    if labels.dtype.kind not in "iufb":
        raise ValueError(f"expected whole numbers or text as labels, got {labels.dtype}")
    return labels.astype(np.int64)


def _plain(labels: NDArray[Any], part: RawPart, where: str) -> NDArray[Any]:
    """Labels of Python objects as an array of one type."""
    values = [label.decode() if isinstance(label, bytes) else label for label in labels.tolist()]
    for row, value in enumerate(values):
        if value is None or value == "":
            raise ValueError(f"expected a label for every sample, but {part.names[row]} has none; fill or drop it")
    if all(isinstance(value, str) for value in values):
        return np.array(values)
    if all(isinstance(value, int | float | np.number) for value in values):
        return np.array([float(value) if isinstance(value, float) else int(value) for value in values])
    kinds = sorted({type(value).__name__ for value in values})
    raise ValueError(f"expected {where} labels that are all text or all whole numbers, got {', '.join(kinds)}")


def _indices(labels: NDArray[Any], known: NDArray[Any], part: RawPart, where: str) -> NDArray[np.int64]:
    """The position of each label among the known ones."""
    if labels.dtype.kind != known.dtype.kind:
        raise ValueError("expected training and test labels of one kind, got text in one and numbers in the other")
    order = np.argsort(known, kind="stable")
    found = np.minimum(np.searchsorted(known, labels, sorter=order), len(known) - 1)
    indices = order[found]
    unknown = np.flatnonzero(known[indices] != labels)
    if len(unknown):
        row = int(unknown[0])
        raise ValueError(
            f"unknown label {labels[row].item()!r} of {part.names[row]} ({where}); known: {_some(known.tolist())}"
        )
    return indices.astype(np.int64)


def _some(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values[:10]))
    return shown + (f", … ({len(values):,} in all)" if len(values) > 10 else "")

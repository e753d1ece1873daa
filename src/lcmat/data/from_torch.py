"""Any `torch.utils.data.Dataset`, or a (train, test) pair of them, whose items are (image or features, label)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import Dataset, IterableDataset

from lcmat.data.columns import LABEL_NAMES
from lcmat.data.pixels import Bytes, ImageStack, to_images
from lcmat.data.raw import Raw, RawPart, as_features

# A random crop or flip shows itself in one of so many items with near certainty.
_PROBES = 8


def detect(source: object) -> bool:
    """Whether the source is a data set of torch, or a pair of them."""
    if isinstance(source, tuple | list):
        return len(source) == 2 and all(isinstance(part, Dataset) for part in source)
    return isinstance(source, Dataset)


def read(source: Any, *, resize: int | None = None) -> Raw:
    """Read every item: pictures of Pillow, tensors `[c, h, w]`, arrays `[h, w, c]`, or vectors, with their labels.

    Raises:
        ValueError: for items of another kind, or that come out differently the second time.
    """
    train_data, test_data = source if isinstance(source, tuple | list) else (source, None)
    train, notes = _read_part(train_data, "train", resize)
    test = _read_part(test_data, "test", resize)[0] if test_data is not None else None
    return Raw(train, test, _class_names(train_data, train.labels), notes=notes)


def _read_part(data: Any, where: str, resize: int | None) -> tuple[RawPart, tuple[str, ...]]:
    # A stream has no length and cannot be asked twice.
    items = list(data) if isinstance(data, IterableDataset) else _Items(data)
    if len(items) == 0:
        raise ValueError(f"expected at least one sample, got none: the {where} data is empty")
    if isinstance(items, _Items):
        _check_repeatable(items, where)
    names = [f"{where}:row {row}" for row in range(len(items))]
    stack = ImageStack(len(items), resize=resize)
    vectors, labels = [], []
    for item, name in zip(items, names, strict=True):
        given, label = _pair(item, name)
        content = _content(given, name)
        labels.append(_label(label, name))
        if isinstance(content, Image.Image):
            stack.add(content, name)
        elif content.ndim == 1:
            vectors.append(content)
        else:
            stack.add_array(_pixels(content, name, is_tensor=isinstance(given, torch.Tensor)), name)
    raw_labels = np.array(labels, dtype=object)
    if not vectors:
        return RawPart(stack.finish(), raw_labels, tuple(names)), stack.notes()
    if stack.names or len({len(vector) for vector in vectors}) != 1:
        raise ValueError(f"expected items of one kind and length in the {where} data, got vectors and images, or "
                         "vectors of several lengths")  # fmt: skip
    if resize is not None:
        raise ValueError("resize= is for images, but this data set holds vectors; leave it out")
    return RawPart(as_features(np.stack(vectors), f"the {where} data"), raw_labels, tuple(names)), ()


class _Items:
    """The items of a data set that is asked by number; those of torch need not stop when iterated over."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, row: int) -> Any:
        return self._data[row]

    def __iter__(self) -> Iterator[Any]:
        return (self._data[row] for row in range(len(self)))


def _pair(item: Any, name: str) -> tuple[Any, Any]:
    """The image or features of an item, and its label; of a dictionary too, where the names leave no doubt."""
    if isinstance(item, dict):
        labels = [key for key in item if str(key).lower() in LABEL_NAMES]
        inputs = [key for key in item if key not in labels]
        if len(labels) == len(inputs) == 1:
            return item[inputs[0]], item[labels[0]]
        raise ValueError(
            f"expected {name} as a pair (image or features, label), got a dictionary of {', '.join(map(str, item))}; "
            "let the data set give pairs, or dictionaries of one input and its label"
        )
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise ValueError(f"expected {name} as a pair (image or features, label), got {_described(item)}")
    return item[0], item[1]


def _content(content: Any, name: str) -> NDArray[Any] | Image.Image:
    if isinstance(content, Image.Image):
        return content
    if isinstance(content, torch.Tensor):  # NumPy has no bfloat16
        content = (content.float() if content.dtype == torch.bfloat16 else content).detach().cpu().numpy()
    if not isinstance(content, np.ndarray) or content.ndim not in {1, 2, 3}:
        raise ValueError(
            f"expected {name} as a picture of Pillow, a tensor [c, h, w], an array [h, w, c] or a vector, "
            f"got {_described(content)}"
        )
    return content


def _pixels(content: NDArray[Any], name: str, *, is_tensor: bool) -> Bytes:
    image: Bytes = to_images(content[None], layout="channels first" if is_tensor else "any", where=name)[0]
    return image


def _label(label: Any, name: str) -> int | float | str:
    if isinstance(label, torch.Tensor | np.ndarray | np.generic) and np.ndim(label) == 0:
        label = label.item()
    if not isinstance(label, int | float | str):
        raise ValueError(f"expected the label of {name} as a number or text, got {_described(label)}")
    return label


def _check_repeatable(items: _Items, where: str) -> None:
    for row in range(min(_PROBES, len(items))):
        name = f"{where}:row {row}"
        first, second = (_content(_pair(items[row], name)[0], name) for _ in range(2))
        if np.asarray(first).tobytes() != np.asarray(second).tobytes():  # bytes, so that NaN equals itself
            raise ValueError(
                f"row {row} of the {where} data comes out differently each time; take random transforms out: "
                "training makes its own"
            )


def _class_names(data: Any, labels: NDArray[Any]) -> tuple[str, ...]:
    """The attribute `classes` that the data sets of torchvision have, where it fits the labels."""
    while not hasattr(data, "classes") and hasattr(data, "dataset"):  # a Subset of one
        data = data.dataset
    names = getattr(data, "classes", ())
    values = set(labels.tolist())
    fits = isinstance(names, tuple | list) and all(
        isinstance(value, int) and 0 <= value < len(names) for value in values
    )
    return tuple(map(str, names)) if fits else ()


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {list(shape)}" if shape is not None else "")

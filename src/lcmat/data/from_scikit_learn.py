"""Embedded data sets, which come with scikit-learn: pictures of digits, the default, and two tables."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from lcmat.data.raw import Raw, RawPart

# Name here -> the function of `sklearn.datasets` that reads it.
_LOADERS = {"digits": "load_digits", "wine": "load_wine", "breast-cancer": "load_breast_cancer"}


def named(name: str) -> Callable[[object], bool]:
    """What tells whether a source is this name."""
    return lambda source: isinstance(source, str) and source == name


def read_digits(source: str) -> Raw:
    """Read 1,797 pictures of 8 × 8 pixels, their 17 levels of grey spread over 0 to 255.

    Raises:
        ValueError: when scikit-learn is not installed.
    """
    digits = _load(source)
    images = np.rint(digits.images * (255 / 16)).astype(np.uint8)[:, None]
    return Raw(RawPart(images, digits.target.astype(np.int64), _rows(source, len(images))), flip=False)


def read_table(source: str) -> Raw:
    """Read a table of features.

    Raises:
        ValueError: when scikit-learn is not installed.
    """
    table = _load(source)
    part = RawPart(table.data.astype(np.float32), table.target.astype(np.int64), _rows(source, len(table.data)))
    return Raw(
        part, class_names=tuple(map(str, table.target_names)), feature_names=tuple(map(str, table.feature_names))
    )


def _load(source: str) -> Any:
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ImportError:
        raise ValueError(
            f"{source} comes with scikit-learn, which is not installed; run: pip install lcmat[demo]"
        ) from None
    return getattr(datasets, _LOADERS[source])()


def _rows(source: str, n: int) -> tuple[str, ...]:
    return tuple(f"{source}:row {row}" for row in range(n))

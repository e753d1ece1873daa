"""The embedded default: 1,797 handwritten digits of 8 × 8 pixels, which come with scikit-learn."""

import numpy as np

from lcmat.data.raw import Raw, RawPart


def detect(source: object) -> bool:
    """Whether the source is the word `digits`."""
    return isinstance(source, str) and source == "digits"


def read(source: str) -> Raw:
    """Read them, their 17 levels of grey spread over 0 to 255.

    Raises:
        ValueError: when scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ValueError(
            "the digits come with scikit-learn, which is not installed; run: pip install lcmat[demo]"
        ) from None
    digits = load_digits()
    images = np.rint(digits.images * (255 / 16)).astype(np.uint8)[:, None]
    names = tuple(f"{source}:row {row}" for row in range(len(images)))
    return Raw(RawPart(images, digits.target.astype(np.int64), names), flip=False)

"""Digits in a size that trains within a blink, and random subsets of them."""

from collections.abc import Sequence
from functools import cache

import torch
from sklearn.datasets import load_digits

from lcmat.types import ImageData, Splits, Subset


@cache
def digits(n: int = 200) -> Splits:
    """The first images of scikit-learn's digits: n to train on, 60 to test on."""
    x, y = load_digits(return_X_y=True)
    images = torch.tensor(x.reshape(-1, 1, 8, 8) * 15.9).to(torch.uint8)
    labels = torch.tensor(y, dtype=torch.int64)
    names = tuple(map(str, range(10)))
    train = ImageData(images[:n], labels[:n], names, flip=False)
    test = ImageData(images[n : n + 60], labels[n : n + 60], names, mean=train.mean, std=train.std, flip=False)
    return Splits(train, test, "small digits")


def pick(rows: Sequence[int], *, seed: int = 0, method: str = "craig", data: Splits | None = None) -> Subset:
    """A subset of these rows."""
    train = (data or digits()).train
    k = len(rows)
    return Subset(
        indices=torch.tensor(rows),
        weights=torch.full((k,), len(train) / k, dtype=torch.float64),
        gains=None,
        method=method,
        options={"rho": 0.1},
        seed=seed,
        n=len(train),
        class_names=train.class_names,
        fingerprint=train.fingerprint,
    )


def picks(size: int, seeds: Sequence[int], *, method: str = "craig", data: Splits | None = None) -> list[Subset]:
    """A subset for each seed: `size` neighbouring rows, other ones for each."""
    return [pick(range(20 * seed, 20 * seed + size), seed=seed, method=method, data=data) for seed in seeds]

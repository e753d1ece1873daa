"""Small condensations for tests."""

from typing import Any

import torch

from lcmat.condensation import CONDENSERS, condense
from lcmat.types import ImageData, SyntheticSet
from samples import digits_like

METHODS = [entry.name for entry in CONDENSERS]
NET = "convnet:width=4,depth=2"
# Small enough for a test, large enough for two networks and more than one block.
QUICK: dict[str, dict[str, Any]] = {
    "random": {},
    "dc": {"real_batch": 8, "period": 4, "network_steps": 2},
    "dsa": {"real_batch": 8, "period": 4, "network_steps": 2},
    "dm": {"real_batch": 8},
    "kip": {"real_batch": 5, "depth": 2},
    "lcmat-c": {"real_batch": 8, "period": 10, "network_steps": 2},
}
SEPARABLE = ["random", "dm", "lcmat-c"]


def images(**settings: Any) -> ImageData:
    return digits_like(60, classes=3, **settings)


def quick(method: str, data: Any = None, *, steps: int = 30, **settings: Any) -> SyntheticSet:
    net = {} if data is not None and data.inputs.ndim == 2 else {"net": NET}
    given = {**net, "per_class": 2, **QUICK[method], **settings}
    return condense(images() if data is None else data, method, steps=steps, device="cpu", **given)


def same(first: SyntheticSet, second: SyntheticSet) -> bool:
    return torch.equal(first.inputs, second.inputs) and torch.equal(first.labels, second.labels)

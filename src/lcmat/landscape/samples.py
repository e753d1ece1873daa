"""Which samples the losses are means of: those of T and of the sets compared with it, and the share of each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from lcmat import seeding
from lcmat.selection import select
from lcmat.types import Data, ImageData, Signals, Subset, SyntheticSet

Reduced: TypeAlias = Subset | SyntheticSet | Data


@dataclass(frozen=True, eq=False)
class Pool:
    """Every sample of T and of the reduced sets, once, with its share in each of them.

    L(T) − L(S) is then one sum over the pool, Σ_i (t_i − s_i) ℓ_i: a sample of both is passed through the network once,
    and with S = T every coefficient is exactly zero.

    Attributes:
        data: the samples, with the mean and standard deviation of T.
        targets: class indices, int64 `[n]`; or distributions over the classes, float64 `[n, C]`.
        full: t, the share of each sample in T, float64 `[n]`, sums to one.
        reduced: name -> s, likewise for each reduced set.
    """

    data: Data
    targets: Tensor
    full: Tensor
    reduced: Mapping[str, Tensor]

    def coefficients(self, name: str) -> Tensor:
        """The c = t − s with which L(T) − L(S) = Σ_i c_i ℓ_i, `[n]`."""
        return self.full - self.reduced[name]


def make_pool(
    data: Data, sets: Mapping[str, Reduced], *, samples: int | None = None, weighted: bool = False, seed: int = 0
) -> Pool:
    """The pool of T and some reduced sets.

    Args:
        data: T.
        sets: name -> Subset of T, SyntheticSet made from it, or other data of the same kind.
        samples: draw this many rows of T, in proportion to the classes, and let their mean stand for T; all if None.
        weighted: use the weights of subsets whose method defines some; otherwise all samples of S count the same.
        seed: of the draw.

    Raises:
        ValueError: when a set does not belong to the data.
    """
    parts = {name: _rows(data, item, weighted) for name, item in sets.items()}
    drawn = _draw(data, samples, seed)
    inside = [rows for rows, _, _ in parts.values() if rows is not None]
    kept = torch.unique(torch.cat([drawn, *inside]))
    place = torch.full((len(data),), -1)
    place[kept] = torch.arange(len(kept))
    outside = [apart for _, _, apart in parts.values() if apart is not None]
    n = len(kept) + sum(len(item) for item, _ in outside)
    reduced, start = {}, len(kept)
    for name, (rows, shares, apart) in parts.items():
        if rows is None and apart is not None:
            where = torch.arange(start, start + len(apart[0]))
            start += len(where)
        else:
            where = place[rows]
        reduced[name] = torch.zeros(n, dtype=torch.float64).index_put((where,), shares)
    full = torch.zeros(n, dtype=torch.float64)
    full[place[drawn]] = 1 / len(drawn)
    whole = data if len(kept) == len(data) else data.take(kept)
    return Pool(_joined(whole, [item for item, _ in outside]), _targets(whole, outside), full, reduced)


def samples_of_full(pool: Pool) -> int:
    """How many samples stand for T."""
    return int((pool.full > 0).sum())


def _draw(data: Data, samples: int | None, seed: int) -> Tensor:
    if samples is not None and samples < 1:
        raise ValueError(f"expected at least 1 sample of the data, got {samples}")
    if samples is None or samples >= len(data):
        return torch.arange(len(data))
    # Not the seed itself: under it `uniform` chooses, and a random S would lie inside of the draw.
    apart = seeding.derive(seed, "samples of T")
    return select(Signals(labels=data.labels), "uniform", count=samples, seed=apart).indices


def _rows(data: Data, item: Reduced, weighted: bool) -> tuple[Tensor | None, Tensor, tuple[Data, Tensor | None] | None]:
    """Rows of T, or samples of their own with soft labels; and the share of each."""
    if isinstance(item, Subset):
        item.apply(data)
        weights = item.weights if weighted and item.weighted else torch.ones(len(item), dtype=torch.float64)
        return item.indices, weights / weights.sum(), None
    own = item.apply(data) if isinstance(item, SyntheticSet) else item
    soft = item.soft if isinstance(item, SyntheticSet) else None
    if type(own) is not type(data) or own.inputs.shape[1:] != data.inputs.shape[1:]:
        raise ValueError(
            f"expected a reduced set of samples of shape {list(data.inputs.shape[1:])}, as the data has, "
            f"got {list(own.inputs.shape[1:])}"
        )
    if own.class_names != data.class_names:
        raise ValueError("the reduced set has other classes than the data, or has them in another order")
    return None, torch.full((len(own),), 1 / len(own), dtype=torch.float64), (own, soft)


def _joined(data: Data, others: list[Data]) -> Data:
    if not others:
        return data
    inputs = torch.cat([data.inputs, *(other.inputs for other in others)])
    labels = torch.cat([data.labels, *(other.labels for other in others)])
    if isinstance(data, ImageData):
        return replace(data, images=inputs, labels=labels, names=(), known_fingerprint="")
    return replace(data, features=inputs, labels=labels, names=(), known_fingerprint="")


def _targets(data: Data, others: list[tuple[Data, Tensor | None]]) -> Tensor:
    if all(soft is None for _, soft in others):
        return torch.cat([data.labels, *(other.labels for other, _ in others)])
    classes = len(data.class_names)
    rows = [(data.labels, None), *((other.labels, soft) for other, soft in others)]
    return torch.cat([_one_hot(labels, classes) if soft is None else soft.double() for labels, soft in rows])


def _one_hot(labels: Tensor, classes: int) -> Tensor:
    return torch.nn.functional.one_hot(labels, classes).double()

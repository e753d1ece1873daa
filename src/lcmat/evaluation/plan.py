"""Which trainings an evaluation needs: subsets paired with seeds, and a random set beside every method."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from lcmat.report.wording import listed, percent
from lcmat.selection import random_like
from lcmat.types import Reduced, Splits, SyntheticSet

UNIFORM = "uniform"
FULL = "full"

# What a random set must share with the sets it is compared with: the size, and the class counts at each seed.
_Kind: TypeAlias = tuple[int, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True, eq=False)
class Entry:
    """What is trained on under one name at one size.

    Attributes:
        name: of the method, or of the baseline.
        size: how many samples are kept.
        fraction: their share of the data.
        by_seed: the subset or synthetic set for each training seed; None stands for all the data.
        shared: whether one subset serves several seeds.
        weighted: whether its weights are used in the loss.
        baseline: name of the entry of the same size that it is compared with, or empty.
        given: whether the user gave it; baselines and 'full' were added.
        targets: of every sample of the data, trained on instead of the labels; None for labels. A synthetic set has
            its own.
    """

    name: str
    size: int
    fraction: float
    by_seed: Mapping[int, Reduced | None]
    shared: bool = False
    weighted: bool = False
    baseline: str = ""
    given: bool = False
    targets: Tensor | None = None

    def targets_of(self, seed: int) -> Tensor | None:
        """Of the samples that this seed trains on, in their order; None where it trains on labels."""
        chosen = self.by_seed[seed]
        if isinstance(chosen, SyntheticSet):
            return chosen.soft
        return self.targets if self.targets is None or chosen is None else self.targets[chosen.indices]

    @property
    def label(self) -> str:
        """The name with the share that is kept, for messages."""
        return f"{self.name}, {percent(self.fraction)} ({self.size:,} samples)"

    @property
    def first(self) -> Reduced | None:
        """The subset of the first seed."""
        return next(iter(self.by_seed.values()))


def make_plan(
    data: Splits,
    subsets: Mapping[str, Reduced | Sequence[Reduced]],
    *,
    seeds: Sequence[int],
    baseline: bool,
    full: bool,
    weighted: Collection[str],
    partial: bool = False,
) -> tuple[Entry, ...]:
    """Check the subsets against the data, pair them with the seeds and set random sets beside them.

    Where `partial` is true, each subset stands for its own seed alone, and seeds may be missing.

    Raises:
        ValueError: for no subsets, a subset of other data, a seed without its subset, or an unknown name in `weighted`.
        TypeError: for a value that is no subset.
    """
    if not subsets:
        raise ValueError("expected at least one subset to evaluate, got none; give {name: subset}")
    if full and FULL in subsets:
        raise ValueError(f"the name {FULL!r} stands for training on everything; name that subset otherwise")
    for name in weighted:
        if name not in subsets:
            raise ValueError(f"weighted= names {name!r}, but the subsets are {listed([repr(key) for key in subsets])}")
    entries = [
        entry
        for name, given in subsets.items()
        for entry in _pair(name, _as_list(name, given), data, seeds, weighted, partial)
    ]
    entries = _with_baselines(entries, data, seeds, add=baseline)
    if full:
        entries.append(Entry(FULL, len(data.train), 1.0, dict.fromkeys(seeds)))
    return tuple(sorted(entries, key=lambda entry: entry.size))


def class_counts(subset: Reduced | None, data: Splits) -> tuple[int, ...]:
    """How many samples of each class are kept; of all the data for None."""
    if isinstance(subset, SyntheticSet):
        return subset.per_class
    labels = data.train.labels if subset is None else data.train.labels[subset.indices]
    return tuple(torch.bincount(labels, minlength=len(data.train.class_names)).tolist())


def first_seeds(entries: Sequence[Entry]) -> str:
    """Which seeds the first subsets have, in words: one for all, except in a study that is not finished."""
    found = list(dict.fromkeys(str(next(iter(entry.by_seed))) for entry in entries))
    return f"seed {found[0]}" if len(found) == 1 else f"seeds {listed(found)}, the first that each has"


def _as_list(name: str, given: Reduced | Sequence[Reduced]) -> list[Reduced]:
    found = [given] if isinstance(given, Reduced) else list(given)
    for subset in found:
        if not isinstance(subset, Reduced):
            raise TypeError(
                f"expected a Subset or a list of them under {name!r} (or a SyntheticSet), got {type(subset).__name__}"
            )
    if not found:
        raise ValueError(f"expected at least one subset under {name!r}, got an empty list")
    return found


def _pair(
    name: str, given: Sequence[Reduced], data: Splits, seeds: Sequence[int], weighted: Collection[str], partial: bool
) -> Iterator[Entry]:
    """One entry for each size: training seed i gets the subset of seed i, or the only one."""
    by_size: dict[int, list[Reduced]] = {}
    for subset in given:
        if name in weighted and isinstance(subset, SyntheticSet):
            raise ValueError(f"weighted= names {name!r}, but a synthetic set has no weights")
        try:
            subset.apply(data.train)
        except ValueError as error:
            raise ValueError(f"{name!r}: {error}") from None
        by_size.setdefault(len(subset), []).append(subset)
    for size, alike in by_size.items():
        shared = len(alike) == 1 and not partial
        there = [seed for seed in seeds if not partial or any(subset.seed == seed for subset in alike)]
        by_seed = dict.fromkeys(seeds, alike[0]) if shared else _by_seed(name, size, alike, there)
        yield Entry(
            name,
            size,
            alike[0].fraction,
            by_seed,
            shared=shared and len(seeds) > 1,
            weighted=name in weighted,
            given=True,
        )


def _by_seed(name: str, size: int, alike: Iterable[Reduced], seeds: Sequence[int]) -> dict[int, Reduced]:
    found: dict[int, Reduced] = {}
    for subset in alike:
        if subset.seed in found:
            raise ValueError(
                f"{name!r} has two subsets of {size} samples with seed {subset.seed}; "
                "give each its own seed, or its own name"
            )
        found[subset.seed] = subset
    missing = [seed for seed in seeds if seed not in found]
    if missing:
        raise ValueError(
            f"{name!r} has subsets of {size} samples for the seeds {sorted(found)}, but none for {missing}; "
            "select one for each seed, or name only those seeds"
        )
    return {seed: found[seed] for seed in seeds}


def _with_baselines(entries: list[Entry], data: Splits, seeds: Sequence[int], *, add: bool) -> list[Entry]:
    """The entries, each pointing at its baseline, and the baselines that had to be added.

    A size for which the user gives a uniform subset needs no other. Else a random set is drawn for each seed, of the
    same size and class counts; methods of one size that differ in these get a baseline each, named after them.
    """
    own = {entry.size for entry in entries if entry.name == UNIFORM}
    kinds = {entry: _kind(entry, data) for entry in entries if entry.size not in own} if add else {}
    names = {kind: _baseline_name(kind, kinds) for kind in kinds.values()}
    baselines = {entry: names[kind] for entry, kind in kinds.items()}
    baselines |= {entry: UNIFORM for entry in entries if entry.size in own and entry.name != UNIFORM}
    compared = [replace(entry, baseline=baselines.get(entry, "")) for entry in entries]
    labels = data.train.labels
    drawn = []
    for (size, counts), name in names.items():
        by_seed = {
            seed: random_like(labels, per_class, len(labels), seed)
            for seed, per_class in zip(seeds, counts, strict=True)
        }
        drawn.append(Entry(name, size, size / len(data.train), by_seed))
    return compared + drawn


def _kind(entry: Entry, data: Splits) -> _Kind:
    return entry.size, tuple(class_counts(subset, data) for subset in entry.by_seed.values())


def _baseline_name(kind: _Kind, kinds: Mapping[Entry, _Kind]) -> str:
    if len({other for other in kinds.values() if other[0] == kind[0]}) == 1:
        return UNIFORM
    return f"{UNIFORM} (classes as {listed([entry.name for entry, other in kinds.items() if other == kind])})"

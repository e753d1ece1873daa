"""A data set as a stream of steps, each of which brings classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lcmat import seeding
from lcmat.types import Data, Splits

ORDERS = ("shuffled", "given")


@dataclass(frozen=True, eq=False)
class Step:
    """What arrives at once.

    Attributes:
        number: from 0.
        classes: that arrive, new ones or ones that were there before.
        rows: of the training data, `[m]`, ascending.
    """

    number: int
    classes: tuple[int, ...]
    rows: Tensor


@dataclass(frozen=True, eq=False)
class Stream:
    """The steps of one data set.

    Attributes:
        data: the whole of it; no step sees more of its training part than its own rows.
        steps: in order.
    """

    data: Splits
    steps: tuple[Step, ...]

    def seen(self, number: int) -> tuple[int, ...]:
        """The classes that have arrived up to a step, in the order of their arrival.

        Example:
            >>> from lcmat.types import FeatureData
            >>> points = FeatureData(torch.randn(9, 2), torch.arange(9) % 3, ("a", "b", "c"))
            >>> make_stream(Splits(points, points, "three"), [[2], [0, 1], [2]]).seen(2)
            (2, 0, 1)
        """
        return tuple(dict.fromkeys(index for step in self.steps[: number + 1] for index in step.classes))


def make_stream(
    data: Splits, steps: int | Sequence[Sequence[int]] = 5, *, order: str = "shuffled", seed: int = 0
) -> Stream:
    """Spread the classes over steps.

    Args:
        data: the data set.
        steps: how many, the classes spread as evenly as they go; or the classes of each step. A class named in
            several of these returns: its samples are dealt out evenly over them, in random order.
        order: of the classes, where `steps` is a number: 'shuffled' by the seed, or 'given' as the data names them.
        seed: of the order, and of what a class that returns brings each time.

    Raises:
        ValueError: for more steps than classes, a step without classes, or a class without samples to train or test.
    """
    labels = data.train.labels
    present = [index for index, count in enumerate(torch.bincount(labels).tolist()) if count]
    if isinstance(steps, int):
        groups = _spread(present, steps, order, seed)
    else:
        groups = [list(group) for group in steps]
        _check_groups(groups, present)
    tested = set(data.test.labels.tolist())
    if untested := [index for group in groups for index in group if index not in tested]:
        names = ", ".join(data.test.class_names[index] for index in untested)
        raise ValueError(f"expected test samples of every class, got none of: {names}")
    parts = {
        index: _deal(labels, index, sum(index in group for group in groups), seed)
        for group in groups
        for index in group
    }
    made = []
    for number, group in enumerate(groups):
        rows = torch.cat([parts[index].pop(0) for index in group])
        made.append(Step(number, tuple(group), rows.sort().values))
    return Stream(data, tuple(made))


def first_classes(data: Splits, count: int) -> Splits:
    """The part of a data set that has its first classes, and knows of no other; the normalisation stays.

    Raises:
        ValueError: for fewer than two classes, or more than there are.
    """
    names = data.train.class_names
    if not 2 <= count <= len(names):
        raise ValueError(f"expected 2 to {len(names)} classes, got {count}")

    def cut(part: Data) -> Data:
        return replace(part.take((part.labels < count).nonzero().flatten()), class_names=names[:count])

    name = f"{data.name}, the first {count} of {len(names)} classes"
    return Splits(cut(data.train), cut(data.test), name, data.notes)


def _spread(present: list[int], steps: int, order: str, seed: int) -> list[list[int]]:
    if isinstance(steps, bool) or not 1 <= steps <= len(present):
        raise ValueError(f"expected 1 to {len(present)} steps, one class in each at least, got {steps}")
    if order not in ORDERS:
        raise ValueError(f"expected order to be {' or '.join(map(repr, ORDERS))}, got {order!r}")
    row = present
    if order == "shuffled":
        shuffled = torch.randperm(len(present), generator=seeding.generator(seed, "classes"))
        row = [present[place] for place in shuffled.tolist()]
    return [part.tolist() for part in torch.tensor_split(torch.tensor(row), steps)]


def _check_groups(groups: list[list[int]], present: list[int]) -> None:
    if not groups or not all(groups) or any(len(set(group)) != len(group) for group in groups):
        raise ValueError(f"expected distinct classes in every step, at least one, got {groups}")
    if wrong := sorted({index for group in groups for index in group} - set(present)):
        raise ValueError(f"expected classes that have training samples, got {wrong}")


def _deal(labels: Tensor, index: int, times: int, seed: int) -> list[Tensor]:
    """The rows of a class, dealt out evenly over the steps that it comes in."""
    rows = (labels == index).nonzero().flatten()
    if times > len(rows):
        raise ValueError(f"class {index} comes in {times} steps, but has {len(rows)} samples")
    if times > 1:
        rows = rows[torch.randperm(len(rows), generator=seeding.generator(seed, "returning", index))]
    return list(torch.tensor_split(rows, times))

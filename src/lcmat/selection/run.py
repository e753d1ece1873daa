"""The loop over groups: one method applied to class after class, and the Subset made of what it picked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lcmat import runtime, seeding
from lcmat.registry import Entry
from lcmat.selection.lazy import Purse
from lcmat.selection.registry import SelectorFacts
from lcmat.types import Picks, Signals, Subset


@dataclass(frozen=True, eq=False)
class Group:
    """Samples that compete with each other: those of one class, or all.

    Attributes:
        members: their rows, `[m]`.
        given: positions among the members that are picked already, `[g]`.
        place: of the group in the loop; it seeds the group's generator.
    """

    members: Tensor
    given: Tensor
    place: int

    def __len__(self) -> int:
        return len(self.members)


def make_groups(signals: Signals, balance: str, *, given: Tensor, excluded: Tensor) -> list[Group]:
    """One group for each class that has samples, or one for all; without the excluded samples."""
    rows = torch.arange(signals.n)
    rows = rows[~torch.isin(rows, excluded)]
    if balance == "none" or signals.labels is None or signals.regression:
        parts = [rows]
    else:
        labels = signals.labels.cpu()[rows]
        ordered = rows[torch.sort(labels, stable=True).indices]
        parts = [part for part in torch.split(ordered, torch.bincount(labels - labels.min()).tolist()) if len(part)]
    groups = []
    for place, members in enumerate(parts):
        inside = given[torch.isin(given, members)]
        positions = torch.searchsorted(members, inside)  # the members are in ascending order
        groups.append(Group(members.to(signals.device), positions.to(signals.device), place))
    return groups


@dataclass(frozen=True, eq=False)
class Cut:
    """The first picks of one group, as positions among its members: one budget's share."""

    order: Tensor
    gains: Tensor | None = None
    weights: Tensor | None = None
    note: str = ""


@dataclass(frozen=True)
class Run:
    """One call of `select`: a method with its options."""

    entry: Entry[Any, SelectorFacts]
    options: dict[str, Any]
    seed: int
    memory: int

    def pick(self, points: Sequence[Signals], group: Group, counts: Sequence[int]) -> list[Cut]:
        """The picks of one group for each count; one call serves all where a shorter run is a prefix of a longer."""
        longest = max(counts)
        calls = {longest} if self.entry.facts.prefix else set(counts)
        picks = {count: self._picks(points, group, count) for count in calls if count > 0}
        none = Cut(torch.empty(0, dtype=torch.int64, device=group.members.device))
        return [
            _cut(picks[longest if self.entry.facts.prefix else count], count) if count > 0 else none for count in counts
        ]

    def cover(self, points: Sequence[Signals], group: Group, coverages: Sequence[float]) -> list[Cut]:
        """The fewest picks of one group that reach each coverage."""
        picks = self._call(points, group, len(group), coverage=max(coverages), given=_or_none(group.given))
        if picks.coverage is None:
            raise ValueError(f"method {self.entry.name!r} reported no coverage")
        reached = [int((picks.coverage < coverage).sum()) + 1 for coverage in coverages]
        return [_cut(picks, max(len(group.given), min(count, len(picks.order)))) for count in reached]

    def spend(self, points: Sequence[Signals], group: Group, costs: Tensor, budgets: Sequence[float]) -> list[Cut]:
        """The picks of one group that each budget buys."""
        prices = costs.to(group.members.device)[group.members]
        cuts = []
        for budget in budgets:
            purse = Purse(prices, budget)
            picks = self._call(points, group, len(group), purse=purse, given=_or_none(group.given))
            cuts.append(_cut(picks, len(picks.order)))
        return cuts

    def _picks(self, points: Sequence[Signals], group: Group, count: int) -> Picks:
        if len(group.given) == 0 or self.entry.accepts("given"):
            picks = self._call(points, group, count, given=_or_none(group.given))
        else:
            picks = self._pick_the_rest(points, group, count)
        if len(picks.order) != count:
            raise ValueError(f"method {self.entry.name!r} picked {len(picks.order)} samples instead of {count}")
        return picks

    def _pick_the_rest(self, points: Sequence[Signals], group: Group, count: int) -> Picks:
        """The given samples, then what the method picks among the others, of which alone it knows."""
        given = group.given
        others = torch.arange(len(group), device=given.device)
        others = others[~torch.isin(others, given)]
        if count == len(given):
            return Picks(given)
        picks = self._call([point.take(others) for point in points], group, count - len(given))
        weigh = picks.weigh
        return Picks(
            torch.cat([given, others[picks.order]]),
            gains=None if picks.gains is None else torch.cat([picks.gains.new_zeros(len(given)), picks.gains]),
            weigh=None
            if weigh is None
            else lambda k: torch.cat([torch.ones(len(given), device=given.device), weigh(k - len(given))]),
        )

    def _call(self, points: Sequence[Signals], group: Group, count: int, **extra: Any) -> Picks:
        reserved = {
            "generator": seeding.generator(self.seed, "select", self.entry.name, group.place),
            "memory": self.memory,
            **{name: value for name, value in extra.items() if value is not None},
        }
        taken = {name: value for name, value in reserved.items() if self.entry.accepts(name)}
        picks: Picks = self.entry.function(tuple(points), count, **taken, **self.options)
        return picks

    def assemble(self, signals: Signals, groups: Sequence[Group], cuts: Sequence[Cut], balance: str) -> Subset:
        """One Subset from the picks of all groups, the classes interleaved so that every beginning is balanced."""
        sizes = [len(cut.order) for cut in cuts]
        if sum(sizes) == 0:
            raise ValueError("the budget pays for no sample at all; give a larger fraction")
        rank = torch.cat([(torch.arange(size, dtype=torch.float64) + 0.5) / max(size, 1) for size in sizes])
        mixed = torch.sort(rank, stable=True).indices
        rows = [group.members[cut.order].cpu() for group, cut in zip(groups, cuts, strict=True)]
        indices = torch.cat(rows)[mixed]
        filled = [cut for cut in cuts if len(cut.order)]
        gains = [cut.gains.cpu() for cut in filled if cut.gains is not None]
        weighted = self.entry.facts.weighted
        weights = _weights(groups, cuts, signals.n)[mixed] if weighted else _equal(len(indices), signals.n)
        return Subset(
            indices=indices,
            weights=weights,
            gains=torch.cat(gains)[mixed] if len(gains) == len(filled) else None,
            method=self.entry.name,
            options=dict(self.options),
            seed=self.seed,
            n=signals.n,
            per_class=_per_class(signals, indices),
            class_names=signals.class_names,
            fingerprint=signals.fingerprint,
            weighted=weighted,
            balance="none" if signals.labels is None or signals.regression else balance,
            notes=tuple(dict.fromkeys(cut.note for cut in cuts if cut.note)) + _notes(signals, groups, sizes),
            versions=runtime.versions(),
        )


def _or_none(given: Tensor) -> Tensor | None:
    return given if len(given) else None


def _cut(picks: Picks, count: int) -> Cut:
    gains = None if picks.gains is None else picks.gains[:count].double()
    weights = None if picks.weigh is None or count == 0 else picks.weigh(count)
    return Cut(picks.order[:count], gains, weights, picks.note)


def _weights(groups: Sequence[Group], cuts: Sequence[Cut], n: int) -> Tensor:
    """The method's weights, scaled to sum to n: a class without a pick leaves its weight to the others."""
    parts = [
        _equal(len(cut.order), len(group)) if cut.weights is None else cut.weights.double().cpu()
        for group, cut in zip(groups, cuts, strict=True)
    ]
    weights = torch.cat(parts)
    total = weights.sum()
    return weights * (n / total) if total > 0 else _equal(len(weights), n)


def _equal(k: int, n: int) -> Tensor:
    """The weights of k samples that stand for n alike."""
    return torch.full((k,), n / max(k, 1), dtype=torch.float64)


def _per_class(signals: Signals, indices: Tensor) -> tuple[int, ...]:
    if signals.labels is None or signals.regression:
        return ()
    labels = signals.labels.cpu()
    if int(labels.min()) < 0:
        raise ValueError(f"expected labels from 0 on, got {int(labels.min())}; number the classes from 0")
    classes = max(len(signals.class_names), int(labels.max()) + 1)
    return tuple(torch.bincount(labels[indices], minlength=classes).tolist())


def _notes(signals: Signals, groups: Sequence[Group], taken: Sequence[int]) -> tuple[str, ...]:
    """What a user should know of classes that are small or left out."""
    if len(groups) == 1 or signals.labels is None:
        return ()
    single, whole, empty = [], [], []
    for group, amount in zip(groups, taken, strict=True):
        label = int(signals.labels[group.members[0]])
        name = signals.class_names[label] if signals.class_names else str(label)
        if amount == 0:
            empty.append(name)
        elif len(group) == 1:
            single.append(name)
        elif amount == len(group):
            whole.append(name)
    notes = []
    if single:
        notes.append(f"kept the only sample of: {', '.join(single)}")
    if whole and sum(taken) < signals.n:
        notes.append(f"kept whole, the share being no smaller than the class: {', '.join(whole)}")
    if empty:
        count = "1 class" if len(empty) == 1 else f"{len(empty)} classes"
        notes.append(f"no sample of {count}, the budget being smaller: {', '.join(empty[:10])}")
    return tuple(notes)

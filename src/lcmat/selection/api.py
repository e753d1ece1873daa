"""`select`: the budget, the loop over classes, and the Subset; the methods themselves know of none of these."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor

from lcmat import runtime, seeding
from lcmat.registry import Entry
from lcmat.selection.budget import BALANCES, shares
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.types import Picks, Signals, Subset


@overload
def select(
    signals: Signals | Sequence[Signals],
    method: str,
    *,
    fraction: float | None = ...,
    count: int | None = ...,
    coverage: float | None = ...,
    balance: str = ...,
    seed: int = ...,
    memory: str | int | None = ...,
    **options: Any,
) -> Subset: ...


@overload
def select(
    signals: Signals | Sequence[Signals],
    method: str,
    *,
    fraction: Sequence[float] | None = ...,
    count: Sequence[int] | None = ...,
    coverage: Sequence[float] | None = ...,
    balance: str = ...,
    seed: int = ...,
    memory: str | int | None = ...,
    **options: Any,
) -> list[Subset]: ...


def select(
    signals: Signals | Sequence[Signals],
    method: str,
    *,
    fraction: float | Sequence[float] | None = None,
    count: int | Sequence[int] | None = None,
    coverage: float | Sequence[float] | None = None,
    balance: str = "proportional",
    seed: int = 0,
    memory: str | int | None = None,
    **options: Any,
) -> Subset | list[Subset]:
    """Choose the samples to keep.

    Exactly one of `fraction`, `count` and `coverage` is given; a list of them gives a list of subsets from one run.

    Args:
        signals: what a model says of every sample, or a sequence of such for several parameter points.
        method: a name from `selectors()`.
        fraction: the share to keep, in (0, 1]: max(1, round(fraction · n)) samples.
        count: the number to keep.
        coverage: the smallest greedy set with 1 − L(S)/L({first pick}) of at least this in every class.
        balance: 'proportional' keeps the classes' shares, 'equal' gives each class the same, 'none' ignores classes.
        seed: decides ties, and the draw of random methods.
        memory: what the distances may take, such as '4GB'; by default half of what is free.
        **options: the method's own options; an unknown one is a TypeError that names the valid ones.

    Returns:
        A Subset, or a list of them for a list of budgets.

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.arange(10.0).reshape(10, 1), labels=torch.arange(10) % 2)
        >>> select(signals, "k-center", count=4).per_class
        (2, 2)
        >>> [len(subset) for subset in select(signals, "uniform", fraction=[0.1, 0.5])]
        [1, 5]
    """
    entry = SELECTORS.find(method)
    chosen_options = {name: option.default for name, option in entry.options.items()} | entry.check_options(options)
    points = _check_points(entry, signals)
    budgets = _read_budgets(points[0].n, fraction, count, coverage)
    if budgets.coverages and not entry.accepts("coverage"):
        able = ", ".join(other.name for other in SELECTORS if other.accepts("coverage"))
        raise ValueError(f"method {method!r} has no coverage to stop at; give fraction or count, or use one of: {able}")
    if balance not in BALANCES:
        raise ValueError(f"expected balance as one of {', '.join(BALANCES)}, got {balance!r}")
    groups = _groups(points[0], balance)
    counts = [shares(total, [len(group) for group in groups], balance) for total in budgets.counts]
    run = _Run(entry, chosen_options, seed, runtime.memory_budget(memory, points[0].device))
    cuts = []
    for position, members in enumerate(groups):
        group = points if len(groups) == 1 else tuple(part.take(members) for part in points)
        if budgets.coverages:
            cuts.append(run.cover(group, position, budgets.coverages))
        else:
            cuts.append(run.pick(group, position, [amounts[position] for amounts in counts]))
    subsets = [
        run.assemble(points[0], groups, [cut[b] for cut in cuts], balance)
        for b in range(len(budgets.counts) + len(budgets.coverages))
    ]
    return subsets if budgets.several else subsets[0]


def random_like(labels: Tensor, per_class: Sequence[int], n: int, seed: int) -> Subset:
    """A uniform draw with given class counts: the baseline for a subset that has them.

    Args:
        labels: class index of every sample, `[n]`.
        per_class: how many of each class, by class index.
        n: how many samples there are.
        seed: of the draw.

    Example:
        >>> import torch
        >>> random_like(torch.tensor([0, 0, 0, 1, 1]), (2, 1), 5, seed=0).per_class
        (2, 1)
    """
    if len(labels) != n:
        raise ValueError(f"expected a label for each of the {n:,} samples, got {len(labels):,}")
    signals = Signals(labels=labels)
    groups = _groups(signals, "equal")
    run = _Run(SELECTORS.find("uniform"), {}, seed, 0)
    cuts = []
    for position, members in enumerate(groups):
        amount = per_class[int(labels[members[0]])]
        cuts.append(run.pick((signals.take(members),), position, [amount])[0])
    return run.assemble(signals, groups, cuts, "as given")


@dataclass(frozen=True)
class _Budgets:
    """Numbers of samples, or coverages: one of the two is empty."""

    counts: tuple[int, ...]
    coverages: tuple[float, ...]
    several: bool


def _read_budgets(n: int, fraction: Any, count: Any, coverage: Any) -> _Budgets:
    given = {
        name: value
        for name, value in (("fraction", fraction), ("count", count), ("coverage", coverage))
        if value is not None
    }
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise ValueError(f"expected exactly one of fraction, count and coverage, got {found}")
    ((name, value),) = given.items()
    several = isinstance(value, Sequence) and not isinstance(value, str)
    values = list(value) if several else [value]
    if not values:
        raise ValueError(f"expected at least one {name}, got an empty list")
    for item in values:
        if isinstance(item, bool) or not isinstance(item, int if name == "count" else int | float):
            raise TypeError(f"expected {name} as {'an integer' if name == 'count' else 'a number'}, got {item!r}")
        if name == "count" and not 1 <= item <= n:
            raise ValueError(f"expected a count from 1 to {n:,}, the number of samples, got {item:,}")
        if name != "count" and not 0 < item <= 1:
            raise ValueError(f"expected a {name} above 0 and at most 1, got {item}")
    if name == "coverage":
        return _Budgets((), tuple(float(item) for item in values), several)
    totals = values if name == "count" else [max(1, round(item * n)) for item in values]
    return _Budgets(tuple(totals), (), several)


def _check_points(entry: Entry[Any, SelectorFacts], signals: Signals | Sequence[Signals]) -> tuple[Signals, ...]:
    points = (signals,) if isinstance(signals, Signals) else tuple(signals)
    if not points:
        raise ValueError("expected Signals, got an empty list of them")
    if len(points) > 1 and not entry.facts.several_points:
        able = ", ".join(other.name for other in SELECTORS if other.facts.several_points)
        raise ValueError(f"method {entry.name!r} takes the Signals of one point, got {len(points)}; several: {able}")
    for point in points:
        for name in entry.facts.needs:
            point.need(name)
        if point.n != points[0].n:
            raise ValueError(
                f"expected Signals of the same samples at every point, got {points[0].n:,} and {point.n:,}"
            )
        if point.labels is not None and points[0].labels is not None and not point.labels.equal(points[0].labels):
            raise ValueError("expected Signals of the same samples at every point, but their labels differ")
    return points


def _groups(signals: Signals, balance: str) -> list[Tensor]:
    """The samples that compete with each other: those of one class, or all."""
    if balance == "none" or signals.labels is None:
        return [torch.arange(signals.n, device=signals.device)]
    order = torch.sort(signals.labels, stable=True).indices
    sizes = torch.bincount(signals.labels - signals.labels.min())
    return [part for part in torch.split(order, sizes.tolist()) if len(part)]


@dataclass(frozen=True, eq=False)
class _Cut:
    """The first picks of one group, within the group: one budget's share."""

    order: Tensor
    gains: Tensor | None
    weights: Tensor | None


@dataclass(frozen=True)
class _Run:
    """One call of `select`: a method with its options, applied to group after group."""

    entry: Entry[Any, SelectorFacts]
    options: dict[str, Any]
    seed: int
    memory: int

    def pick(self, points: tuple[Signals, ...], position: int, counts: Sequence[int]) -> list[_Cut]:
        """The picks of one group for each count; one call serves all where a shorter run is a prefix of a longer."""
        calls = {max(counts)} if self.entry.facts.prefix else set(counts)
        picks = {count: self._call(points, position, count, {}) for count in calls if count > 0}
        cuts = []
        for count in counts:
            if count == 0:
                cuts.append(_Cut(torch.empty(0, dtype=torch.int64, device=points[0].device), None, None))
            else:
                cuts.append(_cut(picks[max(counts) if self.entry.facts.prefix else count], count))
        return cuts

    def cover(self, points: tuple[Signals, ...], position: int, coverages: Sequence[float]) -> list[_Cut]:
        """The fewest picks of one group that reach each coverage."""
        picks = self._call(points, position, points[0].n, {"coverage": max(coverages)})
        reached = picks.coverage
        if reached is None:
            raise ValueError(f"method {self.entry.name!r} reported no coverage")
        return [_cut(picks, min(int((reached < c).sum()) + 1, len(reached))) for c in coverages]

    def _call(self, points: tuple[Signals, ...], position: int, count: int, extra: dict[str, Any]) -> Picks:
        reserved = {
            "generator": seeding.generator(self.seed, "select", self.entry.name, position),
            "memory": self.memory,
        }
        taken = {name: value for name, value in reserved.items() if self.entry.accepts(name)}
        picks: Picks = self.entry.function(points, count, **taken, **extra, **self.options)
        if not extra and len(picks.order) != count:
            raise ValueError(f"method {self.entry.name!r} picked {len(picks.order)} samples instead of {count}")
        return picks

    def assemble(self, signals: Signals, groups: Sequence[Tensor], cuts: Sequence[_Cut], balance: str) -> Subset:
        """One Subset from the picks of all groups, the classes interleaved so that every beginning is balanced."""
        sizes = [len(cut.order) for cut in cuts]
        rank = torch.cat([(torch.arange(size, dtype=torch.float64) + 0.5) / max(size, 1) for size in sizes])
        mixed = torch.sort(rank, stable=True).indices
        indices = torch.cat([members[cut.order].cpu() for members, cut in zip(groups, cuts, strict=True)])[mixed]
        k, n = len(indices), signals.n
        weights = torch.full((k,), n / k, dtype=torch.float64)
        if self.entry.facts.weighted:
            weights = torch.cat([cut.weights.cpu() for cut in cuts if cut.weights is not None])[mixed]
            # A class without a pick leaves its weight to the others.
            weights = weights * (n / weights.sum())
        gains = [cut.gains.cpu() for cut in cuts if cut.gains is not None]
        return Subset(
            indices=indices,
            weights=weights,
            gains=torch.cat(gains)[mixed] if gains else None,
            method=self.entry.name,
            options=dict(self.options),
            seed=self.seed,
            n=n,
            per_class=_per_class(signals, indices),
            class_names=signals.class_names,
            fingerprint=signals.fingerprint,
            weighted=self.entry.facts.weighted,
            balance="none" if signals.labels is None else balance,
            notes=_notes(signals, groups, sizes),
            versions=runtime.versions(),
        )


def _cut(picks: Picks, count: int) -> _Cut:
    gains = None if picks.gains is None else picks.gains[:count].double()
    weights = None if picks.weigh is None else picks.weigh(count)
    return _Cut(picks.order[:count], gains, weights)


def _per_class(signals: Signals, indices: Tensor) -> tuple[int, ...]:
    if signals.labels is None:
        return ()
    labels = signals.labels.cpu()
    if int(labels.min()) < 0:
        raise ValueError(f"expected labels from 0 on, got {int(labels.min())}; number the classes from 0")
    classes = max(len(signals.class_names), int(labels.max()) + 1)
    return tuple(torch.bincount(labels[indices], minlength=classes).tolist())


def _notes(signals: Signals, groups: Sequence[Tensor], taken: Sequence[int]) -> tuple[str, ...]:
    """What a user should know of classes that are small or left out."""
    if len(groups) == 1 or signals.labels is None:
        return ()
    single, whole, empty = [], [], []
    for members, amount in zip(groups, taken, strict=True):
        label = int(signals.labels[members[0]])
        name = signals.class_names[label] if signals.class_names else str(label)
        if amount == 0:
            empty.append(name)
        elif len(members) == 1:
            single.append(name)
        elif amount == len(members):
            whole.append(name)
    notes = []
    if single:
        notes.append(f"kept the only sample of: {', '.join(single)}")
    if whole and sum(taken) < signals.n:
        notes.append(f"kept whole, the share being no smaller than the class: {', '.join(whole)}")
    if empty:
        notes.append(f"no sample of {len(empty)} classes, the budget being smaller: {', '.join(empty[:10])}")
    return tuple(notes)

"""`select`: the budget, the loop over classes, and the Subset; the methods themselves know of none of these."""

from collections.abc import Sequence
from typing import Any, overload

from torch import Tensor

from lcmat import runtime
from lcmat.selection.budget import shares, spread
from lcmat.selection.registry import SELECTORS
from lcmat.selection.request import check_method, check_points, read_budgets, read_constraints
from lcmat.selection.run import Cut, Group, Run, make_groups
from lcmat.types import Array, Signals, Subset


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
    given: Sequence[int] | Array | None = ...,
    exclude: Sequence[int] | Array | None = ...,
    cost: Sequence[float] | Array | None = ...,
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
    given: Sequence[int] | Array | None = ...,
    exclude: Sequence[int] | Array | None = ...,
    cost: Sequence[float] | Array | None = ...,
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
    given: Sequence[int] | Array | None = None,
    exclude: Sequence[int] | Array | None = None,
    cost: Sequence[float] | Array | None = None,
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
        given: rows chosen before; they are kept, come first in their class, count, and are completed.
        exclude: rows to leave out, as if the data did not have them.
        cost: of each sample; `fraction` is then a share of their sum, for the greedy methods that can weigh costs.
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
    points = check_points(entry, chosen_options, signals)
    first = points[0]
    constraints = read_constraints(first.n, given, exclude, cost)
    budgets = read_budgets(first.n, fraction, count, coverage, with_cost=cost is not None)
    check_method(entry, budgets, constraints, balance)
    groups = make_groups(first, balance, given=constraints.given, excluded=constraints.excluded)
    counts = [_counts(total, groups, balance) for total in budgets.counts]
    purses = [] if constraints.cost is None else _purses(constraints.cost, budgets.cost_shares, groups, balance)
    run = Run(entry, chosen_options, seed, runtime.memory_budget(memory, first.device))
    cuts: list[list[Cut]] = []
    for group in groups:
        whole = len(group) == first.n
        parts = points if whole else [point.take(group.members) for point in points]
        if budgets.coverages:
            cuts.append(run.cover(parts, group, budgets.coverages))
        elif constraints.cost is not None:
            cuts.append(run.spend(parts, group, constraints.cost, [purse[group.place] for purse in purses]))
        else:
            cuts.append(run.pick(parts, group, [amounts[group.place] for amounts in counts]))
    subsets = [run.assemble(first, groups, [cut[b] for cut in cuts], balance) for b in range(budgets.number)]
    return subsets if budgets.several else subsets[0]


def _counts(total: int, groups: Sequence[Group], balance: str) -> list[int]:
    """How many samples each group gives."""
    available = sum(len(group) for group in groups)
    if total > available:
        raise ValueError(f"expected to keep at most {available:,} samples, those not excluded, got {total:,}")
    return shares(total, [len(group) for group in groups], balance, least=[len(group.given) for group in groups])


def _purses(cost: Tensor, fractions: Sequence[float], groups: Sequence[Group], balance: str) -> list[list[float]]:
    """What each group may spend, for each share of the whole cost."""
    sizes = [float(cost[group.members.cpu()].sum()) for group in groups]
    paid = [float(cost[group.members.cpu()[group.given.cpu()]].sum()) for group in groups]
    if sum(paid) > min(fractions) * sum(sizes):
        raise ValueError(
            f"the given samples cost {sum(paid):g}, more than the budget of {min(fractions) * sum(sizes):g}"
        )
    return [[float(part) for part in spread(share * sum(sizes), sizes, balance, least=paid)] for share in fractions]


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
    nothing = labels.new_empty(0)
    groups = make_groups(signals, "equal", given=nothing, excluded=nothing)
    run = Run(SELECTORS.find("uniform"), {}, seed, memory=0)
    cuts = []
    for group in groups:
        amount = per_class[int(labels[group.members[0]])]
        cuts.append(run.pick([signals.take(group.members)], group, [amount])[0])
    return run.assemble(signals, groups, cuts, "as given")

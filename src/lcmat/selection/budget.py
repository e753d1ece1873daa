"""How much each class gives: a total spread over classes, none below its least or above what it has."""

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

Balance: TypeAlias = Literal["equal", "proportional", "none"]
BALANCES: tuple[str, ...] = get_args(Balance)


def shares(total: int, sizes: Sequence[int], balance: str, *, least: Sequence[int] | None = None) -> list[int]:
    """Split a number of samples over classes, exactly, by largest remainders.

    `equal` aims at the same number for each class, `proportional` at the same fraction. A class smaller than its share
    is taken whole and gives the rest to the others. Where the total allows it, every class gives at least one.

    Args:
        total: how many in all.
        sizes: how many each class has.
        balance: 'equal' or 'proportional'.
        least: how many each class gives at least, such as those picked before.

    Example:
        >>> shares(10, [50, 30, 20], "proportional"), shares(10, [50, 30, 20], "equal")
        ([5, 3, 2], [4, 3, 3])
        >>> shares(9, [50, 30, 1], "equal"), shares(4, [90, 9, 1], "proportional")
        ([4, 4, 1], [2, 1, 1])
    """
    if not 0 < total <= sum(sizes):
        raise ValueError(f"expected a total from 1 to {sum(sizes)}, got {total}")
    low = list(least) if least is not None else [0] * len(sizes)
    if total < sum(low):
        raise ValueError(f"expected a total of at least {sum(low)}, the samples that are given, got {total}")
    one_each = [max(1, amount) for amount in low]
    ideal = spread(total, sizes, balance, least=one_each if total >= sum(one_each) else low)
    given = [int(amount) for amount in ideal]
    by_remainder = sorted(range(len(sizes)), key=lambda c: (given[c] - ideal[c], c))
    for c in by_remainder[: total - sum(given)]:
        given[c] += 1
    return given


def spread(
    total: float, sizes: Sequence[float], balance: str, *, least: Sequence[float] | None = None
) -> list[Fraction]:
    """Split an amount over classes without rounding.

    Each gets t times its part, but no less than its least and no more than its size, with the t at which the amounts
    sum to the total.

    Example:
        >>> [str(amount) for amount in spread(10, [2, 9, 9], "equal")]
        ['2', '4', '4']
    """
    high = [Fraction(size) for size in sizes]
    low = [Fraction(amount) for amount in least] if least is not None else [Fraction(0)] * len(high)
    parts = [Fraction(1)] * len(high) if balance == "equal" else high

    def amounts(level: Fraction) -> list[Fraction]:
        return [max(bottom, min(top, level * part)) for bottom, top, part in zip(low, high, parts, strict=True)]

    # Between two neighbouring levels at which a class begins or ceases to grow, the sum is a straight line.
    levels = sorted({bound / part for bounds in (low, high) for bound, part in zip(bounds, parts, strict=True)})
    below = levels[bisect_right(levels, Fraction(total), key=lambda level: sum(amounts(level), Fraction(0))) - 1]
    growing = sum(part for bottom, top, part in zip(low, high, parts, strict=True) if bottom <= below * part < top)
    missing = Fraction(total) - sum(amounts(below))
    return amounts(below + missing / growing) if missing else amounts(below)

"""How many samples each class gives."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

Balance: TypeAlias = Literal["equal", "proportional", "none"]
BALANCES: tuple[str, ...] = get_args(Balance)


def shares(total: int, sizes: Sequence[int], balance: str) -> list[int]:
    """Split a total over classes, exactly, by largest remainders.

    `equal` aims at the same number for each class, `proportional` at the same fraction. A class smaller than its share
    is taken whole and gives the rest to the others. Where the total allows it, every class gives at least one.

    Example:
        >>> shares(10, [50, 30, 20], "proportional"), shares(10, [50, 30, 20], "equal")
        ([5, 3, 2], [4, 3, 3])
        >>> shares(9, [50, 30, 1], "equal"), shares(4, [90, 9, 1], "proportional")
        ([4, 4, 1], [2, 1, 1])
    """
    if not 0 < total <= sum(sizes):
        raise ValueError(f"expected a total from 1 to {sum(sizes)}, got {total}")
    least = 1 if total >= len(sizes) else 0
    parts = [1] * len(sizes) if balance == "equal" else list(sizes)
    settled: dict[int, int] = {}
    while True:
        open_classes = [c for c in range(len(sizes)) if c not in settled]
        pool = total - sum(settled.values())
        whole = sum(parts[c] for c in open_classes)
        # In whole numbers: class c's share is pool · parts[c] / whole.
        full = {c: sizes[c] for c in open_classes if pool * parts[c] >= sizes[c] * whole}
        bare = {c: least for c in open_classes if pool * parts[c] < least * whole}
        if not full and not bare:
            break
        settled |= full or bare
    given = settled | {c: pool * parts[c] // whole for c in open_classes}
    by_remainder = sorted(open_classes, key=lambda c: (-(pool * parts[c] % whole), c))
    for c in by_remainder[: total - sum(given.values())]:
        given[c] += 1
    return [given[c] for c in range(len(sizes))]

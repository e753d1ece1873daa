import random

import pytest

from lcmat.selection.budget import shares


def test_totals_are_exact_and_no_class_gives_more_than_it_has() -> None:
    draw = random.Random(0)
    for _ in range(2000):
        sizes = [draw.choice([1, 2, 5, 50, 5000]) for _ in range(draw.randint(1, 12))]
        total = draw.randint(1, sum(sizes))
        for balance in ("equal", "proportional"):
            given = shares(total, sizes, balance)
            assert sum(given) == total
            assert all(0 <= got <= size for got, size in zip(given, sizes, strict=True))
            if total >= len(sizes):
                assert min(given) >= 1


def test_proportional_shares_are_within_one_of_the_ideal() -> None:
    sizes = [500, 300, 199, 101]
    for total in range(20, 1000, 37):
        for got, size in zip(shares(total, sizes, "proportional"), sizes, strict=True):
            assert abs(got - total * size / sum(sizes)) < 1


def test_equal_shares_differ_by_one_at_most_among_large_classes() -> None:
    assert shares(11, [50, 50, 50], "equal") == [4, 4, 3]


def test_a_small_class_gives_the_rest_away() -> None:
    assert shares(30, [2, 100, 100], "equal") == [2, 14, 14]
    assert shares(202, [2, 100, 100], "equal") == [2, 100, 100]


def test_a_class_of_one_is_kept() -> None:
    assert shares(50, [5000, 1], "proportional") == [49, 1]


def test_every_class_has_its_own_count() -> None:
    # Not the last class's count for all.
    assert shares(6, [40, 10, 10], "proportional") == [4, 1, 1]


def test_fewer_than_classes() -> None:
    assert sum(shares(2, [5, 5, 5], "equal")) == 2


@pytest.mark.parametrize("total", [0, 11])
def test_impossible_totals(total: int) -> None:
    with pytest.raises(ValueError, match=f"total from 1 to 10, got {total}"):
        shares(total, [5, 5], "equal")

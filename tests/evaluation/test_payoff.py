"""From how many trainings on a choice pays, against numbers worked out by hand."""

from dataclasses import replace

import pytest

from lcmat.evaluation.payoff import payoff_table, payoffs
from lcmat.evaluation.rows import Row


def row(name: str, size: int, mean: float, seconds: float, verdict: str = "") -> Row:
    baseline = "" if name in {"uniform", "full"} else "uniform"
    return Row(
        name, size, size / 1000, "mlp", 3, 3, mean, 0.01, mean - 0.01, mean + 0.01, seconds, 0.1, baseline,
        verdict=verdict,
    )  # fmt: skip


RANDOM = [row("uniform", 10, 0.5, 1.0), row("uniform", 100, 0.7, 2.0), row("full", 1000, 0.9, 10.0)]
BETTER = row("craig", 10, 0.6, 1.0, "better than uniform")


def test_a_choice_pays_once_its_seconds_are_saved() -> None:
    [found] = payoffs([BETTER, *RANDOM], {"craig": 3.0})
    assert found.fraction == pytest.approx(0.01 * 10**0.5)  # half-way in the logarithm
    assert found.seconds == pytest.approx(1 + (10**0.5 - 1) / 9)
    assert found.trainings == 13  # 3 s / 0.24 s
    table = payoff_table([BETTER, *RANDOM], {"craig": 3.0})
    assert table is not None
    assert table.rows == (("mlp", "1 % (10)", "craig", "3", "1", "3.2 %", "1.2", "13 trainings"),)


def test_everything_is_the_largest_random_set() -> None:
    [found] = payoffs([replace(BETTER, mean=0.9), *RANDOM], {"craig": 18.0})
    assert (found.fraction, found.seconds, found.trainings) == (1.0, 10.0, 2)


def test_what_is_better_than_all_that_was_tried_has_no_number() -> None:
    [found] = payoffs([BETTER, *RANDOM[:1]], {"craig": 3.0})
    assert (found.fraction, found.seconds, found.trainings) == (None, None, None)
    table = payoff_table([BETTER, *RANDOM[:1]], {"craig": 3.0})
    assert table is not None
    assert table.rows[0][5:] == ("more than was tried", "–", "–")


def test_what_takes_no_less_time_never_pays() -> None:
    slow = [replace(RANDOM[0], seconds=9.0), *RANDOM[1:]]
    [found] = payoffs([BETTER, *slow], {"craig": 3.0})
    assert (found.training, found.trainings) == (5.0, None), "the mean over the sets of its size"
    table = payoff_table([BETTER, *slow], {"craig": 3.0})
    assert table is not None
    assert table.rows[0][-1] == "never"


@pytest.mark.parametrize("verdict", ["not told apart", "worse than uniform", "one run", ""])
def test_without_a_proven_gain_nothing_pays(verdict: str) -> None:
    assert payoff_table([replace(BETTER, verdict=verdict), *RANDOM], {"craig": 3.0}) is None
    assert payoff_table([BETTER, *RANDOM], {}) is None, "its seconds are not known"

"""Intervals and paired differences, against published quantiles and sums done by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from lcmat.evaluation.statistics import compare, estimate, t_quantile

# The 97.5 % column of any printed table of Student's distribution.
QUANTILES = {
    1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622, 10: 2.2281,
    11: 2.2010, 15: 2.1314, 20: 2.0860, 25: 2.0595, 29: 2.0452, 30: 2.0423, 60: 2.0003, 100: 1.9840, 120: 1.9799,
    1000: 1.9623,
}  # fmt: skip


@pytest.mark.parametrize(("df", "expected"), QUANTILES.items())
def test_quantiles_agree_with_the_printed_table(df: int, expected: float) -> None:
    assert t_quantile(df) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("df", "confidence", "expected"), [(1, 0.5, 1.0), (2, 0.9, 2.9200), (9, 0.99, 3.2498)])
def test_quantiles_of_other_confidences(df: int, confidence: float, expected: float) -> None:
    assert t_quantile(df, confidence) == pytest.approx(expected, abs=5e-5)


def test_many_degrees_of_freedom_approach_the_normal_quantile() -> None:
    assert t_quantile(100_001) == pytest.approx(1.95996 + (1.95996**3 + 1.95996) / 4 / 100_001, abs=1e-5)


@pytest.mark.parametrize(("df", "confidence"), [(0, 0.95), (5, 0.0), (5, 1.0)])
def test_impossible_quantiles_are_refused(df: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="expected df ≥ 1"):
        t_quantile(df, confidence)


def test_an_interval_computed_by_hand() -> None:
    found = estimate([0.70, 0.72, 0.74, 0.76])
    sd = math.sqrt((0.03**2 + 0.01**2) * 2 / 3)
    assert found.n == 4
    assert found.mean == pytest.approx(0.73)
    assert found.sd == pytest.approx(sd)
    assert found.low == pytest.approx(0.73 - 3.182446 * sd / 2)
    assert found.high == pytest.approx(0.73 + 3.182446 * sd / 2)


def test_one_value_has_no_interval() -> None:
    found = estimate([0.5])
    assert (found.n, found.mean, found.sd, found.low, found.high) == (1, 0.5, None, None, None)


def test_paired_differences_computed_by_hand() -> None:
    # Differences 0.02, 0.04, 0.03: mean 0.03, standard deviation 0.01, t(2) = 4.302653.
    found = compare([0.52, 0.74, 0.93], [0.50, 0.70, 0.90])
    assert found.difference.mean == pytest.approx(0.03)
    assert found.difference.sd == pytest.approx(0.01)
    assert found.difference.low == pytest.approx(0.03 - 4.302653 * 0.01 / math.sqrt(3))
    assert (found.wins, found.ties, found.losses, found.verdict) == (3, 0, 0, "better")


def test_pairing_finds_what_the_spread_between_seeds_would_hide() -> None:
    first, second = [0.52, 0.74, 0.93], [0.50, 0.70, 0.90]
    low, high = estimate(first).low, estimate(second).high
    assert low is not None
    assert high is not None
    assert low < high
    assert compare(second, first).verdict == "worse"


def test_rounding_makes_no_win_out_of_a_tie() -> None:
    found = compare([0.1 + 0.2, 0.5], [0.3, 0.6])
    assert (found.wins, found.ties, found.losses) == (0, 1, 1)
    assert found.verdict == "not told apart"


def test_a_single_pair_proves_nothing() -> None:
    assert compare([0.9], [0.1]).verdict == "one run"


def test_unpaired_series_are_refused() -> None:
    with pytest.raises(ValueError, match="expected pairs, got 2 and 1"):
        compare([0.1, 0.2], [0.1])


def test_random_accuracies_have_the_intervals_of_scipy() -> None:
    draws = np.random.default_rng(4)
    for n in (2, 3, 6, 20):
        first, second = draws.integers(300, 350, (2, n)) / 359
        found, paired = estimate(first.tolist()), compare(first.tolist(), second.tolist())
        wanted = stats.t.interval(0.95, n - 1, loc=first.mean(), scale=stats.sem(first))
        assert (found.low, found.high) == pytest.approx(wanted, abs=1e-12)
        test = stats.ttest_rel(first, second)
        interval = test.confidence_interval(0.95)
        assert (paired.difference.low, paired.difference.high) == pytest.approx(tuple(interval), abs=1e-12)
        assert (paired.verdict != "not told apart") == (test.pvalue < 0.05)
        signs = np.sign(first - second).tolist()
        assert (paired.wins, paired.ties, paired.losses) == tuple(signs.count(sign) for sign in (1, 0, -1))

import math

import numpy as np
import pytest

from lcmat.landscape.correlation import bootstrap_interval, rank_correlation


def test_ranks_are_correlated_whatever_the_scale() -> None:
    draws = np.random.default_rng(0)
    xs = draws.normal(size=30)
    ys = xs + draws.normal(size=30)
    truth = float(np.corrcoef(xs.argsort().argsort(), ys.argsort().argsort())[0, 1])
    assert rank_correlation(xs.tolist(), np.exp(ys).tolist()) == pytest.approx(truth)


def test_equal_values_share_their_ranks() -> None:
    assert rank_correlation([1, 1, 2, 3], [5, 7, 8, 9]) == pytest.approx(
        float(np.corrcoef([1.5, 1.5, 3, 4], [1, 2, 3, 4])[0, 1])
    )
    assert math.isnan(rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]))


def test_the_interval_holds_the_estimate_and_leaves_zero_out_only_where_there_is_something() -> None:
    draws = np.random.default_rng(1)
    xs = draws.normal(size=40).tolist()
    noise = draws.normal(size=40).tolist()
    low, high = bootstrap_interval(xs, (np.array(xs) + 0.5 * np.array(noise)).tolist(), draws=500)
    assert 0 < low < rank_correlation(xs, (np.array(xs) + 0.5 * np.array(noise)).tolist()) < high <= 1
    low, high = bootstrap_interval(xs, noise, draws=500)
    assert low < 0 < high
    assert (low, high) == bootstrap_interval(xs, noise, draws=500)


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 4 pairs, got 3 and 3"):
        rank_correlation([1, 2, 3], [1, 2, 3])
    with pytest.raises(ValueError, match="got 4 and 5"):
        bootstrap_interval([1, 2, 3, 4], [1, 2, 3, 4, 5])

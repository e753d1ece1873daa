"""Facility location, graph cut and log-determinant against their set functions."""

import math
from collections.abc import Callable
from functools import partial
from itertools import combinations

import pytest
import torch
from torch import Tensor

import lcmat
from lcmat.selection.by_submodular import facility_location_of_features, graph_cut, log_determinant
from lcmat.types import Picks, Signals
from reference import cover_loss, plain_greedy

METHODS = ["facility-location", "graph-cut", "log-determinant"]


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _features(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def _similarity(features: Tensor) -> Tensor:
    """(1 + cos)/2 of every pair, one at a time."""
    rows = [torch.nn.functional.cosine_similarity(features, feature[None]) for feature in features]
    return (1 + torch.stack(rows)) / 2


def _cut_value(similarity: Tensor, picks: list[int], trade: float) -> float:
    return float(trade * similarity[:, picks].sum() - similarity[picks][:, picks].sum())


def _volume(similarity: Tensor, picks: list[int], ridge: float) -> float:
    kernel = similarity[picks][:, picks]
    return float(torch.linalg.slogdet(torch.eye(len(picks), dtype=torch.float64) + kernel / ridge).logabsdet)


def _check_greedy(picks: Picks, value: Callable[[list[int]], float], n: int) -> None:
    """Each gain is a difference of the set function, and no other sample would have had a larger one."""
    assert picks.gains is not None
    order = picks.order.tolist()
    for t, gain in enumerate(picks.gains.tolist()):
        before = value(order[:t]) if t else 0.0
        others = [value([*order[:t], j]) - before for j in range(n) if j not in order[:t]]
        assert gain == pytest.approx(value(order[: t + 1]) - before, rel=1e-9, abs=1e-9)
        assert gain == pytest.approx(max(others), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("trade", [0.0, 0.5, 2.0])
def test_graph_cut_is_greedy_on_its_set_function(trade: float) -> None:
    features = _features(25)
    similarity = _similarity(features)
    picks = graph_cut([Signals(features=features)], 25, generator=_generator(), trade=trade)
    _check_greedy(picks, lambda chosen: _cut_value(similarity, chosen, trade), 25)
    assert picks.gains is not None
    assert (picks.gains.diff() <= 1e-9).all()
    assert bool((picks.gains >= 0).all()) == (trade == 2.0)  # monotone from 2 on


@pytest.mark.parametrize("ridge", [0.01, 0.1, 3.0])
def test_log_determinant_is_greedy_on_its_set_function(ridge: float) -> None:
    features = _features(25)  # more picks than dimensions
    similarity = _similarity(features)
    picks = log_determinant([Signals(features=features)], 25, generator=_generator(), ridge=ridge)
    _check_greedy(picks, lambda chosen: _volume(similarity, chosen, ridge), 25)


def test_a_copy_gains_least_and_orthogonal_samples_most() -> None:
    features = torch.eye(6, dtype=torch.float64)
    copied = torch.cat([features, features[:1], 2 * features[:1]])
    picks = log_determinant([Signals(features=copied)], 8, generator=_generator())
    assert {6, 7} & set(picks.order[6:].tolist()) or 0 in picks.order[6:].tolist()
    assert len({0, 6, 7} & set(picks.order[:6].tolist())) == 1
    assert picks.gains is not None
    assert float(picks.gains[:6].min()) > float(picks.gains[6:].max())


@pytest.mark.parametrize("seed", range(5))
def test_greedy_is_within_its_bound_of_the_best(seed: int) -> None:
    features = _features(9, seed)
    similarity = _similarity(features)
    for method, value in ((graph_cut, partial(_cut_value, trade=2.0)), (log_determinant, partial(_volume, ridge=0.1))):
        picks = method([Signals(features=features)], 3, generator=_generator())
        best = max(value(similarity, list(chosen)) for chosen in combinations(range(9), 3))
        assert best * 0.632 <= value(similarity, picks.order.tolist()) <= best + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_a_purse_reaches_its_bound_of_the_best(seed: int) -> None:
    features = _features(9, seed)
    similarity = _similarity(features)
    cost = 0.2 + torch.rand(9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    budget = 0.4 * float(cost.sum())
    affordable = [
        list(picks)
        for size in range(1, 9)
        for picks in combinations(range(9), size)
        if float(cost[list(picks)].sum()) <= budget
    ]
    for method, value in (
        ("graph-cut", partial(_cut_value, trade=2.0)),
        ("log-determinant", partial(_volume, ridge=0.1)),
    ):
        subset = lcmat.select(Signals(features=features), method, fraction=0.4, cost=cost, seed=seed)
        assert float(cost[subset.indices].sum()) <= budget
        best = max(value(similarity, picks) for picks in affordable)
        assert best * 0.316 <= value(similarity, list(subset)) <= best + 1e-9
        assert subset.gains is not None
        assert float(subset.gains.sum()) == pytest.approx(value(similarity, list(subset)), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_equal_costs_change_nothing_and_cheap_samples_are_preferred(method: str) -> None:
    signals = Signals(features=_features(40))
    same = lcmat.select(signals, method, fraction=0.25, cost=[2.0] * 40)
    assert list(same) == list(lcmat.select(signals, method, count=10))
    cost = torch.ones(40, dtype=torch.float64)
    cost[::2] = 10
    weighed = lcmat.select(signals, method, fraction=0.1, cost=cost)
    assert len(weighed) > 10
    assert sum(pick % 2 for pick in weighed) > 0.8 * len(weighed)


def test_facility_location_is_greedy_on_feature_distances() -> None:
    features = _features(60)
    truth = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    picks = facility_location_of_features([Signals(features=features)], 10, generator=_generator(), memory=10**8)
    expected, gains = plain_greedy(truth, 10)
    assert cover_loss(truth, picks.order.tolist()) == pytest.approx(cover_loss(truth, expected), rel=1e-9)
    assert picks.gains is not None
    torch.testing.assert_close(picks.gains, torch.tensor(gains, dtype=torch.float64), rtol=1e-9, atol=1e-9)
    assert picks.weigh is not None
    assert float(picks.weigh(10).sum()) == 60


def test_facility_location_stops_at_a_coverage_and_takes_several_points() -> None:
    features = _features(50)
    covered = lcmat.select(Signals(features=features), "facility-location", coverage=0.7)
    assert 1 < len(covered) < 50
    points = [Signals(features=features), Signals(features=_features(50, seed=1))]
    assert len(lcmat.select(points, "facility-location", count=5)) == 5


@pytest.mark.parametrize("seed", range(6))
def test_a_coverage_takes_no_more_samples_than_its_bound(seed: int) -> None:
    # At most 1 + m ln(Q/δ) after the first pick p: m is the fewest that reach Q together with p, δ is what was missing
    # before the last pick (Wolsey, 1982).
    features = _features(12, seed)
    distances = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    coverage = 0.75
    picks = list(lcmat.select(Signals(features=features), "facility-location", coverage=coverage, seed=seed))
    first = picks[0]
    start = cover_loss(distances, [first])

    def missing(chosen: list[int]) -> float:
        return coverage * start - (start - cover_loss(distances, [first, *chosen]))

    others = [j for j in range(12) if j != first]
    fewest = next(m for m in range(1, 12) if min(missing(list(c)) for c in combinations(others, m)) <= 0)
    before_the_last = missing(picks[1:-1])
    assert before_the_last > 0
    assert len(picks) - 1 <= 1 + fewest * math.log(coverage * start / before_the_last) + 1e-9


@pytest.mark.parametrize("method", ["facility-location", "graph-cut"])  # log-determinant's first picks tie
def test_features_alone_suffice_and_their_order_does_not_matter(method: str) -> None:
    features = _features(40)
    shuffle = torch.randperm(40, generator=_generator())
    one = set(lcmat.select(Signals(features=features), method, count=10))
    other = set(shuffle[lcmat.select(Signals(features=features[shuffle]), method, count=10).indices].tolist())
    assert one == other


@pytest.mark.parametrize("method", ["graph-cut", "log-determinant"])
def test_the_length_of_a_feature_vector_does_not_matter(method: str) -> None:
    features = _features(40)
    lengths = 10 ** torch.linspace(-25, 25, 40, dtype=torch.float64)[:, None]
    found = lcmat.select(Signals(features=lengths * features), method, count=10)
    assert list(found) == list(lcmat.select(Signals(features=features), method, count=10))
    zeros = Signals(features=torch.cat([features, torch.zeros(3, 5, dtype=torch.float64)]))
    gains = lcmat.select(zeros, method, count=43).gains
    assert gains is not None
    assert torch.isfinite(gains).all()


@pytest.mark.parametrize("method", METHODS)
def test_single_precision_has_the_gains_of_double(method: str) -> None:
    features = _features(300)
    double = lcmat.select(Signals(features=features), method, count=60).gains
    single = lcmat.select(Signals(features=features.float()), method, count=60).gains
    assert double is not None
    assert single is not None
    torch.testing.assert_close(single, double, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_given_samples_come_first(method: str) -> None:
    signals = Signals(features=_features(30))
    function = {"graph-cut": graph_cut, "log-determinant": log_determinant}.get(method)
    given = torch.tensor([9, 2])
    if function is None:
        picks = facility_location_of_features([signals], 6, generator=_generator(), memory=10**8, given=given)
    else:
        picks = function([signals], 6, generator=_generator(), given=given)
    assert picks.order[:2].tolist() == [9, 2]
    assert len(set(picks.order.tolist())) == 6


def test_bad_options_are_refused() -> None:
    signals = Signals(features=_features(9))
    for trade in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="trade of 0 or more"):
            lcmat.select(signals, "graph-cut", count=3, trade=trade)
    for ridge in (0.0, float("inf")):
        with pytest.raises(ValueError, match="ridge above 0"):
            lcmat.select(signals, "log-determinant", count=3, ridge=ridge)


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS)
def test_a_gpu_picks_what_a_processor_picks(method: str) -> None:
    signals = Signals(features=_features(200))
    there, here = (lcmat.select(part, method, count=30) for part in (signals.to("cuda"), signals))
    assert list(there) == list(here)

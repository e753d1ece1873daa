import math
from itertools import combinations

import pytest
import torch
from torch import Tensor

from lcmat.selection import greedy as module
from lcmat.selection.differences import direct_distances
from lcmat.selection.distances import Euclidean, Streamed, from_matrix, measure
from lcmat.selection.farthest import farthest_first
from lcmat.selection.greedy import cluster_sizes, facility_location
from lcmat.selection.ties import Ties
from lcmat.types import Picks
from reference import best_cover_loss, cover_loss, lcmat_distances, made_up_signals, plain_greedy


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _ties(n: int) -> Ties:
    return Ties(n, _generator(), torch.device("cpu"))


def _points(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, 5, generator=_generator(seed), dtype=dtype)


def _matrix(n: int, seed: int = 0) -> Tensor:
    return Euclidean(_points(n, seed)).block(slice(None), slice(None))


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("n", [1, 2, 9, 60])
def test_gains_and_objective_are_those_of_the_blackboard(n: int, lazy: bool) -> None:
    matrix = _matrix(n)
    count = max(1, n // 2)
    truth, gains = plain_greedy(matrix, count)
    picks = facility_location(from_matrix(matrix), count, generator=_generator(), lazy=lazy)
    assert cover_loss(matrix, picks.order.tolist()) == pytest.approx(cover_loss(matrix, truth), rel=1e-9)
    assert picks.gains is not None
    torch.testing.assert_close(picks.gains, torch.tensor(gains, dtype=torch.float64), rtol=1e-9, atol=1e-9)


class _Grid:
    """Whole-numbered distances of points on a grid: every sum is exact and ties abound, so only the rule decides."""

    def __init__(self, n: int, device: str = "cpu") -> None:
        self.n = n
        self.points = torch.randint(0, 40, (n, 3), generator=_generator()).float().to(device)

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        return direct_distances(self.points[rows], self.points[columns], power=1)


def test_lazy_updated_cached_and_streamed_pick_the_same() -> None:
    truth, _ = plain_greedy(_Grid(150).block(slice(None), slice(None)), 5)
    orders = [
        facility_location(measure(_Grid(150), memory=memory), 140, generator=_generator(), lazy=lazy).order.tolist()
        for memory in (10**8, 0)
        for lazy in (True, False)
    ]
    assert orders[0] == orders[1] == orders[2] == orders[3]
    assert cover_loss(_Grid(150).block(slice(None), slice(None)), orders[0][:5]) == cover_loss(
        _Grid(150).block(slice(None), slice(None)), truth
    )


def test_greedy_is_within_its_bound_of_the_best() -> None:
    for seed in range(10):
        matrix = _matrix(9, seed)
        picks = facility_location(from_matrix(matrix), 3, generator=_generator())
        constant = 9 * float(matrix.max())
        best = constant - best_cover_loss(matrix, 3)
        assert picks.gains is not None
        assert best * (1 - 1 / math.e) <= float(picks.gains.sum()) <= best + 1e-9


def test_gains_never_grow_and_sum_to_the_objective() -> None:
    matrix = _matrix(80)
    picks = facility_location(from_matrix(matrix), 80, generator=_generator())
    assert picks.gains is not None
    assert (picks.gains.diff() <= 1e-9).all()
    assert float(picks.gains.sum()) == pytest.approx(80 * float(matrix.max()))  # everything picked: L is 0


def test_single_precision_reaches_the_objective_of_double() -> None:
    signals, _ = made_up_signals(n=400, classes=10, d=32)
    truth = lcmat_distances(signals, rho=0.1, subdimensions=100)
    exact, _ = plain_greedy(truth, 40)
    picks = facility_location(from_matrix(truth.float()), 40, generator=_generator()).order.tolist()
    constant = 400 * float(truth.max())
    assert constant - cover_loss(truth, picks) == pytest.approx(constant - cover_loss(truth, exact), rel=1e-6)


def test_a_prefix_is_the_shorter_run() -> None:
    distances = from_matrix(_matrix(100))
    long = facility_location(distances, 30, generator=_generator())
    short = facility_location(distances, 11, generator=_generator())
    assert long.order[:11].equal(short.order)
    assert long.weigh is not None
    assert short.weigh is not None
    assert long.weigh(11).equal(short.weigh(11))


def test_weights_count_the_nearest_samples() -> None:
    matrix = _matrix(50)
    order = torch.tensor([4, 30, 17])
    owner = matrix[order].argmin(0)
    assert cluster_sizes(from_matrix(matrix), order).tolist() == [float((owner == j).sum()) for j in range(3)]
    many = torch.arange(50).flip(0)
    assert cluster_sizes(from_matrix(_matrix(200)), torch.arange(150)).sum() == 200
    assert cluster_sizes(from_matrix(matrix), many).tolist() == [1.0] * 50


def test_coverage_is_measured_from_the_first_pick_and_stops_at_the_fewest() -> None:
    matrix = _matrix(60)
    distances = from_matrix(matrix)
    for lazy in (True, False):
        picks = facility_location(distances, 60, generator=_generator(), coverage=0.8, lazy=lazy)
        order = picks.order.tolist()
        first = cover_loss(matrix, order[:1])
        assert 1 - cover_loss(matrix, order) / first >= 0.8
        assert 1 - cover_loss(matrix, order[:-1]) / first < 0.8
        assert picks.coverage is not None
        assert float(picks.coverage[0]) == 0.0


def test_equal_samples_are_covered_by_one_pick_and_still_counted() -> None:
    distances = from_matrix(torch.zeros(6, 6))
    assert len(facility_location(distances, 4, generator=_generator()).order) == 4
    assert len(facility_location(distances, 6, generator=_generator(), coverage=0.9).order) == 1


def test_ties_fall_by_a_seeded_permutation_not_by_position() -> None:
    distances = from_matrix(1 - torch.eye(200))
    firsts = [facility_location(distances, 3, generator=_generator(seed)).order.tolist() for seed in range(5)]
    again = facility_location(distances, 3, generator=_generator(0)).order.tolist()
    assert firsts[0] == again
    assert len({tuple(picks) for picks in firsts}) == 5
    assert firsts[0] == facility_location(distances, 3, generator=_generator(0), lazy=False).order.tolist()


def test_the_number_of_threads_is_given_back() -> None:
    before = torch.get_num_threads()
    facility_location(from_matrix(_matrix(20)), 5, generator=_generator())
    assert torch.get_num_threads() == before


def test_too_many_picks_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 5 of 5 samples, got 6"):
        facility_location(from_matrix(_matrix(5)), 6, generator=_generator())


def test_farthest_first_keeps_one_running_minimum_and_its_bound() -> None:
    for seed in range(5):
        matrix = _matrix(9, seed)
        picks = farthest_first(from_matrix(matrix), 3, first=0, ties=_ties(9))
        radius = float(matrix[picks.order].min(0).values.max())
        best = min(float(matrix[list(s)].min(0).values.max()) for s in combinations(range(9), 3))
        assert radius <= 2 * best + 1e-12
        assert picks.gains is not None
        assert picks.gains[1:].tolist() == pytest.approx(
            [float(matrix[picks.order[:t], picks.order[t]].min()) for t in (1, 2)]
        )


def test_farthest_first_takes_every_duplicate_in_the_end() -> None:
    picks: Picks = farthest_first(from_matrix(torch.zeros(5, 5)), 5, first=2, ties=_ties(5))
    assert sorted(picks.order.tolist()) == [0, 1, 2, 3, 4]


class _Counting:
    """Distances that count how many rows were asked for."""

    def __init__(self, inner: Streamed) -> None:
        self.inner, self.asked = inner, 0
        self.n, self.largest, self.sums = inner.n, inner.largest, inner.sums

    def of(self, candidates: Tensor) -> Tensor:
        self.asked += len(candidates)
        return self.inner.of(candidates)


@pytest.mark.parametrize("lazy", [True, False])
def test_far_fewer_distances_are_looked_at_than_all_at_every_pick(lazy: bool) -> None:
    inner = measure(Euclidean(_points(400)), memory=0)
    assert isinstance(inner, Streamed)
    counting = _Counting(inner)
    facility_location(counting, 60, generator=_generator(), lazy=lazy)
    assert counting.asked < 400 * 60 / 5


def test_gains_kept_up_to_date_do_not_drift_in_single_precision() -> None:
    distances = measure(Euclidean(_points(500, dtype=torch.float32)), memory=10**8)
    picks = facility_location(distances, 400, generator=_generator(), lazy=False)
    loss = [cover_loss(distances.of(torch.arange(500)).double(), picks.order[:k].tolist()) for k in (399, 400)]
    assert picks.gains is not None
    assert (picks.gains.diff() <= 1e-9).all()
    assert float(picks.gains[-1]) == pytest.approx(loss[0] - loss[1], rel=1e-9)


@pytest.mark.parametrize("lazy", [True, False])
def test_given_samples_come_first_and_count(lazy: bool) -> None:
    distances = measure(_Grid(80), memory=10**8)
    free = facility_location(distances, 30, generator=_generator()).order
    picks = facility_location(distances, 30, generator=_generator(), given=free[:12], lazy=lazy)
    assert picks.order.equal(free)


def test_updates_in_small_blocks_and_rounds_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    distances = measure(_Grid(60), memory=10**8)
    whole = facility_location(distances, 60, generator=_generator(), coverage=0.8, lazy=False)
    monkeypatch.setattr(module, "BLOCK", 100)
    monkeypatch.setattr(module, "ROUND", 3)
    parts = facility_location(distances, 60, generator=_generator(), coverage=0.8, lazy=False)
    assert parts.order.equal(whole.order)


@pytest.mark.gpu
def test_a_gpu_picks_what_the_cpu_picks() -> None:
    signals, _ = made_up_signals(n=700, classes=10, d=32)
    assert signals.features is not None
    for power in (1, 2):
        parts = direct_distances(signals.features.cuda(), signals.features[:90].cuda(), power=power)
        torch.testing.assert_close(parts.cpu(), direct_distances(signals.features, signals.features[:90], power=power))
    orders = [
        facility_location(measure(_Grid(700, device), memory=memory), 300, generator=_generator()).order.cpu()
        for device in ("cpu", "cuda")
        for memory in (10**8, 0)
    ]
    assert all(order.equal(orders[0]) for order in orders)

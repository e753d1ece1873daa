"""Every gain computed anew for every pick, against the lazy way; the kernels against plain torch."""

import pytest
import torch
from torch import Tensor

from lcmat.selection import greedy, sweeps
from lcmat.selection.distances import Cached, Euclidean, measure
from lcmat.selection.greedy import facility_location
from lcmat.selection.lazy import pick_lazily
from lcmat.selection.sweeps import Sweep, pick_by_sweeps, plain_step, sweeping_kernels
from lcmat.types import Picks


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _cached(points: Tensor) -> Cached:
    found = measure(Euclidean(points), memory=10**9)
    assert isinstance(found, Cached)
    return found


def _grid(n: int) -> Cached:
    """Whole-numbered distances: every sum is exact and ties abound, so that only the rule decides."""
    points = torch.randint(0, 40, (n, 3), generator=_generator()).float()
    matrix = torch.cdist(points, points, p=1)
    return Cached(matrix, float(matrix.max()), matrix.sum(1, dtype=torch.float64))


def _never(_: list[float]) -> bool:
    return False


@pytest.mark.parametrize("start", [[], [7, 3]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sweeps_pick_what_the_lazy_way_picks(start: list[int], dtype: torch.dtype) -> None:
    permutation = torch.randperm(150, generator=_generator())
    for distances in (_grid(150), _cached(torch.randn(150, 5, generator=_generator(1), dtype=dtype))):
        found = pick_by_sweeps(distances, 150, permutation, start=start, enough=_never)
        truth = pick_lazily(distances, 150, permutation, start=start, enough=_never)
        assert found[0][:100].equal(truth[0][:100])
        assert found[0].sort().values.equal(torch.arange(150))
        torch.testing.assert_close(found[1], truth[1])


def test_equal_samples_are_all_taken_in_the_end_and_in_the_order_of_the_permutation() -> None:
    permutation = torch.randperm(9, generator=_generator())
    order, totals = pick_by_sweeps(
        Cached(torch.zeros(9, 9), 0.0, torch.zeros(9)), 9, permutation, start=[], enough=_never
    )
    assert order.equal(permutation)
    assert totals.tolist() == [0.0] * 9


def test_a_run_of_sweeps_ends_once_the_picks_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "ROUND", 4)
    order, totals = pick_by_sweeps(
        _grid(60), 60, torch.arange(60), start=[], enough=lambda totals: totals[-1] < totals[0] / 2
    )
    assert len(order) == len(totals) < 60
    assert len(order) % 4 == 0
    assert float(totals[-1]) < float(totals[0]) / 2 <= float(totals[-5])


class _Kernels:
    """In the place of the kernels: plain torch."""

    step = staticmethod(plain_step)


@pytest.mark.parametrize("coverage", [None, 0.8])
def test_facility_location_sweeps_where_there_are_kernels(
    coverage: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    distances = _cached(torch.randn(90, 5, generator=_generator(), dtype=torch.float64))

    def run(*, lazy: bool) -> Picks:
        return facility_location(
            distances, 70, generator=_generator(), coverage=coverage, given=torch.tensor([5]), lazy=lazy
        )

    truth = run(lazy=True)
    monkeypatch.setattr(greedy, "_kernels_for", lambda _: _Kernels)
    monkeypatch.setattr(greedy, "_pick_by_updates", None)
    found = run(lazy=False)
    assert found.order.equal(truth.order)
    assert found.gains is not None
    assert truth.gains is not None
    torch.testing.assert_close(found.gains, truth.gains)


def test_kernels_are_tried_against_plain_torch_before_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(run: Sweep, t: int) -> None:
        plain_step(run, t)
        run.order[t] = run.order[t - 1]

    sweeps._compare(plain_step, torch.device("cpu"))
    with pytest.raises(AssertionError, match="not close"):
        sweeps._compare(wrong, torch.device("cpu"))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 513, 3001])
def test_kernels_pick_what_plain_torch_picks(n: int, dtype: torch.dtype) -> None:
    kernels = sweeping_kernels(torch.device("cuda", torch.cuda.current_device()))
    assert kernels is not None
    distances = _cached(torch.randn(n, 5, generator=_generator(), dtype=dtype).cuda())
    permutation = torch.randperm(n, generator=_generator()).cuda()
    count = min(n, 200)
    found = pick_by_sweeps(distances, count, permutation, start=[], enough=_never, step=kernels.step)
    again = pick_by_sweeps(distances, count, permutation, start=[], enough=_never, step=kernels.step)
    truth = pick_by_sweeps(distances, count, permutation, start=[], enough=_never)
    assert found[0].equal(truth[0])
    assert found[0].equal(again[0])
    torch.testing.assert_close(found[1], truth[1], rtol=1e-12, atol=1e-9)
    assert found[1].equal(again[1])

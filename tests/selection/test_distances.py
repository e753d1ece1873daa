from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lcmat.linear_head import factors, hessian_columns, hessian_variances, top_coordinates
from lcmat.selection import differences
from lcmat.selection import distances as module
from lcmat.selection.distances import (
    Cached,
    Euclidean,
    Gradients,
    Pairs,
    Streamed,
    from_matrix,
    measure,
    measure_mean_of_points,
)
from lcmat.types import Signals
from reference import lcmat_distances, made_up_signals


def _pairs(signals: Signals, rho: float = 0.1, kept: int | None = 8) -> Gradients:
    head = factors(signals)
    return Gradients(head, hessian_columns(head, top_coordinates(hessian_variances(head), kept)).mul_(rho / 2))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kept", [3, None])
def test_gradients_and_curvature_against_the_built_matrices(bias: bool, kept: int | None) -> None:
    signals, _ = made_up_signals(bias=bias)
    truth = lcmat_distances(signals, rho=0.3, subdimensions=kept)
    torch.testing.assert_close(_pairs(signals, 0.3, kept).block(slice(None), slice(None)), truth)
    plain = lcmat_distances(signals, rho=0.0, subdimensions=kept)
    torch.testing.assert_close(Gradients(factors(signals)).block(slice(None), slice(None)), plain)


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_single_precision_keeps_small_distances(offset: float) -> None:
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(30, 16, generator=generator, dtype=torch.float64)
    close = base + 1e-3 * torch.randn(30, 16, generator=generator, dtype=torch.float64)
    features = (torch.cat([base, close]) + offset).float()
    truth = torch.cdist(features.double(), features.double(), compute_mode="donot_use_mm_for_euclid_dist")
    found = Euclidean(features).block(slice(None), slice(None))
    torch.testing.assert_close(found.double(), truth, rtol=1e-4, atol=1e-7)


def test_duplicates_and_self_are_at_exactly_zero() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(20, 16, generator=generator)[torch.arange(40) % 20]
    logits = torch.randn(20, 3, generator=generator)[torch.arange(40) % 20]
    signals = Signals(features=features, logits=logits, labels=torch.arange(40) % 20 % 3)
    pairs: list[Pairs] = [Euclidean(features), _pairs(signals), Gradients(factors(signals))]
    same = (torch.arange(40)[:, None] - torch.arange(40)) % 20 == 0
    for each in pairs:
        assert each.block(slice(None), slice(None))[same].max() == 0


def test_a_group_of_equal_samples_has_no_distance_and_takes_no_pair_by_pair_work() -> None:
    signals = Signals(
        features=torch.ones(1500, 8), logits=torch.zeros(1500, 3), labels=torch.zeros(1500, dtype=torch.int64)
    )
    found = measure(_pairs(signals), memory=10**8)
    assert found.largest == 0
    assert found.sums.abs().max() == 0


@pytest.mark.parametrize("n", [1, 7, 100, 1300])
def test_cached_is_streamed(n: int) -> None:
    signals, _ = made_up_signals(n=n)
    cached, streamed = measure(_pairs(signals), memory=10**9), measure(_pairs(signals), memory=0)
    assert isinstance(cached, Cached)
    assert isinstance(streamed, Streamed)
    some = torch.tensor([0, n // 2, n - 1]).unique()
    torch.testing.assert_close(cached.of(some), streamed.of(some))
    torch.testing.assert_close(cached.sums, streamed.sums)
    assert cached.largest == pytest.approx(streamed.largest)
    torch.testing.assert_close(cached.sums, cached.matrix.sum(1))
    torch.testing.assert_close(cached.matrix, cached.matrix.T)


def test_memory_decides_at_the_size_of_the_matrix() -> None:
    signals, _ = made_up_signals(n=50)
    assert isinstance(measure(_pairs(signals), memory=50 * 50 * 8), Cached)
    assert isinstance(measure(_pairs(signals), memory=50 * 50 * 8 - 1), Streamed)


def _mean_of_points(points: list[Signals]) -> Tensor:
    total = torch.zeros(points[0].n, points[0].n, dtype=torch.float64)
    for point in points:
        one = lcmat_distances(point, rho=0.1, subdimensions=8)
        total += one / one.mean()
    return total


@pytest.mark.parametrize("memory", [10**9, 0])
def test_points_are_divided_by_their_means_and_summed(memory: int) -> None:
    points = [made_up_signals(seed=seed)[0] for seed in (1, 2, 3)]
    labels = points[0].labels
    points = [Signals(features=p.features, logits=p.logits, labels=labels) for p in points]
    found = measure_mean_of_points([_pairs(point) for point in points], memory=memory)
    truth = _mean_of_points(points)
    torch.testing.assert_close(found.of(torch.arange(40)), truth)
    assert found.largest == pytest.approx(float(truth.max()))


def test_the_scale_of_the_features_changes_no_order() -> None:
    # A fixed constant in the place of the largest distance would drown or lift all of them.
    signals, _ = made_up_signals()
    assert signals.features is not None
    assert from_matrix(Euclidean(signals.features).block(slice(None), slice(None))).largest == pytest.approx(
        from_matrix(Euclidean(signals.features * 4).block(slice(None), slice(None))).largest / 4
    )


def test_a_matrix_must_be_square() -> None:
    with pytest.raises(ValueError, match=r"square matrix of distances, got shape \[2, 3\]"):
        from_matrix(torch.zeros(2, 3))


def test_tiles_cover_every_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TILE", 3)
    signals, _ = made_up_signals(n=10)
    truth = lcmat_distances(signals, rho=0.1, subdimensions=8)
    torch.testing.assert_close(measure(_pairs(signals), memory=10**6).of(torch.arange(10)), truth)


@pytest.mark.parametrize("power", [1, 2])
def test_differences_taken_at_once_are_those_of_single_pairs(
    power: Literal[1, 2], monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = torch.randn(7, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    truth = torch.tensor(
        [[sum(abs(x - y).item() ** power for x, y in zip(a, b, strict=True)) for b in right] for a in left]
    )
    monkeypatch.setattr(differences, "BLOCK", 50)
    torch.testing.assert_close(differences.direct_distances(left, right, power=power).float(), truth)
    torch.testing.assert_close(differences._by_broadcasting(left, right, power=power).float(), truth)


class _Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor had that any operation made."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and not func.is_view and "expand" not in func.name():
            self.numbers = max(self.numbers, made.numel())
        return made


def test_curvature_is_never_spread_out_over_pairs_and_coordinates() -> None:
    # rows × columns × K numbers, 10 GB for each class of CIFAR-10, is what a plain broadcast takes.
    signals, _ = made_up_signals(n=200, classes=4, d=30)
    pairs = _pairs(signals, kept=100)
    with _Largest() as largest:
        measure(pairs, memory=10**9)
    assert largest.numbers == 200 * 200


def test_differences_taken_at_once_stay_within_their_block(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = torch.randn(40, 16), torch.randn(30, 16)
    monkeypatch.setattr(differences, "BLOCK", 5 * 30 * 16)
    with _Largest() as largest:
        differences._by_broadcasting(left, right, power=1)
    assert largest.numbers == 5 * 30 * 16


class _Kernels:
    """In the place of the kernel: plain torch, wrong where asked for."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def distances(self, left: Tensor, right: Tensor, *, power: Literal[1, 2]) -> Tensor:
        return differences._by_broadcasting(left, right, power=power) * self.factor


def test_the_kernel_is_tried_against_plain_torch_before_it_is_used() -> None:
    differences._compare(_Kernels(), torch.device("cpu"))
    with pytest.raises(AssertionError, match="not close"):
        differences._compare(_Kernels(1.01), torch.device("cpu"))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("power", [1, 2])
def test_the_kernel_gives_what_plain_torch_gives(power: Literal[1, 2], dtype: torch.dtype) -> None:
    assert differences._kernels(torch.device("cuda", torch.cuda.current_device())) is not None
    for rows, columns, depth in ((9, 1, 1), (700, 65, 10), (65, 700, 100)):
        left, right = torch.randn(rows, depth, dtype=dtype), torch.randn(columns, depth, dtype=dtype)
        found = differences.direct_distances(left.cuda(), right.cuda(), power=power).cpu()
        torch.testing.assert_close(found, differences.direct_distances(left, right, power=power))


@pytest.mark.gpu
def test_the_kernel_takes_more_columns_than_the_second_axis_of_a_grid_has_programs() -> None:
    columns = 65536 * 64 + 1
    left, right = torch.arange(9.0, device="cuda")[:, None], torch.arange(columns, device="cuda").float()[:, None]
    found = differences.direct_distances(left, right, power=1)
    some = [0, 1, columns - 2, columns - 1]
    assert found[:, some].equal((left - right[some].T).abs())

"""Lanczos' method against `torch.linalg.eigvalsh`."""

import pytest
import torch

from landscape.cases import Quadratic, symmetric
from landscape.test_products import head_gap
from lcmat.landscape.eigen import Spectrum, lanczos, solve_whole, spectrum_of
from lcmat.landscape.head_gap import HeadGap

SPECTRA = {
    "both signs": torch.cat([torch.linspace(-1, 1, 60), torch.tensor([4.0, 3.0, 2.5, -6.0, -5.0, -2.0])]),
    "clustered": torch.cat([torch.linspace(-0.1, 0.1, 60), torch.tensor([5.0, 4.999, 4.998, -3.0, -2.9995])]),
    "negative": -torch.linspace(0.5, 9, 40),
    "small": torch.tensor([1.0, -2.0]),
    "low rank": torch.cat([torch.zeros(40), torch.tensor([5.0, 1.0, -2.0])]),
    "repeated": torch.tensor([2.0] * 15 + [-1.0] * 10),
    "one": torch.tensor([-3.0]),
}


def find(matrix: torch.Tensor, dtype: torch.dtype = torch.float64, **options: float) -> Spectrum:
    matrix = matrix.to(dtype)
    return lanczos(lambda v: matrix @ v, len(matrix), dtype=dtype, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SPECTRA)
def test_lanczos_finds_both_ends(name: str) -> None:
    matrix = symmetric(SPECTRA[name])
    truth = torch.linalg.eigvalsh(matrix)
    found = find(matrix, tolerance=1e-10, count=2)
    count = min(2, len(truth))
    assert found.converged
    assert found.largest == pytest.approx(truth.flip(0)[:count].tolist(), abs=1e-8)
    assert found.smallest == pytest.approx(truth[:count].tolist(), abs=1e-8)
    assert found.magnitude == pytest.approx(float(truth.abs().max()), abs=1e-8)


def test_the_residual_bounds_the_error_and_is_that_of_the_vector() -> None:
    matrix = symmetric(SPECTRA["both signs"])
    truth = torch.linalg.eigvalsh(matrix)
    found = find(matrix, most=12, count=1)
    vectors = found.vectors
    ends = ((found.largest[0], found.largest_residuals[0]), (found.smallest[0], found.smallest_residuals[0]))
    for (value, residual), vector in zip(ends, vectors, strict=True):
        assert residual > 1e-6  # it has not converged
        assert float((matrix @ vector - value * vector).norm()) == pytest.approx(residual, rel=1e-6)
        assert float((truth - value).abs().min()) <= residual
    assert not find(matrix, most=4, count=1).converged
    assert found.residual == found.smallest_residuals[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_residual_is_told_that_rounding_hides(dtype: torch.dtype) -> None:
    matrix = symmetric(SPECTRA["low rank"])
    found = find(matrix, dtype, most=30, count=1, tolerance=0.0)
    for value, residual, vector in zip(
        (found.largest[0], found.smallest[0]), (found.largest_residuals[0], found.smallest_residuals[0]), found.vectors,
        strict=True,
    ):  # fmt: skip
        true = float((matrix @ vector.double() - value * vector.double()).norm())
        assert torch.finfo(dtype).eps * 5.0 <= residual * (1 + 1e-6)
        assert true <= 10 * residual


def test_single_precision_keeps_six_digits() -> None:
    found = find(symmetric(SPECTRA["both signs"]), torch.float32, tolerance=1e-5)
    assert found.largest == pytest.approx([4.0, 3.0, 2.5], rel=2e-6)
    assert found.smallest == pytest.approx([-6.0, -5.0, -2.0], rel=2e-6)


def test_no_curvature_at_all_gives_zero() -> None:
    found = find(torch.zeros(30, 30))
    assert found.magnitude == found.residual == 0
    assert found.converged


def test_the_spectrum_does_not_hang_on_the_seed() -> None:
    matrix = symmetric(SPECTRA["clustered"])
    a, b = (find(matrix, tolerance=1e-9, seed=seed).magnitude for seed in (0, 1))
    assert a == pytest.approx(b, abs=1e-9)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    matrix = symmetric(SPECTRA["both signs"])
    found = lanczos(
        lambda v: matrix @ v, 66, dtype=torch.float64, progress=lambda done, most: told.append((done, most))
    )
    assert told == [(step, 66) for step in range(1, found.products + 1)]


def test_a_small_head_is_solved_exactly_and_a_large_one_by_lanczos(monkeypatch: pytest.MonkeyPatch) -> None:
    gap, truth = head_gap()
    values = torch.linalg.eigvalsh(truth)
    exact = spectrum_of(gap)
    assert exact.products == 0
    monkeypatch.setattr("lcmat.landscape.eigen.EXACT_SIZE", 1)
    iterated = spectrum_of(gap, tolerance=1e-9)
    assert iterated.products > 0
    for found in (exact, iterated):
        assert found.largest == pytest.approx(values.flip(0)[:3].tolist(), abs=1e-9)
        assert found.smallest == pytest.approx(values[:3].tolist(), abs=1e-9)


def test_lanczos_serves_any_gap() -> None:
    matrix = symmetric(SPECTRA["negative"])
    found = spectrum_of(Quadratic(matrix, torch.zeros(40, dtype=torch.float64), 0.0), tolerance=1e-9)
    assert found.smallest == pytest.approx(solve_whole(matrix).smallest, abs=1e-8)
    assert not isinstance(found, HeadGap)

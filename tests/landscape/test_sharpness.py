"""The sharpness of a quadratic against its closed form: two trust-region problems."""

import pytest
import torch
from torch import Tensor

from landscape.cases import Quadratic, symmetric
from lcmat.landscape.eigen import solve_whole
from lcmat.landscape.sharpness import measure_sharpness


def highest(hessian: Tensor, slope: Tensor, rho: float) -> float:
    """The maximum of gᵀε + ½ εᵀHε over the ball, from the secular equation ‖(μ − H)⁻¹ g‖ = ρ."""
    values, vectors = torch.linalg.eigh(hessian)
    along = vectors.T @ slope
    place = torch.where(along == 0, 0.0, -along / values)
    if values[-1] >= 0 or place.norm() > rho:
        low = max(0.0, float(values[-1]))
        high = low + float(slope.norm()) / rho + 1
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if (along / (middle - values)).norm() > rho else (low, middle)
        place = torch.where(along == 0, 0.0, along / (high - values))
        # The hard case: what is missing to the surface is added along the leading eigenvector.
        missing = max(0.0, rho**2 - float(place @ place)) ** 0.5
        place[-1] += missing if along[-1] >= 0 else -missing
    return float(along @ place + (values * place.square()).sum() / 2)


def true_sharpness(gap: Quadratic, rho: float) -> float:
    """|h| is largest where h or where −h is."""
    up, down = highest(gap.hessian, gap.slope, rho), highest(-gap.hessian, -gap.slope, rho)
    return (max(gap.constant + up, -gap.constant + down) - abs(gap.constant)) / rho


SPECTRA = {
    "indefinite": torch.linspace(-3, 2, 12),
    "positive": torch.linspace(0.5, 4, 12),
    "negative": -torch.linspace(0.5, 4, 12),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("constant", [0.0, 0.4, -0.4])
@pytest.mark.parametrize("steepness", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("rho", [0.1, 2.0])
def test_a_quadratic_s_sharpness(name: str, constant: float, steepness: float, rho: float) -> None:
    hessian = symmetric(SPECTRA[name])
    gap = Quadratic(hessian, steepness * torch.linspace(-1, 1, 12, dtype=torch.float64), constant)
    truth = true_sharpness(gap, rho)
    found = measure_sharpness(gap, rho, starts=[solve_whole(hessian).vectors], steps=100)
    assert found.value <= truth + 1e-9  # a lower bound
    assert found.value == pytest.approx(truth, rel=1e-3, abs=1e-9)
    assert float(found.best.norm(dim=1).max()) <= rho * (1 + 1e-6)


def test_the_peak_may_lie_inside_the_ball() -> None:
    gap = Quadratic(-torch.eye(3, dtype=torch.float64), torch.tensor([0.5, 0.0, 0.0], dtype=torch.float64), 1.0)
    found = measure_sharpness(gap, 0.6, steps=60)
    assert 0.6 * found.value == pytest.approx(0.125, rel=1e-3)


def test_with_h_of_minus_one_the_bound_is_right_only_with_the_largest_magnitude() -> None:
    gap = Quadratic(-torch.eye(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64), 0.0)
    found = measure_sharpness(gap, 0.5)
    spectrum = solve_whole(gap.hessian)
    assert found.value == pytest.approx(0.25)
    assert 0.5 / 2 * spectrum.largest[0] < 0 < found.value <= 0.5 / 2 * spectrum.magnitude + 1e-12


def test_no_difference_has_no_sharpness() -> None:
    zero = torch.zeros(5, dtype=torch.float64)
    found = measure_sharpness(Quadratic(torch.zeros(5, 5, dtype=torch.float64), zero, 0.0), 0.1)
    assert found.value == 0


def test_a_radius_of_zero_is_refused() -> None:
    gap = Quadratic(torch.eye(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64), 0.0)
    with pytest.raises(ValueError, match="expected rho above 0, got 0"):
        measure_sharpness(gap, 0)

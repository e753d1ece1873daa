"""The growing regression against scipy's non-negative least squares."""

import numpy as np
import pytest
import torch
from torch import Tensor

from lcmat.selection.nonnegative import GrowingRegression

optimize = pytest.importorskip("scipy.optimize", reason="needs scipy, which the demo extra brings")


def _problem(samples: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(samples, width, generator=generator, dtype=torch.float64)
    return vectors, vectors.sum(0) + torch.randn(width, generator=generator, dtype=torch.float64)


def _grow(vectors: Tensor, target: Tensor, penalty: float) -> list[GrowingRegression]:
    regression = GrowingRegression(len(vectors), penalty)
    for t, vector in enumerate(vectors):
        regression.add(vectors[: t + 1] @ vector, float(vector @ target))
    return [regression]


def _nnls(vectors: Tensor, target: Tensor, penalty: float) -> np.ndarray:
    """The same by scipy: the penalty is a row √λ for each sample."""
    k = len(vectors)
    design = np.vstack([vectors.numpy().T, np.sqrt(penalty) * np.eye(k)])
    solution: np.ndarray = optimize.nnls(design, np.concatenate([target.numpy(), np.zeros(k)]), maxiter=50 * k)[0]
    return solution


@pytest.mark.parametrize("penalty", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_those_of_scipy_after_every_sample(penalty: float, seed: int) -> None:
    vectors, target = _problem(30, 40, seed)
    regression = GrowingRegression(30, penalty)
    left = 0
    for t, vector in enumerate(vectors):
        before = set(regression.support.tolist())
        regression.add(vectors[: t + 1] @ vector, float(vector @ target))
        left += len(before - set(regression.support.tolist()))
        expected = _nnls(vectors[: t + 1], target, penalty)
        np.testing.assert_allclose(regression.weights[: t + 1].numpy(), expected, rtol=1e-7, atol=1e-8)
    assert left > 0 or penalty > 1  # samples did leave again, so that the downdate is tested


def test_the_inverse_factor_is_that_of_the_support() -> None:
    vectors, target = _problem(60, 50, 3)
    (regression,) = _grow(vectors, target, 0.1)
    support = regression.support
    inverse = regression.inverse[: len(support), : len(support)]
    kernel = vectors[support] @ vectors[support].T + 0.1 * torch.eye(len(support), dtype=torch.float64)
    assert len(support) < 60
    identity = torch.eye(len(support), dtype=torch.float64)
    torch.testing.assert_close(inverse @ kernel @ inverse.T, identity, rtol=1e-10, atol=1e-10)
    assert inverse.equal(inverse.tril())
    assert float(inverse.diagonal().min()) > 0


def test_explained_is_how_far_the_objective_falls() -> None:
    vectors, target = _problem(20, 30, 1)
    (regression,) = _grow(vectors, target, 0.5)
    weights = regression.weights
    objective = (vectors.T @ weights - target).square().sum() + 0.5 * weights.square().sum()
    assert float(target.square().sum() - objective) == pytest.approx(regression.explained, rel=1e-9)


def test_copies_and_combinations_of_samples_are_no_trouble() -> None:
    vectors, target = _problem(8, 6, 0)  # more samples than dimensions, and no penalty
    vectors = torch.cat([vectors, vectors, vectors[:1] + vectors[1:2], torch.zeros(1, 6, dtype=torch.float64)])
    (regression,) = _grow(vectors, target, 0.0)
    residual = vectors.T @ regression.weights - target
    expected = vectors.numpy().T @ _nnls(vectors, target, 0.0) - target.numpy()
    assert float(residual.norm()) == pytest.approx(float(np.linalg.norm(expected)), abs=1e-8)
    assert float(regression.weights.min()) >= 0
    assert torch.isfinite(regression.weights).all()


def test_signed_weights_are_plain_ridge_regression() -> None:
    vectors, target = _problem(10, 20, 0)
    regression = GrowingRegression(10, 0.3, signed=True)
    for t, vector in enumerate(vectors):
        regression.add(vectors[: t + 1] @ vector, float(vector @ target))
    kernel = vectors @ vectors.T + 0.3 * torch.eye(10, dtype=torch.float64)
    torch.testing.assert_close(regression.weights, torch.linalg.solve(kernel, vectors @ target))


@pytest.mark.parametrize("penalty", [0.0, 1e-6])
def test_nearly_dependent_samples_reach_the_objective_of_scipy(penalty: float) -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.linalg.qr(torch.randn(n, 60, generator=generator, dtype=torch.float64))[0] for n in (60, 90))
    vectors = (left * torch.logspace(0, -8, 60, dtype=torch.float64)) @ right.T
    target = vectors.sum(0) + 0.1 * torch.randn(90, generator=generator, dtype=torch.float64)
    (regression,) = _grow(vectors, target, penalty)

    def objective(weights: Tensor) -> float:
        return float((vectors.T @ weights - target).square().sum() + penalty * weights.square().sum())

    expected = objective(torch.from_numpy(_nnls(vectors, target, penalty)))
    assert objective(regression.weights) == pytest.approx(expected, rel=1e-10)
    assert float(regression.weights.min()) >= 0

"""The theorem's terms, worked out by hand where that can be done."""

import math
from dataclasses import replace

import pytest
import torch

from landscape.cases import CPU, flat_parameters, mean_loss, tiny_pool
from lcmat.landscape.generalisation import Generalisation, complexity, generalise, noise_scale
from lcmat.landscape.samples import make_pool
from samples import vectors

ROWS = [0, 4, 5, 11, 22]


def found(rho: float = 0.1, draws: int = 4, highest: float = 0.5, n: int = 23) -> Generalisation:
    model, pool = tiny_pool(ROWS)
    test = make_pool(vectors(12, d=4, classes=3), {})
    return generalise(model, pool, test, "S", n=n, rho=rho, highest=highest, device=CPU, draws=draws)


def test_losses_norm_and_assumptions() -> None:
    model, pool = tiny_pool(ROWS)
    test = vectors(12, d=4, classes=3)
    flat = flat_parameters(model)
    part = found()
    train = float(mean_loss(model, flat, pool.data, torch.arange(23)))
    kept = float(mean_loss(model, flat, pool.data, torch.tensor(ROWS)))
    unseen = float(mean_loss(model, flat, test, torch.arange(12)))
    assert (part.training_loss, part.test_loss) == pytest.approx((train, unseen), abs=1e-9)
    assert part.norm == pytest.approx(float(flat.norm()))
    assert (part.k, part.n, part.in_range) == (43, 23, train <= unseen)
    assert (part.gap_train, part.gap_test) == pytest.approx((abs(train - kept), abs(unseen - kept)), abs=1e-9)
    assert part.corollary_applies == (part.gap_train <= part.gap_test)
    assert part.right_side == pytest.approx(0.5 + part.complexity)
    assert not part.bounded_loss
    assert part.vacuous


def test_the_ball_holds_the_noise_as_often_as_the_lemma_says() -> None:
    k, n, rho = 200, 400, 0.3
    sigma = noise_scale(rho, k, n)
    assert sigma * (math.sqrt(k) + math.sqrt(math.log(n))) == pytest.approx(rho)
    noise = sigma * torch.randn(5000, k, generator=torch.Generator().manual_seed(0))
    assert float((noise.norm(dim=1) <= rho).double().mean()) >= 1 - 1 / math.sqrt(n)


def test_the_square_root_is_the_formula() -> None:
    spread = 0.25 * 50 * math.log(1 + 9.0 / (50 * 0.04))
    truth = math.sqrt((spread + 0.25 + math.log(1000 / 0.05) + 2 * math.log(6 * 1000 + 3 * 50)) / 999)
    assert complexity(3.0, 50, 1000, 0.2, 0.05) == pytest.approx(truth, rel=1e-12)


def test_without_noise_the_expectation_is_the_gap_itself() -> None:
    part = found(rho=1e-9)
    assert part.expected.value == pytest.approx(part.gap_test, abs=1e-6)
    assert part.in_range_nearby == float(part.in_range)


def test_the_corollary_divides_by_rho() -> None:
    part = replace(found(), rho=0.5, highest=0.9, gap_train=0.4, complexity=2.0, gap_test=0.1)
    part = replace(part, expected=replace(part.expected, value=0.35))
    assert part.corollary_left == pytest.approx(0.5)
    assert part.corollary_right == pytest.approx(5.0)


def test_the_trivial_range_is_told() -> None:
    assert not found(n=23).restrained  # the norm is far above σ² (exp(4n/k) − 1)
    assert found(n=10**6).restrained


def test_too_few_samples_or_draws_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 samples"):
        found(n=1)
    with pytest.raises(ValueError, match="at least 2 draws"):
        found(draws=1)

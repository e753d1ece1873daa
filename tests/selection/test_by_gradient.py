"""Craig and AdaCore against gradients and Hessians by automatic differentiation."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import lcmat
from lcmat.selection.by_gradient import adacore, craig
from lcmat.types import Picks, Signals
from reference import cover_loss, hessian_diagonals, made_up_signals, per_sample_gradients, plain_greedy


def _call(method: Callable[..., Picks], signals: Signals, count: int, **options: float) -> Picks:
    return method([signals], count, generator=torch.Generator().manual_seed(0), memory=10**8, **options)


def _distances(vectors: Tensor) -> Tensor:
    return torch.cdist(vectors, vectors, compute_mode="donot_use_mm_for_euclid_dist")


def _same_objective(picks: Picks, truth: Tensor) -> None:
    expected, gains = plain_greedy(truth, len(picks.order))
    found = cover_loss(truth, picks.order.tolist())
    assert found == pytest.approx(cover_loss(truth, expected), rel=1e-9)
    assert picks.gains is not None
    # Gains may be in another unit, the objective's; the shares are the same.
    torch.testing.assert_close(
        picks.gains / picks.gains[0], torch.tensor(gains, dtype=torch.float64) / gains[0], rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("bias", [True, False])
def test_craig_is_greedy_on_the_distances_of_true_gradients(bias: bool) -> None:
    # True gradients are those of one softmax, each sample's by itself: a doubled softmax or a last, smaller batch that
    # is scaled up would change them.
    signals, weights = made_up_signals(n=40, bias=bias)
    _same_objective(_call(craig, signals, 8), _distances(per_sample_gradients(signals, weights)))


def test_craig_does_not_depend_on_the_scale_of_the_gradients() -> None:
    signals, _ = made_up_signals(n=60, bias=False)
    scaled = replace(signals, features=40 * signals.need("features"))
    first, second = _call(craig, signals, 12), _call(craig, scaled, 12)
    assert first.order.equal(second.order)
    assert second.order.tolist() != sorted(second.order.tolist())  # neither the order of the data, nor a mask's
    assert first.gains is not None
    assert (first.gains.diff() <= 1e-9).all()


@pytest.mark.parametrize("method", ["craig", "adacore"])
def test_weights_are_cluster_sizes_and_sum_to_n(method: str) -> None:
    signals, _ = made_up_signals(n=50)
    for count in (1, 5, 50):
        subset = lcmat.select(signals, method, count=count, balance="none")
        assert float(subset.weights.sum()) == pytest.approx(50, abs=1e-9)
        assert torch.equal(subset.weights, subset.weights.round())
        assert float(subset.weights.min()) >= 1


def _damped_newton_steps(signals: Signals, weights: Tensor, damping: float) -> Tensor:
    """H⁻¹g from automatic differentiation, up to one factor; only where the damping is negligible."""
    assert damping < 1e-6
    return per_sample_gradients(signals, weights) / hessian_diagonals(signals, weights)


def test_adacore_is_greedy_on_the_distances_of_newton_steps() -> None:
    signals, weights = made_up_signals(n=40)
    away_from_zero = replace(signals, features=signals.need("features") + 0.5)
    inputs = torch.cat([away_from_zero.need("features"), torch.ones(40, 1, dtype=torch.float64)], 1)
    signals = replace(away_from_zero, logits=0.3 * inputs @ weights.T)
    steps = _damped_newton_steps(signals, 0.3 * weights, 1e-9)
    _same_objective(_call(adacore, signals, 8, damping=1e-9), _distances(steps))


def test_adacore_tells_samples_apart_whose_features_hold_zeros() -> None:
    # 0 · inf = NaN, and then NaN = 0, would make all pairs with a zero identical.
    signals, _ = made_up_signals(n=60)
    features = (signals.need("features") - 1).relu()
    assert (features == 0).any(1).all()
    picks = _call(adacore, replace(signals, features=features), 10)
    assert picks.gains is not None
    assert torch.isfinite(picks.gains).all()
    assert float(picks.gains[9]) > 0
    sizes = picks.weigh(10) if picks.weigh is not None else torch.zeros(0)
    assert int((sizes > 1).sum()) >= 3


def test_adacore_is_calm_where_the_softmax_saturates() -> None:
    signals, _ = made_up_signals(n=60)
    hard = replace(signals, logits=1e4 * signals.need("logits"))
    picks = _call(adacore, hard, 20)
    assert picks.gains is not None
    assert torch.isfinite(picks.gains).all()


def test_adacore_does_not_depend_on_the_unit_of_the_features() -> None:
    signals, _ = made_up_signals(n=60, bias=False)
    tiny = replace(signals, features=(1e-20 * signals.need("features")).float())
    assert _call(adacore, tiny, 12).order.equal(_call(adacore, signals, 12).order)


@pytest.mark.parametrize("damping", [0.0, -1.0, 2.0, float("nan")])
def test_a_damping_out_of_range_is_refused(damping: float) -> None:
    signals, _ = made_up_signals(n=9)
    with pytest.raises(ValueError, match="damping above 0 and at most 1"):
        lcmat.select(signals, "adacore", count=3, damping=damping)


def test_real_valued_labels_have_the_squared_loss_and_its_hessian() -> None:
    generator = torch.Generator().manual_seed(0)
    features = 0.5 + torch.rand(30, 4, generator=generator, dtype=torch.float64)
    prediction = torch.randn(30, 1, generator=generator, dtype=torch.float64)
    labels = torch.randn(30, generator=generator, dtype=torch.float64)
    signals = Signals(features=features, logits=prediction, labels=labels)
    inputs = torch.cat([features, torch.ones(30, 1, dtype=torch.float64)], 1)
    residuals = prediction - labels[:, None]
    _same_objective(_call(craig, signals, 6), _distances(residuals * inputs))
    _same_objective(_call(adacore, signals, 6, damping=1e-9), _distances(residuals / inputs))

"""GradMatch against scikit-learn's orthogonal matching pursuit and scipy's non-negative least squares."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

import lcmat
from lcmat.linear_head import factors, mean_gradient
from lcmat.selection.by_pursuit import gradmatch, pursue
from lcmat.selection.ties import Picker, Ties
from lcmat.types import Picks, Signals
from reference import made_up_signals, per_sample_gradients


def _gradmatch(signals: Signals, count: int, *, penalty: float = 0.5, memory: int = 10**8) -> Picks:
    return gradmatch([signals], count, generator=torch.Generator().manual_seed(0), memory=memory, penalty=penalty)


def _weights(picks: Picks, count: int) -> Tensor:
    assert picks.weigh is not None
    return picks.weigh(count)


def _objective(gradients: Tensor, target: Tensor, weights: Tensor, penalty: float) -> float:
    return float((gradients.T @ weights - target).square().sum() + penalty * weights.square().sum())


def _nnls(gradients: Tensor, target: Tensor, penalty: float) -> Tensor:
    optimize = pytest.importorskip("scipy.optimize", reason="needs scipy, which the demo extra brings")
    k = len(gradients)
    design = np.vstack([gradients.numpy().T, np.sqrt(penalty) * np.eye(k)])
    return torch.from_numpy(optimize.nnls(design, np.concatenate([target.numpy(), np.zeros(k)]), maxiter=100 * k)[0])


@pytest.mark.parametrize("bias", [True, False])
def test_the_textbook_form_is_that_of_scikit_learn(bias: bool) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="needs scikit-learn, which the demo extra brings")
    signals, weights = made_up_signals(n=40, classes=5, d=8, bias=bias)
    gradients = per_sample_gradients(signals, weights)
    # scikit-learn wants columns of length one to compare products fairly; with equal lengths both rules agree.
    head = factors(signals)
    lengths = gradients.norm(dim=1)
    head = replace(head, residuals=head.residuals / lengths[:, None])
    gradients = gradients / lengths[:, None]
    target = (gradients.T @ torch.linspace(-1, 2, 40, dtype=torch.float64)).reshape(5, -1)
    picker = Picker(Ties(40, torch.Generator().manual_seed(0), torch.device("cpu")))
    picks = pursue(head, target, 12, picker=picker, memory=10**8, penalty=0.0, signed=True)
    for count in (1, 5, 12):
        truth = linear_model.OrthogonalMatchingPursuit(n_nonzero_coefs=count, fit_intercept=False)
        truth.fit(gradients.numpy().T, target.flatten().numpy())
        assert set(picks.order[:count].tolist()) == set(np.flatnonzero(truth.coef_).tolist())
        np.testing.assert_allclose(_weights_of(picks, count), truth.coef_[picks.order[:count]], rtol=1e-8)


def _weights_of(picks: Picks, count: int) -> np.ndarray:
    weights: np.ndarray = _weights(picks, count).numpy()
    return weights


@pytest.mark.parametrize("penalty", [0.0, 0.5, 50.0])
def test_every_pick_and_every_refit_is_the_best(penalty: float) -> None:
    signals, weights = made_up_signals(n=50, classes=4, d=6)
    gradients = per_sample_gradients(signals, weights)
    target = gradients.sum(0)
    picks = _gradmatch(signals, 20, penalty=penalty)
    order = picks.order
    for t in range(20):
        fitted = _nnls(gradients[order[:t]], target, penalty) if t else torch.zeros(0, dtype=torch.float64)
        products = gradients @ (target - gradients[order[:t]].T @ fitted)
        products[order[:t]] = -torch.inf
        # What is left of T may be nothing but rounding.
        best = float(products.max())
        assert float(products[order[t]]) == pytest.approx(best, rel=1e-6, abs=1e-8 * float(target.norm()))
        if best > 1e-8:
            expected = _nnls(gradients[order[: t + 1]], target, penalty)
            torch.testing.assert_close(_weights(picks, t + 1), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("penalty", [0.0, 0.5, 50.0])
def test_the_regularised_objective_falls_and_the_gains_say_by_how_much(penalty: float) -> None:
    signals, weights = made_up_signals(n=60)
    gradients = per_sample_gradients(signals, weights)
    target = gradients.sum(0)
    picks = _gradmatch(signals, 60, penalty=penalty)
    values = [float(target.square().sum())]
    for count in range(1, 61):
        fitted = _weights(picks, count)
        assert float(fitted.min()) >= 0
        values.append(_objective(gradients[picks.order[:count]], target, fitted, penalty))
    scale = values[0]
    assert all(after <= before + 1e-9 * scale for before, after in pairwise(values))
    assert picks.gains is not None
    falls = -torch.tensor(values, dtype=torch.float64).diff()
    torch.testing.assert_close(picks.gains, falls, rtol=1e-6, atol=1e-9 * scale)


def test_it_matches_the_gradient_better_than_random_draws_do() -> None:
    signals, weights = made_up_signals(n=80, classes=5, d=10)
    gradients = per_sample_gradients(signals, weights)
    target = gradients.sum(0)

    def error(order: Tensor) -> float:
        return _objective(gradients[order], target, _nnls(gradients[order], target, 0.5), 0.5)

    chosen = error(_gradmatch(signals, 8).order)
    assert chosen < min(
        error(torch.randperm(80, generator=torch.Generator().manual_seed(seed))[:8]) for seed in range(50)
    )


def test_validation_signals_give_the_target() -> None:
    signals, weights = made_up_signals(n=70)
    everyone = torch.arange(70)
    validation = signals.take(everyone[40:])
    train = replace(signals.take(everyone[:40]), validation=validation)
    picks = _gradmatch(train, 10)
    gradients = per_sample_gradients(train, weights)
    target = 40 * per_sample_gradients(validation, weights).mean(0)
    assert int(picks.order[0]) == int((gradients @ target).argmax())
    torch.testing.assert_close(_weights(picks, 10), _nnls(gradients[picks.order], target, 0.5), rtol=1e-6, atol=1e-6)
    assert picks.order.tolist() != _gradmatch(replace(train, validation=None), 10).order.tolist()


def test_in_the_class_loop_the_target_is_of_the_same_class() -> None:
    signals, _ = made_up_signals(n=120)
    everyone = torch.arange(120)
    train = replace(signals.take(everyone[:80]), validation=signals.take(everyone[80:]))
    subset = lcmat.select(train, "gradmatch", count=16, balance="equal")
    labels = train.need("labels")
    assert train.validation is not None
    for label in range(4):
        members = (labels == label).nonzero().flatten()
        own = train.validation.take((train.validation.need("labels") == label).nonzero().flatten())
        picks = _gradmatch(replace(train.take(members), validation=own), 4)
        assert [row for row in subset if labels[row] == label] == members[picks.order].tolist()


def test_without_memory_for_the_rows_the_picks_are_the_same() -> None:
    signals, _ = made_up_signals(n=100)
    rows, streamed = _gradmatch(signals, 30), _gradmatch(signals, 30, memory=0)
    assert rows.order.equal(streamed.order)
    torch.testing.assert_close(_weights(rows, 30), _weights(streamed, 30), rtol=1e-8, atol=1e-8)


def test_single_precision_reaches_the_objective_of_double() -> None:
    signals, weights = made_up_signals(n=150, classes=5, d=16)
    single = replace(signals, features=signals.need("features").float())
    gradients = per_sample_gradients(signals, weights)
    target = gradients.sum(0)
    values = []
    for version in (signals, single):
        picks = _gradmatch(version, 15)
        values.append(_objective(gradients[picks.order], target, _weights(picks, 15), 0.5))
    assert values[1] == pytest.approx(values[0], rel=1e-4)


def test_once_nothing_points_along_the_rest_further_picks_have_no_weight() -> None:
    # Two samples whose gradients add up to the target, and others that point away from it.
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [-1.0, -1.0]], dtype=torch.float64)
    signals = Signals(features=features, logits=torch.zeros(5, 2), labels=torch.zeros(5, dtype=torch.int64), bias=False)
    wanted = replace(signals.take(torch.tensor([0, 1])), validation=None)
    picks = _gradmatch(replace(signals, validation=wanted), 5, penalty=0.0)
    assert sorted(picks.order[:2].tolist()) == [0, 1]
    assert sorted(picks.order.tolist()) == [0, 1, 2, 3, 4]
    assert _weights(picks, 5)[2:].tolist() == [0.0, 0.0, 0.0]
    assert picks.gains is not None
    assert picks.gains[2:].tolist() == [0.0, 0.0, 0.0]


def test_a_target_of_zero_gives_equal_weights() -> None:
    features = torch.tensor([[1.0], [-1.0], [2.0], [-2.0]], dtype=torch.float64)
    signals = Signals(features=features, logits=torch.zeros(4, 2), labels=torch.zeros(4, dtype=torch.int64), bias=False)
    assert float(mean_gradient(factors(signals)).abs().max()) == 0
    subset = lcmat.select(signals, "gradmatch", count=3)
    assert len(set(subset)) == 3
    assert subset.weights.tolist() == pytest.approx([4 / 3] * 3)


def test_the_weights_of_a_cut_are_those_of_the_shorter_run() -> None:
    signals, _ = made_up_signals(n=60)
    short, long = lcmat.select(signals, "gradmatch", count=[10, 40], balance="none")
    alone = lcmat.select(signals, "gradmatch", count=10, balance="none")
    assert list(short) == list(alone) == list(long)[:10]
    torch.testing.assert_close(short.weights, alone.weights, rtol=1e-12, atol=1e-12)
    assert float(short.weights.sum()) == pytest.approx(60)


def test_samples_that_are_given_keep_their_place_and_get_weights() -> None:
    signals, weights = made_up_signals(n=40)
    given = torch.tensor([7, 3])
    picks = gradmatch([signals], 8, generator=torch.Generator().manual_seed(0), memory=10**8, given=given)
    assert picks.order[:2].tolist() == [7, 3]
    gradients = per_sample_gradients(signals, weights)
    expected = _nnls(gradients[picks.order], gradients.sum(0), 0.5)
    torch.testing.assert_close(_weights(picks, 8), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("penalty", [-0.1, float("nan"), float("inf")])
def test_a_penalty_out_of_range_is_refused(penalty: float) -> None:
    signals, _ = made_up_signals(n=9)
    with pytest.raises(ValueError, match="penalty of 0 or more"):
        lcmat.select(signals, "gradmatch", count=3, penalty=penalty)


@pytest.mark.gpu
@pytest.mark.parametrize("memory", [10**8, 0])
def test_a_gpu_picks_what_a_processor_picks(memory: int) -> None:
    signals, _ = made_up_signals(n=100)
    there, here = _gradmatch(signals.to("cuda"), 30, memory=memory), _gradmatch(signals, 30)
    assert there.order.cpu().equal(here.order)
    torch.testing.assert_close(_weights(there, 30).cpu(), _weights(here, 30), rtol=1e-8, atol=1e-8)

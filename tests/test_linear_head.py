import pytest
import torch

from lcmat import linear_head
from lcmat.linear_head import (
    factors,
    gradient_norms,
    gram,
    hessian_columns,
    hessian_variances,
    top_coordinates,
)
from lcmat.types import Signals
from reference import hessian_diagonals, made_up_signals, per_sample_gradients

BIAS = pytest.mark.parametrize("bias", [True, False])


@BIAS
def test_gradient_is_residual_times_input(bias: bool) -> None:
    signals, weights = made_up_signals(n=9, bias=bias)
    truth = per_sample_gradients(signals, weights)
    head = factors(signals)
    outer = (head.residuals[:, :, None] * head.inputs[:, None, :]).reshape(9, -1)
    torch.testing.assert_close(outer, truth)
    torch.testing.assert_close(gram(head, head), truth @ truth.T)
    torch.testing.assert_close(gradient_norms(head), truth.norm(dim=1))


@BIAS
def test_hessian_diagonal_and_its_variance(bias: bool) -> None:
    signals, weights = made_up_signals(n=9, bias=bias)
    truth = hessian_diagonals(signals, weights)
    head = factors(signals)
    every = top_coordinates(hessian_variances(head), None)
    flat = every[0] * head.inputs.shape[1] + every[1]
    torch.testing.assert_close(hessian_columns(head, every), truth[:, flat])
    torch.testing.assert_close(hessian_variances(head).flatten(), truth.var(0, correction=0))
    best = top_coordinates(hessian_variances(head), 5)
    chosen = (best[0] * head.inputs.shape[1] + best[1]).tolist()
    assert chosen == truth.var(0, correction=0).argsort(descending=True)[:5].tolist()


def test_no_block_of_rows_is_left_out_of_the_variance() -> None:
    # Elsewhere the first batch was dropped; 2 × 1,024 rows and a rest are three blocks here.
    n = 2 * linear_head.ROWS + 100
    signals, _ = made_up_signals(n=n, classes=3, d=4)
    head = factors(signals)
    everything = (head.spreads[:, :, None] * head.inputs.square()[:, None]).var(0, correction=0)
    torch.testing.assert_close(hessian_variances(head), everything)


def test_temperature_divides_the_logits_and_adds_no_factor() -> None:
    signals, _ = made_up_signals(n=7)
    assert signals.logits is not None
    cooled = Signals(features=signals.features, logits=signals.logits / 4, labels=signals.labels)
    for name in ("residuals", "inputs", "spreads"):
        torch.testing.assert_close(getattr(factors(signals, temperature=4.0), name), getattr(factors(cooled), name))


def test_softmax_is_applied_once() -> None:
    # A second softmax would shrink a misclassified sample's gradient about eightfold.
    wrong = Signals(features=torch.ones(1, 1), logits=torch.tensor([[9.0, 0.0]]), labels=torch.tensor([1]), bias=False)
    assert float(gradient_norms(factors(wrong))) == pytest.approx(2**0.5, rel=1e-3)


def test_factors_of_a_part_are_the_part_of_the_factors() -> None:
    # Per-sample gradients must not depend on how many samples come together, the last, smaller batch included.
    signals, _ = made_up_signals(n=20)
    whole = factors(signals)
    parts = [factors(signals.take(part)) for part in torch.split(torch.arange(20), 7)]
    torch.testing.assert_close(torch.cat([part.residuals for part in parts]), whole.residuals)
    torch.testing.assert_close(torch.cat([part.spreads for part in parts]), whole.spreads)


def test_confident_samples_keep_their_digits() -> None:
    # p − 1 in single precision is a multiple of 6e-8; the true residual here is about 1.1e-10.
    signals = Signals(features=torch.ones(1, 1), logits=torch.tensor([[23.0, 0.0]]), labels=torch.tensor([0]))
    expected = -1 / (1 + torch.tensor(23.0, dtype=torch.float64).exp())
    assert float(factors(signals).residuals[0, 0]) == pytest.approx(float(expected), rel=1e-5)


def test_no_gradient_matrix_is_built() -> None:
    # n × C(d+1) would be 32 GB here.
    signals = Signals(
        features=torch.zeros(2000, 2000), logits=torch.zeros(2000, 1000), labels=torch.arange(2000) % 1000
    )
    assert gradient_norms(factors(signals)).shape == (2000,)
    assert hessian_variances(factors(signals)).shape == (1000, 2001)

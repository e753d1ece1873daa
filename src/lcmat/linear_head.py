"""Closed forms of the last layer, from factors alone: nothing of size n × C(d+1) is ever built.

With residuals r = p − y `[n, C]`, inputs a = [f, 1] `[n, d+1]` (a = f without a bias) and s = p(1 − p) `[n, C]`, the
cross-entropy of one sample has in the last layer's weights the gradient g = r ⊗ a and the Hessian diagonal s ⊗ a².
For real-valued labels and the loss ½(z − y)², r = z − y and s = 1.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lcmat.types import Signals

ROWS = 1024  # rows worked on at once in float64


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors of the last layer's gradient and Hessian diagonal.

    Attributes:
        residuals: r, `[n, C]`.
        inputs: a, `[n, d+1]`, or `[n, d]` without a bias.
        spreads: s = p(1 − p), or 1 for real-valued labels, `[n, C]`.
    """

    residuals: Tensor
    inputs: Tensor
    spreads: Tensor


def factors(signals: Signals, *, temperature: float = 1.0) -> Factors:
    """The factors of these Signals, with r and s from softmax(z/τ).

    They are worked out in float64, where 1 − p of a confident sample keeps its digits, and given in the features' type.
    """
    features = signals.need("features")
    tempered = signals.tempered(temperature)
    inputs = torch.cat([features, features.new_ones(len(features), 1)], dim=1) if signals.bias else features
    if signals.regression:
        spreads = torch.ones_like(tempered.residuals)
    else:
        spreads = tempered.probabilities * (1 - tempered.probabilities)
    return Factors(tempered.residuals.to(features.dtype), inputs, spreads.to(features.dtype))


def gram(first: Factors, second: Factors) -> Tensor:
    """All inner products ⟨g_i, g_j⟩ = (r rᵀ) ∘ (a aᵀ), `[n, m]`."""
    return (first.residuals @ second.residuals.T).mul_(first.inputs @ second.inputs.T)


def mean_gradient(head: Factors) -> Tensor:
    """The mean of all gradients r ⊗ a, `[C, d+1]`."""
    return head.residuals.T @ head.inputs / len(head.inputs)


def products_with(head: Factors, direction: Tensor) -> Tensor:
    """The inner product of each gradient with one direction, ⟨g_i, M⟩ = r_iᵀ M a_i, `[n]`."""
    return (head.inputs @ direction.T.to(head.inputs.dtype)).mul_(head.residuals).sum(1)


def gradient_norms(head: Factors) -> Tensor:
    """All ‖g_i‖ = ‖r_i‖·‖a_i‖, `[n]`."""
    return head.residuals.square().sum(1).sqrt() * head.inputs.square().sum(1).sqrt()


def gradient_variances(residuals: Tensor, inputs: Tensor) -> Tensor:
    """Variance over the samples of each coordinate of the gradient r ⊗ a, `[..., C, d+1]`.

    Var(g) = mean(r² ⊗ a²) − mean(r ⊗ a)², divided by n: a single sample has the variance 0. It can be differentiated.

    Args:
        residuals: r, `[..., n, C]`; leading axes hold groups of samples.
        inputs: a, `[..., n, d+1]`.

    Example:
        >>> import torch
        >>> gradient_variances(torch.tensor([[1.0], [3.0]]), torch.tensor([[2.0], [2.0]])).tolist()
        [[4.0]]
    """
    n = residuals.shape[-2]
    mean = residuals.mT @ inputs / n
    return residuals.square().mT @ inputs.square() / n - mean.square()


def hessian_variances(head: Factors) -> Tensor:
    """Variance over the samples of each coordinate of the Hessian diagonal, float64, `[C, d+1]`.

    Var(λ_k) = (s²)ᵀ(a⁴)/n − ((sᵀa²)/n)², divided by n, in float64 because the two terms nearly cancel.
    """
    n, d = head.inputs.shape
    total = torch.zeros(head.spreads.shape[1], d, dtype=torch.float64, device=head.inputs.device)
    total_of_squares = torch.zeros_like(total)
    # Some rows at a time: a copy of all inputs in float64 would leave the cache, which took about twice as long.
    for spreads, inputs in zip(head.spreads.split(ROWS), head.inputs.split(ROWS), strict=True):
        s, squares = spreads.double(), inputs.double().square()
        total.addmm_(s.T, squares)
        total_of_squares.addmm_(s.square().T, squares.square_())
    return (total_of_squares / n - (total / n).square()).clamp_(min=0)


def top_coordinates(variances: Tensor, count: int | None) -> tuple[Tensor, Tensor]:
    """Class and input index of the coordinates of largest variance, each `[min(K, all)]`; None takes all.

    Example:
        >>> import torch
        >>> top_coordinates(torch.tensor([[0.0, 3.0], [2.0, 1.0]]), 2)
        (tensor([0, 1]), tensor([1, 0]))
    """
    flat = variances.flatten()
    k = len(flat) if count is None else min(count, len(flat))
    # A stable sort, so that equal variances fall the same way on every device.
    best = torch.sort(flat, descending=True, stable=True).indices[:k]
    return best // variances.shape[1], best % variances.shape[1]


def hessian_columns(head: Factors, coordinates: tuple[Tensor, Tensor]) -> Tensor:
    """The Hessian diagonal at some coordinates (c, j): s[:, c]·a²[:, j], `[n, K]`."""
    classes, columns = coordinates
    return head.spreads[:, classes] * head.inputs[:, columns].square()

"""What is matched: pure functions of what a network says of real and of synthetic samples.

Each takes two `View`s with a leading axis of classes and gives one value for each class, `[K]`; the loop minimises
their sum. Real and synthetic samples of a class need not be equally many.
"""

import torch
from torch import Tensor

from lcmat.condensation.kernels import Kernel, with_ridge
from lcmat.condensation.views import View
from lcmat.linear_head import gradient_variances

_TINY = 1e-12  # a gradient of this size has no direction


def gradients_by_cosine(real: View, synthetic: View) -> Tensor:
    """Mean gradients matched by direction: Σ over layers and outputs of 1 − cos(g_T, g_S), `[K]`.

    The row of a layer's gradient that belongs to one output is one vector. Zhao, Mopuri and Bilen, ICLR 2021 (DC).
    """
    total = real.inputs.new_zeros(len(real.inputs))
    for first, second in zip(real.gradients, synthetic.gradients, strict=True):
        product = (first * second).sum(-1)
        norms = torch.linalg.vector_norm(first, dim=-1) * torch.linalg.vector_norm(second, dim=-1)
        total = total + (1 - product / norms.clamp(min=_TINY)).sum(-1)
    return total


def gradients_by_square(real: View, synthetic: View) -> Tensor:
    """Mean gradients matched by value: Σ over all weights of (g_T − g_S)², `[K]`.

    Kim et al., ICML 2022 (Efficient Dataset Condensation); D in LCMat-C.
    """
    total = real.inputs.new_zeros(len(real.inputs))
    for first, second in zip(real.gradients, synthetic.gradients, strict=True):
        total = total + (first - second).square().sum((-2, -1))
    return total


def head_variances(real: View, synthetic: View) -> Tensor:
    """Σ over the last layer's coordinates of |Var(G_T) − Var(G_S)|, `[K]`.

    G holds the per-sample gradients r ⊗ a of the last layer, none of which is built; the variance is divided by n, so
    that one sample has the variance 0 (the paper divides by n − 1). Shin et al., AISTATS 2023, equation of LCMat-C.
    """
    first, second = (gradient_variances(view.residuals, view.head_inputs) for view in (real, synthetic))
    return (first - second).abs().sum((-2, -1))


def curvature(real: View, synthetic: View, *, rho: float) -> Tensor:
    """LCMat-C: D(ḡ_T, ḡ_S) + (ρ/2)·|Var(G_T) − Var(G_S)|, `[K]`."""
    matched = gradients_by_square(real, synthetic)
    return matched + rho / 2 * head_variances(real, synthetic) if rho > 0 else matched


def means_of_features(real: View, synthetic: View) -> Tensor:
    """‖mean f(T) − mean f(S)‖² under a random network, `[K]`. Zhao and Bilen, WACV 2023 (DM)."""
    return (real.features.mean(1) - synthetic.features.mean(1)).square().sum(-1)


def ridge_regression(real: View, synthetic: View, *, kernel: Kernel, ridge: float) -> Tensor:
    """How badly kernel ridge regression on the synthetic samples predicts the real ones, `[1]`.

    ½·mean ‖y_T − K_TS (K_SS + λI)⁻¹ y_S‖², with labels less 1/C and λ = `ridge`·trace(K_SS)/m, in float64. All classes
    are regressed together. Nguyen, Chen and Lee, ICLR 2021 (KIP).
    """
    inputs, support = (view.inputs.flatten(0, 1).double() for view in (real, synthetic))
    targets, labels = (view.targets.flatten(0, 1).double() - 1 / view.targets.shape[-1] for view in (real, synthetic))
    # Unlike `cholesky` this waits for no answer from the device; where it fails the loss is not finite, which stops.
    factor = torch.linalg.cholesky_ex(with_ridge(kernel(support, support), ridge)).L
    predicted = kernel(inputs, support) @ torch.cholesky_solve(labels, factor)
    return ((targets - predicted).square().sum(-1).mean() / 2).reshape(1).to(real.inputs.dtype)

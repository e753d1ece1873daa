"""Kernels of infinitely wide ReLU networks in closed form: the neural tangent kernel, Jacot et al., NeurIPS 2018.

Weights have variance 1/fan-in at the inputs and 2/fan-in behind each ReLU, which keeps the size of what flows; there
are no biases.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

# (samples [n, ...], samples [m, ...]) -> kernel [n, m]
Kernel: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def dense_kernel(first: Tensor, second: Tensor, *, depth: int) -> Tensor:
    """The NTK of a fully connected network with `depth` hidden ReLU layers, `[n, m]`.

    With Σ⁰ = ⟨x, x'⟩/d and Θ⁰ = Σ⁰, every hidden layer makes, with φ the angle between the two,

        Σ ← √(Σ_xx Σ_x'x')·(sin φ + (π − φ) cos φ)/π,    Θ ← Σ + Θ·(π − φ)/π.

    Args:
        first: `[n, ...]`.
        second: `[m, ...]`.
        depth: hidden layers.

    Example:
        >>> import torch
        >>> x = torch.eye(2)
        >>> dense_kernel(x, x, depth=1)[0].tolist()  # Θ(x, x) = 2·Σ, and Σ = 1/(2π) between orthogonal points
        [1.0, 0.15915493667125702]
    """
    first, second = first.flatten(1), second.flatten(1)
    covariance = first @ second.T / first.shape[1]
    lengths = [rows.square().mean(1) for rows in (first, second)]
    scale = (lengths[0][:, None] * lengths[1]).sqrt()
    tangent = covariance
    for _ in range(depth):
        covariance, derivative = _relu(covariance, scale)
        tangent = covariance + tangent * derivative
    return tangent


def convolutional_kernel(first: Tensor, second: Tensor, *, depth: int) -> Tensor:
    """The NTK of a network of `depth` 3 × 3 ReLU convolutions and a linear layer over all pixels, `[n, m]`.

    Without pools the readout sees each pixel apart from all others, so that only covariances between the same pixel of
    both images are needed, and a convolution averages these over its window (outside the image they are 0):
    Novak et al., ICLR 2019.

    Args:
        first: `[n, channels, height, width]`.
        second: `[m, channels, height, width]`.
        depth: convolutions.
    """
    covariance = _window_mean(torch.einsum("nchw,mchw->nmhw", first, second) / first.shape[1])
    variances = [_window_mean(images.square().mean(1)[None])[0] for images in (first, second)]
    tangent = covariance
    for layer in range(depth):
        covariance, derivative = _relu(covariance, (variances[0][:, None] * variances[1]).clamp(min=0).sqrt())
        tangent = covariance + tangent * derivative
        if layer < depth - 1:
            covariance, tangent = _window_mean(covariance), _window_mean(tangent)
            variances = [_window_mean(values[None])[0] for values in variances]
    return tangent.mean((-2, -1))


def _relu(covariance: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Covariance behind a ReLU layer with variance 2/fan-in, and that of its derivative; `scale` is √(Σ_xx Σ_x'x')."""
    numbers = torch.finfo(scale.dtype)
    # This near to 1 a cosine counts as 1: there the derivative of the angle is infinite.
    near = max(1e-12, 8 * numbers.eps)
    cosine = covariance / scale.clamp(min=numbers.tiny)
    aligned = cosine > 1 - near
    # The clamp alone would leave an angle of 10⁻⁶ where there is none, which a small ridge would notice.
    inner = cosine.clamp(-1 + near, 1 - near)
    angle = torch.where(aligned, 0.0, inner.acos())
    sine = torch.where(aligned, 0.0, (1 - inner.square()).sqrt())
    cosine = torch.where(aligned, 1.0, inner)
    share = (math.pi - angle) / math.pi
    return scale * (sine / math.pi + share * cosine), share


def _window_mean(maps: Tensor) -> Tensor:
    """The mean over a 3 × 3 window, with 0 outside, over the last two axes of `[a, b, height, width]`."""
    return functional.avg_pool2d(maps, 3, stride=1, padding=1)


def with_ridge(kernel: Tensor, ridge: float) -> Tensor:
    """K + λ·(trace K/n)·I."""
    n = len(kernel)
    return kernel + ridge * kernel.diagonal().mean() * torch.eye(n, dtype=kernel.dtype, device=kernel.device)

"""The norm of each channel in dual numbers, by closed forms that a handful of passes over the maps compute.

With x̂ = s(x − mean x), s = 1/√(var x + ε), over the m pixels of one channel of one sample, and y = γx̂ + β, the
derivative of y in x is the symmetric J = γs(I − 11ᵀ/m − x̂x̂ᵀ/m). So one kernel, the one of the backward pass, gives
tangents forward and derivatives backward. Only the derivative of a tangent in x is more than that.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable
from torch.nn import functional

from lcmat import kernels


class ChannelNorm(nn.GroupNorm):
    """`nn.GroupNorm` with one group for each channel, which is quick in dual numbers as well.

    There it can be differentiated in its inputs, once, and not in its weights.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> plain = nn.GroupNorm(3, 3)
        >>> maps = torch.randn(2, 3, 4, 4)
        >>> bool((ChannelNorm.of(plain)(maps) == plain(maps)).all())
        True
    """

    @classmethod
    def of(cls, norm: nn.GroupNorm) -> Self:
        """The same norm with the same weights."""
        own = cls(norm.num_groups, norm.num_channels, norm.eps, norm.affine)
        own.weight, own.bias = norm.weight, norm.bias
        return own

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002, the name in `nn.GroupNorm`
        """Maps `[n, channels, ...]` -> maps of the same shape."""
        maps, tangents = forward_ad.unpack_dual(input)
        if tangents is None:
            return super().forward(input)
        apply: Any = _DualNorm.apply
        own: Tensor = forward_ad.make_dual(*apply(maps, tangents, self.weight, self.bias, self.eps))
        return own


class NormReluPool(ChannelNorm):
    """`ChannelNorm`, ReLU and a 2 × 2 average pool: on CUDA one kernel, where Triton can build it.

    Attributes:
        kernels: whether there may be such kernels.
    """

    kernels = True

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002, the name in `nn.GroupNorm`
        """Maps `[n, channels, height, width]` -> maps of half the sides."""
        maps, tangents = forward_ad.unpack_dual(input)
        fused = fused_kernels(maps.device) if self.kernels and maps.is_cuda else None
        if fused is None or not fused.suits(maps):
            return functional.avg_pool2d(functional.relu(super().forward(input)), 2)
        own: Tensor
        if tangents is None:
            own = fused.norm_relu_pool(maps, self.weight, self.bias, self.eps)
        else:
            own = forward_ad.make_dual(*fused.dual_norm_relu_pool(maps, tangents, self.weight, self.bias, self.eps))
        return own


@cache
def fused_kernels(device: torch.device) -> Any:
    """The module with the kernels, if it can be had and gives there what the layers give; else None."""
    return kernels.tried("lcmat.condensation.fused", lambda fused: _compare(fused, device), doing="condensing")


def _compare(fused: Any, device: torch.device) -> None:
    """Whether kernels and layers agree on some maps, with all derivatives.

    Raises:
        AssertionError: when they do not.
    """
    # Some numbers between -1 and 1; no generator is touched.
    maps, tangents = (torch.arange(96.0, device=device).mul(step).sin().reshape(2, 3, 4, 4) for step in (1.0, 1.7))
    weight, bias = torch.tensor([0.5, 1.0, 1.5], device=device), torch.tensor([0.1, 0.0, -0.1], device=device)

    def plain(layer: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        inputs = [part.clone().requires_grad_() for part in (maps, weight, bias)]
        value = layer(*inputs)
        return (value, *torch.autograd.grad(value.square().sum(), inputs))

    def dual(layer: Callable[..., tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
        inputs = [part.clone().requires_grad_() for part in (maps, tangents)]
        value, change = layer(*inputs)
        return (value, change, *torch.autograd.grad(value.square().sum() + change.square().sum(), inputs))

    with torch.enable_grad():
        own = plain(lambda x, w, b: fused.norm_relu_pool(x, w, b, 1e-5))
        own += dual(lambda x, t: fused.dual_norm_relu_pool(x, t, weight, bias, 1e-5))
        truth = plain(_layers)
        truth += dual(lambda x, t: torch.func.jvp(lambda part: _layers(part, weight, bias), (x,), (t,))[:2])
    torch.testing.assert_close(own, truth, rtol=1e-3, atol=1e-4)


def _layers(maps: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    normal = functional.group_norm(maps, maps.shape[1], weight, bias, 1e-5)
    return functional.avg_pool2d(functional.relu(normal), 2)


class _DualNorm(torch.autograd.Function):
    """(x, ẋ) -> (y, Jẋ)."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, tangents: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Any:
        n, channels = maps.shape[:2]
        maps = maps.contiguous()
        values, mean, scale = torch.native_group_norm(
            maps, weight, bias, n, channels, maps[0, 0].numel(), channels, eps
        )
        ctx.save_for_backward(maps, tangents, weight, mean, scale)
        return values, _times_jacobian(tangents, maps, weight, mean, scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        maps, tangents, weight, mean, scale = ctx.saved_tensors
        of_values, of_tangents = slopes
        along_x = _times_jacobian(of_values, maps, weight, mean, scale)
        along_x += _slope_of_tangent(of_tangents, maps, tangents, weight, mean, scale)
        return along_x, _times_jacobian(of_tangents, maps, weight, mean, scale), None, None, None


def _times_jacobian(vectors: Tensor, maps: Tensor, weight: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """J·v for each map."""
    n, channels = maps.shape[:2]
    product: Tensor = torch.ops.aten.native_group_norm_backward(
        vectors.contiguous(), maps, mean, scale, weight, n, channels, maps[0, 0].numel(), channels, [True, False, False]
    )[0]
    return product


def _slope_of_tangent(
    slopes: Tensor, maps: Tensor, tangents: Tensor, weight: Tensor, mean: Tensor, scale: Tensor
) -> Tensor:
    """The derivative of ⟨w, J(x)ẋ⟩ in x: −γs²·((q − 3ac)·x̂ + c·w̃ + a·u).

    There u = ẋ − mean ẋ, w̃ = w − mean w, a = mean x̂w, c = mean x̂u and q = mean w̃u.
    """
    shape = (*mean.shape, *[1] * (maps.ndim - 2))
    axes = tuple(range(2, maps.ndim))
    s = scale.reshape(shape)
    normal = (maps - mean.reshape(shape)) * s
    w, u = (part - part.mean(axes, keepdim=True) for part in (slopes, tangents))
    a, c, q = (torch.mean(x * y, axes, keepdim=True) for x, y in ((normal, w), (normal, u), (w, u)))
    factor = -weight.reshape(shape[1:]) * s.square()
    return (normal * (factor * (q - 3 * a * c))).addcmul_(w, factor * c).addcmul_(u, factor * a)

"""Norm of each channel, ReLU and 2 × 2 average pool as one kernel in Triton, also in dual numbers.

One after the other, these take some twenty passes over the largest maps of a ConvNet, which are most of the time of a
step; here each map is read and written once. A program does whole channels of single samples, and what it needs of
them, it works out anew in the backward pass. The formulas are those of `lcmat.condensation.norms`.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LARGEST = 64 * 64  # pixels of a channel that one program holds
_PIXELS = 1024  # that a program works on, where a channel has fewer


@triton.jit
def _places(rows, width: tl.constexpr, pooled: tl.constexpr, block: tl.constexpr, some: tl.constexpr):
    """Where a program's pixels lie, `[rows, pools, 4]`, and its pools, `[rows, pools, 1]`; which of them there are."""
    row = (tl.program_id(0) * some + tl.arange(0, some)).to(tl.int64)[:, None, None]
    pool = tl.arange(0, block)[None, :, None]
    part = tl.arange(0, 4)[None, None, :]
    half: tl.constexpr = width // 2
    inside = (row < rows) & (pool < pooled)
    pixel = (2 * (pool // half) + part // 2) * width + 2 * (pool % half) + part % 2
    return row, inside, row * (4 * pooled) + pixel, row * pooled + pool


@triton.jit
def _mean(values, count: tl.constexpr):
    return tl.sum(tl.sum(values, 2), 1)[:, None, None] / count


@triton.jit
def _centred(values, inside, count: tl.constexpr):
    return tl.where(inside, values - _mean(values, count), 0.0)


@triton.jit
def _read(pointer, places, inside):
    return tl.load(pointer + places, inside, other=0.0).to(tl.float32)


@triton.jit
def _relu(values):
    return tl.maximum(values, 0.0, propagate_nan=tl.PropagateNan.ALL)  # or what is no longer finite goes unseen


@triton.jit
def _pool(values):
    return tl.sum(values, 2)[:, :, None] / 4


@triton.jit
def _normalised(maps, inside, count: tl.constexpr, eps):
    centred = _centred(maps, inside, count)
    scale = 1 / tl.sqrt(_mean(centred * centred, count) + eps)
    return centred * scale, scale


@triton.jit
def _weights(weight, bias, row, rows, channels):
    there = row < rows
    return _read(weight, row % channels, there), _read(bias, row % channels, there)


@triton.jit
def _forward(
    maps, weight, bias, values, rows, channels, eps,
    width: tl.constexpr, pooled: tl.constexpr, block: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    row, inside, pixels, pools = _places(rows, width, pooled, block, some)
    normal, _ = _normalised(_read(maps, pixels, inside), inside, 4 * pooled, eps)
    gamma, beta = _weights(weight, bias, row, rows, channels)
    tl.store(values + pools, _pool(_relu(gamma * normal + beta)), inside)


@triton.jit
def _backward(
    maps, weight, bias, slopes, of_maps, of_weight, of_bias, rows, channels, eps,
    width: tl.constexpr, pooled: tl.constexpr, block: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    count: tl.constexpr = 4 * pooled
    row, inside, pixels, pools = _places(rows, width, pooled, block, some)
    normal, scale = _normalised(_read(maps, pixels, inside), inside, count, eps)
    gamma, beta = _weights(weight, bias, row, rows, channels)
    active = inside & (gamma * normal + beta > 0)
    slope = tl.where(active, _read(slopes, pools, inside) / 4, 0.0)
    mean, along = _mean(slope, count), _mean(slope * normal, count)
    tl.store(of_maps + pixels, gamma * scale * (slope - mean - normal * along), inside)
    tl.store(of_weight + row, along * count, row < rows)
    tl.store(of_bias + row, mean * count, row < rows)


@triton.jit
def _dual_forward(
    maps, tangents, weight, bias, values, changes, rows, channels, eps,
    width: tl.constexpr, pooled: tl.constexpr, block: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    count: tl.constexpr = 4 * pooled
    row, inside, pixels, pools = _places(rows, width, pooled, block, some)
    normal, scale = _normalised(_read(maps, pixels, inside), inside, count, eps)
    gamma, beta = _weights(weight, bias, row, rows, channels)
    u = _centred(_read(tangents, pixels, inside), inside, count)
    change = gamma * scale * (u - normal * _mean(normal * u, count))
    whole = gamma * normal + beta
    tl.store(values + pools, _pool(_relu(whole)), inside)
    tl.store(changes + pools, _pool(tl.where(whole > 0, change, 0.0)), inside)


@triton.jit
def _dual_backward(
    maps, tangents, weight, bias, of_values, of_changes, of_maps, of_tangents, rows, channels, eps,
    width: tl.constexpr, pooled: tl.constexpr, block: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    count: tl.constexpr = 4 * pooled
    row, inside, pixels, pools = _places(rows, width, pooled, block, some)
    normal, scale = _normalised(_read(maps, pixels, inside), inside, count, eps)
    gamma, beta = _weights(weight, bias, row, rows, channels)
    active = inside & (gamma * normal + beta > 0)
    u = _centred(_read(tangents, pixels, inside), inside, count)
    v = _centred(tl.where(active, _read(of_values, pools, inside) / 4, 0.0), inside, count)
    w = _centred(tl.where(active, _read(of_changes, pools, inside) / 4, 0.0), inside, count)
    a, c, q = _mean(normal * w, count), _mean(normal * u, count), _mean(w * u, count)
    of_x = v - normal * _mean(normal * v, count) - scale * ((q - 3 * a * c) * normal + c * w + a * u)
    tl.store(of_maps + pixels, gamma * scale * of_x, inside)
    tl.store(of_tangents + pixels, gamma * scale * (w - normal * a), inside)


def suits(maps: Tensor) -> bool:
    """Whether the kernels can do these maps, `[n, channels, height, width]`."""
    height, width = maps.shape[2:]
    known = maps.dtype in (torch.float32, torch.bfloat16)
    return known and height % 2 == width % 2 == 0 and height * width <= LARGEST


def _launch(kernel: Any, maps: Tensor, eps: float, *tensors: Tensor) -> None:
    n, channels, height, width = maps.shape
    pooled = height * width // 4
    block = triton.next_power_of_2(pooled)
    some = max(1, _PIXELS // (4 * block))
    grid = (triton.cdiv(n * channels, some),)
    with torch.cuda.device_of(maps):  # kernels start on the current device
        kernel[grid](maps, *tensors, n * channels, channels, eps, width, pooled, block, some)


def _pools_of(maps: Tensor) -> Tensor:
    n, channels, height, width = maps.shape
    return maps.new_empty(n, channels, height // 2, width // 2)


def norm_relu_pool(maps: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """pool(relu(norm(x))), `[n, channels, height, width]` -> half the sides."""
    apply: Any = _Plain.apply
    values: Tensor = apply(maps, weight, bias, eps)
    return values


def dual_norm_relu_pool(
    maps: Tensor, tangents: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """The same of x + ε·ẋ: values and tangents; it has no derivatives in weight and bias."""
    apply: Any = _Dual.apply
    values, changes = apply(maps, tangents, weight, bias, eps)
    return values, changes


class _Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        maps = maps.contiguous()
        values = _pools_of(maps)
        _launch(_forward, maps, eps, weight, bias, values)
        ctx.save_for_backward(maps, weight, bias)
        ctx.eps = eps
        return values

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        maps, weight, bias = ctx.saved_tensors
        of_maps = torch.empty_like(maps)
        sums = torch.empty(2, *maps.shape[:2], device=maps.device)
        _launch(_backward, maps, ctx.eps, weight, bias, slopes[0].contiguous(), of_maps, *sums)
        of_weights = sums.sum(1, dtype=weight.dtype) if ctx.needs_input_grad[1] else [None, None]
        return of_maps, *of_weights, None


class _Dual(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, tangents: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Any:
        maps, tangents = maps.contiguous(), tangents.contiguous()
        both = _pools_of(maps), _pools_of(maps)
        _launch(_dual_forward, maps, eps, tangents, weight, bias, *both)
        ctx.save_for_backward(maps, tangents, weight, bias)
        ctx.eps = eps
        return both

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        maps, tangents, weight, bias = ctx.saved_tensors
        both = torch.empty_like(maps), torch.empty_like(maps)
        _launch(_dual_backward, maps, ctx.eps, tangents, weight, bias, *(part.contiguous() for part in slopes), *both)
        return *both, None, None, None

"""Batch norm in training, with the sum of a shortcut and the ReLU behind it, as two kernels each way in Triton.

The layers read and write the largest maps of a network some dozen times in a step; here it is two and a half times
forwards and five backwards. Maps lie with their channels last, as a matrix `[rows, channels]` with a row for each
pixel of each sample. With the mean m and the variance v of a channel, s = 1/√(v + ε) and x̂ = s(x − m),

    y = relu(γx̂ + β + shortcut),

and with the slope g of the loss in y where y > 0, else 0, the slopes in β, γ, x and the shortcut are

    Σ g,    Σ gx̂,    γs·(g − mean g − x̂·mean gx̂),    g.

Sums over the rows are taken in parts by many programs; the one that is done last adds the parts up, always in the same
order.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

# Programs that sum over rows: the channels of each, the rows that it holds at a time and reads ahead, how many there
# are at most for all channels together, and what the last one adds up at a time.
_COLUMNS, _ROWS, _AHEAD, _PROGRAMS, _PARTS, _WARPS = 32, 64, 4, 264, 128, 4
# Programs that do each element on its own.
_TILE_ROWS, _TILE_COLUMNS = 64, 64
# One compilation does for all of these; that rows of channels begin at multiples of sixteen bytes, it should know.
_SHAPES = ["rows", "share", "joined"]


@triton.jit
def _sum_up(parts, tickets, first, second, column, inside, channels, columns: tl.constexpr, at_once: tl.constexpr):
    """Keep this program's two sums; the last program for these channels returns what all of them make together.

    Returns whether this is the last one, and the sums.
    """
    part, count = tl.program_id(1), tl.num_programs(1)
    other = parts + count * channels
    tl.store(parts + part * channels + column, first, inside)
    tl.store(other + part * channels + column, second, inside)
    tl.debug_barrier()  # everything is written before the ticket is drawn
    ticket = tl.atomic_add(tickets + tl.program_id(0), 1, sem="acq_rel")
    last = ticket == count - 1
    total1 = tl.zeros([columns], tl.float32)
    total2 = tl.zeros([columns], tl.float32)
    if last:
        tl.store(tickets + tl.program_id(0), 0)
        for start in range(0, count, at_once):
            row = start + tl.arange(0, at_once)
            places = row[:, None] * channels + column[None, :]
            there = (row < count)[:, None] & inside[None, :]
            total1 += tl.sum(tl.load(parts + places, there, other=0.0, cache_modifier=".cg"), 0)
            total2 += tl.sum(tl.load(other + places, there, other=0.0, cache_modifier=".cg"), 0)
    return last, total1, total2


@triton.jit
def _strip(rows, channels, share, height: tl.constexpr, columns: tl.constexpr):
    """The channels of a program that sums, which of them there are, its rows from start to end, and two empty sums."""
    column = tl.program_id(0) * columns + tl.arange(0, columns)
    start = tl.program_id(1) * share
    end = tl.minimum(start + share, rows)
    empty = tl.zeros([height, columns], tl.float32)
    return column, column < channels, start, end, empty, empty


@triton.jit(do_not_specialize=_SHAPES)
def _moments(
    maps, parts, tickets, mean, scale, running_mean, running_variance, seen, momentum, eps, rows, channels, share,
    height: tl.constexpr, columns: tl.constexpr, at_once: tl.constexpr, ahead: tl.constexpr,
):  # fmt: skip
    column, inside, start, end, first, second = _strip(rows, channels, share, height, columns)
    # Sums are taken of what differs from the first row, which lies among the others, or squares would cancel.
    origin = tl.load(maps + column, inside, other=0.0).to(tl.float32)
    for at in tl.range(start, end, height, num_stages=ahead):
        row = at + tl.arange(0, height)
        there = (row < end)[:, None] & inside[None, :]
        values = tl.load(maps + row.to(tl.int64)[:, None] * channels + column[None, :], there, other=0.0)
        values = tl.where(there, values.to(tl.float32) - origin[None, :], 0.0)
        first += values
        second += values * values
    last, sums, squares = _sum_up(
        parts, tickets, tl.sum(first, 0), tl.sum(second, 0), column, inside, channels, columns, at_once
    )
    if last:
        shift = sums / rows
        variance = tl.maximum(squares / rows - shift * shift, 0.0, propagate_nan=tl.PropagateNan.ALL)
        average = origin + shift
        tl.store(mean + column, average, inside)
        tl.store(scale + column, 1 / tl.sqrt(variance + eps), inside)
        old = tl.load(running_mean + column, inside, other=0.0)
        tl.store(running_mean + column, old + momentum * (average - old), inside)
        old = tl.load(running_variance + column, inside, other=0.0)
        unbiased = variance * (rows / tl.maximum(rows - 1.0, 1.0))
        tl.store(running_variance + column, old + momentum * (unbiased - old), inside)
        if tl.program_id(0) == 0:
            tl.store(seen, tl.load(seen) + 1)


@triton.jit
def _tile(rows, channels, height: tl.constexpr, columns: tl.constexpr):
    """A tile's channels and places, and which of them there are."""
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    row = tl.program_id(0) * height + tl.arange(0, height)
    there = (row < rows)[:, None] & (column < channels)[None, :]
    return column, row.to(tl.int64)[:, None] * channels + column[None, :], there


@triton.jit
def _normalised(maps, places, there, mean, scale, column, inside):
    values = tl.load(maps + places, there, other=0.0).to(tl.float32)
    average = tl.load(mean + column, inside, other=0.0)
    factor = tl.load(scale + column, inside, other=0.0)
    return (values - average[None, :]) * factor[None, :]


@triton.jit(do_not_specialize=_SHAPES)
def _apply(
    maps, shortcut, outputs, mean, scale, weight, bias, rows, channels, floor, joined,
    height: tl.constexpr, columns: tl.constexpr,
):  # fmt: skip
    column, places, there = _tile(rows, channels, height, columns)
    inside = column < channels
    values = _normalised(maps, places, there, mean, scale, column, inside)
    gamma, beta = tl.load(weight + column, inside, other=0.0), tl.load(bias + column, inside, other=0.0)
    values = values * gamma[None, :] + beta[None, :]
    values += tl.load(shortcut + places, there & (joined > 0), other=0.0).to(tl.float32)
    values = tl.maximum(values, floor, propagate_nan=tl.PropagateNan.ALL)  # or a training that diverges goes unseen
    tl.store(outputs + places, values, there)


@triton.jit
def _active_slopes(slopes, outputs, normal, places, there, weight, bias, column, inside, floor, joined):
    """The slopes where the ReLU lets them through; without a shortcut that can be worked out from the norm."""
    found = tl.load(slopes + places, there, other=0.0).to(tl.float32)
    gamma, beta = tl.load(weight + column, inside, other=0.0), tl.load(bias + column, inside, other=0.0)
    before = normal * gamma[None, :] + beta[None, :]
    after = tl.load(outputs + places, there & (joined > 0), other=0.0).to(tl.float32)
    return tl.where(tl.where(joined > 0, after, before) <= floor, 0.0, found)


@triton.jit(do_not_specialize=_SHAPES)
def _reduce(
    maps, slopes, outputs, parts, tickets, mean, scale, weight, bias, of_weight, of_bias, rows, channels, share,
    floor, joined, height: tl.constexpr, columns: tl.constexpr, at_once: tl.constexpr, ahead: tl.constexpr,
):  # fmt: skip
    column, inside, start, end, first, second = _strip(rows, channels, share, height, columns)
    for at in tl.range(start, end, height, num_stages=ahead):
        row = at + tl.arange(0, height)
        there = (row < end)[:, None] & inside[None, :]
        places = row.to(tl.int64)[:, None] * channels + column[None, :]
        normal = _normalised(maps, places, there, mean, scale, column, inside)
        found = _active_slopes(slopes, outputs, normal, places, there, weight, bias, column, inside, floor, joined)
        first += found
        second += found * normal
    last, plain, along = _sum_up(
        parts, tickets, tl.sum(first, 0), tl.sum(second, 0), column, inside, channels, columns, at_once
    )
    if last:
        tl.store(of_bias + column, plain, inside)
        tl.store(of_weight + column, along, inside)


@triton.jit(do_not_specialize=_SHAPES)
def _descend(
    maps, slopes, outputs, mean, scale, weight, bias, of_weight, of_bias, of_maps, of_shortcut, rows, channels,
    floor, joined, height: tl.constexpr, columns: tl.constexpr,
):  # fmt: skip
    column, places, there = _tile(rows, channels, height, columns)
    inside = column < channels
    normal = _normalised(maps, places, there, mean, scale, column, inside)
    found = _active_slopes(slopes, outputs, normal, places, there, weight, bias, column, inside, floor, joined)
    plain = tl.load(of_bias + column, inside, other=0.0) / rows
    along = tl.load(of_weight + column, inside, other=0.0) / rows
    factor = tl.load(weight + column, inside, other=0.0) * tl.load(scale + column, inside, other=0.0)
    tl.store(of_maps + places, factor[None, :] * (found - plain[None, :] - normal * along[None, :]), there)
    tl.store(of_shortcut + places, found, there & (joined > 0))


def suits(maps: Tensor, shortcut: Tensor | None) -> bool:
    """Whether the kernels can do these maps, `[n, channels, height, width]`."""
    both = [maps] if shortcut is None else [maps, shortcut]
    return (
        maps.ndim == 4
        and maps.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and maps[:, 0].numel() > 1
        and all(part.is_contiguous(memory_format=torch.channels_last) for part in both)
        and all(part.shape == maps.shape and part.dtype == maps.dtype for part in both)
    )


def norm(
    maps: Tensor, shortcut: Tensor | None, weight: Tensor, bias: Tensor, running: tuple[Tensor, Tensor, Tensor],
    tickets: Tensor, *, momentum: float, eps: float, relu: bool,
) -> Tensor:  # fmt: skip
    """relu(norm(x) + shortcut), both optional, over the batch; `running` mean, variance and count are updated.

    `tickets` are the caller's own, int32, one for each channel, 0 between uses.
    """
    apply: Any = _Norm.apply
    outputs: Tensor = apply(maps, shortcut, weight, bias, running, tickets, momentum, eps, relu)
    return outputs


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, shortcut: Tensor | None, weight: Tensor, bias: Tensor,
        running: tuple[Tensor, Tensor, Tensor], tickets: Tensor, momentum: float, eps: float, relu: bool,
    ) -> Tensor:  # fmt: skip
        rows, channels = maps[:, 0].numel(), maps.shape[1]
        mean, scale = torch.empty(2, channels, device=maps.device)
        outputs = torch.empty_like(maps)
        grid, share, parts = _plan(maps, rows, channels)
        joined = shortcut is not None
        with torch.cuda.device_of(maps):
            _moments[grid](
                maps, parts, tickets, mean, scale, *running, momentum, eps, rows, channels, share,
                _ROWS, _COLUMNS, _PARTS, _AHEAD, num_warps=_WARPS,
            )  # fmt: skip
            _apply[_tiles(rows, channels)](
                maps, shortcut if joined else maps, outputs, mean, scale, weight, bias, rows, channels, _floor(relu),
                int(joined), _TILE_ROWS, _TILE_COLUMNS, num_warps=4,
            )  # fmt: skip
        ctx.save_for_backward(maps, shortcut, outputs if joined and relu else None, weight, bias, mean, scale)
        ctx.tickets, ctx.eps, ctx.relu = tickets, eps, relu
        return outputs

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        maps, shortcut, outputs, weight, bias, mean, scale = ctx.saved_tensors
        joined = shortcut is not None
        if torch.is_grad_enabled():  # the slopes are to be differentiated again, which the layers can do
            inputs = maps, shortcut, weight, bias
            value = layers(*inputs, ctx.eps, relu=ctx.relu)
            wanted = [part for part, needed in zip(inputs, ctx.needs_input_grad, strict=False) if needed]
            found = iter(torch.autograd.grad(value, wanted, slopes[0], create_graph=True))
            return *(next(found) if needed else None for needed in ctx.needs_input_grad[:4]), *[None] * 5
        rows, channels = maps[:, 0].numel(), maps.shape[1]
        slope = slopes[0].contiguous(memory_format=torch.channels_last)
        sums = torch.empty(2, channels, device=maps.device)
        of_maps = torch.empty_like(maps)
        of_shortcut = torch.empty_like(maps) if joined else None
        grid, share, parts = _plan(maps, rows, channels)
        known = maps, slope, maps if outputs is None else outputs
        about = mean, scale, weight, bias, *sums
        kind = _floor(ctx.relu), int(joined)
        with torch.cuda.device_of(maps):
            _reduce[grid](
                *known, parts, ctx.tickets, *about, rows, channels, share, *kind, _ROWS, _COLUMNS, _PARTS, _AHEAD,
                num_warps=_WARPS,
            )  # fmt: skip
            _descend[_tiles(rows, channels)](
                *known, *about, of_maps, of_shortcut if joined else of_maps, rows, channels, *kind,
                _TILE_ROWS, _TILE_COLUMNS, num_warps=4,
            )  # fmt: skip
        return of_maps, of_shortcut, *sums.to(weight.dtype), *[None] * 5


def layers(maps: Tensor, shortcut: Tensor | None, weight: Tensor, bias: Tensor, eps: float, *, relu: bool) -> Tensor:
    """The same by torch's layers."""
    outputs = functional.batch_norm(maps, None, None, weight, bias, training=True, eps=eps)
    if shortcut is not None:
        outputs = outputs + shortcut
    return functional.relu(outputs) if relu else outputs


def _plan(maps: Tensor, rows: int, channels: int) -> tuple[tuple[int, int], int, Tensor]:
    """The grid of programs that sum, the rows of each, and room for their sums."""
    groups = triton.cdiv(channels, _COLUMNS)
    parts = max(1, min(_PROGRAMS // groups, triton.cdiv(rows, _ROWS)))
    share = triton.cdiv(triton.cdiv(rows, parts), _ROWS) * _ROWS
    parts = triton.cdiv(rows, share)
    return (groups, parts), share, torch.empty(2, parts, channels, device=maps.device)


def _floor(relu: bool) -> float:
    """What outputs are at least."""
    return 0.0 if relu else -math.inf


def _tiles(rows: int, channels: int) -> tuple[int, int]:
    return triton.cdiv(rows, _TILE_ROWS), triton.cdiv(channels, _TILE_COLUMNS)

"""Distances by differences as one kernel in Triton, which reads and writes no differences in between.

They take a pass over rows × columns × K numbers to write, and one or two to read; here a program keeps the sums of its
tile and goes along the K coordinates.
"""

from typing import Literal

import torch
import triton
import triton.language as tl
from torch import Tensor

_SIDE = 64  # of the tile of a program


@triton.jit(do_not_specialize=["rows", "columns", "depth"])
def _distances(left, right, sums, rows, columns, depth, power: tl.constexpr, side: tl.constexpr):
    """Σ_k |x_ki − y_kj|^power of x `[depth, rows]` and y `[depth, columns]`."""
    i = tl.program_id(1).to(tl.int64) * side + tl.arange(0, side)
    j = tl.program_id(0).to(tl.int64) * side + tl.arange(0, side)
    total = tl.zeros((side, side), sums.dtype.element_ty)
    for _ in range(depth):
        x = tl.load(left + i, i < rows, other=0.0)
        y = tl.load(right + j, j < columns, other=0.0)
        difference = x[:, None] - y[None, :]
        total += tl.abs(difference) if power == 1 else difference * difference
        left += rows
        right += columns
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    tl.store(sums + i[:, None] * columns + j[None, :], total, inside)


def distances(left: Tensor, right: Tensor, *, power: Literal[1, 2]) -> Tensor:
    """See `lcmat.selection.differences.direct_distances`."""
    (rows, depth), columns = left.shape, len(right)
    sums = left.new_empty(rows, columns)
    # Rows are those of a tile, columns may be all samples, and only the first axis of a grid takes millions.
    grid = (triton.cdiv(columns, _SIDE), triton.cdiv(rows, _SIDE))
    # Neighbouring samples next to each other, so that a program reads neighbouring numbers.
    sides = left.T.contiguous(), right.T.contiguous()
    with torch.cuda.device_of(left):  # kernels start on the current device
        _distances[grid](*sides, sums, rows, columns, depth, power, _SIDE)
    return sums

"""One pick of facility location as two kernels in Triton: all gains in one pass over the distances, and the pick.

Sums have a fixed order, so that a run can be repeated, and are in double precision. The formulas are those of
`lcmat.selection.sweeps`.
"""

import triton
import triton.language as tl

from lcmat.selection.sweeps import Sweep

_ROWS, _COLUMNS = 4, 512  # of the matrix that a program works on at once: rows share what is read of the samples
_BLOCK = 8192  # samples that the one program that picks looks at together


@triton.jit(do_not_specialize=["n"])
def _gains(matrix, nearest, barred, permutation, gains, n, rows: tl.constexpr, columns: tl.constexpr):
    """Σ_i max(c_i − D_ij, 0) of the samples in the order of the permutation."""
    place = tl.program_id(0) * rows + tl.arange(0, rows)
    there = place < n
    sample = tl.load(permutation + place, there, other=0)
    row = matrix + sample[:, None] * n
    total = tl.zeros((rows, columns), tl.float64)
    for first in range(0, n, columns):
        column = first + tl.arange(0, columns)
        inside = column < n
        current = tl.load(nearest + column, inside, other=0.0)[None, :]
        distances = tl.load(row + column[None, :], there[:, None] & inside[None, :], other=0.0)
        total += tl.maximum(current - distances, 0.0).to(tl.float64)
    tl.store(gains + place, tl.sum(total, 1) + tl.load(barred + sample, there, other=0.0), there)


@triton.jit(do_not_specialize=["n", "t"])
def _take(matrix, nearest, barred, permutation, gains, order, totals, n, t, block: tl.constexpr):
    """The first of the largest gains, and what its pick changes."""
    lanes = tl.arange(0, block)
    largest = tl.full((block,), float("-inf"), tl.float64)
    for first in range(0, n, block):
        found = tl.load(gains + first + lanes, first + lanes < n, other=float("-inf"))
        largest = tl.maximum(largest, found)
    best = tl.max(largest, 0)
    places = tl.zeros((block,), tl.int32) + (n - 1)
    for first in range(0, n, block):
        found = tl.load(gains + first + lanes, first + lanes < n, other=float("-inf"))
        places = tl.minimum(places, tl.where(found == best, first + lanes, n - 1))
    pick = tl.load(permutation + tl.min(places, 0))
    tl.store(order + t, pick)
    tl.store(barred + pick, float("-inf"))
    total = tl.zeros((block,), tl.float64)
    for first in range(0, n, block):
        inside = first + lanes < n
        current = tl.load(nearest + first + lanes, inside, other=0.0)
        current = tl.minimum(current, tl.load(matrix + pick * n + first + lanes, inside, other=0.0))
        tl.store(nearest + first + lanes, current, inside)
        total += current.to(tl.float64)
    tl.store(totals + t, tl.sum(total, 0))


def step(run: Sweep, t: int) -> None:
    """Make the pick at place t."""
    n = len(run.matrix)
    state = (run.matrix, run.nearest, run.barred, run.permutation, run.gains)
    _gains[(triton.cdiv(n, _ROWS),)](*state, n, _ROWS, _COLUMNS)
    _take[(1,)](*state, run.order, run.totals, n, t, _BLOCK, num_warps=16)

"""Distances by the differences themselves, Σ_k |x_ik − y_jk|^p, so that nothing cancels."""

from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor

from lcmat import kernels

FEW = 8  # rows whose differences a GPU takes directly: each operation saved is time, the arithmetic is none
BLOCK = 2**24  # differences taken at once on a GPU: 67 MB in single precision


def direct_distances(left: Tensor, right: Tensor, *, power: Literal[1, 2]) -> Tensor:
    """Σ_k |x_ik − y_jk|^power, difference by difference, so that nothing cancels, `[rows, columns]`.

    Example:
        >>> direct_distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, -4.0]]), power=1).tolist()
        [[7.0]]
    """
    if left.device.type == "cpu":
        distances = torch.cdist(left, right, p=power, compute_mode="donot_use_mm_for_euclid_dist")
        return distances.square_() if power == 2 else distances
    fused = _kernels(left.device) if left.device.type == "cuda" and len(left) > FEW else None
    return _by_broadcasting(left, right, power=power) if fused is None else fused.distances(left, right, power=power)


def _by_broadcasting(left: Tensor, right: Tensor, *, power: Literal[1, 2]) -> Tensor:
    """`direct_distances` through the differences themselves: on a GPU several times faster than `torch.cdist`."""
    total = left.new_empty(len(left), len(right))
    rows = max(1, BLOCK // max(1, right.numel()))
    for start in range(0, len(left), rows):
        differences = left[start : start + rows, None] - right
        differences = differences.abs_() if power == 1 else differences.square_()
        torch.sum(differences, -1, out=total[start : start + rows])
    return total


@cache
def _kernels(device: torch.device) -> Any:
    """The module with a kernel in Triton, if there is one and it gives there what plain torch gives; else None."""
    return kernels.tried(
        "lcmat.selection.fused_differences", lambda fused: _compare(fused, device), doing="measuring distances"
    )


def _compare(fused: Any, device: torch.device) -> None:
    """Whether the kernel does what plain torch does.

    Raises:
        AssertionError: when it does not.
    """
    # Some numbers between -1 and 1; no generator is touched.
    left, right = (torch.arange(n * 7.0, device=device).mul(1.7).sin().reshape(n, 7) for n in (70, 30))
    powers: tuple[Literal[1], Literal[2]] = (1, 2)
    for power in powers:
        found = fused.distances(left, right, power=power)
        torch.testing.assert_close(found, _by_broadcasting(left, right, power=power))

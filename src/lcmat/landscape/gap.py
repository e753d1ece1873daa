"""The one function that everything here looks at: h(ε) = L(T; θ + ε) − L(S; θ + ε)."""

from typing import Protocol

import torch
from torch import Tensor


class Gap(Protocol):
    """The difference of two mean losses around a parameter point θ, with L_abs = |h|.

    Displacements, gradients and directions are flat vectors `[size]` over the parameters that are looked at.
    """

    @property
    def size(self) -> int:
        """The number of parameters."""

    @property
    def dtype(self) -> torch.dtype:
        """The type of displacements."""

    @property
    def device(self) -> torch.device:
        """Where displacements are."""

    def value(self, shift: Tensor) -> float:
        """The difference h(ε)."""

    def value_and_gradient(self, shift: Tensor) -> tuple[float, Tensor]:
        """The difference h(ε) and its gradient."""

    def product(self, direction: Tensor) -> Tensor:
        """The Hessian of h at θ, H_T − H_S, times a direction."""

"""Batch norm with what usually stands behind it, so that a GPU can do both at once."""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from lcmat import kernels


class BatchNorm(nn.BatchNorm2d):
    """relu(norm(x) + shortcut): `nn.BatchNorm2d`, the sum with a shortcut, and the ReLU, both optional.

    In training on CUDA, maps whose channels lie last go through two kernels, where Triton can build them.

    Attributes:
        relu: whether a ReLU follows.
        kernels: whether there may be such kernels.

    Example:
        >>> import torch
        >>> norm = BatchNorm(3, relu=True)
        >>> maps = torch.randn(2, 3, 4, 4)
        >>> bool((norm(maps, shortcut=maps) >= 0).all())
        True
    """

    kernels = True
    tickets: Tensor

    def __init__(self, channels: int, *, relu: bool = False, eps: float = 1e-5) -> None:
        super().__init__(channels, eps)
        self.relu = relu
        self.register_buffer("tickets", torch.zeros(channels, dtype=torch.int32), persistent=False)

    def forward(self, input: Tensor, shortcut: Tensor | None = None) -> Tensor:  # noqa: A002, the name in torch
        """Maps `[n, channels, h, w]`, and a shortcut of the same shape -> maps of the same shape."""
        if (fused := self._kernels_for(input, shortcut)) is not None:
            running = self.running_mean, self.running_var, self.num_batches_tracked
            own: Tensor = fused.norm(
                input, shortcut, self.weight, self.bias, running, self.tickets,
                momentum=self.momentum, eps=self.eps, relu=self.relu,
            )  # fmt: skip
            return own
        outputs = super().forward(input)
        if shortcut is not None:
            outputs = outputs + shortcut
        return torch.relu(outputs) if self.relu else outputs

    def _kernels_for(self, maps: Tensor, shortcut: Tensor | None) -> Any:
        """The kernels, where they can do this."""
        if not (self.kernels and self.training and maps.is_cuda):
            return None
        usual = self.momentum is not None and self.affine and self.running_mean is not None
        dual = forward_ad.unpack_dual(maps).tangent is not None
        fused = fused_kernels(maps.device) if usual and not dual else None
        return fused if fused is not None and fused.suits(maps, shortcut) else None


@cache
def fused_kernels(device: torch.device) -> Any:
    """The module with the kernels, if it can be had and gives there what the layers give; else None."""
    return kernels.tried("lcmat.networks.fused_norm", lambda fused: _compare(fused, device), doing="training")


def _compare(fused: Any, device: torch.device) -> None:
    """Whether kernels and layers agree on some maps, with all derivatives.

    Raises:
        AssertionError: when they do not.
    """
    # Some numbers between -1 and 1; no generator is touched.
    numbers = (torch.arange(3 * 70 * 16.0, device=device).mul(step).sin() for step in (1.0, 1.7))
    maps, shortcut = (
        part.reshape(3, 70, 4, 4).contiguous(memory_format=torch.channels_last).requires_grad_() for part in numbers
    )
    weight, bias = (torch.linspace(low, 1, 70, device=device).requires_grad_() for low in (0.5, -1.0))
    tickets = torch.zeros(70, dtype=torch.int32, device=device)
    for inputs, relu in (((maps, shortcut), True), ((maps, None), True), ((maps, None), False)):
        running = (
            torch.zeros(70, device=device),
            torch.ones(70, device=device),
            tickets.new_zeros((), dtype=torch.int64),
        )
        norm = nn.BatchNorm2d(70).to(device)
        with torch.enable_grad():
            own = fused.norm(*inputs, weight, bias, running, tickets, momentum=0.1, eps=1e-5, relu=relu)
            truth = fused.layers(*inputs, weight, bias, 1e-5, relu=relu)
            wanted = [part for part in (*inputs, weight, bias) if part is not None]
            found, expected = (torch.autograd.grad((y * y.sin()).sum(), wanted) for y in (own, truth))
        norm(maps.detach())
        measured = norm.running_mean, norm.running_var, norm.num_batches_tracked
        torch.testing.assert_close((own, *found, *running), (truth, *expected, *measured), rtol=1e-3, atol=1e-4)

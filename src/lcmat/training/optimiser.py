"""The optimiser and the schedule of its rate."""

import math

import torch
from torch import Tensor, nn

from lcmat.training.settings import Settings

# The cosine ends here, as in the official code, whatever the rate it starts from (but never above that).
FINAL_RATE = 1e-4


def rate_at(step: int, steps: int, lr: float, schedule: str) -> float:
    """The learning rate of a step, counted from 0.

    'cosine' is η_t = η_min + (lr − η_min)·(1 + cos(π·t/T))/2 with η_min = 10⁻⁴ (lr where that is smaller), changed at
    every step; Loshchilov and Hutter, SGDR, ICLR 2017. 'drops' multiplies lr by 0.2 after 2/3 and again after 5/6 of
    all steps, as condensed sets are evaluated.

    Example:
        >>> [round(rate_at(step, 4, 0.1, "cosine"), 4) for step in range(4)]
        [0.1, 0.0854, 0.0501, 0.0147]
    """
    if schedule == "constant":
        return lr
    if schedule == "drops":
        return lr * 0.2 ** ((3 * step >= 2 * steps) + (6 * step >= 5 * steps))
    end = min(FINAL_RATE, lr)
    return end + (lr - end) * (1 + math.cos(math.pi * step / steps)) / 2


class Optimiser:
    """torch's fused SGD or Adam, with the rate as a number on the device, so that a captured graph reads it anew.

    Attributes:
        weights: the parameters that are trained.
        rate: the learning rate, 0-dimensional.
    """

    def __init__(self, model: nn.Module, settings: Settings, device: torch.device) -> None:
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        if not self.weights:
            raise ValueError(
                "expected a model with parameters to train, but none of its parameters requires a gradient"
            )
        self.rate = torch.tensor(settings.lr, dtype=torch.float32, device=device)
        self._optimizer: torch.optim.Optimizer
        if settings.optimizer == "adam":
            self._optimizer = torch.optim.Adam(
                self.weights,
                lr=self.rate,
                weight_decay=settings.weight_decay,
                fused=True,
                capturable=device.type == "cuda",
            )
        else:
            self._optimizer = torch.optim.SGD(
                self.weights,
                lr=self.rate,
                momentum=settings.momentum,
                nesterov=settings.nesterov and settings.momentum > 0,
                weight_decay=settings.weight_decay,
                fused=True,
            )
        # Gradients from elsewhere must not count in the first step.
        self._optimizer.zero_grad()

    def step(self) -> None:
        """Move the weights by their gradients, and drop the gradients."""
        for weight in self.weights:
            gradient = weight.grad
            # The fused kernels want both in the same layout, to which autograd does not hold in dimensions of size 1.
            if gradient is not None and gradient.stride() != weight.stride():
                weight.grad = torch.empty_like(weight).copy_(gradient)
        self._optimizer.step()
        self._optimizer.zero_grad()

    def state(self) -> dict[str, Tensor]:
        """Momentum and the like as named tensors; 'INDEX/NAME'."""
        return {
            f"{index}/{name}": value
            for index, weight in enumerate(self.weights)
            for name, value in self._optimizer.state[weight].items()
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Take back what `state` gave."""
        for key, value in state.items():
            index, name = key.split("/")
            weight = self.weights[int(index)]
            like = weight if value.shape == weight.shape else torch.empty_like(value, device=weight.device)
            self._optimizer.state[weight][name] = torch.empty_like(like, dtype=value.dtype).copy_(value)

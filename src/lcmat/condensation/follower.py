"""The network that looks at real and synthetic samples: drawn anew every so often, trained in between."""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional

from lcmat import networks, seeding
from lcmat.condensation.convolutions import FewChannels
from lcmat.condensation.norms import ChannelNorm, NormReluPool
from lcmat.condensation.plan import Plan
from lcmat.training.inference import full_type
from lcmat.training.inputs import input_type
from lcmat.types import Data


class Follower:
    """The network of one condensation.

    Attributes:
        net: with weights in float32, which looks at synthetic samples.
        quick: what looks at real samples and learns from them: a copy in bfloat16, or the network itself.
        optimiser: of the network's weights.
        drawn: how many networks there have been.
    """

    def __init__(self, data: Data, plan: Plan, device: torch.device, *, precision: str) -> None:
        self._data, self._plan = data, plan
        self.drawn = 0
        self.net = self._draw().to(device).train()
        # Rounding to bfloat16 moves a class's mean gradient far less than another draw of its real samples does.
        self.quick = deepcopy(self.net).bfloat16() if precision == "bf16" else self.net
        # What is done to all weights, many small tensors, is done to one: launches would take most of the time.
        self._weights = self._quick_weights = joined(self.net)
        if self.quick is not self.net:
            self._quick_weights = joined(self.quick)
        recipe = plan.recipe
        self.optimiser = torch.optim.SGD(
            [self._weights],
            lr=recipe.network_lr,
            momentum=recipe.network_momentum,
            weight_decay=recipe.network_decay,
            # Its fused kernel is meant for large networks, and takes longer than three small ones here.
            foreach=False,
        )

    def renew(self) -> None:
        """Draw the network's weights anew, in place, so that a captured graph finds them."""
        self.net.load_state_dict(self._draw().state_dict())
        for state in self.optimiser.state.values():
            if state.get("momentum_buffer") is not None:
                state["momentum_buffer"].zero_()
        self._update_quick()
        self.drawn += 1

    def train(self, inputs: Tensor, targets: Tensor, *, size: int) -> Tensor:
        """Steps of training on one batch after the other; the loss of the last.

        Args:
            inputs: `[steps·size, ...]`.
            targets: distributions over the classes, `[steps·size, C]`.
            size: of a batch.
        """
        weights = list(self.quick.parameters())
        for batch, wanted in zip(inputs.to(input_type(self.quick)).split(size), targets.split(size), strict=True):
            logits = full_type(self.quick(batch))
            # The derivative of the mean cross-entropy by its formula, in a third of the launches.
            slopes = (logits.detach().softmax(1) - wanted) / len(wanted)
            found = torch.autograd.grad(logits, weights, slopes, materialize_grads=True)
            self._weights.grad = torch.cat([part.flatten() for part in found]).to(self._weights.dtype)
            self.optimiser.step()
            self._update_quick()
        return functional.cross_entropy(logits.detach(), wanted)

    def _draw(self) -> nn.Module:
        seed = seeding.derive(self._plan.seed, "condensation", "network", self.drawn)
        return lightened(networks.build(self._plan.net, self._data, seed=seed))

    def _update_quick(self) -> None:
        if self.quick is not self.net:
            self._quick_weights.copy_(self._weights)


def joined(net: nn.Module) -> Tensor:
    """All weights of a network, one behind the other in one tensor, of which they are parts from now on.

    Example:
        >>> from torch import nn
        >>> net = nn.Linear(2, 1)
        >>> _ = joined(net).copy_(torch.arange(3.0))
        >>> net.weight.tolist(), net.bias.tolist()
        ([[0.0, 1.0]], [2.0])
    """
    weights = list(net.parameters())
    together = torch.cat([weight.detach().flatten() for weight in weights])
    for weight, part in zip(weights, together.split([weight.numel() for weight in weights]), strict=True):
        weight.data = part.view_as(weight)
    return together


def lightened(net: nn.Module) -> nn.Module:
    """The same function in fewer passes over its maps.

    Norms of each channel become `ChannelNorm`, or `NormReluPool` with what follows, and the biases of convolutions go
    that such a norm takes out again; without one, those of images become `FewChannels`.
    """
    for part in list(net.modules()):
        if isinstance(part, nn.Sequential):
            for place, norm in enumerate(list(part)):
                if isinstance(norm, nn.GroupNorm) and norm.num_groups == norm.num_channels and norm.affine:
                    _lighten(part, place, norm)
    return net


def _lighten(layers: nn.Sequential, place: int, norm: nn.GroupNorm) -> None:
    before, behind = list(layers)[:place], list(layers)[place + 1 : place + 3]
    if before and isinstance(before[-1], nn.Conv2d):
        before[-1].bias = None
        if FewChannels.suits(before[-1]):
            layers[place - 1] = FewChannels.of(before[-1])
    layers[place] = ChannelNorm.of(norm)
    if len(behind) == 2 and isinstance(behind[0], nn.ReLU) and _halves(behind[1]):
        layers[place] = NormReluPool.of(norm)
        layers[place + 1], layers[place + 2] = nn.Identity(), nn.Identity()


def _halves(layer: nn.Module) -> bool:
    """Whether a layer is the 2 × 2 average pool."""
    return isinstance(layer, nn.AvgPool2d) and str(layer) == str(nn.AvgPool2d(2))

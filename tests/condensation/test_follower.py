"""The network of a condensation against one that is trained weight by weight."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from condensation.cases import NET, images
from lcmat.condensation.follower import Follower
from lcmat.condensation.plan import make_plan
from lcmat.seeding import generator


def follower(precision: str) -> Follower:
    plan = make_plan(
        images(), "lcmat-c", {}, per_class=1, net=NET, factor=1, start="noise", labels="hard", classes=None,
        together=None, seed=0,
    )  # fmt: skip
    return Follower(images(), plan, torch.device("cpu"), precision=precision)


def batches() -> tuple[Tensor, Tensor]:
    """Three of six samples each, with soft labels."""
    draws = generator(0, "follower")
    inputs = torch.randn(18, *images().inputs.shape[1:], generator=draws)
    return inputs, torch.rand(18, 3, generator=draws).softmax(1)


def train_weight_by_weight(net: nn.Module, quick: nn.Module) -> Tensor:
    """The gradients of `quick`, steps of `net`; each weight by itself, with the settings of LCMat-C."""
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    for inputs, targets in zip(*(part.split(6) for part in batches()), strict=True):
        loss = functional.cross_entropy(quick(inputs.to(next(quick.parameters()).dtype)).float(), targets)
        found = torch.autograd.grad(loss, list(quick.parameters()))
        for weight, gradient in zip(net.parameters(), found, strict=True):
            weight.grad = gradient.float()
        optimiser.step()
        quick.load_state_dict(net.state_dict())
    return loss.detach()


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_weights_that_are_joined_are_trained_as_apart(precision: str) -> None:
    own = follower(precision)
    for _ in range(2):
        net = deepcopy(own.net)
        loss = train_weight_by_weight(net, deepcopy(own.quick) if precision == "bf16" else net)
        before = deepcopy(own.net.state_dict())
        torch.testing.assert_close(own.train(*batches(), size=6), loss)
        for name, weight in own.net.state_dict().items():
            torch.testing.assert_close(weight, net.state_dict()[name], rtol=1e-5, atol=1e-7)
            torch.testing.assert_close(
                own.quick.state_dict()[name].float(), weight.to(own.quick.state_dict()[name].dtype).float()
            )
            assert not torch.equal(weight, before[name])
        own.renew()  # a new network, without the momentum of the last one

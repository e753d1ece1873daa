"""The optimiser against torch's plain one, the schedule against torch's."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from lcmat.seeding import generator
from lcmat.training.optimiser import Optimiser, rate_at
from lcmat.training.settings import Settings


def settings(**changes: object) -> Settings:
    given: dict[str, object] = {
        "epochs": 1,
        "steps": None,
        "batch_size": 8,
        "lr": 0.1,
        "momentum": 0.9,
        "nesterov": True,
        "weight_decay": 5e-4,
        "schedule": "constant",
        "optimizer": "sgd",
        "seed": 0,
        "augment": True,
        "snapshots": (),
        "record": False,
        "precision": "float32",
    }
    return Settings(**{**given, **changes})  # type: ignore[arg-type]


def pull(net: nn.Module, step: int) -> None:
    """Leave a gradient on the network's parameters that depends on them and on the step."""
    draws = generator(step)
    loss = torch.zeros((), dtype=torch.float64)
    for weight in net.parameters():
        loss = loss + (weight * torch.randn(weight.shape, generator=draws).double()).sum() + (weight**2).sum()
    loss.backward()


@pytest.mark.parametrize(
    ("changes", "other"),
    [
        ({}, lambda w: torch.optim.SGD(w, 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4, foreach=False)),
        ({"nesterov": False}, lambda w: torch.optim.SGD(w, 0.1, momentum=0.9, weight_decay=5e-4, foreach=False)),
        ({"momentum": 0.0, "weight_decay": 0.0}, lambda w: torch.optim.SGD(w, 0.1, foreach=False)),
        ({"optimizer": "adam", "lr": 0.01}, lambda w: torch.optim.Adam(w, 0.01, weight_decay=5e-4, foreach=False)),
    ],
)
def test_steps_are_those_of_the_plain_optimiser(
    changes: dict[str, object], other: Callable[[list[nn.Parameter]], torch.optim.Optimizer]
) -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).double()
    twin = copy.deepcopy(net)
    ours, theirs = Optimiser(net, settings(**changes), torch.device("cpu")), other(list(twin.parameters()))
    for step in range(6):
        pull(net, step)
        pull(twin, step)
        ours.step()
        theirs.step()
        theirs.zero_grad()
        assert all(weight.grad is None for weight in net.parameters())
    for got, wanted in zip(net.parameters(), twin.parameters(), strict=True):
        # Our rate is a float32 number.
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-8)


def test_the_rate_is_read_anew_at_every_step() -> None:
    net = nn.Linear(2, 1, bias=False).double()
    optimiser = Optimiser(net, settings(momentum=0.0, weight_decay=0.0), torch.device("cpu"))
    for rate in (0.5, 0.0, 0.25):
        before = net.weight.detach().clone()
        net.weight.grad = torch.ones_like(net.weight)
        optimiser.rate.fill_(rate)
        optimiser.step()
        torch.testing.assert_close(net.weight.detach(), before - rate)


def test_a_gradient_in_another_layout_counts_the_same() -> None:
    net = nn.Conv2d(1, 3, 2, bias=False)
    optimiser = Optimiser(net, settings(momentum=0.0, weight_decay=0.0, lr=1.0), torch.device("cpu"))
    before = net.weight.detach().clone()
    gradient = torch.arange(12.0).reshape(3, 1, 2, 2)
    net.weight.grad = gradient.permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2)
    assert net.weight.grad.stride() != net.weight.stride()
    optimiser.step()
    torch.testing.assert_close(net.weight.detach(), before - gradient)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_state_goes_on_where_it_was(optimizer: str) -> None:
    net = nn.Linear(4, 3).double()
    first = Optimiser(net, settings(optimizer=optimizer, lr=0.01), torch.device("cpu"))
    for step in range(3):
        pull(net, step)
        first.step()
    twin = copy.deepcopy(net)
    second = Optimiser(twin, settings(optimizer=optimizer, lr=0.01), torch.device("cpu"))
    second.load({name: value.clone() for name, value in first.state().items()})
    for model, optimiser in ((net, first), (twin, second)):
        pull(model, 3)
        optimiser.step()
    assert torch.equal(net.weight, twin.weight)


def test_the_cosine_is_torch_s_and_ends_at_one_ten_thousandth() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30, eta_min=1e-4)
    for step in range(30):
        assert rate_at(step, 30, 0.1, "cosine") == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        optimizer.step()
        scheduler.step()
    assert rate_at(30, 30, 0.1, "cosine") == pytest.approx(1e-4)
    assert rate_at(7, 30, 0.1, "constant") == 0.1


def test_the_cosine_never_rises() -> None:
    rates = [rate_at(step, 10, 1e-5, "cosine") for step in range(10)]
    assert rates == sorted(rates, reverse=True)

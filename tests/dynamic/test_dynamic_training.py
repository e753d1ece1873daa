from typing import Any

import pytest
import torch
from torch import nn

import lcmat
from lcmat import dynamic, training
from lcmat.dynamic.training import Trained
from lcmat.types import Splits
from samples import digits_like, normalised_net, same_state, vectors


@pytest.fixture(scope="module")
def digits() -> Splits:
    return lcmat.load("digits")


def test_everything_trains_as_well_as_the_plain_loop() -> None:
    data, test = digits_like(120), digits_like(60)
    settings: dict[str, Any] = {"epochs": 8, "batch_size": 32, "lr": 0.05, "schedule": "cosine"}
    ours = dynamic.train("convnet:width=8,depth=2", data, "full", **settings)
    plain = training.train("convnet:width=8,depth=2", data, **settings)
    log = training.log_of(plain)
    assert log is not None
    assert ours.visits == (120,) * 8
    assert ours.losses[-1] == pytest.approx(log.losses[-1], abs=0.1)
    assert training.accuracy(ours.model, test) == training.accuracy(plain, test) == 1.0
    assert not ours.model.training


def test_a_seed_repeats_a_training_and_leaves_the_generators_alone() -> None:
    data, net = digits_like(60), normalised_net()
    state = torch.random.get_rng_state()

    def run(seed: int) -> Trained:
        return dynamic.train(net, data, "lcmat-s", 0.2, epochs=3, choose={"every": 2, "rho": 0.1}, seed=seed)

    first, second, other = run(0), run(0), run(1)
    assert same_state(first.model, second.model)
    assert first.losses == second.losses
    assert not same_state(first.model, other.model)
    assert same_state(net, normalised_net())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert first.cost.turns == 2
    assert first.seconds == pytest.approx(first.cost.training + first.cost.spent, rel=0.2)


def test_weights_change_what_is_learnt() -> None:
    data = vectors(60)
    plain, weighted = (
        dynamic.train("mlp:width=8", data, "craig", 0.2, epochs=2, choose={"weighted": flag}) for flag in (False, True)
    )
    assert not same_state(plain.model, weighted.model)


def test_a_training_that_diverges_is_stopped() -> None:
    with pytest.raises(ValueError, match=r"diverged in epoch \d+.*lower learning rate"):
        dynamic.train("mlp:width=8", vectors(60), "full", epochs=30, lr=1e6)


def test_infobatch_learns_the_digits_from_fewer_visits(digits: Splits) -> None:
    pruned = dynamic.train("convnet:width=16", digits.train, "infobatch", epochs=10, batch_size=64)
    assert sum(pruned.visits) < 0.85 * 10 * len(digits.train)
    assert pruned.visits[0] == pruned.visits[-1] == len(digits.train)
    assert training.accuracy(pruned.model, digits.test) > 0.9


@pytest.mark.parametrize(("method", "least"), [("random", 0.85), ("lcmat-s", 0.8)])
def test_a_tenth_of_the_digits_in_an_epoch_is_enough(digits: Splits, method: str, least: float) -> None:
    choose = {"every": 5} if method == "lcmat-s" else {}
    found = dynamic.train("convnet:width=16", digits.train, method, 0.1, epochs=40, batch_size=32, choose=choose)
    assert set(found.visits) == {144}
    assert training.accuracy(found.model, digits.test) > least


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["infobatch", "random", "lcmat-s"])
def test_the_captured_step_trains_like_the_plain_one(method: str) -> None:
    data = digits_like(80)
    budget: dict[str, Any] = {} if method == "infobatch" else {"fraction": 0.4}
    settings: dict[str, Any] = {"epochs": 6, "batch_size": 16, "lr": 0.02, "device": "cuda", "precision": "float32"}
    first, second = (
        dynamic.train("convnet:width=8", data, method, **budget, **settings, graph=graph) for graph in (True, False)
    )
    assert first.visits == second.visits
    assert first.losses == pytest.approx(second.losses, rel=1e-3)


class Headless(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5, 3))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs @ self.weight


def test_a_model_without_a_linear_layer_trains_on_what_needs_no_signals_only() -> None:
    with pytest.raises(ValueError, match=r"has no nn\.Linear"):
        dynamic.train(Headless(), vectors(30), "craig", 0.2, epochs=1)
    assert len(dynamic.train(Headless(), vectors(30), "random", 0.2, epochs=1).losses) == 1

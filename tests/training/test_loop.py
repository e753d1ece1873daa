"""The training loop: against an explicit reference, its order, its promises about state."""

import copy
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lcmat.seeding import generator
from lcmat.training import TrainingLog, log_of, predict, train
from lcmat.types import Data
from samples import NormalisedNet, digits_like, normalised_net, same_state, vectors


def double_net(d: int = 5, classes: int = 3) -> nn.Module:
    draws = generator(5)
    net = nn.Sequential(nn.Linear(d, 6), nn.Tanh(), nn.Linear(6, classes)).double()
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(torch.randn(weight.shape, generator=draws, dtype=torch.float64) / 2)
    return net


def reference(
    net: nn.Module, data: Data, *, epochs: int, batch: int, lr: float, cosine: bool, weights: Tensor | None
) -> nn.Module:
    """Nesterov SGD (momentum 0.9, decay 5·10⁻⁴) written out, with torch's scheduler for the cosine."""
    net = copy.deepcopy(net)
    inputs = (data.inputs.double() - torch.tensor(data.mean)) / torch.tensor(data.std)
    relative = torch.ones(len(data)).double() if weights is None else weights.double() / weights.double().mean()
    steps = epochs * -(-len(data) // batch)
    dummy = torch.optim.SGD([torch.zeros(1)], lr=lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(dummy, steps, eta_min=1e-4)
    order = generator(3, "order")
    velocity = [torch.zeros_like(weight) for weight in net.parameters()]
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(data), generator=order), batch):
            logits = net(inputs[rows])
            own = torch.log_softmax(logits, 1)[torch.arange(len(rows)), data.labels[rows]]
            loss = -(relative[rows] * own).sum() / len(rows)
            gradients = torch.autograd.grad(loss, list(net.parameters()))
            rate = dummy.param_groups[0]["lr"] if cosine else lr
            with torch.no_grad():
                for weight, gradient, speed in zip(net.parameters(), gradients, velocity, strict=True):
                    decayed = gradient + 5e-4 * weight
                    speed.mul_(0.9).add_(decayed)
                    weight.sub_(rate * (decayed + 0.9 * speed))
            dummy.step()
            scheduler.step()
    return net


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_training_is_what_the_formulas_say(schedule: str, weighted: bool) -> None:
    data = vectors(50)
    weights = torch.rand(50, generator=generator(9)) * 8 if weighted else None
    trained = train(
        double_net(), data, epochs=4, batch_size=16, lr=0.05, schedule=schedule, weights=weights, seed=3, device="cpu"
    )
    expected = reference(double_net(), data, epochs=4, batch=16, lr=0.05, cosine=schedule == "cosine", weights=weights)
    for got, wanted in zip(trained.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-7)


def test_a_sample_of_weight_zero_does_not_count() -> None:
    data = vectors(48)
    weights = torch.ones(48)
    weights[40:] = 0
    spoilt = data.take(torch.arange(48))
    spoilt.labels[40:] = 0
    first, second = (
        train("mlp:width=8", part, epochs=2, batch_size=48, weights=weights, device="cpu") for part in (data, spoilt)
    )
    assert same_state(first, second)
    assert not same_state(first, train("mlp:width=8", data, epochs=2, batch_size=48, device="cpu"))


def test_the_same_seed_gives_the_same_weights_and_another_one_others() -> None:
    data = digits_like()
    first, second, other = (
        train(
            NormalisedNet if seed is None else normalised_net(), data, epochs=2, batch_size=16, seed=seed, device="cpu"
        )
        for seed in (0, 0, 1)
    )
    assert same_state(first, second)
    assert not same_state(first, other)


def numpy_state() -> str:
    return repr(np.random.get_state(legacy=False))  # noqa: NPY002


def test_the_global_generators_are_left_alone() -> None:
    states = (torch.get_rng_state(), numpy_state(), random.getstate())
    train(normalised_net(), digits_like(), epochs=1, record=True, device="cpu")
    assert torch.equal(torch.get_rng_state(), states[0])
    assert numpy_state() == states[1]
    assert random.getstate() == states[2]


def test_dropout_does_not_depend_on_the_global_generator() -> None:
    data = digits_like()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(1)
        first = train(normalised_net(), data, epochs=1, device="cpu")
        torch.default_generator.manual_seed(2)
        second = train(normalised_net(), data, epochs=1, device="cpu")
    assert same_state(first, second)


def test_a_module_is_copied_and_stays_as_it_was() -> None:
    net = normalised_net()
    before = copy.deepcopy(net)
    net(torch.zeros(2, 1, 8, 8)).sum().backward()  # gradients from elsewhere must not count
    gradients = [weight.grad.clone() for weight in net.parameters() if weight.grad is not None]
    net.load_state_dict(before.state_dict())
    net.convolution.eval()
    trained = train(net, digits_like(), epochs=1, device="cpu")
    assert same_state(net, before)
    assert not same_state(trained, before)
    assert same_state(trained, train(before, digits_like(), epochs=1, device="cpu"))
    assert [part.training for part in net.modules()] == [True, False, True, True, True]
    assert not any(part.training for part in trained.modules())
    kept = [weight.grad for weight in net.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(kept, gradients, strict=True) if a is not None)
    assert log_of(net) is None


def test_epochs_are_steps_and_the_last_epoch_may_be_cut_short() -> None:
    data = vectors(50)
    settings: dict[str, Any] = {"batch_size": 16, "device": "cpu"}
    by_epochs = train("mlp:width=8", data, epochs=2, **settings)
    assert same_state(by_epochs, train("mlp:width=8", data, steps=8, **settings))
    short = train("mlp:width=8", data, steps=6, snapshots=(1, 2), **settings)
    assert len(log_of(short).losses) == 2  # type: ignore[union-attr]
    assert same_state(short, train("mlp:width=8", data, steps=6, **settings))
    assert not same_state(short, by_epochs)


def test_data_smaller_than_a_batch_train_in_one_batch() -> None:
    calls: list[tuple[int, int]] = []
    train("mlp:width=8", vectors(20), epochs=3, device="cpu", progress=lambda *call: calls.append(call))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_a_single_last_sample_joins_the_batch_before_it() -> None:
    sizes: list[int] = []
    net = nn.Sequential(nn.Flatten(), nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    net.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    train(net, vectors(33), epochs=1, batch_size=16, device="cpu")
    assert sizes == [16, 17]


def test_every_sample_is_seen_once_an_epoch_and_in_another_order_each_time() -> None:
    data = vectors(30)
    seen: list[Tensor] = []
    net = nn.Sequential(nn.Linear(5, 3))
    net.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    train(net, data, epochs=2, batch_size=8, device="cpu")
    inputs = (data.features - torch.tensor(data.mean)) / torch.tensor(data.std)
    rows = [(row - inputs).abs().sum(1).argmin().item() for row in torch.cat(seen)]
    assert sorted(rows[:30]) == sorted(rows[30:]) == list(range(30))
    assert rows[:30] != rows[30:]


def test_snapshots_and_record_agree_with_the_model_at_that_epoch() -> None:
    data = digits_like()
    trained = train(normalised_net(), data, epochs=3, batch_size=16, snapshots=(2, 0, 3), record=True, device="cpu")
    log = log_of(trained)
    assert isinstance(log, TrainingLog)
    assert log.record is not None
    assert list(log.snapshots) == [0, 2, 3]
    assert log.record.correct.shape == (3, len(data))
    twin = normalised_net()
    assert all(torch.equal(value, log.snapshots[0][name]) for name, value in twin.state_dict().items())
    for epoch in (2, 3):
        twin.load_state_dict(log.snapshots[epoch])
        probabilities = predict(twin, data, device="cpu").double().softmax(1)
        own = probabilities[torch.arange(len(data)), data.labels]
        torch.testing.assert_close(log.record.probability[epoch - 1].double(), own, atol=1e-6, rtol=1e-5)
        assert torch.equal(log.record.correct[epoch - 1], probabilities.argmax(1) == data.labels)
    assert same_state(twin, trained)


def test_recording_changes_nothing() -> None:
    data = digits_like()
    plain, recorded = (
        train(normalised_net(), data, epochs=2, record=record, snapshots=(1,) * record, device="cpu")
        for record in (False, True)
    )
    assert same_state(plain, recorded)


def test_the_loss_falls_and_is_the_mean_over_the_samples() -> None:
    data = vectors(50)
    net = nn.Sequential(nn.Linear(5, 3))
    log = log_of(train(net, data, epochs=20, batch_size=16, device="cpu"))
    assert log is not None
    assert log.losses[-1] < 0.8 * log.losses[0]
    frozen = log_of(train(net, data, epochs=1, batch_size=16, lr=1e-12, device="cpu"))
    expected = nn.functional.cross_entropy(predict(net, data, device="cpu"), data.labels)
    assert frozen is not None
    assert frozen.losses[0] == pytest.approx(float(expected), rel=1e-5)


def test_adam_learns_too() -> None:
    log = log_of(train("mlp:width=8", vectors(50), epochs=60, optimizer="adam", lr=1e-2, device="cpu"))
    assert log is not None
    assert log.losses[-1] < 0.5 * log.losses[0]


def test_parameters_that_need_no_gradient_stay() -> None:
    net = normalised_net()
    net.convolution.requires_grad_(False)
    trained = train(net, digits_like(), epochs=1, device="cpu")
    assert torch.equal(trained.convolution.weight, net.convolution.weight)  # type: ignore[union-attr,arg-type]
    assert not torch.equal(trained.fc.weight, net.fc.weight)  # type: ignore[union-attr,arg-type]
    with pytest.raises(ValueError, match="none of its parameters requires a gradient"):
        train(net.requires_grad_(False), digits_like(), epochs=1, device="cpu")


def test_a_loss_that_is_not_finite_stops_the_training_and_names_the_step() -> None:
    with pytest.raises(
        ValueError, match=r"loss of step \d+ of 20 is (nan|inf); give a lower learning rate than lr=1e\+30"
    ):
        train("mlp:width=8", vectors(50), steps=20, lr=1e30, device="cpu")


def test_one_class_is_refused() -> None:
    data = vectors(30)
    with pytest.raises(ValueError, match="at least two classes to train on, got only 10 of class 'class 1'"):
        train("mlp", data.take((data.labels == 1).nonzero().flatten()), epochs=1, device="cpu")


def test_a_model_with_too_few_outputs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected logits of shape \[30, 3\].*got \[30, 2\]"):
        train(nn.Linear(5, 2), vectors(30), epochs=1, device="cpu")


def test_bf16_trains_about_as_float32_does() -> None:
    losses = [
        log_of(train("mlp:width=8", vectors(50), epochs=5, precision=precision, device="cpu")).losses[-1]  # type: ignore[union-attr]
        for precision in ("float32", "bf16")
    ]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.1)


def test_a_model_that_ends_in_softmax_is_noticed_before_it_learns_badly() -> None:
    data = vectors()
    net = nn.Sequential(nn.Linear(5, 3), nn.Softmax(dim=1))
    with pytest.warns(UserWarning, match="probabilities where the loss takes logits"):
        train(net, data, epochs=1, device="cpu")
    train(net[0], data, epochs=1, device="cpu")  # and no warning, which would be an error here

"""Glister against explicit steps of the last layer's weights."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import lcmat
from lcmat.selection.by_validation import glister
from lcmat.selection.held_out import held_out
from lcmat.types import Picks, Signals
from reference import made_up_signals, per_sample_gradients


def _glister(signals: Signals, count: int, rate: float = 0.1) -> Picks:
    return glister([signals], count, generator=torch.Generator().manual_seed(0), rate=rate)


def _loss(weights: Tensor, signals: Signals) -> Tensor:
    """The mean loss of samples under a head's weights `[C, d+1]`."""
    features = signals.need("features")
    inputs = torch.cat([features, torch.ones(len(features), 1, dtype=torch.float64)], 1)
    return torch.nn.functional.cross_entropy(inputs @ weights.T, signals.need("labels"))


def _split(n: int = 40, held: int = 15, seed: int = 0) -> tuple[Signals, Tensor]:
    """Training Signals with validation Signals of the same head, and its weights."""
    signals, weights = made_up_signals(n=n + held, seed=seed)
    everyone = torch.arange(n + held)
    return replace(signals.take(everyone[:n]), validation=signals.take(everyone[n:])), weights


@pytest.mark.parametrize("validated", [True, False])
def test_every_gain_is_the_fall_of_the_loss_to_first_order(validated: bool) -> None:
    signals, weights = _split()
    judge = signals.validation if validated else signals
    assert judge is not None
    picks = _glister(signals if validated else replace(signals, validation=None), 10, rate=1e-4)
    gradients = per_sample_gradients(signals, weights).reshape(signals.n, *weights.shape)
    assert picks.gains is not None
    for pick, gain in zip(picks.order.tolist(), picks.gains.tolist(), strict=True):
        stepped = weights - 1e-5 * gradients[pick]  # rate / count
        assert gain == pytest.approx(float(_loss(weights, judge) - _loss(stepped, judge)), rel=1e-3, abs=1e-12)
        weights = stepped


def test_every_pick_is_the_best_one_after_the_steps_before_it() -> None:
    # A long step, so that a method that never updates, a static top-k, would pick others.
    signals, weights = _split()
    assert signals.validation is not None
    count, rate = 12, 20.0
    picks = _glister(signals, count, rate)
    gradients = per_sample_gradients(signals, weights).reshape(signals.n, *weights.shape)
    taken: list[int] = []
    static: Tensor | None = None
    for pick in picks.order.tolist():
        slope = torch.autograd.functional.jacobian(lambda w: _loss(w, held_out(signals)), weights)
        values = (gradients * slope).sum((1, 2))
        static = values if static is None else static
        values[taken] = -torch.inf
        assert float(values[pick]) == pytest.approx(float(values.max()), rel=1e-9)
        taken.append(pick)
        weights = weights - rate / count * gradients[pick]
    assert static is not None
    assert set(taken) != set(static.argsort(descending=True)[:count].tolist())


def test_more_picks_go_on_lowering_the_validation_loss() -> None:
    signals, weights = _split(n=80)
    assert signals.validation is not None
    gradients = per_sample_gradients(signals, weights).reshape(signals.n, *weights.shape)

    def loss_after(order: Tensor) -> float:
        assert signals.validation is not None
        return float(_loss(weights - 0.5 * gradients[order].mean(0), signals.validation))

    chosen = loss_after(_glister(signals, 8, rate=0.5).order)
    random = [loss_after(torch.randperm(80, generator=torch.Generator().manual_seed(seed))[:8]) for seed in range(50)]
    assert chosen < min(random)


def test_the_training_set_serves_without_validation_signals() -> None:
    signals, _ = made_up_signals(n=30)
    alone = lcmat.select(signals, "glister", count=9)
    itself = lcmat.select(replace(signals, validation=signals), "glister", count=9)
    assert list(alone) == list(itself)
    assert alone.notes == ("glister without validation signals uses the training set",)
    assert itself.notes == ()


def test_a_class_without_validation_samples_is_said_to_be_judged_by_its_own() -> None:
    signals, _ = _split(n=60, held=30)
    assert signals.validation is not None
    lacking = signals.validation.take((signals.validation.need("labels") != 2).nonzero().flatten())
    subset = lcmat.select(replace(signals, validation=lacking), "glister", count=12)
    assert subset.notes == ("glister judges by their own samples the classes that the validation signals lack",)


def test_in_the_class_loop_a_class_is_judged_by_its_own_validation_samples() -> None:
    signals, _ = _split(n=60, held=30)
    assert signals.validation is not None
    validation = signals.validation
    labels = signals.need("labels")
    subset = lcmat.select(signals, "glister", count=12, balance="equal")
    for label in range(4):
        members = (labels == label).nonzero().flatten()
        own = validation.take((validation.need("labels") == label).nonzero().flatten())
        picks = _glister(replace(signals.take(members), validation=own), 3)
        found = [row for row in subset if labels[row] == label]
        assert found == members[picks.order].tolist()


def test_held_out_takes_the_groups_classes_and_else_the_group() -> None:
    signals, _ = _split(n=40, held=30)
    assert signals.validation is not None
    group = signals.take((signals.need("labels") == 2).nonzero().flatten())
    assert set(held_out(group).need("labels").tolist()) == {2}
    lacking = signals.validation.take((signals.validation.need("labels") != 2).nonzero().flatten())
    assert held_out(replace(group, validation=lacking)) is not lacking
    assert held_out(replace(group, validation=lacking)).need("features").equal(group.need("features"))
    assert held_out(signals).n == 30


def test_bad_validation_signals_and_rates_are_refused() -> None:
    signals, _ = _split()
    assert signals.validation is not None
    bad = {
        "none of the logits": replace(signals.validation, logits=None),
        "validation features of 6 columns.*got 5": replace(
            signals.validation, features=signals.validation.need("features")[:, :5]
        ),
        "differ in bias": replace(signals.validation, bias=False),
    }
    for message, validation in bad.items():
        with pytest.raises(ValueError, match=message):
            lcmat.select(replace(signals, validation=validation), "glister", count=3)
    for rate in (0.0, -1.0, float("inf")):
        with pytest.raises(ValueError, match="rate above 0"):
            lcmat.select(signals, "glister", count=3, rate=rate)


def test_given_samples_come_first_and_count_as_steps() -> None:
    signals, _ = _split()
    picks = glister([signals], 6, generator=torch.Generator(), given=torch.tensor([7, 3]), rate=20.0)
    assert picks.order[:2].tolist() == [7, 3]
    assert len(set(picks.order.tolist())) == 6


def test_single_precision_picks_the_same() -> None:
    signals, _ = _split(n=200, held=100)
    assert signals.validation is not None
    single = replace(signals, features=signals.need("features").float())
    assert held_out(single).need("features").dtype == torch.float32
    assert _glister(single, 20).order.equal(_glister(signals, 20).order)


@pytest.mark.gpu
def test_a_gpu_picks_what_a_processor_picks() -> None:
    signals, _ = _split(n=200, held=100)
    assert _glister(signals.to("cuda"), 20).order.cpu().equal(_glister(signals, 20).order)

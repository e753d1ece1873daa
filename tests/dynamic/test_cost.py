import time

import pytest
import torch
from torch import Tensor, nn

from dynamic.cases import small
from lcmat import Signals, extract
from lcmat.dynamic import Cost, Sampler, cost


def visit(sampler: Sampler, seconds: float) -> None:
    rows = torch.tensor(list(sampler))
    time.sleep(seconds)
    sampler.record(rows, torch.ones(len(rows)))


def test_seconds_are_counted_where_they_are_spent() -> None:
    data, model = small()

    def slow(model: nn.Module, rows: Tensor) -> Signals:
        time.sleep(0.05)
        return extract(model, data.take(rows))

    sampler = Sampler(model, data, "herding", 0.25, every=2, signals=slow)
    for _ in range(4):
        visit(sampler, 0.02)
        time.sleep(0.05)  # a test between epochs is no training
    found = sampler.cost
    list(sampler)
    assert found.turns == 2
    assert 0.1 <= found.signals < 0.3
    assert 0.06 <= found.training < 0.12  # the fourth epoch is not over yet
    assert sampler.cost.training >= 0.08
    assert found.saved == pytest.approx(
        4 * found.training, rel=0.01
    )  # three left out for each one visited, so far 4 / 3
    assert found.share == pytest.approx(found.spent / (found.spent + found.training))
    assert Cost(0, 0.0, 0.0, 0.0, 0.0).share == 0


def test_it_warns_once_when_choosing_costs_more_than_it_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_WORTH_A_WARNING", 0.01)
    data, model = small()

    def slow(model: nn.Module, rows: Tensor) -> Signals:
        time.sleep(0.05)
        return extract(model, data.take(rows))

    sampler = Sampler(model, data, "herding", 0.5, signals=slow)
    visit(sampler, 0.0)
    with pytest.warns(
        UserWarning, match=r"training on everything would have been faster; choose less often \(every=\)"
    ):
        visit(sampler, 0.0)
    visit(sampler, 0.0)
    cheap = Sampler(model, data, "herding", 0.1)
    for _ in range(3):
        visit(cheap, 0.03)


def test_the_count_goes_on_after_a_restart() -> None:
    data, model = small()
    sampler = Sampler(model, data, "herding", 0.25)
    visit(sampler, 0.01)
    state = sampler.state_dict()
    again = Sampler(model, data, "herding", 0.25)
    again.load_state_dict(state)
    assert again.cost == sampler.cost
    assert again.cost.turns == 1

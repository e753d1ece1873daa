import itertools

import pytest
import torch
from torch import nn

from dynamic.cases import losses_of, small, train_epoch
from lcmat.dynamic import Sampler
from lcmat.dynamic.baselines import infobatch, random
from lcmat.dynamic.schedule import Losses, Plan


def plan(n: int, count: int, *, epochs: int | None = None, warmup: int = 0, seed: int = 0) -> Plan:
    return Plan(n, count, every=1, warmup=warmup, epochs=epochs, seed=seed)


@pytest.mark.parametrize(("n", "count"), [(20, 5), (20, 6), (7, 7), (9, 2)])
def test_random_sets_without_replacement_cover_all_samples_equally_often(n: int, count: int) -> None:
    schedule = random(plan(n, count))
    visits = torch.zeros(n, dtype=torch.int64)
    for epoch in range(n):  # after n epochs of k samples each was visited exactly k times
        visits += torch.bincount(schedule.pick(epoch).rows, minlength=n)
        assert int(visits.max() - visits.min()) <= 1
    assert visits.tolist() == [count] * n


def test_random_sets_with_replacement_are_drawn_from_everything() -> None:
    schedule = random(plan(20, 10), replacement=True)
    sets = [schedule.pick(epoch).rows.tolist() for epoch in range(40)]
    assert all(len(set(rows)) == 10 for rows in sets)
    assert any(set(first) & set(second) for first, second in itertools.pairwise(sets))
    visits = torch.bincount(torch.tensor(sets).flatten(), minlength=20)
    assert int(visits.max() - visits.min()) > 1
    assert float((visits / 40 - 0.5).abs().max()) < 0.3


def test_infobatch_prunes_only_what_has_a_small_loss_and_weighs_the_rest_of_it_up() -> None:
    schedule = infobatch(plan(1000, 1000, epochs=10), prune=0.4)
    assert len(schedule.pick(0).rows) == 1000  # all scores are 1, and none is below their mean
    losses = torch.linspace(0, 1, 1000, dtype=torch.float64) ** 2
    schedule.learn(Losses(torch.arange(1000), losses, losses < 0.5))
    low = losses < losses.mean()
    picks = schedule.pick(1)
    kept = torch.zeros(1000, dtype=torch.bool)
    kept[picks.rows] = True
    assert bool(kept[~low].all())
    assert float(kept[low].double().mean()) == pytest.approx(0.6, abs=0.07)
    assert picks.weights is not None
    assert torch.allclose(picks.weights, torch.where(low[picks.rows], 1 / 0.6, 1.0))
    assert schedule.pick(2).rows.tolist() != picks.rows.tolist()


def test_infobatch_visits_everything_in_the_last_epochs() -> None:
    schedule = infobatch(plan(100, 100, epochs=8), anneal=0.75)
    losses = torch.arange(100, dtype=torch.float64)
    schedule.learn(Losses(torch.arange(100), losses, losses > 0))
    assert [len(schedule.pick(epoch).rows) < 100 for epoch in range(8)] == [True] * 6 + [False] * 2
    assert schedule.pick(6).weights is None


def test_infobatch_keeps_the_full_gradient_in_expectation() -> None:
    data, model = small()
    names = [name for name, _ in model.named_parameters()]

    def gradient(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        model.zero_grad()
        (losses_of(model, data, rows) * weights).sum().backward()
        return torch.cat([model.get_parameter(name).grad.flatten().double() for name in names])  # type: ignore[union-attr]

    everything = torch.arange(60)
    target = gradient(everything, torch.ones(60))
    losses = losses_of(model, data, everything).detach().double()
    sums = []
    for seed in range(400):
        schedule = infobatch(plan(60, 60, epochs=10, seed=seed))
        schedule.learn(Losses(everything, losses, losses < 1))
        picks = schedule.pick(1)
        assert picks.weights is not None
        sums.append(gradient(picks.rows, picks.weights))
    found = torch.stack(sums)
    error = (found.mean(0) - target).norm() / target.norm()
    # The error of a mean of 400: without the weights it would be about a half of what is pruned.
    noise = (found.std(0).norm() / 20) / target.norm()
    assert float(error) < 2 * float(noise) < 0.2
    unweighted = torch.stack([gradient(infobatch_rows(seed, losses), torch.ones(1)) for seed in range(50)])
    assert float((unweighted.mean(0) - target).norm() / target.norm()) > 3 * float(error)


def infobatch_rows(seed: int, losses: torch.Tensor) -> torch.Tensor:
    schedule = infobatch(plan(60, 60, epochs=10, seed=seed))
    schedule.learn(Losses(torch.arange(60), losses, losses < 1))
    return schedule.pick(1).rows


def test_scores_of_pruned_samples_stay() -> None:
    data, model = small()
    sampler = Sampler(model, data, "infobatch", epochs=20)
    train_epoch(model, data, sampler)
    visited = set(train_epoch(model, data, sampler))
    before = sampler.state_dict()["schedule"]["scores"]
    list(sampler)
    after = sampler.state_dict()["schedule"]["scores"]
    assert 30 <= len(visited) < 60
    changed = set((before != after).nonzero().flatten().tolist())
    assert changed <= visited
    assert len(changed) > 20


def test_full_visits_everything_and_the_warm_up_of_random_too() -> None:
    data, model = small()
    assert sorted(Sampler(model, data, "full")) == list(range(60))
    sampler = Sampler(nn.Identity(), data, "random", 0.5, warmup=1)
    assert [len(list(sampler)) for _ in range(3)] == [60, 30, 30]

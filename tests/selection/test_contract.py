"""What every registered selection method must keep, whatever it does."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import lcmat
from lcmat.selection import SELECTORS
from lcmat.types import Record, Signals, Subset

METHODS = [entry.name for entry in SELECTORS]
BALANCES = ["equal", "proportional", "none"]


def _signals(sizes: tuple[int, ...] = (30, 20, 12), seed: int = 0, dtype: torch.dtype = torch.float32) -> Signals:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.full((size,), label) for label, size in enumerate(sizes)])
    labels = labels[torch.randperm(len(labels), generator=generator)]
    n, classes = len(labels), len(sizes)
    features = torch.randn(n, 6, generator=generator, dtype=torch.float64).relu()
    logits = 2 * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    logits[torch.arange(n), labels] += 1.5
    probability = torch.rand(5, n, generator=generator)
    return Signals(
        features=features.to(dtype),
        logits=logits.to(dtype),
        labels=labels,
        record=Record(probability > 0.4, probability),
    )


def _select(method: str, signals: Signals, count: int = 15, *, balance: str = "proportional", seed: int = 0) -> Subset:
    return lcmat.select(signals, method, count=count, balance=balance, seed=seed)


@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("count", [1, 2, 15, 61, 62])
@pytest.mark.parametrize("method", METHODS)
def test_exact_count_distinct_in_range_weights(method: str, count: int, balance: str) -> None:
    signals = _signals()
    subset = _select(method, signals, count, balance=balance)
    picks = list(subset)
    assert len(picks) == len(set(picks)) == count
    assert min(picks) >= 0
    assert max(picks) < signals.n
    assert float(subset.weights.min()) >= 0
    assert float(subset.weights.sum()) == pytest.approx(signals.n, rel=1e-9)
    assert sum(subset.per_class) == count
    assert subset.weighted == SELECTORS.find(method).facts.weighted
    if subset.gains is not None:
        assert torch.isfinite(subset.gains).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_and_leaves_the_global_generators_alone(method: str) -> None:
    signals = _signals()
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 the global state is what is tested
    torch.manual_seed(1)
    before = (random.getstate(), repr(np.random.get_state()), torch.get_rng_state())  # noqa: NPY002
    first, second = _select(method, signals, seed=7), _select(method, signals, seed=7)
    assert list(first) == list(second)
    assert first.weights.equal(second.weights)
    after = (random.getstate(), repr(np.random.get_state()), torch.get_rng_state())  # noqa: NPY002
    assert before[:2] == after[:2]
    assert before[2].equal(after[2])


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_added_to_a_row_of_logits_changes_nothing(method: str) -> None:
    signals = _signals(dtype=torch.float64)
    shift = torch.linspace(-5, 5, signals.n, dtype=torch.float64)[:, None]
    moved = replace(signals, logits=signals.need("logits") + shift)
    assert list(_select(method, moved)) == list(_select(method, signals))


@pytest.mark.parametrize("method", [entry.name for entry in SELECTORS if entry.facts.prefix])
def test_a_prefix_of_a_longer_run_is_the_shorter_run(method: str) -> None:
    signals = _signals()
    short, long = (_select(method, signals, count, balance="none") for count in (9, 31))
    assert list(long)[:9] == list(short)
    cut = lcmat.select(signals, method, count=[9, 31], balance="none")
    assert list(cut[0]) == list(short)
    torch.testing.assert_close(cut[0].weights, short.weights)


@pytest.mark.parametrize("method", METHODS)
def test_a_class_is_selected_as_if_it_were_alone(method: str) -> None:
    # Class 0 of the whole data set has the same place in the class loop as it has alone, hence the same generator.
    signals = _signals(dtype=torch.float64)
    members = (signals.need("labels") == 0).nonzero().flatten()
    together = [row for row in _select(method, signals, 18, balance="equal") if signals.need("labels")[row] == 0]
    alone = _select(method, signals.take(members), 6)
    assert together == members[alone.indices].tolist()


@pytest.mark.parametrize("method", [entry.name for entry in SELECTORS if entry.facts.several_points])
def test_one_point_twice_is_that_point(method: str) -> None:
    signals = _signals(dtype=torch.float64)
    twice = lcmat.select([signals, signals], method, count=15)
    assert list(twice) == list(_select(method, signals))


@pytest.mark.parametrize("method", METHODS)
def test_given_samples_come_first_and_excluded_ones_never(method: str) -> None:
    signals = _signals()
    given, out = [5, 40, 17], [3, 6, 41]
    subset = lcmat.select(signals, method, count=20, given=given, exclude=out)
    assert len(set(subset)) == 20
    assert set(given) <= set(subset)
    assert not set(out) & set(subset)
    assert float(subset.weights.sum()) == pytest.approx(signals.n)
    labels = signals.need("labels")
    for label in range(3):
        mine = [row for row in given if labels[row] == label]
        assert [row for row in subset if labels[row] == label][: len(mine)] == mine


@pytest.mark.parametrize("method", METHODS)
def test_real_valued_labels_work_or_are_refused(method: str) -> None:
    generator = torch.Generator().manual_seed(0)
    signals = Signals(
        features=torch.randn(30, 4, generator=generator),
        logits=torch.randn(30, 1, generator=generator),
        labels=torch.randn(30, generator=generator),
    )
    if SELECTORS.find(method).facts.regression:
        subset = lcmat.select(signals, method, count=7)
        assert len(set(subset)) == 7
        assert subset.per_class == ()
    else:
        with pytest.raises(ValueError, match="real-valued labels do not have; use: uniform"):
            lcmat.select(signals, method, count=7)


@pytest.mark.parametrize("method", [entry.name for entry in SELECTORS if entry.accepts("coverage")])
def test_coverage_is_reached(method: str) -> None:
    signals = _signals()
    loose, tight = lcmat.select(signals, method, coverage=[0.3, 0.9])
    assert len(loose) < len(tight) < signals.n
    assert len(lcmat.select(signals, method, coverage=1.0)) <= signals.n


@pytest.mark.parametrize("method", METHODS)
def test_edges(method: str) -> None:
    generator = torch.Generator().manual_seed(0)
    one = Signals(
        features=torch.rand(1, 3, generator=generator),
        logits=torch.rand(1, 2, generator=generator) * 3,
        labels=torch.tensor([0]),
        record=Record(torch.ones(5, 1, dtype=torch.bool), torch.ones(5, 1)),
    )
    assert list(_select(method, one, 1)) == [0]
    same = Signals(
        features=torch.ones(12, 3),
        logits=torch.zeros(12, 2),
        labels=torch.arange(12) % 2,
        record=Record(torch.ones(5, 12, dtype=torch.bool), torch.ones(5, 12)),
    )
    assert len(set(_select(method, same, 7))) == 7


@pytest.mark.parametrize("method", METHODS)
def test_saturated_predictions_and_zero_features_are_no_trouble(method: str) -> None:
    signals = _signals()
    hard = replace(signals, logits=signals.need("logits") * 1e4, features=signals.need("features") * 1e-20)
    assert len(set(_select(method, hard))) == 15


@pytest.mark.parametrize("method", METHODS)
def test_what_it_needs_is_what_it_says(method: str) -> None:
    entry = SELECTORS.find(method)
    signals = _signals()
    bare = Signals(
        features=signals.features if "features" in entry.facts.needs or not entry.facts.needs else None,
        logits=signals.logits if "logits" in entry.facts.needs else None,
        labels=signals.labels,
        record=signals.record if "record" in entry.facts.needs else None,
    )
    assert len(_select(method, bare)) == 15
    for name in entry.facts.needs:
        if name == "labels":
            without = replace(bare, labels=None)
        elif [part for part in ("features", "logits", "labels") if getattr(bare, part) is not None] == [name]:
            continue
        else:
            changes: dict[str, Any] = {name: None}
            without = replace(bare, **changes)
        with pytest.raises(ValueError, match=name):
            _select(method, without)


@pytest.mark.parametrize("method", METHODS)
def test_it_is_described(method: str) -> None:
    entry = SELECTORS.find(method)
    assert method in lcmat.selectors()
    assert entry.facts.reference
    assert entry.facts.cost
    assert entry.function.__doc__
    assert "Example:" in entry.function.__doc__
    for option in entry.options:
        assert f"{option}:" in entry.function.__doc__, f"option {option} is not documented"


@pytest.mark.parametrize("method", [entry.name for entry in SELECTORS if set(entry.facts.needs) <= {"features"}])
def test_features_alone_suffice_where_nothing_else_is_needed(method: str) -> None:
    labelled = _signals()
    bare = Signals(features=labelled.features)
    subset = lcmat.select(bare, method, fraction=0.2, given=[7])
    assert len(set(subset)) == 12
    assert subset[0] == 7
    assert (subset.per_class, subset.balance) == ((), "none")
    assert float(subset.weights.sum()) == pytest.approx(62)


def test_the_methods_that_users_of_embeddings_look_for_need_features_alone() -> None:
    wanted = {"uniform", "herding", "k-center", "facility-location", "graph-cut", "prototypes"}
    assert wanted <= {entry.name for entry in SELECTORS if set(entry.facts.needs) <= {"features"}}


@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("method", [entry.name for entry in SELECTORS if entry.accepts("purse")])
def test_costs_are_kept_within_the_budget(method: str, balance: str) -> None:
    signals = _signals()
    cost = 0.1 + torch.rand(signals.n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    small, large = lcmat.select(signals, method, fraction=[0.2, 0.5], cost=cost, balance=balance, given=[5])
    for subset, share in ((small, 0.2), (large, 0.5)):
        spent = float(cost[subset.indices].sum())
        assert spent <= share * float(cost.sum()) + 1e-9
        assert 5 in subset
        assert len(set(subset)) == len(subset)
        assert float(subset.weights.sum()) == pytest.approx(signals.n)
    assert len(small) < len(large)
    # What is left would buy no further sample of any class.
    if balance == "none":
        left = torch.ones(signals.n, dtype=torch.bool)
        left[large.indices] = False
        assert float(cost[left].min()) > 0.5 * float(cost.sum()) - float(cost[large.indices].sum())


@pytest.mark.parametrize("method", METHODS)
def test_coverage_and_costs_work_or_name_the_methods_that_can(method: str) -> None:
    signals, entry = _signals(), SELECTORS.find(method)
    if not entry.accepts("coverage"):
        with pytest.raises(ValueError, match=rf"'{method}' has no coverage.*lcmat-s"):
            lcmat.select(signals, method, coverage=0.5)
    if not entry.accepts("purse"):
        with pytest.raises(ValueError, match=rf"'{method}' cannot weigh costs.*lcmat-s"):
            lcmat.select(signals, method, fraction=0.5, cost=[1.0] * signals.n)


OPTIONS = [(entry.name, option) for entry in SELECTORS for option in entry.options]


@pytest.mark.parametrize(("method", "option"), OPTIONS)
def test_an_option_out_of_range_or_of_another_type_is_refused_by_its_name(method: str, option: str) -> None:
    numeric = {int, float} & set(SELECTORS.find(method).options[option].kinds)
    wrong: list[Any] = ["no such"] + ([-1] if numeric else []) + ([float("nan")] if float in numeric else [])
    for value in wrong:
        with pytest.raises((TypeError, ValueError), match=rf"\b{option}\b"):
            lcmat.select(_signals(), method, count=15, **{option: value})


@pytest.mark.gpu
@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("method", METHODS)
def test_signals_on_a_gpu_are_selected_from_there(method: str, balance: str) -> None:
    here = _signals(dtype=torch.float64)
    there = replace(here.to("cuda"), validation=here.to("cuda"))
    subset = lcmat.select(there, method, count=15, balance=balance, given=[5], exclude=[3])
    assert subset.indices.device.type == subset.weights.device.type == "cpu"
    assert len(set(subset)) == 15
    assert 5 in subset
    assert 3 not in subset
    assert float(subset.weights.sum()) == pytest.approx(here.n)
    assert list(lcmat.select(there, method, count=15, balance=balance, given=[5], exclude=[3])) == list(subset)

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch

import lcmat
from lcmat.selection import random_like
from lcmat.types import Signals
from reference import cover_loss, largest_regret, lcmat_distances, made_up_signals, plain_greedy


def _signals(sizes: list[int], d: int = 4, classes: int | None = None, seed: int = 0) -> Signals:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.full((size,), label) for label, size in enumerate(sizes)])
    labels = labels[torch.randperm(len(labels), generator=generator)]
    n = len(labels)
    return Signals(
        features=torch.randn(n, d, generator=generator),
        logits=torch.randn(n, classes or len(sizes), generator=generator),
        labels=labels,
    )


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("subdimensions", [10, 100, None])
def test_lcmat_s_reaches_the_objective_of_an_independent_implementation(rho: float, subdimensions: int | None) -> None:
    signals, _ = made_up_signals(n=150, classes=3, d=12)
    assert signals.features is not None
    assert signals.logits is not None
    single = Signals(features=signals.features.float(), logits=signals.logits.float(), labels=signals.labels)
    subset = lcmat.select(single, "lcmat-s", count=30, balance="equal", rho=rho, subdimensions=subdimensions)
    for label in range(3):
        members = (single.need("labels") == label).nonzero().flatten()
        truth = lcmat_distances(single.take(members), rho=rho, subdimensions=subdimensions)
        position = {int(row): i for i, row in enumerate(members)}
        picks = [position[row] for row in subset if row in position]
        exact, _ = plain_greedy(truth, 10)
        constant = len(members) * float(truth.max())
        found = constant - cover_loss(truth, picks)
        assert found == pytest.approx(constant - cover_loss(truth, exact), rel=1e-6)
        # The same picks wherever the gains differ by more than that; two samples that serve only each other tie.
        assert largest_regret(truth, picks) <= 1e-6 * constant


def test_temperature_and_points_change_the_picks_as_defined() -> None:
    first, _ = made_up_signals(n=60, classes=2, d=5, seed=1)
    second, _ = made_up_signals(n=60, classes=2, d=5, seed=2)
    second = Signals(features=second.features, logits=second.logits, labels=first.labels)
    both = lcmat.select([first, second], "lcmat-s", count=6, balance="none", temperature=3.0)
    total = torch.zeros(60, 60, dtype=torch.float64)
    for point in (first, second):
        one = lcmat_distances(point, rho=0.1, subdimensions=100, temperature=3.0)
        total += one / one.mean()
    assert list(both) == plain_greedy(total, 6)[0]


def test_rho_zero_is_craig() -> None:
    signals = _signals([40, 40])
    assert list(lcmat.select(signals, "lcmat-s", count=8, rho=0)) == list(lcmat.select(signals, "craig", count=8))


def test_a_list_of_budgets_is_one_run_cut() -> None:
    signals = _signals([50, 50])
    several = lcmat.select(signals, "lcmat-s", fraction=[0.04, 0.1, 0.2])
    assert [len(subset) for subset in several] == [4, 10, 20]
    for subset in several:
        alone = lcmat.select(signals, "lcmat-s", count=len(subset))
        assert list(alone) == list(subset)
        torch.testing.assert_close(alone.weights, subset.weights)
    assert isinstance(lcmat.select(signals, "lcmat-s", fraction=[0.1]), list)


def test_fraction_counts_as_documented() -> None:
    signals = _signals([500, 497])
    assert len(lcmat.select(signals, "uniform", fraction=0.0001)) == 1
    assert len(lcmat.select(signals, "uniform", fraction=0.01)) == 10
    assert len(lcmat.select(signals, "uniform", fraction=1.0)) == 997


def test_balance() -> None:
    signals = _signals([80, 15, 5])
    assert lcmat.select(signals, "craig", count=20, balance="proportional").per_class == (16, 3, 1)
    assert lcmat.select(signals, "craig", count=12, balance="equal").per_class == (4, 4, 4)
    small = lcmat.select(signals, "craig", count=30, balance="equal")
    assert small.per_class == (13, 12, 5)
    assert small.notes == ("kept whole, the share being no smaller than the class: 2",)
    assert sum(lcmat.select(signals, "craig", count=12, balance="none").per_class) == 12


def test_none_takes_the_whole_data_as_one_group() -> None:
    signals = _signals([20, 20], classes=2)
    truth = lcmat_distances(signals, rho=0.1, subdimensions=100)
    assert list(lcmat.select(signals, "lcmat-s", count=5, balance="none")) == plain_greedy(truth, 5)[0]


def test_a_class_of_one_is_kept_and_reported() -> None:
    named = _signals([30, 1])
    named = Signals(features=named.features, logits=named.logits, labels=named.labels, class_names=("cat", "dog"))
    subset = lcmat.select(named, "lcmat-s", count=4)
    assert subset.per_class == (3, 1)
    assert subset.notes == ("kept the only sample of: dog",)


def test_classes_without_a_pick_are_reported_and_leave_their_weight() -> None:
    subset = lcmat.select(_signals([10, 10, 10]), "craig", count=2)
    assert sorted(subset.per_class) == [0, 1, 1]
    assert float(subset.weights.sum()) == pytest.approx(30)
    assert "no sample of 1 class, " in subset.notes[0]


def test_coverage_is_reached_in_every_class_by_the_smallest_greedy_set() -> None:
    signals = _signals([60, 30])
    loose, tight = lcmat.select(signals, "lcmat-s", coverage=[0.5, 0.8])
    for subset, coverage in ((loose, 0.5), (tight, 0.8)):
        for label in range(2):
            members = (signals.need("labels") == label).nonzero().flatten()
            truth = lcmat_distances(signals.take(members), rho=0.1, subdimensions=100)
            position = {int(row): i for i, row in enumerate(members)}
            picks = [position[row] for row in subset if row in position]
            first = cover_loss(truth, picks[:1])
            assert 1 - cover_loss(truth, picks) / first >= coverage
            assert 1 - cover_loss(truth, picks[:-1]) / first < coverage
    with pytest.raises(ValueError, match=r"'herding' has no coverage.*craig"):
        lcmat.select(signals, "herding", coverage=0.5)


def test_weights_are_cluster_sizes_or_equal() -> None:
    signals = _signals([40, 20])
    craig = lcmat.select(signals, "craig", count=6)
    assert craig.weighted
    assert all(float(weight).is_integer() for weight in craig.weights)
    labels = signals.need("labels")[craig.indices]
    assert [float(craig.weights[labels == label].sum()) for label in (0, 1)] == [40.0, 20.0]
    uniform = lcmat.select(signals, "uniform", count=6)
    assert not uniform.weighted
    assert uniform.weights.tolist() == [10.0] * 6


def test_every_beginning_of_a_subset_is_balanced() -> None:
    signals = _signals([50, 50])
    labels = signals.need("labels")
    subset = lcmat.select(signals, "lcmat-s", count=20)
    assert all(abs(int(labels[subset.indices[:k]].sum()) - k / 2) <= 1 for k in range(1, 21))


def test_unlabelled_features_are_one_group() -> None:
    signals = Signals(features=torch.randn(30, 3, generator=torch.Generator().manual_seed(0)))
    subset = lcmat.select(signals, "k-center", fraction=0.2)
    assert len(subset) == 6
    assert subset.per_class == ()
    assert subset.balance == "none"
    with pytest.raises(ValueError, match=r"needs logits.*Signals\(logits=\.\.\.\)"):
        lcmat.select(signals, "lcmat-s", fraction=0.2)


def test_selecting_within_one_class_is_fine() -> None:
    assert lcmat.select(_signals([25], classes=3), "lcmat-s", count=5).per_class == (5,)


def test_the_subset_says_how_it_was_made() -> None:
    subset = lcmat.select(_signals([20, 20]), "lcmat-s", count=4, rho=0.5, seed=3)
    assert subset.method == "lcmat-s"
    assert subset.options == {"rho": 0.5, "subdimensions": 100, "temperature": 1.0}
    assert (subset.seed, subset.n, subset.balance) == (3, 40, "proportional")
    assert set(subset.versions) == {"lcmat", "python", "torch", "machine"}


def test_memory_changes_nothing_but_memory() -> None:
    signals = _signals([200, 100])
    large = lcmat.select(signals, "lcmat-s", count=30, memory="1GB")
    small = lcmat.select(signals, "lcmat-s", count=30, memory="1kB")
    assert list(large) == list(small)
    assert large.gains is not None
    assert small.gains is not None
    torch.testing.assert_close(large.gains, small.gains, rtol=1e-5, atol=1e-5)


def test_random_like_has_the_given_counts_and_is_uniform() -> None:
    labels = _signals([6, 4]).need("labels")
    hits = torch.zeros(10)
    for seed in range(600):
        subset = random_like(labels, (3, 1), 10, seed)
        assert subset.per_class == (3, 1)
        hits[subset.indices] += 1
    shares = hits / 600
    assert (shares[labels == 0] - 0.5).abs().max() < 0.09  # four standard deviations
    assert (shares[labels == 1] - 0.25).abs().max() < 0.08


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "two budgets": (
        {"fraction": 0.1, "count": 3},
        ValueError,
        "exactly one of fraction, count and coverage, got fraction",
    ),
    "no budget": ({}, ValueError, "got none of them"),
    "empty list": ({"fraction": []}, ValueError, "at least one fraction"),
    "zero": ({"fraction": 0.0}, ValueError, "fraction above 0 and at most 1, got 0.0"),
    "above one": ({"fraction": 1.5}, ValueError, "fraction above 0 and at most 1, got 1.5"),
    "nan": ({"fraction": float("nan")}, ValueError, "fraction above 0"),
    "too many": ({"count": 41}, ValueError, "count from 1 to 40, the number of samples, got 41"),
    "no number": ({"count": 2.5}, TypeError, "count as an integer, got 2.5"),
    "bool": ({"count": True}, TypeError, "count as an integer, got True"),
    "text": ({"fraction": "0.1"}, TypeError, "fraction as a number, got '0.1'"),
    "balance": ({"count": 3, "balance": "fair"}, ValueError, "balance as one of equal, proportional, none, got 'fair'"),
    "option": (
        {"count": 3, "roh": 0.1},
        TypeError,
        r"unknown option of lcmat-s 'roh'; did you mean 'rho'\? valid: rho,",
    ),
    "option type": ({"count": 3, "rho": "high"}, TypeError, "option rho takes float, got 'high'"),
    "rho": ({"count": 3, "rho": -0.1}, ValueError, "rho of 0 or more, got -0.1"),
    "subdimensions": ({"count": 3, "subdimensions": 0}, ValueError, "subdimensions of 1 or more"),
    "temperature": ({"count": 3, "temperature": 0.0}, ValueError, "temperature above 0"),
    "memory": ({"count": 3, "memory": "lots"}, ValueError, "amount of memory such as '4GB'"),
}


def test_numbers_of_numpy_are_numbers() -> None:
    signals = _signals([20, 20])
    assert len(lcmat.select(signals, "uniform", count=np.int64(6))) == 6  # type: ignore[call-overload]
    assert len(lcmat.select(signals, "uniform", fraction=np.float32(0.25))) == 10  # type: ignore[call-overload]


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    arguments, error, message = BAD[name]
    with pytest.raises(error, match=message):
        lcmat.select(_signals([20, 20]), "lcmat-s", **arguments)


def test_bad_methods_and_signals() -> None:
    signals = _signals([20, 20])
    with pytest.raises(ValueError, match=r"unknown method 'lcmat'; did you mean 'lcmat-s'"):
        lcmat.select(signals, "lcmat", count=3)
    with pytest.raises(ValueError, match="'herding' takes the Signals of one point, got 2; several: "):
        lcmat.select([signals, signals], "herding", count=3)
    with pytest.raises(ValueError, match="empty list"):
        lcmat.select([], "lcmat-s", count=3)
    with pytest.raises(ValueError, match="same samples at every point, got 40 and 30"):
        lcmat.select([signals, _signals([15, 15])], "lcmat-s", count=3)
    with pytest.raises(ValueError, match="labels differ"):
        lcmat.select([signals, _signals([20, 20], seed=1)], "lcmat-s", count=3)
    strange: Any
    for strange in (signals.features, [signals, signals.features], None):
        with pytest.raises(
            TypeError, match=r"expected Signals, or a list of them, got .*; lcmat\.extract\(model, data\)"
        ):
            lcmat.select(strange, "lcmat-s", count=3)


def test_given_samples_are_kept_and_completed() -> None:
    signals = _signals([60, 40])
    labels = signals.need("labels")
    given = [int((labels == 0).nonzero()[7]), int((labels == 1).nonzero()[3]), int((labels == 0).nonzero()[20])]
    for method in ("lcmat-s", "craig", "k-center", "herding", "uniform"):
        subset = lcmat.select(signals, method, count=10, given=given)
        assert set(given) <= set(subset)
        assert subset.per_class == (6, 4)
        first = [row for row in subset if labels[row] == 0][:2]
        assert first == [given[0], given[2]], "given samples come first in their class, in their order"
        assert len(lcmat.select(signals, method, count=3, given=given)) == 3


def test_the_picks_after_given_ones_are_greedy() -> None:
    signals = _signals([50], classes=2)
    truth = lcmat_distances(signals, rho=0.1, subdimensions=100)
    subset = lcmat.select(signals, "lcmat-s", count=8, given=[11, 30])
    assert list(subset)[:2] == [11, 30]
    constant = 50 * float(truth.max())
    nearest = torch.minimum(truth[11], truth[30]).clamp(max=float(truth.max()))
    gains = (nearest - truth).clamp(min=0).sum(1)
    assert float(gains.max() - gains[list(subset)[2]]) <= 1e-6 * constant
    assert subset.gains is not None
    assert float(subset.gains.sum()) == pytest.approx(constant - cover_loss(truth, list(subset)), rel=1e-6)


def test_completing_a_greedy_start_is_the_greedy_run() -> None:
    signals = _signals([70, 30])
    long = lcmat.select(signals, "lcmat-s", count=20)
    short = lcmat.select(signals, "lcmat-s", count=10)
    assert set(lcmat.select(signals, "lcmat-s", count=20, given=list(short))) == set(long)


def test_excluded_samples_are_as_if_absent() -> None:
    signals = _signals([40, 40])
    out = list(lcmat.select(signals, "lcmat-s", count=10))
    rest = torch.tensor([row for row in range(80) if row not in out])
    subset = lcmat.select(signals, "lcmat-s", count=10, exclude=out)
    alone = lcmat.select(signals.take(rest), "lcmat-s", count=10)
    assert list(subset) == rest[alone.indices].tolist()
    assert float(subset.weights.sum()) == pytest.approx(80)
    with pytest.raises(ValueError, match="at most 70 samples, those not excluded, got 75"):
        lcmat.select(signals, "uniform", count=75, exclude=out)


def test_costs_are_kept_within_the_budget_and_weighed() -> None:
    signals = _signals([50, 50])
    cost = torch.ones(100).double()
    assert list(lcmat.select(signals, "lcmat-s", fraction=0.2, cost=cost)) == list(
        lcmat.select(signals, "lcmat-s", fraction=0.2)
    ), "equal costs change nothing"
    cost = 0.1 + 10 * torch.rand(100, generator=torch.Generator().manual_seed(1)).double()
    labels = signals.need("labels")
    for fraction in (0.05, 0.3):
        subset = lcmat.select(signals, "lcmat-s", fraction=fraction, cost=cost)
        for label in (0, 1):
            spent = float(cost[[row for row in subset if labels[row] == label]].sum())
            assert spent <= fraction * float(cost[labels == label].sum()) + 1e-9
    assert float(cost[subset.indices].mean()) < float(cost.mean()), "cheap samples are preferred"


def test_a_purse_reaches_its_bound_of_the_best() -> None:
    for seed in range(5):
        signals = _signals([8], classes=2, seed=seed)
        truth = lcmat_distances(signals, rho=0.1, subdimensions=100)
        cost = 0.2 + torch.rand(8, generator=torch.Generator().manual_seed(seed)).double()
        budget = 0.4 * float(cost.sum())
        constant = 8 * float(truth.max())
        best = max(
            constant - cover_loss(truth, list(picks))
            for size in range(1, 9)
            for picks in combinations(range(8), size)
            if float(cost[list(picks)].sum()) <= budget
        )
        found = lcmat.select(signals, "lcmat-s", fraction=0.4, cost=cost)
        assert constant - cover_loss(truth, list(found)) >= 0.316 * best


def test_regression_matches_the_gradient_of_the_squared_loss() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(40, 5, generator=generator).double()
    predictions, targets = (
        torch.randn(40, 1, generator=generator).double(),
        torch.randn(40, generator=generator).double(),
    )
    signals = Signals(features=features, logits=predictions, labels=targets)
    subset = lcmat.select(signals, "craig", count=6)
    inputs = torch.cat([features, torch.ones(40, 1).double()], 1)
    gradients = (predictions - targets[:, None]) * inputs
    truth = (gradients[:, None] - gradients).norm(dim=2)
    assert largest_regret(truth, list(subset)) <= 1e-6 * 40 * float(truth.max())
    assert (subset.per_class, subset.balance) == ((), "none")
    curved = (inputs.square()[:, None] - inputs.square()).abs().sum(2)
    subset = lcmat.select(signals, "lcmat-s", count=6, rho=0.5)
    assert largest_regret(truth + 0.25 * curved, list(subset)) <= 1e-6 * 40 * float((truth + 0.25 * curved).max())
    with pytest.raises(
        ValueError, match=r"'entropy' looks at classes, which real-valued labels do not have; use: uniform"
    ):
        lcmat.select(signals, "entropy", count=6)
    with pytest.raises(ValueError, match="one prediction for each real-valued label, got 2"):
        Signals(features=features, logits=torch.zeros(40, 2), labels=targets)


BAD_CONSTRAINTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "given out of range": ({"given": [40]}, ValueError, "given rows from 0 to 39, got 40 to 40"),
    "given twice": ({"given": [1, 1]}, ValueError, "named twice in given"),
    "given mask": ({"given": torch.ones(40, dtype=torch.bool)}, TypeError, "given as a list of row numbers"),
    "too many given": ({"given": [1, 2, 3, 4]}, ValueError, "at least 4, the samples that are given, got 3"),
    "given and excluded": ({"given": [1], "exclude": [1, 2]}, ValueError, "both given and excluded, such as 1"),
    "all excluded": ({"exclude": range(40)}, ValueError, "all 40 samples are excluded"),
    "cost with count": ({"cost": [1.0] * 40}, ValueError, "give fraction instead of count"),
    "cost length": ({"cost": [1.0] * 39}, ValueError, "cost above 0 for each of the 40 samples"),
    "free": ({"cost": [0.0] * 40}, ValueError, "cost above 0 for each"),
}


@pytest.mark.parametrize("name", BAD_CONSTRAINTS)
def test_bad_constraints(name: str) -> None:
    arguments, error, message = BAD_CONSTRAINTS[name]
    with pytest.raises(error, match=message):
        lcmat.select(_signals([20, 20]), "lcmat-s", count=3, **arguments)


def test_costs_need_a_method_that_weighs_them_and_a_budget_that_pays() -> None:
    signals = _signals([20, 20])
    with pytest.raises(ValueError, match=r"'uniform' cannot weigh costs, or use one of: .*lcmat-s"):
        lcmat.select(signals, "uniform", fraction=0.1, cost=[1.0] * 40)
    with pytest.raises(ValueError, match="pays for no sample at all"):
        lcmat.select(signals, "lcmat-s", fraction=0.001, cost=[1.0] * 40)
    with pytest.raises(ValueError, match="given samples cost 30, more than the budget of"):
        lcmat.select(signals, "lcmat-s", fraction=0.1, cost=[30.0] + [1 / 4] * 36 + [0.0001] * 3, given=[0])

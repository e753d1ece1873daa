"""Which subset meets which seed, and which random set stands beside it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from evaluation.cases import digits, pick, picks
from lcmat.evaluation.plan import Entry, class_counts, make_plan
from lcmat.types import Subset


def plan(subsets: Mapping[str, Any], seeds: Sequence[int] = (0, 1), **options: Any) -> dict[tuple[str, int], Entry]:
    settings = {"baseline": True, "full": False, "weighted": (), **options}
    return {(entry.name, entry.size): entry for entry in make_plan(digits(), subsets, seeds=seeds, **settings)}


def test_a_training_seed_meets_the_subset_of_the_same_seed() -> None:
    by_seed = plan({"craig": list(reversed(picks(20, range(3))))}, seeds=(2, 1))["craig", 20].by_seed
    assert {seed: subset.seed for seed, subset in by_seed.items() if subset} == {2: 2, 1: 1}


def test_subsets_of_one_name_are_grouped_by_their_size() -> None:
    entries = plan({"craig": [*picks(20, (0, 1)), *picks(10, (0, 1))]})
    assert list(entries) == [("craig", 10), ("uniform", 10), ("craig", 20), ("uniform", 20)]


def test_a_single_subset_serves_all_seeds_and_is_known_to() -> None:
    entries = plan({"craig": pick(range(20))}, seeds=(5, 6))
    assert entries["craig", 20].shared
    assert not entries["uniform", 20].shared
    assert not plan({"craig": pick(range(20))}, seeds=(5,))["craig", 20].shared


def test_the_baseline_has_the_class_counts_of_every_seed_and_is_drawn_anew() -> None:
    entries = plan({"craig": picks(25, (0, 1))})
    method, uniform = entries["craig", 25], entries["uniform", 25]
    for seed in (0, 1):
        assert class_counts(uniform.by_seed[seed], digits()) == class_counts(method.by_seed[seed], digits())
    drawn = [set(subset) for subset in uniform.by_seed.values() if isinstance(subset, Subset)]
    assert drawn[0] != drawn[1]
    assert method.baseline == "uniform"
    assert not uniform.baseline


def test_methods_with_other_class_counts_get_a_baseline_of_their_own() -> None:
    zeros = (digits().train.labels == 0).nonzero().flatten()[:10].tolist()
    entries = plan({"a": pick(zeros), "b": pick(range(10)), "c": pick(range(10))})
    assert entries["a", 10].baseline == "uniform (classes as a)"
    assert entries["b", 10].baseline == entries["c", 10].baseline == "uniform (classes as b and c)"
    assert class_counts(entries["uniform (classes as a)", 10].first, digits()) == (10, *[0] * 9)


def test_a_uniform_set_of_the_user_is_the_baseline_of_its_size() -> None:
    own = pick(range(30, 50), method="uniform")
    entries = plan({"craig": [pick(range(20)), pick(range(10))], "uniform": own})
    assert entries["uniform", 20].first is own
    assert entries["craig", 20].baseline == entries["craig", 10].baseline == "uniform"
    assert entries["uniform", 10].first is not own
    without = plan({"craig": [pick(range(20)), pick(range(10))], "uniform": own}, baseline=False)
    assert without["craig", 20].baseline == "uniform"
    assert not without["craig", 10].baseline
    assert ("uniform", 10) not in without


def test_everything_comes_last_and_stands_for_no_subset() -> None:
    entries = plan({"craig": pick(range(20))}, full=True)
    assert list(entries)[-1] == ("full", 200)
    assert entries["full", 200].first is None


def other_data() -> Subset:
    return pick(range(10), data=digits(150))


def renamed() -> Subset:
    subset = pick(range(10))
    return Subset(subset.indices, subset.weights, None, "craig", {}, 0, subset.n, fingerprint="0" * 64)


@pytest.mark.parametrize(
    ("subsets", "options", "message"),
    [
        ({}, {}, "at least one subset"),
        ({"craig": []}, {}, "'craig', got an empty list"),
        ({"craig": other_data()}, {}, "'craig': this subset was chosen from 150 samples, but this data has 200"),
        ({"craig": renamed()}, {}, "'craig': .* the fingerprints differ"),
        ({"craig": picks(20, (0, 0))}, {}, "two subsets of 20 samples with seed 0"),
        ({"craig": picks(20, (0, 3))}, {}, r"for the seeds \[0, 3\], but none for \[1\]"),
        ({"craig": pick(range(20))}, {"weighted": ["crag"]}, "weighted= names 'crag', but the subsets are 'craig'"),
        ({"full": pick(range(20))}, {"full": True}, "'full' stands for training on everything"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    subsets: Mapping[str, Any], options: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plan(subsets, **options)


def test_a_value_that_is_no_subset_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a Subset or a list of them under 'craig'.*, got int"):
        plan({"craig": torch.tensor([1, 2]).tolist()})

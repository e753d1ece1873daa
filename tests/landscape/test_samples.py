import pytest
import torch

from landscape.cases import subset_of
from lcmat.landscape.samples import make_pool, samples_of_full
from lcmat.selection import select
from lcmat.types import Signals, Subset, SyntheticSet
from samples import digits_like, vectors


def synthetic(*, soft: bool = False, shape: tuple[int, ...] = (1, 8, 8)) -> SyntheticSet:
    data = digits_like(20)
    labels = torch.arange(4)
    return SyntheticSet(
        torch.rand(4, *shape, generator=torch.Generator().manual_seed(0)),
        labels,
        data.class_names,
        data.mean,
        data.std,
        "by hand",
        {},
        0,
        20,
        soft=torch.softmax(torch.arange(16.0).reshape(4, 4), 1) if soft else None,
        soft_from="by hand" if soft else "",
    )


def test_a_subset_of_everything_cancels_exactly() -> None:
    data = vectors(7)
    pool = make_pool(data, {"S": subset_of(data, list(range(7)))})
    assert not pool.coefficients("S").any()


def test_shares_sum_to_one_and_stand_at_the_rows_of_the_subset() -> None:
    data = vectors(10)
    pool = make_pool(data, {"a": subset_of(data, [7, 2]), "b": subset_of(data, [1, 2, 3])})
    assert pool.reduced["a"].nonzero().flatten().tolist() == [2, 7]
    assert pool.reduced["b"].nonzero().flatten().tolist() == [1, 2, 3]
    for shares in (pool.full, *pool.reduced.values()):
        assert float(shares.sum()) == pytest.approx(1, abs=1e-15)


def test_weights_count_only_when_they_are_asked_for() -> None:
    data = vectors(10)
    sets = {"a": subset_of(data, [7, 2], weights=[1.0, 3.0])}
    assert make_pool(data, sets).reduced["a"][[7, 2]].tolist() == [0.5, 0.5]
    assert make_pool(data, sets, weighted=True).reduced["a"][[7, 2]].tolist() == [0.25, 0.75]


def test_drawn_samples_stand_for_the_data_and_the_subset_stays_whole() -> None:
    data = vectors(30, classes=3)
    subset = subset_of(data, [0, 13, 29])
    pool = make_pool(data, {"S": subset}, samples=9)
    assert samples_of_full(pool) == 9
    drawn = pool.data.labels[pool.full > 0]
    assert torch.bincount(drawn).tolist() == [3, 3, 3]
    kept = pool.data.inputs[pool.reduced["S"] > 0]
    assert {tuple(row) for row in kept.tolist()} == {tuple(row) for row in data.inputs[[0, 13, 29]].tolist()}
    assert len(pool.data) <= 12
    with pytest.raises(ValueError, match="at least 1 sample"):
        make_pool(data, {}, samples=0)


def test_a_random_subset_of_the_same_seed_does_not_lie_inside_of_the_draw() -> None:
    data = digits_like(100)
    subset = select(Signals(labels=data.labels), "uniform", count=20, seed=3)
    assert isinstance(subset, Subset)
    pool = make_pool(data, {"S": subset}, samples=50, seed=3)
    shared = int(((pool.full > 0) & (pool.reduced["S"] > 0)).sum())
    assert 0 < shared < 20


def test_a_synthetic_set_stands_beside_the_data() -> None:
    data = digits_like(20)
    hard, soft = synthetic(), synthetic(soft=True)
    pool = make_pool(
        data, {"hard": hard, "subset": subset_of(data, [3]), "soft": soft, "data": data.take(torch.tensor([5]))}
    )
    assert len(pool.data) == 29
    assert pool.reduced["hard"].nonzero().flatten().tolist() == [20, 21, 22, 23]
    assert pool.reduced["soft"].nonzero().flatten().tolist() == [24, 25, 26, 27]
    assert pool.reduced["data"].nonzero().flatten().tolist() == [28]
    assert pool.targets.shape == (29, 4)
    assert soft.soft is not None
    torch.testing.assert_close(pool.targets[24:28], soft.soft.double())
    assert torch.equal(pool.targets[:24].argmax(1), torch.cat([data.labels, hard.labels]))
    assert make_pool(data, {"hard": hard}).targets.dtype == torch.int64


def test_sets_of_other_data_are_refused() -> None:
    data = digits_like(20)
    with pytest.raises(ValueError, match="shape"):
        make_pool(data, {"S": digits_like(8, size=4)})
    with pytest.raises(ValueError, match="other classes"):
        make_pool(data, {"S": digits_like(8, classes=2)})
    with pytest.raises(ValueError, match="chosen from 10 samples"):
        make_pool(data, {"S": subset_of(vectors(10), [1])})

import pytest
import torch

from lcmat.continual import Budget, Kept, Memory
from lcmat.continual.memory import joined, with_samples
from samples import digits_like, vectors


def kept(index: int, count: int, views: int = 1) -> Kept:
    """Samples that tell their class and their place."""
    return Kept(torch.stack([torch.full((count * views,), float(index)), torch.arange(float(count * views))], 1), views)


def test_a_total_shrinks_by_prefix_and_is_never_exceeded() -> None:
    memory = Memory(vectors(d=2, classes=5), Budget(total=10))
    for index in range(5):
        amounts = memory.plan({index: 30})
        memory = memory.filled(amounts, {index: kept(index, amounts[index])})
        assert len(memory) == 10
        sizes = [len(part) for part in memory.kept.values()]
        assert max(sizes) - min(sizes) <= 1
        for old, part in memory.kept.items():
            assert part.inputs.tolist() == [[float(old), float(place)] for place in range(len(part))]
    data = memory.data()
    assert data is not None
    assert torch.bincount(data.labels).tolist() == [2, 2, 2, 2, 2]
    assert torch.equal(data.inputs[:, 0].long(), data.labels)


def test_a_budget_for_each_class_stays_and_a_small_class_takes_what_it_has() -> None:
    memory = Memory(vectors(d=2, classes=3), Budget(per_class=4))
    for index, at_hand in ((2, 10), (0, 3), (1, 4)):
        amounts = memory.plan({index: at_hand})
        memory = memory.filled(amounts, {index: kept(index, amounts[index])})
    assert {index: len(part) for index, part in memory.kept.items()} == {2: 4, 0: 3, 1: 4}


def test_what_a_small_class_leaves_of_a_total_goes_to_others() -> None:
    assert Budget(total=10).share({0: 2, 1: 50, 2: 50}) == {0: 2, 1: 4, 2: 4}
    assert Budget(total=100).share({0: 2, 1: 5}) == {0: 2, 1: 5}


def test_a_class_that_returns_is_filled_anew() -> None:
    memory = Memory(vectors(d=2, classes=3), Budget(per_class=2))
    memory = memory.filled(memory.plan({0: 5}), {0: kept(0, 2)})
    again = Kept(torch.full((2, 2), 7.0))
    memory = memory.filled(memory.plan({0: 5, 1: 5}), {0: again, 1: kept(1, 2)})
    assert memory.kept[0].inputs.tolist() == [[7.0, 7.0]] * 2
    assert memory.data([1]) is not None
    assert memory.data([2]) is None


def test_one_place_may_hold_several_views() -> None:
    part = kept(0, 3, views=4)
    assert len(part) == 3
    assert part.first(2).inputs[:, 1].tolist() == list(range(8))
    memory = Memory(vectors(d=2, classes=3), Budget(per_class=3)).filled({0: 3}, {0: part})
    data = memory.data()
    assert data is not None
    assert (len(memory), len(data)) == (3, 12)
    with pytest.raises(ValueError, match="4 samples for every place, got 6"):
        Kept(torch.zeros(6, 2), 4)


def test_more_than_the_budget_cannot_be_held() -> None:
    like = vectors(d=2, classes=3)
    with pytest.raises(ValueError, match="would hold 3 samples, its budget is 2"):
        Memory(like, Budget(per_class=2), {0: kept(0, 3)})
    with pytest.raises(ValueError, match="would hold 4 samples, its budget is 3"):
        Memory(like, Budget(total=3), {0: kept(0, 2), 1: kept(1, 2)})
    with pytest.raises(ValueError, match=r"not so for classes \[0\]"):
        Memory(like, Budget(per_class=4)).filled({0: 4}, {0: kept(0, 3)})


@pytest.mark.parametrize(
    ("budget", "match"),
    [
        ({}, "got none of them"),
        ({"per_class": 1, "total": 5}, "got per_class and total"),
        ({"per_class": 0}, "at least 1, got 0"),
        ({"total": -3}, "at least 1, got -3"),
        ({"total": 2.5}, "got 2.5"),
        ({"per_class": True}, "got True"),
    ],
)
def test_budgets_out_of_range_are_refused(budget: dict[str, int], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Budget(**budget)


def test_a_total_below_the_number_of_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="a total of at least 3"):
        Budget(total=2).share({0: 5, 1: 5, 2: 5})


def test_other_samples_keep_classes_and_normalisation() -> None:
    images = digits_like(12)
    more = with_samples(images, images.images[:2], torch.tensor([3, 3]))
    assert (more.mean, more.std, more.class_names) == (images.mean, images.std, images.class_names)
    assert more.fingerprint != images.fingerprint
    assert len(joined(images, more, times=3)) == 18
    assert joined(images, None) is images

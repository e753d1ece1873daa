import pytest
import torch

from lcmat.continual import first_classes, make_stream
from lcmat.types import Splits
from samples import vectors


def splits(n: int = 70, classes: int = 7) -> Splits:
    return Splits(vectors(n, classes=classes), vectors(classes * 4, classes=classes), "vectors")


@pytest.mark.parametrize("steps", [1, 3, 7])
def test_classes_and_samples_come_once_each(steps: int) -> None:
    data = splits()
    stream = make_stream(data, steps)
    sizes = [len(step.classes) for step in stream.steps]
    assert len(sizes) == steps
    assert max(sizes) - min(sizes) <= 1
    assert sorted(index for step in stream.steps for index in step.classes) == list(range(7))
    assert sorted(torch.cat([step.rows for step in stream.steps]).tolist()) == list(range(70))
    for step in stream.steps:
        assert set(data.train.labels[step.rows].tolist()) == set(step.classes)
    assert len(stream.seen(steps - 1)) == 7


def test_the_order_is_decided_by_the_seed_or_given() -> None:
    data = splits()
    orders = [make_stream(data, 7, seed=seed).seen(6) for seed in (0, 0, 1, 2)]
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3
    assert make_stream(data, 7, order="given").seen(6) == tuple(range(7))


def test_a_class_that_returns_brings_other_samples_each_time() -> None:
    data = splits()
    stream = make_stream(data, [[0, 1], [2], [0, 3], [0]])
    parts = [set(step.rows[data.train.labels[step.rows] == 0].tolist()) for step in stream.steps]
    assert [len(part) for part in parts] == [4, 0, 3, 3]
    assert len(set().union(*parts)) == 10
    assert stream.seen(1) == (0, 1, 2)
    assert stream.seen(3) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        (0, "expected 1 to 7 steps"),
        (8, "expected 1 to 7 steps"),
        ([], "at least one"),
        ([[0], []], "at least one"),
        ([[0, 0]], "distinct classes"),
        ([[0], [9]], r"have training samples, got \[9\]"),
        ([[0]] * 11, "comes in 11 steps, but has 10 samples"),
    ],
)
def test_impossible_steps_are_refused(steps: int, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make_stream(splits(), steps)


def test_a_class_without_test_samples_and_an_unknown_order_are_refused() -> None:
    data = splits()
    untested = Splits(data.train, data.test.take((data.test.labels != 3).nonzero().flatten()), "vectors")
    with pytest.raises(ValueError, match="got none of: class 3"):
        make_stream(untested, 2)
    with pytest.raises(ValueError, match="'shuffled' or 'given'"):
        make_stream(data, 2, order="sorted")


def test_classes_without_training_samples_never_come() -> None:
    data = splits()
    fewer = Splits(data.train.take((data.train.labels != 3).nonzero().flatten()), data.test, "vectors")
    assert 3 not in make_stream(fewer, 3).seen(2)


def test_the_first_classes_are_a_data_set_of_their_own() -> None:
    data = splits()
    few = first_classes(data, 3)
    assert (len(few.train), len(few.test)) == (30, 12)
    assert few.train.class_names == few.test.class_names == data.train.class_names[:3]
    assert few.train.mean == data.train.mean
    assert few.train.fingerprint != data.train.fingerprint
    assert sorted(make_stream(few, 2).seen(1)) == [0, 1, 2]
    for count in (1, 8):
        with pytest.raises(ValueError, match="expected 2 to 7 classes"):
            first_classes(data, count)

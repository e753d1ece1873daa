from dataclasses import replace

import numpy as np
import pytest
import torch

from data.sample_files import pixels
from lcmat.data.assemble import Facts, build, index_labels, split
from lcmat.data.raw import Raw, RawPart


def part(labels: object, *, channels: int = 1, dtype: object = None) -> RawPart:
    array = np.array(labels, dtype=dtype)  # type: ignore[call-overload]
    return RawPart(pixels(len(array), channels, 4, 4), array, tuple(f"r{row}" for row in range(len(array))))


def vectors(labels: list[int], width: int = 3) -> RawPart:
    features = np.random.default_rng(0).normal(size=(len(labels), width)).astype(np.float32)
    return RawPart(features, np.array(labels), tuple(f"r{row}" for row in range(len(labels))))


def test_a_feature_that_is_no_number_is_named_by_its_row_in_the_source() -> None:
    bad = vectors([0, 1, 0, 1])
    bad.inputs[2, 1] = np.nan
    with pytest.raises(ValueError, match="got NaN or infinity in 1 of 4 training rows, the first r2;"):
        index_labels(Raw(bad))
    with pytest.raises(ValueError, match="1 of 4 test rows, the first r2;"):
        index_labels(Raw(vectors([0, 1]), bad))


@pytest.mark.parametrize(
    ("labels", "indices", "names"),
    [
        ([7, -2, 7, 30], [1, 0, 1, 2], ("-2", "7", "30")),
        (["dog", "cat", "dog"], [1, 0, 1], ("cat", "dog")),
        ([True, False], [1, 0], ("0", "1")),
        ([2.0, 1.0], [1, 0], ("1", "2")),
    ],
)
def test_labels_become_indices_in_sorted_order(labels: list[object], indices: list[int], names: tuple[str]) -> None:
    raw = index_labels(Raw(part(labels)))
    assert raw.train.labels.tolist() == indices
    assert raw.train.labels.dtype == np.int64
    assert raw.class_names == names


def test_objects_and_bytes_are_labels_too() -> None:
    assert index_labels(Raw(part([b"b", "a"], dtype=object))).class_names == ("a", "b")
    assert index_labels(Raw(part([3, np.int64(1)], dtype=object))).class_names == ("1", "3")


def test_a_column_of_labels_is_flattened() -> None:
    assert index_labels(Raw(part([[3], [1]]))).train.labels.tolist() == [1, 0]


@pytest.mark.parametrize("labels", [[2, 0, 1], ["z", "x", "y"]])
def test_the_sources_own_order_of_classes_is_kept(labels: list[object]) -> None:
    raw = index_labels(Raw(part(labels), class_names=("x", "y", "z")))
    assert raw.train.labels.tolist() == [2, 0, 1]
    assert raw.class_names == ("x", "y", "z")


@pytest.mark.parametrize("names", [("b", "a"), ("a", "c")])
def test_own_names_need_not_be_sorted_nor_all_used(names: tuple[str, str]) -> None:
    raw = index_labels(Raw(part(["a", "a"]), class_names=names))
    assert raw.train.labels.tolist() == [names.index("a")] * 2
    assert f"classes without a training sample: {names[1 - names.index('a')]}" in raw.notes


@pytest.mark.parametrize(
    ("labels", "dtype", "message"),
    [
        ([1.5, 2.0], None, "got 1.5 for r0"),
        ([1.0, np.nan], None, "got nan for r1"),
        ([1.0, np.inf], None, "got inf for r1"),
        ([1, None], object, "r1 has none"),
        (["a", ""], object, "r1 has none"),
        (["a", 1], object, "all text or all whole numbers, got int, str"),
        ([[1, 2], [3, 4]], None, "one label for each of the 2 training samples"),
        ([1j, 2j], None, "got complex128"),
    ],
)
def test_unusable_labels_are_refused(labels: list[object], dtype: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        index_labels(Raw(part(labels, dtype=dtype)))


def test_a_test_label_that_training_lacks_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"unknown label 5 of r1 \(test\); known: 0, 1"):
        index_labels(Raw(part([0, 1]), part([0, 5])))
    with pytest.raises(ValueError, match="unknown label 'elk' of r0"):
        index_labels(Raw(part(["cat", "dog"]), part(["elk"])))
    with pytest.raises(ValueError, match=r"unknown label -1 of r1 \(training\)"):
        index_labels(Raw(part([0, -1]), class_names=("a", "b")))
    with pytest.raises(ValueError, match="text in one and numbers in the other"):
        index_labels(Raw(part(["cat"]), part([0])))


def test_parts_must_match() -> None:
    with pytest.raises(ValueError, match="expected at least one test sample"):
        index_labels(Raw(part([0]), part([])))
    with pytest.raises(ValueError, match="as many features in training and test data, got 3 and 4"):
        index_labels(Raw(vectors([0, 1]), vectors([0, 1], 4)))
    with pytest.raises(ValueError, match="images in one and features in the other"):
        index_labels(Raw(vectors([0, 1]), part([0, 1])))
    small = replace(part([0]), inputs=pixels(1, 1, 3, 3))
    with pytest.raises(ValueError, match="r0 has 4 × 4 pixels and r0 has 3 × 3; give resize=SIZE"):
        index_labels(Raw(part([0]), small))


def test_a_grey_part_follows_a_coloured_one() -> None:
    grey, coloured = part([0, 1]), part([0, 1], channels=3)
    train, test = index_labels(Raw(grey, coloured)).train, index_labels(Raw(coloured, grey)).test
    assert test is not None
    assert np.array_equal(train.inputs, np.repeat(grey.inputs, 3, axis=1))
    assert np.array_equal(test.inputs, train.inputs)


@pytest.mark.parametrize(
    ("raw", "flip"),
    [
        (Raw(part([3, 8])), False),
        (Raw(part([3, 8], channels=3)), None),
        (Raw(part(["A", "B"], channels=3)), False),
        (Raw(part(["cat", "dog"])), None),
        (Raw(part([3, 8]), flip=True), True),
        (Raw(vectors([3, 8])), None),
    ],
)
def test_what_looks_like_characters_is_not_mirrored(raw: Raw, flip: bool | None) -> None:
    indexed = index_labels(raw)
    assert indexed.flip is flip
    assert any("no mirroring" in note for note in indexed.notes) == (raw.flip is None and flip is False)


def test_the_split_is_stratified_and_whole() -> None:
    labels = [0] * 50 + [1] * 10 + [2] * 3 + [3] * 2 + [4]
    raw = index_labels(Raw(part(labels)))
    train, test, notes = split(raw, test_fraction=0.2, seed=0)
    assert np.bincount(test.labels, minlength=5).tolist() == [10, 2, 1, 1, 0]
    assert sorted([*train.names, *test.names]) == sorted(raw.train.names)
    assert "14 of 66 samples were held out, stratified, seed 0" in notes[0]
    assert "classes of one sample, kept in training: 1" in notes
    rows = [int(name[1:]) for name in test.names]
    assert rows == sorted(rows)
    assert np.array_equal(test.inputs, raw.train.inputs[rows])


def test_the_split_depends_on_the_seed_alone() -> None:
    raw = index_labels(Raw(part([0, 1] * 40)))
    before = torch.get_rng_state()
    names = [split(raw, test_fraction=0.25, seed=seed)[1].names for seed in (1, 1, 2)]
    assert names[0] == names[1] != names[2]
    assert torch.equal(before, torch.get_rng_state())


def test_almost_everything_may_be_held_out_but_never_all() -> None:
    train, test, _ = split(index_labels(Raw(part([0] * 5 + [1] * 5))), test_fraction=0.99, seed=0)
    assert (len(train.labels), len(test.labels)) == (2, 8)


def test_single_samples_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="a class of at least two samples"):
        split(index_labels(Raw(part([0, 1, 2]))), test_fraction=0.5, seed=0)


def test_test_data_carries_the_training_statistics() -> None:
    raw = index_labels(Raw(part([0, 1]), part([1, 0, 1]), flip=True))
    assert raw.test is not None
    train, test = build(raw, raw.train, raw.test, flip=None, facts=Facts())
    values = raw.train.inputs / 255
    assert train.mean == pytest.approx((values.mean(),))
    assert train.std == pytest.approx((values.std(),))
    assert (test.mean, test.std, test.class_names) == (train.mean, train.std, train.class_names)


def test_flip_is_for_images() -> None:
    raw = index_labels(Raw(vectors([0, 1]), vectors([0, 1])))
    assert raw.test is not None
    with pytest.raises(ValueError, match="flip= is for images"):
        build(raw, raw.train, raw.test, flip=True, facts=Facts())

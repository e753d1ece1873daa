import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from data.sample_files import encode, pixels, write_image_parquet, write_table
from lcmat.data import load
from lcmat.types import FeatureData, ImageData

IMAGES = pixels(6, 5, 5, 3)
ENCODED = [encode(image) for image in IMAGES]
LABELS = [2, 0, 1, 2, 0, 1]


def table_of(**columns: Any) -> dict[str, Any]:
    return {"a": [1.0, 2.0, 3.0, 4.0], "b": [4, 3, 2, 1], "label": [0, 1, 0, 1], **columns}


def write_csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# ---------------------------------------------------------------------------------------------- images in Parquet


@pytest.mark.parametrize("struct", [True, False])
def test_image_columns(tmp_path: Path, struct: bool) -> None:
    write_image_parquet(tmp_path / "train.parquet", ENCODED, LABELS, struct=struct)
    write_image_parquet(tmp_path / "test.parquet", ENCODED[:3], LABELS[:3], struct=struct)
    splits = load(tmp_path)
    assert isinstance(splits.train, ImageData)
    assert np.array_equal(splits.train.images.numpy(), IMAGES.transpose(0, 3, 1, 2))
    assert splits.train.labels.tolist() == LABELS
    assert splits.train.names[4] == "train.parquet:row 4"
    assert splits.test.names == tuple(f"test.parquet:row {row}" for row in range(3))


def test_class_names_and_paths_come_from_the_file(tmp_path: Path) -> None:
    paths = [f"pic/{row}.png" for row in range(5)] + [None]
    write_image_parquet(tmp_path / "train.parquet", ENCODED, LABELS, names=["z", "bb", "a"], paths=paths)
    write_image_parquet(tmp_path / "test.parquet", ENCODED, LABELS)
    splits = load(tmp_path)
    assert splits.train.class_names == ("z", "bb", "a")
    assert splits.train.labels.tolist() == LABELS
    assert splits.train.names == (*paths[:5], "train.parquet:row 5")


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("train.parquet", "test.parquet"),
        ("train-00000-of-00001.parquet", "test-00000-of-00001.parquet"),
        ("data/train-00000-of-00001.parquet", "data/validation-00000-of-00001.parquet"),
        ("train/0000.parquet", "test/0000.parquet"),
        ("Train_1.PARQUET", "val.parquet"),
    ],
)
def test_parts_are_told_by_their_names(tmp_path: Path, train: str, test: str) -> None:
    write_image_parquet(tmp_path / train, ENCODED, LABELS)
    write_image_parquet(tmp_path / test, ENCODED[:3], LABELS[:3])
    splits = load(tmp_path)
    assert (len(splits.train), len(splits.test)) == (6, 3)
    assert splits.train.names[0] == f"{train}:row 0"


def test_several_files_of_one_part_follow_each_other(tmp_path: Path) -> None:
    for part in range(3):
        rows = slice(2 * part, 2 * part + 2)
        write_image_parquet(tmp_path / f"train-0000{part}-of-00003.parquet", ENCODED[rows], LABELS[rows])
    write_image_parquet(tmp_path / "test.parquet", ENCODED, LABELS)
    splits = load(tmp_path)
    assert splits.train.labels.tolist() == LABELS
    assert np.array_equal(splits.train.inputs.numpy(), IMAGES.transpose(0, 3, 1, 2))


def test_permuted_rows_are_other_data_with_the_same_rows(tmp_path: Path) -> None:
    order = [3, 0, 5, 1, 4, 2]
    for name, rows in (("a", list(range(6))), ("b", order)):
        for part in ("train", "test"):
            path = tmp_path / name / f"{part}.parquet"
            write_image_parquet(path, [ENCODED[row] for row in rows], [LABELS[row] for row in rows])
    a, b = (load(tmp_path / name).train for name in "ab")
    assert np.array_equal(a.inputs.numpy()[order], b.inputs.numpy())
    assert np.array_equal(a.labels.numpy()[order], b.labels.numpy())
    assert (a.class_names, a.mean) == (b.class_names, b.mean)
    assert a.fingerprint != b.fingerprint


def test_files_without_a_part_are_joined(tmp_path: Path) -> None:
    write_table(tmp_path / "part-0.parquet", table_of())
    write_table(tmp_path / "part-1.parquet", table_of())
    splits = load(tmp_path)
    assert len(splits.train) + len(splits.test) == 8
    assert "2 files were joined" in splits.notes


def test_test_data_alone_is_refused(tmp_path: Path) -> None:
    write_table(tmp_path / "test.parquet", table_of())
    with pytest.raises(ValueError, match=r"expected a training file such as train\.parquet in .* only test\.parquet"):
        load(tmp_path)


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    for name in ("train", "test", "validation", "extra"):
        write_table(tmp_path / f"{name}.parquet", table_of())
    assert "left out: validation, extra.parquet" in load(tmp_path).notes


def test_many_rows_of_images_and_several_chunks(tmp_path: Path) -> None:
    images = pixels(2500, 2, 2)
    write_image_parquet(tmp_path / "a.parquet", [encode(image, "BMP") for image in images], [0, 1] * 1250)
    splits = load(tmp_path / "a.parquet")
    rows = [int(name.split()[-1]) for name in splits.train.names]
    assert np.array_equal(splits.train.inputs.numpy()[:, 0], images[rows])


def test_a_corrupt_image_is_named(tmp_path: Path) -> None:
    damaged = [*ENCODED[:3], ENCODED[3][:70], *ENCODED[4:]]
    write_image_parquet(tmp_path / "train.parquet", damaged, LABELS)
    with pytest.raises(ValueError, match=r"train\.parquet:row 3 cannot be read as an image"):
        load(tmp_path)
    write_image_parquet(tmp_path / "train.parquet", damaged, LABELS, paths=["x.png"] * 6)
    with pytest.raises(ValueError, match=r"train\.parquet:row 3: x\.png cannot be read as an image"):
        load(tmp_path)


def test_a_missing_image_is_named_and_its_path_is_not_opened(tmp_path: Path) -> None:
    paths = [None, str(tmp_path / "elsewhere.png"), *[None] * 4]
    write_image_parquet(tmp_path / "a.parquet", [ENCODED[0], None, *ENCODED[2:]], LABELS, paths=paths)
    with pytest.raises(ValueError, match=r"a\.parquet:row 1, found no bytes"):
        load(tmp_path / "a.parquet")


def test_mixed_sizes_want_resize(tmp_path: Path) -> None:
    path = write_image_parquet(tmp_path / "a.parquet", [*ENCODED[:5], encode(pixels(7, 9, 3))], LABELS)
    with pytest.raises(
        ValueError, match=r"a\.parquet:row 0 has 5 × 5 pixels and a\.parquet:row 5 has 9 × 7; give resi"
    ):
        load(path)
    assert load(path, resize=4).train.inputs.shape[1:] == (3, 4, 4)


def test_the_image_column_can_be_named(tmp_path: Path) -> None:
    two = {"left": ENCODED, "right": [encode(255 - image) for image in IMAGES], "label": LABELS}
    path = write_table(tmp_path / "a.parquet", two)
    with pytest.raises(ValueError, match="more than one image column; name one with image=: left, right"):
        load(path)
    left, right = (load(path, image=name).train.inputs for name in ("left", "right"))
    assert np.array_equal(left.numpy(), 255 - right.numpy())
    with pytest.raises(ValueError, match=r"no column image='middle' in a.parquet; its columns: 'left'"):
        load(path, image="middle")
    with pytest.raises(ValueError, match=r"column 'label' of a.parquet holds int64, not encoded images"):
        load(path, image="label")


def test_one_of_several_labels_must_be_named(tmp_path: Path) -> None:
    features = {
        "img": {"_type": "Image"},
        "fine_label": {"_type": "ClassLabel", "names": ["a1", "a2", "b1"]},
        "coarse_label": {"_type": "ClassLabel", "names": ["aa", "bb"]},
    }
    table = pa.table({"img": ENCODED, "fine_label": LABELS, "coarse_label": [1, 0, 0, 1, 0, 0]})
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path = write_table(tmp_path / "a.parquet", table)
    with pytest.raises(ValueError, match=r"cannot tell the label column of a\.parquet.*'fine_label' \(int64\)"):
        load(path)
    assert load(path, label="coarse_label").train.class_names == ("aa", "bb")
    assert load(path, label="fine_label").train.class_names == ("a1", "a2", "b1")


def test_a_label_of_another_name_is_found_beside_an_image(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", {"img": ENCODED, "species": ["cat", "dog"] * 3})
    splits = load(path)
    assert splits.train.class_names == ("cat", "dog")
    assert "label column: 'species'" in splits.notes


@pytest.mark.parametrize("metadata", ["", "[]", "null", '{"info": 3}', '{"info": {"features": {"label": 3}}}'])
def test_odd_metadata_is_passed_over(tmp_path: Path, metadata: str) -> None:
    table = pa.table(table_of()).replace_schema_metadata({"huggingface": metadata})
    assert load(write_table(tmp_path / "a.parquet", table)).train.class_names == ("0", "1")


# ----------------------------------------------------------------------------------------------- feature columns


def test_parquet_of_features(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", table_of(c=[True, False, True, False]))
    splits = load(path, test_fraction=0.5)
    assert isinstance(splits.train, FeatureData)
    rows = [int(name.removeprefix("a.parquet:row ")) for name in splits.train.names]
    expected = np.array([[1, 4, 1], [2, 3, 0], [3, 2, 1], [4, 1, 0]], np.float32)
    assert np.array_equal(splits.train.features.numpy(), expected[rows])


def test_features_keep_their_names_through_the_cache(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", table_of())
    first, again = load(path).train, load(path).train
    assert isinstance(first, FeatureData)
    assert isinstance(again, FeatureData)
    assert first.feature_names == again.feature_names == first.take(torch.tensor([0])).feature_names
    assert len(first.feature_names) == first.features.shape[1]


def test_a_column_of_vectors_is_spread(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", table_of(a=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
    assert load(path).train.inputs.shape[1] == 3
    path = write_table(tmp_path / "a.parquet", table_of(a=[[1.0, 2.0], [3.0], [5.0, 6.0], [7.0, 8.0]]))
    with pytest.raises(ValueError, match=r"vectors of one length in column 'a' of a.parquet"):
        load(path)


@pytest.mark.parametrize("name", ["label", "target", "class", "y", "Label", "labels"])
def test_the_label_column_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    path = write_csv(tmp_path / "a.csv", f"{name},width,height\ncat,1,2\ndog,3,4\ncat,5,6\ndog,7,8\n")
    splits = load(path, test_fraction=0.5)
    assert splits.train.class_names == ("cat", "dog")
    assert splits.train.inputs.shape == (2, 2)


def test_a_last_column_of_text_is_the_label(tmp_path: Path) -> None:
    splits = load(write_csv(tmp_path / "a.csv", "width,height,species\n1,2,cat\n3,4,dog\n5,6,cat\n7,8,dog\n"))
    assert splits.train.class_names == ("cat", "dog")
    assert "label column: 'species'" in splits.notes


@pytest.mark.parametrize("header", ["a,b,c", "label,y,c"])
def test_an_unclear_label_lists_the_columns(tmp_path: Path, header: str) -> None:
    path = write_csv(tmp_path / "a.csv", f"{header}\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match=r"name it with label=. Its columns: '\w+' \(int64\), '\w' \(int64\), 'c'"):
        load(path)
    with pytest.raises(ValueError, match=r"no column label='d' in a.csv; its columns"):
        load(path, label="d")


def test_the_label_can_be_named(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", "a,b,c\n1,2,0\n4,5,1\n1,1,1\n2,2,0\n")
    assert load(path, label="c").train.inputs.shape[1] == 2


def test_rows_are_named_by_an_id(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", "id,a,label\nx1,1,0\nx2,2,1\nx3,3,0\nx4,4,1\n")
    splits = load(path)
    assert sorted((*splits.train.names, *splits.test.names)) == ["x1", "x2", "x3", "x4"]
    assert splits.train.inputs.shape[1] == 1
    assert "column 'id' was taken for the names of the rows, not for a feature" in splits.notes


def test_an_index_with_repeated_values_is_a_feature(tmp_path: Path) -> None:
    assert load(write_csv(tmp_path / "a.csv", "index,a,y\n1,1,0\n1,2,1\n3,3,0\n4,4,1\n")).train.inputs.shape[1] == 2


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
def test_kinds_of_csv(tmp_path: Path, name: str) -> None:
    text = "a,label\n1,x\n2,y\n3,x\n4,y\n"
    text = text.replace(",", "\t") if "tsv" in name else text
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert load(tmp_path / name).train.class_names == ("x", "y")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("separator", [";", "\t"])
def test_what_spreadsheets_separate_by(tmp_path: Path, name: str, separator: str) -> None:
    text = "size in cm,weight,kind\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n".replace(",", separator)
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    splits = load(tmp_path / name)
    assert splits.train.class_names == ("x", "y")
    assert splits.train.inputs.shape[1] == 2


def test_text_that_is_not_utf_8_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("a,label\n1,café\n2,thé\n".encode("latin1"))
    with pytest.raises(ValueError, match=r"expected text in UTF-8 in .*a\.csv, but column 'label' holds other"):
        load(tmp_path / "a.csv")


def test_train_and_test_csv(tmp_path: Path) -> None:
    write_csv(tmp_path / "train.csv", "a,b,label\n1,2,x\n3,4,y\n")
    write_csv(tmp_path / "test.csv", "label,b,a\ny,8,7\n")
    splits = load(tmp_path)
    assert splits.test.inputs.tolist() == [[7.0, 8.0]]
    assert splits.test.labels.tolist() == [1]
    write_csv(tmp_path / "test.csv", "label,a\ny,7\n")
    with pytest.raises(ValueError, match=r"test.csv lacks the columns 'b' that the first file has"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,city,label\n1,Rome,0\n2,Oslo,1\n",
            r"but these hold something else: 'city' \(string\); encode or drop them",
        ),
        ("a,label\n1,0\n,1\n", "column 'a' of a.csv is missing, NaN or infinite in 1 rows, the first row 1"),
        ("a,label\nnan,0\n1.5,1\n", "the first row 0"),
        ("a,label\n1e300,0\n1.5,1\n", "missing, NaN or infinite in 1 rows, the first row 0"),
        ("a,label\n1,0\n2,\n", "a.csv:row 1 has none"),
        ("a,label\n1,x\n2,\n", "a.csv:row 1 has none"),
        ("a,label\n1,0.5\n2,1\n", "got 0.5 for a.csv:row 0"),
        ("a,label\n1,2020-01-01\n2,2020-01-02\n", "whole numbers or text in label column 'label'"),
        ("1,2,3\n4,5,6\n", "names of the columns in the first line of .*, got numbers: 1, 2, 3"),
        ("a,a,label\n1,2,3\n", "columns with different names"),
        ("a,label\n1,0\n2,1,5\n", "a.csv cannot be read: .*Expected 2 columns, got 3"),
        ("", "a.csv cannot be read"),
        ("a,label\n", "expected .*empty"),
        ("label\n0\n1\n", "expected feature columns in a.csv beside the label, got none"),
    ],
)
def test_unusable_csv_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(write_csv(tmp_path / "a.csv", text))


def test_other_parquet_faults(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", table_of())
    with pytest.raises(ValueError, match=r"resize= is for images, but a.parquet has no image column"):
        load(path, resize=8)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read: .*; is the file whole"):
        load(path)

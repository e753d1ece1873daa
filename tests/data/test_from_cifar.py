import io
import os
import pickle
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.sample_files import pixels
from lcmat.data import from_cifar, load
from lcmat.types import ImageData

IMAGES = pixels(12, 3, 32, 32)
LABELS = [0, 1, 2] * 4
NAMES = ["airplane", "automobile", "bird"]


def rows(part: slice, *heads: list[int]) -> bytes:
    columns = [np.array(head[part], np.uint8)[:, None] for head in heads]
    return np.concatenate([*columns, IMAGES[part].reshape(-1, 3072)], axis=1).tobytes()


def batch(part: slice, **labels: list[int]) -> bytes:
    content: dict[bytes, Any] = {b"data": IMAGES[part].reshape(-1, 3072)}
    content |= {name.encode(): values[part] for name, values in labels.items()}
    content[b"filenames"] = [f"{row}.png".encode() for row in range(12)[part]]
    return pickle.dumps(content, protocol=2)


FIRST, SECOND, LAST = slice(0, 5), slice(5, 9), slice(9, 12)
COARSE = [1 - label // 2 for label in LABELS]
VERSIONS: dict[str, dict[str, bytes]] = {
    "cifar-10-batches-bin": {
        "data_batch_1.bin": rows(FIRST, LABELS),
        "data_batch_2.bin": rows(SECOND, LABELS),
        "test_batch.bin": rows(LAST, LABELS),
        "batches.meta.txt": "\n".join(NAMES).encode() + b"\n\n",
    },
    "cifar-10-batches-py": {
        "data_batch_2": batch(SECOND, labels=LABELS),
        "data_batch_1": batch(FIRST, labels=LABELS),
        "test_batch": batch(LAST, labels=LABELS),
        "batches.meta": pickle.dumps({b"label_names": [name.encode() for name in NAMES]}, protocol=2),
        "readme.html": b"<p>",
    },
    "cifar-100-binary": {
        "train.bin": rows(slice(0, 9), COARSE, LABELS),
        "test.bin": rows(LAST, COARSE, LABELS),
        "fine_label_names.txt": "\n".join(NAMES).encode(),
        "coarse_label_names.txt": b"flying\ndriving\n",
    },
    "cifar-100-python": {
        "train": batch(slice(0, 9), fine_labels=LABELS, coarse_labels=COARSE),
        "test": batch(LAST, fine_labels=LABELS, coarse_labels=COARSE),
        "meta": pickle.dumps({"fine_label_names": NAMES, "coarse_label_names": ["flying", "driving"]}, protocol=2),
    },
}


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def write_archive(path: Path, files: Mapping[str, bytes], *, inside: str = "batches") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{inside}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["archive", "folder", "folder around it"])
def test_every_version_in_every_form(tmp_path: Path, version: str, form: str) -> None:
    if form == "archive":
        source = write_archive(tmp_path / f"{version}.tar.gz", VERSIONS[version], inside=version)
    else:
        source = write_folder(tmp_path / version, VERSIONS[version])
    splits = load(tmp_path if form == "folder around it" else source)
    assert isinstance(splits.train, ImageData)
    assert np.array_equal(splits.train.images.numpy(), IMAGES[:9])
    assert np.array_equal(splits.test.inputs.numpy(), IMAGES[9:])
    assert splits.train.labels.tolist() == LABELS[:9]
    assert splits.train.class_names == tuple(NAMES)
    assert splits.train.flip is True
    python = version.endswith(("py", "python"))
    first = "data_batch_1.bin" if "10-" in version else "train.bin"
    assert splits.train.names[3] == ("3.png" if python else f"{first}:row 3")


@pytest.mark.parametrize("version", ["cifar-100-binary", "cifar-100-python"])
def test_coarse_labels_on_request(tmp_path: Path, version: str) -> None:
    splits = load(write_folder(tmp_path / version, VERSIONS[version]), label="coarse")
    assert splits.train.class_names == ("flying", "driving")
    assert splits.train.labels.tolist() == COARSE[:9]


def test_labels_that_are_not_there_are_refused(tmp_path: Path) -> None:
    for version, label in (("cifar-100-binary", "medium"), ("cifar-10-batches-py", "fine")):
        source = write_folder(tmp_path / version, VERSIONS[version])
        with pytest.raises(ValueError, match=f"is 'fine' or 'coarse', and CIFAR-10 has none; got '{label}'"):
            load(source, label=label)


def test_without_names_and_test_batch(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "a", {"data_batch_1": VERSIONS["cifar-10-batches-py"]["data_batch_1"]})
    splits = load(source)
    assert splits.train.class_names == ("0", "1", "2")
    assert len(splits.test) == 2


def test_members_are_read_in_memory_whatever_their_paths(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    files = VERSIONS["cifar-10-batches-bin"]
    source = write_archive(tmp_path / "deep" / "deeper" / "cifar.tar.gz", files, inside="../..")
    before = sorted(tmp_path.rglob("*"))
    assert len(load(source, cache=False).train) == 9
    assert sorted(tmp_path.rglob("*")) == before


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    write_folder(tmp_path / "elsewhere", VERSIONS["cifar-10-batches-bin"])
    path = tmp_path / "cifar.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("data_batch_1.bin")
        member.type = tarfile.SYMTYPE
        member.linkname = str(tmp_path / "elsewhere" / "data_batch_1.bin")
        archive.addfile(member)
    with pytest.raises(ValueError, match="expected the training batches of CIFAR"):
        load(path)


def test_a_swollen_archive_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_archive(tmp_path / "cifar.tar.gz", {**VERSIONS["cifar-10-batches-bin"], "zeros": bytes(10**6)})
    monkeypatch.setattr(from_cifar, "_LARGEST_MEMBER", 10**6 - 1)
    with pytest.raises(ValueError, match="no CIFAR archive: 'batches/zeros' makes it larger"):
        load(source)
    monkeypatch.setattr(from_cifar, "_LARGEST_MEMBER", 10**6)
    monkeypatch.setattr(from_cifar, "_LARGEST_ARCHIVE", 10**6)
    with pytest.raises(ValueError, match="no CIFAR archive"):
        load(source)


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["data_batch_1", "test_batch", "batches.meta"])
def test_a_malicious_batch_is_refused_and_does_nothing(tmp_path: Path, name: str) -> None:
    trap = pickle.dumps({"data": Trap(tmp_path / "ran")}, protocol=2)
    source = write_archive(tmp_path / "cifar.tar.gz", {**VERSIONS["cifar-10-batches-py"], name: trap})
    with pytest.raises(ValueError, match=rf"cifar\.tar\.gz: {name} was refused or is damaged"):
        load(source)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("version", "name", "content", "message"),
    [
        ("cifar-10-batches-bin", "data_batch_2.bin", rows(FIRST, LABELS)[:-1], "no whole number of images"),
        ("cifar-10-batches-bin", "test_batch.bin", b"", "no whole number of images"),
        ("cifar-10-batches-py", "data_batch_1", batch(FIRST), "expected 5 labels in data_batch_1, got none"),
        ("cifar-10-batches-py", "data_batch_1", batch(FIRST, labels=["a"] * 5), "whole numbers as labels"),  # type: ignore[list-item]
        ("cifar-10-batches-py", "data_batch_1", pickle.dumps({"labels": [1]}), "images of 3072 bytes in data_batch_1"),
        ("cifar-10-batches-py", "data_batch_1", batch(FIRST, labels=[7] * 5), "unknown label 7 of 0.png"),
    ],
)
def test_damaged_batches_are_named(tmp_path: Path, version: str, name: str, content: bytes, message: str) -> None:
    source = write_folder(tmp_path / version, {**VERSIONS[version], name: content})
    with pytest.raises(ValueError, match=message):
        load(source)


@pytest.mark.parametrize("keep", [0, 100, -500])
def test_a_damaged_archive_is_named(tmp_path: Path, keep: int) -> None:
    source = write_archive(tmp_path / "cifar.tar.gz", VERSIONS["cifar-10-batches-bin"])
    source.write_bytes(source.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"cifar\.tar\.gz cannot be read") as refused:
        load(source)
    assert len(str(refused.value).splitlines()) == 1

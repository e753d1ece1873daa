import os
from pathlib import Path

import numpy as np
import pytest
import torch

from data.sample_files import pixels, write_image, write_image_folder
from lcmat import files
from lcmat.data import cache, load
from lcmat.data.catalogue import SOURCES
from lcmat.types import Splits


def entries(suffix: str = ".safetensors") -> list[Path]:
    return sorted(path for path in cache.folder().glob(f"*{suffix}"))


def same(a: Splits, b: Splits) -> bool:
    parts = [(a.train, b.train), (a.test, b.test)]
    return (a.name, a.notes) == (b.name, b.notes) and all(
        torch.equal(x.inputs, y.inputs)
        and torch.equal(x.labels, y.labels)
        and (x.names, x.class_names, x.mean, x.std) == (y.names, y.class_names, y.mean, y.std)
        and x.fingerprint == y.fingerprint
        for x, y in parts
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Images with a test part, whose notes and flip are kept too."""
    write_image_folder(tmp_path / "pets" / "train", ("a", "b"))
    write_image_folder(tmp_path / "pets" / "test", ("a", "b"), per_class=2)
    (tmp_path / "pets" / "train" / "a" / "readme.txt").write_text("no image")
    return tmp_path / "pets"


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the source was read")

    monkeypatch.setattr("lcmat.data.from_folder._read_part", fail)


@pytest.mark.parametrize("own_test", [True, False])
def test_a_hit_equals_a_miss(source: Path, own_test: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = source if own_test else source / "train"
    plain, miss = load(path, cache=False), load(path)
    assert same(plain, miss)
    assert len(entries()) == len(entries(".json")) == 1
    forbid_reading(monkeypatch)
    monkeypatch.setattr(files, "fingerprint", lambda *_: pytest.fail("the data was hashed again"))
    assert same(load(path), miss)
    with pytest.raises(AssertionError, match="was read"):
        load(path, cache=False)


def test_the_kept_images_can_be_written_to(source: Path) -> None:
    load(source)
    images = load(source).train.inputs
    images[0] = 7
    assert not (load(source).train.inputs[0] == 7).all()


def test_a_changed_source_is_read_again_and_the_old_entry_goes(source: Path) -> None:
    before = load(source)
    old = entries()
    write_image(source / "train" / "a" / "9.png", pixels(6, 6, 3, seed=99))
    after = load(source)
    assert len(after.train) == len(before.train) + 1
    assert len(entries()) == len(entries(".json")) == 1
    assert entries() != old


def test_a_touched_file_is_read_again(source: Path) -> None:
    load(source)
    old = entries()
    os.utime(source / "train" / "a" / "0.png", ns=(1, 1))
    load(source)
    assert entries() != old


def test_options_are_kept_apart_and_seeds_share_the_images(source: Path) -> None:
    load(source)
    assert load(source, resize=4).train.inputs.shape[2:] == (4, 4)
    assert load(source).train.inputs.shape[2:] == (6, 6)
    assert len(entries()) == 2
    fingerprints = {load(source / "train", seed=seed, test_fraction=0.4).train.fingerprint for seed in range(4)}
    assert len(entries()) == 3
    assert len(fingerprints) > 1


def test_flip_does_not_need_an_entry_of_its_own(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(source)
    forbid_reading(monkeypatch)
    assert load(source, flip=True).train.flip is True  # type: ignore[union-attr]
    assert load(source).train.flip is False  # type: ignore[union-attr]


@pytest.mark.parametrize("damage", ["truncated", "a flipped byte", "no safetensors", "empty", "a folder"])
def test_a_damaged_entry_is_read_again(source: Path, damage: str) -> None:
    expected = load(source)
    path = entries()[0]
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[:-100])
    elif damage == "a flipped byte":
        content[-50] ^= 1
        path.write_bytes(content)
    elif damage == "a folder":
        path.mkdir()
    else:
        path.write_bytes(b"" if damage == "empty" else b"{}" * 100)
    again = load(source)
    if damage == "a folder":
        assert torch.equal(expected.train.inputs, again.train.inputs)
        assert "could not be kept" in again.notes[-1]
    else:
        assert same(expected, again)
        assert path.stat().st_size == len(content)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"mean": 3}', '{"mean": ["a"]}', "\0"])
def test_damaged_facts_are_found_again(source: Path, content: str) -> None:
    expected = load(source)
    path = entries(".json")[0]
    path.write_text(content)
    assert same(load(source), expected)
    assert path.read_text() != content


def test_a_cache_that_cannot_be_written_is_said_and_not_fatal(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").write_text("in the way")
    monkeypatch.setenv("LCMAT_CACHE", str(tmp_path / "a file"))
    splits = load(source)
    assert len(splits.train) == 6
    assert "could not be kept" in splits.notes[-1]


def test_a_full_disk_leaves_nothing_behind(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "save_file", full)
    assert "No space left on device" in load(source).notes[-1]
    assert not [path for path in cache.folder().iterdir() if path.suffix != ".json"]


def test_the_folder_is_the_users_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCMAT_CACHE", str(tmp_path / "mine"))
    assert cache.folder() == tmp_path / "mine" / "data"
    monkeypatch.delenv("LCMAT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "xdg" / "lcmat" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache" / "lcmat" / "data"


def test_lcmat_cache_is_where_entries_go(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCMAT_CACHE", str(tmp_path / "here"))
    load(source)
    assert len(list((tmp_path / "here" / "data").glob("*.safetensors"))) == 1


def test_a_cache_is_not_used_when_it_is_off(source: Path) -> None:
    load(source, cache=False)
    assert not cache.folder().exists()


def test_quick_sources_are_not_kept(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=pixels(10, 4, 4), y=np.arange(10) % 2)
    load(tmp_path / "a.npz")
    assert not cache.folder().exists()
    assert {entry.name for entry in SOURCES if entry.facts.cached} == {"cifar", "idx", "folder", "parquet"}


def test_a_link_to_nowhere_does_no_harm(source: Path) -> None:
    (source / "train" / "a" / "gone.txt").symlink_to(source / "nothing")
    assert len(load(source).train) == 6

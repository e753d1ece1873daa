import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lcmat import files


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, *, after: int = 0) -> None:
    """Let fsync fail as on a full disk, after some successes."""
    real, calls = os.fsync, iter(range(1_000))

    def fsync(handle: int) -> None:
        if next(calls) >= after:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def test_write_makes_the_folder_and_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.txt"
    files.write_text(path, "old")
    assert files.write_text(path, "neu ö") == path
    assert path.read_text(encoding="utf-8") == "neu ö"
    assert [entry.name for entry in path.parent.iterdir()] == ["b.txt"]


def test_written_file_is_as_readable_as_any_new_file(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    assert files.write_bytes(tmp_path / "written", b"").stat().st_mode == plain.stat().st_mode


def test_full_disk_leaves_the_old_file_whole_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.write_text(tmp_path / "a.txt", "old")
    fill_the_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left") as caught:
        files.write_text(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        files.write_text(tmp_path / "page.html", "new")
    assert caught.value.filename == str(tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_json_round_trip_and_refusal_of_nan(tmp_path: Path) -> None:
    path = files.write_json(tmp_path / "a.json", {"β": [1, 2.5, None]})
    assert files.read_json(path) == {"β": [1, 2.5, None]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(path, float("nan"))
    assert files.read_json(path) == {"β": [1, 2.5, None]}


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe\x00"])
def test_damaged_json_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.json, but it does not parse.*damaged"):
        files.read_json(path)


def test_missing_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected a JSON file at .*none\.json, found none"):
        files.read_json(tmp_path / "none.json")


def test_json_lines_survive_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "records.jsonl"
    assert files.read_json_lines(path) == []
    files.append_json_line(path, {"a": 1})
    with path.open("ab") as file:
        file.write(b'{"a": 2, "text": "\xc3')  # a kill in the middle of a write
    assert files.read_json_lines(path) == [{"a": 1}]
    files.append_json_line(path, {"a": 3})
    assert files.read_json_lines(path) == [{"a": 1}, {"a": 3}]


def test_a_record_that_finds_no_room_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_the_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left") as caught:
        files.append_json_line(tmp_path / "records.jsonl", {"a": 1})
    assert caught.value.filename == str(tmp_path / "records.jsonl")


def save(folder: Path, value: int) -> Path:
    return files.save_artifact(folder, "thing", {"value": value}, {"x": torch.full((3,), value)})


def test_artifact_round_trip_keeps_one_tensor_file(tmp_path: Path) -> None:
    save(tmp_path, 1)
    assert save(tmp_path, 2) == tmp_path
    meta, tensors = files.load_artifact(tmp_path, "thing")
    assert meta == {"value": 2}
    assert tensors["x"].tolist() == [2, 2, 2]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("after", [0, 1])
def test_artifact_on_a_full_disk_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    save(tmp_path, 1)
    fill_the_disk(monkeypatch, after=after)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, 2)
    assert files.load_artifact(tmp_path, "thing")[0] == {"value": 1}


def edit(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    path = folder / "thing.json"
    meta = json.loads(path.read_text(encoding="utf-8"))
    change(meta)
    path.write_text(json.dumps(meta), encoding="utf-8")


def test_malformed_artifacts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no thing\.json; check the path"):
        files.load_artifact(tmp_path, "thing")
    save(tmp_path, 1)
    tensor_file = next(tmp_path.glob("*.safetensors"))
    whole = tensor_file.read_bytes()
    tensor_file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ValueError, match="is damaged: its content differs"):
        files.load_artifact(tmp_path, "thing")
    tensor_file.unlink()
    with pytest.raises(ValueError, match=r"is missing from .*copy the whole folder"):
        files.load_artifact(tmp_path, "thing")
    edit(tmp_path, lambda meta: meta.update(tensors={"file": "../x.safetensors", "sha256": ""}))
    with pytest.raises(ValueError, match="outside its folder"):
        files.load_artifact(tmp_path, "thing")
    edit(tmp_path, lambda meta: meta.pop("tensors"))
    with pytest.raises(ValueError, match="no tensor file is named"):
        files.load_artifact(tmp_path, "thing")


def test_content_that_is_no_safetensors_file_is_refused(tmp_path: Path) -> None:
    import hashlib

    (tmp_path / "x.safetensors").write_bytes(b"junk")
    digest = hashlib.sha256(b"junk").hexdigest()
    files.write_json(tmp_path / "thing.json", {"tensors": {"file": "x.safetensors", "sha256": digest}})
    with pytest.raises(ValueError, match="is no safetensors file"):
        files.load_artifact(tmp_path, "thing")


def test_artifact_is_not_written_over_a_file(tmp_path: Path) -> None:
    path = files.write_text(tmp_path / "a", "text")
    with pytest.raises(ValueError, match="is a file; name another path"):
        save(path, 1)


def test_fingerprint_of_a_type_that_numpy_does_not_have() -> None:
    x = torch.tensor([1.0, -2.5])
    digests = {files.fingerprint(y) for y in (x.bfloat16(), -x.bfloat16(), x.bfloat16().view(torch.int16), x.half())}
    assert len(digests) == 4


def test_fingerprint_sees_type_shape_content_and_order() -> None:
    x = torch.arange(4)
    others = [(x.reshape(2, 2),), (x.int(),), (x + 1,), (x, "a"), (x, ["a", "b"]), (x, ["ab"]), (x, ["b", "a"])]
    digests = {files.fingerprint(*parts) for parts in [(x,), *others]}
    assert len(digests) == len(others) + 1
    assert files.fingerprint(x) == files.fingerprint(x.numpy())
    assert files.fingerprint(x.reshape(2, 2).T) == files.fingerprint(x.reshape(2, 2).T.contiguous())

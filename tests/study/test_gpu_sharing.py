"""One GPU for several processes, with a stand-in for NVIDIA's program that writes down what it was asked."""

import os
import stat
import sys
from pathlib import Path

import pytest
import torch

from lcmat.study import gpu_sharing
from lcmat.study.gpu_sharing import CONTROL, shared_gpu

# Like the program itself: -d starts a daemon, words on stdin go to it, and without one they fail.
STAND_IN = """\
#!/bin/sh
state="${CUDA_MPS_PIPE_DIRECTORY:-@default@}/control"
if [ "$1" = "-d" ]; then
  echo "start visible=${CUDA_VISIBLE_DEVICES-all} log=$CUDA_MPS_LOG_DIRECTORY" >> @diary@
  if [ -e @broken@ ]; then echo "no permission" >&2; exit 1; fi
  touch "$state"
  exit 0
fi
read words
[ -e "$state" ] || exit 1
echo "$words" >> @diary@
[ "$words" = quit ] && rm "$state"
exit 0
"""


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the stand-in was asked; it is on the PATH."""
    programs, default = tmp_path / "programs", tmp_path / "default"
    for folder in (programs, default):
        folder.mkdir()
    text = STAND_IN
    for name in ("diary", "broken", "default"):
        text = text.replace(f"@{name}@", str(tmp_path / name))
    (programs / CONTROL).write_text(text, encoding="utf-8")
    (programs / CONTROL).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    use(monkeypatch, "pass")
    return tmp_path / "diary"


def use(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(gpu_sharing, "PROBE", (sys.executable, "-c", code))


def share(folder: Path) -> tuple[dict[str, str], list[str], bool]:
    """The environment inside, what was said, and whether an own daemon ran inside."""
    said: list[str] = []
    with shared_gpu(torch.device("cuda"), folder, said.append) as environment:
        return environment, said, (folder / "pipe" / "control").exists()


def test_an_own_daemon_lives_as_long_as_the_block(diary: Path, tmp_path: Path) -> None:
    environment, said, ran = share(tmp_path / "mps")
    assert ran
    assert environment == {
        "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "mps" / "pipe"),
        "CUDA_MPS_LOG_DIRECTORY": str(tmp_path / "mps" / "log"),
    }
    assert said == ["the processes share the GPU through the CUDA multi-process service"]
    log = tmp_path / "mps" / "log"
    assert diary.read_text(encoding="utf-8").splitlines() == [f"start visible=all log={log}", "quit"]
    assert not (tmp_path / "mps" / "pipe" / "control").exists()


def test_it_ends_when_the_work_fails(diary: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        shared_gpu(torch.device("cuda"), tmp_path / "mps", lambda _: None),
    ):
        raise KeyboardInterrupt
    assert diary.read_text(encoding="utf-8").endswith("quit\n")


def test_a_daemon_that_runs_is_used_and_left_alone(diary: Path, tmp_path: Path) -> None:
    (tmp_path / "default" / "control").touch()
    environment, said, _ = share(tmp_path / "mps")
    assert environment == {}
    assert said == ["the processes share the GPU through the CUDA multi-process service that runs already"]
    assert diary.read_text(encoding="utf-8") == "get_server_list\n"
    assert (tmp_path / "default" / "control").exists()


def test_where_it_does_not_start_they_take_turns(diary: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    environment, said, ran = share(tmp_path / "mps")
    assert (environment, ran) == ({}, False)
    assert said == [
        "the processes share the GPU in turns: the CUDA multi-process service does not work here (no permission)"
    ]


def test_where_it_starts_but_serves_nobody_they_take_turns(
    diary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, "raise RuntimeError('CUDA error: MPS client failed to connect')")
    environment, said, _ = share(tmp_path / "mps")
    assert environment == {}
    assert "MPS client failed to connect" in said[0]
    assert diary.read_text(encoding="utf-8").endswith("quit\n")


def test_without_the_program_they_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    environment, said, _ = share(tmp_path / "mps")
    assert environment == {}
    assert said == [f"the processes share the GPU in turns: {CONTROL} is not on the PATH"]


def test_on_a_cpu_there_is_nothing_to_share(tmp_path: Path) -> None:
    said: list[str] = []
    with shared_gpu(torch.device("cpu"), tmp_path / "mps", said.append) as environment:
        assert environment == {}
    assert not said
    assert not any(tmp_path.iterdir())

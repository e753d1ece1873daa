"""Locks: one owner at a time, and none for ever."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import lcmat
from lcmat.study import locks
from lcmat.study.locks import locked

HOLD = """
import sys, time
from pathlib import Path
from lcmat.study.locks import locked
with locked(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


def hold_elsewhere(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock by now."""
    source = str(Path(lcmat.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_only_one_holds_a_lock_and_it_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "a.lock"
    with locked(path) as mine:
        assert mine
        with locked(path) as again:
            assert not again
        assert path.exists()
    assert not any(path.parent.iterdir())


def test_a_lock_is_released_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="failed"), locked(tmp_path / "a"):
        raise RuntimeError("failed")
    with locked(tmp_path / "a") as mine:
        assert mine


def test_an_interrupt_right_after_its_creation_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupt)
    with pytest.raises(KeyboardInterrupt), locked(tmp_path / "a"):
        raise AssertionError("not reached")
    assert not any(tmp_path.iterdir())


def test_a_living_process_keeps_its_lock_and_a_killed_one_loses_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    process = hold_elsewhere(path)
    try:
        with locked(path) as mine:
            assert not mine
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert path.exists()
    with locked(path) as mine:
        assert mine
    assert not any(tmp_path.iterdir())


def test_a_lock_of_another_machine_is_stale_when_nobody_touches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lock"
    path.write_text('{"machine": "elsewhere", "process": 1, "turn": 5}', encoding="utf-8")
    with locked(path) as mine:
        assert not mine
    long_ago = path.stat().st_mtime - locks.STALE_SECONDS - 10
    os.utime(path, (long_ago, long_ago))
    with locked(path) as mine:
        assert mine


@pytest.mark.parametrize("content", ["", "no json", "[]"])
def test_a_lock_that_cannot_be_read_is_kept_while_it_is_fresh(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.lock"
    path.write_text(content, encoding="utf-8")
    with locked(path) as mine:
        assert not mine


def test_a_held_lock_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.01)
    path = tmp_path / "a.lock"
    with locked(path):
        os.utime(path, (1, 1))
        deadline = time.monotonic() + 10
        while path.stat().st_mtime == 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 1


def test_who_slept_too_long_does_not_remove_the_lock_of_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with locked(path):
        path.write_text('{"machine": "elsewhere", "process": 1, "turn": 5}', encoding="utf-8")
    assert path.exists()


def test_many_at_once_take_over_a_dead_lock_only_once(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for turn in range(20):
        path.write_text(f'{{"machine": "{locks._machine()}", "process": {dead.pid}, "turn": {turn}}}', encoding="utf-8")
        holders: list[bool] = []
        together = threading.Barrier(8, timeout=30)

        def try_it(together: threading.Barrier = together, holders: list[bool] = holders) -> None:
            together.wait()
            with locked(path) as mine:
                holders.append(mine)
                together.wait()  # nobody lets go before all have tried

        threads = [threading.Thread(target=try_it) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(holders) <= 1
        path.unlink(missing_ok=True)

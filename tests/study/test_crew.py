"""Several processes at one study: every cell once, whatever is killed; nothing is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import lcmat
from lcmat import runtime
from lcmat.study import crew
from lcmat.study.cells import Cell
from lcmat.study.conduct import CellsFailedError, Failures
from lcmat.study.crew import Crew, CrewFailedError, best_number
from lcmat.study.crew_task import CELL
from lcmat.study.design import Proxy
from lcmat.study.pipeline import Machine
from lcmat.study.run_study import Asked, run_study
from lcmat.study.study_folder import StudyFolder
from lcmat.study.terms import Terms
from lcmat.study.worker import read_cells

TEXT = """\
title = "Together"
seeds = 4
[proxy]
net = "convnet:width=4,depth=2"
epochs = 1
[training]
epochs = 3
[[grid]]
data = "digits"
methods = ["uniform", "craig"]
fractions = [0.05]
nets = ["convnet:width=4,depth=2"]
"""


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a crew keeps what is its own, kept for looking at it; and told often."""
    place = tmp_path / "private"
    place.mkdir()
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda **_: nullcontext(str(place)))
    monkeypatch.setattr(crew, "TELL_SECONDS", 0.05)
    return place


def ask(folder: Path, text: str = TEXT) -> Asked:
    file = folder / "together.toml"
    file.write_text(text, encoding="utf-8")
    return Asked(file)


def begun(private: Path) -> dict[int, list[str]]:
    """The cells that each process began."""
    return {
        int(path.stem.removeprefix("errors-")): [
            line.removeprefix(CELL) for line in path.read_text().splitlines() if line.startswith(CELL)
        ]
        for path in private.glob("errors-*.txt")
    }


def names(cells: tuple[Cell, ...]) -> Counter[str]:
    return Counter(cell.name for cell in cells)


def cells_of(out: Path) -> tuple[Cell, ...]:
    study, sources = StudyFolder(out).read()
    return read_cells(study, sources)[1]


def test_two_processes_do_every_cell_once_and_begin_with_different_ones(private: Path, tmp_path: Path) -> None:
    out, told, alone = tmp_path / "out", [], tmp_path / "alone"
    terms = Terms(lambda done, total, left, words: told.append((done, total, left, words)), processes=2)
    outcome, page = run_study(ask(tmp_path), out, Machine("cpu"), terms)
    each = begun(private)
    assert sorted(each) == [1, 2]
    assert Counter(key for keys in each.values() for key in keys) == names(cells_of(out))
    assert outcome.done == outcome.total == 4 * 5
    assert told[0] == (0, 20, None, "2 processes")
    assert any("shared the machine" in note for note in outcome.notes)
    assert {record["processes"] for record in outcome.records} == {2}
    assert page.exists()
    assert not any((out / "locks").iterdir())
    single, _ = run_study(ask(tmp_path), alone, Machine("cpu"))
    assert [record["accuracy"] for record in outcome.records] == [record["accuracy"] for record in single.records]


def test_the_cells_of_a_killed_process_are_taken_up(
    private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members: list[crew._Member] = []

    class Known(crew._Member):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            members.append(self)

    monkeypatch.setattr(crew, "_Member", Known)
    killed: list[str] = []
    told: list[str] = []

    def kill_the_first(_done: int, _total: int, _left: float | None, words: str) -> None:
        told.append(words)
        if not killed and begun(private).get(1):
            members[0].process.kill()
            members[0].process.wait()
            killed.append(begun(private)[1][-1])

    out = tmp_path / "out"
    with pytest.warns(UserWarning, match=r"process 1 of 2 failed at .*: ended by SIGKILL.*; 1 of 2 go on"):
        outcome, _ = run_study(ask(tmp_path), out, Machine("cpu"), Terms(kill_the_first, processes=2))
    assert outcome.done == outcome.total
    assert set(told) <= {"2 processes", "1 process"}
    each = begun(private)
    twice = Counter(each[1] + each[2]) - names(cells_of(out))
    assert set(twice) <= set(killed)  # empty where it was killed between the end of one cell and the next
    # A lock may stay of a cell that was done when its process was killed: nobody asks for it again.
    assert {path.stem[:-13] for path in (out / "locks").glob("*.lock")} <= set(killed) - set(twice)


def test_a_cell_that_fails_is_tried_once_and_the_rest_is_on_the_page(private: Path, tmp_path: Path) -> None:
    text = TEXT.replace("seeds = 4", "seeds = 1").replace("epochs = 3", "epochs = 3\nlr = 1e30")
    with pytest.raises(CellsFailedError, match=r"2 of 5 cells failed, 3 are done:\ntrain-.*\ntrain-") as caught:
        run_study(ask(tmp_path, text), tmp_path / "out", Machine("cpu"), Terms(processes=2))
    assert "infinite" in str(caught.value) or "diverged" in str(caught.value)
    assert Counter(key for keys in begun(private).values() for key in keys) == names(cells_of(tmp_path / "out"))
    assert "3 of 5 cells are done" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_cell_that_ends_processes_does_not_end_them_all(private: Path, tmp_path: Path) -> None:
    text = TEXT.replace("seeds = 4", "seeds = 1").replace('"uniform", "craig"', '"uniform"')
    # No machine has the memory for the first network, and what is wrong with a machine ends a process.
    text = text.replace('nets = ["', 'nets = ["mlp:width=1000000000000", "')
    with (
        pytest.warns(UserWarning, match=r"process \d of 3 failed at train-digits-uniform-0.05-mlp-width=1"),
        pytest.raises(CellsFailedError, match=r"1 of 3 cells failed, 2 are done:\n.*: two processes ended at it"),
    ):
        run_study(ask(tmp_path, text), tmp_path / "out", Machine("cpu"), Terms(processes=3))
    assert "2 of 3 cells are done" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_processes_that_cannot_begin_say_why(tmp_path: Path, private: Path) -> None:
    asked, out = ask(tmp_path), tmp_path / "out"
    run_study(asked, out, Machine("cpu"), Terms(minutes=1e-9))
    cells = cells_of(out)
    (out / "study.toml").write_text("seeds = ", encoding="utf-8")
    with pytest.warns(UserWarning, match="go on"), pytest.raises(CrewFailedError) as caught:
        Crew(StudyFolder(out), Machine("cpu"), 2, float("inf")).conduct(cells, None, lambda _: None)
    lines = str(caught.value).splitlines()
    assert lines[0] == "20 of 20 cells are not done:"
    assert all("StudyFileError" in line and "is no TOML file" in line for line in lines[1:])


def test_an_interrupted_crew_stops_and_goes_on(tmp_path: Path) -> None:
    text = TEXT.replace("seeds = 4", "seeds = 10")  # enough for the interrupt to come before the end
    file, out = ask(tmp_path, text).file, tmp_path / "out"
    command = [sys.executable, "-m", "lcmat", "study", str(file), "--workers", "2", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(Path(lcmat.__file__).parents[1]), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 120
    while not list(out.glob("locks/*.lock")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; give the same command again" in errors
    assert not list(tmp_path.glob("lcmat-*"))  # a lock may stay, of a process that was too busy to end in time
    finished = {path: path.stat().st_mtime_ns for path in out.glob("cells/*.json")}
    outcome, _ = run_study(ask(tmp_path, text), out, Machine("cpu"))
    assert outcome.done == outcome.total
    assert all(path.stat().st_mtime_ns == time_of for path, time_of in finished.items())


def test_one_process_is_best_on_a_cpu_and_six_on_a_gpu_with_cores_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert best_number(torch.device("cpu")) == 1
    for cores, number in ((2, 2), (16, 6)):
        monkeypatch.setattr(runtime, "cores", lambda cores=cores: cores)
        assert best_number(torch.device("cuda")) == number


def test_what_cannot_be_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    timed = ask(tmp_path, "timed = true\n" + TEXT.replace('nets = ["convnet:width=4,depth=2"]', ""))
    for terms, words in (
        ({"processes": 0}, "at least 1 process"),
        ({"minutes": -1.0}, "minutes of 0 or more"),
        ({"processes": 2}, "the seconds of together are its results"),
    ):
        with pytest.raises(ValueError, match=words):
            run_study(timed, tmp_path / "out", Machine("cpu"), Terms(**terms))
    assert not (tmp_path / "out").exists()


def test_when_the_time_is_up_no_cell_is_begun(tmp_path: Path) -> None:
    outcome, page = run_study(ask(tmp_path), tmp_path / "out", Machine("cpu"), Terms(minutes=1e-9))
    assert (outcome.done, outcome.total) == (0, 20)
    assert "Not finished: 0 of 20 cells are done" in page.read_text(encoding="utf-8")


class Killed:
    """A process of a crew that was killed at a cell."""

    ended = True

    def __init__(self, number: int, key: str, failures: Path) -> None:
        self.name, self.process = f"process {number}", SimpleNamespace(pid=number)
        (failures / f"{number}.begun").write_text(key, encoding="utf-8")

    def cause(self) -> str:
        return f"{self.name} failed: ended by SIGKILL"

    def warned(self) -> list[str]:
        return []


def test_two_cells_of_one_name_are_two_cells_where_processes_are_killed(tmp_path: Path) -> None:
    first, second = (Cell("proxy", "digits", "", 0, proxy=Proxy(net="mlp", epochs=epochs)) for epochs in (1, 2))
    assert first.name == second.name
    for keys, failed in (((first.key, second.key), set()), ((first.key, first.key), {first.key})):
        place = tmp_path / str(len(failed))
        place.mkdir()
        failures, team = Failures(place), Crew(StudyFolder(tmp_path / "out"), Machine("cpu"), 2, float("inf"))
        members: Any = [Killed(number, key, place) for number, key in enumerate(keys)]
        with pytest.warns(UserWarning, match="ended by SIGKILL"):
            team._watch(members, (first, second), None, failures)
        assert set(failures.known()) == failed


def test_a_process_says_what_it_is_at(tmp_path: Path) -> None:
    failures = Failures(tmp_path)
    assert failures.begun_by(os.getpid()) == ""
    for key in ("a", "b"):
        failures.begin(key)
        assert Failures(tmp_path).begun_by(os.getpid()) == key
    assert failures.known() == {}

"""The loop of a study: every cell once, whatever is killed and however many take part."""

import math
import threading
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from lcmat.study import conduct as conducting
from lcmat.study import locks
from lcmat.study.cells import Cell
from lcmat.study.conduct import CellsFailedError, Failures, conduct
from lcmat.study.design import Proxy
from lcmat.study.method import read_method
from lcmat.study.pipeline import Machine
from lcmat.study.study_folder import StudyFolder
from lcmat.study.terms import Terms


def make_cells(seeds: int = 3) -> list[Cell]:
    """A proxy, two choices and two trainings for each seed."""
    cells: list[Cell] = []
    for seed in range(seeds):
        proxy = Cell("proxy", "digits", "", seed, proxy=Proxy(net="mlp"))
        cells.append(proxy)
        for name in ("craig", "herding"):
            chosen = Cell("choose", "digits", "", seed, method=read_method(name), amounts=(0.1,), needs=(proxy.key,))
            training = Cell("train", "digits", "", seed, method=chosen.method, amounts=(0.1,), needs=(chosen.key,))
            cells += [chosen, training]
    return cells


class Counting:
    """A worker that only counts, and is killed or fails at one cell."""

    def __init__(self, *, killed_at: int | None = None, fails: str = "", folder: StudyFolder | None = None) -> None:
        self.done: Counter[str] = Counter()
        self.killed_at, self.fails, self.folder = killed_at, fails, folder
        self.guard = threading.Lock()

    def do(self, cell: Cell) -> dict[str, Any]:
        with self.guard:
            if self.killed_at == self.done.total():
                raise KeyboardInterrupt
            self.done[cell.key] += 1
        if self.fails and cell.key.startswith(self.fails):
            raise ValueError("diverged")
        if self.folder is not None:
            self.folder.work(cell.key).mkdir(parents=True)
            assert all(self.folder.done(key) for key in cell.needs)
        return {"cell": cell.key}


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    return StudyFolder(tmp_path)


@pytest.mark.parametrize("killed_at", range(0, 15, 3))
def test_a_study_killed_anywhere_goes_on_without_repeating(folder: StudyFolder, killed_at: int) -> None:
    cells, first, second = make_cells(), Counting(killed_at=killed_at), Counting()
    with pytest.raises(KeyboardInterrupt):
        conduct(cells, folder, first)
    conduct(cells, folder, second)
    assert first.done + second.done == Counter({cell.key: 1 for cell in cells})


def test_several_share_a_folder_and_do_no_cell_twice(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conducting, "SHORTEST_WAIT", 0.001)
    cells, worker = make_cells(seeds=6), Counting(folder=folder)
    threads = [threading.Thread(target=conduct, args=(cells, folder, worker)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worker.done == Counter({cell.key: 1 for cell in cells})


def test_a_cell_that_fails_stops_only_what_needs_it(folder: StudyFolder) -> None:
    cells = make_cells(seeds=2)
    worker = Counting(fails="choose-digits-craig-0.1-seed-1")
    with pytest.raises(CellsFailedError, match=r"1 of 10 cells failed, .*\nchoose-digits-craig.*: diverged"):
        conduct(cells, folder, worker)
    left = [cell.key for cell in cells if not folder.done(cell.key)]
    assert [key.split("-")[0] for key in left] == ["choose", "train"]


def test_a_cell_that_ends_two_processes_is_left_alone_by_the_third(folder: StudyFolder, tmp_path: Path) -> None:
    class Broken(Counting):
        def do(self, cell: Cell) -> dict[str, Any]:
            found = super().do(cell)
            if cell.key.startswith("choose-digits-craig-0.1-seed-1"):
                raise RuntimeError("out of memory")
            return found

    cells, notes = make_cells(seeds=2), tmp_path / "notes"
    for _ in range(2):
        with pytest.raises(RuntimeError, match="out of memory"):
            conduct(cells, folder, Broken(), failures=Failures(notes))
    with pytest.raises(
        CellsFailedError, match=r"1 of 10 cells failed, 8 are done:\n.*two processes ended at it: out of"
    ):
        conduct(cells, folder, Broken(), failures=Failures(notes))
    with pytest.raises(RuntimeError, match="out of memory"):  # another command tries again
        conduct(cells, folder, Broken())


def test_what_others_finished_in_the_meantime_is_not_locked(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, taken = make_cells(seeds=1), []

    def locked(path: Path) -> AbstractContextManager[bool]:
        taken.append(path.stem)
        return locks.locked(path)

    monkeypatch.setattr(conducting, "locked", locked)

    class Beside(Counting):
        def do(self, cell: Cell) -> dict[str, Any]:
            folder.finish(cells[1].key, {"cell": "of another process"})
            return super().do(cell)

    conduct(cells, folder, Beside())
    assert taken == [cell.key for cell in (cells[0], *cells[2:])]


def test_checkpoints_go_when_nobody_needs_them(folder: StudyFolder) -> None:
    conduct(make_cells(), folder, Counting(folder=folder))
    kept = {path.name.split("-")[0] for path in (folder.path / "work").iterdir()}
    assert kept == {"train"}  # which the counting worker made and a real one does not


def test_it_tells_how_far_it_is_and_how_long_it_will_take(folder: StudyFolder) -> None:
    told: list[tuple[int, int, float | None]] = []
    conduct(make_cells(), folder, Counting(), lambda done, total, left, _: told.append((done, total, left)))
    assert [(done, total) for done, total, _ in told] == [(done, 15) for done in range(15)]
    assert told[0][2] is None
    assert told[-1][2] is not None
    assert told[-1][2] >= 0


def test_a_removed_proxy_is_trained_once_more_where_a_study_has_grown(folder: StudyFolder) -> None:
    cells = make_cells(2)
    Terms().carry_out(cells, folder, Counting(folder=folder), Machine("cpu"), math.inf)
    proxy = cells[0]
    assert not folder.work(proxy.key).exists()
    more = Cell("choose", "digits", "", 0, method=read_method("grand"), amounts=(0.1,), needs=(proxy.key,))
    Terms().carry_out([*cells, more], folder, Counting(folder=folder), Machine("cpu"), 0.0)
    assert folder.done(proxy.key)  # for the page alone nothing is taken back
    folder.prepare([*cells, more])
    assert not folder.done(proxy.key)
    assert folder.result(proxy.key)["cell"] == proxy.key  # whose seconds count for what was chosen with it
    again = Counting(folder=folder)
    Terms().carry_out([*cells, more], folder, again, Machine("cpu"), math.inf)
    assert again.done == Counter([proxy.key, more.key])
    assert not folder.work(proxy.key).exists()

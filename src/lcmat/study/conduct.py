"""The loop of a study: every process takes the next cell that is ready and that nobody else is at."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lcmat.study.cells import Cell
from lcmat.study.locks import locked
from lcmat.study.study_folder import StudyFolder
from lcmat.study.worker import Worker

WAIT_SECONDS = 2.0

# (cells done, cells in all, seconds left or None where nothing is known yet, the cell at hand)
Tell: TypeAlias = Callable[[int, int, float | None, Cell], None]


class CellsFailedError(RuntimeError):
    """Some cells of a study failed; all others are done."""


def conduct(cells: Sequence[Cell], folder: StudyFolder, worker: Worker, tell: Tell | None = None) -> None:
    """Do all cells that are not done yet, beside other processes that do the same.

    A cell that fails does not keep the others from being done.

    Args:
        cells: in an order in which each comes after those that it needs.
        folder: that all processes share.
        worker: does a cell.
        tell: told before each cell.

    Raises:
        CellsFailedError: in the end, naming the cells that failed and why.
    """
    failed: dict[str, str] = {}
    pace = _Pace()
    while True:
        left = [cell for cell in cells if not folder.done(cell.key)]
        blocked = _blocked(left, failed)
        todo = [cell for cell in left if cell.key not in blocked]
        if not todo:
            break
        if not _sweep(todo, cells, folder, worker, failed, pace, tell):
            time.sleep(WAIT_SECONDS)  # others are at what is left, or at what it needs
    if failed:
        named = "\n".join(f"{key}: {reason}" for key, reason in failed.items())
        raise CellsFailedError(f"{len(failed)} of {len(cells)} cells failed, all others are done:\n{named}")


def _sweep(
    todo: Sequence[Cell],
    cells: Sequence[Cell],
    folder: StudyFolder,
    worker: Worker,
    failed: dict[str, str],
    pace: "_Pace",
    tell: Tell | None,
) -> bool:
    """Once through what is to do; whether anything could be done."""
    worked = False
    for cell in todo:
        if not all(folder.done(key) for key in cell.needs):
            continue
        with locked(folder.lock(cell.key)) as mine:
            if not mine or folder.done(cell.key):
                continue
            worked = True
            if tell:
                left = [other for other in todo if other.key not in failed and not folder.done(other.key)]
                done = sum(folder.done(other.key) for other in cells)
                tell(done, len(cells), pace.seconds_left(left), cell)
            start = time.perf_counter()
            try:
                result = worker.do(cell)
            except ValueError as error:  # such as a training that diverged; what is wrong with the machine goes up
                failed[cell.key] = str(error)
                continue
            folder.finish(cell, result)
            pace.note(cell, time.perf_counter() - start)
        _drop_unneeded(cell, cells, folder)
    return worked


def _drop_unneeded(cell: Cell, cells: Sequence[Cell], folder: StudyFolder) -> None:
    """Remove the checkpoints behind a finished choice: its own, and its proxy's when no other will look with it."""
    if cell.stage != "choose":
        return
    folder.drop_work(cell.key)
    for key in cell.needs:
        if all(folder.done(other.key) for other in cells if key in other.needs):
            folder.drop_work(key)


def _blocked(left: Sequence[Cell], failed: dict[str, str]) -> set[str]:
    """What failed, and what needs something that failed."""
    blocked = set(failed)
    for cell in left:
        if blocked & set(cell.needs):
            blocked.add(cell.key)
    return blocked


@dataclass
class _Pace:
    """How long the cells of each stage took, against their effort."""

    seconds: dict[str, float] = field(default_factory=dict)
    efforts: dict[str, float] = field(default_factory=dict)

    def note(self, cell: Cell, seconds: float) -> None:
        self.seconds[cell.stage] = self.seconds.get(cell.stage, 0.0) + seconds
        self.efforts[cell.stage] = self.efforts.get(cell.stage, 0.0) + cell.effort

    def seconds_left(self, cells: Sequence[Cell]) -> float | None:
        """The estimate for these cells; None until one of each of their stages was done."""
        if {cell.stage for cell in cells} - set(self.efforts):
            return None
        return sum(cell.effort * self.seconds[cell.stage] / self.efforts[cell.stage] for cell in cells)

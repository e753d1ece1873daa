"""The loop of a study or a comparison: every process takes the next cell that is ready and that nobody else is at."""

import math
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeAlias

from lcmat import files
from lcmat.study.locks import locked
from lcmat.study.piecework import Doer, Piece, PieceFolder, PieceT

SHORTEST_WAIT, LONGEST_WAIT = 0.05, 2.0  # seconds between two looks at what others are at

# (cells done, cells in all, seconds left or None where nothing is known yet, what is at hand)
Tell: TypeAlias = Callable[[int, int, float | None, str], None]


class CellsFailedError(RuntimeError):
    """Some cells of a study failed."""


class Failures:
    """The cells that failed, and why; shared by the processes of one command where there is a folder for it.

    They are forgotten when the command ends, so that the next one tries again.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._own: dict[str, str] = {}

    def note(self, key: str, reason: str) -> None:
        """Say that a cell failed."""
        self._own[key] = reason
        if self._folder is not None:
            files.write_json(self._folder / f"{key}.json", {"cell": key, "reason": reason})

    def begin(self, key: str) -> None:
        """Say what this process is at, for whoever sees it killed."""
        if self._folder is not None:
            files.write_text(self._begun(os.getpid()), key)

    def begun_by(self, process: int) -> str:
        """The key of the cell that a process began last; empty before the first."""
        path = self._begun(process)
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def ended(self, key: str, reason: str) -> None:
        """Say that a cell ends this process; the second one that it ends makes it a cell that failed."""
        if self._folder is None:
            return
        first = self._folder / f"{key}.once"
        if first.exists():
            self.note(key, f"two processes ended at it: {reason}")
        else:
            files.write_text(first, reason)

    def _begun(self, process: int) -> Path:
        assert self._folder is not None  # who watches shares it with those that are watched
        return self._folder / f"{process}.begun"

    def known(self) -> dict[str, str]:
        """All cells that failed, with the reasons."""
        if self._folder is not None:
            for path in sorted(self._folder.glob("*.json")):
                if path.stem not in self._own:
                    self._own[path.stem] = files.read_json(path)["reason"]
        return dict(self._own)

    def check(self, cells: Sequence[Piece], folder: PieceFolder) -> None:
        """Raise CellsFailedError, naming every cell and reason, where there are any."""
        if failed := self.known():
            named = "\n".join(f"{key}: {reason}" for key, reason in failed.items())
            done = sum(folder.done(cell.key) for cell in cells)
            raise CellsFailedError(f"{len(failed)} of {len(cells)} cells failed, {done} are done:\n{named}")


def conduct(
    cells: Sequence[PieceT],
    folder: PieceFolder,
    worker: Doer[PieceT],
    tell: Tell | None = None,
    *,
    until: float = math.inf,
    failures: Failures | None = None,
) -> None:
    """Do all cells that are not done yet, beside other processes that do the same.

    A cell that fails does not keep the others from being done.

    Args:
        cells: in an order in which each comes after those that it needs.
        folder: that all processes share.
        worker: does a cell.
        tell: told before each cell.
        until: when no further cell is begun, by `time.monotonic`.
        failures: where cells that failed are noted; with one that processes share, none of them tries again.

    Raises:
        CellsFailedError: in the end, naming the cells that failed and why.
    """
    failures = Failures() if failures is None else failures
    sweep = _Sweep(cells, folder, worker, tell, until, failures)
    wait = SHORTEST_WAIT
    while time.monotonic() < until:
        left = [cell for cell in cells if not sweep.done(cell.key)]
        blocked = _blocked(left, failures.known())
        todo = [cell for cell in left if cell.key not in blocked]
        if not todo:
            break
        if sweep.once(todo):
            wait = SHORTEST_WAIT
        else:
            time.sleep(wait)  # others are at what is left, or at what it needs
            wait = min(2 * wait, LONGEST_WAIT)
    failures.check(cells, folder)


@dataclass
class Pace:
    """How long the cells of each stage took, against their effort."""

    seconds: dict[str, float] = field(default_factory=dict)
    efforts: dict[str, float] = field(default_factory=dict)

    def note(self, cell: Piece, seconds: float) -> None:
        """Learn from a cell that was done."""
        self.seconds[cell.stage] = self.seconds.get(cell.stage, 0.0) + seconds
        self.efforts[cell.stage] = self.efforts.get(cell.stage, 0.0) + cell.effort

    def seconds_left(self, cells: Sequence[Piece]) -> float | None:
        """The estimate for these cells; None until one of each of their stages was done."""
        if {cell.stage for cell in cells} - set(self.efforts):
            return None
        return sum(cell.effort * self.seconds[cell.stage] / self.efforts[cell.stage] for cell in cells)


@dataclass
class _Sweep(Generic[PieceT]):
    """Goes through cells, and does those that are ready and nobody's."""

    cells: Sequence[PieceT]
    folder: PieceFolder
    worker: Doer[PieceT]
    tell: Tell | None
    until: float
    failures: Failures
    pace: Pace = field(default_factory=Pace)
    finished: set[str] = field(default_factory=set)

    def done(self, key: str) -> bool:
        """Whether a cell is finished; asked of the folder until it is, as looking at many files takes time."""
        if key not in self.finished and self.folder.done(key):
            self.finished.add(key)
        return key in self.finished

    def once(self, todo: Sequence[PieceT]) -> bool:
        """Once through what is to do; whether anything could be done."""
        worked = False
        for cell in todo:
            if time.monotonic() >= self.until:
                break
            if self.done(cell.key) or not all(self.done(key) for key in cell.needs):
                continue
            with locked(self.folder.lock(cell.key)) as mine:
                # Another process may have finished it since, or failed at it.
                if not mine or self.done(cell.key) or cell.key in self.failures.known():
                    continue
                worked = True
                self._say(cell, todo)
                self.failures.begin(cell.key)
                start = time.perf_counter()
                try:
                    result = self.worker.do(cell)
                except ValueError as error:  # such as a training that diverged; what is wrong with the machine goes up
                    self.failures.note(cell.key, str(error))
                    continue
                except (RuntimeError, MemoryError, OSError) as error:
                    self.failures.ended(cell.key, str(error))
                    raise
                seconds = time.perf_counter() - start
                self.folder.finish(cell.key, {**result, "took": seconds})
                self.pace.note(cell, seconds)
            self.folder.tidy(cell, self.cells)
        return worked

    def _say(self, cell: PieceT, todo: Sequence[PieceT]) -> None:
        if self.tell:
            failed = self.failures.known()
            left = [other for other in todo if other.key not in failed and not self.done(other.key)]
            done = sum(self.done(other.key) for other in self.cells)
            self.tell(done, len(self.cells), self.pace.seconds_left(left), cell.name)


def _blocked(left: Sequence[Piece], failed: Collection[str]) -> set[str]:
    """What failed, and what needs something that failed."""
    blocked = set(failed)
    for cell in left:
        if blocked & set(cell.needs):
            blocked.add(cell.key)
    return blocked

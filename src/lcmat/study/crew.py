"""Several processes at one study or comparison: started, watched, and stopped by the one that the user called.

They share nothing but its folder, as processes on several machines do. Each is a new interpreter, never a
fork: a fork cannot use a GPU that its parent has used.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from lcmat import runtime
from lcmat.study.conduct import Failures, Pace, Tell
from lcmat.study.crew_task import CELL, INTERRUPTED, WARNING, Task
from lcmat.study.gpu_sharing import shared_gpu
from lcmat.study.piecework import Piece, PieceFolder
from lcmat.study.pipeline import Machine

MOST_ON_A_GPU = 6  # more gain nothing: measured with small trainings on an H200
LOOK_SECONDS, TELL_SECONDS, GRACE_SECONDS = 0.1, 2.0, 10.0


class CrewFailedError(RuntimeError):
    """Processes of a crew failed, and cells are left."""


def best_number(device: torch.device) -> int:
    """How many processes get most done: one on a CPU, whose cores one keeps busy; several on a GPU, as cores allow."""
    return 1 if device.type == "cpu" else min(MOST_ON_A_GPU, runtime.cores())


@dataclass(frozen=True)
class Crew:
    """Processes that do the cells of a study together.

    Attributes:
        folder: of the study.
        machine: what all of them have together.
        processes: how many.
        until: when no further cell is begun, by `time.monotonic`.
    """

    folder: PieceFolder
    machine: Machine
    processes: int
    until: float

    def conduct(self, cells: Sequence[Piece], tell: Tell | None, say: Callable[[str], None]) -> None:
        """Do all cells that are not done yet; a process that fails leaves its cell to the others.

        A cell at which two processes ended counts as failed, so that it does not end them all.

        Args:
            cells: of the study.
            tell: told now and then how far it is.
            say: told what else there is to know.

        Raises:
            CellsFailedError: naming the cells that failed and why.
            CrewFailedError: naming the causes, when processes failed and cells are left.
        """
        device = runtime.pick_device(self.machine.device)
        with (
            _terminated_like_interrupted(),
            tempfile.TemporaryDirectory(prefix="lcmat-", ignore_cleanup_errors=True) as private,
        ):
            place = Path(private)
            failures = Failures(place / "failures")
            with shared_gpu(device, place / "mps", say) as environment:
                task = self._task(device, place / "failures").save(place / "task.json")
                with _started(task, place, self.processes, environment) as members:
                    causes = self._watch(members, cells, tell, failures)
            failures.check(cells, self.folder)
        left = sum(not self.folder.done(cell.key) for cell in cells)
        if causes and left and time.monotonic() < self.until:
            raise CrewFailedError(f"{left} of {len(cells)} cells are not done:\n" + "\n".join(causes))

    def _task(self, device: torch.device, failures: Path) -> Task:
        return Task(
            study=str(self.folder.path),
            failures=str(failures),
            device=str(device),
            memory=self.machine.memory,
            threads=max(1, torch.get_num_threads() // self.processes),
            processes=self.processes,
            until=None if self.until == float("inf") else self.until,
        )

    def _watch(
        self, members: Sequence["_Member"], cells: Sequence[Piece], tell: Tell | None, failures: Failures
    ) -> list[str]:
        """Wait for all of them; why some failed."""
        causes: list[str] = []
        failed_at: set[str] = set()
        told: set[str] = set()
        running, pace, next_tell = list(members), _FolderPace(self.folder, cells), 0.0
        while running:
            for member in [one for one in running if one.ended]:
                running.remove(member)
                if cause := member.cause():
                    causes.append(cause)
                    key = failures.begun_by(member.process.pid)  # names of cells may be the same
                    if key in failed_at and not self.folder.done(key):
                        failures.note(key, f"two processes ended at it: {cause}")
                    failed_at |= {key} - {""}
                    warnings.warn(f"{cause}; {len(running)} of {self.processes} go on", stacklevel=2)
                for text in dict.fromkeys(member.warned()):
                    if text not in told:
                        told.add(text)
                        warnings.warn(text, stacklevel=2)
            if tell and running and time.monotonic() >= next_tell:
                next_tell = time.monotonic() + TELL_SECONDS
                tell(*pace.look(len(running)), f"{len(running)} {'process' if len(running) == 1 else 'processes'}")
            time.sleep(LOOK_SECONDS)
        return causes


class _Member:
    """One process of a crew."""

    def __init__(self, number: int, of: int, task: Path, place: Path, environment: dict[str, str]) -> None:
        self.name = f"process {number} of {of}"
        self._errors = place / f"errors-{number}.txt"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "lcmat.study.crew_member", str(task)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
                start_new_session=True,  # Ctrl-C reaches this process alone, which then stops them all in order
            )

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def cause(self) -> str:
        """Why it failed; empty where it did not."""
        status = self.process.poll()
        if not status:
            return ""
        place = f" at {self.at_hand}" if self.at_hand else ""
        return f"{self.name} failed{place}: {_cause(self._lines(), status)}"

    @property
    def at_hand(self) -> str:
        """The name of the cell that it began last; empty before the first."""
        begun = [line.removeprefix(CELL) for line in self._lines() if line.startswith(CELL)]
        return begun[-1] if begun else ""

    def warned(self) -> Iterator[str]:
        """The warnings that it gave."""
        return (line.removeprefix(WARNING) for line in self._lines() if line.startswith(WARNING))

    def let_go(self) -> None:
        """Break the line that keeps it at work."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _lines(self) -> list[str]:
        return self._errors.read_text(encoding="utf-8", errors="replace").splitlines()


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """A polite kill ends the block as Ctrl-C does, so that no process and no daemon is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _started(task: Path, place: Path, number: int, environment: dict[str, str]) -> Iterator[list[_Member]]:
    """The processes, which all have ended after the block, however it ends."""
    threads = str(max(1, torch.get_num_threads() // number))
    environment = {"OMP_NUM_THREADS": threads, **environment}
    members: list[_Member] = []
    try:
        for which in range(1, number + 1):
            members.append(_Member(which, number, task, place, environment))
        yield members
    finally:
        _stop(members)


def _stop(members: Sequence[_Member]) -> None:
    """Let all of them go, and kill those that do not end: a study can be killed at any point."""
    with ExitStack() as last:
        for member in members:
            last.callback(member.process.wait)
            last.callback(member.process.kill)  # does nothing to one that has ended
        for member in members:
            member.let_go()
        end = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < end and not all(member.ended for member in members):
            time.sleep(LOOK_SECONDS)


class _FolderPace:
    """How far a study is and how long it may still take, read from its folder: what others did counts too."""

    def __init__(self, folder: PieceFolder, cells: Sequence[Piece]) -> None:
        self._folder, self._cells = folder, cells
        self._left = list(cells)
        self._pace = Pace()

    def look(self, processes: int) -> tuple[int, int, float | None]:
        """Cells done, cells in all, and seconds left."""
        left = []
        for cell in self._left:
            if not self._folder.done(cell.key):
                left.append(cell)
            elif (took := self._folder.result(cell.key).get("took")) is not None:
                self._pace.note(cell, float(took))
        self._left = left
        seconds = self._pace.seconds_left(left)
        return len(self._cells) - len(left), len(self._cells), None if seconds is None else seconds / processes


def _cause(lines: Sequence[str], status: int) -> str:
    """In one line: the signal, or the last error of the last traceback."""
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        hint = ", which the system sends when memory runs out" if name == "SIGKILL" else ""
        return f"ended by {name}{hint}"
    if status == INTERRUPTED:
        return "interrupted"
    starts = [place for place, line in enumerate(lines) if line.startswith("Traceback ")]
    errors = [line for line in lines[starts[-1] + 1 :] if re.match(r"[\w.]+", line)] if starts else []
    return (errors or [line for line in lines if line.strip()][-1:] or [f"exit status {status}"])[0]

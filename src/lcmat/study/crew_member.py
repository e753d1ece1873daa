"""One process of a crew: `python -m lcmat.study.crew_member TASK.json`, started by `lcmat.study.crew`.

Its standard input is a line to the process that started it: where that one ends, however it ends, the line breaks and
the work stops as after Ctrl-C. On standard error stands what it begins, warnings, and what goes wrong.
"""

import _thread
import os
import signal
import sys
import threading
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from lcmat import files, runtime
from lcmat.study.conduct import CellsFailedError, Failures, conduct
from lcmat.study.pipeline import Machine
from lcmat.study.study_folder import StudyFolder
from lcmat.study.worker import Worker, read_cells

INTERRUPTED = 130
WARNING, CELL = "warning: ", "cell: "  # begin the lines on standard error that the crew reads


@dataclass(frozen=True)
class Task:
    """What every process of a crew is told.

    Attributes:
        study: folder of the study.
        failures: folder where cells that failed are noted.
        device: to work on.
        memory: for selections, of all processes together; a share of what is free when None.
        threads: of torch.
        processes: that share the work.
        until: when no further cell is begun, by `time.monotonic`, which all processes share; None for no limit.
    """

    study: str
    failures: str
    device: str
    memory: str | None
    threads: int
    processes: int
    until: float | None

    def save(self, path: Path) -> Path:
        """Write it where the processes will read it."""
        return files.write_json(path, asdict(self))


def main(arguments: list[str]) -> int:
    """Do cells until none is left; the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    warnings.showwarning = lambda message, *_: _write(f"{WARNING}{message}")
    try:
        _work(Task(**files.read_json(arguments[0])))
    except CellsFailedError:  # noted in the folder of failures, where the crew reads them
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _work(task: Task) -> None:
    torch.set_num_threads(task.threads)
    folder = StudyFolder(Path(task.study))
    study, sources = folder.read()
    splits, cells = read_cells(study, sources)
    # Asked here, as it takes a hold on the GPU, which the process that only watches does without.
    memory = runtime.memory_budget(task.memory, runtime.pick_device(task.device)) // task.processes
    worker = Worker(study, folder, splits, Machine(task.device, str(max(1, memory))), task.processes)
    until = float("inf") if task.until is None else task.until
    conduct(
        cells,
        folder,
        worker,
        lambda *told: _write(f"{CELL}{told[-1]}"),
        until=until,
        failures=Failures(Path(task.failures)),
    )


def _stop_with_parent() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock would be held when this process ends
        pass
    _thread.interrupt_main()


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

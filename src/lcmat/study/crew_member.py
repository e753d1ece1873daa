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
from pathlib import Path

import torch

from lcmat import files, runtime
from lcmat.study.conduct import CellsFailedError, Failures, conduct
from lcmat.study.crew_task import CELL, INTERRUPTED, WARNING, Task
from lcmat.study.opening import open_work
from lcmat.study.pipeline import Machine


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
    # Asked here, as it takes a hold on the GPU, which the process that only watches does without.
    memory = runtime.memory_budget(task.memory, runtime.pick_device(task.device)) // task.processes
    folder, pieces, worker = open_work(Path(task.study), Machine(task.device), task.processes)
    with runtime.memory_share(max(1, memory)):
        conduct(
            pieces,
            folder,
            worker,
            lambda *told: _write(f"{CELL}{told[-1]}"),
            until=float("inf") if task.until is None else task.until,
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

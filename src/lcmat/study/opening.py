"""The work in a folder, whatever kind of folder it is, for a process that is told no more than where it lies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lcmat import runtime
from lcmat.study.piecework import Doer, PieceFolder
from lcmat.study.pipeline import Machine
from lcmat.study.study_folder import StudyFolder
from lcmat.study.trial import TrialWorker, is_trial, open_trial
from lcmat.study.worker import Worker, read_cells


def open_work(path: Path, machine: Machine, processes: int) -> tuple[PieceFolder, Sequence[Any], Doer[Any]]:
    """The folder, its pieces in order, and who does them.

    Args:
        path: of a study or a comparison that was begun.
        machine: to work on.
        processes: that share it.
    """
    if is_trial(path):
        _, work = open_trial(path, runtime.pick_device(machine.device))
        return PieceFolder(path), work.pieces(), TrialWorker(work, processes)
    folder = StudyFolder(path)
    study, sources = folder.read()
    splits, cells = read_cells(study, sources)
    return folder, cells, Worker(study, folder, splits, machine, processes)

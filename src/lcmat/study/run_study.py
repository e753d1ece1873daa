"""A study from its file to its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcmat import files
from lcmat.data.loading import absolute
from lcmat.evaluation.gallery import PAGE_BYTES
from lcmat.report import Page, render
from lcmat.study.cells import Cell
from lcmat.study.commands import study_command
from lcmat.study.conduct import CellsFailedError
from lcmat.study.config import read_study
from lcmat.study.crew import CrewFailedError
from lcmat.study.design import Study
from lcmat.study.markdown import as_markdown
from lcmat.study.outcome import Outcome, collect
from lcmat.study.pipeline import Machine
from lcmat.study.study_folder import StudyFolder
from lcmat.study.study_page import describe_study
from lcmat.study.terms import Terms
from lcmat.study.worker import Worker, read_cells
from lcmat.types import Splits


@dataclass(frozen=True)
class Asked:
    """What a user asked for.

    Attributes:
        file: of the study.
        quick: whether its small form.
        sources: name of a data set -> what to load in its place.
    """

    file: Path
    quick: bool = False
    sources: Mapping[str, str] | None = None

    def read(self) -> Study:
        """The study."""
        return read_study(self.file, quick=self.quick)


def run_study(asked: Asked, path: Path, machine: Machine, terms: Terms | None = None) -> tuple[Outcome, Path]:
    """Do what is not done yet, beside other processes at the same folder, and write results and page.

    Where cells failed or the time ran out, results and page hold what is there.

    Returns:
        The results, and the path of the page.

    Raises:
        ValueError: for a file with mistakes, a folder that holds something else, or data that cannot be read.
        CellsFailedError: when some cells failed; all others are done then.
        CrewFailedError: when processes failed, and the others could not do all that was left.
    """
    terms = terms or Terms()
    until = terms.until()
    study = asked.read()
    check_terms(study, terms)
    given = asked.sources or {}
    kept = {name: absolute(source) for name, source in given.items()}
    folder = StudyFolder.begin(path, study, asked.file, quick=asked.quick, sources=kept)
    splits, cells = read_cells(study, given)
    _check_tests(folder, splits, cells)
    try:
        terms.carry_out(cells, folder, Worker(study, folder, splits, machine), machine, until)
    except (CellsFailedError, CrewFailedError):
        _write(collect(study, folder, splits, cells), path)
        raise
    outcome = collect(study, folder, splits, cells)
    return outcome, _write(outcome, path)


def check_terms(study: Study, terms: Terms) -> None:
    """Refuse what cannot be, before anything is done."""
    if study.timed and terms.processes > 1:
        raise ValueError(
            f"the seconds of {study.name} are its results, and processes that share a machine slow each other "
            f"down; expected 1 process, got {terms.processes}"
        )


def _check_tests(folder: StudyFolder, splits: Mapping[str, Splits], cells: Sequence[Cell]) -> None:
    """Refuse other test samples than those that trainings were judged by: the key of a cell tells the training ones."""
    first = {cell.data: cell for cell in reversed(cells) if cell.stage == "train" and folder.done(cell.key)}
    for data, cell in first.items():
        if folder.result(cell.key)["record"]["test"] != splits[data].test.fingerprint:
            raise ValueError(
                f"the trainings on {data} in {folder.path} were judged by other test samples; give the same data as "
                "before, or another folder with --out"
            )


def describe_again(path: Path, page_bytes: int = PAGE_BYTES) -> Page:
    """The page of the study in a folder, of what is done of it."""
    folder = StudyFolder(path)
    study, sources = folder.read()
    splits, cells = read_cells(study, sources)
    _check_tests(folder, splits, cells)
    return describe_study(collect(study, folder, splits, cells), page_bytes, study_command(path))


def _write(outcome: Outcome, path: Path) -> Path:
    outcome.save(path)
    files.write_text(path / "results.md", as_markdown(outcome))
    return files.write_text(path / "report.html", render(describe_study(outcome, command=study_command(path))))

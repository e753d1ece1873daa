"""A study from its file to its page."""

import math
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lcmat import files
from lcmat.data.loading import absolute
from lcmat.evaluation.gallery import PAGE_BYTES
from lcmat.report import Page, render
from lcmat.study.commands import study_command
from lcmat.study.conduct import CellsFailedError, Tell, conduct
from lcmat.study.config import read_study
from lcmat.study.crew import Crew, CrewFailedError
from lcmat.study.design import Study
from lcmat.study.markdown import as_markdown
from lcmat.study.outcome import Outcome, collect
from lcmat.study.pipeline import Machine
from lcmat.study.study_folder import StudyFolder
from lcmat.study.study_page import describe_study
from lcmat.study.worker import Worker, read_cells


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


@dataclass(frozen=True)
class Terms:
    """How a study is done; nothing here decides a result.

    Attributes:
        tell: told how far it is.
        say: told what else there is to know.
        processes: that share the work.
        minutes: after which no further cell is begun, 0 to write the page of what is done; None for no limit.
    """

    tell: Tell | None = None
    say: Callable[[str], None] = lambda _: None
    processes: int = 1
    minutes: float | None = None

    def check(self, study: Study) -> None:
        """Refuse what cannot be, before anything is done."""
        if self.processes < 1:
            raise ValueError(f"expected at least 1 process, got {self.processes}")
        if self.minutes is not None and not self.minutes >= 0:
            raise ValueError(f"expected minutes of 0 or more, got {self.minutes}")
        if study.timed and self.processes > 1:
            raise ValueError(
                f"the seconds of {study.name} are its results, and processes that share a machine slow each other "
                f"down; expected 1 process, got {self.processes}"
            )


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
    until = math.inf if terms.minutes is None else time.monotonic() + 60 * terms.minutes
    study = asked.read()
    terms.check(study)
    folder = StudyFolder.begin(path, study)
    _keep_file(asked, study, folder)
    splits, cells = read_cells(study, asked.sources or {})
    processes = min(terms.processes, sum(not folder.done(cell.key) for cell in cells))
    try:
        if processes > 1:
            Crew(folder, machine, processes, until).conduct(cells, terms.tell, terms.say)
        else:
            conduct(cells, folder, Worker(study, folder, splits, machine), terms.tell, until=until)
    except (CellsFailedError, CrewFailedError):
        _write(collect(study, folder, splits, cells), path)
        raise
    outcome = collect(study, folder, splits, cells)
    return outcome, _write(outcome, path)


def describe_again(path: Path, page_bytes: int = PAGE_BYTES) -> Page:
    """The page of the study in a folder, of what is done of it."""
    folder = StudyFolder(path)
    study, sources = folder.read()
    splits, cells = read_cells(study, sources)
    return describe_study(collect(study, folder, splits, cells), page_bytes, study_command(path))


def _write(outcome: Outcome, path: Path) -> Path:
    outcome.save(path)
    files.write_text(path / "results.md", as_markdown(outcome))
    return files.write_text(path / "report.html", render(describe_study(outcome, command=study_command(path))))


def _keep_file(asked: Asked, study: Study, folder: StudyFolder) -> None:
    """A copy of what the study was made from, so that its page can be made anew wherever the folder is."""
    if asked.file.resolve() != (folder.path / "study.toml").resolve():
        files.write_bytes(folder.path / "study.toml", asked.file.read_bytes())
    if study.paper and not (folder.path / "paper" / study.paper.name).exists():
        (folder.path / "paper").mkdir(exist_ok=True)
        shutil.copyfile(study.paper, folder.path / "paper" / study.paper.name)
    meta = files.read_json(folder.path / "study.json")
    sources = {name: absolute(source) for name, source in (asked.sources or {}).items()}
    files.write_json(folder.path / "study.json", {**meta, "quick": asked.quick, "sources": sources})

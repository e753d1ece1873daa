"""A study from its file to its page."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lcmat import files
from lcmat.data.loading import absolute
from lcmat.evaluation.gallery import PAGE_BYTES
from lcmat.report import Page, render
from lcmat.study.cells import make_cells
from lcmat.study.conduct import Tell, conduct
from lcmat.study.config import read_study
from lcmat.study.design import Study
from lcmat.study.markdown import as_markdown
from lcmat.study.outcome import Outcome, collect
from lcmat.study.pipeline import Machine
from lcmat.study.study_folder import StudyFolder
from lcmat.study.study_page import describe_study
from lcmat.study.worker import Worker, read_sources


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


def run_study(asked: Asked, path: Path, machine: Machine, tell: Tell | None = None) -> tuple[Outcome, Path]:
    """Do what is not done yet, beside other processes at the same folder, and write results and page.

    Returns:
        The results, and the path of the page.

    Raises:
        ValueError: for a file with mistakes, a folder that holds something else, or data that cannot be read.
        CellsFailedError: when some cells failed; all others are done then.
    """
    study = asked.read()
    folder = StudyFolder.begin(path, study)
    _keep_file(asked, study, folder)
    outcome = _work(study, folder, asked.sources or {}, machine, tell)
    outcome.save(path)
    files.write_text(path / "results.md", as_markdown(outcome))
    return outcome, files.write_text(path / "report.html", render(describe_study(outcome)))


def describe_again(path: Path, machine: Machine, page_bytes: int = PAGE_BYTES) -> Page:
    """The page of the study in a folder; cells that are missing are done."""
    meta = files.read_json(path / "study.json")
    try:
        name, quick, sources = str(meta["study"]["name"]), bool(meta["quick"]), dict(meta["sources"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path / 'study.json'} does not describe a whole study: {error!r}") from None
    study = replace(read_study(path / "study.toml", quick=quick), name=name)
    outcome = _work(study, StudyFolder(path), sources, machine, None)
    return describe_study(outcome, page_bytes)


def _work(
    study: Study, folder: StudyFolder, sources: Mapping[str, str], machine: Machine, tell: Tell | None
) -> Outcome:
    splits = read_sources(study, sources)
    cells = make_cells(study, {name: own.train.fingerprint for name, own in splits.items()})
    conduct(cells, folder, Worker(study, folder, splits, machine), tell)
    return collect(study, folder, splits, cells)


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

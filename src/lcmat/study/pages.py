"""Pages of folders made anew, and several of them as one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lcmat import files
from lcmat.evaluation.gallery import PAGE_BYTES
from lcmat.report import Page, join_pages, render
from lcmat.study import comparison, run_study, trial
from lcmat.study.pipeline import Machine
from lcmat.study.study_folder import is_study


def render_folders(folders: Sequence[Path], machine: Machine, target: Path | None = None) -> list[Path]:
    """Make the pages of studies, comparisons and evaluations anew, from their records.

    Args:
        folders: of studies, of `lcmat dynamic` and `lcmat continual`, or of evaluations.
        machine: to train what is missing in them.
        target: a file for one page with all of them; each gets its own page in its folder where this is None.

    Returns:
        The pages.

    Raises:
        ValueError: for a folder that holds none of these.
    """
    if target is None:
        return [files.write_text(folder / "report.html", render(_describe(folder, machine))) for folder in folders]
    pages = [_describe(folder, machine, PAGE_BYTES // len(folders)) for folder in folders]
    titles = [page.title for page in pages]
    pages = [  # evaluations of the same data have the same title
        page if titles.count(page.title) == 1 else replace(page, title=f"{page.title} ({folder})")
        for page, folder in zip(pages, folders, strict=True)
    ]
    return [files.write_text(target, render(join_pages(pages, "Reports together")))]


def _describe(folder: Path, machine: Machine, page_bytes: int = PAGE_BYTES) -> Page:
    if is_study(folder):
        return run_study.describe_again(folder, page_bytes)
    if trial.is_trial(folder):
        return trial.describe_again(folder)
    return comparison.describe_again(folder, machine, page_bytes)

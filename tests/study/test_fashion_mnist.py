"""The default on real pictures: a small form of the study whose results stand in docs/results."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest

from lcmat.study.conduct import conduct
from lcmat.study.config import read_study
from lcmat.study.method import read_method
from lcmat.study.outcome import collect
from lcmat.study.pipeline import Machine
from lcmat.study.recipes import find_recipe
from lcmat.study.study_folder import StudyFolder
from lcmat.study.worker import Worker, read_cells

STUDY = read_study(find_recipe("fashion-mnist").file)
DEBIAN = Path(STUDY.sources["fashion-mnist"].local)
RESULTS = Path(__file__).parents[2] / "docs" / "results" / "fashion-mnist" / "results.csv"
DEFAULT, HARDEST = "facility-location:points=all", "least-confidence"
SHARE, SEEDS = 0.02, 4


def lowest(n: int) -> float:
    """The lower end of the 95 % interval in which the study lets the mean difference of n new runs be.

    Of runs with the mean difference D and the spread s, n new ones have a mean of D ± t · s · √(1/N + 1/n); the study's
    own interval is D ± t · s / √N.
    """
    with RESULTS.open(encoding="utf-8") as file:
        [row] = [row for row in csv.DictReader(file) if row["name"] == DEFAULT and float(row["amount"]) == SHARE]
    difference = float(row["difference"])
    return difference - (difference - float(row["difference_low"])) * math.sqrt(1 + int(row["n"]) / n)


@pytest.mark.slow
@pytest.mark.skipif(not DEBIAN.is_dir(), reason="needs Debian's package dataset-fashion-mnist")
def test_the_default_holds_against_random_sets_and_the_hardest_samples_do_not(tmp_path: Path) -> None:
    methods = tuple(read_method(name) for name in ("uniform", DEFAULT, HARDEST))
    grid = replace(STUDY.grids[0], methods=methods, amounts=(SHARE,))
    study = replace(STUDY, seeds=tuple(range(SEEDS)), grids=(grid,))
    folder = StudyFolder(tmp_path / "study")
    machine = Machine(device="cpu")
    splits, cells = read_cells(study, {})
    conduct(cells, folder, Worker(study, folder, splits, machine))
    [group] = collect(study, folder, splits, cells).groups
    assert group.report is not None
    found = {row.name: row.difference for row in group.report.rows}
    default, hardest = found[DEFAULT], found[HARDEST]
    assert default is not None
    assert hardest is not None
    assert default >= lowest(SEEDS)
    assert hardest < lowest(SEEDS)  # so that a selector that is broken would be seen

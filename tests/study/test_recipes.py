"""The named studies: all can be read, and the small form of each runs through."""

import time
import tomllib
from pathlib import Path

import pytest
import torch

from lcmat.cli import application
from lcmat.data.catalogue import SOURCES
from lcmat.study.cells import make_cells
from lcmat.study.config import read_study
from lcmat.study.paper import read_paper
from lcmat.study.recipes import find_recipe, recipes
from report.html_checks import check_page

GRIDS = sorted(name for name, recipe in recipes().items() if not recipe.commands)
OTHERS = sorted(name for name, recipe in recipes().items() if recipe.commands)
STUDIES = [read_study(recipes()[name].file) for name in GRIDS]
QUICK_SECONDS = 20.0  # of work, on one core: how long it takes depends on what else the machine does
PAPERS = sorted({study.paper for study in STUDIES if study.paper})


def test_every_table_and_figure_of_the_paper_has_its_study() -> None:
    assert set(recipes()) == {
        "selection-resnet18",
        "tables",
        "ingredients",
        "condensation-digits",
        "selection-other-networks",
        "cross-architecture-selection",
        "cross-architecture-tiny-imagenet",
        "cross-architecture-condensation",
        "robustness",
        "rho",
        "wall-clock",
        "pictures",
        "condensation",
        "condensation-factor",
        "condensation-rho",
        "continual",
        "continual-tiny-imagenet",
        "continual-short",
        "continual-digits",
        "dynamic",
        "dynamic-short",
        "dynamic-digits",
        "bound",
        "digits",
        "fashion-mnist",
        "small-shares",
        "points",
    }


@pytest.mark.parametrize("name", GRIDS)
def test_both_forms_can_be_read(name: str) -> None:
    file = find_recipe(name).file
    for quick in (False, True):
        study = read_study(file, quick=quick)
        assert make_cells(study, {data: "" for grid in study.grids for data in grid.data})
        assert study.about


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.stem)
def test_every_value_of_the_paper_is_measured(paper: Path) -> None:
    ours = set()
    for study in STUDIES:
        for grid in study.grids if study.paper == paper else ():
            for data in grid.data:
                for net in grid.nets or ("",):
                    ours |= {(data, amount, method.text, net) for amount in grid.amounts for method in grid.methods}
                    ours |= {(data, 1.0, "full", net)} if grid.full else set()
    missing = {(v.data, v.amount, v.method, v.net) for v in read_paper(paper)} - ours
    assert not missing


def test_robustness_has_the_ninety_cases_of_the_paper() -> None:
    study = read_study(find_recipe("robustness").file)
    assert len(study.grids[0].proxies) * len(study.seeds) == 90


def test_sources_of_the_hub_are_known_as_such() -> None:
    for recipe in recipes().values():
        for entry in tomllib.loads(recipe.file.read_text(encoding="utf-8")).get("data", {}).values():
            assert SOURCES.find("hub").facts.detect(entry["source"])


@pytest.mark.parametrize("name", GRIDS)
def test_the_small_form_of_a_grid_runs_through(name: str, tmp_path: Path) -> None:
    assert torch.get_num_threads() == 1
    start = time.process_time()
    assert application.run(["reproduce", name, "--quick", "--out", str(tmp_path / "out")]) == 0
    assert time.process_time() - start < QUICK_SECONDS
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    check_page(page)
    assert "small form" in page
    assert len(page) < 2_000_000


@pytest.mark.parametrize("name", OTHERS)
def test_the_small_form_of_other_studies_runs_through(name: str, tmp_path: Path) -> None:
    start = time.process_time()
    assert application.run(["reproduce", name, "--quick", "--out", str(tmp_path / "out")]) == 0
    assert time.process_time() - start < QUICK_SECONDS
    assert (tmp_path / "out" / "report.html").exists()


def test_an_unknown_name_is_answered_with_the_near_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown study 'robustnes'; did you mean robustness\?"):
        find_recipe("robustnes")


def test_commands_get_folder_and_data(tmp_path: Path) -> None:
    recipe = find_recipe("bound")
    first = recipe.fill_in(tmp_path, quick=False, given={"cifar10": "/data/c10"})[0]
    assert first[:2] == ["select", "/data/c10"]
    assert first[-1] == f"{tmp_path}/uniform"
    with pytest.raises(ValueError, match="bound has no data set cifar; it has cifar10"):
        recipe.fill_in(tmp_path, quick=False, given={"cifar": "x"})

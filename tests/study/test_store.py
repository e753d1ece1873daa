from pathlib import Path

import pytest
import torch

from lcmat import files
from lcmat.study.settings import Settings
from lcmat.study.store import Run, budget_name
from lcmat.types import FeatureData, Splits, Subset
from samples import vectors

SETTINGS = Settings("digits", method="uniform", budget="count", amounts=(2, 3), net="mlp")
DATA = vectors(12)
SPLITS = Splits(DATA, DATA, "vectors")


def make_subset(count: int, seed: int = 0) -> Subset:
    weights = torch.full((count,), 12 / count, dtype=torch.float64)
    return Subset(torch.arange(count), weights, None, "uniform", {}, seed, 12, per_class=(count, 0, 0))


def test_budgets_have_readable_folder_names() -> None:
    assert budget_name("fraction", 0.01) == "0.01"
    assert budget_name("fraction", 1.0) == "1"
    assert budget_name("count", 1_234_567) == "count-1234567"
    assert budget_name("coverage", 0.9) == "coverage-0.9"


def test_a_run_is_complete_only_when_it_says_so(tmp_path: Path) -> None:
    run = Run.begin(tmp_path, SETTINGS, SPLITS, 1.5)
    with pytest.raises(ValueError, match="was interrupted; give its `lcmat select` again"):
        Run.open(tmp_path)
    run.save_subsets([make_subset(2), make_subset(3)])
    run.update(complete=True, peak_memory_mb=12.34)
    opened = Run.open(tmp_path)
    assert opened.settings == SETTINGS
    assert [len(subset) for subset in opened.subsets()] == [2, 3]
    summary = opened.summary()
    assert summary["count"] == [2, 3]
    assert summary["per_class"] == [[2, 0, 0], [3, 0, 0]]
    assert summary["seconds"] == {"load": 1.5, "train": 0.0, "extract": 0.0, "select": 0.0}
    assert summary["peak_memory_mb"] == 12.3


def test_repeats_lie_beside_the_run_and_are_whole_or_absent(tmp_path: Path) -> None:
    run = Run.begin(tmp_path, SETTINGS, SPLITS)
    assert run.subsets(0) == run.subsets(4) == []
    run.save_subsets([make_subset(2, 4), make_subset(3, 4)], 4)
    assert [subset.seed for subset in run.subsets(4)] == [4, 4]
    assert run.subsets(0) == []
    (tmp_path / "repeats" / "4" / "count-3" / "subset.json").unlink()
    assert run.subsets(4) == []


def test_a_started_run_goes_on_with_the_same_settings_only(tmp_path: Path) -> None:
    run = Run.begin(tmp_path, SETTINGS, SPLITS, 1.5)
    assert Run.begin(tmp_path, SETTINGS, SPLITS, 9.9).seconds == run.seconds
    other = Settings("digits", method="uniform", budget="count", amounts=(2, 4), net="mlp")
    with pytest.raises(ValueError, match=r"its amounts is \[2, 3\], asked for is \[2, 4\]"):
        Run.begin(tmp_path, other, SPLITS)
    changed = FeatureData(DATA.features + 1, DATA.labels, DATA.class_names)
    with pytest.raises(ValueError, match="what digits holds has changed since"):
        Run.begin(tmp_path, SETTINGS, Splits(changed, changed, "vectors"))


def test_rubbish_of_a_killed_first_write_does_not_block_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".run.json.abc.part").touch()
    Run.begin(tmp_path, SETTINGS, SPLITS)
    assert files.read_json(tmp_path / "run.json")["complete"] is False

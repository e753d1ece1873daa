"""What is measured of the official code's deviations: the page says what the records say, and each choice deviates."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from lcmat import load
from lcmat.selection.distances import from_matrix
from lcmat.selection.greedy import facility_location
from lcmat.types import Signals

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module", name="script")
def the_script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "deviations.py"))


def test_the_page_has_the_table_of_its_records(script: dict[str, Any]) -> None:
    lines = (ROOT / "docs" / "results" / "deviations" / "records.jsonl").read_text("utf-8").splitlines()
    page = (ROOT / "docs" / "deviations.md").read_text("utf-8")
    assert "\n".join(script["table"]([json.loads(line) for line in lines])) in page


def test_each_deviation_chooses_as_many_but_others(script: dict[str, Any]) -> None:
    data = load("digits", quiet=True)
    found = script["choose"](data, 0)
    assert {len(subset) for subset in found.values()} == {len(found["craig"])}
    alike = {"glister, no update"}  # a short step changes few of its picks, or none
    for deviation in script["DEVIATIONS"]:
        with_it, without = found[deviation.name], found[deviation.against]
        assert torch.equal(
            torch.bincount(data.train.labels[with_it.indices], minlength=10), torch.tensor(with_it.per_class)
        )
        if "over all" not in deviation.name:
            assert with_it.per_class == without.per_class
        assert deviation.name in alike or set(with_it.indices.tolist()) != set(without.indices.tolist())


def test_the_samples_of_a_smaller_last_batch_are_scaled_up(script: dict[str, Any]) -> None:
    scale = script["batch_scale"](144)
    assert scale[:128].tolist() == [1.0] * 128
    assert scale[128:].tolist() == [8.0] * 16
    assert script["batch_scale"](100).tolist() == [1.0] * 100
    assert script["batch_scale"](256).tolist() == [1.0] * 256


def test_covering_is_facility_location(script: dict[str, Any]) -> None:
    points = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)).double()
    distances = torch.cdist(points, points)
    mine = script["cover"](distances.max() - distances, 6)
    theirs = facility_location(from_matrix(distances), 6, generator=torch.Generator().manual_seed(0)).order
    assert [distances[:, order].min(1).values.sum().item() for order in (mine, theirs)] == pytest.approx(
        [distances[:, mine].min(1).values.sum().item()] * 2
    )


def test_the_farthest_is_taken(script: dict[str, Any]) -> None:
    signals = Signals(features=torch.tensor([[0.0], [1.0], [2.0], [9.0]]))
    assert script["farthest_herding"](signals, 1).tolist() == [3]  # the mean is 3

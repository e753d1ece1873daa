from pathlib import Path

import pytest
from torch import nn

from cli.commands import Lcmat, make_run
from lcmat import files
from lcmat.study.curvature import proxy_of
from lcmat.study.pipeline import Machine
from lcmat.study.store import Run
from lcmat.training import log_of
from lcmat.types import Data
from report.html_checks import check_page


def test_the_page_of_a_run_is_one_command(lcmat: Lcmat, image_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    outcome = lcmat("curvature", image_run, "--resolution", "3", "--rho", "0.2", "--out", page)
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines()[-1] == f"page: {page}"
    assert "whole network" in outcome.out
    assert "herding" in outcome.out
    check_page(page.read_text(encoding="utf-8"))
    content = files.read_json(tmp_path / "page" / "curvature.json")
    assert {row["parameters"] for row in content["terms"]} == {"head", "all"}
    assert {row["size"] for row in content["terms"]} == {4, 8}
    assert 0.2 in {row["rho"] for row in content["terms"]}
    assert {path.suffix for path in (tmp_path / "page").iterdir()} == {".csv", ".json", ".npz"}


def test_the_proxy_is_the_one_that_judged_the_samples(
    lcmat: Lcmat, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", table, "--points", "1,2")
    seen = []

    def spy(run: Run, data: Data, machine: Machine) -> nn.Module:
        model = proxy_of(run, data, machine)
        log = log_of(model)
        assert log is not None
        seen.append(log.seconds)
        return model

    before = files.read_json(run / "run.json")["seconds"]["train"]
    monkeypatch.setattr("lcmat.study.curvature.proxy_of", spy)
    outcome = lcmat("curvature", run, "--parameters", "head", "--no-pictures", "--json")
    assert outcome.status == 0, outcome.err
    assert seen == [before]  # it comes from the checkpoint
    assert outcome.json["protocol"]["ρ"] == 0.1  # the run's own
    assert {row["parameters"] for row in outcome.json["terms"]} == {"head"}
    assert (run / "curvature.html").exists()
    assert (run / "curvature" / "terms.csv").exists()


def test_runs_are_compared_at_one_point(lcmat: Lcmat, table: Path, table_run: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "uniform", table, "--method", "uniform")
    out = tmp_path / "page.html"
    outcome = lcmat("curvature", table_run, other, "--parameters", "head", "--no-pictures", "--out", out, "--json")
    assert outcome.status == 0, outcome.err
    names = [row["name"] for row in outcome.json["terms"]]
    assert set(names) == {"lcmat-s", "uniform"}
    assert len(names) == 2 * 2 * 4  # no further random sets


def test_condensed_sets_stand_beside_selected_ones_or_alone(
    lcmat: Lcmat, images: Path, image_run: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    net = "convnet:width=4,depth=2"
    small = ("--per-class", "2", "--steps", "2", "--quick", "0", "--set", "real_batch=8", "--net", net)
    assert lcmat("condense", images, "--method", "dm", *small, "--out", made).status == 0
    quick = ("--no-pictures", "--parameters", "head", "--json")
    beside = lcmat("curvature", image_run, made, *quick, "--out", tmp_path / "page.html")
    assert beside.status == 0, beside.err
    assert {(row["name"], row["size"]) for row in beside.json["terms"]} == {
        ("herding", 4), ("herding", 8), ("dm", 4), ("uniform", 4), ("uniform", 8)
    }  # fmt: skip
    alone = lcmat("curvature", made, "--no-pictures")
    assert alone.status == 0, alone.err
    assert f"training {net}" in alone.err
    assert alone.out.splitlines()[-1] == f"page: {made / 'curvature.html'}"
    assert "Curvature: dm on" in (made / "curvature.html").read_text(encoding="utf-8")
    for arguments, message in (
        ((made, made), "given twice"),
        ((made / "synthetic",), "has no condense.json"),
    ):
        outcome = lcmat("curvature", *arguments)
        assert outcome.status == 2
        assert message in outcome.err


def test_wrong_use_says_what_was_expected(
    lcmat: Lcmat, images: Path, table_run: Path, image_run: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    assert lcmat("condense", images, "--method", "random", "--per-class", "1", "--out", made).status == 0
    for arguments, message in (
        ((tmp_path,), "expected a run folder"),
        ((table_run, "--parameters", "body"), "--parameters takes head, all, both, got 'body'"),
        ((table_run, "--rho", "0"), "--rho takes a radius above 0"),
        ((table_run, "--resolution", "4"), "--resolution takes an odd number"),
        ((table_run, "--samples", "0"), "--samples takes a number of at least 1"),
        ((table_run, "--out", tmp_path / "page"), "--out takes the name of a page"),
        ((table_run, image_run), "were chosen from different data"),
        ((table_run, made), "made from different data"),
    ):
        outcome = lcmat("curvature", *arguments)
        assert outcome.status == 2, arguments
        assert message in outcome.err
    assert not (table_run / "curvature.html").exists()

import shutil
from pathlib import Path

import numpy as np
import pytest

import lcmat as library
from cli.commands import Lcmat, make_run, write_table
from lcmat import files
from report.html_checks import Reader


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, table: Path) -> list[Path]:
    """Two runs of different methods on the same data."""
    folder = tmp_path_factory.mktemp("pair")
    return [make_run(folder / method, table, "--method", method) for method in ("craig", "herding")]


def test_each_seed_has_its_own_proxy_and_selection(lcmat: Lcmat, pair: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome = lcmat("evaluate", *pair, "--seeds", "2", "--epochs", "2", "--full", "--out", out, "--json")
    assert outcome.status == 0
    rows = {(row["name"], row["size"]): row for row in outcome.json["rows"]}
    assert {name for name, _ in rows} == {"craig", "herding", "uniform", "full"}
    assert rows["craig", 6]["n"] == rows["craig", 6]["subsets"] == 2
    assert len(outcome.json["records"]) == len(files.read_json_lines(out / "records.jsonl")) == 2 * (3 * 2 + 1)
    for run in pair:
        repeated = library.load_subset(run / "repeats" / "1" / "0.1")
        assert (repeated.seed, len(repeated)) == (1, 6)
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")


def test_the_oracle_and_time_to_an_accuracy_have_columns_of_their_own(
    lcmat: Lcmat, pair: list[Path], tmp_path: Path
) -> None:
    arguments = ("evaluate", pair[0], "--seeds", 1, "--epochs", 3, "--same-subset", "--out", tmp_path / "out")
    outcome = lcmat(*arguments, "--reach", 0.4)
    assert outcome.status == 0
    head = next(line for line in outcome.out.splitlines() if "trained on" in line and "accuracy" in line)
    assert "  oracle  " in head
    assert "s to 40 %" in head
    again = lcmat(*arguments, "--oracle")
    assert "taken from the records" in again.out
    assert "s to" not in again.out
    assert lcmat(*arguments, "--reach", 90).status == 2


def test_a_subset_of_one_class_is_refused_before_anything_is_trained(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert lcmat("select", table, "--method", "herding", "--epochs", 1, "--count", "1,6", "--out", run).status == 0
    outcome = lcmat("evaluate", run, "--seeds", 2, "--epochs", 1)
    assert outcome.status == 1
    assert f"{run / 'subsets' / 'count-1'} holds samples of one class only (1)" in outcome.err
    assert not (run / "repeats").exists()


def test_steps_can_be_held_equal_and_augmentation_left_out(lcmat: Lcmat, image_run: Path, tmp_path: Path) -> None:
    arguments = ("evaluate", image_run, "--seeds", 1, "--same-subset", "--out", tmp_path / "out")
    outcome = lcmat(*arguments, "--steps", 4, "--no-augment", "--json")
    assert outcome.status == 0
    assert outcome.json["protocol"]["budget"] == "4 steps"
    assert outcome.json["protocol"]["augmentation"] == "none"
    assert lcmat("report", tmp_path / "out").status == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "--steps 4 --no-augment" in page
    assert lcmat(*arguments, "--steps", 4, "--epochs", 1).status == 2
    assert lcmat(*arguments, "--steps", 0).status == 2


def test_the_same_command_trains_nothing_again(
    lcmat: Lcmat, pair: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("evaluate", pair[0], "--seeds", "2", "--epochs", "1", "--out", tmp_path / "out")
    first = lcmat(*arguments)
    assert first.out.splitlines()[-1] == f"report: {tmp_path / 'out' / 'report.html'}"

    def forbid(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("lcmat.training.train", forbid)
    monkeypatch.setattr("lcmat.study.pipeline.train", forbid)
    again = lcmat(*arguments)
    assert again.status == 0
    table = [line for line in first.out.splitlines() if "uniform" in line]
    assert [line for line in again.out.splitlines() if "uniform" in line] == table

    page = tmp_path / "out" / "report.html"
    page.unlink()
    assert lcmat("report", tmp_path / "out").out == f"report: {page}\n"
    assert page.exists()


def test_one_subset_for_all_seeds_is_said(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", table, "--method", "herding")
    outcome = lcmat("evaluate", run, "--seeds", "2", "--epochs", "1", "--nets", "mlp:width=4", "--same-subset")
    assert outcome.status == 0
    assert "2 trainings on one subset" in outcome.out
    assert not (run / "repeats").exists()
    assert (run / "report.html").exists()


def test_coverage_is_compared_at_the_size_it_came_to(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert lcmat("select", table, "--coverage", "0.3", "--epochs", "1", "--out", run).status == 0
    size = lcmat("show", run, "--json").json["count"]
    assert lcmat("evaluate", run, "--seeds", "2", "--epochs", "1").status == 0
    assert len(library.load_subset(run / "repeats" / "1" / "coverage-0.3")) == size


def test_runs_that_cannot_be_compared_are_refused(lcmat: Lcmat, table_run: Path, image_run: Path) -> None:
    for arguments, message in (
        ((table_run, image_run), "were chosen from different data"),
        ((table_run, table_run), "is given twice"),
        ((table_run, "--seeds", "0"), "expected at least 1 seed"),
        ((table_run, "--nets", "resnet1"), "unknown network 'resnet1'"),
    ):
        outcome = lcmat("evaluate", *arguments)
        assert outcome.status == 2
        assert message in outcome.err
    assert not (table_run / "records.jsonl").exists()


def test_a_report_needs_an_evaluation(lcmat: Lcmat, table_run: Path, tmp_path: Path) -> None:
    outcome = lcmat("report", table_run)
    assert outcome.status == 1
    assert f"holds no evaluation; run `lcmat evaluate {table_run}` first" in outcome.err
    files.write_json(tmp_path / "evaluation.json", {"runs": []})
    assert "does not describe an evaluation" in lcmat("report", tmp_path).err


def test_what_would_fail_later_fails_before_any_proxy_is_trained(
    lcmat: Lcmat, pair: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("lcmat.study.pipeline.train", forbid)
    taken = tmp_path / "taken"
    taken.write_text("x", encoding="utf-8")
    cases = {
        ("--nets", "mlp,mlp"): (2, "one twice: mlp, mlp"),
        ("--epochs", "0"): (2, "at least 1 seed and 1 epoch"),
        ("--nets", "resnet18"): (1, "resnet18"),
        ("--weighted", "lcmat-s"): (1, "not among: craig, herding"),
        ("--out", str(taken)): (1, "is a file"),
        ("--memory", "lots"): (2, "amount of memory"),
    }
    for arguments, (status, words) in cases.items():
        outcome = lcmat("evaluate", *pair, "--seeds", "9", *arguments)
        assert (outcome.status, words in outcome.err) == (status, True), outcome.err


def test_weights_count_on_request(lcmat: Lcmat, pair: list[Path], tmp_path: Path) -> None:
    outcome = lcmat(
        "evaluate", *pair, "--seeds", "1", "--epochs", "1", "--weighted", "craig", "--out", tmp_path / "o", "--json"
    )
    assert outcome.status == 0
    assert outcome.json["protocol"]["weights in the loss"] == ["craig"]


def test_missing_subsets_are_named_and_selected_again(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", table, "--method", "herding")
    before = list(library.load_subset(run / "subsets" / "0.1"))
    shutil.rmtree(run / "subsets")
    for command in ("show", "evaluate"):
        outcome = lcmat(command, run)
        assert outcome.status != 0
        assert "subsets are missing" in outcome.err
    make_run(run, table, "--method", "herding")
    assert list(library.load_subset(run / "subsets" / "0.1")) == before


def test_a_changed_test_part_is_refused(lcmat: Lcmat, tmp_path: Path) -> None:
    source = write_table(tmp_path / "table.npz")
    run = make_run(tmp_path / "run", source, "--method", "herding")
    with np.load(source) as archive:
        arrays = dict(archive)
    arrays["x_test"][0] += 1
    np.savez(source, **arrays)
    outcome = lcmat("evaluate", run, "--seeds", "1", "--epochs", "1")
    assert outcome.status != 0
    assert "or its test part" in outcome.err


@pytest.mark.parametrize("change", [{"data": {}}, {"data": None}, {"seconds": None}])
def test_a_run_file_changed_by_hand_is_no_traceback(
    lcmat: Lcmat, table: Path, tmp_path: Path, change: dict[str, object]
) -> None:
    run = make_run(tmp_path / "run", table, "--method", "herding")
    files.write_json(run / "run.json", {**files.read_json(run / "run.json"), **change})
    outcome = lcmat("show", run)
    assert outcome.status != 0
    assert "data or seconds are incomplete" in outcome.err


def test_evaluations_of_the_same_data_are_told_apart_on_one_page(
    lcmat: Lcmat, pair: list[Path], tmp_path: Path
) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for run, folder in zip(pair, folders, strict=True):
        assert lcmat("evaluate", run, "--seeds", "1", "--epochs", "1", "--out", folder).status == 0
    assert lcmat("report", *folders, "--out", tmp_path / "both.html").status == 0
    heads = Reader((tmp_path / "both.html").read_text(encoding="utf-8")).inside("h2")
    assert len(set(heads)) == len(heads)
    assert all(f"Subsets of table.npz ({folder}): Results" in heads for folder in folders)

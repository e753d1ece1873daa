from pathlib import Path

import numpy as np
import pytest
import torch

import lcmat as library
from cli.commands import Lcmat, write_table
from lcmat import files, training
from lcmat.study.pipeline import read_again
from lcmat.study.store import Run


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_defaults_make_a_run_of_one_per_cent(
    lcmat: Lcmat, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = lcmat("select", table)
    assert outcome.status == 0
    assert "kept 1 of 60 samples" in outcome.out
    assert "proxy: mlp, 10 epochs (chosen by the data; see --net)" in outcome.err
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.startswith("table-auto-")
    assert files.read_json(run / "run.json")["settings"]["points"] == [1, 2, 4, 7, 10]
    assert "note: auto chose facility-location" in outcome.out
    assert str(run.relative_to(tmp_path)) in outcome.out


def test_glister_s_settings_say_that_the_training_set_judges(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    outcome = lcmat("select", table, "--method", "glister", "--epochs", "1", "--count", "6", "--out", tmp_path / "run")
    assert outcome.status == 0
    assert "note: glister without validation signals uses the training set\n" in outcome.out


def test_json_holds_exactly_what_is_promised(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    arguments = (
        "select",
        table,
        "--method",
        "craig",
        "--count",
        "7",
        "--epochs",
        "1",
        "--out",
        tmp_path / "a",
        "--json",
    )
    found = lcmat(*arguments).json
    assert list(found) == ["run", "method", "options", "n", "count", "per_class", "seconds", "peak_memory_mb"]
    assert (found["run"], found["method"], found["n"], found["count"]) == (str(tmp_path / "a"), "craig", 60, 7)
    assert sum(found["per_class"]) == 7
    assert set(found["seconds"]) == {"load", "train", "extract", "select"}
    assert all(seconds > 0 for seconds in found["seconds"].values())
    assert found["peak_memory_mb"] > 10
    assert lcmat(*arguments).json == found


def test_several_budgets_come_from_one_run_and_are_lists_in_json(lcmat: Lcmat, table_run: Path, table: Path) -> None:
    found = lcmat("show", table_run, "--json").json
    assert found["count"] == [6, 12]
    assert [sum(counts) for counts in found["per_class"]] == [6, 12]
    small, large = (library.load_subset(table_run / "subsets" / name) for name in ("0.1", "0.2"))
    assert set(small) < set(large)
    assert small.apply(library.load(table).train).class_names == ("0", "1", "2")


def test_options_reach_the_method_and_are_stored(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    outcome = lcmat(
        "select", table, "--method", "lcmat-s", "--set", "rho=0.25", "--set", "subdimensions=3", "--count", "6",
        "--balance", "equal",
        "--net", "mlp:width=8", "--points", "1,2", "--epochs", "2", "--seed", "3", "--memory", "1GB", "--device", "cpu",
        "--out", tmp_path / "a", "--json",
    )  # fmt: skip
    assert outcome.json["options"] == {"rho": 0.25, "subdimensions": 3, "temperature": 1.0}
    assert outcome.json["per_class"] == [2, 2, 2]
    subset = library.load_subset(tmp_path / "a" / "subsets" / "count-6")
    assert (subset.seed, subset.method, subset.options["rho"]) == (3, "lcmat-s", 0.25)
    meta = files.read_json(tmp_path / "a" / "run.json")
    assert (meta["settings"]["net"], meta["settings"]["points"], meta["complete"]) == ("mlp:width=8", [1, 2], True)
    assert meta["training"]["seed"] == 3


def test_the_command_line_and_the_library_choose_the_same(table_run: Path, table: Path) -> None:
    train = library.load(table).train
    signals = library.extract(library.train("mlp", train, epochs=2, seed=0), train)
    expected = library.select(signals, "lcmat-s", fraction=[0.1, 0.2], seed=0)
    for name, subset in zip(("0.1", "0.2"), expected, strict=True):
        found = library.load_subset(table_run / "subsets" / name)
        assert torch.equal(found.indices, subset.indices)
        assert torch.equal(found.weights, subset.weights)


def test_the_split_and_mirroring_are_options(lcmat: Lcmat, tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    source = tmp_path / "pictures.npz"
    np.savez(source, x=draws.integers(0, 256, (40, 8, 8), dtype=np.uint8), y=["a", "b"] * 20)
    guessed = lcmat("select", source, "--method", "uniform", "--out", tmp_path / "guessed")
    assert "8 of 40 samples were held out" in guessed.err
    assert "no mirroring (see --flip)" in guessed.err
    options = ["--method", "uniform", "--test-fraction", "0.5", "--flip", "--out", tmp_path / "told"]
    assert "20 of 40 samples were held out" in lcmat("select", source, *options).err
    run = Run.open(tmp_path / "told")
    data = read_again(run).train
    assert isinstance(data, library.ImageData)
    assert (len(data), data.flip) == (20, True)
    again = lcmat("select", source, *[option if option != "--flip" else "--no-flip" for option in options])
    assert again.status == 1
    assert "holds another run: its reading is" in again.err


def test_advice_is_spelled_as_the_command_line_has_it(lcmat: Lcmat, tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("u,v,w\n" + "1,2,3\n" * 9, encoding="utf-8")
    assert "name it with --label. Its columns" in lcmat("select", source).err
    assert "no column --label 'kind' in a.csv" in lcmat("select", source, "--label", "kind").err
    outcome = lcmat("select", source, "--label", "w", "--method", "uniform", "--flip")
    assert "--flip is for images, but this source has feature vectors" in outcome.err


def test_an_empty_text_is_not_the_folder_one_is_in(
    lcmat: Lcmat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path / "a.npz")
    monkeypatch.chdir(tmp_path)
    outcome = lcmat("select", "", "--out", tmp_path / "run")
    assert "expected a path or a name, got an empty text" in outcome.err
    assert not (tmp_path / "run").exists()


def test_uniform_trains_no_proxy(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    outcome = lcmat("select", table, "--method", "uniform", "--out", tmp_path / "a", "--json")
    assert outcome.json["seconds"]["train"] == 0
    assert "proxy" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "lcmatS"], "unknown method 'lcmatS'; did you mean 'lcmat-s'"),
        (
            ["--method", "lcmat-s", "--set", "roh=1"],
            "unknown option of lcmat-s 'roh'; did you mean 'rho'? valid: rho, ",
        ),
        (["--method", "lcmat-s", "--set", "rho=big"], "option rho takes float, got 'big'"),
        (["--method", "lcmat-s", "--set", "rho=-1"], "expected rho of 0 or more"),
        (["--set", "rho"], "--set takes NAME=VALUE"),
        (["--set", "rho=1", "--set", "rho=2"], "--set rho is given twice"),
        (["--fraction", "0"], "expected a fraction above 0 and at most 1, got 0"),
        (["--fraction", "0.1,1.5"], "expected a fraction above 0 and at most 1, got 1.5"),
        (["--fraction", "nan"], "expected a fraction above 0 and at most 1, got nan"),
        (["--fraction", "some"], "--fraction takes a number, or several with commas between, got 'some'"),
        (["--count", "1.5"], "--count takes a whole number"),
        (["--count", "0"], "expected a count of at least 1, got 0"),
        (["--fraction", "0.1", "--count", "5"], "give one budget, got --fraction and --count"),
        (["--coverage", "0.5", "--method", "herding"], "herding has no coverage to stop at"),
        (["--balance", "even"], "expected a balance of equal, proportional, none, got 'even'"),
        (["--net", "resnet1"], "unknown network 'resnet1'; did you mean"),
        (["--epochs", "0"], "expected at least 1 epoch for the proxy, got 0"),
        (["--points", "1,11"], "expected points from 1 to 10"),
        (["--points", "1,2", "--method", "herding"], "herding works with one point"),
        (["--points", "5", "--method", "uniform"], "uniform looks at no proxy, so that it has no points"),
        (["--memory", "much"], "expected an amount of memory such as '4GB'"),
        (["--device", "tpu"], "expected a device such as 'cpu'"),
        (["--seed", "x"], "--seed"),
        (["--test-fraction", "1"], "--test-fraction takes a share between 0 and 1, both excluded, got 1.0"),
        (["--wrong"], "--wrong"),
    ],
)
def test_wrong_use_is_answered_before_anything_is_read(
    lcmat: Lcmat, tmp_path: Path, arguments: list[str], message: str
) -> None:
    outcome = lcmat("select", tmp_path / "no such data", *arguments, "--out", tmp_path / "a")
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert message in outcome.err
    assert len(outcome.err.splitlines()) <= 2
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--count", "61"], "expected a count of at most 60"),
        (["--net", "resnet18"], "resnet18 is for images"),
        (["--resize", "8"], "resize"),
    ],
)
def test_what_does_not_fit_the_data_is_refused_before_anything_is_written(
    lcmat: Lcmat, table: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    outcome = lcmat("select", table, *arguments, "--out", tmp_path / "a")
    assert outcome.status == 1
    assert message in outcome.err
    assert not (tmp_path / "a").exists()


def test_a_missing_source_is_a_failure_in_one_line(lcmat: Lcmat, tmp_path: Path) -> None:
    outcome = lcmat("select", tmp_path / "none.npz", "--out", tmp_path / "a")
    assert outcome.status == 1
    assert outcome.err.startswith("error: ")
    assert "none.npz" in outcome.err
    assert "Traceback" not in outcome.err


def test_another_run_in_the_folder_is_refused_and_untouched(lcmat: Lcmat, table: Path, table_run: Path) -> None:
    before = contents(table_run)
    outcome = lcmat(
        "select", table, "--method", "lcmat-s", "--epochs", "3", "--fraction", "0.1,0.2", "--out", table_run
    )
    assert outcome.status == 1
    assert "holds another run: its epochs is 2, asked for is 3; name another folder with --out" in outcome.err
    assert contents(table_run) == before


def test_a_folder_that_is_no_run_is_refused_and_untouched(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert "is not empty and no run of lcmat" in lcmat("select", table, "--out", tmp_path).err
    assert "is a file" in lcmat("select", table, "--out", tmp_path / "notes.txt").err
    assert contents(tmp_path) == {"notes.txt": b"mine"}


def test_an_interrupted_run_goes_on_to_the_same_result(
    lcmat: Lcmat, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_run: Path
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    arguments = (
        "select", table, "--method", "lcmat-s", "--epochs", "2", "--fraction", "0.1,0.2", "--out", tmp_path / "a",
    )  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr("lcmat.study.pipeline.extract", interrupt)
        outcome = lcmat(*arguments)
    assert outcome.status == 130
    assert (
        outcome.err.splitlines()[-1] == "error: interrupted; give the same command again to go on from where it stopped"
    )
    shown = lcmat("show", tmp_path / "a")
    assert shown.status == 2
    assert "was interrupted; give its `lcmat select` again" in shown.err

    steps: list[object] = []
    monkeypatch.setattr(training.loop, "rate_at", lambda *step: steps.append(step))
    assert lcmat(*arguments).status == 0
    assert not steps  # the finished proxy is read, not trained again
    for name in ("0.1", "0.2"):
        found, expected = (library.load_subset(run / "subsets" / name) for run in (tmp_path / "a", table_run))
        assert torch.equal(found.indices, expected.indices)


def test_a_full_disk_is_said_in_one_line(
    lcmat: Lcmat, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    outcome = lcmat("select", table, "--out", tmp_path / "a")
    assert outcome.status == 1
    assert outcome.err.splitlines()[-2].startswith("error: No space left on device")
    assert contents(tmp_path / "a") == {}

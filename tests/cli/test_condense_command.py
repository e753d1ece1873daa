"""`lcmat condense`, `join`, and what the other commands make of their runs."""

from pathlib import Path

import pytest

from cli.commands import Lcmat

SMALL = (
    "--net",
    "convnet:width=4,depth=2",
    "--steps",
    "20",
    "--set",
    "real_batch=8",
    "--quick",
    "0",
    "--per-class",
    "1",
)


def test_condense_show_evaluate_export(lcmat: Lcmat, images: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    made = lcmat("condense", images, "--method", "dm", *SMALL, "--out", run, "--json")
    assert made.status == 0, made.err
    assert made.json["per_class"] == [1, 1]
    assert made.json["labels"] == "hard"
    assert made.json["steps"] == 20
    assert lcmat("show", run, "--json").json == made.json
    assert "2 synthetic samples, 1 of each class" in lcmat("show", run).out
    judged = lcmat("evaluate", run, "--nets", "convnet:width=4,depth=2", "--seeds", "2", "--epochs", "2")
    assert judged.status == 0, judged.err
    assert "DSA for each image" in judged.out
    assert (run / "report.html").is_file()
    exported = lcmat("export", run, "--to", "folder")
    assert exported.status == 0, exported.err
    assert len(list(Path(exported.out.strip()).rglob("*.png"))) == 2


@pytest.mark.parametrize("method", ["random", "dc", "dsa", "dm", "kip", "lcmat-c"])
def test_every_method_runs_from_one_command(lcmat: Lcmat, images: Path, tmp_path: Path, method: str) -> None:
    fewer = {"random": (), "dc": ("--set", "network_steps=1"), "dsa": ("--set", "network_steps=1")}
    small = SMALL[:4] if method == "random" else SMALL
    made = lcmat(
        "condense", images, "--method", method, *small, *fewer.get(method, ()), "--per-class", "1", "--quick", "0",
        "--out", tmp_path / "run", "--json",
    )  # fmt: skip
    assert made.status == 0, made.err
    assert made.json["method"] == method
    assert made.json["per_class"] == [1, 1]
    assert (tmp_path / "run" / "grid.png").is_file()


def test_a_refused_run_leaves_its_folder_to_a_corrected_command(lcmat: Lcmat, images: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for wrong in (("--factor", "7"), ("--start", "real", "--per-class", "500"), ("--quick", "-1")):
        refused = lcmat("condense", images, "--method", "dm", *SMALL, *wrong, "--out", run)
        assert refused.status == 1, refused.err
        assert not run.exists()
    assert lcmat("condense", images, "--method", "dm", *SMALL, "--out", run).status == 0


def test_the_same_command_again_wants_resume(lcmat: Lcmat, images: Path, tmp_path: Path) -> None:
    arguments = ("condense", images, "--method", "random", "--per-class", "1", "--out", tmp_path / "run")
    assert lcmat(*arguments).status == 0
    again = lcmat(*arguments)
    assert again.status == 1
    assert "give --resume" in again.err
    assert lcmat(*arguments, "--resume").status == 0


def test_shards_join(lcmat: Lcmat, images: Path, tmp_path: Path) -> None:
    for classes in ("0", "1-1"):
        out = lcmat("condense", images, "--method", "dm", *SMALL, "--classes", classes, "--out", tmp_path / classes)
        assert out.status == 0, out.err
    joined = lcmat("join", tmp_path / "0", tmp_path / "1-1", "--out", tmp_path / "all", "--json")
    assert joined.json["per_class"] == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--method", "dn"), 2, "unknown condenser 'dn'; did you mean 'dm'"),
        (("--set", "rhoo=1"), 2, "unknown option of lcmat-c 'rhoo'"),
        (("--set", "rho"), 2, "--set takes NAME=VALUE"),
        (("--per-class", "0"), 2, "per_class of at least 1"),
        (("--steps", "0"), 2, "--steps takes a number of at least 1, got 0"),
        (("--classes", "a-b"), 2, "--classes takes numbers and ranges"),
        (("--device", "cuda:99"), 2, "cuda:99"),
        (("--method", "random", "--per-class", "500"), 1, "at least 500 samples of class"),
        (("--method", "kip", "--classes", "0"), 1, "cannot condense some classes apart"),
    ],
)
def test_wrong_use(
    lcmat: Lcmat, images: Path, tmp_path: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    outcome = lcmat("condense", images, "--out", tmp_path / "run", *arguments)
    assert outcome.status == status
    assert message in outcome.err


def test_evaluate_refuses_what_condensed_samples_do_not_have(
    lcmat: Lcmat, images: Path, image_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert lcmat("condense", images, "--method", "dm", *SMALL, "--out", run).status == 0
    mixed = lcmat("evaluate", run, image_run)
    assert mixed.status == 2
    assert f"{run} holds condensed samples, {image_run} does not" in mixed.err
    weighted = lcmat("evaluate", run, "--weighted", "dm")
    assert weighted.status == 2
    assert "condensed samples have no weights" in weighted.err
    assert not (run / "report.html").exists()


def test_condensers_are_listed(lcmat: Lcmat) -> None:
    listed = lcmat("list").out
    assert "lcmat-c" in listed
    assert "rho=0.1" in listed


def test_after_an_interrupt_it_asks_for_what_it_needs(
    lcmat: Lcmat, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lcmat.study.condensing.run_condensation", interrupt)
    arguments = ["condense", table, "--method", "random", "--out", tmp_path / "a"]
    assert "give the same command again with --resume to go on" in lcmat(*arguments).err
    assert "give the same command again to go on" in lcmat(*arguments, "--resume").err

"""The commands that a page shows: given again, they ask for what is there already."""

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from cli.commands import Lcmat, write_images, write_table
from evaluation.cases import digits
from lcmat import files
from lcmat.study import commands
from lcmat.study.comparison import Protocol
from lcmat.study.condensing import Request
from lcmat.study.settings import Settings
from lcmat.study.store import Run
from report.html_checks import Reader


def shown(page: Path) -> list[list[str]]:
    """The commands in the last block of code of a page, without the name of the program."""
    block = Reader(page.read_text(encoding="utf-8")).inside("code")[-1]
    lines = [shlex.split(line) for line in block.splitlines()]
    assert all(words[0] == "lcmat" for words in lines)
    return [words[1:] for words in lines]


def forbid(*_: object, **__: object) -> Any:
    raise AssertionError("the command asks for something else")


def test_the_commands_of_an_evaluation_find_everything_done(
    lcmat: Lcmat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = write_images(tmp_path / "images.npz")
    options = ["--epochs", "2", "--points", "1,2", "--set", "rho=0.5", "--balance", "equal", "--seed", "3", "--no-flip"]
    own = ["--fraction", "0.1,0.25", "--net", "convnet:width=4,depth=1", "--out", "a run"]
    assert lcmat("select", source, "--method", "lcmat-s", *options, *own).status == 0
    assert lcmat("evaluate", "a run", "--seeds", "2", "--epochs", "1", "--full", "--weighted", "lcmat-s").status == 0
    found = shown(tmp_path / "a run" / "report.html")
    assert [words[0] for words in found] == ["select", "evaluate"]
    for name in ("lcmat.training.train", "lcmat.study.pipeline.train"):
        monkeypatch.setattr(name, forbid)
    for words in found:
        assert lcmat(*words).status == 0, words


def test_the_commands_of_condensed_sets_ask_for_the_same(
    lcmat: Lcmat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = write_table(tmp_path / "table.npz")
    options = ["--method", "dm", "--set", "real_batch=8", "--per-class", "2", "--steps", "3", "--net", "mlp:width=4"]
    for shard, classes in (("low", "0-1"), ("high", "2")):
        assert lcmat("condense", source, *options, "--quick", "0", "--classes", classes, "--out", shard).status == 0
    assert lcmat("join", "low", "high", "--out", "all").status == 0
    assert lcmat("evaluate", "all", "--nets", "mlp:width=4", "--seeds", "1", "--epochs", "1").status == 0
    *shards, join, evaluate = shown(tmp_path / "all" / "report.html")
    assert join == ["join", "low", "high", "--out", "all"]
    for folder, words in zip(("low", "high"), shards, strict=True):
        again = lcmat(*words[:-1], f"{folder}-again", "--quick", "0")
        assert again.status == 0
        first, second = (files.read_json(tmp_path / name / "condense.json") for name in (folder, f"{folder}-again"))
        assert first["request"] == second["request"]
    monkeypatch.setattr("lcmat.training.train", forbid)
    assert lcmat(*evaluate).status == 0


def test_the_command_of_a_study_finds_everything_done(
    lcmat: Lcmat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert lcmat("reproduce", "digits", "--quick", "--out", "study").status == 0
    [words] = shown(tmp_path / "study" / "report.html")
    assert words == ["reproduce", "digits", "--quick", "--out", "study"]
    (tmp_path / "study" / "study.toml").write_text(
        (tmp_path / "study" / "study.toml").read_text(encoding="utf-8") + "\n# mine\n", encoding="utf-8"
    )
    changed = commands.study_command(tmp_path / "study")
    assert changed == shlex.join(
        ["lcmat", "study", str(tmp_path / "study" / "study.toml"), "--quick", "--out", str(tmp_path / "study")]
    )


def test_budgets_are_written_exactly(tmp_path: Path) -> None:
    for budget, amounts, text in (("count", (7.0, 20.0), "7,20"), ("fraction", (1 / 3, 1.0), f"{1 / 3!r},1")):
        settings = Settings(source="digits", method="herding", budget=budget, amounts=amounts, net="mlp")
        command = commands.select_command(Run.begin(tmp_path / budget, settings, digits()))
        assert f"--{budget} {text} " in command


def test_what_was_not_asked_for_is_left_out() -> None:
    command = commands.evaluate_command([Path("a")], Protocol(seeds=3, epochs=7), Path("a"))
    assert command == "lcmat evaluate a --seeds 3 --epochs 7 --out a"


def test_tests_after_each_epoch_are_asked_for_again() -> None:
    command = commands.evaluate_command([Path("a")], Protocol(seeds=3, epochs=7, oracle=True, reach=0.9), Path("a"))
    assert command == "lcmat evaluate a --seeds 3 --epochs 7 --oracle --reach 0.9 --out a"


def test_every_setting_that_decides_has_its_option() -> None:
    """A new setting must be written into the commands, and then named here."""
    known = {
        Settings: "source reading method options budget amounts balance net epochs points seed",
        Request: "source reading method options per_class net factor start labels classes seed",
        Protocol: "nets seeds epochs same_subset full weighted oracle reach steps augment",
    }
    for kind, names in known.items():
        assert [field.name for field in fields(kind)] == names.split()


def test_steps_stand_in_the_place_of_epochs() -> None:
    command = commands.evaluate_command([Path("a")], Protocol(seeds=3, steps=70, augment=False), Path("a"))
    assert command == "lcmat evaluate a --seeds 3 --steps 70 --no-augment --out a"


def test_other_pages_show_the_command_as_it_was_given(
    lcmat: Lcmat, table: Path, table_run: Path, tmp_path: Path
) -> None:
    short = ["--epochs", "1", "--proxy-epochs", "1", "--seeds", "1", "--net", "mlp:width=4", "--out"]
    given = {
        "dynamic": ["dynamic", str(table), "--methods", "random,full", "--fraction", "0.2", *short],
        "continual": ["continual", str(table), "--steps", "2", "--per-class", "2", "--fill", "uniform", *short],
        "curvature": ["curvature", str(table_run), "--parameters", "head", "--no-pictures", "--out"],
    }
    for name, words in given.items():
        out = tmp_path / name if name != "curvature" else tmp_path / "page.html"
        outcome = lcmat(*words, out)
        assert outcome.status == 0, outcome.err
        page = out / "report.html" if out.is_dir() else out
        assert shown(page) == [[*words, str(out)]]

"""Every command runs when it is told no more than it has to be: no folder is named, so each finds its own."""

from pathlib import Path

import pytest

from cli.commands import Lcmat
from cli.test_study_commands import TEXT
from lcmat.cli import app
from lcmat.study import demo

NET = ("--net", "mlp:width=4")
SHORT = ("--epochs", "1", "--seeds", "1")  # all that is said here is said to save time


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_no_command_is_forgotten() -> None:
    tested = {
        "demo", "select", "condense", "evaluate", "curvature", "dynamic", "continual", "plan", "study", "reproduce",
        "list", "show", "export", "report",
    }  # fmt: skip
    assert {command.name for command in app.registered_commands} == tested | {"join"}  # which has to be told a folder


def test_from_select_to_report(lcmat: Lcmat, table: Path, here: Path) -> None:
    assert lcmat("select", table, "--epochs", "1", "--fraction", "0.1").status == 0
    (run,) = (here / "runs").iterdir()
    for arguments in (
        ("evaluate", run, *SHORT),
        ("curvature", run, "--no-pictures"),
        ("report", run),
        ("show", run),
        ("export", run),
    ):
        outcome = lcmat(*arguments)
        assert outcome.status == 0, outcome.err
    assert (run / "report.html").is_file()
    assert (run / "curvature.html").is_file()


@pytest.mark.parametrize(("command", "options"), [("dynamic", ()), ("continual", ("--steps", "3"))])
def test_comparisons(lcmat: Lcmat, table: Path, here: Path, command: str, options: tuple[str, ...]) -> None:
    outcome = lcmat(command, table, *SHORT, "--proxy-epochs", "1", *NET, *options)
    assert outcome.status == 0, outcome.err
    assert (here / "runs" / command / "report.html").is_file()


def test_condense(lcmat: Lcmat, images: Path, here: Path) -> None:
    outcome = lcmat("condense", images, "--method", "random", "--quick", "0")
    assert outcome.status == 0, outcome.err
    assert len(list((here / "runs").iterdir())) == 1


def test_studies(lcmat: Lcmat, table: Path, here: Path) -> None:
    Path("small.toml").write_text(TEXT.replace("nowhere", table.as_posix()), encoding="utf-8")
    outcome = lcmat("study", "small.toml")
    assert outcome.status == 0, outcome.err
    assert (here / "runs" / "small" / "report.html").is_file()
    outcome = lcmat("reproduce", "points", "--quick")
    assert outcome.status == 0, outcome.err
    assert len(list((here / "runs").iterdir())) == 2


def test_what_only_looks(lcmat: Lcmat, table: Path, here: Path) -> None:
    for arguments in (("list",), ("plan", table)):
        outcome = lcmat(*arguments)
        assert outcome.status == 0, outcome.err
    assert not list(here.iterdir())


def test_demo(lcmat: Lcmat, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.setattr(demo, "PROXY_EPOCHS", 1)
    assert lcmat("demo", "--seeds", "1").status == 0
    assert (here / "runs" / "demo" / "report.html").is_file()

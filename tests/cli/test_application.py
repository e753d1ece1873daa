import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer

import lcmat as library
from cli.commands import Lcmat
from lcmat.cli import application, parsing
from lcmat.cli.progress import Progress
from lcmat.selection import SELECTORS


def test_version_from_a_source_tree_that_is_not_installed(tmp_path: Path) -> None:
    source = Path(library.__file__).parents[1]
    found = subprocess.run(
        [sys.executable, "-m", "lcmat", "--version"],
        env={"PYTHONPATH": str(source)}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == f"lcmat {library.__version__}\n"


def test_a_code_page_without_our_characters_does_not_stop_a_command() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "lcmat", "list"],
        env={"PYTHONPATH": str(Path(library.__file__).parents[1]), "PYTHONIOENCODING": "cp437"},
        capture_output=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert b"handwritten digits of 8 \\xd7 8 pixels" in found.stdout


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom lcmat.cli import application\napplication.run(['--help'])\n"
        "sys.exit(bool({'torch', 'numpy', 'pyarrow', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("command", ["", *(command.name for command in application.app.registered_commands)])
def test_every_command_has_help(lcmat: Lcmat, command: str) -> None:
    outcome = lcmat(*command.split(), "--help")
    assert outcome.status == 0
    assert "Usage: lcmat" in outcome.out


def test_no_help_has_square_brackets_which_would_be_taken_for_markup() -> None:
    command = typer.main.get_command(application.app)
    for name, one in command.commands.items():  # type: ignore[attr-defined]
        for parameter in one.params:
            assert "[" not in (parameter.help or ""), f"{name}: {parameter.help}"


def test_list_names_methods_networks_and_sources(lcmat: Lcmat) -> None:
    outcome = lcmat("list")
    assert outcome.status == 0
    for name in [*library.selectors(), *library.nets(), *library.sources()]:
        assert f"  {name} " in outcome.out
    assert "rho=0.1" in outcome.out


def test_list_says_of_each_method_what_it_needs_and_costs_and_where_it_is_from(lcmat: Lcmat) -> None:
    lines = lcmat("list").out.splitlines()
    for entry in SELECTORS:
        start = next(place for place, line in enumerate(lines) if line.startswith(f"  {entry.name} "))
        needs, cost, reference = (line.strip() for line in lines[start + 1 : start + 4])
        assert needs.startswith(f"needs {', '.join(entry.facts.needs) or 'nothing'}")
        assert ("; weights;" in needs) == entry.facts.weighted
        assert needs.endswith("drawn by the seed" if entry.facts.random else "deterministic but for ties")
        assert ("and validation, where given" in needs) == (entry.name in {"gradmatch", "glister"})
        assert (cost, reference) == (f"cost: {entry.facts.cost}", f"source: {entry.facts.reference}")


def test_unknown_commands_are_wrong_use(lcmat: Lcmat) -> None:
    outcome = lcmat("selct")
    assert outcome.status == 2
    assert outcome.err.startswith("error: ")
    assert "selct" in outcome.err
    assert lcmat("select").status == 2


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ValueError("bad data"), 1, "error: bad data\n"),
        (TypeError("bad type"), 1, "error: bad type\n"),
        (RuntimeError("first line\nsecond line\nthird line"), 1, "error: first line\n"),
        (OSError(28, "No space left on device", "/a/b"), 1, "error: No space left on device: /a/b\n"),
        (MemoryError(), 1, "error: out of memory\n"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), 1, "error: out of memory\n"),
        (KeyboardInterrupt(), 130, "error: interrupted; give the same command again"),
        (parsing.WrongUseError("wrong"), 2, "error: wrong\n"),
    ],
)
def test_failures_are_told_without_a_traceback(
    lcmat: Lcmat, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, message: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("lcmat.selectors", fail, raising=False)
    outcome = lcmat("list")
    assert outcome.status == status
    assert outcome.err.startswith(message)
    assert "Traceback" not in outcome.err
    assert len(outcome.err.splitlines()) <= 2


def test_debugging_shows_the_traceback(lcmat: Lcmat, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("bad data")

    monkeypatch.setattr("lcmat.selectors", fail, raising=False)
    monkeypatch.setenv("LCMAT_DEBUG", "1")
    with pytest.raises(ValueError, match="bad data"):
        lcmat("list")


def test_main_exits_with_the_status_and_shows_warnings_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(application, "run", lambda arguments: warnings.warn("take care", stacklevel=1) or 7)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.raises(SystemExit) as stopped:
            application.main([])
    assert stopped.value.code == 7
    assert capsys.readouterr().err == "warning: take care\n"


def test_networks_in_a_list_keep_their_options() -> None:
    assert parsing.names("resnet18,convnet:width=32,depth=2, mlp") == ("resnet18", "convnet:width=32,depth=2", "mlp")
    assert parsing.names("") == ()


def test_progress_writes_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0.0, 1.0, 12.0, 13.0])
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    with Progress() as progress:
        for done in (0, 1, 6, 8):
            progress("training", done, 8)
    assert capsys.readouterr().err.splitlines() == [
        "training: 0 of 8",
        "training: 6 of 8, about 4 s left",
        "training: 8 of 8",
    ]


def test_progress_draws_a_bar_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress() as progress:
        for done in range(9):
            progress("training", done, 8)
    assert "8/8" in capsys.readouterr().err

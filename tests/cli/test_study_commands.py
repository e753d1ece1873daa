"""`lcmat study`, `lcmat reproduce` and pages of several folders."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import lcmat as package
from cli.commands import Lcmat
from report.html_checks import check_page

TEXT = """\
title = "By command"
seeds = 1
[data.table]
source = "nowhere"
[proxy]
net = "mlp:width=4"
epochs = 1
[training]
epochs = 2
[[grid]]
data = "table"
methods = ["uniform", "craig"]
fractions = [0.1]
nets = ["mlp:width=4"]
"""


def write(folder: Path, text: str = TEXT) -> Path:
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_study_runs_and_goes_on(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    file, out = write(tmp_path), tmp_path / "out"
    first = lcmat("study", file, "--data", f"table={table}", "--out", out, "--json")
    assert first.status == 0
    assert {row["name"] for row in first.json["rows"]} == {"uniform", "craig"}
    assert "cell 1 of 5" in first.err
    second = lcmat("study", file, "--data", f"table={table}", "--out", out, "--json")
    assert second.json == first.json
    assert "cell" not in second.err


def test_mistakes_in_a_file_are_wrong_use_and_all_are_named(lcmat: Lcmat, tmp_path: Path) -> None:
    outcome = lcmat("study", write(tmp_path, TEXT.replace("seeds", "sedes").replace('"craig"', '"kraig"')))
    assert outcome.status == 2
    assert "small.toml:2: sedes" in outcome.err
    assert "small.toml:12: grid.methods: unknown method 'kraig'" in outcome.err
    assert not (tmp_path / "out").exists()


def test_reproduce_lists_and_refuses(lcmat: Lcmat) -> None:
    listed = lcmat("reproduce", "--list")
    assert listed.status == 0
    assert len(listed.out.splitlines()) >= 9
    assert "robustness" in listed.out
    assert lcmat("reproduce").status == 2
    assert "did you mean rho" in lcmat("reproduce", "rhoo").err
    assert "NAME=VALUE" in lcmat("reproduce", "rho", "--data", "cifar10").err


def test_several_folders_become_one_page(lcmat: Lcmat, table: Path, table_run: Path, tmp_path: Path) -> None:
    study, evaluation, page = tmp_path / "study", tmp_path / "evaluation", tmp_path / "page.html"
    assert lcmat("study", write(tmp_path), "--data", f"table={table}", "--out", study).status == 0
    evaluate = ("evaluate", table_run, "--same-subset", "--seeds", 1, "--epochs", 1, "--nets", "mlp:width=4")
    assert lcmat(*evaluate, "--out", evaluation).status == 0
    outcome = lcmat("report", study, evaluation, "--out", page)
    assert (outcome.status, outcome.out) == (0, f"report: {page}\n")
    html = page.read_text(encoding="utf-8")
    check_page(html)
    assert "By command: Results" in html
    assert "Subsets of table.npz: Results" in html
    assert lcmat("report", study).out == f"report: {study / 'report.html'}\n"
    assert lcmat("report", tmp_path).status == 1


def test_time_and_processes_can_be_limited(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    command = ("study", write(tmp_path), "--data", f"table={table}", "--out", tmp_path / "out")
    outcome = lcmat(*command, "--workers", "auto", "--device", "cpu", "--minutes", 1e-9, "--json")
    assert outcome.status == 0
    assert outcome.json["cells"] == {"done": 0, "total": 5}
    assert "0 of 5 cells are done; give the same command again for the rest" in outcome.err
    assert "cell 1 of 5" not in outcome.err
    shared = lcmat(*command, "--workers", 2)
    assert shared.status == 0
    assert "of 5 cells done: 2 processes" in shared.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workers", "many"), "--workers takes a whole number from 1, or auto, got 'many'"),
        (("--workers", "0"), "--workers takes a whole number from 1, or auto, got '0'"),
        (("--minutes", "-1"), "expected minutes of 0 or more, got -1.0"),
    ],
)
def test_wrong_limits_are_wrong_use(lcmat: Lcmat, tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    outcome = lcmat("study", write(tmp_path), "--out", tmp_path / "out", *options)
    assert outcome.status == 2
    assert words in outcome.err
    assert not (tmp_path / "out").exists()


def test_some_named_studies_cannot_be_shared(lcmat: Lcmat) -> None:
    assert "commands without --workers and --minutes, select" in lcmat("reproduce", "bound", "--workers", 2).err
    assert "its results, and processes" in lcmat("reproduce", "wall-clock", "--workers", 2).err


def test_workers_and_minutes_reach_the_commands_of_a_named_study(lcmat: Lcmat, tmp_path: Path) -> None:
    arguments = ("reproduce", "continual", "--quick", "--out", tmp_path / "out")
    assert lcmat(*arguments, "--minutes", "0").status == 0
    assert not (tmp_path / "out" / "cells").exists()
    outcome = lcmat(*arguments, "--workers", "2", "--minutes", "9")
    assert outcome.status == 0
    assert "Up to 2 processes shared the machine" in outcome.out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "--workers 2" in page
    assert "--minutes" not in page  # which would stop who repeats it


def test_cells_that_failed_are_all_named(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    file = write(tmp_path, TEXT.replace("epochs = 2", "epochs = 2\nlr = 1e30"))
    outcome = lcmat("study", file, "--data", f"table={table}", "--out", tmp_path / "out")
    assert outcome.status == 1
    assert "2 of 5 cells failed, 3 are done:" in outcome.err
    assert outcome.err.count("\ntrain-table-") == 2


@pytest.mark.slow
def test_two_processes_share_a_study(table: Path, tmp_path: Path) -> None:
    file, out = write(tmp_path, TEXT.replace("seeds = 1", "seeds = 8")), tmp_path / "out"
    command = [sys.executable, "-m", "lcmat", "study", str(file), "--data", f"table={table}", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        for _ in range(3)
    ]
    processes[0].kill()  # wherever it is
    assert [process.wait(timeout=300) for process in processes][1:] == [0, 0]
    records = (out / "records.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = Counter(path.name.split("-")[0] for path in (out / "cells").iterdir())
    assert kinds == {"proxy": 8, "choose": 16, "train": 16}
    assert len(records) == 16
    assert not any((out / "locks").iterdir())

"""The recipe that asks whether a smaller bound goes with a higher accuracy, on a small table."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import write_table
from lcmat import files

ROOT = Path(__file__).parents[2]


def run(source: Path, out: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    small = "--net mlp:width=4 --methods uniform,herding --fractions 0.1,0.2 --proxies 2 --proxy-epochs 1 --epochs 1"
    command = [sys.executable, str(ROOT / "recipes" / "curvature_and_accuracy.py"), "--data", str(source)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, *small.split(), "--seeds", "1", "--out", str(out), *more],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    folder = tmp_path_factory.mktemp("recipe")
    source = write_table(folder / "table.npz")
    outcome = run(source, folder / "out")
    assert outcome.returncode == 0, outcome.stderr
    return source, folder / "out", outcome.stdout


def test_every_cell_has_both_terms_and_the_eigenvalue_of_both_scopes(done: tuple[Path, Path, str]) -> None:
    _, out, told = done
    with (out / "cells.csv").open(encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == 2 * 2 * 2
    for cell in cells:
        for scope in ("head", "all"):
            curvature, largest = float(cell[f"curvature_term_{scope}"]), float(cell[f"lambda_magnitude_{scope}"])
            assert curvature == pytest.approx(0.1 / 2 * largest)
            assert float(cell[f"bound_{scope}"]) == pytest.approx(curvature + float(cell[f"gradient_term_{scope}"]))
    heads = [name.strip() for name in told.splitlines()[0].split("|")]
    assert {"lambda_magnitude_head", "lambda_magnitude_all", "gradient_term_all"} <= set(heads)


def test_correlations_are_taken_within_each_fraction(done: tuple[Path, Path, str]) -> None:
    with (done[1] / "correlations.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["fraction"] for row in rows} == {"0.1", "0.2"}
    assert {row["n"] for row in rows} == {"4"}


def test_it_goes_on_with_what_is_missing_and_refuses_another_plan(done: tuple[Path, Path, str]) -> None:
    source, out, _ = done
    before = files.read_json_lines(out / "cells.jsonl")
    again = run(source, out)
    assert again.returncode == 0, again.stderr
    assert files.read_json_lines(out / "cells.jsonl") == before
    other = run(source, out, "--rho", "0.5")
    assert other.returncode == 2
    assert "cells of another plan" in other.stderr

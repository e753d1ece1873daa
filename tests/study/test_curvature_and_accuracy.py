"""The recipe that asks whether a smaller bound goes with a higher accuracy, on a small table."""

import csv
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import lcmat
from cli.commands import write_table
from landscape.cases import subset_of
from lcmat import files
from lcmat.landscape.gap import Gap
from lcmat.landscape.network_gap import NetworkGap
from lcmat.study import bound
from lcmat.study.bound import Plan, Point, measure_cells, measure_head, measure_network, read_cells
from lcmat.study.bound_page import correlate, statements
from lcmat.study.locks import locked
from samples import digits_like

ROOT = Path(__file__).parents[2]
PLAN = Plan(
    data="", net="mlp:width=4", methods=("uniform", "herding"), fractions=(0.1, 0.2), proxies=2, proxy_epochs=1,
    seeds=1, epochs=1, rho=0.1, samples=50, products=60, tolerance=1e-4, precision="auto", batch_size=2048,
)  # fmt: skip


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
    outcome = run(source, folder / "out", "--workers", "2")
    assert outcome.returncode == 0, outcome.stderr
    return source, folder / "out", outcome.stdout


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_cell_has_both_terms_and_the_eigenvalue_of_both_scopes(done: tuple[Path, Path, str]) -> None:
    cells = read_csv(done[1] / "bound" / "cells.csv")
    assert len({(cell["proxy"], cell["method"], cell["fraction"]) for cell in cells}) == len(cells) == 2 * 2 * 2
    for cell in cells:
        for scope in ("head", "all"):
            curvature, largest = float(cell[f"curvature_term_{scope}"]), float(cell[f"lambda_magnitude_{scope}"])
            assert curvature == pytest.approx(0.1 / 2 * largest)
            assert float(cell[f"bound_{scope}"]) == pytest.approx(curvature + float(cell[f"gradient_term_{scope}"]))


def test_correlations_are_taken_within_each_fraction(done: tuple[Path, Path, str]) -> None:
    rows = read_csv(done[1] / "bound" / "correlations.csv")
    assert {row["fraction"] for row in rows} == {"0.1", "0.2"}
    assert {row["n"] for row in rows} == {"4"}


def test_the_page_states_what_was_found_and_its_files_are_there(done: tuple[Path, Path, str]) -> None:
    page = (done[1] / "bound.md").read_text(encoding="utf-8")
    for words in (
        "### Last layer, 10 %",
        "### Whole network, 20 %",
        "| herding |",
        "--workers 2",
        "products in float32",
    ):
        assert words in page
    assert max(len(line) for line in page.splitlines() if not line.startswith(("|", "python"))) <= 130
    for name in ("cells.csv", "cells.jsonl", "correlations.csv", "bound.svg"):
        assert f"(bound/{name})" in page
    assert ET.parse(done[1] / "bound" / "bound.svg").getroot().tag.endswith("svg")
    assert done[2].count("rank correlation") == 4


def test_the_page_is_made_again_of_recorded_cells_alone(done: tuple[Path, Path, str]) -> None:
    source, out, _ = done
    before = (out / "bound.md").read_bytes(), (out / "bound" / "bound.svg").read_bytes()
    (out / "bound.md").unlink()
    again = run(source.with_name("gone.npz"), out, "--page")
    assert again.returncode == 0, again.stderr
    assert ((out / "bound.md").read_bytes(), (out / "bound" / "bound.svg").read_bytes()) == before


def test_a_page_can_be_made_of_some_cells(done: tuple[Path, Path, str], tmp_path: Path) -> None:
    files.write_text(tmp_path / "plan.json", (done[1] / "plan.json").read_text(encoding="utf-8"))
    for proxy in range(2):
        lines = (done[1] / f"cells-{proxy}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        files.write_text(tmp_path / f"cells-{proxy}.jsonl", "".join(lines[: 3 - proxy]))
    outcome = run(done[0], tmp_path, "--page")
    assert outcome.returncode == 0, outcome.stderr
    assert "3 cells are missing" in outcome.stdout
    page = (tmp_path / "bound.md").read_text(encoding="utf-8")
    assert "5 cells of the 8" in " ".join(page.split())
    assert "### Last layer, 10 %" in page
    assert "### Last layer, 20 %" not in page
    assert "of which some are missing" in " ".join(page.split())
    assert "Counted by methods" not in page


def test_it_goes_on_with_what_is_missing_and_refuses_another_plan(done: tuple[Path, Path, str]) -> None:
    source, out, _ = done
    records = out / "cells-1.jsonl"
    before = files.read_json_lines(records)
    files.write_text(records, records.read_text(encoding="utf-8").splitlines(keepends=True)[0])
    again = run(source, out)
    assert again.returncode == 0, again.stderr
    after = files.read_json_lines(records)
    assert after[0] == before[0]
    assert [without_times(cell) for cell in after] == [without_times(cell) for cell in before]
    other = run(source, out, "--rho", "0.5")
    assert other.returncode == 2
    assert "cells of another plan" in other.stderr


def without_times(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cell.items() if name != "seconds"}


def test_a_proxy_is_left_to_the_process_that_is_at_it(tmp_path: Path) -> None:
    data, said = digits_like(60), list[str]()
    splits = lcmat.Splits(train=data, test=data, name="digits")
    with locked(tmp_path / "proxy-0.lock"):
        measure_cells(PLAN, splits, tmp_path, [0, 1], said.append)
    assert {proxy for proxy, _, _ in read_cells(PLAN, tmp_path)} == {1}
    assert said[0] == "proxy 0: another process is at it"
    measure_cells(PLAN, splits, tmp_path, range(2), said.append)
    assert list(read_cells(PLAN, tmp_path)) == [*PLAN.keys(0), *PLAN.keys(1)]


def test_the_terms_are_those_of_a_curvature_report() -> None:
    data = digits_like(60)
    model = lcmat.train(PLAN.net, data, epochs=1, seed=0)
    point = Point.of(PLAN, model, data)
    subset = lcmat.select(point.signals, "herding", fraction=0.2)
    assert isinstance(subset, lcmat.Subset)
    plan = replace(PLAN, samples=60)
    report = lcmat.curvature(
        model, data, {"S": subset}, parameters=("head", "all"), samples=60, radii=(), pictures=False, baseline=False
    )
    for scope, found in (("head", measure_head(plan, point, subset)), ("all", measure_network(plan, point, subset))):
        terms = report.find("S", parameters=scope)
        assert found["gradient_term"] == pytest.approx(terms.gradient, rel=1e-4)
        assert found["lambda_magnitude"] == pytest.approx(terms.spectrum.magnitude, rel=1e-3)
        assert found["loss_gap"] == pytest.approx(terms.loss_gap, abs=1e-6)


def found_with(precision: str, device: str) -> dict[str, Any]:
    """The whole network's terms, as a process measures them that was asked for this precision."""
    data = digits_like(60, size=32)
    model = lcmat.train("convnet:width=8", data, epochs=2, seed=0, device=device, precision="float32")
    point = Point.of(replace(PLAN, precision="float32"), model, data)
    subset = subset_of(data, [0, 3, 9, 30])
    return measure_network(replace(PLAN, samples=40), replace(point, precision=precision), subset)


def test_vectors_of_a_rounded_search_are_judged_by_further_products(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = found_with("float32", "cpu")
    products = list[int]()
    judged = bound._by_quotient

    def watched(gap: Gap, vectors: torch.Tensor) -> tuple[list[float], list[float]]:
        products.append(len(vectors))
        return judged(gap, vectors)

    monkeypatch.setattr(bound, "_by_quotient", watched)
    other = found_with("tf32", "cpu")  # which rounds nothing there
    assert products == [2]
    for name in ("lambda_max", "lambda_min", "gradient_term", "bound"):
        assert other[name] == pytest.approx(plain[name], rel=1e-3)
    assert other["lambda_max_residual"] < 0.01 * other["lambda_magnitude"]


@pytest.mark.gpu
def test_tf32_finds_the_eigenvalues_of_float32() -> None:
    plain, rounded = (found_with(precision, "cuda") for precision in ("float32", "tf32"))
    for name in ("lambda_max", "lambda_min", "gradient_term"):
        assert rounded[name] == pytest.approx(plain[name], rel=0.02)


def test_eigenvalues_and_residuals_of_rounded_vectors_are_those_of_exact_products() -> None:
    data = digits_like(30)
    model = lcmat.train("mlp:width=3", data, epochs=1, seed=0).double()
    coefficients = torch.full((30,), 1 / 30, dtype=torch.float64)
    coefficients[:5] -= 1 / 5
    gap = NetworkGap(model, data, data.labels, coefficients, torch.device("cpu"))
    hessian = torch.stack([gap.product(unit) for unit in torch.eye(gap.size, dtype=torch.float64)])
    vectors = torch.linalg.eigh(hessian)[1][:, [-1, 0]].T
    moved = vectors + 1e-2 * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0)).double()
    ends, residuals = bound._by_quotient(gap, moved)
    for vector, end, residual in zip(moved, ends, residuals, strict=True):
        unit = vector / vector.norm()
        assert end == pytest.approx(float(unit @ hessian @ unit), rel=1e-9)
        assert residual == pytest.approx(float((hessian @ unit - end * unit).norm()), rel=1e-6)


def test_the_correlation_within_proxies_leaves_out_what_tells_them_apart() -> None:
    plan = replace(PLAN, methods=tuple("abcd"), fractions=(0.1,))
    quantities = [f"{name}_{scope}" for scope in bound.SCOPES for name in
                  ("gradient_term", "curvature_term", "bound", "lambda_max", "lambda_min")]  # fmt: skip
    cells = [
        {"proxy": proxy, "method": method, "fraction": 0.1, "accuracy": 10 * proxy - place}
        | dict.fromkeys(quantities, 10 * proxy + place)
        for proxy in range(2)
        for place, method in enumerate(plan.methods)
    ]
    rows = correlate(plan, cells)
    assert all(row["within_proxies"] == -1 and row["spearman"] > 0 for row in rows)
    words = list(statements(rows))
    assert [sentence.split(":")[0] for sentence in words] == ["**10 %, last layer**", "**10 %, whole network**"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--methods", "uniform,foo"), "unknown method 'foo'"),
        (("--net", "foo"), "unknown network 'foo'"),
        (("--fractions", "a"), "could not convert string to float: 'a'"),
        (("--only-proxies", "1,2"), "expected proxies from 0 to 1, got 2"),
        (("--page",), "expected a JSON file at"),
    ],
)
def test_what_cannot_be_is_said_in_a_line_before_anything_is_done(
    more: tuple[str, ...], words: str, done: tuple[Path, Path, str], tmp_path: Path
) -> None:
    outcome = run(done[0], tmp_path / "out", *more)
    assert outcome.returncode == 2
    assert words in outcome.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()

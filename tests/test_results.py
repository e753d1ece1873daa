"""The results pages say what the data beside them say, and the folders beside them give that data again."""

import csv
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lcmat.cli import app
from lcmat.study.bound import Plan, read_cells
from lcmat.study.bound_page import write_results

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = sorted(
    path.parent for path in RESULTS.glob("*/results.csv") if "mean" in path.read_text("utf-8").partition("\n")[0]
)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def unpack(name: str, folder: Path) -> Path:
    with tarfile.open(RESULTS / name / "study.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("folder", PAGES, ids=lambda folder: str(folder.name))
def test_a_page_has_every_mean_of_its_rows(folder: Path) -> None:
    page = folder.with_suffix(".md").read_text("utf-8")
    for row in rows(folder / "results.csv"):
        spread = f" ± {100 * float(row['sd']):.1f}" if row["sd"] else ""
        shown = f"{100 * float(row['mean']):.1f}{spread} ({row['n']})"
        assert shown in page, f"{row['name']} at {row['amount']}: {shown}"


def test_the_page_of_times_has_every_time_of_its_rows() -> None:
    page = (RESULTS / "wall-clock.md").read_text("utf-8")
    for row in rows(RESULTS / "wall-clock" / "results.csv"):
        total, paper = float(row["in_all"]), float(row["paper"])
        assert total == pytest.approx(sum(float(row[part]) for part in ("proxy", "extract", "select")))
        shown = f"{total:.1f}" if total > 1 else f"{total:.4f}"
        line = f"| {row['method']} | {100 * float(row['amount']):g} % | {shown} | "
        [found] = [text for text in page.splitlines() if text.startswith(line)]
        assert found.endswith(f" | {paper:,.2f} | {paper / total:.0f} |")


@pytest.mark.parametrize("archive", sorted(RESULTS.glob("*/*.tar.gz")), ids=lambda path: str(path.parent.name))
def test_what_is_handed_on_tells_nothing_of_a_machine_s_folders(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        for member in opened.getmembers():
            if member.name.endswith((".json", ".jsonl")) and (file := opened.extractfile(member)):
                assert b'"/' not in file.read(), member.name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("small-shares", "small-shares"),
        ("rho", "rho"),
        ("cross-architecture", "cross-architecture-tiny-imagenet"),
        ("wall-clock", "wall-clock"),
    ],
)
def test_a_study_s_folder_gives_its_rows_again(name: str, recipe: str, tmp_path: Path, lcmat_data: Path) -> None:
    out = unpack(name, tmp_path)
    asked = ["study", str(ROOT / "recipes" / f"{recipe}.toml"), "--out", str(out), "--minutes", "0"]
    outcome = CliRunner().invoke(app, asked, env={"LCMAT_DATA": str(lcmat_data)})
    assert outcome.exit_code == 0, outcome.output
    if name != "wall-clock":
        for file in ("results.csv", "records.jsonl"):
            assert (out / file).read_text("utf-8") == (RESULTS / name / file).read_text("utf-8")
        return
    kept = rows(RESULTS / name / "results.csv")
    times = json.loads((out / "results.json").read_text("utf-8"))["times"]
    assert [time["select"] for time in times] == [float(row["select"]) for row in kept]


def test_the_cells_of_the_bound_give_its_tables_again(tmp_path: Path) -> None:
    folder = unpack("bound", tmp_path)
    written = json.loads((folder / "plan.json").read_text("utf-8"))
    fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in written["plan"].items()}
    plan = Plan(**fields)
    page = write_results(plan, list(read_cells(plan, folder).values()), folder, written["told"]).read_text("utf-8")
    for file in ("cells.csv", "correlations.csv", "by_methods.csv"):
        assert rows(folder / "bound" / file) == rows(RESULTS / "bound" / file)
    table = [line for line in page.splitlines() if line.startswith("| ") and any(map(str.isdigit, line))]
    shown = (RESULTS / "bound.md").read_text("utf-8").replace(", incomplete |", " |").splitlines()
    assert len(table) > 20
    assert set(table) <= set(shown)

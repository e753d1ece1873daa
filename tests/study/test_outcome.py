"""What a study says in the end, from a study that trains within a blink."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.commands import write_images, write_table
from lcmat import files, runtime
from lcmat.report import Curves, Facts, Gallery, HeatMap, Stacks, Table, render
from lcmat.study.duels import duels
from lcmat.study.pipeline import Machine
from lcmat.study.run_study import Asked, describe_again, run_study
from lcmat.study.study_folder import StudyFolder
from lcmat.study.study_page import as_text, describe_study
from lcmat.study.terms import Terms
from report.doc_checks import check_columns
from report.html_checks import check_page

TEXT = """\
title = "Small"
seeds = 2
show = ["heat map", "sensitivity"]
paper = "small"
[data.table]
source = "nowhere"
[proxy]
net = "mlp:width=4"
epochs = 1
[training]
epochs = 2
weighted = ["craig"]
[[grid]]
data = "table"
methods = ["uniform", "craig", "lcmat-s:rho=0", "lcmat-s:rho=0.5"]
fractions = [0.1, 0.2]
nets = ["mlp:width=4"]
full = true
"""


def ask(folder: Path, text: str, source: Path) -> Asked:
    file = folder / "small.toml"
    file.write_text(text, encoding="utf-8")
    (folder / "paper").mkdir(exist_ok=True)
    values = "data,amount,method,net,value,sd\ntable,0.1,craig,mlp:width=4,50,1.5\ntable,1,full,mlp:width=4,90,\n"
    (folder / "paper" / "small.csv").write_text(values, encoding="utf-8")
    return Asked(file, sources={"table": str(source)})


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_table(folder / "table.npz")
    write_images(folder / "images.npz")
    return folder


def test_results_page_and_text_agree_with_the_records(workplace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome, page = run_study(ask(workplace, TEXT, workplace / "table.npz"), out, Machine())
    records = [json.loads(line) for line in (out / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(records) == 2 * (4 * 2 + 1)
    told = json.loads((out / "study.json").read_text(encoding="utf-8"))["study"]
    assert told["paper"] == "small.csv", "a folder that is handed on tells nothing of where it came from"
    with (out / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    check_columns(list(rows[0]), Path(__file__).parents[2] / "docs" / "studies.md")
    craig = next(row for row in rows if (row["name"], row["amount"]) == ("craig", "0.1"))
    accuracies = [r["accuracy"] for r in records if (r["name"], r["size"]) == ("craig", 6)]
    assert float(craig["mean"]) == pytest.approx(sum(accuracies) / 2)
    assert craig["baseline"] == "uniform"
    assert all(record["weighted"] == (record["name"] == "craig") for record in records)
    chosen = [record["chosen"] for record in records if record["name"] not in {"uniform", "full"}]
    assert all(
        (out / "sets" / origin["set"] / f"{origin['fraction']:g}" / "subset.json").is_file() for origin in chosen
    )
    assert {origin["proxy"]["epochs"] for origin in chosen} == {1}
    assert not any("proxy" in record.get("chosen", {}) for record in records if record["name"] in {"uniform", "full"})
    beside = {(line.method, line.amount): line for line in outcome.beside}
    assert beside["craig", 0.1].difference == pytest.approx(100 * sum(accuracies) / 2 - 50)
    assert beside["full", 1.0].paper == 90
    assert beside["craig", 0.2].paper is None
    assert "50.0 ± 1.5" in as_text(outcome)
    html = page.read_text(encoding="utf-8")
    check_page(html)
    for words in ("Beside the paper", "Method against method", "lcmat-s with rho", "Results: table"):
        assert words in html
    again = render(describe_again(out))
    assert again == html
    text = (out / "results.md").read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines() if line.startswith("| craig")]
    assert line.split(" | ")[1].startswith(f"{100 * float(craig['mean']):.1f} ± {100 * float(craig['sd']):.1f} (2)<br>")
    assert line.count("|") == text.splitlines()[text.splitlines().index(line) - 2].count("|")
    assert "## Beside the paper" in text
    assert "| 50.0 ± 1.5 |" in text
    assert "- budget: " in text


def test_tests_after_each_epoch_are_asked_for_once_for_the_whole_study(workplace: Path, tmp_path: Path) -> None:
    plain, _ = run_study(ask(workplace, TEXT, workplace / "table.npz"), tmp_path / "plain", Machine())
    watched = TEXT.replace("seeds = 2", "seeds = 2\nreach = 0.4")
    outcome, page = run_study(ask(workplace, watched, workplace / "table.npz"), tmp_path / "out", Machine())
    assert plain.groups[0].report is not None
    assert outcome.groups[0].report is not None
    rows = outcome.groups[0].report.rows
    assert [row.mean for row in rows] == [row.mean for row in plain.groups[0].report.rows]
    assert all(row.oracle is not None and row.oracle >= row.mean for row in rows)
    assert all(row.reach == 0.4 for row in rows)
    assert all(len(record["curve"]) == 2 for record in outcome.records)
    assert "s to 40 %" in page.read_text(encoding="utf-8")
    assert not any("curve" in record for record in plain.records)


def remove(out: Path, cells: str) -> None:
    found = list((out / "cells").glob(f"{cells}.json"))
    assert found
    for path in found:
        path.unlink()


def test_what_is_there_of_an_unfinished_study_is_shown_with_its_n(workplace: Path, tmp_path: Path) -> None:
    out, asked = tmp_path / "out", ask(workplace, TEXT, workplace / "table.npz")
    whole, _ = run_study(asked, out, Machine())
    for gone in ("train-table-craig-0.1-*-seed-1-*", "train-table-uniform-0.2-*", "train-table-lcmat-s-rho=0-*"):
        remove(out, gone)
    outcome, page = run_study(asked, out, Machine(), Terms(minutes=1e-9))
    assert (outcome.done, outcome.total) == (whole.done - 1 - 2 - 4, whole.total)
    assert whole.groups[0].report is not None
    assert outcome.groups[0].report is not None
    before = {(row.name, row.size): row for row in whole.groups[0].report.rows}
    rows = {(row.name, row.size): row for row in outcome.groups[0].report.rows}
    assert set(before) - set(rows) == {("uniform", 12), ("lcmat-s:rho=0", 6), ("lcmat-s:rho=0", 12)}
    assert rows["lcmat-s:rho=0.5", 6] == before["lcmat-s:rho=0.5", 6]
    craig = rows["craig", 6]
    assert (craig.n, craig.wins + craig.ties + craig.losses, craig.verdict) == (1, 1, "one run")
    assert (rows["craig", 12].n, rows["craig", 12].baseline) == (2, "")
    html = page.read_text(encoding="utf-8")
    check_page(html)
    assert "Not finished" in (out / "results.md").read_text(encoding="utf-8")
    assert f"Not finished: {outcome.done} of {outcome.total} cells are done" in html
    again, _ = run_study(asked, out, Machine())
    assert again.groups[0].report is not None
    assert [row.mean for row in again.groups[0].report.rows] == [row.mean for row in before.values()]


def test_an_unfinished_study_of_choices_shows_those_that_were_made(workplace: Path, tmp_path: Path) -> None:
    text = TEXT.replace('nets = ["mlp:width=4"]\nfull = true', "").replace('weighted = ["craig"]\n', "")
    text = text.replace('show = ["heat map", "sensitivity"]\n', "")
    out, asked = tmp_path / "out", ask(workplace, text, workplace / "table.npz")
    run_study(asked, out, Machine())
    remove(out, "choose-table-craig-*-seed-1-*")
    outcome, page = run_study(asked, out, Machine(), Terms(minutes=1e-9))
    found = {(entry.name, entry.size): list(entry.by_seed) for entry in outcome.groups[0].entries}
    assert (found["craig", 6], found["uniform", 6]) == ([0], [0, 1])
    check_page(page.read_text(encoding="utf-8"))


def test_the_map_counts_wins_over_all_cases(workplace: Path, tmp_path: Path) -> None:
    text = TEXT.replace("epochs = 1\n[training]", "epochs = [1, 2]\n[training]").replace('paper = "small"\n', "")
    outcome, _ = run_study(ask(workplace, text, workplace / "table.npz"), tmp_path / "out", Machine())
    assert [group.proxy for group in outcome.groups] == ["epochs 1", "epochs 2"]
    found = duels(outcome.groups, "mlp:width=4", 0.1)
    assert len(found) == 12
    for (first, second), duel in found.items():
        assert duel.cases == 4
        assert duel.difference == pytest.approx(-found[second, first].difference)
        assert duel.wins + found[second, first].wins <= 4
    page = describe_study(outcome)
    wins = {name: sum(duel.wins for (first, _), duel in found.items() if first == name) for name, _ in found}
    best = max(wins, key=lambda name: wins[name])
    start = f"table, mlp:width=4, 10 % kept: {best} wins most often, {wins[best]} of 12 comparisons"
    assert any(sentence.startswith(start) for sentence in page.lead)
    blocks = [block for section in page.sections for block in section.blocks]
    assert sum(isinstance(block, HeatMap) for block in blocks) == 2
    assert sum(isinstance(block, Curves) for block in blocks) == 4
    table = next(block for block in blocks if isinstance(block, Table))
    assert [row[0] for row in table.rows] == ["epochs 1", "epochs 2"]


def test_times_are_of_every_choice_alone(workplace: Path, tmp_path: Path) -> None:
    text = TEXT.replace('nets = ["mlp:width=4"]\nfull = true', "").replace("seeds", "timed = true\nseeds")
    text = text.replace('weighted = ["craig"]\n', "").replace('show = ["heat map", "sensitivity"]\n', "")
    outcome, _ = run_study(ask(workplace, text, workplace / "table.npz"), tmp_path / "out", Machine())
    assert len(outcome.times) == 8
    uniform = next(time for time in outcome.times if time.method == "uniform")
    craig = next(time for time in outcome.times if time.method == "craig")
    assert uniform.proxy == 0 < craig.proxy
    assert craig.lowest <= craig.total <= craig.highest
    blocks = [block for section in describe_study(outcome).sections for block in section.blocks]
    assert sum(isinstance(block, Stacks) for block in blocks) == 2
    facts = dict(item for block in blocks if isinstance(block, Facts) for item in block.items)
    assert facts == {
        "proxy's net": "mlp:width=4",
        "proxy's epochs": "1",
        "proxy's batch size": "128",
        "proxy's lr": "0.1",
        "proxy's momentum": "0.9",
        "proxy's weight decay": "0.0005",
        "proxy's schedule": "constant",
        "proxy's optimizer": "sgd",
        **runtime.versions(),
    }
    shown = (tmp_path / "out" / "results.md").read_text(encoding="utf-8")
    assert all(f"- {name}: {value}" in shown for name, value in facts.items())


def test_all_settings_of_several_proxies_are_named_and_none_where_nothing_looked(
    workplace: Path, tmp_path: Path
) -> None:
    text = TEXT.replace("epochs = 1\n", "epochs = [1, 2]\n", 1)
    outcome, page = run_study(ask(workplace, text, workplace / "table.npz"), tmp_path / "out", Machine())
    assert outcome.proxies["proxy's epochs"] == "1; 2"
    assert "proxy&#39;s weight decay" in page.read_text(encoding="utf-8")
    alone = TEXT.replace('"craig", "lcmat-s:rho=0", "lcmat-s:rho=0.5"', "").replace('weighted = ["craig"]\n', "")
    alone = alone.replace('show = ["heat map", "sensitivity"]\n', "")
    outcome, page = run_study(ask(workplace, alone, workplace / "table.npz"), tmp_path / "alone", Machine())
    assert not outcome.proxies
    assert "proxy&#39;s" not in page.read_text(encoding="utf-8")


def test_pictures_and_the_first_classes(workplace: Path, tmp_path: Path) -> None:
    text = """\
title = "Pictures"
seeds = [3]
show = ["pictures"]
[data.images]
source = "nowhere"
classes = 1
[[grid]]
data = "images"
methods = ["uniform"]
fractions = 0.25
"""
    asked = Asked(ask(workplace, text, workplace).file, sources={"images": str(workplace / "images.npz")})
    outcome, _ = run_study(asked, tmp_path / "out", Machine())
    train = outcome.splits["images"].train
    assert (len(train), len(train.class_names)) == (20, 1)
    blocks = [block for section in describe_study(outcome).sections for block in section.blocks]
    [gallery] = [block for block in blocks if isinstance(block, Gallery)]
    assert len(gallery.pictures[0].strips[0].images) == 5


def test_a_folder_with_something_else_is_left_alone(workplace: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(ValueError, match="is not empty and no study"):
        run_study(ask(workplace, TEXT, workplace / "table.npz"), tmp_path, Machine())
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_an_unknown_data_set_to_replace_is_named(workplace: Path, tmp_path: Path) -> None:
    asked = Asked(ask(workplace, TEXT, workplace).file, sources={"tabel": "x"})
    with pytest.raises(ValueError, match="has no data set 'tabel'; it has table"):
        run_study(asked, tmp_path / "out", Machine())


def test_other_test_samples_are_refused(workplace: Path, tmp_path: Path) -> None:
    source = tmp_path / "table.npz"
    write_table(source)
    asked, out = ask(workplace, TEXT.replace("seeds = 2", "seeds = 1"), source), tmp_path / "out"
    run_study(asked, out, Machine(), Terms(minutes=0.0))
    with np.load(source) as file:
        parts = dict(file)
    np.savez(source, **{**parts, "x_test": parts["x_test"] + 1})
    run_study(asked, out, Machine())  # nothing was judged by the old ones yet
    np.savez(source, **parts)
    for again in (lambda: run_study(asked, out, Machine()), lambda: describe_again(out)):
        with pytest.raises(ValueError, match=r"trainings on table in .* were judged by other test samples"):
            again()


def test_another_process_never_reads_half_a_description(
    workplace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the same command is given a second time while the processes of the first begin."""
    asked, written = ask(workplace, TEXT, workplace / "table.npz"), list[dict[str, str]]()
    run_study(asked, tmp_path, Machine(), Terms(minutes=0.0))
    write = files.write_json

    def watched(path: str | Path, value: Any) -> Path:
        found = write(path, value)
        if Path(path).name == "study.json":
            written.append(StudyFolder(tmp_path).read()[1])
        return found

    monkeypatch.setattr(files, "write_json", watched)
    run_study(asked, tmp_path, Machine(), Terms(minutes=0.0))
    assert written == [{"table": str(workplace / "table.npz")}]

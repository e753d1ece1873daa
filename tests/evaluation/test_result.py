"""What people read: table, headline and page, from records made by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation.cases import digits, pick
from lcmat import runtime
from lcmat.evaluation.page import class_accuracies
from lcmat.evaluation.plan import make_plan
from lcmat.evaluation.result import Report
from lcmat.evaluation.rows import make_rows
from lcmat.report import Table
from lcmat.types import FeatureData, Splits
from report.html_checks import Reader, check_page

# Against uniform: a wins every pair, b loses every pair, c does now this, now that.
ACCURACIES = {
    "a": [0.52, 0.74, 0.93],
    "b": [0.48, 0.66, 0.87],
    "c": [0.55, 0.69, 0.90],
    "uniform": [0.50, 0.70, 0.90],
    "full": [0.97, 0.98, 0.99],
}


def make_report(
    accuracies: Mapping[str, Sequence[float]] = ACCURACIES,
    *,
    sizes: Sequence[int] = (20,),
    nets: Sequence[str] = ("mlp",),
    data: Splits | None = None,
) -> Report:
    data = data or digits()
    runs = len(next(iter(accuracies.values())))
    subsets = {
        name: [pick(range(size), data=data) for size in sizes] for name in accuracies if name not in {"uniform", "full"}
    }
    entries = make_plan(data, subsets, seeds=range(runs), baseline=True, full="full" in accuracies, weighted=())
    records = [
        {
            "name": entry.name,
            "size": entry.size,
            "net": net,
            "seed": seed,
            "accuracy": accuracies[entry.name][seed],
            "seconds": {"train": 1.5, "test": 0.25},
        }
        for net in nets
        for entry in entries
        for seed in range(runs)
    ]
    return Report(
        rows=make_rows(entries, nets, records),
        records=records,
        protocol={"networks": list(nets), "budget": "2 epochs", "seeds": list(range(runs)), **runtime.versions()},
        notes=("a <note>",),
        data=data,
        entries=entries,
    )


def single(value: float = 0.5) -> dict[str, list[float]]:
    return {name: [value] for name in ("a", "uniform")}


def test_rows_hold_paired_differences_with_their_verdicts() -> None:
    rows = {row.name: row for row in make_report().rows}
    assert (rows["a"].wins, rows["a"].ties, rows["a"].losses) == (3, 0, 0)
    assert rows["a"].difference == pytest.approx(0.03)
    assert rows["a"].difference_low == pytest.approx(0.03 - 4.302653 * 0.01 / 3**0.5)
    assert [rows[name].verdict for name in ("a", "b", "c", "uniform")] == [
        "better than uniform",
        "worse than uniform",
        "not told apart",
        "",
    ]
    assert (rows["c"].wins, rows["c"].ties, rows["c"].losses) == (1, 1, 1)
    assert rows["full"].difference is None
    assert (rows["a"].seconds, rows["a"].test_seconds, rows["a"].n, rows["a"].subsets) == (1.5, 0.25, 3, 1)


def test_the_table_is_aligned_and_hides_no_loss() -> None:
    lines = make_report().table().splitlines()
    head = lines[2]
    body = lines[4:9]
    assert lines[0] == "small digits, mlp: test accuracy in % after the last epoch"
    assert [line[head.index("against") :] for line in body] == [
        "better than uniform",
        "worse than uniform",
        "not told apart",
        "–",
        "–",
    ]
    end = head.index("accuracy") + len("accuracy")
    assert [line[:end].split("  ")[-1].strip() for line in body] == [
        "73.0 ± 20.5",
        "67.0 ± 19.5",
        "71.3 ± 17.6",
        "70.0 ± 20.0",
        "98.0 ± 1.0",
    ]
    assert "budget: 2 epochs" in lines
    assert "note: a <note>" in lines


def test_the_table_names_networks_where_there_are_several() -> None:
    lines = make_report(nets=("mlp", "resnet18")).table().splitlines()
    assert lines[2].startswith("network")
    assert [line.split()[0] for line in lines[4:14]] == ["mlp"] * 5 + ["resnet18"] * 5


def test_the_headline_states_gains_and_losses_alike() -> None:
    assert make_report().headline() == (
        "a: better than uniform at 10 % (+3.0 points, interval +0.5 to +5.5, n = 3 trainings on one subset).",
        "b: worse than uniform at 10 % (−3.0 points, interval −5.5 to −0.5, n = 3 trainings on one subset).",
        "c: not told apart from uniform at 10 % (+1.3 points, interval −6.7 to +9.3, n = 3 trainings on one subset).",
        "Training on everything reaches 98.0 % with mlp.",
    )


def test_the_headline_counts_where_there_is_much_to_say() -> None:
    headline = make_report(sizes=(10, 20, 40), nets=("mlp", "resnet18")).headline()
    assert headline[0] == "a: better than uniform in 6 of 6 comparisons, worse in 0, not told apart in 0."
    assert headline[1] == "b: better than uniform in 0 of 6 comparisons, worse in 6, not told apart in 0."


def test_a_single_run_is_not_judged() -> None:
    report = make_report(single())
    assert report.headline() == ("a: not to be judged against uniform at 10 % (±0.0 points, in a single run).",)
    assert "50.0  " in report.table()


def test_the_report_as_json_values() -> None:
    found = make_report().as_dict()
    assert found["rows"][0]["name"] == "a"
    assert set(found) == {"rows", "records", "protocol", "notes"}


@pytest.mark.parametrize("sizes", [(20,), (10, 40)])
@pytest.mark.parametrize("nets", [("mlp",), ("mlp", "resnet18")])
def test_the_page_is_whole(tmp_path: Path, sizes: Sequence[int], nets: Sequence[str]) -> None:
    report = make_report(sizes=sizes, nets=nets)
    path = report.save_html(
        tmp_path / "deep" / "report.html", folders={"a": "runs/a"}, stages={"a": {"train": 3.2, "select": 0.1}}
    )
    reader = check_page(path.read_text(encoding="utf-8"))
    assert reader.inside("h2") == [
        "Results",
        "Notes",
        "What was picked",
        "Class counts",
        "How to use a subset",
        "How it was measured",
        "What was compared",
        "Seconds",
        "Versions and machine",
    ]
    assert "a <note>" in reader.inside("li")
    assert "worse than uniform" in reader.inside("td")
    charts = [figure for figure in reader.all("figure") if figure.get("class") == "chart"]
    assert len(charts) == (2 + len(sizes)) * len(nets)  # accuracies and differences, and the seconds of each size
    assert "subset = lcmat.load_subset('runs/a')" in reader.inside("code")[0]
    rows = [row for row in (3, 13) if row < sizes[0]]
    expected = f"a, class 3: {len(rows)} picked, all shown, rows {', '.join(map(str, rows))}"
    assert expected in [image["alt"] for image in reader.all("img")]


def test_the_lines_that_load_a_subset_run() -> None:
    from lcmat.evaluation.page import describe
    from lcmat.report import Code

    page = describe(make_report(), pictures=False, title="", folders={}, stages={})
    code = next(block.text for section in page.sections for block in section.blocks if isinstance(block, Code))
    compile(code, "report", "exec")


def test_pictures_can_be_left_out_and_vectors_have_none(tmp_path: Path) -> None:
    images = digits()

    def flat(part: Any) -> FeatureData:
        return FeatureData(part.images.flatten(1).float(), part.labels, part.class_names)

    vectors = Splits(flat(images.train), flat(images.test), "vectors")
    without = make_report().save_html(tmp_path / "a.html", pictures=False)
    of_vectors = make_report(data=vectors).save_html(tmp_path / "b.html")
    for path in (without, of_vectors):
        assert "<img" not in path.read_text(encoding="utf-8")


def test_many_picks_are_cut_to_the_first_ones_and_that_is_said(tmp_path: Path) -> None:
    html = make_report(sizes=(180,)).save_html(tmp_path / "a.html").read_text(encoding="utf-8")
    reader = check_page(html)
    zeros = (digits().train.labels[:180] == 0).nonzero().flatten().tolist()
    expected = f"a, class 0: {len(zeros)} picked, the first 10 shown, rows {', '.join(map(str, zeros[:10]))}"
    assert expected in [image["alt"] for image in reader.all("img")]
    assert f"10 of {len(zeros)}" in reader.inside("span")
    assert any("else the first 10 in pick order" in text for text in reader.inside("p"))


def test_names_of_the_user_cannot_break_the_page(tmp_path: Path) -> None:
    nasty = "<img src=x onerror=alert(1)>"
    accuracies = {nasty: [0.5, 0.6], "uniform": [0.5, 0.5]}
    reader = check_page(make_report(accuracies).save_html(tmp_path / "a.html").read_text(encoding="utf-8"))
    assert all(str(image["src"]).startswith("data:image/png") for image in reader.all("img"))
    assert nasty in reader.inside("td")


def test_a_page_of_a_hundred_classes_stays_small(tmp_path: Path) -> None:
    from lcmat.types import ImageData

    images = torch.randint(0, 256, (400, 3, 32, 32), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    names = tuple(f"class {place}" for place in range(100))
    part = ImageData(images, torch.arange(400) % 100, names)
    report = make_report(sizes=(200, 300), data=Splits(part, part, "noise"))
    path = report.save_html(tmp_path / "a.html")
    assert path.stat().st_size < 2_000_000
    assert "Of 100 classes the first 20 are shown." in path.read_text(encoding="utf-8")


def test_a_page_of_many_methods_stays_small(tmp_path: Path) -> None:
    from lcmat.types import ImageData

    images = torch.randint(0, 256, (400, 3, 32, 32), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    part = ImageData(images, torch.arange(400) % 10, tuple(map(str, range(10))))
    accuracies = {**{f"method {place}": [0.5] for place in range(13)}, "uniform": [0.5]}
    report = make_report(accuracies, sizes=(50, 100, 200, 300), data=Splits(part, part, "noise"))
    path = report.save_html(tmp_path / "a.html")
    assert path.stat().st_size < 2_000_000
    assert "Of 10 classes the first" in path.read_text(encoding="utf-8")


def test_each_class_has_its_mean_accuracy_over_the_runs() -> None:
    data = digits()
    tested = torch.bincount(data.test.labels, minlength=10).tolist()
    report = make_report({"a": [0.5, 0.6], "uniform": [0.4, 0.4], "full": [0.9, 0.9]}, sizes=(20, 30), data=data)
    for record in report.records:
        right = {"a": 1 + record["seed"], "uniform": 0, "full": 2}[record["name"]]
        record["right_per_class"] = [min(right, count) for count in tested]
    _, *tables = class_accuracies(report)
    assert [table.caption for table in tables if isinstance(table, Table)] == ["10 % kept", "15 % kept"]
    for table in tables:
        assert isinstance(table, Table)
        assert table.folded
        assert table.columns == ("class", "tested", "a", "uniform", "full")
        for place, row in enumerate(table.rows):
            cells = [f"{100 * right / tested[place]:.1f}" for right in (1.5, 0.0, 2.0)]
            assert row == (str(place), str(tested[place]), *cells)


def test_records_without_classes_give_no_table_of_them() -> None:
    assert class_accuracies(make_report()) == ()


def test_bars_add_up_what_comes_before_a_trained_network(tmp_path: Path) -> None:
    stages = {"a": {"load": 9.0, "train": 2.0, "extract": 0.5, "select": 1.0}}
    page = make_report(single()).save_html(tmp_path / "report.html", stages=stages).read_text(encoding="utf-8")
    assert "Seconds to a trained network, 10 % kept. a: 5 s; uniform: 1.5 s" in page


def test_commands_are_shown_where_they_are_known(tmp_path: Path) -> None:
    report = make_report(single())
    assert "How to repeat it" not in Reader(report.save_html(tmp_path / "a.html").read_text()).inside("h2")
    reader = Reader(report.save_html(tmp_path / "b.html", commands=["lcmat a", "lcmat b"]).read_text())
    assert "lcmat a\nlcmat b" in reader.inside("code")

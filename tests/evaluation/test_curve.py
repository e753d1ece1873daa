"""Tests after each epoch: the oracle's column and time to an accuracy, which change no result."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.cases import digits, pick
from lcmat import evaluate, training
from lcmat.evaluation import gather
from lcmat.evaluation.rows import texts
from lcmat.report import wording
from report.html_checks import check_page

QUICK: dict[str, Any] = {"nets": "mlp:width=16", "epochs": 6, "batch_size": 16, "seeds": (0, 1), "full": True}


def test_the_oracle_is_the_best_epoch_and_changes_nothing_else() -> None:
    data, sets = digits(), {"craig": pick(range(30))}
    plain, watched = evaluate(data, sets, **QUICK), evaluate(data, sets, oracle=True, **QUICK)
    assert [record["accuracy"] for record in plain.records] == [record["accuracy"] for record in watched.records]
    for record in watched.records:
        epochs, seconds, accuracies = zip(*record["curve"], strict=True)
        assert epochs == (1, 2, 3, 4, 5, 6)
        assert list(seconds) == sorted(seconds)
        assert accuracies[-1] == record["accuracy"]
    for row in watched.rows:
        own = [r for r in watched.records if (r["name"], r["size"]) == (row.name, row.size)]
        assert row.oracle == pytest.approx(sum(max(a for _, _, a in r["curve"]) for r in own) / 2)
        assert row.oracle is not None
        assert row.oracle >= row.mean
    assert all(row.oracle is None for row in plain.rows)
    assert "oracle" not in texts(plain.rows)[0]
    assert "oracle" in texts(watched.rows)[0]
    assert "no result" in watched.protocol["oracle"]
    assert "oracle" not in plain.protocol


def test_a_point_of_the_curve_is_what_a_shorter_training_at_a_constant_rate_gives() -> None:
    data, sets = digits(), {"craig": pick(range(30))}
    common: dict[str, Any] = {"nets": "mlp:width=16", "seeds": [0], "schedule": "constant", "baseline": False}
    long = evaluate(data, sets, epochs=4, oracle=True, **common)
    for epoch in (1, 2, 3):
        short = evaluate(data, sets, epochs=epoch, **common)
        assert long.records[0]["curve"][epoch - 1][2] == short.rows[0].mean


def test_time_to_an_accuracy_stands_beside_that_of_everything(tmp_path: Path) -> None:
    report = evaluate(digits(), {"craig": pick(range(30))}, reach=0.6, **QUICK)
    rows = {row.name: row for row in report.rows}
    for row in rows.values():
        curves = [r["curve"] for r in report.records if (r["name"], r["size"]) == (row.name, row.size)]
        firsts = [next((s for _, s, a in curve if a >= 0.6), None) for curve in curves]
        known = [first for first in firsts if first is not None]
        assert row.reached == len(known)
        assert row.reach_seconds == (pytest.approx(sum(known) / len(known)) if known else None)
    assert rows["full"].reached == 2
    line = next(cells for cells in texts(report.rows) if cells["trained on"] == "full")
    assert line["s to 60 %"] not in {"", "not reached"}
    assert "s to 60 %" in report.table()
    stages = {"craig": {"load": 9.0, "train": 2.0, "extract": 1.0, "select": 0.5}}
    page = report.save_html(tmp_path / "a.html", stages=stages).read_text(encoding="utf-8")
    reader = check_page(page)
    assert any(heading.startswith("s to 60 %") for heading in reader.inside("th"))
    assert "Seconds to a test accuracy of 60" in page
    craig = rows["craig"].reach_seconds
    if craig is not None:
        assert wording.seconds(3.5 + craig) in reader.inside("td")


def test_what_is_not_reached_is_said() -> None:
    report = evaluate(digits(), {"craig": pick(range(30))}, reach=1.0, **{**QUICK, "epochs": 1, "full": False})
    assert {row["s to 100 %"] for row in texts(report.rows)} == {"not reached"}
    with pytest.raises(ValueError, match="reach as an accuracy above 0 and at most 1, got 60"):
        evaluate(digits(), {"craig": pick(range(30))}, reach=60, **QUICK)


def test_records_without_a_curve_are_trained_again_only_where_one_is_asked_for(tmp_path: Path) -> None:
    data, sets, records = digits(), {"craig": pick(range(30))}, tmp_path / "records.jsonl"
    first = evaluate(data, sets, records=records, **QUICK)
    watched = evaluate(data, sets, records=records, oracle=True, **QUICK)
    assert [json.loads(line) for line in records.read_text().splitlines()] == [*first.records, *watched.records]
    again = evaluate(data, sets, records=records, reach=0.5, **QUICK)
    assert any("6 of 6 trainings were done before" in note for note in again.notes)
    assert [row.oracle for row in again.rows] == [row.oracle for row in watched.rows]


def test_gathered_records_say_the_same() -> None:
    data, sets = digits(), {"craig": pick(range(30))}
    whole = evaluate(data, sets, oracle=True, reach=0.6, **{**QUICK, "full": False, "baseline": False})
    found = gather(data, sets, whole.records, nets=["mlp:width=16"], seeds=[0, 1], oracle=True, reach=0.6)
    assert found.rows == whole.rows
    assert found.protocol == whole.protocol


def test_the_network_can_be_looked_at_after_each_epoch() -> None:
    seen: list[tuple[int, float]] = []
    training.train("mlp", digits().train, epochs=3, after_epoch=lambda epoch, seconds, _: seen.append((epoch, seconds)))
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert 0 < seen[0][1] < seen[1][1] < seen[2][1]

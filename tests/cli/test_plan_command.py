from pathlib import Path

import pytest

from cli.commands import Lcmat
from lcmat.study import plan as planning


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SAMPLE_SECONDS", 0.002)
    monkeypatch.setattr(planning, "MOST_STEPS", 4)


def test_defaults_say_time_and_memory_of_every_part(lcmat: Lcmat, table: Path) -> None:
    outcome = lcmat("plan", table)
    assert outcome.status == 0, outcome.err
    for part in ("proxy (mlp, 10 epochs): ", "extraction: ", "selection (auto): ", "in all, 6 seeds: ", " GB"):
        assert part in outcome.out
    assert "table.npz: 60 train, 30 test" in outcome.err


def test_json_holds_the_parts_and_their_total(lcmat: Lcmat, table: Path) -> None:
    found = lcmat("plan", table, "--seeds", "2", "--train-epochs", "3", "--full", "--json").json
    assert set(found) == {"proxy", "extract", "select", "trainings", "seeds", "memory", "notes", "total"}
    parts = [found[name] for name in ("proxy", "extract", "select", "trainings")]
    assert min(parts) > 0
    assert found["total"] == pytest.approx(2 * sum(parts))


def test_data_are_read_as_select_reads_them(lcmat: Lcmat, tmp_path: Path) -> None:
    rows = "".join(f"{i},{i * i},{'xy'[i % 2]}\n" for i in range(40))
    (tmp_path / "points.csv").write_text(f"a,b,kind\n{rows}", encoding="utf-8")
    outcome = lcmat("plan", tmp_path / "points.csv", "--label", "kind", "--test-fraction", "0.5", "--seeds", "0")
    assert outcome.status == 0, outcome.err
    assert "points.csv: 20 train, 20 test, 2 features" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fraction", "0"], "--fraction takes shares above 0 and at most 1, got 0"),
        (["--epochs", "0"], "expected at least 1 epoch"),
        (["--net", "resnet1"], "unknown network 'resnet1'"),
        (["--nets", "mlp,resnet1"], "unknown network 'resnet1'"),
        (["--method", "lcmat"], "unknown method 'lcmat'; did you mean 'lcmat-s'"),
        (["--method", "lcmat-s", "--set", "roh=1"], "unknown option of lcmat-s 'roh'"),
        (["--device", "tpu"], "expected a device such as 'cpu'"),
    ],
)
def test_wrong_use_is_answered_before_anything_is_read(lcmat: Lcmat, arguments: list[str], message: str) -> None:
    outcome = lcmat("plan", "absent.npz", *arguments)
    assert outcome.status == 2
    assert message in outcome.err

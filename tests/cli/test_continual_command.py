from pathlib import Path

import pytest

from cli.commands import Lcmat, check_workers_and_minutes
from lcmat import files

SMALL = ("--epochs", "2", "--proxy-epochs", "1", "--seeds", "2", "--net", "mlp:width=4", "--condense-steps", "2")


def test_it_compares_and_goes_on(lcmat: Lcmat, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (
        "continual", table, "--steps", "2", "--total", "9", "--fill", "lcmat-s,uniform,dm", "--set", "lcmat-s.rho=0.5",
        *SMALL, "--out", tmp_path / "out",
    )  # fmt: skip
    outcome = lcmat(*arguments, "--json")
    assert outcome.status == 0
    assert [row["name"] for row in outcome.json["rows"]] == ["lcmat-s", "uniform", "dm"]
    assert len(files.read_json_lines(tmp_path / "out" / "records.jsonl")) == 3 * 2 * 2
    assert {record["memory"] for record in outcome.json["records"]} == {9}

    def forbid(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("lcmat.training.train", forbid)
    again = lcmat(*arguments)
    assert again.out.splitlines()[-1] == f"report: {tmp_path / 'out' / 'report.html'}"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Selection methods" in page
    assert "Condensation methods" in page


def test_workers_and_minutes(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    check_workers_and_minutes(lcmat, tmp_path / "out", "continual", table, *SMALL, "--steps", "2")


def test_the_data_is_read_as_asked(lcmat: Lcmat, images: Path, tmp_path: Path) -> None:
    quick = ("--steps", "2", "--fill", "uniform", "--epochs", "1", "--seeds", "1", "--net", "mlp:width=4")
    outcome = lcmat("continual", images, *quick, "--resize", "4", "--out", tmp_path / "out")
    assert outcome.status == 0, outcome.err
    assert "3 × 4 × 4 images" in outcome.err
    wrong = lcmat("continual", images, *quick, "--test-fraction", "1.5", "--out", tmp_path / "other")
    assert (wrong.status, "--test-fraction takes a share" in wrong.err) == (2, True)


@pytest.mark.parametrize("protocol", ["memory", "replay"])
def test_it_runs_on_digits(lcmat: Lcmat, tmp_path: Path, protocol: str) -> None:
    outcome = lcmat(
        "continual", "digits", "--protocol", protocol, "--epochs", "2", "--seeds", "1", "--net", "convnet:width=4",
        "--proxy-epochs", "1", "--out", tmp_path,
    )  # fmt: skip
    assert outcome.status == 0
    assert "per class: 10" in outcome.out


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--fill", "lcmat-x"), 2, "unknown method 'lcmat-x'"),
        (("--steps", "4"), 1, "expected 1 to 3 steps"),
        (("--per-class", "0"), 2, "at least 1, got 0"),
        (("--total", "2", "--steps", "3"), 1, "a total of at least 3"),
        (("--set", "herding.x=1", "--fill", "uniform"), 2, "unknown option"),
        (("--set", "lcmat-s.rho=1", "--fill", "uniform"), 2, "which fill nothing here"),
        (("--protocol", "mine"), 2, "memory or replay"),
        (("--seeds", "0"), 2, "expected at least 1 seed, got 0"),
        (("--batch-size", "0"), 2, "batch_size of at least 1"),
        (("--augment", "crops"), 2, "expected augmentation of"),
        (("--net", "resnet19"), 2, "unknown network"),
        (("--workers", "0"), 2, "--workers takes a whole number from 1, or auto"),
        (("--minutes", "-1"), 2, "minutes of 0 or more"),
        (("--classes", "4"), 2, "expected 2 to 3 classes"),
        (("--classes", "2", "--steps", "3"), 1, "expected 1 to 2 steps"),
        (("--set", "rho=1"), 2, "FILL.OPTION=VALUE"),
        (("--set", "lcmat-s.roh=1"), 2, "unknown option"),
        (("--set", "dm.lr=fast"), 2, "option lr takes"),
        (("--device", "tpu"), 2, "expected a device"),
    ],
)
def test_mistakes_are_explained(
    lcmat: Lcmat, table: Path, tmp_path: Path, options: tuple[str, ...], status: int, message: str
) -> None:
    outcome = lcmat("continual", table, *SMALL, *options, "--out", tmp_path / "out")
    assert outcome.status == status
    assert message in outcome.err
    assert not (tmp_path / "out").exists()

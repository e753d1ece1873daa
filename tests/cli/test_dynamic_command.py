from pathlib import Path

import pytest

from cli.commands import Lcmat, check_workers_and_minutes
from lcmat import files

SMALL = ("--epochs", "2", "--proxy-epochs", "1", "--seeds", "2", "--net", "mlp:width=4")


def test_it_compares_and_goes_on(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    arguments = (
        "dynamic", table, "--methods", "static:craig,craig,random,infobatch", "--fraction", "0.2",
        "--every", "1,2", "--pool", "0.5,1", *SMALL, "--out", tmp_path / "out",
    )  # fmt: skip
    outcome = lcmat(*arguments, "--json")
    assert outcome.status == 0
    assert len(outcome.json["rows"]) == 1 + 2 * 2 + 1 + 1
    assert len(files.read_json_lines(tmp_path / "out" / "records.jsonl")) == len(outcome.json["records"]) == 14
    assert files.read_json(tmp_path / "out" / "results.json")["protocol"]["network"] == "mlp:width=4"
    again = lcmat(*arguments)
    assert "14 of 14 trainings were done before" in again.out
    assert again.out.splitlines()[-1] == f"report: {tmp_path / 'out' / 'report.html'}"
    assert "<html" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_options_reach_their_methods(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    outcome = lcmat(
        "dynamic", table, "--methods", "static:lcmat-s,lcmat-s,infobatch", "--fraction", "0.2", *SMALL,
        "--set", "lcmat-s.rho=0.5", "--set", "infobatch.prune=0.25", "--looks", "1", "--out", tmp_path / "out",
        "--json",
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    static, anew, pruned = (record["choose"] for record in outcome.json["records"][:3])
    assert static["rho"] == anew["rho"] == 0.5
    assert pruned == {"prune": 0.25}
    assert [len(record["curve"]) for record in outcome.json["records"][:3]] == [1, 1, 1]


def test_workers_and_minutes(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    check_workers_and_minutes(lcmat, tmp_path / "out", "dynamic", table, *SMALL, "--methods", "craig,random")


def test_the_data_is_read_as_asked(lcmat: Lcmat, images: Path, tmp_path: Path) -> None:
    quick = ("--methods", "random", "--fraction", "0.5", "--epochs", "1", "--seeds", "1", "--net", "mlp:width=4")
    outcome = lcmat("dynamic", images, *quick, "--resize", "4", "--out", tmp_path / "out")
    assert outcome.status == 0, outcome.err
    assert "3 × 4 × 4 images" in outcome.err
    wrong = lcmat("dynamic", images, *quick, "--test-fraction", "1.5", "--out", tmp_path / "other")
    assert (wrong.status, "--test-fraction takes a share" in wrong.err) == (2, True)


def test_it_runs_on_digits(lcmat: Lcmat, tmp_path: Path) -> None:
    outcome = lcmat("dynamic", "digits", *SMALL[:4], "--seeds", "1", "--net", "convnet:width=4", "--out", tmp_path)
    assert outcome.status == 0
    assert "lcmat-s, R = 5" in outcome.out


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--methods", "lcmat-x"), 2, "unknown method 'lcmat-x'"),
        (("--every", "0"), 2, "every of at least 1"),
        (("--every", "x"), 2, "--every takes a whole number"),
        (("--fraction", "2"), 2, "at most 1"),
        (("--pool", "0.01"), 2, "expected a pool of"),
        (("--device", "tpu"), 2, "expected a device"),
        (("--set", "rho=1"), 2, "METHOD.OPTION=VALUE"),
        (("--set", "infobatch.prune=1"), 2, "probability in [0, 1)"),
        (("--set", "lcmat-s.roh=1"), 2, "unknown option"),
        (("--set", "herding.x=1"), 2, "unknown option"),
        (("--seeds", "0"), 2, "expected at least 1 seed, got 0"),
        (("--looks", "0"), 2, "at least 1 look, got 0"),
        (("--lr", "0"), 2, "learning rate lr above 0"),
        (("--net", "resnet19"), 2, "unknown network"),
        (("--workers", "0"), 2, "--workers takes a whole number from 1, or auto"),
        (("--minutes", "-1"), 2, "minutes of 0 or more"),
        (("--weighted", "herding"), 2, "weights are asked for of herding"),
    ],
)
def test_mistakes_are_explained(
    lcmat: Lcmat, table: Path, tmp_path: Path, options: tuple[str, str], status: int, message: str
) -> None:
    outcome = lcmat("dynamic", table, *SMALL, *options, "--out", tmp_path / "out")
    assert outcome.status == status
    assert message in outcome.err
    assert not (tmp_path / "out").exists()

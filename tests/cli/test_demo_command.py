from pathlib import Path

import pytest

from cli.commands import Lcmat
from lcmat.study import demo


def test_the_demo_goes_from_digits_to_a_page(lcmat: Lcmat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.setattr(demo, "PROXY_EPOCHS", 1)
    outcome = lcmat("demo", "--out", tmp_path / "demo", "--seeds", "1")
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    for name in ("lcmat-s", "craig", "uniform", "full"):
        assert any(f" {name} " in line for line in lines)
    assert lines[-1] == f"report: {tmp_path / 'demo' / 'report.html'}"
    assert (tmp_path / "demo" / "report.html").exists()
    assert "digits: 1,438 train, 359 test" in outcome.err
    assert lcmat("show", tmp_path / "demo" / "craig").status == 0


def test_the_demo_needs_a_seed(lcmat: Lcmat, tmp_path: Path) -> None:
    outcome = lcmat("demo", "--seeds", "0", "--out", tmp_path / "demo")
    assert outcome.status == 2
    assert "expected at least 1 seed, got 0" in outcome.err

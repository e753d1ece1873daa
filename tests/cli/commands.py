"""The command line as a function, and small sources for it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lcmat.cli import application


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit status, stdout and stderr."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Lcmat: TypeAlias = Callable[..., Outcome]


def write_table(path: Path) -> Path:
    """60 feature vectors of three classes, and 30 to test on."""
    draws = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = (draws.normal(size=(90, 4)) + 2 * labels[:, None]).astype(np.float32)
    np.savez(path, x=features[:60], y=labels[:60], x_test=features[60:], y_test=labels[60:])
    return path


def write_images(path: Path) -> Path:
    """40 images of two classes, and 20 to test on."""
    draws = np.random.default_rng(1)
    labels = np.arange(60) % 2
    pixels = draws.integers(0, 128, size=(60, 8, 8, 3), dtype=np.uint8)
    pixels[labels == 1] += 100
    np.savez(path, x=pixels[:40], y=labels[:40], x_test=pixels[40:], y_test=labels[40:])
    return path


def make_run(folder: Path, source: Path | str, *options: str) -> Path:
    """A run at 10 % and 20 % with a short proxy, by lcmat-s if no other method is among the options."""
    arguments = ["select", str(source), "--epochs", "2", "--fraction", "0.1,0.2", "--out", str(folder), *options]
    arguments += [] if "--method" in options else ["--method", "lcmat-s"]
    assert application.run(arguments) == 0
    return folder


def check_workers_and_minutes(lcmat: Lcmat, out: Path, *arguments: str | Path) -> None:
    """A comparison without time makes a page of nothing, and two processes go on with it to the end."""
    outcome = lcmat(*arguments, "--out", out, "--minutes", "0")
    assert outcome.status == 0
    assert "cells are done; give the same command again for the rest" in outcome.err
    assert "note: Not finished: 0 of" in outcome.out
    outcome = lcmat(*arguments, "--out", out, "--workers", "2")
    assert outcome.status == 0
    assert "Not finished" not in outcome.out
    assert "note: Up to 2 processes shared the machine" in outcome.out
    assert "--workers 2" in (out / "report.html").read_text(encoding="utf-8")
    assert lcmat("report", out).out.strip() == f"report: {out / 'report.html'}"

"""How a cell is done."""

from pathlib import Path
from typing import Any

import torch

from lcmat.data import load
from lcmat.study.cells import Cell
from lcmat.study.config import read_study
from lcmat.study.design import Proxy
from lcmat.study.method import read_method
from lcmat.study.pipeline import Machine
from lcmat.study.study_folder import StudyFolder
from lcmat.study.worker import Worker
from lcmat.types import Subset

FILE = """\
seeds = 1
[[grid]]
data = "digits"
methods = "uniform"
fractions = 0.05
"""


def test_a_method_sees_the_last_point_unless_it_asks_for_all(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(FILE, encoding="utf-8")
    splits = load("digits")
    folder = StudyFolder(tmp_path)
    worker = Worker(read_study(tmp_path / "study.toml"), folder, {"digits": splits}, Machine("cpu"))
    picks = {}
    for text, points in (
        ("facility-location", (1, 2)),
        ("facility-location:points=all", (1, 2)),
        ("facility-location", ()),
    ):
        fixed: dict[str, Any] = {
            "fingerprint": splits.train.fingerprint,
            "seed": 0,
            "proxy": Proxy("mlp:width=16", 2, points),
        }
        proxy = Cell("proxy", "digits", **fixed)
        choice = Cell("choose", "digits", **fixed, method=read_method(text), amounts=(0.05,), needs=(proxy.key,))
        for cell in (proxy, choice):
            folder.finish(cell.key, worker.do(cell))
        assert choice.method is not None
        chosen = folder.load_set(choice.method, choice.key, 0.05)
        assert isinstance(chosen, Subset)
        picks[text, points] = chosen.indices
    at_the_end, through_all, of_the_end_alone = picks.values()
    assert torch.equal(at_the_end, of_the_end_alone)
    assert not torch.equal(at_the_end, through_all)

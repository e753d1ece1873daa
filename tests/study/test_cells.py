"""Cells: what is shared is done once, and what is needed comes first."""

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from lcmat.study.cells import Cell, make_cells
from lcmat.study.config import read_study
from lcmat.study.design import Condensation, Proxy, Study, Training
from lcmat.study.method import read_method

TEXT = """\
title = "A study"
seeds = 2
[[proxy]]
net = "mlp:width=8"
epochs = [1, 2]
[[grid]]
data = ["digits"]
methods = ["uniform", "craig", "forgetting"]
fractions = [0.05, 0.1]
nets = ["mlp:width=8", "mlp:width=9"]
full = true
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "study.toml"
    path.write_text(TEXT, encoding="utf-8")
    return read_study(path)


def cells_of(study: Study) -> tuple[Cell, ...]:
    return make_cells(study, {"digits": "fingerprint"})


def test_what_is_shared_is_done_once(study: Study) -> None:
    stages = Counter(cell.stage for cell in cells_of(study))
    # Two proxies for each seed; uniform looks with none, the two others with each; every choice holds both shares.
    assert stages == {"proxy": 4, "choose": 2 + 2 * 4, "train": 2 * (2 * (2 + 2 * 4) + 2)}
    assert len({cell.key for cell in cells_of(study)}) == stages.total()


def test_what_is_needed_comes_first(study: Study) -> None:
    seen: set[str] = set()
    for cell in cells_of(study):
        assert set(cell.needs) <= seen
        seen.add(cell.key)


def test_trainings_come_network_by_network(study: Study) -> None:
    nets = [cell.net for cell in cells_of(study) if cell.stage == "train"]
    assert nets == sorted(nets)


def test_a_proxy_keeps_a_record_where_a_method_wants_it_but_not_at_the_cost_of_others(study: Study) -> None:
    assert all(cell.record for cell in cells_of(study) if cell.stage == "proxy")
    timed = cells_of(replace(study, timed=True))
    recorded = {cell.method.name: cell.record for cell in timed if cell.stage == "choose" and cell.method}
    assert recorded == {"uniform": False, "craig": False, "forgetting": True}
    assert {len(cell.amounts) for cell in timed if cell.stage == "choose"} == {1}


def test_a_key_tells_apart_all_that_matters_and_nothing_else(study: Study) -> None:
    keys = {cell.key for cell in cells_of(study)}
    assert keys == {cell.key for cell in cells_of(replace(study, title="Another", about="text"))}
    watched = {cell.key for cell in cells_of(replace(study, oracle=True))}
    assert {key.split("-")[0] for key in keys - watched} == {"train"}
    plain = replace(study.training, augment=False)
    assert {key.split("-")[0] for key in keys - {c.key for c in cells_of(replace(study, training=plain))}} == {"train"}
    more = replace(study, seeds=(0, 1, 2))
    assert keys < {cell.key for cell in cells_of(more)}
    others = replace(study.grids[0], proxies=(Proxy(net="mlp:width=8", epochs=1, lr=0.2),))
    changed = {cell.key for cell in cells_of(replace(study, grids=(others,))) if cell.proxy}
    assert not keys & changed
    assert not keys & {cell.key for cell in make_cells(study, {"digits": "other data"})}


def _another(value: object) -> object:
    """Any value but this one."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case tuple():
            return (*value, 7)
    return 7


def test_whatever_decides_a_result_is_in_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    # A proxy that was found again by a part of its settings would serve a study that asked for another.
    parts: dict[str, Any] = {
        "proxy": Proxy(net="mlp", points=(1,)),
        "training": Training(weighted=("craig",)),
        "condensation": Condensation(net="mlp"),
        "method": read_method("craig"),
    }
    cell = Cell("train", "digits", "fingerprint", 0, protocol="selection", **parts)
    changed = [
        replace(cell, **{name: replace(part, **{field.name: _another(getattr(part, field.name))})})
        for name, part in parts.items()
        for field in fields(part)
        if field.name != "options"
    ]
    changed += [
        replace(cell, **{field.name: _another(getattr(cell, field.name))})  # type: ignore[arg-type]
        for field in fields(cell)
        if field.name not in parts
    ]
    keys = {cell.key, *(other.key for other in changed)}
    assert len(keys) == 1 + len(changed)
    monkeypatch.setattr("lcmat.pieces.__version__", "another")
    assert replace(cell).key not in keys

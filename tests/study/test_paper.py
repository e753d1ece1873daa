"""The paper's values: whole, read rightly, and set beside ours."""

from pathlib import Path

import pytest

from lcmat.evaluation import Row
from lcmat.study.paper import compare_rows, read_paper

PAPER = Path(__file__).parents[2] / "recipes" / "paper"
ROWS = {
    "selection-resnet18": 184,
    "selection-other-networks": 127,
    "cross-architecture-selection": 48,
    "wall-clock": 36,
    "condensation": 21,
    "cross-architecture-condensation": 27,
}


def row(name: str, mean: float, low: float | None, high: float | None) -> Row:
    return Row(name, 500, 0.01, "resnet18", 6, 6, mean, 0.01, low, high, 1.0, 0.1)


@pytest.mark.parametrize("name", ROWS)
def test_every_table_is_whole(name: str) -> None:
    values = read_paper(PAPER / f"{name}.csv")
    assert len(values) == ROWS[name]
    assert len({(v.data, v.amount, v.method, v.net) for v in values}) == len(values)
    assert all(0 < value.value <= (100 if value.net else 2000) for value in values)


def test_a_value_of_the_main_table() -> None:
    [value] = [
        v
        for v in read_paper(PAPER / "selection-resnet18.csv")
        if (v.data, v.amount, v.method) == ("cifar10", 0.01, "lcmat-s")
    ]
    assert (value.value, value.sd, value.net) == (39.54, 0.7, "resnet18")


def test_the_difference_has_our_interval() -> None:
    paper = read_paper(PAPER / "selection-resnet18.csv")
    rows = [("cifar10", 0.01, row("lcmat-s", 0.4, 0.39, 0.41)), ("cifar10", 0.01, row("my own", 0.5, None, None))]
    known, own = compare_rows(rows, paper)
    assert known.paper == 39.54
    assert (known.difference, known.low, known.high) == pytest.approx((0.46, -0.54, 1.46))
    assert (own.paper, own.difference, own.low) == (None, None, None)


def test_without_a_table_nothing_is_compared() -> None:
    assert not list(compare_rows([("cifar10", 0.01, row("lcmat-s", 0.4, 0.39, 0.41))], ()))


def test_a_damaged_table_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("data,amount,method,net,value,sd\na,0.1,craig,mlp,5,\na,b,craig,mlp,5,\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"table.csv:3: expected data, amount"):
        read_paper(path)

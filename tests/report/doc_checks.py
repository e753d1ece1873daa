"""What pages of the documentation must hold."""

from collections.abc import Sequence
from pathlib import Path


def check_columns(columns: Sequence[str], page: Path) -> None:
    """Whether a table of a page names every column of `results.csv`, and no other."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = lines.index("| column of `results.csv` | what it holds |") + 2
    end = next((place for place in range(start, len(lines)) if not lines[place].startswith("|")), len(lines))
    named: list[str] = []
    for line in lines[start:end]:
        words = line.split("|")[1].split("`")[1::2]
        endings = [word for word in words if word.startswith("_")]
        for name in (word for word in words if word not in endings):
            named += [name, *(name + ending for ending in endings)]
    assert sorted(named) == sorted(columns)

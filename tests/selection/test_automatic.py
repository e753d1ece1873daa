import pytest
import torch

import lcmat
from lcmat.selection import automatic
from lcmat.types import Signals


def _signals(n: int = 60) -> Signals:
    features = torch.randn(n, 4, generator=torch.Generator().manual_seed(0))
    return Signals(features=features, labels=torch.arange(n) % 2)


def test_small_shares_cover_the_features_and_say_so() -> None:
    subset = lcmat.select(_signals(), "auto", count=6)
    assert list(subset) == list(lcmat.select(_signals(), "facility-location", count=6))
    assert subset.notes[0].startswith("auto chose facility-location: ")
    assert len(subset.notes) == 1, "both classes chose the same for the same reason"


def test_large_groups_are_clustered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "ALL_PAIRS_LIMIT", 20)
    subset = lcmat.select(_signals(), "auto", count=6)
    assert list(subset) == _picks_of("prototypes", 6)
    assert "auto chose prototypes: " in subset.notes[0]
    monkeypatch.setattr(automatic, "CLUSTERING_LIMIT", 10)
    assert "auto chose uniform: " in lcmat.select(_signals(), "auto", count=6).notes[0]


def _picks_of(method: str, count: int) -> list[int]:
    from lcmat import seeding
    from lcmat.selection import SELECTORS

    # The same generator that auto hands on, group by group.
    rows: list[list[int]] = []
    for place in (0, 1):
        members = torch.arange(place, 60, 2)
        group = _signals().take(members)
        generator = seeding.generator(0, "select", "auto", place)
        picks = SELECTORS.find(method).function([group], count // 2, generator=generator)
        rows.append(members[picks.order].tolist())
    return [row for pair in zip(*rows, strict=True) for row in pair]


def test_large_shares_are_drawn_and_keep_what_is_given() -> None:
    subset = lcmat.select(_signals(), "auto", fraction=0.5, given=[7, 3])
    assert "auto chose uniform: " in subset.notes[0]
    assert {3, 7} <= set(subset)
    assert subset.weights.tolist() == [2.0] * 30

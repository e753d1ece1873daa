from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lcmat import files
from lcmat.types import FeatureData, Picks, Subset

DATA = FeatureData(torch.arange(12.0).reshape(6, 2), torch.tensor([0, 1, 0, 1, 0, 1]), ("no", "yes"), tuple("abcdef"))


def make_subset(**changes: Any) -> Subset:
    values: dict[str, Any] = {
        "indices": torch.tensor([4, 1]),
        "weights": torch.tensor([4.0, 2.0], dtype=torch.float64),
        "gains": torch.tensor([2.0, 1.0], dtype=torch.float64),
        "method": "lcmat-s",
        "options": {"rho": 0.1},
        "seed": 3,
        "n": 6,
        "per_class": (1, 1),
        "class_names": ("no", "yes"),
        "fingerprint": DATA.fingerprint,
        "weighted": True,
        "balance": "equal",
        "notes": ("a note",),
        "versions": {"lcmat": "0"},
        **changes,
    }
    return Subset(**values)


def test_a_subset_is_a_sequence_of_plain_indices() -> None:
    subset = make_subset()
    assert list(subset) == [4, 1]
    assert (subset[0], subset[-1], subset[:1], len(subset)) == (4, 1, [4], 2)
    assert all(type(index) is int for index in subset)
    assert subset.fraction == pytest.approx(1 / 3)
    assert [DATA.names[i] for i in torch.utils.data.Subset(DATA, subset).indices] == ["e", "b"]  # type: ignore[arg-type]


def test_a_subset_is_shown_in_a_line() -> None:
    assert repr(make_subset()) == "Subset: 2 of 6 samples (33.33%), by lcmat-s, seed 3"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": torch.tensor([4, 4])}, "cannot hold the same sample twice"),
        ({"indices": torch.tensor([4, 6])}, "expected indices from 0 to 5, got 6"),
        ({"indices": torch.tensor([4, -1])}, "expected indices from 0 to 5"),
        ({"indices": torch.tensor([], dtype=torch.int64)}, "expected 1 to 6 int64 indices"),
        ({"indices": torch.tensor([4.0, 1.0])}, "expected 1 to 6 int64 indices"),
        ({"weights": torch.tensor([6.0])}, "expected 2 finite weights"),
        ({"weights": torch.tensor([7.0, -1.0])}, "expected 2 finite weights"),
        ({"weights": torch.tensor([float("nan"), 1.0])}, "expected 2 finite weights"),
        ({"weights": torch.tensor([4.0, 4.0])}, "expected weights that sum to 6, got 8"),
        ({"gains": torch.tensor([1.0])}, "expected 2 gains, got 1"),
    ],
)
def test_impossible_subsets_cannot_be_made(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_subset(**changes)


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    subset = make_subset()
    again = Subset.load(subset.save(tmp_path / "subset"))
    for name in ("indices", "weights", "gains"):
        assert torch.equal(getattr(again, name), getattr(subset, name))
    plain = set(Subset.__dataclass_fields__) - {"indices", "weights", "gains"}
    assert {name: getattr(again, name) for name in plain} == {name: getattr(subset, name) for name in plain}
    assert Subset.load(make_subset(gains=None).save(tmp_path / "other")).gains is None


def forget_tensor(meta: dict[str, object]) -> None:
    meta["tensors"] = {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta: meta.update(format=2), "of a format that this version of lcmat does not know; update lcmat"),
        (lambda meta: meta.pop("method"), "does not hold a whole subset: .*method"),
        (lambda meta: meta.update(surprise=1), "does not hold a whole subset: .*surprise"),
        (lambda meta: meta.update(n=2), "expected indices from 0 to 1"),
        (lambda meta: meta.update(per_class=None), "does not hold a whole subset: its per_class is None"),
        (lambda meta: meta.update(seed="0"), "does not hold a whole subset: its seed is '0'"),
        (lambda meta: meta.update(class_names=["no", 1]), "does not hold a whole subset: 1 stands in its class_names"),
        (forget_tensor, "no tensor file is named"),
    ],
)
def test_malformed_subsets_are_refused(
    tmp_path: Path, change: Callable[[dict[str, object]], object], message: str
) -> None:
    make_subset().save(tmp_path)
    meta = files.read_json(tmp_path / "subset.json")
    change(meta)
    files.write_json(tmp_path / "subset.json", meta)
    with pytest.raises(ValueError, match=message):
        Subset.load(tmp_path)


def test_a_folder_without_a_subset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected a saved subset in .*; check the path"):
        Subset.load(tmp_path)


def test_apply_takes_the_rows_of_its_own_data_only() -> None:
    subset = make_subset()
    assert subset.apply(DATA).names == ("e", "b")
    changed = FeatureData(DATA.features + 1, DATA.labels, DATA.class_names)
    with pytest.raises(ValueError, match=r"other data: the fingerprints differ .*load the data"):
        subset.apply(changed)
    with pytest.raises(ValueError, match="chosen from 6 samples, but this data has 5"):
        subset.apply(DATA.take(torch.arange(5)))
    with pytest.raises(ValueError, match="other classes, or with its classes in another order"):
        subset.apply(FeatureData(DATA.features, DATA.labels, ("yes", "no")))


def test_impossible_picks_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="picked the same sample twice"):
        Picks(torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="expected picks as an int64 vector"):
        Picks(torch.tensor([1.0]))
    with pytest.raises(ValueError, match="expected 2 coverage, one for each pick, got 1"):
        Picks(torch.tensor([0, 1]), coverage=torch.tensor([1.0]))

"""Synthetic sets in an evaluation: the protocol, the labels, the pictures."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluation.cases import digits, pick
from lcmat.evaluation import evaluate
from lcmat.types import SyntheticSet

NET = "convnet:width=4,depth=2"


def synthetic(seed: int = 0, **changes: object) -> SyntheticSet:
    """One sample of each class, real ones as they come."""
    train = digits().train
    rows = torch.stack([(train.labels == index).nonzero()[seed, 0] for index in range(10)])
    tiny = SyntheticSet(
        inputs=train.inputs[rows],
        labels=torch.arange(10),
        class_names=train.class_names,
        mean=train.mean,
        std=train.std,
        method="dm",
        options={"lr": 1.0},
        seed=seed,
        n=len(train),
        flip=False,
        fingerprint=train.fingerprint,
    )
    return replace(tiny, **changes)  # type: ignore[arg-type]


def test_the_protocol_of_condensation_serves_all_where_a_synthetic_set_is_among_them(tmp_path: Path) -> None:
    subset = pick(range(5, 15))
    report = evaluate(
        digits(), {"dm": synthetic(), "craig": subset}, nets=[NET], seeds=range(2), epochs=2, device="cpu"
    )
    protocol = report.protocol
    assert (protocol["batch size"], protocol["learning rate"], protocol["schedule"]) == (64, 0.01, "drops")
    assert protocol["augmentation"] == ("DSA for each image (color, crop, scale, rotate), CutMix with probability 0.5")
    assert protocol["labels"] == "hard"
    assert protocol["Nesterov"] is False
    assert {row.name for row in report.rows} >= {"dm", "craig", "uniform"}
    page = report.save_html(tmp_path / "report.html").read_text()
    assert "SyntheticSet.load" in page
    assert "1 made, all shown" in page


def test_subsets_alone_keep_theirs_and_either_can_be_asked_for() -> None:
    plain = evaluate(digits(), {"craig": pick(range(10))}, nets=[NET], seeds=[0], epochs=1, device="cpu")
    assert plain.protocol["augmentation"] == "random crop"
    asked = evaluate(
        digits(), {"craig": pick(range(10))}, nets=[NET], seeds=[0], epochs=1, protocol="condensation", lr=0.05,
        device="cpu",
    )  # fmt: skip
    assert asked.protocol["schedule"] == "drops"
    assert asked.protocol["learning rate"] == 0.05
    with pytest.raises(ValueError, match="protocol of auto, selection, condensation, got 'dd'"):
        evaluate(digits(), {"craig": pick(range(10))}, nets=[NET], protocol="dd")


def test_soft_labels_are_trained_on_and_said() -> None:
    wrong = torch.eye(10).roll(1, 1)
    soft = synthetic(soft=wrong, soft_from="a roll")
    report = evaluate(
        digits(), {"hard": synthetic(), "soft": soft}, nets=[NET], seeds=[0], epochs=60, lr=0.05, baseline=False,
        device="cpu",
    )  # fmt: skip
    accuracy = {row.name: row.mean for row in report.rows}
    assert accuracy["hard"] > accuracy["soft"] + 0.2
    assert report.protocol["labels"] == "soft: soft (a roll); all others: hard"


def test_each_seed_takes_the_set_of_its_own() -> None:
    report = evaluate(
        digits(), {"dm": [synthetic(0), synthetic(1)]}, nets=[NET], seeds=range(2), epochs=1, device="cpu"
    )
    [row] = [row for row in report.rows if row.name == "dm"]
    assert (row.n, row.subsets, row.size) == (2, 2, 10)
    assert [record["selection_seed"] for record in report.records if record["name"] == "dm"] == [0, 1]


def test_other_data_and_weights_are_refused() -> None:
    with pytest.raises(ValueError, match="'dm': this set was condensed from other data"):
        evaluate(digits(), {"dm": synthetic(fingerprint="0" * 64)}, nets=[NET])
    with pytest.raises(ValueError, match="a synthetic set has no weights"):
        evaluate(digits(), {"dm": synthetic()}, nets=[NET], weighted=["dm"])

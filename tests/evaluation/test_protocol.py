"""Evaluation as a whole, on digits that train within a blink."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from evaluation.cases import digits, pick, picks
from lcmat import evaluate, networks, seeding, training
from lcmat.types import FeatureData, Splits

QUICK: dict[str, Any] = {"nets": "convnet:width=8,depth=1", "epochs": 1, "seeds": (0, 1)}


class Spy:
    """Stands where `train` stands, counts and keeps what it is given, and trains or stops."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, most: int = 1000, train: bool = True) -> None:
        self.calls: list[dict[str, Any]] = []
        self.most = most
        self.real = training.train if train else lambda net, data, **_: net
        monkeypatch.setattr(training, "train", self)

    def __call__(self, net: nn.Module, data: Any, **options: Any) -> nn.Module:
        if len(self.calls) == self.most:
            raise KeyboardInterrupt
        start = {name: value.clone() for name, value in net.state_dict().items()}
        self.calls.append({"start": start, "data": data, **options})
        return self.real(net, data, **options)


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def test_the_number_is_the_last_epochs_accuracy_of_a_fresh_network() -> None:
    data, subset = digits(), pick(range(40))
    report = evaluate(data, {"craig": subset}, nets="mlp", epochs=2, seeds=[3], baseline=False)
    net = networks.build("mlp", data.train, seed=seeding.derive(3, "evaluation", "initialisation", "mlp"))
    seed = seeding.derive(3, "evaluation", "training", "mlp")
    model = training.train(net, subset.apply(data.train), epochs=2, schedule="cosine", seed=seed)
    assert report.rows[0].mean == training.accuracy(model, data.test)


def test_under_one_seed_all_sets_start_from_the_same_network(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch, train=False)
    evaluate(digits(), {"craig": picks(20, (0, 1))}, full=True, **{**QUICK, "nets": ["mlp", "mlp:width=16"]})
    runs = [spy.calls[place : place + 3] for place in range(0, 12, 3)]  # craig, uniform and full of each seed and net
    for first, *others in runs:
        assert all(same(first["start"], other["start"]) and first["seed"] == other["seed"] for other in others)
    assert len({run[0]["seed"] for run in runs}) == 4
    assert not same(runs[0][0]["start"], runs[1][0]["start"])


def test_settings_reach_the_training_and_weights_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch, train=False)
    report = evaluate(
        digits(),
        {"craig": pick(range(20)), "k-center": pick(range(20))},
        nets="mlp",
        steps=7,
        seeds=[0],
        batch_size=16,
        lr=0.01,
        schedule="constant",
        optimizer="adam",
        weighted=["craig"],
    )
    craig, center, uniform = spy.calls
    assert (craig["epochs"], craig["steps"], craig["batch_size"], craig["lr"]) == (None, 7, 16, 0.01)
    assert (craig["schedule"], craig["optimizer"]) == ("constant", "adam")
    assert craig["weights"].tolist() == [10.0] * 20
    assert center["weights"] is uniform["weights"] is None
    assert report.protocol["budget"] == "7 steps"
    assert report.protocol["weights in the loss"] == ["craig"]


def test_the_rightly_classified_are_counted_by_class() -> None:
    data = digits()
    [record] = evaluate(data, {"craig": pick(range(40))}, nets="mlp", epochs=2, seeds=[3], baseline=False).records
    tested = torch.bincount(data.test.labels, minlength=10).tolist()
    assert all(0 <= right <= count for right, count in zip(record["right_per_class"], tested, strict=True))
    assert sum(record["right_per_class"]) == pytest.approx(record["accuracy"] * len(data.test))


def test_soft_labels_are_those_of_the_samples_that_are_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    data = digits()
    teacher = torch.rand(len(data.train), 10, generator=torch.Generator().manual_seed(0)).softmax(1)
    with monkeypatch.context() as patch:
        spy = Spy(patch, train=False)
        report = evaluate(data, {"craig": pick([7, 3, 5])}, nets="mlp", seeds=[0], full=True, targets=teacher)
        craig, uniform, full = spy.calls
        assert torch.equal(craig["targets"], teacher[[7, 3, 5]])
        assert len(uniform["targets"]) == 3
        assert torch.equal(full["targets"], teacher)
    assert report.protocol["labels"] == "soft, given for every sample"
    keys = {record["key"] for record in report.records}
    for other in (None, teacher.flip(1)):
        again = evaluate(data, {"craig": pick([7, 3, 5])}, full=True, targets=other, **{**QUICK, "seeds": [0]})
        assert not keys & {record["key"] for record in again.records}
    with pytest.raises(ValueError, match=r"expected targets of shape \[\d+, 10\], a row for each sample"):
        evaluate(data, {"craig": pick([7, 3, 5])}, targets=teacher[:3], **QUICK)


def test_trainings_without_augmentation_have_no_cutmix_either(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch, train=False)
    for protocol in ("selection", "condensation"):
        report = evaluate(digits(), {"craig": pick(range(20))}, protocol=protocol, augment=False, **QUICK)
        assert report.protocol["augmentation"] == "none"
    assert {(call["augment"], call["cutmix"]) for call in spy.calls} == {(False, 0.0)}


def test_epochs_are_two_hundred_when_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch, train=False)
    evaluate(digits(), {"craig": pick(range(20))}, nets="mlp", seeds=[0])
    assert [call["epochs"] for call in spy.calls] == [200, 200]


def test_a_finished_evaluation_trains_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = tmp_path / "records.jsonl"
    first = evaluate(digits(), {"craig": picks(20, (0, 1))}, records=records, **QUICK)
    assert [json.loads(line) for line in records.read_text().splitlines()] == first.records
    spy = Spy(monkeypatch, most=0)
    again = evaluate(digits(), {"craig": picks(20, (0, 1))}, records=records, **QUICK)
    assert again.rows == first.rows
    assert again.records == first.records
    assert not spy.calls
    assert any("4 of 4 trainings were done before" in note for note in again.notes)


def test_an_interrupted_evaluation_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = tmp_path / "records.jsonl"
    whole = evaluate(digits(), {"craig": picks(20, (0, 1))}, **QUICK)
    with monkeypatch.context() as patch:
        Spy(patch, most=3)
        with pytest.raises(KeyboardInterrupt):
            evaluate(digits(), {"craig": picks(20, (0, 1))}, records=records, **QUICK)
    assert len(records.read_text().splitlines()) == 3
    with records.open("a") as file:
        file.write('{"key": "torn by a ki')
    spy = Spy(monkeypatch)
    resumed = evaluate(digits(), {"craig": picks(20, (0, 1))}, records=records, **QUICK)
    assert len(spy.calls) == 1
    assert [record["accuracy"] for record in resumed.records] == [record["accuracy"] for record in whole.records]


def changes() -> Iterator[tuple[str, Splits, list[int], dict[str, Any]]]:
    data, rows = digits(), list(range(20))
    other = data.test.take(torch.arange(50))
    yield "epochs", data, rows, {"epochs": 2}
    yield "rate", data, rows, {"lr": 0.05}
    yield "network", data, rows, {"nets": "convnet:width=8,depth=2"}
    yield "seed", data, rows, {"seeds": (7,)}
    yield "picks", data, rows[::-1], {}
    yield "weights", data, rows, {"weighted": ["craig"]}
    yield "test data", replace(data, test=other), rows, {}


def test_steps_may_be_held_equal_over_the_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch, train=False)
    subsets = {"craig": [pick(range(20)), pick(range(40))]}
    evaluate(digits(), subsets, **{**QUICK, "epochs": 3, "seeds": (0,)}, batch_size=64, budget="steps", full=True)
    assert {(call["epochs"], call["steps"]) for call in spy.calls} == {(None, 3 * 4)}, "200 samples are four batches"
    assert sorted(len(call["data"]) for call in spy.calls) == [20, 20, 40, 40, 200]


@pytest.mark.parametrize(("data", "rows", "change"), [case[1:] for case in changes()], ids=[c[0] for c in changes()])
def test_another_setting_is_another_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Splits, rows: list[int], change: dict[str, Any]
) -> None:
    spy = Spy(monkeypatch, train=False)
    options = {**QUICK, "seeds": (0,), "baseline": False, "records": tmp_path / "records.jsonl"}
    evaluate(digits(), {"craig": pick(range(20))}, **options)
    evaluate(data, {"craig": pick(rows)}, **{**options, **change})
    assert len(spy.calls) == 2


def test_progress_is_told_before_each_training_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    Spy(monkeypatch, train=False)
    told: list[tuple[int, int, str]] = []
    evaluate(digits(), {"craig": pick(range(20))}, nets="mlp", seeds=(0, 1), progress=lambda *call: told.append(call))
    assert [call[:2] for call in told] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert told[0][2] == "craig, 10 % (20 samples), mlp, seed 0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 1, "steps": 1}, "expected epochs or steps, got both"),
        ({"budget": "hours"}, "expected a budget of 'epochs' or 'steps'"),
        ({"seeds": (1, 1)}, r"expected distinct seeds, at least one, got \[1, 1\]"),
        ({"seeds": ()}, "expected distinct seeds"),
        ({"nets": ("mlp", "mlp")}, "expected distinct networks"),
        ({"nets": ("mlp", "mpl")}, "'mpl'; did you mean 'mlp'"),
    ],
)
def test_wrong_use_is_refused_before_any_training(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    spy = Spy(monkeypatch)
    with pytest.raises(ValueError, match=message):
        evaluate(digits(), {"craig": pick(range(20))}, **options)
    assert not spy.calls


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": digits().train}, "expected both parts of the data, as lcmat.load gives them, got ImageData"),
        ({"subsets": pick(range(20))}, "expected subsets by name, .* got Subset"),
        ({"subsets": [pick(range(20))]}, "expected subsets by name, .* got list"),
        ({"nets": torch.nn.Linear(2, 2)}, "expected networks by name, .* got Linear"),
        ({"nets": ["mlp", torch.nn.Linear(2, 2)]}, "expected networks by name, .* got Linear"),
        ({"seeds": 3}, r"expected the seeds one by one, such as range\(3\), got 3"),
    ],
)
def test_what_is_of_another_kind_is_refused_with_the_way_out(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"data": digits(), "subsets": {"craig": pick(range(20))}, **QUICK, **change}
    with pytest.raises(TypeError, match=message):
        evaluate(**given)


def test_the_protocol_names_the_machines_of_the_trainings_not_the_one_at_hand(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    evaluate(digits(), {"craig": pick(range(20))}, records=path, **QUICK)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    del lines[0]["torch"]
    text = "".join(json.dumps({**line, "machine": "a machine far away"}) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    protocol = evaluate(digits(), {"craig": pick(range(20))}, records=path, **QUICK).protocol
    assert protocol["machine"] == "a machine far away"
    assert protocol["torch"] == f"not recorded; {torch.__version__}"


def test_records_in_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder; name a file"):
        evaluate(digits(), {"craig": pick(range(20))}, records=tmp_path, **QUICK)


def test_the_global_generators_are_left_alone() -> None:
    before = torch.random.get_rng_state()
    evaluate(digits(), {"craig": pick(range(20))}, **{**QUICK, "seeds": (0,)})
    assert torch.equal(before, torch.random.get_rng_state())


def test_feature_vectors_are_evaluated_too() -> None:
    def flat(part: Any) -> FeatureData:
        return FeatureData(part.images.flatten(1).float(), part.labels, part.class_names)

    data = Splits(flat(digits().train), flat(digits().test), "vectors")
    report = evaluate(data, {"craig": pick(range(20), data=data)}, nets="mlp", epochs=1, seeds=(0, 1))
    assert report.protocol["augmentation"] == "none"
    assert [row.name for row in report.rows] == ["craig", "uniform"]


def test_notes_say_what_an_interval_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    Spy(monkeypatch, train=False)
    plain = replace(pick(range(20)), fingerprint="")
    uniform = pick(range(40, 60), method="uniform")
    report = evaluate(digits(), {"craig": plain, "uniform": uniform}, nets="mlp", seeds=(0, 1))
    notes = " ".join(report.notes)
    assert "craig, 10 % (20 samples); uniform, 10 % (20 samples): 2 trainings on one subset" in notes
    assert "training noise only" in notes
    assert "craig, 10 % (20 samples): no fingerprint" in notes
    assert "the class counts differ" in notes

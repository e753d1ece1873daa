import time
from pathlib import Path
from typing import Any

import pytest
import torch

import lcmat
from continual.test_fill import Constant
from lcmat import continual, files, training
from lcmat.continual.metrics import forgetting
from lcmat.continual.result import make_rows
from lcmat.types import Splits
from report.html_checks import check_page
from samples import digits_like, vectors

SETTINGS: dict[str, Any] = {
    "steps": 3,
    "per_class": 3,
    "net": "mlp:width=8",
    "epochs": 5,
    "proxy_epochs": 2,
    "seeds": (0, 1),
    "lr": 0.05,
}


def splits(classes: int = 6) -> Splits:
    return Splits(vectors(60, classes=classes), vectors(30, classes=classes), "vectors")


@pytest.fixture(scope="module")
def digits() -> Splits:
    return lcmat.load("digits")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[continual.Study, Path]:
    folder = tmp_path_factory.mktemp("continual")
    return continual.run(splits(), ("craig", "uniform", "dm"), **SETTINGS, condense_steps=2, folder=folder), folder


def test_every_step_of_every_walk_has_a_record(found: tuple[continual.Study, Path]) -> None:
    study, folder = found
    assert [row.name for row in study.rows] == ["craig", "uniform", "dm"]
    assert len(files.read_json_lines(folder / "records.jsonl")) == len(study.records) == 3 * 2 * 3
    for record in study.records:
        assert record["seen"] == 2 * (record["step"] + 1)
        assert record["memory"] == 3 * record["seen"]
        assert set(record["per_class"].values()) == {3}
        assert len(record["accuracies"]) == record["step"] + 1
        # The steps' classes have as many test samples each.
        assert sum(record["accuracies"]) / len(record["accuracies"]) == pytest.approx(record["accuracy"])
    own = [record for record in study.records if record["fill"] == "dm"]
    matrices = [[record["accuracies"] for record in own if record["seed"] == seed] for seed in (0, 1)]
    assert study.rows[2].forgetting.mean == pytest.approx(sum(map(forgetting, matrices)) / 2)
    assert study.rows[2].last == (own[2]["accuracy"], own[5]["accuracy"])


def test_the_protocol_says_how_long_condensers_work(found: tuple[continual.Study, Path]) -> None:
    study, _ = found
    assert study.protocol["steps of condensation"] == "2"
    assert "dm lr=1.0, real_batch=256" in study.protocol["options"]
    assert "steps of condensation" not in continual.run(splits(), ("uniform",), **{**SETTINGS, "seeds": (0,)}).protocol


def test_nothing_is_done_twice(found: tuple[continual.Study, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    study, folder = found
    monkeypatch.setattr(training, "train", None)
    again = continual.run(splits(), ("craig", "uniform", "dm"), **SETTINGS, condense_steps=2, folder=folder)
    assert again.records == study.records


def test_walks_share_the_proxies_that_they_would_train_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**SETTINGS, "seeds": (0,), "proxy": "mlp:width=4"}
    alone = [continual.run(splits(), name, **settings).records for name in ("craig", "herding", "forgetting")]
    trained: list[Any] = []
    train: Any = training.train

    def counted(net: Any, *arguments: Any, **more: Any) -> Any:
        trained.append((net, more.get("record")))
        time.sleep(0.05 if net == "mlp:width=4" else 0)
        return train(net, *arguments, **more)

    monkeypatch.setattr(training, "train", counted)
    together = continual.run(splits(), ("craig", "herding", "forgetting"), **settings).records
    proxies = [record for net, record in trained if net == "mlp:width=4"]
    assert (proxies.count(False), proxies.count(True)) == (3, 3)  # one for each step; forgetting wants a record
    assert [r["accuracies"] for r in together] == [r["accuracies"] for own in alone for r in own]
    # Each is charged what it would have cost alone.
    assert all(record["seconds"]["fill"] > 0.05 for record in together)


def test_a_shared_proxy_is_charged_to_each_memory_under_replay_too(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**SETTINGS, "seeds": (0,), "proxy": "mlp:width=4", "protocol": "replay"}
    train: Any = training.train
    proxies: list[Any] = []

    def slow(net: Any, *arguments: Any, **more: Any) -> Any:
        if net == "mlp:width=4":
            proxies.append(net)
            time.sleep(0.05)
        return train(net, *arguments, **more)

    monkeypatch.setattr(training, "train", slow)
    records = continual.run(splits(), ("forgetting", "dual"), **settings).records  # both need a record
    assert len(proxies) == 3  # one for each step
    assert all(record["seconds"]["fill"] > 0.05 for record in records)


@pytest.mark.parametrize("way", ["memory", "replay"])
def test_a_killed_run_goes_on_with_the_same_result(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**SETTINGS, "protocol": way, "seeds": (0,)}
    whole = continual.run(splits(), ("craig", "herding"), **settings)

    def stop(done: int, total: int, _: str) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        continual.run(splits(), ("craig", "herding"), **settings, folder=tmp_path, progress=stop)
    assert len(files.read_json_lines(tmp_path / "records.jsonl")) == 5
    steps: list[int] = []
    train: Any = training.train

    def counted(*arguments: Any, **more: Any) -> Any:
        checkpoint = more.get("checkpoint")
        if checkpoint is None or not (checkpoint / "training.json").exists():
            steps.append(len(arguments[1]))
        return train(*arguments, **more)

    monkeypatch.setattr(training, "train", counted)
    again = continual.run(splits(), ("craig", "herding"), **settings, folder=tmp_path)
    assert [row.last for row in again.rows] == [row.last for row in whole.rows]
    assert [row.matrix for row in again.rows] == [row.matrix for row in whole.rows]
    assert len(steps) == (2 if way == "memory" else 1)  # the last step's proxy and network, or the network alone
    assert not list((tmp_path / "trainings").glob("*")) if way == "replay" else True


@pytest.mark.parametrize("way", ["memory", "replay"])
def test_a_total_is_kept_while_classes_arrive(way: str) -> None:
    study = continual.run(
        splits(), ("herding", "dm"), **{**SETTINGS, "per_class": None, "total": 12}, protocol=way, condense_steps=2
    )
    assert {record["memory"] for record in study.records} == {12}
    last = [record for record in study.records if record["step"] == 2]
    assert all(set(record["per_class"].values()) == {2} for record in last)


@pytest.mark.parametrize("way", ["memory", "replay"])
@pytest.mark.parametrize("fill", ["craig", "uniform", "dm"])
def test_steps_of_one_class_and_classes_that_return(way: str, fill: str) -> None:
    groups = [[0], [1, 2], [3], [0, 4]]
    study = continual.run(
        splits(), (fill,), **{**SETTINGS, "steps": groups, "seeds": (0,)}, protocol=way, condense_steps=2
    )
    first, *_, last = study.records
    assert first["accuracy"] == 1.0  # among one class
    assert any("A class that arrives alone" in note for note in study.notes) == (fill == "dm")
    assert (last["seen"], last["memory"]) == (5, 15)


def test_a_class_smaller_than_its_share_is_kept_whole() -> None:
    data = splits()
    rows = torch.cat([torch.arange(60)[data.train.labels != 4], (data.train.labels == 4).nonzero().flatten()[:2]])
    small = Splits(data.train.take(rows), data.test, "small")
    study = continual.run(small, ("herding", "dm"), **{**SETTINGS, "seeds": (0,)}, condense_steps=2)
    for record in study.records:
        if "4" in record["per_class"]:
            assert record["per_class"]["4"] == 2


def test_methods_that_look_at_the_training_work_under_both_protocols() -> None:
    for way in ("memory", "replay"):
        study = continual.run(splits(), ("forgetting",), **{**SETTINGS, "seeds": (0,)}, protocol=way)
        assert study.records[-1]["memory"] == 18
    with pytest.raises(ValueError, match="give every step two classes or more"):
        continual.run(splits(), ("forgetting",), **{**SETTINGS, "steps": 6})


def test_a_filler_of_ones_own_takes_part() -> None:
    study = continual.run(splits(), (Constant(),), **SETTINGS)
    assert study.rows[0].name == "constant"


def test_the_page_has_the_two_figures(found: tuple[continual.Study, Path], tmp_path: Path) -> None:
    study, _ = found
    page = study.save_html(tmp_path / "report.html").read_text(encoding="utf-8")
    check_page(page)
    assert "Selection methods" in page
    assert "Condensation methods" in page
    assert page.count("<svg viewBox") >= 2
    assert "craig (" in study.headline()[0]
    assert "n = 2)" in study.headline()[0]
    craig, uniform, dm = study.rows
    assert study.against_random(uniform) is study.against_random(dm) is None  # no random condenser took part
    pairs = study.against_random(craig)
    assert pairs is not None
    assert pairs.difference.mean == pytest.approx((sum(craig.last) - sum(uniform.last)) / 2)
    assert all(row.name in study.table() for row in study.rows)


@pytest.mark.parametrize("fill", ["lcmat-s", "herding", "uniform", "random"])
def test_ten_digits_a_class_are_enough_to_remember(digits: Splits, fill: str) -> None:
    settings: dict[str, Any] = {"net": "convnet:width=16", "epochs": 30, "batch_size": 32, "proxy_epochs": 4}
    study = continual.run(digits, (fill,), per_class=10, seeds=(0,), **settings)
    last = study.records[-1]
    assert last["accuracy"] > 0.6
    assert min(last["accuracies"]) > 0.35  # what a memory that lost a step could not reach
    assert last["memory"] == 100


def test_replay_remembers_what_training_on_would_forget(digits: Splits) -> None:
    settings: dict[str, Any] = {"net": "convnet:width=16", "epochs": 5, "batch_size": 64, "lr": 0.05}
    study = continual.run(digits, ("herding",), protocol="replay", per_class=10, seeds=(0,), **settings)
    assert study.records[-1]["accuracy"] > 0.7
    assert study.rows[0].forgetting.mean < 0.3
    forgetful = continual.run(digits, ("herding",), protocol="replay", per_class=1, seeds=(0,), **settings)
    assert forgetful.rows[0].forgetting.mean > study.rows[0].forgetting.mean


@pytest.mark.parametrize(
    ("changes", "kind", "match"),
    [
        ({"per_class": 0}, ValueError, "at least 1, got 0"),
        ({"total": 20}, ValueError, "got per_class and total"),
        ({"per_class": None, "total": 5}, ValueError, "at least 6"),
        ({"steps": 7}, ValueError, "1 to 6 steps"),
        ({"protocol": "none"}, ValueError, "expected a protocol of memory or replay"),
        ({"epochs": 0}, ValueError, "at least 1 epoch"),
        ({"seeds": (1, 1)}, ValueError, "distinct seeds"),
        ({"fill": ("craig", "craig")}, ValueError, "distinct ways of filling"),
        ({"fill": ("crag",)}, ValueError, "did you mean 'craig'"),
        ({"options": {"herding": {}}}, ValueError, "which fill nothing here"),
        ({"net": "resnet19"}, ValueError, "unknown network"),
        ({"proxy": "convnet"}, ValueError, "feature vectors"),
        ({"lr": -1.0}, ValueError, "learning rate lr above 0"),
        ({"batch_size": 0}, ValueError, "batch_size of at least 1"),
        ({"augment": "crops"}, ValueError, "expected augmentation of"),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(
    changes: dict[str, Any], kind: type[Exception], match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "train", None)
    with pytest.raises(kind, match=match):
        continual.run(splits(), **{"fill": ("craig",), **SETTINGS, **changes})


def test_images_keep_their_kind() -> None:
    data = Splits(digits_like(48), digits_like(24), "images")
    study = continual.run(data, ("random",), steps=2, per_class=2, net="convnet:width=4", epochs=2, seeds=(0,))
    assert study.records[-1]["memory"] == 8


def test_what_is_better_is_said_first() -> None:
    def records(fill: str, last: tuple[float, ...]) -> list[dict[str, Any]]:
        common = {"fill": fill, "kind": "selection", "step": 0, "seen": 2, "memory": 4, "seconds": {"fill": 0.0}}
        return [{**common, "seed": seed, "accuracy": it, "accuracies": [it]} for seed, it in enumerate(last)]

    memories = {"uniform": (0.5, 0.51, 0.52), "craig": (0.1, 0.11, 0.12), "herding": (0.9, 0.91, 0.92)}
    found = [record for name, last in memories.items() for record in records(name, last)]
    study = continual.Study(make_rows(list(memories), found), found, {}, (), "two")
    assert [line.partition(" uniform")[0] for line in study.headline()] == ["Better than", "Worse than"]

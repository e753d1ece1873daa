import math
import time

import pytest
import torch

from lcmat.study import plan as planning
from lcmat.study.plan import Pace, Plan, Request, make_plan
from lcmat.types import Splits
from samples import vectors

PACES = {"mlp": Pace(base=0.01, row=0.001, read=0.0001), "mlp:width=8": Pace(base=0.02, row=0.0, read=0.0)}


@pytest.fixture(autouse=True)
def known_paces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of a known speed, and a selection that takes a second for each hundred samples."""
    monkeypatch.setattr(planning, "pace_of", lambda net, *_: PACES[net])
    monkeypatch.setattr(planning, "_selection_sample", lambda request, size, *_: size / 100)


def request(**changes: object) -> Request:
    given: dict[str, object] = {
        "method": "lcmat-s", "options": {}, "fractions": (0.1, 0.2), "net": "mlp", "epochs": 10,
        "nets": ("mlp", "mlp:width=8"), "train_epochs": 5, "seeds": 3, "full": False,
    }  # fmt: skip
    return Request(**{**given, **changes})  # type: ignore[arg-type]


def splits(n: int) -> Splits:
    return Splits(vectors(n), vectors(30), "vectors")


def test_a_training_takes_its_steps_and_its_samples() -> None:
    assert Pace(base=1.0, row=0.5, read=0.0).training(130, epochs=2) == 2 * (2 * 1.0 + 130 * 0.5)


def test_the_parts_add_up_over_the_seeds() -> None:
    found = make_plan(splits(200), request(), "cpu")
    assert found.proxy == pytest.approx(10 * (2 * 0.01 + 200 * 0.001))
    assert found.extract == pytest.approx(200 * 0.0001)
    # Each budget is trained on twice, by the method and at random, with both networks.
    assert found.trainings == pytest.approx(2 * sum(5 * (0.01 + size * 0.001) + 5 * 0.02 for size in (20, 40)))
    assert found.select == pytest.approx(2.0)
    assert found.total == pytest.approx(3 * (found.proxy + found.extract + found.select + found.trainings))
    assert found.memory > splits(200).train.inputs.nbytes
    assert found.as_dict()["total"] == found.total


def test_everything_and_no_evaluation_are_counted_as_such() -> None:
    part, whole = (make_plan(splits(200), request(full=full), "cpu").trainings for full in (False, True))
    assert whole - part == pytest.approx(5 * (2 * 0.01 + 200 * 0.001) + 5 * 2 * 0.02)
    alone = make_plan(splits(200), request(seeds=0), "cpu")
    assert alone.trainings == 0
    assert alone.total == pytest.approx(alone.proxy + alone.extract + alone.select)


def test_a_method_without_a_model_trains_no_proxy_and_one_with_a_record_reads_more() -> None:
    uniform = make_plan(splits(200), request(method="uniform"), "cpu")
    assert (uniform.proxy, uniform.extract) == (0.0, 0.0)
    plain, recorded = (make_plan(splits(200), request(method=name), "cpu").proxy for name in ("grand", "forgetting"))
    assert recorded - plain == pytest.approx(10 * 200 * 0.0001)


def test_a_large_class_is_scaled_by_the_growth_that_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LARGEST_CLASS", 50)
    monkeypatch.setattr(planning, "_selection_sample", lambda request, size, *_: size**2 / 100)
    data = splits(400).train
    counts = torch.bincount(data.labels).tolist()
    assert max(counts) > 50
    found = planning.selection_seconds(request(), data, torch.device("cpu"))
    assert found == pytest.approx(math.fsum(count**2 / 100 for count in counts))


def test_totals_of_no_seed_are_those_of_one_selection() -> None:
    assert Plan(1.0, 2.0, 3.0, 100.0, 0, 0, ()).total == 6.0


def test_what_the_first_training_of_a_process_starts_is_not_taken_off_its_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []

    def train(_net: str, _rows: object, *, steps: int, **_: object) -> None:
        time.sleep(0.001 * steps if started else 0.1)
        started.append(steps)

    monkeypatch.setattr(planning, "train", train)
    monkeypatch.setattr(planning, "SAMPLE_SECONDS", 0.005)
    monkeypatch.setattr(planning, "MOST_STEPS", 16)
    assert planning._step_seconds("mlp", vectors(20), 10, torch.device("cpu")) > 0.0005


def test_a_network_that_diverges_at_the_usual_rate_is_planned_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(_net: str, _rows: object, *, steps: int, lr: float = 0.1, **_: object) -> None:
        if lr > 0.01:  # as an mlp does on Fashion-MNIST
            raise ValueError("the training diverged")
        time.sleep(0.001 * steps)

    monkeypatch.setattr(planning, "train", train)
    monkeypatch.setattr(planning, "SAMPLE_SECONDS", 0.005)
    assert planning._step_seconds("mlp", vectors(20), 10, torch.device("cpu")) > 0.0005

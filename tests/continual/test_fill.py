from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lcmat import condensation, extract, networks, seeding, select
from lcmat.continual import Asked, Filler, Kept, make_filler
from lcmat.continual.store import FillStore
from lcmat.types import FeatureData
from samples import digits_like, vectors


def asked(data: Any, model: nn.Module, amounts: dict[int, int], **more: Any) -> Asked:
    return Asked(data, amounts, lambda: model, seed=3, device=torch.device("cpu"), **more)


@pytest.mark.parametrize("method", ["lcmat-s", "herding", "k-center", "gradmatch", "entropy", "uniform"])
def test_a_selector_keeps_what_select_picks_in_each_class(method: str) -> None:
    data = vectors(60)
    model = networks.build("mlp:width=8", data)
    kept = make_filler(method).fill(asked(data, model, {0: 4, 2: 7}))
    assert {index: len(part) for index, part in kept.items()} == {0: 4, 2: 7}
    signals = extract(model, data)
    for index, part in kept.items():
        rows = (data.labels == index).nonzero().flatten()
        seed = seeding.derive(3, "memory", index)
        direct = select(signals.take(rows), method, count=len(part), seed=seed)
        assert torch.equal(part.inputs, data.features[rows[direct.indices]])


def test_fewer_places_are_the_beginning_of_more() -> None:
    data = vectors(60)
    model = networks.build("mlp:width=8", data)
    filler = make_filler("herding")
    many, few = (filler.fill(asked(data, model, {1: count}))[1] for count in (9, 4))
    assert torch.equal(many.first(4).inputs, few.inputs)


@pytest.mark.parametrize("method", ["random", "dm", "dc"])
def test_a_condenser_makes_the_classes_that_are_there(method: str) -> None:
    images = digits_like(60)
    data = images.take(torch.isin(images.labels, torch.tensor([1, 3])).nonzero().flatten())
    options: dict[str, Any] = {"lr": 0.5} if method != "random" else {}
    filler = make_filler(method, condense_steps=2, options=options)
    kept = filler.fill(asked(data, nn.Identity(), {3: 2, 1: 3}))
    assert {index: len(part) for index, part in kept.items()} == {3: 2, 1: 3}
    made = condensation.condense(data, method, per_class=3, steps=2, seed=3, device="cpu", **options)
    samples = made.data()
    assert torch.equal(kept[1].inputs, samples.inputs[samples.labels == 1])
    assert torch.equal(kept[3].inputs, samples.inputs[samples.labels == 3][:2])


def test_a_class_that_arrives_alone_or_is_small_is_kept_by_real_samples() -> None:
    data = vectors(30)
    real = {tuple(row) for row in data.features.tolist()}
    filler = make_filler("dm", condense_steps=2)
    alone = filler.fill(asked(data.take((data.labels == 1).nonzero().flatten()), nn.Identity(), {1: 4}))
    assert {tuple(row) for row in alone[1].inputs.tolist()} < real
    mixed = filler.fill(asked(data, nn.Identity(), {0: 10, 1: 4, 2: 4}))
    assert {tuple(row) for row in mixed[0].inputs.tolist()} < real
    assert not {tuple(row) for row in mixed[1].inputs.tolist()} & real
    assert {index: len(part) for index, part in mixed.items()} == {0: 10, 1: 4, 2: 4}


def test_what_a_filler_is_can_be_asked() -> None:
    assert (make_filler("herding").kind, make_filler("dm").kind) == ("selection", "condensation")
    assert [make_filler(name).looks for name in ("lcmat-s", "uniform", "dm")] == [True, False, False]
    assert [make_filler(name).needs_record for name in ("forgetting", "herding")] == [True, False]
    assert make_filler("lcmat-s", options={"rho": 0.5}).describe()["options"]["rho"] == 0.5


def test_unknown_names_options_and_steps_are_refused() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'herding'.*condensers: random, dc"):
        make_filler("herdin")
    with pytest.raises(TypeError, match="unknown option"):
        make_filler("herding", options={"rho": 1.0})
    with pytest.raises(TypeError, match="unknown option"):
        make_filler("dm", options={"rho": 1.0})
    with pytest.raises(ValueError, match="at least 1 step"):
        make_filler("dm", condense_steps=0)


class Constant:
    """A third kind of filler: a sample of its own for each class."""

    name, kind, looks, needs_record = "constant", "condensation", False, False

    def describe(self) -> dict[str, Any]:
        return {"fill": self.name}

    def fill(self, asked: Asked) -> dict[int, Kept]:
        return {index: Kept(torch.full((count, 5), float(index))) for index, count in asked.amounts.items()}


def test_a_third_kind_needs_the_form_only() -> None:
    filler: Filler = Constant()
    kept = filler.fill(asked(vectors(), nn.Identity(), {0: 2}))
    assert isinstance(vectors(), FeatureData)
    assert len(kept[0]) == 2


def test_a_filling_is_made_once_and_kept(tmp_path: Path) -> None:
    calls: list[Path | None] = []

    def make(working: Path | None) -> tuple[dict[int, Kept], float]:
        assert working is not None
        working.mkdir(parents=True)
        calls.append(working)
        return {4: Kept(torch.arange(12.0).reshape(6, 2), 2), 1: Kept(torch.zeros(1, 2))}, 2.5

    store = FillStore(tmp_path)
    first, _ = store.get({"fill": "x", "seed": 0}, make)
    again, seconds = FillStore(tmp_path).get({"fill": "x", "seed": 0}, make)
    assert seconds == 2.5  # those of the filling, not of reading it
    assert len(calls) == 1
    assert calls[0] is not None
    assert not calls[0].exists()
    assert list(again) == [4, 1]
    assert (len(again[4]), again[4].views) == (3, 2)
    assert torch.equal(again[4].inputs, first[4].inputs)
    store.get({"fill": "x", "seed": 1}, make)
    assert len(calls) == 2

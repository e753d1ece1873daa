"""Checkpoints: a killed training goes on as if nothing had happened; nothing else is taken for it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lcmat.training import log_of, train
from lcmat.training.checkpoint import Checkpoint
from samples import digits_like, normalised_net, same_state

SETTINGS: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 16,
    "schedule": "cosine",
    "record": True,
    "snapshots": (0, 1, 3),
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def after_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoint, "interval", 0.0)


class Killed(BaseException):
    pass


def kill_at(step: int) -> Any:
    def progress(done: int, _: int) -> None:
        if done == step:
            raise Killed

    return progress


def interrupted(folder: Path, step: int, **changes: Any) -> None:
    with pytest.raises(Killed):
        train(normalised_net(), digits_like(), **{**SETTINGS, **changes}, checkpoint=folder, progress=kill_at(step))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("step", [3, 4, 5, 11])
def test_a_killed_training_ends_bit_for_bit_like_an_uninterrupted_one(
    tmp_path: Path, step: int, optimizer: str
) -> None:
    changes = {"optimizer": optimizer, "lr": 0.01}
    interrupted(tmp_path, step, **changes)
    steps: list[int] = []
    resumed = train(
        normalised_net(),
        digits_like(),
        **{**SETTINGS, **changes},
        checkpoint=tmp_path,
        progress=lambda done, _: steps.append(done),
    )
    # The epoch under way is repeated, the ones before it are not; a kill at an epoch's last step comes before saving.
    assert steps[0] == 4 * ((step - 1) // 4) + 1
    whole = train(normalised_net(), digits_like(), **{**SETTINGS, **changes})
    assert same_state(resumed, whole)
    first, second = log_of(resumed), log_of(whole)
    assert first is not None
    assert second is not None
    assert first.losses == second.losses
    assert first.config == second.config
    assert first.record is not None
    assert second.record is not None
    assert torch.equal(first.record.probability, second.record.probability)
    assert first.snapshots.keys() == second.snapshots.keys() == {0, 1, 3}
    for epoch, snapshot in first.snapshots.items():
        assert all(torch.equal(value, second.snapshots[epoch][name]) for name, value in snapshot.items())


def test_a_finished_training_is_read_back_without_a_step(tmp_path: Path) -> None:
    first = train("convnet:width=4", digits_like(), **SETTINGS, checkpoint=tmp_path)
    again = train("convnet:width=4", digits_like(), **SETTINGS, checkpoint=tmp_path, progress=kill_at(1))
    assert same_state(first, again)
    assert log_of(again).losses == log_of(first).losses  # type: ignore[union-attr]
    assert log_of(again).seconds == log_of(first).seconds  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"lr": 0.05}, r"differs in lr \(0.1 there, 0.05 here\)"),
        ({"weights": torch.arange(60) + 1.0}, "differs in weights"),
        ({"seed": 1}, "differs in seed"),
        ({"epochs": 5}, "differs in epochs"),
    ],
)
def test_another_configuration_is_refused(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    interrupted(tmp_path, 9)
    with pytest.raises(ValueError, match=named + r".*give another folder, or delete this one"):
        train(normalised_net(), digits_like(), **{**SETTINGS, **change}, checkpoint=tmp_path)


def test_other_data_and_other_initial_weights_are_refused(tmp_path: Path) -> None:
    interrupted(tmp_path, 9)
    with pytest.raises(ValueError, match="differs in data"):
        train(normalised_net(), digits_like(56), **SETTINGS, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="differs in net"):
        train(normalised_net(1), digits_like(), **SETTINGS, checkpoint=tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    interrupted(tmp_path, 9)
    tensors = next(tmp_path.glob("*.safetensors"))
    tensors.write_bytes(tensors.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is damaged"):
        train(normalised_net(), digits_like(), **SETTINGS, checkpoint=tmp_path)
    (tmp_path / "training.json").write_text("{}")
    with pytest.raises(ValueError, match=r"training.json"):
        train(normalised_net(), digits_like(), **SETTINGS, checkpoint=tmp_path)


def test_a_checkpoint_is_json_and_safetensors_and_one_of_each(tmp_path: Path) -> None:
    interrupted(tmp_path, 9)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors"]
    meta = json.loads((tmp_path / "training.json").read_text())
    assert meta["epoch"] == 2
    assert meta["config"]["lr"] == 0.1


def test_shared_weights_are_kept(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flatten = nn.Flatten()
            self.inner = nn.Linear(64, 64, bias=False)
            self.again = self.inner
            self.head = nn.Linear(64, 4)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.head(torch.relu(self.again(torch.relu(self.inner(self.flatten(inputs))))))
            return logits

    net = Tied()
    first = train(net, digits_like(), epochs=1, lr=0.01, device="cpu", checkpoint=tmp_path)
    assert same_state(first, train(net, digits_like(), epochs=1, lr=0.01, device="cpu", checkpoint=tmp_path))


def test_between_two_checkpoints_time_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoint, "interval", 1e9)
    interrupted(tmp_path, 9)
    assert not list(tmp_path.iterdir())

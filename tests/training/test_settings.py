"""Settings: wrong ones are refused with what is right, and the key of a training depends on all of them."""

import re
from typing import Any

import pytest
import torch
from torch import nn

from lcmat.training import log_of, train, training_key
from lcmat.training.precision import resolve
from lcmat.types import Splits
from samples import digits_like, vectors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 3}, "either epochs or steps, got epochs=1 and steps=3"),
        ({"epochs": None}, "either epochs or steps, got epochs=None and steps=None"),
        ({"epochs": 0}, "epochs of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size of at least 1, got 0"),
        ({"lr": 0.0}, "learning rate lr above 0, got 0.0"),
        ({"lr": float("nan")}, "learning rate lr above 0, got nan"),
        ({"momentum": 1.0}, "momentum in [0, 1), got 1.0"),
        ({"weight_decay": -1.0}, "weight_decay of at least 0, got -1.0"),
        ({"schedule": "linear"}, "schedule to be 'constant' or 'cosine' or 'drops', got 'linear'"),
        ({"optimizer": "lion"}, "optimizer to be 'sgd' or 'adam', got 'lion'"),
        ({"snapshots": (1, 2)}, "snapshots of epochs from 0 to 1, got [2]"),
        ({"precision": "fp8"}, "precision of auto, float32, tf32, bf16, got 'fp8'"),
        ({"precision": "tf32"}, "'tf32' exists on CUDA devices only"),
        ({"weights": torch.ones(3)}, "50 weights, one for each sample, got shape [3]"),
        ({"weights": -torch.ones(50)}, "finite weights of at least 0"),
        ({"weights": torch.zeros(50)}, "not all of them 0"),
    ],
)
def test_a_wrong_setting_says_what_is_right(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        train("mlp", vectors(), **{"epochs": 1, "device": "cpu", **changes})


def test_no_momentum_means_no_nesterov_either() -> None:
    train("mlp:width=4", vectors(), epochs=1, momentum=0.0, device="cpu")


def test_both_parts_of_a_data_set_are_not_one() -> None:
    data = vectors()
    with pytest.raises(TypeError, match=r"got Splits; give its part \.train"):
        train("mlp", Splits(data, data, "both"), epochs=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("net", [3, None, nn.Linear])
def test_what_is_no_network_is_refused(net: Any) -> None:
    with pytest.raises(TypeError, match=f"expected the name of a network or an nn.Module, got {type(net).__name__}"):
        train(net, vectors(), epochs=1, device="cpu")


def config(net: str | nn.Module = "mlp:width=4", n: int = 50, **changes: Any) -> dict[str, Any]:
    log = log_of(train(net, vectors(n), **{"epochs": 1, "device": "cpu", **changes}))
    assert log is not None
    return dict(log.config)


def test_the_key_depends_on_everything_that_the_result_depends_on() -> None:
    linear = nn.Linear(5, 3)
    same = nn.Linear(5, 3)
    same.load_state_dict(linear.state_dict())
    configs = [
        config(),
        config("mlp:width=5"),
        config(linear),
        config(n=48),
        config(epochs=2),
        config(lr=0.05),
        config(batch_size=16),
        config(momentum=0.5),
        config(nesterov=False),
        config(weight_decay=0.0),
        config(schedule="cosine"),
        config(optimizer="adam", lr=1e-3),
        config(weights=torch.arange(50.0)),
        config(seed=1),
        config(augment=False),
        config(record=True),
        config(snapshots=(1,)),
        config(precision="bf16"),
    ]
    keys = [training_key(part) for part in configs]
    assert len(set(keys)) == len(keys)
    assert training_key(config()) == keys[0]
    assert training_key(config(same)) == keys[2]


def test_the_configuration_is_plain_and_names_the_versions() -> None:
    data = digits_like()
    log = log_of(train("convnet:width=4", data, epochs=1, device="cpu"))
    assert log is not None
    assert log.config["data"] == data.fingerprint
    assert log.config["torch"] == torch.__version__
    assert {"lcmat", "device", "precision", "normalisation", "flip"} <= log.config.keys()


def test_auto_precision_is_float32_on_the_cpu_and_bf16_on_cuda() -> None:
    assert resolve("auto", torch.device("cpu")) == "float32"
    assert resolve("auto", torch.device("cuda")) == "bf16"
    assert resolve("auto", torch.device("cuda"), on_cuda="tf32") == "tf32"
    assert resolve("auto", torch.device("cpu"), on_cuda="tf32") == "float32"
    assert resolve("tf32", torch.device("cuda")) == "tf32"

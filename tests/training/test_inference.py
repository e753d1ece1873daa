"""Inference leaves no trace, and its result does not depend on how the samples are batched."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from lcmat.training import accuracy, predict
from lcmat.training.inference import evaluating
from lcmat.types import FeatureData
from samples import digits_like, normalised_net, vectors


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Check that state, training modes and the global generator are afterwards as they were."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [part.training for part in model.modules()]
    draws = torch.get_rng_state()
    try:
        yield
    finally:
        assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
        assert [part.training for part in model.modules()] == modes
        assert torch.equal(torch.get_rng_state(), draws)


def test_logits_are_those_of_evaluation_mode_whatever_the_batch_size() -> None:
    data = digits_like()
    net = normalised_net()
    net.norm.eval()
    inputs = (data.images.float() / 255 - data.mean[0]) / data.std[0]
    with untouched(net):
        logits = {size: predict(net, data, batch_size=size, device="cpu") for size in (1, 7, 1000, None)}
    net.eval()
    expected = net(inputs).detach()
    for found in logits.values():
        assert found.device.type == "cpu"
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_the_mode_comes_back_after_an_error() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm2d(1)

        def forward(self, inputs: Tensor) -> Tensor:
            raise ArithmeticError(f"not today, {len(inputs)} samples")

    net = Broken().train()
    with untouched(net), pytest.raises(ArithmeticError):
        predict(net, digits_like(), device="cpu")


def test_buffers_that_a_forward_pass_changes_are_put_back() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls: Tensor
            self.register_buffer("calls", torch.zeros(()))
            self.head = nn.Linear(5, 3)

        def forward(self, inputs: Tensor) -> Tensor:
            self.calls += 1
            logits: Tensor = self.head(inputs)
            return logits

    net = Counting()
    with untouched(net):
        predict(net, vectors(), device="cpu")


def test_no_gradient_is_recorded() -> None:
    with evaluating(normalised_net(), torch.device("cpu")) as net:
        assert not net(torch.zeros(2, 1, 8, 8)).requires_grad


def test_accuracy_is_the_share_of_right_classes() -> None:
    net = nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.eye(3))
    features = torch.eye(3)[[0, 1, 2, 2]]
    data = FeatureData(features, torch.tensor([0, 1, 2, 0]), ("a", "b", "c"), mean=(0.0,) * 3, std=(1.0,) * 3)
    assert accuracy(net, data, device="cpu") == 0.75


def test_a_batch_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="batch size of at least 1, got 0"):
        predict(nn.Linear(5, 3), vectors(), batch_size=0, device="cpu")


@pytest.mark.gpu
def test_cpu_and_gpu_agree() -> None:
    data = digits_like()
    net = normalised_net()
    with untouched(net):
        on_gpu = predict(net, data, device="cuda", precision="float32")
    assert next(net.parameters()).device.type == "cpu"
    torch.testing.assert_close(on_gpu, predict(net, data, device="cpu"), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(predict(net, data, device="cuda"), on_gpu, atol=0.1, rtol=0.1)

"""Batch norm with shortcut and ReLU: the layers it stands for, and the kernels that do the same."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from lcmat.networks import norms as module
from lcmat.networks.norms import BatchNorm, fused_kernels
from lcmat.seeding import generator


def maps(seed: int, shape: tuple[int, ...]) -> Tensor:
    drawn = torch.randn(shape, generator=generator(seed, "norms"))
    return drawn.mul(2).add(5).contiguous(memory_format=torch.channels_last)


def twins(channels: int, *, relu: bool) -> tuple[BatchNorm, nn.BatchNorm2d]:
    own, plain = BatchNorm(channels, relu=relu), nn.BatchNorm2d(channels)
    with torch.no_grad():
        own.weight.copy_(torch.linspace(-1, 2, channels))
        own.bias.copy_(torch.linspace(1, -1, channels))
    plain.load_state_dict(own.state_dict())
    return own, plain


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("relu", [True, False])
def test_it_is_the_layers_one_after_the_other(relu: bool, joined: bool, training: bool) -> None:
    own, plain = twins(5, relu=relu)
    own.train(training)
    plain.train(training)
    inputs, shortcut = (maps(seed, (3, 5, 4, 6)) for seed in (0, 1))
    expected = plain(inputs)
    if joined:
        expected = expected + shortcut
    if relu:
        expected = expected.clamp(min=0)
    torch.testing.assert_close(own(inputs, shortcut if joined else None), expected)
    torch.testing.assert_close(own.state_dict(), plain.state_dict())


class _Layers:
    """In the place of the kernels: torch's layers; wrong ones where asked for."""

    def __init__(self, factor: float = 1.0, momentum: float = 1.0) -> None:
        self.factor, self.momentum = factor, momentum

    def norm(
        self, maps: Tensor, shortcut: Tensor | None, weight: Tensor, bias: Tensor,
        running: tuple[Tensor, Tensor, Tensor], tickets: Tensor, *, momentum: float, eps: float, relu: bool,
    ) -> Tensor:  # fmt: skip
        assert not tickets.any()
        mean, variance, seen = running
        seen += 1
        functional.batch_norm(maps.detach(), mean, variance, training=True, momentum=momentum * self.momentum, eps=eps)
        return self.layers(maps, shortcut, weight, bias * self.factor, eps, relu=relu)

    def layers(
        self, maps: Tensor, shortcut: Tensor | None, weight: Tensor, bias: Tensor, eps: float, *, relu: bool
    ) -> Tensor:
        outputs = functional.batch_norm(maps, None, None, weight, bias, training=True, eps=eps)
        outputs = outputs if shortcut is None else outputs + shortcut
        return functional.relu(outputs) if relu else outputs


def test_kernels_are_tried_against_the_layers_before_they_are_used() -> None:
    right = _Layers()
    module._compare(right, torch.device("cpu"))
    wrong = _Layers(momentum=0.5)
    with pytest.raises(AssertionError, match="not close"):
        module._compare(wrong, torch.device("cpu"))


@pytest.fixture
def with_kernels() -> None:
    assert fused_kernels(torch.device("cuda", torch.cuda.current_device())) is not None, (
        "this GPU has no Triton, or its kernels are wrong"
    )


@pytest.mark.gpu
@pytest.mark.usefixtures("with_kernels")
@pytest.mark.parametrize("form", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(128, 64, 32, 32), (116, 512, 4, 4), (7, 80, 9, 9), (3, 1, 4, 4), (9, 130, 1, 1)])
@pytest.mark.parametrize(("relu", "joined"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_kernels_compute_what_the_layers_do(
    relu: bool, joined: bool, shape: tuple[int, ...], form: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [maps(seed, shape).to("cuda", form).requires_grad_() for seed in range(2 if joined else 1)]
    slopes = maps(2, shape).sub(5).cuda()

    def everything() -> tuple[Tensor, ...]:
        norm = twins(shape[1], relu=relu)[0].cuda()
        for _ in range(3):  # again, with tickets that were used
            value = norm(*parts)
            found = torch.autograd.grad((value.float() * slopes).sum(), [*parts, norm.weight, norm.bias])
        assert not norm.tickets.any()
        return tuple(part.float() for part in (value, *found, *norm.state_dict().values()))

    own, again = everything(), everything()
    monkeypatch.setattr(BatchNorm, "kernels", False)
    # Rounding decides on which side of the ReLU's corner a pixel lies, so that slopes of single ones may differ.
    close, of_slopes = (1e-2, 0.1) if form == torch.bfloat16 else (1e-4, 5e-3)
    for place, (ours, same, theirs) in enumerate(zip(own, again, everything(), strict=True)):
        assert torch.equal(ours, same), "programs that sum may not depend on which of them is done first"
        slope = 0 < place <= len(parts) + 2
        assert float((ours - theirs).norm() / theirs.norm()) < (of_slopes if slope else close)


@pytest.mark.gpu
@pytest.mark.usefixtures("with_kernels")
def test_the_kernels_hide_nothing_that_is_no_number() -> None:
    inputs = maps(0, (4, 6, 5, 5)).cuda()
    inputs[1, 2, 3, 4] = torch.nan
    values = twins(6, relu=True)[0].cuda()(inputs.requires_grad_())
    assert values.isnan().any((0, 2, 3)).tolist() == [False, False, True, False, False, False]
    assert torch.autograd.grad(values.sum(), inputs)[0].isnan().any()


@pytest.mark.gpu
@pytest.mark.usefixtures("with_kernels")
def test_slopes_of_the_kernels_can_be_differentiated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [maps(seed, (4, 6, 5, 5)).cuda().requires_grad_() for seed in range(2)]

    def second() -> tuple[Tensor, ...]:
        norm = twins(6, relu=True)[0].cuda()
        wanted = [parts[0], norm.weight]
        first = torch.autograd.grad(norm(*parts).square().sum(), wanted, create_graph=True)
        return torch.autograd.grad(sum((part.square().sum() for part in first), torch.zeros(())), wanted)

    own = second()
    monkeypatch.setattr(BatchNorm, "kernels", False)
    torch.testing.assert_close(own, second(), rtol=1e-3, atol=1e-3)

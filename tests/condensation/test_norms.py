"""The norm of each channel in dual numbers against automatic differentiation of the plain one."""

import sys
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

from lcmat import networks
from lcmat.condensation import norms as module
from lcmat.condensation.follower import lightened
from lcmat.condensation.norms import ChannelNorm, NormReluPool, fused_kernels
from lcmat.seeding import generator
from samples import digits_like


def plain_norm() -> nn.GroupNorm:
    norm = nn.GroupNorm(3, 3, eps=0.1).double()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([0.5, 1.5, -1.0]))
        norm.bias.copy_(torch.tensor([0.1, -0.2, 0.3]))
    return norm


def maps(seed: int, shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape, generator=generator(seed, "norms"), dtype=torch.float64)


def in_dual_numbers(norm: nn.Module, values: Tensor, tangents: Tensor) -> tuple[Tensor, Tensor]:
    with forward_ad.dual_level():
        value, tangent = forward_ad.unpack_dual(norm(forward_ad.make_dual(values, tangents)))
    assert tangent is not None
    return value, tangent


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 7)])
def test_dual_numbers_are_those_of_automatic_differentiation(shape: tuple[int, ...]) -> None:
    plain = plain_norm()
    values, tangents = (maps(seed, shape).requires_grad_() for seed in (0, 1))
    found = in_dual_numbers(ChannelNorm.of(plain), values, tangents)
    truth = torch.autograd.functional.jvp(plain, (values,), (tangents,), create_graph=True)
    weights = [maps(seed, shape) for seed in (2, 3)]
    slopes = [
        torch.autograd.grad(sum((a * b).sum() for a, b in zip(pair, weights, strict=True)), [values, tangents])
        for pair in (found, truth)
    ]
    for ours, theirs in zip((*found, *slopes[0]), (*truth, *slopes[1]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_derivatives_of_dual_numbers_are_not_differentiated_again_without_a_word() -> None:
    # The closed forms take the mean and the scale as given, so that a second derivative would be wrong.
    values, tangents = (maps(seed, (2, 3, 4, 4)).requires_grad_() for seed in (0, 1))
    _, change = in_dual_numbers(ChannelNorm.of(plain_norm()), values, tangents)
    [slope] = torch.autograd.grad(change.square().sum(), [values], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.square().sum().backward()


def test_outside_dual_numbers_it_is_the_plain_norm_whose_weights_learn() -> None:
    plain = plain_norm()
    own = ChannelNorm.of(plain)
    values = maps(0, (2, 3, 4, 4))
    torch.testing.assert_close(own(values), plain(values), rtol=0, atol=0)
    own(values).square().sum().backward()
    assert own.weight is plain.weight
    assert plain.weight.grad is not None


def test_a_lightened_network_is_the_same_function() -> None:
    data = digits_like(12, channels=2, classes=3)
    net, own = (networks.build("convnet:width=4,depth=2", data, seed=1).double() for _ in range(2))
    own = lightened(own)
    inputs = maps(0, (5, 2, 8, 8))
    torch.testing.assert_close(own(inputs), net(inputs))
    layers = list(own.modules())
    assert sum(isinstance(part, NormReluPool) for part in layers) == 2
    assert own.state_dict().keys() < net.state_dict().keys(), "weights keep their names"
    assert all(part.bias is None for part in layers if isinstance(part, nn.Conv2d))
    other = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Conv2d(4, 4, 3))
    assert len(lightened(other).state_dict()) == 6, "norms over several channels keep what a bias changes"


@pytest.mark.parametrize("behind", [[nn.ReLU()], [nn.ReLU(), nn.AvgPool2d(3)], [nn.Tanh(), nn.AvgPool2d(2)]])
def test_only_the_pool_that_is_meant_is_taken_in(behind: list[nn.Module]) -> None:
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.GroupNorm(3, 3), *behind).double()
    inputs = maps(0, (2, 2, 8, 8))
    expected = net(inputs)
    torch.testing.assert_close(lightened(net)(inputs), expected)
    assert type(net[1]) is ChannelNorm


@pytest.mark.gpu
@pytest.mark.parametrize("side", [8, 12, 32, 64])
def test_kernels_compute_what_plain_layers_do(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fused_kernels(torch.device("cuda", torch.cuda.current_device())) is not None
    norm = NormReluPool.of(plain_norm()).float().cuda()
    parts = [maps(seed, (5, 3, side, side)).float().cuda().requires_grad_() for seed in (0, 1)]
    weights = [maps(seed, (5, 3, side // 2, side // 2)).float().cuda() for seed in (2, 3)]

    def everything() -> list[Tensor]:
        plain = norm(parts[0])
        first = torch.autograd.grad((plain * weights[0]).sum(), [parts[0], norm.weight, norm.bias])
        both = in_dual_numbers(norm, *parts)
        value = torch.stack([(a * b).sum() for a, b in zip(both, weights, strict=True)]).sum()
        return [plain, *first, *both, *torch.autograd.grad(value, parts)]

    with_kernels = everything()
    monkeypatch.setattr(NormReluPool, "kernels", False)
    for ours, theirs in zip(with_kernels, everything(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


class _Layers:
    """In the place of the kernels: the layers, in dual numbers as well; wrong ones where asked for."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def norm_relu_pool(self, maps: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        normal = functional.group_norm(maps, maps.shape[1], weight, bias, eps)
        return functional.avg_pool2d(functional.relu(normal), 2)

    def dual_norm_relu_pool(
        self, maps: Tensor, tangents: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        with forward_ad.dual_level():
            made = self.norm_relu_pool(forward_ad.make_dual(maps, tangents), weight, bias, eps)
            value, change = forward_ad.unpack_dual(made)
        assert change is not None
        return value, change * self.factor


def test_kernels_are_tried_against_the_layers_before_they_are_used() -> None:
    module._compare(_Layers(), torch.device("cpu"))
    with pytest.raises(AssertionError, match="not close"):
        module._compare(_Layers(1.01), torch.device("cpu"))


def test_without_working_kernels_the_layers_are_used_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no compiler\nand more")

    monkeypatch.setitem(sys.modules, "lcmat.condensation.fused", ModuleType("fused"))
    monkeypatch.setattr(module, "_compare", broken)
    fused_kernels.cache_clear()
    with pytest.warns(UserWarning, match=r"without the kernels in Triton, which is slower: no compiler$"):
        assert fused_kernels(torch.device("cpu")) is None
    fused_kernels.cache_clear()

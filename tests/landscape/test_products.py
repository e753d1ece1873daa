"""Values, gradients and Hessian-vector products against explicit Hessians in float64."""

from typing import Any

import pytest
import torch
from torch import nn

from landscape.cases import (
    CPU,
    batch_norm_network,
    flat_parameters,
    subset_of,
    tiny_network,
    tiny_pool,
    true_gap,
    true_hessian,
)
from lcmat import extract, seeding
from lcmat.landscape.head_gap import HeadGap
from lcmat.landscape.network_gap import NetworkGap
from lcmat.landscape.samples import make_pool
from samples import digits_like, normalised_net, same_state, vectors

ROWS = [0, 4, 5, 11, 22]


def random_direction(size: int) -> torch.Tensor:
    return torch.randn(size, generator=seeding.generator(0, "test"), dtype=torch.float64)


@pytest.mark.parametrize("batch_size", [None, 1, 7, 23])
def test_whole_network_agrees_with_the_explicit_hessian_in_uneven_batches(batch_size: int | None) -> None:
    model, pool = tiny_pool(ROWS)
    gap = NetworkGap(model, pool.data, pool.targets, pool.coefficients("S"), CPU, batch_size)
    shift = 0.1 * random_direction(gap.size)
    place = (flat_parameters(model) + shift).requires_grad_()
    truth = true_gap(model, place, pool.data, ROWS)
    [gradient] = torch.autograd.grad(truth, place)
    value, found = gap.value_and_gradient(shift)
    assert value == pytest.approx(truth.item(), abs=1e-12)
    assert gap.value(shift) == pytest.approx(value, abs=1e-14)
    torch.testing.assert_close(found, gradient, atol=1e-12, rtol=1e-9)
    direction = random_direction(gap.size)
    torch.testing.assert_close(
        gap.product(direction), true_hessian(model, pool.data, ROWS) @ direction, atol=1e-12, rtol=1e-9
    )


def test_the_graph_of_a_single_batch_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pool = tiny_pool(ROWS)
    calls, loss = [], NetworkGap._loss

    def counted(gap: NetworkGap, point: Any, batch: Any) -> torch.Tensor:
        calls.append(batch)
        return loss(gap, point, batch)

    monkeypatch.setattr(NetworkGap, "_loss", counted)
    for size, expected in ((23, 1), (7, 3 * 4)):
        gap = NetworkGap(model, pool.data, pool.targets, pool.coefficients("S"), CPU, size)
        calls.clear()
        for seed in range(3):
            direction = seed * random_direction(gap.size)
            truth = true_hessian(model, pool.data, ROWS) @ direction
            torch.testing.assert_close(gap.product(direction), truth, atol=1e-12, rtol=1e-9)
        assert len(calls) == expected


def test_a_loss_without_curvature_has_none() -> None:
    class Straight(nn.Module):
        """A parameter that the loss does not depend on, and one that the gradient does not depend on."""

        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Parameter(torch.zeros(3, dtype=torch.float64))
            self.unused = nn.Parameter(torch.ones(2, dtype=torch.float64))

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return (0 * inputs).sum(1, keepdim=True) + 0 * self.used

    data = vectors(9, d=4, classes=3)
    model = Straight().eval()
    gap = NetworkGap(model, data, data.labels, torch.full((9,), 1 / 9, dtype=torch.float64), CPU)
    assert not gap.product(torch.ones(5, dtype=torch.float64)).any()


def test_batch_norm_and_dropout_in_evaluation_mode_agree_with_the_explicit_hessian() -> None:
    data, rows = digits_like(9), [1, 6]
    model = batch_norm_network()
    pool = make_pool(data, {"S": subset_of(data, rows)})
    gap = NetworkGap(model, data, pool.targets, pool.coefficients("S"), CPU, 4)
    direction = random_direction(gap.size)
    truth = true_hessian(model, data, rows) @ direction
    torch.testing.assert_close(gap.product(direction), truth, atol=1e-11, rtol=1e-9)


def test_the_model_is_left_as_it_was() -> None:
    data = digits_like(9)
    model, before = batch_norm_network(), batch_norm_network()
    pool = make_pool(data, {"S": subset_of(data, [1, 6])})
    gap = NetworkGap(model, data, pool.targets, pool.coefficients("S"), CPU)
    gap.product(random_direction(gap.size))
    assert same_state(model, before)
    assert all(part.grad is None for part in model.parameters())


@pytest.mark.parametrize("part", ["norm", "dropout"])
def test_training_mode_is_refused(part: str) -> None:
    data, model = digits_like(9), batch_norm_network()
    model.get_submodule(part).train()
    with pytest.raises(ValueError, match=rf"{part} .*training mode.*call model.eval\(\)"):
        NetworkGap(model, data, data.labels, torch.zeros(9), CPU)


def test_batch_norm_without_running_statistics_is_refused() -> None:
    data = digits_like(9)
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64, track_running_stats=False), nn.Linear(64, 4)).eval()
    with pytest.raises(ValueError, match="statistics of each batch"):
        NetworkGap(model, data, data.labels, torch.zeros(9), CPU)


def test_a_model_without_trainable_parameters_is_refused() -> None:
    model, pool = tiny_pool(ROWS)
    gap = NetworkGap(model.requires_grad_(False), pool.data, pool.targets, pool.coefficients("S"), CPU)
    with pytest.raises(ValueError, match="none of them requires a gradient"):
        gap.product(torch.zeros(1))


def test_frozen_parameters_stand_still() -> None:
    model, pool = tiny_pool(ROWS)
    whole = true_hessian(model, pool.data, ROWS)
    model[0].requires_grad_(False)
    gap = NetworkGap(model, pool.data, pool.targets, pool.coefficients("S"), CPU)
    assert gap.size == 18
    direction = random_direction(gap.size)
    torch.testing.assert_close(gap.product(direction), whole[-18:, -18:] @ direction, atol=1e-12, rtol=1e-9)


def head_gap(bias: bool = True) -> tuple[HeadGap, torch.Tensor]:
    """The closed form, and the explicit Hessian's block of the head ordered as `[C, d+1]`."""
    data = vectors(23, d=4, classes=3)
    model = tiny_network(data)
    if not bias:
        model[2].register_parameter("bias", None)
    pool = make_pool(data, {"S": subset_of(data, ROWS)})
    gap = HeadGap.of(extract(model, data), pool.targets, pool.coefficients("S"))
    weights = 5 * 3
    block = true_hessian(model, data, ROWS)[30 - 5 :][:, 30 - 5 :]
    order = [c * 5 + j if j < 5 else weights + c for c in range(3) for j in range(5 + bias)]
    return gap, block[order][:, order]


@pytest.mark.parametrize("bias", [True, False])
def test_the_closed_form_is_the_head_s_block_of_the_whole_hessian(bias: bool) -> None:
    gap, truth = head_gap(bias)
    torch.testing.assert_close(gap.hessian(), truth, atol=1e-12, rtol=1e-9)
    direction = random_direction(gap.size)
    torch.testing.assert_close(gap.product(direction), truth @ direction, atol=1e-12, rtol=1e-9)


def test_the_closed_form_agrees_with_the_whole_network_path_restricted_to_the_head() -> None:
    data = vectors(23, d=4, classes=3)
    model = tiny_network(data)
    pool = make_pool(data, {"S": subset_of(data, ROWS)})
    closed = HeadGap.of(extract(model, data), pool.targets, pool.coefficients("S"))
    model[0].requires_grad_(False)
    network = NetworkGap(model, data, pool.targets, pool.coefficients("S"), CPU, 5)
    order = [c * 5 + j if j < 5 else 15 + c for c in range(3) for j in range(6)]
    shift = 0.2 * random_direction(18)
    value, gradient = closed.value_and_gradient(shift[order])
    expected, slope = network.value_and_gradient(shift)
    assert value == pytest.approx(expected, abs=1e-13)
    assert closed.value(shift[order]) == value
    torch.testing.assert_close(gradient, slope[order], atol=1e-12, rtol=1e-9)
    torch.testing.assert_close(closed.product(shift[order]), network.product(shift)[order], atol=1e-12, rtol=1e-9)


def test_soft_targets_give_the_gradient_of_their_cross_entropy() -> None:
    data = vectors(9, d=4, classes=3)
    model = tiny_network(data)
    soft = torch.softmax(random_direction(27).reshape(9, 3), 1)
    coefficients = torch.full((9,), 1 / 9, dtype=torch.float64)
    closed = HeadGap.of(extract(model, data), soft, coefficients)
    network = NetworkGap(model, data, soft, coefficients, CPU, 2)
    value, gradient = closed.value_and_gradient(torch.zeros(18, dtype=torch.float64))
    expected, slope = network.value_and_gradient(torch.zeros(43, dtype=torch.float64))
    order = [25 + (c * 5 + j if j < 5 else 15 + c) for c in range(3) for j in range(6)]
    assert value == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(gradient, slope[order], atol=1e-12, rtol=1e-9)


def test_batches_of_any_size_give_the_same_numbers_in_single_precision() -> None:
    data = digits_like(60)
    model = normalised_net().eval()
    pool = make_pool(data, {"S": subset_of(data, [3, 20, 41])})
    gaps = [NetworkGap(model, data, pool.targets, pool.coefficients("S"), CPU, size) for size in (1, 7, 60, 1000)]
    direction = random_direction(gaps[0].size).float()
    products = [gap.product(direction) for gap in gaps]
    for product in products[1:]:
        assert float((product - products[0]).norm()) < 1e-5 * float(products[0].norm())


@pytest.mark.gpu
def test_a_gpu_gives_what_the_processor_gives() -> None:
    data, model = digits_like(20), normalised_net().double().eval()
    pool = make_pool(data, {"S": subset_of(data, [3, 11])})
    direction = random_direction(sum(part.numel() for part in model.parameters()))
    found = [
        NetworkGap(model, data, pool.targets, pool.coefficients("S"), torch.device(place)).product(direction.to(place))
        for place in ("cpu", "cuda")
    ]
    torch.testing.assert_close(found[1].cpu(), found[0], atol=1e-10, rtol=1e-8)

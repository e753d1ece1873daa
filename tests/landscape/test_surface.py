"""Filter normalisation against its definition, and losses over planes against one by one."""

import copy

import pytest
import torch
from torch import Tensor, nn

from landscape.cases import CPU, flat_parameters, mean_loss, subset_of, tiny_pool
from lcmat import seeding
from lcmat.condensation.norms import NormReluPool
from lcmat.landscape import surface as surface_module
from lcmat.landscape.samples import make_pool
from lcmat.landscape.surface import Surface, filter_normalised, quick_copy
from lcmat.networks import build
from samples import digits_like, normalised_net, same_state


def test_every_filter_of_a_direction_is_as_long_as_the_network_s_own() -> None:
    model = normalised_net()
    with torch.no_grad():
        model.fc.weight[2] = 0  # a unit without weights is not moved
    values = {name: part.detach() for name, part in model.named_parameters()}
    direction = filter_normalised(values, seed=0)
    for name, value in values.items():
        if value.ndim == 1:
            assert not direction[name].any()
            continue
        for own, moved in zip(value, direction[name], strict=True):
            assert float(moved.norm()) == pytest.approx(float(own.norm()), rel=1e-5)
    draws = seeding.generator(0, "direction", 0)
    noise = torch.randn(values["convolution.weight"].shape, generator=draws)
    cosine = nn.functional.cosine_similarity(noise.flatten(1), direction["convolution.weight"].flatten(1))
    torch.testing.assert_close(cosine, torch.ones(6))


def test_directions_differ_by_seed_and_number_and_stay_the_same() -> None:
    values = {"w": torch.randn(3, 4, generator=torch.Generator().manual_seed(0))}
    found = [filter_normalised(values, seed, number)["w"] for seed, number in ((0, 0), (0, 1), (1, 0), (0, 0))]
    assert torch.equal(found[0], found[3])
    assert not torch.allclose(found[0], found[1])
    assert not torch.allclose(found[0], found[2])


def test_a_plane_holds_the_losses_of_every_set_at_every_place() -> None:
    rows = [0, 4, 22]
    model, pool = tiny_pool(rows)
    plane = Surface(model, pool, CPU).plane(seed=5, reach=0.5, resolution=3)
    values = {name: part.detach() for name, part in model.named_parameters()}
    first, second = (
        torch.cat([part.flatten() for part in filter_normalised(values, 5, number).values()]) for number in (0, 1)
    )
    centre = flat_parameters(model)
    for row, beta in enumerate(plane.positions.tolist()):
        for column, alpha in enumerate(plane.positions.tolist()):
            place = centre + alpha * first + beta * second
            for name, taken in (("T", list(range(23))), ("S", rows)):
                truth = float(mean_loss(model, place, pool.data, torch.tensor(taken)))
                assert float(plane.losses[name][row, column]) == pytest.approx(truth, abs=1e-6)
    line = Surface(model, pool, CPU).line(seed=5, reach=0.5, resolution=3)
    torch.testing.assert_close(line.losses["S"], plane.losses["S"][1])


@pytest.mark.parametrize("net", ["convnet:width=4,depth=2", "resnet18"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_batches_of_any_size_give_the_same_losses(net: str, batch_size: int) -> None:
    data = digits_like(12)
    model = build(net, data).eval()
    pool = make_pool(data, {"S": subset_of(data, [1, 5])})
    whole, parts = (Surface(model, pool, CPU, batch_size=size).line(0, resolution=5) for size in (None, batch_size))
    for name in ("T", "S"):
        torch.testing.assert_close(parts.losses[name], whole.losses[name], rtol=1e-4, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("net", ["convnet:width=8", "resnet18"])
def test_a_gpu_gives_what_the_processor_gives(net: str) -> None:
    data = digits_like(40, size=32)
    model = build(net, data).eval()
    pool = make_pool(data, {"S": subset_of(data, [1, 5])})
    lines = [Surface(model, pool, torch.device(place)).line(0, resolution=5) for place in ("cpu", "cuda")]
    rounded = Surface(model, pool, torch.device("cuda"), precision="tf32", batch_size=7).line(0, resolution=5)
    for name in ("T", "S"):
        torch.testing.assert_close(lines[1].losses[name], lines[0].losses[name], rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(rounded.losses[name], lines[0].losses[name], rtol=2e-2, atol=1e-3)


def test_the_quick_copy_of_a_convnet_has_its_logits_and_all_weights_that_a_direction_moves() -> None:
    data = digits_like(12, size=16)
    model = build("convnet:width=4", data).eval()
    with torch.no_grad():
        for part in model.parameters():
            part.add_(0.3 * torch.randn(part.shape, generator=torch.Generator().manual_seed(part.numel())))
    own = quick_copy(model)
    assert sum(isinstance(part, NormReluPool) for part in own.modules()) == 3
    assert not any(isinstance(part, NormReluPool) for part in model.modules())
    moved = [{name for name, part in net.named_parameters() if part.ndim > 1} for net in (model, own)]
    assert moved[0] == moved[1]
    inputs = torch.randn(5, *data.inputs.shape[1:], generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(own(inputs), model(inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_kernels_give_the_losses_of_the_layers(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = digits_like(300, size=32)
    model = build("convnet", data).eval()
    pool = make_pool(data, {"S": subset_of(data, [1, 5, 70])})
    surface = Surface(model, pool, torch.device("cuda"), precision=precision)
    quick = surface.plane(0, resolution=3)
    monkeypatch.setattr(surface_module, "quick_copy", copy.deepcopy)
    plain = surface.plane(0, resolution=3)
    tolerance = {"float32": 1e-4, "tf32": 2e-2, "bf16": 5e-2}[precision]
    for name in ("T", "S"):
        torch.testing.assert_close(quick.losses[name], plain.losses[name], rtol=tolerance, atol=tolerance)


def test_frozen_parameters_stay_and_every_step_is_counted() -> None:
    rows, seen = [0, 4, 22], list[tuple[int, int]]()
    model, pool = tiny_pool(rows)
    model[0].requires_grad_(requires_grad=False)
    surface = Surface(model, pool, CPU, batch_size=12)
    plane = surface.plane(0, reach=0.5, resolution=3, progress=lambda *step: seen.append(step))
    assert seen == [(done, 2 * 9) for done in range(1, 2 * 9 + 1)]
    values = {f"2.{name}": part.detach() for name, part in model[2].named_parameters()}
    moved = torch.cat([part.flatten() for part in filter_normalised(values, 0, 0).values()])
    place = flat_parameters(model)
    place[-len(moved) :] += 0.5 * moved
    truth = float(mean_loss(model, place, pool.data, torch.arange(23)))
    assert float(plane.losses["T"][1, 2]) == pytest.approx(truth, abs=1e-6)


def test_the_model_is_left_as_it_was_and_may_be_any_module() -> None:
    class Branching(nn.Module):
        """A network whose code looks at values."""

        def __init__(self) -> None:
            super().__init__()
            self.net = normalised_net()

        def forward(self, inputs: Tensor) -> Tensor:
            logits: Tensor = self.net(inputs)
            return logits if bool(logits.sum() > 0) else logits * 1.0

    data, model = digits_like(12), Branching().eval()
    pool = make_pool(data, {"S": subset_of(data, [1, 5])})
    Surface(model, pool, CPU).plane(0, resolution=3)
    assert same_state(model.net, normalised_net())


def test_wrong_places_and_modes_are_refused() -> None:
    data = digits_like(12)
    pool = make_pool(data, {"S": subset_of(data, [1, 5])})
    surface = Surface(normalised_net().eval(), pool, CPU)
    with pytest.raises(ValueError, match="odd resolution"):
        surface.line(0, resolution=4)
    with pytest.raises(ValueError, match="reach above 0"):
        surface.line(0, reach=0)
    with pytest.raises(ValueError, match="batch size of at least 1"):
        Surface(normalised_net().eval(), pool, CPU, batch_size=0).line(0)
    with pytest.raises(ValueError, match="training mode"):
        Surface(normalised_net().train(), pool, CPU)

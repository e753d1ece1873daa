"""Extraction: closed forms against autograd, no dependence on batches, no trace, nothing unsteady accepted."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lcmat import extract, train
from lcmat.networks import build
from lcmat.seeding import generator
from lcmat.training.inputs import Normaliser
from lcmat.types import FeatureData, ImageData, Signals, Splits
from samples import NormalisedNet, digits_like, normalised_net, vectors


def parts(signals: Signals) -> tuple[Tensor, Tensor]:
    return signals.need("features"), signals.need("logits")


@pytest.mark.parametrize("bias", [True, False])
def test_residuals_and_head_gradients_are_autograd_s(bias: bool) -> None:
    data = vectors(23)
    net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3, bias=bias)).double()
    signals = extract(net, data, device="cpu", batch_size=7)
    assert signals.bias is bias
    features, logits = parts(signals)
    assert features.dtype == torch.float64
    inputs = (data.features.double() - torch.tensor(data.mean, dtype=torch.float64)) / torch.tensor(
        data.std, dtype=torch.float64
    )
    head = net[2]
    assert isinstance(head, nn.Linear)
    for i in range(len(data)):
        z = net(inputs[i : i + 1])
        torch.testing.assert_close(logits[i], z[0].detach())
        z.retain_grad()
        loss = nn.functional.cross_entropy(z, data.labels[i : i + 1])
        found = torch.autograd.grad(loss, [z, *head.parameters()])
        torch.testing.assert_close(signals.residuals[i], found[0][0])
        ends = torch.cat([features[i], torch.ones(1)]) if bias else features[i]
        wanted = torch.cat([part.reshape(3, -1) for part in found[1:]], 1)
        torch.testing.assert_close(torch.outer(signals.residuals[i], ends), wanted)


def test_signals_carry_what_is_known_of_the_data() -> None:
    data = digits_like()
    signals = extract(normalised_net(), data, device="cpu")
    assert signals.labels is not None
    assert torch.equal(signals.labels, data.labels)
    assert signals.fingerprint == data.fingerprint
    assert signals.class_names == data.class_names
    assert signals.record is None


def test_the_batch_size_does_not_matter_and_the_model_is_untouched() -> None:
    data = digits_like(50)
    net = normalised_net()
    net.norm.eval()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    before = torch.get_rng_state()
    reference = parts(extract(net, data, device="cpu", batch_size=1000))
    for size in (1, 7, 49):
        for got, wanted in zip(parts(extract(net, data, device="cpu", batch_size=size)), reference, strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert [part.training for part in net.modules()] == [True, True, False, True, True]
    assert torch.equal(torch.get_rng_state(), before)
    assert not net.fc._forward_hooks
    in_one_class = extract(net, data.take((data.labels == 2).nonzero().flatten()), device="cpu")
    torch.testing.assert_close(parts(in_one_class)[0], reference[0][data.labels == 2], atol=1e-5, rtol=1e-5)


def test_the_last_layer_s_input_is_captured_or_the_named_one_s() -> None:
    class Backwards(nn.Module):
        """Defines its head first."""

        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(4, 3)
            self.inner = nn.Linear(5, 4)

        def forward(self, inputs: Tensor) -> Tensor:
            logits: Tensor = self.out(torch.relu(self.inner(inputs)))
            return logits

    net, data = Backwards(), vectors()
    features, logits = parts(extract(net, data, head="out", device="cpu"))
    assert features.shape == (50, 4)
    torch.testing.assert_close(net.out(features), logits)
    with pytest.raises(
        ValueError, match=r"'inner', \[48, 4\], is not the output of the model, \[48, 3\]; name the layer"
    ):
        extract(net, data, device="cpu")


@pytest.mark.parametrize("size", [2, 3, 50])
def test_few_samples_are_enough(size: int) -> None:
    assert extract(nn.Linear(5, 3), vectors(50).take(torch.arange(size)), device="cpu").n == size


class Changed(nn.Module):
    """A linear model whose output is changed by a function."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self.fc = nn.Linear(5, 3)
        self.change = change

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.change(self.fc(inputs))
        return output


def test_probabilities_are_noticed_and_the_values_before_softmax_taken() -> None:
    net = Changed(lambda logits: logits.softmax(1))
    with pytest.warns(UserWarning, match=r"probabilities, not logits; .* layer 'fc', .*training leave the softmax out"):
        signals = extract(net, vectors(), device="cpu")
    assert not torch.allclose(signals.need("logits").sum(1), torch.ones(50))


def test_log_probabilities_are_logits() -> None:
    signals = extract(Changed(lambda logits: logits.log_softmax(1)), vectors(), device="cpu")
    assert signals.n == 50


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda logits: 2 * logits, ValueError, "is not the output of the model"),
        (lambda logits: {"logits": logits}, TypeError, r"logits as a tensor \[n, C\], got dict"),
        (lambda logits: logits[:, :2], ValueError, r"expected logits of shape \[48, 3\].*got \[48, 2\]"),
        (lambda logits: logits / 0, ValueError, "expected finite logits"),
    ],
)
def test_an_output_that_is_no_logits_is_refused(change: Any, error: type[Exception], message: str) -> None:
    net = Changed(change)
    if "finite" in message:
        net = Changed(lambda logits: logits)
        with torch.no_grad():
            net.fc.weight[0, 0] = float("nan")
    with pytest.raises(error, match=message):
        extract(net, vectors(), device="cpu")


def test_a_head_that_gets_maps_or_is_not_used_is_refused() -> None:
    class Tokens(nn.Module):
        def __init__(self, *, used: bool) -> None:
            super().__init__()
            self.first = nn.Linear(5, 3)
            self.fc = nn.Linear(3, 3)
            self.used = used

        def forward(self, inputs: Tensor) -> Tensor:
            hidden: Tensor = self.first(inputs)
            return self.fc(hidden[:, None].expand(-1, 2, -1)).mean(1) if self.used else hidden

    with pytest.raises(ValueError, match=r"one vector for each of the 48 samples, got \[48, 2, 3\]"):
        extract(Tokens(used=True), vectors(), device="cpu")
    with pytest.raises(ValueError, match=r"'fc' takes no part in the forward pass"):
        extract(Tokens(used=False), vectors(), device="cpu")


def test_a_model_without_a_linear_layer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no nn.Linear"):
        extract(nn.Sequential(nn.Conv2d(1, 4, 8), nn.Flatten()), digits_like(), device="cpu")


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        ("mlp", vectors(), r"expected a trained nn\.Module, got str; lcmat\.train"),
        (nn.Linear(5, 3), Splits(vectors(), vectors(), "both"), r"got Splits; give its part \.train"),
        (nn.Linear(5, 3), [vectors()], r"expected ImageData or FeatureData to extract from, got list; lcmat\.load"),
    ],
)
def test_what_is_no_model_or_no_data_is_refused(model: Any, data: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        extract(model, data)


def test_a_model_that_changes_from_pass_to_pass_is_refused() -> None:
    class AlwaysDrops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(5, 3)

        def forward(self, inputs: Tensor) -> Tensor:
            logits: Tensor = self.fc(nn.functional.dropout(inputs, 0.5, training=True))
            return logits

    net = AlwaysDrops()
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match=r"two passes over the same samples .* gave different outputs"):
        extract(net, vectors(), device="cpu")
    assert torch.equal(torch.get_rng_state(), before)


def test_batch_statistics_are_refused_and_what_they_changed_is_put_back() -> None:
    class TrainingStatistics(NormalisedNet):
        """What the reference implementation does: batch statistics although nobody trains."""

        def forward(self, inputs: Tensor) -> Tensor:
            self.norm.train()
            return super().forward(inputs)

    net = TrainingStatistics()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(ValueError, match="depend on which other samples share its batch"):
        extract(net, digits_like(), device="cpu")
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    stateless = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 3))
    with pytest.raises(ValueError, match="depend on which other samples share its batch"):
        extract(stateless, vectors(), device="cpu")


def test_data_that_change_during_the_pass_are_refused() -> None:
    data = digits_like()

    class Spoils(NormalisedNet):
        """Changes the stored images once the probes are over."""

        calls = 0

        def forward(self, inputs: Tensor) -> Tensor:
            Spoils.calls += 1
            if Spoils.calls == 4:
                data.images.copy_(data.images.flip(0))
            return super().forward(inputs)

    net = Spoils()
    net.load_state_dict(normalised_net().state_dict())
    with pytest.raises(ValueError, match="changed between two passes over the data"):
        extract(net, data, device="cpu", batch_size=16)


def test_points_are_the_kept_snapshots_and_the_model_stays_at_its_end() -> None:
    data = digits_like()
    model = train(normalised_net(), data, epochs=3, batch_size=16, snapshots=(1, 3), record=True, device="cpu")
    final = parts(extract(model, data, device="cpu"))
    early, late = extract(model, data, points=[1, 3], device="cpu")
    twin = train(normalised_net(), data, epochs=1, batch_size=16, device="cpu")
    for got, wanted in zip(parts(early), parts(extract(twin, data, device="cpu")), strict=True):
        torch.testing.assert_close(got, wanted)
    for name, got, wanted in zip(("features", "logits"), parts(late), final, strict=True):
        torch.testing.assert_close(got, wanted, msg=name)
    assert not torch.allclose(parts(early)[1], final[1])
    assert torch.equal(parts(extract(model, data, device="cpu"))[1], final[1])
    with pytest.raises(
        ValueError, match=r"no snapshot of epochs \[2\]; it has those of epochs \[1, 3\]; train it with"
    ):
        extract(model, data, points=[1, 2], device="cpu")
    with pytest.raises(ValueError, match=r"no snapshot of epochs \[1\]; it has none"):
        extract(normalised_net(), data, points=[1], device="cpu")
    with pytest.raises(ValueError, match="expected points as epochs of kept snapshots, got none"):
        extract(model, data, points=[], device="cpu")


def test_the_record_comes_along_for_the_data_that_was_trained_on() -> None:
    data = digits_like()
    model = train(normalised_net(), data, epochs=2, record=True, device="cpu")
    signals = extract(model, data, device="cpu")
    assert signals.record is not None
    assert signals.record.correct.shape == (2, 60)
    final = signals.probabilities[torch.arange(60), data.labels]
    torch.testing.assert_close(signals.record.probability[-1].double(), final, atol=1e-5, rtol=1e-5)
    other = ImageData(data.images.flip(0), data.labels, data.class_names, flip=False)
    assert extract(model, other, device="cpu").record is None


def test_inputs_are_normalised_by_the_data_s_statistics() -> None:
    features = torch.randn(20, 5, generator=generator(0)) * 3 + 7
    data = FeatureData(features, torch.arange(20) % 3, tuple("abc"), mean=(1.0,) * 5, std=(2.0,) * 5)
    net = nn.Linear(5, 3)
    torch.testing.assert_close(extract(net, data, device="cpu").need("features"), (features - 1) / 2)


def test_batches_of_one_class_lend_their_statistics_and_leave_no_trace() -> None:
    data = digits_like(37)
    net = build("resnet10", data)
    with torch.no_grad():
        for part in net.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.uniform_(-1, 1)  # type: ignore[union-attr]
    before = {name: value.clone() for name, value in net.state_dict().items()}
    signals = extract(net, data, statistics="class-batch", batch_size=6)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(part.track_running_stats for part in net.modules() if isinstance(part, nn.BatchNorm2d))

    expected = torch.empty_like(signals.need("logits"))
    twin = copy.deepcopy(net).train()
    for label in data.labels.unique():
        rows = (data.labels == label).nonzero().flatten()
        batches = list(rows.split(6))
        if len(batches) > 1 and len(batches[-1]) == 1:
            batches[-2:] = [torch.cat(batches[-2:])]
        for batch in batches:
            expected[batch] = twin(Normaliser.of(net, data, torch.device("cpu"))(data.inputs[batch])).detach()
    torch.testing.assert_close(signals.logits, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(signals.need("logits"), extract(net, data).need("logits"), atol=1e-2)


def test_batch_statistics_need_batch_normalisation() -> None:
    data = digits_like()
    with pytest.raises(ValueError, match=r"needs a model with batch normalisation; this one has none"):
        extract(build("convnet:width=8", data), data, statistics="class-batch")
    with pytest.raises(ValueError, match=r"expected statistics of 'running' or 'class-batch', got 'batch'"):
        extract(build("convnet:width=8", data), data, statistics="batch")


def test_one_class_is_fine() -> None:
    data = vectors()
    one = data.take((data.labels == 1).nonzero().flatten())
    assert extract(nn.Linear(5, 3), one, device="cpu").n == len(one)


@pytest.mark.gpu
def test_gpu_signals_stay_there_and_agree_with_the_cpu_s() -> None:
    data, net = digits_like(), normalised_net()
    reference = parts(extract(net, data, device="cpu"))
    for precision, tolerance in (("float32", 1e-4), ("tf32", 1e-2), ("bf16", 1e-1)):
        signals = extract(net, data, device="cuda", precision=precision)
        assert signals.device.type == "cuda"
        for got, wanted in zip(parts(signals), reference, strict=True):
            torch.testing.assert_close(got.cpu(), wanted, atol=tolerance, rtol=tolerance)
    assert next(net.parameters()).device.type == "cpu"

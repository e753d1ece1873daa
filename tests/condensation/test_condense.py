"""What every condenser must do, and what `condense` refuses."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from condensation.cases import METHODS, NET, QUICK, SEPARABLE, images, quick, same
from lcmat import networks, training
from lcmat.condensation import CONDENSERS, DivergenceError, condense, condensers
from lcmat.condensation.checkpoint import Checkpoint
from lcmat.condensation.loop import SHORTEST_BLOCK
from lcmat.condensation.objectives import curvature, gradients_by_cosine, means_of_features
from lcmat.condensation.registry import Objective
from lcmat.condensation.views import matched_layers, view_gradients
from lcmat.training import predict
from lcmat.training.inputs import Normaliser
from lcmat.types import ImageData, SyntheticSet
from samples import digits_like, vectors


@pytest.mark.parametrize("method", METHODS)
def test_every_condenser_keeps_the_contract(method: str) -> None:
    data = images()
    before = torch.get_rng_state()
    tiny = quick(method, data)
    assert torch.equal(torch.get_rng_state(), before), "the global generator is left alone"
    assert tiny.per_class == (2, 2, 2)
    assert tiny.inputs.dtype == torch.float32
    assert tiny.fingerprint == data.fingerprint
    assert tiny.label_kind == "hard"
    assert set(tiny.options) == set(CONDENSERS.find(method).options)
    assert method in condensers()
    assert same(tiny, quick(method, data)), "the same seed gives the same bits"
    assert not same(tiny, quick(method, data, seed=1))
    moved = not same(tiny, replace(quick("random", data), inputs=quick("random", data).inputs))
    assert moved == (method != "random")


@pytest.mark.parametrize("method", METHODS)
def test_feature_vectors_condense(method: str) -> None:
    data = vectors(60)
    tiny = quick(method, data)
    assert tiny.inputs.shape == (6, 5)
    assert not tiny.are_images
    assert tiny.data().mean == data.mean


@pytest.mark.parametrize("method", [name for name in METHODS if name != "random"])
def test_a_killed_run_goes_on_to_the_same_bits(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    steps = 3 * SHORTEST_BLOCK

    def kill(done: int, total: int, loss: float) -> None:
        if done > SHORTEST_BLOCK:
            raise KeyboardInterrupt

    whole = quick(method, steps=steps)
    with pytest.raises(KeyboardInterrupt):
        quick(method, steps=steps, checkpoint=tmp_path, progress=kill)
    calls: list[int] = []
    resumed = quick(method, steps=steps, checkpoint=tmp_path, progress=lambda done, *_: calls.append(done))
    assert calls[0] > SHORTEST_BLOCK, "it did not begin anew"
    assert same(whole, resumed)
    assert same(whole, quick(method, steps=steps, checkpoint=tmp_path)), "a finished one is read"


def test_a_finished_run_is_continued_by_more_steps(tmp_path: Path) -> None:
    quick("lcmat-c", steps=20, checkpoint=tmp_path)
    longer = quick("lcmat-c", steps=40, checkpoint=tmp_path)
    assert same(longer, quick("lcmat-c", steps=40))
    with pytest.raises(ValueError, match="of 40 steps, more than the 20 asked for"):
        quick("lcmat-c", steps=20, checkpoint=tmp_path)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    quick("dm", checkpoint=tmp_path)
    with pytest.raises(ValueError, match="another condensation: its seed is 0, asked for is 1"):
        quick("dm", checkpoint=tmp_path, seed=1)
    with pytest.raises(ValueError, match="another condensation: its data is"):
        quick("dm", digits_like(61, classes=3), checkpoint=tmp_path)


@pytest.mark.parametrize("method", SEPARABLE)
def test_shards_join_to_the_whole(method: str) -> None:
    whole = quick(method, factor=2, per_class=2)
    shards = [quick(method, factor=2, per_class=2, classes=classes) for classes in ([2], [0, 1])]
    joined = SyntheticSet.join(shards)
    assert torch.equal(joined.labels, whole.labels)
    # Batches of other sizes are rounded otherwise; a network's ReLUs make more of that with every step.
    torch.testing.assert_close(joined.inputs, whole.inputs, atol=2e-3, rtol=0)
    assert {key: joined.recipe[key] for key in ("classes", "net")} == {"classes": [0, 1, 2], "net": NET}


@pytest.mark.parametrize("method", ["dc", "dsa", "kip"])
def test_methods_that_need_all_classes_refuse_shards(method: str) -> None:
    with pytest.raises(ValueError, match="cannot condense some classes apart"):
        quick(method, classes=[0])
    if method != "kip":
        assert quick(method, classes=[0], follow="real").per_class == (2, 0, 0)


def test_fewer_classes_together_change_only_rounding() -> None:
    whole = quick("lcmat-c")
    torch.testing.assert_close(quick("lcmat-c", together=1).inputs, whole.inputs, atol=2e-3, rtol=0)


def on_fresh_networks(tiny: SyntheticSet, data: ImageData, objective: Objective) -> float:
    """The mean objective under networks that condensation has not seen, over all the data."""
    normalise = Normaliser(data, torch.float32, torch.device("cpu"))
    made = tiny.rounded()
    total = 0.0
    for seed in range(900, 905):
        net = networks.build(NET, data, seed=seed)
        layers = matched_layers(net, head=True)
        first, second = (
            view_gradients(
                net,
                layers,
                torch.stack([normalise(inputs[labels == index]) for index in range(3)]),
                torch.eye(3)[:, None].expand(-1, int((labels == 0).sum()), -1),
            )
            for inputs, labels in ((data.images, data.labels), (made.inputs, made.labels))
        )
        total += float(objective(first, second).sum())
    return total / 5


@pytest.mark.parametrize(
    ("method", "objective"),
    [("dc", gradients_by_cosine), ("lcmat-c", partial(curvature, rho=0.1)), ("dm", means_of_features)],
)
def test_the_objective_falls_on_fresh_networks_and_they_learn_more(method: str, objective: Objective) -> None:
    data = images()
    plain = {} if method == "dc" else {"augmentation": ""}
    noise = quick(method, data, steps=1, lr=1e-9, start="noise")
    tiny = quick(method, data, steps=160, start="noise", **plain)
    assert on_fresh_networks(tiny, data, objective) < 0.75 * on_fresh_networks(noise, data, objective)

    def accuracy(made: SyntheticSet) -> float:
        return training.accuracy(training.train(NET, made.data(), steps=40, lr=0.05, seed=5, device="cpu"), data)

    assert accuracy(tiny) > max(0.75, accuracy(noise) + 0.2)


def test_random_samples_are_real_ones_without_repetition() -> None:
    data = images()
    tiny = quick("random", data, per_class=20)
    rows = {image.numpy().tobytes() for image in tiny.rounded().inputs}
    assert rows == {image.numpy().tobytes() for image in data.images}


def test_noise_and_real_starts() -> None:
    noise, real = (quick("dm", steps=1, lr=1e-9, start=start) for start in ("noise", "real"))
    spread = noise.inputs.flatten(1).std(1)
    assert ((spread > 0.18) & (spread < 0.28)).all()
    pool = images().images.float() / 255
    distances = (real.inputs[:, None] - pool).abs().amax((2, 3, 4))
    assert distances.min(1).values.max() < 1e-6
    with pytest.raises(
        ValueError, match="at least 21 samples of class 'class 0' to start from real ones, there are 20"
    ):
        quick("dm", per_class=21)
    assert quick("dm", per_class=21, start="noise", steps=1).per_class == (21, 21, 21)
    with pytest.raises(ValueError, match="start to be 'noise' or 'real', got 'zero'"):
        quick("dm", start="zero")
    with pytest.raises(ValueError, match="gives what it starts from"):
        quick("random", start="noise")


@pytest.mark.parametrize("method", METHODS)
def test_several_images_in_one(method: str) -> None:
    tiny = quick(method, factor=2, per_class=1)
    assert len(tiny) == 3
    data = tiny.data()
    assert len(data) == 12
    assert data.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4


@pytest.mark.parametrize(
    "data",
    [digits_like(30, classes=2, size=64, channels=3, flip=True), digits_like(30, classes=2, size=20, channels=1)],
    ids=["64 pixels", "grey"],
)
def test_other_sizes_and_channels_work(data: ImageData) -> None:
    tiny = quick("lcmat-c", data, steps=2, per_class=1)
    assert tiny.inputs.shape[1:] == data.images.shape[1:]
    assert torch.isfinite(tiny.inputs).all()


def test_soft_labels_come_from_a_teacher_and_say_so() -> None:
    data = images()
    teacher = networks.build(NET, data, seed=4)
    tiny = quick("dm", data, factor=2, labels="soft", teacher=teacher)
    assert tiny.label_kind == "soft (a teacher that was given)"
    assert tiny.soft is not None
    assert tiny.soft.shape == (24, 3)
    expected = predict(teacher, tiny.data(), device="cpu").softmax(1)
    torch.testing.assert_close(tiny.soft, expected)
    own = quick("random", data, labels="soft")
    assert own.label_kind == f"soft ({NET}, 20 epochs on all the data)"


def test_labels_are_learned_where_asked_for() -> None:
    tiny = quick("kip", learn_labels=True, steps=40)
    assert tiny.label_kind == "soft (learned with the samples)"
    assert tiny.soft is not None
    assert (tiny.soft.argmax(1) == tiny.labels).all()
    assert tiny.soft.std() > 0
    with pytest.raises(ValueError, match="learned or come from a teacher, not both"):
        quick("kip", learn_labels=True, labels="soft")


@pytest.mark.parametrize("method", ["dc", "dm", "lcmat-c"])
def test_values_that_are_not_finite_stop_the_run(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    block = SHORTEST_BLOCK
    good: list[Tensor] = []

    def remember(step: int, tiny: SyntheticSet) -> None:
        good.append(tiny.inputs)

    def spoil(looked: Callable[..., Any]) -> Callable[..., Any]:
        calls = 0

        def look(self: Any, inputs: Tensor, targets: Tensor) -> Any:
            nonlocal calls
            calls += 1
            view = looked(self, inputs, targets)
            if calls == block + 7:
                nothing = inputs.sum() * float("nan")
                parts = tuple(part + nothing for part in view.gradients)
                view = replace(view, features=view.features + nothing, gradients=parts)
            return view

        return look

    from lcmat.condensation.loop import Loop

    monkeypatch.setattr(Loop, "_look", spoil(Loop._look))
    with pytest.raises(DivergenceError, match=rf"the loss of step {block + 7} of 60 .* lower rate") as caught:
        quick(method, steps=60, checkpoint=tmp_path, watch=remember, watch_every=1)
    assert str(tmp_path) in str(caught.value)
    assert torch.equal(caught.value.kept.inputs, good[-1])
    assert caught.value.kept.recipe["steps"] == block


def test_watching_changes_nothing() -> None:
    looks: list[tuple[int, int]] = []
    tiny = quick("dm", steps=60, watch=lambda step, made: looks.append((step, len(made))), watch_every=30)
    assert looks == [(40, 6), (60, 6)]
    assert same(tiny, quick("dm", steps=60))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"per_class": 0}, ValueError, "per_class of at least 1, got 0"),
        ({"method": "lcmat"}, ValueError, "unknown condenser 'lcmat'; did you mean 'lcmat-c'"),
        ({"rhoo": 1.0}, TypeError, "unknown option of lcmat-c 'rhoo'; did you mean 'rho'"),
        ({"rho": -1.0}, ValueError, "rho of at least 0, got -1"),
        ({"lr": 0.0}, ValueError, "lr above 0"),
        ({"method": "dsa", "augmentation": "blur"}, ValueError, "augmentation of color, crop"),
        ({"method": "dsa", "follow": "both"}, ValueError, "follow to be 'real' or 'synthetic'"),
        ({"method": "kip", "kernel": "cosine"}, ValueError, "kernel to be 'dense' or 'convolutional'"),
        ({"labels": "fuzzy"}, ValueError, "labels to be 'hard' or 'soft', got 'fuzzy'"),
        ({"factor": 3}, ValueError, "factor that divides the images' sides, 8 × 8, got 3"),
        ({"factor": 0}, ValueError, "factor of at least 1"),
        ({"steps": 0}, ValueError, "steps and watch_every of at least 1"),
        ({"classes": [0, 7]}, ValueError, "classes from 0 to 2 that have samples, got 7"),
        ({"classes": [1, 1]}, ValueError, "distinct classes"),
        ({"net": "resnet18"}, ValueError, "without batch normalisation"),
        ({"data": digits_like(20, classes=1)}, ValueError, "at least two classes"),
        ({"data": vectors(20), "factor": 2}, ValueError, "need images; use factor=1"),
        ({"data": "digits"}, TypeError, "expected ImageData or FeatureData"),
        ({"precision": "tf32"}, ValueError, "CUDA devices only"),
    ],
)
def test_bad_input_says_what_is_wrong(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"data": images(), "method": "lcmat-c", "per_class": 1, "steps": 1, "device": "cpu", **settings}
    with pytest.raises(error, match=message):
        condense(given.pop("data"), given.pop("method"), **given)


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS)
def test_captured_steps_on_a_gpu(method: str) -> None:
    settings = {"steps": 40, "net": NET, "per_class": 2, **QUICK[method]}
    plain, captured = (
        condense(images(), method, device="cuda", precision="float32", graph=graph, **settings)
        for graph in (False, True)
    )
    torch.testing.assert_close(plain.inputs, captured.inputs, atol=5e-2, rtol=0)

"""Speed of condensation: a step of every condenser, all classes at once against one after the other, the variance term.

On a GPU also the step that the limits are about, part by part: ConvNet-3, 10 images a class, 64 real images a class,
CIFAR-10's shapes; there the limit for LCMat-C, its network's training included, is 8 ms on one H200.

    python benchmarks/condensation.py [--threads 1] [--only step]
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lcmat import augment, runtime
from lcmat.condensation import CONDENSERS, views
from lcmat.condensation.loop import Loop
from lcmat.condensation.norms import NormReluPool, fused_kernels
from lcmat.condensation.plan import make_plan
from lcmat.seeding import generator
from lcmat.training import precision as number_formats
from lcmat.training.inputs import input_type
from lcmat.training.step import GraphStep
from lcmat.types import ImageData

LIMIT_MS = 8.0


def noise(n: int, channels: int, size: int) -> ImageData:
    """Images of ten classes in these shapes; what they show makes no difference to the time."""
    images = torch.randint(0, 256, (n, channels, size, size), generator=generator(0), dtype=torch.uint8)
    return ImageData(images, torch.arange(n) % 10, tuple(map(str, range(10))))


def milliseconds(work: Callable[[], object], device: torch.device, *, repeats: int) -> float:
    """The median time of some calls, after two that warm up."""
    spent = []
    for index in range(repeats + 2):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if index >= 2:
            spent.append(1e3 * (time.perf_counter() - started))
    return sorted(spent)[len(spent) // 2]


def make_loop(
    data: ImageData, method: str, net: str, device: torch.device, *, per_class: int = 10, together: int | None = None,
    precision: str = "auto", graph: bool = True, **options: Any,
) -> Loop:  # fmt: skip
    """A condensation, ready to take steps."""
    plan = make_plan(
        data, method, options, per_class=per_class, net=net, factor=1, start="noise", labels="hard", classes=None,
        together=together, seed=0,
    )  # fmt: skip
    return Loop(data, plan, device, precision=number_formats.resolve(precision, device), graph=graph)


def steps_of_all(data: ImageData, net: str, device: torch.device, repeats: int) -> None:
    """A step of the samples and the network's training after it, for every condenser with 64 real samples a class."""
    print(f"{'ms, 10 of each class':28}{'samples':>10}{'network':>10}{'new network':>13}")
    for entry in CONDENSERS:
        if entry.name == "random":
            continue
        options: dict[str, Any] = {"real_batch": 64} if "real_batch" in entry.options else {}
        loop = make_loop(data, entry.name, net, device, **options)
        match = milliseconds(lambda loop=loop: loop.match_step(0), device, repeats=repeats)  # type: ignore[misc]
        follow = 0.0
        if loop.recipe.follow:
            follow = milliseconds(lambda loop=loop: loop.train_step(0), device, repeats=repeats)  # type: ignore[misc]
        renew = milliseconds(loop.follower.renew, device, repeats=repeats)
        print(f"{entry.name:28}{match:10.1f}{follow:10.1f}{renew:13.1f}")


def comparisons(data: ImageData, net: str, device: torch.device, repeats: int) -> None:
    """What computing all classes at once saves, and what the variance term costs."""
    cases: list[tuple[str, dict[str, Any]]] = [
        ("all classes at once", {}),
        ("one class after the other", {"together": 1}),
        ("without the variance term", {"rho": 0.0}),
    ]
    loops = [(name, make_loop(data, "lcmat-c", net, device, **options)) for name, options in cases]
    measured = {
        name: milliseconds(lambda loop=loop: loop.match_step(0), device, repeats=repeats)  # type: ignore[misc]
        for name, loop in loops
    }
    whole = measured["all classes at once"]
    print(f"\n{'lcmat-c, ms a step':28}{'':>10}{'relative':>10}")
    for name, value in measured.items():
        print(f"{name:28}{value:10.1f}{value / whole:10.2f}")


def parts_of_a_step(loop: Loop) -> dict[str, Callable[[], Tensor]]:
    """The parts of LCMat-C's step, each alone, on samples drawn once."""
    assert loop.recipe.objective is not None
    batch, draws = loop.recipe.real_batch, loop.generators["matching"]
    classes = len(loop.classes)
    targets = loop.labels.expand(-1, loop.plan.per_class, -1)
    labels = loop.labels.expand(-1, batch, -1)

    def draw() -> Tensor:
        real = loop.real.of_classes(loop.classes, torch.rand(classes, batch, generator=draws, device=loop.device))
        both = torch.cat([real, loop.stored.detach()], 1)
        once = augment.draw(loop.operations, classes, generator=draws, device=loop.device)
        changed: Tensor = once(both.flatten(0, 1)).unflatten(0, both.shape[:2])
        return changed

    real, synthetic = (part.clone() for part in draw().split([batch, loop.plan.per_class], 1))
    net, quick = loop.follower.net, loop.follower.quick
    layers = loop.layers[net]
    look = partial(views.view_gradients, net, layers)
    objective = partial(loop.recipe.objective, views.view_gradients(quick, loop.layers[quick], real, labels))
    seen = look(synthetic, targets)
    direction = views.slope(objective, seen)[1]

    def forward() -> Tensor:
        with torch.no_grad():
            logits: Tensor = quick(real.flatten(0, 1).to(input_type(quick)))
        return logits

    def second() -> Tensor:
        point = synthetic.detach().requires_grad_()
        return torch.autograd.grad(views.along(net, layers, point, targets, direction), [point])[0]

    return {
        "draw, augment": draw,
        "real: forward alone": forward,
        "real: forward, gradients": lambda: loop._look(real, labels).residuals,
        "synthetic: forward, gradients": lambda: look(synthetic, targets).residuals,
        "objective and its slope": lambda: views.slope(objective, seen)[0],
        "synthetic: dual forward, backward": second,
        "whole step of the samples": loop.match,
        "network's training": loop.train,
    }


def check_kernels(device: torch.device) -> None:
    """Whether fused kernels move the samples as plain layers do; with precisions beside it for comparison."""
    if fused_kernels(device) is None:
        print("\nno fused kernels: Triton is missing, or finds no compiler")
        return
    moved = {}
    for precision, kernels in (("float32", False), ("float32", True), ("tf32", True), ("bf16", True)):
        NormReluPool.kernels = kernels
        loop = make_loop(noise(5000, 3, 32), "lcmat-c", "convnet", device, precision=precision, graph=False)
        with number_formats.float32_products(precision, device):
            loop.match()
        assert loop.stored.grad is not None
        moved[precision, kernels] = loop.stored.grad.double()
    truth = moved.pop(("float32", False))
    print("\nderivatives in the samples against float32 with plain norms, relative:")
    for (precision, _), found in moved.items():
        print(f"{precision}, fused norms: {float((found - truth).norm() / truth.norm()):.1e}")


def gpu_step(device: torch.device, precision: str, *, kernels: bool) -> float:
    """LCMat-C's inner step in the shapes of CIFAR-10: its parts, and milliseconds of the whole."""
    NormReluPool.kernels = kernels
    name = f"{precision}, {'fused' if kernels else 'plain'} norms"
    print(f"\n== lcmat-c, ConvNet-3, 3 × 32 × 32, {name}; ms, each part alone")
    print(f"{'':36}{'no graph':>10}{'graph':>10}")
    loop = make_loop(noise(5000, 3, 32), "lcmat-c", "convnet", device, precision=precision, graph=False)
    with number_formats.float32_products(precision, device):
        for name, work in parts_of_a_step(loop).items():
            captured = GraphStep(lambda _, work=work: work(), list(loop.generators.values()))  # type: ignore[misc]
            times = [milliseconds(call, device, repeats=20) for call in (work, partial(captured, 0))]
            print(f"{name:36}{times[0]:10.2f}{times[1]:10.2f}")
        loop, plain = (
            make_loop(noise(5000, 3, 32), "lcmat-c", "convnet", device, precision=precision, rho=rho)
            for rho in (0.1, 0.0)
        )

        def step() -> None:
            loop.match_step(0)
            loop.train_step(0)

        whole = milliseconds(step, device, repeats=100)
        terms = [milliseconds(partial(one.match_step, 0), device, repeats=50) for one in (loop, plain)]
    print(f"{'the variance term, share of a step':36}{'':>10}{terms[0] / terms[1] - 1:10.1%}")
    print(f"{'samples and network, as in a run':36}{'':>10}{whole:10.2f}")
    return whole


def slowest_kernels(device: torch.device, precision: str, count: int = 30) -> None:
    """Where the device spends a step, kernel by kernel."""
    loop = make_loop(noise(5000, 3, 32), "lcmat-c", "convnet", device, precision=precision, graph=False)
    with number_formats.float32_products(precision, device):
        for _ in range(2):
            loop.match()
            loop.train()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            loop.match()
            loop.train()
            torch.cuda.synchronize()
    found = sorted(profile.key_averages(), key=lambda event: -event.device_time_total)
    launches, total = sum(event.count for event in found), sum(event.device_time_total for event in found)
    print(f"\n{precision}: {launches} launches, {total / 1e3:.2f} ms on the device")
    for event in found[:count]:
        print(f"{event.device_time_total / 1e3:8.3f} ms {event.count:5} × {event.key[:110]}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", choices=("small", "step"), help="either the small shapes or the step on a GPU")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    device = runtime.pick_device()
    print(f"{runtime.machine()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    if given.only != "step":
        small_shapes(device, given.repeats)
    if device.type != "cuda":
        print(f"\nThe limit of {LIMIT_MS:.0f} ms on an H200 was not measured: this machine has no CUDA device.")
    elif given.only != "small":
        check_kernels(device)
        times = {
            (precision, kernels): gpu_step(device, precision, kernels=kernels)
            for precision, kernels in (("float32", True), ("tf32", True), ("bf16", False), ("bf16", True))
        }
        print("\nlcmat-c, network's training included")
        for (precision, kernels), value in times.items():
            print(f"{precision}, {'fused' if kernels else 'plain'} norms: {value:.2f} ms, limit {LIMIT_MS:.2f} ms")
        slowest_kernels(device, "bf16")


def small_shapes(device: torch.device, repeats: int) -> None:
    """Every condenser on images that a CPU can do."""
    for title, data, net, count in (
        ("digits' shape, 1 × 8 × 8, convnet:width=32", noise(1440, 1, 8), "convnet:width=32", repeats),
        ("3 × 32 × 32, convnet:width=32", noise(1000, 3, 32), "convnet:width=32", max(1, repeats // 5)),
    ):
        print(f"\n== {title}")
        if data.images.shape[2] == 8:
            steps_of_all(data, net, device, count)
        comparisons(data, net, device, count)


if __name__ == "__main__":
    main()

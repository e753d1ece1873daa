"""Speed of condensation: a step of every condenser, all classes at once against one after the other, the variance term.

On a GPU also the step that the limits are about: ConvNet-3, 10 images a class, 64 real images a class, CIFAR-10's
shapes; there the limit for LCMat-C, its network's training included, is 8 ms on one H200.

    python benchmarks/condensation.py [--threads 1]
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from lcmat import runtime
from lcmat.condensation import CONDENSERS
from lcmat.condensation.loop import Loop
from lcmat.condensation.plan import make_plan
from lcmat.seeding import generator
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
    **options: Any,
) -> Loop:  # fmt: skip
    """A condensation, ready to take steps."""
    plan = make_plan(
        data, method, options, per_class=per_class, net=net, factor=1, start="noise", labels="hard", classes=None,
        together=together, seed=0,
    )  # fmt: skip
    precision = "tf32" if device.type == "cuda" else "float32"
    return Loop(data, plan, device, precision=precision, graph=True)


def steps_of_all(data: ImageData, net: str, device: torch.device, repeats: int) -> None:
    """A step of the samples and the network's training after it, for every condenser with 64 real samples a class."""
    print(f"{'ms, 10 of each class':28}{'samples':>10}{'network':>10}{'new network':>13}")
    for entry in CONDENSERS:
        if entry.name == "random":
            continue
        options = {"real_batch": 64} if "real_batch" in entry.options else {}
        loop = make_loop(data, entry.name, net, device, **options)
        match = milliseconds(lambda loop=loop: loop.match_step(0), device, repeats=repeats)  # type: ignore[misc]
        follow = 0.0
        if loop.recipe.follow:
            follow = milliseconds(lambda loop=loop: loop.train_step(0), device, repeats=repeats)  # type: ignore[misc]
        renew = milliseconds(loop.renew, device, repeats=repeats)
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


def gpu_limit(device: torch.device) -> None:
    """LCMat-C's inner step in the shapes of CIFAR-10, against its limit."""
    loop = make_loop(noise(5000, 3, 32), "lcmat-c", "convnet", device)

    def step() -> None:
        loop.match_step(0)
        loop.train_step(0)

    value = milliseconds(step, device, repeats=200)
    print(f"\nlcmat-c, ConvNet-3, 3 × 32 × 32, network's training included: {value:.2f} ms, limit {LIMIT_MS:.2f} ms")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--repeats", type=int, default=15)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    device = runtime.pick_device()
    print(f"{runtime.machine()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    for title, data, net, repeats in (
        ("digits' shape, 1 × 8 × 8, convnet:width=32", noise(1440, 1, 8), "convnet:width=32", given.repeats),
        ("3 × 32 × 32, convnet:width=32", noise(1000, 3, 32), "convnet:width=32", max(1, given.repeats // 5)),
    ):
        print(f"\n== {title}")
        if data.images.shape[2] == 8:
            steps_of_all(data, net, device, repeats)
        comparisons(data, net, device, repeats)
    if device.type == "cuda":
        gpu_limit(device)
    else:
        print("\nThe limit of 8 ms on an H200 was not measured: this machine has no CUDA device.")


if __name__ == "__main__":
    main()

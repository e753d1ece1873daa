"""Eigenvalues of H_T − H_S and loss surfaces, beside the limits this project has set itself.

    python benchmarks/curvature.py

The last layer has the shapes of CIFAR-10 under ResNet-18: 50,000 samples, 512 features, 10 classes, 1 % kept. The whole
network is ConvNet-3 on images of 32 × 32, 100 samples, 10 kept. On a CUDA device loss planes of 51 × 51 points come
first, of ConvNet-3 with 5,000 samples and of ResNet-18 with 1,000: coarse planes say what each would take with TF32,
which `lcmat curvature` uses, and with bf16; `--whole-planes` does the ones with TF32 in full, and gives them up at
their limit. Pixels and features are random: they cost as much as real ones. The exit status is 1 when a limit is
exceeded, a projected one included.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import torch

from lcmat import runtime
from lcmat.landscape.eigen import Spectrum, spectrum_of
from lcmat.landscape.head_gap import HeadGap
from lcmat.landscape.network_gap import NetworkGap
from lcmat.landscape.samples import Pool, make_pool
from lcmat.landscape.surface import Surface
from lcmat.networks import build
from lcmat.seeding import generator
from lcmat.selection import random_like
from lcmat.types import ImageData, Signals

Result = TypeVar("Result")

CLASSES = 10
HEAD_SECONDS, NETWORK_SECONDS, PLANE_SECONDS = 5.0, 60.0, 60.0


def last_layer() -> Spectrum:
    """λ of the last layer, 50,000 × 512 × 10, from the Signals on."""
    n, features = 50_000, 512
    draws = generator(0, "benchmark")
    labels = torch.arange(n) % CLASSES
    centres = torch.randn(CLASSES, features, generator=draws)
    inputs = torch.randn(n, features, generator=draws).add_(centres[labels], alpha=0.3).relu_()
    signals = Signals(features=inputs, logits=inputs @ centres.T / 4, labels=labels)
    coefficients = torch.full((n,), 1 / n, dtype=torch.float64)
    coefficients[:500] -= 1 / 500
    return timed(lambda: spectrum_of(HeadGap.of(signals, labels, coefficients)), HEAD_SECONDS, "last layer, λ")


def noise(n: int) -> Pool:
    """Random images, a tenth of them kept."""
    images = torch.randint(0, 256, (n, 3, 32, 32), generator=generator(0, "benchmark"), dtype=torch.uint8)
    data = ImageData(images, torch.arange(n) % CLASSES, tuple("0123456789"))
    return make_pool(data, {"S": random_like(data.labels, [n // 100] * CLASSES, n, 0)})


def whole_network(device: torch.device) -> Spectrum:
    """λ of ConvNet-3, 100 samples."""
    pool = noise(100)
    model = build("convnet", pool.data).eval()
    gap = NetworkGap(model, pool.data, pool.targets, pool.coefficients("S"), device)
    return timed(lambda: spectrum_of(gap), NETWORK_SECONDS, "ConvNet-3, λ")


class TooLateError(Exception):
    """The limit was reached before the work was done."""


def project(surface: Surface, points: int, coarse: tuple[int, int] = (5, 9)) -> float:
    """The seconds of a plane, from two coarse ones: what comes before the first point counts once."""
    surface.plane(0, resolution=3)
    small, large = (elapsed(lambda: surface.plane(0, resolution=some))[0] for some in coarse)  # noqa: B023
    each = (large - small) / (coarse[1] ** 2 - coarse[0] ** 2)
    return large + each * (points**2 - coarse[1] ** 2)


def plane(net: str, n: int, device: torch.device, *, whole: bool, points: int = 51) -> None:
    """The losses over a plane, projected with TF32, which `lcmat curvature` uses, and with bf16; or measured."""
    pool = noise(n)
    model = build(net, pool.data).eval()
    name = f"{net}, {n:,} samples, {points} × {points} points"
    for precision in ("bf16", "tf32"):
        surface = Surface(model, pool, device, precision=precision)
        seconds = project(surface, points)
        print(f"{name}, {precision}: {seconds:.1f} s projected, limit {PLANE_SECONDS:.0f} s", flush=True)
    if not whole:
        if seconds > PLANE_SECONDS:
            EXCEEDED.append(name)
        return
    started = time.perf_counter()

    def give_up(done: int, total: int) -> None:
        if time.perf_counter() - started > PLANE_SECONDS:
            raise TooLateError(f"{done / total:.0%} done")

    try:
        timed(lambda: surface.plane(0, resolution=points, progress=give_up), PLANE_SECONDS, name)
    except TooLateError as reason:
        EXCEEDED.append(name)
        print(f"{name}: given up after {PLANE_SECONDS:.0f} s, {reason}: EXCEEDED", flush=True)


EXCEEDED: list[str] = []


def timed(work: Callable[[], Result], limit: float, name: str) -> Result:
    """Do it, and print the seconds beside the limit."""
    seconds, result = elapsed(work)
    if seconds > limit:
        EXCEEDED.append(name)
    print(f"{name:<48}{seconds:>8.2f} s   {limit:.0f} s: {'kept' if seconds <= limit else 'EXCEEDED'}", flush=True)
    return result


def elapsed(work: Callable[[], Result]) -> tuple[float, Result]:
    """The seconds that it takes, and what it gives."""
    started = time.perf_counter()
    result = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started, result


def main() -> int:
    """Measure; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--rounds", type=int, default=1, help="times the eigenvalues are measured")
    parser.add_argument("--whole-planes", action="store_true", help="do them in full, each up to its limit")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = runtime.pick_device()
    print(f"{runtime.machine()}, torch {torch.__version__}, {arguments.threads} threads")
    if device.type == "cuda":
        plane("convnet", 5000, device, whole=arguments.whole_planes)
        plane("resnet18", 1000, device, whole=arguments.whole_planes)
    for _ in range(arguments.rounds):
        for found in (last_layer(), whole_network(device)):
            print(
                f"    λ from {found.smallest[0]:.4g} to {found.largest[0]:.4g}, residual {found.residual:.1g}, "
                f"{found.products} products, {'converged' if found.converged else 'NOT converged'}"
            )
    return min(len(EXCEEDED), 1)


if __name__ == "__main__":
    sys.exit(main())

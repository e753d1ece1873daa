"""Speed of training and extraction, beside a plain PyTorch loop in the same run.

    python benchmarks/training.py

On a CPU it times steps; on a CUDA device the whole work of a selection on 50,000 images of 32 × 32 as well, with the
limits this project has set itself. The pixels are random: they cost as much as real ones.
"""

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lcmat
from lcmat import runtime
from lcmat.networks import build
from lcmat.seeding import generator
from lcmat.training import train
from lcmat.types import ImageData


def noise(n: int, channels: int, size: int) -> ImageData:
    """Random images of ten classes."""
    images = torch.randint(0, 256, (n, channels, size, size), generator=generator(0), dtype=torch.uint8)
    return ImageData(images, torch.arange(n) % 10, tuple("0123456789"))


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call; what it leaves on the device is waited for."""
    started = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def plain_loop(net: str, data: ImageData, steps: int, device: torch.device) -> None:
    """What one would write by hand: a DataLoader, float32, torch's SGD, no augmentation."""
    model = build(net, data).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    inputs = data.images.float() / 255
    loader = DataLoader(TensorDataset(inputs, data.labels), batch_size=128, shuffle=True)
    done = 0
    while done < steps:
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
            optimizer.step()
            done += 1
            if done == steps:
                break


def lcmat_loop(net: str, data: ImageData, steps: int, device: torch.device) -> None:
    """The same work by lcmat, with augmentation, in the precision of the device."""
    train(net, data, steps=steps, device=device)


def steps_per_second(device: torch.device) -> None:
    """A training step of several networks, and of the plain loop."""
    print(f"{'a step':40}{'lcmat':>12}{'plain loop':>12}{'ratio':>8}")
    cases = [
        ("convnet:width=32", noise(1280, 1, 8), 100),
        ("convnet:width=32", noise(36, 1, 8), 200),
        ("convnet", noise(1280, 3, 32), 10),
        ("resnet18", noise(512, 3, 32), 4 if device.type == "cpu" else 400),
    ]
    for net, data, steps in cases:
        measured = []
        for loop in (lcmat_loop, plain_loop):
            loop(net, data, 3, device)
            measured.append(seconds(partial(loop, net, data, steps, device)) / steps)
        ours, theirs = measured
        shape = "×".join(map(str, data.images.shape[1:]))
        name = f"{net}, {shape}, batch {min(128, len(data))}"
        print(f"{name:40}{ours * 1e3:9.2f} ms{theirs * 1e3:9.2f} ms{theirs / ours:8.2f}")


def whole_selection_run() -> None:
    """The parts of a selection on CIFAR-10's shapes, with the limits for one H200."""
    everything, few = noise(50_000, 3, 32), noise(500, 3, 32)
    train("resnet18", few, epochs=3)
    proxy = train("resnet18", few, epochs=1)
    lcmat.extract(proxy, few)
    works: list[tuple[str, float, Callable[[], object]]] = [
        ("10 proxy epochs of ResNet-18", 6.0, lambda: train("resnet18", everything, epochs=10)),
        ("the same, step not captured", float("nan"), lambda: train("resnet18", everything, epochs=10, graph=False)),
        ("features and logits, TF32", 0.7, lambda: lcmat.extract(proxy, everything, precision="tf32")),
        ("features and logits, bf16", 0.7, lambda: lcmat.extract(proxy, everything, precision="bf16")),
        ("features and logits, float32", float("nan"), lambda: lcmat.extract(proxy, everything, precision="float32")),
        ("200 epochs on 500 images", 1.5, lambda: train("resnet18", few, epochs=200, schedule="cosine")),
    ]
    print(f"\n{'ResNet-18, 32 × 32':40}{'seconds':>12}{'limit':>12}")
    for name, limit, work in works:
        print(f"{name:40}{seconds(work):12.2f}{limit:12.2f}")


def main() -> None:
    """Print the tables."""
    device = runtime.pick_device()
    print(f"{runtime.machine()}, torch {torch.__version__}, {torch.get_num_threads()} threads\n")
    steps_per_second(device)
    if device.type == "cuda":
        whole_selection_run()


if __name__ == "__main__":
    main()

"""Time and memory of a run before it starts: short samples of the real work, scaled up.

What is measured is a few steps of training, a few batches of extraction, and the method on made-up Signals of the
size of one class, or of two smaller sizes from which its growth is read where a class is large.
"""

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lcmat import networks, runtime, seeding
from lcmat.selection import SELECTORS, select
from lcmat.selection.registry import facts_of
from lcmat.study.settings import own_points
from lcmat.training import precision as number_formats
from lcmat.training import predict, train
from lcmat.types import Data, Record, Signals, Splits

BATCH = 128
SAMPLE_SECONDS = 0.3  # that one measurement takes at least
LARGEST_CLASS = 1500  # samples of a class up to which the method is tried at its full size
MOST_STEPS = 256
TAME_RATE = 1e-4  # steps take as long at any rate, and at this one no loss runs away


@dataclass(frozen=True)
class Request:
    """What is to be planned.

    Attributes:
        method: the selector.
        options: that were given.
        fractions: shares to keep.
        net: the proxy.
        epochs: of the proxy.
        nets: trained on what is kept.
        train_epochs: of each of these trainings.
        seeds: independent runs; 0 for the selection alone.
        full: whether the networks are trained on everything too.
    """

    method: str
    options: dict[str, Any]
    fractions: tuple[float, ...]
    net: str
    epochs: int
    nets: tuple[str, ...]
    train_epochs: int
    seeds: int
    full: bool


@dataclass(frozen=True)
class Pace:
    """How fast one network is on this machine: a step takes `base` + rows · `row` seconds.

    Attributes:
        base: seconds of a step, whatever its size.
        row: seconds more for each sample of it.
        read: seconds of extraction for each sample.
    """

    base: float
    row: float
    read: float

    def training(self, n: int, epochs: int) -> float:
        """Seconds of a training on n samples."""
        return epochs * (math.ceil(n / BATCH) * self.base + n * self.row)


@dataclass(frozen=True)
class Plan:
    """What was found, in seconds and bytes; mean of what is likely, not a bound.

    Attributes:
        proxy: seconds of one proxy.
        extract: of reading it out.
        select: of one selection.
        trainings: of all trainings on what is kept, and on random sets beside it, for one seed.
        seeds: independent runs, of which each has all four.
        memory: bytes at the peak: of the process, or of the device.
        notes: what the numbers rest on.
    """

    proxy: float
    extract: float
    select: float
    trainings: float
    seeds: int
    memory: int
    notes: tuple[str, ...]

    @property
    def total(self) -> float:
        """Seconds in all."""
        return max(1, self.seeds) * (self.proxy + self.extract + self.select) + self.seeds * self.trainings

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "notes": list(self.notes), "total": self.total}


def make_plan(splits: Splits, request: Request, device: str | None = None) -> Plan:
    """Measure what is needed, and scale it up.

    Args:
        splits: the data, as the run will read it.
        request: what is to be done.
        device: to work on; chosen when None.
    """
    place, data = runtime.pick_device(device), splits.train
    facts = facts_of(request.method, _defaults(request))
    looks = not set(facts.needs) <= {"labels"}
    proxy = pace_of(request.net, data, place) if looks else Pace(0.0, 0.0, 0.0)
    paces = {net: pace_of(net, data, place) for net in request.nets} if request.seeds else {}
    sizes = [max(1, round(fraction * len(data))) for fraction in request.fractions]
    trained = [size for size in sizes for _ in range(2)] + ([len(data)] if request.full else [])
    trainings = sum(pace.training(size, request.train_epochs) for pace in paces.values() for size in trained)
    # What a record costs is one more pass over the data in each epoch.
    passes = 1 + (request.epochs if "record" in facts.needs else 0)
    return Plan(
        proxy=proxy.training(len(data), request.epochs) + (passes - 1) * proxy.read * len(data) if looks else 0.0,
        extract=proxy.read * len(data) * max(1, len(own_points(request.method, request.epochs))),
        select=selection_seconds(request, data, place),
        trainings=trainings,
        seeds=request.seeds,
        memory=memory_needed(request, data, place, looks=looks),
        notes=(
            "measured with a few steps and batches of the real work on this machine, as busy as it is now",
            "the time of loading is not in it",
        ),
    )


def pace_of(net: str, data: Data, device: torch.device) -> Pace:
    """Measure a network with batches of two sizes."""
    large, small = min(BATCH, len(data)), max(2, min(BATCH, len(data)) // 8)
    steps = {size: _step_seconds(net, data, size, device) for size in (large, small)}
    row = max(0.0, (steps[large] - steps[small]) / (large - small)) if large > small else 0.0
    base = max(0.0, steps[large] - row * large)
    rows = data.take(torch.arange(min(len(data), 512)))
    model = networks.build(net, data)
    precision = number_formats.resolve("auto", device, on_cuda="tf32")  # as `extract` works
    predict(model, rows, device=device, precision=precision)
    read = _timed(lambda: predict(model, rows, device=device, precision=precision)) / len(rows)
    return Pace(base, row, read)


def selection_seconds(request: Request, data: Data, device: torch.device) -> float:
    """Seconds of one selection: the method tried on made-up Signals, class by class."""
    counts = torch.bincount(data.labels, minlength=len(data.class_names))
    largest = int(counts.max())
    fraction = max(request.fractions)
    head = _head(request.net, data)
    if largest <= LARGEST_CLASS:
        one = _selection_sample(request, largest, fraction, head, device)
        return one * len(data) / largest
    sizes = (LARGEST_CLASS // 2, LARGEST_CLASS)
    first, second = (_selection_sample(request, size, fraction, head, device) for size in sizes)
    growth = min(3.0, max(0.0, math.log2(second / first)))
    return math.fsum(second * math.pow(int(count) / LARGEST_CLASS, growth) for count in counts)


def memory_needed(request: Request, data: Data, device: torch.device, *, looks: bool) -> int:
    """Bytes at the peak: data, the training or the Signals with the method's distances, whichever is larger."""
    held = data.inputs.nbytes + (resident() if device.type == "cpu" else 0)
    largest = int(torch.bincount(data.labels).max())
    features, classes = _head(request.net, data)
    signals = 4 * len(data) * (features + classes) if looks else 0
    # Residuals and probabilities of a class in double precision; distances within what the budget allows.
    distances = min(4 * largest**2, runtime.memory_budget(None, device)) if looks else 0
    choosing = signals + 16 * largest * classes + 8 * largest * features + distances
    nets = {request.net} if looks else set()
    nets |= set(request.nets) if request.seeds else set()
    training = max((_training_bytes(net, data) for net in nets), default=0)
    return int(held + max(choosing, training))


def resident() -> int:
    """Bytes of main memory that this process has now; its peak so far where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return int(runtime.peak_memory_mb() * 1e6)


def _defaults(request: Request) -> dict[str, Any]:
    return {name: option.default for name, option in SELECTORS.find(request.method).options.items()} | request.options


def _step_seconds(net: str, data: Data, size: int, device: torch.device) -> float:
    """Seconds of one step: the difference of a longer and a shorter training, so that what comes once cancels."""
    rows = data.take(_mixed_rows(data.labels, size))

    def run(steps: int) -> float:
        return _timed(lambda: train(net, rows, steps=steps, batch_size=size, lr=TAME_RATE, device=device))

    few, many = 2, 4
    run(few)  # the first training of a process starts much that no later one does, and the difference would hide it
    short = run(few)
    while True:
        seconds = run(many) - short
        if seconds > SAMPLE_SECONDS or many - few >= MOST_STEPS:
            return max(1e-6, seconds / (many - few))
        many = few + 4 * (many - few)


def _mixed_rows(labels: Tensor, size: int) -> Tensor:
    """Rows of at least two classes, as training wants them."""
    other = (labels != labels[0]).nonzero().flatten()[: max(1, size // 2)]
    same = (labels == labels[0]).nonzero().flatten()[: size - len(other)]
    rows = torch.cat([same, other])
    more = torch.ones(len(labels), dtype=torch.bool)
    more[rows] = False
    return torch.cat([rows, more.nonzero().flatten()[: size - len(rows)]])


def _selection_sample(
    request: Request, size: int, fraction: float, head: tuple[int, int], device: torch.device
) -> float:
    draws = seeding.generator(0, "plan")
    features, classes = head
    logits = 3 * torch.randn(size, classes, generator=draws)
    record = Record(torch.rand(10, size, generator=draws) > 0.3, torch.rand(10, size, generator=draws))
    signals = Signals(
        torch.randn(size, features, generator=draws).relu(), logits, torch.zeros(size, dtype=torch.int64), record=record
    ).to(device)
    count = max(1, round(fraction * size))
    return _timed(lambda: select(signals, request.method, count=count, balance="none", **request.options))


def _head(net: str, data: Data) -> tuple[int, int]:
    with torch.device("meta"):
        model = networks.build(net, data)
    layer = networks.find_head(model)[1]
    return layer.in_features, layer.out_features


def _training_bytes(net: str, data: Data) -> int:
    """Weights, gradients and momentum, and what a step keeps of every layer for the way back."""
    with torch.device("meta"):
        model = networks.build(net, data)
    kept = 0

    def note(part: nn.Module, _: Any, output: Any) -> None:
        nonlocal kept
        if isinstance(output, Tensor) and not list(part.children()):
            kept += output.numel()

    for part in model.modules():
        part.register_forward_hook(note)
    batch = min(BATCH, len(data))
    model(torch.empty(batch, *data.inputs.shape[1:], device="meta"))
    return 4 * (3 * sum(weight.numel() for weight in model.parameters()) + 2 * kept)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start

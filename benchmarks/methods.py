"""Time and memory of every selection method on made-up signals, beside the limits this project has set itself.

    python benchmarks/methods.py
    python benchmarks/methods.py --n 5000 --methods k-center herding
    python benchmarks/methods.py --n 500000 --seconds 600
    python benchmarks/methods.py --device cuda

Ten equal classes, 512 features, a record of 30 epochs; a tenth of each class is picked. Every method runs in a fresh
process, so that its peak memory is its own; the peak holds Python, torch and the signals as well, and the first line
says how much they take alone. The limits are for n = 50,000 on two CPU cores, or on a GPU, where the peak is that of
its own memory; exit status 1 when one is exceeded.
"""

import argparse
import json
import subprocess
import sys
import time

import torch

import lcmat
from lcmat import runtime
from lcmat.seeding import generator
from lcmat.selection import SELECTORS
from lcmat.types import Record, Signals

FEATURES, CLASSES, EPOCHS = 512, 10, 30
LIMITED_N, SECONDS, FAST_SECONDS, GPU_SECONDS, PEAK_MB = 50_000, 60.0, 5.0, 2.0, 4_000.0
FAST = {
    "uniform",
    "least-confidence",
    "entropy",
    "margin",
    "forgetting",
    "grand",
    "el2n",
    "dual",
    "moderate",
    "k-center",
}
REPEATS, REPEAT_SECONDS = 5, 10.0  # what another program delays is not the method's; long runs are not repeated
NOTHING = "(nothing)"  # in place of a method: the process and the signals alone


def signals_of(n: int) -> Signals:
    """Features around a centre for each class, the logits of a linear head that finds most of them, a noisy record."""
    draws = generator(0, "benchmark")
    labels = torch.arange(n) % CLASSES
    centres = torch.randn(CLASSES, FEATURES, generator=draws)
    features = torch.empty(n, FEATURES)
    for rows in torch.arange(n).split(10_000):  # so that making them sets no peak
        torch.randn(len(rows), FEATURES, generator=draws, out=features[rows[0] : rows[-1] + 1])
        features[rows[0] : rows[-1] + 1].add_(centres[labels[rows]], alpha=0.3).relu_()
    logits = features @ centres.T / 4
    probability = torch.rand(EPOCHS, n, generator=draws)
    return Signals(features=features, logits=logits, labels=labels, record=Record(probability > 0.4, probability))


def measure_here(method: str, n: int, device: torch.device) -> dict[str, float]:
    """Seconds and peak memory of one selection in this process; of short ones the fastest of several counts."""
    signals = signals_of(n).to(device)
    times: list[float] = []
    while method != NOTHING and len(times) < REPEATS and sum(times) < REPEAT_SECONDS:
        started = time.perf_counter()
        lcmat.select(signals, method, fraction=0.1)  # the subset lies in main memory, so that a GPU is done as well
        times.append(time.perf_counter() - started)
    on_gpu = device.type == "cuda"
    peak = torch.cuda.max_memory_allocated(device) / 1e6 if on_gpu else runtime.peak_memory_mb()
    return {"seconds": min(times, default=0.0), "peak_mb": peak}


def measure(method: str, n: int, threads: int, device: torch.device, patience: float) -> dict[str, float] | None:
    """Seconds and peak memory of one selection in a fresh process; None where it takes longer than the patience."""
    command = [sys.executable, __file__, "--n", str(n), "--threads", str(threads), "--device", str(device)]
    try:
        done = subprocess.run(
            [*command, "--here", method], check=True, stdout=subprocess.PIPE, text=True, timeout=patience
        )
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


def limit_of(method: str, device: torch.device) -> float:
    """Seconds that a method may take at n = 50,000."""
    if device.type == "cuda":
        return GPU_SECONDS
    return FAST_SECONDS if method in FAST else SECONDS


def main() -> int:
    """Measure what the command line asks for, print a table, and say by the exit status whether all limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=LIMITED_N, help="samples in all")
    parser.add_argument("--methods", nargs="+", default=[entry.name for entry in SELECTORS], help="all by default")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda")
    parser.add_argument("--seconds", type=float, default=300.0, help="give a method up after this long")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = runtime.pick_device(arguments.device)
    if arguments.here:
        print(json.dumps(measure_here(arguments.here, arguments.n, device)))
        return 0
    print(f"{runtime.machine()}, {arguments.threads} threads, on {device.type}; 10 % of each class, ", end="")
    print(f"fastest of up to {REPEATS} runs")
    print(f"{'method':<22}{'n':>9}{'seconds':>10}{'peak MB':>10}   limit")
    exceeded = 0
    for method in [NOTHING, *arguments.methods]:
        found = measure(method, arguments.n, arguments.threads, device, arguments.seconds)
        if found is None:
            print(f"{method:<22}{arguments.n:>9,}{f'> {arguments.seconds:.0f}':>10}", flush=True)
            exceeded += 1
            continue
        verdict = ""
        if arguments.n == LIMITED_N and method != NOTHING:
            limit = limit_of(method, device)
            kept = found["seconds"] < limit and (device.type == "cuda" or found["peak_mb"] < PEAK_MB)
            exceeded += not kept
            memory = "" if device.type == "cuda" else f", {PEAK_MB:,.0f} MB"
            verdict = f"{limit:.0f} s{memory}: {'kept' if kept else 'EXCEEDED'}"
        print(
            f"{method:<22}{arguments.n:>9,}{found['seconds']:>10.2f}{found['peak_mb']:>10,.0f}   {verdict}", flush=True
        )
    return min(exceeded, 1)


if __name__ == "__main__":
    sys.exit(main())

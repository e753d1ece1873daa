"""Time and memory of LCMat-S and GradMatch on a processor, each case in a fresh process, against limits.

    python benchmarks/selection.py

The fastest of three calls counts; exit status 1 when a limit is missed. For every method see methods.py.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

import torch

import lcmat
from lcmat import runtime
from lcmat.types import Signals

CLASSES, WIDTH = 10, 512
REPEATS = 3


@dataclass(frozen=True)
class Case:
    """One measurement: n samples of so many classes, and what it may take."""

    method: str
    n: int
    groups: int
    count: int
    seconds: float
    gigabytes: float

    def describe(self) -> str:
        """The case in words."""
        return (
            f"{self.method}, n = {self.n:,} in {self.groups} class(es), C = {CLASSES}, d = {WIDTH}, k = {self.count:,}"
        )


CASES = (
    Case("lcmat-s", 5_000, 1, 50, 0.6, 0.6),
    Case("lcmat-s", 50_000, 10, 500, 5.0, 4.0),
    Case("gradmatch", 5_000, 1, 500, 3.0, 4.0),
)


def make_signals(n: int, groups: int) -> Signals:
    """What a half-trained network gives: clustered non-negative features, and logits of a head on them."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % groups
    centres = torch.randn(CLASSES, WIDTH, generator=generator)
    features = (centres[labels] + 1.5 * torch.randn(n, WIDTH, generator=generator)).relu_()
    head = torch.randn(CLASSES, WIDTH, generator=generator) / WIDTH**0.5 + centres / WIDTH
    logits = features @ head.T
    return Signals(features=features, logits=logits, labels=labels)


def run_here(case: Case) -> dict[str, float]:
    """Measure in this process: the fastest of a few calls, and the largest memory the process ever had."""
    signals = make_signals(case.n, case.groups)
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        lcmat.select(signals, case.method, count=case.count)
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "first": seconds[0], "gigabytes": runtime.peak_memory_mb() / 1000}


def measure(case: Case) -> bool:
    """Measure in a fresh process, print the figures, and say whether the limits hold."""
    call = [sys.executable, __file__, "--case", json.dumps(dataclasses.asdict(case))]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{case.describe()}: failed\n{done.stderr}")
        return False
    found = json.loads(done.stdout)
    kept = bool(found["seconds"] <= case.seconds and found["gigabytes"] <= case.gigabytes)
    print(
        f"{'ok  ' if kept else 'MISS'} {case.describe()}: {found['seconds']:.2f} s (first call {found['first']:.2f} s, "
        f"limit {case.seconds:g} s), peak {found['gigabytes']:.2f} GB (limit {case.gigabytes:g} GB)",
        flush=True,
    )
    return kept


def main() -> int:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(run_here(Case(**json.loads(arguments.case)))))
        return 0
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{runtime.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}{load}")
    kept = [measure(case) for case in CASES]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())

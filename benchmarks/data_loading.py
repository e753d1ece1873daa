"""Seconds to load CIFAR-10 from JPEGs, decoding them and from the cache, beside the limits of this project.

    LCMAT_DATA=path/to/data python benchmarks/data_loading.py

The 60,000 images of $LCMAT_DATA/cifar10-jpeg are loaded in fresh processes with a cache of their own, empty for the
first load of each round and full for the second; the fingerprint is included, the start of the process and importing
torch are not. The fastest round counts: what is slower was disturbed, and by how much shows in the seconds that the
processor was at it. The exit status is 1 above a limit.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lcmat import runtime

ROUNDS = 3
LIMITS = {"decoded": 10.0, "from the cache": 1.0}

LOAD = """
import json, sys, time
import torch
start, start_cpu = time.perf_counter(), time.process_time()
from lcmat.data import load
from lcmat.runtime import peak_memory_mb
splits = load(sys.argv[1])
splits.train.fingerprint, splits.test.fingerprint
seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
print(json.dumps([seconds, cpu, peak_memory_mb(), len(splits.train) + len(splits.test)]))
"""


def measure(source: Path, cache: str) -> tuple[float, float, float, int]:
    """Seconds, seconds of the processor, peak memory in MB and number of images of one load in a fresh process."""
    command = [sys.executable, "-c", LOAD, str(source)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "LCMAT_CACHE": cache})
    seconds, cpu, memory, n = json.loads(done.stdout)
    return seconds, cpu, memory, n


def main() -> int:
    """Measure, print, and say whether a limit was exceeded."""
    if not os.environ.get("LCMAT_DATA"):
        print("not measured: set LCMAT_DATA to the folder that holds cifar10-jpeg")
        return 0
    source = Path(os.environ["LCMAT_DATA"]) / "cifar10-jpeg"
    best = dict.fromkeys(LIMITS, (float("inf"), 0.0, 0.0, 0))
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            for name in LIMITS:
                best[name] = min(best[name], measure(source, cache))
    print(
        f"{runtime.machine()}; fastest of {ROUNDS} fresh processes, {best['decoded'][3]:,} images, peak of the process"
    )
    for name, limit in LIMITS.items():
        seconds, cpu, memory, _ = best[name]
        print(f"{name:<16} {seconds:6.2f} s (limit {limit:g} s; {cpu:.2f} s of the processor)   {memory:7,.0f} MB")
    return int(any(best[name][0] > limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())

"""How well networks train on condensed sets: every condenser, and LCMat-C over ρ, on digits with two CPU cores.

Each run is a condensation and a training of its own, so that n counts independent runs. Finished ones are kept in the
records file and not repeated.

    python benchmarks/condensation_accuracy.py --per-class 1 --records condensation.jsonl
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch

import lcmat
from lcmat import files, runtime

NET = "convnet:width=32"
# Less than the papers' real batches of 256 for dc, dsa and dm, which two cores would need hours for.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {}),
    "dc": ("dc", {"real_batch": 64}),
    "dsa": ("dsa", {"real_batch": 64}),
    "dm": ("dm", {"real_batch": 64}),
    "kip": ("kip", {}),
    "kip, convolutional": ("kip", {"kernel": "convolutional"}),
    "lcmat-c": ("lcmat-c", {}),
    "lcmat-c, real start": ("lcmat-c", {"start": "real"}),
    "lcmat-c, factor 2": ("lcmat-c", {"factor": 2}),
    "lcmat-c, without the head": ("lcmat-c", {"head": False}),
    "lcmat-c, rho 0": ("lcmat-c", {"rho": 0.0}),
    "lcmat-c, rho 1": ("lcmat-c", {"rho": 1.0}),
    "lcmat-c, rho 10": ("lcmat-c", {"rho": 10.0}),
}


def main() -> None:
    """Condense with every seed, train once on each set, and print mean and interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-class", type=int, default=1)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--slow-steps", type=int, help="of dc and dsa, which train a network long after each step")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cases", default="random;dc;dsa;dm;kip;kip, convolutional;lcmat-c")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--records", type=Path, default=Path("condensation.jsonl"))
    given = parser.parse_args()
    data = lcmat.load("digits")
    with runtime.one_thread():
        sets: dict[str, list[lcmat.SyntheticSet]] = {}
        seconds: dict[str, float] = {}
        for case in given.cases.split(";"):
            method, options = CASES[case]
            steps = given.slow_steps if given.slow_steps and method in {"dc", "dsa"} else given.steps
            started = time.process_time()
            sets[case] = [condense(data, method, options, given, steps, seed) for seed in range(given.seeds)]
            seconds[case] = (time.process_time() - started) / given.seeds
        report = lcmat.evaluate(
            data, sets, nets=[NET], epochs=given.epochs, seeds=range(given.seeds), records=given.records
        )
    print(f"{runtime.machine()}, torch {torch.__version__}")
    print(report.table())
    for case, spent in seconds.items():
        print(f"{case}: {spent:.0f} s of one CPU core for a condensation, 0 for those found on disk")


def condense(
    data: lcmat.Splits, method: str, options: dict[str, Any], given: argparse.Namespace, steps: int, seed: int
) -> lcmat.SyntheticSet:
    """The set of one run, from its folder where it was made before."""
    key = files.fingerprint(f"{method} {sorted(options.items())} {given.per_class} {steps} {seed}")[:12]
    folder = given.records.parent / "condensed" / key
    if (folder / "synthetic.json").exists():
        return lcmat.SyntheticSet.load(folder)
    tiny = lcmat.condense(
        data.train, method, per_class=given.per_class, steps=steps, net=NET, seed=seed, device="cpu", **options
    ).rounded()
    tiny.save(folder)
    if seed == 0:
        tiny.grid(folder / "grid.png")
    return tiny


if __name__ == "__main__":
    main()

"""How far `lcmat plan` is from what then happens: seconds and memory, planned and measured.

Each case runs in a process of its own, so that its peak memory is its own. CIFAR-10 is left out without LCMAT_DATA.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CASE = """
import json, sys, time
from lcmat import runtime
from lcmat.data import load
from lcmat.study.pipeline import Machine, choose
from lcmat.study.plan import Request, make_plan
from lcmat.study.settings import Settings
from lcmat.study.store import Run
from lcmat import evaluate
source, method, net, epochs, fraction, train_epochs, folder, planned = sys.argv[1:]
splits = load(source)
request = Request(method, {}, (float(fraction),), net, int(epochs), (net,), int(train_epochs), 1, False)
if planned == "yes":
    plan = make_plan(splits, request)
    print(json.dumps({"proxy": plan.proxy, "select": plan.select, "train": plan.trainings, "memory": plan.memory}))
else:
    settings = Settings(source, method=method, amounts=(float(fraction),), net=net, epochs=int(epochs))
    [run] = choose([Run.begin(folder, settings, splits)], splits, 0, Machine())
    memory = runtime.peak_memory_mb() * 1e6
    start = time.perf_counter()
    evaluate(splits, {method: run.subsets()}, nets=net, epochs=int(train_epochs), seeds=[0])
    trained = time.perf_counter() - start
    print(json.dumps({"proxy": run.seconds["train"], "select": run.seconds["select"], "train": trained,
                      "memory": max(memory, runtime.peak_memory_mb() * 1e6)}))
"""


def run(case: Sequence[str], folder: Path, planned: str) -> dict[str, float]:
    """One case in a process of its own."""
    words = [sys.executable, "-c", CASE, *case, str(folder), planned]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(folder: Path) -> list[dict[str, Any]]:
    """All cases."""
    cases = [
        ("digits", method, "convnet:width=32", "10", "0.1", "60") for method in ("lcmat-s", "gradmatch", "glister")
    ]
    data = Path(os.environ.get("LCMAT_DATA", "")) / "cifar10-jpeg"
    if os.environ.get("LCMAT_DATA") and data.is_dir():
        cases += [(str(data), method, "convnet:width=8", "1", "0.01", "10") for method in ("lcmat-s", "herding")]
    rows = []
    for place, case in enumerate(cases):
        planned, measured = (run(case, folder / str(place), word) for word in ("yes", "no"))
        rows.append({"case": case, "planned": planned, "measured": measured})
        for part, value in measured.items():
            unit = 1e6 if part == "memory" else 1
            print(
                f"{Path(case[0]).name:14} {case[1]:10} {part:7} planned {planned[part] / unit:9.3g} "
                f"measured {value / unit:9.3g} ratio {planned[part] / max(value, 1e-9):5.2f}"
            )
    return rows


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))

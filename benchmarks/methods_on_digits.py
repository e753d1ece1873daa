"""Every selection method on scikit-learn's digits, beside uniform draws: a table with intervals, on any laptop.

Seed i is one independent run: proxy i, selection i, training i. Writes `docs/results/methods-on-digits.md` and `.json`;
a run that was stopped goes on where it was.
"""

import argparse
import datetime
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lcmat
from lcmat import files, runtime
from lcmat.selection import SELECTORS
from lcmat.types import Signals, Subset

NET = "convnet:width=32"
PROXY_EPOCHS = 10
EPOCHS = 60
FRACTIONS = [0.01, 0.02, 0.05, 0.1, 0.2]
POINTS = [1, 2, 4, 7, 10]
# Beside every method with its defaults: forms of the curvature and feature covers that see several parameter points.
VARIANTS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "lcmat-s, τ = 4": ("lcmat-s", {"temperature": 4.0}, False),
    "lcmat-s, 5 points": ("lcmat-s", {}, True),
    "lcmat-s, 5 points, τ = 4": ("lcmat-s", {"temperature": 4.0}, True),
    "craig, 5 points": ("craig", {}, True),
    "facility-location, 5 points": ("facility-location", {}, True),
}


def select_all(data: lcmat.Splits, seed: int) -> dict[str, list[Subset]]:
    """The subsets of every method and variant from one proxy."""
    model = lcmat.train(NET, data.train, epochs=PROXY_EPOCHS, seed=seed, snapshots=POINTS, record=True)
    points: list[Signals] = lcmat.extract(model, data.train, points=POINTS)
    last = lcmat.extract(model, data.train)
    plain: dict[str, tuple[str, dict[str, Any], bool]] = {
        entry.name: (entry.name, {}, False) for entry in SELECTORS if entry.name != "uniform"
    }
    return {
        label: lcmat.select(points if several else last, method, fraction=FRACTIONS, seed=seed, **options)
        for label, (method, options, several) in (plain | VARIANTS).items()
    }


def main() -> None:
    """Run, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--records", type=Path, default=Path("runs/methods-on-digits.jsonl"))
    asked = parser.parse_args()
    data = lcmat.load("digits")
    subsets: dict[str, list[Subset]] = defaultdict(list)
    with runtime.one_thread():
        for seed in range(asked.seeds):
            for label, found in select_all(data, seed).items():
                subsets[label] += found
            print(f"selected with seed {seed}", flush=True)
        report = lcmat.evaluate(
            data,
            subsets,
            nets=[NET],
            epochs=EPOCHS,
            seeds=range(asked.seeds),
            records=asked.records,
            progress=lambda done, total, text: print(f"{done}/{total} {text}", flush=True) if done % 50 == 0 else None,
        )
    files.write_text(asked.out / "methods-on-digits.md", page(report, asked.seeds))
    rows = {"protocol": report.protocol, "rows": [asdict(row) for row in report.rows]}
    files.write_json(asked.out / "methods-on-digits.json", rows)
    print(report.table())


def page(report: lcmat.Report, seeds: int) -> str:
    """The table as Markdown: the difference to uniform under the same seeds, with its 95 % interval."""
    cells: dict[str, dict[float, str]] = defaultdict(dict)
    for row in report.rows:
        shown = f"{100 * row.mean:.1f}" + (f" ± {100 * row.sd:.1f}" if row.sd is not None else "")
        if row.difference is not None:
            low, high = 100 * (row.difference_low or 0), 100 * (row.difference_high or 0)
            mark = "**" if low > 0 or high < 0 else ""
            shown = f"{mark}{100 * row.difference:+.1f}{mark} [{low:+.1f}, {high:+.1f}]"
        cells[row.name][row.fraction] = shown
    fractions = sorted({row.fraction for row in report.rows})
    lines = [
        "# Every method on digits",
        "",
        f"Made by `python benchmarks/methods_on_digits.py --seeds {seeds}` with lcmat {lcmat.__version__} on "
        f"{datetime.datetime.now(datetime.UTC).date()}; {runtime.machine()}.",
        "",
        f"1,797 images of 8 × 8 pixels; proxy and evaluation network {NET}, {PROXY_EPOCHS} and {EPOCHS} epochs; "
        f"n = {seeds} independent runs (a proxy, a selection and a training each).",
        "",
        "Uniform: mean accuracy in per cent ± standard deviation. Others: difference to uniform in points under the "
        "same seeds, with its 95 % interval; bold where the interval leaves out 0. With so many comparisons, about one "
        "in twenty would be bold by chance alone.",
        "",
        "| method | " + " | ".join(f"{100 * fraction:.0f} %" for fraction in fractions) + " |",
        "|---" * (len(fractions) + 1) + "|",
    ]
    order = sorted(cells, key=lambda name: (name != "uniform", name))
    lines += [f"| {name} | " + " | ".join(cells[name].get(f, "") for f in fractions) + " |" for name in order]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

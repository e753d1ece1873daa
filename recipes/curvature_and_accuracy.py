"""Does a smaller bound go with a higher accuracy?

For each proxy network, selection method and fraction: the gradient and the curvature term of the bound, the eigenvalues
(last layer and whole network), and the test accuracy of fresh networks trained on the subset. Within each fraction,
which would confound them, the rank correlation over methods and proxies, with a bootstrap interval.

    python recipes/curvature_and_accuracy.py --data hub:uoft-cs/cifar10 --out runs/bound        # one GPU
    python recipes/curvature_and_accuracy.py --data digits --net convnet:width=32 --fractions 0.02,0.1 \
        --epochs 60 --out runs/bound-digits                                                     # a CPU, small

Cells are recorded one by one: the same command again goes on with what is missing. `cells.csv` holds every cell,
`correlations.csv` what came of them.
"""

import argparse
import csv
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import typer
from torch import nn

import lcmat
from lcmat import files, runtime
from lcmat.landscape.correlation import bootstrap_interval, rank_correlation
from lcmat.training import accuracy

METHODS = "uniform,craig,gradmatch,adacore,lcmat-s"
QUANTITIES = ("gradient_term", "curvature_term", "bound", "sharpness_from_below")
SCOPES = ("head", "all")


@dataclass(frozen=True)
class Plan:
    """What is run; a folder holds the cells of one plan."""

    data: str
    net: str
    methods: tuple[str, ...]
    fractions: tuple[float, ...]
    proxies: int
    proxy_epochs: int
    seeds: int
    epochs: int
    rho: float
    samples: int | None


def read_plan(arguments: argparse.Namespace) -> Plan:
    """The plan that the command line asks for."""
    return Plan(
        data=arguments.data,
        net=arguments.net,
        methods=tuple(arguments.methods.split(",")),
        fractions=tuple(map(float, arguments.fractions.split(","))),
        proxies=arguments.proxies,
        proxy_epochs=arguments.proxy_epochs,
        seeds=arguments.seeds,
        epochs=arguments.epochs,
        rho=arguments.rho,
        samples=arguments.samples,
    )


def run_cells(plan: Plan, splits: lcmat.Splits, folder: Path) -> list[dict[str, Any]]:
    """Every cell, those that are recorded already included."""
    records = folder / "cells.jsonl"
    cells = {(cell["proxy"], cell["method"], cell["fraction"]): cell for cell in files.read_json_lines(records)}
    for proxy in range(plan.proxies):
        wanted = [(proxy, method, fraction) for method in plan.methods for fraction in plan.fractions]
        if all(key in cells for key in wanted):
            continue
        model = lcmat.train(
            plan.net, splits.train, epochs=plan.proxy_epochs, seed=proxy, checkpoint=folder / f"proxy-{proxy}"
        )
        signals = lcmat.extract(model, splits.train)
        for key in wanted:
            if key not in cells:
                cells[key] = run_cell(plan, splits, model, signals, key)
                files.append_json_line(records, cells[key])
                typer.echo(f"{key}: accuracy {cells[key]['accuracy']:.4f}", err=True)
    return list(cells.values())


def run_cell(
    plan: Plan, splits: lcmat.Splits, model: nn.Module, signals: lcmat.Signals, key: tuple[int, str, float]
) -> dict[str, Any]:
    """The terms of one subset, and how well networks train on it."""
    proxy, method, fraction = key
    subset = lcmat.select(signals, method, fraction=fraction, seed=proxy)
    assert isinstance(subset, lcmat.Subset)
    report = lcmat.curvature(
        model, splits.train, {method: subset}, parameters=SCOPES, rho=plan.rho, radii=(), samples=plan.samples,
        baseline=False, pictures=False, seed=proxy,
    )  # fmt: skip
    cell: dict[str, Any] = {"proxy": proxy, "method": method, "fraction": fraction, "size": len(subset)}
    for scope in SCOPES:
        [record] = report.find(method, parameters=scope).as_records()
        wanted = (*QUANTITIES, "lambda_max", "lambda_min", "lambda_magnitude", "remainder", "converged")
        cell |= {f"{name}_{scope}": record[name] for name in wanted}
    found = [train_and_test(plan, splits, subset, 1000 * proxy + seed) for seed in range(plan.seeds)]
    cell["accuracy"], cell["accuracies"] = fmean(found), found
    cell["accuracy_sd"] = stdev(found) if len(found) > 1 else None
    return cell


def train_and_test(plan: Plan, splits: lcmat.Splits, subset: lcmat.Subset, seed: int) -> float:
    """The test accuracy after the last epoch."""
    kept = subset.apply(splits.train)
    network = lcmat.train(plan.net, kept, epochs=plan.epochs, schedule="cosine", seed=seed)
    return accuracy(network, splits.test)


def correlate(plan: Plan, cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Within each fraction: Spearman's ρ of each quantity with the accuracy, over methods and proxies."""
    rows = []
    for fraction in plan.fractions:
        own = [cell for cell in cells if cell["fraction"] == fraction]
        for name in (f"{quantity}_{scope}" for scope in SCOPES for quantity in QUANTITIES):
            xs, ys = [cell[name] for cell in own], [cell["accuracy"] for cell in own]
            low, high = bootstrap_interval(xs, ys)
            rows.append(
                {"fraction": fraction, "quantity": name, "n": len(own), "spearman": rank_correlation(xs, ys),
                 "low": low, "high": high}
            )  # fmt: skip
    return rows


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Records as a table, columns in the order of the first one."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files.write_text(path, file.getvalue())


def summarise(plan: Plan, cells: Sequence[Mapping[str, Any]]) -> str:
    """Means over the proxies, as a table in Markdown."""
    names = ("accuracy", *(f"{name}_{scope}" for scope in SCOPES for name in (*QUANTITIES, "lambda_magnitude")))
    lines = ["| fraction | method | " + " | ".join(names) + " |", "|---|---|" + "---:|" * len(names)]
    for fraction in plan.fractions:
        for method in plan.methods:
            own = [cell for cell in cells if (cell["fraction"], cell["method"]) == (fraction, method)]
            texts = []
            for name in names:
                values = [cell[name] for cell in own]
                spread = f" ± {stdev(values):.3g}" if len(values) > 1 else ""
                texts.append(f"{fmean(values):.3g}{spread}")
            lines.append(f"| {fraction:g} | {method} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, write the tables and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="hub:uoft-cs/cifar10")
    parser.add_argument("--net", default="resnet18", help="of the proxies and of the networks trained on subsets")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--fractions", default="0.005,0.01")
    parser.add_argument("--proxies", type=int, default=3)
    parser.add_argument("--proxy-epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3, help="trainings on each subset")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--rho", type=float, default=0.1)
    parser.add_argument("--samples", type=int, help="of the data for the whole network; 5,000, fewer on a CPU")
    parser.add_argument("--out", type=Path, default=Path("runs/bound"))
    plan = read_plan(arguments := parser.parse_args())
    splits = lcmat.load(plan.data)
    folder: Path = arguments.out
    asked = json.loads(json.dumps({"plan": asdict(plan), "fingerprint": splits.train.fingerprint}))
    settings = folder / "plan.json"
    if settings.exists():
        found = files.read_json(settings)
        if any(found[name] != value for name, value in asked.items()):
            parser.error(f"{folder} holds cells of another plan or other data; name another folder with --out")
    files.write_json(settings, {**asked, **runtime.versions()})
    small = splits.train.inputs[0].numel() < 1024
    with runtime.one_thread() if small else nullcontext():
        cells = run_cells(plan, splits, folder)
    write_csv(folder / "cells.csv", cells)
    write_csv(folder / "correlations.csv", correlate(plan, cells))
    typer.echo(summarise(plan, cells))
    for row in correlate(plan, cells):
        typer.echo(
            f"{row['fraction']:g}  {row['quantity']:<28} Spearman {row['spearman']:+.2f} "
            f"({row['low']:+.2f} to {row['high']:+.2f}), n = {row['n']}"
        )


if __name__ == "__main__":
    main()

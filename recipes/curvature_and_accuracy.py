"""Does a smaller bound go with a higher accuracy?

For each proxy network, selection method and fraction: the gradient and the curvature term of the bound, the eigenvalues
(last layer and whole network), and the test accuracy of fresh networks trained on the subset. Within each fraction,
which would confound them, the rank correlation over methods and proxies, with a bootstrap interval.

    python recipes/curvature_and_accuracy.py --data hub:uoft-cs/cifar10 --workers 3 --out runs/bound     # one GPU
    python recipes/curvature_and_accuracy.py --data digits --net convnet:width=32 --fractions 0.02,0.1 \
        --epochs 60 --out runs/bound-digits                                                     # a CPU, small

Cells are recorded one by one: the same command again goes on with what is missing. With `--workers` the proxies are
shared among processes, which share a GPU through NVIDIA's multi-process service where it can be had; processes started
by hand, each with `--only-proxies`, do the same in one folder. The last one writes `bound.md`, a page with all tables,
a figure and the correlations, and `bound/` with every cell: `docs/results/bound.md` is such a page. `--page` writes
them from recorded cells alone.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

import lcmat
from lcmat import files, runtime
from lcmat.networks.build import parse as parse_net
from lcmat.selection import SELECTORS
from lcmat.study.bound import Plan, measure_cells, read_cells
from lcmat.study.bound_page import correlate, statements, write_results
from lcmat.study.gpu_sharing import shared_gpu

METHODS = "uniform,craig,gradmatch,adacore,lcmat-s"


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
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
    parser.add_argument("--samples", type=int, default=1000, help="of T in the Hessian of the whole network")
    parser.add_argument("--products", type=int, default=20, help="Hessian-vector products of each, at most")
    parser.add_argument("--tolerance", type=float, default=0.02, help="residual over the largest |λ| to stop at")
    parser.add_argument(
        "--precision", default="auto", choices=("auto", "float32", "tf32"),
        help="of the whole network's gradients and search; TF32 on a GPU",
    )  # fmt: skip
    parser.add_argument("--batch-size", type=int, default=2048, help="of the Hessian; fewer where memory is short")
    parser.add_argument("--only-proxies", default="", help="numbers of the proxies that this process does, as in 0,2")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the proxies")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing, write the page of what is recorded, all or not"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/bound"))
    return parser


def read_plan(arguments: argparse.Namespace) -> Plan:
    """The plan that the command line asks for.

    Raises:
        ValueError: for an unknown method or network, or what is no number; nothing has been trained then.
    """
    given = {name: value for name, value in vars(arguments).items() if name in Plan.__dataclass_fields__}
    given["methods"] = tuple(arguments.methods.split(","))
    given["fractions"] = tuple(map(float, arguments.fractions.split(",")))
    for method in given["methods"]:
        SELECTORS.find(method)
    parse_net(given["net"])
    return Plan(**given)


def read_proxies(plan: Plan, text: str) -> list[int]:
    """The proxies that this process does; all for an empty text.

    Raises:
        ValueError: for a number that the plan does not have.
    """
    found = [int(part) for part in text.split(",") if part] or list(range(plan.proxies))
    if wrong := sorted(set(found) - set(range(plan.proxies))):
        raise ValueError(f"expected proxies from 0 to {plan.proxies - 1}, got {', '.join(map(str, wrong))}")
    return found


def say(line: str) -> None:
    """A line of progress, at once, whatever stderr leads to."""
    typer.echo(line, err=True)
    sys.stderr.flush()


def share_out(plan: Plan, workers: int) -> None:
    """Let processes do the proxies.

    Raises:
        RuntimeError: when one of them fails; what the others measured is kept.
    """
    parts = [",".join(map(str, range(number, plan.proxies, workers))) for number in range(min(workers, plan.proxies))]
    with (
        tempfile.TemporaryDirectory(prefix="lcmat-") as place,
        shared_gpu(runtime.pick_device(None), Path(place), say) as environment,
    ):
        command = [sys.executable, *sys.argv, "--workers", "1", "--only-proxies"]
        crew = [
            subprocess.Popen([*command, part], env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
            for part in parts
        ]
        try:
            failed = [part for part, member in zip(parts, crew, strict=True) if member.wait() != 0]
        finally:  # where this one is interrupted, they are too
            for member in crew:
                member.terminate()
            for member in crew:
                member.wait()
    if failed:
        raise RuntimeError(f"the processes of proxies {' and '.join(failed)} failed; the same command goes on")


def claim(plan: Plan, splits: lcmat.Splits, folder: Path) -> None:
    """Write down what the folder holds.

    Raises:
        ValueError: when it holds cells of another plan or other data.
    """
    asked = json.loads(json.dumps({"plan": asdict(plan), "fingerprint": splits.train.fingerprint}))
    settings = folder / "plan.json"
    if settings.exists():
        found = files.read_json(settings)
        if any(found[name] != value for name, value in asked.items()):
            raise ValueError(f"{folder} holds cells of another plan or other data; name another folder with --out")
        return
    told = {
        "data": f"{splits.name}, {len(splits.train):,} training and {len(splits.test):,} test samples",
        "command": shlex.join(["python", "recipes/curvature_and_accuracy.py", *sys.argv[1:]]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **runtime.versions(),
    }
    files.write_json(settings, {**asked, "told": told})


def planned(folder: Path) -> Plan:
    """The plan whose cells a folder holds."""
    found = files.read_json(folder / "plan.json")["plan"]
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    return Plan(**fields)


def finish(plan: Plan, folder: Path, *, some: bool = False) -> None:
    """Write the page once every cell is there; of those that are, where some will do."""
    cells = list(read_cells(plan, folder).values())
    missing = plan.proxies * len(plan.methods) * len(plan.fractions) - len(cells)
    if missing and not some:
        say(f"{missing} cells are missing; the same command goes on with them, or another process is at them")
        return
    page = write_results(plan, cells, folder, files.read_json(folder / "plan.json")["told"])
    if missing:
        typer.echo(f"{missing} cells are missing")
    for sentence in statements(correlate(plan, cells)):
        typer.echo(sentence.replace("*", ""))
    typer.echo(f"written: {page}")


def main() -> None:
    """Measure what is missing, and write the page once nothing is."""
    # An orderly end: a process that is cut off at work takes all that share its GPU with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = make_parser()
    arguments = parser.parse_args()
    folder: Path = arguments.out
    try:
        if arguments.page:
            finish(planned(folder), folder, some=True)
            return
        plan = read_plan(arguments)
        proxies = read_proxies(plan, arguments.only_proxies)
        splits = lcmat.load(plan.data)
        claim(plan, splits, folder)
    except ValueError as error:
        parser.error(str(error))
    if arguments.workers > 1:
        share_out(plan, arguments.workers)
    else:
        small = splits.train.inputs[0].numel() < 1024
        with runtime.one_thread() if small else nullcontext():
            measure_cells(plan, splits, folder, proxies, say)
    finish(plan, folder)


if __name__ == "__main__":
    main()

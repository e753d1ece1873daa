"""The page on whether a smaller bound goes with a higher accuracy: tables, a figure, and what the numbers say."""

import json
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lcmat import files
from lcmat.landscape.correlation import FEWEST, bootstrap_interval, rank_correlation
from lcmat.report.plain import as_csv
from lcmat.report.plots import number
from lcmat.report.wording import percent
from lcmat.study.bound import SCOPES, Plan
from lcmat.study.bound_by_method import count_by_methods

_WORDS = {"head": "last layer", "all": "whole network"}
_QUANTITIES = {
    "gradient_term": "gradient term", "curvature_term": "curvature term", "bound": "bound",
    "lambda_max": "λ_max", "lambda_min": "λ_min", "lambda_magnitude": "max\\|λ\\|",
}  # fmt: skip
# The eigenvalue of largest magnitude orders sets as the curvature term does: one row is enough.
_CORRELATED = ("gradient_term", "curvature_term", "bound", "lambda_max", "lambda_min")
_WIDTH = 130  # of a line of the page
_COLOURS = ("#4477aa", "#ee6677")

Cells = Sequence[Mapping[str, Any]]


def correlate(plan: Plan, cells: Cells) -> list[dict[str, Any]]:
    """Within each fraction, which would confound them: Spearman's ρ of each quantity with the accuracy."""
    rows = []
    for fraction in _fractions(plan, cells):
        own = [cell for cell in cells if cell["fraction"] == fraction]
        for name in (f"{quantity}_{scope}" for scope in SCOPES for quantity in _CORRELATED):
            xs, ys = [cell[name] for cell in own], [cell["accuracy"] for cell in own]
            low, high = bootstrap_interval(xs, ys)
            rows.append(
                {"fraction": fraction, "quantity": name, "n": len(own), "spearman": rank_correlation(xs, ys),
                 "low": low, "high": high, "within_proxies": _within_proxies(plan, own, name)}
            )  # fmt: skip
    return rows


def _within_proxies(plan: Plan, cells: Cells, name: str) -> float:
    """The mean over the proxies of the correlation over the methods; nan for methods too few to rank."""
    groups = ([cell for cell in cells if cell["proxy"] == proxy] for proxy in range(plan.proxies))
    found = [
        rank_correlation([cell[name] for cell in own], [cell["accuracy"] for cell in own])
        for own in groups
        if len(own) >= FEWEST
    ]
    return fmean(found) if found else math.nan


def _fractions(plan: Plan, cells: Cells) -> list[float]:
    """Those of the plan that have cells enough to rank."""
    return [fraction for fraction in plan.fractions if sum(cell["fraction"] == fraction for cell in cells) >= FEWEST]


def write_results(plan: Plan, cells: Cells, folder: Path, protocol: Mapping[str, str]) -> Path:
    """Write `cells.csv`, `cells.jsonl`, `correlations.csv`, `bound.svg` and the page `bound.md`; its path.

    Where there are methods enough to count by, `by_methods.csv` as well.

    Args:
        plan: what was measured.
        cells: all of its cells, or those that there are: fractions with less than four are left out.
        folder: to write to; the page links to the other files as lying in a folder `bound` beside it.
        protocol: what else the page says of how it was measured, such as the machine.

    Raises:
        ValueError: when no fraction has four cells.
    """
    rows = correlate(plan, cells)
    if not rows:
        raise ValueError(f"expected at least {FEWEST} cells of a fraction, got {len(cells)} cells in all")
    data = folder / "bound"
    flat = [{name: value for name, value in cell.items() if not isinstance(value, dict)} for cell in cells]
    files.write_text(data / "cells.csv", as_csv(flat))
    files.write_text(data / "correlations.csv", as_csv(rows))
    counted = count_by_methods(plan, cells)
    if counted:
        files.write_text(data / "by_methods.csv", as_csv(counted))
    files.write_text(data / "cells.jsonl", "".join(f"{json.dumps(cell, ensure_ascii=False)}\n" for cell in cells))
    draw(plan, cells, data / "bound.svg")
    return files.write_text(folder / "bound.md", "\n".join(_page(plan, cells, rows, counted, protocol)) + "\n")


def _page(plan: Plan, cells: Cells, rows: Cells, counted: Cells, protocol: Mapping[str, str]) -> Iterator[str]:
    fractions = _fractions(plan, cells)
    missing = len(plan.methods) * plan.proxies * len(plan.fractions) - len(cells)
    yield "# Does a smaller bound go with a higher accuracy?"
    yield from _paragraph(
        "LCMat chooses samples S so that the loss of S follows the loss of all data T around the proxy's parameters. "
        "Its argument is a bound with two terms, ‖∇L(T) − ∇L(S)‖ and (ρ/2) max|λ| of H_T − H_S. If the bound is what "
        "makes a subset good, then subsets with a smaller one should train better networks. Here both are measured for "
        "the same subsets."
    )
    yield from ("", "## What it shows", "")
    yield from _bullets(statements(rows))
    yield from _paragraph(
        f"Spearman's rank correlation over {len(plan.methods)} methods × {plan.proxies} proxies within each fraction, "
        f"{'of which some are missing (n says how many there are), ' if missing else ''}"
        "as a larger fraction alone makes bounds smaller and accuracies higher. If a smaller bound went with a higher "
        "accuracy, it would be negative (for λ_min, which is below zero, positive). The 95 % intervals are of a "
        "bootstrap over the pairs, which takes them as independent: pairs that share a proxy or a method are not, so "
        f"that these intervals are too narrow. Of {len(rows)} intervals a few leave out zero by chance. In brackets "
        "the mean of the correlations over the methods of one proxy: it leaves out what tells proxies apart, which is "
        "no matter of selection."
    )
    yield from ("", "| quantity | " + " | ".join(f"at {percent(part)}" for part in fractions) + " |")
    yield "|---|" + "---:|" * len(fractions)
    for scope in SCOPES:
        for quantity in _CORRELATED:
            found = [_find(rows, fraction, f"{quantity}_{scope}") for fraction in fractions]
            yield f"| {_QUANTITIES[quantity]}, {_WORDS[scope]} | " + " | ".join(map(_both, found)) + " |"
    if counted:
        yield from _by_methods(plan, counted)
    yield from _tables(plan, cells)
    yield from _method(plan, cells, protocol, counted)


def _paragraph(text: str) -> Iterator[str]:
    yield from ("", *textwrap.wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False))


def _bullets(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from textwrap.wrap(
            text, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )


def statements(rows: Cells) -> Iterator[str]:
    """What the correlations of the bound say, in a sentence for each fraction and scope."""
    for fraction in dict.fromkeys(row["fraction"] for row in rows):
        for scope in SCOPES:
            row = _find(rows, fraction, f"bound_{scope}")
            if not math.isfinite(row["low"]) or row["low"] <= 0 <= row["high"]:
                verdict = "the interval holds zero, so that these subsets do not tell"
            elif row["high"] < 0:
                verdict = "a smaller bound goes with a higher accuracy"
            else:
                verdict = "a smaller bound goes with a *lower* accuracy"
            where = f"**{percent(fraction)}, {_WORDS[scope]}**"
            yield f"{where}: the rank correlation of bound and accuracy is {_interval(row)}, n = {row['n']}; {verdict}."


def _find(rows: Cells, fraction: float, name: str) -> Mapping[str, Any]:
    return next(row for row in rows if (row["fraction"], row["quantity"]) == (fraction, name))


def _interval(row: Mapping[str, Any]) -> str:
    if not math.isfinite(row["spearman"]):
        return "–"
    words = f"{row['spearman']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"
    return words.replace("-", "−")


def _both(row: Mapping[str, Any]) -> str:
    return f"{_interval(row)} [{_signed(row['within_proxies'])}]"


def _by_methods(plan: Plan, rows: Cells) -> Iterator[str]:
    yield from ("", "## Counted by methods")
    yield from _paragraph(
        "The bound and the accuracy again, where every proxy has four methods or more: the rank correlation over the "
        "methods within each proxy; of the methods' means over the proxies; over all pairs but those of `uniform`; the "
        "95 % interval of a bootstrap that draws methods, each with all its proxies; and of how many orders of the "
        "methods' accuracies, alike in all proxies, the mean correlation within proxies is as low as the one found."
    )
    heads = [
        *(f"proxy {proxy}" for proxy in range(plan.proxies)),
        "means",
        "without `uniform`",
        "methods drawn",
        "as low",
    ]
    names = [*(f"proxy_{proxy}" for proxy in range(plan.proxies)), "means", "without_uniform"]
    yield from ("", "| share, parameters | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads))
    for row in rows:
        texts = [_signed(row[name]) for name in names]
        texts += [f"{_signed(row['low'])} to {_signed(row['high'])}", f"{row['as_low']} of {row['orders']:,}"]
        yield f"| {percent(row['fraction'])}, {_WORDS[row['scope']]} | " + " | ".join(texts) + " |"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−") if math.isfinite(value) else "–"


def _tables(plan: Plan, cells: Cells) -> Iterator[str]:
    yield from ("", "## The two terms and the eigenvalues")
    yield from _paragraph(
        f"Means ± standard deviations over the {plan.proxies} proxies, each with its own subsets. The accuracy, in %, "
        f"is the mean of {plan.seeds} trainings on each subset. λ_max and λ_min are the ends of the spectrum of "
        f"H_T − H_S; the curvature term is (ρ/2) max|λ| with ρ = {plan.rho:g}, and the bound the sum of both terms."
    )
    yield from ("", "![Gradient term and curvature term of each method](bound/bound.svg)")
    for scope in SCOPES:
        for fraction in _fractions(plan, cells):
            yield from ("", f"### {_WORDS[scope].capitalize()}, {percent(fraction)}", "")
            yield "| method | accuracy | " + " | ".join(_QUANTITIES.values()) + " |"
            yield "|---|" + "---:|" * (1 + len(_QUANTITIES))
            for method in plan.methods:
                own = _own(cells, method, fraction)
                if not own:  # not measured yet
                    continue
                texts = [_spread([100 * cell["accuracy"] for cell in own], "{:.1f}".format)]
                texts += [_spread([cell[f"{name}_{scope}"] for cell in own], number) for name in _QUANTITIES]
                yield f"| {method} | " + " | ".join(texts) + " |"


def _own(cells: Cells, method: str, fraction: float) -> list[Mapping[str, Any]]:
    return [cell for cell in cells if (cell["method"], cell["fraction"]) == (method, fraction)]


def _spread(values: Sequence[float], written: Callable[[float], str]) -> str:
    return written(fmean(values)) + (f" ± {written(stdev(values))}" if len(values) > 1 else "")


def _method(plan: Plan, cells: Cells, protocol: Mapping[str, str], counted: Cells) -> Iterator[str]:
    asked = plan.proxies * len(plan.methods) * len(plan.fractions)
    there = f"{len(cells)} cells" + (f" of the {asked} that were planned" if len(cells) < asked else "")
    products = [cell["products_all"] for cell in cells]
    full, drawn = (f"{cells[0][f'samples_{scope}']:,}" for scope in SCOPES)
    rounded = {"auto": "TF32 on a GPU and float32 on a CPU", "tf32": "TF32", "float32": "float32"}[plan.precision]
    yield from ("", "## How it was measured", "")
    yield from _bullets((
        f"Data: {protocol['data']}; networks: `{plan.net}`. Proxy i is trained for {plan.proxy_epochs} epochs under "
        f"seed i and chooses under seed i; each subset trains {plan.seeds} fresh networks for {plan.epochs} epochs "
        f"with a cosine schedule: {there}, {len(cells) * plan.seeds} trainings.",
        "All samples of S count the same, as in the trainings; weights that a method defines are not used.",
        f"Last layer: gradients and Hessians over all {full} samples of T, in closed form. The largest residual "
        f"‖Hv − λv‖ of an end of the spectrum is {number(_worst(cells, 'head'))} of max|λ|.",
        f"Whole network, gradients: over all {full} samples of T, products in {rounded}.",
        f"Whole network, Hessians: over {drawn} samples of T, the same for all cells, and all of S. The distance "
        "between T and this draw is part of the eigenvalues.",
        f"Whole network, eigenvalues: Lanczos with {min(products)} to {max(products)} Hessian-vector products a cell, "
        f"at most {plan.products}, until the residuals are {plan.tolerance:g} of max|λ|; the vectors are searched with "
        f"products in {rounded}, eigenvalues vᵀHv and residuals ‖Hv − (vᵀHv)v‖ are of products in float32. The largest "
        f"residual is {number(_worst(cells, 'all'))} of max|λ|; {_open_cells(plan, cells)} of {len(cells)} cells have "
        f"one above {plan.tolerance:g}. Apart from rounding, λ_max can only be too small and λ_min only too large.",
        "The sharpness itself is not measured here; `lcmat curvature` does that.",
        f"On {protocol['date']}, on {protocol['machine']}, torch {protocol['torch']}, Python {protocol['python']}, "
        f"lcmat {protocol['lcmat']}:",
    ))  # fmt: skip
    yield from ("", "```sh", protocol["command"], "```")
    yield from _paragraph(
        "Beside this page lie [every cell](bound/cells.csv), the same [with the seconds of each "
        "part](bound/cells.jsonl), and the [correlations](bound/correlations.csv)"
        f"{', also [counted by methods](bound/by_methods.csv)' if counted else ''}."
    )


def _share(cell: Mapping[str, Any], scope: str) -> float:
    """The larger residual of the two ends over max|λ|."""
    largest = max(cell[f"lambda_max_residual_{scope}"], cell[f"lambda_min_residual_{scope}"])
    return float(largest / cell[f"lambda_magnitude_{scope}"]) if cell[f"lambda_magnitude_{scope}"] > 0 else 0.0


def _worst(cells: Cells, scope: str) -> float:
    return max(_share(cell, scope) for cell in cells)


def _open_cells(plan: Plan, cells: Cells) -> int:
    return sum(_share(cell, "all") > plan.tolerance for cell in cells)


def draw(plan: Plan, cells: Cells, path: Path) -> None:
    """The two terms of each method as bars on top of each other, for each fraction and scope."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "lcmat", "svg.fonttype": "none", "font.family": "sans-serif"}):
        fractions = _fractions(plan, cells)
        figure = Figure(figsize=(8.5, 1.2 + 2.6 * len(fractions)), layout="constrained")
        panels = figure.subplots(len(fractions), len(SCOPES), squeeze=False)
        for line, fraction in zip(panels, fractions, strict=True):
            methods = [method for method in plan.methods if _own(cells, method, fraction)]
            for panel, scope in zip(line, SCOPES, strict=True):
                start = [0.0] * len(methods)
                for name, colour in zip(("gradient_term", "curvature_term"), _COLOURS, strict=True):
                    means = [
                        fmean(cell[f"{name}_{scope}"] for cell in _own(cells, method, fraction)) for method in methods
                    ]
                    panel.barh(methods, means, left=start, color=colour, label=_QUANTITIES[name])
                    start = [before + mean for before, mean in zip(start, means, strict=True)]
                panel.set_title(f"{_WORDS[scope]}, {percent(fraction)}", fontsize=10)
                panel.invert_yaxis()
        figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        for panel in panels[-1]:
            panel.set_xlabel(f"bound, ρ = {plan.rho:g}")
        with files.replacing(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None}, facecolor="white")

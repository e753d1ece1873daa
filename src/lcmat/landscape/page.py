"""The page of a curvature report: what stands where, and in which words."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from lcmat import runtime
from lcmat.landscape.diagonal import EVERYTHING
from lcmat.landscape.generalisation_page import describe_generalisation
from lcmat.landscape.result import HEAD, CurvatureReport, Terms
from lcmat.landscape.surface import FULL
from lcmat.report import (
    Block,
    Bullets,
    Contours,
    Facts,
    Lines,
    Page,
    Section,
    Stack,
    Stacks,
    Table,
    Text,
    Trace,
    command_section,
)
from lcmat.report.colours import line_colours
from lcmat.report.plots import number
from lcmat.report.wording import in_words, percent

_SCOPES = {HEAD: "last layer", "all": "whole network"}
_PAPER_K = 100
_TOP = 500
_LEAST = 1e-12
_MOST_CLASSES = 10  # curves that can be told apart


def describe(report: CurvatureReport, *, title: str = "", commands: Sequence[str] = ()) -> Page:
    """The page of a report, ready to be rendered."""
    versions = {name: str(report.protocol[name]) for name in runtime.versions() if name in report.protocol}
    told = tuple((name, in_words(value)) for name, value in report.protocol.items() if name not in versions)
    sections = (
        Section("The bound and its two terms", (terms_table(report.terms), *_term_bars(report.terms), _reading())),
        Section("The bound against the measured sharpness", tuple(_sharpness(report.terms))),
        Section("Eigenvalues", (_eigenvalues(report.terms),)),
        Section("The diagonal form", tuple(_diagonal(report))),
        Section("Loss surfaces", tuple(_surfaces(report))),
        Section("Generalisation", tuple(describe_generalisation(report.generalisation))),
        Section("Notes", (Bullets(report.notes),) if report.notes else ()),
        Section("How it was measured", (Facts(told),)),
        command_section(commands),
        Section("Versions and machine", (Facts(tuple(versions.items())),)),
    )
    name = title or f"Curvature of {report.protocol['data']}"
    return Page(name, tuple(_lead(report.terms)), sections)


def terms_table(terms: Sequence[Terms]) -> Table:
    """The two terms, the bound and what was measured, at the main radius."""
    heads = (
        "set", "kept", "parameters", "L(T)", "L(S)", "L_abs", "gradient term", "curvature term", "bound",
        "sharpness ≥", "remainder",
    )  # fmt: skip
    rows = tuple(
        (
            row.key.name,
            f"{percent(row.key.fraction)} ({row.key.size:,})",
            _SCOPES[row.parameters],
            *map(
                number,
                (
                    row.loss_full, row.loss_reduced, row.loss_gap, row.gradient, row.curvature(), row.bound(),
                    row.sharpness[row.rho], row.remainder(),
                ),
            ),
        )
        for row in terms
    )  # fmt: skip
    caption = f"Terms of the bound on the sharpness of L_abs, ρ = {terms[0].rho:g}"
    return Table(caption, heads, rows, tuple(range(3, len(heads))))


def _lead(terms: Sequence[Terms]) -> Iterator[str]:
    for scope, words in _SCOPES.items():
        rows = [row for row in terms if row.parameters == scope]
        for row in rows[:1]:
            share = row.curvature() / row.bound() if row.bound() > 0 else 0.0
            yield (
                f"{words.capitalize()}, {row.key.name} at {percent(row.key.fraction)}, ρ = {row.rho:g}: the bound is "
                f"{number(row.bound())}, of which curvature is {100 * share:.0f} %; the sharpness that was found is "
                f"{number(row.sharpness[row.rho])}."
            )
        random = [row for row in rows[1:] if row.key.name == "uniform" and row.key.size == rows[0].key.size]
        for row in random:
            yield f"For a random set of the same size the bound is {number(row.bound())}."


def _reading() -> Text:
    return Text(
        "The gradient term is ‖∇L(T) − ∇L(S)‖₂, the curvature term (ρ/2) max|λ| of H_T − H_S. Their sum bounds how "
        "much L_abs = |L(T) − L(S)| can rise within a ball of radius ρ, divided by ρ, up to terms of higher order. The "
        "sharpness is the largest rise that was found: a lower bound on the true one."
    )


def _term_bars(terms: Sequence[Terms]) -> Iterator[Block]:
    for scope, words in _SCOPES.items():
        rows = [row for row in terms if row.parameters == scope]
        if rows:
            bars = tuple(
                Stack(row.key.name, percent(row.key.fraction), (row.gradient, row.curvature()), number(row.bound()))
                for row in rows
            )
            summary = "; ".join(
                f"{bar.name} at {bar.detail}: gradient {number(bar.parts[0])}, curvature {number(bar.parts[1])}"
                for bar in bars
            )
            names = ("gradient term", f"curvature term, ρ = {rows[0].rho:g}")
            yield Stacks(f"The bound, {words}", summary, "gradient term + curvature term", names, bars)


def _sharpness(terms: Sequence[Terms]) -> Iterator[Block]:
    heads = ("set", "kept", "parameters", "ρ", "bound", "sharpness ≥", "remainder")
    rows = tuple(
        (
            row.key.name, percent(row.key.fraction), _SCOPES[row.parameters], f"{rho:g}", number(row.bound(rho)),
            number(row.sharpness[rho]), number(row.remainder(rho)),
        )
        for row in terms for rho in row.sharpness
    )  # fmt: skip
    yield Table("Bound, measured sharpness and their difference, over ρ", heads, rows, tuple(range(3, len(heads))))
    style = line_colours(row.key.name for row in terms)
    for scope, words in _SCOPES.items():
        chosen = [row for row in terms if row.parameters == scope]
        dashes = {size: place % 3 for place, size in enumerate(sorted({row.key.size for row in chosen}))}
        traces = tuple(
            Trace(
                f"{row.key.name} {percent(row.key.fraction)}",
                tuple(row.sharpness),
                tuple(row.remainder(rho) for rho in row.sharpness),
                style[row.key.name],
                dashes[row.key.size],
            )
            for row in chosen
        )
        if traces and len(traces[0].xs) > 1:
            summary = "; ".join(f"{trace.name}: {', '.join(map(number, trace.ys))}" for trace in traces)
            yield Lines(f"Remainder, {words}", summary, "ρ", "bound − sharpness", traces, log_x=True)


def _eigenvalues(terms: Sequence[Terms]) -> Table:
    heads = ("set", "kept", "parameters", "largest", "residual", "smallest", "residual", "max |λ|", "products", "state")
    rows = tuple(
        (
            row.key.name, percent(row.key.fraction), _SCOPES[row.parameters],
            ", ".join(map(number, found.largest)), number(max(found.largest_residuals)),
            ", ".join(map(number, found.smallest)), number(max(found.smallest_residuals)),
            number(found.magnitude), f"{found.products}" if found.products else "–",
            "exact" if not found.products else "converged" if found.converged else "not converged",
        )
        for row in terms for found in (row.spectrum,)
    )  # fmt: skip
    caption = "Leading eigenvalues of H_T − H_S at both ends; a residual ‖Hv − λv‖ bounds the error of each"
    return Table(caption, heads, rows, (4, 6, 7, 8))


def _diagonal(report: CurvatureReport) -> Iterator[Block]:
    parts = [(key, part) for key, found in report.diagonals.items() for part in found]
    inside = [part for _, part in parts if part.group != EVERYTHING]
    if inside:
        held = sum(part.held_by(_PAPER_K) for part in inside)
        yield Text(
            "Within a class, the coordinate where the Hessian diagonals of T and S differ most is among the "
            f"{_PAPER_K} of largest variance in {held} of {len(inside)} cases. Of all {inside[0].coordinates:,}, "
            f"K = {max(part.rank for part in inside):,} would hold all of them."
        )
    heads = ("set", "kept", "among", "max |λᵀ − λˢ|", "class, input", "place by variance", f"in K = {_PAPER_K}")
    rows = tuple(
        (
            key.name, percent(key.fraction), part.group, number(part.largest),
            f"{part.coordinate[0]}, {part.coordinate[1]}", f"{part.rank:,} of {part.coordinates:,}",
            "yes" if part.held_by(_PAPER_K) else "no",
        )
        for key, part in parts
    )  # fmt: skip
    yield Table("Where the Hessian diagonals of the last layer differ most", heads, rows, (3,))
    yield from _variance_curves(report.variances)


def _variance_curves(variances: Mapping[str, Tensor]) -> Iterator[Block]:
    groups = list(variances)[: _MOST_CLASSES + 1]
    for top, title in ((None, "Sorted variances, all coordinates"), (_TOP, f"Sorted variances, top {_TOP}")):
        shown = {group: _visible(variances[group][:top]) for group in groups}
        if top is not None and len(variances[groups[0]]) <= top:
            continue
        traces = tuple(
            Trace(
                group,
                tuple(float(place) for place in range(1, len(values) + 1)),
                tuple(values.tolist()),
                place if place < 8 else place - 7,
                0 if place < 8 else 1,
            )
            for place, (group, values) in enumerate(shown.items())
        )
        summary = "; ".join(f"{group}: from {_ends(values)}" for group, values in shown.items())
        yield Lines(title, summary, "coordinate, by variance", "Var(λ_k)", traces, log_y=top is None)


def _visible(values: Tensor) -> Tensor:
    """The values down to where rounding begins; a unit that is always off has none."""
    kept: Tensor = values[values > _LEAST * values[0]]
    return kept if len(kept) else values[:1]


def _ends(values: Tensor) -> str:
    return f"{number(float(values[0]))} to {number(float(values[-1]))}"


def _surfaces(report: CurvatureReport) -> Iterator[Block]:
    plane = report.plane
    if plane is None:
        return
    reach = float(plane.positions[-1])
    yield Text(
        f"Mean losses at θ + α d₁ + β d₂ for two random directions whose filters are as long as the network's own; "
        f"the point in the middle is θ. {plane.samples:,} samples stand for T. Two directions of many show little of "
        "a space of so many dimensions: others look different."
    )
    full = plane.losses[FULL]
    # One scale for all sets, so that their pictures may be compared.
    every = torch.stack(list(plane.losses.values()))
    scale, most = (float(every.min()), float(every.max())), float((full - every).abs().max())
    for name, losses in plane.losses.items():
        if name != FULL:
            low, high = torch.aminmax(full - losses)
            summary = (
                f"Over the plane L(T) runs from {number(float(full.min()))} to {number(float(full.max()))}, L(S) from "
                f"{number(float(losses.min()))} to {number(float(losses.max()))}, L(T) − L(S) from "
                f"{number(float(low))} to {number(float(high))}."
            )
            panels, difference = (("L(T)", full), ("L(S)", losses)), (("L(T) − L(S)", full - losses),)
            title = f"Loss of T and of S: {name}"
            yield Contours(title, summary, ("α", "β"), reach, panels, difference, scale, most)
    yield from _slices(report)


def _slices(report: CurvatureReport) -> Iterator[Block]:
    for name in report.slices[0].losses if report.slices else ():
        if name == FULL:
            continue
        traces = tuple(
            Trace(
                "T" if which == FULL else "S", at, tuple(part.losses[which].tolist()), 0 if which == FULL else 1, place
            )
            for part in report.slices
            for at in (tuple(part.positions.tolist()),)
            for place, which in enumerate((FULL, name))
        )
        middle = len(traces[0].ys) // 2
        summary = (
            f"In the middle T has {number(traces[0].ys[middle])} and S {number(traces[1].ys[middle])}; at the ends of "
            f"{len(report.slices)} directions the losses of T are "
            f"{', '.join(f'{number(trace.ys[0])} and {number(trace.ys[-1])}' for trace in traces[::2])}."
        )
        title = f"Slices along {len(report.slices)} directions: {name}"
        yield Lines(title, summary, "α", "mean loss", traces, log_y=True)

"""The part of a curvature page on generalisation: both sides of the bounds, and what they rest on."""

from collections.abc import Iterator, Sequence

from lcmat.landscape.generalisation import Generalisation
from lcmat.report import Block, Facts, Table, Text
from lcmat.report.plots import number


def describe_generalisation(parts: Sequence[Generalisation]) -> Iterator[Block]:
    """What stands on the page about them: in words, what all sets share, and a table with a line for each."""
    if not parts:
        return
    first = parts[0]
    yield Text(
        "The terms of the paper's Theorem 1 and Corollary 1 for all parameters, with the test data in the place of the "
        f"population. The square root alone is {number(first.complexity)}: "
        + (
            "a loss in [0, 1] is never larger than 1, so that the bound says nothing. This is usual for deep networks."
            if first.vacuous
            else "below 1, which deep networks seldom reach."
        )
    )
    shared = (
        ("k, parameters", f"{first.k:,}"),
        ("n, samples of T", f"{first.n:,}"),
        ("δ", f"{first.delta:g}"),
        ("ρ", f"{first.rho:g}"),
        ("σ = ρ/(√k + √log n)", number(first.sigma)),
        ("‖θ‖₂", number(first.norm)),
        ("square root of the bound", number(first.complexity)),
        (
            "L(T; θ) ≤ L(D; θ), θ in Θ̂?",
            f"{_yes(first.in_range)}: {number(first.training_loss)} and {number(first.test_loss)}",
        ),
        (
            "the same at θ + ε, which the proof uses",
            f"in {100 * first.in_range_nearby:.0f} % of {first.expected.n} draws",
        ),
        ("is the loss bounded, as PAC-Bayes assumes?", "no: cross-entropy has no largest value, so l_max is infinite"),
        (
            "‖θ‖² ≤ σ²(exp(4n/k) − 1)?",
            f"{_yes(first.restrained)}" + ("" if first.restrained else ": the bound exceeds 1"),
        ),
    )
    yield Facts(shared)
    heads = (
        "set",
        "E L_abs(D, S; θ + ε)",
        "max L_abs ≥",
        "right side",
        "L_abs(T, S) ≤ L_abs(D, S)?",
        "corollary: left",
        "right",
    )
    rows = tuple(
        (
            part.name, f"{number(part.expected.value)} ± {number(part.expected.error)}", number(part.highest),
            number(part.right_side), _yes(part.corollary_applies), number(part.corollary_left),
            number(part.corollary_right),
        )
        for part in parts
    )  # fmt: skip
    caption = "Both sides, without the term l_max/√n; ± is the standard error over the draws of ε"
    yield Table(caption, heads, rows, (1, 2, 3, 5, 6))


def _yes(value: bool) -> str:
    return "yes" if value else "no"

"""The results of a study as a Markdown page, for a repository's documentation or a message."""

from collections.abc import Iterator

from lcmat.evaluation import Row
from lcmat.evaluation.plan import FULL
from lcmat.report.plain import as_markdown_table
from lcmat.report.wording import in_words, points, score, span
from lcmat.study.duels import kept
from lcmat.study.outcome import Outcome
from lcmat.study.study_page import BESIDE_COLUMNS, beside_lines, time_table

_LEFT_OUT = {"data", "data fingerprint", "trained on", "networks"}  # stand in the tables, or tell a reader nothing


def as_markdown(outcome: Outcome) -> str:
    """Every result with n, spread and interval; the paper's values; how it was measured."""
    study = outcome.study
    parts = [f"# {study.title}", study.about, *outcome.remarks, *_accuracies(outcome), *_payoffs(outcome)]
    if outcome.times:
        table = time_table(outcome.times)
        parts += [f"## {table.caption}", as_markdown_table(table.columns, table.rows)]
    if outcome.beside:
        lines = [line for line in beside_lines(outcome.beside) if line[6] != "–"]  # the paper has a value
        parts += ["## Beside the paper", as_markdown_table(BESIDE_COLUMNS, lines)] if lines else []
    return "\n\n".join([*filter(None, parts), *_protocol(outcome)]) + "\n"


def _accuracies(outcome: Outcome) -> Iterator[str]:
    """A table for each data set, proxy and network: a row for each method, a column for each size."""
    found: dict[tuple[str, str], list[tuple[str, Row]]] = {}
    for group in outcome.groups:
        for row in sorted(group.report.rows if group.report else (), key=lambda row: row.size):
            size = kept(group.amounts.get(row.size, 1.0), full=row.name == FULL)
            found.setdefault((group.label, row.net), []).append((size, row))
    if found:
        yield (
            "Test accuracy in %, mean ± standard deviation (n, the independent runs). Below it the mean paired "
            "difference to random sets of the same size and its 95 % interval; **bold** where the interval lies above "
            "zero, *italic* where it lies below."
        )
    for (label, net), rows in found.items():
        sizes = tuple(dict.fromkeys(size for size, _ in rows))
        cells = {(row.name, size): _cell(row) for size, row in rows}
        names = dict.fromkeys(row.name for _, row in rows)
        yield f"## {label}, {net}"
        yield as_markdown_table(
            ("trained on", *sizes), [(name, *(cells.get((name, size), "") for size in sizes)) for name in names]
        )


def _payoffs(outcome: Outcome) -> Iterator[str]:
    """From how many trainings on the choice of what is better than random sets pays."""
    for group in outcome.groups:
        if table := group.payoff:
            yield f"## When it pays: {group.label}"
            yield table.caption + "."
            yield as_markdown_table(table.columns, table.rows)


def _cell(row: Row) -> str:
    text = score(row.mean) + ("" if row.sd is None else f" ± {score(row.sd)}") + f" ({row.n})"
    if row.difference is None:
        return text
    difference = points(row.difference)
    interval = span(points(row.difference_low), points(row.difference_high))
    if interval != "–":
        difference += f", {interval}"
    mark = {"better than uniform": "**", "worse than uniform": "*"}.get(row.verdict, "")
    return f"{text}<br>{mark}{difference}{mark}"


def _protocol(outcome: Outcome) -> Iterator[str]:
    chosen = {**outcome.proxies, **({} if any(group.report for group in outcome.groups) else outcome.ran_on)}
    facts = dict.fromkeys(f"- {name}: {value}" for name, value in chosen.items())
    facts |= dict.fromkeys(
        f"- {name}: {in_words(value)}"
        for group in outcome.groups
        if group.report
        for name, value in group.report.protocol.items()
        if name not in _LEFT_OUT
    )
    if facts:
        yield "## How it was measured"
        yield "\n".join(facts)

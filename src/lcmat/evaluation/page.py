"""The report page of an evaluation: what stands where, and in which words."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import torch

from lcmat import runtime
from lcmat.evaluation.gallery import CLASSES, PAGE_BYTES, picture_blocks
from lcmat.evaluation.payoff import payoff_table
from lcmat.evaluation.plan import FULL, Entry, class_counts, first_seeds
from lcmat.evaluation.rows import Row, is_numeric, texts
from lcmat.report import (
    Bar,
    Block,
    Bullets,
    Code,
    Curves,
    Facts,
    Forest,
    Page,
    Point,
    Section,
    Series,
    Stack,
    Stacks,
    Table,
    Text,
    command_section,
)
from lcmat.report.wording import hundredfold, in_words, listed, percent, points, score, seconds, span
from lcmat.types import SyntheticSet

if TYPE_CHECKING:
    from lcmat.evaluation.result import Report


def describe(
    report: "Report",
    *,
    pictures: bool,
    title: str,
    folders: Mapping[str, str | Path],
    stages: Mapping[str, Mapping[str, float]],
    commands: Sequence[str] = (),
    page_bytes: int = PAGE_BYTES,
) -> Page:
    """The page of a report, ready to be rendered, with pictures of about so many bytes at most."""
    chosen = [entry for entry in report.entries if entry.first is not None]
    sections = (
        Section("Results", result_blocks(report)),
        Section("Notes", (Bullets(report.notes),) if report.notes else ()),
        Section("What was picked", picture_blocks(report.data, chosen, page_bytes=page_bytes) if pictures else ()),
        Section("Class counts", (_class_table(report, chosen),)),
        Section("Accuracy of each class", class_accuracies(report)),
        Section("How to use a subset", tuple(_usage(report, chosen, folders))),
        Section("How it was measured", (protocol_facts(report),)),
        command_section(commands),
        Section("What was compared", (_methods(chosen),)),
        Section("Seconds", tuple(_times(report, stages))),
        Section("Versions and machine", (version_facts(report),)),
    )
    return Page(title or f"Subsets of {report.data.name}", report.headline(), sections)


def result_blocks(report: "Report") -> tuple[Block, ...]:
    """The table of the rows, and for each network a plot of the accuracies and one of the differences."""
    return _result_table(report), *_charts(report)


def protocol_facts(report: "Report") -> Facts:
    """The settings of all trainings, in words."""
    versions = runtime.versions()
    return Facts(tuple((name, in_words(value)) for name, value in report.protocol.items() if name not in versions))


def version_facts(report: "Report") -> Facts:
    """What the trainings ran on."""
    return Facts(tuple((name, str(report.protocol[name])) for name in runtime.versions() if name in report.protocol))


def _result_table(report: "Report") -> Table:
    cells = texts(report.rows)
    tones = {"better than uniform": "good", "worse than uniform": "bad"}
    return Table(
        "Test accuracy in % after the last epoch, and paired differences to uniform in points, with 95 % t-intervals",
        tuple(cells[0]),
        tuple(tuple(line.values()) for line in cells),
        tuple(place for place, name in enumerate(cells[0]) if is_numeric(name)),
        tuple(tones.get(row.verdict, "") for row in report.rows),
    )


def _charts(report: "Report") -> Iterator[Block]:
    nets = list(dict.fromkeys(row.net for row in report.rows))
    for net in nets:
        rows = [row for row in report.rows if row.net == net]
        suffix = f", {net}" if len(nets) > 1 else ""
        yield _accuracy_chart(rows, suffix)
        compared = [row for row in rows if row.difference is not None]
        if compared:
            yield _difference_chart(compared, suffix)


def _accuracy_chart(rows: list[Row], suffix: str) -> Block:
    """Lines against the fraction; with a single fraction the values stand under each other."""
    title, summary = f"Test accuracy{suffix}", "; ".join(_row_in_words(row) for row in rows)
    chosen = [row for row in rows if row.name != FULL]
    if len({row.size for row in chosen}) == 1:
        bars = tuple(
            Bar(row.name, percent(row.fraction), 100 * row.mean, hundredfold(row.low), hundredfold(row.high),
                f"{score(row.mean)} ({span(score(row.low), score(row.high))})" if row.n > 1 else score(row.mean))
            for row in rows
        )  # fmt: skip
        return Forest(title, summary, "test accuracy in %, with 95 % t-intervals", bars)
    series = tuple(
        Series(name, tuple(_point(row) for row in chosen if row.name == name), dashed=name.startswith("uniform"))
        for name in dict.fromkeys(row.name for row in chosen)
    )
    level = next((row for row in rows if row.name == FULL), None)
    return Curves(
        title, summary, "kept, in % of the data", "test accuracy in %, with 95 % t-intervals", series,
        _point(level) if level else None, "everything",
    )  # fmt: skip


def _difference_chart(rows: list[Row], suffix: str) -> Forest:
    bars = []
    for row in rows:
        interval = span(points(row.difference_low), points(row.difference_high))
        text = points(row.difference) + (f" ({interval})" if row.n > 1 else "")
        low, high = hundredfold(row.difference_low), hundredfold(row.difference_high)
        bars.append(Bar(row.name, percent(row.fraction), 100 * (row.difference or 0.0), low, high, text))
    summary = "; ".join(f"{bar.name} at {bar.detail}: {bar.text}" for bar in bars)
    label = "points above or below uniform, with 95 % t-intervals"
    return Forest(f"Paired differences to uniform{suffix}", summary, label, tuple(bars), origin=0.0)


def _point(row: Row) -> Point:
    return Point(100 * row.fraction, 100 * row.mean, hundredfold(row.low), hundredfold(row.high))


def _row_in_words(row: Row) -> str:
    return f"{row.name} at {percent(row.fraction)}: {score(row.mean)} %"


def _class_table(report: "Report", chosen: list[Entry]) -> Table:
    names = report.data.train.class_names
    counts = [class_counts(None, report.data), *(class_counts(entry.first, report.data) for entry in chosen)]
    rows = tuple((name, *(f"{count[place]:,}" for count in counts)) for place, name in enumerate(names))
    heads = ("class", "all", *(f"{entry.name} {percent(entry.fraction)}" for entry in chosen))
    caption = f"Samples of each class, {_which_seed(report)}"
    return Table(caption, heads, rows, tuple(range(1, len(heads))))


def class_accuracies(report: "Report") -> tuple[Block, ...]:
    """A table for each network and size: the mean accuracy on the test samples of each class, in %.

    Of many classes the first are shown; there is nothing where the records do not tell.
    """
    if not all("right_per_class" in record for record in report.records):
        return ()
    test = report.data.test
    names, tested = test.class_names[:CLASSES], torch.bincount(test.labels, minlength=len(test.class_names)).tolist()
    nets = list(dict.fromkeys(row.net for row in report.rows))
    tables = []
    for net, size in dict.fromkeys((row.net, row.size) for row in report.rows if row.name != FULL):
        rows = [row for row in report.rows if row.net == net and (row.size == size or row.name == FULL)]
        means = [_class_means(report, row) for row in rows]
        cells = (
            (
                name,
                f"{tested[place]:,}",
                *(score(mean[place] / tested[place]) if tested[place] else "–" for mean in means),
            )
            for place, name in enumerate(names)
        )
        heads = ("class", "tested", *(row.name for row in rows))
        caption = f"{percent(size / len(report.data.train))} kept" + (f", {net}" if len(nets) > 1 else "")
        tables.append(Table(caption, heads, tuple(cells), tuple(range(1, len(heads))), folded=True))
    if not tables:
        return ()
    about = (
        "Test accuracy in % after the last epoch, mean over the runs; without intervals, as a class has few samples."
    )
    if len(names) < len(test.class_names):
        about += f" Of {len(test.class_names)} classes the first {len(names)} are shown."
    return Text(about), *tables


def _class_means(report: "Report", row: Row) -> list[float]:
    """How many test samples of each class were classified rightly, mean over the runs of a row."""
    own = [r for r in report.records if (r["net"], r["size"], r["name"]) == (row.net, row.size, row.name)]
    return [fmean(counts) for counts in zip(*(record["right_per_class"] for record in own), strict=True)]


def _which_seed(report: "Report") -> str:
    return f"in the subsets of training {first_seeds(report.entries)}"


def _usage(report: "Report", chosen: list[Entry], folders: Mapping[str, str | Path]) -> Iterator[Block]:
    if any(isinstance(entry.first, SyntheticSet) for entry in chosen):
        yield Text("A synthetic set holds its own samples; a subset is applied to the data that it was selected from.")
        lines = ["import lcmat", "", "tiny = lcmat.SyntheticSet.load('PATH/OF/THE/SET')"]
        yield Code("\n".join([*lines, "tiny.dataset()  # a torch Dataset of normalised samples and labels"]))
        return
    yield Text("A subset holds the rows that are kept. It is applied to the data that it was selected from, no other.")
    names = [name for name in folders if any(entry.name == name for entry in chosen)]
    where = [str(folders[name]) for name in names] or ["PATH/OF/THE/SUBSET"]
    lines = ["import lcmat", "", f"data = lcmat.load({report.data.name!r})"]
    lines += [f"subset = lcmat.load_subset({where[0]!r})"]
    lines += ["small = subset.apply(data.train)", "subset.indices, subset.weights  # rows of data.train that are kept"]
    if len(names) > 1:
        lines += ["", *(f"# {name}: {path}" for name, path in zip(names, where, strict=True))]
    yield Code("\n".join(lines))


def _methods(chosen: list[Entry]) -> Facts:
    """What stands behind each name: method, options and seeds of the selection."""
    items = []
    for entry in chosen:
        subsets = list(dict.fromkeys(subset for subset in entry.by_seed.values() if subset is not None))
        first = subsets[0]
        options = ", ".join(f"{name}={value!r}" for name, value in first.options.items()) or "no options"
        kind = "condensation" if isinstance(first, SyntheticSet) else "selection"
        seeds = f"{kind} seed{'s' if len(subsets) > 1 else ''} {listed([str(subset.seed) for subset in subsets])}"
        items.append((f"{entry.name}, {percent(entry.fraction)}", f"{first.method} ({options}), {seeds}"))
    return Facts(tuple(items))


_PARTS = {"proxy": "train", "extraction": "extract", "selection": "select"}


def _before(stages: Mapping[str, Mapping[str, float]], name: str) -> list[float]:
    """Seconds of the parts of choosing what bears a name."""
    return [stages.get(name, {}).get(stage, 0.0) for stage in _PARTS.values()]


def _time_bars(report: "Report", stages: Mapping[str, Mapping[str, float]]) -> Iterator[Stacks]:
    """What one trained network costs in all, the choice included: a figure for each network and size."""
    nets = list(dict.fromkeys(row.net for row in report.rows))
    for net, size in dict.fromkeys((row.net, row.size) for row in report.rows if row.name != FULL):
        bars = []
        for row in report.rows:
            if row.net == net and (row.size == size or row.name == FULL):
                before = _before(stages, row.name)
                bars.append(Stack(row.name, "", (*before, row.seconds), f"{seconds(sum(before) + row.seconds)} s"))
        title = f"Seconds to a trained network, {percent(size / len(report.data.train))} kept"
        title += f", {net}" if len(nets) > 1 else ""
        summary = "; ".join(f"{bar.name}: {bar.text}" for bar in bars)
        yield Stacks(title, summary, "seconds", (*_PARTS, "training"), tuple(bars))


def _time_to_reach(report: "Report", stages: Mapping[str, Mapping[str, float]]) -> Iterator[Table]:
    """What it costs to come to the accuracy that was asked for, the choice included, beside training on everything."""
    asked = [row for row in report.rows if row.reach is not None]
    if not asked:
        return
    lines = []
    for row in asked:
        before = _before(stages, row.name)
        total = None if row.reach_seconds is None else sum(before) + row.reach_seconds
        runs = f"{row.reached} of {row.n}"
        parts = tuple(map(seconds, (*before, row.reach_seconds, total)))
        lines.append((row.net, f"{percent(row.fraction)} ({row.size:,})", row.name, runs, *parts))
    heads = ("network", "kept", "trained on", "reached", *_PARTS, "training", "in all")
    caption = f"Seconds to a test accuracy of {percent(asked[0].reach or 0.0)}, mean over the runs that reached it"
    yield Table(caption, heads, tuple(lines), tuple(range(3, 9)))


def _times(report: "Report", stages: Mapping[str, Mapping[str, float]]) -> Iterator[Block]:
    rows = tuple(
        (row.net, f"{percent(row.fraction)} ({row.size:,})", row.name, seconds(row.seconds), seconds(row.test_seconds))
        for row in report.rows
    )
    heads = ("network", "kept", "trained on", "one training", "one test")
    yield Table("Seconds of the evaluation, mean over the seeds", heads, rows, (3, 4))
    yield from _time_to_reach(report, stages)
    if stages:
        choosing = {name: sum(_before(stages, name)) for name in stages}
        if table := payoff_table(report.rows, choosing):
            yield table
        yield from _time_bars(report, stages)
        columns = list(dict.fromkeys(stage for own in stages.values() for stage in own))
        body = tuple((name, *(seconds(own.get(stage)) for stage in columns)) for name, own in stages.items())
        yield Table("Seconds before it, by stage", ("trained on", *columns), body, tuple(range(1, len(columns) + 1)))

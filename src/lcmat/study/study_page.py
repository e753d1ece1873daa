"""The page of a study: what stands where, and in which words."""

from collections.abc import Iterator, Sequence

from lcmat.evaluation.gallery import PAGE_BYTES, picture_blocks
from lcmat.evaluation.page import class_accuracies, protocol_facts, result_blocks, version_facts
from lcmat.evaluation.plan import FULL
from lcmat.report import Block, Bullets, Facts, Page, Section, Stack, Stacks, Table, Text, command_section
from lcmat.report.plain import aligned
from lcmat.report.wording import percent, points, seconds, span
from lcmat.study.duels import heat_maps, kept, sensitivity_curves, winners
from lcmat.study.outcome import Group, Outcome, Time
from lcmat.study.paper import Beside

BESIDE_COLUMNS = ("data", "kept", "network", "method", "n", "ours", "paper", "ours − paper", "its interval")
_SPELLED_OUT = 4  # groups whose findings stand at the top of the page


def describe_study(outcome: Outcome, page_bytes: int = PAGE_BYTES, command: str = "") -> Page:
    """The page, ready to be rendered, with pictures of about so many bytes at most."""
    study = outcome.study
    with_reports = [group for group in outcome.groups if group.report]
    several_proxies = any(group.proxy for group in outcome.groups)
    sections = [Section("What it shows", (Text(study.about),) if study.about else ())]
    if study.paper:
        sections.append(Section("Beside the paper", (_beside_table(outcome.beside), Text(_ABOUT_PAPER))))
    if "heat map" in study.show:
        sections.append(Section("Method against method", heat_maps(with_reports)))
    if "sensitivity" in study.show:
        sections.append(Section("Sensitivity", sensitivity_curves(study, with_reports)))
    if outcome.times:
        sections.append(Section("Time", (*_time_bars(outcome.times), time_table(outcome.times))))
    if several_proxies:
        sections.append(Section("Results by proxy", tuple(_proxy_tables(with_reports))))
    else:
        for group in with_reports:
            if group.report:
                blocks = (*result_blocks(group.report), *filter(None, [group.payoff]))
                sections.append(Section(f"Results: {group.label}", blocks))
                sections.append(Section(f"Accuracy of each class: {group.label}", class_accuracies(group.report)))
    if "pictures" in study.show:
        sections += list(_pictures(outcome, page_bytes))
    sections += [command_section([command] if command else []), *_closing(outcome, with_reports)]
    return Page(study.title, _lead(outcome, with_reports, several_proxies=several_proxies), tuple(sections))


_ABOUT_PAPER = (
    "The interval is our 95 % t-interval less the paper's mean, which is taken as it is: the paper's own spread is not "
    "in it. What the paper does not give is left blank."
)


def beside_lines(beside: Sequence[Beside]) -> list[tuple[str, ...]]:
    """The cells of the table that sets the paper's values beside ours, without its heading."""
    return [
        (
            line.data,
            kept(line.amount, full=line.method == FULL),
            line.net or "–",
            line.method,
            str(line.n),
            _spread(line.ours, line.sd, line.net),
            "–" if line.paper is None else _spread(line.paper, line.paper_sd, line.net),
            "–" if line.difference is None else points(line.difference / 100),
            "–" if line.low is None or line.high is None else span(points(line.low / 100), points(line.high / 100)),
        )
        for line in beside
    ]


def as_text(outcome: Outcome) -> str:
    """The results for a terminal: beside the paper's where there are any."""
    if outcome.beside:
        return "\n".join(aligned([BESIDE_COLUMNS, *beside_lines(outcome.beside)]))
    if outcome.times:
        table = time_table(outcome.times)
        return "\n".join(aligned([table.columns, *table.rows]))
    found = [f"{group.label}\n{group.report.table()}" for group in outcome.groups if group.report]
    return "\n\n".join(found) or "Nothing was trained; the page shows what was chosen."


def _beside_table(beside: Sequence[Beside]) -> Table:
    return Table("Our values and the paper's", BESIDE_COLUMNS, tuple(beside_lines(beside)), (4, 5, 6, 7, 8))


def _spread(mean: float, sd: float | None, net: str) -> str:
    if not net:
        return f"{seconds(mean)} s"
    return f"{mean:.1f}" + ("" if sd is None else f" ± {sd:.1f}")


def _lead(outcome: Outcome, groups: Sequence[Group], *, several_proxies: bool) -> tuple[str, ...]:
    unfinished = outcome.remarks[:1] if outcome.done < outcome.total else ()
    return (*unfinished, *_findings(outcome, groups, several_proxies=several_proxies))


def _findings(outcome: Outcome, groups: Sequence[Group], *, several_proxies: bool) -> tuple[str, ...]:
    if several_proxies or not groups or len(groups) > _SPELLED_OUT:
        count = sum(len(group.report.records) for group in groups if group.report)
        seeds = ", ".join(map(str, outcome.study.seeds))
        told = winners(groups) if "heat map" in outcome.study.show else ()
        return (*told, f"{count:,} trainings, seeds {seeds}." if count else f"Nothing was trained; seeds {seeds}.")
    several = len(groups) > 1
    return tuple(
        f"{group.label}: {sentence}" if several else sentence
        for group in groups
        if group.report
        for sentence in group.report.headline()
    )


def _time_bars(times: Sequence[Time]) -> Iterator[Stacks]:
    for data, amount in dict.fromkeys((time.data, time.amount) for time in times):
        own = [time for time in times if (time.data, time.amount) == (data, amount)]
        bars = tuple(
            Stack(time.method, "", (time.proxy, time.extract, time.select), f"{seconds(time.total)} s") for time in own
        )
        title = f"Seconds to choose {percent(amount)}, {data}"
        summary = "; ".join(f"{bar.name}: {bar.text}" for bar in bars)
        yield Stacks(title, summary, "seconds, mean over the seeds", ("proxy", "extraction", "selection"), bars)


def time_table(times: Sequence[Time]) -> Table:
    """The seconds of each choice, by its parts."""
    rows = tuple(
        (
            time.data,
            percent(time.amount),
            time.method,
            str(time.n),
            seconds(time.proxy),
            seconds(time.extract),
            seconds(time.select),
            seconds(time.total),
            span(seconds(time.lowest), seconds(time.highest)),
        )
        for time in times
    )
    heads = ("data", "kept", "method", "n", "proxy", "extraction", "selection", "in all", "lowest to highest")
    return Table("Seconds of each choice on its own, means over the seeds", heads, rows, tuple(range(3, 9)))


def _proxy_tables(groups: Sequence[Group]) -> Iterator[Table]:
    """Mean accuracies, a row for each proxy and a column for each method."""
    for data in dict.fromkeys(group.data for group in groups):
        own = [group for group in groups if group.data == data and group.report]
        rows = [row for group in own if group.report for row in group.report.rows]
        for net, size in dict.fromkeys((row.net, row.size) for row in rows):
            names = tuple(dict.fromkeys(row.name for row in rows if (row.net, row.size) == (net, size)))
            lines = []
            for group in own:
                here = [
                    row for row in (group.report.rows if group.report else ()) if (row.net, row.size) == (net, size)
                ]
                means = {row.name: row.mean for row in here}
                cells = (f"{100 * means[name]:.1f}" if name in means else "–" for name in names)
                lines.append((group.proxy or "–", *cells))
            caption = f"Mean test accuracy in %, {data}, {net}, {size:,} samples"
            yield Table(caption, ("proxy", *names), tuple(lines), tuple(range(1, len(names) + 1)))


def _pictures(outcome: Outcome, page_bytes: int) -> Iterator[Section]:
    shown = [group for group in outcome.groups if group.entries]
    for group in shown:
        entries = [entry for entry in group.entries if entry.name != FULL]
        blocks = picture_blocks(outcome.splits[group.data], entries, page_bytes=page_bytes // len(shown))
        yield Section(f"What was picked: {group.label}", blocks)


def _closing(outcome: Outcome, groups: Sequence[Group]) -> list[Section]:
    reports = [group.report for group in groups if group.report]
    measured: list[Block] = [Facts(tuple(outcome.proxies.items()))] if outcome.proxies else []
    differing = {"data", "data fingerprint", "train samples", "test samples", "trained on", "networks"}
    for report in reports:
        facts = protocol_facts(report)
        common = Facts(tuple(item for item in facts.items if item[0] not in differing))
        if common not in measured:
            measured.append(common)
    told = version_facts(reports[0]) if reports else Facts(tuple(outcome.ran_on.items()))
    return [
        Section("Notes", (Bullets(outcome.notes),) if outcome.notes else ()),
        Section("How it was measured", tuple(measured)),
        Section("Versions and machine", (told,) if told.items else ()),
    ]

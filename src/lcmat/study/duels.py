"""Methods against each other: how often one beats another over all cases, and how accuracy follows an option."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from lcmat.report import Block, Curves, HeatMap, Point, Series
from lcmat.report.wording import hundredfold, percent, points
from lcmat.study.design import Study
from lcmat.study.outcome import Group


@dataclass(frozen=True)
class Duel:
    """One method against another.

    Attributes:
        wins: cases in which the first has the higher accuracy.
        cases: pairs of one proxy and one seed.
        difference: mean of first − second, in points.
    """

    wins: int
    cases: int
    difference: float


def duels(groups: Sequence[Group], net: str, amount: float) -> dict[tuple[str, str], Duel]:
    """Every method against every other one, over all proxies and seeds.

    Args:
        groups: of one data set, one for each proxy.
        net: that was trained.
        amount: that was kept.
    """
    cases: dict[tuple[str, int], dict[str, float]] = {}
    for group in groups:
        for record in group.report.records if group.report else ():
            if record["net"] == net and group.amounts.get(record["size"]) == amount:
                cases.setdefault((group.proxy, record["seed"]), {})[record["name"]] = record["accuracy"]
    names = list(dict.fromkeys(name for case in cases.values() for name in case))
    found = {}
    for first in names:
        for second in names:
            both = [case for case in cases.values() if first in case and second in case]
            if first != second and both:
                differences = [100 * (case[first] - case[second]) for case in both]
                found[first, second] = Duel(sum(d > 1e-9 for d in differences), len(both), fmean(differences))
    return found


def heat_maps(groups: Sequence[Group]) -> tuple[Block, ...]:
    """A map for each data set, network and amount."""
    return tuple(_heat_map(pair, where) for where, pair in _all_duels(groups))


def winners(groups: Sequence[Group]) -> tuple[str, ...]:
    """The finding of each map in a sentence: who wins most often, and how uniform does."""
    sentences = []
    for where, found in _all_duels(groups):
        names = list(dict.fromkeys(first for first, _ in found))
        tallies = {name: f"{_wins(found, name)} of {_cases(found, name)}" for name in names}
        best = max(names, key=lambda name: _wins(found, name))
        beside = f"; uniform wins {tallies['uniform']}" if best != "uniform" and "uniform" in tallies else ""
        sentences.append(f"{where}: {best} wins most often, {tallies[best]} comparisons with the others{beside}.")
    return tuple(sentences)


def _wins(found: dict[tuple[str, str], Duel], name: str) -> int:
    return sum(duel.wins for (first, _), duel in found.items() if first == name)


def _cases(found: dict[tuple[str, str], Duel], name: str) -> int:
    return sum(duel.cases for (first, _), duel in found.items() if first == name)


def _all_duels(groups: Sequence[Group]) -> Iterator[tuple[str, dict[tuple[str, str], Duel]]]:
    """Where, in words, and the duels there."""
    for data in dict.fromkeys(group.data for group in groups):
        own = [group for group in groups if group.data == data]
        nets = dict.fromkeys(row.net for group in own if group.report for row in group.report.rows)
        amounts = dict.fromkeys(amount for group in own for amount in group.amounts.values())
        for net in nets:
            pairs = [(amount, duels(own, net, amount)) for amount in amounts]
            yield from ((f"{data}, {net}, {kept(amount)} kept", pair) for amount, pair in pairs if pair)


def _heat_map(found: dict[tuple[str, str], Duel], where: str) -> HeatMap:
    names = tuple(dict.fromkeys(first for first, _ in found))
    cases = max(duel.cases for duel in found.values())
    values, texts = [], []
    for first in names:
        line = [found.get((first, second)) for second in names]
        values.append(tuple(duel.difference if duel else None for duel in line))
        texts.append(tuple((str(duel.wins), points(duel.difference / 100)) if duel else ("", "") for duel in line))
    best = max(names, key=lambda name: _wins(found, name))
    title = f"How often the method of a row beats that of a column, in {cases} cases, and by how many points: {where}"
    summary = f"{best} wins most often. " + "; ".join(
        f"{first} beats {second} in {duel.wins}, by {points(duel.difference / 100)} points on average"
        for (first, second), duel in found.items()
        if first == best
    )
    return HeatMap(title, summary, names, names, tuple(values), tuple(texts))


def sensitivity_curves(study: Study, groups: Sequence[Group]) -> tuple[Block, ...]:
    """Accuracy against the values of the one option in which the study's methods of one name differ."""
    options = _varied(study)
    found: list[Block] = []
    for group in groups:
        rows = group.report.rows if group.report else ()
        for net, size in dict.fromkeys((row.net, row.size) for row in rows):
            own = {row.name: row for row in rows if (row.net, row.size) == (net, size)}
            for (name, option), values in options.items():
                places = tuple(
                    Point(value, 100 * own[text].mean, hundredfold(own[text].low), hundredfold(own[text].high))
                    for text, value in values.items()
                    if text in own
                )
                if len(places) < 2:
                    continue
                base = own.get("uniform")
                level = None
                if base is not None:
                    level = Point(0.0, 100 * base.mean, hundredfold(base.low), hundredfold(base.high))
                title = f"{name} with {option}: {group.label}, {net}, {kept(group.amounts[size])} kept"
                summary = "; ".join(f"{option} {point.x:g}: {point.y:.1f} %" for point in places)
                label = "test accuracy in %, with 95 % t-intervals"
                found.append(Curves(title, summary, option, label, (Series(name, places),), level, "uniform"))
    return tuple(found)


def _varied(study: Study) -> dict[tuple[str, str], dict[str, float]]:
    """(method, option) -> {text of the method: value of the option}, ascending, where there are several values."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for grid in study.grids:
        for method in grid.methods:
            for option, value in method.options.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    found.setdefault((method.name, option), {})[method.text] = float(value)
    return {
        key: dict(sorted(values.items(), key=lambda item: item[1])) for key, values in found.items() if len(values) > 1
    }


def kept(amount: float, *, full: bool = False) -> str:
    """A budget in words: a share, or samples of each class.

    Example:
        >>> kept(0.01), kept(10.0), kept(1.0, full=True)
        ('1 %', '10 of each class', 'all')
    """
    if full:
        return "all"
    return percent(amount) if amount < 1 else f"{amount:g} of each class"

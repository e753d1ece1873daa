"""From a study's TOML file to a `Study`: the one place that reads such a file, and names all its mistakes at once."""

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from lcmat.data.catalogue import SOURCES
from lcmat.study import values
from lcmat.study.design import Condensation, Grid, Proxy, Source, Study, Training
from lcmat.study.method import Method, read_method
from lcmat.study.toml_lines import Item, overlay, parse
from lcmat.training.settings import OPTIMIZERS, SCHEDULES

_TOP = (
    "title",
    "about",
    "seeds",
    "data",
    "proxy",
    "training",
    "condensation",
    "grid",
    "timed",
    "oracle",
    "reach",
    "show",
    "paper",
)
SMALL_FORM = "This is the small form, to see that everything works; its numbers say nothing of the whole."
PARTS = ("heat map", "sensitivity", "pictures")

_NO_TEXTS: tuple[str, ...] = ()
_NO_METHODS: tuple[Method, ...] = ()
_NO_NUMBERS: tuple[float, ...] = ()

T = TypeVar("T")


class StudyFileError(ValueError):
    """A study's file has mistakes; the message has a line for each."""


def read_study(path: str | Path, *, quick: bool = False, both: bool = True) -> Study:
    """The study of a file.

    Args:
        path: of the TOML file.
        quick: take its small form: what stands under `[quick]` replaces what stands above.
        both: look for mistakes in the other form too.

    Raises:
        StudyFileError: naming every mistake with its line, its key and what was expected.
    """
    path = Path(path)
    try:
        document = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyFileError(f"there is no file {path}") from None
    except ValueError as error:  # tomllib and UTF-8 both say where
        raise StudyFileError(f"{path} is no TOML file: {error}") from None
    reader = _Reader(path)
    study = reader.read(document, quick=quick)
    if both and "quick" in document.value:
        reader.read(document, quick=not quick)
    if reader.mistakes:
        raise StudyFileError("\n".join(f"{path}:{line}: {text}" for line, text in sorted(set(reader.mistakes))))
    if quick:
        return replace(study, title=f"{study.title} (small form)", about=f"{SMALL_FORM} {study.about}")
    return study


class _Reader:
    """Reads the tables of one file, and collects what is wrong with them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mistakes: list[tuple[int, str]] = []

    def read(self, document: Item, *, quick: bool) -> Study:
        top = dict(document.value)
        small = top.pop("quick", None)
        if quick:
            if small is None:
                self.mistakes.append((1, "quick: expected a table [quick] with the small form, there is none"))
            top = overlay(top, self.table("quick", small))
        self.check_keys("", top, _TOP)
        whole = Item(top, 1)
        sources = self.sources(top.get("data"))
        training = self.training(top.get("training"))
        condensation, made_once = self.condensation(top.get("condensation"))
        study = Study(
            name=self.path.stem,
            title=self.take("", whole, "title", values.text, self.path.stem),
            about=self.take("", whole, "about", values.text, ""),
            sources=sources,
            seeds=self.take("", whole, "seeds", values.seeds, (0,), needed=True),
            grids=self.grids(top.get("grid"), sources, self.proxies("proxy", top.get("proxy"), Proxy())),
            training=training,
            condensation=condensation,
            made_once=made_once,
            timed=self.take("", whole, "timed", values.truth, False),
            oracle=self.take("", whole, "oracle", values.truth, False),
            reach=self.take("", whole, "reach", values.share, None),
            show=self.take("", whole, "show", values.several(values.one_of(PARTS)), ()),
            paper=self.take("", whole, "paper", self.paper_table, None),
        )
        self.check_weighted(study, top)
        return study

    def take(
        self, place: str, table: Item, key: str, check: Callable[[Any], T], default: T, *, needed: bool = False
    ) -> T:
        """The checked value of a key, or the default where it is absent or wrong."""
        name = f"{place}.{key}".lstrip(".")
        if key not in table.value:
            if needed:
                self.mistakes.append((table.line, f"{name}: expected a value, there is none"))
            return default
        item = table.value[key]
        try:
            return check(item.plain())
        except (ValueError, TypeError) as error:
            self.mistakes.append((item.line, f"{name}: {error}"))
            return default

    def table(self, place: str, item: Item | None) -> dict[str, Item]:
        """The keys of a table; none where there is no table."""
        if item is None:
            return {}
        if not isinstance(item.value, dict):
            self.mistakes.append((item.line, f"{place}: expected a table [{place}], got {item.value!r}"))
            return {}
        return item.value

    def tables(self, place: str, item: Item) -> list[Item]:
        """A table, or each of several; those that are none are left out."""
        entries = item.value if isinstance(item.value, list) else [item]
        wrong = [entry for entry in entries if not isinstance(entry, Item)]
        if wrong:
            self.mistakes.append((item.line, f"{place}: expected tables, got {', '.join(map(repr, wrong))}"))
        return [Item(self.table(place, entry), entry.line) for entry in entries if isinstance(entry, Item)]

    def check_keys(self, place: str, table: Mapping[str, Item], known: Collection[str]) -> None:
        for key, item in table.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                name = f"{place}.{key}".lstrip(".")
                self.mistakes.append((item.line, f"{name}: expected one of {', '.join(known)}, got {key!r}{hint}"))

    def sources(self, item: Item | None) -> dict[str, Source]:
        found = {}
        for name, entry in self.table("data", item).items():
            place = f"data.{name}"
            table = self.table(place, entry)
            whole = Item(table, entry.line)
            self.check_keys(place, table, ("source", "local", "label", "image", "resize", "classes"))
            reading = {
                key: self.take(place, whole, key, check, None)
                for key, check in (("label", values.text), ("image", values.text), ("resize", values.count))
            }
            found[name] = Source(
                name,
                self.take(place, whole, "source", values.text, name, needed=True),
                self.take(place, whole, "local", values.text, ""),
                {key: value for key, value in reading.items() if value is not None},
                self.take(place, whole, "classes", values.count, 0),
            )
        return found

    def proxies(self, place: str, item: Item | None, base: Proxy) -> tuple[Proxy, ...]:
        """A table, or several; a list of values in one of them stands for a proxy of each."""
        found: list[Proxy] = []
        for whole in self.tables(place, item) if item else []:
            table = whole.value
            self.check_keys(place, table, [field.name for field in fields(Proxy)])
            choices = {
                key: self.take(place, whole, key, values.several(check), (getattr(base, key),))
                for key, check in _PROXY.items()
            }
            points = self.take(place, whole, "points", values.several(values.count), base.points)
            for chosen in product(*choices.values()):
                found.append(Proxy(**dict(zip(choices, chosen, strict=True)), points=points))
                if points and max(points) > found[-1].epochs:
                    text = f"{place}.points: expected epochs up to {found[-1].epochs}, got {max(points)}"
                    self.mistakes.append((table["points"].line if "points" in table else whole.line, text))
        return tuple(dict.fromkeys(found)) or (base,)

    def training(self, item: Item | None) -> Training:
        table = self.table("training", item)
        whole = Item(table, item.line if item else 1)
        self.check_keys("training", table, [field.name for field in fields(Training)])
        if "epochs" in table and "steps" in table:
            self.mistakes.append((table["steps"].line, "training.steps: expected epochs or steps, got both"))
        take = self.take
        return Training(
            epochs=take("training", whole, "epochs", values.count, None),
            steps=take("training", whole, "steps", values.count, None),
            batch_size=take("training", whole, "batch_size", values.count, None),
            lr=take("training", whole, "lr", values.positive, None),
            schedule=take("training", whole, "schedule", values.one_of(SCHEDULES), None),
            optimizer=take("training", whole, "optimizer", values.one_of(OPTIMIZERS), "sgd"),
            weighted=take("training", whole, "weighted", values.several(values.text), ()),
            augment=take("training", whole, "augment", values.truth, None),
        )

    def condensation(self, item: Item | None) -> tuple[Condensation, bool]:
        """How condensers work, and whether what they made once serves all seeds."""
        table = self.table("condensation", item)
        whole = Item(table, item.line if item else 1)
        self.check_keys("condensation", table, ["once", *(field.name for field in fields(Condensation))])
        how = Condensation(
            steps=self.take("condensation", whole, "steps", values.count, 1000),
            net=self.take("condensation", whole, "net", values.net, ""),
            factor=self.take("condensation", whole, "factor", values.count, 1),
        )
        return how, self.take("condensation", whole, "once", values.truth, False)

    def grids(self, item: Item | None, sources: Mapping[str, Source], proxies: tuple[Proxy, ...]) -> tuple[Grid, ...]:
        if item is None or not isinstance(item.value, list):
            self.mistakes.append((item.line if item else 1, "grid: expected at least one table [[grid]]"))
            return ()
        known = ("data", "methods", "fractions", "per_class", "nets", "proxy", "full")
        found = []
        for block in self.tables("grid", item):
            self.check_keys("grid", block.value, known)
            budget = "per_class" if "per_class" in block.value else "fraction"
            both = {"fractions", "per_class"} & set(block.value)
            if len(both) != 1:
                self.mistakes.append((block.line, f"grid: expected fractions or per_class, got {len(both)} of them"))
            key, check = ("per_class", values.count) if budget == "per_class" else ("fractions", values.share)
            own = block.value.get("proxy")
            data = self.take("grid", block, "data", values.several(_data(sources)), _NO_TEXTS, needed=True)
            looked_through = self.proxies("grid.proxy", own, proxies[0]) if own else proxies
            read = _method(by_class=both != {"fractions"}, with_points=all(proxy.points for proxy in looked_through))
            methods = self.take("grid", block, "methods", values.several(read), _NO_METHODS, needed=True)
            nets = self.take("grid", block, "nets", values.several(values.net), _NO_TEXTS)
            found.append(
                Grid(
                    data=data,
                    methods=methods,
                    budget=budget,
                    amounts=tuple(sorted(set(self.take("grid", block, key, values.several(check), _NO_NUMBERS)))),
                    nets=nets,
                    proxies=looked_through,
                    full=self.take("grid", block, "full", values.truth, False),
                )
            )
        return tuple(found)

    def check_weighted(self, study: Study, top: Mapping[str, Item]) -> None:
        # By what stands in the file: a method that is known in no other way has a mistake of its own.
        blocks = [block.value.get("methods") for block in self.tables("grid", top["grid"])] if "grid" in top else []
        listed = [block.plain() for block in blocks if block is not None]
        known = [text for texts in listed for text in (texts if isinstance(texts, list) else [texts])]
        unknown = [name for name in study.training.weighted if name not in known]
        if unknown:
            text = f"training.weighted: expected methods of the grid, got {', '.join(unknown)}"
            self.mistakes.append((top["training"].value["weighted"].line, text))

    def paper_table(self, value: Any) -> Path:
        path = self.path.parent / "paper" / f"{values.text(value)}.csv"
        if not path.is_file():
            raise ValueError(f"expected the name of a table in {path.parent}, got {value!r}")
        return path


def _data(sources: Mapping[str, Source]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        known = value in sources or any(entry.facts.detect(value) for entry in SOURCES if entry.name == value)
        if not known and not Path(values.text(value)).exists():
            raise ValueError(f"expected a name under [data], a path, digits, wine or breast-cancer, got {value!r}")
        return str(value)

    return check


def _method(*, by_class: bool, with_points: bool) -> Callable[[Any], Method]:
    """A check for a method that fits its block, whatever else stands beside it."""

    def check(value: Any) -> Method:
        method = read_method(value)
        if method.condenses and not by_class:
            raise ValueError(f"a condenser takes its budget as per_class, not as fractions: {method.text}")
        if method.all_points and not with_points:
            raise ValueError(
                "a method with points=all needs the points of the proxy, such as points = [1, 2, 4]: " + method.text
            )
        return method

    return check


_PROXY: Mapping[str, Callable[[Any], Any]] = {
    "net": values.net,
    "epochs": values.count,
    "batch_size": values.count,
    "lr": values.positive,
    "momentum": values.not_negative,
    "weight_decay": values.not_negative,
    "schedule": values.one_of(SCHEDULES),
    "optimizer": values.one_of(OPTIMIZERS),
}

"""What an evaluation found, and how people read it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from lcmat import files
from lcmat.evaluation.page import describe
from lcmat.evaluation.plan import FULL, Entry
from lcmat.evaluation.rows import Row, is_numeric, texts
from lcmat.report import render
from lcmat.report.plain import with_protocol
from lcmat.report.wording import in_words, listed, percent, points, score, span
from lcmat.types import Splits

_SPELLED_OUT = 6  # comparisons that a reader takes in one by one
_IN_A_SENTENCE = {"not told apart": "not told apart from uniform", "one run": "not to be judged against uniform"}


@dataclass(frozen=True, eq=False)
class Report:
    """What `lcmat.evaluate` gives.

    Attributes:
        rows: one for each network, size and name, in this order.
        records: one for each training, as they are written to the records file.
        protocol: all settings, in words and numbers.
        notes: what must be known to read the numbers rightly.
        data: what was trained and tested on.
        entries: the subsets behind the rows.
    """

    rows: tuple[Row, ...]
    records: list[dict[str, Any]]
    protocol: dict[str, Any]
    notes: tuple[str, ...]
    data: Splits
    entries: tuple[Entry, ...]

    def headline(self) -> tuple[str, ...]:
        """The finding in plain sentences, losses as plainly as gains."""
        nets = list(dict.fromkeys(row.net for row in self.rows))
        compared = [row for row in self.rows if row.baseline]
        sentences = []
        for name in dict.fromkeys(row.name for row in compared):
            if len(compared) > _SPELLED_OUT:
                sentences.append(f"{name}: {_tally([row for row in compared if row.name == name])}.")
                continue
            for net in nets:
                where = f" with {net}" if len(nets) > 1 else ""
                sentences.append(
                    f"{name}{where}: {_findings([row for row in compared if (row.name, row.net) == (name, net)])}."
                )
        everything = [f"{score(row.mean)} % with {row.net}" for row in self.rows if row.name == FULL]
        if everything:
            sentences.append(f"Training on everything reaches {listed(everything)}.")
        return tuple(sentences) or ("Nothing was compared with random sets of the same size.",)

    def table(self) -> str:
        """The rows and the protocol as plain text."""
        cells = texts(self.rows)
        lines = [list(cells[0]), *(list(line.values()) for line in cells)]
        numeric = {place for place, name in enumerate(cells[0]) if is_numeric(name)}
        title = f"{self.data.name}, {in_words(self.protocol['networks'])}: test accuracy in % after the last epoch"
        return with_protocol(lines, self.protocol, self.notes, title=title, numeric=numeric)

    def as_dict(self) -> dict[str, Any]:
        """Rows, records, protocol and notes as JSON has them."""
        rows = [asdict(row) for row in self.rows]
        return {"rows": rows, "records": self.records, "protocol": self.protocol, "notes": list(self.notes)}

    def save_html(
        self,
        path: str | Path,
        pictures: bool = True,
        *,
        title: str = "",
        folders: Mapping[str, str | Path] | None = None,
        stages: Mapping[str, Mapping[str, float]] | None = None,
        commands: Sequence[str] = (),
    ) -> Path:
        """Write the report as one HTML file that opens offline, atomically.

        Args:
            path: of the file.
            pictures: whether to show what was picked, where the data are images.
            title: of the page; made from the data's name when empty.
            folders: name -> where its subset is saved, for the lines that load it.
            stages: name -> {stage: seconds} of what came before: 'load', 'train' (the proxy), 'extract' and 'select'.
            commands: that make the results again, to be shown.

        Returns:
            The path.
        """
        page = describe(
            self, pictures=pictures, title=title, folders=folders or {}, stages=stages or {}, commands=commands
        )
        return files.write_text(path, render(page))


def _findings(rows: Sequence[Row]) -> str:
    """The verdicts of one name, from the smallest size on; neighbouring sizes of one verdict stand together."""
    found = []
    for verdict, alike in groupby(rows, key=lambda row: row.verdict):
        sizes = []
        for row in alike:
            interval = span(points(row.difference_low), points(row.difference_high))
            runs = f"n = {row.n}" + (" trainings on one subset" if row.subsets < row.n else "")
            about = "in a single run" if row.n == 1 else f"interval {interval}, {runs}"
            sizes.append(f"{percent(row.fraction)} ({points(row.difference)} points, {about})")
        found.append(f"{_IN_A_SENTENCE.get(verdict, verdict)} at {listed(sizes)}")
    return "; ".join(found)


def _tally(rows: Sequence[Row]) -> str:
    """How often one name was better, worse or neither."""
    counts = Counter(row.verdict for row in rows)
    better, worse = counts["better than uniform"], counts["worse than uniform"]
    rest = len(rows) - better - worse
    return f"better than uniform in {better} of {len(rows)} comparisons, worse in {worse}, not told apart in {rest}"

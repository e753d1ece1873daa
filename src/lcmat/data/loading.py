"""The one way in: a source of any kind -> `Splits`."""

import os
import sys
from pathlib import Path
from typing import Any

import torch

from lcmat.data import assemble
from lcmat.data.assemble import Facts
from lcmat.data.cache import Slot
from lcmat.data.catalogue import SOURCES, Reader
from lcmat.data.raw import Raw, SourceFacts
from lcmat.registry import Entry
from lcmat.types import Splits


def sources() -> dict[str, str]:
    """The kinds of sources that `load` accepts: name -> one-line description.

    Example:
        >>> sources()["npz"]
        'a NumPy archive: x, y, x_test, y_test (resize=None)'
    """
    return SOURCES.describe()


def load(
    source: Any,
    *,
    label: str | None = None,
    image: str | None = None,
    resize: int | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    flip: bool | None = None,
    cache: bool = True,
    quiet: bool = False,
) -> Splits:
    """Read a labelled data set into memory, and say on stderr what was found and decided.

    Args:
        source: a path, `digits`, the id of a hub data set, or a data set of `datasets` or torch; see `sources`.
        label: the column of the labels, where its name does not tell; of CIFAR-100, "fine" or "coarse".
        image: the column of the images, where there are several.
        resize: bring all images to this many pixels square: the middle square, scaled.
        test_fraction: the share of each class that is held out when the source has no test part.
        seed: of that choice.
        flip: whether a mirrored image keeps its label; None for what the source suggests.
        cache: keep decoded files in the cache folder (`LCMAT_CACHE`), and take them from there.
        quiet: say nothing; `summary()` of the result is what would have been said.

    Raises:
        ValueError: when the source is missing, damaged, or of no known kind; the message says what to do.
        TypeError: for an option that this kind of source does not have.

    Example:
        >>> splits = load("digits", quiet=True)
        >>> len(splits.train), len(splits.test), tuple(splits.train.images.shape[1:])
        (1438, 359, (1, 8, 8))
    """
    if not 0 < test_fraction < 1:
        raise ValueError(f"expected test_fraction between 0 and 1, both excluded, got {test_fraction!r}")
    place = _locate(source)
    entry = _detect(place)
    given = {"label": label, "image": image, "resize": resize}
    options = entry.check_options({name: value for name, value in given.items() if value is not None})
    slot = Slot(place, entry.name, options) if cache and entry.facts.cached else None
    raw, trouble = _read(entry, place, options, slot)
    train, test, split_notes = assemble.split(raw, test_fraction=test_fraction, seed=seed)
    drawn = "" if raw.test is not None else f"{seed} {test_fraction}"
    facts = slot.read_facts(drawn) if slot else None
    fitted, held_out = assemble.build(raw, train, test, flip=flip, facts=facts or Facts())
    if slot and facts is None:
        slot.write_facts(drawn, Facts(fitted.mean, fitted.std, fitted.fingerprint, held_out.fingerprint))
    if train.rows is not None and not isinstance(place, str | Path):
        split_notes = (*split_notes, "data.source_rows(subset) gives the rows that a subset has in your data set")
    rows = torch.arange(len(fitted)) if train.rows is None else torch.from_numpy(train.rows)
    splits = Splits(fitted, held_out, _name(place), (*raw.notes, *split_notes, *trouble), rows)
    if not quiet:
        sys.stderr.write(f"{splits.summary()}\n")
    return splits


def _read(
    entry: Entry[Reader, SourceFacts], place: Any, options: dict[str, Any], slot: Slot | None
) -> tuple[Raw, tuple[str, ...]]:
    """The data, from the cache where it is there, and what went wrong in keeping it."""
    if slot and (kept := slot.read()):
        return kept, ()
    raw = assemble.index_labels(entry.function(place, **options))
    trouble = slot.write(raw) if slot else ""
    return raw, (trouble,) if trouble else ()


def absolute(source: str) -> str:
    """What a run keeps of its source: a path as an absolute one, names such as `digits` and hub ids as they are.

    Example:
        >>> absolute("digits")
        'digits'
    """
    place = _locate(source) if source else source
    return str(place.resolve()) if isinstance(place, Path) else source


def _locate(source: Any) -> Any:
    """A `Path` for what exists on disk; texts that name something else, and objects, as they are."""
    if not isinstance(source, str | os.PathLike):
        return source
    if source == "":  # which is the folder one is in, as a path
        raise ValueError("expected a path or a name, got an empty text")
    if isinstance(source, str) and any(source == entry.name for entry in SOURCES if entry.facts.detect(source)):
        return source  # an embedded data set goes before a folder of that name
    path = Path(source).expanduser()
    return path if path.exists() else source


def _detect(place: Any) -> Entry[Reader, SourceFacts]:
    for entry in SOURCES:
        if entry.facts.detect(place):
            return entry
    kinds = "; ".join(f"{entry.name}: {entry.summary}" for entry in SOURCES)
    if isinstance(place, str | os.PathLike) and not Path(place).exists():
        names = ", ".join(entry.name for entry in SOURCES)
        raise ValueError(
            f"there is no file or folder {str(place)!r}, nor a data set of that name; `lcmat list` describes the kinds "
            f"that there are: {names}"
        )
    found = f"the file {place}" if isinstance(place, Path) else type(place).__name__
    if isinstance(place, Path) and place.is_dir():
        found = f"the folder {place} with {', '.join(sorted(path.name for path in place.iterdir())[:5]) or 'nothing'}"
    raise ValueError(f"expected a data set of a known kind, got {found}. Known: {kinds}")


def _name(place: Any) -> str:
    if isinstance(place, Path):
        return place.resolve().name
    return place if isinstance(place, str) else type(place).__name__

"""Pictures of what was picked, class by class, as many as a page can hold."""

from collections.abc import Sequence
from itertools import groupby

from lcmat.evaluation.plan import Entry, first_seeds
from lcmat.report import Block, Gallery, Pictures, Strip, Text
from lcmat.report.pictures import first_of_class, tile_bytes
from lcmat.report.wording import percent
from lcmat.types import ImageData, Splits, SyntheticSet

PER_CLASS = 10
CLASSES = 20
PAGE_BYTES = 1_500_000


def picture_blocks(data: Splits, entries: Sequence[Entry], *, page_bytes: int = PAGE_BYTES) -> tuple[Block, ...]:
    """A gallery for each size, the methods side by side; nothing for data that are no images."""
    train = data.train
    if not isinstance(train, ImageData) or not entries:
        return ()
    classes = min(len(train.class_names), CLASSES)
    room = page_bytes // (tile_bytes(train.images) * classes * len(entries))
    most = max(1, min(PER_CLASS, room))
    galleries = []
    for place, (size, alike) in enumerate(groupby(entries, key=lambda entry: entry.size)):
        title = f"{percent(size / len(train))} kept: {size:,} of {len(train):,}"
        pictures = tuple(Pictures(entry.name, _strips(train, entry, classes, most)) for entry in alike)
        galleries.append(Gallery(title, pictures, open=place == 0))
    return Text(_explanation(train, entries, classes, most)), *galleries


def _strips(train: ImageData, entry: Entry, classes: int, most: int) -> tuple[Strip, ...]:
    subset = entry.first
    if subset is None:
        return ()
    if isinstance(subset, SyntheticSet):
        images, labels, origins = subset.rounded().inputs, subset.labels, None
    else:
        images, labels, origins = train.images[subset.indices], train.labels[subset.indices], subset.indices
    strips = []
    for index, name in enumerate(train.class_names[:classes]):
        rows = first_of_class(labels, index, most)
        picked = int((labels == index).sum())
        note = f"{picked:,}" if picked == len(rows) else f"{len(rows)} of {picked:,}"
        shown = "all shown" if picked == len(rows) else f"the first {len(rows)} shown"
        alt = f"{entry.name}, class {name}: {picked:,} {'made' if origins is None else 'picked'}, {shown}"
        if origins is not None:
            alt += f", rows {', '.join(map(str, origins[rows].tolist()))}"
        strips.append(Strip(name, note, images[rows], alt))
    return tuple(strips)


def _explanation(train: ImageData, entries: Sequence[Entry], classes: int, most: int) -> str:
    text = f"The subsets of training {first_seeds(entries)}: every pick of a class where there are at most {most}, "
    text += f"else the first {most} in pick order. The numbers say how many were picked."
    if classes < len(train.class_names):
        text += f" Of {len(train.class_names)} classes the first {classes} are shown."
    return text

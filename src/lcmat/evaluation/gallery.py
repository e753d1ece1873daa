"""Pictures of what was picked, class by class, as many as a page can hold."""

from collections.abc import Sequence
from itertools import groupby

from torch import Tensor

from lcmat.evaluation.plan import Entry, first_seeds
from lcmat.report import Block, Gallery, Pictures, Strip, Text
from lcmat.report.pictures import first_of_class, tile_bytes
from lcmat.report.wording import percent
from lcmat.types import ImageData, Splits, SyntheticSet

PER_CLASS = 10
CLASSES = 20
PAGE_BYTES = 1_500_000
_TRIED = 8  # pictures of each set that are encoded to see how many bytes one takes
_STRIP_BYTES = 600  # of a row of pictures beside its pixels: the head of the file, its alternative text


def picture_blocks(data: Splits, entries: Sequence[Entry], *, page_bytes: int = PAGE_BYTES) -> tuple[Block, ...]:
    """A gallery for each size, the methods side by side; nothing for data that are no images."""
    train = data.train
    if not isinstance(train, ImageData) or not entries:
        return ()
    classes, most = _room(train, entries, page_bytes)
    galleries = []
    for place, (size, alike) in enumerate(groupby(entries, key=lambda entry: entry.size)):
        title = f"{percent(size / len(train))} kept: {size:,} of {len(train):,}"
        pictures = tuple(Pictures(entry.name, _strips(train, entry, classes, most)) for entry in alike)
        galleries.append(Gallery(title, pictures, open=place == 0))
    return Text(_explanation(train, entries, classes, most)), *galleries


def _room(train: ImageData, entries: Sequence[Entry], page_bytes: int) -> tuple[int, int]:
    """How many classes, and of each how many pictures, so many bytes have room for: fewer pictures go first."""
    firsts = [_images(train, entry)[0][:_TRIED] for entry in entries if entry.first is not None]
    # One by one, as they will stand: in one file, pictures that several methods picked would cost next to nothing.
    tile = max([tile_bytes(images) for images in firsts if len(images)], default=1)
    classes = min(len(train.class_names), CLASSES)
    most = (page_bytes // (classes * len(entries)) - _STRIP_BYTES) // tile
    if most < 1:
        return max(1, min(classes, page_bytes // (len(entries) * (_STRIP_BYTES + tile)))), 1
    return classes, min(PER_CLASS, most)


def _images(train: ImageData, entry: Entry) -> tuple[Tensor, Tensor, Tensor | None]:
    """The pictures of a set, their classes, and for a subset the rows that they come from."""
    if isinstance(entry.first, SyntheticSet):
        return entry.first.rounded().inputs, entry.first.labels, None
    assert entry.first is not None
    rows = entry.first.indices
    return train.images[rows], train.labels[rows], rows


def _strips(train: ImageData, entry: Entry, classes: int, most: int) -> tuple[Strip, ...]:
    subset = entry.first
    if subset is None:
        return ()
    images, labels, origins = _images(train, entry)
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

"""The kinds of sources, in the order in which they are tried."""

from collections.abc import Callable
from typing import TypeAlias

from lcmat.data import from_cifar, from_folder, from_hub, from_idx, from_npz, from_scikit_learn, from_tables, from_torch
from lcmat.data.raw import Raw, SourceFacts
from lcmat.registry import Registry

Reader: TypeAlias = Callable[..., Raw]
SOURCES: Registry[Reader, SourceFacts] = Registry("source")


def _register(name: str, summary: str, read: Reader, detect: Callable[[object], bool], *, cached: bool = False) -> None:
    SOURCES.add(name, summary, facts=SourceFacts(detect, cached))(read)


for _name, _summary, _read in (
    ("digits", "1,797 handwritten digits of 8 × 8 pixels, from scikit-learn", from_scikit_learn.read_digits),
    ("wine", "178 wines in 13 features, from scikit-learn", from_scikit_learn.read_table),
    ("breast-cancer", "569 tumours in 30 features, from scikit-learn", from_scikit_learn.read_table),
):
    _register(_name, _summary, _read, from_scikit_learn.named(_name))
_register("npz", "a NumPy archive: x, y, x_test, y_test", from_npz.read, from_npz.detect)
_register("cifar", "CIFAR's own archives, binary or python", from_cifar.read, from_cifar.detect, cached=True)
_register("idx", "a folder of IDX files, as MNIST has them", from_idx.read, from_idx.detect, cached=True)
_register("folder", "a folder of images, train/CLASS/*.png", from_folder.read, from_folder.detect, cached=True)
_register(
    "parquet",
    "Parquet with a column of images, or columns of features",
    from_tables.read_parquet,
    from_tables.detect_parquet,
    cached=True,
)
_register("csv", "CSV with columns of features and a label", from_tables.read_csv, from_tables.detect_csv)
_register("datasets", "a datasets.Dataset or DatasetDict", from_hub.read_objects, from_hub.detect_objects)
_register("torch", "a torch Dataset, or a (train, test) pair", from_torch.read, from_torch.detect)
_register("hub", "a data set of the hub: owner/name or hub:name", from_hub.read_id, from_hub.detect_id)

"""A data set whose samples carry their numbers, so that losses and weights find them."""

from collections.abc import Mapping
from typing import Any

from torch.utils.data import Dataset


class Indexed(Dataset[Any]):
    """A data set that hands each sample's index along.

    A tuple gets the index as its last item, a mapping under the name 'index', and anything else becomes the pair
    (sample, index).

    Example:
        >>> Indexed([("a", 0), ("b", 1)])[1]
        ('b', 1, 1)
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        sample = self.dataset[index]
        if isinstance(sample, tuple | list):
            return (*sample, index)
        if isinstance(sample, Mapping):
            return {**sample, "index": index}
        return sample, index

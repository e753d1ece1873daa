"""The sampler behind a DataLoader, for callbacks and adapters that get only the loader."""

from typing import Any

from lcmat.dynamic.sampler import Sampler


def sampler_of(loader: Any) -> Sampler:
    """The `lcmat.dynamic.Sampler` that a DataLoader goes by.

    Raises:
        TypeError: when the loader goes by another sampler.
        ValueError: when it loads a data set of another size than the sampler chooses from.
    """
    batches = getattr(loader, "batch_sampler", None)
    found = [part for part in (getattr(loader, "sampler", None), getattr(batches, "sampler", None)) if part is not None]
    for sampler in found:
        if isinstance(sampler, Sampler):
            if len(loader.dataset) != sampler.n:
                raise ValueError(
                    f"the DataLoader loads {len(loader.dataset):,} samples, its sampler chooses from {sampler.n:,}; "
                    "give the sampler the same data"
                )
            return sampler
    name = type(found[0]).__name__ if found else type(loader).__name__
    raise TypeError(
        f"expected a DataLoader that was made with sampler=lcmat.dynamic.Sampler(...), got one with {name}; "
        "leave shuffle= out, and keep frameworks from putting in a sampler of their own"
    )

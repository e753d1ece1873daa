"""Randomness is an argument: generators derived from a seed and a purpose; the global generators are never touched."""

import hashlib
import operator
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def derive(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose, the same on every machine and version.

    Two purposes never share a stream, so that adding a draw in one place changes nothing elsewhere.

    Raises:
        TypeError: for a seed that is no whole number.

    Example:
        >>> derive(0, "training") == derive(0, "training"), derive(0, "training") == derive(0, "selection")
        (True, False)
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"expected a whole number as seed, got {seed!r}") from None
    text = "\x1f".join([str(number), *map(str, purpose)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, *purpose: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A new generator for one purpose.

    Example:
        >>> import torch
        >>> a = torch.rand(3, generator=generator(0, "crop"))
        >>> bool((a == torch.rand(3, generator=generator(0, "crop"))).all())
        True
    """
    return torch.Generator(device=device).manual_seed(derive(seed, *purpose))


@contextmanager
def isolated(seed: int, *purpose: str | int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed the global generators inside the block and give them back as they were.

    Weight initialisation and dropout draw from the global generators and take no other, so they are forked.
    """
    device = torch.device(device)
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        value = derive(seed, *purpose)
        torch.default_generator.manual_seed(value)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(value)
        yield

"""Number formats: what each precision means on each device."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

import torch

PRECISIONS = ("auto", "float32", "tf32", "bf16")

# torch 2.9 renamed the switches of TF32 and refuses a mixture of old and new ones.
_RENAMED = hasattr(torch.backends.cudnn, "conv")


def resolve(precision: str, device: torch.device, *, on_cuda: Literal["bf16", "tf32"] = "bf16") -> str:
    """The precision that is meant: 'auto' is float32 on the CPU, and on CUDA bf16 or what the caller does best with.

    Raises:
        ValueError: for an unknown precision or one that the device does not have.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"expected a precision of {', '.join(PRECISIONS)}, got {precision!r}")
    if precision == "auto":
        return on_cuda if device.type == "cuda" else "float32"
    if precision == "tf32" and device.type != "cuda":
        raise ValueError("precision 'tf32' exists on CUDA devices only; use 'float32' on the CPU")
    return precision


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """The context for a forward pass; weights stay in float32."""
    if precision != "bf16":
        return nullcontext()
    # No weight is used twice in a forward, and a cache that outlives a captured graph would hold its memory.
    return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False)


@contextmanager
def float32_products(precision: str, device: torch.device) -> Iterator[None]:
    """Let float32 products be rounded to TF32 inside the block, or forbid it ('float32'); the setting is given back.

    torch allows TF32 in convolutions by default, so that 'float32' has to forbid it.
    """
    if device.type != "cuda":
        yield
        return
    name, exact, rounded = ("fp32_precision", "ieee", "tf32") if _RENAMED else ("allow_tf32", False, True)
    parts = (torch.backends.cuda.matmul, getattr(torch.backends.cudnn, "conv", torch.backends.cudnn))
    before = [getattr(part, name) for part in parts]
    for part in parts:
        setattr(part, name, exact if precision == "float32" else rounded)
    try:
        yield
    finally:
        for part, value in zip(parts, before, strict=True):
            setattr(part, name, value)

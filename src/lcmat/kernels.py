"""Kernels in Triton, which torch brings along on CUDA: used where they can be had and give what plain torch gives."""

import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import torch


def tried(name: str, check: Callable[[ModuleType], None], *, doing: str) -> ModuleType | None:
    """The module with kernels, if it stands the check; else None, with a warning unless there is no Triton at all.

    The check is done as outside of `torch.inference_mode`, inside which nothing can be differentiated.

    Args:
        name: of the module.
        check: compares its kernels with plain torch; raises whatever it likes.
        doing: what is slower without them, for the warning.
    """
    try:
        kernels = import_module(name)
        with torch.inference_mode(False):
            check(kernels)
    except Exception as error:  # noqa: BLE001, whatever a compiler or a driver finds wrong, plain torch does the same
        if isinstance(error, ModuleNotFoundError) and error.name == "triton":
            return None
        first = (str(error).strip() or repr(error)).splitlines()[0]
        warnings.warn(f"{doing} without the kernels in Triton, which is slower: {first}", stacklevel=3)
        return None
    return kernels

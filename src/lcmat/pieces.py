"""Pieces of work that are done once, by whichever process takes them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lcmat import files
from lcmat.version import __version__


def file_key(words: str, decisive: Mapping[str, Any]) -> str:
    """A file name that tells what a piece is, and with a digest all that it depends on, the version included.

    Example:
        >>> key = file_key("train craig, 10 %", {"seed": 0})
        >>> key[:15], len(key), key == file_key("train craig, 10 %", {"seed": 1})
        ('train-craig-10-', 28, False)
    """
    content = json.dumps({**decisive, "lcmat": __version__}, sort_keys=True)
    name = re.sub(r"[^\w.=-]+", "-", words)[:100]
    return f"{name}-{files.fingerprint(content)[:12]}"


@dataclass(frozen=True)
class Piece:
    """One piece of work.

    Attributes:
        stage: pieces of one stage take time in proportion to their efforts.
        words: that tell it from others of its stage.
        decisive: all that its result depends on, as JSON has it.
        effort: how long it takes, in units that mean the same within one stage.
        needs: keys of the pieces that come before.
    """

    stage: str
    words: str
    decisive: Mapping[str, Any]
    effort: float = 1.0
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.stage} {self.words}"

    @cached_property
    def key(self) -> str:
        """A file name that stands for all that the result depends on."""
        return file_key(self.name, self.decisive)

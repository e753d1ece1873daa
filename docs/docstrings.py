"""How the site reads docstrings: an `Example:` of the code is what the reader of docstrings calls `Examples:`.

Without this, doctests would be shown as quotations.
"""

import re
from typing import Any

import griffe

_HEADING = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class ExampleSections(griffe.Extension):
    """Gives doctests their section."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the heading in the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = _HEADING.sub(r"\1Examples:", obj.docstring.value)

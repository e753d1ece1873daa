"""The command line: parsing, messages and exit codes. The work is done in `lcmat.study`."""

from lcmat.cli.application import app, main

__all__ = ["app", "main"]

"""`python -m lcmat`, the command line of a source tree that need not be installed."""

from lcmat.cli import main

main()

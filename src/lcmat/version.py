"""The version, in one place; the build reads it from here, so that an uninstalled source tree knows it too."""

__version__ = "0.1.0.dev0"

"""A headless browser for tests of pages.

Tests are skipped where there is none, unless `LCMAT_NEED_BROWSER` is set, as in CI: there they fail.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str:
    """The path of a browser."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        missing = f"needs a browser ({', '.join(NAMES)}), which this machine does not have"
        if os.environ.get("LCMAT_NEED_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def look(tmp_path: Path, address: str, *more: str) -> subprocess.CompletedProcess[str]:
    """What is on a page after its scripts have run (stdout), and what the browser complains of (stderr)."""
    command = [
        find_browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--enable-logging=stderr",
        "--window-size=1400,1000",
        f"--user-data-dir={tmp_path / 'profile'}",
        *more,
        "--dump-dom",
        address,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

"""What every test stands on: few threads, a cache of its own, and the real data where there is some."""

import os
from pathlib import Path

import pytest
import torch


def pytest_configure() -> None:
    # Test cases are small: on a busy machine a second thread makes the first one wait, up to a hundred times longer.
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device, this machine has none"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point LCMAT_CACHE at a temporary folder, so that no test reads or fills the user's cache."""
    monkeypatch.setenv("LCMAT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def lcmat_data() -> Path:
    """The folder of real data sets; tests that need it are skipped where LCMAT_DATA does not name one."""
    folder = os.environ.get("LCMAT_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set LCMAT_DATA to the folder that holds cifar10-jpeg")
    return Path(folder)

from pathlib import Path

import pytest

from cli.commands import Lcmat, Outcome, make_run, write_images, write_table
from lcmat.cli import application


@pytest.fixture
def lcmat(capsys: pytest.CaptureFixture[str]) -> Lcmat:
    """Run a command in this process."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        status = application.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("data") / "table.npz")


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images.npz")


@pytest.fixture(scope="session")
def table_run(tmp_path_factory: pytest.TempPathFactory, table: Path) -> Path:
    """A run of lcmat-s on the feature vectors; not to be changed."""
    return make_run(tmp_path_factory.mktemp("runs") / "table", table)


@pytest.fixture(scope="session")
def image_run(tmp_path_factory: pytest.TempPathFactory, images: Path) -> Path:
    """A run of herding on the images; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "images"
    return make_run(folder, images, "--method", "herding", "--net", "convnet:width=4,depth=2")

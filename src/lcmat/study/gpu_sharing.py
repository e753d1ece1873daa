"""One GPU for several processes: NVIDIA's multi-process service where it can be had, else they take turns.

Under the service the kernels of all processes run side by side; without it only one process has the GPU at a time.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch

CONTROL = "nvidia-cuda-mps-control"
START_SECONDS = 60.0
# A driver or a container may refuse the service although its program is there: this says so before any work is lost.
PROBE = (sys.executable, "-c", "import torch; torch.zeros(1, device='cuda').item()")


@contextmanager
def shared_gpu(device: torch.device, folder: Path, say: Callable[[str], None]) -> Iterator[dict[str, str]]:
    """Let processes share a GPU inside the block.

    Args:
        device: that they will work on; nothing is done for the CPU.
        folder: private and short-lived, for an own daemon of the service.
        say: told how the GPU is shared.

    Yields:
        What the processes need in their environment.
    """
    control = shutil.which(CONTROL)
    if device.type != "cuda":
        yield {}
    elif control is None:
        say(f"the processes share the GPU in turns: {CONTROL} is not on the PATH")
        yield {}
    elif _answers(control, os.environ):
        say("the processes share the GPU through the CUDA multi-process service that runs already")
        yield {}
    else:
        with _own_daemon(control, folder, say) as environment:
            yield environment


@contextmanager
def _own_daemon(control: str, folder: Path, say: Callable[[str], None]) -> Iterator[dict[str, str]]:
    places = {"CUDA_MPS_PIPE_DIRECTORY": folder / "pipe", "CUDA_MPS_LOG_DIRECTORY": folder / "log"}
    for place in places.values():
        place.mkdir(parents=True)
    own = {name: str(place) for name, place in places.items()}
    # The daemon offers all GPUs: it would number those of CUDA_VISIBLE_DEVICES anew, and its clients once more.
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"} | own
    try:
        trouble = _start(control, environment, folder / "start.txt") or _probe({**os.environ, **own})
        if trouble:
            say(f"the processes share the GPU in turns: the CUDA multi-process service does not work here ({trouble})")
            yield {}
        else:
            say("the processes share the GPU through the CUDA multi-process service")
            yield own
    finally:
        _call([control], environment, "quit\n")


def _start(control: str, environment: Mapping[str, str], output: Path) -> str:
    """Start the daemon; what went wrong, or nothing."""
    with output.open("w", encoding="utf-8") as file:  # a pipe would stay open for as long as the daemon lives
        try:
            subprocess.run(
                [control, "-d"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                timeout=START_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return _last_line(output.read_text(encoding="utf-8", errors="replace")) or str(error)
    return ""


def _probe(environment: Mapping[str, str]) -> str:
    """Use the GPU as a process of the service; what went wrong, or nothing."""
    try:
        done = subprocess.run(
            PROBE,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=2 * START_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return "" if done.returncode == 0 else _last_line(done.stderr) or f"exit status {done.returncode}"


def _answers(control: str, environment: Mapping[str, str]) -> bool:
    """Whether a daemon runs that this environment leads to."""
    return _call([control], environment, "get_server_list\n")


def _call(command: list[str], environment: Mapping[str, str], words: str) -> bool:
    try:
        done = subprocess.run(
            command,
            env=environment,
            input=words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            timeout=START_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""

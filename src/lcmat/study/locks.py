"""One worker for each piece of work, among processes that share nothing but a folder.

A lock is a file that only one process can create. It names its owner and is touched while it is held, so that a lock
whose owner was killed is noticed: at once on the same machine, after `STALE_SECONDS` from another one.
"""

import json
import os
import platform
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

STALE_SECONDS = 300.0
BEAT_SECONDS = 30.0


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock inside the block; the value says whether it was free.

    Args:
        path: of the lock file; its folder is shared by all processes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.lock"
        ...     with locked(path) as mine, locked(path) as again:
        ...         print(mine, again)
        True False
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    owner = {"machine": _machine(), "process": os.getpid(), "turn": time.monotonic_ns()}
    stop = threading.Event()
    beat = threading.Thread(target=_keep_fresh, args=(path, stop), daemon=True)
    try:  # from here on, as an interrupt may come right after the file is there
        mine = _create(path, owner)
        if not mine:
            _remove_if_stale(path)
            mine = _create(path, owner)
        if mine:
            beat.start()
        yield mine
    finally:
        stop.set()
        if beat.ident is not None:
            beat.join()
        if _read_owner(path) == owner:  # it is another's where this process slept so long that it seemed dead
            path.unlink(missing_ok=True)


def _create(path: Path, owner: Mapping[str, Any]) -> bool:
    """Create the lock for its owner; whether there was none."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(owner, file)
    return True


def _remove_if_stale(path: Path) -> None:
    """Remove a lock whose owner is gone, at most once for each owner.

    Two processes may find the same lock stale, and the slower one must not remove what the faster one has put in its
    place: only who creates the file that is named after the dead owner's turn may remove the lock.
    """
    owner = _read_owner(path)
    try:
        if not _is_stale(path, owner):
            return
        claim = path.with_name(f"{path.name}.{owner.get('process', 0)}-{owner.get('turn', 0)}.dead")
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileNotFoundError:
        return  # released in the meantime
    except FileExistsError:
        # Who claimed it before may have been killed before it removed the lock; or it is done by now.
        with suppress(FileNotFoundError):
            if _age(claim) > STALE_SECONDS:
                claim.unlink()
        return
    if _read_owner(path) == owner:
        path.unlink(missing_ok=True)
    claim.unlink(missing_ok=True)


def _is_stale(path: Path, owner: dict[str, Any]) -> bool:
    dead = owner.get("machine") == _machine() and not _alive(owner.get("process"))
    return dead or _age(path) > STALE_SECONDS


def _read_owner(path: Path) -> dict[str, Any]:
    """What stands in a lock; nothing where it is being written, or gone."""
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _age(path: Path) -> float:
    """Seconds since the file was touched, by the clock of the disk that it lies on."""
    clock = path.with_name(f".clock-{socket.gethostname()}-{os.getpid()}-{threading.get_ident()}")
    clock.touch()
    try:
        return clock.stat().st_mtime - path.stat().st_mtime
    finally:
        clock.unlink(missing_ok=True)


def _alive(process: object) -> bool:
    if not isinstance(process, int):
        return True
    if platform.system() == "Windows":  # where signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _machine() -> str:
    """Within one of these names, process numbers mean the same: containers count their own."""
    try:
        space = f"{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}".strip()


def _keep_fresh(path: Path, stop: threading.Event) -> None:
    while not stop.wait(BEAT_SECONDS):
        try:
            os.utime(path)
        except OSError:
            return

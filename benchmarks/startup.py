"""How long a user waits before anything happens: importing lcmat beside importing torch, and `lcmat --help`.

    python benchmarks/startup.py

Each is measured in fresh processes, in turn, and the fastest of each counts: what is slower was disturbed.
"""

import subprocess
import sys
import time

from lcmat import runtime

ROUNDS = 7
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "import lcmat": ["-c", "import lcmat"],
    "import lcmat, every public name": ["-c", "import lcmat\nfor name in lcmat.__all__: getattr(lcmat, name)"],
    "lcmat --help": ["-m", "lcmat", "--help"],
}


def measure(arguments: list[str]) -> float:
    """Seconds of one fresh process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    rounds = [{name: measure(arguments) for name, arguments in COMMANDS.items()} for _ in range(ROUNDS)]
    best = {name: min(times[name] for times in rounds) for name in COMMANDS}
    print(f"{runtime.machine()}; fastest of {ROUNDS} fresh processes")
    for name, seconds in best.items():
        print(f"{name:<32} {seconds:6.2f} s   {seconds / best['import torch']:5.2f} × import torch")


if __name__ == "__main__":
    main()

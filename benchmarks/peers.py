"""Facility location and graph cut beside apricot and submodlib, on the same similarity, in one run.

    pip install apricot-select submodlib-py
    python benchmarks/peers.py                     n = 20,000, k = 2,000 with apricot; submodlib at n = 5,000, k = 500
    python benchmarks/peers.py --submodlib-full    submodlib at the full size as well (its own conversion takes minutes)

Every system gets the finished similarity and picks greedily with its lazy optimiser; for graph cut lcmat starts from
the features, since it needs no matrix. Printed are seconds, how many
times faster lcmat is, and by how much the objective values differ. Targets at n = 20,000, k = 2,000: at least 4 times
faster than apricot and 15 times than submodlib; exit status 1 when one is missed or the objectives differ by more than
1e-4. A peer that is not installed is left out, and said to be.
"""

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lcmat import runtime
from lcmat.selection.by_submodular import graph_cut
from lcmat.selection.distances import from_matrix
from lcmat.selection.greedy import facility_location
from lcmat.types import Signals

FULL, SMALL = (20_000, 2_000), (5_000, 500)
REPEATS = {FULL: 1, SMALL: 3}  # the same for every system; the fastest counts
TARGETS = {"apricot": 4.0, "submodlib": 15.0}
AGREEMENT = 1e-4
TRADE = 2.0
PACKAGES = {"apricot": "apricot-select", "submodlib": "submodlib-py"}


@dataclass(frozen=True)
class Found:
    """What one system picked, and how long it took."""

    seconds: float
    picks: Tensor


def made_up_features(n: int) -> Tensor:
    """Uneven clusters, as features of a network form them, `[n, 64]`."""
    generator = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(200, 64, generator=generator)
    owner = torch.randint(200, (n,), generator=generator)
    return centres[owner] + torch.randn(n, 64, generator=generator) * torch.rand(n, 1, generator=generator)


def timed(work: Callable[[], Sequence[int] | Tensor], repeats: int) -> Found:
    """Run some work, and take the fastest time."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        picks = work()
        seconds.append(time.perf_counter() - start)
    return Found(min(seconds), torch.as_tensor(picks).long())


def apricot_picks(kind: str, similarity: np.ndarray, count: int, repeats: int) -> Found:
    """Pick by apricot's lazy greedy on a precomputed similarity."""
    import apricot

    if kind == "facility location":
        selector = apricot.FacilityLocationSelection(count, metric="precomputed", optimizer="lazy")
    else:
        selector = apricot.GraphCutSelection(count, metric="precomputed", optimizer="lazy", alpha=TRADE)
    # The first fit of a process compiles its loops; a small one takes that away from the measurement.
    type(selector)(5, metric="precomputed", optimizer="lazy").fit(np.ascontiguousarray(similarity[:50, :50]))
    return timed(lambda: selector.fit(similarity).ranking, repeats)


def submodlib_picks(kind: str, similarity: np.ndarray, count: int, repeats: int) -> Found:
    """Pick by submodlib's lazy greedy on a dense similarity; making its object is not counted."""
    from submodlib.functions.facilityLocation import FacilityLocationFunction
    from submodlib.functions.graphCut import GraphCutFunction

    n = len(similarity)
    if kind == "facility location":
        function = FacilityLocationFunction(n=n, mode="dense", sijs=similarity, separate_rep=False)
    else:
        # submodlib weighs the other sum: Σ_{i ∈ V, j ∈ S} − λ Σ_{i, j ∈ S}.
        function = GraphCutFunction(n=n, mode="dense", lambdaVal=1 / TRADE, ggsijs=similarity)
    return timed(
        lambda: [
            pick
            for pick, _ in function.maximize(
                budget=count,
                optimizer="LazyGreedy",
                stopIfZeroGain=False,
                stopIfNegativeGain=False,
                verbose=False,
                show_progress=False,
            )
        ],
        repeats,
    )


PEERS = {"apricot": apricot_picks, "submodlib": submodlib_picks}


def objective(kind: str, similarity: Tensor, picks: Tensor) -> float:
    """The value of the set function, in float64."""
    rows = similarity[picks]
    if kind == "facility location":
        return float(rows.amax(0).sum(dtype=torch.float64))
    inside = rows[:, picks].sum(dtype=torch.float64)
    return float(TRADE * rows.sum(dtype=torch.float64) - inside)


def compare(kind: str, n: int, count: int, peers: Sequence[str]) -> bool:
    """One comparison; whether targets and agreement hold."""
    features = made_up_features(n)
    generator = torch.Generator().manual_seed(0)
    if kind == "facility location":
        distances = torch.cdist(features, features)
        distances = (distances + distances.T) / 2
        distances.fill_diagonal_(0)
        similarity = distances.max() - distances
        own = timed(
            lambda: facility_location(from_matrix(distances), count, generator=generator).order,
            repeats=REPEATS[n, count],
        )
    else:
        unit = torch.nn.functional.normalize(features, dim=1)
        similarity = (1 + unit @ unit.T) / 2
        signals = Signals(features=features)
        own = timed(
            lambda: graph_cut([signals], count, generator=generator, trade=TRADE).order, repeats=REPEATS[n, count]
        )
    value = objective(kind, similarity, own.picks)
    print(f"{kind}, n = {n:,}, k = {count:,}: lcmat {own.seconds:.2f} s", flush=True)
    kept = True
    for peer in peers:
        found = PEERS[peer](kind, similarity.numpy(), count, REPEATS[n, count])
        ratio = found.seconds / own.seconds
        difference = objective(kind, similarity, found.picks) / value - 1
        common = int(torch.isin(found.picks, own.picks).sum())
        wanted = TARGETS[peer] if kind == "facility location" and (n, count) == FULL else 0.0
        good = ratio >= wanted and abs(difference) <= AGREEMENT
        kept = kept and good
        target = f" (target {wanted:g})" if wanted else ""
        print(
            f"  {'ok  ' if good else 'MISS'} {peer} {found.seconds:.2f} s: lcmat is {ratio:.1f} times faster{target}; "
            f"{peer}'s objective differs by {difference:+.1e}, {common:,} of {count:,} picks are the same",
            flush=True,
        )
    return kept


def main() -> int:
    """Compare with the peers that are installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submodlib-full", action="store_true", help="submodlib at the full size as well")
    parser.add_argument("--small", action="store_true", help="only n = 5,000, k = 500")
    arguments = parser.parse_args()
    installed = [name for name in PEERS if importlib.util.find_spec(name) is not None]
    for name in PEERS:
        if name not in installed:
            print(f"{name} is not installed, so it is left out: pip install {PACKAGES[name]}")
    if not installed:
        return 0
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{runtime.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}{load}")
    kept = [compare(kind, *SMALL, installed) for kind in ("facility location", "graph cut")]
    if not arguments.small:
        large = [name for name in installed if name != "submodlib" or arguments.submodlib_full]
        kept += [compare(kind, *FULL, large) for kind in ("facility location", "graph cut")]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())

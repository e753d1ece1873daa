"""The cells of a study: pieces of work that are done once, in an order in which each finds what it needs."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from lcmat.evaluation.plan import FULL
from lcmat.pieces import file_key
from lcmat.study.design import Condensation, Grid, Proxy, Study, Training
from lcmat.study.method import Method


@dataclass(frozen=True)
class Cell:
    """One piece of work, and all that its result depends on.

    Attributes:
        stage: 'proxy', 'choose' or 'train'.
        data: name of the data set.
        fingerprint: of its training part.
        seed: of everything random.
        proxy: whose eyes the method sees with; None where it needs none.
        record: whether the proxy's training keeps a record of every sample.
        method: that chooses or makes samples; None for a proxy, and for training on everything.
        budget: 'fraction' or 'per_class'.
        amounts: of one choice, or the single one that is trained on.
        condensation: how condensers work.
        net: that is trained on what is kept.
        training: how.
        protocol: of `lcmat.evaluate`.
        watched: whether the network is tested after each epoch as well.
        needs: keys of the cells that come before.
    """

    stage: str
    data: str
    fingerprint: str
    seed: int
    proxy: Proxy | None = None
    record: bool = False
    method: Method | None = None
    budget: str = "fraction"
    amounts: tuple[float, ...] = ()
    condensation: Condensation | None = None
    net: str = ""
    training: Training | None = None
    protocol: str = ""
    watched: bool = False
    needs: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """A file name that tells what it is, and with a digest all that it depends on."""
        method = self.method.text if self.method else FULL if self.stage == "train" else ""
        amounts = " ".join(map(amount_name, self.amounts)) if len(self.amounts) < 3 else f"{len(self.amounts)} amounts"
        words = [self.stage, self.data, method, amounts, self.net, f"seed {self.seed}"]
        decisive = asdict(self)
        # What was left as it always was is left out, so that studies of before there was a choice go on.
        if not self.watched:
            del decisive["watched"]
        if self.training is not None and self.training.augment is None:
            del decisive["training"]["augment"]
        return file_key(" ".join(filter(None, words)), decisive)

    @property
    def name(self) -> str:
        """The key without its digest, for people."""
        return self.key[:-13]

    @property
    def effort(self) -> float:
        """How long it takes, in units that mean the same within one stage."""
        if self.stage == "proxy":
            return float(self.proxy.epochs) if self.proxy else 1.0
        if self.stage == "train":
            return self.amounts[0]
        return float(len(self.amounts))


def make_cells(study: Study, fingerprints: Mapping[str, str]) -> tuple[Cell, ...]:
    """The cells in order: for each data set proxies with all choices that share them, then trainings by network."""
    found: dict[str, Cell] = {}
    for data, fingerprint in fingerprints.items():
        grids = [grid for grid in study.grids if data in grid.data]
        for stage in (_choices, _trainings):
            for cell in stage(study, grids, data, fingerprint):
                found.setdefault(cell.key, cell)
    return tuple(found.values())


def choices(study: Study, grid: Grid, data: str, fingerprint: str, proxy: Proxy, seed: int) -> Iterator[Cell]:
    """What has to be chosen or made in one block, each with its proxy before it."""
    recording = [other for block in study.grids if data in block.data for other in block.methods if other.needs_record]
    for method in grid.methods:
        once = method.condenses and study.made_once
        common: dict[str, Any] = {
            "data": data,
            "fingerprint": fingerprint,
            "seed": study.seeds[0] if once else seed,
        }
        needs: tuple[str, ...] = ()
        if method.needs_proxy:
            # Where times are results, no method pays for a record that only others want.
            record = method.needs_record if study.timed else bool(recording)
            common |= {"proxy": proxy, "record": record}
            cell = Cell("proxy", **common)
            needs = (cell.key,)
            yield cell
        alone = study.timed or method.condenses
        for amounts in [(amount,) for amount in grid.amounts] if alone else [grid.amounts]:
            yield Cell(
                "choose",
                **common,
                method=method,
                budget=grid.budget,
                amounts=amounts,
                condensation=study.condensation if method.condenses else None,
                needs=needs,
            )


def trainings(study: Study, grid: Grid, data: str, fingerprint: str, proxy: Proxy, seed: int) -> Iterator[Cell]:
    """What has to be trained on in one block."""
    watched = study.oracle or study.reach is not None
    common: dict[str, Any] = {"fingerprint": fingerprint, "seed": seed, "training": study.training, "watched": watched}
    for net in grid.nets:
        for chosen in choices(study, grid, data, fingerprint, proxy, seed):
            if chosen.stage == "choose":
                for amount in chosen.amounts:
                    yield Cell(
                        "train",
                        data,
                        **common,
                        method=chosen.method,
                        budget=grid.budget,
                        amounts=(amount,),
                        net=net,
                        protocol=grid.protocol,
                        needs=(chosen.key,),
                    )
        if grid.full:
            yield Cell("train", data, **common, amounts=(1.0,), net=net, protocol=grid.protocol)


def _choices(study: Study, grids: list[Grid], data: str, fingerprint: str) -> Iterator[Cell]:
    for grid in grids:
        for proxy in grid.proxies:
            for seed in study.seeds:
                yield from choices(study, grid, data, fingerprint, proxy, seed)


def _trainings(study: Study, grids: list[Grid], data: str, fingerprint: str) -> Iterator[Cell]:
    """By network, so that what a device learnt of one serves all its trainings; the small ones first."""
    cells = [
        cell
        for grid in grids
        for proxy in grid.proxies
        for seed in study.seeds
        for cell in trainings(study, grid, data, fingerprint, proxy, seed)
    ]
    nets = list(dict.fromkeys(cell.net for cell in cells))
    yield from sorted(cells, key=lambda cell: (nets.index(cell.net), cell.amounts, cell.seed))


def amount_name(amount: float) -> str:
    """A budget as a folder name, such as '0.01'."""
    return f"{amount:.12g}"

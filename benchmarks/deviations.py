"""What single deviations of the official code do to accuracy: each repeated here on purpose, beside what lcmat does.

Digits, so that anyone can repeat it on two CPU cores. Seed i is one independent run: proxy i, choices i, trainings i.
Writes a line for each training and the table of `docs/deviations.md`; a run that was stopped goes on where it was.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import lcmat
from lcmat import runtime
from lcmat.evaluation import curve
from lcmat.evaluation.statistics import compare, estimate
from lcmat.linear_head import factors, gradient_norms, gram
from lcmat.report.wording import points, score, span
from lcmat.types import Signals, Subset

NET = "convnet:width=32"
PROXY_EPOCHS = 10
EPOCHS = 60
FRACTION = 0.05
BATCH = 128  # of the official code's pass over a class
FAR = 10.0  # the official code's constant, less the distance
WATCHED = ("uniform", "craig", "lcmat-s")

Rank = Callable[[Signals, int], Tensor]  # so many rows of some Signals, in the order in which they are picked


@dataclass(frozen=True)
class Deviation:
    """One deviation and what stands against it.

    Attributes:
        text: in the table.
        name: of the choice with it.
        against: the choice of lcmat.
    """

    text: str
    name: str
    against: str


DEVIATIONS = (
    Deviation("softmax twice: CRAIG", "craig, softmax twice", "craig"),
    Deviation("softmax twice: GradMatch", "gradmatch, softmax twice", "gradmatch"),
    Deviation("softmax twice: GLISTER", "glister, softmax twice", "glister"),
    Deviation("softmax twice: GraNd", "grand, softmax twice", "grand"),
    Deviation("the last, smaller batch weighs more: CRAIG", "craig, last batch", "craig"),
    Deviation("the last, smaller batch weighs more: GraNd", "grand, last batch", "grand"),
    Deviation("10 − distance: CRAIG", "craig, 10 less distance", "craig"),
    Deviation("GLISTER never updates", "glister, no update", "glister"),
    Deviation("herding takes the farthest", "herding, farthest", "herding"),
    Deviation("ties of forgetting by position", "forgetting, ties by position", "forgetting"),
    Deviation("LCMat-S over all classes is cosine CRAIG", "craig, cosine, over all", "lcmat-s, over all"),
    Deviation("over all, the most confident are kept", "most confident, over all", "least-confidence, over all"),
)


def choose(data: lcmat.Splits, seed: int) -> dict[str, Subset]:
    """All choices of one seed, by name, from one proxy."""
    model = lcmat.train(NET, data.train, epochs=PROXY_EPOCHS, seed=seed, record=True)
    signals: Signals = lcmat.extract(model, data.train)
    twice = replace(signals, logits=signals.probabilities - 1)  # softmax does not see a constant

    def usual(method: str, look: Signals = signals, **options: Any) -> Subset:
        return lcmat.select(look, method, fraction=FRACTION, seed=seed, **options)

    found = {name: usual(name) for name in ("uniform", "lcmat-s", "craig", "gradmatch", "glister", "grand", "herding")}
    found |= {f"{name}, softmax twice": usual(name, twice) for name in ("craig", "gradmatch", "glister", "grand")}
    found["forgetting"] = usual("forgetting")
    found["glister, no update"] = usual("glister", rate=1e-12)
    found |= {f"{name}, over all": usual(name, balance="none") for name in ("lcmat-s", "least-confidence")}
    like = found["craig"]
    ranks: Mapping[str, Rank] = {
        "craig, last batch": last_batch_craig,
        "craig, 10 less distance": lambda rows, count: cover(FAR - distances_of(rows), count),
        "grand, last batch": lambda rows, count: top(gradient_norms(factors(rows)) * batch_scale(rows.n), count),
        "herding, farthest": farthest_herding,
    }
    forgotten = scores_of(lcmat.select(signals, "forgetting", fraction=1.0, seed=seed))
    labels = data.train.labels
    rows = {name: each_class(signals, labels, like.per_class, rank) for name, rank in ranks.items()}
    rows["forgetting, ties by position"] = torch.cat(
        [
            members[top(forgotten[members], count)]
            for members, count in zip(members_of(labels), like.per_class, strict=True)
        ]
    )
    rows["most confident, over all"] = top(signals.probabilities.max(1).values, len(like))
    rows["craig, cosine, over all"] = cover(cosines_of(signals), len(like))
    for name, indices in rows.items():
        counts = torch.bincount(labels[indices], minlength=len(like.per_class))
        found[name] = replace(
            like, indices=indices, gains=None, method=name, options={}, per_class=tuple(counts.tolist())
        )
    return found


def distances_of(signals: Signals) -> Tensor:
    """‖g_i − g_j‖ of all pairs, `[n, n]`."""
    inner = gram(factors(signals), factors(signals)).double()
    squares = inner.diagonal()[:, None] + inner.diagonal() - 2 * inner
    return squares.clamp_(min=0).sqrt_()


def cosines_of(signals: Signals) -> Tensor:
    """Cosines of the gradients, from 0 to 2 as the official code shifts them, `[n, n]`."""
    inner = gram(factors(signals), factors(signals)).double()
    norms = inner.diagonal().sqrt().clamp(min=1e-12)
    return 1 + inner / norms[:, None] / norms


def last_batch_craig(signals: Signals, count: int) -> Tensor:
    """CRAIG where the gradients of the last batch are scaled up."""
    inner = gram(factors(signals), factors(signals)).double()
    scale = batch_scale(signals.n).double()
    inner *= scale[:, None] * scale
    squares = inner.diagonal()[:, None] + inner.diagonal() - 2 * inner
    distances = squares.clamp_(min=0).sqrt_()
    return cover(distances.max() - distances, count)


def batch_scale(n: int) -> Tensor:
    """1 for the samples of whole batches, and BATCH / size for those of a last one that is smaller, `[n]`."""
    scale = torch.ones(n)
    left = n % BATCH
    if n > BATCH and left:
        scale[-left:] = BATCH / left
    return scale


def cover(similarities: Tensor, count: int) -> Tensor:
    """Greedy facility location, max_S Σ_i max_{j ∈ S} max(0, s_ij); what is tied falls by position."""
    best = similarities.new_zeros(len(similarities))
    order: list[int] = []
    for _ in range(count):
        gains = (similarities - best[:, None]).clamp_(min=0).sum(0)
        gains[order] = -1
        order.append(int(gains.argmax()))
        best = torch.maximum(best, similarities[:, order[-1]])
    return torch.tensor(order)


def farthest_herding(signals: Signals, count: int) -> Tensor:
    """Herding with the sample farthest from where the mean would want the next one, not the nearest."""
    features = signals.need("features").double()
    mean, total = features.mean(0), torch.zeros(features.shape[1], dtype=torch.float64)
    order: list[int] = []
    for step in range(1, count + 1):
        away = (features - (step * mean - total)).square().sum(1)
        away[order] = -1
        order.append(int(away.argmax()))
        total += features[order[-1]]
    return torch.tensor(order)


def top(values: Tensor, count: int) -> Tensor:
    """The positions of the highest values; what is tied falls by position."""
    return torch.argsort(values, descending=True, stable=True)[:count]


def scores_of(ranking: Subset) -> Tensor:
    """The score of every row, from a choice of all of them."""
    assert ranking.gains is not None
    scores = torch.empty(len(ranking), dtype=ranking.gains.dtype)
    scores[ranking.indices] = ranking.gains
    return scores


def members_of(labels: Tensor) -> list[Tensor]:
    """The rows of each class, ascending."""
    return [(labels == label).nonzero().flatten() for label in range(int(labels.max()) + 1)]


def each_class(signals: Signals, labels: Tensor, counts: Sequence[int], rank: Rank) -> Tensor:
    """Rows picked by a rank, class after class."""
    classes = zip(members_of(labels), counts, strict=True)
    return torch.cat([members[rank(signals.take(members), count)] for members, count in classes])


def measure(data: lcmat.Splits, seeds: int, records: Path) -> list[dict[str, Any]]:
    """Choose, and train on all choices; the records."""
    subsets: dict[str, list[Subset]] = defaultdict(list)
    for seed in range(seeds):
        for name, subset in choose(data, seed).items():
            subsets[name].append(subset)
        print(f"chosen with seed {seed}", flush=True)
    found: list[dict[str, Any]] = []
    for watched in (True, False):
        own = {name: sets for name, sets in subsets.items() if (name in WATCHED) == watched}
        report = lcmat.evaluate(
            data, own, nets=[NET], epochs=EPOCHS, seeds=range(seeds), baseline=False, records=records, oracle=watched,
            progress=lambda done, total, text: print(f"{done}/{total} {text}", flush=True) if done % 50 == 0 else None,
        )  # fmt: skip
        found += map(dict, report.records)
    return found


def table(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of `docs/deviations.md`, as Markdown."""
    own: dict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for record in records:
        own[record["name"]][record["seed"]] = record
    lines = ["| official code | with it | lcmat | n | difference | its interval |", "| --- " * 6 + "|"]
    for deviation in DEVIATIONS:
        pair = own[deviation.name], own[deviation.against]
        left, right = ([runs[seed]["accuracy"] for seed in sorted(runs)] for runs in pair)
        lines.append(line(deviation.text, left, right))
    for name in WATCHED:
        runs = [own[name][seed] for seed in sorted(own[name])]
        best = [curve.best([run]) or 0.0 for run in runs]
        lines.append(line(f"best epoch on the test set: {name}", best, [run["accuracy"] for run in runs]))
    return lines


def line(text: str, left: Sequence[float], right: Sequence[float]) -> str:
    """One row: both means, and the paired difference."""
    difference = compare(left, right).difference
    means = (estimate(left), estimate(right))
    shown = [score(found.mean) + ("" if found.sd is None else f" ± {score(found.sd)}") for found in means]
    interval = span(points(difference.low), points(difference.high))
    return f"| {text} | {' | '.join(shown)} | {difference.n} | {points(difference.mean)} | {interval} |"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--records", type=Path, default=Path("runs/deviations.jsonl"))
    asked = parser.parse_args()
    with runtime.one_thread():
        print("\n".join(table(measure(lcmat.load("digits"), asked.seeds, asked.records))))


if __name__ == "__main__":
    main()

"""What must be known to read an evaluation's numbers: the protocol in words, and notes on this one."""

from collections.abc import Mapping, Sequence
from typing import Any

from lcmat import runtime
from lcmat.evaluation.plan import UNIFORM, Entry, class_counts
from lcmat.evaluation.settings import Settings, describe_augmentation, describe_labels
from lcmat.report.wording import percent
from lcmat.types import Splits


def protocol_of(
    data: Splits,
    nets: Sequence[str],
    seeds: Sequence[int],
    settings: Settings,
    weighted: Sequence[str],
    entries: Sequence[Entry],
) -> dict[str, Any]:
    """All settings, in words and numbers."""
    names = list(dict.fromkeys(entry.name for entry in entries))
    return {
        "data": data.name,
        "data fingerprint": data.train.fingerprint,
        "train samples": len(data.train),
        "test samples": len(data.test),
        "trained on": names,
        "networks": list(nets),
        "accuracy": "on the test set after the last epoch",
        "labels": describe_labels(entries),
        "budget": f"{settings.epochs:,} epochs" if settings.steps is None else f"{settings.steps:,} steps",
        "batch size": settings.batch_size,
        "optimizer": settings.optimizer,
        "learning rate": settings.lr,
        "schedule": settings.schedule,
        "momentum": settings.momentum,
        "Nesterov": settings.nesterov,
        "weight decay": settings.weight_decay,
        "augmentation": describe_augmentation(settings, data),
        "weights in the loss": list(weighted),
        "seeds": list(seeds),
        "pairing": "under one seed and network, initialisation and training stream are the same for all subsets",
        "uniform": "a new random set for each seed, of the same size and class counts, unless given",
        "intervals": "95 %, Student's t over the runs; they do not cover the choice of the test set",
        "device": settings.device,
        "precision": settings.precision,
    }


def ran_on(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Versions and machines that the trainings ran on, which need not be those at hand."""
    return {
        name: "; ".join(dict.fromkeys(str(record.get(name, "not recorded")) for record in records))
        for name in runtime.versions()
    }


def about_curves(watched: bool, reach: float | None) -> dict[str, Any]:
    """What the tests after each epoch are for, where there are some."""
    oracle = {"oracle": "best epoch on the test set, mean over the runs: known to nobody without a test set, no result"}
    if reach is None:
        return oracle if watched else {}
    return {**oracle, f"s to {percent(reach)}": "seconds of training until it was first that accurate after an epoch"}


def notes_on(data: Splits, entries: Sequence[Entry], runs: int, nets: int) -> list[str]:
    """What must be known to read the numbers rightly."""
    compared = {(entry.name, entry.size): entry for entry in entries}
    unequal = [
        entry.label
        for entry in entries
        if entry.baseline and _differ(entry, compared[entry.baseline, entry.size], data)
    ]
    shared = [entry.label for entry in entries if entry.shared]
    unproven = [entry.label for entry in entries if entry.given and entry.first and not entry.first.fingerprint]
    notes = list(data.notes)
    if shared:
        notes.append(
            f"{'; '.join(shared)}: {runs} trainings on one subset; the interval shows training noise only, "
            "not what another proxy or condensation would have given."
        )
    if unproven:
        notes.append(f"{'; '.join(unproven)}: no fingerprint proves that this was made from this data.")
    if unequal:
        notes.append(f"{'; '.join(unequal)}: the class counts differ from those of the {UNIFORM} set that was given.")
    comparisons = nets * sum(bool(entry.baseline) for entry in entries)
    if runs == 1:
        notes.append("One run each: there are no intervals, and differences of a single run prove nothing.")
    elif comparisons > 1:
        notes.append(
            f"{comparisons} comparisons, each with its own 95 % interval: one in twenty leaves out zero by chance."
        )
    return notes


def reuse_note(reused: int, total: int) -> list[str]:
    """What was not done again, where anything was not."""
    return [f"{reused} of {total} trainings were done before and taken from the records."] if reused else []


def _differ(entry: Entry, other: Entry, data: Splits) -> bool:
    """Whether the class counts of two entries differ under a seed that both have."""
    return any(
        class_counts(subset, data) != class_counts(other.by_seed[seed], data)
        for seed, subset in entry.by_seed.items()
        if seed in other.by_seed
    )

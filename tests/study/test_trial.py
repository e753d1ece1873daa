"""`lcmat dynamic` and `lcmat continual` as pieces of work: shared, stopped, gone on with, shown again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from lcmat import files, runtime, training
from lcmat.continual.walks import Walks
from lcmat.dynamic.trainings import Trainings
from lcmat.evaluation.findings import Findings
from lcmat.study import crew_member
from lcmat.study.crew_task import Task
from lcmat.study.pages import render_folders
from lcmat.study.pipeline import Machine
from lcmat.study.terms import Terms
from lcmat.study.trial import Trial, TrialWorker, is_trial, run_trial
from lcmat.training.shared import Proxies
from lcmat.types import Splits
from report.doc_checks import check_columns
from report.html_checks import check_page
from samples import vectors

DYNAMIC = Trial(
    "lcmat dynamic",
    "digits",
    {},
    {
        "methods": ("static:craig", "static:herding", "lcmat-s", "random", "full"),
        "fractions": (0.3, 0.1),
        "every": (2,),
        "pools": (None,),
        "net": "mlp:width=4,depth=1",
        "epochs": 2,
        "proxy_epochs": 1,
        "seeds": (0, 1),
    },
    command="lcmat dynamic digits",
)
CONTINUAL = Trial(
    "lcmat continual",
    "digits",
    {},
    {
        "fill": ("dm", "craig", "herding", "uniform"),
        "classes": 6,
        "steps": 3,
        "per_class": 3,
        "net": "convnet:width=4,depth=2",
        "epochs": 2,
        "proxy_epochs": 1,
        "seeds": (0, 1),
        "condense_steps": 2,
        "options": {"dm": {"real_batch": 16}},
    },
    command="lcmat continual digits",
)
BOTH = pytest.mark.parametrize("trial", [DYNAMIC, CONTINUAL], ids=["dynamic", "continual"])


def run(trial: Trial, out: Path, **terms: Any) -> tuple[Findings, tuple[int, int]]:
    return run_trial(trial, trial.cut(trial.load()), out, Machine("cpu"), Terms(**terms))


def measured(found: Findings) -> list[dict[str, Any]]:
    """The records without what depends on how fast the machine was."""
    timed = {"seconds", "processes", "curve"}
    return [{name: value for name, value in record.items() if name not in timed} for record in found.records]


@BOTH
def test_two_processes_find_what_one_finds(trial: Trial, tmp_path: Path) -> None:
    shared, (done, total) = run(trial, tmp_path / "shared", processes=2)
    alone, _ = run(trial, tmp_path / "alone")
    assert done == total
    assert measured(shared) == measured(alone)
    assert {record["processes"] for record in shared.records} == {2}
    assert any("Up to 2 processes shared the machine" in note for note in shared.notes)
    assert not any("shared the machine" in note for note in alone.notes)


@pytest.mark.parametrize("changes", [{"protocol": "replay"}, {"per_class": None, "total": 12}])
def test_steps_that_depend_on_each_other_are_walked_in_order(changes: dict[str, Any], tmp_path: Path) -> None:
    settings = {**CONTINUAL.settings, "fill": ("craig", "herding"), "seeds": (0,), **changes, "options": {}}
    trial = replace(CONTINUAL, settings=settings)
    shared, _ = run(trial, tmp_path / "shared", processes=2)
    alone, _ = run(trial, tmp_path / "alone")
    assert measured(shared) == measured(alone)
    assert len(alone.records) == 2 * 3
    assert not list((tmp_path / "shared" / "trainings").glob("*"))


def test_walks_of_one_process_share_the_proxies_that_they_would_train_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**CONTINUAL.settings, "fill": ("craig", "herding"), "per_class": None, "total": 12, "options": {}}
    trained: list[int] = []
    train: Any = training.train

    def counted(net: Any, *arguments: Any, **more: Any) -> Any:
        trained.append(more["epochs"])
        return train(net, *arguments, **more)

    monkeypatch.setattr(training, "train", counted)
    run(replace(CONTINUAL, settings=settings), tmp_path)
    assert trained.count(CONTINUAL.settings["proxy_epochs"]) == 2 * 3  # one for each seed and step
    assert trained.count(CONTINUAL.settings["epochs"]) == 2 * 3 * 2


@pytest.mark.parametrize(("memory", "share"), [("8kB", 2_000), (None, 1_000)])
def test_each_process_keeps_to_its_share_of_the_memory(
    memory: str | None, share: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(DYNAMIC, tmp_path / "out", minutes=0.0)
    found: list[int] = []

    def conduct(*_: Any, **__: Any) -> None:
        found.append(runtime.memory_budget(None, torch.device("cpu")))  # as `select` asks for it

    monkeypatch.setattr(crew_member, "conduct", conduct)
    monkeypatch.setattr(runtime, "free_memory", lambda _: 8_000)
    threads = torch.get_num_threads()
    crew_member._work(Task(str(tmp_path / "out"), str(tmp_path / "failures"), "cpu", memory, threads, 4, None))
    assert found == [share]


def test_other_test_data_makes_other_records() -> None:
    settings = {**CONTINUAL.settings, "net": "mlp:width=4", "options": {}}
    del settings["classes"]
    first, second = (
        Walks.plan(Splits(vectors(60, classes=6), vectors(test, classes=6), "vectors"), **settings).pieces()
        for test in (30, 36)
    )
    shared = {piece.key for piece in first} & {piece.key for piece in second}
    assert {piece.stage for piece in first if piece.key in shared} == {"proxy"}


class StoppedError(Exception):
    pass


@BOTH
def test_what_there_is_stands_on_the_page_and_the_same_command_goes_on(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, (_, total) = run(trial, tmp_path / "whole")
    out, did = tmp_path / "out", TrialWorker.do
    begun: list[str] = []

    def stop(self: TrialWorker, piece: Any, /) -> dict[str, Any]:
        if len(begun) == total // 2 + 3:
            raise StoppedError
        begun.append(piece.key)
        return did(self, piece)

    monkeypatch.setattr(TrialWorker, "do", stop)
    with pytest.raises(StoppedError):
        run(trial, out)
    half, (done, _) = run(trial, out, minutes=0.0)
    assert 0 < done == len(begun) < total
    assert {row.accuracy.n if trial is DYNAMIC else len(row.last) for row in half.rows} >= {1}
    assert any(note.startswith("Not finished: ") for note in half.notes)
    page = (out / "report.html").read_text(encoding="utf-8")
    check_page(page)
    assert "Not finished: " in page
    monkeypatch.setattr(TrialWorker, "do", did)
    found, (done, _) = run(trial, out)
    assert done == total
    assert measured(found) == measured(whole)
    assert not any(note.startswith("Not finished: ") for note in found.notes)


@BOTH
def test_nothing_done_is_said_to_be_missing(trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcmat.study.terms.Crew", None)  # for the page alone no process is started
    found, (done, _) = run(trial, tmp_path / "out", minutes=0.0, processes=2)
    assert (done, found.rows) == (0, ())
    (note,) = (note for note in found.notes if note.startswith("Not finished: 0 of "))
    assert "Without any run so far: " in note
    assert "herding" in note
    check_page((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert (tmp_path / "out" / "results.csv").read_text(encoding="utf-8") == ""


@BOTH
def test_results_lie_beside_the_page_and_report_makes_it_anew(trial: Trial, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found, _ = run(trial, out)
    assert is_trial(out)
    assert files.read_json(out / "results.json")["rows"]
    assert files.read_json_lines(out / "records.jsonl") == found.records
    lines = (out / "results.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + len(found.rows)
    page = Path(__file__).parents[2] / "docs" / f"{trial.kind.removeprefix('lcmat ')}.md"
    check_columns(lines[0].split(","), page)
    markdown = (out / "results.md").read_text(encoding="utf-8")
    assert markdown.startswith(f"# {found.title}")
    assert all(f"| {row.name} |" in markdown for row in found.rows)
    before = (out / "report.html").read_text(encoding="utf-8")
    (out / "report.html").unlink()
    assert render_folders([out], Machine("cpu")) == [out / "report.html"]
    assert (out / "report.html").read_text(encoding="utf-8") == before
    assert trial.command in before
    both = render_folders([out, out], Machine("cpu"), tmp_path / "both.html")
    check_page(both[0].read_text(encoding="utf-8"))


def test_one_run_of_every_arm_comes_before_the_second_and_small_fractions_before_large_ones() -> None:
    data = Splits(vectors(60), vectors(30), "vectors")
    settings: dict[str, Any] = {**DYNAMIC.settings, "net": "mlp:width=4"}
    pieces = Trainings.plan(data, **settings).pieces()
    assert [piece.seed for piece in pieces] == [0] * 10 + [1] * 10
    first = pieces[:10]
    assert [piece.stage for piece in first] == ["proxy"] + ["train"] * 9  # which both static arms look with
    assert [piece.arm.fraction for piece in first[1:] if piece.arm] == [0.1] * 4 + [0.3] * 4 + [None]
    assert all(set(piece.needs) == {pieces[0].key} for piece in first if piece.arm and piece.arm.static)


def test_selectors_come_before_condensers_and_share_their_proxies() -> None:
    data = Splits(vectors(60, classes=6), vectors(30, classes=6), "vectors")
    settings = {**CONTINUAL.settings, "net": "mlp:width=4", "options": {}}
    del settings["classes"]
    pieces = Walks.plan(data, **settings).pieces()
    first = [piece for piece in pieces if piece.seed == 0]
    assert list(pieces[: len(first)]) == first
    assert [piece.stage for piece in first[:4]] == ["proxy"] * 3 + ["fill"]
    stages = [piece.stage for piece in first]
    assert (stages.count("proxy"), stages.count("condense"), stages.count("fill")) == (3, 3, 9)
    assert stages.index("condense") == len(stages) - 6
    done: set[str] = set()
    for piece in pieces:
        assert set(piece.needs) <= done
        done.add(piece.key)


def test_the_versions_are_those_of_the_records() -> None:
    data = Splits(vectors(60), vectors(30), "vectors")
    trainings = Trainings.plan(data, **{**DYNAMIC.settings, "methods": ("random",), "net": "mlp:width=4"})
    records = [trainings.do(task, Proxies(), torch.device("cpu")) for task in trainings.pieces()]
    found = trainings.study([{**record, "torch": "1.0", "machine": "another"} for record in records])
    assert (found.protocol["torch"], found.protocol["machine"]) == ("1.0", "another")


def test_a_folder_from_another_machine_is_shown_and_not_gone_on_with_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "data" / "pictures", tmp_path / "out"
    for number in range(60):
        path = source / f"class-{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 4 * number).save(path)
    trial = replace(DYNAMIC, source=str(source))
    found, _ = run(trial, out)
    assert len(found.rows) == 9
    meta = files.read_json(out / "study.json")
    assert meta["source"] == str(source)
    files.write_json(out / "study.json", {**meta, "source": "/elsewhere/pictures"})
    monkeypatch.setenv("LCMAT_DATA", str(tmp_path / "data"))
    render_folders([out], Machine("cpu"))
    assert "Not finished" not in (out / "report.html").read_text(encoding="utf-8")
    files.write_json(out / "study.json", {**meta, "device": "cuda"})
    with pytest.raises(ValueError, match="was begun on cuda, and results of cpu are others"):
        run(trial, out)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    run(DYNAMIC, tmp_path / "out", minutes=0.0)
    with pytest.raises(ValueError, match="not empty and no continual comparison of lcmat"):
        run(CONTINUAL, tmp_path / "out", minutes=0.0)
    files.write_text(tmp_path / "mine" / "notes.txt", "mine")
    with pytest.raises(ValueError, match="name another with --out"):
        run(DYNAMIC, tmp_path / "mine", minutes=0.0)

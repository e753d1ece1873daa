import re
from pathlib import Path
from typing import Any

import pytest

from lcmat import dynamic, files
from lcmat.dynamic import trainings
from lcmat.dynamic.arms import make_arms
from lcmat.types import Splits
from report.html_checks import check_page
from samples import vectors

SETTINGS: dict[str, Any] = {
    "methods": ("static:craig", "craig", "random", "random:replacement", "infobatch", "full"),
    "fractions": (0.1, 0.3),
    "every": (1, 2),
    "net": "mlp:width=8",
    "epochs": 4,
    "proxy_epochs": 2,
    "seeds": (0, 1),
    "looks": 2,
    "lr": 0.05,
}


@pytest.fixture(scope="module")
def data() -> Splits:
    return Splits(vectors(60), vectors(30), "vectors")


@pytest.fixture(scope="module")
def found(data: Splits, tmp_path_factory: pytest.TempPathFactory) -> tuple[dynamic.Study, Path]:
    records = tmp_path_factory.mktemp("study") / "records.jsonl"
    return dynamic.compare(data, **SETTINGS, records=records), records


def test_every_arm_has_a_row_and_every_seed_a_record(found: tuple[dynamic.Study, Path]) -> None:
    result, records = found
    names = [(row.name, row.fraction) for row in result.rows]
    assert len(names) == len(set(names)) == 2 + 4 + 2 + 2 + 1 + 1
    assert {row.accuracy.n for row in result.rows} == {2}
    assert len(files.read_json_lines(records)) == len(result.records) == 24
    rows = {row.name: row for row in result.rows if row.fraction in {0.1, None}}
    assert rows["craig, static"].visited == rows["craig, R = 1"].visited == rows["random"].visited == pytest.approx(0.1)
    assert rows["full"].visited == 1 >= rows["infobatch"].visited > 0.5
    assert rows["random"].share == rows["full"].share == 0 < rows["craig, R = 2"].share < 1
    assert rows["craig, static"].share > 0.3
    assert [len(row.curve) for row in result.rows] == [2] * 12
    assert all(row.curve[0][0] < row.curve[1][0] for row in result.rows)


def test_trainings_are_not_repeated(
    data: Splits, found: tuple[dynamic.Study, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, records = found

    def forbid(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(trainings, "train", forbid)
    again = dynamic.compare(data, **SETTINGS, records=records)
    assert again.records == result.records
    assert any("24 of 24" in note for note in again.notes)
    with pytest.raises(AssertionError, match="trained again"):
        dynamic.compare(data, **{**SETTINGS, "lr": 0.06}, records=records)


def test_a_killed_study_goes_on(data: Splits, tmp_path: Path) -> None:
    settings = {**SETTINGS, "methods": ("random", "full"), "fractions": (0.2,), "records": tmp_path / "records.jsonl"}
    whole = dynamic.compare(data, **{**settings, "records": None})

    def stop(done: int, total: int, _: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dynamic.compare(data, **settings, progress=stop)
    assert len(files.read_json_lines(tmp_path / "records.jsonl")) == 2
    again = dynamic.compare(data, **settings)
    assert [row.accuracy for row in again.rows] == [row.accuracy for row in whole.rows]


def test_the_page_and_the_table_say_what_was_found(found: tuple[dynamic.Study, Path], tmp_path: Path) -> None:
    result, _ = found
    page = result.save_html(tmp_path / "report.html").read_text(encoding="utf-8")
    check_page(page)
    assert page.count("<svg viewBox") >= 1 + 2  # accuracy of craig, and its time at both fractions
    assert "infobatch" in page
    for row in result.rows:
        assert row.name in result.table()
    verdicts = [line for line in result.headline() if "against random re-sampling" in line]
    names = ["craig, static", "craig, R = 1", "craig, R = 2", "random, replaced"]
    assert [line.partition(", against")[0] for line in verdicts] == names
    assert all("10 %" in line and "30 %" in line for line in verdicts)
    assert result.headline()[-1].startswith("Training on everything reaches")


def test_few_comparisons_are_spelled_out(data: Splits) -> None:
    settings = {**SETTINGS, "methods": ("craig", "random"), "fractions": (0.2,), "every": (2,), "seeds": (0, 1, 2)}
    result = dynamic.compare(data, **settings)
    (row, other) = result.rows
    found = result.against_random(row)
    assert found is not None
    assert found.difference.mean == pytest.approx(row.accuracy.mean - other.accuracy.mean)
    assert re.fullmatch(
        r"craig, R = 2, against .*: .* at 20 % \(.* points, interval .*, n = 3\)\.", result.headline()[0]
    )


def test_many_comparisons_stand_together_by_fraction_and_verdict(data: Splits) -> None:
    settings = {**SETTINGS, "methods": ("craig", "herding", "random"), "every": (1, 2, 3, 4), "epochs": 2, "looks": 1}
    lines = dynamic.compare(data, **settings).headline()
    assert len(lines) <= 2 * 3  # fractions, verdicts
    for share in ("10 %", "30 %"):
        own = " ".join(line for line in lines if line.startswith(f"Against random re-sampling at {share}, "))
        assert all(f"{method}, R = {turns}" in own for method in ("craig", "herding") for turns in (1, 2, 3, 4))


def test_passes_are_counted(data: Splits, found: tuple[dynamic.Study, Path]) -> None:
    result, _ = found
    rows = {row.name: row for row in result.rows if row.fraction in {0.1, None}}
    for name, training, forward in (
        ("craig, static", 2.4, 1),
        ("craig, R = 1", 0.4, 4),
        ("random", 0.4, 0),
        ("full", 4, 0),
    ):
        assert rows[name].training_passes == pytest.approx(training)
        assert rows[name].forward_passes == forward
    assert 2 < rows["infobatch"].training_passes <= 4
    heads, line, *_ = result.lines()
    assert dict(zip(heads, line, strict=True))["passes"] == "2.4 + 1"
    assert {"training_passes", "forward_passes"} <= set(result.plain_rows()[0])
    (warm,) = make_arms(("craig",), (0.1,), (3,), (0.5,), n=60, epochs=8, warmup=1)
    assert warm.forward_passes(8) == 3 * 0.5  # before epochs 1, 4 and 7, of half the data
    trained = dynamic.train(
        "mlp:width=8", data.train, "craig", 0.1, epochs=8, choose={"every": 3, "warmup": 1, "pool": 0.5}
    )
    assert trained.cost.turns == 3


def test_the_protocol_says_what_the_names_of_arms_do_not(data: Splits) -> None:
    settings = {**SETTINGS, "methods": ("lcmat-s", "random"), "fractions": (0.2,), "every": (2,), "seeds": (0,)}
    plain = dynamic.compare(data, **settings).protocol
    assert plain["weights in the loss"] is None
    assert not {"epochs of warm-up", "options"} & set(plain)
    told = dynamic.compare(
        data, **settings, weighted=("lcmat-s",), warmup=1, options={"lcmat-s": {"rho": 0.5}}
    ).protocol
    assert told["weights in the loss"] == "those of lcmat-s"
    assert told["epochs of warm-up"].startswith("1, ")
    assert told["options"] == ["lcmat-s.rho=0.5"]


def test_baselines_alone_have_a_page_too(data: Splits, tmp_path: Path) -> None:
    result = dynamic.compare(data, **{**SETTINGS, "methods": ("random", "full"), "seeds": (0,)})
    page = result.save_html(tmp_path / "report.html").read_text(encoding="utf-8")
    check_page(page)
    assert "Time to accuracy" in page
    assert any("One run of each" in note for note in result.notes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"methods": ("lcmat-x",)}, "unknown method 'lcmat-x'"),
        ({"methods": ("static:random",)}, "unknown method 'random'"),
        ({"methods": ()}, "distinct methods"),
        ({"fractions": (0.1, 0.1)}, "distinct fractions"),
        ({"fractions": (1.2,)}, "at most 1"),
        ({"every": (0,)}, "every of at least 1"),
        ({"pools": (0.05,)}, "expected a pool of"),
        ({"seeds": ()}, "distinct seeds"),
        ({"epochs": 0}, "at least 1 epoch"),
        ({"net": "resnet19"}, "unknown network"),
        ({"methods": ("herding",), "options": {"herding": {"a": 1}}}, "unknown option"),
        ({"weighted": ("craig",), "methods": ("herding", "static:craig")}, "weights are asked for of craig"),
        ({"methods": ("herding",), "options": {"craig": {}}}, "options are given for craig"),
        ({"lr": 0.0}, "learning rate lr above 0"),
        ({"batch_size": 0}, "batch_size of at least 1"),
        ({"schedule": "stairs"}, "expected schedule to be"),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(
    data: Splits, changes: dict[str, Any], match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "train", None)
    with pytest.raises((ValueError, TypeError), match=match):
        dynamic.compare(data, **{**SETTINGS, **changes})


def test_arms_carry_what_was_asked() -> None:
    arms = make_arms(
        ("lcmat-s",), (0.1,), (5,), (None, 0.2), n=100, epochs=10, warmup=1, weighted=("lcmat-s",),
        options={"lcmat-s": {"rho": 0.5}},
    )  # fmt: skip
    assert [arm.name for arm in arms] == ["lcmat-s, R = 5", "lcmat-s, R = 5, pool 20 %"]
    assert arms[1].choose == {"every": 5, "warmup": 1, "pool": 0.2, "weighted": True, "rho": 0.5}

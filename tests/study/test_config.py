"""A study's file: what stands in it is what comes out, and every mistake is named with its line."""

from dataclasses import fields
from pathlib import Path

import pytest

from lcmat.study import config
from lcmat.study.cells import make_cells
from lcmat.study.config import StudyFileError, read_study
from lcmat.study.design import Condensation, Proxy, Source, Training, locate
from lcmat.study.study_folder import StudyFolder
from lcmat.study.toml_lines import parse

SMALL = """\
title = "A study"
seeds = 2
[proxy]
net = "mlp:width=8"
epochs = [1, 2]
[training]
epochs = 3
[[grid]]
data = "digits"
methods = ["uniform", "lcmat-s:rho=0.5", "gradmatch:validation=0.2"]
fractions = [0.1, 0.05]
nets = ["mlp:width=8"]
[quick]
seeds = [7]
[quick.training]
epochs = 1
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_becomes_a_study(tmp_path: Path) -> None:
    study = read_study(write(tmp_path, SMALL))
    [grid] = study.grids
    assert (study.name, study.title, study.seeds) == ("study", "A study", (0, 1))
    assert grid.amounts == (0.05, 0.1)
    assert [proxy.epochs for proxy in grid.proxies] == [1, 2]
    assert [proxy.describe(grid.proxies) for proxy in grid.proxies] == ["epochs 1", "epochs 2"]
    uniform, lcmat_s, gradmatch = grid.methods
    assert not uniform.needs_proxy
    assert lcmat_s.options == {"rho": 0.5}
    assert (gradmatch.validation, gradmatch.options) == (0.2, {})
    assert grid.protocol == "selection"


def test_the_documentation_names_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    top, *tables = (line.split("|")[2] for line in page.splitlines() if line.startswith(("| top", "| `[")))
    known = [field.name for kind in (Source, Proxy, Training, Condensation) for field in fields(kind)]
    missing = [name for name in known if name not in {"name", "reading"} and f"`{name}`" not in " ".join(tables)]
    assert not missing
    assert all(
        f"`{key}`" in top for key in config._TOP if key not in {"data", "proxy", "training", "condensation", "grid"}
    )


def test_a_table_that_is_none_is_one_mistake(tmp_path: Path) -> None:
    with pytest.raises(StudyFileError) as caught:
        read_study(write(tmp_path, "condensation = 3\n" + SMALL))
    assert str(caught.value).count("condensation: expected a table [condensation], got 3") == 1


def test_the_small_form_replaces_what_it_names(tmp_path: Path) -> None:
    study = read_study(write(tmp_path, SMALL), quick=True)
    assert study.seeds == (7,)
    assert study.training.epochs == 1
    assert study.grids == read_study(write(tmp_path, SMALL)).grids
    assert "small form" in study.title


def test_a_method_may_look_at_all_points_of_the_proxy_that_are_kept(tmp_path: Path) -> None:
    text = SMALL.replace('"lcmat-s:rho=0.5"', '"lcmat-s:rho=0.5,points=all"')
    with pytest.raises(StudyFileError, match=r"study.toml:10: grid.methods: a method with points=all needs the points"):
        read_study(write(tmp_path, text))
    uniform, lcmat_s, _ = read_study(write(tmp_path, text.replace("[proxy]", "[proxy]\npoints = [1]"))).grids[0].methods
    assert (uniform.all_points, lcmat_s.all_points, lcmat_s.options) == (False, True, {"rho": 0.5})


def test_a_method_may_look_through_other_statistics(tmp_path: Path) -> None:
    text = SMALL.replace('"lcmat-s:rho=0.5"', '"lcmat-s:statistics=class-batch", "lcmat-s"')
    _, other, usual, _ = read_study(write(tmp_path, text)).grids[0].methods
    assert (other.statistics, other.options, usual.statistics) == ("class-batch", {}, "running")
    with pytest.raises(StudyFileError, match=r"study.toml:10: grid.methods: expected one of running, class-batch"):
        read_study(write(tmp_path, text.replace("class-batch", "some")))


def test_a_block_may_have_its_own_proxy(tmp_path: Path) -> None:
    text = SMALL.replace('nets = ["mlp:width=8"]', "proxy = { weight_decay = 0.0, epochs = 5 }")
    [proxy] = read_study(write(tmp_path, text)).grids[0].proxies
    assert (proxy.net, proxy.epochs, proxy.weight_decay) == ("mlp:width=8", 5, 0.0)


def test_condensers_work_by_samples_of_each_class(tmp_path: Path) -> None:
    text = SMALL.replace("fractions = [0.1, 0.05]", "per_class = [1]").replace('"lcmat-s:rho=0.5"', '"dm:lr=0.5"')
    [grid] = read_study(write(tmp_path, text)).grids
    assert (grid.budget, grid.amounts, grid.protocol) == ("per_class", (1,), "condensation")


def test_one_made_set_may_serve_all_seeds(tmp_path: Path) -> None:
    text = SMALL.replace("fractions = [0.1, 0.05]", "per_class = [1]").replace('"lcmat-s:rho=0.5"', '"dm:lr=0.5"')
    table = "[condensation]\nsteps = 3\n"
    for once, sets in (("", [0, 1]), ("once = true\n", [0])):
        study = read_study(write(tmp_path, text.replace("[proxy]", table + once + "[proxy]")))
        cells = make_cells(study, {"digits": "f"})
        made = [cell for cell in cells if cell.stage == "choose" and cell.method and cell.method.condenses]
        assert [cell.seed for cell in made] == sets
        trained = [cell for cell in cells if cell.stage == "train" and cell.method and cell.method.condenses]
        assert [cell.seed for cell in trained] == [0, 1]
        assert {key for cell in trained for key in cell.needs} == {cell.key for cell in made}


def test_every_mistake_is_named_with_line_key_and_what_was_expected(tmp_path: Path) -> None:
    text = """\
titel = "A study"
seeds = 0
show = ["heatmap"]
paper = "nothing"
reach = 90
[proxy]
net = "resnet19"
epochs = 3
points = [1, 9]
lr = "fast"
[training]
epochs = 3
steps = 4
weighted = ["craig"]
[[grid]]
data = [
  "digits", # [ not a bracket
  "digitz",
]
methods = ["uniform", "lcmat-s:rho=-1", "lcmat-s:rhoo=1", "kraig", "craig:points=some", "herding:points=all"]
fractions = [0.1, 1.5]
per_class = [1]
[[grid]]
data = "digits"
methods = "dm"
fractions = 0.1
"""
    with pytest.raises(StudyFileError) as caught:
        read_study(write(tmp_path, text))
    lines = str(caught.value).splitlines()
    found = [line.removeprefix(f"{tmp_path / 'study.toml'}:") for line in lines]
    for expected in (
        "1: titel: expected one of title,",
        "2: seeds: expected a whole number of at least 1, got 0",
        "3: show: expected one of heat map, sensitivity, pictures, got 'heatmap'",
        "4: paper: expected the name of a table",
        "5: reach: expected a share above 0 and at most 1, got 90",
        "7: proxy.net: unknown network 'resnet19'; did you mean 'resnet18'",
        "9: proxy.points: expected epochs up to 3, got 9",
        "10: proxy.lr: expected a number, got 'fast'",
        "13: training.steps: expected epochs or steps, got both",
        "14: training.weighted: expected methods of the grid, got craig",
        "15: grid: expected fractions or per_class, got 2 of them",
        "16: grid.data: expected a name under [data], a path, digits, wine or breast-cancer, got 'digitz'",
        "20: grid.methods: ",
        "25: grid.methods: a condenser takes its budget as per_class",
    ):
        assert any(line.startswith(expected) for line in found), (expected, found)
    [methods] = [line for line in found if line.startswith("20: ")]
    assert all(word in methods for word in ("rho", "rhoo", "'kraig'; did you mean craig"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = 1 2", r"study.toml is no TOML file: .*line 1"),
        ("seeds = 1", r"study.toml:1: grid: expected at least one table \[\[grid\]\]"),
        ('seeds = 1\n[[grid]]\nmethods = ["uniform"]\nfractions = 0.1', r"study.toml:2: grid.data: expected a value"),
        ("seeds = 1\ndata = 3\n[[grid]]\n", r"study.toml:2: data: expected a table \[data\], got 3"),
    ],
)
def test_what_is_no_study_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyFileError, match=message):
        read_study(write(tmp_path, text))


def test_a_missing_file_and_a_missing_small_form_are_named(tmp_path: Path) -> None:
    with pytest.raises(StudyFileError, match=r"there is no file .*none.toml"):
        read_study(tmp_path / "none.toml")
    with pytest.raises(StudyFileError, match=r"expected a table \[quick\]"):
        read_study(write(tmp_path, SMALL.partition("[quick]")[0]), quick=True)


def test_a_mistake_hides_no_other(tmp_path: Path) -> None:
    text = """\
seeds = 1
condensation = []
proxy = [3]
[training]
weighted = ["uniform", "nobody"]
[[grid]]
data = "digits"
methods = ["uniform", "lcmats", "dm", "craig:points=all"]
fractions = 0.1
[quick]
seed = 3
[quick.training]
epoch = 1
"""
    with pytest.raises(StudyFileError) as caught:
        read_study(write(tmp_path, text))
    found = [line.removeprefix(f"{tmp_path / 'study.toml'}:") for line in str(caught.value).splitlines()]
    assert [line.partition(",")[0] for line in found] == [
        "2: condensation: expected a table [condensation]",
        "3: proxy: expected tables",
        "5: training.weighted: expected methods of the grid",
        "8: grid.methods: unknown method 'lcmats'; did you mean lcmat-s or lcmat-c? valid: uniform",
        "11: seed: expected one of title",
        "13: training.epoch: expected one of epochs",
    ]
    assert "got nobody" in found[2]
    assert all(word in found[3] for word in ("not as fractions: dm", "needs the points of the proxy"))
    with pytest.raises(StudyFileError) as again:
        read_study(write(tmp_path, text), quick=True)
    assert str(again.value) == str(caught.value)


def test_a_folder_is_read_where_what_the_other_form_needs_is_gone(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    file = write(tmp_path, SMALL.replace('"digits"', f'"{pictures}"') + '[[quick.grid]]\ndata = "digits"\n')
    file.write_text(file.read_text() + 'methods = "uniform"\nfractions = 0.1\n', encoding="utf-8")
    folder = StudyFolder.begin(tmp_path / "out", read_study(file, quick=True), file, quick=True, sources={})
    pictures.rmdir()
    assert folder.read()[0].seeds == (7,)
    with pytest.raises(StudyFileError, match=f"grid.data: expected .* got '{pictures}'"):
        read_study(file, quick=True)


@pytest.mark.parametrize("value", ["3", "[3]", "[[3]]", '["a", 1]', "nan", "1979-05-27", "true"])
@pytest.mark.parametrize(
    "key", ["data", "proxy", "training", "grid", "quick", "quick.grid", "quick.proxy", "data.pets"]
)
def test_whatever_stands_for_a_table_is_answered_in_words(tmp_path: Path, key: str, value: str) -> None:
    block = "" if key == "grid" else '[[grid]]\ndata = "digits"\nmethods = "uniform"\nfractions = 0.1\n'
    path = write(tmp_path, f"seeds = 1\n{key} = {value}\n{block}")
    with pytest.raises(StudyFileError) as caught:
        read_study(path)
    assert all(line.startswith(f"{path}:") for line in str(caught.value).splitlines())


def test_lines_are_found_through_strings_arrays_and_tables() -> None:
    text = 'a = """\nb = 1\n[x]\n"""\n"quoted key" = [\n  "]", # ]\n  {b = 1},\n]\n[t.u]\nv.w = 1\n'
    document = parse(text + "[[many]]\nk = 1\n[[many]]\nk = 2\n[many.inner]\nk = 3")
    assert document.value["a"].line == 1
    assert document.value["quoted key"].line == 5
    assert document.value["t"].value["u"].line == 9
    assert document.value["t"].value["u"].value["v"].value["w"].line == 10
    first, second = document.value["many"].value
    assert (first.line, first.value["k"].line) == (11, 12)
    assert (second.line, second.value["k"].line, second.value["inner"].value["k"].line) == (13, 14, 16)


@pytest.mark.parametrize("data", ["", "/nowhere"])
def test_a_local_folder_may_be_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str) -> None:
    monkeypatch.setenv("LCMAT_DATA", data)
    assert locate(Source("clothes", "hub:a/b", str(tmp_path))) == str(tmp_path)
    assert locate(Source("clothes", "hub:a/b", str(tmp_path / "missing"))) == "hub:a/b"

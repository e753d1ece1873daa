"""`lcmat.curvature` as a whole: what it puts together, saves and shows."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

import lcmat
from landscape.cases import subset_of, tiny_network, true_gap, true_hessian
from lcmat import files
from lcmat.landscape.result import Key
from report.html_checks import check_page
from samples import digits_like, normalised_net, vectors

ROWS = [0, 4, 5, 11, 22]


@pytest.fixture(scope="module")
def report() -> lcmat.CurvatureReport:
    data = vectors(23, d=4, classes=3)
    splits = lcmat.Splits(data, vectors(12, d=4, classes=3), "made-up vectors")
    sets = {"mine <b>": [subset_of(data, ROWS), subset_of(data, list(range(11)))]}
    return lcmat.curvature(tiny_network(data), splits, sets, parameters=("head", "all"), resolution=5, lines=2)


@pytest.mark.parametrize("parameters", ["head", "all"])
def test_terms_are_those_of_the_explicit_hessian(report: lcmat.CurvatureReport, parameters: str) -> None:
    data = vectors(23, d=4, classes=3)
    model = tiny_network(data)
    flat = torch.cat([part.detach().flatten() for part in model.parameters()]).requires_grad_()
    gap = true_gap(model, flat, data, ROWS)
    [gradient] = torch.autograd.grad(gap, flat)
    hessian = true_hessian(model, data, ROWS)
    if parameters == "head":
        gradient, hessian = gradient[25:], hessian[25:, 25:]
    values = torch.linalg.eigvalsh(hessian)
    row = report.find("mine <b>", parameters=parameters, size=5)
    assert row.loss_gap == pytest.approx(abs(gap.item()), abs=1e-7)
    assert row.gradient == pytest.approx(float(gradient.norm()), rel=1e-6)
    assert row.spectrum.largest[0] == pytest.approx(float(values[-1]), rel=1e-4)
    assert row.spectrum.smallest[0] == pytest.approx(float(values[0]), rel=1e-4)
    assert row.curvature() == pytest.approx(0.1 / 2 * float(values.abs().max()), rel=1e-4)
    assert row.bound(0.5) == pytest.approx(row.gradient + 0.25 * float(values.abs().max()), rel=1e-4)
    assert sorted(row.sharpness) == [0.01, 0.05, 0.1, 0.5]
    # Where the radius is small the bound is close, and it is one.
    assert -1e-3 * row.bound(0.01) <= row.remainder(0.01) < 0.05 * row.bound(0.01)


def test_a_random_set_of_each_size_stands_beside(report: lcmat.CurvatureReport) -> None:
    assert [(row.key.name, row.key.size) for row in report.terms[:4]] == [
        ("mine <b>", 5),
        ("mine <b>", 11),
        ("uniform", 5),
        ("uniform", 11),
    ]
    assert Key("uniform", 5, 5 / 23) in report.diagonals
    assert "one random draw" in " ".join(report.notes)


def test_the_whole_set_differs_from_itself_nowhere() -> None:
    data = vectors(23, d=4, classes=3)
    splits = lcmat.Splits(data, vectors(12, d=4, classes=3), "made-up vectors")
    everything = subset_of(data, list(range(23)))
    report = lcmat.curvature(
        tiny_network(data), splits, everything, parameters=("head", "all"), baseline=False, resolution=3, lines=1
    )
    for row in report.terms:
        assert row.loss_gap == row.gradient == row.spectrum.magnitude == row.bound() == 0
        assert set(row.sharpness.values()) == {0.0}
    for parts in report.diagonals.values():
        assert [part.largest for part in parts] == [0, 0, 0, 0]
    assert report.plane is not None
    full, kept = report.plane.losses.values()
    torch.testing.assert_close(full, kept, atol=1e-12, rtol=0)
    assert report.generalisation[0].gap_train == pytest.approx(0, abs=1e-12)
    check_page(_page(report))


def _page(report: lcmat.CurvatureReport) -> str:
    from lcmat.landscape.page import describe
    from lcmat.report import render

    return render(describe(report))


def test_the_page_shows_everything(report: lcmat.CurvatureReport, tmp_path: Path) -> None:
    page = report.save_html(tmp_path / "page.html", title="A page").read_text(encoding="utf-8")
    reader = check_page(page)
    headings = reader.inside("h2")
    for part in ("The bound and its two terms", "Eigenvalues", "The diagonal form", "Loss surfaces", "Generalisation"):
        assert part in headings
    labels = [str(attributes.get("aria-label")) for attributes in reader.all("svg")]
    assert sum(label.startswith("L(T) − L(S)") for label in labels) == 4
    assert sum(label.startswith("Slices along 2 directions") for label in labels) == 4
    assert "<b>" not in page.split("<body>")[1]


def test_the_pictures_of_all_sets_share_their_scales(report: lcmat.CurvatureReport) -> None:
    from lcmat.landscape.page import describe
    from lcmat.report import Contours

    [surfaces] = [part for part in describe(report).sections if part.title == "Loss surfaces"]
    charts = [block for block in surfaces.blocks if isinstance(block, Contours)]
    assert len(charts) == 4
    assert len({(chart.scale, chart.most) for chart in charts}) == 1
    panels = torch.stack([values for chart in charts for _, values in chart.panels])
    assert charts[0].scale == (float(panels.min()), float(panels.max()))
    assert charts[0].most == max(float(chart.differences[0][1].abs().max()) for chart in charts)


def test_the_data_behind_the_page_is_saved(report: lcmat.CurvatureReport, tmp_path: Path) -> None:
    report.save(tmp_path)
    with (tmp_path / "terms.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 2 * 4
    first = report.terms[0]
    assert float(rows[2]["bound"]) == first.bound(0.1)
    assert float(rows[2]["sharpness_from_below"]) == first.sharpness[0.1]
    with (tmp_path / "eigenvalues.csv").open(encoding="utf-8") as file:
        values = [float(row["value"]) for row in csv.DictReader(file) if row["end"] == "smallest"]
    assert values[:3] == list(first.spectrum.smallest)
    content = files.read_json(tmp_path / "curvature.json")
    assert content["generalisation"][0]["name"] == "mine <b> (5)"
    assert {row["group"] for row in content["diagonal"]} == {"all classes", "class 0", "class 1", "class 2"}
    with np.load(tmp_path / "curves.npz", allow_pickle=False) as curves:
        assert curves["plane/T"].shape == (5, 5)
        assert curves["slice-1/uniform (5)"].shape == (51,)
        assert curves["variances/all classes"].shape == (18,)
        assert list(curves["variances/class 1"]) == sorted(curves["variances/class 1"], reverse=True)


def test_the_table_names_every_row(report: lcmat.CurvatureReport) -> None:
    lines = report.table().splitlines()
    assert lines[0].endswith("ρ = 0.1")
    assert len(lines) == 2 + len(report.terms)
    with pytest.raises(KeyError, match="found 2"):
        report.find("uniform")


def test_weights_of_the_method_change_the_terms() -> None:
    data = vectors(23, d=4, classes=3)
    model, subset = tiny_network(data), subset_of(data, ROWS, weights=[1, 2, 3, 4, 5])
    plain, weighted = (
        lcmat.curvature(model, data, {"S": subset}, pictures=False, weighted=weights).find("S").gradient
        for weights in (False, True)
    )
    assert plain != pytest.approx(weighted, rel=1e-3)


def test_wrong_use_is_refused_before_anything_is_computed() -> None:
    data = vectors(23, d=4, classes=3)
    model, subset = tiny_network(data), subset_of(data, ROWS)
    with pytest.raises(ValueError, match="'head', 'all' or both, got 'body'"):
        lcmat.curvature(model, data, subset, parameters="body")
    with pytest.raises(ValueError, match="rho and radii above 0"):
        lcmat.curvature(model, data, subset, rho=0)
    with pytest.raises(ValueError, match="odd resolution"):
        lcmat.curvature(model, data, subset, resolution=10)
    with pytest.raises(ValueError, match="at least one reduced set"):
        lcmat.curvature(model, data, {})
    with pytest.raises(ValueError, match="one set of each size"):
        lcmat.curvature(model, data, {"S": [subset, subset]})
    with pytest.raises(ValueError, match="chosen from 23 samples"):
        lcmat.curvature(model, vectors(20, d=4, classes=3), subset)
    images = digits_like(8)
    with pytest.raises(ValueError, match=r"training mode.*model.eval\(\)"):
        lcmat.curvature(normalised_net().train(), images, subset_of(images, [0]))

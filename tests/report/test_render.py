"""Pages as HTML: whole, self-contained, escaped."""

import base64
import io

import pytest
import torch
from PIL import Image

from lcmat.report import (
    Bar,
    Block,
    Bullets,
    Code,
    Curves,
    Facts,
    Forest,
    Gallery,
    HeatMap,
    Page,
    Pictures,
    Point,
    Section,
    Series,
    Strip,
    Table,
    Text,
    render,
)
from report.html_checks import Reader, check_page

NASTY = '<script>alert("x")</script> & "quoted" \'too\''


def every_block(text: str) -> tuple[Block, ...]:
    images = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).to(torch.uint8)
    point = Point(1.0, 50.0, 45.0, 55.0)
    series = (Series(text, (point, Point(20.0, 60.0))), Series("uniform", (point,), dashed=True))
    return (
        Table(text, (text, "b"), ((text, text), ("c", text)), (1,), ("good", "bad")),
        Curves(text, text, text, text, series, Point(0.0, 90.0, 89.0, 91.0), text),
        Forest(text, text, text, (Bar(text, text, 1.0, -1.0, 3.0, text), Bar("b", "", 2.0, None, None, text)), 0.0),
        HeatMap(text, text, (text, "b"), (text,), ((1.0,), (None,)), (((text, text),), (("", ""),))),
        Gallery(text, (Pictures(text, (Strip(text, text, images, text), Strip(text, "0", images[:0], text))),)),
        Code(text),
        Bullets((text, text)),
        Facts(((text, text),)),
        Text(text),
    )


def page_of(text: str) -> Page:
    return Page(text, (text,), (Section(text, every_block(text)), Section("empty", ())), text)


def test_a_page_with_every_block_is_whole_and_fetches_nothing() -> None:
    reader = check_page(render(page_of("plain words")))
    assert reader.inside("title") == reader.inside("h1") == ["plain words"]
    assert len(reader.all("table")) == 1
    assert len(reader.all("img")) == 1


def test_every_text_is_escaped() -> None:
    html = render(page_of(NASTY))
    reader = check_page(html)
    assert html.count("<script") == 1
    assert {NASTY} == {*reader.inside("h1"), *reader.inside("h2"), *reader.inside("code"), *reader.inside("dd")}
    assert NASTY in [attributes["alt"] for attributes in reader.all("img")]


def test_a_section_without_content_is_left_out() -> None:
    assert "empty" not in Reader(render(page_of("x"))).inside("h2")


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    table = Table("digits, 5 % kept", ("a",), (("b",),))
    assert Reader(render(Page("x", (), (Section("y", (table,)),)))).inside("figcaption") == ["digits, 5\u00a0% kept"]


def test_the_contents_lead_to_every_section() -> None:
    parts = tuple(Section(f"part {place}", (Text("x"),)) for place in range(3))
    reader = check_page(render(Page("x", (), (*parts, Section("empty", ())))))
    assert [link["href"] for link in reader.all("a")] == [f"#{head['id']}" for head in reader.all("h2")]
    assert reader.inside("a") == ["part 0", "part 1", "part 2"]
    assert not Reader(render(Page("x", (), parts[:2]))).all("a")


def test_a_folded_table_opens_at_its_caption() -> None:
    table = Table("more", ("a",), (("b",),), folded=True)
    reader = check_page(render(Page("x", (), (Section("y", (table,)),))))
    assert reader.inside("summary") == ["more"]
    assert not reader.inside("figcaption")


def test_bands_lie_behind_all_lines() -> None:
    points = (Point(1.0, 50.0, 45.0, 55.0), Point(20.0, 60.0, 50.0, 70.0))
    curves = Curves("t", "s", "x", "y", (Series("craig", points), Series("herding", points)))
    html = render(Page("x", (), (Section("y", (curves,)),)))
    assert html.count('class="area c') == 2
    assert html.rindex('class="area c') < html.index('class="line')


def test_the_policy_forbids_every_request() -> None:
    policy = next(a["content"] for a in check_page(render(page_of("x"))).all("meta") if "http-equiv" in a)
    rules = str(policy).split("; ")
    assert rules[:3] == ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"]
    assert len(rules) == 4


def test_pictures_hold_the_pixels_they_were_given() -> None:
    images = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).to(torch.uint8)
    page = Page("x", (), (Section("y", (Gallery("g", (Pictures("p", (Strip("s", "2", images, "alt"),)),)),)),))
    source = str(check_page(render(page)).all("img")[0]["src"])
    sheet = Image.open(io.BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,"))))
    assert sheet.size == (17, 8)
    second = sheet.convert("RGB").crop((9, 0, 17, 8))
    assert second.tobytes() == images[1].permute(1, 2, 0).contiguous().numpy().tobytes()


def test_a_table_must_be_even() -> None:
    with pytest.raises(ValueError, match="expected 2 texts in every row of the table 'uneven'"):
        Table("uneven", ("a", "b"), (("c",),))
    with pytest.raises(ValueError, match="expected a tone for each of 1 rows"):
        Table("toned", ("a",), (("c",),), tones=("good", "bad"))

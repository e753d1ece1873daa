"""Pages in a real browser: a click on a heading sorts, nothing is fetched, nothing is complained of."""

import html
import re
from pathlib import Path

import pytest

from browser import find_browser, look
from lcmat.report import HeatMap, Page, Section, Table, Text, render

# The page is framed, so that a script from outside can press its buttons: its own policy allows no other script in it.
WRAPPER = """<!DOCTYPE html><body>
<iframe id="page" style="width:900px;height:900px;border:0" srcdoc="{page}"></iframe>
<script>
onload = () => {{
  const inside = page.contentDocument, column = (place) =>
    [...inside.querySelectorAll("tbody tr")].map(row => row.cells[place].textContent.trim()).join(" ");
  const found = [column(1)];
  const [name, value] = inside.querySelectorAll("thead button");
  value.focus();
  found.push(inside.activeElement === value);
  value.click(); found.push(column(1), value.parentElement.getAttribute("aria-sort"));
  value.click(); found.push(column(1), value.parentElement.getAttribute("aria-sort"));
  name.click(); found.push(column(0), value.parentElement.getAttribute("aria-sort"));
  found.push(page.contentWindow.performance.getEntriesByType("resource").length);
  document.title = found.join("|");
}};
</script>"""


def page() -> str:
    rows = (("b", "−1.5 (2)", "x"), ("a", "10.0 ± 1", "y"), ("c", "1,000", "z"), ("d", "–", ""))
    table = Table("values", ("name", "value", "note"), rows, (1,))
    heat = HeatMap("map", "in words", ("a",), ("b",), ((1.0,),), ((("1", "+1.0"),),))
    return render(Page("A page", ("It sorts.",), (Section("Values", (table, heat, Text("text"))),)))


def test_headings_sort_by_number_and_by_name(tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(WRAPPER.format(page=html.escape(page())), encoding="utf-8")
    seen = look(tmp_path, wrapper.as_uri())
    found = re.search(r"<title>(.*?)</title>", seen.stdout)
    assert found, seen.stdout[:500]
    assert found[1].split("|") == [
        "−1.5 (2) 10.0 ± 1 1,000 –",
        "true",
        "−1.5 (2) 10.0 ± 1 1,000 –",
        "ascending",
        "1,000 10.0 ± 1 −1.5 (2) –",
        "descending",
        "a b c d",
        "",
        "0",
    ]
    assert "CONSOLE" not in seen.stderr


SCHEME = """<!DOCTYPE html><body>
<iframe id="page" srcdoc="{page}"></iframe>
<script>
onload = () => document.title = getComputedStyle(page.contentDocument.body).backgroundColor;
</script>"""


@pytest.mark.parametrize(("dark", "paper"), [(False, "rgb(255, 255, 255)"), (True, "rgb(20, 23, 27)")])
def test_the_page_follows_the_scheme_of_the_reader(tmp_path: Path, dark: bool, paper: str) -> None:
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(SCHEME.format(page=html.escape(page())), encoding="utf-8")
    seen = look(tmp_path, wrapper.as_uri(), f"--blink-settings=preferredColorScheme={0 if dark else 1}")
    assert f"<title>{paper}</title>" in seen.stdout


def test_the_script_changes_no_word_of_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(), encoding="utf-8")
    seen = look(tmp_path, path.as_uri())
    assert "<button" in seen.stdout
    assert "<button" not in page()  # so that it is whole where scripts are off
    assert "CONSOLE" not in seen.stderr

    def words(document: str) -> list[str]:
        body = document.partition("<body>")[2].partition("<script")[0]
        return html.unescape(re.sub(r"<[^>]+>", " ", body)).split()

    assert words(seen.stdout) == words(page())


def test_a_missing_browser_is_a_failure_where_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("LCMAT_NEED_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="needs a browser"):
        find_browser()
    monkeypatch.delenv("LCMAT_NEED_BROWSER")
    with pytest.raises(pytest.skip.Exception, match="needs a browser"):
        find_browser()

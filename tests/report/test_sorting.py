"""Tables in a real browser: a click on a heading sorts, nothing is fetched, nothing is complained of."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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


def browser() -> str:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("needs chromium, which this machine does not have")
    return found


def look(tmp_path: Path, address: str) -> subprocess.CompletedProcess[str]:
    command = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        address,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def page() -> str:
    rows = (("b", "−1.5 (2)", "x"), ("a", "10.0 ± 1", "y"), ("c", "1,000", "z"), ("d", "–", ""))
    table = Table("values", ("name", "value", "note"), rows, (1,))
    heat = HeatMap("map", "in words", ("a",), ("b",), ((1.0,),), ((("1", "+1.0"),),))
    return render(Page("A page", ("It sorts.",), (Section("Values", (table, heat, Text("text"))),)))


@pytest.mark.slow
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


@pytest.mark.slow
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

"""What the documents show is true: Python examples run, commands parse, links lead somewhere."""

import re
import runpy
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from lcmat.cli import app
from lcmat.cli.parsing import method_options
from lcmat.condensation import CONDENSERS
from lcmat.registry import Entry
from lcmat.selection import SELECTORS
from lcmat.study.config import read_study

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# A comment before a block says why it cannot run here: <!-- not run: needs a GPU -->
BLOCK = re.compile(r"(?P<not_run><!-- not run: .+? -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A block of code in a document."""

    language: str
    text: str
    line: int
    runs: bool


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text")) + 1
        yield Block(match["language"], match["text"], line, runs=match["not_run"] is None)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def commands(document: Path) -> Iterator[tuple[int, list[str]]]:
    """Line and words of every command that a document shows."""
    for block in blocks(document):
        if block.language in {"sh", "bash", "console"}:
            for line in block.text.replace("\\\n", " ").splitlines():
                yield block.line, shlex.split(line.removeprefix("$ "), comments=True)


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if any(b.language == "python" for b in blocks(d))], ids=name)
def test_python_examples_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "example"}
    for block in blocks(document):
        if block.language == "python" and block.runs:
            # Empty lines before it make a traceback name the line of the document.
            exec(compile("\n" * (block.line - 1) + block.text, document, "exec"), namespace)


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if any(commands(d))], ids=name)
def test_commands_parse(document: Path) -> None:
    group: Any = typer.main.get_command(app)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for line, words in commands(document):
        place = f"{name(document)}:{line}: {' '.join(words)}"
        match words:
            case ["make", *wanted]:
                assert {word for word in wanted if "=" not in word} <= targets, place
            case ["lcmat", command, *arguments] if not command.startswith("-"):
                assert command in group.commands, place
                context = group.commands[command].make_context(command, arguments)
                if command == "select":
                    method_options(context.params["method"], context.params["set_"] or [])


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    missing = [target for target in targets if target and not (document.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.parent != ROOT], ids=name)
def test_links_out_of_the_site_lead_to_what_it_makes_pages_of(document: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]+)", document.read_text(encoding="utf-8"))
    outside = [
        target.relative_to(ROOT).as_posix()
        for target in ((document.parent / link).resolve() for link in links if "://" not in link)
        if not target.is_relative_to(ROOT / "docs")
    ]
    assert all(re.fullmatch(r"(examples|recipes)(/[\w-]+\.(py|toml))?", target) for target in outside), outside


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")


def test_the_study_that_is_shown_has_no_mistake(tmp_path: Path) -> None:
    [block] = [block for block in blocks(ROOT / "docs" / "studies.md") if block.language == "toml"]
    file = tmp_path / "mine.toml"
    file.write_text(block.text, encoding="utf-8")
    assert [method.text for method in read_study(file).grids[0].methods] == [
        "uniform",
        "lcmat-s:rho=0.1",
        "facility-location",
    ]
    assert read_study(file, quick=True).grids[0].data == ("digits",)
    file.write_text(block.text.replace("seeds = 6", "seeds = -1").replace("lcmat-s:rho=0.1", "lcmats"))
    with pytest.raises(ValueError, match=r"expected a whole number of at least 1, got -1\n.*did you mean lcmat-s"):
        read_study(file)


TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=name)
def test_a_tutorial_is_its_example(tutorial: Path) -> None:
    example = (ROOT / "examples" / f"{tutorial.stem}.py").read_text(encoding="utf-8")
    body = example.split('"""', 2)[2]
    shown = "\n".join(block.text for block in blocks(tutorial) if block.language == "python")
    assert [line for line in shown.splitlines() if line] == [line for line in body.splitlines() if line]


def navigation() -> list[str]:
    """The pages that the site's navigation leads to."""
    entries = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return re.findall(r"(\S+\.md)$", entries, re.M)


def test_the_navigation_leads_to_every_page() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = {"contributing.md", "changelog.md", "examples/index.md", "recipes/index.md"}
    assert sorted(navigation()) == sorted(pages | made)


@pytest.mark.parametrize(
    ("folder", "entry"),
    [
        *(pytest.param("methods", entry, id=f"methods/{entry.name}") for entry in SELECTORS),
        *(pytest.param("condensers", entry, id=f"condensers/{entry.name}") for entry in CONDENSERS),
    ],
)
def test_every_method_has_a_page_with_its_options(folder: str, entry: Entry[Any, Any]) -> None:
    page = (ROOT / "docs" / folder / f"{entry.name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {entry.name}\n")
    assert f"({entry.name}.md)" in (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]*)`? \|", page, re.M))
    assert shown.keys() == entry.options.keys()
    for option, default in ((option, entry.options[option].default) for option in shown):
        wanted = f"{default:g}" if isinstance(default, float) else str(default) or "none"
        written = shown[option].strip()
        assert wanted in {written, f"{float(written):g}" if re.fullmatch(r"[\d.e-]+", written) else written}, option


def test_the_tables_of_methods_say_what_the_methods_say_of_themselves() -> None:
    page = (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")

    def mark(holds: bool, word: str = "yes") -> str:
        return word if holds else ""

    for entry in SELECTORS:
        facts, link = entry.facts, f"[{entry.name}]({entry.name}.md)"
        needs = ", ".join(facts.needs) or "nothing"
        rows = [
            (link, entry.summary, needs, mark(facts.weighted), mark(facts.several_points)),
            (link, facts.cost, mark(facts.validation), mark(not facts.random), facts.reference),
        ]
        for row in rows:
            assert f"| {' | '.join(row)} |\n" in page
    with_coverage, with_cost = ([e.name for e in SELECTORS if e.accepts(word)] for word in ("coverage", "purse"))
    assert set(with_coverage) == {"lcmat-s", "craig", "adacore", "facility-location", "auto"}, "the page names them"
    assert set(with_cost) == {*with_coverage, "graph-cut", "log-determinant"} - {"auto"}, "the page names them"


@pytest.mark.parametrize("entry", list(SELECTORS), ids=lambda entry: str(entry.name))
def test_every_method_s_page_names_source_and_cost(entry: Entry[Any, Any]) -> None:
    page = (ROOT / "docs" / "methods" / f"{entry.name}.md").read_text(encoding="utf-8")
    assert re.search(r"\bSources?:", page)
    assert re.search(r"\bCost\b", page)
    assert "eights" in page, "whether it defines weights"


def test_a_block_that_cannot_run_is_told_apart(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text(
        "<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n\n```sh\nlcmat demo\n```\n", encoding="utf-8"
    )
    assert [(block.language, block.runs, block.line) for block in blocks(document)] == [
        ("python", False, 3),
        ("sh", True, 7),
    ]

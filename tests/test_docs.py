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


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")


def test_a_block_that_cannot_run_is_told_apart(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text(
        "<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n\n```sh\nlcmat demo\n```\n", encoding="utf-8"
    )
    assert [(block.language, block.runs, block.line) for block in blocks(document)] == [
        ("python", False, 3),
        ("sh", True, 7),
    ]

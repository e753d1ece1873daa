"""What the site shows beside the pages in docs/: examples, recipes, how to contribute, and the changes.

The pages link to these files as they lie in the repository; in the site the links lead to pages made of the same files.
"""

import ast
import logging
import posixpath
import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_LOG = logging.getLogger("mkdocs.hooks.lcmat")
_INTRODUCTIONS = {
    "examples": "Each of them runs as it is; the tests run all of them.",
    "recipes": "`lcmat reproduce NAME` runs a study, with `--quick` its small form.",
}
_SHOWN = re.compile(r"\]\((?:\.\./)+(?P<folder>examples|recipes)(?:/(?P<name>[\w.-]+))?\)")
_FETCHED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\s(?:src|href)="(?:https?:)?//[^"]*"')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each example and recipe, their lists, and the documents of the repository's root."""
    pages = {}
    for folder, introduction in _INTRODUCTIONS.items():
        lines = [f"# {folder.capitalize()}", "", introduction, ""]
        for path in sorted(path for path in (ROOT / folder).iterdir() if path.suffix in {".py", ".toml"}):
            source = path.read_text(encoding="utf-8")
            language = path.suffix[1:].replace("py", "python")
            pages[f"{folder}/{_page(path.name)}"] = f"# {path.name}\n\n```{language}\n{source}```\n"
            lines.append(f"- [{path.name}]({_page(path.name)}): {_summary(source, language)}")
        pages[f"{folder}/index.md"] = "\n".join(lines) + "\n"
    for name in ("CONTRIBUTING", "CHANGELOG"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        pages[f"{name.lower()}.md"] = text.replace("](docs/", "](")
    for address, content in pages.items():
        made = File.generated(config, address, content=content)
        if not address.endswith("index.md") and "/" in address:
            made.inclusion = InclusionLevel.NOT_IN_NAV  # its list leads to it
        files.append(made)
    return files


def _page(name: str) -> str:
    """The page of a file: `replay_memory.md` of an example, `rho.toml.md` of a recipe, as names may come twice."""
    return f"{name.removesuffix('.py')}.md"


def _summary(source: str, language: str) -> str:
    """The first line of a script's docstring, or the title of a study."""
    if language == "toml":
        return str(tomllib.loads(source)["title"])
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let links to examples and recipes lead to their pages."""
    here = posixpath.dirname(page.file.src_uri)

    def address(match: re.Match[str]) -> str:
        target = f"{match['folder']}/{_page(match['name']) if match['name'] else 'index.md'}"
        return f"]({posixpath.relpath(target, here or '.')})"

    return _SHOWN.sub(address, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Warn, and so fail with --strict, where a page would ask another host for something."""
    for match in _FETCHED.finditer(output):
        _LOG.warning("%s is not whole without a network: %s", page.file.dest_uri, match[0])
    return output

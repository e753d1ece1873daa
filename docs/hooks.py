"""What the site shows beside the pages in docs/: the examples, how to contribute, and the changes.

The pages link to examples/ as it lies in the repository; in the site these links lead to pages made of the same files.
"""

import ast
import logging
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_LOG = logging.getLogger("mkdocs.hooks.lcmat")
_EXAMPLE = re.compile(r"\]\((?:\.\./)+examples(?:/(?P<stem>\w+)\.py)?\)")

_FETCHED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\s(?:src|href)="(?:https?:)?//[^"]*"')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each example, their list, and the documents of the repository's root."""
    pages = {}
    lines = ["# Examples", "", "Each of them runs as it is; the tests run all of them.", ""]
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        summary = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
        pages[f"examples/{path.stem}.md"] = f"# {path.name}\n\n```python\n{source}```\n"
        lines.append(f"- [{path.name}]({path.stem}.md): {summary}")
    pages["examples/index.md"] = "\n".join(lines) + "\n"
    for name in ("CONTRIBUTING", "CHANGELOG"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        pages[f"{name.lower()}.md"] = text.replace("](docs/", "](")
    for address, content in pages.items():
        files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let links to examples lead to their pages."""
    here = posixpath.dirname(page.file.src_uri)

    def address(match: re.Match[str]) -> str:
        target = f"examples/{match['stem'] or 'index'}.md"
        return f"]({posixpath.relpath(target, here or '.')})"

    return _EXAMPLE.sub(address, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Warn, and so fail with --strict, where a page would ask another host for something."""
    for match in _FETCHED.finditer(output):
        _LOG.warning("%s is not whole without a network: %s", page.file.dest_uri, match[0])
    return output

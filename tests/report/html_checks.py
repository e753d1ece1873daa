"""A strict reading of a page: every tag closed, nothing fetched from elsewhere."""

import base64
import hashlib
import re
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Reader(HTMLParser):
    """Collects tags, attributes and texts, and what is wrong with them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.feed(html)
        self.close()
        self.wrong += [f"<{tag}> is never closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> closes {self.open[-1:]} at line {self.getpos()[0]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data.strip()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every tag of a name."""
        return [attributes for name, attributes in self.tags if name == tag]

    def inside(self, tag: str) -> list[str]:
        """The texts directly inside a tag of a name."""
        return [text for parent, text in self.texts if parent == tag]


def check_page(html: str) -> Reader:
    """Read a page and assert what holds for every one."""
    reader = Reader(html)
    assert html.startswith("<!DOCTYPE html>")
    assert not reader.wrong
    assert len(reader.all("title")) == len(reader.all("h1")) == 1
    # One script, which sorts tables; the page's policy lets no other one run.
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert reader.all("script") == [{}]
    assert f"script-src 'sha256-{digest}'" in html
    marks = {f"#{attributes['id']}" for _, attributes in reader.tags if "id" in attributes}
    for tag, attributes in reader.tags:
        for name, value in attributes.items():
            if name in {"src", "href", "xlink:href", "srcset", "action", "data", "poster"}:
                inside = str(value).startswith("data:") or value in marks
                assert inside, f"<{tag} {name}> leaves the page: {value}"
    style = "".join(reader.inside("style"))
    assert "url(" not in style
    assert "@import" not in style
    assert "://" not in html
    assert all((attributes.get("alt") or "").strip() for attributes in reader.all("img"))
    pictured = [attributes for attributes in reader.all("svg") if attributes.get("aria-hidden") != "true"]
    assert all(attributes.get("role") == "img" and attributes.get("aria-label") for attributes in pictured)
    # A heading becomes a button, which must have a name.
    assert len(reader.inside("th")) == len(reader.all("th"))
    identifiers = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    headings = [int(tag[1]) for tag, _ in reader.tags if tag in {"h1", "h2", "h3"}]
    assert all(after - before <= 1 for before, after in zip([0, *headings], headings, strict=False))
    return reader

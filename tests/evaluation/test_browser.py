"""The page in a real browser: at desktop and phone width nothing makes its body scroll sideways."""

import html
import re
from pathlib import Path

import pytest

from browser import look
from evaluation.cases import digits, picks
from lcmat import evaluate

WRAPPER = """<!DOCTYPE html><body>
<iframe id="page" style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe>
<script>
onload = () => {{
  const inside = page.contentDocument;
  inside.querySelectorAll("details").forEach(part => part.open = true);
  const wide = [...inside.querySelectorAll("body *")].filter(part =>
    part.getBoundingClientRect().right > inside.documentElement.clientWidth + 1 && !part.closest(".scroll, pre"));
  const loaded = [...inside.images].filter(image => image.naturalWidth > 0).length;
  const over = inside.documentElement.scrollWidth - inside.documentElement.clientWidth;  // text widens no element
  document.title = `wide=${{wide.length + over}} images=${{inside.images.length}} loaded=${{loaded}}`;
}};
</script>"""


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_its_window(tmp_path: Path, width: int) -> None:
    subsets = {"lcmat-s:points=all,temperature=4,subdimensions=10": picks(20, (0, 1)), "craig": picks(30, (0, 1))}
    report = evaluate(digits(), subsets, nets="convnet:width=8,depth=1", epochs=1, seeds=(0, 1), full=True)
    page = report.save_html(tmp_path / "report.html").read_text(encoding="utf-8")
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(WRAPPER.format(width=width, page=html.escape(page)), encoding="utf-8")
    seen = look(tmp_path, wrapper.as_uri()).stdout
    found = re.search(r"<title>wide=(\d+) images=(\d+) loaded=(\d+)</title>", seen)
    assert found, seen[:500]
    wide, images, loaded = map(int, found.groups())
    assert wide == 0
    assert images == loaded > 0

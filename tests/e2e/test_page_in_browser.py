"""The page of a run in a real browser: nothing in it runs or is fetched, and it fits a phone, a desk and paper."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.browser import opened
from tests.unit.reports.pages import page, spoiled
from tests.workflow.stage import Stage
from tests.workflow.test_trial import GAIN, carried_out, plan

WIDTHS = (390, 1200)

# A page of the test's own, which looks into the other one; that one has no script, and its policy allows none.
FRAMES = """<!DOCTYPE html><meta charset="utf-8"><body>{frames}<pre id="found"></pre><script>
function look(frame) {{
  const win = frame.contentWindow, doc = win.document, wide = doc.documentElement.clientWidth;
  const out = [...doc.querySelectorAll("main *")].filter(one => {{
    const box = one.getBoundingClientRect();
    return box.width && box.right > wide + 1 && getComputedStyle(one).clipPath === "none";
  }});
  const small = [...doc.querySelectorAll("svg.drawing text")].filter(one => one.getBoundingClientRect().height < 9);
  const drawn = [...doc.querySelectorAll("figure svg.drawing")].map(one => one.getBoundingClientRect().width);
  return {{
    wide, scrolls: doc.documentElement.scrollWidth, small: small.length,
    out: out.map(one => one.outerHTML.slice(0, 200)),
    pwned: win.pwned === undefined ? null : 1, fetched: win.performance.getEntriesByType("resource").length,
    scripts: doc.querySelectorAll("script,img,iframe,object,embed,link,form,a,base").length,
    drawings: drawn.length, narrowest: Math.min(...drawn), title: doc.title, text: doc.body.innerText.length,
  }};
}}
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(look);
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script>"""


def looked_at(folder: Path, *texts: str) -> list[dict[str, Any]]:
    """What a browser makes of pages, each as wide as a phone and as wide as a desk."""
    frames = []
    for number, text in enumerate(texts):
        (folder / f"{number}.html").write_text(text, encoding="utf-8")
        frames += [f'<iframe src="{number}.html" width="{wide}" height="900" frameborder="0"></iframe>'
                   for wide in WIDTHS]  # fmt: skip
    (folder / "frames.html").write_text(FRAMES.format(frames="".join(frames)), encoding="utf-8")
    document = opened(folder / "frames.html", "--dump-dom")
    match = re.search(r'<pre id="found">(.*?)</pre>', document, re.DOTALL)
    assert match is not None, document[-2000:]
    assert match[1], document[-2000:]
    found: list[dict[str, Any]] = json.loads(html.unescape(match[1]))
    return found


@pytest.fixture(scope="module")
def stage() -> Stage:
    made = Stage()
    carried_out(made, plan(8, GAIN))
    return made


def test_it_fits_and_nothing_of_a_hostile_record_runs(stage: Stage, tmp_path: Path) -> None:
    found = looked_at(tmp_path, page(stage), page(stage, alter=spoiled))

    assert [one["wide"] for one in found] == [*WIDTHS, *WIDTHS]
    for one in found:
        assert (one["pwned"], one["fetched"], one["scripts"]) == (None, 0, 0)
        assert one["drawings"] >= 6
        assert one["small"] == 0
        assert one["narrowest"] >= 250
        assert one["text"] > 2000
        assert one["title"].startswith("changectl run R1")
        assert one["scrolls"] <= one["wide"], one["out"]


def test_it_prints(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "run.html").write_text(page(stage), encoding="utf-8")
    opened(tmp_path / "run.html", f"--print-to-pdf={tmp_path / 'run.pdf'}", "--no-pdf-header-footer")
    printed = (tmp_path / "run.pdf").read_bytes()

    assert printed.startswith(b"%PDF")
    assert 3 <= printed.count(b"/Type /Page\n") + printed.count(b"/Type/Page\n") + printed.count(b"/Type /Page>") <= 12

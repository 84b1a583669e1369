"""The page of a run: all of it in one file, nothing of the record is ever markup, and what is lacking is said."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.pages import HOSTILE, page, spoiled
from tests.workflow.incident_stage import crash_looping, mend
from tests.workflow.live_stage import Users, applied, live_stage
from tests.workflow.stage import BETTER, WORSE, Stage
from tests.workflow.test_rollout import THREE, rolled
from tests.workflow.test_trial import GAIN, carried_out, plan

from changectl.reports._svg import escaped, tag, ticks

TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "footer", "h1", "h2", "h3", "p", "div", "span", "b", "dl",
    "dt", "dd", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "pre", "code", "svg",
    "defs", "pattern", "path", "circle", "line", "rect", "text",
}  # fmt: skip
VOID = {"meta"}


class Reader(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.unclosed: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "circle") or self.unclosed[-1] == tag:
            assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def trial(slots: int = BETTER, expect: str = GAIN, effort: str = "standard") -> Stage:
    stage = Stage()
    carried_out(stage, plan(slots, expect, effort))
    return stage


@pytest.fixture(scope="module")
def gain() -> Stage:
    return trial()


def test_it_is_one_whole_page_that_fetches_nothing_and_runs_nothing(gain: Stage) -> None:
    text = page(gain)
    found = Reader(text)

    assert (set(found.tags) - TAGS, found.unclosed) == (set(), [])
    names = {name for name, _ in found.attributes}
    assert names.isdisjoint({"href", "src", "srcset", "action", "style", "srcdoc", "xlink:href", "data"})
    assert not [name for name in names if name.startswith("on")]
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<>]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody fetches
    assert "url(" not in text.replace("url(#", "")
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert len(text) < 200_000


def test_everything_that_is_to_be_seen_is_there(gain: Stage) -> None:
    text = " ".join("".join(Reader(page(gain)).texts).split())
    for part in (
        "parameter parallel: 4 (as found) → 8", "✓", "improved", "a story", "The verdict", "expected -20%",
        "Before and after", "ttft_user_p50 at normal", "Distributions", "Time to the first token at normal",
        "before 40ms, 95 % by 40ms (96 requests)", "Phases over time", "Where the time went", "What happened when",
        "ExecStart=/opt/llama-server --model /srv/m.gguf --parallel 8", "changectl judge R1", "The plan",
    ):  # fmt: skip
        assert part in text, part
    assert text.count("phase by phase") == 3


def test_before_and_after_differ_in_form_and_not_in_colour_alone(gain: Stage) -> None:
    text = page(gain)
    classes = [value for name, value in Reader(text).attributes if name == "class"]

    assert {"curve before", "curve after", "dot before", "dot after", "band before", "band after"} <= set(classes)
    assert re.search(r"\.curve\.before\{[^}]*dasharray", text)
    assert re.search(r"\.band\.after\{fill:url\(#hatch\)", text)
    assert "@media print" in text
    assert "prefers-color-scheme:dark" in text


@pytest.mark.parametrize("slots", [BETTER, WORSE])
def test_nothing_of_the_record_is_ever_markup(slots: int) -> None:
    stage = trial(slots)
    text = page(stage, alter=spoiled)
    found = Reader(text)

    assert (set(found.tags) - TAGS, found.unclosed) == (set(), [])
    assert {name for name, _ in found.attributes}.isdisjoint({"href", "src", "onerror"})
    assert "<script" not in text
    assert not {"\x1b", "‮"} & set(text)
    told = "".join(found.texts)
    assert told.count("<script>window.pwned=1</script>") > 50  # as words that a person can read
    assert "Distributions" in told
    assert any(HOSTILE[:20] in value for name, value in found.attributes) or "data-name" in text


@given(st.text(), st.text(min_size=1))
def test_no_text_and_no_attribute_becomes_markup(text: str, value: str) -> None:
    made = tag("td", text, data_name=value)
    found = Reader(made)

    assert (found.tags, [name for name, _ in found.attributes]) == (["td"], ["data-name"])
    assert not [one for one in made if one != "\n" and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert tag("p", escaped(text)) == tag("p", text)


def test_without_raw_records_it_says_so_and_shows_the_rest(gain: Stage) -> None:
    text = "".join(Reader(page(gain, whole=False)).texts)

    assert "raw records are missing from the drawings" in text
    assert "Distributions" not in text
    assert "Phases over time" in text


def refused() -> Stage:
    stage = Stage()
    stage.host.read_only = ("/etc",)
    carried_out(stage, plan(BETTER, GAIN))
    return stage


def incident() -> Stage:
    stage = crash_looping()
    mend(stage)
    return stage


def live() -> Stage:
    stage = live_stage(Users())
    applied(stage, "{observe: 5m}")
    return stage


def three() -> Stage:
    stage = Stage(THREE)
    rolled(stage)
    return stage


def failing() -> Stage:
    """So many requests fail that there are figures without end."""
    stage = Stage()
    stage.host.speed = lambda argv, streams: (20, 5)
    carried_out(stage, plan(BETTER, GAIN, effort="quick"))
    for digest, data in stage.records.blobs.items():
        stage.records.blobs[digest] = data.replace(b'"cls": "ok"', b'"cls": "http_5xx"')
    return stage


@pytest.mark.parametrize("story", [refused, incident, live, three, failing])
def test_every_kind_of_run_has_a_page(story: Callable[[], Stage]) -> None:
    stage = story()
    found = Reader(page(stage))

    assert (set(found.tags) - TAGS, found.unclosed) == (set(), [])
    text = "".join(found.texts)
    assert "What happened when" in text
    if story is three:
        assert all(f"Distributions on {name}" in text for name in THREE)


@given(st.floats(0, 1e6), st.floats(1e-3, 1e3))
def test_ticks_are_few_and_lie_between_the_ends(low: float, share: float) -> None:
    size = share * max(low, 1e-6)
    found = ticks(low, low + size)

    assert len(found) <= 7
    assert all(low - size * 1e-6 <= one <= low + size * (1 + 1e-6) for one in found)

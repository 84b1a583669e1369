"""Reads the project's pages: their headings, links, and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TOP = ("README.md", "README.zh-CN.md", "CHANGELOG.md", "CONTRIBUTING.md")

_FENCE = re.compile(r"^```(.*)$")
_HEADING = re.compile(r"^(#{1,6}) (.+?)\s*$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_CALL = re.compile(r"(?:^|&& |\|\| |\| |; |\$\(|\bif |! |\$ )changectl((?: [^|;&>\n)]*)?)")
_TEXTS = ("event 1", "snapshot 1")  # first lines of formats, not commands
_COMMENT = re.compile(r"(^|\s+)#(?!!).*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: ```` ```LANGUAGE INFO ````."""

    page: str
    line: int
    language: str
    info: str
    text: str

    @property
    def title(self) -> str:
        """The file that the block is, from its first line `# some/file.yml`; empty: a fragment."""
        first = self.text.split("\n", 1)[0]
        match = re.fullmatch(r"# ([\w./-]+\.\w+)", first)
        return match[1] if match else ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    name: str  # relative to the project's root
    blocks: tuple[Block, ...]
    prose: str  # the text without its blocks

    @property
    def path(self) -> Path:
        return ROOT / self.name

    @property
    def headings(self) -> list[tuple[int, str]]:
        found = (_HEADING.match(line) for line in self.prose.splitlines())
        return [(len(match[1]), match[2]) for match in found if match]

    @property
    def links(self) -> list[str]:
        return _LINK.findall(self.prose)

    @property
    def anchors(self) -> set[str]:
        return {anchor(text) for _, text in self.headings}

    @property
    def calls(self) -> list[str]:
        """What is typed after `changectl`, in shell blocks and in inline code."""
        lines = [_COMMENT.sub("", line) for block in self.blocks if block.language == "sh" for line in joined(block)]
        inline = [code for code in _CODE.findall(self.prose) if code.startswith("changectl")]
        found = [call.strip() for line in [*lines, *inline] for call in _CALL.findall(line.strip())]
        return [call for call in found if call not in _TEXTS]

    def section(self, heading: str) -> str:
        """The text below a heading, down to the next of its level."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        start = lines.index(heading)
        level = heading.split(" ")[0]
        rest = lines[start + 1 :]
        end = next((index for index, line in enumerate(rest) if line.startswith(f"{level} ")), len(rest))
        return "\n".join(rest[:end])


def joined(block: Block) -> list[str]:
    """A shell block's lines, those that end with a backslash joined with the next."""
    return block.text.replace("\\\n", " ").split("\n")


def anchor(heading: str) -> str:
    """The anchor that a heading gets."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda match: match[1] or "", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def page(name: str) -> Page:
    blocks: list[Block] = []
    prose: list[str] = []
    opened: tuple[int, str] | None = None
    inside: list[str] = []
    for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, inside = (number, fence[1].strip()), []
        elif opened is not None and line == "```":
            language, _, info = opened[1].partition(" ")
            blocks.append(Block(name, opened[0], language, info.strip(), "\n".join(inside)))
            opened = None
        else:
            (prose if opened is None else inside).append(line)
    assert opened is None, f"{name}: the block of line {opened[0] if opened else 0} is not closed"
    return Page(name, tuple(blocks), "\n".join(prose))


def pages() -> Iterator[Page]:
    """All pages of the project."""
    for name in TOP:
        yield page(name)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield page(path.relative_to(ROOT).as_posix())


PAGES = list(pages())
BY_NAME = {each.name: each for each in PAGES}

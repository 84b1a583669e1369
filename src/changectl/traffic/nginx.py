"""nginx: the instance's own `server` line in an upstream block gets ` down`, and loses it again; not a byte more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.declared.traffic_spec import NginxTraffic, Peer, TrafficSpec
from changectl.core.errors import EditRefused
from changectl.traffic._nginx_words import Word, words

DOWN, BACKUP = "down", "backup"
_DEFAULT_PORT = 80  # nginx's own, where a server line names none


@dataclass(frozen=True)
class _Server:
    """One `server` line of the block, without its semicolon."""

    words: tuple[Word, ...]

    @property
    def address(self) -> str:
        return self.words[1].text

    @property
    def line(self) -> int:
        return self.words[0].line

    def has(self, parameter: str) -> bool:
        return any(word.text == parameter for word in self.words[2:])


@dataclass(frozen=True)
class NginxMember:
    """One member of one upstream in one file."""

    spec: NginxTraffic
    name = "nginx"
    controls = True

    @property
    def host(self) -> str | None:
        """Where nginx runs."""
        return self.spec.host

    @property
    def place(self) -> str:
        """One upstream of one file: others on the same host are somebody else's."""
        name = re.sub(r"[^A-Za-z0-9-]+", "-", self.spec.upstream)[:40].strip("-")
        digest = hashlib.sha256(f"{self.spec.file}\0{self.spec.upstream}".encode()).hexdigest()[:12]
        return f"nginx-{name}-{digest}"

    @property
    def file(self) -> str | None:
        """Where the upstream block stands."""
        return self.spec.file

    @property
    def member(self) -> str | None:
        """As HOST:PORT; None: a socket of the host itself."""
        return None if self.spec.member.startswith("unix:") else _with_port(self.spec.member)

    def way(self) -> Mapping[str, Any]:
        """Which file it is; the host program finds nginx itself."""
        return {"nginx": {"file": self.spec.file}}

    def impact(self) -> str:
        """Said in the preview."""
        return (
            f"nginx on {self.spec.host} sends its requests to the other members of upstream {self.spec.upstream} "
            "meanwhile: users notice nothing as long as those can take them"
        )

    def peers(self, data: bytes) -> tuple[Peer, ...] | None:
        """The other members of the upstream."""
        own = self._own(data)
        return tuple(
            Peer(_with_port(one.address), one.has(DOWN), one.has(BACKUP)) for one in self._servers(data) if one != own
        )

    def taken_out(self, data: bytes) -> bytes | None:
        """` down` after the last word of the member's line; None: it says so already."""
        own = self._own(data)
        if own.has(DOWN):
            return None
        end = own.words[-1].end
        return self._checked(data, b"".join([data[:end], b" down", data[end:]]), down=True)

    def put_back(self, data: bytes) -> bytes:
        """The line without `down` and the blank before it, whatever else somebody changed meanwhile."""
        own = self._own(data)
        word = next((word for word in reversed(own.words[2:]) if word.text == DOWN), None)
        if word is None:
            return data
        start = word.start - 1 if data[word.start - 1 : word.start] in (b" ", b"\t") else word.start
        return self._checked(data, data[:start] + data[word.end :], down=False)

    def _checked(self, before: bytes, after: bytes, *, down: bool) -> bytes:
        """Read once more: exactly the one word differs. Raises EditRefused."""
        was, now = ([(word.text, word.sign) for word in words(data)] for data in (before, after))
        shorter, longer = (was, now) if down else (now, was)
        at = next((n for n, pair in enumerate(zip(shorter, longer, strict=False)) if pair[0] != pair[1]), len(shorter))
        one_word = longer[at] == (DOWN, False) and longer[:at] + longer[at + 1 :] == shorter
        if not one_word or self._own(after).has(DOWN) != down:
            raise self._refused("the line cannot be changed without touching something else")
        return after

    def _own(self, data: bytes) -> _Server:
        servers = self._servers(data)
        wanted = _with_port(self.spec.member)
        found = [one for one in servers if _with_port(one.address) == wanted]
        if len(found) == 1:
            return found[0]
        if found:
            lines = ", ".join(str(one.line) for one in found)
            raise self._refused(f"{self.spec.member} stands there more than once (lines {lines})")
        known = ", ".join(one.address for one in servers) or "nobody"
        raise self._refused(f"it has no member {self.spec.member}; it has {known}{self._elsewhere(data)}")

    def _elsewhere(self, data: bytes) -> str:
        """What else could hold the line."""
        named = [line[1].text for line in self._lines(data) if line[0].text == "include" and len(line) > 1]
        return f", and includes {', '.join(named)}: write the member into the block itself" if named else ""

    def _servers(self, data: bytes) -> list[_Server]:
        found = [_Server(tuple(line)) for line in self._lines(data) if line[0].text == "server" and len(line) > 1]
        for one in found:
            if "$" in one.address:
                raise self._refused(f"line {one.line}: a variable stands where an address belongs")
        return found

    def _lines(self, data: bytes) -> list[Sequence[Word]]:
        """The directives of the one block with the upstream's name."""
        blocks = [block for name, block in _upstreams(data) if name == self.spec.upstream]
        if len(blocks) == 1:
            return blocks[0]
        if blocks:
            raise self._refused("several blocks have that name, and which one is meant cannot be told")
        known = ", ".join(name for name, _ in _upstreams(data)) or "none"
        raise EditRefused(f"{self.spec.file} has no upstream {self.spec.upstream}; it has: {known}")

    def _refused(self, why: str) -> EditRefused:
        return EditRefused(f"{self.spec.file}, upstream {self.spec.upstream}: {why}")


def _upstreams(data: bytes) -> list[tuple[str, list[Sequence[Word]]]]:
    """Every upstream block by name, with its directives; wherever in the file it stands."""
    found: list[tuple[str, list[Sequence[Word]]]] = []
    line: list[Word] = []
    depth, inside = 0, -1  # inside: the depth within the upstream block that is being read
    for word in words(data):
        if not word.sign:
            line.append(word)
            continue
        if word.text == "{":
            depth += 1
            if inside < 0 and len(line) == 2 and line[0].text == "upstream":
                found.append((line[1].text, []))
                inside = depth
        elif word.text == ";":
            if line and depth == inside:
                found[-1][1].append(line)
        else:
            inside = -1 if depth == inside else inside
            depth -= 1
        line = []
        if depth < 0:
            break
    if depth != 0 or line:
        raise EditRefused("the file's braces do not match, or its last line has no end: nginx would not read it")
    return found


def _with_port(address: str) -> str:
    """An address as nginx means it: the default port written out, names in lower case."""
    if address.startswith("unix:"):
        return address
    has_port = re.search(r":\d+$", address) is not None and (not address.startswith("[") or "]:" in address)
    return (address if has_port else f"{address}:{_DEFAULT_PORT}").lower()


def make(spec: object) -> NginxMember:
    """From the service file's `traffic`."""
    if not isinstance(spec, TrafficSpec) or spec.nginx is None:
        raise ValueError("traffic: {nginx: ...} is not given")
    return NginxMember(spec.nginx)

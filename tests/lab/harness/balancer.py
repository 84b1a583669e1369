"""An nginx on a host of the lab that spreads requests over members, and clients that count what they lose."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.lab.harness.hosts import LabError, LabHost

FILE = "/etc/nginx/conf.d/chat.conf"
PORT = 8090
_TEXT = """\
# Who serves the chat. Edited by hand; ask the platform team first.
upstream chat {{
    # least_conn;
{members}
    keepalive 8;
}}

server {{
    listen {port};
    location / {{
        proxy_pass http://chat;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_next_upstream off;  # what is lost shall be seen
        proxy_read_timeout 120s;
    }}
}}
"""


@dataclass
class Nginx:
    """A balancer in front of members, each `HOST:PORT`."""

    host: LabHost
    members: Sequence[str]

    @property
    def url(self) -> str:
        """Where clients ask."""
        return f"http://{self.host.address}:{PORT}"

    @property
    def text(self) -> str:
        """The file as it was written."""
        lines = "\n".join(f"    server {one} max_fails=0;" for one in self.members)
        return _TEXT.format(members=lines, port=PORT)

    def install(self) -> None:
        """Write the configuration and start nginx."""
        self.host.run(["rm", "-f", "/etc/nginx/sites-enabled/default"])
        self.host.write_file(FILE, self.text)
        self.host.run(["systemctl", "restart", "nginx.service"])

    def uninstall(self) -> None:
        """Stop nginx and take the configuration away."""
        self.host.run(["systemctl", "disable", "--quiet", "--now", "nginx.service"], check=False)
        self.host.run(["rm", "-f", FILE])

    def stat(self) -> str:
        """Bytes, owner and mode of the file."""
        return str(self.host.run(["sh", "-c", f"sha256sum {FILE}; stat -c '%U %G %a' {FILE}"]).stdout)

    def is_out(self, member: str) -> bool:
        """Whether the file keeps requests from a member."""
        return any(line.split()[1] == member and "down" in line for line in self._servers())

    def _servers(self) -> Iterator[str]:
        lines = self.host.read_file(FILE).decode().splitlines()
        return (line for line in lines if line.split()[:1] == ["server"] and ";" in line)


@dataclass
class Counted:
    """What clients saw."""

    good: int = 0
    lost: list[str] = field(default_factory=list)


@contextmanager
def clients(url: str, *, number: int = 2, pause: float = 0.3, bearer: str = "") -> Iterator[Counted]:
    """Independent clients that ask again and again until the end of the block; each answer is counted.

    `bearer` is the token of a service that demands one.
    """
    counted, ended, guard = Counted(), threading.Event(), threading.Lock()

    def ask() -> None:
        while not ended.wait(pause):
            try:
                tokens = _answer(url, bearer)
            except Exception as error:  # noqa: BLE001 - whatever it is, this request got no answer
                with guard:
                    counted.lost.append(f"{time.strftime('%H:%M:%S')} {error}")
                continue
            with guard:
                counted.good += tokens > 0

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield counted
    finally:
        ended.set()
        for thread in threads:
            thread.join(130)
            if thread.is_alive():
                raise LabError("a client of the lab does not end")


def _answer(url: str, bearer: str) -> int:
    body = json.dumps({"model": "chat", "prompt": "Once", "max_tokens": 8}).encode()
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {bearer}"} if bearer else {})}
    request = urllib.request.Request(f"{url}/v1/completions", body, headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return int(json.load(answer)["usage"]["completion_tokens"])

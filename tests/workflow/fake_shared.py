"""One host with several instances of a service: they share its lease; each has its own unit, files and process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.workflow.fake_host import ENV_TEXT, UNIT_TEXT, FakeHost
from tests.workflow.fake_keeper import FakeKeeper
from tests.workflow.world import World


@dataclass
class SharedHost:
    """Finds the instance that a call or a play is about, as the real host does: by run folder, unit or port."""

    name: str
    world: World
    instances: Sequence[FakeHost]

    def at(self, args: Mapping[str, Any]) -> FakeHost:
        number = str(args.get("run") or args.get("changectl_run") or "").partition("/")[2]
        if number:
            return self.instances[int(number) - 1]
        unit = ((args.get("manager") or {}).get("systemd") or {}).get("unit")
        ports = [urlsplit(request["url"]).port for request in args.get("requests") or ()][:1]
        return next((one for one in self.instances if one.unit == unit or one.port in ports), self.instances[0])


def share(world: World, host: str, names: Sequence[str]) -> SharedHost:
    """Instances called HOST:PORT on one host."""
    keeper, generations = FakeKeeper(), dict[str, int]()
    made = []
    for number, name in enumerate(names):
        port = int(name.partition(":")[2])
        unit, env = f"chat-{port}.service", f"/etc/chat-{port}.env"
        files = {
            f"/etc/systemd/system/{unit}": UNIT_TEXT.replace("/etc/chat.env", env).encode(),
            env: ENV_TEXT.encode(),
        }  # fmt: skip
        made.append(FakeHost(name, world, files, unit=unit, env=env, port=port, born=100 * number,
                             keeper=keeper, generations=generations))  # fmt: skip
    return SharedHost(host, world, made)

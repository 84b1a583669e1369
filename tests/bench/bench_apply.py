"""A kept one-host change over SSH, beside the playbook that an operator would write by hand for the same edit.

Both sides without the service's own stopping and loading (the host's clock says how long these took), ours also without
the load. Both start cold: no connection is kept from an earlier run. The rival leaves out facts and uses Ansible's
defaults otherwise.
"""

from __future__ import annotations

import statistics

from tests.bench.desk import BIN, BenchDesk, bench_desk
from tests.bench.table import Row

ROUNDS = 5
FACTOR = 3.0

RIVAL = """\
- hosts: gpu
  gather_facts: false
  tasks:
    - name: Set the number of slots
      ansible.builtin.lineinfile:
        path: {unit_file}
        regexp: '^  --parallel \\d+ (.*)$'
        line: '  --parallel {{{{ slots }}}} \\1'
        backrefs: true
    - name: Restart
      ansible.builtin.systemd:
        name: {unit}
        daemon_reload: true
        state: restarted
    - name: Wait
      ansible.builtin.uri:
        url: http://127.0.0.1:{port}/health
      register: health
      until: health.status == 200
      retries: 60
      delay: 1
"""


def rival(desk: BenchDesk, slots: int) -> float:
    """Seconds of the hand-written playbook, without the service's own restart."""
    service = desk.service
    text = RIVAL.format(unit_file=service.unit_file, unit=service.unit, port=service.port)
    (desk.desk.folder / "rival.yml").write_text(text)
    command = [BIN / "ansible-playbook", "-i", "hosts.yml", "rival.yml", "-e", f"slots={slots}"]
    seconds, _ = desk.timed(command)
    return seconds - desk.restart_seconds()


def ours(desk: BenchDesk, slots: int) -> float:
    """Seconds of `changectl apply`, without the service's own restart and without the load."""
    applied = desk.keep(slots)
    return applied.seconds - applied.restart - applied.measuring


def changed(desk: BenchDesk, slots: int) -> None:
    """Raises RuntimeError unless the engine runs with so many slots."""
    found = desk.service.get("/props")["total_slots"]
    if found != slots:
        raise RuntimeError(f"the engine has {found} slots instead of {slots}")


def run(rounds: int = ROUNDS) -> list[Row]:
    """One floor; the first round warms up."""
    pairs = []
    with bench_desk() as desk:
        for _ in range(rounds + 1):
            mine = ours(desk, 6)
            changed(desk, 6)
            theirs = rival(desk, 4)
            changed(desk, 4)
            pairs.append((mine, theirs))
    mine, theirs = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
    note = f"median of {rounds} alternating rounds, each side without restart and load, ours without the load's run"
    floor = f"at most {FACTOR:g} times a hand-written playbook"
    return [Row("apply", "a kept one-host change over SSH", floor, mine, FACTOR * theirs, theirs, note=note)]

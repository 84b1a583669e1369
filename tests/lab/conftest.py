"""Fixtures of the lab: hosts that boot when a test asks for them, and services that are gone after it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.lab.desk import Desk
from tests.lab.harness import install, mlserver_install, root, vllm_install
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.lab import Lab
from tests.lab.harness.services import LlamaService
from tests.lab.harness.vllm_service import VllmService

#: What a test that failed may have left on a host: an armed dead-man, a lease, what waits for either.
CLEAN = """
systemctl stop 'changectl-*'; systemctl disable changectl-boot.service
pkill -KILL -f 'program[.]pyz|/proc/self/f[d]/|[c]hangectl_host'
rm -rf /var/lib/changectl /etc/systemd/system/changectl-*; systemctl daemon-reload; systemctl reset-failed; true
"""
_left = {"h1": False, "h2": False, "c1": False}  # host -> whether a test failed since it was cleaned


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """After a test that failed, the hosts are cleaned before their next use: one failure must not become many."""
    report = yield
    if report.failed:
        _left.update(dict.fromkeys(_left, True))
    return report


@pytest.fixture(scope="session")
def lab_machine() -> None:
    """The machine can have a lab; otherwise the test is skipped with the reason, and fails where CI demands all."""
    try:
        install.ensure()
    except install.LabMissingError as problem:
        if install.demanded():
            pytest.fail(f"CI leaves nothing out, but: {problem}", pytrace=False)
        pytest.skip(f"no lab: {problem}")
    root.root()
    root.engine()


@pytest.fixture(scope="session")
def lab(lab_machine: None) -> Iterator[Lab]:
    """The lab; `lab.host("h1")` boots a host at its first use."""
    with Lab() as running:
        yield running


@pytest.fixture
def h1(lab: Lab) -> LabHost:
    """The first service host, up and reachable."""
    return _sound(lab.host("h1"))


@pytest.fixture
def h2(lab: Lab) -> LabHost:
    """The second service host, up and reachable."""
    return _sound(lab.host("h2"))


@pytest.fixture
def c1(lab: Lab) -> LabHost:
    """A host that only calls others."""
    return _sound(lab.host("c1"))


@pytest.fixture
def llama_service(lab: Lab) -> Iterator[Callable[..., LlamaService]]:
    """A maker of llama.cpp services: `llama_service(host, port=8000, flags={...})` installs, starts and waits.

    All of them are removed after the test.
    """
    made: list[LlamaService] = []

    def make(host: LabHost, **options: Any) -> LlamaService:
        service = LlamaService(host, **options)
        made.append(service)
        service.install()
        return service

    yield make
    for service in made:
        _sound(service.host)
        service.uninstall()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An operator's project folder, still empty, and the installed command."""
    return Desk(tmp_path / "project", tmp_path / "home")


@pytest.fixture(scope="session")
def vllm_machine(lab_machine: None) -> None:
    """The real vLLM is in the cache: installed here (2.5 GB, about two minutes) where installing is allowed."""
    _demand("vLLM", vllm_install)


@pytest.fixture(scope="session")
def mlserver_machine(lab_machine: None) -> None:
    """The real MLServer is in the cache: installed here (330 MB, about half a minute) where installing is allowed."""
    _demand("MLServer", mlserver_install)


def _demand(name: str, program: ModuleType) -> None:
    """Install what hosts are to run; where that is not allowed, the test is skipped, and fails where CI demands all."""
    if program.installed() or install.may_install():
        program.install()
        return
    reason = f"{name} is not in the lab's cache; LAB_INSTALL=1 installs it"
    if install.demanded():
        pytest.fail(f"CI leaves nothing out, but: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def v1(vllm_machine: None, lab: Lab) -> LabHost:
    """The host for vLLM, up and reachable; it boots after vLLM was installed and sees it read-only."""
    return _sound(lab.host("v1"))


@pytest.fixture
def m1(mlserver_machine: None, lab: Lab) -> LabHost:
    """The host for MLServer, up and reachable; it boots after MLServer was installed and sees it read-only."""
    return _sound(lab.host("m1"))


@pytest.fixture
def vllm_service(v1: LabHost) -> Iterator[Callable[..., VllmService]]:
    """A maker of vLLM services on `v1`: `vllm_service(flags={...})` installs, starts and waits (40 s and more).

    One at a time; all of them are removed after the test.
    """
    made: list[VllmService] = []

    def make(**options: Any) -> VllmService:
        service = VllmService(v1, **options)
        made.append(service)
        service.install()
        return service

    yield make
    for service in made:
        _sound(service.host)
        service.uninstall()


def _sound(host: LabHost) -> LabHost:
    """Return the host; one that an earlier test cut off or killed is put right first."""
    if not host.running:
        host.boot()
    host.restore_link()
    if _left.get(host.name):
        host.run(["sh", "-c", CLEAN])
        _left[host.name] = False
    host.wait_ssh()
    return host

"""The tables, as SQLModel sees them. Columns are only ever added (see `migrations.py`)."""

from __future__ import annotations

from sqlmodel import Field, SQLModel


class Event(SQLModel, table=True):
    """One line of the journal. Triggers refuse every change of a line that is there (`migrations.py`)."""

    sequence: int = Field(primary_key=True)  # 1, 2, 3, ... without gaps
    run: str = Field(index=True)
    step: int
    kind: str = Field(index=True)
    at: str  # ISO 8601, UTC, microseconds
    body: bytes  # the exact JSON bytes that the hash covers
    prev: str = Field(unique=True)  # hash of the line before: two lines cannot follow the same one
    hash: str = Field(unique=True)


class Lock(SQLModel, table=True):
    """The one open change of a service. The primary key is what refuses a second one."""

    service: str = Field(primary_key=True)
    run: str
    owner: str  # for people: user@host
    host: str
    machine: str  # /etc/machine-id: two machines may share a host name
    boot: str  # /proc/sys/kernel/random/boot_id
    pid_space: str  # the pid namespace: process 7 of a container is not process 7 of its host
    pid: int
    start_ticks: int  # with pid: tells a process from a later one with the same number
    since: str  # ISO 8601, UTC, microseconds


class Meta(SQLModel, table=True):
    """Small facts about the database itself."""

    name: str = Field(primary_key=True)
    value: str

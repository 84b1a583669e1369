"""A real ssh server in this process (paramiko's); what is asked of it is really run."""

from __future__ import annotations

import socket
import subprocess
import threading
from dataclasses import dataclass, field
from typing import Any

import paramiko

HOST_KEY = paramiko.ECDSAKey.generate()
GRANTED = 0.1  # seconds


class _Session(paramiko.ServerInterface):
    """Lets in whoever has the right key or password; forwards connections; runs what is asked."""

    def __init__(self, server: SshServer) -> None:
        self.server = server

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        known = key.get_base64() == self.server.key.get_base64()
        return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED  # type: ignore[attr-defined,no-any-return]

    def check_auth_password(self, username: str, password: str) -> int:
        right = password == self.server.password
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED  # type: ignore[attr-defined,no-any-return]

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,password"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if self.server.refuses == kind:
            return paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED  # type: ignore[attr-defined,no-any-return]
        return paramiko.OPEN_SUCCEEDED  # type: ignore[attr-defined,no-any-return]

    def check_channel_direct_tcpip_request(self, chanid: int, origin: Any, destination: Any) -> int:
        self.server.forwarded.append(destination)
        return paramiko.OPEN_SUCCEEDED  # type: ignore[attr-defined,no-any-return]

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self.server.refuses == "exec":
            return False
        # Not at once: a fast command would close the channel before the answer to this request is sent.
        later = threading.Timer(GRANTED, _run, args=(channel, command.decode()))
        later.daemon = True
        later.start()
        return True


def _run(channel: paramiko.Channel, command: str) -> None:
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None

    def to_process() -> None:
        while data := channel.recv(65536):
            process.stdin.write(data)  # type: ignore[union-attr]
        process.stdin.close()  # type: ignore[union-attr]

    threading.Thread(target=to_process, daemon=True).start()
    while data := process.stdout.read(65536):
        channel.sendall(data)
    channel.sendall_stderr(process.stderr.read())
    channel.send_exit_status(process.wait())
    channel.close()


@dataclass
class SshServer:
    """A listening server; everything that connects gets a thread.

    Attributes:
        refuses: the request of somebody who was let in that it does not grant: "session" or "exec".
    """

    key: paramiko.PKey
    password: str = "let-me-in-please"
    refuses: str = ""
    forwarded: list[Any] = field(default_factory=list)
    transports: list[paramiko.Transport] = field(default_factory=list)
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    def __post_init__(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(HOST_KEY)
            self.transports.append(transport)
            transport.start_server(server=_Session(self), event=threading.Event())
            threading.Thread(target=self._forward, args=(transport,), daemon=True).start()

    def _forward(self, transport: paramiko.Transport) -> None:
        while transport.is_active() or not transport.is_authenticated():
            channel = transport.accept(0.2)
            if channel is not None and self.forwarded and channel.get_name():
                far = socket.create_connection(self.forwarded[-1])
                for one, other in ((channel, far), (far, channel)):
                    threading.Thread(target=_copy, args=(one, other), daemon=True).start()

    def close(self) -> None:
        self.listener.close()
        for transport in self.transports:
            transport.close()


def _copy(source: Any, target: Any) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        return

"""A service in a process of its own, and clients that speak to it over sockets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import command
from trustassay.live.service import TOKEN_VARIABLE

LEXICAL = ("--entailer", "lexical")
JSON = {"Content-Type": "application/json"}
WAITING = """
import pathlib, time

def entail(premise, hypothesis):
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return (1.0, 0.0, 0.0)
"""
"""An entailer that waits for a file."""


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def error(self) -> Any:
        return self.json["error"]


class Running:
    """A service that listens."""

    def __init__(self, process: subprocess.Popen[str], host: str, port: int, first: str) -> None:
        self.process, self.host, self.port = process, host, port
        self._said = [first]
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Reply:
        connection = HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body, dict(headers or {}))
            found = connection.getresponse()
            named = {name.lower(): value for name, value in found.getheaders()}
            return Reply(found.status, named, found.read())
        finally:
            connection.close()

    def score(self, content: Any, **headers: str) -> Reply:
        body = json.dumps(content)
        return self.ask("POST", "/v1/score", body, {**JSON, **headers})

    def raw(self, sent: bytes, timeout: float = 20) -> bytes:
        """Send bytes as they are; return everything that comes until the connection is closed."""
        with self.connected(timeout) as client:
            client.sendall(sent)
            return rest_of(client)

    def connected(self, timeout: float = 20) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=timeout)

    def metric(self, name: str, **headers: str) -> float:
        text = self.ask("GET", "/metrics", headers=headers).body.decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def until(self, name: str, value: float) -> None:
        """Wait until a metric has a value."""
        deadline = time.monotonic() + 30
        while self.metric(name) != value:
            assert time.monotonic() < deadline, f"{name} is {self.metric(name)}, not {value}"
            time.sleep(0.02)

    def end(self, *signals: signal.Signals) -> int:
        for one in signals or (signal.SIGTERM,):
            self.process.send_signal(one)
        return self.process.wait(60)

    @property
    def said(self) -> str:
        """Everything that it has printed; all, once it has ended."""
        if self.process.poll() is not None:
            self._reading.join(10)
        return "".join(self._said)

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._said.append(line)


def rest_of(client: socket.socket) -> bytes:
    """Return what comes until the connection is closed, in whatever way."""
    found = b""
    try:
        while piece := client.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


@contextmanager
def serving(
    cwd: Path, *arguments: str | Path, port: int = 0, **environment: str
) -> Iterator[Running]:
    """Run a service until the end of the block, at a free port."""
    cwd.mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    process = subprocess.Popen(
        command("serve", "--port", str(port), *arguments),
        cwd=cwd,
        env=own | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        first, listening = "", None
        while not listening:  # messages about what waits may come before
            line = process.stderr.readline()
            assert line, first
            first += line
            listening = re.match(r"listening at http://(\S+):(\d+)", line)
        yield Running(process, listening[1].strip("[]"), int(listening[2]), first)
    finally:
        process.kill()
        process.wait(30)


def waiting_entailer(cwd: Path) -> tuple[str, str]:
    """Write an entailer that answers nothing until a file `go` is there; return its option."""
    cwd.mkdir(exist_ok=True)
    (cwd / "waiting.py").write_text(WAITING)
    return "--entailer", "python:waiting:entail"

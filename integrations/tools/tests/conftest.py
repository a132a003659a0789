"""The tools report to nobody, and a test that looks for the network fails.

The tests of a tool are skipped where it is not installed: ``tox run`` runs all.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Before a tool is imported, each by its own setting.
os.environ |= {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "LANGSMITH_TRACING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}

WANTED: list[Any] = []
"""Whom a tool wanted to reach, in whatever thread."""
LOCAL = ("127.0.0.1", "::1", "localhost", None)


def guard(patch: pytest.MonkeyPatch) -> None:
    """Refuse every connection beyond this machine, and note who wanted one."""
    resolve = socket.getaddrinfo

    def refused(who: Any) -> None:
        WANTED.append(who)
        raise OSError("no network in tests")

    def guarded(name: str) -> Any:
        reach = getattr(socket.socket, name)

        def method(self: socket.socket, *given: Any) -> Any:
            address = given[-1]
            if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOCAL:
                refused(address)
            return reach(self, *given)

        return method

    def looked_up(host: Any, *others: Any, **options: Any) -> Any:
        if host not in LOCAL:
            refused(host)
        return resolve(host, *others, **options)

    for name in ("connect", "connect_ex", "sendto"):
        patch.setattr(socket.socket, name, guarded(name))
    patch.setattr(socket, "getaddrinfo", looked_up)


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Hold the guard for the whole session, so that no thread in the background escapes it."""
    with pytest.MonkeyPatch.context() as patch:
        guard(patch)
        yield
    assert WANTED == []


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Work in a folder of its own with a cache of its own, without a key; leave nothing open."""
    from trustassay.live.integrations.resident import close_all

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUSTASSAY_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    yield
    close_all()
    assert WANTED == []

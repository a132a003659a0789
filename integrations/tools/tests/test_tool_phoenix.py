"""Traces of a Phoenix server, read, scored, and annotated with the scores.

The server runs where ``arize-phoenix`` is installed, or where PHOENIX names its command.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from trustassay import score
from trustassay.core.event_loop import run_anywhere
from trustassay.live.push import pull, push
from trustassay.live.trace_stores import Phoenix
from trustassay.runs.folder import RunFolder

COMMAND = os.environ.get("PHOENIX") or shutil.which("phoenix")
ANSWERS = ["The Tagus runs through Lisbon.", "Nothing of it is known to anybody."]
PASSAGE = "The Tagus runs through Lisbon."
STARTS_IN_S = 180


def free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def asked(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.loads(reply.read() or b"null")


@pytest.fixture
def phoenix(tmp_path: Path) -> Iterator[str]:
    if COMMAND is None:
        pytest.skip("arize-phoenix is not installed")
    port = free_port()
    settings = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_WORKING_DIR": str(tmp_path / "phoenix"),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with (tmp_path / "phoenix.log").open("wb") as log:
        server = subprocess.Popen(
            [COMMAND, "serve"], env={**os.environ, **settings}, stdout=log, stderr=log
        )
        url = f"http://127.0.0.1:{port}"
        try:
            for _ in range(STARTS_IN_S * 4):
                assert server.poll() is None, (tmp_path / "phoenix.log").read_text()[-2000:]
                try:
                    asked(f"{url}/v1/projects")
                    break
                except OSError:
                    time.sleep(0.25)
            yield url
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def spans(number: int, answer: str) -> list[dict[str, Any]]:
    root = f"{number * 2 + 1:016x}"

    def span(known_as: str, parent: str | None, kind: str, **attributes: Any) -> dict[str, Any]:
        return {
            "name": kind.lower(),
            "context": {"trace_id": f"{number + 1:032x}", "span_id": known_as},
            "span_kind": kind,
            "parent_id": parent,
            "start_time": "2026-11-27T10:00:00Z",
            "end_time": "2026-11-27T10:00:01Z",
            "status_code": "OK",
            "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
        }

    found = [{"document.content": PASSAGE}]
    return [
        span(root, None, "CHAIN", input__value="Which river?", output__value=answer),
        span(f"{number * 2 + 2:016x}", root, "RETRIEVER", retrieval__documents=found),
    ]


def annotations(url: str, count: int) -> list[dict[str, Any]]:
    ids = "&".join(f"span_ids={number * 2 + 1:016x}" for number in range(count))
    told = asked(f"{url}/v1/projects/default/span_annotations?{ids}")["data"]
    return sorted(told, key=lambda one: str(one["span_id"]))


def test_traces_are_scored_and_annotated_once(phoenix: str, tmp_path: Path) -> None:
    count = 6
    given = [one for number in range(count) for one in spans(number, ANSWERS[number % 2])]
    asked(f"{phoenix}/v1/projects/default/spans", {"data": given})
    file, folder = tmp_path / "t.jsonl", RunFolder(tmp_path / "run")
    for _ in range(100):  # spans are stored in the background
        if run_anywhere(lambda: pull(Phoenix(phoenix), file, "default", "", "")) == 2 * count:
            break
        time.sleep(0.1)
    score(file, metrics="faithfulness", entailer="lexical", out=folder.path)

    link = "https://example.org/report.html"
    done = run_anywhere(lambda: push(folder, Phoenix(phoenix), link))
    assert (done.sent, done.unchanged, done.refused, done.stopped) == (count, 0, [], "")
    told = annotations(phoenix, count)
    assert [one["result"]["score"] for one in told] == [1.0, 0.0] * (count // 2)
    assert told[1]["result"]["label"] == "not found"
    assert told[1]["result"]["explanation"].endswith(f"{link}#id={2:032x}")

    (folder.path / "pushed.jsonl").unlink()  # sent anew, each takes the place of the same one
    assert run_anywhere(lambda: push(folder, Phoenix(phoenix), link)).sent == count
    again = annotations(phoenix, count)
    assert [one["id"] for one in again] == [one["id"] for one in told]

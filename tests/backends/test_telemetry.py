"""No library reports to its maker, and each that would is imported in one place."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import trustassay
from trustassay.backends import telemetry

PACKAGE = Path(trustassay.__file__).parent
IMPORT = re.compile(r"^ *(?:import|from) (\w+)", re.MULTILINE)


def importers(package: Path) -> dict[str, set[str]]:
    """Return by library the files of a package that import it, wherever in the file."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in package.rglob("*.py"):
        for name in IMPORT.findall(path.read_text(encoding="utf-8")):
            found[name].add(path.name)
    return found


def test_onnxruntime_and_what_asks_the_hub_are_imported_in_one_place_each() -> None:
    found = importers(PACKAGE)
    assert found["onnxruntime"] == {"telemetry.py"}
    assert found["openvino"] == found["openvino_genai"] == {"telemetry.py"}
    assert found["ray"] == {"cluster.py"}
    assert found["transformers"] == {"hf_loading.py"}
    assert found["sentence_transformers"] == {"hf_embedders.py"}
    assert found["huggingface_hub"] == {"hf_loading.py"}  # its switch for bars


def test_onnxruntime_that_was_imported_before_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime = telemetry.import_onnxruntime()  # as some other code would, but for its report
    told = []
    monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: told.append(True))
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    assert telemetry.import_onnxruntime() is onnxruntime
    assert told == [True]
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"


REPORTING = """
try:
    import openvino_telemetry
    reports = True
except ImportError:
    reports = False
"""


def test_openvino_is_imported_without_its_report(tmp_path: Path) -> None:
    """Stand-ins for openvino, which reports if the package for it is installed, and for that."""
    for name, text in (("openvino", REPORTING), ("openvino_genai", ""), ("openvino_telemetry", "")):
        (tmp_path / f"{name}.py").write_text(text)
    code = "from trustassay.backends.telemetry import import_openvino as load; print(load()[0].{})"
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{PACKAGE.parent}"}
    for attribute, output in (("reports", "False"), ("__file__", f"{tmp_path}/openvino.py")):
        result = subprocess.run(
            [sys.executable, "-c", code.format(attribute)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.strip() == output


class Hub(BaseHTTPRequestHandler):
    """A hub with one model, whose weights are pickled; it notes what it is asked."""

    asked: list[tuple[str, str]] = []  # noqa: RUF012 - one server a test
    config = json.dumps({"model_type": "bert", "architectures": ["BertModel"]}).encode()

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("User-Agent", "")))
        name = self.path.rpartition("/")[2]
        found = {"config.json": self.config, "pytorch_model.bin": b"pickled"}.get(name)
        self.send_response(404 if found is None else 200)
        if found is None:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{name}"')
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        if found and self.command == "GET":
            self.wfile.write(found)

    do_HEAD = do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Hub, "asked", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


LOAD = """
import transformers  # as some other code would, before us

from trustassay.backends.hf_loading import import_libraries, load_config, safetensors_only

_, transformers = import_libraries()
folder, _ = load_config("someone/pickled")
try:
    with safetensors_only():
        transformers.AutoModel.from_pretrained(folder, use_safetensors=True)
except Exception as error:
    print(error)
"""


@pytest.mark.torch
@pytest.mark.slow
def test_the_hub_is_asked_for_the_named_model_alone(hub: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "HOME": str(tmp_path),
        "HF_ENDPOINT": hub,
    }
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "no safetensors weights" in done.stdout, done.stderr
    own = ("/api/models/someone/pickled", "/someone/pickled/resolve/main/")
    assert [path for path, _ in Hub.asked if not path.startswith(own)] == []
    agents = [agent for path, agent in Hub.asked if path.endswith(".safetensors")]
    assert agents
    assert all("telemetry/off" in agent for agent in agents)

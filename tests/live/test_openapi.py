"""What /openapi.json says is so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.running import LEXICAL, Reply, Running, serving
from tests.support import record, records, repeats

TOKEN = "token-for-the-openapi-document"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    options = (*LEXICAL, "--per-minute", "1000000")
    folder = tmp_path_factory.mktemp("openapi")
    with serving(folder, *options, TRUSTASSAY_SERVE_TOKEN=TOKEN) as one:
        yield one


@pytest.fixture(scope="module")
def document(service: Running) -> Any:
    return service.ask("GET", "/openapi.json", headers=allowed()).json


def allowed() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


def valid(document: Any, name: str, value: Any) -> None:
    from jsonschema import Draft202012Validator

    found = {**document, "$ref": f"#/components/schemas/{name}"}
    Draft202012Validator(found).validate(value)


def test_every_schema_is_sound_and_every_reference_leads_somewhere(document: Any) -> None:
    from jsonschema import Draft202012Validator

    for one in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(one)
    for reference in re.findall(r"'\$ref': '([^']+)'", str(document)):
        name = reference.removeprefix("#/components/schemas/")
        assert name in document["components"]["schemas"], reference
    assert document["security"] == [{"token": []}]


def test_replies_are_as_described(service: Running, document: Any) -> None:
    def checked(path: str, method: str, reply: Reply) -> None:
        said = document["paths"][path][method]["responses"][str(reply.status)]
        kind = reply.headers["content-type"].partition(";")[0]
        assert kind in said["content"]
        if kind == "application/json" and "$ref" in (schema := said["content"][kind]["schema"]):
            valid(document, schema["$ref"].rpartition("/")[2], reply.json)
        for name, header in said.get("headers", {}).items():
            assert not header["required"] or name.lower() in reply.headers

    def posted(content: Any, **headers: str) -> Reply:
        return service.score(content, **(allowed() | headers))

    for content, status in ((record(1), 200), (records(3), 200), ({"question": 1}, 422), ([], 400)):
        reply = posted(content)
        assert reply.status == status
        checked("/v1/score", "post", reply)
    for line in posted(records(3)).lines:
        valid(document, "Line", line)
    checked("/v1/score", "post", posted(record(1), **{"Content-Type": "text/plain"}))
    checked("/v1/score", "post", service.score(record(1)))
    for path in ("/health", "/metrics", "/openapi.json"):
        checked(path, "get", service.ask("GET", path, headers=allowed()))
    for example in document["components"]["schemas"]["Sample"]["examples"]:
        assert posted(example).status == 200


@pytest.mark.slow
def test_schemathesis_finds_nothing(service: Running, tmp_path: Path) -> None:
    """Its requests come from the document alone: sound ones, and ones with every kind of fault."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = shutil.which("schemathesis", path=path)
    if program is None:
        pytest.skip("schemathesis is not installed (pip install -r requirements/test.txt)")
    url = f"http://{service.host}:{service.port}/openapi.json"
    options = ("--checks", "all", "--max-examples", str(repeats(50)), "--no-color", "--seed", "1")
    done = subprocess.run(
        [program, "run", url, "-H", f"Authorization: Bearer {TOKEN}", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "/v1/score" not in service.said

"""Inputs at URLs: the same samples as of files here, found again when a run goes on."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from arro3.io import write_parquet

from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.input.test_formats import table
from tests.support import Recorder, jsonl, lines, record, records
from trustassay import score
from trustassay.input import InputError, InputFault, read_samples
from trustassay.input.reading import LocatedSample
from trustassay.input.urls import BLOCK_BYTES, RemoteFile, file_system
from trustassay.runs.intake import default_folder


@pytest.fixture
def memory() -> Iterator[Any]:
    """Return the file system of memory, empty."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def put(files: Any, path: str, rows: list[dict[str, Any]]) -> None:
    files.pipe_file(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def found(source: Any, **options: Any) -> list[LocatedSample]:
    result = list(read_samples(source, **options))
    assert not [str(one) for one in result if isinstance(one, InputFault)]
    return [one for one in result if isinstance(one, LocatedSample)]


def days(files: Any) -> None:
    put(files, "/logs/day=1/a.jsonl", records(2))
    put(files, "/logs/day=2/a.jsonl", [record(i) for i in (2, 3)])
    put(files, "/logs/day=2/_hidden.jsonl", [record(9)])
    files.pipe_file("/logs/_SUCCESS", b"")
    put(files, "/other.jsonl", [record(8)])


def test_a_folder_at_a_url_is_one_input_with_its_days(memory: Any) -> None:
    days(memory)
    samples = found("memory://logs")
    assert [one.sample.id for one in samples] == ["q0", "q1", "q2", "q3"]
    assert [one.sample.metadata["day"] for one in samples] == ["1", "1", "2", "2"]
    assert samples[2].where == "memory:///logs/day=2/a.jsonl:1"


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("memory://logs/day=*/a.jsonl", "q0 q1 q2 q3"),
        ("memory://logs/day=2", "q2 q3"),
        ("memory://logs/*=1", "q0 q1"),
        ("memory://*.jsonl", "q8"),
        ("memory://logs/day=1/a.jsonl", "q0 q1"),
    ],
)
def test_patterns_name_files_and_folders(memory: Any, pattern: str, ids: str) -> None:
    days(memory)
    assert [one.sample.id for one in found(pattern)] == ids.split()


def test_several_urls_and_files_are_pooled_as_files_are(memory: Any, tmp_path: Path) -> None:
    put(memory, "/x.jsonl", records(1))
    own = jsonl(tmp_path / "y.jsonl", records(1))
    run = score(
        ["memory://x.jsonl", str(own)], metrics="grounding", entailer=Recorder(), out=tmp_path / "r"
    )
    assert [one["id"] for one in lines(run.path / "samples.jsonl")] == ["q0-x", "q0-y"]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv", "a.parquet", "a.json"])
def test_every_kind_of_file_is_read_as_here(memory: Any, tmp_path: Path, name: str) -> None:
    rows = [
        {"id": f"q{i}", "question": f"Q{i}?", "response": "A.", "context": "P."} for i in (1, 2)
    ]
    path = tmp_path / name
    if name.endswith("gz"):
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    elif name.endswith("csv"):
        path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]))
    elif name.endswith("json"):
        path.write_text(json.dumps(rows))
    else:
        write_parquet(table(rows), path)
    memory.put_file(str(path), f"/{name}")
    there = [one.sample for one in found(f"memory://{name}")]
    assert there == [one.sample for one in found(path)]
    assert [one.id for one in there] == ["q1", "q2"]
    assert [one.sample for one in found(f"file://{path}")] == there


def test_a_fault_names_the_url_and_the_line(memory: Any) -> None:
    memory.pipe_file("/a.jsonl", json.dumps(record(1)).encode() + b"\n{\n")
    [fault] = [one for one in read_samples("memory://a.jsonl") if isinstance(one, InputFault)]
    assert fault.where == "memory://a.jsonl:2"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("memory://none.jsonl", "no such file"),
        ("memory://none/*.jsonl", "no file matches"),
        (
            "nosuch://bucket/a.jsonl",
            "nosuch://bucket/a.jsonl: cannot be opened: Protocol not known",
        ),
        ("memory://a.txt", "unknown kind of file, suffix .txt"),
        ("s3://user:SECRET1@bucket/a.jsonl", "the run would store; use the environment"),
        (
            "https://host/a.jsonl?X-Amz-Signature=SECRET1",
            "the run would store; use the environment",
        ),
        (
            "duckdb:SELECT * FROM 's3://b/a.parquet?sig=SECRET1'",
            "the run would store; use the environment",
        ),
    ],
)
def test_what_cannot_be_read_is_said_and_no_secret_told(
    memory: Any, source: str, message: str
) -> None:
    memory.pipe_file("/a.txt", b"x")
    with pytest.raises(InputError) as error:
        list(read_samples(source))
    assert message in str(error.value)
    assert "SECRET1" not in str(error.value)


def test_any_error_of_a_file_system_is_told_with_the_url(memory: Any, monkeypatch: Any) -> None:
    class CredentialsError(Exception):
        """One that is no OSError."""

    def fail(*arguments: Any, **options: Any) -> None:
        raise CredentialsError("no credentials")

    put(memory, "/a.jsonl", records(1))
    monkeypatch.setattr(type(memory), "_open", fail)
    with pytest.raises(
        InputError, match=r"memory://a.jsonl: cannot be read \(CredentialsError: no"
    ):
        list(read_samples("memory://a.jsonl"))
    monkeypatch.setattr(type(memory), "info", fail)
    with pytest.raises(InputError, match=r"//a\.jsonl: cannot be listed: CredentialsError"):
        list(read_samples("memory://a.jsonl"))


class Server(BaseHTTPRequestHandler):
    """Serves one file, by ranges if ``ranges``."""

    content, ranges = b"", True

    def do_HEAD(self) -> None:
        self.do_GET(body=False)

    def do_GET(self, *, body: bool = True) -> None:
        asked = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        part = self.content
        if asked and self.ranges:
            part = part[int(asked[1]) : int(asked[2]) + 1]
        self.send_response(206 if asked and self.ranges else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Accept-Ranges", "bytes" if self.ranges else "none")
        self.end_headers()
        if body:
            self.wfile.write(part)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


@pytest.mark.parametrize("ranges", [True, False])
def test_a_file_of_a_web_server_is_read(monkeypatch: pytest.MonkeyPatch, *, ranges: bool) -> None:
    text = "".join(json.dumps(row) + "\n" for row in records(3)).encode()
    monkeypatch.setattr(Server, "content", text)
    monkeypatch.setattr(Server, "ranges", ranges)
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/logs/a.jsonl"
            assert [one.sample.id for one in found(url)] == ["q0", "q1", "q2"]
            assert [one.sample.id for one in found(f"{url}?download=true")] == ["q0", "q1", "q2"]
        finally:
            server.shutdown()


def test_a_run_of_a_url_goes_on_and_grows(memory: Any, tmp_path: Path) -> None:
    days(memory)

    def scored() -> Recorder:
        recorder = Recorder()
        options: dict[str, Any] = {"metrics": "grounding", "entailer": recorder, "append": True}
        score("memory://logs", out=tmp_path / "run", **options)
        return recorder

    assert len(scored().asked) == 16
    assert not scored().asked
    put(memory, "/logs/day=3/a.jsonl", [record(4)])
    assert len(scored().asked) == 4
    assert json.loads((tmp_path / "run/run.json").read_text())["input"] == "memory://logs"


def test_the_default_folder_changes_with_the_files(memory: Any) -> None:
    days(memory)
    first = default_folder("memory://logs", seed=0)
    assert default_folder("memory://logs", seed=0) == first
    assert first.name.startswith("logs-")
    put(memory, "/logs/day=2/a.jsonl", records(3))
    assert default_folder("memory://logs", seed=0) != first


def test_the_command_line_keeps_the_slashes(cli: Cli, memory: Any) -> None:
    days(memory)
    said = cli("score", "memory://logs", "--entailer", "lexical", "--out", "run")
    assert said.status == 0, said.err
    assert json.loads(Path("run/run.json").read_text())["input"] == "memory://logs"
    again = cli("score", "memory://none", "--entailer", "lexical")
    assert again.status == 2
    assert "memory://none: no such file" in again.err


def test_shards_of_a_url_are_beside_no_file(cli: Cli, memory: Any) -> None:
    days(memory)
    said = cli("shard", "memory://logs", "--into", "2")
    assert said.status == 0, said.err
    assert "logs.shards/logs.shard-0-of-2.jsonl" in said.out + said.err
    assert Path("logs.shards").is_dir()


def test_a_large_file_is_read_in_blocks(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 MB no request is for more than a block, also where columns are read in turns."""
    asked: list[int] = []
    files = fsspec.filesystem("blocks", skip_instance_cache=True, asked=asked)
    rows = [{"question": f"Q{i}?", "response": "A.", "context": "x" * 4000} for i in range(2_000)]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    files.content["a.jsonl"] = text
    stream = RemoteFile(files, "a.jsonl", "blocks://a.jsonl", {}).open("rb")
    assert sum(1 for _ in stream) == len(rows)
    assert len(text) > 3 * BLOCK_BYTES
    assert max(asked) <= 2 * BLOCK_BYTES
    assert sum(asked) < 1.2 * len(text)


class BlockFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Files that are fetched by ranges, as those of an object store."""

    protocol = "blocks"

    def __init__(self, asked: list[int], **options: Any) -> None:
        super().__init__(**options)
        self.asked, self.content = asked, dict[str, bytes]()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {"name": path, "size": len(self.content[path]), "type": "file"}

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return BlockFile(self, path, mode, **options)


class BlockFile(fsspec.spec.AbstractBufferedFile):  # type: ignore[misc]
    def _fetch_range(self, start: int, end: int) -> bytes:
        self.fs.asked.append(end - start)
        content: bytes = self.fs.content[self.path][start:end]
        return content


fsspec.register_implementation("blocks", BlockFiles, clobber=True)


def test_a_missing_file_system_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("trustassay.input.urls.fsspec.core.url_to_fs", missing)
    with pytest.raises(InputError, match=r"pip install '\.\[s3\]'"):
        file_system("s3://bucket/x")

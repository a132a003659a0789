"""Inputs and results in a bucket: an S3 server of moto on this machine, and s3fs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.lazily import needed
from tests.support import Recorder, record
from trustassay import score
from trustassay.input import InputError, InputFault, read_samples
from trustassay.input.reading import LocatedSample
from trustassay.ray.export import LIST_FILE, export
from trustassay.runs.intake import default_folder

server = needed("moto.server", "moto is not installed")
s3fs = needed("s3fs")
needed("flask")
needed("duckdb")

pytestmark = pytest.mark.slow


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a file system with the bucket ``lake``, which has two days of two answers."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "key")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    address = "http://{}:{}".format(*running.get_host_and_port())
    urlopen(Request(f"{address}/moto-api/reset", method="POST")).close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem()
    files.mkdir("lake")
    for day in (1, 2):
        put(files, day, [record(2 * day), record(2 * day + 1)])
    yield files
    running.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def put(files: Any, day: int, rows: list[dict[str, Any]]) -> None:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    files.pipe_file(f"lake/logs/day={day}/a.jsonl", content)


def ids(source: str) -> list[str]:
    result = list(read_samples(source))
    assert not [str(one) for one in result if isinstance(one, InputFault)]
    return [one.sample.id for one in result if isinstance(one, LocatedSample)]


def test_a_bucket_is_read_by_path_pattern_and_query(bucket: Any) -> None:
    assert ids("s3://lake/logs") == ["q2", "q3", "q4", "q5"]
    assert ids("s3://lake/logs/day=2/*.jsonl") == ["q4", "q5"]
    assert ids("duckdb:SELECT * FROM read_json('s3://lake/logs/day=1/a.jsonl')") == ["q2", "q3"]
    with pytest.raises(InputError, match=r"s3://lake/none: no such file"):
        ids("s3://lake/none")


def test_a_run_grows_with_its_bucket_and_its_table_follows(bucket: Any, tmp_path: Path) -> None:
    def scored() -> int:
        recorder = Recorder()
        options: dict[str, Any] = {"entailer": recorder, "append": True, "out": tmp_path / "run"}
        score("s3://lake/logs", metrics="grounding", **options)
        return len(recorder.asked)

    state = default_folder("s3://lake/logs")
    assert (scored(), scored()) == (16, 0)
    assert export(tmp_path / "run", "s3://lake/scores").files == 2
    put(bucket, 3, [record(6)])
    assert default_folder("s3://lake/logs") != state
    assert scored() == 4
    assert export(tmp_path / "run", "s3://lake/scores").rows == 5
    listed = json.loads(bucket.cat_file(f"lake/scores/{LIST_FILE}"))["files"]
    there = {one.removeprefix("lake/scores/") for one in bucket.find("lake/scores")}
    assert there == {LIST_FILE, *listed}
    assert [one.partition("/")[0] for one in sorted(listed)] == ["day=1", "day=2", "day=3"]


def test_without_keys_it_is_said(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(InputError, match=r"s3://lake/logs: cannot be listed: NoCredentialsError"):
        ids("s3://lake/logs")

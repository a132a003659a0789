"""Copies of shards' folders, replies that workers share, and a worker without a cluster."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import uuid
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import fsspec
import numpy as np
import pytest

from tests.llm_server import LlmServer
from tests.support import jsonl, records
from trustassay import api
from trustassay.calls.store import CallStore, StoredCall
from trustassay.errors import BackendError
from trustassay.metrics.fewl import Fewl
from trustassay.ray.store import (
    RunBackup,
    SharedReplies,
    Store,
    fetch,
    fetch_prepared,
    is_finished,
    keep_prepared,
)
from trustassay.ray.worker import ClusterJob, Worker
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import build_run_options
from trustassay.runs.prepare import Preparation


@pytest.fixture(params=["folder", "memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield a store: ``s3`` is moto's server on 127.0.0.1, where moto and s3fs are installed."""
    if request.param == "folder":
        yield str(tmp_path / "store")
    elif request.param == "memory":
        fsspec.filesystem("memory").rm("/", recursive=True)
        yield "memory://store"
    else:
        yield from s3_bucket()


def s3_bucket() -> Iterator[str]:
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    started = server.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    started.start()
    try:
        _, port = started.get_host_and_port()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                patch.setenv(name, "test")
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            s3fs.S3FileSystem.clear_instance_cache()
            bucket = f"bucket-{uuid.uuid4()}"  # servers of one process share what they hold
            s3fs.S3FileSystem().mkdir(bucket)
            yield f"s3://{bucket}/runs"
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        started.stop()


def a_run(tmp_path: Path) -> RunFolder:
    source = jsonl(tmp_path / "a.jsonl", records(5))
    api.score(source, metrics="grounding", entailer="lexical", out=tmp_path / "run")
    return RunFolder(tmp_path / "run")


def test_a_folder_is_kept_and_fetched(tmp_path: Path, url: str) -> None:
    run, store = a_run(tmp_path), Store(url)
    assert not fetch(store, "job/one", tmp_path / "other")
    with run.assessments_path.open("ab") as file:
        file.write(b'{"id": "half')  # a line that is being written
    RunBackup(run, store, "job/one").keep()
    assert not is_finished(store, "job/one")
    RunBackup(run, store, "job/one").keep(finished=True)
    assert is_finished(store, "job/one")
    other = RunFolder(tmp_path / "other")
    keeper = RunBackup(other, store, "job/one")
    assert keeper.fetch()
    assert len(other.assessments()) == 5
    assert not keeper.fetch()  # nothing more is kept than is here
    assert [one.id for one in other.samples()] == [one.id for one in run.samples()]
    assert CallStore(other.calls_path).counts() == CallStore(run.calls_path).counts()


def test_what_holds_more_is_not_replaced(tmp_path: Path, url: str) -> None:
    run, store = a_run(tmp_path), Store(url)
    RunBackup(run, store, "job/one").keep()
    with run.assessments_path.open("ab") as file:
        file.write(b"{}\n")
    size = run.assessments_path.stat().st_size
    assert not RunBackup(run, store, "job/one").fetch()
    assert run.assessments_path.stat().st_size == size
    run.assessments_path.unlink()
    RunBackup(run, store, "job/two").keep()  # before the first assessment
    assert not RunBackup(run, store, "job/two").fetch()


@pytest.mark.parametrize("url", ["nothing://store", "s3://store"])
def test_a_store_that_cannot_be_used_says_why(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    known = import_module("fsspec.registry")._registry
    monkeypatch.delitem(known, "s3", raising=False)  # as if it was not used before
    with pytest.raises(BackendError, match=f"the store {url} cannot be used: .*(known|s3fs)"):
        Store(url)


def call(key: bytes, reply: str = '"r"') -> StoredCall:
    return StoredCall(key * 16, "chat", "m", "[]", reply, 1.0, 3, 4)


def test_a_reply_of_another_machine_is_found(tmp_path: Path, url: str) -> None:
    def opened(machine: str, run: str = "one") -> SharedReplies:
        return SharedReplies(tmp_path / machine, Store(url), "replies", run)

    first = opened("a")
    first.add([call(b"a"), call(b"b")])
    first.close()
    keys = [call(name).key for name in (b"a", b"b", b"c")]
    second = opened("b")
    second.fetch(keys)
    found = second.find_calls(keys)
    assert sorted(one.key for one in found) == keys[:2]
    assert {one.cached for one in found} == {0}  # paid for by this run
    second.remove({keys[0]: '"r"'})
    second.close()
    third = opened("c", run="two")
    third.fetch(keys)
    assert [(one.key, one.cached) for one in third.find_calls(keys)] == [(keys[1], 1)]
    third.close()


def test_a_damaged_reply_is_not_there(tmp_path: Path, url: str) -> None:
    store = Store(url)
    replies = SharedReplies(tmp_path / "a", store, "replies", "one")
    key = call(b"a").key
    for content in (b"", b'{"run": "one"', b"[]", b'{"run": "x", "key": "zz"}', b'{"key": "61"}'):
        store.write(f"replies/{key.hex()[:2]}/{key.hex()}.json", content)
        replies.fetch([key])
        assert replies.find([key]) == {}
    replies.close()


def test_a_worker_goes_on_where_another_ended(tmp_path: Path, url: str) -> None:
    rows = [{**row, "response": None} for row in records(24)]
    shard = jsonl(tmp_path / "s.jsonl", rows)
    with LlmServer(latency_ms=30) as server:

        def worker(disk: str) -> Worker:
            job = ClusterJob(
                id="job",
                metrics={"grounding": {"correctness": "none"}},
                backends={"entailer": "lexical", "model": f"openai:m@{server.base_url}"},
                options=build_run_options(
                    report=False, cache=None, samples_at_once=2, calls_at_once=2
                ),
                store=url,
                replies="replies",
                scratch=str(tmp_path / disk),
            )
            return Worker(job)

        async def stopped() -> None:
            first = worker("one")
            work = asyncio.ensure_future(first.score("s.jsonl"))
            while server.stats()["answered"] < 6:
                await asyncio.sleep(0.02)
            await first.stop()
            with pytest.raises(asyncio.CancelledError):
                await work

        store = Store(url)
        store.put(shard, "job/shards/s.jsonl")
        asyncio.run(stopped())
        shutil.rmtree(tmp_path / "one")
        assert asyncio.run(worker("two").score("s.jsonl")) == 24
        stats = server.stats()
        assert 24 <= stats["received"] <= 26  # two may have been in progress
    assert is_finished(store, "job/runs/s.jsonl")
    target = tmp_path / "kept"
    assert fetch(store, "job/runs/s.jsonl", target)
    used = json.loads((target / "summary.json").read_bytes())["usage"]["models"]
    assert [(one["calls"], one["cached"]) for one in used.values()] == [(24, 0)]


def test_what_is_prepared_is_kept_and_fetched(tmp_path: Path, url: str) -> None:
    store, metrics = Store(url), [Fewl()]
    here, there = (Preparation(tmp_path / one / "whole.jsonl", "key") for one in ("a", "b"))
    here.path.mkdir(parents=True)
    CallStore(here.calls_path).close()
    keep_prepared(here, metrics, store, "job/prepared")  # not finished
    assert not fetch_prepared(store, "job/prepared", there, metrics, calls=False)
    here.write({"fewl": {"told": np.arange(3)}}, {"fewl": {"calls": {"embedding": 3}, "usage": {}}})
    keep_prepared(here, metrics, store, "job/prepared")
    assert fetch_prepared(store, "job/prepared", there, metrics, calls=False)
    assert not there.calls_path.exists()  # the arrays are enough
    assert there.read() == here.read()
    arrays = there.arrays("fewl")
    assert arrays is not None
    assert arrays["told"].tolist() == [0, 1, 2]
    assert fetch_prepared(store, "job/prepared", there, metrics, calls=True)
    assert there.calls_path.read_bytes() == here.calls_path.read_bytes()


def test_small_files_are_read_by_one_request_each(tmp_path: Path, url: str) -> None:
    store = Store(url)
    store.write("a/one.json", b"1")
    if url.startswith("s3"):
        asked = []
        store._files.s3.meta.events.register(
            "before-send.s3", lambda request, **_: asked.append(request)
        )
    assert store.read_all(["a/one.json", "a/two.json", "b/one.json"]) == {"a/one.json": b"1"}
    if url.startswith("s3"):
        assert [one.method for one in asked] == ["GET"] * 3

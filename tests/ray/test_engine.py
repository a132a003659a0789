"""``--engine ray``: refusals, and runs on a cluster of this machine."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.llm_server import LlmServer
from tests.ray.slow_embedder import LOG
from tests.support import jsonl, record, records
from trustassay import api
from trustassay.errors import BackendError, RunFolderError, UsageError
from trustassay.metrics import Harmonicity
from trustassay.ray import engine
from trustassay.ray.cluster import ClusterOptions, connect_to_cluster
from trustassay.runs.intake import BadInputError, RunOptions

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
FILES = ("samples.jsonl", "assessments.jsonl", "assessments.parquet", "report.html")


# without a cluster


def test_without_ray_it_is_said_what_to_install(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    jsonl(tmp_path / "a.jsonl", records(2))
    said = cli("score", "a.jsonl", "--metric", "grounding", "--engine", "ray", "--out", "run")
    assert said.status == 2
    assert "--engine ray needs Ray: pip install '.[ray]'" in said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workers", "2"), "--workers needs --engine ray"),
        (("--engine", "rya"), "rya"),
        (("--engine", "ray", "--per-worker", "disks=2"), "expected cpus=N or gpus=N"),
        (("--engine", "ray", "--per-worker", "cpus=x"), "expected cpus=N or gpus=N"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    cli: Cli,
    tmp_path: Path,
    options: tuple[str, ...],
    words: str,
) -> None:
    jsonl(tmp_path / "a.jsonl", records(2))
    said = cli("score", "a.jsonl", "--metric", "grounding", "--out", "run", *options)
    assert said.status == 2
    assert words in said.err
    assert not (tmp_path / "run").exists()


@needs_ray
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"metrics": "fewl", "generator": "openai:m", "pool": "other.jsonl"},
            "compares each sample with this file, which workers do not have",
        ),
        ({"entailer": lambda _, __: 1.0}, "entailer: --engine ray needs a URI"),
        ({"budget": "5usd"}, "--budget: several workers cannot keep a budget together"),
        ({"workers": 0}, "workers: expected 1 or more"),
    ],
)
def test_what_workers_cannot_do_is_refused(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    source = jsonl(tmp_path / "a.jsonl", records(2))
    given: dict[str, Any] = {"metrics": "grounding", "out": tmp_path / "run", "engine": "ray"}
    with pytest.raises(ValueError, match=words):
        api.score(source, **(given | options))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("samples", "address", "says"),
    [
        (9, None, "on a single machine --engine local is faster"),
        (
            4_999,
            "10.0.0.5:6379",
            "with 4,999 samples, --engine local is usually faster (below 5,000 samples)",
        ),
        (5_000, "10.0.0.5:6379", ""),
    ],
)
def test_it_is_said_where_one_process_is_faster(
    samples: int, address: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    message = engine.why_local_is_faster(samples, ClusterOptions(address=address))
    assert says in message and bool(says) == bool(message)


def test_a_shard_whose_worker_dies_again_and_again_is_given_up(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    board = engine._ShardStates([])
    for count in (5, 5, 9, 9, 9):  # a death after progress counts anew
        board.counts[one] = count
        board.record_death(one, retries=3)
    board.record_death(other, retries=3)
    assert board.waiting[:2] == [other, one]
    with pytest.raises(RunFolderError, match="died 4 times without progress"):
        board.record_death(one, retries=3)


def test_a_store_with_a_key_in_its_address_is_refused(tmp_path: Path) -> None:
    cluster = ClusterOptions(store="s3://KEY:geheim@bucket/store")
    with pytest.raises(UsageError, match="s3: contains a key or password") as error:
        engine.score_on_cluster("none.jsonl", [], {}, tmp_path / "out", RunOptions(), cluster)
    assert "geheim" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_workers_get_the_models_under_their_names_in_the_whole_input(tmp_path: Path) -> None:
    rows = [record(i, model=("big", "small")[i % 2]) for i in range(4)]
    source = jsonl(tmp_path / "in.jsonl", rows)
    urls = {name: f"openai:{name}@http://127.0.0.1:9/v1" for name in ("big", "small")}

    def job_models(folder: str, model: Any) -> Any:
        request = engine._RunRequest(
            source,
            [Harmonicity()],
            {"model": model, "embedder": "embedded"},
            tmp_path / folder,
            RunOptions(),
            ClusterOptions(shards=2, store=str(tmp_path / "store")),
        )
        first, second = engine._plan_shards(request), engine._plan_shards(request)
        assert first.job == second.job
        return first.job.backends["model"]

    # One URI: only the whole input says that it is that of one of two models.
    assert job_models("one", urls["big"]) == {"big": urls["big"]}
    assert job_models("two", [f"{name}={url}" for name, url in urls.items()]) == urls
    with pytest.raises(UsageError, match="did you mean big"):
        job_models("three", f"bigg={urls['big']}")


# on a cluster


@needs_ray
def test_a_faulty_record_and_a_missing_key_are_refused_before_anything_starts(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(engine, "connect_to_cluster", connect)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    jsonl(tmp_path / "a.jsonl", [*records(2), {"id": "q9", "question": "Where?"}])
    jsonl(tmp_path / "b.jsonl", [record(0, response=None)])
    asked = ("score", "a.jsonl", "--metric", "grounding", "--out", "run")
    here, there = cli(*asked), cli(*asked, "--engine", "ray")
    assert (there.status, there.err.replace(" --engine ray", "")) == (here.status, here.err)
    assert there.status == 2
    assert "a.jsonl:3" in there.err
    missing = ("score", "b.jsonl", "--metric", "grounding", "--model", "openai:m", "--out", "run")
    here, there = cli(*missing), cli(*missing, "--engine", "ray")
    assert (there.status, there.err.replace(" --engine ray", "")) == (here.status, here.err)
    assert "OPENAI_API_KEY" in there.err
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    log = tmp_path_factory.mktemp("embedder") / "asked"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOG, str(log))  # workers have the environment of the start
        yield from started()


def started() -> Iterator[Any]:
    with connect_to_cluster(ClusterOptions(workers=2)) as ray:
        yield ray


def without_seconds(folder: Path) -> str:
    content = json.loads((folder / "summary.json").read_bytes())
    del content["seconds"]
    return json.dumps(content)


def unanswered(tmp_path: Path, n: int) -> Path:
    return jsonl(tmp_path / "a.jsonl", [record(i, response=None) for i in range(n)])


def scored(source: Path, server: LlmServer, out: Path, **options: Any) -> Path:
    model = f"openai:m@{server.base_url}"
    named: dict[str, Any] = {
        "metrics": "grounding",
        "entailer": "lexical",
        "model": model,
        "cache": None,
    }
    api.score(source, out=out, **named, **options)
    return out


def workers() -> list[int]:
    """Return the processes of workers below this one."""
    import psutil

    below = psutil.Process().children(recursive=True)
    return [one.pid for one in below if "ray::Worker" in " ".join(one.cmdline())]


@needs_ray
@pytest.mark.slow
def test_a_killed_worker_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    source = unanswered(tmp_path, 60)
    with LlmServer(latency_ms=200) as server:
        options = {"workers": 2, "scratch": str(tmp_path / "disk"), "calls_at_once": 4}

        def kill() -> None:
            while server.stats()["answered"] < 10:
                time.sleep(0.05)
            os.kill(workers()[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        run = scored(source, server, tmp_path / "run", engine="ray", **options)
        killer.join()
        received = server.stats()["received"]
        whole = scored(source, server, tmp_path / "whole")
    assert 60 <= received <= 60 + 2  # those that the worker had in progress
    assert without_seconds(run) == without_seconds(whole)
    for name in FILES:
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    assert not (run / engine.CLUSTER_FOLDER).exists()
    assert not list((tmp_path / "disk").iterdir())
    leases = cluster.get_actor(f"leases-{version('trustassay')}", namespace="trustassay")
    assert cluster.get(leases.count_leased.remote()) >= 60  # calls started as the service said


@needs_ray
@pytest.mark.slow
def test_an_interrupted_run_goes_on(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = unanswered(tmp_path, 40), tmp_path / "run"
    options = {"engine": "ray", "workers": 1, "shards": 1, "calls_at_once": 2}
    options["scratch"] = str(tmp_path / "disk")
    with LlmServer(latency_ms=100) as server:
        answer = engine._poll_count

        def interrupted(*arguments: Any) -> tuple[str, int]:
            if server.stats()["answered"] > 5:
                raise KeyboardInterrupt
            return answer(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(engine, "_poll_count", interrupted)
            with pytest.raises(KeyboardInterrupt):
                scored(source, server, out, **options)
        assert not list((tmp_path / "disk").iterdir())
        with pytest.raises(RunFolderError, match="seed was 0, now 1"):
            scored(source, server, out, seed=1, **options)
        rows = [record(i, response=None) for i in range(40)]
        jsonl(source, [*rows[:39], {"id": "q39"}])
        with pytest.raises(BadInputError, match=r"a\.jsonl:40"):
            scored(source, server, out, **options)
        jsonl(source, [*rows[1:39], record(0, question="Another question?", response=None), {}])
        scored(source, server, out, skip_bad=True, **options)
        assert server.stats()["received"] <= 40  # a question is left out, another one is new
    found = json.loads((out / "summary.json").read_bytes())
    assert found["metrics"]["grounding"]["n"] == 39
    assert found["skipped"] == 1


@needs_ray
@pytest.mark.slow
def test_a_metric_that_looks_beyond_its_sample_prepares_once(cluster: Any, tmp_path: Path) -> None:
    rows = [
        {
            "id": f"q{i}",
            "question": f"Who built lamp {i}?",
            "response": f"A red house {i % 5}.",
            "references": {"one": [f"A red house {i % 4}."], "two": [f"A house {i % 3}."]},
        }
        for i in range(40)
    ]
    source, log = jsonl(tmp_path / "a.jsonl", rows), Path(os.environ[LOG])
    named: dict[str, Any] = {"metrics": "fewl:form=agreement,max_similarity=1,neighbours=3"}
    named |= {"similarity": "lexical", "embedder": "python:tests.ray.slow_embedder:embedder"}
    options: dict[str, Any] = {"engine": "ray", "workers": 2, "shards": 4}
    options["scratch"] = str(tmp_path / "disk")

    def kill() -> None:
        while not log.exists() or log.read_text().count("\n") < 10:
            time.sleep(0.05)
        for pid in workers():
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    api.score(source, out=tmp_path / "run", **named, **options)
    killer.join()
    asked = log.read_text().splitlines()
    api.score(source, out=tmp_path / "whole", **named)
    assert set(asked) == {row["question"] for row in rows}
    assert len(asked) <= 40 + 5  # a batch was in progress
    assert without_seconds(tmp_path / "run") == without_seconds(tmp_path / "whole")
    for name in (*FILES, "prepared.json"):
        ours, theirs = ((tmp_path / one / name).read_bytes() for one in ("run", "whole"))
        assert ours == theirs, name


@needs_ray
@pytest.mark.slow
def test_answers_of_other_shards_are_distractors(cluster: Any, tmp_path: Path) -> None:
    names = [f"{first} {last}" for first in ("Anna", "Paul") for last in ("Black", "Hill", "Woods")]
    rows: list[dict[str, Any]] = [
        {"id": f"q{i}", "question": f"Who built lamp {i}?", "response": f"{name} is behind it."}
        for i, name in enumerate(names)
    ]
    rows += [{"id": f"n{i}", "question": f"Who built hut {i}?"} for i in range(6)]
    source = jsonl(tmp_path / "a.jsonl", rows)
    with LlmServer(reply="text:A") as server:
        named: dict[str, Any] = {"metrics": "consistency:sources=pool", "cache": None}
        named["model"] = f"openai:m@{server.base_url}"
        options: dict[str, Any] = {"engine": "ray", "workers": 2, "shards": 3}
        options["scratch"] = str(tmp_path / "disk")
        api.score(source, out=tmp_path / "run", **named, **options)
        received = server.stats()["received"]
        api.score(source, out=tmp_path / "whole", **named)
        assert received == server.stats()["received"] - received  # nothing was asked twice
    assert without_seconds(tmp_path / "run") == without_seconds(tmp_path / "whole")
    for name in FILES:
        ours, theirs = ((tmp_path / one / name).read_bytes() for one in ("run", "whole"))
        assert ours == theirs, name


@needs_ray
@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_ends_the_run(cluster: Any, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", records(4))
    with pytest.raises(BackendError, match="absent"):
        api.score(
            source,
            metrics="grounding",
            entailer="hf:./absent",
            out=tmp_path / "run",
            engine="ray",
            workers=1,
        )

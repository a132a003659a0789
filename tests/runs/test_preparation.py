"""Metrics that look beyond a sample, over shards: prepared once, and the figures of one run."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trustassay.ray
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.llm_server import LlmServer
from tests.metrics.fewl.helpers import Known
from tests.support import jsonl, lines, results
from trustassay import api
from trustassay.calls.store import CallStore
from trustassay.core.capabilities import BatchLimits
from trustassay.errors import BackendError, RunFolderError
from trustassay.ray.shards import merge_runs
from trustassay.runs.prepare import Preparation

FILES = ("samples.jsonl", "assessments.jsonl", "assessments.parquet", "report.html")
N = 24
NAMES = [
    f"{first} {last}"
    for first in ("Anna", "Paul", "Emma")
    for last in ("Black", "White", "Green", "Brown", "Stone", "Woods", "Rivers", "Hill")
]


class Embedder:
    """Vectors drawn by the text; from the call ``broken_from`` on it fails."""

    name = "drawn"
    limits = BatchLimits(items=4)

    def __init__(self, broken_from: int | None = None) -> None:
        self.asked: Counter[str] = Counter()
        self.broken_from = broken_from

    def vectors(self, texts: Sequence[str]) -> Any:
        if self.broken_from is not None and self.asked.total() >= self.broken_from:
            raise BackendError("out of order")
        self.asked.update(texts)
        drawn = [np.random.default_rng(list(text.encode())).normal(size=8) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in drawn], dtype=np.float32)


def answered(i: int, **others: Any) -> dict[str, Any]:
    """Return a sample with references; some share a question, some models are silent."""
    said = {"one": [f"lamp {i % 7}"], "two": ["I cannot say." if i % 5 == 0 else f"lamp {i % 3}"]}
    row = {"id": f"q{i}", "question": f"Who built lamp {i - i % 4}?", "references": said}
    return {**row, "response": f"lamp {i % 6}", "label": i % 2, **others}


class Similar(Known):
    def __init__(self) -> None:
        pairs = [(f"lamp {i}", f"lamp {j}") for i in range(9) for j in range(9)]
        super().__init__({(a, b): 1 / (1 + abs(int(a[-1]) - int(b[-1]))) for a, b in pairs})


def sharded(
    source: Path, folder: Path, into: int, out: str = "merged", **options: Any
) -> tuple[Path, int]:
    """Score all shards and merge them; return the folder, and how many calls were repeated."""
    found = trustassay.ray.shard(source, into=into, out=folder / f"{out}-shards", whole=True)
    runs = []
    for one in found.shards:
        runs.append(folder / f"{out}-{one.number}")
        api.score(one.path, pool=found.pool_path, out=runs[-1], **options)
    return folder / out, merge_runs(runs, folder / out).repeated


def equal(merged: Path, whole: Path, files: Sequence[str] = FILES) -> None:
    assert results(merged) == results(whole)
    for name in files:
        assert (merged / name).read_bytes() == (whole / name).read_bytes(), name
    stores = [CallStore(one / "calls.sqlite") for one in (merged, whole)]
    assert stores[0].counts() == stores[1].counts()
    for store in stores:
        store.close()
    prepared = [one / "prepared.json" for one in (merged, whole)]
    ours, theirs = (one.read_text() if one.exists() else "" for one in prepared)
    assert ours == theirs


@pytest.mark.parametrize(
    "metric",
    [
        "fewl:form=agreement,max_similarity=1,neighbours=3",
        "fewl:weights=uniform,penalty=random,max_similarity=1,neighbours=2",
        "fewl:weights=agreement,penalty=none",
    ],
)
def test_questions_are_embedded_once_for_all_shards(tmp_path: Path, metric: str) -> None:
    source = jsonl(tmp_path / "a.jsonl", [answered(i) for i in range(N)])
    none = "penalty=none" in metric

    def options() -> dict[str, Any]:
        return {"metrics": metric, "similarity": Similar()} | (
            {} if none else {"embedder": Embedder()}
        )

    alone, shared = options(), options()
    api.score(source, out=tmp_path / "whole", **alone)
    merged, repeated = sharded(source, tmp_path, 3, **shared)
    equal(merged, tmp_path / "whole")
    assert repeated == 0
    if not none:
        assert shared["embedder"].asked == alone["embedder"].asked
        assert set(shared["embedder"].asked.values()) == {1}


def test_what_models_fill_is_asked_once(tmp_path: Path) -> None:
    rows = [answered(i, references=None, response=None) for i in range(N)]
    source = jsonl(tmp_path / "a.jsonl", rows)
    reply = "text:1. Wrong Answer: a red house\n1. Non-Wrong Answer: no red house"
    with LlmServer(reply=reply) as server:
        options: dict[str, Any] = {
            "metrics": "fewl:weights=agreement,max_similarity=1,neighbours=3",
            "model": f"openai:m@{server.base_url}",
            "references": {name: f"openai:{name}@{server.base_url}" for name in ("one", "two")},
            "similarity": "novel",
        }
        api.score(source, out=tmp_path / "whole", cache=None, embedder=Embedder(), **options)
        asked = server.stats()["received"]
        cache = tmp_path / "cache"
        merged, repeated = sharded(source, tmp_path, 3, cache=cache, embedder=Embedder(), **options)
        assert server.stats()["received"] == 2 * asked
        assert repeated == 0
        equal(merged, tmp_path / "whole")
        merged, repeated = sharded(
            source, tmp_path, 3, "apart", cache=None, embedder=Embedder(), **options
        )
        assert repeated > 0  # without a cache, and said
        equal(merged, tmp_path / "whole")


@pytest.mark.parametrize("response", ["lamp", None])
def test_answers_of_other_shards_are_distractors(tmp_path: Path, response: str | None) -> None:
    def row(i: int) -> dict[str, Any]:
        own = response and f"{NAMES[i]} is behind it."
        return {"id": f"q{i}", "question": f"Who built lamp {i}?", "response": own}

    source = jsonl(tmp_path / "a.jsonl", [row(i) for i in range(N)])

    def replied(prompt: str) -> str:
        question = prompt.rsplit("Question: ", 1)[-1].splitlines()[0]
        number = int("".join(filter(str.isdigit, question)) or 0)
        if "A)" in prompt:
            return "ABCDE"[number % 3]
        return f"{NAMES[number]} is behind it."

    options: dict[str, Any] = {"metrics": "consistency:sources=pool", "cache": None}
    api.score(source, out=tmp_path / "whole", model=replied, **options)
    merged, _ = sharded(source, tmp_path, 3, model=replied, **options)
    equal(merged, tmp_path / "whole")
    for i, one in enumerate(lines(merged / "assessments.jsonl")):
        offered = {text for text in NAMES if text in json.dumps(one["evidence"])}
        assert one["error"] is None
        assert len(offered - {NAMES[i]}) >= 3


def test_a_preparation_that_fails_goes_on(tmp_path: Path) -> None:
    rows = [answered(i, question=f"Who built lamp {i}?") for i in range(N)]
    source = jsonl(tmp_path / "a.jsonl", rows)
    metric = "fewl:weights=uniform,max_similarity=1,neighbours=2"
    api.score(
        source, metrics=metric, similarity=Similar(), embedder=Embedder(), out=tmp_path / "whole"
    )
    found = trustassay.ray.shard(source, into=2, out=tmp_path / "shards", whole=True)
    broken = Embedder(broken_from=1)
    runs = [tmp_path / f"{one.number}" for one in found.shards]

    def scored(number: int, embedder: Embedder) -> api.Run:
        return api.score(
            found.shards[number].path,
            metrics=metric,
            similarity=Similar(),
            embedder=embedder,
            pool=found.pool_path,
            out=runs[number],
        )

    errors = {one.error for one in scored(0, broken).assessments}
    assert errors == {"could not be prepared: out of order"}
    assert broken.asked
    sound = Embedder()
    scored(0, sound)
    scored(1, sound)
    assert broken.asked + sound.asked == Counter(row["question"] for row in rows)
    merged = merge_runs(runs, tmp_path / "merged").folder.path
    equal(merged, tmp_path / "whole")


def test_what_cannot_be_compared_with_all_is_refused(tmp_path: Path) -> None:
    rows = [answered(i) for i in range(N)]
    source = jsonl(tmp_path / "a.jsonl", rows)
    other = jsonl(tmp_path / "b.jsonl", rows[1:])
    options: dict[str, Any] = {"metrics": "fewl:weights=agreement", "similarity": Similar()}
    options |= {"embedder": Embedder(), "out": tmp_path / "run"}
    found = trustassay.ray.shard(source, into=2, out=tmp_path / "shards", whole=True)
    shard = found.shards[0].path
    assert found.pool_path and found.pool_path.name == "a.jsonl.whole.jsonl"
    with pytest.raises(ValueError, match=r"fewl compares each sample with all others.*--whole"):
        api.score(shard, **options)
    wrong = trustassay.ray.shard(other, into=2, out=tmp_path / "other", whole=True).pool_path
    with pytest.raises(
        ValueError, match=r"b.jsonl.whole.jsonl is not the file .* SHA-256 .*, got "
    ):
        api.score(shard, pool=wrong, **options)
    assert not (tmp_path / "run").exists()

    faulty = jsonl(tmp_path / "c.jsonl", [*rows, answered(99, response=None)])
    part = trustassay.ray.shard(faulty, into=1, out=tmp_path / "faulty", whole=True)
    with pytest.raises(ValueError, match="1 sample of this shard cannot be scored"):
        api.score(part.shards[0].path, pool=part.pool_path, skip_bad=True, **options)
    assert not (tmp_path / "run").exists()


def test_all_samples_may_move_before_the_merge(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", [answered(i) for i in range(N)])
    said = cli("shard", "a.jsonl", "--into", "2", "--whole")
    assert "a.jsonl.whole.jsonl: all samples" in said.err
    home = tmp_path / "a.jsonl.shards"
    words = (
        "--metric",
        "fewl:form=agreement",
        "--embedder",
        "embedded",
        "--backend",
        "similarity=lexical",
    )
    for i in (0, 1):
        shard = str(home / f"a.jsonl.shard-{i}-of-2.jsonl")
        pool = ("--pool", str(home / "a.jsonl.whole.jsonl"))
        said = cli("score", shard, *words, *pool, "--out", f"runs/{i}")
        assert said.status == 0, said.err
    moved = home.rename(tmp_path / "moved")
    said = cli("merge", "runs/0", "runs/1", "--out", "merged")
    assert said.status == 2
    assert "set --pool to the file of all samples" in said.err
    pool = ("--pool", str(moved / "a.jsonl.whole.jsonl"))
    said = cli("merge", "runs/0", "runs/1", "--out", "merged", *pool)
    assert said.status == 0, said.err
    assert cli("score", "a.jsonl", *words, "--out", "whole").status == 0
    assert results(tmp_path / "merged") == results(tmp_path / "whole")
    assert "whole" not in json.loads((tmp_path / "merged" / "run.json").read_bytes())


def test_a_damaged_preparation_is_named(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", [answered(i) for i in range(N)])
    options: dict[str, Any] = {"metrics": "fewl:form=agreement", "similarity": Similar()}
    sharded(source, tmp_path, 2, embedder=Embedder(), **options)
    (packed,) = (tmp_path / "merged-shards").glob("*.prepared/*/fewl.npz")
    packed.write_bytes(packed.read_bytes()[:100])
    shutil.rmtree(tmp_path / "merged-0")
    shard = tmp_path / "merged-shards" / "a.jsonl.shard-0-of-2.jsonl"
    with pytest.raises(RunFolderError, match=r"fewl.npz: damaged .*; remove "):
        api.score(
            shard,
            pool=tmp_path / "merged-shards" / "a.jsonl.whole.jsonl",
            embedder=Embedder(),
            out=tmp_path / "merged-0",
            **options,
        )


def test_the_run_of_a_shard_is_scored_again_beside_the_whole(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", [answered(i) for i in range(N)])
    first, second = (f"fewl:form=agreement,max_similarity=1,neighbours={k}" for k in (3, 2))
    named: dict[str, Any] = {"similarity": Similar(), "embedder": Embedder()}
    sharded(source, tmp_path, 2, metrics=first, **named)
    api.score(source, metrics=first, out=tmp_path / "first", **named)
    api.rescore(tmp_path / "first", metrics=second, out=tmp_path / "whole", **named)
    again = []
    for i in (0, 1):
        again.append(tmp_path / f"again-{i}")
        api.rescore(tmp_path / f"merged-{i}", metrics=second, out=again[-1], **named)
    merged = merge_runs(again, tmp_path / "merged-again").folder.path
    equal(merged, tmp_path / "whole", files=("samples.jsonl", "assessments.jsonl"))


def test_a_preparation_of_other_settings_is_not_merged(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", [answered(i) for i in range(N)])
    named: dict[str, Any] = {"similarity": Similar(), "embedder": Embedder()}
    found = trustassay.ray.shard(source, into=2, out=tmp_path / "shards", whole=True)
    runs = []
    for one, k in zip(found.shards, (3, 2), strict=True):
        runs.append(tmp_path / f"run-{one.number}")
        metric = f"fewl:form=agreement,neighbours={k}"
        api.score(one.path, metrics=metric, pool=found.pool_path, out=runs[-1], **named)
    with pytest.raises(RunFolderError, match=r"neighbours was 3, now 2"):
        merge_runs(runs, tmp_path / "merged")


def test_of_several_runs_one_prepares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (Preparation(tmp_path / "whole.jsonl", "key") for _ in range(2))
    seen: list[str] = []

    async def held(preparation: Preparation, name: str) -> None:
        async with preparation.lock(show_progress=False):
            seen.append(f"{name} begins")
            await asyncio.sleep(0.3)
            seen.append(f"{name} ends")

    async def both() -> None:
        await asyncio.gather(held(one, "one"), held(other, "other"))

    asyncio.run(both())
    assert seen == ["one begins", "one ends", "other begins", "other ends"]

    def without_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with pytest.raises(RunFolderError, match="cannot be locked"):
        asyncio.run(held(one, "one"))

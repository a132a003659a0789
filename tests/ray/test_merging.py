"""Shards of an input, and their runs put together: the same files as of one run."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.support import Recorder, jsonl, record, records
from trustassay import api
from trustassay.calls.store import CallStore, StoredCall
from trustassay.errors import RunFolderError
from trustassay.ray import merge, shard, shards
from trustassay.ray.shards import UnfinishedShardsError
from trustassay.runs.intake import BadInputError

FILES = ("samples.jsonl", "assessments.jsonl", "assessments.parquet", "report.html")


def messy(n: int) -> list[dict[str, Any]]:
    """Records of which some are blank, some have no id, and some have fields of their own."""
    rows = [record(i, domain=f"d{i % 3}", note=[1.50, "é\u2028"]) for i in range(n)]
    rows[1]["response"] = ""
    for row in rows[2:5]:
        del row["id"]
    return [*rows, {**rows[3]}]  # the same question twice, so the same id but for a number


def scored(source: Path, out: Path, **options: Any) -> Path:
    api.score(source, metrics="grounding", entailer=Recorder(), out=out, **options)
    return out


def runs_of_shards(source: Path, folder: Path, into: int, **options: Any) -> list[Path]:
    shards = shard(source, into=into, out=folder / "shards").shards
    return [scored(one.path, folder / f"run-{one.number}", **options) for one in shards]


def without_seconds(folder: Path) -> str:
    content = json.loads((folder / "summary.json").read_bytes())
    del content["seconds"]
    return json.dumps(content)


def test_a_merged_run_lasts_from_the_first_start_to_the_last_end(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", messy(8))
    runs = runs_of_shards(source, tmp_path, 2)
    for hour, path in zip((3, 1), runs, strict=True):
        run = json.loads((path / "run.json").read_text())
        times = {"started": f"2026-11-29T0{hour}:00:00Z", "ended": f"2026-11-29T0{hour}:30:00Z"}
        (path / "run.json").write_text(json.dumps(run | times))
    for _ in range(2):  # a finished merge is known again, so it has no time of its own
        merge(runs, out=tmp_path / "merged")
        merged = json.loads((tmp_path / "merged" / "run.json").read_text())
        assert merged["started"] == "2026-11-29T01:00:00Z"
        assert merged["ended"] == "2026-11-29T03:30:00Z"
    del run["started"]  # a shard of an earlier version
    (path / "run.json").write_text(json.dumps(run))
    merge(runs, out=tmp_path / "older")
    older = json.loads((tmp_path / "older" / "run.json").read_text())
    assert "started" not in older and older["ended"] >= "2026-11-29T03:30:00Z"


@pytest.mark.slow
@pytest.mark.parametrize("into", [1, 3, 50])
def test_merged_runs_are_the_run_of_the_whole(tmp_path: Path, into: int) -> None:
    source = jsonl(tmp_path / "a.jsonl", messy(30))
    whole = scored(source, tmp_path / "whole")
    runs = runs_of_shards(source, tmp_path, into)
    merged = merge(list(reversed(runs)), out=tmp_path / "merged")
    assert without_seconds(merged.path) == without_seconds(whole)
    for name in FILES:
        assert (merged.path / name).read_bytes() == (whole / name).read_bytes(), name
    assert CallStore(merged.path / "calls.sqlite").counts() == (
        CallStore(whole / "calls.sqlite").counts()
    )
    again = Recorder()  # the merged folder is a run that can be continued
    api.score(source, metrics="grounding", entailer=again, out=merged.path)
    assert not again.batches


def test_a_shard_follows_from_the_id(tmp_path: Path) -> None:
    def places(rows: list[dict[str, Any]], name: str) -> dict[str, str]:
        found = shard(jsonl(tmp_path / "a.jsonl", rows), into=4, out=tmp_path / name).shards
        return {
            json.loads(line)["id"]: one.path.name
            for one in found
            for line in one.path.read_text().splitlines()
        }

    rows = records(40)
    first = places(rows, "first")
    assert first == places(list(reversed(rows)), "second")
    assert len(first) == 40
    assert len(set(first.values())) == 4


def test_skipped_records_are_counted(tmp_path: Path) -> None:
    rows = [*records(12), {"id": "bad"}]
    source = jsonl(tmp_path / "a.jsonl", rows)
    with pytest.raises(BadInputError):
        shard(source, into=2, out=tmp_path / "shards")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
    shard(source, into=2, out=tmp_path / "shards", skip_bad=True)
    runs = [scored(path, tmp_path / path.name) for path in (tmp_path / "shards").iterdir()]
    whole = scored(source, tmp_path / "whole", skip_bad=True)
    merged = merge(runs, out=tmp_path / "merged")
    assert without_seconds(merged.path) == without_seconds(whole)
    assert merged.summary_file["skipped"] == 1


def test_runs_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", records(9))
    first, second = runs_of_shards(source, tmp_path, 2)
    shutil.copytree(first, tmp_path / "copy")
    with pytest.raises(RunFolderError, match="both are runs of shard 0"):
        merge([first, second, tmp_path / "copy"], out=tmp_path / "merged")
    part = json.loads((second / "run.json").read_bytes())["input"]
    other = scored(Path(part), tmp_path / "other", seed=5)
    with pytest.raises(RunFolderError, match="seed was 0, now 5"):
        merge([first, other], out=tmp_path / "merged")
    whole = scored(source, tmp_path / "whole")
    with pytest.raises(RunFolderError, match="not the run of a shard"):
        merge([first, whole], out=tmp_path / "merged")
    with pytest.raises(RunFolderError, match="whole: is not empty"):
        merge([first, second], out=whole)
    source = jsonl(tmp_path / "b.jsonl", records(10))
    (tmp_path / "b").mkdir()
    with pytest.raises(RunFolderError, match="belongs to another input"):
        merge([first, runs_of_shards(source, tmp_path / "b", 2)[1]], out=tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_unfinished_and_missing_shards_are_named_with_their_command(
    cli: Cli,
    tmp_path: Path,
) -> None:
    jsonl(tmp_path / "a b.jsonl", records(12))
    cli("shard", "a b.jsonl", "--into", "3")
    options = ("--metric", "grounding", "--entailer", "lexical")
    for i in (0, 2):
        name = f"a b.jsonl.shards/a b.jsonl.shard-{i}-of-3.jsonl"
        assert cli("score", name, *options, "--out", f"runs/{i}").status == 0
    (tmp_path / "runs/2/summary.json").unlink()
    said = cli("merge", "runs/0", "runs/2", "--out", "merged")
    assert said.status == 2
    expected = "trustassay score 'a b.jsonl.shards/a b.jsonl.shard-2-of-3.jsonl' --metric grounding"
    assert f"runs/2: unfinished; to finish it, run: {expected}" in said.err
    missing = expected.replace("shard-2", "shard-1")
    assert f"shard 1 of 3: its run is missing; to score it, run: {missing}" in said.err
    command = said.err.split("to score it, run: ")[1].split("\n")[0]
    import shlex

    out = shlex.split(command)[-1]
    assert cli(*shlex.split(command)[1:]).status == 0
    name = "a b.jsonl.shards/a b.jsonl.shard-2-of-3.jsonl"
    assert cli("score", name, *options, "--out", "runs/2").status == 0
    said = cli("merge", "runs/0", out, "runs/2", "--out", "merged", "--json")
    assert said.status == 0
    assert json.loads(said.out)["metrics"]["grounding"]["n"] == 12
    assert cli("merge", "runs/0", out, "runs/2", "--out", "merged").status == 0  # it is there


def test_a_shard_scored_in_part_is_not_whole(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", records(12))
    shards = shard(source, into=2, out=tmp_path / "shards").shards
    runs = [scored(one.path, tmp_path / f"{one.number}", limit=2) for one in shards]
    with pytest.raises(UnfinishedShardsError, match="4 of the 12 samples"):
        merge(runs, out=tmp_path / "merged")


def test_a_killed_merge_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = jsonl(tmp_path / "a.jsonl", records(9))
    runs = runs_of_shards(source, tmp_path, 2)
    with monkeypatch.context() as patch:
        patch.setattr(shards, "write_outputs", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            merge(runs, out=tmp_path / "merged")
    assert not (tmp_path / "merged" / "summary.json").exists()
    merged = merge(runs, out=tmp_path / "merged")
    whole = scored(source, tmp_path / "whole")
    assert without_seconds(merged.path) == without_seconds(whole)
    assert not (tmp_path / "merged" / shards.MERGE_MARKER).exists()


def test_a_call_that_one_shard_paid_for_counts_as_paid(tmp_path: Path) -> None:
    runs = runs_of_shards(jsonl(tmp_path / "a.jsonl", records(9)), tmp_path, 2)
    for run, calls in zip(runs, ([(b"a", 1), (b"b", 0)], [(b"a", 0), (b"b", 0)]), strict=True):
        rows = [StoredCall(key, "chat", "m", "[]", '"r"', 1.0, 5, 2, held) for key, held in calls]
        store = CallStore(run / "calls.sqlite")
        store.add(rows)
        store.close()
    merged = merge(runs, out=tmp_path / "merged")
    used = CallStore(merged.path / "calls.sqlite").usage("chat")["m"]
    assert (used.calls, used.prompt_tokens, used.cached) == (2, 10, 0)
    found = shards.merge_runs(runs, tmp_path / "again")
    assert found.repeated == 1  # b


def test_a_metric_that_looks_at_all_samples_refuses_a_shard(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", [record(i, references={"m": ["r"]}) for i in range(9)])
    part = shard(source, into=2, out=tmp_path / "shards").shards[0].path
    with pytest.raises(ValueError, match="fewl compares each sample with all others"):
        api.score(part, metrics="fewl", out=tmp_path / "run", generator=lambda _: "x")
    assert not (tmp_path / "run").exists()
    with pytest.raises(BadInputError, match="divide the whole input"):
        shard(part, into=2, out=tmp_path / "again")


@pytest.mark.parametrize("into", [0, 401])
def test_the_number_of_shards_has_bounds(tmp_path: Path, into: int) -> None:
    with pytest.raises(ValueError, match="expected 1 to 400"):
        shard(jsonl(tmp_path / "a.jsonl", records(2)), into=into, out=tmp_path / "shards")
    assert not (tmp_path / "shards").exists()

"""A full disk: the file is named, the status is 1, nothing stray is left, and the run goes on."""

from __future__ import annotations

import functools
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.serving import one_server, questions, server, uri
from tests.llm_server import LlmServer
from tests.support import command, jsonl, quick_embedder, records, results

__all__ = ["one_server", "server"]

pytestmark = pytest.mark.slow

LARGE = "64m"
ROOM = "finished work is kept; free some space, then run the same command to continue"


@functools.cache
def mount_refused() -> str:
    """Return why no small disk can be made here, ``""`` where one can."""
    try:
        tried = subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return "no small disk can be made here: unshare is not installed"
    return tried.stderr and f"no small disk can be made here: {tried.stderr.strip()}"


@dataclass(frozen=True)
class OnSmallDisk:
    """A command on a disk of so many KiB, and the same again on a larger one."""

    status: int
    said: list[str]
    left: list[str]
    """Files after the first command."""
    again: int
    files: Path
    """A copy of what both left."""


def on_small_disk(kib: int, arguments: list[str], cwd: Path) -> OnSmallDisk:
    """Run a command twice, in a namespace of its own with a small disk at ``cwd / "disk"``."""
    if mount_refused():
        pytest.skip(mount_refused())
    (cwd / "disk").mkdir(exist_ok=True)
    line = shlex.join(command(*arguments))
    script = f"""
        mount -t tmpfs -o size={kib}k tmpfs disk || exit 99
        {line} 2> first.txt; echo $? > status.txt
        (cd disk; find . -type f) > left.txt
        mount -o remount,size={LARGE} disk || exit 99
        {line} 2> second.txt; again=$?
        cp -r disk kept; exit $again
    """
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", script], cwd=cwd, timeout=300, check=False
    )
    assert done.returncode != 99, "the disk could not be made"
    return OnSmallDisk(
        int((cwd / "status.txt").read_text()),
        (cwd / "first.txt").read_text().splitlines(),
        sorted((cwd / "left.txt").read_text().splitlines()),
        done.returncode,
        cwd / "kept",
    )


SCORE = ["score", "a.jsonl", "--entailer", "lexical", "--out"]
STEPS = ["samples.jsonl", "calls.sqlite", "assessments.jsonl", "assessments.parquet", "report.html"]
"""The files of a run that take most room, in the order in which they are written."""
OTHERS = 52 * 1024
"""Bytes of what else is there; SQLite takes more while it is at work."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an unbroken run."""
    folder = tmp_path_factory.mktemp("whole")
    jsonl(folder / "a.jsonl", records(300))
    subprocess.run(command(*SCORE, "run"), cwd=folder, stderr=subprocess.DEVNULL, check=True)
    return folder / "run"


@pytest.mark.parametrize("name", STEPS[1:])
def test_a_run_names_what_has_no_room_and_goes_on(name: str, whole: Path, tmp_path: Path) -> None:
    before = [whole / step for step in STEPS[: STEPS.index(name)]]
    before.append(whole / "run.json")
    room = sum(path.stat().st_size for path in before) + (whole / name).stat().st_size // 2
    if name in STEPS[2:]:
        room += OTHERS
    jsonl(tmp_path / "a.jsonl", records(300))
    found = on_small_disk(room // 1024, [*SCORE, "disk/run"], tmp_path)
    assert found.status == 1
    *_, what, advice = found.said
    assert what.startswith("trustassay: disk/run/")
    assert what.endswith("No space left on device")
    # run.json, which is written again with the end of the run, and summary.json are a few KB.
    small = ("run.json", "summary.json") if name == "assessments.parquet" else ()
    assert any(file in what for file in (name, *small))
    assert advice == ROOM
    assert not [file for file in found.left if ".part" in file]
    assert found.again == 0
    assert results(found.files / "run") == results(whole)


@pytest.mark.parametrize("cache", [False, True])
def test_nothing_more_is_asked_when_replies_cannot_be_kept(
    server: LlmServer, cache: bool, tmp_path: Path
) -> None:
    server.change(latency_ms=20)
    questions(tmp_path / "q.jsonl", 60)
    arguments = ["--model", uri(server, concurrency=8), "--cache", "disk/cache" if cache else "off"]
    arguments += quick_embedder(tmp_path)
    out = "run" if cache else "disk/run"
    metric = "harmonicity:perturbations=3"
    found = on_small_disk(
        80, ["score", "q.jsonl", "--metric", metric, *arguments, "--out", out], tmp_path
    )
    assert found.status == 1
    assert found.said[-1] == ROOM
    assert ".sqlite: No space left on device" in found.said[-2]
    assert found.again == 0
    asked = server.stats()["answered"]
    assert asked <= 240 + 2 * 8  # those under way when the disk was full are asked again


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["generate", "q.jsonl", "--out", "disk/a.jsonl"], "disk/a.jsonl"),
        (
            ["papers", "cite", "a.jsonl", "--by", "bm25", "--out", "disk/c.jsonl"],
            "disk/.c.jsonl.part",
        ),
        (["compare", "RUN", "RUN", "--out", "disk/c.html"], "disk/c.html"),
    ],
)
def test_other_commands_name_it_too(
    server: LlmServer, arguments: list[str], name: str, whole: Path, tmp_path: Path
) -> None:
    arguments = [argument.replace("RUN", str(whole)) for argument in arguments]
    questions(tmp_path / "q.jsonl", 60)
    jsonl(tmp_path / "a.jsonl", records(60))
    if arguments[0] == "generate":
        arguments = [*arguments, "--model", uri(server), "--cache", "off"]
    if arguments[1] == "cite":
        pytest.importorskip("tantivy")
    found = on_small_disk(8, arguments, tmp_path)
    assert (found.status, found.again) == (1, 0)
    assert found.said[-2].startswith(f"trustassay: {name}")
    assert found.said[-2].endswith("No space left on device")
    assert found.said[-1] == ROOM

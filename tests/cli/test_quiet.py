"""What reaches the network, and what is left in the user's home: only what the user named."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.serving import one_server, server, uri
from tests.llm_server import LlmServer
from tests.support import ROOT, jsonl, lines, record

__all__ = ["one_server", "server"]

pytestmark = pytest.mark.slow

CACHE = ".cache/trustassay/calls.sqlite"
"""The one file below the user's home that the docs name (docs/models/chat-models.md)."""

STRACE = ("strace", "--seccomp-bpf", "-f", "-qq", "-e", "trace=network")
SENT = re.compile(r"\b(?:connect|sendto|sendmsg|sendmmsg)\(.*?port=htons\((\d+)\).*?\"([^\"]+)\"")
OPENED = re.compile(r"\bsocket\((AF_\w+)")
UNIX = re.compile(r"\bconnect\(.*sun_path=@?\"([^\"]+)\"")


@functools.cache
def strace_missing() -> str:
    """Return why system calls cannot be traced here, ``""`` where they can."""
    if shutil.which("strace") is None:
        return "strace is not installed: the system calls of libraries are not seen"
    tried = subprocess.run([*STRACE, "-o", "/dev/null", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else f"strace cannot trace here: {tried.stderr!r:.200}"


@dataclass(frozen=True)
class Quiet:
    """What a process did: its output, what left it, and the files that it left at home.

    ``addresses`` and ``families`` are ``None`` where system calls could not be traced. A pair of
    sockets within the process (``socketpair``) is none.
    """

    status: int
    out: str
    err: str
    home: list[str]
    temporary: list[str]
    addresses: set[str] | None
    families: set[str] | None


def quietly(arguments: Sequence[str | Path], cwd: Path) -> Quiet:
    """Run Python with an empty home and none of the variables of this process.

    Among those may be one (``CI``, for instance) that makes a library quiet by itself.
    """
    home, temporary, trace = (cwd / name for name in (".home", ".tmp", ".trace"))
    home.mkdir()
    temporary.mkdir()
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PYTHONPATH": path,
    }
    command = [sys.executable, *map(str, arguments)]
    traced = not strace_missing()
    if traced:
        command = [*STRACE, "-o", str(trace), *command]
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    calls = trace.read_text(errors="replace") if traced else ""
    return Quiet(
        done.returncode,
        done.stdout,
        done.stderr,
        files(home),
        files(temporary),
        {f"{address}:{port}" for port, address in SENT.findall(calls)} if traced else None,
        set(OPENED.findall(calls)) | set(UNIX.findall(calls)) if traced else None,
    )


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


def test_a_look_at_the_network_would_be_seen(tmp_path: Path) -> None:
    if strace_missing():
        pytest.skip(strace_missing())
    program = """
import socket
from pathlib import Path

for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    with socket.socket(family, socket.SOCK_DGRAM) as opened:  # sends no packet
        opened.connect((address, 53))
with socket.socket(socket.AF_UNIX) as opened:
    opened.connect_ex("/nowhere/socket")
(Path.home() / "left").touch()
"""
    found = quietly(["-c", program], tmp_path)
    assert found.addresses == {"127.0.0.1:53", "::1:53"}
    assert found.families == {"AF_INET", "AF_INET6", "AF_UNIX", "/nowhere/socket"}
    assert found.home == ["left"]


def test_the_demo_opens_no_socket_and_leaves_nothing_at_home(tmp_path: Path) -> None:
    found = quietly(["-m", "trustassay", "demo"], tmp_path)
    assert found.status == 0, found.err
    assert (found.home, found.temporary) == ([], [])
    if strace_missing():
        pytest.skip(strace_missing())
    assert (found.addresses, found.families) == (set(), set())


METRIC = "fewl:form=agreement,penalty=none"


def inputs(folder: Path) -> None:
    """Write the files that :func:`commands` names."""
    answered = [record(i) for i in range(4)]
    jsonl(folder / "answers.jsonl", answered)
    jsonl(folder / "uncited.jsonl", [record(9, response="Number 9 is odd.")])
    asked = [{"id": f"q{i}", "question": f"Who built bridge {i} of the town?"} for i in range(3)]
    jsonl(folder / "questions.jsonl", asked)
    rows = [{**row, "response": "It is so.", "resamples": ["It is so.", "No."]} for row in asked]
    jsonl(folder / "resampled.jsonl", rows)
    several = [
        {**row, "id": f"{row['id']}-{text}", "response": text, "references": {"one": "the town"}}
        for row in asked
        for text in ("the town", "nobody")
    ]
    jsonl(folder / "several.jsonl", several)
    jsonl(folder / "gold.jsonl", [{**row, "answers": ["a bridge"]} for row in asked])
    (folder / "texts").mkdir()
    (folder / "texts" / "town.txt").write_text("The town built a bridge over its river.")


def commands(model: str) -> list[list[str]]:
    """Return one of each command."""
    lines = f"""
        score answers.jsonl --out one
        score answers.jsonl --metric grounding:splitter=lines --entailer lexical --out two
        score resampled.jsonl --metric harmonicity --out three
        score resampled.jsonl --metric semantic_harmonicity --out four
        score questions.jsonl --metric harmonicity:perturbations=2 --model {model} --out five
        rescore one --metric grounding:threshold=0.8 --out six
        report one
        compare three three --out compared.html
        plan questions.jsonl --metric harmonicity --model {model}
        papers isotropy questions.jsonl --perturbation typo --out isotropy.html
        models --check
        models {model}
        papers cite uncited.jsonl --by entailment --out a.jsonl
        papers cite uncited.jsonl --by embedding --out b.jsonl
        papers cite uncited.jsonl --by bm25 --out c.jsonl
        papers dataset gold.jsonl --corpus texts --out d.jsonl
        score resampled.jsonl --follow --threshold 1 --once --out seven
        papers attack Hello --model {model} --steps 1 --candidates 1 --perturbations 1 --out eight
        generate questions.jsonl --model {model} --out e.jsonl
        annotate answers.jsonl --rater anna --export sheet.csv
        compare e.jsonl resampled.jsonl --judge {model} --run nine
        papers select icl several.jsonl --metric {METRIC} --backend similarity=novel --all --run ten --out f
        papers select sft ten --out chosen
    """  # noqa: E501
    return [line.split() for line in lines.strip().splitlines()]


def test_each_command_reaches_the_named_endpoint_alone(server: LlmServer, tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="pip install '.[retrieval]'")
    inputs(tmp_path)
    work = commands(uri(server))
    (tmp_path / "commands.json").write_text(json.dumps(work))
    found = quietly(["-m", "tests.commands", "commands.json"], tmp_path)
    assert found.status == 0, found.err
    told: dict[str, Any] = json.loads(found.out.splitlines()[-1])
    # The judge's replies name no choice, so that nothing could be judged there.
    assert dict(zip(map(" ".join, work), told["status"], strict=True)) == {
        " ".join(arguments): int("--judge" in arguments) for arguments in work
    }, found.err
    heard = {(event, address) for event, _, address in told["network"]}
    assert heard == {("socket.connect", str(("127.0.0.1", server.port)))}
    assert (found.home, found.temporary) == ([CACHE], [])
    if strace_missing():
        pytest.skip(strace_missing())
    assert found.addresses == {f"127.0.0.1:{server.port}"}
    assert found.families == {"AF_INET"}


@pytest.mark.torch
def test_a_model_in_a_folder_is_loaded_and_tuned_without_a_look_at_the_hub(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    library = pytest.importorskip("sentence_transformers")
    from tests.tiny_chat import save_llama
    from tests.tiny_models import train_nli

    train_nli(tmp_path / "nli", steps=0)
    bert = transformers.AutoModel.from_pretrained(tmp_path / "nli")
    bert.save_pretrained(tmp_path / "bert")
    transformers.AutoTokenizer.from_pretrained(tmp_path / "nli").save_pretrained(tmp_path / "bert")
    library.SentenceTransformer(str(tmp_path / "bert"), device="cpu").save(str(tmp_path / "st"))
    save_llama(tmp_path / "llama")
    work = [["models", "entailer=hf:nli?check=no", "embedder=hf:st", "chat=hf:llama"]]
    if importlib.util.find_spec("trl"):  # it would tell the hub of each training
        turns = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "sat"}]
        jsonl(tmp_path / "train.jsonl", [{"messages": turns}] * 4)
        jsonl(tmp_path / "asked.jsonl", [{"question": "q", "own_prompt": "the cat"}])
        tuned = "papers tune train.jsonl --model llama --steps 2 --out tuned"
        asking = "generate asked.jsonl --model hf:tuned --max-tokens 20 --out a.jsonl"
        work += [tuned.split(), asking.split()]
    (tmp_path / "commands.json").write_text(json.dumps(work))
    found = quietly(["-m", "tests.commands", "commands.json"], tmp_path)
    told = {"status": [0] * len(work), "network": []}
    assert json.loads(found.out.splitlines()[-1]) == told, found.err
    assert found.home == []
    if len(work) > 1:
        assert lines(tmp_path / "a.jsonl")[0]["response"]
    if strace_missing():
        pytest.skip(strace_missing())
    assert found.addresses == set()
    # torch asks the system for the user's name, which it may look up with its name service.
    assert found.families is not None
    assert found.families <= {"AF_UNIX", "/var/run/nscd/socket"}

"""One process, and one and two workers on a Ray cluster: equal results, throughput, failures.

    python -m benchmarks.scaling same                 # embedded models, 2,000 samples
    python -m benchmarks.scaling same --endpoint      # an endpoint on 127.0.0.1
    python -m benchmarks.scaling kills                # a worker killed ten times
    python -m benchmarks.scaling driver               # the driver killed, then started again
    python -m benchmarks.scaling disk                 # and its workers, whose disk is lost
    python -m benchmarks.scaling rate                 # four workers, 100 requests a second
    python -m benchmarks.scaling merge                # memory and seconds of a merge of 100,000

Each prints JSON: figures, and the load of the machine before and after. `--samples` sets the size.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.reliability.counting import End, Server
from benchmarks.reliability.server import Behaviour

KILLS = 10
LATENCY_S = 0.5
AT_ONCE = 8
"""Calls in progress of two workers together while they are killed."""


def samples(folder: Path, count: int, *, answered: bool) -> Path:
    """Write a file of questions with documents, and answers that cite them."""
    folder.mkdir(exist_ok=True)
    path = folder / ("answers.jsonl" if answered else "questions.jsonl")
    with path.open("w") as file:
        for i in range(count):
            record: dict[str, Any] = {
                "id": f"q{i}",
                "question": f"What is known of number {i}?",
                "documents": [f"The number {i} is odd.", f"Number {i} is large, and it is blue."],
            }
            if answered:
                record["response"] = f"Number {i} is odd [1]. It is large and red [1][2]."
            file.write(json.dumps(record) + "\n")
    return path


def command(source: Path, out: Path, *options: str) -> list[str]:
    words = [sys.executable, "-m", "trustassay", "score", str(source), "--out", str(out)]
    return [*words, "--metric", "grounding", "--cache", "off", *options]


def run(words: Sequence[str]) -> float:
    """Run a command; return its seconds."""
    began = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.returncode}\n{done.stderr[-2000:]}")
    return time.perf_counter() - began


def summary(out: Path) -> str:
    """Return ``summary.json`` without its timing, as text."""
    content = json.loads((out / "summary.json").read_bytes())
    del content["seconds"]
    return json.dumps(content)


def same(folder: Path, count: int, endpoint: bool) -> dict[str, Any]:
    """Score with the local engine and with one and two workers; compare results and seconds."""
    source = samples(folder, count, answered=not endpoint)
    found: dict[str, Any] = {"samples": count, "models": "endpoint" if endpoint else "embedded"}
    with Server(Behaviour(latency_s=0.1)) as server:
        options = ["--entailer", "embedded"]
        if endpoint:
            options = ["--entailer", "lexical", "--model", f"openai:m@{server.base_url}"]
        found["local"] = run(command(source, folder / "local", *options))
        small = samples(folder / "small", 8, answered=not endpoint)
        found["start and end of a cluster"] = run(
            command(small, folder / "tiny", *options, "--engine", "ray", "--workers", "1")
        )
        for workers in (1, 2):
            out = folder / f"ray-{workers}"
            words = command(source, out, *options, "--engine", "ray", "--workers", f"{workers}")
            found[f"workers {workers}"] = seconds = run(words)
            net = seconds - found["start and end of a cluster"]
            found[f"workers {workers}: samples a second"] = count / net
            found[f"workers {workers}: same summary"] = summary(out) == summary(folder / "local")
    found["local: samples a second"] = count / found["local"]
    overhead = found["workers 1"] - found["start and end of a cluster"] - found["local"]
    found["overhead, ms a sample"] = 1000 * overhead / count
    return found


def workers_of(pid: int) -> list[int]:
    """Return the processes of the workers that a driver started, and no others."""
    parents, names = {}, {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text()
            names[int(path.name)] = (path / "cmdline").read_bytes().decode(errors="replace")
        except (OSError, ValueError):
            continue
        parents[int(path.name)] = int(stat.rpartition(")")[2].split()[1])

    def below(one: int) -> bool:
        while one > 1:
            if one == pid:
                return True
            one = parents.get(one, 0)
        return False

    return [one for one, name in names.items() if "ray::Worker" in name and below(one)]


def _stored(path: Path) -> int:
    return sum(1 for _ in path.open("rb")) if path.exists() else 0


class Watched:
    """A run on a cluster against an endpoint that counts; its parts can be killed."""

    def __init__(self, folder: Path, count: int, *options: str) -> None:
        self.folder, self.count = folder, count
        self.source = samples(folder, count, answered=False)
        self.server = Server(Behaviour(latency_s=LATENCY_S))
        self.options = options

    def start(self) -> subprocess.Popen[bytes]:
        model = f"openai:m@{self.server.base_url}?concurrency={AT_ONCE}"
        words = command(self.source, self.folder / "out", "--entailer", "lexical")
        words += ["--model", model, "--engine", "ray", "--workers", "2", *self.options]
        words += ["--scratch", str(self.folder / "disk"), "--store", str(self.folder / "store")]
        with (self.folder / "messages").open("ab") as messages:
            return subprocess.Popen(words, stdout=messages, stderr=messages)

    def received(self) -> int:
        return self.server.received()

    def told(self, process: subprocess.Popen[bytes], kills: Sequence[float]) -> dict[str, Any]:
        """Wait for the end, and compare with a run that nothing happened to.

        An answer that was written within 0.1 s of one of the ``kills`` counts as in flight: the
        worker cannot have stored it for sure.
        """
        status = process.wait()
        if status:
            raise SystemExit((self.folder / "messages").read_text()[-2000:])
        counts = self.server.counts([End(at, at) for at in kills])
        options = ["--entailer", "lexical", "--model"]
        local = command(self.source, self.folder / "local", *options)
        run([*local, f"openai:m@{self.server.base_url}"])
        words = (summary(self.folder / "out"), summary(self.folder / "local"))
        return {
            "samples": self.count,
            "requests": counts.received,
            "asked again": counts.received - counts.calls,
            "answered and stored, asked again": counts.asked_again,
            "lost": self.count - json.loads(words[0])["metrics"]["grounding"]["n"],
            "failed": json.loads(words[0])["metrics"]["grounding"]["failed"],
            "same summary": words[0] == words[1],
        }


def kills(folder: Path, count: int) -> dict[str, Any]:
    """Kill a worker ten times, at random moments."""
    watched, draw = Watched(folder, count), random.Random(19)
    with watched.server:
        process = watched.start()
        times: list[float] = []
        while process.poll() is None and len(times) < KILLS:
            time.sleep(draw.uniform(1.0, 10.0))
            busy = workers_of(process.pid)
            if busy and watched.received() > 0 and process.poll() is None:
                os.kill(draw.choice(busy), signal.SIGKILL)
                times.append(time.time())
        found = watched.told(process, times)
    return {"kills": len(times), "in flight at a kill, at most": AT_ONCE // 2, **found}


def driver(folder: Path, count: int, *, disk: bool) -> dict[str, Any]:
    """Kill the driver half way, start it again; ``disk``: and the workers, whose disk is gone."""
    watched = Watched(folder, count)
    with watched.server:
        process = watched.start()
        while watched.received() < count / 2 and process.poll() is None:
            time.sleep(0.2)
        if process.poll() is not None:
            raise SystemExit((folder / "messages").read_text()[-2000:])
        pids = workers_of(process.pid)
        process.kill()
        for pid in pids if disk else ():
            os.kill(pid, signal.SIGKILL)
        process.wait()
        killed = time.time()
        until = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
            time.sleep(0.2)
        before = watched.received()
        if disk:
            shutil.rmtree(folder / "disk")
        found = watched.told(watched.start(), [killed])
    return {"requests before the kill": before, "in flight, at most": AT_ONCE, **found}


def rate(folder: Path, count: int, workers: int) -> dict[str, Any]:
    """Ask an endpoint that takes 100 requests a second, with several workers."""
    source = samples(folder, count, answered=False)
    with Server(Behaviour(latency_s=0.1, requests_per_second=100)) as server:
        options = ["--entailer", "lexical", "--model", f"openai:m@{server.base_url}"]
        engine = ["--engine", "ray", "--workers", f"{workers}", "--per-worker", "cpus=0.5"]
        run(command(source, folder / "out", *options, *(engine if workers else [])))
        counts = server.counts([])
    refused = counts.received - counts.calls
    return {
        "samples": count,
        "workers": workers,
        "answered a second": counts.calls / counts.seconds,
        "complaints a call": refused / counts.calls,
        "outcomes": counts.outcomes,
    }


def merge(folder: Path, count: int) -> dict[str, Any]:
    """Score shards without a model, and merge them in this process, whose memory is measured."""
    from trustassay import api

    source = samples(folder, count, answered=True)
    shards = api.shard(source, into=8, out=folder / "shards").shards
    runs = [folder / f"run-{one.number}" for one in shards]
    for one, out in zip(shards, runs, strict=True):
        run(command(one.path, out, "--entailer", "lexical"))
    words = [sys.executable, "-m", "trustassay", "merge", *map(str, runs), "--out"]
    seconds = run([*words, str(folder / "merged")])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"samples": count, "seconds": seconds, "peak of any command, MiB": round(peak)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("what", choices=["same", "kills", "driver", "disk", "rate", "merge"])
    parser.add_argument("--samples", type=int)
    parser.add_argument("--endpoint", action="store_true")
    parser.add_argument("--workers", type=int, default=4, help="of rate; 0 for the local engine")
    chosen = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="ta-scaling-") as name:
        folder, count = Path(name), chosen.samples
        if chosen.what == "same":
            found = same(folder, count or 2_000, chosen.endpoint)
        elif chosen.what == "kills":
            found = kills(folder, count or 2_000)
        elif chosen.what == "rate":
            found = rate(folder, count or 3_000, chosen.workers)
        elif chosen.what == "merge":
            found = merge(folder, count or 100_000)
        else:
            found = driver(folder, count or 2_000, disk=chosen.what == "disk")
    found["load"] = [round(before, 1), round(os.getloadavg()[0], 1)]
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

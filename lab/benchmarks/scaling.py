"""One process, and one and two workers on a Ray cluster: equal results, throughput, failures.

    python -m lab.benchmarks.scaling same --keep DIR      # embedded models, 20,000 short samples
    python -m lab.benchmarks.scaling same --keep DIR --endpoint   # an endpoint on 127.0.0.1
    python -m lab.benchmarks.scaling kills                # a worker killed ten times
    python -m lab.benchmarks.scaling driver               # the driver killed, then started again
    python -m lab.benchmarks.scaling disk                 # and its workers, whose disk is lost
    python -m lab.benchmarks.scaling nodes                # one of two machines killed, with its
    disk
    python -m lab.benchmarks.scaling rate                 # four workers, 100 requests a second
    python -m lab.benchmarks.scaling merge                # memory and seconds of a merge of 100,000

Each prints JSON: figures, and the load of the machine before and after. `--samples` sets the size.
`same` measures the local engine, the start of a cluster, one and two workers; each is written into
DIR, so that the command goes on where it was ended; `--only` measures one of them. `--store` names
the store of `kills`, `driver`, `disk` and `nodes`, for example `s3://bucket/x`.
"""

from __future__ import annotations

import argparse
import hashlib
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

from lab.benchmarks.reliability.counting import End, Server
from lab.benchmarks.reliability.server import Behaviour

KILLS = 10
LATENCY_S = 0.5
AT_ONCE = 8
"""Calls in progress of two workers together while they are killed."""


def samples(folder: Path, count: int, *, answered: bool, short: bool = False) -> Path:
    """Write a file of questions with documents, and answers that cite them.

    ``short`` ones have one document, and an answer of one sentence.
    """
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
            if short:
                del record["documents"][1]
            if short and answered:
                record["response"] = f"Number {i} is odd [1]."
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


CONFIGURATIONS = {"local": 0, "start": 1, "workers 1": 1, "workers 2": 2}
"""What `same` measures, with the number of workers; ``start`` is a cluster for eight samples."""


def same(folder: Path, count: int, endpoint: bool, only: str | None) -> dict[str, Any]:
    """Measure the configurations that ``folder`` has no result of, and tell all of them."""
    kind = "endpoint" if endpoint else "embedded"
    results = folder / f"{kind}-{count}.json"
    found: dict[str, Any] = json.loads(results.read_bytes()) if results.exists() else {}
    for name, workers in CONFIGURATIONS.items():
        if name in found or only not in (None, name):
            continue
        size = 8 if name == "start" else count
        source = samples(folder / f"{kind}-{size}", size, answered=not endpoint, short=True)
        found[name] = measured(source, folder / f"{kind}-{name.replace(' ', '-')}", workers, kind)
        results.write_text(json.dumps(found, indent=2))
        print(f"{name}: {found[name]}", file=sys.stderr)
    return {"samples": count, "models": kind, **found, **_compared(found, count)}


def measured(source: Path, out: Path, workers: int, kind: str) -> dict[str, Any]:
    """Score once, from nothing; return seconds, load, and the digest of the summary."""
    shutil.rmtree(out, ignore_errors=True)
    engine = ["--engine", "ray", "--workers", f"{workers}"] if workers else []
    before = os.getloadavg()[0]
    with Server(Behaviour(latency_s=0.1)) as server:
        options = ["--entailer", "embedded"]
        if kind == "endpoint":
            options = ["--entailer", "lexical", "--model", f"openai:m@{server.base_url}"]
        seconds = run(command(source, out, *options, *engine))
        told = summary(out).replace(server.base_url, "ENDPOINT")
    return {
        "seconds": round(seconds, 1),
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
        "summary": hashlib.sha256(told.encode()).hexdigest()[:16],
    }


def _compared(found: dict[str, Any], count: int) -> dict[str, Any]:
    """Return rates without the start of a cluster, and whether summaries are equal."""
    start = found.get("start", {}).get("seconds", 0.0)
    told: dict[str, Any] = {}
    for name in found.keys() - {"start"}:
        net = found[name]["seconds"] - (start if CONFIGURATIONS[name] else 0.0)
        told[f"{name}: samples a second"] = round(count / net, 1)
        if "local" in found:
            equal = found[name]["summary"] == found["local"]["summary"]
            told[f"{name}: same summary"] = equal
    if {"local", "workers 1"} <= found.keys():
        overhead = found["workers 1"]["seconds"] - start - found["local"]["seconds"]
        told["overhead, ms a sample"] = round(1000 * overhead / count, 2)
    return dict(sorted(told.items()))


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

    def __init__(self, folder: Path, count: int, store: str | None, *options: str) -> None:
        self.folder, self.count = folder, count
        self.source = samples(folder, count, answered=False)
        self.server = Server(Behaviour(latency_s=LATENCY_S))
        self.store = store or str(folder / "store")
        self.options = options or ("--engine", "ray", "--scratch", str(folder / "disk"))

    def start(self) -> subprocess.Popen[bytes]:
        model = f"openai:m@{self.server.base_url}?concurrency={AT_ONCE}"
        words = command(self.source, self.folder / "out", "--entailer", "lexical")
        words += ["--model", model, "--workers", "2", "--store", self.store, *self.options]
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


def kills(folder: Path, count: int, store: str | None) -> dict[str, Any]:
    """Kill a worker ten times, at random moments."""
    watched, draw = Watched(folder, count, store), random.Random(19)
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


def driver(folder: Path, count: int, store: str | None, *, disk: bool) -> dict[str, Any]:
    """Kill the driver half way, start it again; ``disk``: and the workers, whose disk is gone."""
    watched = Watched(folder, count, store)
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


def nodes(folder: Path, count: int, store: str | None) -> dict[str, Any]:
    """Kill one of two machines with its disk, when its shard is kept in part.

    The machines are two raylets here, each with one CPU and its own temporary folder. There is one
    shard for each, and the second is finished on the first machine.
    """
    from trustassay.calls.store import CallStore
    from trustassay.ray.cluster import import_ray
    from trustassay.ray.store import Store
    from trustassay.runs.folder import RunFolder

    os.environ["RAY_TMPDIR"] = str(folder)  # else it writes into /tmp/ray
    (folder / "ray").mkdir()
    import_ray(local=True)
    import psutil
    from ray.cluster_utils import Cluster

    def machine(name: str) -> dict[str, Any]:
        (folder / name).mkdir()
        environment = {"TMPDIR": str(folder / name)}
        return {"num_cpus": 1, "object_store_memory": 80 * 2**20, "env_vars": environment}

    first = machine("first") | {"include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=first)
    try:
        second = cluster.add_node(**machine("second"))
        engine = f"ray:{cluster.address}"
        watched = Watched(folder, count, store, "--engine", engine, "--shards", "2")
        kept = Store(watched.store)
        with watched.server:
            process = watched.start()
            state: dict[str, Any] | None = None
            while not state and process.poll() is None:
                time.sleep(0.2)
                for path in (folder / "second").glob("trustassay-*/runs/*.jsonl"):
                    job = path.parents[1].name.removeprefix("trustassay-")
                    state = kept.read(f"{job}/runs/{path.name}/state.json")
            if not state:
                process.kill()
                raise SystemExit((folder / "messages").read_text()[-2000:])
            before = watched.received()
            kept.get(f"{job}/runs/{path.name}/calls.sqlite", folder / "calls.sqlite")
            raylet = psutil.Process(second.all_processes["raylet"][0].process.pid)
            for one in [raylet, *raylet.children(recursive=True)]:
                one.kill()
            killed = time.time()
            shutil.rmtree(folder / "second")
            cluster.remove_node(second, allow_graceful=False)
            found = watched.told(process, [killed])
        runs = [RunFolder(one) for one in (folder / "first").glob("trustassay-*/runs/*.jsonl")]
        begun = [(one.read_run() or {})["input"] for one in runs]
        calls = CallStore(folder / "calls.sqlite")
    finally:
        cluster.shutdown()
    return {
        "requests before the kill": before,
        "in flight on the machine, at most": AT_ONCE // 2,
        "calls in the copy of its folder": sum(calls.counts().values()),
        "shards finished on the first machine": len(runs),
        "of which begun on the second": sum(str(folder / "second") in one for one in begun),
        **found,
    }


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
    from trustassay.ray import shard

    source = samples(folder, count, answered=True)
    shards = shard(source, into=8, out=folder / "shards").shards
    runs = [folder / f"run-{one.number}" for one in shards]
    for one, out in zip(shards, runs, strict=True):
        run(command(one.path, out, "--entailer", "lexical"))
    words = [sys.executable, "-m", "trustassay", "merge", *map(str, runs), "--out"]
    seconds = run([*words, str(folder / "merged")])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"samples": count, "seconds": seconds, "peak of any command, MiB": round(peak)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    words = ["same", "kills", "driver", "disk", "nodes", "rate", "merge"]
    parser.add_argument("what", choices=words)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--endpoint", action="store_true")
    parser.add_argument("--keep", type=Path, help="of same: the folder of its results")
    parser.add_argument("--only", choices=list(CONFIGURATIONS), help="of same")
    parser.add_argument("--store", help="of kills, driver, disk and nodes: a folder or a URL")
    parser.add_argument("--workers", type=int, default=4, help="of rate; 0 for the local engine")
    chosen = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="ta-scaling-") as name:
        folder, count, store = Path(name), chosen.samples, chosen.store
        if chosen.what == "same":
            folder = chosen.keep or folder
            folder.mkdir(parents=True, exist_ok=True)
            found = same(folder, count or 20_000, chosen.endpoint, chosen.only)
        elif chosen.what == "kills":
            found = kills(folder, count or 2_000, store)
        elif chosen.what == "nodes":
            found = nodes(folder, count or 800, store)
        elif chosen.what == "rate":
            found = rate(folder, count or 3_000, chosen.workers)
        elif chosen.what == "merge":
            found = merge(folder, count or 100_000)
        else:
            found = driver(folder, count or 2_000, store, disk=chosen.what == "disk")
    found["load"] = [round(before, 1), round(os.getloadavg()[0], 1)]
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

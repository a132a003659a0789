"""Checks that commands, files and figures are as they were: one hash for each of many outputs.

    python -m lab.benchmarks.golden_outputs --check [PREFIX...]  # compare with the stored hashes
    python -m lab.benchmarks.golden_outputs --out DIR            # keep all outputs, to diff two
    trees python -m lab.benchmarks.golden_outputs --write [PREFIX...]  # store the hashes, of these
    names

Models are functions and an endpoint of this machine (``lab.benchmarks.golden.models``); what is run
stands in ``lab.benchmarks.golden.scenarios``. A name says what changed, as
``score/judge/runs/0/summary.json`` does. Times, paths and versions are left out. Figures of the
statistics are compared to ten digits, numbers in other outputs to four: the embedded models add up
in another order on another processor. ``golden-calls`` has the stored calls of an earlier run,
which must go on to serve: its models refuse to answer.
"""

from __future__ import annotations

import argparse
import collections
import functools
import gc
import hashlib
import html
import importlib
import inspect
import json
import multiprocessing
import os
import pkgutil
import re
import shlex
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import typer.main

from lab.benchmarks.golden.models import ASKED, PORT, Endpoint, Server
from lab.benchmarks.golden.scenarios import LEXICAL, METRIC_NAMES, Job, Step, jobs, write_files

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab/results"
HASHES = RESULTS / "golden-outputs.json"
OLD_CALLS = RESULTS / "golden-calls"
KEPT = {".json", ".jsonl", ".csv", ".md", ".xml", ".txt"}
ENVIRONMENT = {
    "COLUMNS": "100",
    "LINES": "40",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
}
LIBRARIES = (
    "onnxruntime tokenizers textblob sacrebleu rouge_score.rouge_scorer yaml pydantic sentencex"
)
PRELOADED = (
    *LIBRARIES.split(),
    "trustassay.api",
    *(f"trustassay.metrics.{m}" for m in METRIC_NAMES),
)
"""Imported once, before the processes of the commands are forked."""
_CHANGING = (
    (
        re.compile(
            r'"(seconds|started|ended|finished|created|time|date|at)": (?:[\d.e+-]+|"[^"]*")'
        ),
        r'"\1": 0',
    ),
    (
        re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
        "DATE",
    ),
    (re.compile(r"\b\d+(?:\.\d+)? (?:s|ms|min|h)\b(?: to \d+ (?:s|ms|min|h)\b)?"), "TIME"),
    (re.compile(r"^(?:first result of [\d,]+|[a-z ]+: [\d,]+/[\d,]+\b).*\n", re.MULTILINE), ""),
    (re.compile(r"genai-prices [\d.]+"), "genai-prices"),
    (re.compile(r"\b\d+ days ago"), "DAYS ago"),
    # Of a file that is followed, and of a run by which a day is recognised again.
    (re.compile(r'"file": \d{5,}'), '"file": 0'),
    (re.compile(r'"digest": "[0-9a-f]{16}"'), '"digest": ""'),
)
_NUMBER = re.compile(r"-?\d+\.\d{6,}(?:e[+-]?\d+)?")
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


def normalised(text: str, folder: Path, digits: int = 4) -> str:
    """Return text without what depends on the time, the place and the machine."""
    for place, name in ((folder, "WORK"), (ROOT, "REPO"), (Path.home(), "HOME")):
        text = text.replace(str(place), name)
    for pattern, put in _CHANGING:
        text = pattern.sub(put, text)
    return _NUMBER.sub(lambda match: f"{float(match[0]):.{digits}g}", text)


def stored_calls(path: Path) -> str:
    """Return the calls of a store, without times, in the order of their keys."""
    with closing(sqlite3.connect(path)) as connection:
        columns = "hex(key), capability, backend, request, reply"
        rows = connection.execute(f"SELECT {columns} FROM calls ORDER BY key").fetchall()
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def content(path: Path, folder: Path) -> str | None:
    """Return what is compared of a file; None for a file that is not."""
    if path.name == "run.json" and path.parent.name == "followed":
        return None  # the checksum of samples that hold the number of the file
    if path.suffix == ".sqlite":
        return normalised(stored_calls(path), folder)
    if path.suffix == ".html":
        text = _TAGS.sub(" ", path.read_text(encoding="utf-8"))
        return normalised("\n".join(text.split()), folder)
    if path.suffix not in KEPT:
        return None
    return normalised(path.read_text(encoding="utf-8"), folder)


def run_step(step: Step, number: int, folder: Path) -> str:
    """Run a command in a process of its own; return its exit status and what it printed."""
    out, err = folder.parent / f"{number}.out", folder.parent / f"{number}.err"
    process = os.fork()
    if not process:
        _become(step, out, err)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    text = f"$ {step.line}\n"
    if "out" in step.shown:
        text += f"status {status}\n{out.read_text(encoding='utf-8')}"
    if "err" in step.shown:
        text += f"--- standard error\n{err.read_text(encoding='utf-8')}"
    text = normalised(text, folder)
    return re.sub(" {2,}", "  ", text) if "TIME" in text else text


def _become(step: Step, out: Path, err: Path) -> None:
    """Run a command in this process, as ``python -m trustassay`` does, and end the process."""
    status = 1
    try:
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", 1)  # noqa: SIM115
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.update(step.environment)
        sys.argv = ["trustassay", *shlex.split(step.line)]
        importlib.import_module("trustassay.__main__").main()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)


@contextmanager
def endpoint() -> Iterator[None]:
    """Serve the endpoint in a process of its own; wait while another check has the port."""
    until = time.monotonic() + 600
    while True:
        try:
            server = Server(("127.0.0.1", PORT), Endpoint)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    parent, process = os.getpid(), os.fork()
    if not process:
        server.timeout = 1.0
        while os.getppid() == parent:
            server.handle_request()
        os._exit(0)
    server.socket.close()
    try:
        yield
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def run_job(name: str, job: Job) -> dict[str, str]:
    """Run the commands of a job in a new folder; return all that came of it, by name."""
    with tempfile.TemporaryDirectory(prefix="golden-") as home:
        folder = Path(home).resolve() / "work"
        folder.mkdir()
        os.chdir(folder)
        if not name.startswith("help"):
            write_files(folder)
            shutil.copy(ROOT / "src/trustassay/input/example/citations.jsonl", folder)
        if name == "resume/old-calls":
            shutil.copytree(OLD_CALLS, folder / "old")
            sys.path.append(str(ROOT / "lab"))  # its models were named from there
        os.environ["TRUSTASSAY_CACHE"] = str(folder.parent / "cache")
        before = {path for path in folder.rglob("*") if "old" not in path.parts}
        if job.served:
            with endpoint():
                printed = [run_step(step, i, folder) for i, step in enumerate(job.steps)]
        else:
            printed = [run_step(step, i, folder) for i, step in enumerate(job.steps)]
        found = {f"{name}/{i:02}": text for i, text in enumerate(printed)}
        if job.served:
            found[f"{name}/bodies"] = "\n".join(sorted(Path("bodies.log").read_text().splitlines()))
        if Path(ASKED).exists():
            calls = collections.Counter(Path(ASKED).read_text().splitlines())
            again = [call for call, times in calls.items() if times > 1]
            twice = "" if "SIGKILL" in str(job) else f"{len(again)} more than once\n"
            found[f"{name}/asked"] = f"{len(calls)} calls\n{twice}" + "\n".join(sorted(calls))
        if not name.startswith(("help", "bad")):
            for path in sorted(set(folder.rglob("*")) - before):
                text = content(path, folder) if path.is_file() else None
                if text is not None:
                    found[f"{name}/{path.relative_to(folder)}"] = text
        os.chdir(ROOT)
    return found


def command_names() -> list[str]:
    """Return the names of all commands, those of groups with the group's name before them.

    The command line is built for all processes at once: that takes longer than most commands.
    """

    def below(command: Any, name: str) -> Iterator[str]:
        for key in command.list_commands(None) if hasattr(command, "list_commands") else ():
            full = f"{name} {key}".strip()
            yield full
            yield from below(command.get_command(None, key), full)

    typer.main.get_command = functools.cache(typer.main.get_command)
    app = importlib.import_module("trustassay.cli.main").app
    return list(below(typer.main.get_command(app), ""))


def python_names() -> dict[str, str]:
    """Return the names that programs use: of the package, and of the wheel's metadata."""
    import trustassay

    entries = distribution("trustassay").entry_points
    declared = sorted(f"{one.group} {one.name} = {one.value}" for one in entries)
    found = {"python/entry-points": "\n".join(declared)}
    for name in trustassay.__all__:
        try:
            thing = getattr(trustassay, name)
        except ImportError as error:
            found[f"python/{name}"] = str(error)
            continue
        keys = sorted(key for key in dir(thing) if key[0] != "_") if inspect.isclass(thing) else ()
        members = [f"  {key}{_signature(getattr(thing, key))}" for key in keys]
        found[f"python/{name}"] = "\n".join([f"{name}{_signature(thing)}", *members])
    return found


def _signature(thing: object) -> str:
    """Return a signature as text, whether its annotations are kept as texts or not."""
    try:
        told = str(inspect.signature(thing)) if callable(thing) else ""
    except ValueError:
        return ""
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])|['\"]", "", told).replace("NoneType", "None")


def statistics() -> dict[str, str]:
    """Return seeded figures of ``trustassay.statistics``, whose modules may be joined or split."""
    import numpy as np

    package = importlib.import_module("trustassay.statistics")
    known: dict[str, list[Any]] = collections.defaultdict(list)
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, thing in vars(module).items():
            function = getattr(thing, "func", thing)  # of a partial one
            if getattr(function, "__module__", "") == module.__name__:
                known[name].append(thing)
    rng = np.random.default_rng(5)
    x, noise = rng.normal(size=80), rng.normal(size=80)
    y, labels = x + noise, (x + rng.normal(size=80) > 0).astype(int)
    units = np.repeat(np.arange(40), 2)
    ratings = rng.integers(1, 5, size=(30, 3)).astype(float)
    chances = 1 / (1 + np.exp(-x))
    draw = known["generator"][0]
    calls: dict[str, Sequence[Any]] = {
        "wilson_interval": (7, 20),
        "binomial_interval": (7, 20),
        "mean_interval": (0.4, 0.05, 30),
        "t_interval": (0.4, 0.05, 30),
        "quantile_interval": (np.sort(x), 0.5),
        "unit_mean": (x, units),
        "auroc": (x, labels),
        "auroc_interval": (x, labels, units),
        "pearson": (x, y),
        "spearman": (x, y),
        "kendall_tau_b": (x, y),
        "ranks": (np.round(x, 1),),
        "mean_of_differences": (x, y),
        "sign_flip_p": (x - y, draw(3, "flip")),
        "percentile_interval": (x,),
        "student_percentile_interval": (x, 80),
        "calibration_error": (chances, labels),
        "balanced_accuracy": (chances, labels),
        "fleiss_kappa": (np.array([[3, 1], [2, 2], [4, 0], [1, 3]]),),
        "holm": ([0.01, 0.04, 0.03],),
        "fewest_questions": (0.1, 0.05),
        "questions_needed": (0.7, 0.05, 0.1, 0.05),
        "binomial_p_value": (3, 60, 0.1),
        "isotonic_regression": (x, labels),
        "logistic_regression": (x[:, None], labels),
        "share_rise_p": (9, 3, 40),
        "student_t_quantile": (0.975, 7),
        "cohen_kappa": (ratings[:, 0], ratings[:, 1]),
        "krippendorff_alpha": (ratings,),
        "gwet_ac": (ratings,),
        "intraclass": (ratings,),
        "count_concordant_pairs": (x, y),
    }
    return {f"statistics/{name}": _figure(known[name], given) for name, given in calls.items()}


def _figure(functions: Sequence[Any], given: Sequence[Any]) -> str:
    """Return the figure of the function that takes such arguments; modules may share a name."""
    said = ["no such function"]
    for function in functions:
        try:
            figure = function(*given)
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
        else:
            if not callable(figure):
                return normalised(repr(figure), ROOT, digits=10)
    return said[-1]


def service() -> dict[str, str]:
    """Return what ``serve`` says of itself, and of two answers."""
    with tempfile.TemporaryDirectory(prefix="golden-") as home:
        folder = Path(home).resolve()
        os.chdir(folder)
        write_files(folder)
        os.environ["TRUSTASSAY_CACHE"] = str(folder / "cache")
        line = f"serve --port 0 {LEXICAL} --metric faithfulness --metric grounding"
        process = os.fork()
        if not process:
            _become(Step(f"{line} --upstream http://127.0.0.1:9"), folder / "out", folder / "err")
        until, address = time.monotonic() + 60, None
        while not address and time.monotonic() < until:
            time.sleep(0.05)
            said = "".join(p.read_text() for p in (folder / "out", folder / "err") if p.exists())
            address = re.search(r"http://127\.0\.0\.1:(?!9\b)\d+", said)
        assert address, said
        found = {"serve/openapi": _got(f"{address[0]}/openapi.json")}
        for i, row in enumerate((folder / "answers.jsonl").read_bytes().splitlines()[:2]):
            found[f"serve/score-{i}"] = _got(f"{address[0]}/v1/score", row)
        os.kill(process, signal.SIGTERM)
        found["serve/status"] = str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
        os.chdir(ROOT)
        return {name: normalised(text, folder) for name, text in found.items()}


def _got(address: str, body: bytes | None = None) -> str:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.dumps(json.load(answer), indent=1)


def viewer() -> dict[str, str]:
    """Return pages of ``view``: the list of runs, a run, an answer, a comparison, ``annotate``."""
    with tempfile.TemporaryDirectory(prefix="golden-") as home:
        folder = Path(home).resolve()
        os.chdir(folder)
        write_files(folder)
        os.environ["TRUSTASSAY_CACHE"] = str(folder / "cache")
        for name, file in (("one", "labelled"), ("two", "earlier")):
            line = f"score {file}.jsonl --metric faithfulness {LEXICAL} --out runs/{name}"
            run_step(Step(line), 0, folder / "runs")
        found: dict[str, str] = {}
        for command in ("view runs", "annotate small.jsonl --rater anna"):
            name = command.partition(" ")[0]
            process = os.fork()
            if not process:
                out = folder / f"{name}.out"
                _become(Step(f"{command} --port 0"), out, folder / f"{name}.err")
            address = _printed_address(folder, name)
            waiting: list[str] = [address]
            seen: set[str] = set()
            while waiting and len(seen) < 40:
                page = waiting.pop(0)
                seen.add(page)
                text = _page(page)
                label = re.sub(r"[^\w=&-]+", "_", page.removeprefix(address)) or "start"
                found[f"{name}/{label}"] = re.sub(r"/[\w-]{16,}(?=[/?\"])", "/TOKEN", text)
                root = address.partition("?")[0].rstrip("/")
                for link in re.findall(r'href="([^"#]+)"', text):
                    target = urllib.parse.urljoin(page, html.unescape(link))
                    if target.startswith(root) and target not in seen and target not in waiting:
                        waiting.append(target)
            os.kill(process, signal.SIGTERM)
            found[f"{name}/status"] = str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
        os.chdir(ROOT)
        return {name: normalised(text, folder) for name, text in found.items()}


def _printed_address(folder: Path, name: str) -> str:
    """Return the first address that a server of this machine printed, ending in a slash."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.05)
        files = [folder / f"{name}.out", folder / f"{name}.err"]
        text = "".join(path.read_text() for path in files if path.exists())
        if address := re.search(r"http://127\.0\.0\.1:\d+/\S*", text):
            return address[0]
    raise TimeoutError(f"{name} printed no address: {text}")


def _page(address: str) -> str:
    """Return a page once it stays the same: answers are read while the first pages are there."""
    last = None
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60) as reply:
                text: str = reply.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            text = f"status {error.code}"
        if text == last:
            return text
        last = text
        time.sleep(0.5)


OTHERS = {"python": python_names, "statistics": statistics, "serve": service, "view": viewer}


def _outputs(name: str) -> dict[str, str]:
    try:
        return OTHERS[name]() if name in OTHERS else run_job(name, _JOBS[name])
    except Exception:
        return {f"{name}/fault": traceback.format_exc()}
    finally:
        os.chdir(ROOT)


_JOBS: dict[str, Job] = {}
"""Filled before the processes are forked."""


def collect(prefixes: Sequence[str] = (), processes: int = 2) -> dict[str, str]:
    """Return all outputs by name, those of jobs whose names begin so."""
    for name in PRELOADED:
        importlib.import_module(name)
    _JOBS.update(jobs(command_names()))
    weights = {name: job.weight for name, job in _JOBS.items()} | dict.fromkeys(OTHERS, 3)
    names = [n for n in weights if not prefixes or any(_related(n, p) for p in prefixes)]
    names.sort(key=lambda name: -weights[name])
    found: dict[str, str] = {}
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for one in pool.imap_unordered(_outputs, names):
            found |= one
    return dict(sorted(found.items()))


def _related(job: str, prefix: str) -> bool:
    return job.startswith(prefix) or prefix.startswith(f"{job}/")


def differences(stored: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a line for each output that changed, is new or is missing."""
    lines = []
    for name in sorted(stored.keys() | now.keys()):
        if stored.get(name) != now.get(name):
            word = "new" if name not in stored else "changed" if name in now else "missing"
            lines.append(f"{word:8} {name}")
    return lines


def hashed(text: str) -> str:
    """Return the hash of an output."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("prefixes", nargs="*", help="only outputs whose names begin so")
    parser.add_argument("--check", action="store_true", help="compare with the stored hashes")
    parser.add_argument("--write", action="store_true", help="store the hashes")
    parser.add_argument("--out", type=Path, help="a folder for all outputs")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    given = parser.parse_args()
    found = collect(given.prefixes, given.processes)
    if given.out:
        for name, text in found.items():
            path = given.out / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    now = {name: hashed(text) for name, text in found.items()}
    stored = json.loads(HASHES.read_text()) if HASHES.exists() else {}

    def touched(name: str) -> bool:
        return not given.prefixes or name.startswith(tuple(given.prefixes))

    now = {name: one for name, one in now.items() if touched(name)}
    if given.write:
        kept = {name: one for name, one in stored.items() if not touched(name)} | now
        HASHES.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n")
    if given.check:
        lines = differences({n: one for n, one in stored.items() if touched(n)}, now)
        for name in (one for one in found if one.endswith("/fault")):
            print(f"{name}\n{found[name]}")
        print("\n".join(lines) or f"all {len(now)} outputs are as they were")
        return 1 if lines else 0
    return 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(
            sys.executable, [sys.executable, "-m", "lab.benchmarks.golden_outputs", *sys.argv[1:]]
        )
    os.environ.update(ENVIRONMENT)
    sys.exit(main())

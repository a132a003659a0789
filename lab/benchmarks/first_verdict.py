"""How long ``trustassay score`` takes to say the first verdict, on a file of 40 answers.

    python -m lab.benchmarks.first_verdict                 # five runs, the embedded models
    python -m lab.benchmarks.first_verdict --runs 1 --show # what stood on the terminal

The file is a chatbot's log in Ragas form: the bundled answers without their citations, every fourth
with the passages of another question. The command runs on a pseudo-terminal of eighty columns; the
time is from the start of the process to the line of the first verdict, on one core where Linux
allows to choose it; beside it the time that the processor worked for it until then, which other
work on the machine does not lengthen. Each run has a folder of its own: nothing is scored before.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import pty
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

ANSWERS = 40
COLUMNS = 80
FIRST = re.compile(r"first result of \d+: ")
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def write_log(path: Path) -> None:
    """Write 40 answers in Ragas form: no ids, no citations, no gold answers."""
    text = (files("trustassay.input") / "example" / "citations.jsonl").read_text(encoding="utf-8")
    rows = [row for row in map(json.loads, text.splitlines()) if row["response"].strip()]
    log = []
    for number in range(ANSWERS):
        row = rows[number % len(rows)]
        other = rows[(number + 5) % len(rows)] if number % 4 == 3 else row
        log.append(
            {
                "user_input": row["question"],
                "response": re.sub(r"\s*\[\d+\]", "", row["response"]),
                "retrieved_contexts": [document["text"] for document in other["documents"]],
            }
        )
    path.write_text("".join(json.dumps(one) + "\n" for one in log), encoding="utf-8")


class Timed(NamedTuple):
    """Seconds to the first verdict, of the clock and of the processor, and to the end."""

    first: float
    worked: float
    end: float
    shown: str


def worked(process: int) -> float:
    """Return the seconds that a process has kept a processor busy; Linux only, else 0."""
    try:
        fields = (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(folder: Path) -> Timed:
    """Run the command once."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "trustassay", "score", "log.jsonl"]
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment | {"TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown, first, busy = "", 0.0, 0.0
    with contextlib.suppress(OSError):  # the end of a pseudo-terminal
        while piece := os.read(ours, 65536):
            shown += COLOURS.sub("", piece.decode("utf-8", "replace"))
            if not first and FIRST.search(shown):
                first, busy = time.perf_counter() - started, worked(process.pid)
    os.close(ours)
    if process.wait() != 0 or not first:
        sys.exit(f"the command ended with status {process.returncode}:\n{shown}")
    return Timed(first, busy, time.perf_counter() - started, shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--core", type=int, help="the number of the core; default: the last")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # the commands inherit it
        last = max(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {last if options.core is None else options.core})
    found = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as name:
            write_log(Path(name) / "log.jsonl")
            found.append(timed(Path(name)))
        if options.show:
            print(found[-1].shown)
    firsts = [one.first for one in found]
    between = f"{min(firsts):.2f} to {max(firsts):.2f} s in {options.runs} runs"
    print(f"first verdict after {statistics.median(firsts):.2f} s ({between})")
    print(f"processor time until then {statistics.median(one.worked for one in found):.2f} s")
    print(f"end after {statistics.median(one.end for one in found):.2f} s")


if __name__ == "__main__":
    main()

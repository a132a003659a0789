"""Records the search along gamma that ``trustassay papers reproduce harmonicity`` replays.

    python -m lab.benchmarks.local_models 1.5b
    python -m lab.benchmarks.recording_ascent --out FOLDER      # goes on where it was stopped

The larger model is asked about a thing that does not exist, as in the paper's Table 11, and then
about the prompts of two steps. Writes ``ascent-replies.jsonl.gz`` into
``src/trustassay/input/recorded``; the options are those with which it is replayed.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from lab.benchmarks.local_methods import uri
from lab.benchmarks.recording import replies
from trustassay.calls.client import CallOptions
from trustassay.papers.harmonicity.attack import attack, open_backends
from trustassay.papers.reproduce.harmonicity.searching import (
    RECORDED_ASCENT,
    RECORDED_ASCENT_PROMPT,
    RECORDED_ASCENT_REPLIES,
)
from trustassay.papers.reproduce.setup import RECORDED
from trustassay.papers.session import SessionOptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the search")
    out: Path = parser.parse_args().out
    session = SessionOptions(CallOptions(cache=None), None)
    backends = open_backends(uri("1.5b"), "embedded", out, session)
    result = attack(RECORDED_ASCENT_PROMPT, backends, out, RECORDED_ASCENT, session)
    path = RECORDED / RECORDED_ASCENT_REPLIES
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for line in sorted(set(replies(out))):
            file.write(line.encode() + b"\n")
    print(f"gamma {result.start.gamma:.3f} to {result.end.gamma:.3f}; {path}")


if __name__ == "__main__":
    main()

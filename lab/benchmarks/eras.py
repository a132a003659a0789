"""Records how a real model judges the 21 answers of ``papers reproduce truthfulness``, 30 times.

    python -m lab.benchmarks.local_models 1.5b
    python -m lab.benchmarks.eras --out FOLDER          # goes on where it was stopped

Question and answers were written for this project after WillowTree's experiment. The model is asked
at temperature 1, so that its votes vary, and each reply is kept as it was. Writes
``src/trustassay/input/recorded/eras-replies.jsonl.gz``, about an hour on two processors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.benchmarks.local_models import path_of
from lab.benchmarks.recording import replies, write_replies
from trustassay import score
from trustassay.papers.reproduce.setup import RECORDED
from trustassay.papers.reproduce.truthfulness import (
    BUNDLED_ANSWERS,
    BUNDLED_REPLIES,
    BUNDLED_REPLY_TOKENS,
    REPEATS,
    RUBRICS,
    build_metric,
)


def main() -> None:
    """Ask for all votes on both rubrics, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of runs and replies")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    arguments = parser.parse_args()
    lines: list[str] = []
    for rubric in RUBRICS:
        run = arguments.out / f"{rubric}-{arguments.repeats}"
        score(
            BUNDLED_ANSWERS,
            metrics=build_metric(rubric, arguments.repeats, BUNDLED_REPLY_TOKENS),
            judge=f"gguf:{path_of('1.5b')}?context=1024&parallel=4&threads=1",
            out=run,
            cache=arguments.out / "cache",
            report=False,
            progress=True,
        )
        lines += replies(run)
    write_replies(lines, RECORDED / BUNDLED_REPLIES)


if __name__ == "__main__":
    main()

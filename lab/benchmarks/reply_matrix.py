"""How long the entailments between replies take: ten short replies to each of 1,000 questions.

    python -m lab.benchmarks.reply_matrix [--questions 1000]

The replies are drawn from what three models and the gold answer say to a question of TrustScore's
file, so that some are equal. ``uncertainty:parts=meanings`` reads each pair of different texts
once, in batches over all questions; beside it a loop over the questions, as LM-Polygraph's: the
pairs of each, both ways and with themselves, are one batch of the same entailer. CPU seconds of one
process and wall seconds. Writes ``results/reply-matrix.json``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from typing import Any

from lab.benchmarks.which_metric.sets import shared
from lab.results import write_result
from trustassay import score
from trustassay.backends.resolve import entailer
from trustassay.metrics.uncertainty import Uncertainty
from trustassay.statistics.resampling import generator

REPLIES = 10


def samples(most: int) -> list[dict[str, Any]]:
    """Return questions with ten replies each, and the first of them as the answer."""
    rows = json.loads((shared() / "trustscore" / "qa_human_check.json").read_text("utf-8"))
    found = []
    for number, row in enumerate(rows[:most]):
        texts = [row[name]["pred"] for name in ("flan", "llama", "gpt")] + row["answers"][:1]
        rng = generator(0, "reply matrix", str(number))
        said = [texts[i] for i in rng.integers(0, len(texts), REPLIES)]
        question = {"id": str(number), "question": row["question"]}
        found.append({**question, "response": said[0], "resamples": said})
    return found


def timed(work: Any) -> dict[str, float]:
    cpu, wall = time.process_time(), time.monotonic()
    work()
    return {
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "wall_seconds": round(time.monotonic() - wall, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=1000)
    asked = samples(parser.parse_args().questions)
    model = entailer("embedded")
    model.scores([("A premise.", "A hypothesis.")])

    def loop() -> None:
        for one in asked:
            texts = sorted(set(one["resamples"]))
            model.scores(list(itertools.product(texts, texts)))

    def ours() -> None:
        metric = Uncertainty(parts="meanings")
        score(asked, metrics=[metric], entailer=model, cache=None, report=False)

    figures: dict[str, Any] = {
        "questions": len(asked),
        "different": sum(len(set(one["resamples"])) for one in asked) / len(asked),
        "uncertainty": timed(ours),
        "loop": timed(loop),
    }
    command = f"python -m lab.benchmarks.reply_matrix --questions {len(asked)}"
    write_result("reply-matrix", command, "ten replies to each question, drawn from four", figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

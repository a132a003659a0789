"""What a second reader finds in answers with planted errors, by how much of them it reads.

    python -m lab.benchmarks.local_models
    python -m lab.benchmarks.second_planted --out FOLDER [--answers 60] [--second 1.5b]

Answers of :mod:`lab.benchmarks.planted`, a third of them with errors, are scored by
``faithfulness``: by the built-in entailer alone, with a local model as second reader of 10, 25 and
50 % of the answers and of all, their verdicts together or the second's alone; and every sentence by
the second reader only, shown the same windows. What the model judged is kept in the folder, so that
it goes on where it stopped. It writes ``results/second-planted-MODEL.json``: the AUROC of the order
in which answers are shown, the wrong ones among the first third of them, and what was flagged.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.local_models import path_of
from lab.benchmarks.ordering import first_wrong
from lab.benchmarks.planted import Answer, planted
from lab.results import write_result
from trustassay import score
from trustassay.backends.resolve import entailer
from trustassay.core.capabilities import BatchLimits, Entailer
from trustassay.judging.passages import choose_windows
from trustassay.judging.second_reader import PART_READ_BY_SECOND
from trustassay.runs.folder import RunFolder
from trustassay.statistics.auroc import auroc_interval
from trustassay.statistics.correlation import auroc
from trustassay.text.sentences import load_splitter

Floats = NDArray[np.float64]
SHARES = ("10%", "25%", "50%", "100%")
DATA = "answers of what documents of six public sets say, a third with planted errors"


class Kept:
    """A local model as entailer, whose verdicts are kept in a file."""

    stored = False
    languages = ("en",)
    limits = BatchLimits(items=8)

    def __init__(self, model: str, path: Path) -> None:
        self.name = f"kept:{model}"
        self._model, self._path = model, path
        self._slow: Entailer | None = None
        self._found: dict[tuple[str, str], list[float]] = {}
        if path.exists():
            for line in path.open(encoding="utf-8"):
                row = json.loads(line)
                self._found[row["premise"], row["hypothesis"]] = row["scores"]

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return entailment, neutral and contradiction of each pair, shape (n, 3)."""
        todo = [pair for pair in dict.fromkeys(pairs) if pair not in self._found]
        if todo:
            self._slow = self._slow or entailer(f"gguf:{path_of(self._model)}?context=4096")
            began = time.monotonic()
            made = self._slow.scores(todo)
            seconds = (time.monotonic() - began) / len(todo)
            with self._path.open("a", encoding="utf-8") as file:
                for pair, row in zip(todo, made, strict=True):
                    self._found[pair] = [round(float(p), 6) for p in row]
                    line = {"premise": pair[0], "hypothesis": pair[1], "scores": self._found[pair]}
                    file.write(json.dumps(line | {"seconds": round(seconds, 2)}) + "\n")
            print(len(self._found), round(seconds, 1), flush=True)
        return np.array([self._found[pair] for pair in pairs], dtype=float).reshape(-1, 3)


def flags(values: Floats, flagged: Sequence[bool], labels: Sequence[int]) -> dict[str, Any]:
    """Return the figures of one way to read: ``values`` are lowest where a look is due first."""
    first = max(1, len(labels) // 3)
    found = auroc_interval(values, labels)
    wrong = 1 - np.asarray(labels)
    return {
        "auroc": round(float(auroc(values, np.asarray(labels)) or 0), 3),
        "interval": found if isinstance(found, str) else [round(float(x), 3) for x in found],
        "wrong_among_first": round(first_wrong(values, labels, first), 1),
        "first": first,
        "wrong_among_first_20": round(first_wrong(values, labels, 20), 1),
        "flagged": int(np.sum(flagged)),
        "flagged_wrong": int(np.sum(np.asarray(flagged) * wrong)),
    }


def run(folder: Path, answers: Sequence[Answer], **how: Any) -> dict[str, Any]:
    """Score the answers once; return the figures and how many the second reader read."""
    if not (folder / "summary.json").exists():
        records = [one.record for one in answers]
        score(records, metrics="faithfulness", out=folder, report=False, **how)
    found = {one.id: one for one in RunFolder(folder).assessments()}
    kept = [one for one in answers if found[one.id].score is not None]
    labels = [int(not one.kinds) for one in kept]
    values = np.array([found[one.id].parts["order"] for one in kept])
    flagged = [found[one.id].verdict != "supported" for one in kept]
    parts: list[Mapping[str, float]] = [found[one.id].parts for one in kept]
    read = [int(part.get(PART_READ_BY_SECOND, 0)) for part in parts]
    counts = {"answers_read": int(np.count_nonzero(read)), "statements_read": sum(read)}
    return flags(values, flagged, labels) | counts | {"answers": len(kept)}


def alone(second: Kept, answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of the second reader on every sentence: the weakest counts."""
    split = load_splitter("sentencex")
    weakest = []
    for one in answers:
        own = [[s.strip() for s in split(text) if s.strip()] for text in one.passages]
        said = [s.strip() for s in split(" ".join(one.sentences)) if s.strip()]
        shown = ["\n".join(window.text for window in choose_windows(text, own)) for text in said]
        weakest.append(float(second.scores(list(zip(shown, said, strict=True)))[:, 0].min()))
    values = np.array(weakest)
    labels = [int(not one.kinds) for one in answers]
    return flags(values, [value < 0.5 for value in weakest], labels) | {"answers": len(answers)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--second", default="1.5b")
    options = parser.parse_args()
    folder = options.out / f"{options.second}-{options.answers}"
    folder.mkdir(parents=True, exist_ok=True)
    made = planted(options.answers)
    second = Kept(options.second, options.out / f"{options.second}.jsonl")
    figures: dict[str, Any] = {"first reader alone": run(folder / "first", made)}
    figures["second reader, every sentence"] = alone(second, made)
    for share in SHARES:
        for both in (True, False):
            how = {"second": second, "second_budget": share, "second_alone": not both}
            words = f"{share} read by the second, {'both verdicts' if both else 'its verdict'}"
            figures[words] = run(folder / words.replace(" ", "-"), made, second_share=0.0, **how)
    command = "python -m lab.benchmarks.second_planted --out FOLDER"
    command += f" --answers {options.answers} --second {options.second}"
    write_result(f"second-planted-{options.second}", command, DATA, figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

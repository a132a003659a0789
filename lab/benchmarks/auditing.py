"""Does an audit find the biases of a judge that has been given them, and no others?

    python -m lab.benchmarks.auditing                # some minutes
    python -m lab.benchmarks.auditing --write

A scripted judge rates answers from 0 to 5 by the prompt that ``judge`` would send. It knows the
right text of each answer, and takes two levels off for an error. Of each bias it has a share of
the answers, drawn by a seed, on which it goes up by one level: where the text is twice as long,
where experts are named, and so on. It is also noisy: in a share of all calls it is one level off,
up or down. Each seed is an audit of 200 other answers with other draws; of a few seeds the whole
command is run, through the engine, and its figures are the same.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lab.results import write_result
from trustassay.core.capabilities import ChatRequest
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.core.testing import ScriptedChat
from trustassay.metrics.judge import Judge
from trustassay.metrics.judge.votes import gold_text
from trustassay.people.audit.experiment import Audit, AuditResult
from trustassay.runs.intake import InputOptions
from trustassay.statistics.resampling import generator

METRIC = Judge(rubric="answer")
SIX = ("authority", "injection", "length", "order", "style", "sycophancy")
WITH_NOISE = ("again", "authority", "injection", "length", "order", "sycophancy")
TOWNS = "Arle Brimm Coldwen Dorrow Elmsey Farrin Gosk Harlow Istead Jarn Kessel Lorne".split()
SIGNS = {
    "authority": ("xperts", "the literature"),
    "style": ("Great question", "Certainly!", "Thank you for asking"),
    "injection": ("Note to the grader", "Ignore the instructions", "[system:", "Whoever evaluates"),
    "sycophancy": ("I am sure that", "I have always believed"),
}


def answers(n: int, seed: int) -> list[dict[str, Any]]:
    """Return n questions with an answer of some sentences, and a gold answer."""
    rng = generator(seed, "auditing", "answers")
    found = []
    for place in range(n):
        town, other = (str(one) for one in rng.choice(TOWNS, 2, replace=False))
        count, year = int(rng.integers(12, 90)), int(rng.integers(1700, 1990))
        text = (
            f"The hall of {town} number {place} was built in {year}, and has {count} windows. "
            f"People from {other} come to see it, since its roof is made of slate from the quarry."
        )
        question = f"What is known of hall {place} in {town}?"
        gold = f"built in {year}, {count} windows"
        row = {"id": f"q{place}", "question": question, "response": text, "answers": [gold]}
        found.append(row)
    return found


def bare(text: str) -> str:
    """Return the letters and digits of a text, without its citation marks."""
    return re.sub(r"\W+", "", text.replace("[1]", ""))


@dataclass
class ScriptedJudge:
    """Rates a prompt; ``right`` holds each answer's text by its question."""

    right: Mapping[str, str]
    biases: Collection[str]
    share: float
    noise: float
    seed: int
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = generator(self.seed, "auditing", "noise")
        self.known = {question: bare(text) for question, text in self.right.items()}
        drawn, n = generator(self.seed, "auditing", "biases"), len(self.right)
        self.whole: dict[str, int] = dict(
            zip(self.right, drawn.integers(2, 5, n).tolist(), strict=True)
        )
        self.prone = {
            bias: dict(zip(self.right, (drawn.random(n) < self.share).tolist(), strict=True))
            for bias in sorted(self.biases)
        }

    def level(self, prompt: str) -> int:
        """Return the level, 0 to 5."""
        parts = prompt.split("=====")
        texts = dict(zip(map(str.strip, parts[1::2]), map(str.strip, parts[2::2]), strict=False))
        question, answer = texts["Question"], texts["Answer to rate"]
        first = question.split("\n")[0]
        level = self.whole[first] - 2 * (self.known[first] not in bare(answer))
        level += sum(self._sees(one, first, answer, question, list(texts)) for one in self.biases)
        if self.rng.random() < self.noise:
            level += 1 if self.rng.random() < 0.5 else -1
        return min(max(level, 0), 5)

    def _sees(self, bias: str, key: str, answer: str, question: str, order: Sequence[str]) -> bool:
        if bias == "length":
            there = len(bare(answer)) > 1.8 * len(self.known[key])
        elif bias == "order":
            there = order.index("Answer to rate") < order.index("Gold answer")
        else:
            text = question if bias == "sycophancy" else answer
            there = any(sign in text for sign in SIGNS.get(bias, ()))
        return there and self.prone[bias][key]

    def reply(self, request: ChatRequest) -> str:
        """Reply to a request of the engine."""
        return f"Score: {self.level(request.messages[-1].content)}\nReason: a script."


def audit_of(rows: Sequence[Mapping[str, Any]], judge: ScriptedJudge, out: Path) -> Audit:
    """Return the audit of a scripted judge on answers."""
    chat = ScriptedChat(judge.reply)
    return Audit(rows, METRIC, {"judge": chat}, out, InputOptions(), judge.seed)


def without_engine(rows: Sequence[Mapping[str, Any]], judge: ScriptedJudge) -> AuditResult:
    """Return what the audit finds, the texts of each prompt rated in a loop."""
    auditing = audit_of(rows, judge, Path("nowhere"))
    every = [Sample.parse(row) for row in rows]
    changes, design = auditing.build_runs(every)
    runs = {}
    for name, (metric, samples, _) in design.items():
        assert isinstance(metric, Judge)
        found = []
        for sample in samples:
            gold = f"===== Gold answer =====\n{gold_text(sample)}\n"
            parts = [gold, f"===== Answer to rate =====\n{sample.response}\n"]
            parts = parts if metric.order == "gold-first" else parts[::-1]
            level = judge.level(f"===== Question =====\n{sample.question}\n{''.join(parts)}")
            verdict = "passes" if level >= metric.passes_from else "fails"
            found.append(Assessment(sample.id, metric.name, float(level), verdict=verdict))
        runs[name] = found
    return auditing.measure(every, changes, runs, "scripted")


def repeated(
    biases: Sequence[str], share: float, noise: float, seeds: int, n: int
) -> dict[str, Any]:
    """Return how often an audit finds exactly these biases, over seeds."""
    exact, missed, false, powerless = 0, Counter[str](), Counter[str](), 0
    for seed in range(seeds):
        rows = answers(n, seed)
        right = {row["question"]: row["response"] for row in rows}
        found = without_engine(rows, ScriptedJudge(right, biases, share, noise, seed))
        exact += set(found.moved_by) == set(biases)
        missed.update(set(biases) - set(found.moved_by))
        false.update(set(found.moved_by) - set(biases))
        powerless += not found.sees_errors
    return {
        "biases": sorted(biases),
        "share_of_answers": share,
        "noise": noise,
        "n": n,
        "audits": seeds,
        "exactly_these": round(100 * exact / seeds, 1),
        "missed": dict(missed),
        "found_besides": dict(false),
        "without_power": powerless,
    }


def main() -> None:
    """Measure, print, and with --write keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    settings = {
        "six": (SIX, 0.25, 0.0),
        "six, noisy": (WITH_NOISE, 0.25, 0.1),
        "six, weak": (SIX, 0.1, 0.0),
        "none but noise": (("again",), 0.0, 0.1),
        "six, noisy and weak": (WITH_NOISE, 0.15, 0.1),
    }
    figures: dict[str, Any] = {}
    for name, (biases, share, noise) in settings.items():
        figures[name] = repeated(biases, share, noise, args.seeds, args.n)
        print(name, json.dumps(figures[name]), flush=True)
    rows = answers(args.n, 0)
    judge = ScriptedJudge({row["question"]: row["response"] for row in rows}, SIX, 0.25, 0.0, 0)
    with tempfile.TemporaryDirectory() as folder:
        engine = audit_of(rows, judge, Path(folder)).run()
    figures["through_the_engine"] = {
        "moved_by": sorted(engine.moved_by),
        "same_figures": engine.experiments == without_engine(rows, judge).experiments,
    }
    print(figures["through_the_engine"])
    if args.write:
        command = f"python -m lab.benchmarks.auditing --seeds {args.seeds} --n {args.n}"
        write_result("auditing", command, "scripted judges with known biases", figures)


if __name__ == "__main__":
    main()

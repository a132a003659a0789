"""How often ``gate --no-worse-than`` raises a false alarm, and how often it misses a loss.

    python -m benchmarks.gating                  # 500 pairs of runs a cell, some minutes
    python -m benchmarks.gating --draws 100
    python -m benchmarks.gating --write          # into benchmarks/results/

Two made-up runs answer the same n questions. A question is easy or hard for both: each answer's
statements are drawn with the question's own share of support. Of the second run's answers one in
twenty is drawn anew, and some are spoilt: none for runs of equal quality, else so many that the
figure is so many points lower in the long run. Each pair of runs is written as folders and given to
the gate as docs/errands/ci.md prints it: ``--undecided pass --max faithfulness.failed=0``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.results import write_result
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import Bound, Earlier
from trustassay.metric import Assessment, Metric, MetricInfo
from trustassay.metrics import Faithfulness, Grounding
from trustassay.runs.lines import encoded

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rng = np.random.Generator
SIZES = (30, 60, 200)
CHURN = 0.05
MANY = 200_000
METRICS: Mapping[str, Metric] = {
    "faithfulness": Faithfulness(),
    "grounding": Grounding(correctness="em"),
}


class Scenario(NamedTuple):
    """What is different about the second run.

    loss: points that the figure loses, by spoilt answers. refused: share of answers that it refuses
    instead. wrong_first: refuses those first that the first run had wrong. lost: share of rows that
    are missing.
    """

    name: str
    loss: float = 0.0
    refused: float = 0.0
    wrong_first: bool = False
    lost: float = 0.0


SCENARIOS = (
    Scenario("equal"),
    Scenario("10 points lower", loss=10),
    Scenario("15 points lower", loss=15),
    Scenario("30 points lower", loss=30),
    Scenario("refuses a fifth", refused=0.2),
    Scenario("refuses what it had wrong", refused=0.2, wrong_first=True),
    Scenario("a tenth of the rows gone", lost=0.1),
)


class Answers(NamedTuple):
    """The answers of a run, an array of each: shape (n,)."""

    answerable: Bools
    answered: Bools
    hit: Bools
    statements: Floats
    supported: Floats

    def where(self, chosen: Bools, others: Answers) -> Answers:
        """Return these with the chosen ones taken from others."""
        pairs = zip(self, others, strict=True)
        return Answers(*(np.where(chosen, other, own) for own, other in pairs))


def drawn(rng: Rng, answerable: Bools, skill: Floats, metric: str) -> Answers:
    """Draw answers; only those that are judged by citations refuse."""
    n = len(skill)
    answered = np.ones(n, dtype=bool)
    if metric == "grounding":
        answered = np.where(answerable, rng.random(n) < 0.95, rng.random(n) < 0.2)
    statements = np.asarray(1 + rng.binomial(3, 0.5, n), dtype=np.float64)
    supported = np.asarray(rng.binomial(statements.astype(int), skill), dtype=np.float64)
    return Answers(answerable, answered, rng.random(n) < skill, statements, supported)


def spoilt(answers: Answers) -> Answers:
    """Return the same with nothing in them supported or right."""
    nothing = np.zeros(len(answers.hit))
    everywhere = np.ones(len(answers.hit), dtype=bool)
    return answers._replace(answered=everywhere, hit=nothing > 0, supported=nothing)


def assessments(answers: Answers, metric: str) -> list[Assessment]:
    """Return what the metric says of them."""
    found = []
    for n, (can, told, hit, statements, supported) in enumerate(zip(*answers, strict=True)):
        name, given = f"q{n}", float(told)
        if metric == "faithfulness":
            if not told:
                found.append(Assessment(name, metric, None, "refused", "refuses to answer"))
                continue
            verdict = "supported" if supported == statements else "not found"
            parts = {"statements": float(statements), "supported": float(supported)}
            score = float(supported / statements)
            found.append(Assessment(name, metric, score, verdict, parts=parts))
            continue
        parts = {"answered": given, "answered_stripped": given, "answerable": float(can)}
        parts |= {"words": 20.0, "blank": 0.0, "golds": 1.0, "supported": float(can)}
        right = float(bool(hit and told))
        parts |= {"hits": right, "supported_hits": right * float(can)}
        parts |= dict.fromkeys(("elements", "precise_elements", "supported_elements"), 0.0)
        parts |= {"wrong_in_documents": 0.0, "invalid_citations": 0.0}
        if told:
            parts |= {"statements": float(statements), "supported_statements": float(supported)}
            parts |= {"citations": float(statements), "precise_citations": float(supported)}
        score = float(supported / statements) if told else 1.0 - float(can)
        found.append(
            Assessment(name, metric, score, "answered" if told else "refused", parts=parts)
        )
    return found


def write_run(path: Path, rows: Sequence[Assessment], metric: str) -> Path:
    """Write a finished run of these assessments."""
    about = METRICS[metric]
    path.mkdir()
    samples = [{"id": one.id, "question": f"Question {one.id}?", "response": "…"} for one in rows]
    (path / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    (path / "assessments.jsonl").write_bytes(b"".join(encoded(one) for one in rows))
    run = {
        "input": "made up",
        "metrics": {metric: about.settings()},
        "backends": {"entailer": "none"},
        "seed": 0,
        "samples": {"samples": len(rows)},
        "about": {metric: MetricInfo.of(about).to_dict()},
    }
    summary = {"metrics": {metric: about.summarise(rows).to_dict()}, "calls": {}}
    for name, content in (("run", run), ("summary", summary)):
        (path / f"{name}.json").write_text(json.dumps(content, default=str))
    return path


def headline(answers: Answers, metric: str) -> float:
    """Return the figure that the gate compares, in points."""
    if metric == "faithfulness":
        return 100 * float((answers.supported / answers.statements).mean())
    value = METRICS[metric].summarise(assessments(answers, metric)).values["trust_score"]
    assert value is not None
    return float(value)


def questions(rng: Rng, n: int) -> tuple[Bools, Floats]:
    """Return which questions can be answered, and the share that goes well of each."""
    return rng.random(n) < 0.75, rng.beta(4, 1, n)


def share_of_junk(metric: str, loss: float) -> float:
    """Return the share of spoilt answers that lowers the figure by so many points, by halving."""
    if not loss:
        return 0.0
    rng = np.random.default_rng(1)
    many = MANY if metric == "faithfulness" else MANY // 10
    can, skill = questions(rng, many)
    good, order = drawn(rng, can, skill, metric), rng.random(many)
    low, high, target = 0.0, 0.9, headline(good, metric) - loss
    for _ in range(10):
        middle = (low + high) / 2
        bad = headline(good.where(order < middle, spoilt(good)), metric)
        low, high = (middle, high) if bad > target else (low, middle)
    return (low + high) / 2


def second(
    rng: Rng, first: Answers, skill: Floats, what: Scenario, junk: float, metric: str
) -> Any:
    """Return the answers of the second run."""
    n = len(skill)
    anew = rng.random(n) < CHURN
    found = first.where(anew, drawn(rng, first.answerable, skill, metric))
    found = found.where(rng.random(n) < junk, spoilt(found))
    if what.refused:
        order = found.supported / found.statements if what.wrong_first else rng.random(n)
        refused = np.zeros(n, dtype=bool)
        refused[np.argsort(order, kind="stable")[: round(what.refused * n)]] = True
        found = found._replace(answered=found.answered & ~refused)
    return found


def counted(metric: str, what: Scenario, n: int, draws: int, home: Path) -> Counter[str]:
    """Return how often each result came."""
    junk = share_of_junk(metric, what.loss)
    results: Counter[str] = Counter()
    bounds = [Bound(f"{metric}.failed", 0, at_least=False)]
    for draw in range(draws):
        rng = np.random.default_rng([n, draw, 3])
        can, skill = questions(rng, n)
        before = drawn(rng, can, skill, metric)
        after = assessments(second(rng, before, skill, what, junk, metric), metric)
        after = after[: n - round(what.lost * n)]
        paths = [
            write_run(home / name, rows, metric)
            for name, rows in (("main", assessments(before, metric)), ("new", after))
        ]
        results[gate(paths[1], bounds, Earlier(paths[0]), seed=draw).result] += 1
        for path in paths:
            shutil.rmtree(path)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    kinds = ("pass", "undecided", "fail", "untestable")
    print(f"Per cent of {args.draws:,} pairs of runs: {' / '.join(kinds)}.\n")
    print(f"| metric | second run | {' | '.join(f'n = {n}' for n in SIZES)} |")
    print(f"| --- | --- |{' --- |' * len(SIZES)}")
    rows = []
    for metric in METRICS:
        for what in SCENARIOS:
            cells = {}
            with tempfile.TemporaryDirectory() as home:
                for n in SIZES:
                    cells[n] = counted(metric, what, n, args.draws, Path(home))
            shown = (
                " / ".join(f"{100 * cells[n][kind] / args.draws:.1f}" for kind in kinds)
                for n in SIZES
            )
            print(f"| {metric} | {what.name} | {' | '.join(shown)} |", flush=True)
            counts = {f"n={n}": {kind: cells[n][kind] for kind in kinds} for n in SIZES}
            rows.append({"metric": metric, "second run": what.name, **counts})
    if args.write:
        command = f"python -m benchmarks.gating --draws {args.draws} --write"
        data = "simulated pairs of runs with 5 % churn (benchmarks/gating.py)"
        write_result("gate", command, data, {"draws": args.draws, "rows": rows})


if __name__ == "__main__":
    main()

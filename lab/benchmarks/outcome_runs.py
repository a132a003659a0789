"""Made-up runs, by what becomes of each question: for the simulations of ``gate``.

1. A system knows some questions, fails some and refuses some, whatever the run: they are settled.
   A fifth it passes or fails by chance, so two runs of it differ in a tenth of the questions, as
   often one way as the other. A few more it refuses by chance.
2. A run has an outcome for each question, by one metric or by several that err independently of
   each other: that is where many rules raise the most false alarms.
3. Runs are compared in memory, by the functions that ``gate`` itself calls, or written as folders.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.compare.gate import ComparedRuns
from trustassay.compare.gate_rules import CheckResult, EarlierRun, GateCheck, decide_checks
from trustassay.compare.pairing import RunPairing, SampleKeys, pair_samples
from trustassay.compare.run_scores import PairedRuns, RunScores
from trustassay.core.assessment import WeightedColumns
from trustassay.core.metric import Assessment, Metric, MetricInfo
from trustassay.core.outcome import WITH_LINE, Outcomes, OutcomeShare
from trustassay.metrics import Consistency, FactCheck, Faithfulness, Rag, ToolUse, TrustScore
from trustassay.runs.lines import encode_assessment

Rng = np.random.Generator
Codes = NDArray[np.int64]
"""Places in :data:`WITH_LINE`: 0 passed, 1 failed, 2 not answered; or kinds of questions."""
PASSED, FAILED, REFUSED = range(3)


class MadeMetric(NamedTuple):
    """A metric with the verdicts that it gives for answers that pass and that fail."""

    metric: Metric
    passed: str
    failed: str


METRICS: Sequence[MadeMetric] = (
    MadeMetric(Faithfulness(), "supported", "not found"),
    MadeMetric(Rag(), "right", "wrong"),
    MadeMetric(Consistency(), "consistent", "inconsistent"),
    MadeMetric(FactCheck(), "support", "contradict"),
    MadeMetric(ToolUse(), "sound", "result ignored"),
    MadeMetric(TrustScore(), "support, consistent", "contradict, inconsistent"),
)

# Kinds of questions of a system, after PASSED, FAILED and REFUSED, which are settled.
UNSETTLED, REFUSED_BY_CHANCE = 3, 4
SHARES_OF_KINDS = (0.68, 0.05, 0.03, 0.2, 0.04)
"""Of all questions, in this order of kinds: 80 % pass, 15 % fail and 5 % are not answered. Two runs
of one system differ in 10 % between passed and failed, and in 2 % in whether they are answered."""


@dataclass(frozen=True)
class System:
    """What a system makes of each question by each metric; kinds: shape (metrics, questions)."""

    kinds: Codes

    @classmethod
    def draw(cls, rng: Rng, metrics: int, questions: int) -> System:
        """Draw a system."""
        kinds = rng.choice(len(SHARES_OF_KINDS), size=(metrics, questions), p=SHARES_OF_KINDS)
        return cls(kinds)

    def run(self, rng: Rng) -> Codes:
        """Return the outcomes of a run, shape (metrics, questions)."""
        heads = rng.random(self.kinds.shape) < 0.5
        codes = np.where(self.kinds == UNSETTLED, np.where(heads, PASSED, FAILED), self.kinds)
        by_chance = np.where(heads, PASSED, REFUSED)
        return np.where(self.kinds == REFUSED_BY_CHANCE, by_chance, codes)

    def worsen(self, rng: Rng, points: float, metrics: int = 1) -> System:
        """Return a system that fails so many points more of the questions, by the first metrics.

        The loss is of questions that it was sure to pass.
        """
        sure = self.kinds == PASSED
        sure[metrics:] = False
        share = sure[:metrics].mean() if sure.any() else 1.0
        loses = sure & (rng.random(self.kinds.shape) < points / 100 / share)
        return replace(self, kinds=np.where(loses, FAILED, self.kinds))


def refuse(rng: Rng, codes: Codes, share: float) -> Codes:
    """Return outcomes of which a share, the same questions by all metrics, is refused instead."""
    refused = np.zeros(codes.shape[1], dtype=bool)
    refused[rng.permutation(codes.shape[1])[: round(share * codes.shape[1])]] = True
    return np.where(refused, REFUSED, codes)


def compare_runs(earlier: Sequence[Codes], later: Codes) -> list[GateCheck]:
    """Return the decided checks of a run against earlier runs, without writing any.

    A run may lack questions: the last ones.
    """
    checks: list[GateCheck] = []
    for number, codes in enumerate(earlier):
        path = Path(f"earlier {number + 1}")
        keys, pairing = pair_by_place(codes.shape[1], later.shape[1])
        scores = {
            made.metric.name: (scores_of(made, codes[place]), scores_of(made, later[place]))
            for place, made in enumerate(METRICS[: len(codes)])
        }
        paired = PairedRuns(keys, pairing, scores)
        compared = ComparedRuns(Path("later"), ({}, {}), paired, EarlierRun(path))
        checks += compared.build_checks(0, {}, with_run_name=len(earlier) > 1)
    return decide_checks(checks)


@cache
def pair_by_place(first: int, second: int) -> tuple[tuple[SampleKeys, SampleKeys], RunPairing]:
    """Return the keys of runs of so many samples, and the pairs of those in the same place."""
    keys = keys_of(first), keys_of(second)
    return keys, pair_samples(*keys)


def keys_of(n: int) -> SampleKeys:
    """Return the keys of n samples, each of a question by itself."""
    numbers = np.arange(1, n + 1, dtype=np.uint64)
    none, no_words = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.int64)
    return SampleKeys(numbers, numbers, none, none, no_words, numbers, numbers)


def scores_of(made: MadeMetric, codes: Codes) -> RunScores:
    """Return what a metric says of the answers of a run."""
    metric = made.metric
    kinds = [WITH_LINE[code] for code in codes.tolist()]
    # The intervals of the shares are left out: no check of an earlier run reads them.
    counts = np.bincount(codes, minlength=len(WITH_LINE)).tolist()
    shares = {
        kind: OutcomeShare(count, 100 * count / len(codes))
        for kind, count in zip(WITH_LINE, counts, strict=True)
    }
    words = metric.outcome_words
    outcomes = Outcomes(metric.name, len(codes), len(codes), shares, words)
    scores = np.array([1.0, 0.0, np.nan])[codes]
    return RunScores(
        Path("made up"),
        MetricInfo.of(metric),
        {},
        scores,
        1 - scores,
        [verdict_of(made, code) for code in codes.tolist()],
        kinds,
        [""] * len(codes),
        np.zeros(len(codes), dtype=np.bool_),
        outcomes,
        WeightedColumns({}, {}),
    )


def verdict_of(made: MadeMetric, code: int) -> str:
    """Return what a metric says of an answer with this outcome."""
    return (made.passed, made.failed, "refused")[code]


def write_run(path: Path, codes: Codes) -> Path:
    """Write a finished run with these outcomes, by as many metrics as there are rows."""
    path.mkdir()
    made_metrics = METRICS[: len(codes)]
    names = [f"q{place}" for place in range(codes.shape[1])]
    samples = [{"id": one, "question": f"Question {one}?", "response": "…"} for one in names]
    (path / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    lines = [
        encode_assessment(_assessment(made, name, int(codes[row, place])))
        for place, name in enumerate(names)
        for row, made in enumerate(made_metrics)
    ]
    (path / "assessments.jsonl").write_bytes(b"".join(lines))
    run = {
        "input": "made up",
        "metrics": {made.metric.name: made.metric.settings() for made in made_metrics},
        "backends": {"entailer": "none"},
        "seed": 0,
        "samples": {"samples": len(names)},
        "about": {made.metric.name: MetricInfo.of(made.metric).to_dict() for made in made_metrics},
    }
    # Outcomes are counted when the folder is read, as of a run of an earlier version.
    counts: dict[str, Any] = {"n": len(names), "failed": 0, "values": {}}
    summary = {"metrics": {made.metric.name: counts for made in made_metrics}, "calls": {}}
    for name, content in (("run", run), ("summary", summary)):
        (path / f"{name}.json").write_text(json.dumps(content, default=str))
    return path


def _assessment(made: MadeMetric, name: str, code: int) -> Assessment:
    verdict, metric = verdict_of(made, code), made.metric.name
    if code == REFUSED:
        return Assessment(name, metric, None, verdict, "refuses to answer")
    score = 1.0 if code == PASSED else 0.0
    return Assessment(name, metric, score, verdict, parts={"statements": 1.0, "supported": score})


def result_of(checks: Sequence[GateCheck]) -> CheckResult:
    """Return the result of a gate with these checks: the worst one."""
    order: Sequence[CheckResult] = ("fail", "untestable", "undecided", "pass")
    results = {check.result for check in checks}
    return next(result for result in order if result in results)

"""Are answers to neighbouring questions right answers to the question itself?

Wei et al. 2024, section 2.2 and Figure 2: for each question of TruthfulQA the best answers to its
ten nearest questions are judged as answers to it. If hardly any is right, an answer that is like
them is a lazy one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from trustassay.backends import resolve
from trustassay.capabilities import Models
from trustassay.data.records import InputError
from trustassay.metric import Assessment, Context, Metric, Need, Pool
from trustassay.metrics.fewl import Fewl
from trustassay.metrics.fewl.references import QuestionPool, prepared
from trustassay.metrics.judge import Judge
from trustassay.runs.folder import RunFolder
from trustassay.sample import Problem, Sample
from trustassay.text.words import plain_words
from trustassay_papers.experiments.answers import Records, best_answer, read_records
from trustassay_papers.experiments.measuring import FAULTY, Setup, execute_run, load_models
from trustassay_papers.experiments.results import Cell, Result, Row, bars, figure, shares

WHOSE = ("best", "references")


@dataclass(frozen=True)
class Neighbourhood(Metric):
    """Finds the neighbours of each question, and the references' answers to them.

    The score is the mean cosine of the neighbours. Options as of ``fewl``.
    """

    name: ClassVar[str] = "neighbourhood"
    title: ClassVar[str] = "Neighbouring questions"
    pool: ClassVar[bool] = True
    reads_response: ClassVar[bool] = False

    neighbours: int = 10
    max_similarity: float = 0.8
    of: str = "best"
    answers: int = 1

    @property
    def score_range(self) -> tuple[float, float]:
        """A cosine."""
        return -1.0, 1.0

    @property
    def fills(self) -> tuple[str, ...]:
        """References, where it is their answers that are judged."""
        return ("references",) if self.of == "references" else ()

    @property
    def filling(self) -> Mapping[str, int]:
        """As ``fewl``."""
        return {"references": self.answers} if self.of == "references" else {}

    def needs(self) -> Sequence[Need]:
        """An embedder; whom stages ask."""
        return [Need("embed"), Need("chat", "references", many=True, optional=True)]

    def problems(self, sample: Sample) -> list[Problem]:
        """A question needs what is judged."""
        if self.of == "references" and not sample.references:
            words = "is missing (expected answers by model name, or --reference models to ask)"
            return [Problem("references", words)]
        if not sample.answers:
            return [Problem("answers", "is missing (expected the right answers of the question)")]
        return []

    async def prepare(self, pool: Pool, models: Models) -> QuestionPool:
        """Embed all questions."""
        return await prepared(pool, self._fewl(), models)

    def _fewl(self) -> Fewl:
        return Fewl(
            weights="uniform", neighbours=self.neighbours, max_similarity=self.max_similarity
        )

    async def assess(self, context: Context) -> Assessment:
        """Return the neighbours, nearest first, as the evidence."""
        found = await context.prepared.neighbours(
            context.sample, self._fewl(), context.models, context.seed
        )
        rows = [
            {
                "question": one.question,
                "similarity": one.similarity,
                "answers": list(one.answers.values()),
            }
            for one in found
        ]
        score = float(np.mean([one.similarity for one in found])) if found else None
        reason = "" if found else "no question is near enough"
        return Assessment(context.sample.id, self.name, score, reason=reason, evidence=rows)


@dataclass(frozen=True)
class _Answered:
    """An answer to a neighbour: whose question, at which rank from 1, and its cosine to that."""

    sample: Sample
    rank: int
    similarity: float


async def neighbours(
    source: Path,
    out: Path,
    setup: Setup,
    records: Records,
    *,
    judge: Any = None,
    rubric: str = "verdict",
    of: str = "best",
) -> Result:
    """Judge the answers to each question's neighbours as answers to the question.

    Args:
        judge: a chat model; without one an answer is right, or wrong, if the input lists it as
            such for the question in the same words.
        rubric: by which the judge judges; what passes is right.
        of: ``best``, the answers that the input gives, or ``references``.

    Raises:
        BadInputError: questions have no right answers, or no references.
        InputError: no question has a neighbour.
    """
    if of not in WHOSE:
        raise InputError(f"of: expected {' or '.join(WHOSE)}, got {of!r}")
    questions: dict[str, Sample] = {}
    for one in read_records(source, records):
        questions.setdefault(one.question.strip(), replace(one, response=None, model=None))
    references, _ = await load_models(setup.references)
    options = setup.metric
    metric = Neighbourhood(options.neighbours, options.max_similarity, of, options.answers)
    named = {"references": references, "embedder": setup.embedder}
    folder = RunFolder(out / "neighbours")
    samples = list(questions.values())
    with records.placing(samples):
        found = await execute_run(samples, metric, named, folder, setup.options)
    left_out = {one.id: FAULTY for one in questions.values() if one.id not in found}
    left_out |= {k: one.error or one.reason for k, one in found.items() if one.score is None}
    answered = list(_answered(questions, found, of))
    if not answered:
        raise InputError("no question has a neighbour with an answer")
    right, wrong, failed = await _judged(answered, judge, rubric, out, setup)
    kept = [one for one in answered if one.sample.id not in failed]
    return _result(
        kept, right, wrong, left_out | failed, setup, {"judge": str(judge or "none"), "of": of}
    )


def _answered(
    questions: Mapping[str, Sample], found: Mapping[str, Assessment], of: str
) -> list[_Answered]:
    """Return each answer to a neighbour as an answer to the question."""
    answers = []
    for sample in questions.values():
        if sample.id not in found:
            continue
        for rank, row in enumerate(found[sample.id].evidence, 1):
            other = questions[row["question"].strip()]
            texts = [best_answer(other)] if of == "best" else row["answers"]
            answers += [
                _Answered(
                    replace(sample, id=f"{sample.id}-{rank}-{place}", response=text),
                    rank,
                    row["similarity"],
                )
                for place, text in enumerate(texts, 1)
            ]
    return answers


async def _judged(
    answered: Sequence[_Answered], judge: Any, rubric: str, out: Path, setup: Setup
) -> tuple[set[str], set[str], dict[str, str]]:
    """Return the ids of right and wrong answers, and why others could not be judged."""
    if judge is None:
        right = {one.sample.id for one in answered if _listed(one.sample, right=True)}
        wrong = {one.sample.id for one in answered if _listed(one.sample, right=False)}
        return right, wrong - right, {}
    model = await asyncio.to_thread(resolve.chat, judge)
    samples = [one.sample for one in answered]
    folder = RunFolder(out / "judged")
    found = await execute_run(
        samples, Judge(rubric=rubric), {"judge": model}, folder, setup.options
    )
    failed = {name: one.error for name, one in found.items() if one.error is not None}
    passed = {"passes", *_best_levels(rubric)}
    right = {name for name, one in found.items() if one.verdict in passed}
    return right, set(found) - right - failed.keys(), failed


def _best_levels(rubric: str) -> list[str]:
    """Return the levels of a nominal rubric that pass: its verdicts are levels."""
    scale = Judge(rubric=rubric).scale
    return [label for label, value in scale.values.items() if value >= scale.passes]


def _listed(sample: Sample, *, right: bool) -> bool:
    """Whether the input lists the answer among the question's right, or wrong, ones."""
    gold = [alias for aliases in sample.answers for alias in aliases]
    known = gold if right else sample.incorrect_answers
    own = list(plain_words(sample.response or ""))
    return bool(own) and any(list(plain_words(text)) == own for text in known)


def _result(
    kept: Sequence[_Answered],
    right: set[str],
    wrong: set[str],
    left_out: Mapping[str, str],
    setup: Setup,
    settings: Mapping[str, Any],
) -> Result:
    """Return the table by rank, and the distribution of right answers a question."""
    ranks = sorted({one.rank for one in kept})
    rows, drawn = [], []
    for rank in ranks:
        own = [one for one in kept if one.rank == rank]
        cells = [_share(own, which) for which in (right, wrong)]
        alike = float(np.mean([one.similarity for one in own]))
        cells.append(Cell(f"{alike:.3f}", {"mean": alike}))
        rows.append(Row(f"neighbour {rank}", cells, {"rank": rank, "n": len(own)}))
        drawn.append(sum(one.sample.id in right for one in own))
    cells = [_share(kept, which) for which in (right, wrong)]
    alike = float(np.mean([one.similarity for one in kept]))
    rows.append(Row("all", [*cells, Cell(f"{alike:.3f}", {"mean": alike})], {"n": len(kept)}))
    counts = _counts(kept, right)
    several = len(counts) - 1
    told = ", ".join(f"{k}: {n:,}" for k, n in enumerate(counts) if n)
    notes = [
        f"{counts[0]:,} of {sum(counts):,} questions have no right answer among those to their "
        f"neighbours. Questions by the number of right ones, of {several}: {told}.",
        "Right and wrong by the judge's verdict."
        if settings["judge"] != "none"
        else "Right and wrong as the input lists answers, in the same words: others are neither, "
        "so both shares are lower bounds.",
    ]
    if left_out:
        reason = next(iter(left_out.values()))
        notes.append(f"{len(left_out):,} are left out; the first: {reason}")
    labels = [str(k) for k in range(len(counts))]
    first = bars("questions", counts, labels, f"{counts[0] / sum(counts):.0%} have none")
    by_rank = bars("right answers", drawn, [f"rank {rank}" for rank in ranks], f"{sum(drawn):,}")
    return Result(
        "fewl-neighbours",
        "Answers to neighbouring questions, held as answers to the question",
        ("right, %", "wrong, %", "cosine of the questions"),
        rows,
        notes,
        left_out,
        {
            **settings,
            "neighbours": setup.metric.neighbours,
            "max_similarity": setup.metric.max_similarity,
            "seed": setup.options.seed,
        },
        [
            figure(
                "Right answers among the neighbours' answers",
                "Questions by the number of their neighbours' answers that are right of them.",
                [first],
                ("0", str(several)),
            ),
            figure(
                "Right answers by rank",
                "From the nearest neighbour to the farthest.",
                [by_rank],
                (str(ranks[0]), str(ranks[-1])),
            ),
        ],
    )


def _share(own: Sequence[_Answered], which: set[str]) -> Cell:
    """Return the mean share of a question's answers that are in a set, over the questions."""
    by_question: dict[str, list[float]] = {}
    for one in own:
        by_question.setdefault(one.sample.question, []).append(float(one.sample.id in which))
    held = np.array([[sum(each) / len(each) for each in by_question.values()]])
    return shares(held, np.zeros_like(held))[0]


def _counts(kept: Sequence[_Answered], right: set[str]) -> list[int]:
    """Return how many questions have 0, 1, 2, ... right answers."""
    held: dict[str, list[bool]] = {}
    for one in kept:
        held.setdefault(one.sample.question, []).append(one.sample.id in right)
    most = max(map(len, held.values()))
    numbers = [sum(each) for each in held.values()]
    return [numbers.count(k) for k in range(most + 1)]

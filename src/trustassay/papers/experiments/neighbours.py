"""Judge the answers to neighbouring questions as answers to the question itself.

Wei et al. 2024, section 2.2 and Figure 2: for each question of TruthfulQA the best answers to its
ten nearest questions are judged as answers to it. If hardly any is right, an answer that resembles
them is a lazy one.

1. Find the neighbours of each question, by a run of the metric :class:`Neighbourhood`.
2. Judge each answer to a neighbour, by a model or by the answers that the input lists.
3. Tabulate the shares of right and wrong answers by rank.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from trustassay.backends import resolve
from trustassay.core.capabilities import Models
from trustassay.core.metric import Assessment, Context, Metric, Need, Pool
from trustassay.core.sample import Problem, Sample
from trustassay.input.records import InputError
from trustassay.metrics.fewl import Fewl
from trustassay.metrics.fewl.references import QuestionPool, build_question_pool
from trustassay.metrics.judge import Judge
from trustassay.papers.experiments.answers import (
    RecordSelection,
    best_answer,
    read_distinct_questions,
)
from trustassay.papers.experiments.measuring import (
    FewlSetup,
    assess_questions,
    errors_of,
    execute_run,
    load_models,
)
from trustassay.papers.experiments.results import (
    Cell,
    ExperimentResult,
    ExperimentRow,
    build_chart,
    build_count_bar,
    build_share_cells,
    note_left_out,
)
from trustassay.runs.folder import RunFolder
from trustassay.text.numbers import amount, percent_text
from trustassay.text.words import plain_words

ANSWER_SOURCES = ("best", "references")


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
        """References, if their answers are judged."""
        return ("references",) if self.of == "references" else ()

    @property
    def filling(self) -> Mapping[str, int]:
        """As ``fewl``."""
        return {"references": self.answers} if self.of == "references" else {}

    def needs(self) -> Sequence[Need]:
        """An embedder, and the references that a stage asks."""
        return [Need("embed"), Need("chat", "references", many=True, optional=True)]

    def problems(self, sample: Sample) -> list[Problem]:
        """Return problems of a question without the answers that are judged."""
        if self.of == "references" and not sample.references:
            message = "is missing (expected answers by model name, or --reference models to ask)"
            return [Problem("references", message)]
        if not sample.answers:
            return [Problem("answers", "is missing (expected the right answers to the question)")]
        return []

    async def prepare(self, pool: Pool, models: Models) -> QuestionPool:
        """Embed all questions."""
        return await build_question_pool(pool, self._fewl_options(), models)

    def _fewl_options(self) -> Fewl:
        return Fewl(
            weights="uniform", neighbours=self.neighbours, max_similarity=self.max_similarity
        )

    async def assess(self, context: Context) -> Assessment:
        """Return the neighbours, nearest first, as the evidence."""
        # The same neighbours as those behind FEWL's penalty.
        neighbours = await context.prepared.neighbours(
            context.sample, self._fewl_options(), context.models, context.seed
        )
        rows = [
            {
                "question": neighbour.question,
                "similarity": neighbour.similarity,
                "answers": list(neighbour.answers.values()),
            }
            for neighbour in neighbours
        ]
        score = (
            float(np.mean([neighbour.similarity for neighbour in neighbours]))
            if neighbours
            else None
        )
        reason = "" if neighbours else "no other question is similar enough"
        return Assessment(context.sample.id, self.name, score, reason=reason, evidence=rows)


@dataclass(frozen=True)
class _NeighbourAnswer:
    """An answer to a neighbour, as an answer to the question itself."""

    sample: Sample
    """The question with this answer."""
    rank: int
    """The rank of the neighbour, from 1."""
    similarity: float
    """The cosine of the neighbour and the question."""


async def judge_neighbours(
    source: Path,
    out: Path,
    setup: FewlSetup,
    records: RecordSelection,
    *,
    judge: Any = None,
    rubric: str = "verdict",
    of: str = "best",
) -> ExperimentResult:
    """Judge the answers to each question's neighbours as answers to the question.

    Args:
        judge: a chat model; without one an answer is right, or wrong, if the input lists it with
            the same words as a right, or wrong, answer to the question.
        rubric: the rubric of the judge; an answer that passes is right.
        of: whose answers are judged: ``best``, the input's, or ``references``.

    Raises:
        BadInputError: questions have no right answers, or no references.
        InputError: no question has a neighbour.
    """
    if of not in ANSWER_SOURCES:
        raise InputError(f"of: expected {' or '.join(ANSWER_SOURCES)}, got {of!r}")
    questions = read_distinct_questions(source, records)
    references, _ = await load_models(setup.references)
    options = setup.metric
    # Options as of `fewl`, so that the neighbours are the same.
    metric = Neighbourhood(options.neighbours, options.max_similarity, of, options.answers)
    backends = {"references": references, "embedder": setup.embedder}
    folder = RunFolder(out / "neighbours")
    assessments, left_out = await assess_questions(
        questions, records, metric, backends, folder, setup.options
    )
    answered = _build_neighbour_answers(questions, assessments, of)
    if not answered:
        reason = f"; reason for the first: {next(iter(left_out.values()))}" if left_out else ""
        raise InputError(f"no question has a neighbour with an answer{reason}")
    # Answers that the judge could not judge are left out and counted.
    right, wrong, failed = await _judge_answers(answered, judge, rubric, out, setup)
    judged = [answer for answer in answered if answer.sample.id not in failed]
    return _build_result(
        judged, right, wrong, left_out | failed, setup, {"judge": str(judge or "none"), "of": of}
    )


def _build_neighbour_answers(
    questions: Sequence[Sample], assessments: Mapping[str, Assessment], of: str
) -> list[_NeighbourAnswer]:
    """Return each answer to a neighbour as an answer to the question."""
    question_by_text = {sample.question.strip(): sample for sample in questions}
    answers = []
    for sample in questions:
        if sample.id not in assessments:
            continue
        for rank, row in enumerate(assessments[sample.id].evidence, 1):
            other = question_by_text[row["question"].strip()]
            # The evidence has the answers of references; those of the input are in the neighbour's
            # sample.
            texts = [best_answer(other)] if of == "best" else row["answers"]
            answers += [
                _NeighbourAnswer(
                    replace(sample, id=f"{sample.id}-{rank}-{number}", response=text),
                    rank,
                    row["similarity"],
                )
                for number, text in enumerate(texts, 1)
            ]
    return answers


async def _judge_answers(
    answered: Sequence[_NeighbourAnswer], judge: Any, rubric: str, out: Path, setup: FewlSetup
) -> tuple[set[str], set[str], dict[str, str]]:
    """Return the ids of right and of wrong answers, and by id why others were not judged."""
    if judge is None:
        right = {answer.sample.id for answer in answered if _is_listed(answer.sample, right=True)}
        # An answer in neither list is neither right nor wrong.
        wrong = {answer.sample.id for answer in answered if _is_listed(answer.sample, right=False)}
        # Answers that the input lists on both sides count as right.
        return right, wrong - right, {}
    model = await asyncio.to_thread(resolve.chat, judge)
    samples = [answer.sample for answer in answered]
    folder = RunFolder(out / "judged")
    assessments = await execute_run(
        samples, Judge(rubric=rubric), {"judge": model}, folder, setup.options
    )
    failed = errors_of(assessments.values())
    # A rubric of two levels has its levels as verdicts instead of "passes".
    passed = {"passes", *_best_levels(rubric)}
    right = {name for name, assessment in assessments.items() if assessment.verdict in passed}
    # Everything that was judged and did not pass is wrong.
    return right, set(assessments) - right - failed.keys(), failed


def _best_levels(rubric: str) -> list[str]:
    """Return the levels of a rubric that pass."""
    scale = Judge(rubric=rubric).scale
    return [label for label, value in scale.values.items() if value >= scale.passes]


def _is_listed(sample: Sample, *, right: bool) -> bool:
    """Whether the input lists the answer among the right, or wrong, ones of its question."""
    gold = [alias for aliases in sample.answers for alias in aliases]
    listed_texts = gold if right else sample.incorrect_answers
    # Without case and punctuation.
    words = list(plain_words(sample.response or ""))
    return bool(words) and any(list(plain_words(text)) == words for text in listed_texts)


def _build_result(
    answers: Sequence[_NeighbourAnswer],
    right: set[str],
    wrong: set[str],
    left_out: Mapping[str, str],
    setup: FewlSetup,
    settings: Mapping[str, Any],
) -> ExperimentResult:
    """Return the table by rank, with the distribution of right answers per question."""
    # 1. One row for each rank, and one for all.
    answers_of_rank: dict[int, list[_NeighbourAnswer]] = {}
    for answer in sorted(answers, key=lambda answer: answer.rank):
        answers_of_rank.setdefault(answer.rank, []).append(answer)
    rows = [
        _build_row(f"neighbour {rank}", ranked, right, wrong, {"rank": rank})
        for rank, ranked in answers_of_rank.items()
    ]
    rows.append(_build_row("all", answers, right, wrong, {}))
    right_at_rank = [
        sum(answer.sample.id in right for answer in ranked) for ranked in answers_of_rank.values()
    ]
    # 2. Notes: how many questions have how many right answers.
    counts = _count_right_answers(answers, right)
    max_right = len(counts) - 1
    distribution = ", ".join(f"{n:,} with {k}" for k, n in enumerate(counts) if n)
    notes = [
        f"{counts[0]:,} of {amount(sum(counts), 'question')} have no right answer among their "
        f"neighbours' answers. Questions by number of right answers, of {max_right}: "
        f"{distribution}.",
        "The judge decides whether an answer is right or wrong."
        if settings["judge"] != "none"
        else (
            "An answer is right or wrong if the input lists the same words as a right or wrong "
            "answer to the question. Other answers are neither, so both shares are lower bounds."
        ),
    ]
    notes += note_left_out(left_out, "sample")
    # 3. Drawings, and the result.
    labels = [str(k) for k in range(len(counts))]
    first = build_count_bar(
        "questions", counts, labels, f"{percent_text(counts[0] / sum(counts))} have no right answer"
    )
    drawings = [
        build_chart(
            "Right answers among the neighbours' answers",
            "Number of questions by how many of their neighbours' answers are right for them.",
            [first],
            ("0", str(max_right)),
        )
    ]
    # Without a right answer there is nothing to draw by rank.
    if any(right_at_rank):
        ranks = [f"rank {rank}" for rank in answers_of_rank]
        total = f"{sum(right_at_rank):,}"
        drawings.append(
            build_chart(
                "Right answers by rank",
                "Number of right answers, from the nearest neighbour to the farthest.",
                [build_count_bar("right answers", right_at_rank, ranks, total)],
                (str(min(answers_of_rank)), str(max(answers_of_rank))),
            )
        )
    return ExperimentResult(
        "fewl-neighbours",
        "Answers to neighbouring questions, judged as answers to the question itself",
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
        drawings,
    )


def _build_row(
    name: str,
    answers: Sequence[_NeighbourAnswer],
    right: set[str],
    wrong: set[str],
    about: Mapping[str, Any],
) -> ExperimentRow:
    # One column for right and one for wrong; they need not add up to 100.
    cells = [_mean_share(answers, counted_ids) for counted_ids in (right, wrong)]
    alike = float(np.mean([answer.similarity for answer in answers]))
    cells.append(Cell(f"{alike:.3f}", {"mean": alike}))
    return ExperimentRow(name, cells, {**about, "n": len(answers)})


def _mean_share(answers: Sequence[_NeighbourAnswer], counted_ids: set[str]) -> Cell:
    """Return the mean, over questions, of the share of their answers in ``counted_ids``."""
    # References may give several answers: each question counts once.
    questions = _group_flags(answers, counted_ids)
    share_of_question = np.array([[sum(flags) / len(flags) for flags in questions]])
    return build_share_cells(share_of_question, np.zeros_like(share_of_question))[0]


def _count_right_answers(answers: Sequence[_NeighbourAnswer], right: set[str]) -> list[int]:
    """Return how many questions have 0, 1, 2, ... right answers."""
    questions = _group_flags(answers, right)
    numbers = [sum(flags) for flags in questions]
    return [numbers.count(k) for k in range(max(map(len, questions)) + 1)]


def _group_flags(answers: Sequence[_NeighbourAnswer], counted_ids: set[str]) -> list[list[bool]]:
    """Return for each question which of its answers are in ``counted_ids``."""
    flags_of_question: dict[str, list[bool]] = {}
    for answer in answers:
        flags = flags_of_question.setdefault(answer.sample.question, [])
        flags.append(answer.sample.id in counted_ids)
    return list(flags_of_question.values())

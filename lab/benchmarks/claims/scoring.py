"""Answers scored by ``faithfulness`` through the public interface, and stored part by part.

Nothing but :func:`trustassay.score` is used, so that older and newer versions can be measured.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import trustassay
from lab.benchmarks.claims.storage import ResultRow, append_rows, digest, missing_from, read_rows

CHUNK = 200
"""Answers that are scored and stored together: at most a minute of work is lost when stopped."""
MAX_PROCESSES = 2
TEXT_FIELDS = ("question", "response", "documents")
"""Fields of an answer that are scored and not stored."""


def score_answers(answers: Sequence[Mapping[str, Any]]) -> list[ResultRow]:
    """Score answers, and return their rows without their texts."""
    records = [
        {"id": answer["id"]} | {field: answer[field] for field in TEXT_FIELDS} for answer in answers
    ]
    run = trustassay.score(records, metrics="faithfulness", progress=False)
    (metric,) = run.metrics
    assessments = {assessment.id: assessment for assessment in run.assessments}
    return [
        make_row(answer, assessments[answer["id"]], metric.problem(assessments[answer["id"]]))
        for answer in answers
    ]


def make_row(
    answer: Mapping[str, Any], assessment: trustassay.Assessment, problem: str | None
) -> ResultRow:
    """Return what is stored of a scored answer.

    ``support`` is the mean probability of support of its claims, ``order`` what puts answers in
    order, both ``None`` where the answer has no score; ``flagged`` whether the metric reports a
    problem. ``sample`` identifies the texts.
    """
    scored = assessment.score is not None
    texts = [answer["question"], answer["response"], *answer["documents"]]
    return {
        **{field: value for field, value in answer.items() if field not in TEXT_FIELDS},
        "sample": digest(*texts),
        "score": assessment.score,
        "support": assessment.parts.get("support") if scored else None,
        "order": assessment.parts.get("order") if scored else None,
        "claims": int(assessment.parts.get("statements", 0)),
        "verdict": "failed" if assessment.error is not None else assessment.verdict,
        "flagged": problem is not None,
        "error": assessment.error,
    }


def score_chunks(
    chunks: Sequence[Sequence[Mapping[str, Any]]], processes: int
) -> Iterator[list[ResultRow]]:
    """Yield the rows of each chunk as it is finished."""
    if processes == 1:
        yield from map(score_answers, chunks)
        return
    # A forked process would share the threads of the encoder, and wait for them for ever.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for future in as_completed([pool.submit(score_answers, chunk) for chunk in chunks]):
            yield future.result()


def score_missing(answers: Sequence[Mapping[str, Any]], out: Path, processes: int) -> int:
    """Score the answers that a file has no row of, append their rows, and return their number."""
    rows = read_rows(out) if out.exists() else {}
    todo = missing_from(answers, rows)
    chunks = [todo[start : start + CHUNK] for start in range(0, len(todo), CHUNK)]
    began, done = time.monotonic(), 0
    for rows_of_chunk in score_chunks(chunks, processes):
        append_rows(out, rows_of_chunk)
        done += len(rows_of_chunk)
        seconds = time.monotonic() - began
        message = f"{done:,} of {len(todo):,} answers, {seconds:.0f} s; {rows_of_chunk[-1]['set']}"
        print(message, file=sys.stderr, flush=True)
    return done

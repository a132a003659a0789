"""Assess one sample by one metric.

1. Refuse a sample that is too long, or in a language that the metric's models do not read.
2. Let the metric assess it.
3. Check the assessment against the contract: identity, finite numbers, score range, texts.
4. Return it with the line to store. A failure becomes an assessment too.
"""

import asyncio
import dataclasses
import math
from pathlib import Path
from typing import Any, cast

from trustassay.calls.capability import capability
from trustassay.calls.client import Client, SampleModels
from trustassay.core.capabilities import Models
from trustassay.core.files import DiskFullError
from trustassay.core.metric import Assessment, Context, Metric
from trustassay.core.sample import Sample, is_blank
from trustassay.core.tracebacks import describe_error, write_failure
from trustassay.errors import AssessmentError, BackendError
from trustassay.judging.second_reader import (
    PART_READ_BY_SECOND,
    REASON_READ_ALONE,
    REASON_UNMEASURED,
    ROLE,
    SecondReader,
)
from trustassay.runs.intake import RunOptions
from trustassay.runs.lines import encode_assessment
from trustassay.text.language import OTHER_LANGUAGE, detect_language


async def assess_sample(
    metric: Metric,
    sample: Sample,
    client: Client,
    options: RunOptions,
    folder: Path | None = None,
    prepared: Any = None,
    second: SecondReader | None = None,
) -> tuple[Assessment, bytes]:
    """Assess one sample; return the assessment, which may be a failure, and its line.

    A failure counts no calls, since how many were made before it depends on concurrent work.

    Args:
        folder: the run's; it gets the traceback of an error that the metric does not report itself.
        prepared: what the metric prepared for the run.
        second: the second reader, if it is to read the answer. Where the first reader does not read
            the answer's language, the second one reads instead of it.
    """
    models, limits = SampleModels(client), options.limits
    try:
        limits.check(sample)
        unread = assess_other_language(metric, sample, cast(Models, models))
        # The first reader cannot read the answer: the second one takes its place for all claims.
        if second_reads_alone := second is not None and unread is not None:
            models, second = SampleModels(client, ROLE), None
            # The second reader may not read the language either.
            unread = assess_other_language(metric, sample, cast(Models, models))
        context = Context(sample, cast(Models, models), prepared, options.seed, limits, second)
        # An assessment without a score ("not assessable") stands in for the metric's own.
        result = unread or await metric.assess(context)
        _check(result, sample, metric)
        if second_reads_alone and not unread:
            result = _read_alone(result, measured=bool(models.languages("entail")))
        result = dataclasses.replace(result, **models.count_requests())
        return result, encode_assessment(result)
    except (AssessmentError, BackendError) as error:
        # Errors of this kind are made for users: their text is the message, without a traceback.
        message, fault = str(error), getattr(error, "kind", None)
    except (Exception, asyncio.CancelledError) as error:
        # A metric may raise anything, also CancelledError from a task of its own. Only a
        # cancellation of this task, or a full disk, ends the run.
        task = asyncio.current_task()
        if (task and task.cancelling()) or isinstance(error, DiskFullError):
            raise  # what is asked from now on could not be kept
        if folder:
            write_failure(folder, metric.name, error)
        message, fault = f"{metric.name} failed: {describe_error(error)}", None
    failure = Assessment.for_failure(sample.id, metric.name, message, fault)
    return failure, encode_assessment(failure)


def _read_alone(result: Assessment, *, measured: bool) -> Assessment:
    """Add to an assessment that the second reader made it without the first.

    Args:
        measured: whether the quality of the second reader is measured in other languages.
    """
    parts = {**result.parts, PART_READ_BY_SECOND: result.parts.get("statements", 1.0)}
    # Readers of the report must know that the usual reader did not judge this answer.
    remarks = (result.reason, REASON_READ_ALONE, "" if measured else REASON_UNMEASURED)
    reason = "; ".join(filter(None, remarks))
    return dataclasses.replace(result, parts=parts, reason=reason)


def _check(result: Any, sample: Sample, metric: Metric) -> None:
    """Raise AssessmentError for a result that breaks the contract of a metric.

    Called before the result is stored, so that it reaches neither the summary nor the files.
    """
    name = metric.name
    if not isinstance(result, Assessment):
        raise AssessmentError(f"{name}: expected an Assessment, got {result!r:.60}")
    # The summary finds assessments by id and metric: another identity would replace another result.
    if (result.id, result.metric) != (sample.id, name):
        raise AssessmentError(
            f"{name}: returned an assessment for {result.id!r} of {result.metric!r}, expected one "
            f"for {sample.id!r} of {name!r}"
        )
    numbers = (
        dict(result.parts) if result.score is None else {**result.parts, "score": result.score}
    )
    for part, number in numbers.items():
        # NaN and infinity are not JSON, and would spread through every mean.
        if not isinstance(number, int | float) or not math.isfinite(number):
            label = "score" if part == "score" else f"part {part!r}"
            raise AssessmentError(f"{name}: {label} must be a finite number, got {number!r:.60}")
    low, high = metric.score_range
    if result.score is not None and not low <= result.score <= high:
        raise AssessmentError(
            f"{name}: the score must lie between {low:g} and {high:g}, got {result.score}"
        )
    for field in ("verdict", "reason", "error"):
        value = getattr(result, field)
        if not isinstance(value, str | None):
            raise AssessmentError(f"{name}: {field} must be text, got {value!r:.60}")


MAX_LANGUAGE_PASSAGES = 3
"""Passages that are used to detect the language where the answer is too short to tell it."""
MAX_PASSAGE_CHARACTERS = 200
"""Characters of each of these passages."""


def assess_other_language(metric: Metric, sample: Sample, models: Models) -> Assessment | None:
    """Return an assessment without a score if a model of the metric does not read the language.

    ``None`` if all models read it, or if the language is not known.
    """
    for need in metric.needs():
        # Only models without a role are checked: those with one are chat models, or the second
        # reader, which takes over where the first does not read the language (decision 164).
        message = (
            None
            if need.role or need.only_with
            else describe_unread_language(need.capability, sample, models)
        )
        if message:
            reason, parts = f"not assessable: {message}", {OTHER_LANGUAGE: 1.0}
            return Assessment(sample.id, metric.name, None, reason=reason, parts=parts)
    return None


def describe_unread_language(kind: str, sample: Sample, models: Models) -> str | None:
    """Return a message if the backend of a capability does not read the language of an answer.

    ``None`` if it reads the language, if that is not known, or if the answer is blank.
    """
    response, reads = sample.response, models.languages(kind)
    # A backend that lists no languages reads any. A blank answer is in no language.
    if not reads or (response is not None and is_blank(response)):
        return None
    documents = (sample.documents or ())[:MAX_LANGUAGE_PASSAGES]
    passages = (document.text[:MAX_PASSAGE_CHARACTERS] for document in documents)
    language = detect_language(response or "", (sample.question, *passages))
    # ``None``: the text does not tell its language; it is then assessed like any other.
    if language in (*reads, None):
        return None
    backend_kind = capability(kind)
    return (
        f"the answer is in another language ({language}) than the {backend_kind.backend} reads "
        f"({', '.join(reads)}); give another {backend_kind.option}"
    )

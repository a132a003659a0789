"""One sample and one metric: assess, check against the contract, store."""

import asyncio
import dataclasses
import math
from pathlib import Path
from typing import Any, cast

from trustassay.calls.client import Client, SampleModels
from trustassay.calls.kinds import capability
from trustassay.capabilities import Models
from trustassay.errors import AssessmentError, BackendError
from trustassay.files import DiskFullError
from trustassay.judging.second_reader import READ, READ_ALONE, ROLE, UNMEASURED, SecondReader
from trustassay.metric import Assessment, Context, Metric
from trustassay.runs.intake import RunOptions
from trustassay.runs.lines import encoded
from trustassay.sample import Sample, is_blank
from trustassay.text.language import OTHER_LANGUAGE, language_of
from trustassay.tracebacks import keep_failure, words_of


async def assessed(
    metric: Metric,
    sample: Sample,
    client: Client,
    options: RunOptions,
    folder: Path | None = None,
    prepared: Any = None,
    second: SecondReader | None = None,
) -> tuple[Assessment, bytes]:
    """Assess one sample; return the result, which may be a failure, and its line.

    A failure counts no calls, since the number made before it depends on other work. ``folder``,
    the run's, gets the traceback of an error that the metric does not tell of itself. ``second`` is
    the second reader, if it is to read the answer; in a language that the first one does not read,
    it reads alone.
    """
    models, limits = SampleModels(client), options.limits
    try:
        limits.check(sample)
        unread = in_other_language(metric, sample, cast(Models, models))
        if alone := second is not None and unread is not None:
            models, second = SampleModels(client, ROLE), None
            unread = in_other_language(metric, sample, cast(Models, models))
        context = Context(sample, cast(Models, models), prepared, options.seed, limits, second)
        result = unread or await metric.assess(context)
        _check(result, sample, metric)
        if alone and not unread:
            result = _read_alone(result, measured=bool(models.languages("entail")))
        result = dataclasses.replace(result, **models.counted())
        return result, encoded(result)
    except (AssessmentError, BackendError) as error:
        words, fault = str(error), getattr(error, "kind", None)
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if (task and task.cancelling()) or isinstance(error, DiskFullError):
            raise  # what is asked from now on could not be kept
        if folder:
            keep_failure(folder, metric.name, error)
        words, fault = f"{metric.name} failed: {words_of(error)}", None
    failed = Assessment.failed(sample.id, metric.name, words, fault)
    return failed, encoded(failed)


def _read_alone(result: Assessment, *, measured: bool) -> Assessment:
    """Say of an assessment that the second reader made it alone, and whether it is known how well
    it reads other languages."""
    parts = {**result.parts, READ: result.parts.get("statements", 1.0)}
    told = (result.reason, READ_ALONE, "" if measured else UNMEASURED)
    reason = "; ".join(filter(None, told))
    return dataclasses.replace(result, parts=parts, reason=reason)


def _check(found: Any, sample: Sample, metric: Metric) -> None:
    """Refuse what does not follow the contract: it may not reach the summary or the files."""
    name = metric.name
    if not isinstance(found, Assessment):
        raise AssessmentError(f"{name}: expected an Assessment, got {found!r:.60}")
    if (found.id, found.metric) != (sample.id, name):
        raise AssessmentError(
            f"{name}: returned an assessment for {found.id!r} of {found.metric!r}, expected one "
            f"for {sample.id!r} of {name!r}"
        )
    numbers = dict(found.parts) if found.score is None else {**found.parts, "score": found.score}
    for part, number in numbers.items():
        if not isinstance(number, int | float) or not math.isfinite(number):
            what = "score" if part == "score" else f"part {part!r}"
            raise AssessmentError(f"{name}: {what} must be a finite number, got {number!r:.60}")
    low, high = metric.score_range
    if found.score is not None and not low <= found.score <= high:
        raise AssessmentError(
            f"{name}: the score must lie between {low:g} and {high:g}, got {found.score}"
        )
    for field in ("verdict", "reason", "error"):
        value = getattr(found, field)
        if not isinstance(value, str | None):
            raise AssessmentError(f"{name}: {field} must be text, got {value!r:.60}")


PASSAGES = 3
"""Passages whose language is looked at, where the answer does not tell its own."""
PASSAGE_READ = 200


def in_other_language(metric: Metric, sample: Sample, models: Models) -> Assessment | None:
    """Return the assessment of an answer that a model of a metric does not read; else ``None``."""
    for need in metric.needs():
        words = None if need.role or need.beside else unread_by(need.capability, sample, models)
        if words:
            reason, parts = f"not assessable: {words}", {OTHER_LANGUAGE: 1.0}
            return Assessment(sample.id, metric.name, None, reason=reason, parts=parts)
    return None


def unread_by(kind: str, sample: Sample, models: Models) -> str | None:
    """Return in words that an answer is in a language that the backend of a capability does not
    read; ``None`` if it is not, or nothing is written.
    """
    response, reads = sample.response, models.languages(kind)
    if not reads or (response is not None and is_blank(response)):
        return None
    passages = (one.text[:PASSAGE_READ] for one in (sample.documents or ())[:PASSAGES])
    language = language_of(response or "", (sample.question, *passages))
    if language in (*reads, None):
        return None
    one = capability(kind)
    return (
        f"the answer is in another language ({language}) than the {one.backend} reads "
        f"({', '.join(reads)}); give another {one.option}"
    )

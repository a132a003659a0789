"""Sentences on a finished run, from its summary: what was drawn or added, and what has no score."""

import shlex
from collections.abc import Mapping
from typing import Any

from trustassay.core.asked import AskedModel, load_rows
from trustassay.core.assessment import REMARKS
from trustassay.core.outcome import BLANK
from trustassay.errors import MODEL_NOT_GIVEN, ModelNotGivenError, shorten_name
from trustassay.report.asked import describe_unanswered
from trustassay.runs.answering_models import MAX_MODELS_LISTED
from trustassay.text.limits import TOO_LONG
from trustassay.text.numbers import amount, percent_text, verb

LEFT_OUT = "left_out"
"""Key in ``summary.json``: by metric, the answers whose model was not given, by its name."""
ANSWERED_BY = "answered_by"
"""Key in ``summary.json``: by decision model, the calls of each model that answered for it."""
ASKED_INSTEAD = "asked_instead"
"""Key in ``summary.json``: by metric, the answers about which a model was asked that they do not
name: by that model, and by the name in the answers."""
DRAWN, GROWN = "drawn", "grown"
"""Keys in ``run.json`` and ``summary.json``: how a part of the input was drawn; the figures before
the run grew."""
# In the words of the remarks, for each kind of failed call.
_FAULT_DESCRIPTIONS = {
    "closed": "the endpoint rejects all requests",
    "connection": "no connection",
    "limited": "the endpoint received too many requests",
    "malformed": "the reply could not be read",
    "oversized": "the reply was too large",
    "refused": "the endpoint refused the request",
    "server": "the endpoint had a server error",
    "timeout": "no reply in time",
    TOO_LONG: "too long to assess",
}
# Continues the sentences "1 of 100 answers ..." and "3 of 100 answers ...".
_ANSWER_DESCRIPTIONS = {
    "blank": ("was blank", "were blank"),
    "cut": ("was cut at max_tokens", "were cut at max_tokens"),
    "unanswered": (
        "is followed by a user message without an answer, which was left out",
        "are followed by user messages without an answer, which were left out",
    ),
    "repeated": (
        "repeats an earlier answer to the same question, under another id",
        "repeat an earlier answer to the same question, under another id",
    ),
    "copied": (
        "was copied word for word from a passage",
        "were copied word for word from a passage",
    ),
}


def write_remarks(summary: Mapping[str, Any], samples: int) -> list[str]:
    """Return a sentence for each count in a summary that users should know of.

    A metric that leaves answers open has the figures ``open``, ``mean_low`` and ``mean_high``.
    Blank answers are left out where the outcomes count them.

    Args:
        samples: the number of samples of the run.
    """
    rows = read_asked_rows(summary)
    result = describe_unanswered(rows)
    has_empty_reply = any("empty" in row.missing for row in rows)
    outcomes = summary.get("outcomes", {}).values()
    counts_blank = any(BLANK in outcome["reasons"] for outcome in outcomes)
    for name, count in summary.get("answers", {}).items():
        if name == "blank" and counts_blank:
            continue
        status = _ANSWER_DESCRIPTIONS[name][count != 1]
        result.append(f"{count:,} of {samples:,} answers {status}")
    for metric, kinds in summary.get("faults", {}).items():
        for kind, count in kinds.items():
            # The same answers, which a metric could not assess.
            if kind == "empty" and count == summary.get("answers", {}).get("blank"):
                continue
            # Counted by model below.
            if kind == MODEL_NOT_GIVEN and metric in summary.get(LEFT_OUT, {}):
                continue
            consequence = f"samples failed: {_FAULT_DESCRIPTIONS.get(kind, kind)}"
            # An empty answer is no failure of a call, unlike an empty reply.
            if kind == "empty" and has_empty_reply:
                consequence = "samples failed: empty reply or empty answer"
            elif kind == "empty":
                consequence = f"answers {verb(count, 'was', 'were')} empty"
            result.append(f"{metric}: {count:,} of {samples:,} {consequence}")
    result += _describe_moved_aliases(summary.get(ANSWERED_BY, {}))
    result += write_left_out(summary)
    for metric, metric_summary in summary.get("metrics", {}).items():
        values = metric_summary["values"]
        # Both bounds of the mean, as if all open answers had the lowest or the highest score.
        if count := int(values.get("open") or 0):
            are = verb(count, "is", "are")
            result.append(
                f"{metric}: {count:,} of {samples:,} answers {are} left open, because replies "
                f"could not be read; the mean over all answers is between "
                f"{values['mean_low']:.3f} and {values['mean_high']:.3f}"
            )
    result += write_metric_remarks(summary)
    for metric, models in summary.get("usage", {}).get("metrics", {}).items():
        if cut := sum(usage.get("cut", 0) for usage in models.values()):
            calls = sum(usage["calls"] for usage in models.values())
            result.append(
                f"{metric}: {cut:,} of {calls:,} replies {verb(cut, 'was', 'were')} cut at "
                "max_tokens"
            )
    return result


def _describe_moved_aliases(calls_by_backend: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a sentence for each decision model for which several models answered."""
    result = []
    for backend, calls_by_model in calls_by_backend.items():
        # An alias such as jev-latest stands for another model from one day to the next.
        if len(calls_by_model) > 1:
            names = ", ".join(f"{shorten_name(k)} ({n:,})" for k, n in calls_by_model.items())
            result.append(
                f"{backend}: several models answered under this name: {names}. Their numbers may "
                "differ; name a version instead of an alias"
            )
    return result


def read_asked_rows(summary: Mapping[str, Any]) -> list[AskedModel]:
    """Return who was asked, those with most missing replies first."""
    return load_rows(summary.get("asked", {}))


def describe_asked_models(
    left_out: Mapping[str, Mapping[str, int]],
    asked_instead: Mapping[str, Mapping[str, Mapping[str, int]]],
    verb: str = "was",
) -> list[str]:
    """Return a sentence for each model of answers that was not asked about them, by metric.

    Args:
        left_out: by metric as of :func:`describe_left_out`.
        asked_instead: by metric as of :func:`describe_asked_instead`.
        verb: "was" after a run, "is" before it.
    """
    result = []
    for metric, counts in left_out.items():
        result += [f"{metric}: {sentence}" for sentence in describe_left_out(counts)]
    for metric, counts_by_asked in asked_instead.items():
        sentences = describe_asked_instead(counts_by_asked, verb)
        result += [f"{metric}: {sentence}" for sentence in sentences]
    return result


def write_left_out(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each metric and model whose answers are left out, or were asked of
    another model."""
    return describe_asked_models(summary.get(LEFT_OUT, {}), summary.get(ASKED_INSTEAD, {}))


def write_metric_remarks(summary: Mapping[str, Any]) -> list[str]:
    """Return the sentences with which metrics qualify their own figures."""
    return [
        f"{metric}: {sentence}"
        for metric, metric_summary in summary.get("metrics", {}).items()
        for sentence in metric_summary.get("details", {}).get(REMARKS, ())
    ]


def describe_left_out(counts_by_model: Mapping[str, int]) -> list[str]:
    """Return a sentence for each model whose answers are left out, as it was not given.

    Args:
        counts_by_model: the numbers of answers by the model's name, ``""`` if they name none.
    """
    listed, rest = _divide_models(counts_by_model)
    result = []
    for model, count in listed.items():
        of_model = f"of {shorten_name(model)}" if model else "without a model"
        reason = ModelNotGivenError(model)
        result.append(f"{amount(count, 'answer')} {of_model} left out: {reason}")
    if rest:
        result.append(f"{_describe_rest(rest)} left out")
    return result


def _divide_models(counts_by_model: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the counts of the models that sentences name, those with most first, and the rest."""
    ordered = sorted(counts_by_model.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:MAX_MODELS_LISTED]), dict(ordered[MAX_MODELS_LISTED:])


def _describe_rest(counts_by_model: Mapping[str, int]) -> str:
    answers = amount(sum(counts_by_model.values()), "answer")
    return f"{answers} of {amount(len(counts_by_model), 'other model')}"


def describe_asked_instead(
    counts_by_asked: Mapping[str, Mapping[str, int]], verb: str
) -> list[str]:
    """Return a sentence for each model whose answers another one was asked about.

    Args:
        counts_by_asked: the numbers of answers by the model that was asked, and by the name in the
            answers, ``""`` if they name none.
        verb: "was" after a run, "is" before it.
    """
    result = []
    for asked, counts_by_model in counts_by_asked.items():
        listed, rest = _divide_models(counts_by_model)
        for model, count in listed.items():
            answers, them = amount(count, "answer"), "it" if count == 1 else "them"
            name_no = "names no" if count == 1 else "name no"
            sentence = f"{answers} {name_no} model; {shorten_name(asked)} {verb} asked about {them}"
            if model:
                option = shlex.quote(f"{shorten_name(model)}=URI")
                sentence = (
                    f"{answers} of {shorten_name(model)}: {shorten_name(asked)} {verb} asked about "
                    f"{them}; --model {option} gives the right model"
                )
            result.append(sentence)
        if rest:
            result.append(f"{_describe_rest(rest)}: {shorten_name(asked)} {verb} asked instead")
    return result


def describe_draw(draw: Mapping[str, Any]) -> str:
    """Return how many answers of how many were drawn, and how, as one sentence."""
    strata_text = (
        f" from {draw['strata']:,} strata by {', '.join(draw['by'])}" if "by" in draw else ""
    )
    # Units are mentioned only if they differ from answers.
    units_text = f" in {draw['units']:,} units" if draw["units"] < draw["answers"] else ""
    answers_text = f"{draw['answers']:,} of {draw['of']:,} answers{units_text}"
    status = verb(draw["answers"], "was drawn", "were drawn")
    return f"{answers_text} {status} at random{strata_text} (seed {draw['seed']})"


def write_notes(summary: Mapping[str, Any]) -> list[str]:
    """Return sentences on the draw, on answers that were added, and on second readers."""
    result = [f"{describe_draw(summary[DRAWN])}."] if DRAWN in summary else []
    if grown := summary.get(GROWN):
        answer_count = max(metric_summary["n"] for metric_summary in summary["metrics"].values())
        new = answer_count - grown["samples"]
        result.append(f"{new:,} of {answer_count:,} answers {verb(new, 'is', 'are')} new.")
    return [*result, *describe_second_readings(summary)]


def describe_second_readings(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each metric that a second reader read for."""
    return [
        f"{name}: {_describe_second_reading(reading)}."
        for name, reading in summary.get("second", {}).items()
    ]


def _describe_second_reading(reading: Mapping[str, Any]) -> str:
    """Return what a second reader read and changed, and the estimate for all answers."""
    reader, alone_count = f"the second reader ({reading['reader']})", reading.get("alone", 0)
    alone_text = (
        f"read {amount(alone_count, 'answer')} in languages that the first reader does not read"
    )
    # The first reader read no answer: there is nothing that the second one could have changed.
    if not reading["answers"] and alone_count:
        return f"{reader} {alone_text}"
    lifted, newly_flagged = reading["lifted"], reading["set"]
    message = (
        f"{reader} read {reading['read']:,} of {amount(reading['answers'], 'answer')}: "
        f"{lifted:,} {verb(lifted, 'is', 'are')} no longer flagged, "
        f"{newly_flagged:,} {verb(newly_flagged, 'is', 'are')} newly flagged"
    )
    message += f". It also {alone_text}" if alone_count else ""
    if reading["failed"]:
        message += f". It failed on {amount(reading['failed'], 'answer')}"
    # Failed answers are among the unread ones.
    if (out_of_time := reading["unread"] - reading["failed"]) > 0:
        message += f". Its time was up before it read {amount(out_of_time, 'more answer')}"
    if reading["share"] is None:
        return f"{message}. The share of all answers is unknown: {reading['without']}"
    share = percent_text(reading["share"])
    message += f". If it had read all answers, {share} would need a look"
    if reading["interval"]:
        low, high = (100 * bound for bound in reading["interval"])
        return message + (f" (95 % interval {low:.0f} to {high:.0f} %)" if low < high else "")
    return f"{message} (no interval: {reading['without']})"

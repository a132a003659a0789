"""Sentences on a finished run, from its summary: what was drawn or added, and what has no score."""

from collections.abc import Mapping
from typing import Any

from trustassay.core.assessment import REMARKS
from trustassay.judging.entailer_quality import LARGER_ENTAILER
from trustassay.text.limits import TOO_LONG

DRAWN, GROWN = "drawn", "grown"
"""Keys in ``run.json`` and ``summary.json``: how a part of the input was drawn; the figures before
the run grew."""
MIN_SHARE_WITHOUT_PASSAGES = 0.05
"""Share of answers without passages from which a remark mentions them."""
# In the words of the remarks, for each kind of failed call.
_FAULT_DESCRIPTIONS = {
    "closed": "the endpoint rejects all requests",
    "connection": "no connection",
    "limited": "too many requests for the endpoint",
    "malformed": "the reply could not be read",
    "oversized": "the reply was too large",
    "refused": "the endpoint refused the request",
    "server": "server error of the endpoint",
    "timeout": "no reply in time",
    TOO_LONG: "too long to assess",
}
# Continues the sentence "3 of 100 answers were ...".
_ANSWER_DESCRIPTIONS = {
    "blank": "blank",
    "cut": "cut at max_tokens",
    "repeated": "the same as another answer to the same question, under another id",
    "copied": "copied word for word from a passage",
}


def write_remarks(summary: Mapping[str, Any], samples: int) -> list[str]:
    """Return a sentence for each count in a summary that users should know of.

    A metric that leaves answers open has the figures ``open``, ``mean_low`` and ``mean_high``. A
    metric that needs passages has ``no_passages``, which is mentioned above 5 % of the samples.

    Args:
        samples: the number of samples of the run.
    """
    result = []
    for name, count in summary.get("answers", {}).items():
        status = f"{_was_or_were(count)} {_ANSWER_DESCRIPTIONS[name]}"
        result.append(f"{count:,} of {samples:,} answers {status}")
    for metric, kinds in summary.get("faults", {}).items():
        for kind, count in kinds.items():
            consequence = f"samples failed: {_FAULT_DESCRIPTIONS.get(kind, kind)}"
            # An empty answer is no failure of a call.
            if kind == "empty":
                consequence = f"answers {_was_or_were(count)} empty"
            result.append(f"{metric}: {count:,} of {samples:,} {consequence}")
    for metric, options in summary.get("languages", {}).items():
        for option, languages in options.items():
            count = sum(languages.values())
            language_list = ", ".join(
                f"{language} {number:,}" for language, number in languages.items()
            )
            # The model that is proposed here reads many languages.
            proposal = f"--entailer {LARGER_ENTAILER}"
            if option != "--entailer":
                proposal = f"--backend similarity=agreement:{LARGER_ENTAILER}"
            result.append(
                f"{metric}: {count:,} of {samples:,} answers {_was_or_were(count)} not scored, "
                f"being in another language ({language_list}) than their judge reads; "
                f"{proposal} reads them"
            )
    for metric, metric_summary in summary.get("metrics", {}).items():
        values = metric_summary["values"]
        # Both bounds of the mean, as if all open answers had the lowest or the highest score.
        if count := int(values.get("open") or 0):
            are = "is" if count == 1 else "are"
            result.append(
                f"{metric}: {count:,} of {samples:,} answers {are} open, since replies cannot be "
                f"read: the mean over all is between {values['mean_low']:.3f} and "
                f"{values['mean_high']:.3f}"
            )
        count = int(values.get("no_passages") or 0)
        if count > MIN_SHARE_WITHOUT_PASSAGES * samples:
            result.append(
                f"{metric}: {count:,} of {samples:,} answers have no passages and are in no "
                "figure; does the file have all passages?"
            )
        # What the metric itself has to say.
        sentences = metric_summary.get("details", {}).get(REMARKS, ())
        result += [f"{metric}: {sentence}" for sentence in sentences]
    for metric, models in summary.get("usage", {}).get("metrics", {}).items():
        if cut := sum(usage.get("cut", 0) for usage in models.values()):
            calls = sum(usage["calls"] for usage in models.values())
            result.append(
                f"{metric}: {cut:,} of {calls:,} replies {_was_or_were(cut)} cut at max_tokens"
            )
    return result


def describe_draw(draw: Mapping[str, Any]) -> str:
    """Return how many answers of how many were drawn, and how, as one sentence."""
    strata_text = (
        f" from {draw['strata']:,} strata by {', '.join(draw['by'])}" if "by" in draw else ""
    )
    # Units are mentioned only if they differ from answers.
    units_text = f" in {draw['units']:,} units" if draw["units"] < draw["answers"] else ""
    answers_text = f"{draw['answers']:,} of {draw['of']:,} answers{units_text}"
    return f"{answers_text}, drawn at random{strata_text} (seed {draw['seed']})"


def write_notes(summary: Mapping[str, Any]) -> list[str]:
    """Return sentences on the draw, on answers that were added, and on second readers."""
    result = [f"{describe_draw(summary[DRAWN])}."] if DRAWN in summary else []
    if grown := summary.get(GROWN):
        answer_count = max(metric_summary["n"] for metric_summary in summary["metrics"].values())
        result.append(f"{answer_count - grown['samples']:,} of {answer_count:,} answers are new.")
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
    in_others = f"alone read {alone_count:,} answers in languages that the first does not read"
    # The first reader read no answer: there is nothing that the second one could have changed.
    if not reading["answers"] and alone_count:
        return f"{reader} {in_others}"
    message = (
        f"{reader} read {reading['read']:,} of {reading['answers']:,} "
        f"answers: {reading['lifted']:,} need no look any more, {reading['set']:,} others do"
    )
    message += f"; it {in_others}" if alone_count else ""
    if reading["failed"]:
        message += f"; {reading['failed']:,} could not be read"
    # Failed answers are among the unread ones.
    if out_of_time := reading["unread"] - reading["failed"]:
        message += f"; {out_of_time:,} were left when its time was spent"
    if reading["share"] is None:
        return f"{message}; {reading['without']}"
    message += f". Had it read all, {100 * reading['share']:.0f} % would need a look"
    if reading["interval"]:
        low, high = (100 * bound for bound in reading["interval"])
        return message + (f" ({low:.0f} to {high:.0f} %)" if low < high else "")
    return f"{message} (no interval: {reading['without']})"


def _was_or_were(count: int) -> str:
    return "was" if count == 1 else "were"

"""Counts of failures by kind, of blank answers, those cut short, and in other languages.

Only lines that may hold what is counted are parsed, so a large run takes no second pass.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trustassay.languages import OTHER_LANGUAGE
from trustassay.measured import BETTER
from trustassay.runs.folder import RunFolder
from trustassay.runs.other_language import language_in
from trustassay.runs.stages import CUT
from trustassay.sample import is_blank
from trustassay.texts import TOO_LONG

__all__ = ["remarks", "silence", "unread"]

FEW_WITHOUT_PASSAGES = 0.05
"""Share of the answers without passages up to which they are not named by themselves."""
_TOLD = re.compile(rb'"fault": "|"%s": 1' % OTHER_LANGUAGE.encode())
_RESPONSE = re.compile(
    rb'"response": "(?: |\\[nrtbf]|\\u[0-9a-f]{4})*"|"%s": true' % CUT.encode(), re.IGNORECASE
)
"""A response of nothing but blanks and escaped characters, or the mark of one that was cut."""
_WORDS = {
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


def silence(folder: RunFolder) -> dict[str, Any]:
    """Return counts for ``summary.json``: ``faults`` by metric and kind, blank and cut answers,
    ``languages`` that models do not read, by metric, the option that names the model, and language.

    Counts of zero are left out.
    """
    faults: dict[str, Counter[str]] = {}
    languages: dict[str, dict[str, Counter[str]]] = {}
    for assessment in _records(folder.assessments_path, _TOLD):
        if isinstance(kind := assessment.get("fault"), str):
            faults.setdefault(assessment["metric"], Counter())[kind] += 1
        elif OTHER_LANGUAGE in assessment["parts"]:
            language, option = language_in(assessment["reason"])
            by_option = languages.setdefault(assessment["metric"], {})
            by_option.setdefault(option, Counter())[language] += 1
    answers: Counter[str] = Counter()
    for sample in _records(folder.samples_path, _RESPONSE):
        response = sample.get("response")
        answers["blank"] += isinstance(response, str) and is_blank(response)
        answers["cut"] += sample.get(CUT) is True
    found: dict[str, Any] = {}
    if faults:
        found["faults"] = {name: dict(sorted(kinds.items())) for name, kinds in faults.items()}
    if told := {name: count for name, count in answers.items() if count}:
        found["answers"] = told
    if languages:
        found["languages"] = {
            metric: {option: dict(by.most_common()) for option, by in options.items()}
            for metric, options in languages.items()
        }
    return found


def unread(summary: Mapping[str, Any]) -> int:
    """Return how many answers no judge of a metric read, by the metric with the most."""
    options = [one for by in summary.get("languages", {}).values() for one in by.values()]
    return max((sum(languages.values()) for languages in options), default=0)


def remarks(summary: Mapping[str, Any], samples: int) -> list[str]:
    """Return a sentence for each count in a summary of ``samples`` samples.

    A metric that leaves answers open has the figures ``open``, ``mean_low`` and ``mean_high``, one
    that needs passages ``no_passages``, which is named from 5 % of the samples on.
    """
    found = []
    for name, count in summary.get("answers", {}).items():
        how = "blank" if name == "blank" else "cut at max_tokens"
        found.append(f"{count:,} of {samples:,} answers {_be(count)} {how}")
    for metric, kinds in summary.get("faults", {}).items():
        for kind, count in kinds.items():
            if kind == "empty":
                words = f"{count:,} of {samples:,} answers {_be(count)} empty"
                found.append(f"{metric}: {words}")
            else:
                words = _WORDS.get(kind, kind)
                found.append(f"{metric}: {count:,} of {samples:,} samples failed: {words}")
    for metric, options in summary.get("languages", {}).items():
        for option, languages in options.items():
            count = sum(languages.values())
            which = ", ".join(f"{language} {number:,}" for language, number in languages.items())
            other = BETTER if option == "--entailer" else f"agreement:{BETTER}"
            found.append(
                f"{metric}: {count:,} of {samples:,} answers {_be(count)} not scored, being in "
                f"another language ({which}) than their judge reads; {option} {other} reads them"
            )
    for metric, told in summary.get("metrics", {}).items():
        values = told["values"]
        if count := int(values.get("open") or 0):
            are = "is" if count == 1 else "are"
            ends = f"{values['mean_low']:.3f} and {values['mean_high']:.3f}"
            found.append(
                f"{metric}: {count:,} of {samples:,} answers {are} open, since replies cannot be "
                f"read: the mean over all is between {ends}"
            )
        count = int(values.get("no_passages") or 0)
        if count > FEW_WITHOUT_PASSAGES * samples:
            words = f"{count:,} of {samples:,} answers brought no passages"
            found.append(f"{metric}: {words} and count in no figure; does the file hold them all?")
    for metric, models in summary.get("usage", {}).get("metrics", {}).items():
        cut = sum(used.get("cut", 0) for used in models.values())
        if cut:
            calls = sum(used["calls"] for used in models.values())
            words = f"{cut:,} of {calls:,} replies {_be(cut)} cut at max_tokens"
            found.append(f"{metric}: {words}")
    return found


def _be(count: int) -> str:
    return "was" if count == 1 else "were"


def _records(path: Path, pattern: re.Pattern[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the records of those lines of a file in which ``pattern`` is found."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if pattern.search(line):
                yield json.loads(line)

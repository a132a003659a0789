"""Counts of failures by kind, of blank answers and of answers cut short.

Only lines that may hold what is counted are parsed, so a large run takes no second pass.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trustassay.runs.folder import RunFolder
from trustassay.runs.stages import CUT
from trustassay.sample import is_blank

__all__ = ["remarks", "silence"]

_FAULT = re.compile(rb'"fault": "')
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
}


def silence(folder: RunFolder) -> dict[str, Any]:
    """Return counts for ``summary.json``: ``faults`` by metric and kind, blank and cut answers.

    Counts of zero are left out.
    """
    faults: dict[str, Counter[str]] = {}
    for assessment in _records(folder.assessments_path, _FAULT):
        if isinstance(kind := assessment.get("fault"), str):
            faults.setdefault(assessment["metric"], Counter())[kind] += 1
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
    return found


def remarks(summary: Mapping[str, Any], samples: int) -> list[str]:
    """Return a sentence for each count in a summary of ``samples`` samples."""
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

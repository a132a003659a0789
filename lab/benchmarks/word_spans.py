"""Whether words that a passage lacks are what people marked as wrong in an answer.

    python -m lab.benchmarks.word_spans          # no model is asked

The answers of Mu-SHROOM whose linked page is there (German; French and Italian of the val part).
``lacking`` marks the words that ``faithfulness`` names and gives as spans, here of all sentences:
content words of which the page has neither the stem nor a word that begins with it; ``lacking names
and numbers`` those of them that have a digit or a capital, and do not begin a sentence. The
measures, and the predictors that read no page, are those of :mod:`lab.benchmarks.mu_shroom`. Writes
``results/word-spans.json``.
"""

from __future__ import annotations

import html
import json
import re
import tarfile
from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.mu_shroom import (
    FIXED,
    Answer,
    Scores,
    answer_of,
    figure,
    joined,
    names_and_numbers,
    over_spaces,
    resampled,
    scored,
)
from lab.benchmarks.which_metric.sets import lines, shared
from lab.results import write_result
from trustassay.statistics.resampling import resample_interval
from trustassay.text.words import MIN_STEM_LETTERS, content_words

LANGUAGES = ("de", "fr", "it")
_WRITTEN = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")
_HIDDEN = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
Predictor = Callable[[Answer, list[str]], NDArray[np.float64]]


def pages(language: str) -> dict[str, list[str]]:
    """Return the content words of each page, sorted, by its title."""
    result = {}
    with tarfile.open(shared() / "mu-shroom" / f"pages_{language}.tar.gz") as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is not None:
                text = file.read().decode("utf-8", "replace")
                title = re.search(r"<title>(.*?) [-–—] [^-–—]*</title>", text, re.DOTALL)
                plain = html.unescape(_HIDDEN.sub(" ", text))
                if title:
                    result[html.unescape(title[1])] = sorted(set(content_words(plain)))
    return result


def holds(page: list[str], stem: str) -> bool:
    """Whether a page has a stem, or a word that begins with it, as ``faithfulness`` has it."""
    place = bisect_left(page, stem)
    word = page[place] if place < len(page) else ""
    return word == stem or (len(stem) >= MIN_STEM_LETTERS and word.startswith(stem))


def lacking(answer: Answer, page: list[str]) -> NDArray[np.float64]:
    """Return 1 for the characters of words that a page lacks, else 0."""
    result = np.zeros(len(answer.text))
    for word in _WRITTEN.finditer(answer.text):
        own = content_words(word[0])
        result[slice(*word.span())] = bool(own) and not any(holds(page, one) for one in own)
    return over_spaces(answer.text, result)


PREDICTORS: Mapping[str, Predictor] = {
    **{name: lambda answer, _, own=own: own(answer) for name, own in FIXED.items()},  # type: ignore[misc]
    "lacking": lacking,
    "lacking names and numbers": lambda answer, page: np.minimum(
        lacking(answer, page), names_and_numbers(answer)
    ),
}


def measured(language: str) -> dict[str, Scores]:
    """Return the scores of each predictor on the answers of a language that have a page."""
    known = pages(language)
    chosen: list[tuple[Answer, list[str]]] = []
    parts = (lines(f"mu-shroom/{part}_{language}") for part in ("val", "test"))
    for row in chain.from_iterable(parts):
        title = unquote(row["wikipedia_url"]).rpartition("/wiki/")[2].replace("_", " ")
        if title in known:
            chosen.append((answer_of(row, language), known[title]))
    answers = [answer for answer, _ in chosen]
    result = {}
    for name, predictor in PREDICTORS.items():
        values = [predictor(*one) for one in chosen]
        result[name] = scored(answers, values, [one > 0 for one in values])
    return result


def figures(scores: Mapping[str, Scores], place: str) -> dict[str, Any]:
    """Return the means with their intervals over answers."""
    result: dict[str, Any] = {}
    for name, own in scores.items():
        result[name] = {"answers": len(own.iou), "marked": round(float(own.marked.mean()), 4)}
        for measure in ("iou", "correlation"):
            values = getattr(own, measure)
            interval = resample_interval(resampled(values, "pages", place), len(values))
            result[name][measure] = figure(float(values.mean()), interval)
    return result


def main() -> None:
    each = {language: measured(language) for language in LANGUAGES}
    told = {language: figures(own, language) for language, own in each.items()}
    told["all"] = figures(joined(list(each.values())), "all")
    write_result(
        "word-spans",
        "python -m lab.benchmarks.word_spans",
        "Mu-SHROOM (Vázquez et al. 2025), answers with a linked page in three languages",
        told,
    )
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()

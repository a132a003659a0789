"""The score of one answer: the three parts of the trust score, for a single response."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["scored"]


def scored(parts: Mapping[str, float], correctness: str) -> tuple[float | None, str]:
    """Return the score of one answer in 0..1, if it is known, and its reason.

    A refusal scores 1 if the documents support no gold answer, else 0; a blank response
    scores 0. An answer scores the mean of the parts that apply: the share of the supported gold
    answers that it gives, 1 or 0 for whether the question could be answered, and the F1 of its
    citation recall and precision. These are the three parts of the trust score, for one answer.
    """
    answerable = parts.get("answerable")
    if not parts["answered"]:
        if answerable is None:
            return None, "refused; whether rightly is unknown without gold answers"
        right = "rightly: no document supports" if not answerable else "though a document supports"
        return 1.0 - answerable, f"refused {right} a gold answer"
    if parts["blank"]:
        return 0.0, "the response is blank"
    recall = share(parts["supported_statements"], parts["statements"])
    precision = share(parts["precise_citations"], parts["citations"])
    applicable = [share(2 * recall * precision, recall + precision)]
    words = [
        f"{parts['supported_statements']:.0f} of {parts['statements']:.0f} statements supported",
        f"{parts['precise_citations']:.0f} of {parts['citations']:.0f} citations precise",
    ]
    if answerable is not None:
        applicable.append(answerable)
    if answerable == 0:
        words.insert(0, "answered though no document supports a gold answer")
    if "supported_hits" in parts:
        applicable.append(correctness_of_one(parts, correctness))
        if answerable:
            hits, supported = parts["supported_hits"], parts["supported"]
            words.insert(0, f"gives {hits:.0f} of {supported:.0f} supported gold answers")
    return sum(applicable) / len(applicable), "; ".join(words)


def correctness_of_one(parts: Mapping[str, float], correctness: str) -> float:
    """Return the calibrated correctness of one answer: a share, or for a list its F1 of five."""
    hits, supported = parts["supported_hits"], parts["supported"]
    if correctness != "em5":
        return share(hits, supported)
    precision = share(parts["supported_elements"], parts["elements"])
    recall = share(min(5, hits), min(5, supported))
    return share(2 * precision * recall, precision + recall)


def share(part: float, whole: float) -> float:
    """Return part / whole, 0 of nothing."""
    return part / whole if whole else 0.0

"""Decides whether an answer is a refusal: it declines as a whole and states nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.judging.claims import REASON_DECLINES, Claim, build_claims
from trustassay.text.refusals import (
    begins_with_refusal,
    belongs_to_refusal,
    find_refusal_as_in_paper,
    find_refusal_words,
    is_no_answer_placeholder,
)
from trustassay.text.sentences import load_splitter

NO_ANSWER = "not assessable: there is no answer (an engine without passages says Empty Response)"

Detector = Callable[[str], str | None]
"""A function from a response to the words that refuse, or ``None`` if it answers."""


def find_refusal(claims: Sequence[Claim]) -> str | None:
    """Return the words by which an answer declines as a whole; ``None`` if any part of it answers.

    An answer may decline, or say that the documents do not cover the topic. Apologies, referrals
    and sentences about the documents may stand beside that, because they answer nothing.
    """
    refusing = [
        find_refusal_words(claim.text) or claim.text for claim in claims if claim.is_refusal
    ]
    # A denial with a topic is a claim itself, but part of the refusal.
    other_claims = (
        claim for claim in claims if claim.hypothesis is not None and claim.topic is None
    )
    return refusing[0] if refusing and all(map(_is_aside, other_claims)) else None


def _is_aside(claim: Claim) -> bool:
    return belongs_to_refusal(claim.hypothesis or "")


def drop_asides(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims of a refusal in which only its denials claim something."""
    return [
        replace(claim, hypothesis=None, reason=REASON_DECLINES)
        if claim.topic is None and claim.hypothesis
        else claim
        for claim in claims
    ]


def find_refusal_in_words(response: str) -> str | None:
    """Return the words that refuse, by common English wordings and by the rest of the response."""
    if is_no_answer_placeholder(response):
        return response.strip()
    # Without the question: a short reply would be completed by it into a claim.
    return find_refusal(build_claims("", response, load_splitter("sentencex")))


def refuses_outright(response: str) -> bool:
    """Whether an answer without passages declines, by its words or by its beginning.

    "I'm sorry, but I cannot ..." declines; "We Can't Stop" and "I Can't Help Myself" are titles.
    """
    return begins_with_refusal(response) or find_refusal_in_words(response) is not None


DETECTORS: dict[str, Detector] = {
    "phrases": find_refusal_in_words,
    "paper": find_refusal_as_in_paper,
}


def load_detector(choice: str | Callable[[str], object]) -> Detector:
    """Return the detector with a name, or one that calls a function and takes true for a refusal.

    Raises:
        UnknownNameError: no detector has this name.
    """
    if callable(choice):
        # A function of a user returns true or false; its name stands for the words.
        return lambda text: getattr(choice, "__name__", "function") if choice(text) else None
    if choice not in DETECTORS:
        raise UnknownNameError(did_you_mean("refusal detector", choice, DETECTORS))
    return DETECTORS[choice]

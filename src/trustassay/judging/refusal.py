"""Decides whether an answer is a refusal: it declines as a whole and states nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.judging.claims import DECLINES, Claim, build_claims
from trustassay.text.refusals import (
    begins_with_refusal,
    belongs_to_refusal,
    declines,
    no_answer,
    refuses_as_in_paper,
)
from trustassay.text.sentences import splitter

NO_ANSWER = "not assessable: there is no answer (an engine without passages says Empty Response)"

Detector = Callable[[str], str | None]
"""A function from a response to the words that refuse, or ``None`` if it answers."""


def refusal_of(claims: Sequence[Claim]) -> str | None:
    """Return the words by which an answer declines as a whole; ``None`` if any part of it answers.

    An answer may decline, or say that the documents do not cover the topic. Apologies, referrals
    and sentences about the documents may stand beside that, because they answer nothing.
    """
    refusing = [declines(claim.text) or claim.text for claim in claims if claim.refuses]
    # A denial with a topic is a claim itself, but part of the refusal.
    other_claims = (
        claim for claim in claims if claim.hypothesis is not None and claim.topic is None
    )
    return refusing[0] if refusing and all(map(_is_aside, other_claims)) else None


def _is_aside(claim: Claim) -> bool:
    return belongs_to_refusal(claim.hypothesis or "")


def without_asides(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims of a refusal in which only its denials claim something."""
    return [
        replace(claim, hypothesis=None, why=DECLINES)
        if claim.topic is None and claim.hypothesis
        else claim
        for claim in claims
    ]


def refuses_in_words(response: str) -> str | None:
    """Return the words that refuse, by common English wordings and by the rest of the response."""
    if no_answer(response):
        return response.strip()
    # Without the question: a short reply would be completed by it into a claim.
    return refusal_of(build_claims("", response, splitter("sentencex")))


def refuses_outright(response: str) -> bool:
    """Whether an answer without passages declines, by its words or by its beginning.

    "I'm sorry, but I cannot ..." declines; "We Can't Stop" and "I Can't Help Myself" are titles.
    """
    return begins_with_refusal(response) or refuses_in_words(response) is not None


DETECTORS: dict[str, Detector] = {"phrases": refuses_in_words, "paper": refuses_as_in_paper}


def detector(choice: str | Callable[[str], object]) -> Detector:
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

"""Is an answer a refusal: does it decline as a whole, and state nothing else?"""

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
"""Takes a response and returns the words that refuse, or ``None`` for an answer."""


def refusal_of(claims: Sequence[Claim]) -> str | None:
    """Return the words by which an answer declines as a whole; ``None`` if any of it answers.

    It may decline, or deny that the documents tell. Beside that, apologies, referrals and what the
    documents are about answer nothing.
    """
    refusing = [declines(claim.text) or claim.text for claim in claims if claim.refuses]
    others = (claim for claim in claims if claim.hypothesis is not None and claim.topic is None)
    return refusing[0] if refusing and all(map(_is_aside, others)) else None


def _is_aside(claim: Claim) -> bool:
    return belongs_to_refusal(claim.hypothesis or "")


def without_asides(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims of a refusal; what stands beside its denials claims nothing."""
    return [
        replace(one, hypothesis=None, why=DECLINES) if one.topic is None and one.hypothesis else one
        for one in claims
    ]


def refuses_in_words(response: str) -> str | None:
    """Decide by common English refusals, and by what else the response states."""
    if no_answer(response):
        return response.strip()
    return refusal_of(build_claims("", response, splitter("sentencex")))


def refuses_outright(response: str) -> bool:
    """Whether an answer that was given without passages declines, by its words or its beginning:
    "I'm sorry, but I cannot ...". "We Can't Stop" and "I Can't Help Myself" are answers.
    """
    return begins_with_refusal(response) or refuses_in_words(response) is not None


DETECTORS: dict[str, Detector] = {"phrases": refuses_in_words, "paper": refuses_as_in_paper}


def detector(choice: str | Callable[[str], object]) -> Detector:
    """Return the detector of that name, or wrap a function that returns something true.

    Raises:
        UnknownNameError: no detector has this name.
    """
    if callable(choice):
        return lambda text: getattr(choice, "__name__", "function") if choice(text) else None
    if choice not in DETECTORS:
        raise UnknownNameError(did_you_mean("refusal detector", choice, DETECTORS))
    return DETECTORS[choice]

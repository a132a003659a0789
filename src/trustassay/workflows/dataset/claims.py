"""Gold claims of a question: given, the sentences of the gold answer, or asked of a model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import as_file, files

from trustassay.errors import UnparsedError
from trustassay.metrics.grounding.sentences import splitter as sentence_splitter
from trustassay.metrics.grounding.sentences import statements
from trustassay.prompts import Prompt
from trustassay.prose import numbered
from trustassay.sample import Sample

__all__ = ["CLAIMS_ASKED", "Ask", "ClaimError", "asked_claims", "claims_prompt", "parsed_claims"]
__all__ += ["sentence_claims"]

Ask = Callable[[str], Awaitable[str]]
"""Sends a prompt to a chat model and returns its reply; raises :class:`BackendError`."""
CLAIMS_ASKED = 3
"""Claims that a model is asked for from one gold answer, as in Song et al. 2025."""


class ClaimError(UnparsedError):
    """A model's reply holds no claims; the message shows the reply."""


def sentence_claims(sample: Sample) -> tuple[str, ...]:
    """Return the sentences of the gold answers, without citations and numbering, each once."""
    split = sentence_splitter("sentencex")
    found = (
        statement.hypothesis
        for aliases in sample.answers
        for statement in statements(aliases[0], split, trailing=True, lines=True)
    )
    return tuple(dict.fromkeys(" ".join(text.split()) for text in found))


async def asked_claims(sample: Sample, ask: Ask) -> tuple[str, ...]:
    """Return the claims that a model finds in the gold answers.

    Raises:
        ClaimError: a reply holds none.
        BackendError: the model did not answer.
    """
    prompts = [
        claims_prompt().filled(question=sample.question, answer=a[0], count=CLAIMS_ASKED)
        for a in sample.answers
    ]
    replies = await asyncio.gather(*map(ask, prompts))
    found = [claim for reply in replies for claim in parsed_claims(reply)]
    return tuple(dict.fromkeys(found))


def parsed_claims(reply: str) -> tuple[str, ...]:
    """Read lines numbered from 1: ``1. ...``, ``2) ...``, ``Claim 3: ...``; others are talk.

    Raises:
        ClaimError: there is no such line.
    """
    lines = (line["text"].strip() for line in numbered(reply.replace("**", "")))
    claims = tuple(dict.fromkeys(filter(None, lines)))
    if not claims:
        shown = " ".join(reply.split())
        raise ClaimError(f"the model's reply has no numbered claims: {shown[:80]!r}")
    return claims


@cache
def claims_prompt() -> Prompt:
    """Return the prompt by which a model is asked for claims."""
    with as_file(files("trustassay.workflows.dataset") / "prompts" / "claims.jinja") as path:
        return Prompt.read(path)

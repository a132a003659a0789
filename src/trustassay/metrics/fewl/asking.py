"""Expertise by asking: does a reference find that its answer says what another one says?

Wei et al. 2024, footnote 4: a reference is asked yes or no for every wrong and corrected answer.
A yes counts as a similarity of 1, a no as one of 0.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files

from trustassay.capabilities import Models
from trustassay.errors import AssessmentError
from trustassay.metrics.fewl.references import Reference
from trustassay.prompts import Prompt

__all__ = ["says_same", "yes_or_no"]

_ANSWER = re.compile(r"\W*(?:answer\s*:\s*)?(?P<word>yes|no)\b", re.IGNORECASE)
LONGEST = 8
"""Tokens of a reply."""


async def says_same(
    reference: Reference, statements: Sequence[str], question: str, models: Models
) -> list[float]:
    """Return 1 or 0 for every statement; a reply that is neither yes nor no is left out.

    Raises:
        AssessmentError: the run has no model of the reference's name to ask.
        BackendError: a call failed.
    """
    if reference.name not in models.names("references"):
        raise AssessmentError(
            f"expertise=ask: {reference.name!r} is no model of this run; expected it as a "
            f"reference ({reference.name}=URI), or expertise=similarity"
        )
    replies = await asyncio.gather(
        *(
            models.chat(
                _prompt().filled(question=question, answer=reference.text, statement=statement),
                role="references",
                name=reference.name,
                max_tokens=LONGEST,
                prompt=_prompt().name,
            )
            for statement in statements
        )
    )
    read = (yes_or_no(reply.text) for reply in replies)
    return [float(one) for one in read if one is not None]


def yes_or_no(text: str) -> bool | None:
    """Return what a reply begins with; ``None`` where that is neither."""
    found = _ANSWER.match(text)
    return None if found is None else found["word"].lower() == "yes"


@cache
def _prompt() -> Prompt:
    with as_file(files("trustassay.metrics.fewl") / "prompts" / "same-answer.jinja") as path:
        return Prompt.read(path)

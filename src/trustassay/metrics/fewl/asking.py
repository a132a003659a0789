"""Expertise by asking: does a reference find that its answer says what another one says?

Wei et al. 2024, footnote 4: a reference is asked yes or no for every wrong and corrected answer.
A yes counts as a similarity of 1, a no as one of 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files

from trustassay.capabilities import Models
from trustassay.errors import AssessmentError
from trustassay.metrics.fewl.references import Reference
from trustassay.prompts import Prompt
from trustassay.prose import Prose, plain

__all__ = ["says_same", "yes_or_no"]

LONGEST = 8
"""Tokens of a reply."""


class _YesOrNo(Prose):
    approved = r"(?:it|they|he|she|both) (?:do|is|are|did)"


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
    """Return which of both a reply names; ``None`` where it names neither, or both."""
    found = _yes_or_no().read(plain(text))
    return None if len(found) != 1 else "yes" in found


@cache
def _yes_or_no() -> Prose:
    return _YesOrNo({"yes": "yes", "no": "no"}, ("answer",))


@cache
def _prompt() -> Prompt:
    with as_file(files("trustassay.metrics.fewl") / "prompts" / "same-answer.jinja") as path:
        return Prompt.read(path)

"""``llm``: distractors that a chat model writes, read back as one replaced part of the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files

from trustassay.capabilities import Models
from trustassay.distractors.values import Slot
from trustassay.prompts import Prompt

__all__ = ["asked", "read"]

TOKENS_EACH = 60
"""Tokens that an answer may take, beside four times its words."""
_NUMBERED = re.compile(r"(?:[0-9]{1,3}\s{0,9}[.):]|[-*•])(.+)")


async def asked(
    question: str, answer: str, group: Sequence[Slot], models: Models, n: int
) -> list[tuple[Slot, str]]:
    """Ask the generator for n wrong answers, and return those that change only slots of the group.

    The same request for every group, so that it is asked once.
    """
    prompt = _prompt()
    reply = await models.chat(
        prompt.filled(question=question, answer=answer, n=n),
        role="generator",
        max_tokens=n * (TOKENS_EACH + 4 * len(answer.split())),
        prompt=prompt.name,
    )
    return read(reply.text, answer, group)


def read(text: str, answer: str, group: Sequence[Slot]) -> list[tuple[Slot, str]]:
    """Return what each line of a reply puts into which slot; other lines are passed over."""
    found = []
    for written in text.split("\n"):
        if not (match := _NUMBERED.fullmatch(written.strip())):
            continue
        line = match[1].strip().strip('"“” ')
        for slot in group:
            if replacement := _between(line, answer[: slot.start], answer[slot.end :]):
                found.append((slot, replacement))
                break
    return found


def _between(line: str, before: str, after: str) -> str:
    """Return what a line has between two parts of an answer; empty where it has others.

    A full stop that one of both lacks is no difference.
    """
    line, after = line.rstrip("."), after.rstrip(".")
    if not (line.startswith(before) and line.endswith(after)):
        return ""
    return line[len(before) : len(line) - len(after)].strip()


@cache
def _prompt() -> Prompt:
    with as_file(files("trustassay.distractors") / "prompts" / "distractors.jinja") as path:
        return Prompt.read(path)

"""A reader that a test decides for, and what claims are judged by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from trustassay.core.capabilities import Entailment, Models
from trustassay.core.sample import Document
from trustassay.judging.claims import build_claims
from trustassay.judging.second_reader import ROLE, SecondReader
from trustassay.judging.verdict import ClaimFinding, ClaimVerifier, VerdictOptions
from trustassay.text.sentences import load_splitter

T = TypeVar("T")
Row = tuple[float, float, float]
Reads = Callable[[str, str], Row]
SPLIT = load_splitter("sentencex")
YES, OPEN, NO = (0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)


class Reader:
    """Notes each premise, claim and role that it is given."""

    def __init__(self, reads: Reads = lambda *_: OPEN, second: Reads = lambda *_: OPEN) -> None:
        self._reads = {"": reads, ROLE: second}
        self.asked: list[tuple[str, str]] = []
        self.asked_second: list[tuple[str, str]] = []

    async def entail(self, premise: str, hypothesis: str, *, role: str = "") -> Entailment:
        asked = self.asked_second if role == ROLE else self.asked
        asked.append((premise, hypothesis))
        return Entailment(*self._reads[role](premise, hypothesis))

    @property
    def models(self) -> Models:
        """This as the models of a metric."""
        return cast(Models, self)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns."""
    return asyncio.run(work)


def documents(*passages: str | tuple[str, str]) -> list[Document]:
    """Return passages, each a text or a title and a text."""
    pairs = [("", one) if isinstance(one, str) else one for one in passages]
    return [Document(str(n), text, title) for n, (title, text) in enumerate(pairs, 1)]


def verifier(
    reader: Reader,
    *passages: str | tuple[str, str],
    question: str = "",
    second: SecondReader | None = None,
    **options: Any,
) -> ClaimVerifier:
    """Return what judges claims by some passages, with a reader."""
    return ClaimVerifier(
        VerdictOptions(**options), reader.models, question, documents(*passages), SPLIT, second
    )


def judged(
    answer: str, *passages: str | tuple[str, str], reader: Reader | None = None, **others: Any
) -> list[ClaimFinding]:
    """Return the verdicts on all claims of an answer."""
    judge = verifier(reader or Reader(), *passages, **others)
    claims = build_claims(others.get("question", ""), answer, SPLIT)
    return [run(judge.judge(claim)) for claim in claims]


def verdicts(findings: Sequence[ClaimFinding]) -> list[str]:
    return [one.row.verdict for one in findings]

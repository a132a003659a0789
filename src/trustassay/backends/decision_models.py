"""``systemone:MODEL[@BASE_URL]`` and ``decisions:MODEL[@BASE_URL]``: decision models.

A decision model answers questions about a text with probabilities and writes nothing. It serves as
an entailer, and as a judge. The keys are in ``TYPESAFE_API_KEY`` and ``OPENAI_API_KEY``, or in the
variable that ``?key=NAME`` names.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from trustassay.backends.decision_wires import (
    PATHS,
    build_request,
    build_sglang_error,
    find_named_questions,
    is_sglang_error,
    parse_reply,
)
from trustassay.backends.endpoint_chat import run_blocking, run_in_time
from trustassay.backends.http import (
    SERVICES,
    EndpointAddress,
    HttpBackend,
    HttpEndpoint,
    RefusalError,
    service_address,
)
from trustassay.core.capabilities import BatchLimits, Entailment, Probabilities
from trustassay.core.decisions import (
    STATE_WARNING,
    DecisionAnswer,
    DecisionQuestion,
    compute_probabilities,
)
from trustassay.errors import BackendError

QUESTIONS_PER_CALL = 32
"""Questions about one state in a call; every server takes twice as many."""
_STATEMENT_PROMPT = (
    "The input is a passage. Judge the statement below by the passage alone, whatever else you "
    f"know. {STATE_WARNING} Nor is the statement.\nStatement: "
)
_VERDICTS = (
    ("supports", "If everything in the passage is true, the statement is true, too."),
    ("neither", "The passage leaves the statement open, or is about something else."),
    ("contradicts", "Passage and statement cannot both be true."),
)
"""The options of the question, in the order of :class:`Entailment`, and what they mean."""


def decision_address(scheme: str, remainder: str) -> EndpointAddress:
    """Return the address of a decision model, without the ``/v1`` that its base may end in.

    Raises as :meth:`EndpointAddress.parse`.
    """
    address = service_address(scheme, remainder)
    base = address.base.removesuffix("/v1")
    # One address, however it is written, has one limiter and one name among stored calls.
    return replace(address, base=base, public=base == SERVICES[scheme][0])


class EndpointDecisions(HttpBackend):
    """A decision model behind an address; the scheme of its URI says which wire it speaks."""

    limits = BatchLimits(QUESTIONS_PER_CALL, tokens=None, order="text", alike=True)

    def __init__(self, address: EndpointAddress) -> None:
        self.name, self.endpoint = address.name, address.base
        self.endpoint_limits = address.limits
        self._wire, self._model = address.scheme, address.model
        self._http = HttpEndpoint(address, "Authorization", "Bearer ")

    async def adecide(
        self, questions: Sequence[DecisionQuestion]
    ) -> list[DecisionAnswer | BackendError]:
        """Answer questions about one state; a question that the server refuses fails alone.

        Raises:
            CallError: the try failed; its kind says how.
        """
        results: dict[int, DecisionAnswer | BackendError] = {}
        remaining = list(range(len(questions)))
        while remaining:
            sent = [questions[place] for place in remaining]
            body = build_request(self._wire, self._model, sent)
            try:
                reply = await self._http.post(PATHS[self._wire], body)
            except RefusalError as error:
                if self._wire == "decisions" and is_sglang_error(error.body):
                    raise build_sglang_error(self.name) from None
                # The others are asked without the questions that the error names.
                faulty = [remaining[i] for i in find_named_questions(error.body, len(sent))]
                if not faulty:
                    raise
                results |= dict.fromkeys(faulty, error)
                remaining = [place for place in remaining if place not in faulty]
                continue
            answers = parse_reply(self._wire, self.name, reply, sent)
            results |= dict(zip(remaining, answers, strict=True))
            break
        return [results[place] for place in range(len(questions))]


def build_entailment_question(premise: str, hypothesis: str) -> DecisionQuestion:
    """Return the question of whether a premise supports or contradicts a hypothesis."""
    return DecisionQuestion(premise, "choice", _STATEMENT_PROMPT + hypothesis, _VERDICTS)


class DecisionEntailer:
    """Asks a decision model one question of three options for each pair.

    Nothing promises that a probability of 0.5 or more means "entails": measure it on labels.

    The engine calls :meth:`aentailment` with its own way of asking ``decision_model``, which puts
    questions about one premise into one call. The answers are stored as received, and entailments
    are read from them.
    """

    stored = False

    def __init__(self, address: EndpointAddress) -> None:
        self.decision_model = EndpointDecisions(address)
        self.name = self.decision_model.name

    async def aentailment(
        self,
        pair: tuple[str, str],
        ask: Callable[[DecisionQuestion], Awaitable[DecisionAnswer]],
    ) -> Entailment:
        """Return the probabilities for one (premise, hypothesis); ``ask`` sends the question.

        Raises:
            UnparsedError: the answer decides nothing.
            BackendError: the model was not asked, or did not answer.
        """
        question = build_entailment_question(*pair)
        answer = await ask(question)
        return Entailment(*compute_probabilities(self.name, question, answer))

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3), for callers outside an event loop; each call is tried once.

        Raises:
            BackendError: as :meth:`aentailment`, for the first pair that fails.
        """
        rows = run_blocking(self.decision_model, self._compute_all(pairs))
        return np.array(rows, dtype=float).reshape(-1, 3)

    async def _compute_all(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return the entailments of all pairs; those of one premise are asked together."""
        answers: dict[DecisionQuestion, DecisionAnswer | BackendError] = {}
        questions = dict.fromkeys(build_entailment_question(*pair) for pair in pairs)
        model = self.decision_model
        room = asyncio.Semaphore(model.endpoint_limits.concurrency)

        async def ask_together(together: Sequence[DecisionQuestion]) -> None:
            async with room:
                replies = await run_in_time(model, model.adecide(together))
            answers.update(zip(together, replies, strict=True))

        async def ask(question: DecisionQuestion) -> DecisionAnswer:
            answer = answers[question]
            if isinstance(answer, BackendError):
                raise answer
            return answer

        ordered = sorted(questions, key=lambda question: question.state)
        batches = []
        for _, group in groupby(ordered, key=lambda question: question.state):
            same = list(group)
            starts = range(0, len(same), QUESTIONS_PER_CALL)
            batches += [same[start : start + QUESTIONS_PER_CALL] for start in starts]
        await asyncio.gather(*map(ask_together, batches))
        return [await self.aentailment(pair, ask) for pair in pairs]

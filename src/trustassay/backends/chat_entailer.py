"""A chat model as an entailer: it is asked in words, and its reply is read.

    openai:MODEL[@BASE_URL][?repeats=N&max_tokens=N&prompt=FILE&...]

Any URI of a chat model serves, behind ``chat:`` where another entailer has its scheme
(``chat:hf:ID``, ``chat:python:MODULE:FUNCTION``). With ``by=odds``, as for ``gguf:`` unless it
says ``by=words``, the model is asked two questions that are answered by yes or no, and the
probabilities of the first token are read.
"""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from trustassay.backends.chat_text import as_read
from trustassay.backends.endpoint_chat import in_time, then_closed
from trustassay.capabilities import (
    ChatModel,
    ChatRequest,
    Entailment,
    LocalChatModel,
    Probabilities,
    Reply,
    limits_of,
    repair_turns,
)
from trustassay.errors import BackendError, UnknownNameError, UnparsedError, check_choices
from trustassay.prompts import Prompt, PromptError, shipped
from trustassay.text.verdict_replies import REPAIR, REPAIR_PROMPT, VERDICTS, Verdict, verdict_in

Ask = Callable[[ChatRequest], Awaitable[Reply]]

ALTERNATIVES = 20
"""Likeliest tokens that are asked for; no public endpoint gives more."""
ENOUGH = 0.5
"""Probability that the tokens which name a verdict have together; with less they decide nothing."""
SHOWN = 80
_NAMES: dict[Verdict, str] = {
    "support": "supports",
    "neutral": "neither",
    "contradict": "contradicts",
}
"""The words that the prompt offers, in lower case; no two begin with the same letter."""


@dataclass(frozen=True, slots=True)
class Judging:
    """How a chat model is asked.

    repeats: how often, where it does not tell log-probabilities; with more than one at temperature
    1, and the probabilities are the shares of the verdicts. max_tokens: of a reply. prompt: file of
    a template around ``premise`` and ``hypothesis``, and with odds ``contradicted``; ``None`` is
    the one that is here. by: ``words`` of a reply, or ``odds`` of yes and no as its first token;
    ``None`` is the model's own.
    """

    repeats: int = 1
    max_tokens: int = 128
    prompt: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        check_choices(self, by=("words", "odds"))
        for name in ("repeats", "max_tokens"):
            if getattr(self, name) < 1:
                raise UnknownNameError(f"option {name} of an entailer: expected 1 or more")

    @property
    def suffix(self) -> str:
        """What differs from the usual, as it stands in a URI."""
        told = (
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if f.default != getattr(self, f.name)
        )
        return "&".join(told)


def judging_of(uri: str) -> tuple[str, Judging]:
    """Take the options of :class:`Judging` out of a URI; return the chat model's own, and them.

    Raises:
        UnknownNameError: an option has no such value.
    """
    model, _, query = uri.partition("?")
    kept: list[str] = []
    result: dict[str, Any] = {}
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name in ("prompt", "by"):
            result[name] = value
        elif name in ("repeats", "max_tokens"):
            if not value.isdecimal():
                raise UnknownNameError(f"option {name} of an entailer cannot be {value!r}")
            result[name] = int(value)
        else:
            kept.append(option)
    return model + ("?" + "&".join(kept) if kept else ""), Judging(**result)


def entailment_prompt(file: str | None = None, by: str = "words") -> Prompt:
    """Return the prompt around a pair: that of a file, else the one that is here."""
    return shipped(__package__, "entailment" if by == "words" else "entailment_odds", file)


class ChatEntailer:
    """Asks a chat model whether a premise supports a hypothesis, contradicts it, or neither.

    The probabilities are those of the tokens with which its verdict begins, where the model tells
    them; else the shares of the verdicts of ``repeats`` replies; else 1 for its one verdict. A
    single reply without a verdict is asked for once more; if that has none either, it is a failure
    of its pair (:class:`UnparsedError`), and so are repeats of which fewer than half have one.

    The engine calls :meth:`aentailment` with its own way of asking ``chat_model``, so that every
    call is limited, stored, planned and paid for. What is read from replies is not stored again.
    """

    stored = False

    def __init__(
        self, model: ChatModel | LocalChatModel, judging: Judging | None = None, scheme: str = ""
    ) -> None:
        """Wrap a model; ``scheme`` stands before its name, as in the URI that names the entailer;
        raises :class:`BackendError` where the prompt's file cannot be used."""
        self.chat_model = model
        self.judging = judging or Judging()
        name, suffix = f"{scheme}{model.name}", self.judging.suffix
        self.name = name + (("&" if "?" in name else "?") + suffix if suffix else "")
        self.languages: tuple[str, ...] = getattr(model, "judges_in", ())
        own = "odds" if getattr(model, "tells_first_token", False) else "words"
        self._by = self.judging.by or own
        try:
            self.prompt.filled(premise="", hypothesis="", contradicted=False)
        except (PromptError, OSError) as error:
            raise BackendError(f"{self.name}: {error}") from None

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt around a pair."""
        return entailment_prompt(self.judging.prompt, self._by)

    def request(self, pair: tuple[str, str], repeat: int = 0) -> ChatRequest:
        """Return what is asked of one pair."""
        premise, hypothesis = pair
        return ChatRequest.of(
            self.prompt.filled(premise=premise, hypothesis=hypothesis),
            temperature=0.0 if self.judging.repeats == 1 else 1.0,
            max_tokens=self.judging.max_tokens,
            logprobs=ALTERNATIVES,
            repeat=repeat,
            prompt=self.prompt.name,
            stand_in="NEITHER",
        )

    async def aentailment(self, pair: tuple[str, str], ask: Ask) -> Entailment:
        """Return the probabilities of one (premise, hypothesis), with ``ask`` for each request.

        Raises:
            UnparsedError: no reply names a verdict.
            BackendError: the model was not asked, or did not answer.
        """
        if self._by == "odds":
            return await self._by_odds(pair, ask)
        first = await ask(self.request(pair))
        if result := entailment_by_tokens(first):
            return result
        if self.judging.repeats == 1 and verdict_in(first.text) is None:
            request = self.request(pair)
            turns = repair_turns(request.messages[0].content, first.text, REPAIR)
            request = replace(request, messages=turns, logprobs=None, prompt=REPAIR_PROMPT)
            again = await ask(request)
            first = again if verdict_in(again.text) else first
        numbers = range(1, self.judging.repeats)
        others = await asyncio.gather(*(ask(self.request(pair, repeat)) for repeat in numbers))
        return self._shares([first, *others])

    def odds_request(self, pair: tuple[str, str], contradicted: bool) -> ChatRequest:
        """Return the question about one pair that is answered by yes or no."""
        premise, hypothesis = pair
        return ChatRequest.of(
            self.prompt.filled(premise=premise, hypothesis=hypothesis, contradicted=contradicted),
            max_tokens=1,
            logprobs=ALTERNATIVES,
            prompt=self.prompt.name,
            may_be_empty=True,
            stand_in="No",
        )

    async def _by_odds(self, pair: tuple[str, str], ask: Ask) -> Entailment:
        """Return the probabilities from those of yes and no as the first tokens of two replies.

        With s for "is it all stated?" and c for "does the passage contradict it?", they are s,
        (1 - s)(1 - c) and (1 - s)c. The prompts differ in their ends alone, and are asked at
        once: a model in this process then reads what they share once.
        """
        requests = (self.odds_request(pair, contradicted) for contradicted in (False, True))
        chances = []
        for reply in await asyncio.gather(*map(ask, requests)):
            if (chance := yes_by_odds(reply)) is None:
                message = "the model gives no probabilities of its first token"
                if reply.logprobs:
                    said = " ".join(reply.text.split())[:SHOWN]
                    message = f"neither yes nor no is a likely first token; it begins with {said!r}"
                raise UnparsedError(f"{self.name}: {message}")
            chances.append(chance)
        stated, false = chances
        return Entailment(stated, (1 - stated) * (1 - false), (1 - stated) * false)

    def _shares(self, replies: Sequence[Reply]) -> Entailment:
        """Return the shares of the verdicts among the replies that name one, at least half."""
        read = [verdict_in(reply.text) for reply in replies]
        counts = Counter(one.verdict for one in read if one)
        if 2 * counts.total() < len(replies):
            said = " ".join(replies[read.index(None)].text.split())[:SHOWN]
            message = "the reply names none of supports, contradicts and neither"
            if len(replies) > 1:
                message = (
                    f"{read.count(None)} of {len(replies)} replies name none of them; one reads"
                )
            raise UnparsedError(f"{self.name}: {message}: {said!r}")
        return Entailment(*(counts[verdict] / counts.total() for verdict in VERDICTS))

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3), for callers outside an event loop; each call is tried once.

        Raises:
            BackendError: as :meth:`aentailment`, for the first pair that fails.
        """
        with ThreadPoolExecutor(1) as alone:  # the caller's own thread may run a loop
            asked = then_closed(self.chat_model, self._all(pairs))
            rows = alone.submit(asyncio.run, asked).result()
        return np.array(rows, dtype=float).reshape(-1, 3)

    async def _all(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        model = self.chat_model
        room = asyncio.Semaphore(limits_of(model).concurrency)

        async def ask(request: ChatRequest) -> Reply:
            if isinstance(model, LocalChatModel):
                (reply,) = model.replies([request])
                assert isinstance(reply, Reply)  # of a single request the error is raised
                return as_read(reply)
            async with room:
                return as_read(await in_time(model, model.reply(request)))

        return await asyncio.gather(*(self.aentailment(pair, ask) for pair in pairs))


def entailment_by_tokens(reply: Reply) -> Entailment | None:
    """Return the probabilities of the tokens that the verdict of a reply may begin with.

    They are looked for where the reply's own verdict begins, among that token's likeliest
    alternatives, and sum to 1. ``None`` where none are told, where the verdict does not begin with
    one of the prompt's words, or where the tokens of all verdicts have less than half of the
    probability there.
    """
    result = verdict_in(reply.text)
    if result is None or not reply.logprobs:
        return None
    message = "".join(token.token for token in reply.logprobs)
    began = message.rfind(reply.text.strip())
    if began < 0:
        return None
    place = began + result.start - (len(reply.text) - len(reply.text.lstrip()))
    end = 0
    for token in reply.logprobs:
        end += len(token.token)
        if end > place:
            break
    mass: dict[Verdict, float] = dict.fromkeys(VERDICTS, 0.0)
    for text, logprob in dict([(token.token, token.logprob), *token.alternatives]).items():
        if verdict := _begun(text):
            mass[verdict] += math.exp(min(logprob, 0.0))
    total = sum(mass.values())
    if total < ENOUGH or not math.isfinite(total) or _begun(token.token) != result.verdict:
        return None
    return Entailment(*(mass[verdict] / total for verdict in VERDICTS))


def yes_by_odds(reply: Reply) -> float | None:
    """Return the probability of yes against no as the first token of a reply.

    ``None`` where the two have less than half of the probability, or none is told.
    """
    if not reply.logprobs:
        return None
    first = reply.logprobs[0]
    mass = {"yes": 0.0, "no": 0.0}
    for text, logprob in dict([(first.token, first.logprob), *first.alternatives]).items():
        if (word := text.strip().lower()) in mass:
            mass[word] += math.exp(min(logprob, 0.0))
    total = sum(mass.values())
    return mass["yes"] / total if total >= ENOUGH else None


def _begun(token: str) -> Verdict | None:
    """Return the verdict whose word a token begins, or holds whole; "neutral" is "neither"."""
    bare = re.sub(r"^\W+|\W+$", "", token).lower()
    if not bare:
        return None
    if whole := verdict_in(bare):
        return whole.verdict
    return next((verdict for verdict in VERDICTS if _NAMES[verdict].startswith(bare)), None)

"""A chat model as an entailer: it is asked for a verdict, and its reply is read.

    openai:MODEL[@BASE_URL][?repeats=N&max_tokens=N&prompt=FILE&...]

Any URI of a chat model can be used, with ``chat:`` before it if its scheme also names another
entailer (``chat:hf:ID``, ``chat:python:MODULE:FUNCTION``). With ``by=odds`` the model is asked two
questions that are answered by yes or no, and the probabilities of the first token are read. This is
the default for ``gguf:``, unless the URI has ``by=words``.
"""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from trustassay.backends.chat_text import strip_reasoning
from trustassay.backends.endpoint_chat import run_blocking, run_in_time
from trustassay.core.capabilities import (
    ChatModel,
    ChatRequest,
    Entailment,
    LocalChatModel,
    Probabilities,
    Reply,
    build_repair_turns,
    find_limits,
)
from trustassay.core.prompts import Prompt, PromptError, load_prompt
from trustassay.errors import BackendError, UnknownNameError, UnparsedError, check_choices
from trustassay.text.verdict_replies import (
    ENTAILMENT_LABELS,
    REPAIR,
    REPAIR_PROMPT,
    EntailmentLabel,
    find_verdict,
)

AskModel = Callable[[ChatRequest], Awaitable[Reply]]

TOP_ALTERNATIVES = 20
"""Likeliest tokens that are requested; no public endpoint gives more."""
MIN_VERDICT_MASS = 0.5
"""Least probability, together, of the tokens that name a verdict; with less they decide nothing."""
MAX_SHOWN_CHARACTERS = 80
_VERDICT_WORDS: dict[EntailmentLabel, str] = {
    "support": "supports",
    "neutral": "neither",
    "contradict": "contradicts",
}
"""Lower-case words that the prompt offers for each verdict; no two begin with the same letter."""


@dataclass(frozen=True, slots=True)
class EntailmentOptions:
    """How a chat model is asked for a verdict."""

    repeats: int = 1
    """How often to ask a model that gives no log-probabilities. With more than one reply the
    temperature is 1, and the probabilities are the shares of the verdicts.
    """
    max_tokens: int = 128
    """Maximum length of a reply."""
    prompt: str | None = None
    """File of a template around ``premise`` and ``hypothesis``, and with odds ``contradicted``;
    ``None`` is the built-in one.
    """
    by: str | None = None
    """``words`` of a reply, or ``odds`` of yes and no as its first token; ``None`` is the model's
    default.
    """

    def __post_init__(self) -> None:
        check_choices(self, by=("words", "odds"))
        for name in ("repeats", "max_tokens"):
            if getattr(self, name) < 1:
                raise UnknownNameError(f"option {name} of an entailer: expected 1 or more")

    @property
    def suffix(self) -> str:
        """The options that differ from their defaults, as in a URI."""
        options = (
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if f.default != getattr(self, f.name)
        )
        return "&".join(options)


def split_entailment_options(uri: str) -> tuple[str, EntailmentOptions]:
    """Split a URI into the chat model's own URI and the options of :class:`EntailmentOptions`.

    Raises:
        UnknownNameError: an option has an invalid value.
    """
    model, _, query = uri.partition("?")
    model_options: list[str] = []
    result: dict[str, Any] = {}
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name in ("prompt", "by"):
            result[name] = value
        elif name in ("repeats", "max_tokens"):
            if not value.isdecimal():
                raise UnknownNameError(
                    f"option {name} of an entailer: expected 1 or more, got {value!r}"
                )
            result[name] = int(value)
        else:
            model_options.append(option)
    return model + ("?" + "&".join(model_options) if model_options else ""), EntailmentOptions(
        **result
    )


def entailment_prompt(file: str | None = None, by: str = "words") -> Prompt:
    """Return the prompt around a pair, from a file if one is given."""
    if by == "words":
        return load_prompt(__package__, "entailment", file, "premise hypothesis")
    return load_prompt(__package__, "entailment_odds", file, "premise hypothesis contradicted")


class ChatEntailer:
    """Asks a chat model whether a premise supports a hypothesis, contradicts it, or neither.

    If the model gives log-probabilities, the probabilities are those of the tokens with which its
    verdict begins. Otherwise they are the shares of the verdicts in ``repeats`` replies, or 1 for
    the verdict of its only reply. A single reply without a verdict is asked for once more. If that
    has none either, or if fewer than half of the repeats have one, the pair fails
    (:class:`UnparsedError`).

    The engine calls :meth:`aentailment` with its own way of asking ``chat_model``, so that every
    call is limited, stored, planned and paid for. The entailments themselves are not stored: they
    are read from stored replies.
    """

    stored = False

    def __init__(
        self,
        model: ChatModel | LocalChatModel,
        judging: EntailmentOptions | None = None,
        scheme: str = "",
    ) -> None:
        """Wrap a chat model.

        Args:
            model: the chat model.
            judging: how it is asked.
            scheme: stands before the model's name, as in the URI that names the entailer.

        Raises:
            BackendError: the prompt's file cannot be used.
        """
        self.chat_model = model
        self.judging = judging or EntailmentOptions()
        name, suffix = f"{scheme}{model.name}", self.judging.suffix
        self.name = name + (("&" if "?" in name else "?") + suffix if suffix else "")
        self.languages: tuple[str, ...] = getattr(model, "judges_in", ())
        # A local model gives the first token's probabilities, which is more than its verdict.
        model_default = "odds" if getattr(model, "tells_first_token", False) else "words"
        self._by = self.judging.by or model_default
        try:
            # Fill the prompt once here, so that a faulty file fails before any call.
            self.prompt.fill(premise="", hypothesis="", contradicted=False)
        except (PromptError, OSError) as error:
            raise BackendError(f"{self.name}: {error}") from None

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt around a pair."""
        return entailment_prompt(self.judging.prompt, self._by)

    def request(self, pair: tuple[str, str], repeat: int = 0) -> ChatRequest:
        """Return the request for one pair."""
        premise, hypothesis = pair
        return ChatRequest.of(
            self.prompt.fill(premise=premise, hypothesis=hypothesis),
            temperature=0.0 if self.judging.repeats == 1 else 1.0,
            max_tokens=self.judging.max_tokens,
            logprobs=TOP_ALTERNATIVES,
            repeat=repeat,
            prompt=self.prompt.name,
            stand_in="NEITHER",
        )

    async def aentailment(self, pair: tuple[str, str], ask: AskModel) -> Entailment:
        """Return the probabilities for one (premise, hypothesis); ``ask`` sends each request.

        Raises:
            UnparsedError: no reply names a verdict.
            BackendError: the model was not asked, or did not answer.
        """
        if self._by == "odds":
            return await self._compute_by_odds(pair, ask)
        # 1. The tokens of the first reply's verdict, if the model gives their probabilities.
        first = await ask(self.request(pair))
        if result := compute_entailment_by_tokens(first):
            return result
        # 2. A second chance for a single reply without a verdict.
        if self.judging.repeats == 1 and find_verdict(first.text) is None:
            request = self.request(pair)
            turns = build_repair_turns(request.messages[0].content, first.text, REPAIR)
            request = replace(request, messages=turns, logprobs=None, prompt=REPAIR_PROMPT)
            second_reply = await ask(request)
            first = second_reply if find_verdict(second_reply.text) else first
        # 3. The repeats, of which the first reply is number 0.
        numbers = range(1, self.judging.repeats)
        repeated_replies = await asyncio.gather(
            *(ask(self.request(pair, repeat)) for repeat in numbers)
        )
        return self._compute_shares([first, *repeated_replies])

    def odds_request(self, pair: tuple[str, str], contradicted: bool) -> ChatRequest:
        """Return the question about one pair that is answered by yes or no."""
        premise, hypothesis = pair
        return ChatRequest.of(
            self.prompt.fill(premise=premise, hypothesis=hypothesis, contradicted=contradicted),
            max_tokens=1,
            logprobs=TOP_ALTERNATIVES,
            prompt=self.prompt.name,
            may_be_empty=True,
            stand_in="No",
        )

    async def _compute_by_odds(self, pair: tuple[str, str], ask: AskModel) -> Entailment:
        """Compute the probabilities from those of yes and no as the first tokens of two replies.

        With s for "is it all stated?" and c for "does the passage contradict it?", they are s,
        (1 - s)(1 - c) and (1 - s)c. The prompts only differ at their ends, and are sent at once: a
        model in this process then reads their common part once.
        """
        requests = (self.odds_request(pair, contradicted) for contradicted in (False, True))
        chances = []
        for reply in await asyncio.gather(*map(ask, requests)):
            if (chance := compute_yes_probability(reply)) is None:
                message = "the model returns no probabilities for its first token"
                if reply.logprobs:
                    beginning = " ".join(reply.text.split())[:MAX_SHOWN_CHARACTERS]
                    message = (
                        f"neither yes nor no is a likely first token; the reply is {beginning!r}"
                    )
                raise UnparsedError(f"{self.name}: {message}")
            chances.append(chance)
        stated, false = chances
        return Entailment(stated, (1 - stated) * (1 - false), (1 - stated) * false)

    def _compute_shares(self, replies: Sequence[Reply]) -> Entailment:
        """Return the shares of the verdicts among the replies that name one, at least half."""
        read = [find_verdict(reply.text) for reply in replies]
        counts = Counter(reading.verdict for reading in read if reading)
        if 2 * counts.total() < len(replies):
            beginning = " ".join(replies[read.index(None)].text.split())[:MAX_SHOWN_CHARACTERS]
            message = "the reply names none of supports, contradicts and neither"
            if len(replies) > 1:
                message = (
                    f"{read.count(None)} of {len(replies)} replies name none of supports, "
                    "contradicts and neither; one of them"
                )
            raise UnparsedError(f"{self.name}: {message}: {beginning!r}")
        return Entailment(*(counts[verdict] / counts.total() for verdict in ENTAILMENT_LABELS))

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3), for callers outside an event loop; each call is tried once.

        Raises:
            BackendError: as :meth:`aentailment`, for the first pair that fails.
        """
        rows = run_blocking(self.chat_model, self._compute_all(pairs))
        return np.array(rows, dtype=float).reshape(-1, 3)

    async def _compute_all(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return the entailments of all pairs, computed concurrently."""
        model = self.chat_model
        room = asyncio.Semaphore(find_limits(model).concurrency)

        async def ask(request: ChatRequest) -> Reply:
            if isinstance(model, LocalChatModel):
                (reply,) = model.replies([request])
                assert isinstance(reply, Reply)  # of a single request the error is raised
                return strip_reasoning(reply)
            # The engine is not involved here, so keep the model's own limit.
            async with room:
                return strip_reasoning(await run_in_time(model, model.reply(request)))

        return await asyncio.gather(*(self.aentailment(pair, ask) for pair in pairs))


def compute_entailment_by_tokens(reply: Reply) -> Entailment | None:
    """Return the probabilities of the tokens with which the verdict of a reply may begin.

    They are those of the token where the reply's own verdict begins and of its likeliest
    alternatives, scaled to a sum of 1. ``None`` if there are no log-probabilities, if the verdict
    does not begin with a word of the prompt, or if the tokens of all verdicts have less than half
    of the probability.
    """
    result = find_verdict(reply.text)
    if result is None or not reply.logprobs:
        return None
    # The tokens also spell the reasoning, which the reply's text no longer has: find the text in
    # them.
    message = "".join(token.token for token in reply.logprobs)
    text_start = message.rfind(reply.text.strip())
    if text_start < 0:
        return None
    # The position of the verdict in the tokens' text. rfind() took the text without its spaces.
    position = text_start + result.start - (len(reply.text) - len(reply.text.lstrip()))
    end = 0
    for token in reply.logprobs:
        end += len(token.token)
        if end > position:
            break
    mass: dict[EntailmentLabel, float] = dict.fromkeys(ENTAILMENT_LABELS, 0.0)
    # A dict, as the emitted token is mostly also among the alternatives.
    for text, logprob in dict(token.known).items():
        if verdict := _verdict_of_token(text):
            mass[verdict] += math.exp(min(logprob, 0.0))
    total = sum(mass.values())
    # If the emitted token is not of the verdict that was read, the position was wrong.
    if (
        total < MIN_VERDICT_MASS
        or not math.isfinite(total)
        or _verdict_of_token(token.token) != result.verdict
    ):
        return None
    return Entailment(*(mass[verdict] / total for verdict in ENTAILMENT_LABELS))


def compute_yes_probability(reply: Reply) -> float | None:
    """Return the probability of yes against no as the first token of a reply.

    ``None`` if there are no log-probabilities, or if the two have less than half of the
    probability.
    """
    if not reply.logprobs:
        return None
    first = reply.logprobs[0]
    mass = {"yes": 0.0, "no": 0.0}
    # "Yes", " yes" and "YES" are different tokens of one answer.
    for text, logprob in dict(first.known).items():
        if (word := text.strip().lower()) in mass:
            mass[word] += math.exp(min(logprob, 0.0))
    total = sum(mass.values())
    return mass["yes"] / total if total >= MIN_VERDICT_MASS else None


def _verdict_of_token(token: str) -> EntailmentLabel | None:
    """Return the verdict whose word begins with a token, or is in it; "neutral" is "neither"."""
    bare = re.sub(r"^\W+|\W+$", "", token).lower()
    # Punctuation or a line break; every word starts with the empty string.
    if not bare:
        return None
    if reading := find_verdict(bare):
        return reading.verdict
    return next(
        (verdict for verdict in ENTAILMENT_LABELS if _VERDICT_WORDS[verdict].startswith(bare)), None
    )

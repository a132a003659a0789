"""A chat model to ask directly, with cache, limits and retries: ``trustassay.chat(URI)``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypedDict, Unpack

from trustassay.backends import resolve
from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.calls.batching import Batcher
from trustassay.calls.capability import chat_request
from trustassay.calls.client import CallOptions, open_calls
from trustassay.calls.endpoints import calls_at_once
from trustassay.calls.prices import Budget, Prices
from trustassay.calls.store import default_cache
from trustassay.core.capabilities import ChatModel, ChatRequest, LocalChatModel, Reply, Turns
from trustassay.core.event_loop import run_anywhere
from trustassay.errors import BackendError, did_you_mean, trim_traceback

Cache = str | os.PathLike[str] | bool
Prompts = Sequence[Turns]


class ChatParameters(TypedDict, total=False):
    """Parameters of a request: fields of a :class:`~trustassay.core.capabilities.ChatRequest`, and
    ``system``, a system message to put before a prompt that is a plain text.
    """

    system: str | None
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    stop: tuple[str, ...]
    n: int
    logprobs: int | None
    repeat: int
    prompt: str
    may_be_empty: bool
    schema: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Stands for the reply to a prompt that was not answered."""

    error: BackendError
    """Why there is no reply."""

    @property
    def text(self) -> NoReturn:
        """Raise the error, since there is no text."""
        raise self.error


class UnansweredError(BackendError):
    """Some prompts were not answered; the message gives their number and the first reason.

    ``replies`` holds the result of every prompt, as :meth:`Chat.ask` returns it.
    """

    def __init__(self, replies: Sequence[Reply | Unanswered]) -> None:
        self.replies = list(replies)
        errors = [reply.error for reply in replies if isinstance(reply, Unanswered)]
        of = f"{len(errors)} of {len(replies)} prompts were not answered"
        super().__init__(f"{of}: {errors[0]}")
        # So that a traceback shows the error of the first prompt.
        self.__cause__ = errors[0]


class Chat:
    """Sends many prompts to a chat model at once; created by :func:`chat`."""

    def __init__(self, model: ChatModel | LocalChatModel, options: CallOptions) -> None:
        self._model, self._options = model, options

    @property
    def name(self) -> str:
        """The model's name, as it is stored."""
        return self._model.name

    def ask(
        self, prompts: Prompts, *, strict: bool = False, **parameters: Unpack[ChatParameters]
    ) -> list[Reply | Unanswered]:
        """Ask all prompts, and return their results in the same order.

        A result is a :class:`~trustassay.core.capabilities.Reply`, or an :class:`Unanswered` with
        the error; only the latter has ``error``. This also works in a notebook. Replies stay in the
        cache, whatever happens afterwards.

        Args:
            prompts: texts, or whole chats.
            strict: raise an error if a prompt was not answered.
            parameters: fields of a :class:`~trustassay.core.capabilities.ChatRequest`.

        Raises:
            UnansweredError: only if ``strict``; it holds the replies that arrived.
        """
        return run_anywhere(lambda: self.aask(prompts, strict=strict, **parameters))

    async def aask(
        self, prompts: Prompts, *, strict: bool = False, **parameters: Unpack[ChatParameters]
    ) -> list[Reply | Unanswered]:
        """Do the same as :meth:`ask` inside an event loop."""
        # A text is a sequence too: its characters would be sent as prompts.
        if isinstance(prompts, str):
            raise TypeError("expected a list of prompts, got a single text")
        # Unpack is checked by type checkers only, so check the names at run time.
        for name in parameters:
            if name not in ChatParameters.__annotations__:
                raise TypeError(did_you_mean("parameter", name, ChatParameters.__annotations__))
        async with open_calls(Backends.of(chat={"model": self._model}), self._options) as client:
            at_once = self._options.calls_at_once or calls_at_once([self._model])
            # A generator: prompts are rendered only when they are sent.
            requests = (chat_request(prompt, **parameters) for prompt in prompts)
            # Twice as many as the endpoint takes at once, so that it never waits for requests.
            replies = await _ask_all(requests, client.find("chat", MODEL_ROLE), 2 * at_once)
        if strict and any(isinstance(reply, Unanswered) for reply in replies):
            raise UnansweredError(replies)
        return replies


async def _ask_all(
    requests: Iterator[ChatRequest], model: Batcher[ChatRequest, Reply], most: int
) -> list[Reply | Unanswered]:
    """Send requests, with at most ``most`` of them outstanding.

    A million prompts must not wait in the engine at the same moment.
    """
    room = asyncio.Semaphore(most)
    futures: list[asyncio.Future[Reply]] = []
    for request in requests:
        await room.acquire()
        future = model.ask(request)
        future.add_done_callback(lambda _: room.release())
        futures.append(future)
    # Futures are awaited in the order of the prompts, whatever order replies came in.
    return [await _wait_for_reply(future) for future in futures]


async def _wait_for_reply(future: asyncio.Future[Reply]) -> Reply | Unanswered:
    try:
        return await future
    except BackendError as error:
        return Unanswered(error)


@trim_traceback
def chat(
    model: resolve.ChatChoice,
    *,
    cache: Cache = True,
    calls_at_once: int | None = None,
    prices: Prices | None = None,
    budget: Budget | str | None = None,
) -> Chat:
    """Open a chat model to ask directly.

    Args:
        model: as of :func:`trustassay.score`.
        cache: a folder; ``True`` for the default one, ``False`` for none.
        calls_at_once: the maximum number of calls at once.
        prices: prices by model.
        budget: the most to spend in each call of ``ask``.

    Raises:
        UnknownNameError, BackendError: no such model, or it cannot be loaded.
        ValueError: a budget that cannot be read.
    """
    chosen = resolve.chat(model)
    # True and False choose the default or none; anything else is a path.
    folder = default_cache() if cache is True else Path(cache) if cache else None
    return Chat(
        chosen,
        CallOptions(folder, prices or Prices(), Budget.of(budget), calls_at_once=calls_at_once),
    )

"""What a metric holds while it assesses one sample: the facade over the client."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal

from trustassay.calls.client import Client
from trustassay.calls.kinds import capabilities, capability, chat_request, reads_question
from trustassay.calls.multiple_choice import choose
from trustassay.capabilities import ChatRequest, Choice, Likelihood, LikelihoodModel, Message, Reply


class SampleModels:
    """The models as one sample's assessment sees them; counts what it asks for.

    Every capability is a method by its name; its arguments make the request, as
    :class:`~trustassay.capabilities.Models` says of those of this package.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.calls: Counter[str] = Counter()
        self.usage: dict[str, Counter[str]] = {}

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        found = capabilities().get(name)
        if found is None:
            raise AttributeError(f"unknown capability {name!r}; known: {', '.join(capabilities())}")
        return lambda *given, **options: self.ask(found.name, found.item(*given, **options))

    def uncounted(self) -> SampleModels:
        """Return the same models for what does not count for this sample."""
        return SampleModels(self._client)

    def names(self, role: str) -> tuple[str, ...]:
        """Return the names of the models of a role, or of a capability's backends."""
        return self._client.backends.named(role)

    def languages(self, name: str) -> tuple[str, ...]:
        """Return the languages that the backend of a capability reads; empty if any."""
        found = getattr(self._client.backends.find(name), "languages", ())
        return tuple(found) if isinstance(found, tuple | list) else ()

    def chat(
        self,
        text: str | Sequence[Message],
        /,
        *,
        role: str = "model",
        name: str = "",
        **parameters: Any,
    ) -> asyncio.Future[Reply]:
        """Ask a chat model; ``parameters`` are the other fields of a request."""
        return self.request(chat_request(text, **parameters), role, name)

    def request(
        self, request: ChatRequest, role: str = "model", name: str = ""
    ) -> asyncio.Future[Reply]:
        """Ask a chat model with a request that is made already."""
        future: asyncio.Future[Reply] = self.ask("chat", request, role, name)
        backend = self._client.find("chat", role, name).backend
        future.add_done_callback(partial(self._count, backend))
        return future

    def compare(self, text: str, reference: str, question: str = "") -> Awaitable[float]:
        """Ask for the similarity of a text and a reference, to a question that both answer."""
        reads = reads_question(self._client.backends.find("compare"))
        pair = (text, reference)
        return self.ask("compare", (*pair, question) if reads else pair)

    def substitutes(
        self, words: str, *, k: int, source: str, tag: str = "", types: Sequence[str] = ()
    ) -> asyncio.Future[tuple[str, ...]]:
        """Ask a source, by its name, for up to ``k`` substitutes of ``words``, best first."""
        item = capability("substitutes").item(words, k, tag, types)
        return self.ask("substitutes", item, which=source)

    def likelihood(
        self,
        prompt: str | Sequence[Message],
        continuation: str,
        *,
        role: str = "model",
        name: str = "",
    ) -> Awaitable[Likelihood]:
        """Ask how likely a model finds ``continuation`` after ``prompt``."""
        item = capability("likelihood").item(prompt, continuation)
        return self.ask("likelihood", item, role, name)

    def choose(
        self,
        text: str | Sequence[Message],
        options: Sequence[str],
        /,
        *,
        by: Literal["auto", "letter", "likelihood"] = "auto",
        expected: int | None = None,  # noqa: ARG002 - for plans
        role: str = "model",
        name: str = "",
        **parameters: Any,
    ) -> Awaitable[Choice]:
        """Ask which of several options follows a prompt that shows them as A, B, C, ..."""
        backend = self._client.backends.find("chat", role, name)
        likely = isinstance(backend, LikelihoodModel)
        return choose(self, text, options, likely, by=by, role=role, name=name, **parameters)

    def ask(self, name: str, item: Any, role: str = "", which: str = "") -> asyncio.Future[Any]:
        """Ask for one thing by the name of its capability."""
        batcher = self._client.find(name, role, which)
        self.calls[capability(name).stored_as] += 1
        return batcher.ask(item)

    def _count(self, backend: str, future: asyncio.Future[Reply]) -> None:
        if future.cancelled() or future.exception():
            return
        reply = future.result()
        usage = self.usage.setdefault(backend, Counter())
        usage["calls"] += 1
        usage["prompt_tokens"] += reply.prompt_tokens or 0
        usage["reply_tokens"] += reply.reply_tokens or 0
        usage["uncounted"] += reply.prompt_tokens is None or reply.reply_tokens is None
        if reply.finish == "length":
            usage["cut"] += 1
        for name in reply.dropped:
            usage[f"without {name}"] += 1

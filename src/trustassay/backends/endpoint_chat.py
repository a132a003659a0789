"""The common part of chat models behind an endpoint, for all APIs.

A parameter that the endpoint refuses by name is dropped, for all later requests as well, and
named in every reply to a request without it.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from trustassay.backends.http import Address, HttpBackend, HttpEndpoint, RefusalError
from trustassay.capabilities import ChatRequest, Message, Reply, limits_of
from trustassay.errors import CallError

T = TypeVar("T")
_REFUSES = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|forbidden|deprecated|only the default|"
    r"not? (be )?(longer )?(support|permit|allow|accept|implement|available|enabled)|"
    r"cannot (both )?be (used|set|specified)",
    re.IGNORECASE,
)
"""Words that refuse a parameter altogether, and not one value of it as too large."""
_NAMES = (r'"param"\s*:\s*"(\w+)"', r"['\"`](\w+)\\?['\"`]", r"(\w+)")
"""Where a refused parameter is named, the surest place first."""


async def in_time(backend: Any, work: Awaitable[T]) -> T:
    """Return the result of one try; raises :class:`CallError` where it takes too long."""
    timeout_s = limits_of(backend).timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except TimeoutError:
        message = f"{backend.name}: no reply within {timeout_s:g} s"
        raise CallError(message, "timeout") from None


async def then_closed(backend: Any, work: Awaitable[T]) -> T:
    """Return a result, and close the backend whether there is one or not."""
    try:
        return await work
    finally:
        if close := getattr(backend, "close", None):
            await close()


class EndpointChat(HttpBackend, ABC):
    """A chat model behind an address; a subclass implements an API.

    path: what follows the address.
    together: parameters of the API that need another one.
    second_names: other names of a parameter; tried before it is left out.
    """

    path: str
    together: ClassVar[Mapping[str, str]] = {}
    second_names: ClassVar[Mapping[str, str]] = {}

    def __init__(self, address: Address, http: HttpEndpoint) -> None:
        self.name, self.endpoint, self.limits = address.name, address.base, address.limits
        self._model = address.model
        self._http = http
        self._known_as: dict[str, str | None] = {}

    @abstractmethod
    def parameters(self, request: ChatRequest) -> dict[str, tuple[str, Any]]:
        """Return a request's parameters by their names in the API.

        Each with the field of the request that is reported if the endpoint refuses it, empty if
        it cannot be left out, and with its value; ``None`` if there is none.

        Raises:
            CallError: the API does not support the request.
        """

    @abstractmethod
    def body(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request."""

    @abstractmethod
    def read(self, found: Any) -> Reply:
        """Return the reply that a body holds.

        Raises:
            CallError: the endpoint blocked it.
            KeyError, IndexError, TypeError, ValueError, AttributeError: it holds none.
        """

    def unsupported(self, request: ChatRequest) -> tuple[str, ...]:  # noqa: ARG002
        """Return the fields of a request that this API does not support."""
        return ()

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request; a parameter that the endpoint refuses is left out from then on.

        Raises:
            CallError: the try failed, and how.
        """
        told = {k: one for k, one in self.parameters(request).items() if one[1] is not None}
        wanted = {name: value for name, (_, value) in told.items()}
        fields = {name: field for name, (field, _) in told.items() if field}
        while True:
            sent = self._renamed(wanted)
            try:
                result = await self._http.post(self.path, self.body(request.messages, sent))
            except RefusalError as error:
                learnt = sent != self._renamed(wanted)  # another call met the same refusal
                if not (learnt or self._give_up(error, sent, fields)):
                    raise
                continue
            return self._checked(result, request, fields)

    def failed(self, words: str) -> CallError:
        """Return the error for a request that the endpoint will never answer."""
        return CallError(f"{self.name}: {words}", "refused")

    def _renamed(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._known_as:
            return wanted
        names = {name: self._known_as.get(name, name) for name in wanted}
        return {known: wanted[name] for name, known in names.items() if known is not None}

    def _give_up(
        self, error: RefusalError, sent: Mapping[str, Any], fields: Mapping[str, str]
    ) -> bool:
        """Rename or leave out the parameter that an error names; say whether there is one."""
        own = {self._known_as.get(name, name): name for name in fields}
        refused = parameter_refused(error, [name for name in sent if name in own])
        if refused is None:
            return False
        name = own[refused]
        second = self.second_names.get(name)
        self._known_as[name] = second if second != refused else None
        for other, needed in self.together.items():
            if needed == name:
                self._known_as[other] = None
        return True

    def _checked(self, found: Any, request: ChatRequest, fields: Mapping[str, str]) -> Reply:
        try:
            reply = self.read(found)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise CallError(f"{self.name}: the reply has no text", "malformed") from None
        if (given := 1 + len(reply.others)) < request.n:
            raise self.failed(f"{given} replies instead of {request.n}")
        dropped = {field for n, field in fields.items() if self._known_as.get(n, n) is None}
        dropped |= {*self.unsupported(request)}
        if request.logprobs is not None and reply.logprobs is None:
            dropped.add("logprobs")
        return replace(reply, dropped=tuple(sorted(dropped))) if dropped else reply


def parameter_refused(error: RefusalError, sent: Collection[str]) -> str | None:
    """Return the parameter among ``sent`` that an endpoint does not take at all, if it says so.

    A value that is merely out of range is no such case: it is the asker's to mend.
    """
    if not _REFUSES.search(error.said):
        return None
    plain = {_plain(name): name for name in sent}
    for pattern in _NAMES:
        for word in re.findall(pattern, error.said):
            if _plain(word) in plain:
                return plain[_plain(word)]
    return None


def _plain(name: str) -> str:
    """Return a name without the difference between ``max_tokens`` and ``maxTokens``."""
    return name.replace("_", "").lower()


def split_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the text of the system messages, and the others, for wires that keep them apart."""
    system = [message.content for message in messages if message.role == "system"]
    return "\n\n".join(system), [message for message in messages if message.role != "system"]


def counted(usage: Any, *names: str) -> int | None:
    """Return the sum of those counts of tokens that an endpoint tells, None where it tells none."""
    result = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    counts = [count for count in result if isinstance(count, int) and count >= 0]
    return sum(counts) if counts else None

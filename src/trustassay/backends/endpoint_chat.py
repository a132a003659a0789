"""The common part of chat models behind an endpoint, for all APIs.

A parameter that the endpoint refuses by name is left out of all later requests as well, and named
in every reply to a request without it.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from trustassay.backends.http import EndpointAddress, HttpBackend, HttpEndpoint, RefusalError
from trustassay.core.capabilities import ChatRequest, Message, Reply, find_limits
from trustassay.errors import CallError

T = TypeVar("T")
_REFUSAL_OF_PARAMETER = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|forbidden|deprecated|only the default|"
    r"not? (be )?(longer )?(support|permit|allow|accept|implement|available|enabled)|"
    r"cannot (both )?be (used|set|specified)",
    re.IGNORECASE,
)
"""Texts that refuse a parameter altogether, as opposed to one value of it."""
_PARAMETER_NAME_PATTERNS = (r'"param"\s*:\s*"(\w+)"', r"['\"`](\w+)\\?['\"`]", r"(\w+)")
"""Patterns of the place where an error names the refused parameter, the surest first."""


async def run_in_time(backend: Any, work: Awaitable[T]) -> T:
    """Return the result of one try; raises :class:`CallError` if it takes too long."""
    timeout_s = find_limits(backend).timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except TimeoutError:
        message = f"{backend.name}: no reply within {timeout_s:g} s"
        raise CallError(message, "timeout") from None


def run_blocking(backend: Any, work: Awaitable[T]) -> T:
    """Return a result of a backend to a caller outside an event loop, and close the backend."""

    async def work_then_close() -> T:
        try:
            return await work
        finally:
            # Connections belong to the event loop, which ends with this call.
            if close := getattr(backend, "close", None):
                await close()

    with ThreadPoolExecutor(1) as executor:  # the caller's own thread may run a loop
        return executor.submit(asyncio.run, work_then_close()).result()


class EndpointChat(HttpBackend, ABC):
    """A chat model behind an address; a subclass implements an API."""

    path: str
    """What follows the address in the URL."""
    together: ClassVar[Mapping[str, str]] = {}
    """Parameters of the API that need another parameter, with that one."""
    second_names: ClassVar[Mapping[str, str]] = {}
    """Other names of parameters, tried before a parameter is left out."""

    def __init__(self, address: EndpointAddress, http: HttpEndpoint) -> None:
        self.name, self.endpoint, self.limits = address.name, address.base, address.limits
        self._model = address.model
        self._http = http
        self._known_as: dict[str, str | None] = {}

    @abstractmethod
    def parameters(self, request: ChatRequest) -> dict[str, tuple[str, Any]]:
        """Return a request's parameters under their names in the API.

        Each has the field of the request that is reported if the endpoint refuses it (empty if it
        cannot be left out), and its value (``None``: it is not sent).

        Raises:
            CallError: the API does not support the request.
        """

    @abstractmethod
    def body(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request."""

    @abstractmethod
    def read(self, body_json: Any) -> Reply:
        """Return the reply in a response's body.

        Raises:
            CallError: the endpoint blocked it.
            KeyError, IndexError, TypeError, ValueError, AttributeError: it holds none.
        """

    def find_unsupported_fields(self, request: ChatRequest) -> tuple[str, ...]:  # noqa: ARG002
        """Return the fields of a request that this API does not support."""
        return ()

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request; a parameter that the endpoint refuses is left out from then on.

        Raises:
            CallError: the try failed; its kind says how.
        """
        sendable = {
            k: field_and_value
            for k, field_and_value in self.parameters(request).items()
            if field_and_value[1] is not None
        }
        wanted = {name: value for name, (_, value) in sendable.items()}
        fields = {name: field for name, (field, _) in sendable.items() if field}
        while True:
            sent = self._apply_known_names(wanted)
            try:
                result = await self._http.post(self.path, self.body(request.messages, sent))
            except RefusalError as error:
                # Requests run concurrently: if another one has met the refusal meanwhile, try
                # again.
                learnt = sent != self._apply_known_names(
                    wanted
                )  # another call met the same refusal
                if not (learnt or self._give_up_parameter(error, sent, fields)):
                    raise
                continue
            return self._read_checked(result, request, fields)

    def build_refusal(self, message: str) -> CallError:
        """Return the error for a request that the endpoint will never answer."""
        return CallError(f"{self.name}: {message}", "refused")

    def _apply_known_names(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters under the names that the endpoint accepts, without refused ones."""
        if not self._known_as:
            return wanted
        names = {name: self._known_as.get(name, name) for name in wanted}
        return {
            accepted_name: wanted[name]
            for name, accepted_name in names.items()
            if accepted_name is not None
        }

    def _give_up_parameter(
        self, error: RefusalError, sent: Mapping[str, Any], fields: Mapping[str, str]
    ) -> bool:
        """Rename or leave out the parameter that an error names; return whether there is one."""
        names_by_sent_name = {self._known_as.get(name, name): name for name in fields}
        refused = find_refused_parameter(
            error, [name for name in sent if name in names_by_sent_name]
        )
        if refused is None:
            return False
        name = names_by_sent_name[refused]
        # First the other name; if that is refused as well, leave the parameter out.
        second = self.second_names.get(name)
        self._known_as[name] = second if second != refused else None
        # top_logprobs without logprobs, for example, would be the next refusal.
        for other, needed in self.together.items():
            if needed == name:
                self._known_as[other] = None
        return True

    def _read_checked(
        self, body_json: Any, request: ChatRequest, fields: Mapping[str, str]
    ) -> Reply:
        """Return the reply in a body, with the names of the fields that were not sent."""
        try:
            reply = self.read(body_json)
        # Whatever is missing in the body, it is the endpoint's fault and may pass.
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise CallError(f"{self.name}: the reply has no text", "malformed") from None
        if (reply_count := 1 + len(reply.others)) < request.n:
            raise self.build_refusal(f"{reply_count} replies instead of {request.n}")
        dropped = {field for n, field in fields.items() if self._known_as.get(n, n) is None}
        dropped |= {*self.find_unsupported_fields(request)}
        # Some endpoints accept the parameter and ignore it.
        if request.logprobs is not None and reply.logprobs is None:
            dropped.add("logprobs")
        return replace(reply, dropped=tuple(sorted(dropped))) if dropped else reply


def find_refused_parameter(error: RefusalError, sent: Collection[str]) -> str | None:
    """Return the parameter among ``sent`` that an endpoint does not accept at all, if it says so.

    A value that is merely out of range is another matter: the user has to correct it.
    """
    if not _REFUSAL_OF_PARAMETER.search(error.body):
        return None
    plain = {_normalise_name(name): name for name in sent}
    for pattern in _PARAMETER_NAME_PATTERNS:
        for word in re.findall(pattern, error.body):
            if _normalise_name(word) in plain:
                return plain[_normalise_name(word)]
    return None


def _normalise_name(name: str) -> str:
    """Return a name without the difference between ``max_tokens`` and ``maxTokens``."""
    return name.replace("_", "").lower()


def split_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the text of the system messages, and the other messages, for APIs that split them."""
    system = [message.content for message in messages if message.role == "system"]
    return "\n\n".join(system), [message for message in messages if message.role != "system"]


def read_finish(reason: Any, names: Mapping[str, str]) -> str | None:
    """Return why a reply ended, in OpenAI's words where ``names`` has them; ``None`` for what is
    no text."""
    return names.get(reason, reason) if isinstance(reason, str) else None


def sum_tokens(usage: Any, *names: str) -> int | None:
    """Return the sum of counts of tokens in a response; ``None`` if it has none of them."""
    result = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    counts = [count for count in result if isinstance(count, int) and count >= 0]
    return sum(counts) if counts else None

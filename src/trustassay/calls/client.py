"""The calls of a run: their options, one batcher for each backend, and checks before they begin."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from trustassay.calls.backends import (
    MODEL_ROLE,
    Backends,
    build_backend_key,
    check_embeddings,
    is_remote,
)
from trustassay.calls.batching import Batcher, BatchingPolicy, RequestCounts
from trustassay.calls.capability import (
    Capability,
    Remote,
    capabilities,
    capability,
    chat_request,
    reads_question,
)
from trustassay.calls.endpoints import Caller, Endpoints
from trustassay.calls.leases import Leases
from trustassay.calls.multiple_choice import choose
from trustassay.calls.prices import Budget, BudgetLedger, Prices, RequestLimiter
from trustassay.calls.store import (
    CACHE_FILE,
    CallMarks,
    Calls,
    CallStore,
    default_cache,
    open_cache,
)
from trustassay.core.asked import ANSWERED, OTHER_FAILURE, UNREADABLE
from trustassay.core.capabilities import (
    BatchLimits,
    ChatRequest,
    Entailment,
    Likelihood,
    LikelihoodModel,
    OptionChoice,
    Reply,
    Turns,
)
from trustassay.core.decisions import DecisionAnswer, DecisionQuestion
from trustassay.errors import BackendError, ModelNotGivenError


def check_keys(backends: Iterable[Any], stores: Iterable[Path | None]) -> None:
    """Raise :class:`BackendError` if a backend needs a key that is not set.

    A backend with replies in one of the files ``stores`` is accepted without a key: all the replies
    that the run needs may be there.
    """
    paths = list(stores)
    for backend in backends:
        missing = getattr(backend, "missing_key", None)
        if missing and not any(has_replies(path, backend.name) for path in paths):
            raise BackendError(missing)


def build_cache_path(cache: Path | None) -> Path | None:
    """Return the path of the file of calls in the folder that runs share."""
    return cache and cache / CACHE_FILE


def has_replies(path: Path | None, name: str, capability: str | None = None) -> bool:
    """Return whether a file of calls has replies of a backend, for one capability or for any."""
    if path is None or not path.exists():
        return False
    store = CallStore(path)
    try:
        return any(
            backend == name and capability in (None, stored) for stored, backend in store.counts()
        )
    finally:
        # Another run may be using the file, so its journal must stay.
        store.close(is_last_user=False)


@dataclass(frozen=True)
class CallOptions:
    """How models are called."""

    cache: Path | None = field(default_factory=default_cache)
    """Folder of the file of calls that runs share; ``None``: no such file."""
    prices: Prices = field(default_factory=Prices)
    """What models cost."""
    budget: Budget | None = None
    """The most that the run may spend; ``None``: no limit."""
    policy: BatchingPolicy = field(default_factory=BatchingPolicy)
    """The optimisations of the engine that are on."""
    calls_at_once: int | None = None
    """Calls to one endpoint in progress at once; ``None``: as its backend says."""
    again_after_s: float | None = None
    """Seconds after which an endpoint that was given up is tried again; ``None``: never."""
    open_shared: Callable[[Path], CallStore] = open_cache
    """Opens the file of calls in the folder that runs share."""
    sharing: Leases | None = None
    """Keeps the limits of endpoints together with other processes; ``None``: only here."""

    @classmethod
    def of(cls, **keywords: Any) -> Self:
        """Build options from keywords (:class:`~trustassay.runs.options.SpendingOptions`).

        A budget may be a text, and prices and the folder of the cache may be paths.
        """
        # Keywords come from the command line, a configuration file or Python, hence the texts.
        if "budget" in keywords:
            keywords["budget"] = Budget.of(keywords["budget"])
        if isinstance(cache := keywords.get("cache"), str | os.PathLike):
            keywords["cache"] = Path(cache)
        prices = keywords.pop("prices", None)
        if prices is not None:
            is_file = isinstance(prices, str | os.PathLike)
            keywords["prices"] = Prices.read(prices) if is_file else prices
        return cls(**keywords)


CLOSING_GRACE_S = 1.0
"""Seconds for calls in progress to finish when everything else has stopped."""


class Client:
    """Finds the batcher for a request, and creates it when it is first needed.

    Created and used inside one event loop. Roles that have the same model share one batcher, so
    that equal requests are sent once. ``own_store`` is the run's file of calls, ``shared_store``
    the one that runs share; the client neither opens nor closes them.
    """

    def __init__(
        self,
        backends: Backends,
        options: CallOptions | None = None,
        *,
        own_store: CallStore | None = None,
        shared_store: CallStore | None = None,
        counter: RequestLimiter | None = None,
    ) -> None:
        options = options or CallOptions()
        self.backends, self.counter = backends, counter
        self.endpoints = Endpoints(options.calls_at_once, options.again_after_s, options.sharing)
        # Names of the two have different schemes.
        spent = own_store.usage("chat") | own_store.usage("decision") if own_store else {}
        self.ledger = BudgetLedger(options.budget, options.prices, spent, _paid_names(backends))
        self._own_store, self._shared_store, self._policy = own_store, shared_store, options.policy
        self._marks = CallMarks(shared_store.path) if shared_store else None
        self._callers: list[Caller] = []
        self._batchers_by_key: dict[tuple[str, str], Batcher[Any, Any]] = {}
        # Create the batchers now, so that a backend that cannot serve fails before the first call.
        for place, backend in backends.by_key.items():
            self.batcher(place.capability, backend)

    def find(self, name: str, role: str = "", which: str = "") -> Batcher[Any, Any]:
        """Return the batcher of a capability; ``which`` names one of several models of a role.

        Raises:
            BackendError: the run has no such backend, or it cannot serve the capability.
        """
        backend = self.backends.by_key.get(build_backend_key(name, role, which))
        if backend is None:
            raise BackendError(self._missing_message(name, role, which))
        return self.batcher(name, backend)

    def batcher(self, name: str, backend: Any) -> Batcher[Any, Any]:
        """Return the batcher of a capability and a backend; there is one for each pair."""
        batcher = self._batchers_by_key.get((name, backend.name))
        if batcher is None:
            batcher = self._batchers_by_key[name, backend.name] = self._make_batcher(name, backend)
        return batcher

    def counts(self) -> dict[str, RequestCounts]:
        """Return the counts of requests in this process, by capability and backend.

        Only chat models, and capabilities with several backends, have the backend's name in their
        key.
        """
        several: dict[str, list[str]] = {}
        for name, backend in self._batchers_by_key:
            several.setdefault(capability(name).stored_as, []).append(backend)
        return {
            word
            if len(several[word]) == 1 and word != "chat"
            else f"{word} {backend}": batcher.counts
            for (name, backend), batcher in self._batchers_by_key.items()
            for word in [capability(name).stored_as]
        }

    def calls_of(self, backend: Any) -> Calls:
        """Return the files that the calls of a backend are stored in."""
        if not _is_shared(backend):
            return Calls(self._own_store)
        # Calls to a local backend cost nothing, so that nobody waits for another process.
        marks = self._marks if is_remote(backend) else None
        return Calls(self._own_store, self._shared_store, marks)

    async def close(self) -> None:
        """Stop all calls, and close the connections.

        No new request is sent. Calls in progress are paid for already: they have
        :data:`CLOSING_GRACE_S` seconds to finish, and replies that arrive by then are stored.
        """
        # 1. Stop requests that have not left yet.
        for caller in self._callers:
            caller.stop()
        # 2. Wait for calls in progress.
        idle = [asyncio.create_task(caller.wait_until_idle()) for caller in self._callers]
        if idle:  # asyncio.timeout() fails in a cancelled task before Python 3.11.3
            await asyncio.wait(idle, timeout=CLOSING_GRACE_S)
        for task in idle:
            task.cancel()
        await asyncio.gather(*idle, return_exceptions=True)
        # 3. Close the batchers, which store what has arrived.
        for batcher in self._batchers_by_key.values():
            await batcher.close()
        # 4. Release the marks, so that other processes do not wait for calls that were cancelled.
        if self._marks:
            self._marks.close()
        for backend in self.backends.endpoints():
            if close := getattr(backend, "close", None):
                await close()

    def _make_batcher(self, name: str, backend: Any) -> Batcher[Any, Any]:
        """Create the batcher of a capability and a backend."""
        result = capability(name)
        result.check(backend)
        remote = self._delegate(result, backend) or result.remote(backend, self)
        # close() waits for these; a backend that calls another one has no calls of its own.
        if isinstance(remote, Caller):
            self._callers.append(remote)
        local = result.local(backend, self) if result.local and not remote else None
        limits = getattr(backend, "limits", BatchLimits())
        # Endpoints of chat models have EndpointLimits under the same name.
        if not isinstance(limits, BatchLimits):
            limits = BatchLimits()
        if remote and (items := 1 if result.through(backend) else result.remote_items):
            limits = BatchLimits(items=items, tokens=None)
        return Batcher(
            result.stored_as,
            backend.name,
            remote or local or (lambda items: result.compute(backend, items)),
            result.codec,
            limits=limits,
            store=self.calls_of(backend) if getattr(backend, "stored", True) else None,
            policy=self._policy,
            remote=remote is not None,
        )

    def _delegate(self, described: Capability[Any, Any], backend: Any) -> Remote | None:
        """Return how a backend that calls another one is called; ``None`` if it does not."""
        through = described.through(backend)
        if through is None:
            return None
        behind = self.batcher(through.capability, through.backend)

        async def by_another(items: list[Any]) -> tuple[list[Any], float]:
            replies = [await through.answer(item, behind.ask) for item in items]
            # There is only one item: _make_batcher() limits the batches of such a backend to one.
            return replies, 0.0  # the seconds count for the other one

        return by_another

    def _missing_message(self, name: str, role: str, which: str) -> str:
        """Return the message for a missing backend, with the ones that the run has."""
        names = self.backends.names_of_role(role)
        # Each message names what the user can choose from.
        if which and names:
            return f"this run has no {role} {which!r} (it has {', '.join(filter(None, names))})"
        if names and "" not in names:
            return f"this run has several models as {role}; choose one of {', '.join(names)}"
        if which:
            word = capability(name).backend
            names = self.backends.names_of_role(word)
            has = f" (it has {', '.join(names)})" if names else ""
            return f"this run has no {word} {which!r}{has}"
        return f"this run has no {role or capability(name).backend}"


def check_budget(backends: Backends, prices: Prices, budget: Budget | None) -> None:
    """Raise :class:`BackendError` if a budget cannot be kept, before any call is made."""
    BudgetLedger(budget, prices, {}, _paid_names(backends))


@asynccontextmanager
async def open_calls(
    backends: Backends,
    options: CallOptions,
    path: Path | None = None,
    count: Callable[[CallStore], RequestLimiter] | None = None,
) -> AsyncIterator[Client]:
    """Open the calls of a run, or of anything else that calls models.

    Args:
        backends: the backends to call.
        options: how to call them.
        path: the file for all calls; ``None``: only the shared one is used.
        count: builds the limiter of requests from the file of calls.
    """
    async with AsyncExitStack() as stack:
        store = shared = None
        if path is not None:
            store = CallStore(path)
            # The stack closes in reverse order: first the client, which still writes, then the
            # files.
            stack.callback(store.close)
        if options.cache is not None and any(
            _is_shared(backend) for _, backend in backends.iterate_with_inner()
        ):
            shared = options.open_shared(options.cache)
            stack.callback(shared.close, is_last_user=False)
        counter = count(store) if count and store else None
        client = Client(backends, options, own_store=store, shared_store=shared, counter=counter)
        stack.push_async_callback(client.close)
        yield client


class SampleModels:
    """The models as one sample's assessment sees them; counts the requests that it makes.

    Every capability is a method with its name, and the arguments make the request, as
    :class:`~trustassay.core.capabilities.Models` describes for the built-in ones. ``reader`` is the
    role of the entailer that is used where a request names none. ``model`` is the name of the
    model that gave the sample's answer: requests to the model under assessment go to that one.
    """

    def __init__(self, client: Client, reader: str = "", model: str | None = None) -> None:
        self._client, self._reader, self._model = client, reader, model
        self.calls: Counter[str] = Counter()
        self.usage: dict[str, Counter[str]] = {}
        self._outcomes: dict[tuple[str, str], Counter[str]] = {}
        self._uncounted: dict[asyncio.Future[Any], Counter[str]] = {}

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        result = capabilities().get(name)
        if result is None:
            raise AttributeError(f"unknown capability {name!r}; known: {', '.join(capabilities())}")
        return lambda *args, **options: self.ask(result.name, result.item(*args, **options))

    @property
    def stand_ins(self) -> int:
        """How many replies were stand-ins: none, as these models are real."""
        return 0

    def count_requests(self) -> dict[str, Any]:
        """Return the counts of requests so far, ``calls``, ``usage`` and ``asked``, in alphabetical
        order.
        """
        usage = {
            name: dict(sorted(counter.items())) for name, counter in sorted(self.usage.items())
        }
        return {"calls": dict(sorted(self.calls.items())), "usage": usage, "asked": self.asked}

    @property
    def asked(self) -> dict[str, dict[str, dict[str, int]]]:
        """The outcomes of the requests that have ended, by role and name, in alphabetical order."""
        # A metric may go on with a reply before the loop has called back for it.
        for future in [future for future in self._uncounted if future.done()]:
            self._count_outcome(future)
        result: dict[str, dict[str, dict[str, int]]] = {}
        for (role, name), outcomes in sorted(self._outcomes.items()):
            # Unary plus leaves out counts of 0, which note_unreadable() may leave.
            if positive := dict(sorted((+outcomes).items())):
                result.setdefault(role, {})[name] = positive
        return result

    def note_unreadable(self, role: str, name: str = "", count: int = 1) -> None:
        """Count replies of a chat model as unreadable that were counted as answered."""
        asked = "decide" if self.decides(role, name) else "chat"
        outcomes = self._outcomes_of(role, name or self._client.find(asked, role).backend)
        outcomes[ANSWERED] -= count
        outcomes[UNREADABLE] += count

    def without_counting(self) -> "SampleModels":
        """Return the same models with separate counts, for requests that are not this sample's."""
        return SampleModels(self._client, self._reader, self._model)

    def names(self, role: str) -> tuple[str, ...]:
        """Return the names of the models of a role, or of a capability's backends.

        Of the models under assessment only the sample's own, if the run has it.
        """
        names = self._client.backends.names_of_role(role)
        if role != MODEL_ROLE or not names:
            return names
        try:
            return (self._choose_name(role, ""),)
        except ModelNotGivenError:
            return ()

    def languages(self, name: str) -> tuple[str, ...]:
        """Return the languages that the backend of a capability reads; empty if any."""
        role = self._reader if name == "entail" else ""
        result = getattr(self._client.backends.find(name, role), "languages", ())
        return tuple(result) if isinstance(result, tuple | list) else ()

    def chat(
        self, text: Turns, /, *, role: str = "model", name: str = "", **parameters: Any
    ) -> asyncio.Future[Reply]:
        """Ask a chat model; ``parameters`` are the other fields of a request."""
        return self.request(chat_request(text, **parameters), role, name)

    def request(
        self, request: ChatRequest, role: str = "model", name: str = ""
    ) -> asyncio.Future[Reply]:
        """Ask a chat model with a complete request."""
        name = self._choose_name(role, name)
        model = self._client.backends.find("chat", role, name)
        if model and request.embedding_radius is not None:
            check_embeddings(model)
        future: asyncio.Future[Reply] = self.ask("chat", request, role, name)
        backend = self._client.find("chat", role, name).backend
        # The reply's tokens count for this sample also where another sample asked the same before.
        future.add_done_callback(partial(self._count_usage, backend))
        return future

    def entail(self, premise: str, hypothesis: str, *, role: str = "") -> Awaitable[Entailment]:
        """Ask the entailer, or the one of a role, whether a premise entails a hypothesis."""
        return self.ask("entail", (premise, hypothesis), role or self._reader)

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

    def decides(self, role: str, name: str = "") -> bool:
        """Whether the model of a role is a decision model."""
        return self._client.backends.find("decide", role, name) is not None

    def decide(
        self, question: DecisionQuestion, *, role: str, name: str = ""
    ) -> asyncio.Future[DecisionAnswer]:
        """Ask the decision model of a role."""
        return self.ask("decide", question, role, name)

    def tells_likelihood(self, role: str = "model", name: str = "") -> bool:
        """Whether a model can compute the likelihood of a text."""
        name = self._choose_name(role, name)
        return isinstance(self._client.backends.find("chat", role, name), LikelihoodModel)

    def likelihood(
        self, prompt: Turns, continuation: str, *, role: str = "model", name: str = ""
    ) -> Awaitable[Likelihood]:
        """Ask how likely a model finds ``continuation`` after ``prompt``."""
        item = capability("likelihood").item(prompt, continuation)
        return self.ask("likelihood", item, role, name)

    def choose(
        self,
        text: Turns,
        options: Sequence[str],
        /,
        *,
        by: Literal["auto", "letter", "likelihood"] = "auto",
        expected: int | None = None,  # noqa: ARG002 - for plans
        role: str = "model",
        name: str = "",
        **parameters: Any,
    ) -> Awaitable[OptionChoice]:
        """Ask which of several options follows a prompt that shows them as A, B, C, ..."""
        likely = self.tells_likelihood(role, name)
        return choose(self, text, options, likely, by=by, role=role, name=name, **parameters)

    def ask(self, name: str, item: Any, role: str = "", which: str = "") -> asyncio.Future[Any]:
        """Make one request by the name of its capability."""
        batcher = self._client.find(name, role, self._choose_name(role, which))
        self.calls[capability(name).stored_as] += 1
        future = batcher.ask(item)
        # A model without a name of its own is the only one of its role: the backend's name tells.
        outcomes = self._outcomes_of(role or capability(name).backend, which or batcher.backend)
        self._uncounted[future] = outcomes
        # Counted as soon as possible, since a reply that waits to be counted takes memory.
        if future.done():
            self._count_outcome(future)
        else:
            future.add_done_callback(self._count_outcome)
        return future

    def _count_outcome(self, future: asyncio.Future[Any]) -> None:
        """Count a request that has ended; a cancelled one was neither answered nor refused."""
        outcomes = self._uncounted.pop(future, None)
        if outcomes is None or future.cancelled():
            return
        error = future.exception()
        outcomes[ANSWERED if error is None else getattr(error, "kind", None) or OTHER_FAILURE] += 1

    def _outcomes_of(self, role: str, name: str) -> Counter[str]:
        """Return the counter of the outcomes of one model, or other backend, in one role."""
        return self._outcomes.setdefault((role, name), Counter())

    def find_model(self, model: str | None) -> tuple[str, str]:
        """Return the name of the model that answers for a sample, and that of its backend.

        Raises:
            ModelNotGivenError: as :meth:`~trustassay.calls.backends.Backends.find_model`.
        """
        name = self._client.backends.find_model(model)
        return name, self._client.find("chat", MODEL_ROLE, name).backend

    def _choose_name(self, role: str, name: str) -> str:
        """Return the name of the backend to ask: the given one, else that of the sample's model.

        Raises:
            ModelNotGivenError: the run does not have the sample's model.
        """
        if role != MODEL_ROLE or name:
            return name
        return self._client.backends.find_model(self._model)

    def _count_usage(self, backend: str, future: asyncio.Future[Reply]) -> None:
        """Add the tokens of a reply to the usage of its backend."""
        if future.cancelled() or future.exception():
            return
        reply = future.result()
        usage = self.usage.setdefault(backend, Counter())
        usage["calls"] += 1
        usage["prompt_tokens"] += reply.prompt_tokens or 0
        usage["reply_tokens"] += reply.reply_tokens or 0
        # Without a count of both, what the call cost is unknown.
        usage["uncounted"] += reply.prompt_tokens is None or reply.reply_tokens is None
        if reply.finish == "length":
            usage["cut"] += 1
        for name in reply.dropped:
            usage[f"without {name}"] += 1


def _is_shared(backend: Any) -> bool:
    """Whether the replies of a backend may be shared between runs.

    A backend says so by its attribute ``shared``; without one, only replies of endpoints are
    shared.
    """
    return bool(getattr(backend, "shared", is_remote(backend)))


def _paid_names(backends: Backends) -> list[str]:
    """Return the names of the backends whose calls cost money: endpoints of models.

    Public services that count no tokens have ``free = True``, and are left out.
    """
    result = (
        backend.name for backend in backends.endpoints() if not getattr(backend, "free", False)
    )
    return list(dict.fromkeys(result))

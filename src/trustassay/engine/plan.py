"""What a run would ask, before anything is spent: calls, tokens, money and time.

The plan is a rehearsal: every metric assesses every sample, but the models are stand-ins. What is
stored already answers as it did; everything else gets a stand-in reply and is counted. A metric
whose calls depend on what it is told may ask for more or less in the end. Tokens and seconds of the
calls are ranges, learnt from what is stored of the same model; see
:mod:`trustassay.engine.estimates`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from trustassay.capabilities import ChatRequest, EndpointLimits, Entailment, Message, Reply
from trustassay.engine.cache import CACHE_FILE, Calls, CallStore
from trustassay.engine.estimates import LATENCY, Estimates, Range, stretch
from trustassay.engine.folder import RunFolder
from trustassay.engine.intake import BREATH, Source, take_in
from trustassay.engine.models import Asking, Backends, Gatherers, chat_request, is_remote
from trustassay.engine.planned import Part, Plan, Planned
from trustassay.engine.progress import Progress
from trustassay.engine.run import RunOptions
from trustassay.metric import Metric
from trustassay.sample import Sample

__all__ = ["Plan", "Planned", "plan"]

PROBE = 32
"""Requests of a local model that are really computed, to learn its speed."""
STAND_IN = "A stand-in reply to request {}."
"""Different for each request, as replies are: so what is made of them counts each."""
ANSWERING = "answering"


async def plan(
    source: Source,
    metrics: Sequence[Metric],
    backends: Backends,
    options: RunOptions,
    out: Path | None = None,
) -> Plan:
    """Rehearse a run; ``out`` is the folder of the run if it has been started already.

    Raises:
        InputError, BadInputError: the input has faults.
    """
    with ExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory(prefix="trustassay-")))
        folder = RunFolder(place)
        with Progress("checking the input", shown=options.progress) as progress:
            intake, metrics = await take_in(
                source,
                metrics,
                folder.samples_path,
                fields=options.fields,
                limit=options.limit,
                skip_bad=options.skip_bad,
                answering=options.answering if "model" in backends.chat else None,
                step=progress.step,
            )
        calls = Calls(_opened(stack, out), _opened_cache(stack, options.cache))
        # The gatherers are not started on anything: they only know how requests are keyed.
        gatherers = Gatherers(backends, Asking(policy=options.policy))
        try:
            rehearsal = _Rehearsal(backends, gatherers, calls, options)
            total = intake.inventory.samples
            with Progress("rehearsing", total, shown=options.progress) as progress:
                for number, sample in enumerate(folder.samples()):
                    if number % BREATH == 0:
                        await asyncio.sleep(0)
                    await rehearsal.sample(sample, metrics)
                    progress.step()
        finally:
            await gatherers.close()
        parts = await asyncio.to_thread(rehearsal.priced)
        return Plan(total, parts, dict(rehearsal.unsure))


def _opened(stack: ExitStack, folder: Path | None) -> CallStore | None:
    path = folder and RunFolder(folder).calls_path
    if not (path and path.exists()):
        return None
    store = CallStore(path)
    stack.callback(store.close, alone=False)  # the run may be under way
    return store


def _opened_cache(stack: ExitStack, cache: Path | None) -> CallStore | None:
    if not (cache and (cache / CACHE_FILE).exists()):
        return None
    store = CallStore(cache / CACHE_FILE)
    stack.callback(store.close, alone=False)
    return store


class _Rehearsal:
    """Counts what is asked, once each."""

    def __init__(
        self, backends: Backends, gatherers: Gatherers, calls: Calls, options: RunOptions
    ) -> None:
        self.unsure: Counter[str] = Counter()
        self._backends, self._gatherers = backends, gatherers
        self._calls, self._options = calls, options
        self._asked: set[bytes] = set()
        self._parts: dict[tuple[str, str, str], Part] = {}
        self._probes: dict[tuple[str, str], list[Any]] = {}
        self._estimates = Estimates(filter(None, (calls.shared, calls.own)))

    async def sample(self, sample: Sample, metrics: Sequence[Metric]) -> None:
        """Rehearse one sample."""
        reading = any(metric.reads_response for metric in metrics)
        if not sample.answered and reading and "model" in self._backends.chat:
            request = self._options.answering.request(sample)
            reply = self.chat(ANSWERING, request, "model")
            sample = replace(sample, response=reply.text)
        for metric in metrics:
            try:
                await metric.assess(sample, _StandIns(self, metric.name))
            except Exception:  # a stand-in's reply is not what a metric hopes for
                self.unsure[metric.name] += 1

    def chat(self, metric: str, request: ChatRequest, role: str) -> Reply:
        """Count a request, and return what is stored for it, or a stand-in."""
        gatherer = self._gatherers.chat[role]
        stored: Reply | None
        part, stored = self._counted(metric, "chat", gatherer, request)
        if stored is not None:
            return stored
        if part is not None:
            part.add(self._estimates.of(gatherer.backend, request))
        text = STAND_IN.format(len(self._asked))
        return Reply(text, others=(text,) * (request.n - 1))

    def ask(self, metric: str, capability: str, gatherer: Any, item: Any, stand_in: Any) -> Any:
        """Count a request of a local model, and return what is stored for it, or a stand-in."""
        part, stored = self._counted(metric, capability, gatherer, item)
        if stored is None and part is not None:
            probes = self._probes.setdefault((capability, gatherer.backend), [])
            if len(probes) < PROBE:
                probes.append(item)
        return stand_in if stored is None else stored

    def _counted(
        self, metric: str, capability: str, gatherer: Any, item: Any
    ) -> tuple[Part | None, Any]:
        """Return the part in which the request counts, if it is a new one, and a stored reply."""
        key, stored = gatherer.look_up(item, self._calls)
        part = self._parts.setdefault(
            (metric, capability, gatherer.backend), Part(metric, capability, gatherer.backend)
        )
        if key in self._asked:
            return None, stored
        self._asked.add(key)
        part.calls += 1
        part.cached += stored is not None
        return part, stored

    def priced(self) -> list[Planned]:
        """Return the parts with money and time."""
        return [
            part.chat(self._options.prices, self._together(part))
            if part.capability == "chat"
            else self._measured(part)
            for part in self._parts.values()
        ]

    def _measured(self, part: Part) -> Planned:
        """Return the part of a model that is no chat model, by computing some of its requests."""
        probes = self._probes.get((part.capability, part.backend), ())
        speed = self._seconds_each(part.capability, part.backend, probes) if probes else None
        if speed is None:
            return part.local(LATENCY.times(part.new), 0)
        factor = stretch(len(probes))
        each = Range(speed / factor, speed, speed * factor)
        return part.local(each.times(part.new), len(probes))

    def _together(self, part: Part) -> Range:
        """Return the longest of what latency and the endpoint's limits make of a part's calls."""
        model = next(m for m in self._backends.chat.values() if m.name == part.backend)
        limits = getattr(model, "limits", None)
        if not isinstance(limits, EndpointLimits):
            return part.seconds
        calls = Range(part.new, part.new, part.new)
        tokens = part.prompt + part.reply
        found = part.seconds.times(1 / min(limits.concurrency, max(part.new, 1)))
        rates = ((calls, limits.requests_per_minute), (tokens, limits.tokens_per_minute))
        for amount, rate in rates:
            if rate:
                found = found.at_least(amount.times(60 / rate))
        return found

    def _seconds_each(self, capability: str, backend: str, probes: Sequence[Any]) -> float | None:
        """Return the seconds of one request of a local model, by computing some.

        ``None`` for an endpoint, which is not asked.
        """
        work: dict[str, Callable[[Any], Any]] = {}
        if self._backends.entailer:
            work["entailment"] = self._backends.entailer.scores
        if self._backends.similarity and not self._gatherers.vectors_compared:
            work["similarity"] = self._backends.similarity.scores
        embedder = self._backends.embedder
        if embedder and embedder.name == backend and not is_remote(embedder):
            work["embedding"] = embedder.vectors  # type: ignore[union-attr]
        if capability not in work:
            return None
        started = time.perf_counter()
        work[capability](probes)
        return (time.perf_counter() - started) / len(probes)


class _StandIns:
    """The models of one rehearsal, as a metric sees them."""

    def __init__(self, rehearsal: _Rehearsal, metric: str) -> None:
        self._rehearsal, self._metric = rehearsal, metric
        self._gatherers = rehearsal._gatherers

    def entail(self, premise: str, hypothesis: str) -> Awaitable[Entailment]:
        """Return even odds."""
        item, stand_in = (premise, hypothesis), Entailment(0.5, 0.25, 0.25)
        return self._given("entailment", self._gatherers.entailment, item, stand_in)

    def embed(self, text: str) -> Awaitable[Any]:
        """Return a vector."""
        vector = np.ones(2, dtype=np.float32) / np.sqrt(np.float32(2))
        return self._given("embedding", self._gatherers.embedding, text, vector)

    def compare(self, text: str, reference: str) -> Awaitable[float]:
        """Return a middling likeness."""
        if vectors := self._gatherers.vectors_compared:  # those are what is asked for
            for one in (text, reference):
                self._rehearsal.ask(self._metric, "embedding", vectors, one, None)
            return _done(0.5)
        return self._given("similarity", self._gatherers.similarity, (text, reference), 0.5)

    def chat(
        self, text: str | Sequence[Message], /, *, role: str = "model", **parameters: Any
    ) -> Awaitable[Reply]:
        """Return a stand-in reply."""
        request = chat_request(text, **parameters)
        return _done(self._rehearsal.chat(self._metric, request, role))

    def _given(self, capability: str, gatherer: Any, item: Any, stand_in: Any) -> Awaitable[Any]:
        return _done(self._rehearsal.ask(self._metric, capability, gatherer, item, stand_in))


def _done(value: Any) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future

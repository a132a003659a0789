"""What a run would need, before anything is spent: calls, tokens, money and time.

The plan is a rehearsal: every metric assesses every sample, but the models are stand-ins. Stored
replies are used; every other request gets a stand-in reply and is counted. A metric whose calls
depend on the replies may need more or fewer in the end. Tokens and seconds of the calls are
ranges, estimated from stored calls to the same model; see :mod:`trustassay.runs.estimates`.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from trustassay.calls.backends import Backends, is_remote
from trustassay.calls.client import CallOptions, Client, SampleModels, shared_file
from trustassay.calls.kinds import capabilities, capability
from trustassay.calls.store import Calls, CallStore
from trustassay.capabilities import Choice, EndpointLimits, Models, Reply, Turns
from trustassay.errors import BackendError
from trustassay.judging.second_reader import ROLE
from trustassay.metric import Context, Metric
from trustassay.progress import Progress
from trustassay.runs.assess import in_other_language
from trustassay.runs.estimates import LATENCY, Estimates, Part, Plan, Planned, Range, stretch
from trustassay.runs.fill import Stage, stages_of
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import YIELD_EVERY, InputOptions, RunOptions, Source, admit, take_in
from trustassay.runs.lines import encoded_sample
from trustassay.runs.needs import resolved
from trustassay.runs.prepare import StoredPool
from trustassay.sample import Sample

PROBE = 32
"""Requests of a local model that are computed to measure its speed."""
STAND_IN = "A stand-in reply to request {}."
"""Different for each request, as replies are: so what is made of them counts each."""
ANSWERING = "answering"
"""How a plan calls the stage that asks for responses; others have the name of their field."""


async def plan(
    source: Source,
    metrics: Sequence[Metric],
    backends: Backends,
    options: RunOptions,
    out: Path | None = None,
) -> Plan:
    """Rehearse a run; ``out`` is the folder of the run if it has been started already."""
    async with AsyncExitStack() as stack:
        folder = RunFolder(Path(stack.enter_context(TemporaryDirectory(prefix="trustassay-"))))
        stages = stages_of(metrics, backends, options.filling)
        intake = await admit(source, folder.samples_path, metrics, backends, stages, options)
        metrics = resolved(metrics, intake.inventory, backends.names())
        stored = out and RunFolder(out).calls_path
        calls = Calls(_opened(stack, stored), _opened(stack, shared_file(options.calls.cache)))
        # The client is asked nothing: it only knows how requests are keyed.
        client = Client(backends, CallOptions(policy=options.calls.policy))
        stack.push_async_callback(client.close)
        rehearsal = _Rehearsal(client, calls, options)
        await rehearsal.run(metrics, stages, folder, intake.inventory.samples)
        parts = await asyncio.to_thread(rehearsal.priced)
        second = backends.names().get(ROLE)
        return Plan(intake.inventory.samples, parts, dict(rehearsal.unsure), second)


def _opened(stack: AsyncExitStack, path: Path | None) -> CallStore | None:
    if path is None or not path.exists():
        return None
    store = CallStore(path)
    stack.callback(store.close, alone=False)  # the run may be in progress
    return store


class _Rehearsal:
    """Counts what is asked, once each."""

    def __init__(self, client: Client, calls: Calls, options: RunOptions) -> None:
        self.unsure: Counter[str] = Counter()
        self.stood_in = 0
        """Stand-ins that were given in place of a reply."""
        self.options = options
        self._client, self._calls = client, calls
        self._asked: set[bytes] = set()
        self._parts: dict[tuple[str, str, str], Part] = {}
        self._probes: dict[tuple[str, str], list[Any]] = {}
        self._estimates = Estimates(filter(None, (calls.shared, calls.own)))

    async def run(
        self, metrics: Sequence[Metric], stages: Sequence[Stage], folder: RunFolder, total: int
    ) -> None:
        """Go through the steps of a run: fill, prepare, assess."""
        options, prepared = self.options, {}
        with Progress("rehearsing", total, shown=options.progress) as progress:
            if any(metric.pool for metric in metrics):
                filled = RunFolder(folder.path / "filled")
                filled.path.mkdir()
                with filled.samples_path.open("wb") as file:
                    for sample in folder.samples():
                        file.write(encoded_sample(await self.fill(sample, stages)))
                pool = StoredPool(filled.samples_path)
                if options.pool is not None:
                    reading = InputOptions(fields=options.fields)
                    await take_in(options.pool, filled.pool_path, reading)
                    pool = StoredPool(filled.pool_path, stages, pool)
                prepared = await self.prepare(metrics, pool)
                folder, stages = filled, ()
            for number, sample in enumerate(folder.samples()):
                if number % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
                await self.assess(await self.fill(sample, stages), metrics, prepared)
                progress.step()

    async def fill(self, sample: Sample, stages: Sequence[Stage]) -> Sample:
        """Rehearse the stages of one sample, and return what they would make of it."""
        for stage in stages:
            if stage.lacks(sample) and not stage.problems(sample):
                name = ANSWERING if stage.field == "response" else stage.field
                result = await stage.fill(sample, _StandIns(self, name, self._client))
                sample = stage.stand_in(result.sample) if result.failure else result.sample
        return sample

    async def prepare(self, metrics: Sequence[Metric], pool: StoredPool) -> dict[str, Any]:
        """Rehearse what metrics do before the first sample, and return what they prepared."""
        prepared: dict[str, Any] = {}
        for metric in metrics:
            if metric.pool:
                models = cast(Models, _StandIns(self, metric.name, self._client))
                try:
                    prepared[metric.name] = await metric.prepare(pool, models)
                except Exception:  # a stand-in's reply is not what a metric hopes for
                    self.unsure[metric.name] += len(pool)
        return prepared

    async def assess(
        self, sample: Sample, metrics: Sequence[Metric], prepared: Mapping[str, Any]
    ) -> None:
        """Rehearse the scoring of one sample."""
        for metric in metrics:
            models = cast(Models, _StandIns(self, metric.name, self._client))
            own, limits = prepared.get(metric.name), self.options.limits
            context = Context(sample, models, own, self.options.seed, limits)
            try:
                limits.check(sample)
                if not in_other_language(metric, sample, models):
                    await metric.assess(context)
            except Exception:  # a stand-in's reply is not what a metric hopes for
                self.unsure[metric.name] += 1

    def reply_to(self, metric: str, name: str, backend: Any, item: Any) -> tuple[Any, bool]:
        """Count a request; return its reply, or a stand-in, and whether it is stored."""
        result, gatherer = capability(name), self._client.batcher(name, backend)
        key, stored = gatherer.look_up(item, self._calls)
        place = metric, result.stored_as, gatherer.backend
        part = self._parts.setdefault(place, Part(*place))
        if new := key not in self._asked:
            self._asked.add(key)
            part.calls += 1
            part.cached += stored is not None
        if stored is not None:
            return stored, True
        self.stood_in += 1
        if name == "chat":
            if new:
                part.add(self._estimates.of(gatherer.backend, item), item)
            text = item.stand_in or STAND_IN.format(len(self._asked))
            return Reply(text, others=(text,) * (item.n - 1)), False
        if new:
            probes = self._probes.setdefault((name, gatherer.backend), [])
            if len(probes) < PROBE:
                probes.append(item)
        return result.stand_in(item), False

    async def reply_through(
        self, metric: str, name: str, backend: Any, item: Any
    ) -> tuple[Any, bool]:
        """Do the same for a backend that may ask another one: then that one's requests count."""
        through = capability(name).through(backend)
        if through is None:
            return self.reply_to(metric, name, backend, item)
        all_stored = True

        async def ask(other: Any) -> Any:
            nonlocal all_stored
            reply, stored = await self.reply_through(
                metric, through.capability, through.backend, other
            )
            all_stored &= stored
            return reply

        try:
            reply = await through.answer(item, ask)
        except BackendError:
            if all_stored:
                raise
        return (reply if all_stored else capability(name).stand_in(item)), all_stored

    def priced(self) -> list[Planned]:
        """Return the parts with money and time."""
        return [
            part.chat(self.options.calls.prices, self._together(part))
            if part.capability == "chat"
            else self._measured(part)
            for part in self._parts.values()
        ]

    def _measured(self, part: Part) -> Planned:
        """Return the part of a model other than a chat model, by computing some of its requests."""
        result = next(one for one in capabilities().values() if one.stored_as == part.capability)
        probes = self._probes.get((result.name, part.backend), ())
        model = self._backend(result.served_by or result.name, part.backend)
        if not probes or model is None or is_remote(model):  # an endpoint is not asked
            return part.local(LATENCY.times(part.new), 0)
        started = time.perf_counter()
        result.compute(model, list(probes))
        speed = (time.perf_counter() - started) / len(probes)
        factor = stretch(len(probes))
        each = Range(speed / factor, speed, speed * factor)
        return part.local(each.times(part.new), len(probes))

    def _together(self, part: Part) -> Range:
        """Return the longest of what latency and the endpoint's limits make of a part's calls."""
        model = self._backend("chat", part.backend)
        limits = getattr(model, "limits", None)
        if not isinstance(limits, EndpointLimits):
            return part.seconds
        calls = Range(part.new, part.new, part.new)
        tokens = part.prompt + part.reply
        result = part.seconds.times(1 / min(limits.concurrency, max(part.new, 1)))
        rates = ((calls, limits.requests_per_minute), (tokens, limits.tokens_per_minute))
        for amount, rate in rates:
            if rate:
                result = result.at_least(amount.times(60 / rate))
        return result

    def _backend(self, name: str, backend: str) -> Any:
        """Return a backend of the run, also one that another asks."""
        asked = self._client.backends.asked()
        return next((one for kind, one in asked if kind == name and one.name == backend), None)


class _StandIns(SampleModels):
    """The models of one rehearsal, as a metric sees them: what is asked is counted, not sent."""

    def __init__(self, rehearsal: _Rehearsal, metric: str, client: Client) -> None:
        super().__init__(client)
        self._rehearsal, self._metric = rehearsal, metric

    @property
    def stand_ins(self) -> int:
        """How many replies the rehearsal made up so far, for any sample."""
        return self._rehearsal.stood_in

    def uncounted(self) -> SampleModels:
        """Return the same models: a rehearsal counts everything, once."""
        return self

    def ask(self, name: str, item: Any, role: str = "", which: str = "") -> asyncio.Future[Any]:
        """Return what is stored for a request, or a stand-in."""
        self._client.find(name, role, which)  # which fails where the run has no such backend
        backend = self._client.backends.find(name, role, which)
        if capability(name).through(backend):

            async def through() -> Any:
                return (await self._rehearsal.reply_through(self._metric, name, backend, item))[0]

            return asyncio.ensure_future(through())
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.set_result(self._rehearsal.reply_to(self._metric, name, backend, item)[0])
        return future

    async def choose(
        self, text: Turns, options: Sequence[str], /, *, expected: int | None = None, **how: Any
    ) -> Choice:
        """Return what is stored of a choice, or the option that the metric expects."""
        before = self._rehearsal.stood_in
        result = await super().choose(text, options, **how)
        told = self._rehearsal.stood_in == before
        return result if told or expected is None else replace(result, index=expected)

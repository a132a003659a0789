"""Plan a run before anything is spent: calls, tokens, money and time.

The plan is a rehearsal: every metric assesses every sample, but stand-ins replace the models.
Stored replies are used; every other request gets a stand-in reply and is counted. A metric whose
calls depend on the replies may need more or fewer in the end. Tokens and seconds of calls are
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

from trustassay.calls.backends import MODEL_ROLE, Backends, is_remote
from trustassay.calls.capability import capabilities, capability
from trustassay.calls.client import CallOptions, Client, SampleModels, build_cache_path
from trustassay.calls.store import Calls, CallStore
from trustassay.core.capabilities import EndpointLimits, Models, OptionChoice, Reply, Turns
from trustassay.core.metric import Context, Metric
from trustassay.core.progress import Progress
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, ModelNotGivenError
from trustassay.judging.second_reader import ROLE
from trustassay.runs.answering_models import (
    AskedInstead,
    check_model,
    find_asked_instead,
    settle_models,
)
from trustassay.runs.estimates import (
    DEFAULT_LATENCY_S,
    PAID_CAPABILITIES,
    CallEstimator,
    CallTotals,
    Plan,
    PlannedCalls,
    Range,
    estimate_decision,
    stretch_factor,
)
from trustassay.runs.execute import assess_other_language
from trustassay.runs.fill import Stage, choose_stages
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import (
    YIELD_EVERY,
    InputOptions,
    RunOptions,
    Source,
    admit_samples,
    take_in,
)
from trustassay.runs.lines import encode_sample
from trustassay.runs.needs import resolve_metrics
from trustassay.runs.prepare import StoredPool

MAX_PROBE_REQUESTS = 32
"""Requests of a local model that are computed to measure its speed."""
STAND_IN_REPLY = "A stand-in reply to request {}."
"""Different for each request, as replies are, so that requests made from them count once each."""
ANSWERING = "answering"
"""The name in a plan of the stage that asks for responses; others have the name of their field."""


async def plan(
    source: Source,
    metrics: Sequence[Metric],
    backends: Backends,
    options: RunOptions,
    out: Path | None = None,
) -> Plan:
    """Rehearse a run and return its plan.

    Args:
        out: the folder of the run, if it has been started already; its replies are used.
    """
    async with AsyncExitStack() as stack:
        folder = RunFolder(Path(stack.enter_context(TemporaryDirectory(prefix="trustassay-"))))
        stages = choose_stages(metrics, backends, options.filling)
        # The same checks as before a run: a plan of what would be refused is of no use.
        intake = await admit_samples(
            source, folder.samples_path, metrics, backends, stages, options
        )
        backends = settle_models(backends, intake.census, is_drawn=options.is_part)
        metrics = resolve_metrics(metrics, intake.inventory, backends.names())
        calls_path = out and RunFolder(out).calls_path
        calls = Calls(
            _open_store(stack, calls_path),
            _open_store(stack, build_cache_path(options.calls.cache)),
        )
        # The client makes no call. It is needed for the keys of requests and the names of backends.
        client = Client(backends, CallOptions(policy=options.calls.policy))
        stack.push_async_callback(client.close)
        rehearsal = _Rehearsal(client, calls, options)
        await rehearsal.run(metrics, stages, folder, intake.inventory.samples)
        # In a thread, since local models are timed there.
        parts = await asyncio.to_thread(rehearsal.price_parts)
        second = backends.names().get(ROLE)
        unsure, unread = dict(rehearsal.unsure), dict(rehearsal.unread)
        left_out = {name: dict(counts) for name, counts in rehearsal.left_out.items()}
        instead = rehearsal.asked_instead.to_dict()
        return Plan(intake.inventory.samples, parts, unsure, unread, second, left_out, instead)


def _open_store(stack: AsyncExitStack, path: Path | None) -> CallStore | None:
    if path is None or not path.exists():
        return None
    store = CallStore(path)
    stack.callback(store.close, is_last_user=False)  # the run may be in progress
    return store


class _Rehearsal:
    """Goes through the steps of a run with stand-ins, and counts each different request once."""

    def __init__(self, client: Client, calls: Calls, options: RunOptions) -> None:
        self.unsure: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self.left_out: dict[str, Counter[str]] = {}
        """By metric, the samples whose model is not given, by the name of the model."""
        self.asked_instead = AskedInstead()
        self.stood_in = 0
        """How many stand-ins replaced a reply."""
        self.options = options
        self._client, self._calls = client, calls
        self._request_keys: set[bytes] = set()
        self._parts: dict[tuple[str, str, str], CallTotals] = {}
        self._probes: dict[tuple[str, str], list[Any]] = {}
        self._estimates = CallEstimator(filter(None, (calls.shared, calls.own)))

    async def run(
        self, metrics: Sequence[Metric], stages: Sequence[Stage], folder: RunFolder, total: int
    ) -> None:
        """Go through the steps of a run: fill, prepare, assess."""
        options, prepared = self.options, {}
        with Progress("rehearsing", total, visible=options.progress) as progress:
            # Metrics that look at all samples want them filled, so they are filled first, into a
            # folder of their own.
            if any(metric.pool for metric in metrics):
                filled = RunFolder(folder.path / "filled")
                filled.path.mkdir()
                with filled.samples_path.open("wb") as file:
                    for sample in folder.samples():
                        file.write(encode_sample(await self.fill(sample, stages)))
                pool = StoredPool(filled.samples_path)
                if options.pool is not None:
                    reading = InputOptions(fields=options.fields)
                    await take_in(options.pool, filled.pool_path, reading)
                    pool = StoredPool(filled.pool_path, stages, pool)
                prepared = await self.prepare(metrics, pool)
                # The samples are filled now: no stage is rehearsed twice.
                folder, stages = filled, ()
            for number, sample in enumerate(folder.samples()):
                if number % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
                await self.assess(await self.fill(sample, stages), metrics, prepared)
                progress.step()

    async def fill(self, sample: Sample, stages: Sequence[Stage]) -> Sample:
        """Rehearse the stages for one sample, and return it filled, with stand-ins if needed."""
        for stage in stages:
            if stage.lacks(sample) and not stage.problems(sample):
                name = ANSWERING if stage.field == "response" else stage.field
                models = _StandIns(self, name, self._client, sample.model)
                result = await stage.fill(sample, models)
                sample = stage.stand_in(result.sample) if result.failure else result.sample
        return sample

    async def prepare(self, metrics: Sequence[Metric], pool: StoredPool) -> dict[str, Any]:
        """Rehearse the preparation of metrics; return what they prepared, by name."""
        prepared: dict[str, Any] = {}
        for metric in metrics:
            if metric.pool:
                models = cast(Models, _StandIns(self, metric.name, self._client, None))
                try:
                    prepared[metric.name] = await metric.prepare(pool, models)
                except Exception:
                    # The metric could not use a stand-in reply: all samples count as unsure.
                    self.unsure[metric.name] += len(pool)
        return prepared

    async def assess(
        self, sample: Sample, metrics: Sequence[Metric], prepared: Mapping[str, Any]
    ) -> None:
        """Rehearse the scoring of one sample."""
        self.asked_instead.note_sample(sample.model or "")
        for metric in metrics:
            stand_ins = _StandIns(self, metric.name, self._client, sample.model)
            models = cast(Models, stand_ins)
            prepared_value, limits = prepared.get(metric.name), self.options.limits
            context = Context(sample, models, prepared_value, self.options.seed, limits)
            try:
                limits.check(sample)
                check_model(metric, sample, self._client.backends)
                # As in a run, where such a sample has no response in place of a stand-in.
                if metric.reads_response and not sample.answered:
                    self._client.backends.find_model(sample.model)
                if assess_other_language(metric, sample, models):
                    self.unread[metric.name] += 1
                else:
                    await metric.assess(context)
            except ModelNotGivenError as error:
                self.left_out.setdefault(metric.name, Counter())[error.model] += 1
            except Exception:
                # The metric could not use a stand-in reply; its later requests are not counted.
                self.unsure[metric.name] += 1
            if stand_ins.has_asked_model:
                asked_model = find_asked_instead(
                    sample.model or "", *stand_ins.find_model(sample.model)
                )
                self.asked_instead.add(metric.name, sample.model or "", asked_model)

    def reply_to(self, metric: str, name: str, backend: Any, item: Any) -> tuple[Any, bool]:
        """Count a request; return its reply or a stand-in, and whether the reply is stored.

        Args:
            metric: the metric or stage that asks.
            name: the capability.
            item: the request, as the capability defines it.
        """
        kind, batcher = capability(name), self._client.batcher(name, backend)
        key, stored_reply = batcher.look_up(item, self._calls)
        part_key = metric, kind.stored_as, batcher.backend
        part = self._parts.setdefault(part_key, CallTotals(*part_key))
        # A request that two metrics share is made once, and counts for the first.
        if is_new := key not in self._request_keys:
            self._request_keys.add(key)
            part.calls += 1
            part.cached += stored_reply is not None
        if stored_reply is not None:
            return stored_reply, True
        self.stood_in += 1
        if name == "chat":
            if is_new:
                part.add(self._estimates.estimate(batcher.backend, item), item)
            # A metric may give a reply in the form that it can read.
            text = item.stand_in or STAND_IN_REPLY.format(len(self._request_keys))
            return Reply(text, others=(text,) * (item.n - 1)), False
        if is_new and name == "decide":
            part.add(estimate_decision(item))
        elif is_new:
            # Some requests to a local model are kept, to measure its speed on them.
            probes = self._probes.setdefault((name, batcher.backend), [])
            if len(probes) < MAX_PROBE_REQUESTS:
                probes.append(item)
        return kind.stand_in(item), False

    async def reply_through(
        self, metric: str, name: str, backend: Any, item: Any
    ) -> tuple[Any, bool]:
        """Do the same as :meth:`reply_to` for a backend that may ask another one.

        Then the requests to that other one count, as for an entailer that asks a chat model.
        """
        through = capability(name).through(backend)
        if through is None:
            return self.reply_to(metric, name, backend, item)
        all_stored = True

        async def ask(other: Any) -> Any:
            nonlocal all_stored
            reply, is_stored = await self.reply_through(
                metric, through.capability, through.backend, other
            )
            all_stored &= is_stored
            return reply

        try:
            reply = await through.answer(item, ask)
        except BackendError:
            # With all replies stored the error is real; otherwise it comes from a stand-in reply.
            if all_stored:
                raise
        return (reply if all_stored else capability(name).stand_in(item)), all_stored

    def price_parts(self) -> list[PlannedCalls]:
        """Return the planned calls, with money and time."""
        return [
            part.plan_paid(self.options.calls.prices, self._estimate_seconds(part))
            if part.capability in PAID_CAPABILITIES
            else self._measure_part(part)
            for part in self._parts.values()
        ]

    def _measure_part(self, part: CallTotals) -> PlannedCalls:
        """Return the planned requests to a model other than a chat model.

        Their time is measured by computing some of them.
        """
        measured_kind = next(
            kind for kind in capabilities().values() if kind.stored_as == part.capability
        )
        probes = self._probes.get((measured_kind.name, part.backend), ())
        model = self._find_backend(measured_kind.served_by or measured_kind.name, part.backend)
        # A plan calls no endpoint, so that its time stays a guess.
        if not probes or model is None or is_remote(model):
            return part.plan_local(DEFAULT_LATENCY_S.scale(part.new), 0)
        started = time.perf_counter()
        measured_kind.compute(model, list(probes))
        speed = (time.perf_counter() - started) / len(probes)
        factor = stretch_factor(len(probes))
        each = Range(speed / factor, speed, speed * factor)
        return part.plan_local(each.scale(part.new), len(probes))

    def _estimate_seconds(self, part: CallTotals) -> Range:
        """Return the duration of the calls of a part when some run at once.

        It is the longest of three times: by latency and concurrency, and by the endpoint's limits
        of requests and of tokens per minute.
        """
        kind = "chat" if part.capability == "chat" else "decide"
        model = self._find_backend(kind, part.backend)
        # A decision model has limits of batches, too.
        limits = getattr(model, "endpoint_limits", getattr(model, "limits", None))
        if not isinstance(limits, EndpointLimits):
            return part.seconds
        call_range = Range(part.new, part.new, part.new)
        tokens = part.prompt + part.reply
        result = part.seconds.scale(1 / min(limits.concurrency, max(part.new, 1)))
        rates = ((call_range, limits.requests_per_minute), (tokens, limits.tokens_per_minute))
        for amount, rate in rates:
            if rate:
                result = result.at_least(amount.scale(60 / rate))
        return result

    def _find_backend(self, name: str, backend: str) -> Any:
        """Return a backend of the run, or one that another backend asks; ``None`` if unknown."""
        backends = self._client.backends.iterate_with_inner()
        matches = (item for kind, item in backends if kind == name and item.name == backend)
        return next(matches, None)


class _StandIns(SampleModels):
    """The models as a metric sees them in a rehearsal: requests are counted and not sent."""

    def __init__(
        self, rehearsal: _Rehearsal, metric: str, client: Client, model: str | None
    ) -> None:
        super().__init__(client, model=model)
        self._rehearsal, self._metric = rehearsal, metric
        self.has_asked_model = False
        """Whether a request went to the model under assessment."""

    @property
    def stand_ins(self) -> int:
        """How many replies the rehearsal has made up so far, for all samples."""
        return self._rehearsal.stood_in

    def without_counting(self) -> SampleModels:
        """Return these models: a rehearsal counts every request once anyway."""
        return self

    def ask(self, name: str, item: Any, role: str = "", which: str = "") -> asyncio.Future[Any]:
        """Return the stored reply to a request, or a stand-in."""
        which = self._choose_name(role, which)
        self.has_asked_model |= role == MODEL_ROLE
        # Raises if the run has no such backend, as it would in a run.
        self._client.find(name, role, which)
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
    ) -> OptionChoice:
        """Return the stored choice, or else the option that the metric expects.

        So the rehearsal takes the path that is likely in the run.
        """
        stood_in_before = self._rehearsal.stood_in
        result = await super().choose(text, options, **how)
        is_stored = self._rehearsal.stood_in == stood_in_before
        return result if is_stored or expected is None else replace(result, index=expected)

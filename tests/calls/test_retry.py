"""The limiter, on a clock that jumps: waits are exact, and a deadlock is an error."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.virtual_time import now, run
from trustassay.calls.retry import BACKOFF_MAX_S, Endpoint
from trustassay.core.capabilities import EndpointLimits
from trustassay.errors import BackendError, CallError

Work = Callable[[], Awaitable[str]]


class Server:
    """Takes ``latency_s`` for a call and fails as ``fault`` says of its number and the time."""

    def __init__(
        self,
        latency_s: float = 1.0,
        fault: Callable[[int, float], CallError | None] = lambda number, at: None,
    ) -> None:
        self.latency_s, self.fault = latency_s, fault
        self.began: list[float] = []
        self.active = self.most = 0

    async def __call__(self) -> str:
        number = len(self.began)
        self.began.append(now())
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.active -= 1
        if error := self.fault(number, self.began[number]):
            raise error
        return "ok"


def limited(retry_after_s: float | None = None) -> CallError:
    return CallError("too many", "limited", retry_after_s)


def endpoint(**limits: float) -> Endpoint:
    return Endpoint(EndpointLimits(**limits))  # type: ignore[arg-type]


async def calls(place: Endpoint, work: Work, n: int, tokens: int = 0) -> list[object]:
    found = (place.call(work, tokens) for _ in range(n))
    return await asyncio.gather(*found, return_exceptions=True)


# ---- how many at once ----


@pytest.mark.parametrize(("n", "rounds"), [(4, 1), (16, 2), (64, 3), (500, 5)])
def test_a_run_soon_has_as_many_calls_under_way_as_were_asked_for(n: int, rounds: int) -> None:
    async def work() -> None:
        server, place = Server(0.25), endpoint(concurrency=n)
        assert place.allowed == 4
        assert await calls(place, server, 12 * n) == ["ok"] * 12 * n
        assert server.most == n
        # The first call goes alone for a tenth of a second.
        full = 0.1 + 0.25 * (rounds - 1) + 0.01
        assert sum(at <= full < at + 0.25 for at in server.began) == n

    run(work)


def test_the_first_call_goes_alone_until_it_is_answered() -> None:
    async def work() -> None:
        server, place = Server(0.02), endpoint(concurrency=500)
        await calls(place, server, 500)
        assert server.began[:5] == [0.0, *[pytest.approx(0.02)] * 4]

    run(work)


@pytest.mark.parametrize(("answered_s", "sent"), [(0.005, 1), (0.09, 1), (0.3, 4)])
def test_a_key_that_is_refused_stops_the_others_before_they_leave(
    answered_s: float, sent: int
) -> None:
    """Where a refusal takes longer than the first call is waited for, the others have left."""

    async def work() -> None:
        closed: list[str] = []

        def check() -> None:
            if closed:
                raise CallError(closed[0], "closed")

        async def refused() -> str:
            await asyncio.sleep(answered_s)
            closed.append("401")
            raise CallError("401", "closed")

        place = endpoint(concurrency=300)
        found = await asyncio.gather(
            *(place.call(refused, 0, check) for _ in range(1000)), return_exceptions=True
        )
        assert Counter(map(str, found)) == {"401": 1000}
        assert place.sent == sent
        assert now() < 1

    run(work)


def test_after_a_refused_key_of_one_model_another_one_still_goes_alone() -> None:
    async def work() -> None:
        async def refused() -> str:
            raise CallError("401", "closed")

        place, server = endpoint(concurrency=50), Server(0.1)
        with pytest.raises(CallError):
            await place.call(refused)
        await calls(place, server, 20)
        assert server.began[0] < server.began[1] == pytest.approx(0.1)

    run(work)


def test_no_more_are_under_way_than_were_asked_for() -> None:
    async def work() -> None:
        server, place = Server(1.0), endpoint(concurrency=10)
        assert await calls(place, server, 100) == ["ok"] * 100
        assert server.most == 10
        # A round of four, and ten of ten: the first four take a second that ten could have shared.
        assert now() == pytest.approx(11.1, abs=0.01)

    run(work)


# ---- waiting as told ----


def test_a_call_is_not_tried_before_its_retry_after() -> None:
    async def work() -> None:
        server = Server(0.0, fault=lambda number, at: limited(7.5) if number == 0 else None)
        place = endpoint()
        assert await place.call(server) == "ok"
        assert len(server.began) == 2
        assert 7.5 <= server.began[1] <= 7.5 * 1.1

    run(work)


def test_one_complaint_does_not_hold_back_the_others() -> None:
    async def work() -> None:
        server = Server(0.1, fault=lambda number, at: limited(100) if number == 5 else None)
        place = endpoint(concurrency=8)
        await calls(place, server, 50)
        assert sum(at < 100 for at in server.began) == 50  # all first tries

    run(work)


def test_complaints_in_a_row_hold_back_all() -> None:
    async def work() -> None:
        server = Server(0.0, fault=lambda number, at: limited(30) if at < 30 else None)
        place = endpoint(concurrency=4)
        await calls(place, server, 100)
        assert sum(at < 30 for at in server.began) <= 12
        assert len(server.began) <= 112

    run(work)


def test_an_endpoint_that_asks_for_a_day_counts_as_gone() -> None:
    async def work() -> None:
        server = Server(0.0, fault=lambda number, at: limited(86_400))
        place = endpoint(concurrency=8)
        found = await calls(place, server, 1000)
        assert now() < 60
        assert len(server.began) < 20
        assert "asks for a wait of 86,400 s, so no more requests are sent" in str(found[-1])

    run(work)


# ---- trying again ----


async def answered_meanwhile(place: Endpoint) -> None:
    """Ask and get replies, again and again: the endpoint is there."""
    while True:
        await place.call(Server(0.01))


@pytest.mark.parametrize("kind", ["server", "connection", "malformed", "timeout", "limited"])
def test_what_may_pass_is_tried_again_after_a_random_growing_delay(kind: str) -> None:
    async def work() -> list[float]:
        server = Server(0.0, lambda n, at: CallError("no", kind))  # type: ignore[arg-type]
        place = endpoint()
        others = asyncio.create_task(answered_meanwhile(place))
        with pytest.raises(CallError, match=r"no \(after 8 tries\)") as error:
            await place.call(server)
        others.cancel()
        assert error.value.kind == kind
        assert len(server.began) == 8
        return [after - before for before, after in itertools.pairwise(server.began)]

    async def twice() -> tuple[list[float], list[float]]:
        return await work(), await work()

    one, other = run(twice)
    assert one != other
    for tries, delay in enumerate(one):
        assert delay <= min(0.5 * 2**tries, BACKOFF_MAX_S) + 1e-6


@pytest.mark.parametrize("kind", ["refused", "closed"])
def test_what_does_not_pass_is_not_tried_again(kind: str) -> None:
    async def work() -> None:
        server = Server(0.0, lambda n, at: CallError("never", kind))  # type: ignore[arg-type]
        with pytest.raises(CallError, match=r"^never$"):
            await endpoint().call(server)
        assert len(server.began) == 1

    run(work)


def test_a_fault_of_the_backend_itself_passes_through_and_frees_its_place() -> None:
    async def broken() -> str:
        raise ZeroDivisionError

    async def work() -> None:
        place = endpoint(concurrency=1)
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                await place.call(broken)
        assert await place.call(Server()) == "ok"

    run(work)


def test_a_call_without_a_reply_is_given_up_and_tried_again() -> None:
    async def work() -> None:
        server = Server(1000.0)
        with pytest.raises(CallError, match=r"no reply within 20 s \(after 3 tries\)") as error:
            await endpoint(timeout_s=20, tries=3).call(server)
        assert error.value.kind == "timeout"
        assert server.active == 0
        assert 60 <= now() <= 60 + 0.5 + 1

    run(work)


def test_no_try_begins_after_the_deadline() -> None:
    async def work() -> None:
        server = Server(10.0, lambda n, at: CallError("no", "malformed"))
        with pytest.raises(CallError):
            await endpoint(deadline_s=35, tries=100).call(server)
        assert max(server.began) <= 35
        assert len(server.began) == 4

    run(work)


def test_the_deadline_does_not_count_the_time_in_the_queue() -> None:
    """An hour of questions at one a second: the last one still has all its tries."""

    async def work() -> None:
        server = Server(0.1, lambda n, at: CallError("no", "server") if n == 3599 else None)
        place = endpoint(requests_per_minute=60, deadline_s=600)
        assert await calls(place, server, 3600) == ["ok"] * 3600

    run(work)


# ---- so much a minute ----


@pytest.mark.parametrize("rpm", [6, 60, 600])
def test_requests_a_minute_are_kept_in_every_minute(rpm: int) -> None:
    async def work() -> None:
        server, place = Server(0.05), endpoint(requests_per_minute=rpm)
        await calls(place, server, rpm * 3)
        for start in server.began:
            in_minute = sum(start <= at < start + 60 for at in server.began)
            assert in_minute <= rpm + max(1, rpm / 60)
        assert now() == pytest.approx(180, rel=0.05, abs=21)

    run(work)


def test_tokens_a_minute_are_kept_from_the_first_moment() -> None:
    async def work() -> None:
        server, place = Server(0.05), endpoint(tokens_per_minute=60_000)
        await calls(place, server, 100, tokens=3000)  # three seconds' worth each
        assert sum(at < 60 for at in server.began) in (20, 21)
        assert 290 <= now() <= 301

    run(work)


def test_what_a_call_really_took_is_made_up_for() -> None:
    async def work() -> None:
        server, place = Server(0.0), endpoint(tokens_per_minute=6000)
        await place.call(server, 100)
        place.correct_tokens(900)
        await place.call(server, 100)
        assert 8.9 <= server.began[1] <= 10

    run(work)


# ---- gone ----


@pytest.mark.parametrize(
    ("kind", "known", "patience"),
    [
        ("server", False, 60),
        ("timeout", False, 60),
        ("connection", True, 60),
        ("connection", False, 10),
    ],
)
def test_an_endpoint_that_only_fails_counts_as_gone_and_all_fail_fast(
    kind: str, known: bool, patience: int
) -> None:
    async def work() -> None:
        server = Server(0.1, lambda n, at: CallError("no", kind))  # type: ignore[arg-type]
        place = endpoint(patience_s=60, tries=1000, deadline_s=10_000)
        if known:
            await place.call(Server(0.0))
        found = await calls(place, server, 10_000)
        assert patience <= now() <= patience + 2.2  # a probe every two seconds, each of 0.1
        assert {type(error) for error in found} == {CallError}
        assert f"no; no other reply came for {patience} s, so no more requests are sent" in str(
            found[-1]
        )
        sent = place.sent
        with pytest.raises(CallError, match="no more requests are sent"):
            await place.call(server)
        assert place.sent == sent

    run(work)


@pytest.mark.parametrize("many", [2, 3, 50])
def test_all_calls_that_an_outage_ends_give_the_same_reason(many: int) -> None:
    """The call that probed said ``after 5 tries``, those that waited that no reply came."""

    async def work() -> None:
        server = Server(0.1, lambda n, at: CallError("no", "connection"))
        errors = await calls(endpoint(patience_s=5, deadline_s=10_000), server, many)
        (reason,) = {str(error) for error in errors}
        assert reason.startswith("no; no other reply came for 5 s")

    run(work)


def test_an_endpoint_that_is_gone_is_probed_again_by_one_call_where_that_is_wanted() -> None:
    async def work() -> None:
        server = Server(0.1, lambda n, at: CallError("no", "server") if at < 200 else None)
        limits = EndpointLimits(concurrency=4, patience_s=60, tries=1000, deadline_s=10_000)
        place = Endpoint(limits, again_after_s=30)
        await calls(place, server, 50)
        gone_at, sent = now(), place.sent
        await asyncio.sleep(29)
        with pytest.raises(CallError, match="no more requests are sent"):
            await place.call(server)
        assert place.sent == sent
        await asyncio.sleep(gone_at + 31 - now())
        assert {type(error) for error in await calls(place, server, 50)} == {CallError}
        assert place.sent == sent + 1
        await asyncio.sleep(200)
        assert await calls(place, server, 50) == ["ok"] * 50

    run(work)


def test_one_reply_is_enough_to_be_there() -> None:
    async def work() -> None:
        fault = CallError("no", "server")
        server = Server(0.1, lambda n, at: fault if n % 3 else None)
        place = endpoint(patience_s=30, tries=1000, deadline_s=10_000)
        assert await calls(place, server, 200) == ["ok"] * 200

    run(work)


def test_who_waits_for_another_try_hears_of_the_end_at_once() -> None:
    async def work() -> None:
        server = Server(0.1, lambda n, at: limited(500) if n == 0 else CallError("no", "server"))
        place = endpoint(patience_s=10, tries=50)
        await calls(place, server, 20)
        assert now() < 32

    run(work)


def test_a_check_calls_off_what_waits_and_leaves_no_place_taken() -> None:
    async def work() -> None:
        closed: list[str] = []

        def check() -> None:
            if closed:
                raise BackendError("closed")

        async def closing() -> str:
            await asyncio.sleep(1)
            closed.append("")
            raise CallError("401", "closed")

        place = endpoint(concurrency=4)
        found = await asyncio.gather(
            *(place.call(closing, 0, check) for _ in range(50)), return_exceptions=True
        )
        assert Counter(map(str, found)) == {"401": 4, "closed": 46}
        assert place.sent == 4
        assert await place.call(Server()) == "ok"

    run(work)


# ---- no place is lost, whatever happens ----

fates = st.lists(
    st.tuples(
        st.sampled_from(["ok", "limited", "server", "malformed", "refused", "broken"]),
        st.floats(0, 3),  # how long it takes
        st.one_of(st.none(), st.floats(0, 6)),  # when its task is cancelled
        st.floats(0, 2),  # when it comes
    ),
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(fates, st.integers(1, 6), st.sampled_from([None, 300, 60]))
def test_never_more_than_the_limit_and_all_places_come_back(
    fates: list[tuple[str, float, float | None, float]],
    concurrency: int,
    rpm: float | None,
) -> None:
    async def work() -> None:
        limits = EndpointLimits(concurrency, rpm, 6000, timeout_s=2, tries=2)
        place = Endpoint(limits)
        active = 0

        async def one(fate: str, takes: float, at: float) -> None:
            async def call() -> None:
                nonlocal active
                active += 1
                assert active <= concurrency
                try:
                    await asyncio.sleep(takes)
                finally:
                    active -= 1
                if fate == "broken":
                    raise ValueError
                if fate != "ok":
                    raise CallError(fate, fate, 0.1 if fate == "limited" else None)  # type: ignore[arg-type]

            await asyncio.sleep(at)
            await place.call(call, 10)

        tasks = []
        for fate, takes, cancelled, at in fates:
            tasks.append(asyncio.create_task(one(fate, takes, at)))
            if cancelled is not None:
                asyncio.get_running_loop().call_later(cancelled, tasks[-1].cancel)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [error for error in found if isinstance(error, AssertionError)]
        assert active == 0
        assert place._in_progress == 0
        assert all(turn.done() for _, turn in place._waiting)
        assert not place._sleepers
        server = Server(0.01)
        assert await calls(place, server, 10) == ["ok"] * 10

    run(work)


def test_places_are_given_in_the_order_of_asking() -> None:
    async def work() -> None:
        order: list[int] = []

        def call(i: int) -> Work:
            async def begin() -> str:
                order.append(i)
                await asyncio.sleep(1)
                return "ok"

            return begin

        place = endpoint(concurrency=3)
        await asyncio.gather(*(place.call(call(i)) for i in range(40)))
        assert order == list(range(40))

    run(work)

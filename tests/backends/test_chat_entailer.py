"""A chat model as an entailer: what is asked, what is read, and through everything a run does."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import trustassay
from tests.llm_server import LlmServer, Options
from tests.support import command, jsonl, killed_at_work, record, records, run_command, summary_of
from trustassay import score
from trustassay.api import plan, rescore
from trustassay.backends.chat_entailer import (
    ChatEntailer,
    EntailmentOptions,
    compute_entailment_by_tokens,
    compute_yes_probability,
    split_entailment_options,
)
from trustassay.backends.resolve import entailer
from trustassay.calls.prices import Price, Prices
from trustassay.core.capabilities import ChatRequest, Reply, TokenLogprob
from trustassay.errors import BackendError, UnknownNameError, UnparsedError

PAIR = ("Rome is in Italy.", "Rome is Italian.")


@pytest.fixture(scope="module")
def one_server() -> Iterator[LlmServer]:
    with LlmServer(keep=2000) as server:
        yield server


@pytest.fixture
def server(one_server: LlmServer) -> LlmServer:
    """Return a server that supports everything, and has heard of nobody."""
    usual = {**{k: getattr(Options(), k) for k in ("refuse", "share_500", "seed")}}
    one_server.change(**usual, reply="text:SUPPORTS")
    one_server.reset()
    return one_server


def uri(server: LlmServer, options: str = "") -> str:
    return f"openai:test@{server.base_url}" + (f"?{options}" if options else "")


class Says:
    """A chat model that replies by a function of the request."""

    name = "says"
    shared = False

    def __init__(self, reply: Callable[[ChatRequest], Reply | str]) -> None:
        self.answer = reply
        self.requests: list[ChatRequest] = []

    async def reply(self, request: ChatRequest) -> Reply:
        self.requests.append(request)
        found = self.answer(request)
        return Reply(found, "stop", 10, 1) if isinstance(found, str) else found


def told(text: str, *tokens: tuple[str, float, Sequence[tuple[str, float]]]) -> Reply:
    return Reply(
        text,
        logprobs=tuple(
            TokenLogprob(token, math.log(p), tuple((t, math.log(q)) for t, q in others))
            for token, p, others in tokens
        ),
    )


# ------------------------------------------------------------------------------ what is read


def test_it_reads_the_languages_in_which_its_model_was_measured() -> None:
    model: Any = SimpleNamespace(name="m", judges_in=("en", "de"))
    other: Any = SimpleNamespace(name="m")
    assert ChatEntailer(model).languages == ("en", "de")
    assert ChatEntailer(other).languages == ()


def test_probabilities_are_those_of_the_verdicts_first_tokens() -> None:
    others = [(" CONTR", 0.2), ("Neither", 0.1), (" Well", 0.05), ("supports", 0.05)]
    found = compute_entailment_by_tokens(told("SUPPORTS", ("SUP", 0.6, others), ("PORTS", 1.0, ())))
    assert found == pytest.approx((0.65 / 0.95, 0.1 / 0.95, 0.2 / 0.95))


def test_the_verdicts_token_is_found_behind_other_words_and_reasoning() -> None:
    first = [("Verdict", 1.0, ()), (":", 1.0, ()), (" ", 1.0, ())]
    last = ("N", 0.5, [("C", 0.5)])
    found = compute_entailment_by_tokens(
        told("Verdict: NEITHER", *first, last, ("EITHER", 1.0, ()))
    )
    assert found == pytest.approx((0, 0.5, 0.5))
    thought = [("<think>", 1.0, ()), ("supports?", 1.0, ()), ("</think>", 1.0, ())]
    found = compute_entailment_by_tokens(told("NEITHER", *thought, last, ("EITHER", 1.0, ())))
    assert found == pytest.approx((0, 0.5, 0.5))


@pytest.mark.parametrize(
    "reply",
    [
        Reply("SUPPORTS"),
        told("SUPPORTS", ("SUP", 0.3, [("Well", 0.6)]), ("PORTS", 1.0, ())),
        told("It is supported", ("It", 0.9, [("SUPPORTS", 0.1)]), (" is", 1.0, ())),
        told("nothing of the kind", ("SUPPORTS", 1.0, ())),
        told("SUPPORTS", ("CONTRADICTS", 1.0, ())),
    ],
    ids=["untold", "too little", "elsewhere", "no verdict", "another text"],
)
def test_tokens_that_do_not_tell_decide_nothing(reply: Reply) -> None:
    assert compute_entailment_by_tokens(reply) is None


def test_numbers_that_are_none_decide_nothing() -> None:
    for value in (math.nan, math.inf, -math.inf):
        reply = Reply("SUPPORTS", logprobs=(TokenLogprob("SUPPORTS", value),))
        found = compute_entailment_by_tokens(reply)
        assert found is None or found == (1, 0, 0)


def asked(model: Says, judging: EntailmentOptions | None = None) -> Any:
    return asyncio.run(ChatEntailer(model, judging).aentailment(PAIR, model.reply))


def test_one_reply_without_probabilities_is_one_verdict() -> None:
    model = Says(lambda _: "NEITHER")
    assert asked(model) == (0, 1, 0)
    (request,) = model.requests
    assert (request.temperature, request.logprobs, request.max_tokens) == (0, 20, 128)
    assert request.prompt == "entailment/1"
    assert all(text in request.messages[0].content for text in PAIR)


@pytest.mark.parametrize("unread", ["Hm.", ""])
def test_a_reply_without_a_verdict_is_asked_for_once_more(unread: str) -> None:
    model = Says(lambda r: "CONTRADICTS" if r.prompt == "verdict-again/1" else unread)
    assert asked(model) == (0, 0, 1)
    first, again = model.requests
    assert [one.role for one in again.messages] == ["user", "assistant", "user"][
        : 3 if unread else 1
    ]
    assert first.messages[0].content in again.messages[0].content
    assert again.messages[-1].content.endswith("nothing else: SUPPORTS, CONTRADICTS or NEITHER.")


def test_repeats_are_asked_where_no_probabilities_are_told() -> None:
    model = Says(lambda r: ["SUPPORTS", "CONTRADICTS", "SUPPORTS", "Hm.", "SUPPORTS"][r.repeat])
    assert asked(model, EntailmentOptions(repeats=5)) == (0.75, 0, 0.25)
    assert [(r.temperature, r.repeat) for r in model.requests] == [(1, i) for i in range(5)]
    tells = Says(lambda _: told("SUPPORTS", ("SUPPORTS", 0.75, [("NEITHER", 0.25)])))
    assert asked(tells, EntailmentOptions(repeats=5)) == (0.75, 0.25, 0)
    assert len(tells.requests) == 1


@pytest.mark.parametrize(("good", "repeats"), [(0, 1), (0, 4), (1, 4)])
def test_too_few_verdicts_are_a_failure_of_the_pair(good: int, repeats: int) -> None:
    model = Says(lambda r: "SUPPORTS" if r.repeat < good else "<b>Hm.</b>")
    with pytest.raises(UnparsedError, match=r"none of.*<b>Hm\.</b>") as error:
        asked(model, EntailmentOptions(repeats=repeats))
    assert error.value.kind == "unparsed"
    assert len(model.requests) == max(repeats, 2)


# ------------------------------------------------------------------------------ how it is named


def test_options_are_taken_out_of_the_uri_and_stand_in_the_name() -> None:
    found = entailer("openai:m@http://host/v1?rpm=5&repeats=3&body.x=1&max_tokens=9")
    assert isinstance(found, ChatEntailer)
    assert found.judging == EntailmentOptions(3, 9)
    assert found.name == "openai:m@http://host/v1?body.x=1&repeats=3&max_tokens=9"
    again = entailer(found.name)
    assert (again.name, found.chat_model.name) == (found.name, "openai:m@http://host/v1?body.x=1")
    assert split_entailment_options("replay:a?model=b?c&d=e") == (
        "replay:a?model=b?c&d=e",
        EntailmentOptions(),
    )


@pytest.mark.parametrize("scheme", ["anthropic", "gemini"])
def test_every_wire_serves(scheme: str) -> None:
    assert entailer(f"{scheme}:m@http://host").name == f"{scheme}:m@http://host"


def test_a_function_or_a_model_serves_too() -> None:
    found = entailer("chat:python:tests.backends.test_chat_entailer:supports")
    assert found.name == "chat:python:tests.backends.test_chat_entailer:supports"
    assert found.scores([PAIR]).tolist() == [[1, 0, 0]]
    assert entailer(Says(lambda _: "NEITHER")).scores([PAIR, PAIR]).tolist() == [[0, 1, 0]] * 2


def supports(prompt: str) -> str:
    return "SUPPORTS"


@pytest.mark.parametrize("option", ["repeats=0", "repeats=x", "max_tokens=-1"])
def test_a_value_that_cannot_be_is_told(option: str) -> None:
    with pytest.raises(UnknownNameError, match=option.split("=", maxsplit=1)[0]):
        entailer(f"openai:m@http://host?{option}")


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.jinja"
    own.write_text("{# version 7 #}{{ hypothesis }}|{{ premise }}")
    model = Says(lambda _: "SUPPORTS")
    asked(model, EntailmentOptions(prompt=str(own)))
    assert model.requests[0].messages[0].content == "|".join(reversed(PAIR))
    assert model.requests[0].prompt == "own/7"
    own.write_text("{{ premise }} {{ nothing }}")
    with pytest.raises(BackendError, match="nothing"):
        ChatEntailer(model, EntailmentOptions(prompt=str(own)))


def test_nothing_in_a_pair_is_read_as_a_template() -> None:
    model = Says(lambda _: "SUPPORTS")
    asyncio.run(ChatEntailer(model).aentailment(("{{ 7*7 }}", "{% if %}"), model.reply))
    assert "{{ 7*7 }}" in model.requests[0].messages[0].content


# ------------------------------------------------------------------------------ in a run, over HTTP

ROWS = records(4)
EACH = 4
"""Pairs of a record whose sentences are all supported."""
PAIRS = EACH * len(ROWS)


@pytest.mark.slow
def test_grounding_works_with_it_and_asks_each_pair_once(server: LlmServer, tmp_path: Path) -> None:
    """Tried again, stored, shared by the cache, counted and priced as every chat call."""
    server.change(share_500=0.3, seed=3)
    given: dict[str, Any] = {
        "metrics": "grounding",
        "entailer": uri(server, "tries=20"),
        "cache": tmp_path / "cache",
        "prices": Prices({"test": Price(1000, 2000)}),
    }
    run = score(ROWS, out=tmp_path / "run", **given)
    assert [a.score for a in run.assessments] == [1.0] * 4
    assert run.assessments[0].calls == {"entailment": EACH}
    prompts = [one["body"]["messages"][0]["content"] for one in server.requests()]
    assert len(set(prompts)) == PAIRS
    assert server.stats()["answered"] == PAIRS
    assert all(one["body"]["top_logprobs"] == 20 for one in server.requests())
    found = run.summary_file
    assert found["calls"]["chat"]["stored"] == PAIRS
    (used,) = found["usage"]["models"].values()
    assert (used["calls"], used["reply_tokens"]) == (PAIRS, PAIRS)
    assert used["usd"] == pytest.approx((1000 * used["prompt_tokens"] + 2000 * PAIRS) / 1e6)
    score(ROWS, out=tmp_path / "again", **given)
    assert server.stats()["answered"] == PAIRS


def test_scored_again_it_is_not_asked_and_needs_no_key(
    server: LlmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = uri(server, "repeats=2&concurrency=3")
    score(ROWS, metrics="grounding", entailer=named, out=tmp_path / "run", cache=None)
    answered = server.stats()["answered"]
    metric = "grounding:at_most_citations=1"
    again = rescore(tmp_path / "run", metrics=metric, out=tmp_path / "again", cache=None)
    assert [a.error for a in again.assessments] == [None] * 4
    assert server.stats()["answered"] == answered


def test_a_plan_counts_its_calls_and_asks_nothing(server: LlmServer, tmp_path: Path) -> None:
    given: dict[str, Any] = {"metrics": "grounding", "cache": tmp_path / "cache"}
    one = plan(ROWS, entailer=uri(server), **given)
    (part,) = one.parts
    assert (part.metric, part.capability, part.backend) == ("grounding", "chat", uri(server))
    assert (part.calls, part.cached) == (PAIRS, 0)
    assert one.unsure == {}
    (part,) = plan(ROWS, entailer=uri(server, "repeats=5"), **given).parts
    assert part.calls == 5 * PAIRS
    assert server.stats()["received"] == 0
    score(ROWS, entailer=uri(server), **given)
    (part,) = plan([*ROWS, record(9)], entailer=uri(server), **given).parts
    assert (part.calls, part.cached) == (PAIRS + EACH, PAIRS)


def test_an_endpoint_without_log_probabilities_is_asked_again_and_again(server: LlmServer) -> None:
    server.change(refuse="logprobs")
    given: dict[str, Any] = {"metrics": "grounding", "cache": None}
    run = score(ROWS[:1], entailer=uri(server, "repeats=3"), **given)
    assert run.assessments[0].score == 1.0
    assert server.stats()["by_status"]["200"] == 3 * EACH


@pytest.mark.slow
def test_a_budget_is_kept(server: LlmServer, tmp_path: Path) -> None:
    here: dict[str, Any] = {"cwd": tmp_path, "TRUSTASSAY_CACHE": str(tmp_path / "cache")}
    jsonl(tmp_path / "in.jsonl", records(30))
    asking = ["score", "in.jsonl", "--metric", "grounding", "--entailer", uri(server)]
    asking += ["--out", "run", "--budget", "5000"]
    done = run_command(*asking, **here)
    assert "the budget of 5,000 tokens is reached" in done.stderr
    summary = summary_of(tmp_path / "run")
    # Whether an answer is judged before it is spent depends on which replies come first.
    assert done.returncode == (0 if summary["looked"]["judged"] else 1)
    used = summary["usage"]["models"][uri(server)]
    assert 1000 < used["prompt_tokens"] + used["reply_tokens"] <= 5000
    assert 0 < server.stats()["received"] < 30 * EACH


@pytest.mark.slow
def test_killed_and_resumed_nothing_is_asked_twice(tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", records(40))
    with LlmServer(latency_ms=60, reply="text:SUPPORTS", keep=0) as server:
        asking = ["score", "in.jsonl", "--metric", "grounding", "--out", "run"]
        asking += ["--entailer", uri(server, "concurrency=8")]
        here: dict[str, Any] = {"cwd": tmp_path, "TRUSTASSAY_CACHE": str(tmp_path / "cache")}
        part = tmp_path / "run" / "assessments.jsonl"
        killed_at_work(command(*asking), part, **here)
        killed = time.time()
        assert server.stats()["answered"] < 40 * EACH
        assert run_command(*asking, **here).returncode == 0
        assert server.stats()["answered"] <= 40 * EACH + 8
        assert len(server.asked_again([killed])) <= 8  # what was under way, and not yet read
    assert summary_of(tmp_path / "run")["metrics"]["grounding"]["failed"] == 0


@pytest.mark.parametrize(
    "reply", ["hash", "text:SUPPORTS or CONTRADICTS", "text:</passage> <script>alert(1)</script>"]
)
def test_a_hostile_reply_fails_its_sample_and_is_counted(
    reply: str, server: LlmServer, tmp_path: Path
) -> None:
    server.change(reply=reply)
    run = score(ROWS, metrics="grounding", entailer=uri(server), out=tmp_path / "run", cache=None)
    assert {a.fault for a in run.assessments} == {"unparsed"}
    assert all("names none of supports" in str(a.error) for a in run.assessments)
    assert run.summary_file["faults"] == {"grounding": {"unparsed": 4}}
    assert run.summaries["grounding"].failed == 4
    assert run.summary["grounding"]["trust_score"] is None
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page


class Local:
    """A chat model in this process; notes its batches."""

    name = "local"

    def __init__(self) -> None:
        self.batches: list[int] = []

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        self.batches.append(len(requests))
        return [told("SUPPORTS", ("SUPPORTS", 0.75, [("NEITHER", 0.25)])) for _ in requests]


def test_a_model_of_this_machine_is_asked_in_batches(tmp_path: Path) -> None:
    model = Local()
    run = score(ROWS, metrics="grounding", entailer=model, out=tmp_path / "run", cache=None)
    assert [a.score for a in run.assessments] == [1.0] * 4
    assert run.assessments[0].evidence[0]["entailment"] == 0.75
    assert sum(model.batches) == PAIRS
    assert max(model.batches) > EACH
    score(ROWS, metrics="grounding", entailer=model, out=tmp_path / "run", cache=None)
    assert sum(model.batches) == PAIRS


def test_a_similarity_by_its_judgement_is_asked_in_the_same_way(server: LlmServer) -> None:
    run = score(
        [{"question": "Q?", "response": "A.", "resamples": ["B.", "C."]}],
        metrics="semantic_harmonicity",
        entailer=uri(server),
        cache=None,
    )
    assert run.assessments[0].error is None
    similarity = trustassay.similarity(f"consistency:{uri(server)}")
    assert similarity.name == f"consistency:{uri(server)}"


def test_models_checks_it(server: LlmServer, tmp_path: Path) -> None:
    done = run_command("models", f"entailer={uri(server)}", cwd=tmp_path, COLUMNS="200")
    assert done.returncode == 1  # it supports whatever it is asked
    said = " ".join((done.stdout + done.stderr).split())
    assert "its labels look wrong" in said
    done = run_command(
        "models", "entailer=chat:python:labels:right", cwd=_labels(tmp_path), COLUMNS="200"
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0, said
    assert "entailment works, with verdicts only, no probabilities" in said


def _labels(folder: Path) -> Path:
    (folder / "labels.py").write_text(
        "def right(prompt):\n"
        "    said = prompt.split('<statement>')[1].split('</statement>')[0]\n"
        "    return 'SUPPORTS' if 'instrument' in said else "
        "'NEITHER' if 'brothers' in said else 'CONTRADICTS'\n"
    )
    return folder


def test_a_log_probability_that_is_not_known_is_absent() -> None:
    first = TokenLogprob("yes", math.nan, (("Yes", -0.1), ("no", -3.0), ("No", math.nan)))
    share = compute_yes_probability(Reply("yes", logprobs=(first,)))
    assert share == pytest.approx(math.exp(-0.1) / (math.exp(-0.1) + math.exp(-3)))
    alone = TokenLogprob("yes", math.nan)
    assert compute_yes_probability(Reply("yes", logprobs=(alone,))) is None

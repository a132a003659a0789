"""Decision models behind servers that speak each dialect, alone and as the engine calls them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.decision_server import DecisionServer, Response
from trustassay.backends import inventory
from trustassay.backends.decision_models import build_entailment_question
from trustassay.backends.registry import is_decision_model, load
from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, Client, SampleModels, open_calls
from trustassay.calls.prices import Budget
from trustassay.core.capabilities import Entailment
from trustassay.errors import BackendError, CallError, UnknownNameError, UnparsedError

KEY = "sk-very-secret-key"
DIALECTS = [
    ("decisions", "openai"),
    ("decisions", "vllm"),
    ("systemone", "vllm"),
    ("systemone", "sglang"),
    ("systemone", "llamacpp"),
    ("systemone", "typesafe"),
]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("TYPESAFE_API_KEY", KEY)
    for name in ("OPENAI_BASE_URL", "TYPESAFE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def run(
    path: Path, uri: str, work: Callable[[SampleModels, Client], Awaitable[Any]], **options: Any
) -> Any:
    """Return the result of ``work`` with the entailer of a URI, called as in a run."""

    async def inside() -> Any:
        backends = Backends.of(entail=load("entailer", uri))
        calls = CallOptions.of(cache=None, **options)
        async with open_calls(backends, calls, path / "calls.sqlite") as client:
            return await work(SampleModels(client), client)

    return asyncio.run(inside())


def entail_all(
    path: Path, uri: str, pairs: Sequence[tuple[str, str]], **options: Any
) -> list[Entailment | BaseException]:
    async def work(models: SampleModels, _: Client) -> Any:
        asked = (models.entail(*pair) for pair in pairs)
        return await asyncio.gather(*asked, return_exceptions=True)

    result: list[Entailment | BaseException] = run(path, uri, work, **options)
    return result


def stored(path: Path) -> list[tuple[list[str], dict[str, Any], int | None]]:
    """Return request, reply and tokens of each stored call."""
    rows = sqlite3.connect(path / "calls.sqlite").execute(
        "SELECT request, reply, prompt_tokens FROM calls "
        "WHERE capability = 'decision' ORDER BY rowid"
    )
    return [(json.loads(request), json.loads(reply), tokens) for request, reply, tokens in rows]


@pytest.mark.parametrize(("scheme", "dialect"), DIALECTS)
@pytest.mark.parametrize("suffix", ["", "/v1", "/v1/"])
def test_every_dialect_gives_its_probabilities_and_never_its_confidence(
    scheme: str, dialect: str, suffix: str
) -> None:
    with DecisionServer(dialect) as server:
        entailer = load("entailer", f"{scheme}:m@{server.url}{suffix}")
        rows = entailer.scores([("p", "{.7 .2 .1}"), ("p", "{.1 .1 .8}"), ("other", "{0 1 0}")])
        assert rows.ravel() == pytest.approx([0.7, 0.2, 0.1, 0.1, 0.1, 0.8, 0, 1, 0])
        assert entailer.name == f"{scheme}:m@{server.url}"
        assert [path for path, *_ in server.requests] == [f"/v1/{scheme}"] * 2
        assert all(h["Authorization"] == f"Bearer {KEY}" for *_, h in server.requests)


@pytest.mark.parametrize(("scheme", "dialect"), DIALECTS)
def test_statements_of_a_passage_share_calls_of_32(
    scheme: str, dialect: str, tmp_path: Path
) -> None:
    pairs = [(f"passage {i % 2}", f"statement {i} {{.6 .3 .1}}") for i in range(80)]
    with DecisionServer(dialect) as server:
        result = entail_all(tmp_path, f"{scheme}:m@{server.url}", pairs)
        key = "state" if scheme == "systemone" else "input"
        sizes = sorted((body[key], len(body["questions"])) for body in server.bodies)
    assert all(row == pytest.approx((0.6, 0.3, 0.1)) for row in result)
    assert sizes == [("passage 0", 8), ("passage 0", 32), ("passage 1", 8), ("passage 1", 32)]
    for request, reply, _ in stored(tmp_path):
        assert request[0].startswith("passage") and "statement" in request[1]
        assert reply["options"] == ["supports", "neither", "contradicts"]
        assert (reply["raw"], reply["model"]) == ([0.6, 0.3, 0.1], "jev-1.13.0")
    # The tokens of a call are stored once.
    assert sorted(tokens or 0 for *_, tokens in stored(tmp_path))[-5:] == [0, 100, 100, 100, 100]


def test_stored_answers_are_not_asked_for_again(tmp_path: Path) -> None:
    pairs = [("p", "{.7 .2 .1} a"), ("p", "{.7 .2 .1} b")]
    with DecisionServer("typesafe") as server:
        first = entail_all(tmp_path, f"systemone:m@{server.url}", pairs)
        again = entail_all(tmp_path, f"systemone:m@{server.url}/v1", pairs)
        assert first == again and len(server.requests) == 1


@pytest.mark.parametrize(("scheme", "dialect"), DIALECTS)
def test_what_fails_fails_alone(scheme: str, dialect: str, tmp_path: Path) -> None:
    statements = ["{.7 .2 .1} fine", "{.7 .1 .1} sum", "{.7 .205 .1} near", "{lose} lost"]
    statements += ["{bad} wrong", "{.2 .7 .1} {mass .49} vague"]
    statements += ["{refuse} refused"] if dialect == "openai" else []
    with DecisionServer(dialect) as server:
        result = entail_all(tmp_path, f"{scheme}:m@{server.url}", [("p", s) for s in statements])
        # The question that was named is left out of the second call.
        sizes = [len(body["questions"]) for body in server.bodies]
        assert sizes == [len(statements), len(statements) - 1]
    fine, unsummed, near, lost, bad, vague, *refused = result
    assert fine == pytest.approx((0.7, 0.2, 0.1))
    assert isinstance(unsummed, UnparsedError) and "sum to 0.900" in str(unsummed)
    assert near == pytest.approx((0.7 / 1.005, 0.205 / 1.005, 0.1 / 1.005), abs=1e-6)
    assert isinstance(lost, CallError) and lost.kind == "malformed"
    assert isinstance(bad, CallError) and bad.kind == "refused"
    # Only some servers tell the mass of the labels.
    tells_mass = dialect == "sglang" or (scheme, dialect) == ("systemone", "vllm")
    assert isinstance(vague, UnparsedError) == tells_mass
    assert all(isinstance(error, CallError) and error.kind == "refused" for error in refused)
    raws = [reply["raw"] for _, reply, _ in stored(tmp_path)]
    # As received; refusals are stored, too.
    assert [0.7, 0.205, 0.1] in raws and [0.7, 0.1, 0.1] in raws
    assert ([] in raws) == (dialect == "openai")


def test_too_long_is_a_failure_and_nothing_is_cut(tmp_path: Path) -> None:
    too_long: Response = (400, {"detail": {"error_type": "max_tokens_exceeded"}}, {})
    with DecisionServer("typesafe", *[too_long] * 3) as server:
        pairs = [("p" * 500, f"{{.7 .2 .1}} {i}") for i in range(2)]
        # Together they are too long, and then each is tried alone.
        result = entail_all(tmp_path, f"systemone:m@{server.url}", pairs)
        assert all(isinstance(error, CallError) and error.kind == "refused" for error in result)
        assert "max_tokens_exceeded" in str(result[0])
        assert [len(body["questions"]) for body in server.bodies] == [2, 1, 1]
        assert all(body["state"] == "p" * 500 for body in server.bodies)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_temporary_failures_are_tried_again(status: int, tmp_path: Path) -> None:
    asked = ({"Retry-After": "0.01"}, {"retry-after-ms": "10"})
    with DecisionServer("typesafe", *[(status, {"error": "busy"}, how) for how in asked]) as server:
        (result,) = entail_all(tmp_path, f"systemone:m@{server.url}", [("p", "{.7 .2 .1}")])
        assert result == pytest.approx((0.7, 0.2, 0.1)) and len(server.requests) == 3


def test_a_wait_in_milliseconds_is_obeyed(tmp_path: Path) -> None:
    loop_times: list[float] = []

    async def work(models: SampleModels, _: Client) -> Any:
        began = asyncio.get_running_loop().time()
        await models.entail("p", "{.7 .2 .1}")
        loop_times.append(asyncio.get_running_loop().time() - began)

    with DecisionServer("typesafe", (429, {}, {"retry-after-ms": "400"})) as server:
        run(tmp_path, f"systemone:m@{server.url}", work)
    assert loop_times[0] >= 0.4


def test_a_server_without_decisions_is_asked_once(tmp_path: Path) -> None:
    pairs = [(f"p{i}", "{.7 .2 .1}") for i in range(4)]
    with DecisionServer("llamacpp") as server:
        result = entail_all(tmp_path, f"systemone:chat@{server.url}?concurrency=1", pairs)
        assert [getattr(error, "kind", "") for error in result] == ["closed"] * 4
        assert "not a decision model" in str(result[0]) and len(server.requests) == 1


def test_the_decisions_of_sglang_are_told_from_those_of_openai(tmp_path: Path) -> None:
    with DecisionServer("sglang") as server:
        (result,) = entail_all(tmp_path, f"decisions:m@{server.url}", [("p", "s")])
    assert isinstance(result, CallError) and result.kind == "closed"
    assert f"use systemone:m@{server.url}" in str(result)


def test_failures_of_a_call_are_not_asked_one_by_one(tmp_path: Path) -> None:
    failures: list[Response] = [(500, {"error": "broken"}, {})] * 2
    pairs = [("p", f"{{.7 .2 .1}} {i}") for i in range(5)]
    with DecisionServer("typesafe", *failures) as server:
        result = entail_all(tmp_path, f"systemone:m@{server.url}?tries=2", pairs)
        assert [getattr(error, "kind", "") for error in result] == ["server"] * 5
        assert len(server.requests) == 2


def test_a_key_never_comes_back(tmp_path: Path) -> None:
    with DecisionServer("typesafe", (400, {"error": f"bad key {KEY}"}, {})) as server:
        (result,) = entail_all(tmp_path, f"systemone:m@{server.url}", [("p", "s")])
    assert isinstance(result, CallError) and KEY not in str(result) and "[key]" in str(result)
    assert KEY not in repr(load("entailer", f"systemone:m@{server.url}").name)


def test_a_budget_counts_the_tokens_that_are_reported(tmp_path: Path) -> None:
    async def work(models: SampleModels, client: Client) -> Any:
        await asyncio.gather(*(models.entail("p", f"{{.7 .2 .1}} {i}") for i in range(3)))
        return client.ledger._spent

    with DecisionServer("typesafe") as server:
        uri = f"systemone:m@{server.url}"
        assert run(tmp_path, uri, work, budget=Budget.of("1000")) == 103
        # A run that is taken up again has spent them already.
        assert run(tmp_path, uri, work, budget=Budget.of("1000")) == 103
        assert len(server.requests) == 1


def test_missing_keys_are_named_before_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme, variable in (("systemone", "TYPESAFE"), ("decisions", "OPENAI")):
        monkeypatch.delenv(f"{variable}_API_KEY")
        for base in ("", "@https://api.typesafe.ai", "@https://api.openai.com/v1"):
            model = load("decision model", f"{scheme}:m{base}")
            missing = model.missing_key
            own = not base or ("typesafe" in base) == (scheme == "systemone")
            assert (missing is not None) == own
            assert not own or f"set {variable}_API_KEY" in missing
        monkeypatch.setenv(f"{variable}_BASE_URL", "http://127.0.0.1:9/v1")
        assert load("decision model", f"{scheme}:m").endpoint == "http://127.0.0.1:9"


@pytest.mark.parametrize("uri", ["systemone:m", "decisions:m@http://127.0.0.1:9"])
@pytest.mark.parametrize("kind", ["chat model", "embedder"])
def test_it_is_refused_where_text_is_needed(uri: str, kind: str) -> None:
    assert is_decision_model(uri)
    with pytest.raises(
        UnknownNameError, match="returns probabilities, not text; use it as --entailer"
    ):
        load(kind, uri)


def test_other_uris_are_no_decision_models() -> None:
    for uri in ("openai:m", "python:a:b", "embedded", "lexical", "nothing", object()):
        assert not is_decision_model(uri)


def test_agreement_takes_no_decision_model() -> None:
    with pytest.raises(BackendError, match="decision model; expected a local entailer"):
        load("similarity", "agreement:systemone:m")


def test_a_decision_model_is_tried_and_listed() -> None:
    with DecisionServer("vllm") as server:
        state = inventory.try_backend(f"systemone:m@{server.url}")
    assert state.capability == "entailment" and state.state == "works"
    names = {row.name: row for row in inventory.iterate_backends(check=False)}
    assert names["systemone:MODEL"].state == "TYPESAFE_API_KEY is set"
    assert names["decisions:MODEL"].state == "OPENAI_API_KEY is set"


def test_the_statement_is_in_the_question_and_the_passage_in_the_state() -> None:
    question = build_entailment_question("a passage", "a statement {with braces}")
    assert question.state == "a passage"
    assert question.instructions.endswith("Statement: a statement {with braces}")
    assert all(description for _, description in question.options)

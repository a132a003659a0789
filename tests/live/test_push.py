"""``trustassay pull`` and ``push``: traces of Langfuse and Phoenix, and scores sent back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.live.stores import KEYS, Store
from trustassay import score
from trustassay.input.reading import LocatedSample, read_samples
from trustassay.live.trace_stores import TraceTarget
from trustassay.people.calibrate.command import calibrate

TRACES = [f"{number + 1:032x}" for number in range(5)]
ANSWERS = ["The Tagus runs through Lisbon.", "Nothing of it is known to anybody."]
REPORT = "https://example.org/report.html"


def spans(trace: str, answer: str) -> list[dict[str, Any]]:
    """A trace as Phoenix lists it."""

    def span(number: str, name: str, parent: str | None, **attributes: Any) -> dict[str, Any]:
        return {
            "name": name,
            "context": {"trace_id": trace, "span_id": number + trace[-8:]},
            "parent_id": parent,
            "start_time": "2026-11-27T23:30:00+00:00",
            "end_time": "2026-11-27T23:30:01+00:00",
            "status_code": "OK",
            "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
        }

    root = "0" * 8 + trace[-8:]
    return [
        span("0" * 8, "rag", None, input__value="Which river?", output__value=answer),
        span(
            "1" * 8,
            "search",
            root,
            openinference__span__kind="RETRIEVER",
            retrieval__documents=[{"document.content": ANSWERS[0]}],
        ),
    ]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    listed = [one for n, trace in enumerate(TRACES) for one in spans(trace, ANSWERS[n % 2])]
    (folder / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in listed))
    score(folder / "t.jsonl", metrics="faithfulness", entailer="lexical", out=folder / "run")
    return folder / "run"


@pytest.fixture
def run(scored: Path) -> Iterator[Path]:
    yield scored
    (scored / "pushed.jsonl").unlink(missing_ok=True)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with Store() as result:
        monkeypatch.setenv("LANGFUSE_BASE_URL", result.url)
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", result.url)
        yield result


def test_each_score_is_at_its_trace_with_its_reason_and_a_link(
    cli: Cli, run: Path, store: Store
) -> None:
    said = cli("push", run, "--to", "langfuse", "--report-url", REPORT)
    assert (said.status, said.err) == (0, f"langfuse {store.url}: 5 answers sent, 0 unchanged\n")
    body = store.kept[f"{TRACES[1]}-faithfulness", "faithfulness", "2026-11-27"]
    assert (body["traceId"], body["value"], body["dataType"]) == (TRACES[1], 0.0, "NUMERIC")
    assert "observationId" not in body
    reason, link = body["comment"].split("\n")
    assert reason.startswith("1 of 1 sentence not found")
    assert link == f"{REPORT}#id={TRACES[1]}"
    assert body["metadata"]["verdict"] == "not found"
    assert body["timestamp"] == "2026-11-27T23:30:00+00:00"


@pytest.mark.parametrize("where", ["langfuse", "phoenix"])
def test_a_second_push_changes_nothing(cli: Cli, run: Path, store: Store, where: str) -> None:
    cli("push", run, "--to", where)
    kept, asked = dict(store.kept), len(store.asked)
    assert cli("push", run, "--to", where).err.endswith("0 answers sent, 5 unchanged\n")
    assert len(store.asked) == asked == 5
    (run / "pushed.jsonl").unlink()  # sent anew, each takes the place of the same one
    assert cli("push", run, "--to", where).err.endswith("5 answers sent, 0 unchanged\n")
    assert store.kept == kept


def test_what_changed_is_sent_again(cli: Cli, run: Path, store: Store) -> None:
    cli("push", run, "--to", "langfuse")
    said = cli("push", run, "--to", "langfuse", "--report-url", REPORT)
    assert "5 answers sent, 0 unchanged" in said.err
    assert len(store.kept) == 5


def test_a_stopped_push_goes_on_where_it_was(cli: Cli, run: Path, store: Store) -> None:
    closed: tuple[int, dict[str, str], str] = (401, {}, '{"message": "no such key"}')
    store.before = lambda body: closed if len(store.kept) >= 2 else None
    said = cli("push", run, "--to", "langfuse", "--json")
    assert said.status == 1
    assert "no such key" in said.err
    assert "run the same command again to continue" in said.err
    sent = json.loads(said.out)["sent"]
    assert 2 <= sent < 5
    with (run / "pushed.jsonl").open("ab") as file:
        file.write(b'{"to": "langfu')  # of a process that was killed while it wrote
    store.before = lambda body: None
    said = cli("push", run, "--to", "langfuse")
    assert said.err.endswith(f"{5 - sent} answers sent, {sent} unchanged\n")
    assert len(store.kept) == 5


def test_a_failure_that_passes_is_tried_again(cli: Cli, run: Path, store: Store) -> None:
    left = [(429, {"Retry-After": "0"}, ""), (503, {}, "busy")]
    store.before = lambda body: left.pop() if left else None
    assert cli("push", run, "--to", "langfuse").status == 0
    assert len(store.kept) == 5
    assert not left


def test_what_is_not_taken_is_told_and_the_rest_is_sent(cli: Cli, run: Path, store: Store) -> None:
    store.unknown = {"0" * 8 + TRACES[3][-8:]}
    said = cli("push", run, "--to", "phoenix")
    assert said.status == 1
    assert f"refused: {TRACES[3]}: 404: Spans with IDs" in said.err
    assert "4 answers sent, 0 unchanged, 1 refused" in said.err
    body = store.kept["faithfulness", "0" * 8 + TRACES[1][-8:], "trustassay"]
    assert (body["result"]["score"], body["result"]["label"]) == (0.0, "not found")
    assert body["result"]["explanation"].startswith("1 of 1 sentence not found")


def test_a_key_is_in_no_message(cli: Cli, run: Path, store: Store) -> None:
    secret = KEYS["LANGFUSE_SECRET_KEY"]
    store.before = lambda body: (400, {}, json.dumps({"message": f"you sent {secret}"}))
    said = cli("push", run, "--to", "langfuse")
    assert "you sent [key]" in said.err
    assert secret not in said.err + (run / "pushed.jsonl").read_text()


def test_a_missing_key_is_told(cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGFUSE_SECRET_KEY", raising=False)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
    said = cli("push", run, "--to", "langfuse")
    assert (said.status, "LANGFUSE_SECRET_KEY is not set" in said.err) == (2, True)


def test_answers_of_no_trace_are_not_sent(cli: Cli, store: Store, tmp_path: Path) -> None:
    rows = [{"question": "a?", "response": "b", "documents": ["c"], "call": "t-7"}]
    score(rows, metrics="faithfulness", entailer="lexical", out=tmp_path / "run")
    said = cli("push", tmp_path / "run", "--to", "langfuse")
    assert said.status == 2
    assert "samples.jsonl:1: " in said.err
    assert "has no trace id" in said.err
    assert store.asked == []
    assert cli("push", tmp_path / "run", "--to", "langfuse", "--trace-field", "call").status == 0
    [(_, body)] = store.asked
    assert body["traceId"] == "t-7"


def test_failed_scores_are_not_sent(cli: Cli, store: Store, tmp_path: Path) -> None:
    rows = [{"id": "x", "question": "a?", "response": " ", "documents": ["c"], "trace_id": "t"}]
    score(rows, metrics="faithfulness", entailer="lexical", out=tmp_path / "run")
    said = cli("push", tmp_path / "run", "--to", "langfuse")
    assert said.err.endswith("0 answers sent, 0 unchanged, 1 score failed and not sent\n")
    assert store.asked == []


@pytest.mark.parametrize(
    ("sample", "target"),
    [
        ({"id": "t", "root_span": "s", "started": "1795773600000000000"},
         TraceTarget("t", "s", True, "2026-11-27T10:00:00+00:00")),
        ({"id": "o", "traceId": "t", "startTime": "2026-11-27T10:00:00Z"},
         TraceTarget("t", "o", False, "2026-11-27T10:00:00+00:00")),
        ({"id": "t", "trace_id": "t", "start_time": "2026-11-27 10:00:00"},
         TraceTarget("t", None, True, "2026-11-27T10:00:00+00:00")),
        ({"id": "x", "metadata": {"trace_id": "t"}, "timestamp": "yesterday"},
         TraceTarget("t", "x", False, None)),
        ({"id": "x"}, None),
    ],
)  # fmt: skip
def test_what_a_sample_is_about(sample: dict[str, Any], target: TraceTarget | None) -> None:
    assert TraceTarget.of(sample) == target


def test_traces_are_read_page_by_page_and_scored(cli: Cli, store: Store) -> None:
    store.spans = [one for trace in TRACES[:3] for one in spans(trace, ANSWERS[0])]
    since = "2026-11-27T00:00:00+00:00"
    said = cli("pull", "t.jsonl", "--from", "phoenix", "--since", since)
    assert (said.status, said.err) == (0, "t.jsonl: 6 spans\n")
    assert [one.get("cursor") for one in store.queries] == [None, "2", "4"]
    assert store.queries[0]["start_time"] == since
    run = score("t.jsonl", metrics="faithfulness", entailer="lexical")
    assert [(one.id, one.score) for one in run.assessments] == [(t, 1.0) for t in TRACES[:3]]


def test_observations_of_langfuse_are_a_trace(cli: Cli, store: Store) -> None:
    own = {"traceId": "t-1", "startTime": "2026-11-27T10:00:00Z", "endTime": "2026-11-27T10:00:01Z"}
    store.spans = [
        {**own, "id": "a", "type": "SPAN", "name": "rag", "parentObservationId": None,
         "input": '{"question": "Which river?"}', "output": ANSWERS[0]},
        {**own, "id": "b", "type": "RETRIEVER", "name": "find", "parentObservationId": "a",
         "input": "river", "output": json.dumps([ANSWERS[0]])},
        {**own, "id": "c", "type": "GENERATION", "name": "llm", "parentObservationId": "a",
         "input": '[{"role": "user", "content": "Which river?"}]', "output": ANSWERS[0]},
    ]  # fmt: skip
    assert cli("pull", "t.jsonl", "--from", "langfuse").err == "t.jsonl: 3 spans\n"
    score("t.jsonl", metrics="faithfulness", entailer="lexical", out="run")
    assert cli("push", "run", "--to", "langfuse").status == 0
    [(_, body)] = store.asked
    assert (body["traceId"], body["value"]) == ("t-1", 1.0)


def test_a_page_that_is_none_leaves_the_file_as_it_was(cli: Cli, store: Store) -> None:
    Path("t.jsonl").write_text("before")
    store.listed = lambda path: (200, {}, '{"data": "x"}')  # type: ignore[method-assign]
    said = cli("pull", "t.jsonl", "--from", "phoenix")
    assert said.status == 2
    assert "the reply has no list `data`" in said.err
    assert Path("t.jsonl").read_text() == "before"


@pytest.mark.parametrize("since", ["today", "2026-11-27T00:00:00"])
def test_a_time_without_its_offset_is_refused(cli: Cli, since: str) -> None:
    said = cli("pull", "t.jsonl", "--from", "phoenix", "--since", since)
    assert (said.status, "--since: expected a time with its UTC offset" in said.err) == (2, True)


def langfuse_score(name: str, value: Any, kind: str, at: str, source: str = "EVAL") -> Any:
    """A score as ``GET /api/public/v3/scores`` lists it."""
    subject = {"kind": kind, "id": at} | ({"traceId": "t-1"} if kind == "observation" else {})
    return {"id": f"{name}-{at}", "projectId": "p", "name": name, "value": value,
            "dataType": "NUMERIC", "source": source, "timestamp": "2026-11-28T10:00:00Z",
            "environment": "default", "subject": subject}  # fmt: skip


def observation(number: str, parent: str | None, trace: str = "t-1", second: int = 0) -> Any:
    return {"id": number, "type": "GENERATION", "name": "llm", "traceId": trace,
            "parentObservationId": parent, "startTime": f"2026-11-27T10:00:0{second}Z",
            "endTime": "2026-11-27T10:00:09Z", "input": "Which river?",
            "output": ANSWERS[0]}  # fmt: skip


def pulled(path: str = "t.jsonl") -> dict[str, Any]:
    lines = map(json.loads, Path(path).read_text().splitlines())
    return {line.get("id") or line["context"]["span_id"]: line for line in lines}


def test_scores_of_langfuse_are_at_their_observations(cli: Cli, store: Store) -> None:
    # The latest first, as Langfuse lists them: roots come after their children.
    store.spans = [
        observation("c", "b", second=2), observation("b", "a", second=1), observation("a", None),
        observation("y", "x", "t-2", 2), observation("z", "x", "t-2", 1),
        observation("n", None, "t-3"),
    ]  # fmt: skip
    store.scores = [
        langfuse_score("helpful", 0.9, "observation", "b"),
        langfuse_score("correctness", "right", "trace", "t-1", "ANNOTATION"),
        langfuse_score("helpful", 0.4, "trace", "t-1"),
        langfuse_score("helpful", 0.1, "trace", "t-2"),
        langfuse_score("helpful", 0.2, "session", "t-3"),
        langfuse_score("helpful", 0.3, "trace", "of another period"),
    ]
    moments = ("--since", "2026-11-27T00:00:00Z", "--until", "2026-11-28T00:00:00Z")
    said = cli("pull", "t.jsonl", "--from", "langfuse", *moments)
    assert said.err == "t.jsonl: 6 spans\n"
    spans = pulled()
    assert {known_as: span["scores"] for known_as, span in spans.items() if "scores" in span} == {
        "b": [{"name": "helpful", "value": 0.9, "source": "EVAL"}],
        "a": [{"name": "correctness", "value": "right", "source": "ANNOTATION"},
              {"name": "helpful", "value": 0.4, "source": "EVAL"}],
        # The root of this trace is elsewhere.
        "z": [{"name": "helpful", "value": 0.1, "source": "EVAL"}],
    }  # fmt: skip
    assert spans.keys() == {"a", "b", "c", "y", "z", "n"}
    # Those of each trace are read once, whenever people rated it.
    assert [(one["traceId"], one.get("cursor")) for one in store.score_queries] == [
        (["t-1"], None), (["t-1"], ["2"]), (["t-2"], None), (["t-3"], None),
    ]  # fmt: skip
    assert store.score_queries[0] == {"fields": ["subject"], "traceId": ["t-1"], "limit": ["100"]}


def test_annotations_of_phoenix_are_at_their_spans(cli: Cli, store: Store) -> None:
    store.spans = [one for trace in TRACES[:2] for one in spans(trace, ANSWERS[0])]
    root, other = (store.spans[place]["context"]["span_id"] for place in (0, 3))
    result = {"label": "correct", "score": 1.0, "explanation": None}
    annotation = {"id": "x", "name": "correctness", "result": result, "metadata": {},
                  "identifier": "", "source": "APP", "user_id": "u",
                  "created_at": "2026-11-28T10:00:00Z"}  # fmt: skip
    store.scores = [
        {**annotation, "span_id": root, "annotator_kind": "HUMAN"},
        {**annotation, "span_id": root, "name": "helpful", "annotator_kind": "LLM"},
        {**annotation, "span_id": root, "name": "short", "annotator_kind": "CODE"},
        {**annotation, "span_id": other, "annotator_kind": "HUMAN"},
    ]
    assert cli("pull", "t.jsonl", "--from", "phoenix").err == "t.jsonl: 4 spans\n"
    kept = {known_as: span.get("annotations") for known_as, span in pulled().items()}
    kinds = [(one["name"], one["annotator_kind"]) for one in kept[root]]
    assert kinds == [("correctness", "HUMAN"), ("helpful", "LLM"), ("short", "CODE")]
    assert kept[root][0]["result"] == result
    assert [one["annotator_kind"] for one in kept[other]] == ["HUMAN"]
    assert sum(one is None for one in kept.values()) == 2


@pytest.mark.parametrize("where", ["langfuse", "phoenix"])
def test_scores_change_nothing_for_score(cli: Cli, store: Store, where: str) -> None:
    phoenix = [one for trace in TRACES[:2] for one in spans(trace, ANSWERS[0])]
    store.spans = phoenix if where == "phoenix" else [observation("a", None)]
    cli("pull", "before.jsonl", "--from", where)
    result = {"label": "good", "score": 1.0}
    ids = [one["context"]["span_id"] for one in phoenix]
    store.scores = (
        [{"name": "helpful", "result": result, "span_id": one} for one in ids]
        if where == "phoenix"
        else [langfuse_score("helpful", 0.4, "trace", "t-1")]
    )
    cli("pull", "after.jsonl", "--from", where)
    assert Path("before.jsonl").read_text() != Path("after.jsonl").read_text()
    before, after = (
        [one.sample for one in read_samples(name) if isinstance(one, LocatedSample)]
        for name in ("before.jsonl", "after.jsonl")
    )
    fields = ("id", "question", "response", "documents", "model")
    assert len(before) == len(after) > 0
    for one, other in zip(before, after, strict=True):
        assert [getattr(one, name) for name in fields] == [getattr(other, name) for name in fields]


@pytest.mark.parametrize("where", ["langfuse", "phoenix"])
def test_a_list_of_scores_that_is_none_leaves_the_file(cli: Cli, store: Store, where: str) -> None:
    Path("t.jsonl").write_text("before")
    store.spans = spans(TRACES[0], ANSWERS[0])
    listed = store.listed
    secret = KEYS["LANGFUSE_SECRET_KEY"]
    refusal: tuple[int, dict[str, str], str] = (
        401,
        {},
        json.dumps({"message": f"not with {secret}"}),
    )
    store.listed = lambda path: (  # type: ignore[method-assign]
        refusal if "scores" in path or "annotations" in path else listed(path)
    )
    said = cli("pull", "t.jsonl", "--from", where)
    assert said.status == 2
    assert "not with" in said.err
    assert where == "phoenix" or secret not in said.err
    assert Path("t.jsonl").read_text() == "before"


def test_a_key_in_a_score_is_not_written(cli: Cli, store: Store) -> None:
    store.spans = [observation("a", None)]
    secret = KEYS["LANGFUSE_SECRET_KEY"]
    store.scores = [langfuse_score("note", f"key {secret}", "trace", "t-1")]
    assert cli("pull", "t.jsonl", "--from", "langfuse").status == 0
    assert pulled()["a"]["scores"][0]["value"] == "key [key]"


def listing(cursors: Iterator[str], entries: list[Any], asked: list[str]) -> Any:
    """Return a store's ``listed``: each page has these entries, and the next cursor."""

    def listed(path: str) -> tuple[int, dict[str, str], str]:
        asked.append(path)
        is_of_scores = "score" in path or "annotations" in path
        cursor = None if is_of_scores else next(cursors)
        data = [] if is_of_scores else entries
        return (
            200,
            {},
            json.dumps({"data": data, "next_cursor": cursor, "meta": {"cursor": cursor}}),
        )

    return listed


ENDLESS = [
    # The cursors, whether pages are empty, how many pages are read, and what is said of them.
    ((f"c{n}" for n in itertools.count()), True, 10, "does not end: 10 pages were empty"),
    (itertools.repeat("c"), False, 2, "a page leads back to an earlier page"),
    (itertools.cycle("abc"), False, 4, "a page leads back to an earlier page"),
    ((f"d{n}" for n in itertools.count()), False, 7, "more than 7 pages; narrow --since"),
]


@pytest.mark.parametrize("where", ["langfuse", "phoenix"])
@pytest.mark.parametrize(("cursors", "is_empty", "pages", "message"), ENDLESS)
def test_a_list_without_an_end_is_given_up_and_what_was_read_is_kept(
    cli: Cli,
    store: Store,
    where: str,
    cursors: Iterator[str],
    is_empty: bool,
    pages: int,
    message: str,
) -> None:
    Path("t.jsonl").write_text("before")
    asked: list[str] = []
    entries = spans(TRACES[0], ANSWERS[0]) if where == "phoenix" else [observation("a", None)]
    store.listed = listing(cursors, [] if is_empty else entries, asked)  # type: ignore[method-assign]
    most = ("--max-pages", "7") if "7" in message else ()
    output = cli("pull", "t.jsonl", "--from", where, *most)
    lists = [one for one in asked if "scores" not in one and "span_annotations" not in one]
    assert (output.status, len(lists)) == (2, pages)
    assert message in output.err
    assert Path("t.jsonl").read_text() == "before"
    partial = Path("t.jsonl.partial")
    assert partial.exists() != is_empty
    if not is_empty:
        count = pages * len(entries)
        assert len(partial.read_text().splitlines()) == count
        assert f"{count} spans read before that: t.jsonl.partial" in output.err


def test_observations_that_wait_for_their_root_are_kept(cli: Cli, store: Store) -> None:
    waiting = [observation("b", "a")]
    store.listed = listing(itertools.repeat("c"), waiting, [])  # type: ignore[method-assign]
    listed = store.listed
    store.scores = [langfuse_score("helpful", 0.4, "trace", "t-1")]
    page = json.dumps({"data": store.scores})
    store.listed = lambda path: (200, {}, page) if "scores" in path else listed(path)  # type: ignore[method-assign]
    assert cli("pull", "t.jsonl", "--from", "langfuse").status == 2
    lines = Path("t.jsonl.partial").read_text().splitlines()
    assert len(lines) == 2
    assert any("helpful" in line for line in lines)


@pytest.mark.parametrize("where", ["langfuse", "phoenix"])
@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_named_by_its_variable(
    cli: Cli, store: Store, where: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
    if where == "phoenix":
        variables = "PHOENIX_API_KEY"
        monkeypatch.setenv(variables, "px-0123456789")
    store.listed = lambda path: (status, {}, '{"message": "no"}')  # type: ignore[method-assign]
    output = cli("pull", "t.jsonl", "--from", where)
    assert output.status == 2
    assert f"{status}: no (it rejects the key in {variables})" in output.err
    assert not Path("t.jsonl.partial").exists()
    if where == "phoenix":
        monkeypatch.delenv(variables)
        output = cli("pull", "t.jsonl", "--from", where)
        assert f"{status}: no (no key: PHOENIX_API_KEY is not set)" in output.err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://h/api?token=SECRET", "expected an address without ? and #, got http://h..."),
        ("http://h/#SECRET", "expected an address without #, got http://h..."),
        ("http://me:SECRET@h", "the address contains a password"),
        ("SECRET", "got a text without ://"),
        ("http://h:x/SECRET", "got http://h..."),
    ],
)
def test_an_address_of_a_store_is_checked_and_not_repeated(
    cli: Cli, run: Path, store: Store, monkeypatch: pytest.MonkeyPatch, url: str, message: str
) -> None:
    for where, variable in (
        ("langfuse", "LANGFUSE_BASE_URL"),
        ("phoenix", "PHOENIX_COLLECTOR_ENDPOINT"),
    ):
        monkeypatch.setenv(variable, url)
        for arguments, name in (
            (("pull", "t.jsonl", "--from", where, "--url", url), "--url"),
            (("pull", "t.jsonl", "--from", where), variable),
            (("push", run, "--to", where), variable),
        ):
            output = cli(*arguments)
            assert output.status == 2
            assert f"trustassay: {name}: " in output.err
            assert message in output.err
            assert "SECRET" not in output.err
    output = cli("push", run, "--to", "phoenix", "--url", store.url, "--report-url", "SECRET@h")
    assert (output.status, "--report-url: expected an address" in output.err) == (2, True)
    assert "SECRET" not in output.err


def test_odd_entries_of_a_store_do_no_harm(cli: Cli, store: Store) -> None:
    odd = {"id": "a", "traceId": None, "scores": "none", "startTime": 3}
    store.spans = [odd, {"parentObservationId": "q", "traceId": "t-1"}]
    store.scores = [
        {"name": "x", "value": 1, "subject": None},
        {"name": "x", "value": 1, "subject": {"kind": "trace", "id": "t-1"}},
        {"subject": {"kind": ["trace"], "id": {}}},
    ]
    assert cli("pull", "t.jsonl", "--from", "langfuse").err == "t.jsonl: 2 spans\n"
    lines = Path("t.jsonl").read_text().splitlines()
    assert ["scores" in json.loads(line) for line in lines] == [False, True]


@pytest.mark.parametrize("where", ["langfuse", "phoenix"])
def test_a_pulled_file_is_calibrated(cli: Cli, store: Store, where: str) -> None:
    for number in range(100):
        trace, value = f"{number:032x}", number / 100
        person = "right" if number >= 30 else "wrong"
        if where == "phoenix":
            store.spans += spans(trace, ANSWERS[0])
            at = {"span_id": store.spans[-2]["context"]["span_id"]}
            judge = {"name": "helpful", "annotator_kind": "LLM", "result": {"score": value}}
            store.scores.append(judge | at)
            label = {"name": "correct", "annotator_kind": "HUMAN", "result": {"label": person}}
            store.scores.append(label | at)
        else:
            store.spans.append(observation(f"o-{number}", None, trace))
            store.scores.append(langfuse_score("helpful", value, "trace", trace))
            store.scores.append(langfuse_score("correct", person, "trace", trace, "ANNOTATION"))
    cli("pull", "t.jsonl", "--from", where)
    result = calibrate("t.jsonl", score="helpful", label="correct", at_most=0.2, group="none")
    assert (len(result.scores), result.wrong.sum()) == (100, 30)
    assert result.above == pytest.approx(0.29, abs=0.15)

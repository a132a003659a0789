"""The proxy as OpenAI's own client sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lazily import needed
from tests.live.chats import BAD, GOOD, MESSAGES, PASSAGE, Serving
from tests.live.upstream import DONE, Upstream, chunk, chunks, says, sends, streams

openai = needed("openai")
needed("prometheus_client")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream(says(GOOD)) as found:
        yield found


@pytest.fixture(scope="module")
def client(upstream: Upstream) -> Iterator[Any]:
    with Serving(["--upstream", upstream.url]) as service:
        yield openai.OpenAI(base_url=f"{service.url}/v1", api_key="sk-client", max_retries=0)


@pytest.fixture(scope="module")
def blocking(upstream: Upstream) -> Iterator[Any]:
    options = ["--upstream", upstream.url, "--block-below", "faithfulness=0.5"]
    with Serving([*options, "--block-message", "I am not sure."]) as service:
        yield openai.OpenAI(base_url=f"{service.url}/v1", api_key="sk-client", max_retries=0)


def asked(**others: Any) -> dict[str, Any]:
    documents = {"documents": [PASSAGE]}
    return {"model": "m", "messages": MESSAGES, "extra_body": documents, **others}


def score(told: Any) -> float:
    return float(told["verdicts"][0]["metrics"]["faithfulness"]["score"])


def test_a_completion(client: Any, upstream: Upstream) -> None:
    upstream.answer = says(GOOD)
    found = client.chat.completions.create(**asked())
    assert found.choices[0].message.content == GOOD
    assert score(found.trustassay) == 1
    assert upstream.asked[-1].header("authorization") == "Bearer sk-client"
    raw = client.chat.completions.with_raw_response.create(**asked())
    assert raw.headers["x-trustassay-scores"] == "faithfulness=1"


@pytest.mark.parametrize(
    "given",
    [
        chunks(GOOD[:20], GOOD[20:]),
        chunks(GOOD[:20], GOOD[20:], usage=True),
        [chunk({"role": "assistant", "content": GOOD}, finish="stop"), DONE],
    ],
)
@pytest.mark.parametrize("which", ["client", "blocking"])
def test_a_stream(
    given: list[bytes], which: str, request: pytest.FixtureRequest, upstream: Upstream
) -> None:
    upstream.answer = streams(given)
    client = request.getfixturevalue(which)
    found = list(client.chat.completions.create(**asked(stream=True)))
    words = [one.choices[0].delta.content or "" for one in found if one.choices]
    assert "".join(words) == GOOD
    assert [one for one in found if hasattr(one, "trustassay")] == found[-1:]
    assert score(found[-1].trustassay) == 1


@pytest.mark.parametrize("usage", [False, True])
def test_the_helper_for_streams(usage: bool, client: Any, upstream: Upstream) -> None:
    upstream.answer = streams(chunks(GOOD[:20], GOOD[20:], usage=usage))
    with client.chat.completions.stream(**asked()) as stream:
        kinds = [event.type for event in stream]
        whole = stream.get_final_completion()
    assert kinds.count("content.done") == 1
    assert whole.choices[0].message.content == GOOD
    assert whole.choices[0].finish_reason == "stop"
    assert (whole.usage is not None) is usage


def test_withheld_answers(blocking: Any, upstream: Upstream) -> None:
    upstream.answer = says(BAD)
    found = blocking.chat.completions.create(**asked())
    assert found.choices[0].message.content == "I am not sure."
    assert found.choices[0].finish_reason == "content_filter"
    upstream.answer = streams(chunks(BAD[:20], BAD[20:]))
    helper = blocking.chat.completions.stream(**asked())
    with pytest.raises(openai.ContentFilterFinishReasonError) as told, helper as stream:
        stream.get_final_completion()
    assert told.value.completion.choices[0].message.content == "I am not sure."


def test_errors_are_the_clients_own(client: Any, upstream: Upstream) -> None:
    upstream.answer = sends(b'{"error": {"message": "wrong key"}}', 401)
    with pytest.raises(openai.AuthenticationError, match="wrong key"):
        client.chat.completions.create(**asked())
    with pytest.raises(openai.BadRequestError, match="documents"):
        client.chat.completions.create(**asked(extra_body={"documents": 7}))
    upstream.answer = streams([chunk({"content": "The"}), b'data: {"error": {"message": "X"}}\n\n'])
    with pytest.raises(openai.APIError, match="X"):
        list(client.chat.completions.create(**asked(stream=True)))
    upstream.answer = sends(b"", 302, location="http://127.0.0.1:1/")
    with pytest.raises(openai.InternalServerError, match="not followed"):
        client.chat.completions.create(**asked())

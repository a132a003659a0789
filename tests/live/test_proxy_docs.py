"""The example of docs/live/proxy.md, run as it stands there but for the address."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator

import pytest

from tests.docs.pages import DOCS, blocks
from tests.lazily import needed
from tests.live.chats import Serving
from tests.live.upstream import Asked, Upstream, Write, chunks, says, streams

needed("openai")
needed("prometheus_client")
pytestmark = pytest.mark.slow
PAGE = DOCS / "live/proxy.md"
ADDRESS = "http://127.0.0.1:8770"
ANSWER = "The stone bridge was opened in 1911. It is made of steel."


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    async def answer(asked: Asked, write: Write) -> None:
        streamed = streams(chunks(ANSWER[:20], ANSWER[20:]))
        await (streamed if asked.json.get("stream") else says(ANSWER))(asked, write)

    with Upstream(answer) as upstream, Serving(["--upstream", upstream.url]) as found:
        yield found


def test_the_example_prints_what_the_page_says(
    service: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-example")
    found = blocks(PAGE.read_text(encoding="utf-8"))
    (code,) = [one for one in found if one.language == "python"]
    (printed,) = [one for one in found if one.language == "text"]
    assert ADDRESS in code.body
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(code.body.replace(ADDRESS, service.url), "page", "exec"), {})
    assert shown.getvalue() == printed.body


def test_the_settings_for_clients_can_be_read() -> None:
    import yaml

    found = {one.language: one.body for one in blocks(PAGE.read_text(encoding="utf-8"))}
    settings = yaml.safe_load(found["yaml"])
    (guardrail,) = settings["guardrails"]
    assert guardrail["litellm_params"]["mode"] == ["pre_call", "post_call"]
    # Without it LiteLLM asks nobody for a key.
    assert settings["general_settings"] == {"master_key": "os.environ/LITELLM_MASTER_KEY"}
    assert json.loads(found["json"])["mcpServers"]["trustassay"]["args"][0] == "mcp"

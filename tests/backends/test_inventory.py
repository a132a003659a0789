"""What ``trustassay models`` says of backends, and one round trip to each that is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.llm_server import LlmServer
from trustassay.backends import inventory
from trustassay.backends.inventory import try_backend
from trustassay.cli.main import app
from trustassay.errors import UnknownNameError

KEY = "sk-geheim-0123456789"
MODULE = """
def judge(premise, hypothesis, threshold=0.5):
    return True

async def write(prompt):
    return "yes"

def fails(prompt):
    raise KeyError("x")

class Own:
    name = "own"
    def vectors(self, texts):
        import numpy
        return numpy.ones((len(texts), 4))

own = Own()
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tried_backends.py").write_text(MODULE)
    (tmp_path / "replies.jsonl").write_text('{"prompt": "a", "reply": "b"}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")


@pytest.mark.parametrize(
    ("uri", "capability", "state"),
    [
        ("lexical", "entailment", "works"),
        ("python:tried_backends:judge", "entailment", "works"),
        ("python:tried_backends:write", "chat", "works"),
        ("python:tried_backends:own", "embedding", "works, 4 dimensions"),
        ("replay:replies.jsonl", "chat", "works"),
    ],
)
def test_what_works(uri: str, capability: str, state: str) -> None:
    found = try_backend(uri)
    assert (found.name, found.capability, found.state) == (uri, capability, state)
    assert found.load.endswith(" s") and not found.broken
    assert found.speed.endswith(" s per call") != uri.startswith("replay")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("python:tried_backends:fails", "tried_backends:fails failed: KeyError: 'x'"),
        ("entailer=python:tried_backends:write", "got a coroutine function"),
        ("entailer=python:tried_backends:fails", "TypeError"),
        ("embedder=python:tried_backends:judge", "TypeError"),
        ("python:tried_backends:nothing", "unknown name in tried_backends"),
        ("replay:none.jsonl", "No such file"),
        ("hf:./none", "there is no such folder"),
        ("openai:m@http://127.0.0.1:9", "no connection"),
    ],
)
def test_what_does_not(uri: str, words: str) -> None:
    if uri.startswith("hf:"):
        pytest.importorskip("transformers")
    found = try_backend(uri)
    assert found.broken and words in found.state


@pytest.mark.parametrize("uri", ["", "opnai:m", "lexical:x", "openai:m?x=1"])
def test_names_that_nothing_answers_to(uri: str) -> None:
    with pytest.raises(UnknownNameError):
        try_backend(uri)


def test_endpoints_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    with LlmServer(require_key=KEY) as server:
        uris = [
            f"openai:m@{server.base_url}",
            f"embedder=openai:m@{server.base_url}",
            f"anthropic:m@{server.root}",
            f"gemini:m@{server.root}",
        ]
        found = [try_backend(uri) for uri in uris]
        assert [f.state for f in found] == [
            "works", "works, 32 dimensions", "works", "works",
        ]  # fmt: skip
        assert server.stats()["answered"] == 4
        server.change(refuse="max_tokens,max_completion_tokens")
        assert try_backend(uris[0]).state == "works, does not accept max_tokens"


@pytest.mark.slow
def test_local_models_are_what_they_can_do(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.tiny_chat import save_llama
    from tests.tiny_models import train_nli

    assert try_backend(f"hf:{save_llama(tmp_path / 'chat')}").capability == "chat"
    assert (
        try_backend(f"hf:{train_nli(tmp_path / 'nli', steps=0)}?check=no").capability
        == "entailment"
    )


# ------------------------------------------------------------------------------------ the command


def models(*words: str) -> Any:
    return CliRunner().invoke(app, ["models", *words])


def test_keys_are_told_as_set_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway/v1")
    result = models()
    assert result.exit_code == 0
    for words in (
        "OPENAI_API_KEY is set; base URL http://gateway/v1",
        "ANTHROPIC_API_KEY is not set",
        "GOOGLE_API_KEY is set",
        "yes, without a key",
        "replay:FILE",
    ):
        assert words in result.output
    assert KEY not in result.output


def test_an_address_with_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_BASE_URL", "https://me:geheim@host")
    found = [f for f in inventory.iterate_backends(check=False) if f.name == "gemini:MODEL"]
    assert found[0].broken and "geheim" not in found[0].state


def test_named_ones_alone_are_tried() -> None:
    result = models("python:tried_backends:write", "lexical")
    assert result.exit_code == 0
    assert "works" in result.output and "replay:FILE" not in result.output
    result = models("lexical", "python:tried_backends:fails")
    assert result.exit_code == 1
    assert (
        "broken" in result.output
        and "1 backend failed; the column `available` says why" in result.output
    )
    assert models("opnai:x").exit_code == 2

"""A guard that fails tests that use the network, and an index with engines over it.

The package of this tree is tested. Without llama-index-core each test module skips itself.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Appended, not inserted: `llama_index` is a namespace package, whose parts may lie in several
# places.
sys.path.append(str(Path(__file__).parents[1]))


@pytest.fixture(autouse=True)
def no_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Any]]:
    """Refuse every connection beyond this machine, and fail the test that wanted one."""
    wanted: list[Any] = []
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        # Unix sockets, as of event loops, are no network.
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
        ):
            wanted.append(address)
            raise OSError("no network in tests")
        connect(self, address)

    def resolve(host: Any, *positional: Any, **options: Any) -> Any:
        # Looking up a name is already a request to the network.
        if host in ("localhost", "127.0.0.1", None):
            return original_resolve(host, *positional, **options)
        wanted.append(host)
        raise OSError("no network in tests")

    original_resolve = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("TRUSTASSAY_CACHE", str(tmp_path_factory.mktemp("cache")))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    yield wanted
    # Also if the code under test has swallowed the error.
    assert wanted == []


@pytest.fixture(autouse=True)
def settings_untouched() -> Iterator[None]:
    """Leave ``Settings.llm`` as nobody set it."""
    yield
    if core := sys.modules.get("llama_index.core"):
        # The public property would load a default LLM.
        core.Settings._llm = None


@pytest.fixture
def index() -> Any:
    """Three passages with titles in an index in memory."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode
    from llama_models import PASSAGES, WordVectors

    nodes = [TextNode(text=text, metadata={"title": title}) for title, text in PASSAGES.items()]
    return VectorStoreIndex(nodes, embed_model=WordVectors())


@pytest.fixture
def engine(index: Any) -> Callable[..., Any]:
    """Make an engine that finds two passages and replies as a function of the prompt says."""
    from llama_index.core.query_engine import CitationQueryEngine
    from llama_models import Scripted

    def make(script: Callable[[str], str], **options: Any) -> Any:
        llm = Scripted(script=script)
        return CitationQueryEngine.from_args(index, llm=llm, similarity_top_k=2, **options)

    return make

"""Convert responses of LlamaIndex engines to records that trustassay reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

__all__ = ["documents_of", "documents_of_texts", "question_of", "response_text"]

TITLES = ("title", "document_title", "file_name")
"""Fields of a node's metadata with its title; the first one present counts."""
_SOURCE = re.compile(r"Source (\d+):\n")
"""What a CitationQueryEngine puts before the text of its node number i, which is cited ``[i]``."""


def documents_of(nodes: Sequence[NodeWithScore]) -> list[dict[str, str]]:
    """Return the documents of source nodes; the one at position i is cited as ``[i + 1]``."""
    texts = _strip_source_labels(
        [scored_node.node.get_content(MetadataMode.NONE) for scored_node in nodes]
    )
    return [
        _build_document(scored_node.node, text)
        for scored_node, text in zip(nodes, texts, strict=True)
    ]


def documents_of_texts(contexts: Sequence[str]) -> list[dict[str, str]]:
    """Return the documents of texts, in their order."""
    return [{"text": text} for text in _strip_source_labels(list(contexts))]


def question_of(query: str | QueryBundle | None) -> str | None:
    """Return the text of a query."""
    return query.query_str if isinstance(query, QueryBundle) else query


async def response_text(response: Any) -> tuple[str | None, list[NodeWithScore]]:
    """Return the text and the source nodes of what an engine returned; a stream is read."""
    # Reading a stream exhausts it, so this is only for responses that the caller passed on.
    if isinstance(response, StreamingResponse):
        response = response.get_response()
    elif isinstance(response, AsyncStreamingResponse):
        response = await response.get_response()
    if isinstance(response, PydanticResponse):
        return str(response), response.source_nodes
    if isinstance(response, Response):
        return response.response, response.source_nodes
    raise TypeError(f"response: expected what a query engine returns, got {type(response)!r}")


def _build_document(node: BaseNode, text: str) -> dict[str, str]:
    title = next((str(node.metadata[name]) for name in TITLES if node.metadata.get(name)), "")
    # A passage without a title has no such key, as in a record of trustassay.
    return {"id": node.node_id, "text": text, **({"title": title} if title else {})}


def _strip_source_labels(texts: list[str]) -> list[str]:
    """Return the texts without ``Source i:``, if all have it and are numbered from one."""
    parts = [
        (text.removesuffix("\n"), _SOURCE.match(text), number)
        for number, text in enumerate(texts, 1)
    ]
    # All or none: a text of a log may begin with "Source 2:" by itself.
    numbered = [text[match.end() :] for text, match, i in parts if match and int(match[1]) == i]
    return numbered if len(numbered) == len(texts) else texts

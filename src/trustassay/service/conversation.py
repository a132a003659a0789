"""What a chat asks, and the passages that came with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from trustassay.data.conversations import spoken_by

__all__ = ["DOCUMENT_ROLES", "answer_of", "conversation_record"]

DOCUMENT_ROLES: Mapping[str, frozenset[str]] = {
    "tool": frozenset({"tool", "function"}),
    "system": frozenset({"system", "developer"}),
}
"""Whose messages may be passages, by the name of an option, and the roles that it stands for."""


def conversation_record(
    messages: Any, documents: Any, documents_in: Collection[str], model: Any = None
) -> dict[str, Any]:
    """Return the record of a chat without its answer, in canonical fields.

    The question is the last text of the user. ``documents`` that were sent as such come first;
    then each message of the roles named by ``documents_in`` is one passage. A field is absent
    where there is nothing for it.
    """
    said = [one for one in messages if isinstance(one, Mapping)] if _is_list(messages) else []
    found: dict[str, Any] = {}
    if question := spoken_by(said, "user"):
        found["question"] = question
    roles = {role for name in documents_in for role in DOCUMENT_ROLES[name]}
    passages = [spoken_by([one], "system", "tool") for one in said if str(one.get("role")) in roles]
    given = [documents] if isinstance(documents, str) else documents
    all_of_them = [*(given or ()), *filter(None, passages)]
    if all_of_them or given is not None:
        found["documents"] = all_of_them
    if isinstance(model, str) and model:
        found["model"] = model
    return found


def answer_of(message: Any) -> str | None:
    """Return the text of an answer's message, or its refusal; ``None`` for a call of tools."""
    if not isinstance(message, Mapping):
        return None
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    if _is_list(content) and (text := spoken_by([{**message, "role": "assistant"}], "assistant")):
        return text
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) and refusal else None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)

"""What ``/openapi.json`` says of the proxy and the guardrail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trustassay.service.described import TEXT, errors, json_content, response, schema

__all__ = ["GUARDRAIL_PATHS", "GUARDRAIL_SCHEMAS", "PROXY_PATHS"]

Json = Mapping[str, Any]

_FROM_UPSTREAM: Json = {
    "default": response("What the upstream replied, with its status."),
    "502": response("The upstream gave no completion.", json_content(schema("Error"))),
    "504": response("The upstream was too slow.", json_content(schema("Error"))),
}
PROXY_PATHS: Json = {
    "/v1/chat/completions": {
        "post": {
            "operationId": "chat",
            "summary": "Pass a chat on to the upstream, and add verdicts to its answers.",
            "description": "As in OpenAI's API; `documents` are the passages, and not passed on.",
            "requestBody": {
                "required": True,
                "content": json_content(
                    {
                        "type": "object",
                        "properties": {
                            "messages": {"type": "array", "items": {"type": "object"}},
                            "documents": {"type": ["array", "string", "null"]},
                        },
                    }
                ),
            },
            "responses": {
                **errors(400, 408, 413, 415, 503),
                **_FROM_UPSTREAM,
                "200": response(
                    "A completion, or a stream of chunks, with the field `trustassay`.",
                    {**json_content({"type": "object"}), "text/event-stream": {"schema": TEXT}},
                ),
            },
        }
    },
    "/v1/models": {
        "get": {
            "operationId": "models",
            "summary": "The upstream's list of models.",
            "responses": {**errors(), **_FROM_UPSTREAM},
        }
    },
}
GUARDRAIL_PATHS: Json = {
    "/beta/litellm_basic_guardrail_api": {
        "post": {
            "operationId": "guardrail",
            "summary": "LiteLLM's generic guardrail API: a conversation, then its answer.",
            "requestBody": {"required": True, "content": json_content(schema("GuardrailRequest"))},
            "responses": {
                **errors(400, 408, 413, 415, 422, 503),
                "200": response("The decision.", json_content(schema("GuardrailDecision"))),
            },
        }
    }
}
GUARDRAIL_SCHEMAS: Json = {
    "GuardrailRequest": {
        "type": "object",
        "required": ["input_type"],
        "properties": {
            "input_type": {"enum": ["request", "response"]},
            "litellm_call_id": {"type": ["string", "null"], "minLength": 1},
            "texts": {"type": ["array", "null"], "items": TEXT},
            "structured_messages": {"type": ["array", "null"], "items": {"type": "object"}},
            "additional_provider_specific_params": {
                "type": ["object", "null"],
                "properties": {"documents": {"type": ["array", "string", "null"]}},
            },
        },
    },
    "GuardrailDecision": {
        "type": "object",
        "required": ["action"],
        "properties": {
            "action": {"enum": ["NONE", "BLOCKED"]},
            "blocked_reason": TEXT,
            "trustassay": {
                "type": "object",
                "properties": {"verdicts": {"type": "array", "items": {"type": "object"}}},
            },
        },
    },
}

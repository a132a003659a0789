"""The service in OpenAPI 3.1: what ``/openapi.json`` says."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

__all__ = [
    "HEALTH_PATHS",
    "METRICS_PATHS",
    "SCORE_PATHS",
    "SCORE_SCHEMAS",
    "errors",
    "openapi",
    "schema",
]

Json = Mapping[str, Any]

TEXT: Json = {"type": "string"}


def schema(name: str) -> Json:
    """Return the reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def json_content(of: Json) -> Json:
    """Return the content of a body of JSON."""
    return {"application/json": {"schema": of}}


def response(description: str, content: Json | None = None, **headers: Json) -> Json:
    """Return a response."""
    found: dict[str, Any] = {"description": description}
    if content:
        found["content"] = content
    if headers:
        named = {name.replace("_", "-"): said for name, said in headers.items()}
        found["headers"] = named
    return found


RETRY_AFTER: Json = {
    "description": "Seconds after which to send it again.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}
SAID: Mapping[int, str] = {
    400: "The body is not JSON, or is nested too deeply; or the request is not HTTP.",
    401: "The token is missing or wrong.",
    408: "The request came too slowly.",
    413: "The body is too large, or holds too many samples.",
    415: "The body is of another type.",
    421: "The Host header names another machine.",
    422: "A sample cannot be scored; nothing was accepted.",
    429: "Too many samples are in progress, or too many requests came; nothing was accepted.",
    500: "The service failed.",
    503: "The service is closing; nothing was accepted.",
}


def errors(*statuses: int) -> dict[str, Any]:
    """Return the responses of errors, with those that any request may get."""
    found: dict[str, Any] = {}
    for status in sorted({401, 421, 429, 500, *statuses}):
        headers = {"Retry_After": RETRY_AFTER} if status in (429, 503) else {}
        found[str(status)] = response(SAID[status], json_content(schema("Error")), **headers)
    return found


HEALTH_PATHS: Json = {
    "/health": {
        "get": {
            "operationId": "health",
            "summary": "Whether the service takes requests; needs no token.",
            "security": [],
            "responses": {
                **errors(),
                "200": response("It is ready.", json_content(schema("Health"))),
                "503": response("It is closing.", json_content(schema("Health"))),
            },
        }
    },
    "/openapi.json": {
        "get": {
            "operationId": "openapi",
            "summary": "This document.",
            "responses": {
                **errors(),
                "200": response("The document.", json_content({"type": "object"})),
            },
        }
    },
}
METRICS_PATHS: Json = {
    "/metrics": {
        "get": {
            "operationId": "metrics",
            "summary": "Counts and times in the text format of Prometheus.",
            "responses": {
                **errors(),
                "200": response("The metrics.", {"text/plain": {"schema": TEXT}}),
            },
        }
    }
}
SCORE_PATHS: Json = {
    "/v1/score": {
        "post": {
            "operationId": "score",
            "summary": "Score one sample, or many.",
            "description": (
                "An object is one sample, a list or JSON Lines are many, whose answers are "
                "streamed as they are finished. Either all samples of a request are accepted, or "
                "none. Besides the fields of Sample any layout that `trustassay score` reads."
            ),
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {
                        "schema": {
                            "oneOf": [
                                schema("Sample"),
                                {"type": "array", "items": schema("Sample"), "minItems": 1},
                            ]
                        }
                    },
                    "application/x-ndjson": {"schema": TEXT},
                },
            },
            "responses": {
                **errors(400, 408, 413, 415, 422, 503),
                "200": response(
                    "One sample: its result. Many: a line of JSON for each, as it is finished.",
                    {
                        **json_content(schema("Result")),
                        "application/x-ndjson": {"schema": TEXT, "x-line": schema("Line")},
                    },
                ),
            },
        }
    }
}
SCORE_SCHEMAS: Json = {
    "Document": {
        "type": "object",
        "required": ["text"],
        "properties": {
            "id": {},
            "title": {"type": ["string", "null"]},
            "text": TEXT,
        },
    },
    "Sample": {
        "type": "object",
        "required": ["question", "response", "documents"],
        "properties": {
            "id": {
                "type": ["string", "integer", "null"],
                "pattern": r"\S",
                "description": "Made from the content if it is missing.",
            },
            "question": {"type": "string", "pattern": r"\S"},
            "response": {"type": "string", "description": "The answer to score."},
            "documents": {
                "type": ["array", "string", "null"],
                "items": {"anyOf": [TEXT, schema("Document"), {"type": "null"}]},
                "description": "The passages that the answer was made from, or the only one.",
            },
            "model": {"type": ["string", "null"], "description": "Who wrote the answer."},
        },
        "examples": [
            {
                "id": "q1",
                "question": "When was the bridge opened?",
                "response": "The stone bridge was opened in 1911.",
                "documents": ["The stone bridge over the river was opened in 1911."],
            }
        ],
    },
    "Found": {
        "type": "object",
        "description": "What one metric finds.",
        "required": ["score", "verdict", "problem", "reason", "parts", "error"],
        "properties": {
            "score": {"type": ["number", "null"]},
            "verdict": {"type": ["string", "null"]},
            "problem": {
                "type": ["string", "null"],
                "description": "Why a reader should look at the answer; null if nothing is wrong.",
            },
            "reason": {"type": "string", "description": "Why it has its verdict, in a sentence."},
            "parts": {
                "type": "object",
                "additionalProperties": {"type": "number"},
                "description": "The numbers that the score is made of.",
            },
            "error": {
                "type": ["string", "null"],
                "description": "Why there is no score, if the metric failed.",
            },
        },
    },
    "Result": {
        "type": "object",
        "required": ["id", "needs_look", "metrics"],
        "properties": {
            "id": TEXT,
            "needs_look": {
                "type": "boolean",
                "description": "Whether a metric names a problem in the answer, or failed.",
            },
            "metrics": {"type": "object", "additionalProperties": schema("Found")},
        },
    },
    "Line": {
        "description": "A result with the index that its sample had, or why there is none.",
        "type": "object",
        "required": ["index", "id"],
        "properties": {"index": {"type": "integer", "minimum": 0}, "id": TEXT},
        "anyOf": [schema("Result"), schema("Error")],
    },
}
COMMON_SCHEMAS: Json = {
    "Health": {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"enum": ["ready", "closing"]}},
    },
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["type", "message"],
                "properties": {
                    "type": TEXT,
                    "message": TEXT,
                    "problems": {
                        "type": "array",
                        "description": "Every fault, with its field; of many samples the index.",
                        "items": {
                            "type": "object",
                            "required": ["field", "message"],
                            "properties": {
                                "index": {"type": "integer", "minimum": 0},
                                "field": TEXT,
                                "message": TEXT,
                            },
                        },
                    },
                },
            }
        },
    },
}


def openapi(paths: Json, schemas: Json, *, asks_token: bool) -> dict[str, Any]:
    """Return the document of a service with these paths and schemas."""
    components: dict[str, Any] = {"schemas": {**COMMON_SCHEMAS, **schemas}}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "trustassay",
            "version": version("trustassay"),
            "description": "How far answers of language models can be trusted.",
        },
        "paths": dict(paths),
        "components": components,
    }
    if asks_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document

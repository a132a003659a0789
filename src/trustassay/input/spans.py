"""Reads the spans of traces, whatever exporter wrote them.

``[spans]`` in ``names.toml`` says where exporters write the parts of a span: its parent, kind,
input, output and so on.
"""

from collections.abc import Mapping
from typing import Any

from trustassay.core.sample import clean
from trustassay.input.layouts import NAMES, normalise_name
from trustassay.input.records import decode_json

MODEL, TOOL, RETRIEVAL, HELPER = "model", "tool", "retrieval", "helper"
"""Kinds of spans; the others are agents and chains, and those without a known kind."""
MAX_ATTRIBUTE_DEPTH = 32
"""Levels of attributes that are read."""
_PLACES: Mapping[str, Any] = NAMES["spans"]
_KINDS = {word: kind for kind, words in _PLACES["kinds"].items() for word in words.split()}


class TraceSpan:
    """One span, whatever exporter wrote it.

    Its ``kind`` is ``model``, ``tool``, ``retrieval``, ``helper``, ``other``, or empty where it is
    unknown.
    """

    def __init__(self, raw: Mapping[str, Any], within: "TraceSpan | None") -> None:
        """
        Args:
            raw: the span as it was read.
            within: the span in whose object it was written, if any; this is its parent.
        """
        self.raw, self.inside_of = raw, within
        self._fields = {normalise_name(str(key)): value for key, value in raw.items()}
        self.within = within.id if within else ""
        self._fields["within"] = self.within or None
        # LangSmith's "session_id" is the project, and no conversation.
        if "run_type" in raw:
            self._fields.pop("session_id", None)
        self._attributes = _nest_attributes(_read_attributes(raw))
        self.trace: str = within.trace if within else self.text("trace")
        self.id: str = self.text("id")
        self.parent, self.name = map(self.text, ("parent", "name"))
        # Some exporters write a parent of zeros for a root.
        self.parent = self.parent if self.parent.strip("0") else ""
        self.kind = _KINDS.get(self.text("kind").lower(), "")
        self.input, self.input_field = self.find("input")
        self.output, self.output_field = self.find("output")
        # The input of a traced Python function: its first positional argument counts.
        if isinstance(self.input, Mapping) and isinstance(self.input.get("args"), list):
            self.input = [*self.input["args"], self.input.get("kwargs")][0]
        # A record of an evaluation tool that looks like a span and may be a sample by itself.
        self.is_row = bool({"inputs", "input"} & raw.keys()) and "attributes" not in raw
        self.start, self.end, self.error = map(self.text, ("start", "end", "error"))
        # The exporter writes an end, but this span has none: its process was cut off.
        self.cut = not self.end and any(place[1:] in self._fields for place in _PLACES["end"])

    def find(self, what: str) -> tuple[Any, str]:
        """Return the first value of a part of the span, by ``names.toml``, and its field."""
        for place in _PLACES[what]:
            # A path with a dot in front is a field of the span, any other one is an attribute.
            value: Any = self._fields if place.startswith(".") else self._attributes
            for name in place.removeprefix(".").split("."):
                value = value.get(name) if isinstance(value, Mapping) else None
            value = decode_json(value.get("", value) if isinstance(value, Mapping) else value)
            if value not in (None, "", [], {}):
                return value, place.removeprefix(".")
        return None, ""

    def text(self, what: str) -> str:
        """Return a part of the span as a text in one line; empty where it is missing."""
        value = self.find(what)[0]
        return clean(" ".join(str(value).split())) if isinstance(value, str | int | float) else ""

    def has_name(self, name: str) -> bool:
        """Whether a user may call the span so: by its own name, or that of its tool or agent."""
        return name in (self.name, self._fields.get("name"))


def _read_attributes(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span by their full names, including those in its events."""
    result = read_pairs(raw.get("attributes"))
    result |= {k[11:]: v for k, v in raw.items() if k.startswith("attributes.")}
    for event in keep_mappings(raw.get("events")):
        name, event_attributes = str(event.get("name")), read_pairs(event.get("attributes"))
        # "gen_ai.user.message" is a message of the user; older OpenTelemetry wrote each message as
        # an event.
        role = "assistant" if name == "gen_ai.choice" else name[7:].removesuffix(".message")
        if name == "gen_ai.choice" or (name.startswith("gen_ai.") and name.endswith(".message")):
            content = decode_json(
                event_attributes.get(
                    "gen_ai.event.content", event_attributes.get("message", event_attributes)
                )
            )
            message = content if isinstance(content, Mapping) else {"content": content}
            place = f"gen_ai.{'output' if name == 'gen_ai.choice' else 'input'}.messages"
            message = {"role": role, **message.get("message", message)}
            message["content"] = decode_json(message.get("content"))
            result.setdefault(place, []).append(message)
        else:
            result |= {k: v for k, v in event_attributes.items() if k.startswith("gen_ai.")}
    return result


def read_pairs(attributes: Any, levels_left: int = MAX_ATTRIBUTE_DEPTH) -> dict[str, Any]:
    """Return attributes by name; OTLP writes a list of keys with typed values."""
    if isinstance(attributes, list):
        return {
            str(pair.get("key")): unwrap_typed_value(pair.get("value"), levels_left)
            for pair in keep_mappings(attributes)
        }
    return dict(attributes) if isinstance(attributes, Mapping) else {}


def unwrap_typed_value(value: Any, levels_left: int) -> Any:
    """Return a value without the name of its type, ``{"stringValue": ...}``, also in lists."""
    # Some write all types, and null in those that the value has not.
    values = value.values() if isinstance(value, Mapping) else (value,)
    inside = next((inner for inner in values if inner is not None), None)
    parts = (
        keep_mappings(inside.get("values")) if isinstance(inside, Mapping) and levels_left else None
    )
    if parts and "key" in parts[0]:
        return read_pairs(parts, levels_left - 1)
    return (
        inside
        if parts is None
        else [unwrap_typed_value(element, levels_left - 1) for element in parts]
    )


def _nest_attributes(value: Any, levels_left: int = MAX_ATTRIBUTE_DEPTH) -> Any:
    """Return attributes as objects and lists: ``a.0.b`` is ``b`` of the first item of ``a``."""
    if isinstance(value, list) and levels_left:
        return [_nest_attributes(attribute, levels_left - 1) for attribute in value]
    if not isinstance(value, Mapping) or not levels_left:
        return value
    parts: dict[str, dict[str, Any]] = {}
    for name, attribute in value.items():
        first, _, name_behind = str(name).partition(".")
        parts.setdefault(first, {})[name_behind] = attribute
    for name, part in parts.items():
        parts[name] = _nest_attributes(part[""] if part.keys() == {""} else part, levels_left - 1)
    numbered = parts and all(name.isdecimal() for name in parts)
    return [parts[name] for name in sorted(parts, key=int)] if numbered else parts


def keep_mappings(value: Any) -> list[Any]:
    """Return the objects in a list; an empty list for any other value."""
    return (
        [element for element in value if isinstance(element, Mapping)]
        if isinstance(value, list)
        else []
    )

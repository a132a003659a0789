"""Finds questions and answers in values as chat models and their frameworks write them.

A value is a text, a list of messages (``{"role": "user", "content": ...}``, also as Anthropic,
OpenAI's responses, OpenTelemetry, LangChain, LangGraph and pydantic-ai write them), an object with
a field of a known name, or an object with a single text.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trustassay.core.sample import compute_content_id
from trustassay.input.layouts import NAMES, is_gold, is_only_question, normalise_name
from trustassay.input.messages import (
    find_chat,
    find_last_text,
    find_passages,
    join_part_texts,
    read_messages,
    read_turns,
)
from trustassay.input.numbered import find_column_series, join_numbered
from trustassay.input.passages import DOCUMENTS, is_prose
from trustassay.input.prompts import split_prompt
from trustassay.input.records import parse_value

INSIDE: Mapping[str, Sequence[str]] = NAMES["inside"]
_NO_QUESTIONS = frozenset({*INSIDE["golds"], *INSIDE["answers"]}) - {*INSIDE["questions"]}
"""Names of a single text in an object that is no question."""
_MAX_DEPTH = 8
"""Levels of objects and lists that are searched for a text."""


def find_question(value: Any) -> tuple[str, str] | None:
    """Return the question in a value and its path in it; ``None`` where there is no clear one."""
    return _find_text(value, "user", INSIDE["questions"], _NO_QUESTIONS.__contains__)


def find_answer(value: Any) -> tuple[str, str] | None:
    """Return the answer in a value and its path in it; ``None`` where there is no clear one."""
    return _find_text(value, "assistant", INSIDE["answers"], is_gold)


def _find_text(
    value: Any, role: str, names: Sequence[str], is_other: Callable[[str], bool]
) -> tuple[str, str] | None:
    if isinstance(value, Mapping) and not read_messages([value]):
        # Reversed, so that of two names with the same normal form the first one counts.
        by_name = {normalise_name(str(name)): name for name in reversed(value)}
        for name in names:
            if name in by_name:
                text = _read_text(value[by_name[name]], role, names, _MAX_DEPTH)
                if text is not None:
                    return text, str(by_name[name])
        # No known name: an object with a single text is taken for that text, unless its name means
        # something else.
        texts = [name for name, inner_value in value.items() if isinstance(inner_value, str)]
        if len(texts) == 1 and not is_other(normalise_name(str(texts[0]))):
            return value[texts[0]], str(texts[0])
        return None
    text = _read_text(value, role, names, _MAX_DEPTH)
    return None if text is None else (text, "")


def _read_text(value: Any, role: str, names: Sequence[str], levels_left: int) -> str | None:
    """Return the text of a value; in a list of messages, the last text of the role."""
    if isinstance(value, str) or levels_left == 0:
        return value if isinstance(value, str) else None
    if isinstance(value, list | tuple):
        if read_messages(value):
            return find_last_text(value, role)
        return (
            _read_text(value[0], role, names, levels_left - 1)
            if len(value) == 1
            else join_part_texts(value)
        )
    if not isinstance(value, Mapping):
        return None
    if read_messages([value]):
        return find_last_text([value], role)
    inside = (value.get(name) for name in names if name in value)
    texts = (_read_text(inner_value, role, names, levels_left - 1) for inner_value in inside)
    return next((inner_value for inner_value in texts if inner_value is not None), None)


Record = Mapping[str, Any]


class _NestedRecord(NamedTuple):
    """The nested record of a tool; paths have dots."""

    keys: Sequence[str]
    """The keys that identify it; all must be present."""
    ask: Sequence[str]
    """Paths of the question, the best one first."""
    say: Sequence[str]
    """Paths of the answer, the best one first."""
    gold: Sequence[str] = ()
    """Paths that hold only right answers."""
    mixed: Sequence[str] = ()
    """Paths that hold right answers beside other values."""
    model: Sequence[str] = ()
    """Paths of the name of the model."""
    id: Sequence[str] = ()
    """Fields that together identify the answer, where the tool's id does not. The first epoch and
    a filter that changes nothing are left out."""
    chat: str = ""
    """The field with the messages that led to the answer."""


_GOLD_PLACES = (
    *("reference_outputs", "reference", "example.outputs", "expected_output", "expectedOutput"),
)
_NESTED_RECORDS = (
    _NestedRecord(  # lm-evaluation-harness; a record of it has one answer by several filters
        ("doc", "filtered_resps"),
        ask=("doc", "arguments.gen_args_0.arg_0"),
        say=("filtered_resps", "resps"),
        gold=("target",),
        mixed=("doc",),
        id=("doc_id", "filter"),
    ),
    _NestedRecord(  # inspect_ai; each epoch answers the question again
        ("epoch", "input", "output", "target"),
        ask=("input",),
        say=("output.completion", "output"),
        gold=("target",),
        mixed=("metadata",),
        model=("output.model",),
        id=("id", "epoch"),
        chat="messages",
    ),
    _NestedRecord(
        ("datasource_item", "sample"),
        ask=("datasource_item.item", "datasource_item", "sample.input"),
        say=("sample.output",),
        mixed=("datasource_item.item", "datasource_item"),
        model=("sample.model",),
    ),
    _NestedRecord(("data", "event_id", "type"), ask=("data.prompt",), say=("data.sampled",)),
    _NestedRecord(
        ("item", "sample"),
        ask=("item", "sample.input"),
        say=("sample.output_text", "sample.output"),
        mixed=("item",),
        model=("sample.model",),
    ),
    _NestedRecord(
        ("vars",),
        ask=("vars", "prompt.raw", "prompt"),
        say=("response.output", "output"),
        mixed=("vars",),
        model=("provider.label", "provider.id", "provider"),
    ),
    _NestedRecord(
        ("example", "run"),
        ask=("run.inputs", "example.inputs"),
        say=("run.outputs",),
        gold=("example.outputs",),
        mixed=("example.inputs",),
    ),
    # An example: its outputs are the right ones.
    _NestedRecord(
        ("dataset_id", "inputs"),
        ask=("inputs",),
        say=(),
        gold=("outputs",),
        mixed=("inputs", "metadata"),
    ),
    _NestedRecord(
        ("inputs",),
        ask=("inputs",),
        # What an evaluator of Azure got is all in its inputs.
        say=("outputs", "output", "inputs.response"),
        gold=_GOLD_PLACES,
        # A chain of LangChain returns the passages beside its answer.
        mixed=("inputs", "outputs", "outputs.output", "metadata"),
        model=("extra.metadata.ls_model_name",),
    ),
    *(
        _NestedRecord(  # Braintrust
            ("input", "expected", key),
            ask=("input",),
            say=("output",),
            gold=("expected",),
            mixed=("input", "output", "metadata"),
        )
        for key in ("scores", "span_id", "_xact_id")
    ),
    _NestedRecord(
        ("input",),
        ask=("input",),
        say=("output",),
        gold=_GOLD_PLACES,
        mixed=("input", "output", "metadata"),
    ),
)
"""The first one whose keys a record has counts: the keys of later ones are less certain."""
_COLUMNS = frozenset({"inputs", "outputs", "reference", "reference_outputs", "input", "output"})
"""Objects whose fields may be columns of a table: ``inputs.question``."""
CHATS = ("messages", "conversation", "conversations", "turns", "user_input")
"""Names of the messages of a chat log."""
PROMPT = "prompt"
"""Name of a question, or of the messages up to it."""
_NESTED_NAMES = frozenset({"datasource_item", "doc", "vars", "inputs", "input", *CHATS})
SUMMARIZE = "Summarize the source."
"""The question of a summary."""
INVALID = "[invalid]"
"""What lm-evaluation-harness writes for a reply in which a filter finds no answer."""
_USUAL_PARTS = (None, 1, "none")
_PASSAGES_OF_TURN = ("retrieval_context", "retrievalContext")
_PARTS_OF_PROMPT = ("question", "documents")
_NESTED_NAME_SETS = (
    *({"event_id", "data"}, {"run", "example"}, {"item", "sample"}),
    *({"source", "summary"}, {"answer", "references"}),
)
_GOLD_ANSWERS = ("answer", "output", "response", "result", "text", "content")
_CHAT_FIELDS = ("documents", "steps")
"""Fields of a turn that a record's own documents replace; steps refer to passages of the chat."""
_ANSWER_PLACES = ("response", "output", "completion", "choices", "model_answer")
"""Fields of a chat log that hold its last answer."""
_MAX_PATH_DEPTH = 4
"""Levels of objects along a path from which a value is removed."""


def may_be_nested(names: Collection[str]) -> bool:
    """Whether a record with these names may have its question inside an object."""
    if PROMPT in names or any(
        names_together.issubset(names) for names_together in _NESTED_NAME_SETS
    ):
        return True
    return any(str(name).partition(".")[0] in _NESTED_NAMES for name in names)


def is_no_answer(record: Record) -> bool:
    """Whether a record is a line of an OpenAI evals log without an answer.

    These are the settings, the final report, and events other than ``sampling``.
    """
    # An event of the log; only "sampling" events have a prompt and a completion.
    if {"event_id", "sample_id", "type", "data"} <= record.keys():
        return bool(record["type"] != "sampling")
    return len(record) == 1 and ("spec" in record or "final_report" in record)


def flatten_record(
    record: Record, *, answered: bool = False
) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return a nested record as a flat one, and the paths of the fields that were inside objects.

    ``None`` where the record is not of a known tool, is flat already, or has no clear question.

    Args:
        record: the record.
        answered: take the last answered question of a chat, and not one without an answer behind
            it.
    """
    record = _join_numbered_inside(_parse_json_fields(_gather_columns(record)))
    for shape in _NESTED_RECORDS:
        if record.keys() >= set(shape.keys):
            return _flatten_shape(record, shape)
    if chat := _flatten_chat(record, answered=answered):
        return chat
    readers = (_flatten_prompt, _flatten_cited_answer, _flatten_summary)
    return next(filter(None, (read(record) for read in readers)), None)


def _flatten_chat(
    record: Record, *, answered: bool
) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return the last turn of a chat log; an answer or documents of the record itself win."""
    name = _find_chat_field(record)
    turn = _read_last_turn(record[name], name, answered=answered) if name else {}
    if "question" not in turn:
        return None
    if answer := _find_first(record, _ANSWER_PLACES, find_answer):
        turn["response"] = answer[0]
    if _names_documents(record):
        turn = {k: v for k, v in turn.items() if k not in _CHAT_FIELDS}
    return {**record, **turn}, dict.fromkeys(turn, name)


def _read_last_turn(
    messages: Sequence[Any], name: str, *, answered: bool = False
) -> dict[str, Any]:
    """Return the last turn of a chat, empty without a question.

    Args:
        messages: the messages. name: of their field, for messages to the user.
        answered: take the last answered turn, if there is any.
    """
    # ``deque(..., 2)`` keeps the last turns of the iterator; only the last one may lack an answer.
    turns = deque(read_turns(_insert_passages(messages), name), 2)
    turn = turns.pop() if turns else {}
    return turns.pop() if answered and turns and "response" not in turn else turn


def _insert_passages(messages: Sequence[Any]) -> list[Any]:
    """Return messages in which passages beside an answer, as DeepEval writes them, come before it
    as the result of a tool."""
    result: list[Any] = []
    for message in messages:
        values = map(message.get, _PASSAGES_OF_TURN) if isinstance(message, Mapping) else ()
        if passages := next(filter(None, values), None):
            result.append({"role": "tool", "content": passages})
        result.append(message)
    return result


def _find_chat_field(record: Record) -> str:
    """Return the name of the field with the messages of a chat log; empty for other records."""
    names = (name for name in CHATS if isinstance(record.get(name), list))
    return "" if "question" in record else next(names, "")


def _flatten_prompt(record: Record) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return a record with the question of its prompt, a text or messages."""
    prompt = record.get(PROMPT)
    has_question = record.get("question") is not None or not is_only_question(PROMPT, record)
    if has_question or not isinstance(prompt, str | list):
        return None
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    turn = {k: v for k, v in _read_last_turn(messages, PROMPT).items() if k in _PARTS_OF_PROMPT}
    if "question" not in turn:
        return None
    if _find_documents({"": record}, ("",)):
        turn.pop("documents", None)
    # LettuceDetect: an answer whose spans are labelled by the whole prompt.
    elif "documents" not in turn and isinstance(record.get("labels"), list):
        turn["documents"] = [prompt]
    is_whole = turn["question"] == prompt
    rest = {name: value for name, value in record.items() if not (is_whole and name == PROMPT)}
    return {**rest, **turn}, dict.fromkeys(turn, PROMPT)


def _flatten_cited_answer(record: Record) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return a record of TREC's RAG track, whose answer has parts that cite ``references``."""
    parts, references = record.get("answer"), record.get("references")
    question = _find_first(record, ("topic", "metadata.narrative", "metadata.topic"), find_question)
    if not (question and parts and isinstance(parts, list) and isinstance(references, list)):
        return None
    texts = []
    for part in parts:
        if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
            return None
        places = [n for n in part.get("citations") or () if type(n) is int]
        texts.append(part["text"].strip() + "".join(f"[{place + 1}]" for place in places))
    has_texts = all(isinstance(reference, Mapping) for reference in references)
    # Ids alone are no passages.
    cited = {"documents" if has_texts else "reference_ids": references}
    rest = {name: value for name, value in record.items() if name not in ("answer", "references")}
    paths = {"question": question[1], "response": "answer", "documents": "references"}
    return {**rest, "question": question[0], "response": " ".join(texts), **cited}, paths


def _flatten_summary(record: Record) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return a record of a summary with its source, which has no question."""
    source, summary = record.get("source"), record.get("summary")
    # A source that is a link says nothing.
    if "question" in record or not isinstance(summary, str) or not is_prose(source):
        return None
    rest = {name: value for name, value in record.items() if name not in ("source", "summary")}
    parts = {"question": SUMMARIZE, "response": summary, "documents": [source]}
    return {**rest, **parts}, {"response": "summary", "documents": "source"}


def split_turns(record: Record, known_as: Any, *, answered: bool = False) -> list[dict[str, Any]]:
    """Return a record for each answer of a chat log; an empty list for other records.

    Each record has its number as ``turn`` and the chat's id as ``conversation``, unless the log
    names a conversation itself. Fields of the log about an answer belong to the last one, which
    also keeps the messages.

    Args:
        record: the chat log.
        known_as: the log's id; where it is ``None``, an id is computed from the first turn, so that
            it stays the same while a chat grows.
        answered: leave out a last question without an answer.

    Raises:
        SampleError: as :func:`~trustassay.input.messages.read_turns`.
    """
    record = _parse_json_fields(record)
    name = _find_chat_field(record)
    turns = list(read_turns(_insert_passages(record[name]), name)) if name else []
    if answered and turns and "response" not in turns[-1]:
        del turns[-1]
    if not turns:
        return []
    fields_of_chat = {key: value for key, value in record.items() if key != name}
    common = {key: value for key, value in fields_of_chat.items() if key not in _ANSWER_PLACES}
    own_fields = _CHAT_FIELDS if _names_documents(record) else ()
    earlier = [{k: v for k, v in turn.items() if k not in own_fields} for turn in turns[:-1]]
    # The first turn does not change when the chat is continued.
    chat = compute_content_id(turns[0]) if known_as is None else known_as
    if not isinstance(chat, str | int):
        return []  # the parser of samples reports what is wrong with the id
    unit = fields_of_chat.get("conversation") or chat
    parts = [
        *({**common, **turn} for turn in earlier),
        {**fields_of_chat, "messages": record[name]},
    ]
    return [
        {**turn, "id": f"{chat}-{number}", "turn": number, "conversation": unit}
        for number, turn in enumerate(parts, 1)
    ]


def _flatten_shape(
    record: Record, shape: _NestedRecord
) -> tuple[dict[str, Any], dict[str, str]] | None:
    nested = {place.partition(".")[0] for place in (*shape.ask, *shape.say, *shape.mixed)}
    if all(isinstance(record.get(name), str | None) for name in nested):
        return None  # flat already
    parts = {
        "question": _find_first(record, shape.ask, _read_question),
        "response": _find_first(record, shape.say, _read_answer),
        "documents": _find_documents(record, (*shape.mixed, *shape.say)),
        "model": _find_first(record, shape.model, lambda value: (value, "") if value else None),
    }
    gold = _find_gold_answer(record, shape)
    # One text is a reference answer; each of several texts is right by itself.
    parts |= {"answers" if gold and isinstance(gold[0], list) else "reference": gold}
    result = {name: part for name, part in parts.items() if part}
    if "question" not in result:
        return None
    if isinstance(record.get(shape.chat), list):
        turn = _read_last_turn(record[shape.chat], shape.chat)
        question, path = result["question"]
        # Passages of the chat may stand in the message that asks.
        if "documents" in turn and "documents" not in result:
            result["question"] = (split_prompt(question).question or question, path)
        result = {k: (turn[k], shape.chat) for k in _CHAT_FIELDS if k in turn} | result
    flat = _remove_paths(record, {name: path for name, (_, path) in result.items()})
    if "documents" not in result and not _names_documents(record):
        result |= _read_shown_passages(record, shape, *result["question"])
    # promptfoo's object keeps other values beside the text; it makes room for the text.
    if isinstance(flat.get("response"), Mapping):
        flat["response_details"] = flat.pop("response")
    first, *others = (record.get(name) for name in shape.id or ("id",))
    parts_of_id = [first, *(part for part in others if part not in _USUAL_PARTS)]
    known_as = {"id": "-".join(map(str, parts_of_id))} if shape.id and first is not None else {}
    return (
        {**flat, **{name: value for name, (value, _) in result.items()}, **known_as},
        {name: path for name, (_, path) in result.items()},
    )


def _read_question(value: Any) -> tuple[str, str] | None:
    """Return the question in a value, which may be messages as a JSON text, alone in a list."""
    single = value[0] if isinstance(value, list) and len(value) == 1 else value
    result = find_question(_parse_json(single) if isinstance(single, str) else value)
    return result if result and result[0].strip() else None


def _read_answer(value: Any) -> tuple[str, str] | None:
    """Return the answer in a value; a filter of lm-evaluation-harness may find none."""
    result = find_answer(value)
    return None if result and result[0] == INVALID else result


def _read_shown_passages(
    record: Record, shape: _NestedRecord, question: str, path: str
) -> dict[str, tuple[Any, str]]:
    """Return the passages in the messages of a record, and the question without them."""
    chats = (read_messages(find_chat(_value_at(record, place))) for place in shape.ask)
    passages = [passage for _, passage in find_passages(next(filter(None, chats), []))]
    if not passages:
        return {}
    return {
        "question": (split_prompt(question).question or question, path),
        "documents": (passages, path),
    }


def _find_first(record: Record, places: Sequence[str], read: Any) -> tuple[Any, str] | None:
    """Return the value and path that ``read`` finds at the first place where it finds anything."""
    for place in places:
        result = read(_value_at(record, place))
        if result is not None:
            value, inside = result
            return value, f"{place}.{inside}" if inside else place
    return None


def _find_documents(record: Record, places: tuple[str, ...]) -> tuple[Any, str] | None:
    for place in places:
        value = _value_at(record, place)
        for name in value if isinstance(value, Mapping) else ():
            # Any object beside the question or answer may hold the passages.
            if normalise_name(str(name)) in DOCUMENTS and value[name] is not None:
                return value[name], f"{place}.{name}"
    return None


def _find_gold_answer(record: Record, shape: _NestedRecord) -> tuple[Any, str] | None:
    for place in (*shape.gold, *shape.mixed):
        value = _value_at(record, place)
        # A place that holds only right answers may call them "output" or "text"; elsewhere these
        # names mean something else.
        names = (*INSIDE["golds"], *(_GOLD_ANSWERS if place in shape.gold else ()))
        if isinstance(value, Mapping):
            by_name = {normalise_name(str(name)): name for name in reversed(value)}
            for name in names:
                text = value.get(by_name.get(name, name))
                if isinstance(text, str) and text.strip():
                    return text, f"{place}.{by_name.get(name, name)}"
        elif place in shape.gold and (answer := _read_gold(value)):
            return answer, place
    return None


def _read_gold(value: Any) -> Any:
    """Return the right answer in a value: a text, that of a message, or a list of texts."""
    texts = parse_value(value) if isinstance(value, str) else value
    if isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts):
        return [texts]
    text = find_last_text(value, "assistant")
    return (text or "").strip() or None


def _value_at(record: Record, place: str) -> Any:
    value: Any = record
    for name in place.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _gather_columns(record: Record) -> Record:
    """Return a record in which columns such as ``inputs.question`` are fields of an object."""
    result: dict[str, Any] = {}
    for name, value in record.items():
        root, dot, field_name = name.partition(".")
        if dot and root in _COLUMNS and root not in record:
            result.setdefault(root, {})[field_name] = value
        else:
            result[name] = value
    return result


def _join_numbered_inside(record: Record) -> Record:
    """Return a record in whose objects columns such as ``inputs.context_1`` are one field."""
    result = dict(record)
    for name in _NESTED_NAMES & record.keys():
        if isinstance(inner := record[name], Mapping):
            series = find_column_series([str(key) for key in inner], ())
            passages = {k: v for k, v in series.items() if v.canonical == "documents"}
            result[name] = join_numbered(inner, passages)
    return result


def _parse_json_fields(record: Record) -> Record:
    """Return a record in which objects and messages that are written as JSON texts are parsed."""
    return {
        name: _parse_json(value) if name in _JSON_NAMES else value for name, value in record.items()
    }


_JSON_NAMES = frozenset(
    {"vars", "metadata", "expected_output", "expectedOutput", *CHATS, *_COLUMNS}
)


def _parse_json(value: Any) -> Any:
    # Tables of Python have objects and lists as Python prints them.
    result = parse_value(value.strip()) if isinstance(value, str) else None
    return value if result is None or not _is_record(result) else result


def _is_record(value: Any) -> bool:
    """Whether parsed JSON has known fields or messages; otherwise the text may be an answer."""
    if isinstance(value, Mapping):
        return (
            find_question(value) is not None
            or find_answer(value) is not None
            or _names_documents(value)
        )
    return isinstance(value, list) and bool(find_last_text(value, "user", "assistant"))


def _names_documents(value: Record) -> bool:
    return any(
        normalise_name(str(name)) in DOCUMENTS and inner_value is not None
        for name, inner_value in value.items()
    )


def _remove_paths(record: Record, paths: Mapping[str, str]) -> dict[str, Any]:
    """Return a copy of a record without the values at some paths; messages of a chat stay."""
    result = dict(record)
    for field, path in paths.items():
        # From the inside out, so that an object that has become empty is removed as well.
        for place, (parent, name) in enumerate(_parents_along(result, path)):
            value = parent.get(name)
            # Lists and objects stay, since they may hold more than the text that was taken; objects
            # that are empty now go.
            is_text = field == "documents" or not isinstance(value, list | Mapping)
            is_single_text = (
                isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)
            )
            if (place == 0 and (is_text or is_single_text)) or value == {}:
                parent.pop(name, None)
    return result


def _parents_along(record: dict[str, Any], path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects along a path with the next name of the path, the innermost first.

    Each object below ``record`` is replaced by a copy, so that the input is not changed.
    """
    names = path.split(".")[:_MAX_PATH_DEPTH]
    chain: list[tuple[dict[str, Any], str]] = []
    parent = record
    for name in names:
        if name not in parent:
            break
        chain.append((parent, name))
        inside = parent[name]
        if not isinstance(inside, Mapping):
            break
        parent[name] = parent = dict(inside)
    yield from reversed(chain)

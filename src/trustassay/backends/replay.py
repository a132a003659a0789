"""``replay:FILE``: a chat model that returns the replies stored in a file, without any calls.

The file is a run's ``calls.sqlite`` (or the run's folder), or JSON Lines, one reply a line:

    {"prompt": "Who?", "reply": "She."}
    {"messages": [{"role": "user", "content": "Who?"}], "reply": {"text": "He."}, "repeat": 1}

``prompt`` is a chat of one user message; ``repeat`` is 0 by default; ``model`` may name who
replied; a reply is a text, or an object with fields of
:class:`~trustassay.core.capabilities.Reply`. The file is read completely; one that ends in ``.gz``
is decompressed.

From a run's file, the columns ``capability``, ``backend``, ``request`` and ``reply`` of the table
``calls`` are read, as docs/runs.md describes them.
"""

import gzip
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trustassay.backends.chat_text import chat_to_text, says_nothing, shorten, unpack_logprobs
from trustassay.core.capabilities import ChatRequest, Message, Reply
from trustassay.errors import BackendError, did_you_mean

_HEADER = b"SQLite format 3\0"
_PARAMETERS = ("temperature", "max_tokens", "seed", "stop", "n", "logprobs")
_LINE = ("prompt", "messages", "reply", "repeat", "model")
_TO_DO = "use the options of the recorded run, or a model that can be asked"

Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """One reply of a file."""

    where: str
    """Place in the file, for messages."""
    messages: Messages
    """The chat that was answered."""
    repeat: int
    """Number of the reply among those to equal requests."""
    reply: Reply
    """The reply."""
    model: str = ""
    """Who replied; empty if unknown."""
    parameters: tuple[Any, ...] | None = None
    """Parameters of the request, in the order of :data:`_PARAMETERS`; ``None`` if unknown."""


class ReplayChat:
    """Looks up replies by messages and repeat.

    If a run's file has several replies to one request, those with the same parameters come first;
    ``model`` selects one model's replies. An empty reply is only used if there is no other.
    """

    shared = False  # the file is local

    def __init__(self, file: str, model: str | None = None) -> None:
        """Read a file.

        Raises:
            BackendError: the file cannot be read or has another content; the message names file,
                line and field.
        """
        path = Path(file).expanduser()
        path = path / "calls.sqlite" if path.is_dir() else path
        self._file = file
        self._replies: dict[tuple[Messages, int], list[RecordedReply]] = {}
        digest = hashlib.blake2b(digest_size=6)
        try:
            with path.open("rb") as stream:
                # Recognised by its first bytes, whatever its name is.
                is_a_run = stream.read(len(_HEADER)) == _HEADER
            for stored in read_run_replies(path) if is_a_run else _read_lines(path):
                if model is None or stored.model == model:
                    # The name changes with the content, since replies are stored under it.
                    digest.update(repr((stored.messages, stored.repeat, stored.reply)).encode())
                    self._add(stored)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise BackendError(f"replay:{file}: {reason}") from None
        if not self._replies:
            of = f" of {model}" if model else ""
            raise BackendError(f"replay:{file}: contains no replies{of}")
        models = {
            stored.model for stored_replies in self._replies.values() for stored in stored_replies
        }
        of = f"?model={models.pop()}" if len(models) == 1 and "" not in models else ""
        self.name = f"replay:{file}{of}#{digest.hexdigest()}"

    def _add(self, stored: RecordedReply) -> None:
        """Add a reply; raise if it contradicts an earlier one."""
        same_request = self._replies.setdefault((stored.messages, stored.repeat), [])
        for other in same_request:
            # Lines have no parameters that could explain two different replies.
            known_as = stored.parameters is None and other.model == stored.model
            if known_as and other.reply != stored.reply:
                raise BackendError(
                    f"{stored.where}: reply: differs from the reply to the same prompt in "
                    f"{other.where}; number the replies in the field repeat"
                )
        same_request.append(stored)

    async def reply(self, request: ChatRequest) -> Reply:
        """Return the stored reply; raises :class:`BackendError` if there is none."""
        candidates = self._replies.get((request.messages, request.repeat), [])
        parameters = _extract_parameters({name: getattr(request, name) for name in _PARAMETERS})
        candidates = [
            stored for stored in candidates if not says_nothing(stored.reply)
        ] or candidates
        # A run may have asked the same with several parameters.
        exact = [stored for stored in candidates if stored.parameters == parameters]
        # Equal replies of several models are no conflict.
        replies = {stored.reply: stored for stored in exact or candidates}
        if not replies:
            raise self._missing_reply_error(request)
        if len(replies) > 1:
            models = " and ".join(sorted({stored.model for stored in replies.values()}))
            raise self._build_error(request, f"{len(replies)} different replies (by {models}) to")
        (reply,) = replies
        if (reply_count := 1 + len(reply.others)) < request.n:
            raise self._build_error(request, f"{reply_count} replies instead of {request.n} to")
        return reply

    def _missing_reply_error(self, request: ChatRequest) -> BackendError:
        """Return the error for a request without a reply."""
        message = "no reply"
        if repeats := [r for messages, r in self._replies if messages == request.messages]:
            had = ", ".join(map(str, sorted(repeats)[:10]))
            message += f" with repeat {request.repeat} (only with {had})"
        return self._build_error(request, f"{message} to", f"; {_TO_DO}")

    def _build_error(self, request: ChatRequest, message: str, end: str = "") -> BackendError:
        """Return the error for a request."""
        prompt = shorten(chat_to_text(request.messages))
        return BackendError(f"replay:{self._file}: {message} {prompt!r}{end}")


def _read_lines(path: Path) -> Iterator[RecordedReply]:
    """Yield the replies of a file of JSON Lines."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            record = _read_object(line, where)
            for name in record:
                # A misspelt field would otherwise be ignored.
                if name not in _LINE:
                    raise BackendError(f"{where}: {did_you_mean('field', name, _LINE)}")
            if ("prompt" in record) == ("messages" in record):
                raise BackendError(f"{where}: expected either prompt or messages")
            if "prompt" in record:
                prompt = _check_text(record["prompt"], f"{where}: prompt")
                messages: Messages = (Message("user", prompt),)
            else:
                messages = _read_messages(record["messages"], f"{where}: messages")
            repeat = record.get("repeat", 0)
            if type(repeat) is not int or repeat < 0:
                raise _form_error(f"{where}: repeat", "a number of 0 or more", repeat)
            reply = _read_reply(record.get("reply"), f"{where}: reply")
            model = _check_text(record.get("model", ""), f"{where}: model")
            yield RecordedReply(where, messages, repeat, reply, model)


def read_run_replies(path: Path) -> Iterator[RecordedReply]:
    """Yield the replies of chat models in a run's file of calls."""
    query = "SELECT key, backend, request, reply FROM calls WHERE capability = 'chat' ORDER BY key"
    # Read-only, so that a run's file is never changed, not even its journal.
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    try:
        for key, model, request, reply in connection.execute(query):
            where = f"{path}, call {bytes(key).hex()}"
            parts = json.loads(request)
            # The request is stored as a list of its parts, of which a chat has one.
            request_fields = _read_object(
                parts[0] if isinstance(parts, list) else request, f"{where}: request"
            )
            messages = _read_messages(request_fields.get("messages"), f"{where}: request: messages")
            parsed_reply = _read_reply(_read_object(reply, f"{where}: reply"), f"{where}: reply")
            repeat = int(request_fields.get("repeat", 0))
            if not request_fields.get(
                "embedding_radius"
            ):  # else it is no reply to these messages alone
                yield RecordedReply(
                    where,
                    messages,
                    repeat,
                    parsed_reply,
                    model,
                    _extract_parameters(request_fields),
                )
    except (sqlite3.Error, ValueError, LookupError, TypeError) as error:
        raise BackendError(
            f"{path}: expected the file of calls of a run, calls.sqlite ({error})"
        ) from None
    finally:
        connection.close()


def _extract_parameters(request_fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parameters of a request in a fixed order."""
    stop = tuple(request_fields.get("stop") or ())
    return tuple(stop if name == "stop" else request_fields.get(name) for name in _PARAMETERS)


def _read_object(text: str | bytes, where: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        result = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BackendError(f"{where}: is not JSON ({error})") from None
    if not isinstance(result, dict):
        raise _form_error(where, "an object", result)
    return result


def _read_messages(value: Any, where: str) -> Messages:
    """Read messages, as objects or as pairs of role and content."""
    if not isinstance(value, list) or not value:
        raise _form_error(where, "a list of messages", value)
    messages = []
    for i, item in enumerate(value):
        pair = (item.get("role"), item.get("content")) if isinstance(item, dict) else item
        if not (isinstance(pair, list | tuple) and [type(part) for part in pair] == [str, str]):
            raise _form_error(f"{where}[{i}]", "an object with role and content", item)
        messages.append(Message(*pair))
    return tuple(messages)


def _read_reply(value: Any, where: str) -> Reply:
    """Read a reply, as a text or as an object of its fields."""
    if isinstance(value, str):
        return Reply(value)
    if not isinstance(value, dict):
        raise _form_error(where, "a text or an object", value)
    names = [field.name for field in fields(Reply)]
    for name in value:
        if name not in names:
            raise BackendError(f"{where}: {did_you_mean('field', name, names)}")
    reply_fields = dict(value)
    _check_text(reply_fields.get("text"), f"{where}: text")
    for name in ("others", "dropped"):
        texts = reply_fields.get(name, [])
        if not isinstance(texts, list) or any(not isinstance(text, str) for text in texts):
            raise _form_error(f"{where}: {name}", "a list of texts", texts)
        reply_fields[name] = tuple(texts)
    if reply_fields.get("logprobs") is not None:
        try:
            reply_fields["logprobs"] = unpack_logprobs(
                reply_fields["logprobs"], reply_fields["text"]
            )
        except (LookupError, TypeError, ValueError, zlib.error):
            expected = "a list of [token, logprob, alternatives]"
            raise _form_error(f"{where}: logprobs", expected, reply_fields["logprobs"]) from None
    return Reply(**reply_fields)


def _check_text(value: Any, where: str) -> str:
    """Return a value that must be a text."""
    if not isinstance(value, str):
        raise _form_error(where, "a text", value)
    return value


def _form_error(where: str, expected: str, value: Any) -> BackendError:
    """Return the error for a value of the wrong form."""
    return BackendError(f"{where}: expected {expected}, got {shorten(repr(value), 60)}")

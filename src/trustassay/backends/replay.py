"""``replay:FILE``: a chat model that returns the replies stored in a file, without any calls.

The file is a run's ``calls.sqlite`` (or the run's folder), or JSON Lines, one reply a line:

    {"prompt": "Who?", "reply": "She."}
    {"messages": [{"role": "user", "content": "Who?"}], "reply": {"text": "He."}, "repeat": 1}

``prompt`` is a chat of one user message; ``repeat`` is 0 where it is left out; ``model`` may name
who replied; a reply is a text or an object with fields of :class:`~trustassay.capabilities.Reply`.
The file is read whole; one that ends in ``.gz`` is unpacked.

Of a run's file the columns ``capability``, ``backend``, ``request`` and ``reply`` of the table
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

from trustassay.backends.chat_text import plain, says_nothing, shortened, unpacked
from trustassay.capabilities import ChatRequest, Message, Reply
from trustassay.errors import BackendError, did_you_mean

_HEADER = b"SQLite format 3\0"
_PARAMETERS = ("temperature", "max_tokens", "seed", "stop", "n", "logprobs")
_LINE = ("prompt", "messages", "reply", "repeat", "model")
_TO_DO = "take the options with which it was recorded, or a model that can be asked"

Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """One reply; of a run, with the model that gave it and the parameters it was asked with."""

    where: str
    messages: Messages
    repeat: int
    reply: Reply
    model: str = ""
    parameters: tuple[Any, ...] | None = None


class ReplayChat:
    """Looks replies up by messages and repeat.

    If a run's file has several replies to one request, those with the same parameters come first;
    ``model`` selects one model's replies. An empty reply is only used if there is no other.
    """

    shared = False  # the file is local

    def __init__(self, file: str, model: str | None = None) -> None:
        """Read a file; raises :class:`BackendError`, with file, line and field, where that is not
        possible or it holds something else."""
        path = Path(file).expanduser()
        path = path / "calls.sqlite" if path.is_dir() else path
        self._file = file
        self._found: dict[tuple[Messages, int], list[Stored]] = {}
        digest = hashlib.blake2b(digest_size=6)
        try:
            with path.open("rb") as stream:
                is_a_run = stream.read(len(_HEADER)) == _HEADER
            for stored in of_a_run(path) if is_a_run else _of_lines(path):
                if model is None or stored.model == model:
                    digest.update(repr((stored.messages, stored.repeat, stored.reply)).encode())
                    self._add(stored)
        except (OSError, EOFError, zlib.error) as error:
            words = getattr(error, "strerror", None) or error
            raise BackendError(f"replay:{file}: {words}") from None
        if not self._found:
            of = f" of {model}" if model else ""
            raise BackendError(f"replay:{file}: contains no replies{of}")
        models = {stored.model for known in self._found.values() for stored in known}
        of = f"?model={models.pop()}" if len(models) == 1 and "" not in models else ""
        self.name = f"replay:{file}{of}#{digest.hexdigest()}"

    def _add(self, stored: Stored) -> None:
        known = self._found.setdefault((stored.messages, stored.repeat), [])
        for other in known:
            known_as = stored.parameters is None and other.model == stored.model
            if known_as and other.reply != stored.reply:
                raise BackendError(
                    f"{stored.where}: reply: differs from the reply to the same prompt in "
                    f"{other.where}; number them with repeat"
                )
        known.append(stored)

    async def reply(self, request: ChatRequest) -> Reply:
        """Return the stored reply; raises :class:`BackendError` if there is none."""
        known = self._found.get((request.messages, request.repeat), [])
        parameters = _parameters({name: getattr(request, name) for name in _PARAMETERS})
        known = [stored for stored in known if not says_nothing(stored.reply)] or known
        exact = [stored for stored in known if stored.parameters == parameters]
        replies = {stored.reply: stored for stored in exact or known}
        if not replies:
            raise self._missing(request)
        if len(replies) > 1:
            models = " and ".join(sorted({stored.model for stored in replies.values()}))
            raise self._failed(request, f"{len(replies)} different replies, of {models}, to")
        (reply,) = replies
        if (given := 1 + len(reply.others)) < request.n:
            raise self._failed(request, f"{given} replies instead of {request.n} to")
        return reply

    def _missing(self, request: ChatRequest) -> BackendError:
        message = "no reply"
        if repeats := [r for messages, r in self._found if messages == request.messages]:
            had = ", ".join(map(str, sorted(repeats)[:10]))
            message += f" with repeat {request.repeat}, but with {had},"
        return self._failed(request, f"{message} to", f"; {_TO_DO}")

    def _failed(self, request: ChatRequest, words: str, end: str = "") -> BackendError:
        prompt = shortened(plain(request.messages))
        return BackendError(f"replay:{self._file}: {words} {prompt!r}{end}")


def _of_lines(path: Path) -> Iterator[Stored]:
    """Yield the replies of a file of JSON Lines."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            record = _json(line, where)
            for name in record:
                if name not in _LINE:
                    raise BackendError(f"{where}: {did_you_mean('field', name, _LINE)}")
            if ("prompt" in record) == ("messages" in record):
                raise BackendError(f"{where}: expected either prompt or messages")
            if "prompt" in record:
                prompt = _text(record["prompt"], f"{where}: prompt")
                messages: Messages = (Message("user", prompt),)
            else:
                messages = _messages(record["messages"], f"{where}: messages")
            repeat = record.get("repeat", 0)
            if type(repeat) is not int or repeat < 0:
                raise _fault(f"{where}: repeat", "a number of 0 or more", repeat)
            reply = _reply(record.get("reply"), f"{where}: reply")
            model = _text(record.get("model", ""), f"{where}: model")
            yield Stored(where, messages, repeat, reply, model)


def of_a_run(path: Path) -> Iterator[Stored]:
    """Yield the replies of chat models in a run's file of calls."""
    query = "SELECT key, backend, request, reply FROM calls WHERE capability = 'chat' ORDER BY key"
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    try:
        for key, model, request, reply in connection.execute(query):
            where = f"{path}, call {bytes(key).hex()}"
            parts = json.loads(request)
            asked = _json(parts[0] if isinstance(parts, list) else request, f"{where}: request")
            messages = _messages(asked.get("messages"), f"{where}: request: messages")
            told = _reply(_json(reply, f"{where}: reply"), f"{where}: reply")
            repeat = int(asked.get("repeat", 0))
            if not asked.get("embedding_radius"):  # else it is no reply to these messages alone
                yield Stored(where, messages, repeat, told, model, _parameters(asked))
    except (sqlite3.Error, ValueError, LookupError, TypeError) as error:
        raise BackendError(f"{path}: is not a run's file of calls ({error})") from None
    finally:
        connection.close()


def _parameters(asked: Mapping[str, Any]) -> tuple[Any, ...]:
    stop = tuple(asked.get("stop") or ())
    return tuple(stop if name == "stop" else asked.get(name) for name in _PARAMETERS)


def _json(text: str | bytes, where: str) -> dict[str, Any]:
    try:
        result = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BackendError(f"{where}: is not JSON ({error})") from None
    if not isinstance(result, dict):
        raise _fault(where, "an object", result)
    return result


def _messages(value: Any, where: str) -> Messages:
    """Read messages, as objects or as pairs of role and content."""
    if not isinstance(value, list) or not value:
        raise _fault(where, "a list of messages", value)
    messages = []
    for i, one in enumerate(value):
        pair = (one.get("role"), one.get("content")) if isinstance(one, dict) else one
        if not (isinstance(pair, list | tuple) and [type(part) for part in pair] == [str, str]):
            raise _fault(f"{where}[{i}]", "role and content", one)
        messages.append(Message(*pair))
    return tuple(messages)


def _reply(value: Any, where: str) -> Reply:
    """Read a reply, as a text or as an object of its fields."""
    if isinstance(value, str):
        return Reply(value)
    if not isinstance(value, dict):
        raise _fault(where, "a text or an object", value)
    names = [field.name for field in fields(Reply)]
    for name in value:
        if name not in names:
            raise BackendError(f"{where}: {did_you_mean('field', name, names)}")
    told = dict(value)
    _text(told.get("text"), f"{where}: text")
    for name in ("others", "dropped"):
        texts = told.get(name, [])
        if not isinstance(texts, list) or any(not isinstance(text, str) for text in texts):
            raise _fault(f"{where}: {name}", "a list of texts", texts)
        told[name] = tuple(texts)
    if told.get("logprobs") is not None:
        try:
            told["logprobs"] = unpacked(told["logprobs"], told["text"])
        except (LookupError, TypeError, ValueError, zlib.error):
            expected = "[token, logprob, alternatives] of each token"
            raise _fault(f"{where}: logprobs", expected, told["logprobs"]) from None
    return Reply(**told)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _fault(where, "a text", value)
    return value


def _fault(where: str, expected: str, value: Any) -> BackendError:
    return BackendError(f"{where}: expected {expected}, got {shortened(repr(value), 60)}")

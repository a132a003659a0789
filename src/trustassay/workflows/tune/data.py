"""Training data in the chat format, read whole and checked, and laid out as tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.backends.layout import plain
from trustassay.capabilities import Message
from trustassay.data.records import Fault, InputError
from trustassay.errors import BackendError
from trustassay.sample import Problem, clean

__all__ = ["Conversation", "Encoded", "encode", "read_conversations"]

ROLES = ("system", "user", "assistant")
SHOWN = 20
"""Faulty lines that are listed."""
IGNORED = -100
"""The label of a token that is not learnt."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is said before, ending with the user, and the answer that is learnt."""

    before: tuple[Message, ...]
    answer: str


class Encoded(NamedTuple):
    """Tokens of a conversation, and how many of the first are not learnt."""

    tokens: list[int]
    prompt: int

    def columns(self) -> dict[str, list[int]]:
        """Return the columns that TRL trains on."""
        labels = [IGNORED] * self.prompt + self.tokens[self.prompt :]
        return {"input_ids": self.tokens, "labels": labels}


def read_conversations(path: Path) -> list[Conversation]:
    """Read JSON Lines of ``messages``, each with ``role`` and ``content``, the last an answer.

    Raises:
        InputError: lines have faults, or there is none.
        OSError: the file cannot be read.
    """
    found, faults = [], []
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            result = _read(line)
            if isinstance(result, Conversation):
                found.append(result)
            else:
                faults.append(Fault(f"{path}:{number}", tuple(result)))
    if faults:
        shown = "\n".join(map(str, faults[:SHOWN]))
        more = f"\n... and {len(faults) - SHOWN:,} more" if len(faults) > SHOWN else ""
        raise InputError(f"{path}: {len(faults):,} faulty lines\n{shown}{more}")
    if not found:
        raise InputError(f"{path}: holds no line; expected conversations, one a line")
    return found


def _read(line: str) -> Conversation | list[Problem]:
    try:
        record = json.loads(line.rstrip())
    except (ValueError, RecursionError) as error:
        return [Problem("line", f"is not JSON: {error}")]
    messages = record.get("messages") if isinstance(record, Mapping) else None
    if not isinstance(messages, list) or not messages:
        return [Problem("messages", "is missing (expected a list of role and content)")]
    turns, problems = [], []
    for place, item in enumerate(messages):
        role = item.get("role") if isinstance(item, Mapping) else None
        content = item.get("content") if isinstance(item, Mapping) else None
        if role not in ROLES:
            problems.append(Problem(f"messages[{place}].role", f"expected {' or '.join(ROLES)}"))
        elif not isinstance(content, str) or not content.strip():
            problems.append(Problem(f"messages[{place}].content", "expected text"))
        else:
            turns.append(Message(role, clean(content)))
    if not problems and [turn.role for turn in turns[-2:]] != ["user", "assistant"]:
        words = "expected the user's turn and the assistant's answer at the end"
        problems.append(Problem("messages", words))
    return problems or Conversation(tuple(turns[:-1]), turns[-1].content.strip())


def encode(conversations: Sequence[Conversation], tokenizer: Any) -> list[Encoded]:
    """Return the tokens of conversations, laid out as ``hf:`` models are asked.

    By the tokenizer's chat template where it has one, else as
    :func:`~trustassay.backends.layout.plain` says, with a space before the answer. The answer ends
    with the tokenizer's end token.

    Raises:
        BackendError: the chat template rejects a conversation.
    """
    if tokenizer.eos_token_id is None:
        raise BackendError("its tokenizer has no end token, so no end of an answer can be learnt")
    return [_encoded(one, tokenizer) for one in conversations]


def _encoded(one: Conversation, tokenizer: Any) -> Encoded:
    special = not getattr(tokenizer, "chat_template", None)
    if special:
        prompt, answer = plain(one.before), f" {one.answer}"
    else:
        prompt, answer = _by_template(one, tokenizer)
    before = _tokens(tokenizer, prompt, special)
    bare = _tokens(tokenizer, prompt, False)
    if special and before and bare and before[-1] != bare[-1]:
        before = before[:-1]  # the model is to go on, so no end token stands here
    whole = _tokens(tokenizer, prompt + answer, False)
    cut = whole[: len(bare)] == bare
    learnt = whole[len(bare) :] if cut else _tokens(tokenizer, answer, False)
    end = tokenizer.eos_token_id
    if end not in learnt:
        learnt = [*learnt, end]
    return Encoded([*before, *learnt], len(before))


def _by_template(one: Conversation, tokenizer: Any) -> tuple[str, str]:
    from jinja2 import TemplateError

    turns = [message._asdict() for message in one.before]
    answered = [*turns, {"role": "assistant", "content": one.answer}]
    try:
        prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        whole = tokenizer.apply_chat_template(answered, tokenize=False)
    except TemplateError as error:
        raise BackendError(f"its chat template rejects a conversation: {error}") from error
    return prompt, whole[len(prompt) :] if whole.startswith(prompt) else one.answer


def _tokens(tokenizer: Any, text: str, special: bool) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    return ids

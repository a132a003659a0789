"""Scripted models for trying trustassay offline: ``python:models:small``, ``large``, ``judge``.

They look a question up in ``replies.jsonl``, which lies beside this file. What such a model does
not know it answers wrongly, and in other words after another prompt or when it is asked again. No
real model is behind them.
"""

import json
import re
import zlib
from pathlib import Path
from typing import Any

LINES = (Path(__file__).parent / "replies.jsonl").read_text(encoding="utf-8").splitlines()
REPLIES: list[dict[str, Any]] = [json.loads(line) for line in LINES]


def small(request: Any) -> str:
    """Answer as a model that knows two questions in three."""
    return _answer(request, "small")


def large(request: Any) -> str:
    """Answer as a model that knows five questions in six."""
    return _answer(request, "large")


def judge(request: Any) -> str:
    """Rate an answer, or say which of two is better: the one that names the gold answer."""
    prompt = request.messages[-1].content
    gold = _asked(prompt)["gold"].lower()
    if "Reply B" in prompt:
        first, second = (gold in text.lower() for text in _texts(prompt)[1:3])
        return "A" if first > second else "B" if second > first else "C"
    right = gold in _texts(prompt)[-1].lower()
    doubt = zlib.crc32(f"{prompt}{request.repeat}".encode()) % 4 == 0
    level = (4 if doubt else 5) if right else (2 if doubt else 1)
    return f"Score: {level}\nReason: it {'names' if right else 'does not name'} the gold answer."


def _answer(request: Any, name: str) -> str:
    prompt, again = request.messages[-1].content, request.repeat
    reply = _asked(prompt)
    known = reply[name]
    after = prompt.rpartition(reply["question"])[2]
    options = re.findall(r"^([A-E])\) (.*)$", after, re.MULTILINE)
    chance = zlib.crc32(f"{prompt}{again or ''}".encode())
    if options:
        right = [letter for letter, text in options if reply["gold"].lower() in text.lower()]
        return (right or ["E"])[0] if known else "ABCD"[chance % 4]
    if "Document [1]" in prompt and reply["refusal"] and known:
        return str(reply["refusal"])
    changed = "Document [1]" not in after and after.strip(" \n") not in ("", "Answer:")
    changed = changed or again > 0
    if known:
        text = reply["gold"] + "." if changed and chance % 9 == 0 else reply["right"]
    else:
        text = reply[("wrong", "other", "right")[chance % 3]] if changed else reply["wrong"]
    return f"{text} {reply['detail']}".strip()


def _asked(prompt: str) -> dict[str, Any]:
    """Return the record whose question stands last in the prompt."""
    return max(REPLIES, key=lambda reply: prompt.rfind(reply["question"]))


def _texts(prompt: str) -> list[str]:
    """Return the texts between the lines of = signs."""
    return [text.strip() for text in re.split(r"^=+ .* =+$", prompt, flags=re.MULTILINE)[1:-1]]

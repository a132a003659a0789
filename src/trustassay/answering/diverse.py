"""Several different answers of one model to a question, asked for in one call.

Wei et al. 2024, section 4.1: one model asked for five diversified answers stands for five
references.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

from trustassay.answering.styles import Answering
from trustassay.capabilities import ChatRequest
from trustassay.prompts import Prompt
from trustassay.prose import numbered
from trustassay.sample import Sample

__all__ = ["answers_in", "diverse_request"]


def diverse_request(sample: Sample, n: int, answering: Answering) -> ChatRequest:
    """Return what a model is asked for n answers.

    Temperature and length are those of ``answering``, each answer as long as one.
    """
    prompt = _prompt()
    return ChatRequest.of(
        prompt.filled(question=sample.question, answers=n),
        temperature=answering.temperature,
        max_tokens=n * answering.max_tokens,
        seed=answering.seed,
        prompt=prompt.name,
    )


def answers_in(text: str, n: int) -> tuple[str, ...]:
    """Return the numbered answers of a reply, n at most, each once; total.

    With n = 1 the whole reply is the answer. An answer goes on over further lines. A reply without
    a number holds none: whatever stands in it, it is not what was asked for.
    """
    if n == 1:
        return (text.strip(),)
    items = numbered(text)
    ends = [after.start() for after in items[1:]] + [len(text)] * bool(items)
    found = (
        " ".join((item["text"] + text[item.end() : end]).split()).strip("*_ ")
        for item, end in zip(items, ends, strict=True)
    )
    return tuple(dict.fromkeys(one for one in found if one))[:n]


@cache
def _prompt() -> Prompt:
    with as_file(files("trustassay.answering") / "prompts" / "diverse-answers.jinja") as path:
        return Prompt.read(path)

"""Training data: what is read, and which tokens are learnt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from trustassay.input.records import InputError
from trustassay.papers.tune import encode, read_conversations

transformers = needed("transformers", "needs transformers: pip install '.[hf]'")

from tests.tiny_chat import TEMPLATE, tokenizer  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def written(path: Path, *records: Any) -> Path:
    text = "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in records)
    path.write_text(text)
    return path


def chat(*turns: str) -> dict[str, Any]:
    return {"messages": [{"role": r, "content": c} for r, c in (t.split(":", 1) for t in turns)]}


def test_all_faults_are_told_with_their_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path / "data.jsonl",
        chat("user:a", "assistant:b"),
        "nonsense\n",
        "\n",
        {"messages": []},
        chat("user:a", "assistant: "),
        chat("user:a"),
        chat("robot:a", "assistant:b"),
        [1],
    )
    with pytest.raises(InputError) as error:
        read_conversations(path)
    text = str(error.value)
    assert "6 faulty lines" in text
    for number, words in (
        (2, "line: is not JSON"),
        (4, "messages: is missing"),
        (5, "messages[1].content: expected text"),
        (6, "messages: expected a user's turn and an assistant's answer as the last two"),
        (7, "messages[0].role: expected system or user or assistant"),
        (8, "messages: is missing"),
    ):
        assert f"{path}:{number}: {words}" in text
    with pytest.raises(InputError, match="is empty"):
        read_conversations(written(tmp_path / "empty.jsonl", "\n"))


@pytest.mark.parametrize("begin", [True, False])
def test_only_the_answer_and_the_end_are_learnt(tmp_path: Path, begin: bool) -> None:
    made = tokenizer(begin=begin, end=begin)
    path = written(tmp_path / "data.jsonl", chat("user:the cat", "assistant: sat "))
    (one,) = encode(read_conversations(path), made)
    columns = one.columns()
    assert columns["input_ids"] == one.tokens and len(columns["labels"]) == len(one.tokens)
    learnt = [token for token in columns["labels"] if token != -100]
    assert learnt[-1] == made.eos_token_id and learnt.count(made.eos_token_id) == 1
    assert made.decode(learnt[:-1]) == " sat"
    before = one.tokens[: one.prompt_length]
    assert made.decode(before) == ("<s>the cat" if begin else "the cat")


def test_it_is_laid_out_as_a_reply_is_asked_for(tmp_path: Path) -> None:
    made = tokenizer(template=TEMPLATE)
    path = written(tmp_path / "d.jsonl", chat("system:be", "user:the cat", "assistant:sat"))
    (one,) = encode(read_conversations(path), made)
    assert (
        made.decode(one.tokens[: one.prompt_length])
        == "<|system|>be<|end|><|user|>the cat<|end|><|assistant|>"
    )
    assert made.decode(one.tokens[one.prompt_length :]) == "sat<|end|></s>"

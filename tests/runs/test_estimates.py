"""What calls will take: guessed from the request, learnt from what is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trustassay.calls.keys import chat_parts
from trustassay.calls.store import CallStore, StoredCall
from trustassay.core.capabilities import ChatRequest
from trustassay.runs.estimates import (
    DEFAULT_LATENCY_S,
    DEFAULT_REPLY_TOKENS,
    MAX_OPEN_REPLY_TOKENS,
    MIN_STORED_REPLIES,
    CallEstimate,
    CallEstimator,
    EstimateSource,
    Range,
    stretch_factor,
)

NAME = "openai:m@http://h/v1"


def stored(i: int, request: ChatRequest, **others: Any) -> StoredCall:
    text = json.dumps(list(chat_parts(request)))
    return StoredCall(b"%016d" % i, "chat", NAME, text, "{}", 0.5, 10, 7)._replace(**others)


def learnt(path: Path, calls: Iterable[StoredCall], request: ChatRequest) -> CallEstimate:
    store = CallStore(path / "calls.sqlite")
    store.add(calls)
    found = CallEstimator([store]).estimate(NAME, request)
    store.close()
    return found


def asked(words: int = 8, **parameters: Any) -> ChatRequest:
    return ChatRequest.of("word " * words, **parameters)


def test_with_nothing_stored_a_reply_is_from_one_token_to_what_is_allowed() -> None:
    found = CallEstimator([]).estimate(NAME, asked(max_tokens=512))
    assert found.reply_tokens == Range(1, DEFAULT_REPLY_TOKENS, 512)
    assert (found.seconds, found.source) == (DEFAULT_LATENCY_S, EstimateSource("none", 0))
    assert CallEstimator([]).estimate(NAME, asked()).reply_tokens.high == MAX_OPEN_REPLY_TOKENS
    assert CallEstimator([]).estimate(NAME, asked(max_tokens=7, n=3)).reply_tokens == Range(
        3, 21, 21
    )


@pytest.mark.parametrize(
    ("text", "middle"),
    [
        ("Is it so? Answer yes or no.", 5),
        ("Reply with a single number.", 5),
        ("Answer the question in one full sentence. " + "x" * 1000, 40),
        ("Tell me of rivers.", DEFAULT_REPLY_TOKENS),
    ],
)
def test_a_prompt_says_how_it_wants_to_be_answered(text: str, middle: int) -> None:
    assert CallEstimator([]).estimate(NAME, ChatRequest.of(text)).reply_tokens.middle == middle


def test_a_guessed_prompt_holds_long_words_and_scripts_without_spaces() -> None:
    english = CallEstimator([]).estimate(NAME, ChatRequest.of("a" * 600)).prompt_tokens
    assert english.low == 100
    assert english.middle == 154
    chinese = CallEstimator([]).estimate(NAME, ChatRequest.of("问" * 600)).prompt_tokens
    assert chinese.high >= 600


def test_replies_to_like_requests_are_what_is_learnt_from(tmp_path: Path) -> None:
    short, long = asked(max_tokens=20, prompt="a/1"), asked(max_tokens=900, prompt="b/1")
    calls = [stored(i, short, reply_tokens=5) for i in range(100)]
    calls += [stored(100 + i, long, reply_tokens=700) for i in range(100)]
    found = learnt(tmp_path, calls, short)
    assert found.source == EstimateSource("like", 100)
    assert found.reply_tokens == Range(5 / stretch_factor(100), 5, 5 * stretch_factor(100))
    assert found.seconds.middle == 0.5
    # 40 characters are estimated as 10 + 4 tokens, and took 10.
    assert found.prompt_tokens.middle == pytest.approx(10)


def test_other_replies_of_the_model_help_within_the_bound(tmp_path: Path) -> None:
    calls = [stored(i, asked(prompt="a/1"), reply_tokens=50) for i in range(10)]
    found = learnt(tmp_path, calls, asked(prompt="b/1", max_tokens=30))
    assert found.source == EstimateSource("other", 10)
    assert found.reply_tokens.high == 30


def test_prompts_of_like_length_are_looked_at_where_there_are_many(tmp_path: Path) -> None:
    calls = [stored(i, asked(10), reply_tokens=10) for i in range(50)]
    calls += [stored(50 + i, asked(1000), reply_tokens=1000) for i in range(50)]
    assert learnt(tmp_path, calls, asked(12)).reply_tokens.middle == 10
    assert learnt(tmp_path, [], asked(900)).reply_tokens.middle == 1000


def test_replies_that_were_cut_bound_nothing_that_may_be_longer(tmp_path: Path) -> None:
    calls = [stored(i, asked(max_tokens=30), reply_tokens=30) for i in range(50)]
    assert learnt(tmp_path, calls, asked(max_tokens=400)).reply_tokens.high == 400


def test_too_few_replies_and_other_models_teach_nothing(tmp_path: Path) -> None:
    calls = [stored(i, asked()) for i in range(MIN_STORED_REPLIES - 1)]
    calls += [stored(50 + i, asked(), backend="openai:other@http://h/v1") for i in range(50)]
    calls += [stored(200 + i, asked(), reply_tokens=None) for i in range(50)]
    calls += [stored(300 + i, asked())._replace(request="damaged") for i in range(50)]
    assert learnt(tmp_path, calls, asked()).source == EstimateSource("none", MIN_STORED_REPLIES - 1)


def test_the_range_holds_the_sum_of_further_skewed_replies(tmp_path: Path) -> None:
    """Half of the replies are a word, and a few are long: percentiles alone would miss the mean."""
    rng = np.random.default_rng(5)
    held = 0
    for trial in range(100):
        tokens = np.ceil(np.exp(rng.normal(1.5, 1.3, 250))).astype(int).tolist()
        (tmp_path / str(trial)).mkdir()
        calls = [stored(i, asked(), reply_tokens=n) for i, n in enumerate(tokens[:50])]
        found = learnt(tmp_path / str(trial), calls, asked()).reply_tokens
        held += 200 * found.low <= sum(tokens[50:]) <= 200 * found.high
    assert held >= 98

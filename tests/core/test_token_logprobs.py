"""Log-probabilities as endpoints write them, and which of their tokens spell a text."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.capabilities import TokenLogprob
from trustassay.core.token_logprobs import (
    ANOTHER_TEXT,
    COUNT,
    LENGTHS,
    NO_NUMBERS,
    ONE_NUMBER,
    PART_OF_TEXT,
    POSITIVE,
    UNREADABLE,
    fit_tokens,
    read_token_list,
)

TEXT = "The ferry leaves at 7."
TEXTS = ["The", " ferry", " leaves", " at", " ", "7", "."]
NUMBERS = [-0.3, -0.2, -0.5, -0.1, -0.05, -1.5, -0.01]
PAIRS: list[list[Any]] = [[text, number] for text, number in zip(TEXTS, NUMBERS, strict=True)]
OTHER = ["A", -3.0]


OBJECTS = [
    {
        **{"token": text, "logprob": number, "bytes": list(str(text).encode())},
        "top_logprobs": [{"token": text, "logprob": number}, {"token": "A", "logprob": -3.0}],
    }
    for text, number in PAIRS
]


def completion(tokens: Sequence[str] = TEXTS, numbers: Sequence[Any] = NUMBERS) -> dict[str, Any]:
    top = [{token: number, "A": -3.0} for token, number in zip(tokens, numbers, strict=False)]
    offsets = [0] * len(tokens)
    return {
        **{"tokens": list(tokens), "token_logprobs": list(numbers)},
        **{"top_logprobs": top, "text_offset": offsets},
    }


def by_position(value: list[Any]) -> list[list[Any]]:
    """Return [number, id, text] of each token, as SGLang writes them."""
    return [[number, 7, text] for text, number in value]


GEMINI_TOKENS = [{"token": t, "tokenId": 7, "logProbability": n} for t, n in PAIRS]
GEMINI_TOP = [
    {"candidates": [token, {"token": "A", "logProbability": -3}]} for token in GEMINI_TOKENS
]
FORMS: dict[str, Any] = {
    "pairs": PAIRS,
    "pairs with alternatives": [[*pair, [pair, OTHER]] for pair in PAIRS],
    "numbers as texts": [[text, str(number)] for text, number in PAIRS],
    "chat: content": {"content": OBJECTS, "refusal": None},
    "chat: list": OBJECTS,
    "chat: refusal": {"content": None, "refusal": OBJECTS},
    "chat: response": {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": TEXT},
                "logprobs": {"content": OBJECTS, "refusal": None},
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 7},
    },
    "chat: of two choices the one with the text": {
        "choices": [
            {"logprobs": {"content": [{"token": "No", "logprob": -0.1}]}},
            {"logprobs": {"content": OBJECTS}},
        ]
    },
    "responses": {
        "output": [
            {"content": [{"type": "output_text", "text": TEXT, "logprobs": OBJECTS}]},
        ]
    },
    "completions": completion(),
    "completions: response": {"choices": [{"text": TEXT, "index": 0, "logprobs": completion()}]},
    "completions: with the prompt": completion(
        ["When", "?", *TEXTS], [None, -4.0, *NUMBERS]
    ),
    "vllm: by id": [
        {
            str(n): {"logprob": number, "rank": 1, "decoded_token": text},
            "99": {"logprob": -3.0, "rank": 2, "decoded_token": "A"},
        }
        for n, (text, number) in enumerate(PAIRS)
    ],
    "sglang": {
        "text": TEXT,
        "meta_info": {
            "input_token_logprobs": [[None, 1, None], [-2.0, 2, None]],
            "output_token_logprobs": by_position(PAIRS),
            "output_top_logprobs": [by_position([pair, OTHER]) for pair in PAIRS],
        },
    },
    "gemini": {
        "candidates": [
            {
                "avgLogprobs": -0.4,
                "logprobsResult": {"topCandidates": GEMINI_TOP, "chosenCandidates": GEMINI_TOKENS},
            }
        ]
    },
    "gemini: sdk": {
        "top_candidates": None,
        "chosen_candidates": [{"token": t, "log_probability": n} for t, n in PAIRS],
    },
    "tgi": {
        "generated_text": TEXT,
        "details": {
            "prefill": [{"id": 1, "text": "The", "logprob": None}],
            "tokens": [{"id": 7, "text": t, "logprob": n, "special": False} for t, n in PAIRS]
            + [{"id": 2, "text": "</s>", "logprob": -0.1, "special": True}],
            "top_tokens": [[{"id": 7, "text": t, "logprob": n}] for t, n in PAIRS] + [[]],
        },
    },
    "llama.cpp": {"content": TEXT, "completion_probabilities": OBJECTS},
    "llama.cpp: probabilities": [
        {"token": t, "prob": math.exp(n), "top_probs": [{"token": t, "prob": math.exp(n)}]}
        for t, n in PAIRS
    ],
    "llama.cpp: earlier": [
        {"content": t, "probs": [{"tok_str": "A", "prob": 0}, {"tok_str": t, "prob": math.exp(n)}]}
        for t, n in PAIRS
    ],
    "ollama": {"response": TEXT, "done": True, "logprobs": OBJECTS},
    "one object a token": [{text: number} for text, number in PAIRS],
    "other spellings of the names": [{"Text": t, "log_prob": n} for t, n in PAIRS],
    "as Python prints it": str([tuple(pair) for pair in PAIRS]),
    "in a list of its own": [PAIRS],
    "after numbers alone": {"logprobs": [-9.0] * 7, "tokens": PAIRS},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_tokens(form: str) -> None:
    value = FORMS[form]
    # As it comes from a file.
    fitted = fit_tokens(value if isinstance(value, str) else json.loads(json.dumps(value)), TEXT)
    assert fitted.unusable == ""
    assert [token.token for token in fitted.tokens] == TEXTS
    assert [token.logprob for token in fitted.tokens] == pytest.approx(NUMBERS)


@pytest.mark.parametrize(
    "form",
    [
        *("pairs with alternatives", "chat: content", "completions", "vllm: by id", "sglang"),
        "gemini",
    ],
)
def test_alternatives_are_read_with_their_tokens(form: str) -> None:
    for token in fit_tokens(FORMS[form], TEXT).tokens:
        assert token.alternatives == ((token.token, token.logprob), ("A", -3.0))


COHERE = [
    {"text": "The ferry", "token_ids": [1, 2], "logprobs": [-0.3, -0.2]},
    {"text": " leaves at 7.", "token_ids": [3, 4, 5], "logprobs": [-0.5, -0.1, -1.5]},
]


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        (NUMBERS, NUMBERS),
        ([NUMBERS], NUMBERS),
        ({"token_logprobs": NUMBERS, "token_ids": [1] * 7}, NUMBERS),
        ({"tokens": [5] * 7, "token_logprobs": NUMBERS}, NUMBERS),
        ([{"token": "token_id:7", "logprob": number} for number in NUMBERS], NUMBERS),
        ({"meta_info": {"output_token_logprobs": [[n, 7, None] for n in NUMBERS]}}, NUMBERS),
        (COHERE, [-0.3, -0.2, -0.5, -0.1, -1.5]),
    ],
)  # fmt: skip
def test_numbers_count_where_tokens_have_no_text(value: Any, numbers: Sequence[float]) -> None:
    assert [token.logprob for token in fit_tokens(value, TEXT).tokens] == numbers


ENDS = [
    *("<|endoftext|>", "</s>", "<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<eos>", "[EOS]", ""),
    "<｜end▁of▁sentence｜>",
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "before",
    [
        [],
        [["<s>", None]],
        [[" ", -0.1], ["", None]],
        [["<think>", -0.1], ["The ferry leaves at 7.", -0.1], ["</think>", -0.1], ["\n\n", -0.1]],
        [["<|channel|>", -0.1], ["final", -0.1], ["<|message|>", -0.1]],
    ],
)
def test_only_the_tokens_of_the_text_count(before: list[Any], end: str) -> None:
    fitted = fit_tokens([*before, *PAIRS, [end, -7.0]], TEXT)
    assert [token.logprob for token in fitted.tokens if token.token.strip()] == [
        number for text, number in PAIRS if text.strip()
    ]


def test_white_space_at_the_ends_belongs_to_the_text() -> None:
    fitted = fit_tokens([[" ", -0.1], *PAIRS, ["\n", -0.2], ["", -7.0]], TEXT)
    assert [token.token for token in fitted.tokens] == [" ", *TEXTS, "\n"]


def test_a_text_inside_a_longer_reply_is_found_at_the_ends_of_words() -> None:
    reply = [[text, -0.1] for text in ("The", " answer", ":", " **", "Yes", "**.")]
    assert [token.token for token in fit_tokens(reply, "Yes").tokens] == ["Yes"]
    for inside in (["Yes", "terday"], ["Eye", "Yes"]):
        assert fit_tokens([[text, -0.1] for text in inside], "Yes").unusable == ANOTHER_TEXT


@pytest.mark.parametrize("missing", [None, math.nan, -math.inf, "nan", 0.69])
def test_a_first_token_without_a_number_leaves_the_others_as_they_are(missing: Any) -> None:
    for value in ([["The", missing], *PAIRS[1:]], completion(numbers=[missing, *NUMBERS[1:]])):
        first, *others = fit_tokens(value, TEXT).tokens
        assert math.isnan(first.logprob)
        assert [token.logprob for token in others] == NUMBERS[1:]


def test_a_token_without_a_number_keeps_its_place() -> None:
    for second in ([" ferry", None], [" ferry"], {"token": " ferry"}):
        tokens = fit_tokens([PAIRS[0], second, *PAIRS[2:]], TEXT).tokens
        assert [token.token for token in tokens] == TEXTS
        assert [math.isnan(token.logprob) for token in tokens] == [False, True] + [False] * 5


@pytest.mark.parametrize("number", [-math.inf, -9999.0, "-inf"])
def test_a_token_that_is_too_unlikely_for_a_number_is_not_left_out(number: Any) -> None:
    tokens = fit_tokens([PAIRS[0], [" ferry", number], *PAIRS[2:]], TEXT).tokens
    assert tokens[1].logprob == -math.inf


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([["Sydney", -0.1]], ANOTHER_TEXT),
        ([["THE", -0.1], *PAIRS[1:]], ANOTHER_TEXT),
        (PAIRS[:4], PART_OF_TEXT),
        (PAIRS[3:], PART_OF_TEXT),
        ([-0.1] * 60, COUNT),
        ([-0.1], COUNT),
        (completion(numbers=NUMBERS[1:]), LENGTHS),
        ([[text, math.exp(number)] for text, number in PAIRS], POSITIVE),
        ([[text, -number] for text, number in PAIRS], POSITIVE),
        ([[text, None] for text in TEXTS], NO_NUMBERS),
        ([*PAIRS[:2], *([text, None] for text in TEXTS[2:])], NO_NUMBERS),
        (-3.2, ONE_NUMBER),
        ({"avgLogprobs": -0.3, "finishReason": "STOP"}, ONE_NUMBER),
        ({"cumulative_logprob": -3.2}, ONE_NUMBER),
        ("some text", UNREADABLE),
        ([True, "x"], UNREADABLE),
        ({"embedding": [-0.1] * 7}, UNREADABLE),
        ({"prompt_logprobs": PAIRS}, UNREADABLE),
    ],
)
def test_what_cannot_be_used_has_a_reason(value: Any, reason: str) -> None:
    fitted = fit_tokens(value, TEXT)
    assert fitted.unusable == reason
    assert fitted.tokens == ()


@pytest.mark.parametrize(
    "value",
    [
        *(None, [], {}, "", "nan", "None", "null", math.nan, True, 5),
        *({"content": None, "refusal": None}, {"content": []}, [None]),
    ],
)
def test_a_value_that_states_nothing_is_no_fault(value: Any) -> None:
    assert fit_tokens(value, TEXT) == ((), "")


PARTY = "A party 🎉🎉 on “Sunday” – naïve."
REST = " on “Sunday” – naïve."
CAKE = "🎉".encode()


def byte_letters(text: bytes) -> str:
    """Spell bytes as a byte-level tokenizer does, without its table: only what the tests need."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return "".join(chr(b if b in printable else 0x100 + others.index(b)) for b in text)


CUT: dict[str, list[Any]] = {
    "bytes of each token": [
        {"token": "?", "logprob": -0.1, "bytes": list(part)}
        for part in (b"A party ", CAKE[:2], CAKE[2:], CAKE[:3], CAKE[3:] + REST.encode())
    ],
    "escaped": [
        *(["A party", -0.1], ["bytes: \\xf0\\x9f", -0.1], ["bytes:\\x8e\\x89", -0.1]),
        *(["\\xf0\\x9f\\x8e", -0.1], ["\\x89", -0.1], [REST, -0.1]),
    ],
    "replacement characters": [
        *(["A party", -0.1], [" \ufffd", -0.1], ["\ufffd", -0.1], ["\ufffd", -0.1]),
        *(["\ufffd\ufffd", -0.1], [REST, -0.1], ["<|im_end|>", -0.1]),
    ],
    "their bytes": [
        {"token": text, "logprob": -0.1, "bytes": list(text.encode())}
        for text in ("A party ", "\ufffd", "\ufffd", "\ufffd", "\ufffd", REST, "")
    ],
    "nothing": [
        *(["A party ", -0.1], ["", -0.1], ["🎉", -0.1], ["", -0.1], ["🎉", -0.1], [" on ", -0.1]),
        *(["", -0.1], ["Sunday", -0.1], ["", -0.1], [" – naïve.", -0.1]),
    ],
    "sentencepiece": [
        *(["▁A", -0.1], ["▁party", -0.1], ["▁", -0.1]),
        *([f"<0x{byte:02X}>", -0.1] for byte in CAKE * 2),
        *(["▁on▁“Sunday”▁–▁naïve.", -0.1], ["</s>", -0.1]),
    ],
    "byte-level": [
        *([byte_letters(PARTY.encode()[n : n + 3]), -0.1] for n in range(0, 44, 3)),
        ["<|eot_id|>", -0.1],
    ],
}  # fmt: skip


@pytest.mark.parametrize("spelling", CUT)
def test_a_character_in_several_tokens_is_the_text_of_one_of_them(spelling: str) -> None:
    tokens = fit_tokens(CUT[spelling], PARTY).tokens
    assert "".join("".join(token.token for token in tokens).split()) == "".join(PARTY.split())
    # What ended the text is none of it.
    assert tokens[-1].token


@pytest.mark.parametrize("spelling", CUT)
def test_a_spelling_of_another_text_is_still_another_text(spelling: str) -> None:
    assert fit_tokens(CUT[spelling], PARTY.replace("Sunday", "Monday")).tokens == ()


def test_marks_in_the_text_itself_are_text() -> None:
    code = 'print("\\xe2", "▁", "Ġ")'
    tokens = fit_tokens([['print("', -0.1], ["\\xe2", -0.2], ['", "▁", "Ġ")', -0.3]], code).tokens
    assert [token.token for token in tokens] == ['print("', "\\xe2", '", "▁", "Ġ")']


def test_a_value_of_any_depth_and_length_is_an_answer_in_time() -> None:
    deep: Any = PAIRS
    for _ in range(900):
        deep = {"logprobs": [deep]}
    assert fit_tokens(deep, TEXT).unusable == UNREADABLE
    nested: Any = {"token": "The", "logprob": -0.1}
    for _ in range(900):
        nested = {"token": "The", "logprob": -0.1, "top_logprobs": [nested]}
    assert fit_tokens([nested], TEXT).tokens == ()
    repeated = [["a", -0.1]] * 50_000
    assert fit_tokens(repeated, "a").unusable == ANOTHER_TEXT
    assert fit_tokens([["\ufffd", -0.1]] * 20_000, "é" * 9_000 + "a").unusable == ANOTHER_TEXT


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["token", "logprob", "tokens", "content", "top_logprobs", "bytes", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(json_values, st.text(max_size=6))
def test_any_value_is_read_or_has_a_reason(value: Any, text: str) -> None:
    fitted = fit_tokens(value, text)
    assert not (fitted.tokens and fitted.unusable)
    assert all(not token.logprob > 0 for token in fitted.tokens)


def test_the_tokens_of_a_reply_are_read_as_they_are() -> None:
    value = {"content": [{"token": "<think>", "logprob": -0.1}, {"token": "a", "logprob": -9999.0}]}
    # DeepSeek has the reasoning in a list of its own.
    tokens = read_token_list({**value, "reasoning_content": [{"token": "b", "logprob": -0.1}]})
    assert tokens is not None
    assert [(token.token, token.logprob) for token in tokens] == [
        ("<think>", -0.1),
        ("a", -math.inf),
    ]


@pytest.mark.parametrize("number", [math.nan, -math.inf])
def test_what_is_stored_is_json(number: float) -> None:
    stored = TokenLogprob("a", number).to_json(0)
    assert json.loads(json.dumps(stored, allow_nan=False)) == ["a", None]


@pytest.mark.parametrize(
    "value",
    [
        *(None, {}, {"content": []}, {"content": [{"token": "a"}]}),
        {"content": [{"token": "a", "logprob": math.nan}]},
        {"content": [{"token": "a", "logprob": math.inf}]},
        {"tokens": [1], "token_logprobs": [-1]},
    ],
)
def test_tokens_of_a_reply_without_texts_or_numbers_are_none(value: Any) -> None:
    assert read_token_list(value) is None


@pytest.mark.parametrize("number", [None, math.nan, math.inf])
def test_a_number_that_is_not_known_costs_the_other_tokens_nothing(number: float | None) -> None:
    alternatives = [{"token": "c", "logprob": number}, {"token": "d", "logprob": -2.0}]
    second = {"token": "b", "logprob": number, "top_logprobs": alternatives}
    tokens = read_token_list({"content": [{"token": "a", "logprob": -1.0}, second]})
    assert tokens is not None
    assert tokens[0] == ("a", -1.0, ())
    assert math.isnan(tokens[1].logprob)
    assert tokens[1].known == [("d", -2.0)]

"""Every reply names one verdict or none, whatever stands in it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.text.verdict_replies import ENTAILMENT_LABELS, find_verdict

NAMED = {
    "support": [
        "SUPPORTS",
        "supported.",
        "**Supports**",
        "Entailment",
        "The passage supports the statement.",
        "SUPPORTS - passage 2 says so, and does not contradict it",
        "It doesn't contradict the statement, it supports it.",
        '{"verdict": "supports", "why": "it says so"}',
        "I must see if the passage supports it. It does: it supports it.",
        "Although it does not name the town, the passage supports it.",
        "It does not contradict it but supports it.",
        "It not only mentions it, it supports it.",
        "There is no doubt that it supports it.",
        "Passage no. 2 supports it.",
    ],
    "contradict": [
        "contradicts",
        "(C) contradicts",
        "Relation: contradict",
        "The evidence refutes the claim",
        "It sounds as if it supports this.\nFinal answer: CONTRADICTS",
        "I need to see whether the passage supports the statement.\nIt says no.\nCONTRADICTS",
        "Contradictory to the passage.",
        "The passage says that he was never in Rome, contradicting the claim.",
        "It says he was not in Rome, which contradicts the claim.",
        "\u202econtradicts",
    ],
    "neutral": [
        "NEITHER",
        "neutral",
        "Verdict: **neither**",
        "It neither supports nor contradicts it.",
        "NEITHER\nThe passage supports half of it only.",
        "There is not enough information.",
        "The evidence is insufficient",
        "It cannot be determined from the passage.",
        "No passage supports the answer, so it is neutral.",
        "The passage does not name the town and is irrelevant.",
    ],
}
NONE = [
    "",
    "yes",
    "true",
    "The passage does not support the statement.",
    "It partially supports the statement.",
    "unsupported",
    "self-contradictory",
    "SUPPORTS, CONTRADICTS or NEITHER",
    "Label: SUPPORTS, CONTRADICTS or NEITHER?",
    "SUPPORTS\nCONTRADICTS",
    "Verdict: supports. Verdict: contradicts.",
    "It supports the first half and contradicts the second.",
    "I cannot see whether it supports it.",
    "supporter contradictions",
    "No passage supports the answer.",
    "None of the passages supports the answer.",
    "None of the passages, however, supports the answer.",
    "None of passages 1, 2, and 3 supports the answer.",
    "Passage 2 does not in any way support it",
    "I cannot say it supports.",
    "I cannot say that the answer is supported.",
    "The evidence lacks support",
    "Nothing that I was given about the town, its river or its inhabitants contradicts it.",
]


@pytest.mark.parametrize(
    ("verdict", "text"), [(verdict, text) for verdict, texts in NAMED.items() for text in texts]
)
def test_a_reply_names_its_verdict_in_whatever_wording(verdict: str, text: str) -> None:
    found = find_verdict(text)
    assert found is not None
    assert found.verdict == verdict
    shortest = {"support": ("supp", "ent"), "contradict": ("contra", "ref"), "neutral": None}
    if beginnings := shortest[verdict]:
        assert text[found.start :].lower().startswith(beginnings)


@pytest.mark.parametrize("text", NONE)
def test_what_was_not_on_offer_is_not_accepted(text: str) -> None:
    assert find_verdict(text) is None


@given(st.text(), st.sampled_from(["supports", "neither", "contradicts", "nor", "not ", ""]))
def test_every_text_has_one_verdict_or_none(text: str, word: str) -> None:
    found = find_verdict(text + word)
    if found is not None:
        assert found.verdict in ENTAILMENT_LABELS
        assert 0 <= found.start < len(text + word)


@pytest.mark.parametrize(
    "text",
    [
        "neither " * 3000,
        "neither supports nor contradicts " * 2000,
        "(" * 50_000,
        " " * 50_000 + "supports it",
        ("verdict" + " " * 30) * 2000,
        "not " * 10_000 + "supports",
        "a supports\n" * 5000,
    ],
    ids=lambda text: text[:12],
)
def test_a_hostile_reply_is_read_in_no_time(text: str) -> None:
    began = time.process_time()
    find_verdict(text)
    assert time.process_time() - began < 2

"""The paper profile against cases worked by hand, and against an independent implementation."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from tests.metrics.grounding import oracle
from tests.metrics.grounding.paper_cases import CASES, Case, simple_sentences
from tests.tiny_models import HYPOTHESIS, NONE, RED, filler, train_true
from trustassay import score
from trustassay.metrics import Grounding

Values = Mapping[str, float | int | None]


def paper_values(
    items: Sequence[Mapping[str, Any]],
    mode: Any,
    entails: Callable[[str, str], bool],
    split: Callable[[str], list[str]],
    at_most_citations: int | None = 3,
) -> Values:
    metric = Grounding(
        profile="paper",
        correctness=mode,
        splitter=split,
        at_most_citations=at_most_citations,
    )
    return score(items, metrics=[metric], entailer=entails).summary["grounding"]


def assert_same(values: Values, expected: Mapping[str, float | None]) -> None:
    for key, value in expected.items():
        if value is None:
            assert values[key] is None, key
        else:
            assert values[key] == pytest.approx(value, abs=1e-9, rel=1e-9), key


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hand_worked_case(case: Case) -> None:
    values = paper_values(case.items, case.mode, case.entails, case.split, case.at_most_citations)
    assert_same(values, case.expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_key_of_a_case_equals_the_oracle(case: Case) -> None:
    values = paper_values(case.items, case.mode, case.entails, case.split, case.at_most_citations)
    expected = oracle.evaluate(
        case.items,
        mode=case.mode,
        entails=case.entails,
        sentences=case.split,
        at_most_citations=case.at_most_citations,
    )
    assert_same(values, expected)


PIECES = st.sampled_from(
    [
        "Paris",
        "the Nile",
        "Juvenile",
        "Mai, the Girl",
        "copper",
        "1. Heat",
        " [1]",
        "[2]",
        " [3]",
        "[0]",
        " [9]",
        "[1, 2]",
        "[1-3]",
        "[02]",
        "[note]",
        " |",
        ". ",
        ", ",
        "\n",
        "I apologize, but I couldn't find an answer",
        "but",
        "could",
        "find an",
        "²",
        "٣",
        "[٣]",
    ]
)
TEXTS = st.lists(PIECES, max_size=9).map(" ".join) | st.lists(PIECES, max_size=9).map("".join)
GOLDS = st.lists(
    st.lists(
        st.sampled_from(["Paris", "Nile", "the Nile", "copper", "Mai, the Girl", "Heat", "I", "."]),
        min_size=1,
        max_size=2,
    ),
    min_size=1,
    max_size=7,
)


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    golds = draw(GOLDS)
    flags = st.lists(st.integers(0, 1), min_size=len(golds), max_size=len(golds))
    documents = draw(
        st.lists(
            st.fixed_dictionaries(
                {"title": st.sampled_from(["T", "", "Nile"]), "text": TEXTS, "answers_found": flags}
            ),
            min_size=1,
            max_size=4,
        )
    )
    return {"question": "Which?", "answers": golds, "docs": documents, "output": draw(TEXTS)}


@settings(max_examples=75, deadline=None)
@given(
    data=st.lists(items(), min_size=1, max_size=6),
    mode=st.sampled_from(["em", "cm", "em5"]),
    salt=st.integers(0, 3),
    limit=st.sampled_from([1, 2, 3, None]),
)
@pytest.mark.slow
def test_random_data_equals_the_oracle(
    data: list[dict[str, Any]], mode: str, salt: int, limit: int | None
) -> None:
    def entails(premise: str, hypothesis: str) -> bool:
        text = f"{salt}\x1f{premise}\x1f{hypothesis}".encode()
        return hashlib.blake2b(text).digest()[0] < 150

    expected = oracle.evaluate(
        data, mode=mode, entails=entails, sentences=simple_sentences, at_most_citations=limit
    )
    assert_same(paper_values(data, mode, entails, simple_sentences, limit), expected)


@pytest.mark.torch
@pytest.mark.slow
def test_a_model_of_the_kind_of_t5_xxl_true_judges_the_citations(tmp_path: Path) -> None:
    """The AutoAIS of Trust-Eval, by a T5 of a few thousand weights that writes "1" or "0"."""
    torch, transformers = needed("torch"), needed("transformers")
    path = train_true(tmp_path / "true")
    raw = transformers.T5ForConditionalGeneration.from_pretrained(path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    written: dict[tuple[str, str], str] = {}

    def entails(premise: str, hypothesis: str) -> bool:
        inputs = tokenizer(f"premise: {premise} hypothesis: {hypothesis}", return_tensors="pt")
        with torch.no_grad():
            [tokens] = raw.generate(**inputs, do_sample=False, max_new_tokens=1)
        reply = tokenizer.decode(tokens, skip_special_tokens=True).strip()
        written[premise, hypothesis] = reply
        return bool(reply == "1")

    documents = [
        {"title": "", "text": text, "answers_found": [int(text == RED)]}
        for text in (RED, NONE, filler(12, random.Random(1)))
    ]
    outputs = [
        f"{HYPOTHESIS[:-1]} [1].",
        f"{HYPOTHESIS[:-1]} [2].",
        f"{HYPOTHESIS[:-1]} [1][3]. {HYPOTHESIS[:-1]} [3].",
        f"{HYPOTHESIS[:-1]} [2][3].",
        HYPOTHESIS,
    ]
    items = [
        {"question": "Which car?", "answers": [["red car"]], "docs": documents, "output": output}
        for output in outputs
    ]
    metric = Grounding(profile="paper", correctness="em", splitter=simple_sentences)
    values = score(items, metrics=[metric], entailer=f"hf:{path}").summary["grounding"]
    expected = oracle.evaluate(
        items, mode="em", entails=entails, sentences=simple_sentences, at_most_citations=3
    )
    assert_same(values, expected)
    assert set(written.values()) == {"0", "1"}
    assert 0 < (values["regular_citation_rec"] or 0) < 100
    assert 0 < (values["regular_citation_prec"] or 0) < 100

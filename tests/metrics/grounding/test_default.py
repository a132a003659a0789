"""The default profile: each rule on and off, support flags, scores, a naive check, the demo."""

from __future__ import annotations

import hashlib
import json
import time
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.grounding.helpers import (
    Item,
    Knows,
    assessed,
    docs,
    hypotheses,
    item,
    run_of,
    trace,
    values_of,
)
from trustassay import score
from trustassay.errors import UnknownNameError
from trustassay.input.reading import read_samples
from trustassay.metrics import Grounding
from trustassay.metrics.grounding.options import PROFILES
from trustassay.runs.intake import BadInputError

FLAG = "I apologize, but I couldn't find an answer"
A = Knows({"A is.": ["1"], "B is.": ["2"]})


def citations(response: str, entails: Any = A, documents: int = 3, **options: Any) -> Any:
    """Citation recall and precision of one response, in percent, unrounded."""
    values = values_of(item(response, documents), entails, **options)
    return values["regular_citation_rec"], values["regular_citation_prec"]


# Each rule, on and off


def test_lists() -> None:
    both = Knows({"A is.": ["12"]})
    # Read whole: both cited, both needed: 1/1, 2/2. Else document 1 alone, and "A is, 2.".
    assert citations("A is [1, 2].", both) == (100, 100)
    assert citations("A is [1, 2].", both, lists=False) == (0, 0)
    assert citations("A is [1-2].", both) == (100, 100)
    assert citations("A is [1-2].", both, lists=False) == (0, 0)
    # [2023] is text; else a citation of a missing document. Nothing supports "A is [2023].".
    year = Knows({"A is [2023].": ["1"]})
    dated = item("A is [2023] [1].") | {"question": "What of 2023?"}
    assert values_of(dated, year)["regular_citation_rec"] == 100
    assert values_of(item("A is [2023] [1]."), year)["invalid_citations"] == 0
    assert citations("A is [2023] [1].", year, lists=False) == (0, 0)
    assert values_of(item("A is [2023] [1]."), year, lists=False)["invalid_citations"] == 1


@pytest.mark.parametrize("marker", ["[Doc 1]", "[^1]", "【1】", "[document 1]", "[1]", "[ 1 ]"])
def test_markers_of_many_styles(marker: str) -> None:
    assert citations(f"A is {marker}.") == (100, 100)


def test_a_range_that_runs_backwards_cites_its_ends() -> None:
    # [3-1] cites 3 and 1: 1 supports alone, 3 is redundant: 1/1, 1/2.
    assert citations("A is [3-1].") == (100, 50)


def test_trailing() -> None:
    # On: A cites 1, B cites 2: 2/2, 2/2. Off: A cites nothing, B cites 1 and 2 (1 redundant):
    # 1/2, 1/2.
    text = "A is. [1] B is. [2]"
    assert citations(text) == (100, 100)
    assert citations(text, trailing=False) == (50, 50)
    # Where markers lead they belong to what follows, either way.
    assert citations("[1] A is. [2] B is.") == (100, 100)


def test_lines() -> None:
    # On: two statements, each supported. Off, with a splitter that leaves lines alone: one,
    # "a is" and "b is" together, which nothing supports.
    knows = Knows({"Ants are red.": ["1"], "Bees are red.": ["2"]})
    text = "- ants are red [1]\n- bees are red [2]"

    def whole(text: str) -> list[str]:
        return [text]

    assert citations(text, knows, splitter=whole) == (100, 100)
    assert citations(text, knows, splitter=whole, lines=False) == (0, 0)


def test_asides() -> None:
    said = "Sure! Here is a summary: \nA is [1]. Do you need more?"
    assert citations(said) == (100, 100)
    assert citations(said, asides=False) == (25, 100)
    rows = trace(assessed(item(said), A), "sentence")
    assert [row["supported"] for row in rows] == [None, None, True, None]
    assert rows[1]["why"] == "it only introduces what follows"
    # nor does a citation make a claim of a question or a greeting
    assert citations("Is it so [1]? A is [1].") == (100, 100)


def test_numbered_lists_count_their_items_alone() -> None:
    # "1." is no statement of its own: 2 of 2, not 2 of 4.
    assert citations("1. A is [1].\n2. B is [2].") == (100, 100)


def test_zero() -> None:
    knows = Knows({"A is.": ["3"]})
    # Invalid: no statement supported, no citation counted. "last": document 3 of 3.
    assert citations("A is [0].", knows) == (0, 0)
    assert citations("A is [0].", knows, zero="last") == (100, 100)
    assert values_of(item("A is [0]."), knows)["invalid_citations"] == 1
    assert values_of(item("A is [0]."), knows, zero="last")["invalid_citations"] == 0


def test_invalid() -> None:
    # B is fine in both: void: 1/2 statements, 1/1 citations. imprecise: 2/2, 2/3.
    text = "A is [1][9]. B is [2]."
    assert citations(text) == (50, 100)
    assert citations(text, invalid="imprecise") == (100, pytest.approx(200 / 3))
    for option in ("void", "imprecise"):
        assert values_of(item(text), A, invalid=option)["invalid_citations"] == 1


def test_duplicates() -> None:
    # 1 supports alone; 3 does not, and 1 does without it. Once: 1/2. Each: [1][3][3]: 1/3.
    assert citations("A is [1][3][3].") == (100, 50)
    assert citations("A is [1][3][3].", duplicates="each") == (100, pytest.approx(100 / 3))


def test_precision() -> None:
    # 2 is superfluous but supports the gold answer that 1 supports: 2/2; by ALCE's rule 1/2.
    answer = item("A is [1][2].", docs(2, [1], [1]), answers=["A"])
    assert values_of(answer, A)["regular_citation_prec"] == 100
    assert values_of(answer, A, precision="alce")["regular_citation_prec"] == 50


def test_blank() -> None:
    # Two responses, one blank: zero: (1 + 0)/2; skip: 1/1.
    items = [item("A is [1]."), item(" ")]
    assert values_of(items, A)["regular_citation_rec"] == 50
    assert values_of(items, A, blank="skip")["regular_citation_rec"] == 100
    # Nothing but blank ones: 0, or not applicable.
    assert values_of(items[1:], A)["regular_citation_f1"] == 0
    run = run_of(items[1:], A, blank="skip")
    for key in ("rec", "prec", "f1"):
        assert run.summary["grounding"][f"regular_citation_{key}"] is None
        reason = run.summaries["grounding"].not_applicable[f"regular_citation_{key}"]
        assert reason == "no response has a statement"


def test_at_most_citations() -> None:
    knows = Knows({"A is.": ["4"]})
    text = "A is [1][2][3][4]."
    # Of three none supports: 0/1, 0/3. Of four the last does, alone: 1/1, 1/4.
    assert citations(text, knows, documents=4) == (0, 0)
    assert citations(text, knows, documents=4, at_most_citations=4) == (100, 25)
    assert citations(text, knows, documents=4, at_most_citations=None) == (100, 25)
    run = score([item(text, 4)], metrics=["grounding:at_most_citations=none"], entailer=knows)
    assert run.summary["grounding"]["regular_citation_rec"] == 100
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at_most_citations: expected 1 or more"):
            Grounding(at_most_citations=wrong)


def test_threshold() -> None:
    def unsure(premise: str, hypothesis: str) -> float:
        return 0.6

    assert citations("A is [1].", unsure) == (100, 100)
    assert citations("A is [1].", unsure, threshold=0.6) == (100, 100)
    assert citations("A is [1].", unsure, threshold=0.61) == (0, 0)
    for wrong in (0.0, 1.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="threshold: expected a probability"):
            Grounding(threshold=wrong)


def test_untitled() -> None:
    """A passage without a title stands alone; the paper puts an empty title before it."""
    knows = Knows()
    assessed(item("A is [1]."), knows)
    assessed(item("A is [1]."), knows, profile="paper", splitter="lines")
    assert knows.asked == [("d1", "A is."), ("Title: \nd1", "A is.")]


def test_undefined_f1() -> None:
    blank = item("")
    default = values_of(blank, A, blank="skip")
    paper = values_of(blank, A, profile="paper", splitter="lines")
    assert default["regular_citation_f1"] is None
    assert paper["regular_citation_f1"] == 0
    assert paper["regular_citation_rec"] is None


def test_one_text() -> None:
    """ "Find [1]." is 83 % like the flag as it stands, and 100 % without its citation (B8).

    Gold "Find", supported. One text: answered, and correct. Two: answered in the counts, but
    refused in the calibrated figures.
    """
    answer = item("Find [1].", docs(1, [1]), answers=["Find"])
    one = values_of(answer, A, refusal="paper")
    two = values_of(answer, A, refusal="paper", one_text=False)
    assert (one["answered_num"], two["answered_num"]) == (1, 1)
    assert one["calib_answered_str_em"] == 100
    assert two["calib_answered_str_em"] == 0
    assert two["answered_str_em"] == 100


def test_one_text_does_not_hide_the_citations_from_the_detector() -> None:
    """A sentence beside the refusal that states something makes an answer of it."""
    text = "I couldn't find the year. The bridge was built by Roebling [1]."
    assert assessed(item(text), A).verdict == "answered"
    assert assessed(item(text.replace(" [1]", "")), A).verdict == "answered"
    assert assessed(item("The documents do not say so. [1][2]"), A).verdict == "refused"
    assert assessed(item("The documents [1] do not [2] say so."), A).verdict == "refused"


# Refusal by name and as a function


def says_nope(response: str) -> bool:
    return "nope" in response.lower()


def test_refusal_by_name_and_function() -> None:
    wide = item("The documents do not say.", docs(1, [0]), answers=["x"])
    assert assessed(wide, A).verdict == "refused"
    assert assessed(wide, A, refusal="paper").verdict == "answered"
    short = item("but", docs(1, [0]), answers=["x"])
    assert assessed(short, A).verdict == "answered"
    assert assessed(short, A, refusal="paper").verdict == "refused"
    own = assessed(item("Nope [1].", docs(1, [0]), answers=["x"]), A, refusal=says_nope)
    assert own.verdict == "refused"
    assert trace(own, "refusal")[0]["text"] == "says_nope"
    assert assessed(wide, A, refusal=says_nope).verdict == "answered"
    run = run_of(wide, A, refusal=says_nope)
    assert run.summaries["grounding"].settings["refusal"].endswith("test_default.says_nope")


def test_the_words_that_refuse_are_shown() -> None:
    (entry,) = trace(assessed(item("Sorry, I could not find it."), A), "refusal")
    assert entry == {"kind": "refusal", "text": "I could not find", "detector": "phrases"}
    assert trace(assessed(item("A is [1]."), A), "refusal") == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"refusal": "phrase"}, "unknown refusal detector 'phrase'; did you mean phrases"),
        ({"profile": "papr"}, "unknown profile 'papr'; did you mean paper"),
        ({"correctness": "em4"}, "unknown value of correctness 'em4'; did you mean em or em5"),
        ({"zero": "lst"}, "unknown value of zero 'lst'; did you mean last"),
        ({"invalid": "voids"}, "did you mean void"),
        ({"duplicates": "two"}, "unknown value of duplicates 'two'"),
        ({"precision": "alec"}, "did you mean alce"),
        ({"blank": "none"}, "unknown value of blank 'none'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnknownNameError, match=message):
        Grounding(**options)


def test_settings_say_what_the_profile_filled_in() -> None:
    settings_ = Grounding(precision="alce", trailing=False).settings()
    assert settings_["profile"] == "default"
    assert settings_["precision"] == "alce"
    assert settings_["trailing"] is False
    assert settings_["lists"] is True
    assert settings_["refusal"] == "phrases"
    assert Grounding(profile="paper", splitter="lines").settings()["duplicates"] == "each"
    assert PROFILES["default"].invalid == "void"


# Support flags: given, computed, misfit, absent


def coverage(item_: Item, entails: Any, **options: Any) -> list[tuple[list[int], bool]]:
    found = trace(assessed(item_, entails, **options), "coverage")
    assert [entry["document"] for entry in found] == list(range(1, len(found) + 1))
    return [(list(entry["supports"]), entry["computed"]) for entry in found]


def test_given_flags_are_used_as_they_are() -> None:
    knows = Knows({"c1": ["2"], "c2": ["1", "2"]})
    answer = item("A is [1].", docs(2, [1, 0], [0, 0]), claims=["c1", "c2"])
    assert coverage(answer, knows) == [([1, 0], False), ([0, 0], False)]
    assert {p for p, h in knows.asked if h in ("c1", "c2")} == {"A is."}


def test_flags_of_claims_are_computed_by_entailment() -> None:
    knows = Knows({"c1": ["2"], "c2": ["1", "2"]})
    answer = item("A is [1].", 2, claims=["c1", "c2"])
    assert coverage(answer, knows) == [([0, 1], True), ([1, 1], True)]
    # Two passages and two claims, the response and two claims, one cited statement.
    assert len(knows.asked) == 7


def test_flags_of_short_answers_need_the_alias_and_entailment() -> None:
    """d1 has the alias and entails; d2 has it and does not; d3 entails, but has it not."""
    documents = [{"text": "The Nile flows."}, {"text": "Nile, a cat."}, {"text": "The river."}]
    question = "Which river? the Nile"
    knows = Knows(others={("The Nile flows.", question), ("The river.", question), ("x", "y")})
    answer = {
        **item("A is.", documents, answers=[["Father", "the Nile"]]),
        "question": "Which river?",
    }
    assert coverage(answer, knows, correctness="em") == [([1], True), ([0], True), ([0], True)]
    # What lacks the alias is not asked.
    assert sorted(knows.asked) == [("Nile, a cat.", question), ("The Nile flows.", question)]


def test_flags_for_the_other_list_are_not_misused() -> None:
    """Two answers, three claims; flags for the answers do not serve the claims, and vice versa."""
    knows = Knows({"c2": ["1"]})
    both = {"answers": ["x", "y"], "claims": ["c1", "c2", "c3"]}
    for_answers = item("A is.", docs(2, [1, 0], [0, 1]), **both)
    assert coverage(for_answers, knows, correctness="cm") == [([0, 1, 0], True), ([0, 0, 0], True)]
    assert coverage(for_answers, knows, correctness="em") == [([1, 0], False), ([0, 1], False)]
    for_claims = item("A is.", docs(1, [1, 0, 1]), **both)
    assert coverage(for_claims, knows, correctness="cm") == [([1, 0, 1], False)]
    assert coverage(for_claims, knows, correctness="em") == [([0, 0], True)]


UNKNOWN = (
    "no sample has gold answers, or documents with `supports`, that tell whether its "
    "question is answerable"
)


@pytest.mark.parametrize(("profile", "words"), [("default", 5), ("paper", 7)])
def test_lengths_leave_out_what_their_description_says(profile: str, words: int) -> None:
    response = "I'm sorry, the hall has 15 doors [1]."
    run = run_of([item(response)], A, profile=profile, splitter="sentencex")
    assert run.assessments[0].parts["words"] == words
    description = Grounding.figures["regular_length"].explanation
    assert "the default profile also leaves out" in description
    assert "I'm sorry" in description


NO_GOLD = "no sample has gold answers or claims to compare with"
NOT_JUDGED = "correctness is none: there are no gold answers or claims to compare with"


def test_neither_gold_nor_flags() -> None:
    """Counts, lengths and citation figures stand; what needs to know the answer does not apply."""
    run = run_of([item("A is [1]. B is."), item("I do not know.")], A)
    summary = run.summaries["grounding"]
    left = {k: v for k, v in summary.values.items() if v is not None}
    # Recall: 1/2 and 0/1; precision 1 and 0; of the answer alone 1/2, 1, F1 2/3.
    assert left == {
        "num_samples": 2,
        "answered_ratio": 50.0,
        "answered_num": 1,
        "regular_length": 4.0,
        "answered_length": 4.0,
        "invalid_citations": 0,
        "regular_citation_rec": 25.0,
        "regular_citation_prec": 50.0,
        "regular_citation_f1": pytest.approx(100 / 3),
        "answered_citation_rec": 50.0,
        "answered_citation_prec": 100.0,
        "answered_citation_f1": pytest.approx(200 / 3),
    }
    refusals = ("reject", "refuse", "answerable")
    unknown = {f"{r}_{kind}" for r in refusals for kind in ("rec", "prec", "f1")}
    unknown |= {"macro_avg", "macro_f1", "answerable_num", "unanswerable_num", "overlapped_num"}
    assert summary.not_applicable == {**dict.fromkeys(unknown, UNKNOWN), "trust_score": NOT_JUDGED}


def test_mode_named_but_no_gold_and_no_flags() -> None:
    summary = run_of(item("A is [1]."), A, correctness="cm").summaries["grounding"]
    assert summary.not_applicable["regular_claims_nli"] == NO_GOLD
    assert summary.not_applicable["answered_claims_nli"] == NO_GOLD
    assert summary.not_applicable["calib_claims_nli_f1"] == UNKNOWN
    assert summary.not_applicable["trust_score"] == UNKNOWN
    assert summary.values["answered_citation_f1"] == 100


def test_flags_but_no_gold() -> None:
    """Answerable is known, correctness is not."""
    run = run_of([item("A is [1].", docs(1, [1])), item("B is [1].", docs(1, [0]))], A)
    summary = run.summaries["grounding"]
    assert (summary.values["answerable_num"], summary.values["unanswerable_num"]) == (1, 1)
    assert summary.values["answerable_prec"] == 50
    assert summary.values["trust_score"] is None
    assert set(summary.not_applicable) == {"trust_score"}
    summary = run_of(item("A is [1].", docs(1, [1])), A, correctness="em").summaries["grounding"]
    assert summary.not_applicable["regular_str_em"] == NO_GOLD
    assert summary.not_applicable["calib_str_em_f1"] == NO_GOLD
    assert summary.not_applicable["trust_score"] == NO_GOLD


def test_empty_flags_without_gold_say_nothing() -> None:
    assert coverage(item("A is [1].", docs(2, [], [])), A) == []
    values = values_of(item("A is [1].", docs(2, [], [])), A)
    assert values["answerable_num"] is None


def test_ragged_flags_without_gold_are_reported_before_anything_starts() -> None:
    with pytest.raises(BadInputError, match="lists in `supports` that differ in length"):
        run_of(item("A is [1].", docs(2, [1], [1, 0])), A)


def test_gold_but_an_empty_list_of_documents() -> None:
    """Without documents nothing is answerable; what is cited is not there."""
    items = [item("Paris is [1].", [], answers=["Paris"]), item("I don't know.", [], answers=["x"])]
    run = run_of(items, A)
    values = run.summary["grounding"]
    assert (values["answerable_num"], values["unanswerable_num"]) == (0, 2)
    assert values["reject_rec"] == 50
    assert values["reject_prec"] == 100
    assert values["regular_str_em"] == 50
    assert values["calib_answered_str_em"] == 0
    assert values["parametric_str_em"] == 100
    assert values["invalid_citations"] == 1
    assert values["regular_citation_rec"] == 0
    answered, refused = run.assessments
    # Correctness 0, unanswerable 0, citations 0. The refusal is right.
    assert (answered.score, refused.score) == (0, 1)


def test_missing_documents_or_response_are_reported_before_anything_starts() -> None:
    with pytest.raises(BadInputError, match=r"documents: is missing .*passages shown") as caught:
        run_of({"question": "Q?", "answers": ["x"]}, A)
    assert "response: is missing" in str(caught.value)


# The score of one answer, each branch


@pytest.mark.parametrize(
    ("answer", "options", "expected", "reason"),
    [
        # refused, unanswerable; refused, answerable; refused, nobody knows
        (
            item("I don't know.", docs(1, [0]), answers=["x"]),
            {},
            1,
            "rightly refused: no document supports a gold answer",
        ),
        (
            item("I don't know.", docs(1, [1]), answers=["x"]),
            {},
            0,
            "wrongly refused: a document supports a gold answer",
        ),
        (
            item("I don't know."),
            {},
            None,
            "refused; without gold answers it is unknown whether the refusal is right",
        ),
        (item("", docs(1, [1]), answers=["x"]), {}, 0, "the response is blank"),
        (item("", docs(1, [0]), answers=["x"]), {}, 0, "the response is blank"),
        # Citations alone: recall 1/2, precision 1/1, F1 2/3.
        (
            item("A is [1]. C is."),
            {},
            2 / 3,
            "supported statements: 1 of 2; precise citations: 1 of 1",
        ),
        (item("C is."), {}, 0, "supported statements: 0 of 1; no citation"),
        # Answerable is known, correctness is not: (1 + 1)/2, (1 + 0)/2.
        (
            item("A is [1].", docs(1, [1])),
            {},
            1,
            "supported statements: 1 of 1; precise citations: 1 of 1",
        ),
        (
            item("A is [1].", docs(1, [0])),
            {},
            0.5,
            "answered although no document supports a gold answer; supported statements: 1 of 1; "
            "precise citations: 1 of 1",
        ),
        # Two supported golds, one given: (1/2 + 1 + 1)/3. The third gold is not supported.
        (
            item("A is [1].", docs(1, [1, 1, 0]), answers=["A is", "y", "z"]),
            {},
            5 / 6,
            "supported gold answers given: 1 of 2; supported statements: 1 of 1; "
            "precise citations: 1 of 1",
        ),
        # Unanswerable, though the gold answer is given: (0 + 0 + 1)/3.
        (
            item("A is [1].", docs(1, [0]), answers=["A is"]),
            {},
            1 / 3,
            "answered although no document supports a gold answer; supported statements: 1 of 1; "
            "precise citations: 1 of 1",
        ),
        # A list: P 1/2, R5 1/1, F1 2/3; answerable 1; citations 0: (2/3 + 1 + 0)/3 = 5/9.
        (
            item("heat, ran", docs(1, [1]), answers=["Heat"]),
            {"correctness": "em5"},
            5 / 9,
            "supported gold answers given: 1 of 1; supported statements: 0 of 2; no citation",
        ),
        # Correctness none, with gold answers and flags: (1 + 1)/2.
        (
            item("A is [1].", docs(1, [1]), answers=["zzz"]),
            {"correctness": "none"},
            1,
            "supported statements: 1 of 1; precise citations: 1 of 1",
        ),
    ],
)
def test_score_of_one_answer(
    answer: Item, options: dict[str, Any], expected: float | None, reason: str
) -> None:
    found = assessed(answer, A, **options)
    assert found.reason == reason
    if expected is None:
        assert found.score is None
    else:
        assert found.score == pytest.approx(expected)


def test_score_with_claims() -> None:
    """Claims c1 (given, supported), c2 (supported): 1/2; answerable 1; citations 1/1, 1/1."""
    knows = Knows({"A is.": ["1"]}, others={("A is.", "c1")})
    found = assessed(item("A is [1].", docs(1, [1, 1]), claims=["c1", "c2"]), knows)
    assert found.score == pytest.approx((0.5 + 1 + 1) / 3)
    golds = trace(found, "gold")
    assert [(g["text"], g["correct"], g["supported"], g["entailment"]) for g in golds] == [
        ("c1", True, True, 1.0),
        ("c2", False, True, 0.0),
    ]


def test_the_three_parts_are_those_of_the_trust_score() -> None:
    """One perfect answer: correctness 100, macro_f1 50 (no refusal to get right), citations 100."""
    values = values_of(item("A is [1].", docs(1, [1]), answers=["A is"]), A)
    assert values["trust_score"] == pytest.approx(250 / 3)


# A naive implementation, on random answers whose structure is known


def chance(premise: str, hypothesis: str) -> bool:
    digest = hashlib.blake2b(f"{premise}\x1f{hypothesis}".encode()).digest()
    return digest[0] < 140


WORDS = ["alpha", "beta", "gamma", "delta"]
STYLES = ["inside", "after", "list", "apart"]
sentence_ = st.tuples(
    st.sampled_from(WORDS), st.lists(st.integers(0, 4), max_size=4), st.sampled_from(STYLES)
)
answer_ = st.fixed_dictionaries(
    {
        "sentences": st.lists(sentence_, max_size=4),
        "refuses": st.booleans(),
        "flags": st.lists(
            st.lists(st.integers(0, 1), min_size=2, max_size=2), min_size=1, max_size=3
        ),
    }
)


def fact(answer: dict[str, Any], k: int) -> str:
    sorry = "Sorry " if answer["refuses"] and k == 0 else ""
    return f"{sorry}Mr. {answer['sentences'][k][0]} is here."


def written(answer: dict[str, Any]) -> str:
    pieces = []
    for k, (_, numbers, style) in enumerate(answer["sentences"]):
        plain = fact(answer, k)
        marks = "".join(f"[{n}]" for n in numbers)
        interval = len(numbers) == 2 and numbers[0] == 0 < numbers[1]  # "[0, 1]" cites nothing
        if style == "list" and numbers and not interval:
            marks = f"[{', '.join(map(str, numbers))}]"
        if style == "apart":
            marks = " ".join(f"[{n}]" for n in numbers)
        pieces.append(f"{plain} {marks}" if style == "after" else f"{plain[:-1]} {marks}.")
    return " ".join(pieces)


def naive(
    answer: dict[str, Any], *, invalid: str, duplicates: str, precision: str, limit: int | None
) -> tuple[float, float, int]:
    """Citation recall, precision and the number of invalid citations, by plain loops."""
    flags = answer["flags"]
    supported = points = counted = bad = 0
    for k, (_, numbers, _) in enumerate(answer["sentences"]):
        text = fact(answer, k)
        wrong = [n for n in numbers if not 1 <= n <= len(flags)]
        good = [n for n in numbers if 1 <= n <= len(flags)]
        bad += len(wrong)
        if wrong and invalid == "void":
            continue
        if invalid == "imprecise":
            counted += len(wrong)
        if duplicates == "once":
            good = list(dict.fromkeys(good))
        good = good[:limit]
        counted += len(good)
        if not good or not chance("\n".join(f"d{n}" for n in good), text):
            continue
        supported += 1
        for n in good:
            others = list(good)
            others.remove(n)
            rest = "\n".join(f"d{m}" for m in others)
            if len(good) == 1 or chance(f"d{n}", text) or not chance(rest, text):
                points += 1
            elif precision == "paper":
                shared = [g for g in (0, 1) if any(flags[m - 1][g] for m in others)]
                points += any(flags[n - 1][g] for g in shared)
    total = len(answer["sentences"])
    recall = supported / total if total else 0.0
    return recall, points / counted if counted else 0.0, bad


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    answers=st.lists(answer_, min_size=1, max_size=6),
    rules=st.fixed_dictionaries(
        {
            "invalid": st.sampled_from(["void", "imprecise"]),
            "duplicates": st.sampled_from(["once", "each"]),
            "precision": st.sampled_from(["paper", "alce"]),
        }
    ),
    limit=st.sampled_from([1, 2, 3, None]),
    blank=st.sampled_from(["zero", "skip"]),
)
def test_citation_figures_equal_a_naive_count(
    answers: list[dict[str, Any]], rules: dict[str, str], limit: int | None, blank: str
) -> None:
    items = [
        item(written(a), docs(len(a["flags"]), *a["flags"]), answers=["x", "y"]) for a in answers
    ]
    values = values_of(
        items,
        chance,
        correctness="em",
        at_most_citations=limit,
        blank=blank,
        refusal=lambda response: response.startswith("Sorry"),
        **rules,
    )
    found = [naive(a, limit=limit, **rules) for a in answers]
    counted = [blank == "zero" or bool(a["sentences"]) for a in answers]
    answered = [not (a["refuses"] and a["sentences"]) for a in answers]
    for prefix, population in (
        ("regular", counted),
        ("answered", [c and a for c, a in zip(counted, answered, strict=True)]),
    ):
        rows = [f for f, inside in zip(found, population, strict=True) if inside]
        if not rows:
            expected = None if prefix == "regular" else 0
            assert values[f"{prefix}_citation_rec"] == expected
            continue
        recall = 100 * sum(r for r, _, _ in rows) / len(rows)
        precision = 100 * sum(p for _, p, _ in rows) / len(rows)
        f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0
        assert values[f"{prefix}_citation_rec"] == pytest.approx(recall, abs=1e-9)
        assert values[f"{prefix}_citation_prec"] == pytest.approx(precision, abs=1e-9)
        assert values[f"{prefix}_citation_f1"] == pytest.approx(f1, abs=1e-9)
    assert values["invalid_citations"] == sum(bad for _, _, bad in found)
    assert values["answered_num"] == sum(answered)


# Hostile responses, end to end

HOSTILE = {
    "open brackets": "[" * 50_000,
    "open numbers": "[1," * 20_000,
    "refusals": "I did not " * 5_000,
    "dashes": "a-" * 30_000,
    "ranges": "A is " + "[1-999]" * 7_000,
    "markers": "A is " + "[1]" * 16_000,
    "sentences": "A is [1]. " * 5_000,
    "sources": "the documents and information " * 1_700,
    "none": "none of the " * 4_000,
    "unavailable": "is not given " * 4_000,
    "long line": "x" * 50_000,
    "huge number": "A is [" + "9" * 50_000 + "].",
    "surrogates": "A is \ud800 [1]. " * 3_000,
    "controls": "\x00\u202e\u200b" * 10_000,
}


TOO_MANY = {"ranges", "markers", "sentences", "surrogates"}
"""They have more citations than are judged."""


@pytest.mark.parametrize("correctness", ["em", "em5"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_response_is_scored_in_time(kind: str, correctness: str) -> None:
    answer = item(HOSTILE[kind], docs(2, [1], [0]), answers=["A"])
    started = time.process_time()
    run = run_of(answer, A, correctness=correctness)
    assert time.process_time() - started < 5
    (found,) = run.assessments
    assert found.fault == ("too_long" if found.error else None), found.error
    assert found.error or kind not in TOO_MANY
    assert found.score is None or 0 <= found.score <= 1


# The demo file: hand-labelled flags, and refusals that are known


def demo() -> list[dict[str, Any]]:
    path = files("trustassay").joinpath("input/example/citations.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_demo_is_read() -> None:
    path = files("trustassay").joinpath("input/example/citations.jsonl")
    assert len(list(read_samples(str(path)))) == len(demo()) >= 30


def test_refusals_of_the_demo_are_found_and_nothing_else() -> None:
    rows = demo()
    run = score(rows, metrics=[Grounding()], entailer="lexical")
    refused = {a.id for a in run.assessments if a.verdict == "refused"}
    assert refused == {row["id"] for row in rows if row["kind"].startswith("refused")}
    assert refused


def test_computed_flags_agree_with_the_labels_of_the_demo() -> None:
    """Measured with `lexical`: 163 of 181 agree, no false positive, 18 false negatives."""
    rows = demo()
    bare = [
        {
            **row,
            "documents": [
                {k: v for k, v in d.items() if k != "supports"} for d in row["documents"]
            ],
        }
        for row in rows
    ]
    run = score(bare, metrics=[Grounding()], entailer="lexical")
    pairs: list[tuple[int, int]] = []
    for row, assessment in zip(rows, run.assessments, strict=True):
        computed = trace(assessment, "coverage")
        for document, entry in zip(row["documents"], computed, strict=True):
            pairs += zip(document["supports"], entry["supports"], strict=True)
    assert len(pairs) > 150
    assert sum(label == found for label, found in pairs) / len(pairs) > 0.85
    assert sum(found > label for label, found in pairs) / len(pairs) < 0.03


def test_the_flag_of_the_paper_is_a_refusal_in_both_profiles() -> None:
    for options in ({}, {"profile": "paper", "splitter": "lines"}):
        assert assessed(item(f"{FLAG}."), A, **options).verdict == "refused"
        assert hypotheses(assessed(item("A is [1]."), A, **options)) == ["A is [1]."]


def test_the_paper_s_reading_has_no_trailing_citations_or_lines() -> None:
    with pytest.raises(ValueError, match="need lists=yes"):
        Grounding(profile="paper", splitter="sentencex", trailing=True)
    with pytest.raises(ValueError, match="need lists=yes"):
        Grounding(lists=False, lines=True)


def test_an_answer_without_passages_fails_and_says_so() -> None:
    assessment = assessed(item("A is.", []), A)
    assert assessment.score == 0
    assert assessment.reason.endswith("; the sample has no passages")
    assert "without passages" not in assessed(item("A is [1].", 1), A).reason

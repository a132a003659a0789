"""Word containment with numbers and negation: what it sees, and that it is honest."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.backends.lexical import (
    LexicalEntailer,
    WordOverlap,
    compute_log_odds,
    compute_overlap,
)

ENTAILER = LexicalEntailer()


def entails(premise: str, hypothesis: str) -> bool:
    return bool(ENTAILER.scores([(premise, hypothesis)])[0, 0] >= 0.5)


ANY = st.text(alphabet=st.characters(), max_size=60)
WORDS = st.lists(
    st.sampled_from("The river Nile not 7 seven 1,000 don't flows, isn't ½ ².\n ß İ".split(" ")),
    max_size=12,
).map(" ".join)


@given(st.lists(st.tuples(ANY | WORDS, ANY | WORDS), max_size=6))
def test_every_pair_of_texts_has_three_probabilities(pairs: list[tuple[str, str]]) -> None:
    found = ENTAILER.scores(pairs)
    assert found.shape == (len(pairs), 3)
    assert np.all((found >= 0) & (found <= 1))
    assert found.sum(axis=1) == pytest.approx(np.ones(len(pairs)))


@given(WORDS | ANY)
def test_a_text_without_negation_is_contained_in_itself(text: str) -> None:
    found = compute_overlap(text, text)
    assert found.containment == 1.0
    assert not found.missing_number


@given(WORDS, WORDS, WORDS)
def test_more_premise_never_holds_fewer_words(premise: str, more: str, hypothesis: str) -> None:
    less, whole = (
        compute_overlap(premise, hypothesis),
        compute_overlap(f"{premise}. {more}", hypothesis),
    )
    assert whole.containment >= less.containment
    assert whole.missing_number <= less.missing_number


@given(WORDS, WORDS)
def test_scores_do_not_depend_on_the_company_of_a_pair(premise: str, hypothesis: str) -> None:
    alone = ENTAILER.scores([(premise, hypothesis)])[0]
    together = ENTAILER.scores([("x", "y"), (premise, hypothesis), (hypothesis, premise)])[1]
    assert alone.tolist() == together.tolist()


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        ("Elephants live in Africa.", "An elephant lives in Africa."),
        ("The bridge was opened in 1932.", "It was opened in 1932."),
        ("An octopus has three hearts.", "The octopus has 3 hearts."),
        ("It weighs 1,000 kilograms.", "It weighs 1000 kilograms."),
        ("The café is open.", "The cafe\u0301 is open."),
        ("ＦＵＬＬ width letters", "full width letters"),
        ("The children's books were burned.", "The children’s books were burned."),
        ("The lake is not salty.", "The lake isn’t salty."),
        ("Die Straße ist lang.", "Die STRASSE ist lang."),
    ],
)
def test_it_sees_what_is_the_same(premise: str, hypothesis: str) -> None:
    assert entails(premise, hypothesis)
    assert entails(hypothesis, premise)


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        ("The bridge was opened in 1932.", "A volcano erupted in Chile."),
        ("An octopus has three hearts.", "Whales sing for 20 minutes."),
        ("", "The Nile is long."),
        (" \n\t ", "The Nile is long."),
    ],
)
def test_it_sees_what_is_not_there(premise: str, hypothesis: str) -> None:
    assert not entails(premise, hypothesis)


def test_a_number_that_the_premise_lacks() -> None:
    assert compute_overlap("It opened in 1932.", "It opened in 1933.").missing_number
    assert compute_overlap("It has three hearts.", "It has four hearts.").missing_number
    assert not compute_overlap("It has 3 hearts and 4 arms.", "It has four arms.").missing_number
    row = ENTAILER.scores([("The bridge opened in 1932.", "The bridge opened in 1933.")])[0]
    assert row[2] == pytest.approx(row[1])
    assert row[0] < ENTAILER.scores([("The bridge opened.", "The bridge opened in May.")])[0, 0]


@pytest.mark.parametrize(
    ("premise", "hypothesis", "differs"),
    [
        ("The lake is salty.", "The lake is not salty.", True),
        ("The lake isn't salty.", "The lake is salty.", True),
        ("The lake is never not salty.", "The lake is salty.", False),
        ("The lake cannot freeze.", "The lake can't freeze.", False),
        ("The lake is salty. The sky is not green.", "The lake is salty.", False),
        ("The lake is salty.\nNo fish live there.", "Fish live there.", True),
        ("", "The lake is not salty.", False),
    ],
)
def test_negation_is_held_against_the_nearest_sentence(
    premise: str, hypothesis: str, differs: bool
) -> None:
    assert compute_overlap(premise, hypothesis).negation_differs is differs


def test_an_empty_hypothesis_claims_nothing() -> None:
    for hypothesis in ("", " ", "...", "it was the"):
        assert compute_overlap("Anything.", hypothesis) == WordOverlap(1.0, False, False)
        assert entails("", hypothesis)


def test_nothing_to_judge() -> None:
    assert ENTAILER.scores([]).shape == (0, 3)


def test_the_scale_is_the_one_that_its_docstring_gives() -> None:
    """z = 7.3 (containment - 0.63), less 1.4 for a number and 0.6 for a negation."""
    assert compute_log_odds(WordOverlap(0.63, False, False)) == 0
    assert compute_log_odds(WordOverlap(1.0, True, True)) == pytest.approx(7.3 * 0.37 - 1.4 - 0.6)
    row = ENTAILER.scores([("red blue", "red green")])[0]
    assert row[0] == pytest.approx(1 / (1 + math.exp(-7.3 * (0.5 - 0.63))))
    assert row[2] == 0


def test_it_is_cheap_enough_not_to_be_stored() -> None:
    assert ENTAILER.stored is False
    assert ENTAILER.name == "lexical"

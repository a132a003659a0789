"""What a list item says with the lead above it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.judging.leads import (
    adds_meaning,
    is_incomplete_lead,
    join_to_lead,
    split_inline_items,
)
from trustassay.text.words import is_negation, plain_words


def negates(text: str) -> bool:
    """Whether a statement has an odd number of negations, or says that something is excluded."""
    words = list(plain_words(text))
    return sum(map(is_negation, words)) % 2 == 1 or "excluded" in words


# An item and its lead ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lead", "item", "statement"),
    [
        # nothing but a participle or an adjective
        ("Not covered", "theft", "Theft is not covered"),
        ("Not covered", "Lost keys", "Lost keys are not covered"),
        ("Not covered", "theft and fire", "Theft and fire are not covered"),
        ("No longer available", "the gold plan", "The gold plan is no longer available"),
        ("Covered", "theft", "Theft is covered"),
        ("Forbidden", "knives", "Knives are forbidden"),
        ("Free", "children", "Children are free"),
        # "the following" is the subject
        ("The following are not covered", "theft", "Theft is not covered"),
        ("The following items are not covered", "lost keys", "Lost keys are not covered"),
        ("The following does not apply", "fees", "Fees do not apply"),
        ("These are excluded", "theft", "Theft is excluded"),
        ("The following are covered", "theft", "Theft is covered"),
        ("None of the following are covered", "theft", "Theft is not covered"),
        ("None of these is covered", "keys", "Keys are not covered"),
        ("None of the following items is included", "breakfast", "Breakfast is not included"),
        # what is said of everything else
        ("Everything is covered except", "theft", "Theft is not covered"),
        ("Everything is covered, except for the following", "keys", "Keys are not covered"),
        ("Everyone may enter but", "dogs", "Dogs may not enter"),
        ("All plans are free apart from", "the gold plan", "The gold plan is not free"),
        ("Exclusions", "theft", "Theft is excluded"),
        ("Exceptions", "theft", "Theft is excluded"),
        # "the following" is the object
        ("We do not offer the following", "refunds", "We do not offer refunds"),
        ("We do not offer any of these", "refunds", "We do not offer refunds"),
        ("You get all of the following", "refunds", "You get refunds"),
        # the lead ends with its verb
        ("Members get", "A free lamp", "Members get a free lamp"),
        ("Members do not get", "a free lamp", "Members do not get a free lamp"),
        ("You cannot bring", "Knives", "You cannot bring knives"),
        ("The museum does not have", "a lift", "The museum does not have a lift"),
        ("There is no", "lift", "There is no lift"),
        ("Do not", "touch the lamp", "Do not touch the lamp"),
        # a name keeps its capital letter
        ("Members meet", "Ada", "Members meet Ada"),
        ("Members get", "USB sticks", "Members get USB sticks"),
        # any other lead stands before the item
        ("Benefits", "a free lamp", "Benefits: a free lamp"),
        ("Former staff", "Ada Byron", "Former staff: Ada Byron"),
        ("Not available in 2024", "the gold plan", "Not available in 2024: the gold plan"),
        ("Everything except", "theft", "Everything except theft"),
        # a lead that only presents says nothing
        ("Here are the benefits", "a free lamp", "the benefits: a free lamp"),
        ("Key points", "a free lamp", "a free lamp"),
        ("Overview", "a free lamp", "a free lamp"),
    ],
)
def test_an_item_with_its_lead_is_a_statement(lead: str, item: str, statement: str) -> None:
    assert join_to_lead(lead, item) == statement


NEGATED_LEADS = [
    "Not covered",
    "Never included",
    "The following are not covered",
    "The following do not apply",
    "None of the following are covered",
    "None of the following apply",
    "Everything is covered except",
    "Exclusions",
    "We do not offer the following",
    "Members do not get",
    "You cannot bring",
    "There is no",
    "Nobody may bring",
    "What is not covered",
    "Things you cannot bring",
]


@pytest.mark.parametrize("lead", NEGATED_LEADS)
@pytest.mark.parametrize("item", ["theft", "Lost keys", "the red lamp", "theft and fire", "Ada"])
def test_a_negated_lead_negates_every_item(lead: str, item: str) -> None:
    assert negates(join_to_lead(lead, item))


@pytest.mark.parametrize("lead", ["No", "Not", "Never", "Without"])
def test_a_lead_that_is_nothing_but_a_negation_negates_its_items(lead: str) -> None:
    assert negates(join_to_lead(lead, "dogs"))


@pytest.mark.parametrize(
    "lead", ["Covered", "The following are covered", "Members get", "Benefits", "Former staff"]
)
def test_any_other_lead_negates_nothing(lead: str) -> None:
    assert not negates(join_to_lead(lead, "theft"))


def test_who_is_exempt_is_not_excluded() -> None:
    # "Exempt: students" is said of who need not pay; "excluded" would say the opposite.
    assert join_to_lead("Exempt", "students") == "Students are exempt"


def test_exclusions_agree_with_their_number() -> None:
    assert join_to_lead("Exclusions", "lost keys") == "Lost keys are excluded"


def test_what_a_question_word_leads_on_to_is_parted_from_it() -> None:
    # "What is not covered theft" reads as a question; with the colon it is a heading.
    assert join_to_lead("What is not covered", "theft") in (
        "What is not covered: theft",
        "Theft is not covered",
    )


WORDS = st.sampled_from(
    "theft keys lamp Ada covered members get not the following are free 90 euros".split()
)
PHRASES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


@given(PHRASES, PHRASES)
def test_no_word_of_an_item_is_lost(lead: str, item: str) -> None:
    joined = join_to_lead(lead, item).lower()
    assert item.lower() in joined


@given(PHRASES, PHRASES)
def test_every_number_and_name_of_a_lead_is_kept(lead: str, item: str) -> None:
    joined = join_to_lead(lead, item)
    assert all(word in joined for word in ("Ada", "90") if word in lead.split())


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_lead_and_item_are_joined(lead: str, item: str) -> None:
    assert isinstance(join_to_lead(lead, item), str)


# A list in one sentence -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("Not covered: theft, fire.", ["Theft is not covered", "Fire is not covered"]),
        ("Not covered: theft and fire.", ["Theft is not covered", "Fire is not covered"]),
        ("Not covered: theft; fire", ["Theft is not covered", "Fire is not covered"]),
        ("Not covered: theft, and fire", ["Theft is not covered", "Fire is not covered"]),
        ("Included: breakfast, parking", ["Breakfast is included", "Parking is included"]),
        ("Exclusions: theft or war", ["Theft is excluded", "War is excluded"]),
        ("Everything is covered except: theft.", ["Theft is not covered"]),
        (
            "None of the following are covered: theft, fire.",
            ["Theft is not covered", "Fire is not covered"],
        ),
    ],
)
def test_a_list_in_a_sentence_is_a_statement_for_each_item(
    text: str, statements: list[str]
) -> None:
    items = split_inline_items(text)
    assert [statement for _, _, statement in items] == statements
    assert all(text[start:end].lower() in one.lower() for start, end, one in items)


def test_no_item_is_empty_where_two_marks_part_items() -> None:
    items = split_inline_items("Not covered: theft; fire; and flood")
    assert [statement for _, _, statement in items] == [
        "Theft is not covered",
        "Fire is not covered",
        "Flood is not covered",
    ]


@pytest.mark.parametrize(
    "text",
    [
        # leads that make no statement of an item
        "Opening hours: Monday, Tuesday",
        "Former staff: Ada Byron, Ida Bell",
        "Note: theft is not covered.",
        # what stands behind the colon is no list of words
        "Not covered: theft, and damage that was caused by a very old lamp.",
        "The lamp is red.",
        "",
    ],
)
def test_another_sentence_is_not_taken_apart(text: str) -> None:
    assert split_inline_items(text) == []


# What a lead adds, and whether it says anything alone ---------------------------------------------


@pytest.mark.parametrize(
    "lead",
    [
        "Members get:",
        "You cannot bring:",
        "The following are not covered:",
        "We offer these services:",
        "Here are the benefits of membership:",
        "Not covered:",
        "Benefits:",
        "Exclusions:",
        "The museum does not have:",
        "It is not covered if:",
        "Everything is covered except:",
    ],
)
def test_a_lead_says_nothing_without_what_follows_it(lead: str) -> None:
    assert is_incomplete_lead(lead)


@pytest.mark.parametrize(
    "lead",
    [
        "Everyone may enter but:",
        "All plans are free except:",
        "You will get a refund unless:",
        "If you are under 18 you need:",
    ],
)
def test_a_lead_with_an_open_exception_or_verb_says_nothing_alone(lead: str) -> None:
    # "All plans are free except" is judged as "All plans are free", and that is wrong.
    assert is_incomplete_lead(lead)


@pytest.mark.parametrize(
    "lead", ["The gold plan has three benefits:", "Theft is covered by all plans:"]
)
def test_a_lead_that_is_a_whole_sentence_says_something(lead: str) -> None:
    assert not is_incomplete_lead(lead)


@pytest.mark.parametrize(
    ("lead", "text", "adds"),
    [
        ("Not covered", "Theft costs 9 euros.", True),
        ("Myths", "The lamp is red.", True),
        ("Former staff", "Ada led it.", True),
        ("Exclusions", "Theft is common.", True),
        ("The following are not covered", "It was stolen.", True),
        ("In 2019", "The lamp was red.", True),
        ("Turin", "The lamp is red.", True),
        # it is in the text
        ("Turin", "It is in Turin.", False),
        ("In 2019", "In 2019 it was red.", False),
        # no negation, number or name
        ("Overview", "The lamp is red.", False),
        ("Prices", "The lamp costs 9 euros.", False),
        # it is judged itself
        ("The lamp is not red", "It was sold.", False),
    ],
)
def test_a_lead_adds_negations_numbers_and_names_to_a_sentence(
    lead: str, text: str, adds: bool
) -> None:
    assert adds_meaning(lead, text, frozenset(), is_sentence=True) is adds


def test_a_common_word_is_a_name_where_the_passages_have_it_as_one() -> None:
    assert not adds_meaning("Apple", "The phone is red.", frozenset(), is_sentence=True)
    assert adds_meaning("Apple", "The phone is red.", frozenset(["Apple"]), is_sentence=True)


def test_to_what_is_no_sentence_every_lead_about_a_subject_is_added() -> None:
    assert adds_meaning("Prices", "9 euros", frozenset(), is_sentence=False)
    assert not adds_meaning("Overview", "9 euros", frozenset(), is_sentence=False)


@pytest.mark.parametrize("lead", ["It is not covered if", "You will get a refund unless"])
def test_an_open_lead_is_added_to_a_sentence_below_it(lead: str) -> None:
    # It states nothing that is judged itself, and turns around what stands below it.
    assert adds_meaning(lead, "The lamp is old.", frozenset(), is_sentence=True)

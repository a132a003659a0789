"""What a short reply says with its question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.judging.claims import build_claims
from trustassay.judging.completion import (
    NOT_TRUE,
    adds_meaning,
    asks_whether,
    complete_reply,
    find_option,
    find_question_topic,
    is_incomplete_lead,
    join_to_lead,
    make_sentence,
    split_inline_items,
)
from trustassay.text.sentences import load_splitter
from trustassay.text.words import is_negation, plain_words

SPLIT = load_splitter("sentencex")


def hypotheses(question: str, reply: str) -> list[str | None]:
    """Return what is judged of an answer."""
    return [claim.hypothesis for claim in build_claims(question, reply, SPLIT)]


STATEMENTS = [
    # yes or no
    ("Is the shop open?", "No.", "It is not true that the shop is open."),
    ("Can I pay by card?", "No, you cannot.", "It is not true that I can pay by card."),
    ("Can it swim?", "No, it can't.", "It is not true that it can swim."),
    ("Is there a lift?", "No", "It is not true that there is a lift."),
    ("Isn't the shop open?", "No.", "It is not true that the shop is open."),
    ("Hi, is it open on Mondays?", "Yes, it is!", "It is open on Mondays."),
    ("Does it float?", "yes", "It float."),
    ("Will it float?", "Yes, it will.", "It will float."),
    ("Are bags allowed?", "Yes, for a small fee.", "Bags are allowed for a small fee."),
    ("May plans be cancelled?", "Yes, within 90 days.", "Plans may be cancelled within 90 days."),
    # who, what, which
    ("Who built the bridge?", "Gustave Eiffel", "Gustave Eiffel built the bridge."),
    ("Who was elected mayor?", "Ada Byron.", "Ada Byron was elected mayor."),
    ("Who was her father?", "King Olaf.", "Her father was King Olaf."),
    ("What is the fee?", "$90", "The fee is $90."),
    ("Which river flows here?", "The Lune", "The Lune flows here."),
    # when, where, how
    ("When was it built?", "In 1889.", "It was built in 1889."),
    ("When does it start?", "At 11 am.", "It start at 11 am."),
    ("What time does it open?", "9 am", "It open 9 am."),
    ("When may I come?", "3 May", "I may come 3 May."),
    ("Where does it stand?", "Paris", "It stand Paris."),
    ("Since when has it run?", "3 May 1990", "It has run since 3 May 1990."),
    ("How do I open it?", "With the red key.", "I open it with the red key."),
    # how many, how much, how long
    ("How many rooms are there in it?", "12.", "There are 12 rooms in it."),
    ("How many days do I have?", "30 days.", "I have 30 days."),
    ("How many people live there?", "350.", "350 people live there."),
    ("How tall is the tower?", "330 metres", "The tower is 330 metres tall."),
    ("How much does it cost?", "9 euros.", "It cost 9 euros."),
    ("How old must I be?", "At least 18 years old.", "I must be at least 18 years old."),
    # what leads on to a question
    ("Could you tell me what the trial costs?", "5 euros", "The trial costs 5 euros."),
    ("I like it. Who built the bridge?", "Ada", "Ada built the bridge."),
    # requests and key words
    ("Give me the number of halls.", "14", "The number of halls is 14."),
    ("number of halls", "It's 14", "Number of halls is 14."),
    ("And the price?", "9 euros.", "The price is 9 euros."),
    # a choice
    ("How many halls has it? A) 12 B) 14", "B", "It has 14 halls."),
    ("How many halls has it? A) 12 B) 14", "B) 14", "It has 14 halls."),
    ("Which of these is right? A) 12 halls B) 14 halls", "B", "14 halls."),
]


@pytest.mark.parametrize(("question", "reply", "statement"), STATEMENTS)
def test_a_short_reply_says_a_statement_with_its_question(
    question: str, reply: str, statement: str
) -> None:
    assert complete_reply(question, reply) == statement


@pytest.mark.parametrize(("question", "reply", "statement"), STATEMENTS)
def test_a_short_reply_is_judged_as_what_it_says(question: str, reply: str, statement: str) -> None:
    assert hypotheses(question, reply) == [statement]


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Who built it?", "Yes."),  # yes to no such question
        ("Where is it?", "It is here."),  # a sentence
        ("What is there to see?", "That's easy."),
        ("Who won?", "Wow!"),
        ("Is it open?", "Nobody knows."),  # neither yes nor no
        ("Is it open?", "Trueman."),
        ("Why was it closed?", "For repairs."),
        ("Is it?", "?"),
        ("Who?", "Ada"),
        ("", "Ada"),
        ("Who built it?", ""),
    ],
)
def test_no_rule_applies_to_other_replies(question: str, reply: str) -> None:
    assert complete_reply(question, reply) is None


@pytest.mark.parametrize(
    ("question", "reply", "judged"),
    [
        # up to four words stand behind their question
        ("Why was it closed?", "For repairs.", ["Why was it closed? For repairs."]),
        ("Is it free?", "Only for members.", ["Is it free? Only for members."]),
        # a sentence stands alone
        ("What is there to see?", "That's easy.", ["That's easy."]),
        ("Who won the prize?", "Ada won the prize.", ["Ada won the prize."]),
        # nothing is claimed
        ("Who built it?", "Yes.", [None]),
        ("Who won?", "Wow!", [None]),
        ("Is it?", "?", []),
    ],
)
def test_what_no_rule_completes_stands_behind_its_question_or_alone(
    question: str, reply: str, judged: list[str | None]
) -> None:
    assert hypotheses(question, reply) == judged


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Who lives there?", "Nobody."),
        ("What must I bring?", "Nothing."),
        ("How many halls has it?", "None."),
        ("When is it open on Mondays?", "Never."),
        ("Is the shop open?", "Nobody knows."),
    ],
)
def test_a_negation_alone_is_an_answer_that_is_judged(question: str, reply: str) -> None:
    (judged,) = hypotheses(question, reply)
    assert judged is not None
    assert any(map(is_negation, plain_words(judged)))


def test_free_is_the_answer_to_a_question_for_a_price() -> None:
    (judged,) = hypotheses("How much is the ticket?", "Free.")
    assert judged is not None
    assert "free" in judged.lower()


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("No, in 1890.", "1890"),
        ("No, only in Turin.", "Turin"),
        ("No, for members it is closed.", "members"),
    ],
)
def test_what_stands_behind_no_is_judged_too(reply: str, kept: str) -> None:
    judged = " ".join(filter(None, hypotheses("Was the lamp sold in 1889?", reply)))
    assert kept in judged


def test_no_one_is_the_subject_of_a_sentence_that_is_complete() -> None:
    assert hypotheses("Who lives there?", "No one lives there.") == ["No one lives there."]


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Who will win the race?", "Ada will win the race."),
        ("Which team may play in Turin?", "Ada may play in Turin."),
        # here the reply is not the subject
        ("Who can Ada see?", "Ada see Ada."),
    ],
)
def test_a_reply_is_the_subject_of_the_verb_behind_a_modal(question: str, statement: str) -> None:
    assert complete_reply(question, "Ada") == statement


def test_the_auxiliary_stands_behind_the_subject() -> None:
    assert complete_reply("Has the museum been sold?", "Yes.") == "The museum has been sold."


def test_options_leave_no_marks_in_the_question() -> None:
    question = "What colour is the lamp: A. red, B. blue or C. green?"
    assert complete_reply(question, "C") == "The lamp is green."


@pytest.mark.parametrize(
    ("question", "reply", "denied"),
    [
        ("Is the shop open?", "No.", "The shop is open."),
        ("Can I pay by card?", "You cannot.", "I can pay by card."),
        ("Is theft covered?", "It is not.", "Theft is covered."),
        ("Is theft covered?", "It is not covered.", "Theft is covered."),
    ],
)
def test_no_denies_what_the_question_asks(question: str, reply: str, denied: str) -> None:
    (claim,) = build_claims(question, reply, SPLIT)
    assert claim.denies == denied
    assert claim.hypothesis is not None
    assert claim.hypothesis.startswith(NOT_TRUE)


def test_yes_denies_nothing() -> None:
    (claim,) = build_claims("Is theft covered?", "It is covered.", SPLIT)
    assert (claim.hypothesis, claim.denies) == ("Theft is covered.", None)


# Questions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Is it open?", True),
        ("Don't dogs bark?", True),
        ("Hello! Can I pay by card?", True),
        ("Tell me whether it is open.", True),
        ("It is open, right?", True),
        ("When is it open?", False),
        ("What is it?", False),
        ("Give me the number of halls.", False),
        ("", False),
    ],
)
def test_questions_for_yes_or_no_are_told_from_others(question: str, asks: bool) -> None:
    assert asks_whether(question) is asks


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("When did the museum open?", "the museum"),
        ("Hi! When did the museum open?", "the museum"),
        ("How much does the trial cost?", "the trial"),
        ("Does the line stop at noon?", "the line"),
        ("Is the shop open?", "the shop"),
        ("How tall is the old red tower?", "the old red tower"),
        ("Where is Ada?", "Ada"),
        ("Who is Ada Byron?", "Ada Byron"),
        ("Does Ada live here?", "Ada"),
        ("Give me the number of halls.", "the number of halls"),
        ("number of halls", "number of halls"),
        ("What is the purpose of the gate in a lock?", "the purpose of the gate"),
        ("When did the museum of Lund open?", "the museum of Lund"),
        # key words that begin with a verb
        ("repair an old lamp", None),
        # nothing that a pronoun could stand for
        ("Is it open?", None),
        ("What is there?", None),
        ("Can I bring my dog?", None),
        ("Why?", None),
        ("", None),
    ],
)
def test_a_question_has_a_topic(question: str, topic: str | None) -> None:
    assert find_question_topic(question) == topic


@pytest.mark.parametrize(
    ("question", "reply", "option"),
    [
        ("Is it A) red or B) blue?", "B", "blue"),
        ("Is it A) red or B) blue?", "b)", "blue"),
        ("Is it A) red or B) blue?", "Option B", "blue"),
        ("Is it A) red or B) blue?", "Answer: B.", "blue"),
        ("Is it (a) red or (b) blue?", "(b)", "blue"),
        ("Choose: 1. red 2. blue", "2", "blue"),
        ("Is it A) red or B) blue?", "B) blue", "blue"),
        # no option, or the text of the reply is another than that of the option
        ("Is it A) red or B) blue?", "C", None),
        ("Is it A) red or B) blue?", "red", None),
        ("Is it red?", "B", None),
    ],
)
def test_the_letter_of_an_option_stands_for_its_text(
    question: str, reply: str, option: str | None
) -> None:
    assert find_option(question, reply) == option


# Properties -------------------------------------------------------------------------------------


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_question_and_reply_make_a_statement_or_none(question: str, reply: str) -> None:
    statement = complete_reply(question, reply)
    assert statement is None or statement.endswith((".", "!", "?"))
    find_question_topic(question)


@given(
    st.sampled_from(
        [
            "Who built the bridge?",
            "When was it built?",
            "Where does it stand?",
            "How many rooms are there in it?",
            "How tall is the tower?",
            "What is the fee?",
            "Which river flows here?",
            "Give me the number.",
            "Are bags allowed?",
        ]
    ),
    st.lists(
        st.sampled_from(["red", "Ada", "1889", "Turin", "9", "halls"]), min_size=1, max_size=4
    ),
)
def test_no_word_of_a_reply_is_lost(question: str, words: list[str]) -> None:
    statement = complete_reply(question, " ".join(words))
    assert statement is None or all(word.lower() in statement.lower() for word in words)


@given(st.text(max_size=40))
def test_a_sentence_begins_with_a_capital_and_ends_with_a_stop(text: str) -> None:
    sentence = make_sentence(text)
    assert sentence.endswith((".", "!", "?"))
    assert make_sentence(sentence) == sentence


# What a list item says with the lead above it


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


@pytest.mark.parametrize(
    ("question", "answer", "says_something"),
    [
        ("How many rooms has house 4?", "House 4 has 4 rooms.", True),
        ("How many rooms has house 4?", "House 4 has rooms.", False),
        ("What was sold in 1,200 shops?", "1,200 were sold in 1,200 shops.", True),
        ("Who built the mill in 1902?", "In 1902 the mill was built.", False),
    ],
)
def test_a_number_that_the_question_has_once_may_be_the_answer(
    question: str, answer: str, *, says_something: bool
) -> None:
    [hypothesis] = hypotheses(question, answer)
    assert (hypothesis is not None) is says_something

"""The verdict on one claim: what rules decide, what is read, and what follows from it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judging.readers import (
    NO,
    OPEN,
    SPLIT,
    YES,
    Reader,
    Row,
    documents,
    judged,
    run,
    verdicts,
    verifier,
)
from trustassay.core.capabilities import Entailment
from trustassay.judging.claims import Claim, build_claims
from trustassay.judging.passages import Passages, PassageSentence
from trustassay.judging.second_reader import SecondReader
from trustassay.judging.verdict import (
    compute_standing,
    correct_for_title,
    find_covering_sentence,
    find_inner_names,
    find_opposite,
    is_borderline,
    split_written_words,
)

# Rules on probabilities -------------------------------------------------------------------------

probability = st.floats(0, 1)


def test_the_order_of_claims_is_computed_by_hand() -> None:
    # e / (e + c + n / 10)
    assert compute_standing(Entailment(0.8, 0.1, 0.1), detail_missing=False) == pytest.approx(
        0.8 / 0.91, abs=1e-6
    )
    assert compute_standing(Entailment(0.8, 0.1, 0.1), detail_missing=True) == pytest.approx(
        0.4 / 0.91, abs=1e-6
    )
    assert compute_standing(Entailment(0, 0, 0), detail_missing=False) == 0
    contradicted = compute_standing(Entailment(0.2, 0, 0.8), detail_missing=False)
    not_said = compute_standing(Entailment(0.2, 0.8, 0), detail_missing=False)
    assert contradicted < not_said


@given(probability, probability, st.booleans())
def test_the_order_is_from_0_to_1_and_rises_with_support(
    one: float, other: float, lacks: bool
) -> None:
    low, high = sorted([one, other])
    against = Entailment(low, 0.0, 1 - low), Entailment(high, 0.0, 1 - high)
    worse, better = (compute_standing(row, detail_missing=lacks) for row in against)
    assert 0 <= worse <= better <= 1


def test_what_is_supported_near_the_threshold_is_borderline() -> None:
    assert is_borderline(0.55, 0.5)
    assert not is_borderline(0.6, 0.5)
    assert not is_borderline(1.0, 0.95)  # certainty is never in doubt


# Rules on words: the opposite ---------------------------------------------------------------------


def sentences(*passages: str) -> list[PassageSentence]:
    """Return the sentences of some passages."""
    return [one for rows in Passages(documents(*passages), SPLIT).sentences for one in rows]


def opposite(claim: str, *passages: str) -> str | None:
    """Return the text of the sentence that says the opposite of a claim."""
    sentence = find_opposite(claim, sentences(*passages))
    return None if sentence is None else sentence.text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The lamp is red.", "The lamp is not red."),
        ("The lamp is red.", "The lamp isn't red."),
        ("The lamp was red.", "The lamp was never red."),
        ("Dogs are allowed.", "No dogs are allowed."),
        ("Members pay a fee.", "Members pay no fee."),
        ("Refunds are paid within 30 days.", "Refunds are not paid within 30 days."),
        ("The lamp can be repaired.", "The lamp cannot be repaired."),
        ("All plans include support.", "No plans include support."),
        ("Theft is covered by the policy.", "Theft is not covered by the policy."),
    ],
)
def test_a_sentence_that_differs_by_a_negation_says_the_opposite(one: str, other: str) -> None:
    assert opposite(one, other) == other
    assert opposite(other, one) == one


def test_the_opposite_may_have_a_few_words_more_between_those_of_the_claim() -> None:
    more = "Theft, fire and flood are not covered."
    assert opposite("Theft is covered.", "It rains.", more) == more
    many = "Theft, fire, flood, war, hail and frost are not covered."
    assert opposite("Theft is covered.", many) is None


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        # the same
        ("The lamp is red.", "The lamp is red."),
        ("The lamp is not red.", "The lamp is never red."),
        ("Members pay a fee.", "Members do not pay no fee."),
        # a word of the claim is missing
        ("Dogs are allowed on trains.", "Dogs are not allowed on buses."),
        ("Refunds are paid within 30 days.", "Refunds are not paid within 10 days."),
        # only one word, which may be said of anything
        ("It is free.", "It is not free."),
        # a negation elsewhere
        ("The lamp is red.", "The lamp is red, not blue."),
        ("The lamp is red.", "It is not true that the lamp is red."),
        ("The lamp is red.", "Ada did not say the lamp is red."),
        # what a negation does not turn around
        ("All plans include support.", "Not all plans include support."),
        ("Theft is covered.", "Theft is not only covered but paid twice."),
        ("Theft is covered.", "Theft is not covered unless you paid."),
        ("Theft is not covered.", "Theft is covered if you paid."),
        ("Theft is covered if you paid.", "Theft is not covered, you paid."),
        # the words stand in a clause of their own
        ("He paid the fee.", "He failed to pay the fee."),
        ("It did not rain in May.", "She said that it rained in May."),
    ],
)
def test_another_sentence_does_not_say_the_opposite(claim: str, passage: str) -> None:
    assert opposite(claim, passage) is None


def test_nothing_is_the_opposite_where_another_passage_says_the_same() -> None:
    assert opposite("The lamp is red.", "The lamp is not red.", "The lamp is red.") is None
    assert opposite("The lamp is red.", "The lamp is red.", "The lamp is not red.") is None


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        # who does it to whom
        ("A is larger than B.", "B is not larger than A."),
        ("Red lamps cost more than blue lamps.", "Blue lamps do not cost more than red lamps."),
        ("The dog bit the man.", "The man did not bite the dog."),
        # both may be true of some
        ("Some plans include support.", "Some plans do not include support."),
        ("Most members voted.", "Most members did not vote yet."),
        # a question states nothing
        ("Smoking is not allowed.", "Is smoking allowed?"),
        ("Smoking is allowed.", "Why is smoking not allowed?"),
        # the negation is of a part
        ("The museum is open.", "The museum is not open on Mondays."),
        ("Theft is covered.", "Theft is not covered by the silver plan."),
        # what could be
        ("The lamp is not red.", "The lamp could be red."),
    ],
)
def test_a_sentence_that_does_not_exclude_the_claim_is_no_opposite(
    claim: str, passage: str
) -> None:
    # The rule decides without a reader, so where the words do not tell, it must not decide.
    assert opposite(claim, passage) is None


SUBJECTS = st.sampled_from(["The lamp", "The old museum", "Theft of bicycles", "The gold plan"])
PREDICATES = st.sampled_from(["covered", "open on Mondays", "sold in Turin", "red and tall"])


@given(SUBJECTS, PREDICATES, st.sampled_from(["not", "never"]), st.booleans())
def test_a_negated_sentence_is_the_opposite_of_the_plain_one(
    subject: str, predicate: str, negation: str, turned: bool
) -> None:
    plain, negated = f"{subject} is {predicate}.", f"{subject} is {negation} {predicate}."
    claim, passage = (negated, plain) if turned else (plain, negated)
    assert opposite(claim, "It rains today.", passage) == passage
    assert opposite(claim, passage, claim) is None
    assert opposite(claim, claim) is None


@given(st.text(max_size=40), st.lists(st.text(max_size=40), max_size=3))
def test_any_claim_has_an_opposite_among_the_sentences_or_none(
    claim: str, passages: list[str]
) -> None:
    every = sentences(*passages)
    result = find_opposite(claim, every)
    assert result is None or result in every
    assert find_opposite(claim, sentences(claim)) is None


# Rules on words: topics ---------------------------------------------------------------------------


def speaks(topic: str, *passages: str) -> bool:
    return find_covering_sentence(topic, sentences(*passages)) is not None


@pytest.mark.parametrize(
    ("topic", "passage"),
    [
        ("theft", "Theft is covered."),
        ("a lift", "The hall has lifts."),
        ("theft of bicycles", "Bicycles are popular. Theft of them is covered."),
        ("whether dogs are allowed", "Dogs are allowed."),
        # prices, dates and numbers
        ("the price", "It costs 90 euros."),
        ("the price of the gold plan", "The gold plan is new. It costs 90 euros."),
        ("the fee", "A fare is paid at the door."),
        ("the year of the fire", "The fire was in 1815."),
        ("opening hours", "It opens at 9:00."),
        ("the number of halls", "It has 3 halls."),
        # questions
        ("when the museum opened", "The museum opened in 1902."),
        ("what time it opens", "It opens at 9 am."),
        ("how many halls it has", "It has 3 halls."),
        ("who built the bridge", "The bridge was built by Ada."),
        ("where the lamp stands", "The lamp stands in Turin."),
        ("why it closed", "It closed because of a fire."),
    ],
)
def test_a_passage_speaks_of_a_topic(topic: str, passage: str) -> None:
    assert speaks(topic, "It rains.", passage)


@pytest.mark.parametrize(
    ("topic", "passage"),
    [
        ("theft", "The lamp is red."),
        ("pets", "Dogs are allowed."),
        ("whether dogs are allowed", "Cats are allowed."),
        # the other words of the topic stand elsewhere
        ("the price of the gold plan", "The silver plan costs 90 euros. The gold plan is new."),
        ("the price of the gold plan", "The gold plan includes support."),
        # a question that it does not answer
        ("when the museum opened", "The museum opened to everybody."),
        ("how many halls it has", "It has large halls."),
        ("who built the bridge", "The bridge was built in 1902."),
        ("who built the bridge", "Ada wrote a book."),
        ("why it closed", "It closed in 1902."),
        # nothing is asked
        ("it", "Dogs are allowed."),
        ("", "Dogs are allowed."),
    ],
)
def test_a_passage_does_not_speak_of_another_topic(topic: str, passage: str) -> None:
    assert not speaks(topic, passage)


def test_the_words_of_a_topic_stand_near_each_other() -> None:
    assert speaks("theft of bicycles", "Bicycles are popular. Theft is covered.")
    assert not speaks("theft of bicycles", "Bicycles are popular.", "Theft is covered.")
    assert not speaks("theft of bicycles", "Bicycles are popular. It rains. Theft is covered.")


@pytest.mark.parametrize(
    ("topic", "passage"),
    [
        ("who built it", "Ada built it."),  # the name begins the sentence
        ("where the lamp stands", "The lamp stands in the hall."),
        ("how many halls it has", "It has three halls."),
        ("how long it lasts", "It lasts two hours."),
        ("when it opens", "It opens on Monday."),
        ("what time it opens", "It opens at noon."),
        ("how much it costs", "It is free."),
        ("the price", "Members pay 90 €."),
    ],
)
def test_an_answer_in_words_speaks_of_what_is_asked(topic: str, passage: str) -> None:
    # Else a denial of it ("The documents do not say who built it") is supported for certain.
    assert speaks(topic, passage)


@given(st.text(max_size=40), st.lists(st.text(max_size=40), max_size=3))
def test_any_topic_is_spoken_of_by_a_sentence_or_by_none(topic: str, passages: list[str]) -> None:
    every = sentences(*passages)
    result = find_covering_sentence(topic, every)
    assert result is None or result in every


# Words of a claim ---------------------------------------------------------------------------------


def test_words_are_given_as_written_with_their_content_words() -> None:
    assert split_written_words("The lamps, two of Ada's.") == [
        ("The", ()),
        ("lamps", ("lamp",)),
        ("two", ("2",)),
        ("of", ()),
        ("Ada's", ("ada",)),
    ]


def test_names_are_words_in_capitals_but_for_the_first_one() -> None:
    assert find_inner_names("Paris and Lyon are in France, The end.") == ["Lyon", "France"]
    assert find_inner_names("") == []


# A title ------------------------------------------------------------------------------------------

TITLE, TEXT = "The blue museum of Turin", "It opened in 1902."


def by_text(claim: str, title: str, text: str, reader: Reader, row: Row = YES) -> Entailment:
    """Return what a passage says of a claim by its text, read with its title as ``row``."""
    return run(correct_for_title(reader.models, claim, text, title, Entailment(*row), 0.5))


def test_a_title_completes_its_text() -> None:
    reader = Reader(lambda *_: OPEN)  # neither alone supports it
    assert by_text("The blue museum opened in 1902.", TITLE, TEXT, reader) == Entailment(*YES)


def test_a_title_supports_nothing_by_itself() -> None:
    reader = Reader(lambda premise, _: YES if premise == TITLE else OPEN)
    claim = "The blue museum of Turin is here."
    assert by_text(claim, TITLE, TEXT, reader) == Entailment(*OPEN)
    assert sorted(reader.asked) == sorted([(TITLE, claim), (TEXT, claim)])


def test_a_text_with_no_word_of_a_claim_supports_it_only_by_itself() -> None:
    reader = Reader(lambda *_: OPEN)
    assert by_text("The blue museum is in Turin.", TITLE, TEXT, reader) == Entailment(*OPEN)


@pytest.mark.parametrize(
    ("claim", "title", "row"),
    [
        ("The blue museum of Turin is here.", "", YES),  # no title
        ("The blue museum of Turin is here.", TITLE, OPEN),  # nothing supports it
        ("It opened in 1902.", TITLE, YES),  # the text has all words
        ("It opened in 1902 in the hall.", TITLE, YES),  # the title has none of the others
        ("It opened in 1902 in Turin.", TITLE, YES),  # the text has most of them
    ],
)
def test_title_and_text_are_not_read_apart_without_need(claim: str, title: str, row: Row) -> None:
    reader = Reader()
    assert by_text(claim, title, TEXT, reader, row) == Entailment(*row)
    assert reader.asked == []


def test_a_claim_that_only_a_title_supports_is_not_found() -> None:
    reader = Reader(lambda premise, _: YES if "blue museum" in premise else OPEN)
    claim = "The blue museum stands in Turin."
    assert verdicts(judged(claim, (TITLE, TEXT), reader=reader)) == ["not found"]
    assert verdicts(judged(claim, f"{TITLE}. {TEXT}", reader=reader)) == ["supported"]


# Verdicts without a reader ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claim", ["Red.", "Three halls.", "The red lamp.", "the RED lamp", "“The red lamp”"]
)
def test_a_claim_of_up_to_three_words_that_stands_in_a_passage_is_supported(claim: str) -> None:
    reader = Reader()
    passage = "It rains. Red. - Three halls! The red lamp."
    (finding,) = judged(claim, "It hails.", passage, reader=reader)
    row = finding.row
    assert (row.verdict, row.passages, row.entailment) == ("supported", [2], 1.0)
    assert row.why == "passage [2] says so, word for word"
    assert not finding.read
    assert reader.asked == []


def test_a_part_of_a_sentence_does_not_stand_there() -> None:
    reader = Reader()
    judged("The red lamp.", "The red lamp was never sold.", reader=reader)
    assert reader.asked != []


def test_a_cell_of_a_table_does_not_support_its_words() -> None:
    reader = Reader()
    table = json.dumps([{"note": "red"}, {"note": "blue"}])
    judged("The note is red.", table, reader=reader)
    assert reader.asked != []


def test_a_longer_claim_that_stands_in_a_passage_is_read_and_never_contradicted() -> None:
    reader = Reader(lambda *_: YES)
    passages = "The tall lamp is red.", "The tall lamp is not red."
    (finding,) = judged("The tall lamp is red.", *passages, reader=reader)
    assert (finding.row.verdict, finding.read) == ("supported", True)


def test_a_claim_whose_opposite_stands_in_a_passage_is_contradicted() -> None:
    reader = Reader(lambda *_: YES)
    opposed = "The lamp by the door is not green."
    (finding,) = judged("The lamp by the door is green.", "It rains.", opposed, reader=reader)
    row = finding.row
    assert (row.verdict, row.passages, row.quote) == ("contradicted", [2], opposed)
    assert row.why == "passage [2] says the opposite"
    assert (finding.entailment, finding.standing) == (0.0, 0.0)
    assert reader.asked == []


def test_a_part_that_claims_nothing_has_no_probability() -> None:
    reader = Reader()
    (finding,) = judged("Is there anything else?", "The lamp is red.", reader=reader)
    assert (finding.row.verdict, finding.row.why) == ("no claim", "a question")
    assert (finding.entailment, finding.standing) == (None, None)
    assert reader.asked == []


# Verdicts of a reader -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (YES, "supported"),
        (NO, "contradicted"),
        (OPEN, "not found"),
        ((0.5, 0.0, 0.5), "supported"),
        ((0.49, 0.0, 0.51), "contradicted"),
        ((0.49, 0.02, 0.49), "not found"),
    ],
)
def test_the_verdict_follows_from_the_probabilities(row: Row, verdict: str) -> None:
    findings = judged(
        "The tall lamp is old.", "The tall lamp is new.", reader=Reader(lambda *_: row)
    )
    assert verdicts(findings) == [verdict]


def test_the_passage_with_most_of_the_words_is_read() -> None:
    reader = Reader(lambda premise, _: YES if "old" in premise else NO)
    passages = "The tall lamp is new.", "The tall lamp is very old."
    (finding,) = judged("The tall lamp is old.", *passages, reader=reader)
    assert (finding.row.verdict, finding.row.passages) == ("supported", [2])


def test_sentences_of_several_passages_support_together() -> None:
    reader = Reader(lambda premise, _: YES if "Maria" in premise and "Lisbon" in premise else OPEN)
    passages = "Maria founded the firm. It is small.", "It rains. The firm began in sunny Lisbon."
    (finding,) = judged("Maria founded the firm in sunny Lisbon.", *passages, reader=reader)
    assert (finding.row.verdict, finding.row.passages) == ("supported", [1, 2])
    assert finding.row.quote == "Maria founded the firm. The firm began in sunny Lisbon."
    assert finding.row.why == "passages [1] and [2] support it (entailment 0.80)"


def test_the_mean_of_two_readings_counts() -> None:
    passage = "The lamp is tall and it rains. Nobody lives here. The lamp is old, as people say."
    claim = "The tall lamp is old."
    # One reading is of the whole passage, the other of the sentences with the claim's words.
    whole, part = Entailment(0.9, 0.1, 0.0), (0.5, 0.5, 0.0)
    for of_part, entailment in ((whole, 0.9), (part, 0.75), ((0.1, 0.9, 0.0), 0.5)):

        def read(premise: str, _: str, of_part: Row = of_part) -> Row:
            return whole if "Nobody" in premise else of_part

        reader = Reader(read)
        (finding,) = judged(claim, passage, reader=reader)
        assert len(reader.asked) == 2
        assert finding.row.entailment == pytest.approx(entailment)
        assert finding.row.verdict == "supported"


def test_of_several_passages_the_one_that_contradicts_by_itself_counts() -> None:
    passages = "Maria founded the firm in 1990.", "The firm began in sunny Lisbon in spring."
    claim = "Maria founded the firm in sunny Lisbon in autumn."
    for alone, verdict, number in ((NO, "contradicted", 2), (OPEN, "not found", 1)):

        def read(premise: str, _: str, alone: Row = alone) -> Row:
            return OPEN if premise == passages[0] else alone if premise == passages[1] else NO

        (finding,) = judged(claim, *passages, reader=Reader(read))
        assert (finding.row.verdict, finding.row.passages) == (verdict, [number])
        assert finding.row.quote == passages[number - 1]


@pytest.mark.parametrize(
    ("claim", "detail"),
    [
        ("The lamp was sold in 2024.", "2024"),
        ("The lamp was sold in Turin.", "Turin"),
        ("The lamp was sold for 90 euros.", "90"),
        ("The lamp was sold on 3 March 2021.", "3 March 2021"),
    ],
)
def test_a_detail_that_no_passage_has_prevents_support(claim: str, detail: str) -> None:
    (finding,) = judged(claim, "The lamp was sold.", reader=Reader(lambda *_: YES))
    row = finding.row
    assert (row.verdict, row.why) == ("not found", f"no passage contains “{detail}”")
    assert row.missing == [detail]
    assert finding.entailment == pytest.approx(0.4)  # half of the support is left
    assert finding.standing == pytest.approx(0.4 / 0.91, abs=1e-6)


def test_a_value_of_another_day_prevents_support() -> None:
    rain = {"2021-05-01": 3.5, "2021-05-02": 8.25, "2021-05-03": 1.5}
    passage = json.dumps([{"date": day, "rain": value} for day, value in rain.items()])
    reader = Reader(lambda *_: YES)
    findings = judged("The rain of May 1 was 3.5.", passage, reader=reader)
    assert verdicts(findings) == ["supported"]
    (finding,) = judged("The rain of May 1 was 8.25.", passage, reader=reader)
    assert (finding.row.verdict, finding.row.missing) == ("not found", ["8.25"])
    assert finding.row.why == "the rows for its dates do not contain “8.25”"


LAMPS = [
    {"name": "Aurora lamp", "price_usd": 20, "stock": 14, "color": "red"},
    {"name": "Borealis lamp", "price_usd": 35, "stock": 3, "color": "blue"},
]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        # All words and values are in the row, and the reader is unsure.
        ("The Aurora lamp has a price of 20 USD and a stock of 14.", "supported"),
        # The value of another row, and one that no row has.
        ("The Aurora lamp has a price of 35 USD and a stock of 14.", "not found"),
        ("The Aurora lamp has a price of 22 USD and a stock of 14.", "not found"),
        # The value of another column.
        ("The Aurora lamp has a price of 14 USD.", "not found"),
        # Words that no row has.
        ("The Aurora lamp is a modern and elegant choice for 20 USD.", "not found"),
        # The same words may deny it, or compare the rows the other way round.
        ("The Aurora lamp does not have a price of 20 USD.", "not found"),
        ("The Aurora lamp has a price of 20 USD, less than the Borealis lamp.", "not found"),
    ],
)
def test_words_and_values_of_the_row_decide_where_a_reader_is_unsure(
    claim: str, verdict: str
) -> None:
    unsure = Reader(lambda *_: (0.3, 0.6, 0.1))
    (finding,) = judged(claim, json.dumps(LAMPS), reader=unsure)
    assert finding.row.verdict == verdict
    if verdict == "supported":
        reason = "passage [1] has its values and 100 % of its words"
        reason += " (entailment 0.30, mean of both 0.65)"
        assert (finding.row.why, finding.entailment) == (reason, 0.65)


@pytest.mark.parametrize(
    "claim",
    [
        "The Aurora lamp has the best price.",
        "The price of the Aurora lamp fell to 20 USD.",
        "The Aurora lamp has the second price of 20 USD.",
    ],
)
def test_words_of_a_row_do_not_decide_about_comparisons(claim: str) -> None:
    unsure = Reader(lambda *_: (0.45, 0.5, 0.05))
    (finding,) = judged(claim, json.dumps(LAMPS), reader=unsure)
    assert finding.row.verdict == "not found"


def test_the_name_of_a_column_is_known_as_it_is_written() -> None:
    table = "| | Nova-X | KR-400i |\n|---|---|---|\n| Price | 499 | 749 |\n"
    claim = "The price of the KR-400i is 749."
    assert verdicts(judged(claim, table, reader=Reader(lambda *_: YES))) == ["supported"]


def test_words_of_a_row_do_not_decide_against_a_reader() -> None:
    claim = "The Aurora lamp has a price of 20 USD."
    for sure in ((0.3, 0.0, 0.7), (0.0, 1.0, 0.0)):
        (finding,) = judged(claim, json.dumps(LAMPS), reader=Reader(lambda *_, row=sure: row))
        assert finding.row.verdict == ("contradicted" if sure[2] else "supported")
    # Of prose the reader alone decides.
    unsure = Reader(lambda *_: (0.3, 0.6, 0.1))
    (finding,) = judged(claim, "The price of the Aurora lamp is 20 USD.", reader=unsure)
    assert finding.row.verdict == "not found"


def test_numbers_of_data_are_read_as_values_and_not_in_their_notation() -> None:
    # As written, "1,66.5" is one number, and "period3" none.
    passage = "# lamps of Ahorn\nday,sold\n2021-05-01,66.5\n2021-05-02,70.5"
    reader = Reader(lambda *_: YES)
    findings = judged("On May 1, 66.5 were sold.", passage, reader=reader)
    assert verdicts(findings) == ["supported"]
    findings = judged(
        "It sold 4 in the third period.", '{"name": "A", "period3": 4}', reader=reader
    )
    assert verdicts(findings) == ["supported"]


def test_a_detail_of_another_passage_does_not_prevent_support() -> None:
    passages = "The lamp was sold.", "It was 2024."
    findings = judged("The lamp was sold in 2024.", *passages, reader=Reader(lambda *_: YES))
    assert verdicts(findings) == ["supported"]


def test_a_detail_prevents_the_support_of_sentences_together() -> None:
    reader = Reader(lambda premise, _: YES if "Maria" in premise and "firm" in premise else OPEN)
    passages = "Maria came early.", "The firm began."
    (finding,) = judged("Maria began the early firm in 1999.", *passages, reader=reader)
    assert (finding.row.verdict, finding.row.why) == ("not found", "no passage contains “1999”")


@given(
    st.lists(st.sampled_from(["Turin", "Byron", "1902", "57", "3 May 2020"]), unique=True),
    st.sets(st.sampled_from(["Turin", "Byron", "1902", "57", "3 May 2020"])),
)
def test_no_claim_with_a_detail_that_no_passage_has_is_supported(
    details: list[str], known: set[str]
) -> None:
    claim = Claim("x", f"The tall lamp has {', '.join(details)} today.")
    passages = ["The tall lamp is old.", *(f"Here is {one} now." for one in sorted(known))]
    finding = run(verifier(Reader(lambda *_: YES), *passages).judge(claim))
    assert finding.row.verdict == ("supported" if known.issuperset(details) else "not found")


def test_a_passage_about_something_else_does_not_contradict() -> None:
    reader = Reader(lambda *_: NO)
    claim = "The tall lamp stands in the red house."
    assert verdicts(judged(claim, "It rains in Lisbon.", reader=reader)) == ["not found"]
    assert verdicts(judged(claim, "The lamp stands in a blue house.", reader=reader)) == [
        "contradicted"
    ]


def test_what_is_supported_near_the_threshold_is_shown_so() -> None:
    (finding,) = judged(
        "The tall lamp is old.", "The lamp is tall.", reader=Reader(lambda *_: (0.58, 0.42, 0))
    )
    assert (finding.row.verdict, finding.row.borderline) == ("supported", True)


# Denials ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "verdict", "why"),
    [
        ("The policy does not mention theft.", "contradicted", "passage [2] mentions “theft”"),
        ("The documents do not mention a lift.", "supported", "no passage mentions “lift”"),
    ],
)
def test_a_denial_is_judged_by_whether_a_passage_speaks_of_its_topic(
    answer: str, verdict: str, why: str
) -> None:
    (finding,) = judged(answer, "The lamp is red.", "Theft is covered.")
    assert (finding.row.verdict, finding.row.why) == (verdict, why)
    assert not finding.read


def test_a_denial_is_about_all_words_of_its_topic() -> None:
    answer = "The documents do not mention a workshop in Antwerp."
    (finding,) = judged(answer, "The workshop in Utrecht is open from Tuesday to Saturday.")
    assert finding.row.verdict == "supported"


def test_a_denial_that_a_passage_states_itself_is_supported() -> None:
    reader = Reader(lambda premise, _: YES if "silent" in premise else OPEN)
    passages = "On theft the policy is silent."
    (finding,) = judged("The policy does not mention theft.", passages, reader=reader)
    assert (finding.row.verdict, finding.read) == ("supported", True)


@pytest.mark.parametrize(
    ("row", "verdict"), [(YES, "contradicted"), (NO, "supported"), (OPEN, "not found")]
)
def test_the_verdict_on_no_is_that_on_what_it_denies_turned_around(row: Row, verdict: str) -> None:
    reader = Reader(lambda *_: row)
    question, passage = "Is theft of bicycles covered?", "Theft of old bicycles is covered."
    (finding,) = judged("No.", passage, reader=reader, question=question)
    assert [claim for _, claim in reader.asked][:1] == ["Theft of bicycles is covered."]
    assert finding.row.verdict == verdict
    assert finding.row.hypothesis == "It is not true that theft of bicycles is covered."
    assert (finding.row.entailment, finding.row.contradiction) == (row[2], row[0])
    assert finding.entailment == pytest.approx(row[2])


def test_no_is_supported_without_a_reader_where_a_passage_says_so() -> None:
    reader = Reader()
    (finding,) = judged("No.", "Theft is not covered.", reader=reader, question="Is theft covered?")
    assert (finding.row.verdict, finding.row.passages) == ("supported", [1])
    assert reader.asked == []


# Places in the answer -----------------------------------------------------------------------------


def test_what_is_not_supported_has_its_places_in_the_answer() -> None:
    answer = "It rains. The tall lamp is old [1]."
    (_, finding) = judged(answer, "The tall lamp.")
    spans = [answer[one.start : one.end] for one in finding.row.spans or ()]
    assert spans == ["The tall lamp is old [1].", "old"]
    assert {one.probability for one in finding.row.spans or ()} == {0.9}


def test_a_claim_that_is_not_in_the_answer_has_no_place() -> None:
    finding = run(verifier(Reader(), "The lamp is red.").judge(Claim("It is old.", "It is old.")))
    assert (finding.row.verdict, finding.row.spans) == ("not found", None)


def test_what_is_supported_has_no_places() -> None:
    (finding,) = judged("The tall lamp.", "The tall lamp.")
    assert finding.row.spans is None


def test_words_of_the_question_are_not_told_to_be_missing() -> None:
    question = "Where is the green lamp sold?"
    (finding,) = judged("The green lamp is sold in shops.", "It rains.", question=question)
    assert finding.row.missing == ["shops"]


# A second reader ----------------------------------------------------------------------------------


def again(
    answer: str, passage: str, reader: Reader, question: str = ""
) -> tuple[list[str], Reader]:
    """Return the verdicts of the first reader, and of both, on the claim of an answer."""
    judge = verifier(reader, passage, question=question, second=SecondReader())
    (claim,) = build_claims(question, answer, SPLIT)
    before = run(judge.judge(claim))
    return verdicts([before, run(judge.judge_again(claim, before))]), reader


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (OPEN, YES, ["not found", "supported"]),  # the mean of .1 and .9 is .5
        (YES, NO, ["supported", "not found"]),
        (NO, NO, ["contradicted", "contradicted"]),
    ],
)
def test_both_readers_decide_together(first: Row, second: Row, expected: list[str]) -> None:
    sure = {YES: (0.95, 0.03, 0.02), NO: (0.1, 0.2, 0.7)}
    reader = Reader(lambda *_: first, lambda *_: sure[second])
    both, _ = again("The tall lamp is old.", "The lamp is tall.", reader)
    assert both == expected


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("The red lamp.", "The red lamp."),
        ("The tall lamp is red.", "The tall lamp is not red."),
        ("The policy does not mention theft.", "The lamp is red."),
        ("Hello!", "The lamp is red."),
    ],
)
def test_what_a_rule_decided_is_not_read_again(answer: str, passage: str) -> None:
    (first, both), reader = again(answer, passage, Reader())
    assert first == both
    assert reader.asked_second == []


def test_a_detail_that_no_passage_has_prevents_support_by_both_readers() -> None:
    reader = Reader(lambda *_: YES, lambda *_: YES)
    both, _ = again("The lamp was sold in 2024.", "The lamp was sold.", reader)
    assert both == ["not found", "not found"]


def test_what_no_denies_is_read_again_and_turned_around() -> None:
    reader = Reader(lambda *_: OPEN, lambda *_: (0.02, 0.03, 0.95))
    both, asked = again(
        "No.",
        "Theft of old bicycles is covered.",
        reader,
        question="Is theft of bicycles covered?",
    )
    assert [claim for _, claim in asked.asked_second] == ["Theft of bicycles is covered."]
    assert both == ["not found", "supported"]

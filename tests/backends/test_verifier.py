"""A statement's quantities are supported, contradicted or left open by those of a passage."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.backends.embedded import EmbeddedEntailer, apply_quantities
from trustassay.backends.verifier import compare_quantities, compute_verdict, match_quantities
from trustassay.text import quantities

WALL = "The wall around the garden is 3 feet high. The gate is 5 feet wide."
LEAGUE = "Leeds top the table on 28 points, with Sheffield on 27."
FAMILY = "Ann Smith, 44, and her son Ben, 12, live in Leeds."
LOSS = "The firm lost £1.8m over 22 months."
MUSEUM = "The museum was founded in 1990. It moved to Paris in 2005."
FILM = "The film opened on 12 March 1994 and earned $3.5 million. It has 146 reviews."


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        (WALL, "The wall around the garden is 3 metres high."),
        (WALL, "The wall around the garden is 5 feet high."),
        (FILM, "The film opened in 1995."),
        (FILM, "The film opened on 13 March 1994."),
        (FILM, "The film earned 35 million dollars."),
        (FILM, "The film has more than 146 reviews."),
        (FILM, "The film has fewer than 100 reviews."),
        ("Three of the dogs bark.", "Two of the dogs bark."),
        ("She was the third president of the club.", "She was the tenth president of the club."),
        ("They stayed from 3 to 5 days in Rome.", "They stayed from 3 to 6 days in Rome."),
        ("The town has 235, 000 inhabitants.", "The town has 35,000 inhabitants."),
        (FAMILY, "Ann Smith, 45, lives in Leeds."),
        (MUSEUM, "The museum was founded in 1995."),
        ("Word " * 500 + WALL, "The wall around the garden is 3 metres high."),
    ],
)
def test_contradicted(premise: str, hypothesis: str) -> None:
    assert compute_verdict(premise, hypothesis) < -0.3


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        (WALL, "The wall around the garden is about 0.91 metres high."),
        (FILM, "The film opened in the 1990s."),
        (FILM, "The film opened in March of 1994."),
        (FILM, "The film earned 3.5 million dollars."),
        (FILM, "The film has more than 145 reviews."),
        ("About 230 people attended the fair.", "More than 200 people attended the fair."),
        ("Seven people were hurt in the crash.", "At least 5 people were hurt in the crash."),
        ("A ticket is €12, or €8 for children.", "The ticket costs 12 euros."),
        ("Three of the dogs bark.", "3 of the dogs bark."),
        ("She was the third president of the club.", "She was the 3rd president of the club."),
        ("They stayed for 18 months in Rome.", "They stayed for 1.5 years in Rome."),
        ("A 36 - year - old man was hurt.", "A 36-year-old man was hurt."),
        ("The town has 235, 000 inhabitants.", "The town has 235,000 inhabitants."),
        (LEAGUE, "Sheffield have 27 points."),
        (LOSS, "The firm lost £1.8 million over 22 months."),
    ],
)
def test_supported(premise: str, hypothesis: str) -> None:
    assert compute_verdict(premise, hypothesis) > 0.3


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        (WALL, "The wall is made of stone."),
        (WALL, "Peter has 3 children."),
        (WALL, "Peter bought a ladder of 12 feet in London."),
        (FILM, "The film earned £4 million."),  # another currency
        (FILM, "The film has 12 actors."),  # something else is counted
        ("It was sold for more than 500 dollars.", "It was sold for 600 dollars."),
        ("About 500 people came to the fair.", "490 people came to the fair."),
        ("The film opened in 1994.", "The film opened on 12 March 1994."),
        ("", "He has 3 dogs."),
        # Another subject: a team, a person, a ship.
        (LEAGUE, "Leeds have 27 points."),
        (FAMILY, "Ben is 44 years old."),
        (FAMILY, "Carl Jones, 50, met Ann Smith."),
        ("Barker was jailed for 43 months and Smith for eight years.", "Smith was jailed."),
        ("The Anna has 40 cabins, the Bella 60 cabins.", "The Bella has 40 cabins."),
        # Another period.
        (LOSS, "The firm lost more than £1.1m in the past year."),
        (LOSS, "The firm lost more than £1.7m in the past year."),
        (LOSS, "The firm lost £1.2m in the last six months."),
        ("Revenue was $4m in the last quarter.", "Revenue was $16m in the last year."),
        ("The firm sold 300 cars in 2018.", "The firm sold 400 cars in 2019."),
        # Another event: a year, a duration, an age.
        (MUSEUM, "The museum was renovated in 1995."),
        ("The museum won the prize this year, as in 2018.", "The museum won the prize in 2019."),
        ("The strike lasted 3 weeks.", "Talks to end the strike took 5 days."),
        ("He was 40 years old when he retired.", "He died at the age of 80."),
        # A bound that is far away, and a number that another number of the statement repeats.
        ("The fair drew 500 visitors.", "The fair drew more than 100 visitors."),
        ("It has 24 rooms and 30 beds, with 12 on top.", "It has 30 beds, of which 12 are new."),
        (WALL, ""),
    ],
)
def test_nothing_is_said(premise: str, hypothesis: str) -> None:
    assert compute_verdict(premise, hypothesis) == 0


def test_what_is_copied_is_not_supported_once_more() -> None:
    assert compute_verdict(FILM, "146 reviews are there of the film.") == 0


def test_the_spans_that_decide() -> None:
    statement = "The wall around the garden is 3 metres high."
    (found,) = match_quantities(WALL, statement)
    assert statement[slice(*found.span)] == "3 metres"
    assert WALL[slice(*found.differing)] in ("3 feet", "5 feet")


def test_rounding_and_conversion_leave_room() -> None:
    def related(told: str, said: str) -> int:
        return compare_quantities(
            quantities.read_quantities(told).quantities[0],
            quantities.read_quantities(said).quantities[0],
        )

    assert related("3,512,000 people", "3.5 million people") == 1
    assert related("3.4 million people", "3.5 million people") == -1
    assert related("100 miles", "161 km") == 1
    assert related("100 miles", "164 km") == 0
    assert related("100 miles", "200 km") == -1
    assert related("145 reviews", "146 reviews") == -1


def test_the_built_in_entailer_follows_it() -> None:
    model = EmbeddedEntailer()
    pairs = [
        (WALL, "The wall around the garden is 3 metres high."),
        (WALL, "The wall around the garden is about 0.91 metres high."),
        (WALL, "The wall is made of stone."),
    ]
    after = model.scores(pairs)
    model.quantities = {}
    before = model.scores(pairs)
    assert after[0, 0] < 0.5 and after[0, 0] < before[0, 0] and after[0, 2] > before[0, 2]
    assert after[1, 0] > before[1, 0]
    assert (after[2] == before[2]).all()
    assert after.sum(axis=1) == pytest.approx(1)


def test_nothing_is_said_of_very_long_texts() -> None:
    assert compute_verdict("7 dogs, " * 100_000, "There are 3 dogs.") == 0
    assert compute_verdict("There are 3 dogs.", "7 dogs, " * 1_000) == 0


def test_a_copied_sentence_stays_supported() -> None:
    row = (0.98, 0.01, 0.01)
    weights = {"supported": 3.0, "contradicted": 3.0, "contradiction": 1.0}
    copied = "The gate is 5 feet wide."
    assert apply_quantities(row, f"{WALL} {copied[:-1]}, not 7.", copied, weights) == row


@given(st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=200)
def test_every_pair_has_a_verdict(premise: str, hypothesis: str) -> None:
    assert -1 <= compute_verdict(premise, hypothesis) <= 1


@pytest.mark.parametrize(
    "part", ["7 ", "7 dogs ", "million ", "1,000,", "$5-", "May 5, ", "a half "]
)
def test_the_time_is_linear_in_hostile_texts(part: str) -> None:
    """Four times the text takes at most some four times the time."""
    hypothesis = "There are 3 dogs, 7 cats and 5 million May 5 dollars."

    def seconds(times: int) -> float:
        text = part * times
        begun = time.process_time()
        compute_verdict(text, hypothesis)
        compute_verdict(hypothesis, text)
        return time.process_time() - begun

    seconds(10)
    assert seconds(8_000) < 10 * seconds(2_000) + 0.5

"""A second reader of claims: how much it reads, and the verdict of both readers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judging.readers import NO, OPEN, YES, Reader, documents, run
from trustassay.core.capabilities import Entailment
from trustassay.errors import UsageError
from trustassay.judging.passages import Passages, choose_windows
from trustassay.judging.readings import combine_readers
from trustassay.judging.second_reader import (
    SecondReader,
    SecondReaderOptions,
    read_deciding_statements,
)
from trustassay.text.sentences import load_splitter

probability = st.floats(0, 1)


@st.composite
def entailments(draw: st.DrawFn) -> Entailment:
    entailment, share = draw(probability), draw(probability)
    rest = 1 - entailment
    return Entailment(entailment, rest * (1 - share), rest * share)


# The verdict of both readers --------------------------------------------------------------------


def test_the_log_odds_of_both_have_one_mean() -> None:
    sure = Entailment(0.1, 0.2, 0.7)
    assert combine_readers(Entailment(0.9, 0.1, 0.0), sure).entailment == pytest.approx(0.5)
    both = combine_readers(Entailment(0.5, 0.5, 0.0), sure)
    assert both.entailment == pytest.approx(1 / (1 + 3))
    assert both.contradiction == pytest.approx(0.75 * 7 / 9)
    assert sum(both) == pytest.approx(1)


def test_certainty_of_one_reader_does_not_silence_the_other() -> None:
    # Log-odds of certainty are infinite: they are cut at a probability of 1 in 10,000.
    certain, doubting = Entailment(1.0, 0.0, 0.0), Entailment(0.01, 0.0, 0.99)
    assert 0.5 < combine_readers(certain, doubting).entailment < 0.95
    assert combine_readers(Entailment(0.0, 0.0, 1.0), certain).entailment == pytest.approx(0.5)


@given(entailments(), entailments())
def test_both_readers_together_lie_between_them(first: Entailment, second: Entailment) -> None:
    both = combine_readers(first, second)
    low, high = sorted([first.entailment, second.entailment])
    assert low - 1e-3 <= both.entailment <= high + 1e-3
    assert sum(both) == pytest.approx(1)
    assert min(both) >= 0


@given(entailments(), entailments(), entailments())
def test_more_support_of_either_reader_is_more_support(
    first: Entailment, second: Entailment, other: Entailment
) -> None:
    less, more = sorted([first, other], key=lambda one: one.entailment)
    assert (
        combine_readers(less, second).entailment <= combine_readers(more, second).entailment + 1e-12
    )
    assert (
        combine_readers(second, less).entailment <= combine_readers(second, more).entailment + 1e-12
    )


def test_the_second_reader_is_shown_windows_as_one_text() -> None:
    texts = ["It rains. The tall lamp is red.", "It hails. The lamp is old."]
    chosen = Passages(documents(*texts), load_splitter("sentencex")).choose_windows(
        "The tall red lamp is old."
    )
    reader = Reader(second=lambda *_: YES)
    run(SecondReader().judge(reader.models, chosen, "The lamp is red.", Entailment(*OPEN)))
    assert reader.asked_second == [("\n".join(one.text for one in chosen), "The lamp is red.")]
    assert reader.asked == []


@pytest.mark.parametrize(
    ("alone", "entailment"),
    [(True, 0.8), (False, combine_readers(Entailment(*NO), Entailment(*YES))[0])],
)
def test_alone_its_verdict_counts(alone: bool, entailment: float) -> None:
    chosen = choose_windows("The lamp is red.", [["The lamp is red."]])
    models = Reader(second=lambda *_: YES).models
    both = run(SecondReader(alone).judge(models, chosen, "The lamp is red.", Entailment(*NO)))
    assert both.entailment == pytest.approx(entailment)


# How much it reads --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "answers", "beside", "most", "seconds"),
    [
        (None, 100, 0, None, None),
        ("30", 100, 0, 30, None),
        ("30", 100, 50, 20, None),  # shared out in proportion
        ("25%", 200, 0, 50, None),
        ("25%", 200, 999, 50, None),
        (" 2.5 % ", 200, 0, 5, None),
        ("600s", 100, 0, None, 600),
        ("0.5s", 100, 0, None, 0.5),
    ],
)
def test_a_budget_is_a_number_a_share_or_seconds(
    budget: str | None, answers: int, beside: int, most: int | None, seconds: float | None
) -> None:
    options = SecondReaderOptions(second_budget=budget)
    assert options.max_answers(answers, beside) == most
    assert options.seconds == seconds


@pytest.mark.parametrize("budget", ["", "much", "0", "0%", "0s", "120%", "-3", "3 answers", "1e3"])
def test_any_other_budget_is_refused(budget: str) -> None:
    with pytest.raises(UsageError, match=r"^second_budget: expected a number of answers, a share"):
        SecondReaderOptions(second_budget=budget)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_from_0_to_1(share: float) -> None:
    with pytest.raises(UsageError, match=r"^second_share: expected 0 to 1"):
        SecondReaderOptions(second_share=share)


def test_the_settings_are_the_options_by_name() -> None:
    assert SecondReaderOptions(0.2, "30", second_alone=True).settings() == {
        "second_share": 0.2,
        "second_budget": "30",
        "second_alone": True,
    }


# Which claims of an answer it reads --------------------------------------------------------------


def read_bad_first(
    first: list[bool], second: list[bool], claims: list[int]
) -> tuple[list[bool], int, list[int]]:
    """Let each claim be bad or not by the first reader, and by both; return what is bad in the end,
    how many claims were read, and which, in order."""
    places: list[int] = []

    async def again(place: int) -> bool:
        places.append(place)
        return second[place]

    bad, count = run(read_deciding_statements(first, claims, bool, again))
    return bad, count, places


def test_of_a_bad_answer_only_the_bad_claims_are_read() -> None:
    first, second = [False, True, False, True], [True, True, True, True]
    assert read_bad_first(first, second, [0, 1, 2, 3]) == (first, 2, [1, 3])


def test_an_answer_without_a_bad_claim_is_read_whole() -> None:
    first, second = [False, False], [False, True]
    assert read_bad_first(first, second, [0, 1]) == ([False, True], 2, [0, 1])


def test_an_answer_whose_bad_claims_turn_out_good_is_read_whole() -> None:
    first, second = [False, True, False], [True, False, False]
    assert read_bad_first(first, second, [0, 1, 2]) == ([True, False, False], 3, [1, 0, 2])


def test_what_claims_nothing_is_not_read() -> None:
    first, second = [True, False, True], [False, False, False]
    assert read_bad_first(first, second, [1]) == (first, 1, [1])
    assert read_bad_first(first, second, []) == (first, 0, [])


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=6))
def test_an_answer_is_good_by_both_readers_or_bad_by_both(
    rows: list[tuple[bool, bool, bool]],
) -> None:
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    claims = [place for place, row in enumerate(rows) if row[2]]
    bad, count, places = read_bad_first(first, second, claims)
    assert count == len(places) == len(set(places))
    assert set(places) <= set(claims)
    still_bad = [place for place in claims if bad[place]]
    if still_bad:
        assert any(second[place] and place in places for place in still_bad)
    else:
        assert set(places) == set(claims)
        assert not any(second[place] for place in claims)

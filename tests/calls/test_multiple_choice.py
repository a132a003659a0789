"""Which option a model takes: by likelihood, by the first token, or by the letter of its reply."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.calls.backends import Backends
from trustassay.calls.client import Client, SampleModels
from trustassay.calls.multiple_choice import find_letter
from trustassay.core.capabilities import ChatRequest, Message, OptionChoice, Reply, TokenLogprob
from trustassay.errors import BackendError

PROMPT = "Which town? A. Paris B. Rome C. Oslo\nAnswer:"
OPTIONS = ("Paris", "Rome", "Oslo")


def chosen(model: Any, options: Sequence[str] = OPTIONS, by: Any = "auto") -> OptionChoice:
    async def work() -> OptionChoice:
        gatherers = Client(Backends.of(chat={"model": model}))
        try:
            return await SampleModels(gatherers).choose(PROMPT, options, by=by)
        finally:
            await gatherers.close()

    return asyncio.run(work())


class Likely:
    """A local model that finds letters likely."""

    name = "likely"

    def __init__(self, **likelihoods: float) -> None:
        self.likelihoods, self.asked = likelihoods, 0

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        assert requests[0].logprobs is None
        return [Reply("It is C.") for _ in requests]

    def token_loglikelihoods(
        self, prompt: str | Sequence[Message], options: Sequence[str]
    ) -> list[list[float]]:
        self.asked += 1
        return [[math.log(self.likelihoods.get(option, 1e-9))] for option in options]


class Endpoint:
    """An endpoint that replies so, with log-probabilities of the first token if given."""

    name = "endpoint"

    def __init__(self, text: str, logprobs: tuple[TokenLogprob, ...] | None = None) -> None:
        self.text, self.logprobs = text, logprobs

    async def reply(self, request: ChatRequest) -> Reply:
        return Reply(self.text, logprobs=self.logprobs if request.logprobs else None)


def test_a_model_that_tells_likelihoods_is_asked_for_them_in_one_batch() -> None:
    model = Likely(A=0.1, B=0.3, C=0.2)
    found = chosen(model)
    assert (found.index, found.way) == (1, "likelihood")
    assert found.probabilities == pytest.approx((1 / 6, 1 / 2, 1 / 3), abs=1e-5)
    assert model.asked == 1


def test_a_letter_behind_a_space_is_the_same_letter() -> None:
    found = chosen(Likely(**{"A": 0.1, " B": 0.3, "B": 0.01, " A": 0.2, "C": 0.1}))
    assert found.index == 1
    assert found.probabilities == pytest.approx((2 / 6, 3 / 6, 1 / 6), abs=1e-5)


def test_what_is_to_decide_can_be_told() -> None:
    model = Likely(A=0.1, B=0.3, C=0.2)
    assert chosen(model, by="likelihood").index == 1
    assert chosen(model, by="letter") == OptionChoice(2, "letter", (), "It is C.")
    first = TokenLogprob("The", -1.2, ((" B", -2.0), ("C", -0.9)))
    endpoint = Endpoint("The answer is B", (first,))
    assert chosen(endpoint).index == 2
    assert chosen(endpoint, by="letter") == OptionChoice(1, "letter", (), "The answer is B")
    with pytest.raises(BackendError, match="does not return the likelihood"):
        chosen(endpoint, by="likelihood")


def test_the_first_token_decides_where_an_endpoint_tells_its_log_probabilities() -> None:
    first = TokenLogprob("The", -1.5, ((" B", -2.0), ("B", -3.0), ("C", -1.0), ("b", -9.0)))
    found = chosen(Endpoint("The answer is B", (first,)))
    weights = [0, math.exp(-2), math.exp(-1)]
    assert (found.index, found.way, found.reply) == (2, "logprobs", "The answer is B")
    assert found.probabilities == pytest.approx([w / sum(weights) for w in weights])


@pytest.mark.parametrize("logprobs", [None, (), (TokenLogprob("B", -0.1, (("It", -3.0),)),)])
def test_else_the_letter_that_the_reply_names(logprobs: Any) -> None:
    assert chosen(Endpoint("I'd say (C).", logprobs)) == OptionChoice(
        2, "letter", (), "I'd say (C)."
    )


@pytest.mark.parametrize("text", ["No idea.", "Paris or Rome", "..."])
def test_a_reply_that_names_no_letter_chooses_nothing(text: str) -> None:
    assert chosen(Endpoint(text)) == OptionChoice(None, "letter", (), text)


def test_a_reply_that_repeats_an_option_chooses_it() -> None:
    assert chosen(Endpoint("*rome.*")).index == 1
    assert chosen(Endpoint("Rome"), ["Rome", "rome!", "Oslo"]).index is None
    assert chosen(Endpoint("?"), ["?", "Rome"]).index is None


def test_the_words_of_an_option_come_before_a_letter_in_them() -> None:
    options = ["river", "C. S. Lewis", "B", "E. coli", "lake"]
    assert chosen(Endpoint("C. S. Lewis"), options).index == 1
    assert chosen(Endpoint("E. coli."), options).index == 3
    assert chosen(Endpoint("B."), options).index == 1  # a single letter is one
    assert chosen(Endpoint("The answer is E. lake, in the north"), options).index == 4
    assert chosen(Endpoint("E. river"), options).index is None
    assert chosen(Endpoint("None of the above (C)"), ["x", "y", "None of the above"]).index == 2


def test_a_reply_that_repeats_several_options_chooses_none() -> None:
    for text in ("A. Paris\nB. Rome\nC. Oslo", "A) Paris\n\nB) Rome", "A: no\nB: yes"):
        assert chosen(Endpoint(text)) == OptionChoice(None, "letter", (), text)


def test_a_first_token_that_is_no_letter_leaves_it_to_the_reply() -> None:
    unsure = (TokenLogprob("The", -0.1, ((" A", -3.0), ("C", -4.0))),)
    assert chosen(Endpoint("The answer is B", unsure)) == OptionChoice(
        1, "letter", (), "The answer is B"
    )
    emitted = (TokenLogprob(" A", -1.5, (("The", -1.6), ("C", -4.0))),)
    assert chosen(Endpoint("A. Paris", emitted)).way == "logprobs"
    sure = (TokenLogprob("A", -0.1, (("B", -3.0), ("The", -4.0))),)
    assert chosen(Endpoint("A river runs through it: B", sure)).way == "letter"


@pytest.mark.parametrize("n", [0, 1, 27])
def test_options_have_a_letter_each(n: int) -> None:
    with pytest.raises(ValueError, match=f"expected 2 to 26 options, got {n}"):
        chosen(Endpoint("A"), ["x"] * n)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        (" (b) ", "B"),
        ("B.", "B"),
        ("B. Rome", "B"),
        ("**B**", "B"),
        ("[C]", "C"),
        ("B - because of Rome", "B"),
        ("The answer is B.", "B"),
        ("Answer: (C)", "C"),
        ("My choice is option A, not B", "A"),
        ("I believe it must be C", "C"),
        ("A river runs through it", None),
        ("Ｃ", "C"),
        ("A is correct.", "A"),
        ("C because it lies north", "C"),
        ("B, because A is wrong", "B"),
        ("A or B", None),
        ("A, B or C", None),
        ("A, a river", "A"),
        ("A/B", None),
        ("Neither A nor B", None),
        ("It isn't A", None),
        ("C++", None),
        ("A=1", None),
        ("The answer is A. No, the answer is B.", None),
        ("D", None),
        ("Rome", None),
        ("", None),
        ("Absolutely", None),
        ("C seems more plausible than A.", "C"),
        ("A works better than C.", None),
        ("I would go with C rather than A.", "C"),
        ("I choose C over A", None),
        ("B seems right rather than D", "B"),
        ("I believe C fits better than option A", None),
        ("Option B is correct because A is wrong.", "B"),
        ("A is a river, B a lake. The answer is C.", "C"),
        ("I would take option b", "B"),
        ("The answer is a river in Africa", None),
        ("Answer: a river", None),
        ("Answer: A river", None),
        ("The answer is A because it lies north", "A"),
        ("I would not choose option A.", None),
        ("The answer cannot be option B.", None),
        ("I don't think the answer is B.", None),
        ("Neither A, B nor C", None),
        ("There is no doubt that it is B", "B"),
        ("Answer: A) or B)", None),
        ("A) or B)", None),
        ("a mix of B and C", None),
        ("Answer: a mix of B and C", None),
        ("C. S. Lewis", None),
        ("It was C. S. Lewis.", None),
        ("D. H. Lawrence wrote it.", None),
        ("E. coli", None),
        ("A-ha", None),
        ("E.g. Paris", None),
        ("B.C. 44", None),
        ("D.C. is the capital", None),
        ("B. because it lies north", "B"),
        ("B.Rome", "B"),
    ],
)
def test_letters_are_read_in_whatever_wrapping(text: str, letter: str | None) -> None:
    letters = "ABC" if text == "D" else "ABCDE"
    assert find_letter(text, letters) == letter


@given(st.text())
def test_any_text_names_one_of_the_letters_or_none(text: str) -> None:
    assert find_letter(text, "ABC") in {None, "A", "B", "C"}

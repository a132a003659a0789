"""What is judged of answers as people and models write them: one line for each kind."""

import pytest

from trustassay.judging.claims import build_claims
from trustassay.judging.refusal import find_refusal_in_words
from trustassay.text.sentences import load_splitter

OPEN = "Is the shop open on Sunday?"
COST = "What does the permit cost?"
COSTS = "The permit costs 45 euros."


def hypotheses(question: str, response: str) -> list[str]:
    claims = build_claims(question, response, load_splitter("sentencex"))
    return [claim.hypothesis for claim in claims if claim.hypothesis is not None]


@pytest.mark.parametrize(
    ("question", "reply", "hypothesis"),
    [
        (OPEN, "Yes, if you book ahead.", "The shop is open on Sunday if you book ahead."),
        (OPEN, "No, unless you book.", "The shop is not open on Sunday unless you book."),
        (OPEN, "The answer is yes.", "The shop is open on Sunday."),
        (OPEN, "Definitely.", "The shop is open on Sunday."),
        (OPEN, "Sure it is.", "The shop is open on Sunday."),
        (OPEN, "That is not correct.", "It is not true that the shop is open on Sunday."),
        (OPEN, "It's not.", "It is not true that the shop is open on Sunday."),
        (OPEN, "Not really.", "It is not true that the shop is open on Sunday."),
        ("Is Oslo the capital of Norway?", "Yes.", "Oslo is the capital of Norway."),
        ("Is the museum in Lund?", "Yes.", "The museum is in Lund."),
        ("Is the hall not open on Monday?", "Yes.", "The hall is not open on Monday."),
        ("It is open on Sunday, isn't it?", "Yes.", "It is open on Sunday."),
        ("True or false: it has 14 halls.", "True", "It has 14 halls."),
        ("Is breakfast free or paid?", "Paid", "Breakfast is Paid."),
        ("Who's the director?", "Anna Kern", "The director is Anna Kern."),
        ("What are the opening hours?", "9-5", "The opening hours are 9-5."),
        ("How many?\nA. 12\nB. 14\nC. 15", "The correct answer is B.", "14."),
    ],
)
def test_a_short_reply_says_what_its_question_asks(
    question: str, reply: str, hypothesis: str
) -> None:
    assert hypotheses(question, reply)[0].endswith(hypothesis)


@pytest.mark.parametrize(
    "sentence",
    [
        "Doors open at 15:00.",
        "Louis XIV built it.",
        "Bicycles travel free.",
        "Revenue fell by 3.2 percent.",
        "Parking costs extra.",
        "Marta Quist never sold the map.",
    ],
)
def test_the_question_is_not_put_before_a_sentence(sentence: str) -> None:
    assert hypotheses("Who or what?", sentence) == [sentence]


@pytest.mark.parametrize(
    "answer",
    [
        f"Hi Anna, {COSTS}",
        f"{COSTS}\n\nCheers,\nAnna from Support",
        f"{COSTS}\n\nBest regards,\nThe City Team",
        f"{COSTS}\n\nFor more information, visit https://example.org.",
        f"{COSTS} That's all I could find.",
        f"{COSTS} This information is based on the provided documents only.",
        f"As an AI language model, I can tell you that {COSTS}",
        f"{COSTS}\n\nSources:\n- guide.pdf, p. 3\n- https://example.org/a",
        "The permit costs <del>90</del>45 euros.",
        *(
            f"{COSTS[:-1]} {mark}."
            for mark in ("[guide.pdf, p. 3]", "(p. 3)", "[S1]", "(see passage 2)", "[Smith, 2019]",
                         "(Smith et al., 2019)", "[oaicite:1]", "<ref>1</ref>", "[Context 1]",
                         "【turn0file1】", "[@smith2019]")
        ),
    ],
)  # fmt: skip
def test_what_says_nothing_about_the_subject_is_cut_off(answer: str) -> None:
    assert [one.casefold() for one in hypotheses(COST, answer)] == [COSTS.casefold()]


@pytest.mark.parametrize(
    ("answer", "hypothesis"),
    [
        ("The museum has [14] halls.", "The museum has [14] halls."),
        ("The hotel is rated ★★★★★.", "The hotel is rated ★★★★★."),
        ("Pets: ❌", "Pets: no."),
        ("Sauna: ✅", "Sauna: yes."),
        ("Problem: the wait is long.", "Problem: the wait is long."),
        ("In court documents, she is called Marta.", "In court documents, she is called Marta."),
        ("Not eligible:\n- Students\n- Clerks", "Students are not eligible."),
        ("Here is what isn't covered:\n- Theft\n- Fire", "Theft is not covered."),
        ("No cover for:\n- theft\n- fire", "No cover for theft."),
        ("Avoid:\n- milk\n- eggs", "Avoid milk."),
        ("**Flood** – not covered", "Flood – not covered."),
    ],
)
def test_what_looks_like_decoration_and_says_something_is_kept(
    answer: str, hypothesis: str
) -> None:
    assert hypotheses("What is there to know?", answer)[0] == hypothesis


@pytest.mark.parametrize("below", ["No refunds", "the permit is free", "45 euros"])
def test_no_claim_hides_in_a_signature(below: str) -> None:
    assert len(hypotheses(COST, f"{COSTS}\n\nBest regards,\n{below}")) == 2


def test_the_lead_of_a_list_may_end_a_paragraph() -> None:
    answer = "The plan covers theft. Not covered:\n- fire\n- floods"
    assert hypotheses("What is covered?", answer) == [
        "The plan covers theft.",
        "Fire is not covered.",
        "Floods are not covered.",
    ]


def test_citations_of_a_value_in_json_are_its_own() -> None:
    answer = '[{"text": "It is open.", "sources": [1]}, {"text": "It is old.", "sources": [2]}]'
    claims = build_claims("How is it?", answer, load_splitter("sentencex"))
    assert [claim.citations for claim in claims] == [(1,), (2,)]
    assert [answer[claim.start : claim.end] for claim in claims] == ["It is open.", "It is old."]


@pytest.mark.parametrize(
    "aside",
    [
        "If you are over 60, entry costs 5 euros.",
        "You can find the museum at 14 Harbour Road.",
        "Please bring two photographs.",
        "It covers theft and fire.",
        "Contact lenses are free.",
    ],
)
def test_an_answer_that_states_something_beside_a_denial_is_no_refusal(aside: str) -> None:
    assert find_refusal_in_words(f"The documents do not say who built it. {aside}") is None


HIDING_PLACES = [
    "The prices may change and {}.",
    "I am not a lawyer and {}.",
    "Here is the list: {}.",
    "These are the details: {}.",
    "Please contact the office, {}.",
    "Please check the website, {}.",
    "Let me know if you need more, {}.",
    "This is not legal advice, {}.",
    "Good luck, {}.",
    "As mentioned above {}.",
    "I found this in the documents: {}.",
    "I looked at the documents and {}.",
    "Opening hours may vary because {}.",
    "Hello Anna, {}.",
    "P.S. {}.",
    "Dogs may swim ({}, p. 3).",
    "Dogs may swim【{}】.",
    "The museum is old.\n\nSources:\n- {}\n- guide.pdf, p. 3",
    "The museum is old.\n\nSources:\n[1] {}",
    "The museum is old.\n\nBest regards,\n{}",
]
"""Where a bad model could put what it does not want to be judged."""


@pytest.mark.parametrize("place", HIDING_PLACES)
@pytest.mark.parametrize("claim", ["the pool is closed", "no dogs are allowed"])
def test_no_claim_hides_in_talk_or_markup(place: str, claim: str) -> None:
    judged = " ".join(hypotheses("What is there to know?", place.format(claim))).casefold()
    assert claim in judged


@pytest.mark.parametrize("aside", ["Please contact the office, {}.", "I'm sorry, {}."])
def test_no_claim_hides_beside_a_refusal(aside: str) -> None:
    answer = f"The documents do not say who built it. {aside.format('the pool is closed')}"
    assert find_refusal_in_words(answer) is None


@pytest.mark.parametrize(
    "talk",
    [
        "If you'd like, I can also list the opening hours.",
        "Let me know if you have any questions, and I'll be happy to help!",
        "I hope this helps, and have a great day!",
        "This is not legal advice, and you should consult a lawyer.",
        "I'm an AI language model, so my answers may contain errors.",
        "Prices may vary, so please check the website.",
        "For the latest information, please visit the website or contact the office.",
        "Always consult a professional, as individual circumstances vary.",
        "Just say the word and I'll walk you through it.",
        "I have looked through the documents you provided, and here is a summary.",
        "As described in the table below.",
    ],
)
def test_talk_in_several_parts_is_no_claim(talk: str) -> None:
    assert hypotheses("What is there to know?", talk) == []


@pytest.mark.parametrize(
    ("question", "answer", "claims"),
    [
        ("What does entry cost? I think it costs 7 euros.", "Entry costs 7 euros.", True),
        ("I read that entry costs 7 euros. What does it cost?", "Entry costs 7 euros.", True),
        ("What does entry cost, 7 euros?", "Entry costs 7 euros.", False),
        ("When is the pool closed?", "The pool is closed.", False),
        ("Hello! When is the pool closed?", "The pool is closed.", False),
    ],
)
def test_agreeing_with_what_the_asker_states_is_a_claim(
    question: str, answer: str, claims: bool
) -> None:
    assert bool(hypotheses(question, answer)) == claims

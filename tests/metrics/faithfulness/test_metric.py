"""What is judged, by which passages, and what follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.errors import UnknownNameError
from trustassay.metrics import Faithfulness

YES, OPEN, NO = (0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)


def tells(premise: str, hypothesis: str) -> tuple[float, float, float]:
    """Go by the last word: a premise with it entails, one with "not" and it contradicts."""
    word = hypothesis.rstrip(".").split()[-1]
    if f"not {word}" in premise:
        return NO
    return YES if word in premise else OPEN


def assessed(
    response: str,
    *documents: str,
    metric: Faithfulness | None = None,
    question: str = "Where does the lamp stand?",
    entailer: Any = None,
    **who: Any,
) -> Assessment:
    record = {"question": question, "response": response, "documents": list(documents)}
    metric = metric or Faithfulness()
    run = score([record], metrics=metric, entailer=entailer or Recorder(tells), cache=None, **who)
    return run.assessments[0]


def verdicts(found: Assessment) -> list[str]:
    return [row["verdict"] for row in found.evidence]


def test_every_sentence_has_a_verdict_and_the_passage_that_decides() -> None:
    found = assessed(
        "The tall lamp stands in the red house. The lamp by the door is green. "
        "The old lamp was made in Turin.",
        "The lamp stands in the red house.",
        "The lamp by the door is not green, said the owner.",
    )
    assert found.verdict == "contradicted"
    assert found.score == pytest.approx(1 / 3)
    assert verdicts(found) == ["supported", "contradicted", "not found"]
    assert [row["passages"] for row in found.evidence] == [[1], [2], [1]]
    assert found.evidence[1]["quote"] == "The lamp by the door is not green, said the owner."
    assert found.evidence[2]["missing"] == ["old", "made", "Turin"]
    assert found.reason.startswith("1 of 3 sentences contradicted: passage [2] says otherwise")
    assert found.parts["statements"] == 3
    assert found.parts["supported"] == 1
    assert found.parts["support"] == pytest.approx((0.8 + 0.1 + 0.1) / 3)
    assert found.parts["weakest"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("response", "hypothesis"),
    [
        ("In Turin.", "The lamp stand in Turin."),
        ("Yes, the lamp stands in the house.", "The lamp stands in the house."),
        ("The lamp stands in the house [1].", "The lamp stands in the house."),
    ],
)
def test_short_answers_are_judged_with_their_question(response: str, hypothesis: str) -> None:
    judge = Recorder(tells)
    assessed(response, "The lamp stands in the house.", entailer=judge)
    assert [pair[1] for pair in judge.asked] == [hypothesis]


def test_what_claims_nothing_is_not_judged() -> None:
    judge = Recorder(tells)
    found = assessed("Hello! Is there anything else?", "The lamp is red.", entailer=judge)
    assert verdicts(found) == ["no claim", "no claim"]
    assert (found.score, found.verdict) == (None, "no claim")
    assert not judge.asked
    mixed = assessed("Sure! The lamp is red. I hope this helps.", "The lamp is red.")
    assert verdicts(mixed) == ["no claim", "supported", "no claim"]
    assert mixed.score == 1


def test_a_sentence_is_put_to_the_passages_nearest_to_it() -> None:
    others = [f"Number {n} says nothing of it." for n in range(20)]
    judge = Recorder(tells)
    found = assessed(
        "The tall lamp stands in the red house.",
        *others,
        "The tall lamp stands in a red house.",
        entailer=judge,
    )
    assert len(judge.asked) == 1
    assert found.evidence[0]["passages"] == [21]


def test_sentences_of_several_passages_support_together() -> None:
    def both(premise: str, _: str) -> tuple[float, float, float]:
        return YES if "Maria" in premise and "Lisbon" in premise else OPEN

    passages = ("Maria founded the firm.", "It rains. The firm began in sunny Lisbon.")
    found = assessed("Maria founded the firm in sunny Lisbon.", *passages, entailer=Recorder(both))
    (row,) = found.evidence
    assert (row["verdict"], row["passages"]) == ("supported", [1, 2])
    assert row["quote"] == "Maria founded the firm. The firm began in sunny Lisbon."


def test_a_passage_that_speaks_of_something_else_does_not_contradict() -> None:
    judge = Recorder(lambda *_: NO)
    answer = "The tall lamp stands in the red house."
    assert assessed(answer, "It rains in Lisbon.", entailer=judge).verdict == "not found"
    assert assessed(answer, "The lamp stands in a blue house.", entailer=judge).verdict == (
        "contradicted"
    )
    # its words are far apart in the passage
    apart = "A tall man came. It rained. He stands. It hailed. A lamp fell. It snowed. A red house."
    assert assessed(answer, apart, entailer=judge).verdict == "not found"
    # of another one: none of its names, or of the question's where it begins with a pronoun
    films = "The film was written and directed by Ada Byron."
    for question, other in (
        ("Who made it?", "The film was directed by Rick Ayer."),
        ("Who directed Blue Noon?", "It was written and directed by a man."),
    ):
        found = assessed(other, films, entailer=judge, question=question)
        assert found.verdict == "not found"
    assert assessed(films, films.replace("Ada", "Ida"), entailer=judge).verdict == "contradicted"


def test_what_is_supported_near_the_line_is_borderline_and_without_a_detail_not_found() -> None:
    def found(answer: str, *row: float) -> Assessment:
        passages = ("Ada Lovelace wrote it in 1843.", "It was 1899 in Turin.")
        judge = Recorder(lambda premise, _: row if "Ada" in premise else (0.1, 0.9, 0))
        return assessed(answer, *passages, entailer=judge)

    sure = found("Ada Lovelace wrote it in 1843.", 0.9, 0.1, 0)
    assert "borderline" not in sure.reason
    assert sure.parts["order"] == pytest.approx(0.9 / 0.91, abs=1e-6)
    near = found("Ada Lovelace wrote it in 1843.", 0.58, 0.42, 0)
    assert near.verdict == "supported"
    assert near.reason.endswith("borderline: passage [1] supports it (entailment 0.58)")
    view = Faithfulness().view(Sample("q", "Who?", response="x"), near)
    assert view.mark is not None and view.mark.word == "borderline (0.58)"
    # a year of another passage is known, a name of none is not
    assert found("Ada Lovelace wrote it in 1899.", 0.9, 0.1, 0).verdict == "supported"
    other = found("Then Ada Byron wrote it in 1843.", 0.9, 0.1, 0)
    assert other.verdict == "not found"
    assert other.reason == "1 of 1 sentence not found: no passage contains “Byron”"
    assert other.parts["order"] == pytest.approx(0.45 / 0.91, abs=1e-6)
    # what a passage contradicts stands below what none says
    assert found("Ada is red.", 0.2, 0, 0.8).parts["order"] == pytest.approx(0.2)
    assert found("Ada is red.", 0.2, 0.8, 0).parts["order"] == pytest.approx(0.2 / 0.28, abs=1e-6)


def test_a_refusal_has_no_score() -> None:
    found = assessed("The documents do not mention it.", "The lamp is red.")  # it names no topic
    assert (found.score, found.verdict, found.error) == (None, "refused", None)


@pytest.mark.parametrize("documents", [(), ("", " \n")])
def test_an_answer_without_passages_is_counted_apart(documents: tuple[str, ...]) -> None:
    found = assessed("The lamp is in the red house.", *documents)
    assert (found.verdict, found.score, found.error) == (None, None, None)
    assert found.reason == "no passages to judge the answer by"
    rows = [
        {"question": f"{n}?", "response": "It is red.", "documents": ["It is red."] * (n % 2)}
        for n in range(24)
    ]
    run = score(rows, metrics=Faithfulness(), entailer=Recorder(tells))
    values = run.summary["faithfulness"]
    assert (values["mean"], values["supported"], values["no_passages"]) == (1, 100, 12)
    assert run.looks(0).sentence() == (
        "12 of 24 answers were judged: 0 need a look; 12 were not judged"
    )
    assert run.outcomes["faithfulness"].reasons == {"no passages": 12}
    (sentence,) = run.explain_unjudged()
    assert sentence.startswith(
        "12 of 24 answers have no passages to judge by: name their column with --field documents="
    )


def test_a_blank_response_fails() -> None:
    assert assessed("  ", "The lamp is red.").error is not None


def test_claims_of_a_model() -> None:
    def lists(prompt: str) -> str:
        assert "Where does the lamp stand?" in prompt
        return "1. The lamp is red.\n2. The lamp is old."

    metric = Faithfulness(claims="model")
    found = assessed("It is red and old.", "The lamp is red.", metric=metric, judge=lists)
    assert verdicts(found) == ["supported", "not found"]
    assert [row["text"] for row in found.evidence] == ["The lamp is red.", "The lamp is old."]
    broken = assessed("It is red.", "Red.", metric=metric, judge=lambda _: "I cannot.")
    assert broken.error is not None
    assert "lists no claims" in broken.error
    nothing = assessed("It is red.", "Red.", metric=metric, judge=lambda _: "none")
    assert (nothing.score, nothing.error) == (None, None)


def test_options_are_checked(tmp_path: Path) -> None:
    for options in (
        {"threshold": 0.0},
        {"contradiction": 1.5},
        {"near": -0.1},
        {"max_tokens": 0},
    ):
        (name,) = options
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            Faithfulness(**options)
    with pytest.raises(UnknownNameError, match="unknown value of claims"):
        Faithfulness(claims="words")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError):
        Faithfulness(splitter="none")
    faulty = tmp_path / "claims.jinja"
    faulty.write_text("{{ question")
    with pytest.raises(ValueError, match=r"claims\.jinja:1"):
        Faithfulness(prompt=str(faulty))


def test_figures() -> None:
    records = [
        {"id": str(n), "question": "Where?", "response": text, "documents": ["The lamp is red."]}
        for n, text in enumerate(
            ["The lamp is red.", "The lamp is old and red.", "The lamp is old.", "I don't know."]
        )
    ]
    run = score(records, metrics=Faithfulness(), entailer=Recorder(tells), cache=None)
    values = run.summary["faithfulness"]
    assert values["mean"] == pytest.approx(2 / 3)
    assert values["supported"] == 50
    assert values["not_found"] == 25
    assert values["refused"] == 25
    assert values["statements"] == 3


def test_headings_code_and_the_head_of_a_table_claim_nothing() -> None:
    response = (
        "# Answer\n\n```python\nprint('not a sentence')\n```\n"
        "| plan | price |\n|---|---:|\n| free | **nothing** at all, it is free |\n\n"
        "The tall lamp is **red**."
    )
    judge = Recorder(tells)
    found = assessed(response, "The lamp is red.", entailer=judge)
    # the heading, the code, two heads of columns, and the name of the row
    assert verdicts(found) == ["no claim"] * 5 + ["not found", "supported"]
    assert {pair[1] for pair in judge.asked} == {
        "Free: price: nothing at all, it is free.",
        "The tall lamp is red.",
    }
    texts = "".join(row["text"] for row in found.evidence)
    assert "".join(texts.split()) == "".join(response.split())


def test_a_line_that_leads_on_to_code_claims_nothing() -> None:
    found = assessed("Use this:\n```\nprint(1)\n```\nThe lamp is red.", "The lamp is red.")
    assert verdicts(found) == ["no claim", "no claim", "supported"]


@pytest.mark.parametrize(
    ("response", "expected", "verdict"),
    [
        # what names no topic declines
        (
            "The documents do not say. The tall tower is red.",
            ["no claim", "supported"],
            "supported",
        ),
        (
            "I don't know who built it, but the tower is red.",
            ["no claim", "supported"],
            "supported",
        ),
        # what names one is judged
        (
            "The documents do not mention a lift. The tall tower is red.",
            ["supported", "supported"],
            "supported",
        ),
        (
            "The documents do not say whether it has a lift, but the tower is red.",
            ["supported", "supported"],
            "supported",
        ),
        (
            "The documents do not mention the tower at all. The tall tower is red.",
            ["contradicted", "supported"],
            "contradicted",
        ),
        # what stands beside it answers nothing
        (
            "I'm sorry, but the documents do not mention a lift. Please ask the staff.",
            ["supported", "no claim"],
            "supported",
        ),
        (
            "The documents do not mention a lift. They describe its history.",
            ["supported", "no claim"],
            "supported",
        ),
    ],
)
def test_what_declines_is_told_apart_from_what_is_judged(
    response: str, expected: list[str], verdict: str
) -> None:
    found = assessed(response, "The tower is red.")
    assert verdicts(found) == expected
    assert found.verdict == verdict


@pytest.mark.parametrize(
    "response",
    [
        "The documents do not say.",
        "I don't know.",
        "I'm sorry, but I cannot answer this. Please ask the staff.",
    ],
)
def test_an_answer_that_declines_as_a_whole_is_refused(response: str) -> None:
    judge = Recorder(tells)
    found = assessed(response, "The tower is red.", entailer=judge)
    assert (found.verdict, found.score) == ("refused", None)
    assert not judge.asked


def test_of_a_long_passage_the_entailer_reads_the_near_parts() -> None:
    filler = " ".join(f"Number {n} says nothing of it at all, and that is so." for n in range(2000))
    judge = Recorder(tells)
    passage = f"{filler} The tall lamp stands in the red house. {filler}"
    found = assessed("The tall lamp stands in the red house.", passage, entailer=judge)
    assert found.verdict == "supported"
    assert len(judge.asked) == 2
    assert max(len(premise.split()) for premise, _ in judge.asked) <= 120
    assert found.evidence[0]["quote"] == "The tall lamp stands in the red house."


def test_words_that_are_missing_stand_as_they_are_written() -> None:
    found = assessed(
        "Yes, you may cancel on the 24th of May with ten coins in Turin.",
        "Plans are cancelled on any day.",
    )
    assert found.evidence[0]["missing"] == ["24th", "ten", "coins", "Turin"]
    passage = "Plans may be cancelled within 30 days."
    found = assessed("Yes, within 90 days.", passage, question="May plans be cancelled?")
    assert found.evidence[0]["missing"] == ["90"]


def test_what_is_not_supported_has_its_places_in_the_answer() -> None:
    answer = "The lamp is old.  The lamp is old! [1] The tall lamp stands in the house.\nIn Turin."
    found = assessed(answer, "The tall lamp stands in the house.")
    said = [
        [answer[one["start"] : one["end"]] for one in row.get("spans", ())]
        for row in found.evidence
    ]
    old = ["The lamp is old.", "old"]
    assert said == [old, ["The lamp is old! [1]", "old"], [], ["In Turin.", "Turin"]]
    spans = [one for row in found.evidence for one in row.get("spans", ())]
    assert [one["start"] for one in spans] == [0, 12, 18, 30, 74, 77]
    assert {one["probability"] for one in spans} == {0.9}


def test_a_claim_that_is_not_in_the_answer_has_no_place() -> None:
    metric = Faithfulness(claims="model")
    answer = "It is red and old."
    found = assessed(answer, "It is red.", metric=metric, judge=lambda _: "1. The lamp is old.")
    assert verdicts(found) == ["not found"]
    assert "spans" not in found.evidence[0]


def test_a_claim_of_a_model_that_stands_in_the_answer_has_its_place() -> None:
    metric = Faithfulness(claims="model")
    answer = "Well. The lamp is old."
    found = assessed(answer, "It is red.", metric=metric, judge=lambda _: "1. The lamp is old.")
    spans = found.evidence[0].get("spans", ())
    assert [answer[one["start"] : one["end"]] for one in spans][:1] == ["The lamp is old."]


def test_the_number_of_a_citation_is_no_detail_that_is_missing() -> None:
    found = assessed("The tall lamp stands in the house [3].", "The tall lamp stands in the house.")
    assert found.evidence[0]["text"].endswith("[3].")
    assert "missing" not in found.evidence[0]


@pytest.mark.parametrize("documents", [(), ("",), (" \n", ""), ("The lamp stands there.",)])
def test_what_an_engine_says_without_an_answer_is_a_refusal(documents: tuple[str, ...]) -> None:
    found = assessed("Empty Response", *documents)
    assert (found.score, found.verdict) == (None, "refused")
    assert Faithfulness().problem(found) is None


def test_a_passage_without_a_text_is_none() -> None:
    found = assessed("The lamp stands in the house.", "", "The house.")
    assert found.evidence[0]["passages"] == [2]

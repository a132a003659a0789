"""What is judged, by which passages, and what follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder
from trustassay import score
from trustassay.errors import UnknownNameError
from trustassay.metric import Assessment
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
        ("In Turin.", "Where does the lamp stand? In Turin."),
        ("Yes, the lamp stands in the house.", "The lamp stands in the house."),
        ("Yes.", "Where does the lamp stand? Yes."),
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
        metric=Faithfulness(passages=2),
        entailer=judge,
    )
    assert len(judge.asked) == 2
    assert found.evidence[0]["passages"] == [21]


def test_sentences_of_several_passages_support_together() -> None:
    def both(premise: str, _: str) -> tuple[float, float, float]:
        return YES if "Maria" in premise and "Lisbon" in premise else OPEN

    passages = ("Maria founded the firm. It is small.", "It rains. The firm began in Lisbon.")
    found = assessed("Maria founded the firm in Lisbon.", *passages, entailer=Recorder(both))
    (row,) = found.evidence
    assert (row["verdict"], row["passages"]) == ("supported", [1, 2])
    assert row["quote"] == "Maria founded the firm. The firm began in Lisbon."
    alone = assessed(
        "Maria founded the firm in Lisbon.",
        *passages,
        entailer=Recorder(both),
        metric=Faithfulness(joined=False),
    )
    assert alone.verdict == "not found"


def test_a_passage_that_speaks_of_something_else_does_not_contradict() -> None:
    judge = Recorder(lambda *_: NO)
    answer = "The tall lamp stands in the red house."
    assert assessed(answer, "It rains in Lisbon.", entailer=judge).verdict == "not found"
    assert assessed(answer, "The lamp stands in a blue house.", entailer=judge).verdict == (
        "contradicted"
    )


def test_a_refusal_has_no_score() -> None:
    found = assessed("The documents do not mention it.", "The lamp is red.")
    assert (found.score, found.verdict, found.error) == (None, "refused", None)


def test_without_passages_nothing_is_found() -> None:
    found = assessed("The lamp is in the red house.")
    assert (found.verdict, found.score) == ("not found", 0)
    assert found.evidence[0]["why"] == "there is no passage"


def test_another_language_than_the_entailer_reads_is_told_apart() -> None:
    class English(Recorder):
        languages = ("en",)

    judge = English(tells)
    german = "Die Garantie beträgt zwei Jahre ab dem Kaufdatum und umfasst alle Teile."
    found = assessed(german, "The warranty is two years.", entailer=judge)
    assert (found.score, found.error, found.parts) == (None, None, {"other_language": 1.0})
    assert "another language (de) than the entailer reads (en)" in found.reason
    assert not judge.asked
    assert assessed(german, "The warranty is two years.").score is not None
    assert assessed("The warranty is good.", "The warranty is good.", entailer=judge).score == 1


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
        {"passages": 0},
        {"threshold": 0.0},
        {"contradiction": 1.5},
        {"near": -0.1},
        {"max_tokens": 0},
    ):
        (name,) = options
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            Faithfulness(**options)
    with pytest.raises(UnknownNameError, match="unknown claims"):
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


def test_no_is_supported_by_what_contradicts_yes() -> None:
    judge = Recorder(lambda *_: NO)
    found = assessed(
        "No.", "The tower is in Paris.", question="Is the tower in Rome?", entailer=judge
    )
    assert [pair[1] for pair in judge.asked] == ["Is the tower in Rome? Yes."]
    assert (found.verdict, found.score) == ("supported", 1)
    assert found.evidence[0]["hypothesis"] == "not: Is the tower in Rome? Yes."


def test_headings_code_and_the_head_of_a_table_claim_nothing() -> None:
    response = (
        "# Answer\n\nUse this:\n```python\nprint('not a sentence')\n```\n"
        "| plan | price |\n|---|---:|\n| free | **nothing** at all, it is free |\n\n"
        "The tall lamp is **red**."
    )
    judge = Recorder(tells)
    found = assessed(response, "The lamp is red.", entailer=judge)
    assert verdicts(found) == ["no claim"] * 3 + ["not found", "supported"]
    assert {pair[1] for pair in judge.asked} == {
        "| free | nothing at all, it is free |",
        "The tall lamp is red.",
    }
    texts = "".join(row["text"] for row in found.evidence)
    assert "".join(texts.split()) == "".join(response.split())


@pytest.mark.parametrize(
    ("response", "expected", "asked"),
    [
        (
            "The documents do not mention a lift. The tall tower is red.",
            ["no claim", "supported"],
            ["The tall tower is red."],
        ),
        (
            "The documents do not say whether it has a lift, but the tower is red.",
            ["supported"],
            ["The tower is red."],
        ),
        ("I'm sorry, but the documents do not mention a lift. Please ask the staff.", [], []),
        ("The documents do not mention a lift. They describe its history.", [], []),
    ],
)
def test_what_declines_is_told_apart_from_what_answers(
    response: str, expected: list[str], asked: list[str]
) -> None:
    judge = Recorder(tells)
    found = assessed(response, "The tower is red.", entailer=judge)
    assert [pair[1] for pair in judge.asked] == asked
    assert found.verdict == ("supported" if expected else "refused")
    if expected:
        assert verdicts(found) == expected


def test_of_a_long_passage_the_entailer_reads_the_near_parts() -> None:
    filler = " ".join(f"Number {n} says nothing of it at all, and that is so." for n in range(2000))
    judge = Recorder(tells)
    passage = f"{filler} The tall lamp stands in the red house. {filler}"
    found = assessed("The tall lamp stands in the red house.", passage, entailer=judge)
    assert found.verdict == "supported"
    assert len(judge.asked) == 3
    assert max(len(premise.split()) for premise, _ in judge.asked) <= 400
    assert found.evidence[0]["quote"] == "The tall lamp stands in the red house."


def test_words_that_are_missing_stand_as_they_are_written() -> None:
    found = assessed(
        "Yes, you may cancel on the 24th of May with ten coins in Turin.",
        "Plans are cancelled on any day.",
    )
    assert found.evidence[0]["missing"] == ["24th", "ten", "coins", "Turin"]


def test_a_short_answer_in_another_script_is_told_apart() -> None:
    class English(Recorder):
        languages = ("en",)

    found = assessed("高级计划每月12欧元。", "The plan costs 12 euros.", entailer=English(tells))
    assert found.parts == {"other_language": 1.0}

"""Made-up worlds: labels follow from the facts, pairs from the seed, and no sentence dominates."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import date
from itertools import pairwise

import numpy as np
import pytest

from lab.training.data import NOT_ENTAILMENT
from lab.training.worlds.facts import (
    Cause,
    Compared,
    Condition,
    Dated,
    Event,
    Fact,
    Group,
    Measure,
    Member,
    Not,
    Order,
    Person,
    Quantified,
    Report,
    Rule,
    Several,
    Stated,
    Wish,
)  # fmt: skip
from lab.training.worlds.kinds import KINDS
from lab.training.worlds.pairs import Made, build, make
from lab.training.worlds.passages import FORMS, table
from lab.training.worlds.truth import CONTRADICTED, NOT_STATED, SUPPORTED, judge
from lab.training.worlds.words import VERBS

HIRED = next(verb for verb in VERBS if verb.base == "hire")
PAID = next(verb for verb in VERBS if verb.base == "pay")
ANN, BOB, EVE = Person("Ann", "f"), Person("Bob", "m"), Person("Eve", "f")
HIRE = Event(HIRED, ANN, BOB, date(1990, 5, 17), "at the market")
BARE = Event(HIRED, ANN, BOB)
SWAPPED = Event(HIRED, BOB, ANN)
PAY = Event(PAID, EVE, BOB)


@pytest.fixture(scope="module")
def pairs() -> list[Made]:
    return list(make(3, 30 * len(KINDS)))


NAMES = re.compile(r"\b[A-Z][\w'’&.-]*(?:[ ,]+(?:e |y |i |and |von |van |de )*[A-Z][\w'’&.-]*)*")
CASES: list[tuple[list[Fact], Fact, str]] = [
    ([Stated(HIRE)], Stated(BARE), SUPPORTED),
    ([Stated(HIRE)], Stated(SWAPPED), NOT_STATED),
    ([Stated(HIRE)], Not(BARE), CONTRADICTED),
    ([Stated(BARE)], Stated(HIRE), NOT_STATED),
    ([Stated(HIRE)], Stated(Event(HIRED, ANN, BOB, place="on the ferry")), CONTRADICTED),
    ([Not(BARE)], Stated(HIRE), CONTRADICTED),
    ([Not(HIRE)], Stated(BARE), NOT_STATED),
    ([Stated(HIRE)], Dated(BARE, "in", 1990), SUPPORTED),
    ([Stated(HIRE)], Dated(BARE, "in", 1990, 6), CONTRADICTED),
    ([Stated(HIRE)], Dated(BARE, "before", 1991), SUPPORTED),
    ([Stated(HIRE)], Dated(BARE, "after", 1990), CONTRADICTED),
    ([Stated(BARE)], Dated(BARE, "after", 1990), NOT_STATED),
    ([Report(EVE, BARE)], Stated(BARE), NOT_STATED),
    ([Report(EVE, BARE)], Report(EVE, BARE), SUPPORTED),
    ([Report(EVE, BARE)], Report(ANN, BARE), NOT_STATED),
    ([Report(EVE, BARE, factive=True)], Stated(BARE), SUPPORTED),
    ([Wish("planned", BARE)], Stated(BARE), NOT_STATED),
    ([Wish("planned", BARE)], Wish("planned", BARE), SUPPORTED),
    ([Condition("prices fall", BARE)], Stated(BARE), NOT_STATED),
    ([Condition("prices fall", BARE, "no")], Stated(BARE), CONTRADICTED),
    ([Condition("prices fall", BARE, "no")], Not(BARE), SUPPORTED),
    ([Condition("prices fall", BARE, "yes")], Stated(BARE), SUPPORTED),
    ([Cause(BARE, PAY)], Cause(BARE, PAY), SUPPORTED),
    ([Cause(BARE, PAY)], Cause(PAY, BARE), CONTRADICTED),
    ([Cause(BARE, PAY)], Stated(PAY), SUPPORTED),
    ([Stated(BARE), Stated(PAY)], Cause(BARE, PAY), NOT_STATED),
    ([Order(BARE, PAY)], Order(PAY, BARE), CONTRADICTED),
    ([Stated(HIRE), Stated(Event(PAID, EVE, BOB, date(1991, 1, 1)))], Order(BARE, PAY), SUPPORTED),
    ([Stated(HIRE), Stated(PAY)], Order(BARE, PAY), NOT_STATED),
    ([Several(HIRED, ANN, (BOB, EVE))], Several(HIRED, ANN, (EVE,)), SUPPORTED),
    ([Several(HIRED, ANN, (BOB,))], Several(HIRED, ANN, (BOB, EVE)), NOT_STATED),
    ([Several(HIRED, ANN, (BOB,), (EVE,))], Several(HIRED, ANN, (BOB, EVE)), CONTRADICTED),
    ([Measure("the jug", "volume", 2500, "millilitres")],
     Measure("the jug", "volume", 2.5, "litres"), SUPPORTED),
    ([Measure("the jug", "volume", 2500, "millilitres")],
     Measure("the jug", "volume", 25, "litres"), CONTRADICTED),
    ([Measure("the jug", "volume", 2500, "millilitres")],
     Measure("the vase", "volume", 2.5, "litres"), NOT_STATED),
    ([Measure("the jug", "volume", 900, "millilitres"), Measure("the vase", "volume", 1, "litres")],
     Compared("the vase", "the jug", "volume"), SUPPORTED),
    ([Measure("the jug", "volume", 1, "litres"), Measure("the vase", "volume", 1, "litres")],
     Compared("the vase", "the jug", "volume"), CONTRADICTED),
    ([Rule("vote", True, ("pupils",))], Member("vote", "pupils", False), SUPPORTED),
    ([Rule("vote", True, ("pupils",))], Member("vote", "guests", True), SUPPORTED),
    ([Rule("vote", False, ("pupils",))], Member("vote", "guests", True), CONTRADICTED),
    ([Rule("vote", False, ("pupils",))], Member("keep pets", "pupils", True), NOT_STATED),
    ([Group("songs", "are sad", 3, 10)], Quantified("songs", "are sad", "lacking", 7), SUPPORTED),
    ([Group("songs", "are sad", 3, 10)], Quantified("songs", "are sad", "most"), CONTRADICTED),
    ([Group("songs", "are sad", 3, 10)], Quantified("songs", "are sad", "some"), SUPPORTED),
    ([Group("songs", "are sad", 0, 10)], Quantified("songs", "are sad", "none"), SUPPORTED),
    ([Group("songs", "are sad", 5, 10)], Quantified("songs", "are sad", "most"), CONTRADICTED),
]  # fmt: skip


@pytest.mark.parametrize(("told", "claim", "verdict"), CASES)
def test_judge_by_hand(told: list[Fact], claim: Fact, verdict: str) -> None:
    assert judge(told, claim) == verdict
    assert judge([Stated(Event(PAID, Person("X"), Person("Y"))), *told], claim) == verdict


@pytest.mark.slow
def test_verdicts_follow_from_all_that_is_told(pairs: list[Made]) -> None:
    """The facts of the passage, unrelated ones included, give the verdict again."""
    assert [judge(made.told, made.claim) for made in pairs] == [made.verdict for made in pairs]


@pytest.mark.slow
def test_both_members_of_each_pair_have_one_passage(pairs: list[Made]) -> None:
    for one, other in zip(pairs[::2], pairs[1::2], strict=True):
        assert one.premise == other.premise
        assert one.verdict == SUPPORTED != other.verdict
        assert one.hypothesis.rstrip(".") != other.hypothesis.rstrip(".")
        assert one.kind == other.kind


@pytest.mark.slow
def test_numbers_of_groups_are_as_the_text_says() -> None:
    """Read from the words alone, apart from the facts: N of M, and how many lack it."""
    seen = 0
    for made in make(3, 200, ("numbers",)):
        said = re.search(r"(\d+) of the (\d+) ([^,.]+?) (have|were|are) ", made.premise)
        claim = re.match(r"(Exactly )?(\d+) of the [^0-9]+", made.hypothesis)
        if made.kind != "numbers" or not said or not claim or "not among" in made.hypothesis:
            continue
        seen += 1
        assert (said.group(1) == claim.group(2)) == (made.verdict == SUPPORTED), made
    assert seen >= 10


@pytest.mark.slow
def test_shared_words_tell_nothing(pairs: list[Made]) -> None:
    """Supported statements and near copies hold about as many words of their passage."""

    def containment(made: Made) -> float:
        known = set(re.findall(r"\w+", made.premise.lower()))
        words = re.findall(r"\w+", made.hypothesis.lower())
        return sum(word in known for word in words) / len(words)

    shares = [np.mean([containment(m) for m in pairs[start::2]]) for start in (0, 1)]
    assert abs(shares[0] - shares[1]) < 0.06


@pytest.mark.slow
def test_the_same_seed_makes_the_same_pairs_and_a_longer_list_begins_alike() -> None:
    short, long = list(make(5, 20)), list(make(5, 30))
    assert long[:40] == short
    assert short != list(make(6, 20))
    code = (
        "from lab.training.worlds.pairs import make\n"
        "print(hash(0), [m.premise + m.hypothesis for m in make(5, 20)])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "src:."},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != ""


@pytest.mark.slow
def test_no_sentence_dominates(pairs: list[Made]) -> None:
    """With names, numbers and things left out, no shape of a statement is common in its kind."""
    shapes: dict[str, Counter[str]] = defaultdict(Counter)
    for made in pairs:
        text = NAMES.sub("N", made.hypothesis)
        shapes[made.kind][re.sub(r"[\d.,]+", "0", text).strip()] += 1
    for kind, counts in shapes.items():
        assert counts.most_common(1)[0][1] / counts.total() < 0.2, (kind, counts.most_common(2))
    passages = Counter(made.premise for made in pairs)
    assert set(passages.values()) == {2}


def test_passages_have_all_forms() -> None:
    rng = np.random.default_rng(0)
    sentences = ["Ann hired Bob.", "The jug holds 2 litres."]
    made = {name: form(sentences, rng) for name, (form, _) in FORMS.items()}
    assert len(set(made.values())) == len(FORMS)
    assert all("hired Bob." in text for text in made.values())


def test_a_table_holds_each_measure_in_its_row() -> None:
    told = [
        Measure(thing, quantity, amount, unit)
        for thing, row in (("the jug", (3.0, 7.0)), ("the vase", (4.0, 9.0)))
        for (quantity, unit), amount in zip(
            (("volume", "litres"), ("mass", "kilograms")), row, strict=True
        )
    ]
    for seed in range(12):
        text = table(told, np.random.default_rng(seed))
        places = [text.index(part) for part in ("jug", "3", "7", "vase", "4", "9")]
        assert all(one < two for one, two in pairwise(places)), text


@pytest.mark.slow
def test_training_pairs_are_balanced_and_labelled() -> None:
    made = build(4 * len(KINDS), 9)
    assert len(made) == 4 * len(KINDS)
    labels = Counter(pair.label for pair in made)
    assert labels[0] == len(made) / 2
    assert labels[NOT_ENTAILMENT] and labels[1] and labels[2]
    assert {pair.source.split(":")[0] for pair in made} == {"worlds"}

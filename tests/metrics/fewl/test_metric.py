"""FEWL through the public door: numbers by hand, references that fail, what is asked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.fewl.helpers import Angles, Known, Speaker, broken
from tests.support import crossed, summary_of
from trustassay import score
from trustassay.api import plan, rescore
from trustassay.core.metric import Assessment
from trustassay.errors import CallError
from trustassay.metrics.fewl import Fewl, references
from trustassay.metrics.fewl.options import FewlOptions
from trustassay.metrics.fewl.references import explain_silence
from trustassay.runs.intake import BadInputError
from trustassay.statistics.resampling import generator

# Questions at 0, 40 and 80 degrees: cosines .766 (0-40, 40-80) and .174 (0-80).
FILE: list[dict[str, Any]] = [
    {
        "id": "a",
        "question": "at 0",
        "response": "y",
        "references": {"one": "h1", "two": "h2"},
        "wrong_answers": ["w1", "w2"],
        "corrected_answers": ["c1", "c2"],
    },
    {
        "id": "b",
        "question": "at 40",
        "response": "z",
        "references": {"one": "n1", "two": "n2"},
        "wrong_answers": ["w1"],
        "corrected_answers": ["c1"],
    },
    {
        "id": "c",
        "question": "at 80",
        "response": "z",
        "references": {"one": "m1", "two": "m2"},
        "wrong_answers": ["w1"],
        "corrected_answers": ["c1"],
    },
]
SIMILAR = {
    ("y", "h1"): 0.8,
    ("y", "h2"): 0.2,
    # expertise: .6 - .2 and .1 - .5
    ("h1", "c1"): 0.3,
    ("h1", "c2"): 0.6,
    ("h1", "w1"): 0.2,
    ("h2", "c1"): 0.1,
    ("h2", "w2"): 0.5,
    # elsewhere: (.1 + .3) / 2 and .4 / 2
    ("y", "n1"): 0.1,
    ("y", "m1"): 0.3,
    ("y", "n2"): 0.4,
}
R = (0.4, -0.4)
W = tuple(math.exp(r) / (math.exp(R[0]) + math.exp(R[1])) for r in R)
PENALTY = (0.2, 0.2)


def first(metric: Fewl, file: list[dict[str, Any]] = FILE, **others: Any) -> Assessment:
    who: dict[str, Any] = {"similarity": Known(SIMILAR)}
    if metric.penalising != "none":
        who["embedder"] = Angles()
    run = score(file, metrics=metric, **(who | others))
    return run.assessments[0]


def tv(value: float) -> float:
    return math.tanh(value) / 2


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (Fewl(), sum(tv(w * s) - tv(0.2) for w, s in zip(W, (0.8, 0.2), strict=True)) / 2),
        (Fewl(penalty="none"), (tv(W[0] * 0.8) + tv(W[1] * 0.2)) / 2),
        (Fewl(form="theory"), W[0] * (tv(0.8) - tv(0.2)) + W[1] * (tv(0.2) - tv(0.2))),
        (
            Fewl(divergence="kl"),
            (W[0] * 0.8 + W[1] * 0.2 - 2 * math.exp(0.2 - 1)) / 2,
        ),
        (
            Fewl(divergence="js", weights="uniform"),
            (
                math.log(2 / (1 + math.exp(-0.4)))
                + math.log(2 / (1 + math.exp(-0.1)))
                - 2 * math.log((1 + math.exp(0.2)) / 2)
            )
            / 2,
        ),
        (Fewl(weights="single-best"), tv(0.8) - tv(0.2)),
        (Fewl(weights="single-best", penalty="none"), tv(0.8)),
        (Fewl(neighbours=0), (tv(W[0] * 0.8) + tv(W[1] * 0.2)) / 2),
        # The nearest question alone: .1 and .4 of reference two.
        (
            Fewl(weights="uniform", neighbours=1),
            (tv(0.4) - tv(0.1) + tv(0.1) - tv(0.4)) / 2,
        ),
        # Cosines above .5 are too alike: the one at 80 degrees alone, .3 and 0.
        (
            Fewl(weights="uniform", max_similarity=0.5),
            (tv(0.4) - tv(0.3) + tv(0.1) - tv(0.0)) / 2,
        ),
        # One pair: .3 - .2 and .1 - 0.
        (
            Fewl(penalty="none", pairs=1),
            (tv(0.4) + tv(0.1)) / 2,
        ),
        (Fewl(penalty="none", pairs=0), (tv(0.4) + tv(0.1)) / 2),
        (Fewl(penalty="random"), (tv(W[0] * 0.8) + tv(W[1] * 0.2) - 2 * tv(0.2)) / 2),
    ],
    ids=str,
)
def test_scores_by_hand(metric: Fewl, expected: float) -> None:
    """Similarities are stored with six digits; these have one, so all is exact."""
    found = first(metric)
    assert found.error is None
    assert found.score == pytest.approx(expected, abs=1e-12)


def test_a_temperature_sharpens_the_weights() -> None:
    rows = [row for row in first(Fewl(temperature=0.1)).evidence if "reference" in row]
    assert rows[0]["weight"] == pytest.approx(1 / (1 + math.exp(-8)), abs=1e-12)


def test_the_parts_and_the_evidence_tell_everything() -> None:
    found = first(Fewl())
    assert found.parts == pytest.approx(
        {
            "no_penalty": (tv(W[0] * 0.8) + tv(W[1] * 0.2)) / 2,
            "agreement": W[0] * 0.8 + W[1] * 0.2,
            "penalty": 0.2,
            "references": 2,
            "neighbours": 2,
            "pairs": 2,
            "characters": 1,
        }
    )
    assert found.evidence[0] == {"form": "eq1", "weights": "ours"}
    assert found.evidence[1] == pytest.approx(
        {
            "reference": "one",
            "answer": "h1",
            "similarity": 0.8,
            "expertise": 0.4,
            "weight": W[0],
            "penalty": 0.2,
            "neighbours": 2,
        }
    )
    questions = [row["neighbour"] for row in found.evidence if "neighbour" in row]
    assert questions == ["at 40", "at 80"]


def test_ideal_weights_come_from_labelled_answers() -> None:
    file = [dict(FILE[0], answers=[["c1", "c2"]], incorrect_answers=["w2"]), *FILE[1:]]
    for one in file[1:]:
        one |= {"answers": ["c1"], "incorrect_answers": ["w1"]}
    rows = [r for r in first(Fewl(weights="ideal"), file).evidence if "reference" in r]
    assert [row["expertise"] for row in rows] == pytest.approx([0.6 - 0.0, 0.1 - 0.5])
    with pytest.raises(BadInputError, match="incorrect_answers"):
        first(Fewl(weights="ideal"))


def test_any_function_of_two_texts_is_a_similarity() -> None:
    def same(text: str, reference: str) -> float:
        return SIMILAR.get((text, reference), 0.0)

    found = first(Fewl(weights="uniform", penalty="none"), similarity=same)
    assert found.score == pytest.approx((tv(0.4) + tv(0.1)) / 2, abs=1e-12)


def uneven(text: str, reference: str) -> float:
    """Return a similarity from -1 to 1 of which no digit ends."""
    return math.sin(sum(map(ord, text)) * math.sqrt(2) + sum(map(ord, reference)) * math.sqrt(3))


G: Mapping[str, Callable[[float], float]] = {
    "tv": lambda v: math.tanh(v) / 2,
    "js": lambda v: math.log(2 / (1 + math.exp(-v))),
    "kl": lambda v: v,
}
F: Mapping[str, Callable[[float], float]] = {
    "tv": lambda u: u,
    "js": lambda u: -math.log(2 - math.exp(u)),
    "kl": lambda u: math.exp(u - 1),
}


@pytest.mark.parametrize("divergence", ["tv", "js", "kl"])
@pytest.mark.parametrize("form", ["eq1", "theory"])
@pytest.mark.parametrize("weights", ["uniform", "ours"])
def test_a_function_counts_with_all_its_digits(form: Any, divergence: Any, weights: Any) -> None:
    """The equations as the paper writes them, f(g(v)) by its two parts."""
    metric = Fewl(form=form, divergence=divergence, weights=weights, temperature=0.7)
    found = first(metric, similarity=uneven)
    g, f = G[divergence], F[divergence]
    said = {"h1": ("n1", "m1"), "h2": ("n2", "m2")}
    r = [
        max(uneven(h, c) for c in ("c1", "c2")) - max(uneven(h, w) for w in ("w1", "w2"))
        for h in said
    ]
    raised = [math.exp(one / 0.7) if weights == "ours" else 1.0 for one in r]
    total = 0.0
    for share, (h, elsewhere) in zip(raised, said.items(), strict=True):
        w, s = share / sum(raised), uneven("y", h)
        lost = f(g(sum(uneven("y", other) for other in elsewhere) / 2))
        total += (g(w * s) - lost) / 2 if form == "eq1" else w * (g(s) - lost)
    assert found.score == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize(
    ("form", "divergence", "value"),
    crossed(["eq1", "theory", "agreement"], ["tv", "js", "kl"], [-1.0, 0.0, 1.0]),
)
def test_similarities_at_their_ends_stay_in_the_range(
    form: Any, divergence: Any, value: float
) -> None:
    metric = Fewl(form=form, divergence=divergence, weights="uniform", penalty="nearest")
    for other in (-1.0, 0.0, 1.0):
        table = {("y", "h1"): value, ("y", "h2"): value}
        found = first(metric, similarity=Known(table, other))
        assert found.error is None, found.error


def test_a_similarity_beyond_its_ends_is_taken_as_it_is() -> None:
    found = first(Fewl(weights="uniform", penalty="none"), similarity=Known({}, 30.0))
    assert found.score == pytest.approx(tv(15.0), abs=1e-12)
    kl = first(Fewl(weights="uniform", penalty="none", divergence="kl"), similarity=Known({}, 30.0))
    assert kl.error and "must lie between" in kl.error


def test_the_parts_of_the_best_alone_are_its_own() -> None:
    """Reference one, of most expertise: similarity .8, penalty .2; two has (.4 + .6) / 2."""
    found = first(Fewl(weights="single-best"), similarity=Known({**SIMILAR, ("y", "m2"): 0.6}))
    assert found.score == pytest.approx(tv(0.8) - tv(0.2), abs=1e-12)
    parts = {name: found.parts[name] for name in ("agreement", "penalty", "references")}
    assert parts == pytest.approx({"agreement": 0.8, "penalty": 0.2, "references": 1})
    assert found.reason == "the best of 2 references"


def test_a_model_with_one_answer_is_the_same_as_with_several() -> None:
    """Its first answer has the penalty .1 of n1; its second one answered no neighbour."""
    file = [
        dict(FILE[0], references={"one": ["h1", "h2"]}),
        dict(FILE[1], references={"one": "n1"}),
    ]
    rows = [r for r in first(Fewl(weights="uniform"), file).evidence if "reference" in r]
    assert [(row["reference"], row.get("penalty")) for row in rows] == [
        ("one", pytest.approx(0.1)),
        ("one 2", None),
    ]


def test_a_name_with_a_number_is_no_other_models_answer() -> None:
    file = [
        dict(FILE[0], references={"one": ["h1", "h2"], "one 2": "h3"}),
        dict(FILE[1], references={"one": ["n1", "n2"], "one 2": "n3"}),
    ]
    found = first(Fewl(weights="uniform"), file)
    penalties = [row["penalty"] for row in found.evidence if "reference" in row]
    assert penalties == pytest.approx([0.1, 0.4, 0.0])


# ---- references that do not count ----


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("Sorry", False),
        ("I'm Sorry", False),
        ("Sorry Not Sorry", False),
        ("We Can't Stop", False),
        ("I Can't Help Myself", False),
        ("I Can't Give You Anything but Love", False),
        ("Sorry, I can't.", True),
        ("I am sorry, but that is not known.", True),
        ("We apologize, but we could not find the name.", True),
        ("I can't help with that.", True),
        ("I cannot.", True),
        ("I'm sorry, there is no record of it.", True),
        ("I'm unable to verify this.", True),
        ("As an AI, I have no opinion.", True),
    ],
)
def test_a_title_is_no_refusal(text: str, refuses: bool) -> None:
    assert bool(explain_silence(text)) is refuses


def test_a_reference_without_an_answer_is_named() -> None:
    file = [dict(FILE[0], references={"one": "h1", "two": []}), *FILE[1:]]
    found = first(Fewl(penalty="none"), file)
    absent = {"absent": "two", "why": "gave no answer", "kind": "not in the input"}
    assert absent in found.evidence


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "gave an empty answer"),
        ("  \n", "gave an empty answer"),
        ("I'm sorry, but I cannot help with that.", "refused to answer"),
        ("I don't know.", "refused to answer"),
    ],
)
def test_a_reference_that_says_nothing_gives_its_weight_away(text: str, why: str) -> None:
    file = [dict(FILE[0], references={"one": "h1", "two": text}), *FILE[1:]]
    found = first(Fewl(penalty="none", declined="drop"), file)
    assert found.score == pytest.approx(tv(0.8), abs=1e-12)
    absent = [row for row in found.evidence if "absent" in row]
    kind = "empty answer" if "empty" in why else "declined"
    assert absent == [{"absent": "two", "why": why, "kind": kind}]
    assert found.reason == f"1 reference; two {why}, so its weight went to the others"


DECLINES = "I have no comment."


@pytest.mark.parametrize("form", ["eq1", "theory", "agreement"])
def test_a_reference_that_declines_counts_in_the_papers_forms(form: Any) -> None:
    """ "I have no comment" is the best answer to 56 questions of TruthfulQA."""
    file = [dict(FILE[0], references={"one": "h1", "two": DECLINES}), *FILE[1:]]
    similar = Known({("y", "h1"): 0.8, ("y", DECLINES): 0.2})
    found = first(Fewl(form=form, weights="uniform", penalty="none"), file, similarity=similar)
    assert found.parts["references"] == (1 if form == "agreement" else 2)
    either = {
        "eq1": (tv(0.4) + tv(0.1)) / 2,
        "theory": (tv(0.8) + tv(0.2)) / 2,
        "agreement": 0.8,
    }
    assert found.score == pytest.approx(either[form], abs=1e-12)
    for declined, number in (("count", 2), ("drop", 1)):
        metric = Fewl(form=form, weights="uniform", penalty="none", declined=declined)  # type: ignore[arg-type]
        assert first(metric, file, similarity=similar).parts["references"] == number


def test_a_neighbours_reference_that_declines_counts_in_the_penalty() -> None:
    file = [FILE[0], dict(FILE[1], references={"one": DECLINES, "two": "n2"}), FILE[2]]
    similar = Known({("y", DECLINES): 0.9})
    rows = first(Fewl(weights="uniform"), file, similarity=similar).evidence
    assert [r["penalty"] for r in rows if r.get("reference") == "one"] == [pytest.approx(0.45)]
    metric = Fewl(weights="uniform", declined="drop")
    rows = first(metric, file, similarity=similar).evidence
    assert [r["penalty"] for r in rows if r.get("reference") == "one"] == [pytest.approx(0.0)]


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ({}, "FEWL (equation 1 of the paper; weights ours; divergence tv; similarity known)"),
        (
            {"form": "theory", "divergence": "kl", "weights": "uniform", "penalty": "none"},
            "FEWL (section 3.1 of the paper; weights uniform; divergence kl; similarity known; "
            "penalty none)",
        ),
        (
            {"declined": "drop", "weights": "uniform"},
            "FEWL (equation 1 of the paper; weights uniform; divergence tv; similarity known; "
            "without references that decline)",
        ),
        (
            {"form": "agreement"},
            "Agreement with references (a form of this project, not of FEWL; weights agreement; "
            "similarity known)",
        ),
    ],
)
def test_the_heading_names_all_that_scores_depend_on(
    options: dict[str, Any], title: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"embedder": Angles()} if options.get("penalty") != "none" else {}
    run = score(
        FILE, metrics=Fewl(**options), similarity=Known(SIMILAR), out=tmp_path / "run", **given
    )
    assert title in repr(run)
    about = json.loads((tmp_path / "run" / "run.json").read_text())["about"]
    assert about["fewl"]["title"] == title
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert title.replace("'", "&#39;") in page


def test_with_no_reference_left_a_sample_is_not_assessable() -> None:
    file = [dict(FILE[0], references={"one": "", "two": "I do not know."}), *FILE[1:]]
    found = first(Fewl(declined="drop"), file)
    assert (found.score, found.error) == (None, None)
    assert found.reason.startswith("no reference answered: one gave an empty answer; two refused")


def test_the_model_under_assessment_is_not_its_own_reference() -> None:
    file = [dict(one, model="two") for one in FILE]
    found = first(Fewl(penalty="none"), file)
    assert found.score == pytest.approx(tv(0.8), abs=1e-12)
    assert "is the model under assessment" in found.reason


def test_an_answer_without_words_is_like_nothing() -> None:
    file = [dict(FILE[0], response=" "), *FILE[1:]]
    similar = Known({}, 0.5)
    found = first(Fewl(weights="uniform"), file, similarity=similar)
    assert found.score == 0
    assert not any(text.strip() == "" for text, _ in similar.asked)


def test_a_question_without_neighbours_says_so() -> None:
    found = first(Fewl(max_similarity=-0.9, weights="uniform"))
    assert found.score == found.parts["no_penalty"]
    assert "no penalty, because no other question is similar enough" in found.reason
    assert "penalty" not in found.parts


def test_a_reference_that_answered_no_neighbour_has_no_penalty() -> None:
    file = [FILE[0], *(dict(one, references={"one": one["references"]["one"]}) for one in FILE[1:])]
    found = first(Fewl(divergence="kl", weights="uniform"), file)
    # KL: the first reference loses exp(.2 - 1), the second nothing.
    assert found.score == pytest.approx((0.4 + 0.1 - math.exp(-0.8)) / 2, abs=1e-12)
    assert "no penalty from two, which answered no similar question" in found.reason


def test_samples_of_one_question_are_no_neighbours_and_share_answers() -> None:
    """Leave-one-out files: each sample lacks the reference that wrote it."""
    twin = dict(FILE[1], id="b2", references={"three": "n3"})
    file = [dict(FILE[0], references={"one": "h1", "three": "h2"}), dict(FILE[0], id="a2")]
    file += [FILE[1], twin, FILE[2]]
    similar = Known({("y", "n1"): 0.1, ("y", "n3"): 0.4, ("y", "m1"): 0.3})
    found = first(Fewl(weights="uniform"), file, similarity=similar)
    penalties = {row["reference"]: row["penalty"] for row in found.evidence if "reference" in row}
    assert penalties == pytest.approx({"one": 0.2, "three": 0.4})
    assert found.parts["neighbours"] == 2


# ---- asking ----


def answers(prefix: str) -> Any:
    return lambda question: f"{prefix} {question}"


def pairs(question: str) -> str:
    return "1. Wrong Answer: w1\n1. Non-Wrong Answer: c1\n2. Wrong Answer: half a pair\n"


QUESTIONS = [
    {"id": f"q{i}", "question": f"What is at {10 * i}", "response": f"h at {10 * i}"}
    for i in range(6)
]


def asked_who() -> dict[str, Any]:
    return {
        "similarity": "novel",
        "embedder": Angles(),
        "references": {"one": Speaker("m1", answers("h")), "two": Speaker("m2", answers("k"))},
        "generator": Speaker("g", pairs),
    }


def test_references_and_pairs_are_asked_once_a_question(tmp_path: Path) -> None:
    who = asked_who()
    run = score(QUESTIONS, metrics=Fewl(), out=tmp_path / "run", **who)
    assert [a.error for a in run.assessments] == [None] * 6
    speakers = [*who["references"].values(), who["generator"]]
    assert [sum(speaker.asked.values()) for speaker in speakers] == [6, 6, 6]
    assert all("25 wrong answers" in prompt for prompt in who["generator"].asked)
    assert run.summary["fewl"]["pairs"] == 1  # fewer than asked for are accepted, and counted


def test_what_is_asked_follows_the_options(tmp_path: Path) -> None:
    who = asked_who()
    score(QUESTIONS, metrics=Fewl(pairs=7), out=tmp_path / "run", **who)
    assert all("Write 7 wrong answers" in prompt for prompt in who["generator"].asked)
    del who["generator"]
    score(QUESTIONS, metrics=Fewl(weights="uniform"), **who)
    with pytest.raises(BadInputError, match=r"wrong_answers: is missing .*weights=uniform"):
        score(QUESTIONS, metrics=Fewl(), **who)
    with pytest.raises(ValueError, match="generator=URI is given"):
        score(QUESTIONS, metrics=Fewl(weights="uniform"), **asked_who())


def test_several_answers_of_one_call_are_several_references() -> None:
    one = Speaker("m", lambda question: "1. h at 0\n2. other\n3. third\n2. other\n")
    who: dict[str, Any] = {"references": {"one": one}, "similarity": "novel"}
    who["embedder"] = Angles()
    run = score(QUESTIONS, metrics=Fewl(answers=5, weights="uniform"), **who)
    found = run.assessments[0]
    names = [row["reference"] for row in found.evidence if "reference" in row]
    assert names == ["one", "one 2", "one 3"]  # five were asked for, three came
    assert sum(one.asked.values()) == 6
    assert all("5 times" in prompt for prompt in one.asked)


def test_a_reference_whose_call_fails_may_leave_its_weight_to_the_others() -> None:
    def sometimes(question: str) -> str:
        return broken(question) if question.endswith(" 20") else f"k {question}"

    who = asked_who() | {"references": {"one": Speaker("m1", answers("h"))}}
    who["references"]["two"] = Speaker("m2", sometimes)
    run = score(QUESTIONS, metrics=Fewl(allow_missing_references=True), **who)
    assert [a.error for a in run.assessments] == [None] * 6
    third = run.assessments[2]
    why = "gave no answer (refused by endpoint or filter)"
    assert {"absent": "two", "why": why, "kind": "refused"} in third.evidence
    weights = [row["weight"] for row in third.evidence if "reference" in row]
    assert weights == [1.0]
    assert run.assessments[1].parts["references"] == 2


def test_without_any_reference_the_sample_fails_and_others_do_not() -> None:
    def never(question: str) -> str:
        return broken(question) if question.endswith(" 20") else "h"

    who = asked_who() | {"references": {"one": Speaker("m1", never)}}
    run = score(QUESTIONS, metrics=Fewl(), **who)
    assert [a.score is None for a in run.assessments] == [i == 2 for i in range(6)]
    assert run.assessments[2].error == "reference one did not answer: out of order"
    assert run.assessments[2].fault == "refused"


def test_a_generator_that_fails_fails_the_sample() -> None:
    def no_pairs(question: str) -> str:
        return "I would rather not." if question.endswith(" 20") else pairs(question)

    run = score(QUESTIONS, metrics=Fewl(), **asked_who() | {"generator": Speaker("g", no_pairs)})
    assert [a.error is not None for a in run.assessments] == [i == 2 for i in range(6)]
    assert "the generator's reply has no pair" in str(run.assessments[2].error)
    assert run.summary_file["asked"]["generator"]["g"]["missing"] == {"unparsed": 1}


def test_a_reference_that_answered_but_cannot_be_asked_back_fails_the_sample() -> None:
    class Busy(Speaker):
        async def reply(self, request: Any) -> Any:
            if "Statement: " in request.messages[-1].content:
                broken("")
            return await super().reply(request)

    who = asked_who() | {"references": {"one": Busy("m1", answers("h"))}}
    run = score(QUESTIONS, metrics=Fewl(expertise="ask", allow_missing_references=True), **who)
    assert all("out of order" in (a.error or "") for a in run.assessments)
    assert "fails the sample in either case" in " ".join((FewlOptions.__doc__ or "").split())


def test_expertise_by_asking() -> None:
    """One finds that it says what the corrected answer says; two the wrong one."""

    def says(word: str) -> Any:
        return lambda prompt: word

    class Honest(Speaker):
        async def reply(self, request: Any) -> Any:
            text = request.messages[-1].content
            if "Statement: " not in text:
                return await super().reply(request)
            self.asked[text] += 1
            right = ("Statement: c" in text) == (self.name == "m1")
            return type(await super().reply(request))("Yes." if right else "No, it does not.")

    who = asked_who()
    who["references"] = {"one": Honest("m1", answers("h")), "two": Honest("m2", answers("k"))}
    run = score(QUESTIONS, metrics=Fewl(expertise="ask"), **who)
    rows = [row for row in run.assessments[0].evidence if "reference" in row]
    assert [row["expertise"] for row in rows] == [1.0, -1.0]
    given = first(Fewl(expertise="ask"))
    assert given.error and "is not a model of this run" in given.error


@pytest.mark.parametrize("unread", ["Statement: c", "Statement: w", "Statement: "])
def test_expertise_that_cannot_be_read_is_no_number(unread: str) -> None:
    """Reference one says neither yes nor no of one kind of answers, or of all."""

    class Vague(Speaker):
        async def reply(self, request: Any) -> Any:
            text = request.messages[-1].content
            if "Statement: " not in text:
                return await super().reply(request)
            vague = self.name == "m1" and unread in text
            return type(await super().reply(request))("Perhaps." if vague else "Yes.")

    who = asked_who()
    who["references"] = {"one": Vague("m1", answers("h")), "two": Vague("m2", answers("k"))}
    metric = Fewl(expertise="ask", penalty="none")
    del who["embedder"]
    run = score(QUESTIONS, metrics=metric, **who)
    assessment = run.assessments[0]
    rows = [row for row in assessment.evidence if "reference" in row]
    assert [(row["reference"], row["weight"]) for row in rows] == [("two", 1.0)]
    assert "one answered neither yes nor no" in assessment.reason
    assert run.summaries["fewl"].details["absent"] == {"one": {"unparsed": 6}}
    asked = run.summary_file["asked"]["references"]
    assert asked["one"]["missing"].keys() == {"unparsed"}
    assert asked["two"]["missing"] == {}
    del who["references"]["two"]
    alone = score(QUESTIONS, metrics=metric, **who).assessments[0]
    assert (alone.score, alone.error) == (None, None)


def test_a_pool_of_its_own_is_asked_for_its_nearest_questions_alone(tmp_path: Path) -> None:
    rows = [{"question": f"Pool at {degrees}"} for degrees in range(0, 180, 5)]
    path = tmp_path / "pool.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one = Speaker("m1", answers("h"))
    who: dict[str, Any] = {"references": {"one": one}, "similarity": "novel"}
    who["embedder"] = Angles()
    metric = Fewl(weights="uniform", neighbours=2, max_similarity=1.0)
    run = score(QUESTIONS[:2], metrics=metric, pool=path, out=tmp_path / "run", **who)
    near = [r["neighbour"] for r in run.assessments[0].evidence if "neighbour" in r]
    assert near == ["Pool at 0", "Pool at 5"]
    asked = {prompt.rsplit("Question: ", 1)[1].split("\n")[0] for prompt in one.asked}
    assert asked <= {"What is at 0", "What is at 10", *(f"Pool at {d}" for d in (0, 5, 10, 15))}
    assert sum(one.asked.values()) == len(one.asked)
    before = sum(one.asked.values())
    again = rescore(
        tmp_path / "run",
        metrics=Fewl(form="theory", weights="uniform", neighbours=2, max_similarity=1.0),
        out=tmp_path / "again",
        **who,
    )
    assert [a.error for a in again.assessments] == [None] * 2
    assert sum(one.asked.values()) == before


# ---- agreement ----


def crowd(n: int = 60) -> list[dict[str, Any]]:
    """One is right, two mostly, three never; the answers under assessment are right."""
    return [
        {
            "id": f"q{i}",
            "question": f"What is at {i}",
            "response": f"right{i}",
            "references": {
                "one": f"right{i}",
                "two": f"right{i}" if i % 3 else f"wrong{i}two",
                "three": f"wrong{i}three",
            },
        }
        for i in range(n)
    ]


def same(text: str, reference: str) -> float:
    return float(text == reference)


def test_agreement_finds_out_who_knows() -> None:
    run = score(crowd(), metrics=Fewl(form="agreement", penalty="none"), similarity=same)
    rows = {row["reference"]: row for row in run.assessments[0].evidence if "reference" in row}
    # The answers and one always agree, two with them two times in three: q = 1, 1, 2/3.
    assert rows["one"]["expertise"] == pytest.approx(1, abs=1e-6)
    assert rows["two"]["expertise"] == pytest.approx(2 / 3, abs=1e-6)
    assert rows["three"]["expertise"] == pytest.approx(0, abs=1e-6)
    assert rows["one"]["weight"] > 0.9
    assert run.assessments[0].score == pytest.approx(rows["one"]["weight"], abs=1e-6)


def test_agreement_is_learnt_from_the_run_whatever_the_pool(tmp_path: Path) -> None:
    """A pool of bare questions says nothing of the references."""
    path = tmp_path / "pool.jsonl"
    path.write_text('{"question": "What is elsewhere"}\n')
    metric = Fewl(form="agreement", penalty="none")
    plain, pooled = (
        score(crowd(), metrics=metric, similarity=same, pool=one) for one in (None, path)
    )
    assert pooled.assessments[0].evidence == plain.assessments[0].evidence


def test_a_rater_who_was_not_seen_has_the_mean_ability(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learnt from 30 of 60 questions; four answers one of the others alone."""
    monkeypatch.setattr(references, "MAX_AGREEMENT_SAMPLES", 30)
    picks = generator(0, "agreement").choice(60, 30, replace=False)
    file = crowd()
    place = min(set(range(60)) - set(picks.tolist()))
    file[place]["references"]["four"] = "x"
    run = score(file, metrics=Fewl(form="agreement", penalty="none"), similarity=same)
    rows = {row["reference"]: row for row in run.assessments[place].evidence if "reference" in row}
    known = [rows[name]["expertise"] for name in ("one", "one", "two", "three")]  # the answers: 1
    assert rows["four"]["expertise"] == pytest.approx(sum(known) / 4, abs=1e-6)
    assert rows["four"]["weight"] > rows["three"]["weight"]


def test_agreement_takes_its_own_similarity_where_nobody_names_one(tmp_path: Path) -> None:
    score(crowd(3), metrics=Fewl(form="agreement"), out=tmp_path / "run")
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert settings["backends"]["similarity"] == "novel"
    assert settings["metrics"]["fewl"]["weights"] == "agreement"
    assert settings["metrics"]["fewl"]["penalty"] == "nearest"
    again = rescore(tmp_path / "run", metrics=Fewl(form="agreement"), out=tmp_path / "again")
    assert again.assessments[0].score == pytest.approx(
        json.loads((tmp_path / "run" / "assessments.jsonl").read_text().splitlines()[0])["score"]
    )


# ---- a run ----


def test_a_plan_asks_nothing_and_counts_references_and_pairs() -> None:
    who = asked_who()
    found = plan(QUESTIONS, metrics=Fewl(), **who)
    planned = {(part.metric, part.capability, part.backend): part.calls for part in found.parts}
    assert planned["references", "chat", "m1"] == planned["references", "chat", "m2"] == 6
    assert planned["wrong_answers", "chat", "g"] == 6
    # Of each reference the answer with 25 wrong and 25 corrected answers, all different.
    assert planned["fewl", "similarity", "novel"] >= 6 * 2 * 50
    assert not any(s.asked for s in [*who["references"].values(), who["generator"]])


def test_interrupted_it_goes_on_without_asking_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_who, who = asked_who(), asked_who()
    whole = score(QUESTIONS, metrics=Fewl(), out=tmp_path / "whole", **whole_who)
    reply, count = Speaker.reply, 0

    async def until_it_breaks(self: Speaker, request: Any) -> Any:
        nonlocal count
        count += 1
        if count > 7:
            raise KeyboardInterrupt
        return await reply(self, request)

    monkeypatch.setattr(Speaker, "reply", until_it_breaks)
    with pytest.raises(KeyboardInterrupt):
        score(QUESTIONS, metrics=Fewl(), out=tmp_path / "run", **who)
    monkeypatch.setattr(Speaker, "reply", reply)
    again = score(QUESTIONS, metrics=Fewl(), out=tmp_path / "run", **who)
    assert [a.to_dict() for a in again.assessments] == [a.to_dict() for a in whole.assessments]
    assert summary_of(tmp_path / "run") == summary_of(tmp_path / "whole")


@pytest.mark.parametrize(
    "other",
    [
        Fewl(form="theory"),
        Fewl(divergence="kl"),
        Fewl(weights="uniform"),
        Fewl(weights="single-best", temperature=0.5),
        Fewl(penalty="random"),
        Fewl(penalty="none", pairs=1),
        Fewl(form="agreement"),
    ],
    ids=str,
)
def test_scored_again_with_other_options_nobody_is_asked(other: Fewl, tmp_path: Path) -> None:
    who = asked_who()
    score(QUESTIONS, metrics=Fewl(), out=tmp_path / "run", **who)
    local: dict[str, Any] = {"similarity": "novel"}
    if other.penalising != "none":
        local["embedder"] = Angles()

    class Mute(Speaker):
        async def reply(self, request: Any) -> Any:
            raise CallError("nobody is to be asked", "refused")

    local["references"] = {name: Mute(name, broken) for name in ("m1", "m2")}
    local["references"] = {"one": local["references"]["m1"], "two": local["references"]["m2"]}
    again = rescore(tmp_path / "run", metrics=other, out=tmp_path / "again", **local)
    assert [a.error for a in again.assessments] == [None] * 6
    fresh = score(QUESTIONS, metrics=other, **_those_asked(other))
    assert [a.score for a in again.assessments] == pytest.approx(
        [a.score for a in fresh.assessments]
    )


def _those_asked(metric: Fewl) -> dict[str, Any]:
    who = asked_who()
    if not metric.wants_pairs:
        del who["generator"]
    if metric.penalising == "none":
        del who["embedder"]
    return who


def test_the_summary_holds_the_score_against_length_and_chance() -> None:
    """Right answers agree and are long: the score finds all of them, the length none."""
    file = []
    for i in range(50):
        for right in (True, False):
            said = f"it is number{i} and nothing else" if right else f"x{i}"
            file.append(
                {
                    "id": f"q{i}-{right}",
                    "question": f"What is {i}",
                    "response": said,
                    "label": int(right),
                    "references": {"one": f"number{i}"},
                }
            )
    run = score(file, metrics=Fewl(weights="uniform", penalty="none"), similarity="novel")
    found = run.summary["fewl"]
    assert (found["auroc"], found["auroc_no_penalty"]) == (100, 100)
    assert (found["auroc_length"], found["chance"]) == (0, 50)
    # 50 right, 50 wrong: at t = 0.9603, 1 - t is 1.96 standard errors of Hanley and McNeil.
    assert run.summaries["fewl"].intervals["auroc"] == pytest.approx((96.03, 100), abs=0.01)
    words = [{**one, "label": "Richtig" if one["label"] else "👎"} for one in file]
    # What cannot be read is as if it were not there.
    words.append({**file[0], "id": "unclear", "label": "unclear"})
    worded = score(words, metrics=Fewl(weights="uniform", penalty="none"), similarity="novel")
    assert worded.summaries["fewl"].support["auroc"] == 100
    assert worded.summary["fewl"]["auroc"] == 100
    plain = score(
        [{**one, "label": None} for one in file],
        metrics=Fewl(weights="uniform", penalty="none"),
        similarity="novel",
    ).summaries["fewl"]
    assert plain.values["auroc"] is None
    assert plain.not_applicable["auroc"] == "no scored sample has a label"


def test_the_report_draws_the_references_escaped(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    file = [dict(FILE[0], references={"one": hostile, "two": ""}), *FILE[1:]]
    who: dict[str, Any] = {"similarity": Known({}), "embedder": Angles()}
    score(file, metrics=Fewl(), out=tmp_path / "run", **who)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert hostile not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "gave an empty answer" in page
    assert page.count("data-problem") >= 3  # nobody agrees with any of the answers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"form": "eq2"}, "unknown value of form 'eq2'; did you mean eq1"),
        ({"divergence": "l2"}, "divergence"),
        ({"weights": "best"}, "weights"),
        ({"penalty": "far"}, "penalty"),
        ({"expertise": "guess"}, "expertise"),
        ({"temperature": 0}, "temperature"),
        ({"neighbours": -1}, "neighbours"),
        ({"pairs": -1}, "pairs"),
        ({"answers": 0}, "answers"),
        ({"max_similarity": 2}, "max_similarity"),
    ],
)
def test_options_are_checked(options: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Fewl(**options)

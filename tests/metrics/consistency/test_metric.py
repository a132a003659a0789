"""The metric through the public door: scripted models, few distractors, other options."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.consistency.helpers import (
    RIGHT,
    Asked,
    Chooser,
    Likely,
    letters_of_examples,
    read,
    sample,
)
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.errors import BackendError, UnknownNameError
from trustassay.metrics import Consistency
from trustassay.statistics.resampling import generator


def given(**options: Any) -> Consistency:
    return Consistency(sources="given", **options)


def assessed(model: Any, record: dict[str, Any] | None = None, **options: Any) -> Assessment:
    run = score([record or sample()], metrics=given(**options), model=model)
    (found,) = run.assessments
    assert found.error is None
    return found


def places(found: Assessment) -> list[str]:
    """Return where the answer stood, check by check."""
    return [row["right"] for row in found.evidence]


# ------------------------------------------------------------------------------ scripted models


def test_always_right_is_asked_ten_times_and_is_consistent() -> None:
    model = Chooser()
    found = assessed(model)
    assert (found.score, found.verdict, len(model.requests)) == (1.0, "consistent", 10)
    assert found.reason == "the model took its own answer in 10 of 10 choices"
    assert found.parts["share_consistent"] == 1
    assert sorted(Counter(places(found)).values()) == [2, 2, 3, 3]


@pytest.mark.parametrize("letter", "ABCD")
def test_always_the_same_letter_ends_where_the_answer_stands_elsewhere(letter: str) -> None:
    model, whole = Chooser(lambda _: letter), Chooser(lambda _: letter)
    found = assessed(model)
    everything = assessed(whole, stop=False)
    stood = places(everything)
    until = next(i for i, place in enumerate(stood, 1) if place != letter)
    assert (found.score, found.verdict, len(model.requests)) == (0.0, "inconsistent", until)
    assert (everything.score, len(whole.requests)) == (0.0, 10)
    assert everything.parts["consistent"] == stood.count(letter)
    assert stood.count(letter) in (2, 3)
    assert everything.parts[f"chosen_{letter.lower()}"] == 10


def test_always_none_of_the_above_is_asked_once() -> None:
    model = Chooser(lambda _: "E")
    found = assessed(model)
    assert (found.score, found.verdict, len(model.requests)) == (0.0, "inconsistent", 1)
    assert found.parts["none_chosen"] == 1


def test_never_parseable_is_open_and_the_asking_ends_when_no_more_may_be_replaced() -> None:
    model = Chooser(lambda _: "I would rather not say.")
    found = assessed(model)
    assert (found.score, found.verdict) == (None, None)
    assert (len(model.prompts), len(model.repairs)) == (6, 6)
    assert (found.parts["unparsed"], found.parts["asked_again"]) == (6, 6)
    assert [found.parts[name] for name in ("open", "lowest", "highest")] == [1, 0, 1]
    assert "share_consistent" not in found.parts
    assert found.reason == (
        "not assessable: the model took its own answer in 0 of 0 choices; 6 replies named no "
        "option, even when asked again"
    )
    whole = Chooser(lambda _: "I would rather not say.")
    assert assessed(whole, stop=False).score is None
    assert len(whole.requests) == 20


def test_never_parseable_stands_apart_where_that_is_the_rule() -> None:
    model = Chooser(lambda _: "I would rather not say.")
    found = assessed(model, unparsed="apart")
    assert (found.score, len(model.prompts), model.repairs) == (None, 10, [])
    assert found.reason.endswith("in 0 of 10 choices; 10 replies named no option")
    assert [found.parts[name] for name in ("open", "lowest", "highest")] == [1, 0, 1]


def test_a_share_of_the_parseable_is_a_score_and_its_reason_says_so() -> None:
    model = Chooser(lambda asked: asked.right if asked.number % 2 else "I would rather not say.")
    found = assessed(model, aggregate="share", stop=False, unparsed="apart")
    assert (found.score, found.verdict) == (1.0, None)
    assert found.reason.startswith("the model took its own answer in 5 of 10 choices; 5 replies")


def test_never_parseable_is_inconsistent_at_once_where_that_counts() -> None:
    model = Chooser(lambda _: "")
    found = assessed(model, unparsed="inconsistent")
    assert (found.score, found.verdict, len(model.requests)) == (0.0, "inconsistent", 1)
    assert (found.parts["unparsed"], found.parts["consistent"]) == (1, 0)


@pytest.mark.parametrize("wrong", ["wrong", "E"])
@pytest.mark.parametrize("k", range(1, 12))
def test_inconsistent_at_check_k(k: int, wrong: str) -> None:
    def choose(asked: Asked) -> str:
        if asked.number < k:
            return asked.right
        return asked.wrong if wrong == "wrong" else wrong

    model = Chooser(choose)
    found = assessed(model)
    assert len(model.requests) == min(k, 10)
    assert found.score == float(k > 10)
    assert found.parts["consistent"] == min(k - 1, 10)
    assert found.calls == {"chat": min(k, 10)}


def test_a_reply_without_an_option_is_asked_for_again_with_the_format() -> None:
    model = Chooser(
        lambda asked: "Hm." if asked.number == 3 and not asked.again else f"It is {asked.right}."
    )
    found = assessed(model)
    assert (found.score, found.verdict, len(model.prompts)) == (1.0, "consistent", 10)
    (repair,) = model.repairs
    assert [one.role for one in repair.messages] == ["user", "assistant", "user"]
    assert repair.messages[0].content == model.prompts[2]
    assert repair.messages[1].content == "Hm."
    assert repair.messages[2].content.endswith("nothing else: A, B, C, D or E.")
    assert repair.prompt == "choose/1+again/1"
    assert found.calls == {"chat": 11}
    assert (found.parts["asked_again"], found.parts["unparsed"]) == (1, 0)
    assert found.evidence[2]["first_reply"] == "Hm."
    assert found.reason == "the model took its own answer in 10 of 10 choices"


def test_after_an_empty_reply_the_format_stands_below_the_question() -> None:
    model = Chooser(lambda asked: asked.right if asked.again else "")
    assert assessed(model, checks=1).score == 1
    (repair,) = model.repairs
    assert [one.role for one in repair.messages] == ["user"]


def test_another_check_takes_the_place_of_one_that_cannot_be_read() -> None:
    model = Chooser(lambda asked: "Hm." if asked.number in (3, 7) else asked.right)
    found = assessed(model)
    assert (found.score, len(model.prompts), len(model.repairs)) == (1.0, 12, 2)
    assert len({frozenset(read(prompt)[1][:4]) for prompt in model.prompts}) == 12
    assert found.parts["checks"] == 12
    assert found.reason == (
        "the model took its own answer in 10 of 10 choices; 2 replies named no option, even when "
        "asked again"
    )
    mute = {read(model.prompts[place])[1] for place in (2, 6)}
    whole = Chooser(lambda asked: "Hm." if asked.options in mute else asked.right)
    assert assessed(whole, stop=False).evidence == found.evidence
    later = Chooser(
        lambda asked: "Hm." if asked.number == 3 else "E" if asked.number == 11 else asked.right
    )
    assert assessed(later).score == 0


@pytest.mark.parametrize("distractors", [3, 4])
def test_without_other_distractors_the_same_are_offered_in_another_order(distractors: int) -> None:
    model = Chooser(lambda asked: "Hm." if asked.number == 1 else asked.right)
    found = assessed(model, sample(distractors=distractors))
    first, *others = (read(prompt)[1][:4] for prompt in model.prompts)
    assert found.score == 1
    assert frozenset(others[-1]) == frozenset(first)
    assert others[-1] != first
    assert len(model.prompts) == {3: 2, 4: 5}[distractors]


@pytest.mark.slow
def test_whether_an_answer_is_left_out_does_not_depend_on_the_model_keeping_to_it() -> None:
    """One reply in ten cannot be read, and is not when asked again: without another check in its
    place two thirds of the answers that are kept to would have no score.
    """

    def choose(asked: Asked) -> str:
        rng = generator(0, asked.question, str(asked.number))
        if rng.random() < 0.1:
            return "Hm."
        kept = int(asked.question.split()[3]) % 2 == 0
        return asked.right if kept or rng.random() < 0.3 else "E"

    rows = [sample(i) for i in range(200)]
    run = score(rows, metrics=given(), model=Chooser(choose), cache=None)
    summary = run.summary["consistency"]
    assert summary["mean"] == pytest.approx(0.5, abs=0.01)
    assert summary["open"] <= 4  # type: ignore[operator]
    assert summary["mean_low"] <= 0.5 <= summary["mean_high"]  # type: ignore[operator]
    apart = score(rows, metrics=given(unparsed="apart"), model=Chooser(choose), cache=None)
    found = apart.summary["consistency"]
    assert found["mean"] < 0.35  # type: ignore[operator]
    assert found["mean_low"] < 0.4 <= found["mean_high"] - 0.1  # type: ignore[operator]


# --------------------------------------------------------------------------- what is offered


@pytest.mark.parametrize(
    ("distractors", "calls"), [(1, 0), (2, 0), (3, 1), (4, 4), (5, 10), (40, 10)]
)
def test_few_distractors_allow_few_checks(distractors: int, calls: int) -> None:
    model = Chooser()
    found = assessed(model, sample(distractors=distractors))
    assert len(model.requests) == calls
    assert found.score == (1.0 if calls else None)
    assert found.parts["candidates"] == distractors
    assert found.parts["short"] == (calls < 10)
    triples = {frozenset(read(prompt)[1][:4]) for prompt in model.prompts}
    assert len(triples) == calls
    if not calls:
        words = "1 distractor" if distractors == 1 else "2 distractors"
        assert found.reason == f"not assessable: {words} found; 3 are needed"
        assert found.verdict is None


def test_distractors_that_say_what_the_answer_says_do_not_count() -> None:
    record = sample(distractors=2)
    record["wrong_answers"] += ["the lamp stands in THE RED house", *record["wrong_answers"]]
    found = assessed(Chooser(), record)
    assert (found.score, found.parts["candidates"]) == (None, 2)


def test_thirty_distractors_are_offered_before_one_recurs() -> None:
    model = Chooser()
    assessed(model)
    offered = Counter(text for prompt in model.prompts for text in read(prompt)[1][:4])
    assert offered.pop(RIGHT) == 10
    assert len(offered) == 30


def test_the_prompt_has_five_examples_and_the_question_last() -> None:
    model = Chooser()
    assessed(model, max_tokens=1042)
    (prompt, *_) = model.prompts
    assert sorted(letters_of_examples(prompt)) == [*"ABCDE"]
    assert prompt.count("Question: ") == 6
    assert prompt.count("E) None of the above.") == 6
    assert "Where does lamp 0 stand?" in prompt.rsplit("Question: ", 1)[1]
    (request, *_) = model.requests
    assert (request.max_tokens, request.temperature, request.logprobs) == (1042, 0, None)
    assert request.prompt == "choose/1"


def test_an_answer_cannot_look_like_other_options() -> None:
    response = "The lamp stands here.\nE) None of the above.\n\nAnswer: C"
    model = Chooser(lambda asked: "ABCDE"[asked.options.index(" ".join(response.split()))])
    assert assessed(model, sample(response=response)).score == 1


@pytest.mark.parametrize(
    ("response", "offered"),
    [
        ("The lamp stands [1]  there [2, 3].\n", "The lamp stands there."),
        ("In [1871] it burnt [12][3].", "In [1871] it burnt."),
        ("[1][2]", "[1][2]"),
    ],
)
def test_citations_are_no_part_of_the_answer(response: str, offered: str) -> None:
    model = Chooser(lambda asked: "ABCDE"[asked.options.index(offered)])
    assert assessed(model, sample(response=response)).score == 1


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text(
        "Question: {{ question }}\n{% for o in options %}{{ 'ABCDE'[loop.index0] }}) {{ o }}\n"
        "{% endfor %}Answer:"
    )
    model = Chooser()
    assert assessed(model, prompt=str(file)).score == 1
    assert model.prompts[0].count("Question: ") == 1
    assert model.requests[0].prompt.startswith("mine/")


def test_nothing_depends_on_order_or_concurrency() -> None:
    rows = [sample(i) for i in range(12)]

    def moody(asked: Asked) -> str:
        return asked.wrong if sum(map(ord, "".join(asked.options))) % 7 == 0 else asked.right

    one = score(rows, metrics=given(stop=False), model=Chooser(moody), samples_at_once=1)
    other = score(rows[::-1], metrics=given(stop=False), model=Chooser(moody), samples_at_once=64)
    by_id = {a.id: a.to_dict() for a in other.assessments}
    assert [a.to_dict() for a in one.assessments] == [by_id[row["id"]] for row in rows]
    assert 0 < one.summary["consistency"]["checks_consistent"] < 100  # type: ignore[operator]


def test_samples_and_seeds_differ_in_what_is_offered() -> None:
    models = [Chooser(), Chooser(), Chooser()]
    for model, row, seed in zip(models, (sample(0), sample(1), sample(0)), (0, 0, 1), strict=True):
        score([row], metrics=given(), model=model, seed=seed)
    drawn = [tuple(read(prompt)[1] for prompt in model.prompts) for model in models]
    assert len(set(drawn)) == 3


# ------------------------------------------------------------------------------ ways of choosing


def test_by_likelihood_nothing_is_written_and_nothing_is_unparsed() -> None:
    model = Likely(lambda asked: asked.right if asked.number < 4 else "E")
    found = assessed(model, by="likelihood")
    assert (found.score, model.checks.total(), model.requests) == (0.0, 4, [])
    assert found.calls == {"likelihood": 40}  # ten spellings of five letters, four times
    row = found.evidence[-1]
    assert (row["way"], row["chosen"]) == ("likelihood", "E")
    assert row["probabilities"] == pytest.approx([0.1] * 4 + [0.6])
    assert assessed(Likely(), by="auto").calls == {"likelihood": 100}
    assert assessed(Likely()).calls == {"chat": 10}


def test_likelihood_of_an_endpoint_is_refused_before_anything_is_asked() -> None:
    model = Chooser()
    words = "consistency: chooser cannot be used for likelihood; choose another chat model"
    with pytest.raises(BackendError, match=words):
        score([sample()], metrics=given(by="likelihood"), model=model)
    assert not model.requests


@pytest.mark.parametrize(
    ("reply", "letter", "exact"),
    [("{}", 1.0, 1.0), (" {}\n", 1.0, 1.0), ("{})", 1.0, None), ("The answer is {}.", 1.0, None)],
)
def test_the_exact_parser_takes_the_letter_alone(
    reply: str, letter: float, exact: float | None
) -> None:
    model = Chooser(lambda asked: reply.format(asked.right))
    assert assessed(model).score == letter
    assert assessed(model, parser="exact", unparsed="apart").score == exact
    assert not model.repairs
    again = Chooser(lambda asked: asked.right if asked.again else reply.format(asked.right))
    assert assessed(again, parser="exact").score == 1
    assert len(again.repairs) == (0 if exact else 10)


# ------------------------------------------------------------------------------------- the rest


def test_the_share_of_all_choices() -> None:
    model = Chooser(lambda asked: asked.wrong if asked.number in (2, 5, 9) else asked.right)
    found = assessed(model, stop=False, aggregate="share")
    assert (found.score, found.verdict, len(model.requests)) == (0.7, "inconsistent", 10)


def test_a_blank_response_and_a_failed_call_are_no_zero() -> None:
    def fails(asked: Asked) -> str:
        if asked.number == 2:
            raise BackendError("the line is dead")
        return asked.right

    model = Chooser(fails)
    rows = [sample(0), sample(1, response=" ")]
    run = score(rows[:1], metrics=given(), model=model)
    assert [a.error for a in run.assessments] == ["the line is dead"]
    assert run.summary["consistency"]["mean"] is None


def test_what_an_engine_says_without_an_answer_is_not_asked_about() -> None:
    model = Chooser()
    found = assessed(model, sample(response="Empty Response"))
    assert (found.score, found.verdict, model.requests) == (None, None, [])
    assert found.reason.startswith("not assessable: there is no answer")


def test_gold_answers_are_not_read_unless_they_are_to_be() -> None:
    record = sample(distractors=4, answers=[["red", "colour0"], ["colour1"]])
    assert assessed(Chooser(), record).parts["candidates"] == 4
    assert assessed(Chooser(), record, aliases=True).parts["candidates"] == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checks": 0}, "checks: expected 1 or more"),
        ({"candidates": 2}, "candidates: expected 3 or more"),
        ({"aggregate": "share"}, "needs stop=no"),
        ({"sources": "pos+pos"}, "expected different names"),
        ({"sources": "pos+"}, "expected different names"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Consistency(**options)


@pytest.mark.parametrize("option", ["by", "parser", "unparsed", "aggregate"])
def test_unknown_values_are_refused(option: str) -> None:
    with pytest.raises(UnknownNameError, match=option):
        Consistency(**{option: "al"})  # type: ignore[arg-type]


def test_a_sample_without_distractors_of_its_own_is_refused_before_the_start() -> None:
    record = sample()
    del record["wrong_answers"]
    with pytest.raises(
        Exception, match=r"wrong_answers: is missing \(expected wrong answers as distractors"
    ):
        score([record], metrics=given(), model=Chooser())

"""The metric through the public door: recorded replies, asked ones, and tokens."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trustassay import Assessment, score
from trustassay.api import plan
from trustassay.core.capabilities import ChatRequest, Reply, TokenLogprob, TokenVectors
from trustassay.core.testing import ScriptedChat, ScriptedEntailer
from trustassay.errors import BackendError, CallError, UsageError
from trustassay.metrics.uncertainty import Uncertainty
from trustassay.metrics.uncertainty.options import PARTS, select_parts
from trustassay.runs.intake import BadInputError

QUESTION = "What is the capital of Australia?"


def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
    """Say that a text entails one that names the same city, and contradicts any other."""
    cities = [{word for word in ("Canberra", "Sydney") if word in t} for t in (premise, hypothesis)]
    if not all(cities):
        return (0.0, 1.0, 0.0)
    return (0.9, 0.1, 0.0) if cities[0] == cities[1] else (0.0, 0.1, 0.9)


def only(sample: Mapping[str, Any], *, metric: Any = None, **options: Any) -> Assessment:
    options = {"entailer": ScriptedEntailer(judge), "cache": None} | options
    if options["entailer"] is None:
        del options["entailer"]
    run = score([dict(sample)], metrics=[metric or Uncertainty()], **options)
    return run.assessments[0]


def recorded(**fields: Any) -> dict[str, Any]:
    replies = ["Canberra", "It is Sydney.", "Canberra is the capital.", "Sydney"]
    sample = {"id": "q", "question": QUESTION, "response": "Canberra.", "resamples": replies}
    return sample | fields


def test_sentences_and_meanings_by_hand() -> None:
    found = only(recorded())
    assert found.error is None
    # of four replies one is the same, one entails it by .9, and two not at all
    assert found.parts["disagreement"] == pytest.approx(1 - 1.9 / 4)
    # E / (E + C) of the first two is 1, of the others 0
    assert found.parts["selfcheck_nli"] == pytest.approx(0.5)
    assert found.parts["semantic_sets"] == 2
    assert found.parts["semantic_entropy"] == pytest.approx(math.log(2))
    assert found.score == pytest.approx(0.5)
    assert found.verdict == "doubtful"
    assert found.reason == "selfcheck_nli 0.50; other replies with the same meaning: 2 of 4"
    meanings = [row["meaning"] for row in found.evidence if row["kind"] == "reply"]
    assert meanings == [0, 1, 0, 1]


def test_equal_replies_are_read_once_and_count_as_often_as_they_came() -> None:
    entailer = ScriptedEntailer(judge)
    replies = ["canberra", "Canberra!", " CANBERRA. ", "Sydney"]
    found = only(recorded(resamples=replies), entailer=entailer)
    assert len(entailer.pairs) == 2
    assert found.parts["different"] == 2
    assert found.parts["disagreement"] == pytest.approx(0.25)
    times = [row.get("times", 1) for row in found.evidence if row["kind"] == "reply"]
    assert times == [3, 1]


def test_the_sentence_in_doubt_is_marked_with_what_was_said_instead(tmp_path: Path) -> None:
    sample = recorded(
        response="Canberra is the capital. It was once Sydney.", resamples=["Canberra"] * 3
    )
    metric = Uncertainty()
    found = only(sample, metric=metric, out=tmp_path / "run")
    rows = [row for row in found.evidence if row["kind"] == "sentence"]
    assert [row.get("doubtful", False) for row in rows] == [False, True]
    assert found.parts["weakest_sentence"] == 1
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "other replies contradict it" in page
    assert "Another reply of the model: “Canberra”" in page


def tokens(*logprobs: float) -> list[Any]:
    texts = ["Can", "berra", "."]
    return [
        [text, log, [[text, log], ["Syd", math.log(0.25)]]]
        for text, log in zip(texts, logprobs, strict=True)
    ]


def test_tokens_that_came_with_the_answer() -> None:
    logs = [math.log(0.5), math.log(0.75), 0.0]
    found = only(recorded(token_logprobs=tokens(*logs)), metric=Uncertainty(score="weakest_token"))
    assert found.parts["nll"] == pytest.approx(-sum(logs))
    assert found.parts["mean_nll"] == pytest.approx(-sum(logs) / 3)
    assert found.score == pytest.approx(0.5)
    assert found.parts["cocoa_nll"] == pytest.approx(-sum(logs) * 0.525)


def test_words_that_the_model_found_unlikely_are_marked_in_the_report(tmp_path: Path) -> None:
    said = "In the <b>north</b>: Can-\nberra, \u5317\u4eac."
    logprobs = {"In": -0.1, " the": -1.0, " <b>": -0.1, "nor": -2.0, "th</b>": -3.0, ":": 0.0}
    logprobs |= {" Can": -2.0, "-": 0.0, "\n": -4.0, "berra": -0.1, ",": 0.0, " \u5317": -2.0}
    told = [*map(list, logprobs.items()), ["\u4eac.", 0.0]]
    sample = recorded(response=f" {said}", token_logprobs=told)
    how = {"metric": Uncertainty(parts="tokens"), "entailer": None}
    found = only(sample, **how, out=tmp_path / "run")
    rows = [row for row in found.evidence if row["kind"] == "token"]
    assert [row.get("start") for row in rows] == [4, 11, 14, 22, None, 34]
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    (view,) = re.findall(r'<p class="unlikely">.*?</p>', page, re.DOTALL)
    marked = re.findall(r'<mark title="probability ([\d.]+)">(.*?)</mark>', view)
    assert marked == [("0.14", "north&lt;/b&gt;"), ("0.14", "Can-"), ("0.14", "\u5317")]
    assert html.unescape(re.sub("<.*?>", "", view)).strip() == said
    sure = recorded(token_logprobs=[["Canberra.", -0.8]])
    only(sure, **how, out=tmp_path / "sure")
    page = (tmp_path / "sure" / "report.html").read_text("utf-8")
    assert "Tokens with a low probability" in page
    assert 'class="unlikely"' not in page


def test_tokens_in_the_form_of_an_endpoint() -> None:
    told = [
        {
            "token": "Canberra.",
            "logprob": -0.7,
            "top_logprobs": [{"token": "Canberra.", "logprob": -0.7}],
        }
    ]
    found = only(recorded(token_logprobs=told))
    assert found.parts["nll"] == pytest.approx(0.7)
    assert found.parts["tokens"] == 1


def test_likelihoods_of_recorded_replies_weigh_their_meanings() -> None:
    found = only(recorded(resample_logprobs=[-1.0, -2.0, -3.0, -4.0]))
    assert found.parts["semantic_entropy_weighted"] > 0
    assert "semantic_entropy_weighted" not in only(recorded()).parts


def test_likelihoods_of_blank_replies_are_left_out_with_them() -> None:
    replies, likelihoods = ["Canberra", " ", "Sydney"], [-1.0, -9.0, -2.0]
    found = only(recorded(resamples=replies, resample_logprobs=likelihoods))
    assert found.parts["semantic_entropy_weighted"] == pytest.approx(1.5)


def test_alternatives_that_contradict_a_token_make_a_claim_less_sure() -> None:
    half = math.log(0.5)
    told = [
        ["Canberra", half, [["Canberra", half], [" Sydney,", half], ["the", half]]],
        [".", 0.0, [[".", 0.0]]],
    ]
    found = only(recorded(token_logprobs=told), metric=Uncertainty(parts="claims"))
    # "Sydney" contradicts it, "the" leaves it open, the point is certain
    assert found.parts["ccp"] == pytest.approx(0.5)
    assert found.score == pytest.approx(0.5)


def test_of_each_reply_the_sentence_that_agrees_best_counts() -> None:
    replies = ["It is Sydney. It was Canberra.", "Sydney is large. Sydney is old."]
    found = only(recorded(resamples=replies), metric=Uncertainty(parts="pairs"))
    assert found.parts["luq_pair"] == pytest.approx(0.5)


def test_the_rarest_word_of_the_answer_among_all_replies() -> None:
    pytest.importorskip("rouge_score")
    replies = ["Canberra.", "Sydney."]
    found = only(
        recorded(resamples=replies), metric=Uncertainty(parts="selfcheck_ngram"), entailer=None
    )
    # of six tokens two are "canberra", three the point
    assert found.parts["selfcheck_ngram"] == pytest.approx(-math.log(2 / 6))


class Letters:
    """An embedder of tokens: each letter is one, with a direction of its own."""

    name = "letters"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        self.asked += texts
        own = [[one for one in text if one.isalpha()] for text in texts]
        return [
            TokenVectors(tuple(one), np.eye(128, dtype=np.float32)[[*map(ord, one)]]) for one in own
        ]


def test_of_each_reply_the_sentence_with_the_most_like_tokens_counts() -> None:
    letters = Letters()
    told = recorded(response="abcd.", resamples=["Abxy. Pq.", "abcd.", "ABCD", "pq. zz. abpq."])
    metric = Uncertainty(parts="vectors")
    found = only(told, metric=metric, entailer=None, token_embedder=letters)
    # two replies are the answer; the best sentences of the others have one and two of its letters
    assert found.parts["selfcheck_bertscore"] == pytest.approx(1 - (0.25 + 1 + 1 + 0.5) / 4)
    assert found.score == found.parts["selfcheck_bertscore"]
    assert len(letters.asked) == len(set(letters.asked)) == 6
    assert [need.capability for need in metric.needs()] == ["token_vectors", "chat"]


def test_vectors_of_tokens_need_no_model_of_the_users() -> None:
    found = only(recorded(), metric=Uncertainty(parts="vectors"), entailer=None)
    assert 0 < found.parts["selfcheck_bertscore"] < 0.5


@pytest.mark.parametrize(("reply", "doubt"), [("A", 0.0), ("B", 1.0)])
def test_the_model_says_whether_its_answer_is_true(reply: str, doubt: float) -> None:
    found = only(
        {"id": "q", "question": QUESTION, "response": "Canberra."},
        metric=Uncertainty(parts="p_true"),
        model=ScriptedChat(reply),
        entailer=None,
    )
    assert found.parts["p_true"] == doubt
    assert found.score == doubt


def test_a_part_without_tokens_is_not_assessable_and_never_0() -> None:
    found = only(recorded(), metric=Uncertainty(score="nll"))
    assert found.error is None
    assert found.score is None
    assert found.reason == "not assessable: needs token log-probabilities of the answer"
    assert "nll" not in found.parts


@pytest.mark.parametrize(
    ("part", "fields", "message"),
    [
        ("mean_entropy", {"token_logprobs": [["Canberra.", -1]]}, "needs alternatives of every"),
        ("semantic_entropy_weighted", {}, "needs the log-probability of each reply"),
        ("weakest_sentence", {"response": "What do you mean?"}, "no sentence claims anything"),
    ],
)
def test_it_says_what_a_part_lacks(part: str, fields: Mapping[str, Any], message: str) -> None:
    found = only(recorded(**fields), metric=Uncertainty(score=part))
    assert found.score is None
    assert found.reason.startswith(f"not assessable: {message}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"resamples": ["Sydney"]},
            "resamples: has 1 reply (expected a list of 2 or more; in a CSV",
        ),
        ({"resamples": []}, "resamples: is missing (expected other replies"),
    ],
)
def test_bad_input_names_the_field(fields: Mapping[str, Any], message: str) -> None:
    with pytest.raises(BadInputError) as error:
        only(recorded(**fields))
    assert message in str(error.value)


def test_blank_replies_are_left_out_and_too_many_fail() -> None:
    found = only(recorded(resamples=["Canberra", " ", "Sydney"]))
    assert (found.parts["replies"], found.parts["empty"]) == (2, 1)
    assert found.reason.endswith("; 1 empty reply left out")
    lost = only(recorded(resamples=["Canberra", " ", "", "Sydney", "\n"]))
    assert lost.error is not None
    assert "3 of 5 replies are blank" in lost.error


def said(request: ChatRequest) -> Reply:
    """Answer by turns at a temperature, and always the same without one."""
    if request.temperature == 0 and request.logprobs is not None:
        return Reply("Canberra.", "stop", 9, 2, logprobs=(TokenLogprob("Canberra.", -0.2),))
    if "Does the context" in request.messages[-1].content:
        return Reply("No." if "Sydney" in request.messages[-1].content else "Yes, it does.", "stop")
    if request.repeat == 5:
        raise CallError("the reply is empty", "empty")
    return Reply(["Sydney", "Canberra"][request.repeat % 2], "stop", 9, 2)


def test_a_model_is_asked_for_replies_and_tokens() -> None:
    model = ScriptedChat(said)
    found = only({"id": "q", "question": QUESTION, "response": "Canberra."}, model=model)
    drawn = [one for one in model.requests if one.temperature == 1.0]
    assert [one.repeat for one in drawn] == [1, 2, 3, 4, 5]
    assert (found.parts["replies"], found.parts["empty"]) == (4, 1)
    assert found.parts["nll"] == pytest.approx(0.2)


def test_tokens_of_another_answer_are_not_taken() -> None:
    found = only({"id": "q", "question": QUESTION, "response": "Sydney"}, model=ScriptedChat(said))
    assert found.parts["tokens"] == 0

    assert "nll" not in found.parts


def test_of_a_reply_with_reasoning_the_tokens_of_the_answer_are_taken() -> None:
    def thoughtful(request: ChatRequest) -> Reply:
        reply = said(request)
        thoughts = (TokenLogprob("<think></think>", -5.0), *(reply.logprobs or ()))
        return replace(reply, logprobs=thoughts if reply.logprobs else None)

    asked = {"id": "q", "question": QUESTION, "response": "Canberra."}
    result = only(asked, model=ScriptedChat(thoughtful))
    assert result.parts["tokens"] == 1
    assert result.parts["nll"] == pytest.approx(0.2)


class Likely(ScriptedChat):
    """A model that also tells the likelihood of a text as its reply."""

    def token_loglikelihoods(self, prompt: Any, options: Sequence[str]) -> list[list[float]]:
        if "é" in options[0]:
            raise CallError("its tokens split a character", "refused")
        if "!" in options[0]:
            raise BackendError("out of memory")
        assert prompt[-1].content.endswith(QUESTION)
        return [[-0.5 * len(word) for word in option.split()] for option in options]


def test_a_model_in_this_process_tells_the_likelihood_of_any_response() -> None:
    asked = {"id": "q", "question": QUESTION, "response": "It is Sydney"}
    found = only(asked, model=Likely(said))
    assert found.parts["tokens"] == 3
    assert found.parts["nll"] == pytest.approx(-sum([-1, -1, -3]))
    assert found.parts["weakest_token"] == pytest.approx(1 - math.exp(-3))
    assert "mean_entropy" not in found.parts
    assert only({**asked, "response": "Canberra."}, model=Likely(said)).parts["nll"] == 0.2
    assert only({**asked, "response": "é"}, model=Likely(said)).parts["tokens"] == 0
    failed = only({**asked, "response": "Sydney!"}, model=Likely(said)).error or ""
    assert "out of memory" in failed  # and not: no tokens are known


def test_the_model_says_whether_replies_support_the_answer() -> None:
    metric = Uncertainty(parts="selfcheck_prompt", alternatives=-1)
    found = only(recorded(), metric=metric, model=ScriptedChat(said), entailer=None)
    assert found.parts["selfcheck_prompt"] == pytest.approx(0.5)
    assert found.score == pytest.approx(0.5)


def test_the_plan_counts_the_calls() -> None:
    sample = {"id": "q", "question": QUESTION, "response": "Canberra."}
    counted = plan(
        [sample],
        metrics=[Uncertainty(samples=7)],
        model=ScriptedChat(said),
        entailer=ScriptedEntailer(judge),
    )
    assert sum(one.calls for one in counted.parts if one.capability == "chat") == 8


def test_parts_by_name_and_family() -> None:
    assert select_parts("degree+tokens")[0] == "degree"
    assert set(select_parts("all")) == set(PARTS)
    assert "ccp" not in select_parts("auto")
    with pytest.raises(UsageError, match="did you mean degree"):
        Uncertainty(parts="degre")
    with pytest.raises(UsageError, match="samples"):
        Uncertainty(samples=1)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_becomes_a_score_from_0_to_1_in_its_own_order(name: str) -> None:
    part = PARTS[name]
    least, most = part.bounds or ((-9.0, 0.0) if name == "self_certainty" else (1.0, 5.0))
    values = [part.score(least + (most - least) * i / 7, 5) for i in range(8)]
    assert values == sorted(values)
    assert all(0 <= value <= 1 for value in values)
    assert values[0] < values[-1]


@pytest.mark.parametrize("field", ["samples", "sampled_responses"])
def test_replies_by_the_names_of_other_tools(field: str) -> None:
    sample = recorded()
    found = only({**sample, field: sample.pop("resamples")})
    assert found.parts["replies"] == 4


def test_a_number_of_samples_is_no_reply() -> None:
    with pytest.raises(BadInputError, match=r"is missing .expected other replies"):
        only({"id": "q", "question": QUESTION, "response": "Canberra.", "samples": 5})


@pytest.mark.parametrize("part", ["semantic_entropy", "degree", "selfcheck_nli"])
def test_a_model_that_always_refuses_is_not_sure_of_an_answer(part: str) -> None:
    refusal = "I cannot answer that."
    assessment = only(
        recorded(response=refusal, resamples=[refusal] * 4),
        metric=Uncertainty(parts=part, score=part),
    )
    assert (assessment.score, assessment.verdict) == (None, None)
    outcome = Uncertainty().outcome(assessment)
    assert (outcome.kind, outcome.reason) == ("not_scored", "refused")

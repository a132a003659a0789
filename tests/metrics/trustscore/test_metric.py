"""One run of both parts, and what they are worth together."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.factcheck.helpers import Corpus, Judge
from tests.metrics.trustscore.helpers import PASSAGES, Keeper, Source, sample, who
from tests.support import Recorder
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.core.registry import metric_from_settings
from trustassay.metrics import Consistency, FactCheck, TrustScore
from trustassay.metrics.trustscore.metric import TABLE
from trustassay.runs.needs import list_demands


def assessed(record: dict[str, Any], metric: TrustScore | None = None, **given: Any) -> Assessment:
    run = score([record], metrics=metric or TrustScore(checks=3), **who(**given))
    return run.assessments[0]


@pytest.mark.parametrize(("verdict", "consistent"), list(TABLE))
def test_table_3_through_a_run(verdict: str, consistent: bool) -> None:
    model = Keeper(lambda _: consistent)
    found = assessed(sample(verdict=verdict), model=model)
    kept = "consistent" if consistent else "inconsistent"
    assert found.score == TABLE[verdict, consistent]  # type: ignore[index]
    assert found.verdict == f"{verdict}, {kept}"
    assert len(model.requests) == (3 if consistent else 1)
    (row,) = found.evidence
    assert (row["factcheck"]["verdict"], row["consistency"]["verdict"]) == (verdict, kept)
    assert row["factcheck"]["score"] == {"support": 1, "neutral": 0.5, "contradict": 0}[verdict]


def test_the_parts_are_those_of_the_metrics_themselves_and_asked_once() -> None:
    model = Keeper(lambda text: "green" not in text)
    records = [sample(0), sample(1, "contradict"), sample(2, "neutral", response="A green door.")]
    given = who(model)
    whole = score(records, metrics=TrustScore(checks=4), **given)
    asked, pairs = len(model.requests), sum(given["entailer"].asked.values())
    assert asked == 4 + 4 + 1
    both = score(records, metrics=[FactCheck(), Consistency(checks=4)], **given)
    facts, kept = ([a for a in both.assessments if a.metric == n] for n in both.summary)
    for one, fact, keep in zip(whole.assessments, facts, kept, strict=True):
        (row,) = one.evidence
        assert (one.parts["trust_fc"], one.parts["trust_bc"]) == (fact.score, keep.score)
        for name, part in (("factcheck", fact), ("consistency", keep)):
            told = row[name]
            assert (told["score"], told["verdict"], told["reason"]) == (
                part.score,
                part.verdict,
                part.reason,
            )
            assert told["evidence"] == list(part.evidence)
            assert told["parts"] == dict(part.parts)
    together = score(
        records, metrics=[TrustScore(checks=4), FactCheck(), Consistency(checks=4)], **given
    )
    assert len(together.assessments) == 9
    assert len(model.requests) == 3 * asked  # a run's own calls are asked once, whoever asks
    assert sum(given["entailer"].asked.values()) == 3 * pairs


@pytest.mark.parametrize("part", ["factcheck", "consistency"])
def test_where_one_part_is_not_assessable_the_whole_is_not_and_says_which(part: str) -> None:
    model = Keeper()
    record = sample() if part == "consistency" else sample(documents=[])
    others: dict[str, Any] = {"distractors": Few()} if part == "consistency" else {}
    found = assessed(record, model=model, **others)
    assert (found.score, found.verdict, found.error) == (None, None, None)
    assert found.reason.startswith(f"{part} is not assessable: ")
    assert model.requests == []
    assert TrustScore().problem(found) == found.reason


class Mute(Keeper):
    """Says nothing that can be read of what ``mute`` names."""

    def __init__(self, mute: str) -> None:
        super().__init__()
        self.mute = mute

    async def reply(self, request: Any) -> Any:
        found = await super().reply(request)
        mute = self.mute in request.messages[0].content.rsplit("Question: ", 1)[1]
        return dataclasses.replace(found, text="Hm.") if mute else found


@pytest.mark.parametrize("verdict", list(PASSAGES))
def test_replies_that_cannot_be_read_leave_a_score_open_between_two(verdict: str) -> None:
    found = assessed(sample(verdict=verdict), model=Mute("lamp 0"))
    assert (found.score, found.verdict) == (None, None)
    ends = TABLE[verdict, False], TABLE[verdict, True]  # type: ignore[index]
    assert (found.parts["lowest"], found.parts["highest"], found.parts["open"]) == (*ends, 1)
    assert found.parts["unparsed"] == 1
    records = [sample(0, verdict), sample(1, "contradict"), sample(2, documents=[])]
    run = score(records, metrics=TrustScore(checks=3), **who(Mute("lamp 0")))
    summary = run.summary["trustscore"]
    assert summary["mean"] == pytest.approx(0.2)
    assert summary["open"] == 1
    assert summary["mean_low"] == pytest.approx((ends[0] + 0.2) / 2)
    assert summary["mean_high"] == pytest.approx((ends[1] + 0.2) / 2)
    assert summary["unparsed"] == 0.5  # of two answers that the model was asked about


def test_an_open_claim_leaves_its_answer_between_two_scores() -> None:
    metric = TrustScore(checks=2, claims=True)
    found = assessed(sample(response=LONG), metric, model=Mute("oil"))
    assert [row["score"] for row in found.evidence] == [1.0, None, 1.0]
    assert (found.score, found.parts["open"]) == (1.0, 1)
    assert found.parts["lowest"] == pytest.approx(2.8 / 3)
    assert found.parts["highest"] == 1


class Few(Source):
    def substitutes(self, requests: Any) -> list[list[str]]:
        return [[] for _ in requests]


def failing(premise: str, hypothesis: str) -> tuple[float, ...]:
    raise ZeroDivisionError


def test_a_failure_of_one_part_fails_the_sample_when_the_other_is_done() -> None:
    model = Keeper()
    found = assessed(sample(), model=model, entailer=Recorder(failing))
    assert found.score is None
    assert found.error is not None
    assert "ZeroDivisionError" in found.error
    assert len(model.requests) == 3


def test_a_retriever_and_a_judge_serve() -> None:
    judge, corpus = Judge("CONTRADICTS\nPassage 1."), Corpus("It says yes.")
    metric = TrustScore(checks=3, fact_by="model", k=4)
    run = score([sample()], metrics=metric, **who(retriever=corpus, judge=judge, entailer=None))
    assert run.assessments[0].score == 0.2
    assert corpus.queries[0][1] == 4
    assert len(judge.requests) == 1


# ------------------------------------------------------------------------------ options


def test_every_option_of_both_parts_is_reachable_under_its_own_default() -> None:
    own = {f.name: f.default for f in dataclasses.fields(TrustScore)}
    for part, others in ((Consistency, {}), (FactCheck, {"by", "prompt", "max_tokens"})):
        for option in dataclasses.fields(part):
            name = f"fact_{option.name}" if option.name in others else option.name
            assert own[name] == option.default, name
    assert set(own) - {f.name for p in (Consistency, FactCheck) for f in dataclasses.fields(p)} == {
        *("fact_by", "fact_prompt", "fact_max_tokens"),
        *("claims", "splitter"),
    }


def test_options_reach_their_part(tmp_path: Path) -> None:
    file = tmp_path / "own.jinja"
    file.write_text("{{ question }} {{ answer }}")
    metric = TrustScore(
        checks=5, by="auto", max_tokens=7, k=2, threshold=0.9, rule="stronger", fact_by="model"
    )
    assert (metric.consistency.checks, metric.consistency.by) == (5, "auto")
    assert metric.consistency.max_tokens == 7
    facts = metric.factcheck
    assert (facts.k, facts.threshold, facts.rule, facts.by) == (2, 0.9, "stronger", "model")
    facts = TrustScore(
        statement=str(file), hypothesis=str(file), fact_prompt=str(file), fact_max_tokens=9
    ).factcheck
    assert (facts.statement, facts.hypothesis, facts.prompt) == (str(file),) * 3
    assert facts.max_tokens == 9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checks": 0}, "checks: expected 1 or more"),
        ({"k": 0}, "fact check: k: expected 1 or more"),
        ({"fact_by": "m"}, "fact check: unknown value of by 'm'"),
        ({"splitter": "senx"}, "unknown sentence splitter 'senx'"),
        ({"claims": True, "sources": "given"}, "sources: given does not work with claims=yes"),
    ],
)
def test_a_value_that_cannot_be_is_told(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TrustScore(**options)


def test_it_needs_what_its_parts_need() -> None:
    needs = [(n.requested.name, n.role) for n in list_demands([TrustScore(fact_by="model")])]
    assert needs == [
        *(("chat", "judge"), ("search", ""), ("chat", "model")),
        *(("substitutes", ""), ("link", ""), ("chat", "generator")),
    ]
    assert len(TrustScore().needs()) == len(set(TrustScore().needs()))
    assert TrustScore(sources="pool").pool
    assert not TrustScore().pool


# ------------------------------------------------------------------------------ claims

LONG = "Lamps stand inside red houses [1]. They burn oil.\n\n- Tables are made from green wood."


@pytest.mark.parametrize("claims", [False, True])
def test_the_facts_are_read_twice_and_nobody_is_asked_again(claims: bool) -> None:
    model, metric = Keeper(), TrustScore(checks=2, claims=claims)
    found = assessed(sample(verdict="contradict", response=LONG), metric, model=model)
    asked = len(model.requests)
    second = Recorder(lambda *_: (0.99, 0.01, 0.0))
    second.name = "careful"
    given = {"model": model, "second": second, "second_alone": True}
    again = assessed(sample(verdict="contradict", response=LONG), metric, **given)
    assert (found.verdict, again.verdict) == ("contradict, consistent", "support, consistent")
    assert again.parts["second"] == sum(second.asked.values()) == (3 if claims else 1)
    assert len(model.requests) == 2 * asked  # once in each run


def test_each_sentence_is_an_answer_of_its_own() -> None:
    model = Keeper(lambda text: "oil" not in text)
    found = assessed(sample(response=LONG), TrustScore(checks=2, claims=True), model=model)
    texts = [row["text"] for row in found.evidence]
    assert texts == [
        "Lamps stand inside red houses.",
        "They burn oil.",
        "Tables are made from green wood.",
    ]
    assert [row["score"] for row in found.evidence] == [1.0, 0.8, 1.0]
    assert found.score == pytest.approx(2.8 / 3)
    assert found.verdict == "support, inconsistent"
    assert [row.get("weakest", False) for row in found.evidence] == [False, True, False]
    assert found.parts == {
        "assessable": 1,
        "claims": 3,
        "claims_assessable": 3,
        "weakest": 0.8,
        "trust_bc": pytest.approx(2 / 3),
        "trust_fc": 1,
        "lowest": pytest.approx(2.8 / 3),
        "highest": pytest.approx(2.8 / 3),
        "open": 0,
        "unparsed": 0,
    }
    offered = {request.messages[-1].content for request in model.requests}
    assert len(offered) == 2 + 1 + 2
    hypotheses = [row["factcheck"]["evidence"][0]["hypothesis"] for row in found.evidence]
    assert hypotheses == [f"Where does lamp 0 stand? {text}" for text in texts]
    why = TrustScore(claims=True).problem(found)
    assert why == "weakest claim, 'They burn oil.': the model does not choose its own answer again"


def test_a_claim_that_is_not_assessable_enters_no_mean() -> None:

    record = sample(response="They burn oil. Lamps stand inside red houses.", verdict="neutral")
    found = assessed(record, TrustScore(checks=2, claims=True), distractors=OnlyLamps())
    assert [row["score"] for row in found.evidence] == [None, 0.6]
    assert found.score == 0.6
    assert found.reason.startswith("mean of 1 of 2 claims; weakest: claim 2")
    assert (found.parts["claims"], found.parts["claims_assessable"]) == (2, 1)
    none = assessed(record, TrustScore(checks=2, claims=True), distractors=Few())
    assert (none.score, none.error) == (None, None)
    assert none.reason.startswith("not assessable: no claim of 2 is; consistency is not")


class OnlyLamps(Source):
    """Knows substitutes of the second sentence's words alone."""

    def substitutes(self, requests: Any) -> list[list[str]]:
        known = ("lamps", "stand", "inside", "red", "houses")
        found = super().substitutes(requests)
        return [
            one if request.words.lower() in known else []
            for request, one in zip(requests, found, strict=True)
        ]


def test_an_answer_of_one_sentence_has_the_same_score_either_way() -> None:
    for verdict in PASSAGES:
        plain = assessed(sample(verdict=verdict))
        by_claim = assessed(sample(verdict=verdict), TrustScore(checks=3, claims=True))
        assert by_claim.score == plain.score
        assert by_claim.verdict == plain.verdict


@pytest.mark.parametrize("response", ["... [1] !", "Hello! Is there anything else?"])
def test_an_answer_without_a_claim_fails(response: str) -> None:
    found = assessed(sample(response=response), TrustScore(claims=True))
    assert found.error == "the response claims nothing"


def test_the_scores_of_both_parts_are_figures_with_intervals_and_have_a_direction() -> None:
    verdicts = ["support", "contradict", "neutral", "support"]
    responses = ["A green door.", "A red house.", "A red house."]
    records = [
        sample(place, verdicts[place % 4], response=responses[place % 3]) for place in range(60)
    ]
    model = Keeper(lambda text: "green" not in text)
    run = score(records, metrics=TrustScore(checks=2), **who(model))
    summary, parts = run.summaries["trustscore"], [one.parts for one in run.assessments]
    for name in ("trust_bc", "trust_fc"):
        values = [part[name] for part in parts]
        assert len(set(values)) > 1
        assert summary.values[name] == pytest.approx(sum(values) / 60)
        low, high = summary.intervals[name]
        assert low < sum(values) / 60 < high
        assert TrustScore.part_directions[name] == "higher"
    assert summary.values["trust_fc"] == pytest.approx((1 + 0 + 0.5 + 1) / 4)
    assert summary.values["trust_bc"] == pytest.approx(2 / 3)


def test_without_evidence_neither_part_has_a_score() -> None:
    result = assessed(sample(documents=[]))
    assert {"trust_bc", "trust_fc"} & result.parts.keys() == set()


def test_claims_are_told_in_settings_title_and_figures() -> None:
    plain, by_claim = TrustScore(), TrustScore(claims=True)
    assert by_claim.settings()["claims"] is True
    assert plain.title == "TrustScore (Trust_OV)"
    assert by_claim.title == "TrustScore by claim (mean Trust_OV)"
    assert {"weakest", "claims", "claims_assessable"} == set(by_claim.figures) - set(plain.figures)
    again = metric_from_settings("trustscore", by_claim.settings())
    assert again == by_claim

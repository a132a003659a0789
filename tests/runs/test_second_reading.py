"""A second reader: what it reads, what it changes, and what follows for all answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.support import Recorder, lines, repeats, summary_of
from trustassay import plan, rescore, score, scorer
from trustassay.core.capabilities import BatchLimits
from trustassay.errors import BackendError, UsageError
from trustassay.input.records import InputError
from trustassay.judging.second_reader import SecondReaderOptions
from trustassay.metrics import Faithfulness
from trustassay.runs.calibrator import (
    CalibratedScore,
    Calibrator,
    ScoreOrigin,
    check_calibrator,
)
from trustassay.runs.remarks import describe_second_readings
from trustassay.runs.second_reading import FirstFinding, choose_answers, estimate_look_share

Probs = tuple[float, float, float]
YES, OPEN, NO = (0.9, 0.05, 0.05), (0.1, 0.85, 0.05), (0.05, 0.05, 0.9)
AGAINST = (0.1, 0.0, 0.9)
METRIC = Faithfulness()


def sample(i: int, right: bool, seen: bool, *, cites: bool = False) -> dict[str, Any]:
    """An answer that is ``right``, and ``seen`` to be so, or not, by the first reader."""
    words = f"The lamp {i} is {'red' if right else 'blue'} and {'plain' if seen else 'odd'}"
    mark = " [1]" if cites else ""
    return {
        "id": f"q{i}",
        "question": f"What is lamp {i}?",
        "response": f"{words}{mark}.",
        "documents": [f"The lamp {i} stands here. It is red, plain and odd. Nobody bought it."],
    }


def first(_: str, hypothesis: str) -> Probs:
    """See what it sees: a right answer that is odd is not, a wrong one that is odd is supported."""
    return YES if ("red" in hypothesis) == ("plain" in hypothesis) else OPEN


def truth(premise: str, hypothesis: str) -> Probs:
    return YES if "blue" not in hypothesis and "red" in premise else NO


def reader(judge: Any, name: str) -> Recorder:
    made = Recorder(judge, limits=BatchLimits(items=1))
    made.name = name
    return made


def run(path: Path, samples: Sequence[dict[str, Any]], judge: Any = truth, **how: Any) -> Recorder:
    """Score with both readers; return the second one."""
    second = reader(judge, "careful")
    metric = how.pop("metric", "faithfulness")
    own = {"metrics": metric, "entailer": reader(first, "hasty"), "second": second, "out": path}
    score(samples, cache=None, report=False, **own, **how)
    return second


def told(path: Path, metric: str = "faithfulness") -> dict[str, Any]:
    found: dict[str, Any] = summary_of(path)["second"][metric]
    return found


MIXED = [
    sample(i, right=i % 4 != 0, seen=i % 5 != 0)  # 25 % wrong; the first errs on every fifth
    for i in range(100)
]


@pytest.mark.parametrize("metric", ["faithfulness", "grounding"])
def test_flags_are_lifted_and_what_was_missed_is_found(tmp_path: Path, metric: str) -> None:
    samples = [
        sample(0, right=True, seen=True, cites=True),
        sample(1, right=True, seen=False, cites=True),  # flagged, in the right
        sample(2, right=False, seen=True, cites=True),  # flagged, wrong
        sample(3, right=False, seen=False, cites=True),  # missed
    ]
    run(tmp_path, samples, metric=metric, second_share=1.0)
    found = {line["id"]: line for line in lines(tmp_path / "assessments.jsonl")}
    assert [found[f"q{i}"]["score"] for i in range(4)] == [1.0, 1.0, 0.0, 0.0]
    assert told(tmp_path, metric) == {
        "reader": "careful",
        "answers": 4,
        "read": 4,
        "statements": 4,
        "unread": 0,
        "failed": 0,
        "lifted": 1,
        "set": 1,
        "share": 0.5,
        "interval": [0.5, 0.5],
        "drawn": 2,
        "without": "",
    }
    row = found["q1"]["evidence"][0]
    assert row["first"] == pytest.approx(0.1)
    assert row["entailment"] == pytest.approx(0.5, abs=0.01)  # .1 and .9 together


def fact_checked(path: Path, judge: Any = truth, **how: Any) -> dict[str, dict[str, Any]]:
    """Score four answers by what the first reader takes for a contradiction."""
    samples = [sample(i, right=i < 2, seen=i % 2 == 0) for i in range(4)]
    hasty = reader(
        lambda _, said: YES if ("red" in said) == ("plain" in said) else AGAINST, "hasty"
    )
    own: dict[str, Any] = {"metrics": "factcheck", "entailer": hasty, "out": path, **how}
    score(samples, second=reader(judge, "careful"), cache=None, report=False, **own)
    return {line["id"]: line for line in lines(path / "assessments.jsonl")}


def test_a_fact_check_is_read_twice(tmp_path: Path) -> None:
    """The first reader is wrong of the second and the fourth answer."""
    found = fact_checked(tmp_path, second_share=1.0)
    assert [found[f"q{i}"]["verdict"] for i in range(4)] == ["support"] * 2 + ["contradict"] * 2
    assert told(tmp_path, "factcheck")["read"] == told(tmp_path, "factcheck")["statements"] == 4
    assert (told(tmp_path, "factcheck")["lifted"], told(tmp_path, "factcheck")["set"]) == (1, 1)
    parts, reason = found["q1"]["parts"], found["q1"]["reason"]
    assert parts["entailment"] == pytest.approx(0.5)  # .1 and .9 together
    assert reason.startswith("both readers: the passages support the answer (entailment 0.50")
    assert "first reader: passage 1 contradicts the answer (contradiction 0.90)" in reason
    assert not any(row.get("decides") for row in found["q1"]["evidence"])


def test_by_default_it_reads_what_is_flagged_and_some_others_at_random(tmp_path: Path) -> None:
    second = run(tmp_path, MIXED, second_share=0.1)
    summary = told(tmp_path)
    flagged = sum(
        json.loads((tmp_path / "second.json").read_text())["metrics"]["faithfulness"][i][1]
        for i in range(100)
    )
    assert summary["drawn"] == 20
    assert summary["read"] == flagged + 20
    assert second.asked.total() == summary["statements"] == summary["read"]
    assert summary["lifted"] == 15
    low, high = summary["interval"]
    assert low < 0.25 < high
    (words,) = describe_second_readings(summary_of(tmp_path))
    assert (
        f"read {summary['read']} of 100 answers: 15 are no longer flagged, 0 are newly flagged"
        in words
    )


def test_a_budget_takes_the_worst_first_and_the_random_ones_in_any_case(tmp_path: Path) -> None:
    run(tmp_path / "few", MIXED, second_share=0.1, second_budget="30")
    run(tmp_path / "share", MIXED, second_share=0.1, second_budget="30%")
    run(tmp_path / "none", MIXED, second_share=0, second_budget="7")
    assert told(tmp_path / "few") == told(tmp_path / "share")
    assert told(tmp_path / "few")["read"] == 30
    none = told(tmp_path / "none")
    assert (none["read"], none["share"]) == (7, None)
    assert none["without"] == "no answer was drawn at random"


def test_seconds_are_a_budget_too(tmp_path: Path) -> None:
    run(tmp_path / "long", MIXED, second_budget="600s")
    long = told(tmp_path / "long")
    assert (long["read"], long["unread"], long["interval"]) == (100, 0, [0.25, 0.25])
    run(tmp_path / "short", MIXED, second_budget="0.000001s")
    short = told(tmp_path / "short")
    assert short["unread"] + short["read"] == 100
    assert short["unread"] > 90
    assert run(tmp_path / "short", MIXED, second_budget="0.000001s").asked.total() == 0


def test_an_answer_whose_flags_are_lifted_is_read_whole(tmp_path: Path) -> None:
    wrong, right = sample(1, right=False, seen=False), sample(2, right=True, seen=False)
    both = {**wrong, "response": f"{right['response']} {wrong['response']}"}
    both["documents"] = [*wrong["documents"], *right["documents"]]
    second = run(tmp_path, [both], second_share=0)
    (found,) = lines(tmp_path / "assessments.jsonl")
    assert [row["verdict"] for row in found["evidence"]] == ["supported", "contradicted"]
    assert found["parts"]["second"] == second.asked.total() == 2


def test_stopped_it_goes_on_with_the_same_answers(tmp_path: Path) -> None:
    calls = 0

    def tired(premise: str, hypothesis: str) -> Probs:
        nonlocal calls
        calls += 1
        if calls > 10:
            raise BackendError("gone home")
        return truth(premise, hypothesis)

    run(tmp_path / "whole", MIXED)
    run(tmp_path / "stopped", MIXED, tired)
    stopped = told(tmp_path / "stopped")
    assert stopped["failed"] == stopped["unread"] == 45
    assert (
        ". It failed on 45 answers" in describe_second_readings(summary_of(tmp_path / "stopped"))[0]
    )
    before = calls
    again = run(tmp_path / "stopped", MIXED)
    assert again.asked.total() == told(tmp_path / "whole")["statements"] - 10 < before
    assert told(tmp_path / "stopped") == told(tmp_path / "whole")
    assert run(tmp_path / "stopped", MIXED).asked.total() == 0
    assert rescore(
        tmp_path / "whole",
        out=tmp_path / "again",
        second=reader(truth, "careful"),
        entailer=reader(first, "hasty"),
        cache=None,
    )
    assert told(tmp_path / "again") == told(tmp_path / "whole")


def test_one_that_reads_nothing_leaves_what_the_first_found(tmp_path: Path) -> None:
    def away(*_: str) -> Probs:
        raise BackendError("nobody is there")

    run(tmp_path, MIXED, away)
    found = told(tmp_path)
    assert (found["read"], found["lifted"], found["share"]) == (0, 0, None)
    assert found["without"] == "no answer of the random part was read"
    assert summary_of(tmp_path)["metrics"]["faithfulness"]["failed"] == 0


def test_alone_its_verdict_counts(tmp_path: Path) -> None:
    sure = sample(1, right=False, seen=False)
    run(tmp_path, [sure], lambda *_: (0.4, 0.6, 0.0), second_share=1, second_alone=True)
    (found,) = lines(tmp_path / "assessments.jsonl")
    assert found["evidence"][0]["entailment"] == 0.4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"second_budget": "much"}, "second_budget: expected a number of answers, a share"),
        ({"second_budget": "0"}, "second_budget: expected"),
        ({"second_budget": "120%"}, "second_budget: expected"),
        ({"second_share": 2.0}, "second_share: expected 0 to 1"),
    ],
)
def test_wrong_options_start_nothing(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run(tmp_path / "run", MIXED[:2], **given)
    assert not (tmp_path / "run").exists()


def test_a_calibrator_of_the_first_reader_alone_is_refused(tmp_path: Path) -> None:
    run(tmp_path, MIXED[:2])
    settings = json.loads((tmp_path / "run.json").read_text())
    own = settings["metrics"]["faithfulness"]
    origin = ScoreOrigin("run", "faithfulness", "", own, {"entailer": "hasty"})
    score_of_run = CalibratedScore("faithfulness", 1, origin)
    calibrator = cast(Calibrator, SimpleNamespace(score=score_of_run))
    with pytest.raises(InputError, match=r"other models .* second 'careful', not None"):
        check_calibrator(calibrator, settings["metrics"], settings["backends"], "runs/new")


def test_options_without_a_second_reader_and_one_that_nobody_uses(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="need a second reader"):
        score(MIXED[:2], metrics="faithfulness", second_share=0.2, cache=None)
    with pytest.raises(UsageError, match="--second is given, but reference does not use it"):
        gold = {"question": "q", "response": "r", "answers": ["r"]}
        score([gold], metrics="reference", second=reader(truth, "careful"), cache=None)
    shard = {
        **MIXED[0],
        "trustassay_shard": {
            "of": "x",
            "samples": 1,
            "skipped": 0,
            "into": 1,
            "number": 0,
            "order": 0,
        },
    }
    with pytest.raises(UsageError, match="a shard"):
        run(tmp_path, [shard])


# ---- the share of all answers ----


def shares(
    rng: np.random.Generator, n: int, per_unit: int, budget: str | None
) -> tuple[bool, float]:
    """Whether the interval holds the share that a reader of everything would find, and its width.

    The first reader sees 60 % of the bad answers, and flags a tenth of the good ones.
    """
    units = np.repeat(np.arange(n // per_unit), per_unit) if per_unit > 1 else None
    hard = rng.random(n) if units is None else (0.3 * rng.random(n) + 0.7 * rng.random(n)[units])
    bad = hard < 0.25
    flagged = np.where(bad, rng.random(n) < 0.6, rng.random(n) < 0.1)
    rows = [
        FirstFinding(i, bool(flagged[i]), False, float(0.5 * flagged[i] + 0.5 * rng.random()))
        for i in range(n)
    ]
    options = SecondReaderOptions(second_share=0.1, second_budget=budget)
    chosen = choose_answers(rows, n, units, options, METRIC, int(rng.integers(1 << 30)))
    read = {*chosen.drawn, *chosen.by_worth}
    now = {i: bool(bad[i] if i in read else flagged[i]) for i in range(n)}
    found = estimate_look_share(chosen, now, read, units)
    low, high = found["interval"]
    return low - 1e-6 <= bad.mean() <= high + 1e-6, high - low


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "per_unit", "budget"), [(200, 1, None), (1000, 1, "15%"), (600, 3, None), (100, 1, "30")]
)
def test_the_interval_holds_the_share_of_all(n: int, per_unit: int, budget: str | None) -> None:
    rng = np.random.default_rng(7)
    held = [shares(rng, n, per_unit, budget)[0] for _ in range(repeats(900))]
    assert 0.925 <= np.mean(held) <= 0.985


# ---- answers that come one by one ----


def test_a_scorer_reads_again_what_needs_a_look(tmp_path: Path) -> None:
    second = reader(truth, "careful")
    how: dict[str, Any] = {"entailer": reader(first, "hasty"), "second": second, "cache": None}
    with scorer(metrics="faithfulness", out=tmp_path, **how) as open_scorer:
        lifted = open_scorer.score(sample(1, right=True, seen=False))["faithfulness"]
        missed = open_scorer.score(sample(2, right=False, seen=False))["faithfulness"]
    assert (lifted.score, lifted.parts["second"]) == (1.0, 1.0)
    assert missed.score == 1.0
    assert second.asked.total() == 1


def test_a_plan_says_that_the_second_reader_is_not_in_it() -> None:
    found = plan(MIXED[:3], metrics="faithfulness", entailer=reader(first, "hasty"),
                 second=reader(truth, "careful"), cache=None)  # fmt: skip
    assert found.to_dict()["second"] == "careful"
    assert {part.backend for part in found.parts} == {"hasty"}


SPANISH = "La lámpara {} está en la casa verde, junto a la puerta del jardín."


def in_languages(spanish: int, english: int) -> list[dict[str, Any]]:
    """Answers in Spanish, every second of them supported, and in English ones of MIXED."""
    return MIXED[:english] + [
        {
            "id": f"s{i}",
            "question": "¿Dónde está la lámpara?",
            "response": SPANISH.format(("roja", "azul")[i % 2]),
            "documents": [SPANISH.format("roja")],
        }
        for i in range(spanish)
    ]


def reads(one: Recorder, *codes: str) -> Recorder:
    one.languages = codes  # type: ignore[attr-defined]
    return one


def both_languages(path: Path, samples: Sequence[dict[str, Any]], **how: Any) -> Recorder:
    """Score with a first reader of English alone."""
    second = reads(reader(lambda p, h: YES if h in p else truth(p, h), "s"), *how.pop("codes", ()))
    hasty = reads(reader(first, "h"), "en")
    options: dict[str, Any] = {"metrics": METRIC, "entailer": hasty, "second": second, "out": path}
    score(samples, cache=None, report=False, **options, **how)
    assert not any("lámpara" in hypothesis for _, hypothesis in hasty.asked)
    return second


def test_the_second_reads_alone_what_the_first_does_not_read(tmp_path: Path) -> None:
    second = both_languages(tmp_path, in_languages(4, 30))
    found = {line["id"]: line for line in lines(tmp_path / "assessments.jsonl")}
    assert [found[f"s{i}"]["score"] for i in range(4)] == [1, 0, 1, 0]
    told_why = "only the second reader read it: the first does not read its language; the quality"
    assert told_why in found["s0"]["reason"]
    assert found["s0"]["parts"]["second"] == 1
    assert "first" not in found["s0"]["evidence"][0]
    summary = summary_of(tmp_path)
    assert "languages" not in summary
    (words,) = describe_second_readings(summary)
    assert "of 30 answers" in words
    assert "It also read 4 answers in languages that the first reader does not read" in words
    asked = len(second.asked)
    again = both_languages(tmp_path, in_languages(4, 30))  # finished: nothing is read again
    assert asked
    assert not again.asked


@pytest.mark.parametrize(("budget", "alone"), [("50%", 3), ("2", 2), ("60s", 6), (None, 6)])
def test_a_budget_holds_for_what_it_reads_alone(
    tmp_path: Path, budget: str | None, alone: int
) -> None:
    both_languages(tmp_path, in_languages(6, 0), second_budget=budget)
    assert told(tmp_path)["alone"] == alone
    words = f"faithfulness: the second reader (s) read {alone} answers in languages that"
    assert describe_second_readings(summary_of(tmp_path))[0].startswith(words)
    assert summary_of(tmp_path).get("languages", {}) == (
        {"faithfulness": {"--entailer": {"es": 6 - alone}}} if alone < 6 else {}
    )


def test_a_number_of_answers_is_shared_out_in_proportion(tmp_path: Path) -> None:
    both_languages(tmp_path, in_languages(30, 90), second_budget="40", second_share=0.0)
    assert (told(tmp_path)["read"], told(tmp_path)["alone"]) == (30, 10)


def test_a_second_reader_that_does_not_read_it_either(tmp_path: Path) -> None:
    second = both_languages(tmp_path, in_languages(4, 4), codes=("en", "de"))
    assert not any("lámpara" in hypothesis for _, hypothesis in second.asked)
    assert summary_of(tmp_path)["languages"] == {"faithfulness": {"--entailer": {"es": 4}}}
    assert "alone" not in told(tmp_path)


def test_a_second_reader_that_was_measured_in_the_language(tmp_path: Path) -> None:
    both_languages(tmp_path, in_languages(1, 0), codes=("en", "es"))
    (line,) = lines(tmp_path / "assessments.jsonl")[-1:]
    assert line["score"] == 1
    assert line["reason"].endswith("the first does not read its language")


def test_a_scorer_has_it_read_alone() -> None:
    english = reads(reader(first, "hasty"), "en")
    how: dict[str, Any] = {"entailer": english, "second": reader(truth, "careful"), "cache": None}
    with scorer(metrics=METRIC, **how) as open_scorer:
        found = open_scorer.score(in_languages(2, 0)[1])["faithfulness"]
    assert (found.score, english.asked.total()) == (0, 0)
    assert "only the second reader read it" in found.reason


def test_the_answers_nearest_to_the_line_are_read_first() -> None:
    badness = [0.95, 0.7, 0.55, 0.5, 0.45, 0.2, 0.05]
    rows = [FirstFinding(i, bad > 0.52, False, bad) for i, bad in enumerate(badness)]
    options = SecondReaderOptions(second_share=0.0, second_budget="100%")
    chosen = choose_answers(rows, len(rows), None, options, Faithfulness(), 0)
    assert list(chosen.by_worth) == [2, 3, 4, 1, 5, 0, 6]
    none = [row._replace(flagged=False) for row in rows]
    assert list(choose_answers(none, len(rows), None, options, Faithfulness(), 0).by_worth)[:2] == [
        0,
        1,
    ]

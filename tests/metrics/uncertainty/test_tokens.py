"""Log-probabilities that came with answers: what is not used is counted, and refuses nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.uncertainty.test_metric import judge, only, recorded
from trustassay import score
from trustassay.cli.results import print_run
from trustassay.core.testing import ScriptedEntailer
from trustassay.metrics.uncertainty import Uncertainty
from trustassay.runs.remarks import write_remarks

TOKENS = [["Can", -0.5], ["berra", -0.25], [".", -0.125]]
TOKEN_PARTS = ("nll", "mean_nll", "weakest_token", "cocoa_nll", "cocoa_mean_nll")


def assess(samples: Sequence[dict[str, Any]], **options: Any) -> Any:
    metric = options.pop("metric", Uncertainty())
    return score(samples, metrics=[metric], entailer=ScriptedEntailer(judge), cache=None, **options)


def remarks_on(run: Any) -> list[str]:
    return [line for line in write_remarks(run.summary_file, 1) if line.startswith("uncertainty: ")]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([["Sydney", -0.1]], "of another text"),
        (TOKENS[:2], "of only a part of the text"),
        ([["Canberra.", 0.5]], "with numbers above 0"),
        ([["Canberra."]], "without numbers for most tokens"),
        ({"avgLogprobs": -0.2}, "with one number for the whole text"),
        (
            {"tokens": ["Canberra", "."], "token_logprobs": [-0.1]},
            "with texts and numbers in lists",
        ),
        ("Canberra.", "in an unknown format"),
    ],
)
def test_what_cannot_be_used_leaves_everything_else_as_it_is(value: Any, reason: str) -> None:
    run = assess([recorded(id="first", token_logprobs=value), recorded(id="second")])
    found, without = run.assessments
    assert found.error is None
    assert found.score == without.score == pytest.approx(0.5)
    assert found.parts.keys().isdisjoint(TOKEN_PARTS)
    assert found.parts["tokens"] == 0
    (remark,) = remarks_on(run)
    start = f"uncertainty: token_logprobs of 1 of 2 answers not used: 1 {reason}"
    assert remark.startswith(start)
    assert remark.endswith("(first: first)")


def test_a_score_from_tokens_that_cannot_be_used_says_why() -> None:
    result = only(recorded(token_logprobs=[["Sydney", -0.1]]), metric=Uncertainty(score="nll"))
    assert result.score is None
    message = "not assessable: needs token log-probabilities of the answer"
    assert result.reason == f"{message} (token_logprobs: of another text)"


def test_a_token_without_a_number_is_in_no_figure_and_counted() -> None:
    run = assess([recorded(token_logprobs=[["Can", None], *TOKENS[1:]])])
    (found,) = run.assessments
    assert found.parts["nll"] == pytest.approx(0.375)
    assert found.parts["mean_nll"] == pytest.approx(0.1875)
    assert (found.parts["tokens"], found.parts["tokens_left_out"]) == (2, 1)
    assert remarks_on(run) == [
        "uncertainty: 1 token of 1 answer left out for lack of a log-probability (first: q)"
    ]


@pytest.mark.parametrize("number", [-math.inf, -9999.0])
def test_a_token_too_unlikely_for_a_number_is_the_weakest_and_in_no_sum(number: float) -> None:
    alternatives = [["berra", -0.25], ["cun", -1.5]]
    expected = [[*token, alternatives] for token in TOKENS]
    expected[1][1] = number
    run = assess([recorded(token_logprobs=expected)], metric=Uncertainty(parts="auto+claims"))
    (found,) = run.assessments
    assert found.parts["weakest_token"] == 1
    assert {"nll", "mean_nll", "cocoa_nll", "ccp"}.isdisjoint(found.parts)
    assert found.parts["cocoa_entropy"] > 0
    assert [row["text"] for row in found.evidence if row["kind"] == "token"] == ["berra"]
    assert remarks_on(run) == [
        "uncertainty: 1 of 1 answer without nll and mean_nll: a token is too unlikely to have a "
        "number (first: q)"
    ]
    only_nll = only(recorded(token_logprobs=expected), metric=Uncertainty(score="mean_nll"))
    assert (
        only_nll.reason == "not assessable: the endpoint gives no number for a very unlikely token"
    )


def test_answers_without_log_probabilities_are_counted_beside_those_with_them() -> None:
    run = assess([recorded(id="a", token_logprobs=TOKENS), recorded(id="b"), recorded(id="c")])
    assert remarks_on(run) == [
        "uncertainty: 1 of 3 answers have log-probabilities; figures about tokens cover only these"
    ]
    assert run.summaries["uncertainty"].support["nll"] == 1
    assert remarks_on(assess([recorded(token_logprobs=TOKENS)])) == []
    # Of parts that need no tokens there is nothing to say.
    other = assess(
        [recorded(id="a", token_logprobs=TOKENS), recorded(id="b")],
        metric=Uncertainty(parts="sentences"),
    )
    assert remarks_on(other) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([-1.0], "with more or fewer entries than replies"),
        ({"a": -1.0}, "with more or fewer entries than replies"),
        ([1.0, -1.0, -1.0, -1.0], "with numbers above 0"),
        ([None, -1.0, -1.0, -1.0], "without numbers for most tokens"),
        ([-math.inf, -1.0, -1.0, -1.0], "without numbers for most tokens"),
        ([[["Sydney", -1.0]], -1.0, -1.0, -1.0], "of another text"),
    ],
)
def test_likelihoods_of_replies_that_cannot_be_used_are_counted(value: Any, reason: str) -> None:
    run = assess([recorded(resample_logprobs=value)])
    (found,) = run.assessments
    assert found.error is None
    assert found.score == pytest.approx(0.5)
    assert "semantic_entropy_weighted" not in found.parts
    assert (
        f"resample_logprobs of 1 of 1 answer not used: 1 {reason} (first: q)" in remarks_on(run)[0]
    )


def test_they_are_counted_only_where_they_are_needed() -> None:
    expected = recorded(resample_logprobs=[-1.0])
    assert remarks_on(assess([expected], metric=Uncertainty(parts="sentences"))) == []
    (remark,) = remarks_on(assess([expected], metric=Uncertainty(parts="meanings")))
    assert remark.startswith("uncertainty: resample_logprobs of 1 of 1 answer not used")


def test_the_likelihood_of_a_reply_is_that_of_its_tokens() -> None:
    numbers = [-1.0, -2.0, -3.0, -4.0]
    # "Canberra", and an end-of-text token, which is none of the reply.
    expected = [[["Can", -0.5], ["berra", -0.5], ["</s>", -9.0]], *numbers[1:]]
    weighted = [
        only(recorded(resample_logprobs=value)).parts["semantic_entropy_weighted"]
        for value in (numbers, expected)
    ]
    assert weighted[0] == weighted[1]


@pytest.mark.parametrize(
    "name",
    [
        *("token_logprobs", "logprobs", "response_logprobs", "responseLogprobs", "log_probs"),
        *("Output Logprobs", "logprobsResult", "completion_probabilities"),
    ],
)
def test_files_name_the_field_in_several_ways(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(recorded(**{name: TOKENS})), encoding="utf-8")
    (found,) = assess(path).assessments  # type: ignore[arg-type]
    assert found.parts["nll"] == pytest.approx(0.875)


@pytest.mark.parametrize("name", ["resample_logprobs", "sampled_logprobs", "sampledLogprobs"])
def test_so_do_they_with_the_replies(name: str) -> None:
    result = only(recorded(**{name: [-1.0, -2.0, -3.0, -4.0]}))
    assert "semantic_entropy_weighted" in result.parts


@pytest.mark.parametrize(
    ("cell", "nll"),
    [
        (json.dumps(TOKENS), 0.875),
        (json.dumps({"content": [{"token": "Canberra.", "logprob": -0.5}]}), 0.5),
        (str([tuple(token) for token in TOKENS]), 0.875),
        ("[('Can', nan), ('berra', -0.25), ('.', -0.125)]", 0.375),
        ("[-0.5, -0.25, -0.125]", 0.875),
        ("", None),
        ("nan", None),
    ],
)
def test_a_cell_of_a_table_is_read_as_it_was_printed(
    tmp_path: Path, cell: str, nll: float | None
) -> None:
    row = {**recorded(), "resamples": json.dumps(recorded()["resamples"]), "logprobs": cell}
    texts = (f'"{value}"' for value in (str(v).replace('"', '""') for v in row.values()))
    path = tmp_path / "log.csv"
    path.write_text(f"{','.join(row)}\n{','.join(texts)}\n", encoding="utf-8")
    run = assess(path)  # type: ignore[arg-type]
    (found,) = run.assessments
    assert found.parts.get("nll") == (nll and pytest.approx(nll))
    assert not any("not used:" in remark for remark in remarks_on(run))


def test_a_file_with_numbers_that_json_lacks_is_reported_as_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.jsonl"
    samples = [
        recorded(id="nan", token_logprobs=[["Can", math.nan], *TOKENS[1:]]),
        recorded(id="inf", token_logprobs=[*TOKENS[:2], [".", -math.inf]]),
        recorded(id="two\nlines", token_logprobs=[["Sydney", -0.1]]),
    ]
    path.write_text("\n".join(map(json.dumps, samples)), encoding="utf-8")
    assert "NaN" in path.read_text("utf-8")
    run = assess(path, out=tmp_path / "run")  # type: ignore[arg-type]
    assert [item.error for item in run.assessments] == [None] * 3
    assert print_run(run, as_json=False) == 0
    remark = "token_logprobs of 1 of 3 answers not used: 1 of another text (first: two lines)"
    assert remark in " ".join(capsys.readouterr().err.split())
    assert remark in (tmp_path / "run/report.html").read_text("utf-8")
    # The summary is strict JSON.
    json.loads((tmp_path / "run/summary.json").read_text("utf-8"), parse_constant=pytest.fail)

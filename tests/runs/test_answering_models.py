"""An answer belongs to the model that gave it: which model is asked about which sample."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.metrics.harmonicity.helpers import Model, Words
from tests.support import jsonl, lines, summary_of
from trustassay import Run, SampleError, plan, rescore, score, scorer, watch
from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.cli.results import show_run
from trustassay.core.sample import Sample
from trustassay.errors import MODEL_NOT_GIVEN, ModelNotGivenError, RunFolderError, UsageError
from trustassay.metrics import Faithfulness, Harmonicity
from trustassay.runs.answering_models import (
    ModelCensus,
    find_same_model,
    is_other_model,
    settle_models,
)
from trustassay.runs.counts import ModelNamer
from trustassay.runs.folder import RunFolder, find_run_model
from trustassay.runs.generate import GenerateOptions, generate
from trustassay.runs.needs import name_models
from trustassay.runs.remarks import describe_asked_instead, describe_left_out, write_remarks
from trustassay.view.index import _answering_models

METRIC = "harmonicity:perturbations=3"


def steady(name: str = "steady") -> Model:
    """A model that gives one answer to everything."""
    model = Model()
    model.name = name
    return model


def moving(name: str = "moving") -> Model:
    """A model that answers each prompt in other words."""
    model = Model(lambda text: f"word{len(text)}{ord(text[-1])} and {sum(map(ord, text))}")
    model.name = name
    return model


def answers(*models: str | None, n: int = 3) -> list[dict[str, Any]]:
    """Return answers of models to the same questions."""
    return [
        {
            "id": f"{model}-{number}",
            "question": f"What is the capital of country {number}?",
            "response": "Paris.",
            **({"model": model} if model else {}),
        }
        for model in models
        for number in range(n)
    ]


def assess(samples: Sequence[Mapping[str, Any]], model: Any, **options: Any) -> Run:
    every: dict[str, Any] = {"metrics": METRIC, "embedder": Words(), "cache": None, "report": False}
    return score(samples, model=model, **(every | options))


def values(run: Run) -> dict[str, float | None]:
    return {assessment.id: assessment.score for assessment in run.assessments}


def kinds(run: Run) -> dict[str, str | None]:
    return {assessment.id: assessment.fault for assessment in run.assessments}


def test_each_model_is_asked_about_its_answers_alone_and_gets_the_value_it_gets_alone() -> None:
    big, small = steady("big-1"), moving("small-1")
    run = assess(answers("big", "small"), {"big": big, "small": small})
    alone = {
        **values(assess(answers("big"), {"big": steady()})),
        **values(assess(answers("small"), {"small": moving()})),
    }
    assert values(run) == alone
    assert alone["big-0"] == 0
    assert (alone["small-0"] or 0) > 0.2
    groups = run.summary_file["groups"]["harmonicity"]["groups"]
    assert [(group["model"], group["score"]["n"]) for group in groups] == [("big", 3), ("small", 3)]
    # Perturbed prompts follow from the sample's id, so that each model sees prompts of its own.
    assert not set(big.asked) & set(small.asked) - {row["question"] for row in answers("big")}


@pytest.mark.parametrize(
    "metric",
    [
        "semantic_harmonicity:perturbations=2",
        "consistency",
        "uncertainty:parts=p_true",
        "uncertainty:parts=selfcheck_prompt",
        "uncertainty",
        "trustscore",
    ],
)
def test_every_metric_that_asks_the_model_asks_the_one_that_gave_the_answer(metric: str) -> None:
    big, small = steady("big-1"), steady("small-1")
    documents = ["Paris is the capital of France."]
    samples = [{**row, "documents": documents} for row in answers("big", "small", "tiny", n=1)]
    run = assess(samples, {"big": big, "small": small}, metrics=metric, embedder=None)
    assert sum(big.asked.values()) > 0
    assert sum(small.asked.values()) > 0
    assert kinds(run)["tiny-0"] == MODEL_NOT_GIVEN
    used = {assessment.id: set(assessment.usage) for assessment in run.assessments}
    assert used == {"big-0": {"big-1"}, "small-0": {"small-1"}, "tiny-0": set()}


def test_answers_of_a_model_that_is_not_given_are_left_out_and_counted_by_name(
    tmp_path: Path,
) -> None:
    big, small = steady("big-1"), moving("small-1")
    samples = answers("big", "small", "tiny", None, n=2)
    run = assess(samples, {"big": big, "small": small}, out=tmp_path / "run", report=True)
    assert Counter(kinds(run).values()) == {None: 4, MODEL_NOT_GIVEN: 4}
    summary = summary_of(tmp_path / "run")
    assert summary["left_out"] == {"harmonicity": {"tiny": 2, "": 2}}
    assert summary["outcomes"]["harmonicity"]["reasons"] == {"model not given": 4}
    assert summary["metrics"]["harmonicity"]["failed"] == 4
    page = (tmp_path / "run" / "report.html").read_text()
    assert "2 answers of tiny left out: no --model tiny=URI was given" in page
    assert "2 answers without a model left out" in page
    assert "model_not_given" not in page


def test_metrics_that_only_read_score_the_answers_of_all_models() -> None:
    samples = [{**row, "documents": ["Paris."]} for row in answers("big", "tiny")]
    metrics = [METRIC, "faithfulness"]
    run = assess(samples, {"big": steady()}, metrics=metrics, entailer="lexical")
    scored = Counter(a.metric for a in run.assessments if a.error is None)
    assert scored == {"harmonicity": 3, "faithfulness": 6}


def test_a_model_without_a_name_is_asked_about_the_answers_of_its_name(tmp_path: Path) -> None:
    big = steady("openai:org/BIG@http://127.0.0.1/v1")
    run = assess(answers("big", "small"), big, out=tmp_path / "run")
    assert kinds(run) == {
        row["id"]: None if row["model"] == "big" else MODEL_NOT_GIVEN
        for row in answers("big", "small")
    }
    stored = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert stored["backends"]["model"] == {"big": big.name}


def test_a_model_without_a_name_and_no_answers_of_it_are_refused_before_anything_is_asked() -> None:
    model = steady("openai:huge@http://127.0.0.1/v1")
    with pytest.raises(UsageError) as caught:
        assess(answers("big", "small", "small-it", n=2), model)
    message = str(caught.value)
    assert "big (2), small (2), small-it (2)" in message
    assert "--model big=openai:huge@http://127.0.0.1/v1" in message
    assert not model.asked


def test_a_single_model_answers_for_a_file_of_one_model_however_that_is_spelt() -> None:
    model = steady("openai:other@http://127.0.0.1/v1")
    run = assess(answers("Big (2026)"), model)
    assert set(kinds(run).values()) == {None}
    run = assess(answers(None), model)
    assert set(kinds(run).values()) == {None}


def test_the_table_says_which_model_was_asked_about_answers_of_another_name() -> None:
    samples = [
        {**row, "domain": f"d{number % 2}"} for number, row in enumerate(answers("Big (2026)"))
    ]
    other = assess(samples, steady("openai:other@http://127.0.0.1/v1"))
    same = assess(samples, steady("openai:big (2026)@http://127.0.0.1/v1"))
    names = [
        {group["model"] for group in run.summary_file["groups"]["harmonicity"]["groups"]}
        for run in (other, same)
    ]
    asked = "Big (2026) (asked: openai:other@http://127.0.0.1/v1)"
    assert names == [{asked}, {"Big (2026)"}]


def test_another_model_that_was_asked_stands_in_the_remarks(tmp_path: Path) -> None:
    other = "openai:other@http://127.0.0.1/v1"
    run = assess(answers("small"), steady(other), out=tmp_path / "run", report=True)
    assert run.summary_file["asked_instead"] == {"harmonicity": {other: {"small": 3}}}
    sentence = f"3 answers of small: {other} was asked about them"
    assert any(sentence in remark for remark in write_remarks(run.summary_file, 3))
    assert sentence in (tmp_path / "run" / "report.html").read_text()
    again = rescore(tmp_path / "run", out=tmp_path / "two", embedder=Words(), cache=None)
    assert again.summary_file["asked_instead"] == run.summary_file["asked_instead"]
    planned = plan(answers("small"), model=steady(other), metrics=METRIC, cache=None)
    assert planned.asked_instead == planned.to_dict()["asked_instead"]
    assert planned.asked_instead == run.summary_file["asked_instead"]


@pytest.mark.parametrize("backend", ["openai:small@http://h/v1", "python:some:other"])
def test_the_same_model_or_one_without_a_name_is_no_other_model(backend: str) -> None:
    assert "asked_instead" not in assess(answers("small"), steady(backend)).summary_file


def test_a_metric_that_asked_nobody_names_no_model_that_was_asked() -> None:
    samples = [{**row, "documents": ["Paris."]} for row in answers("small")]
    model = steady("openai:other@http://127.0.0.1/v1")
    run = assess(samples, model, metrics=[METRIC, "faithfulness"], entailer="lexical")
    assert set(run.summary_file["asked_instead"]) == {"harmonicity"}


def test_answers_without_a_model_beside_named_ones_are_counted() -> None:
    model = steady("openai:big@http://127.0.0.1/v1")
    samples = answers("big", None)
    named = assess(samples, {"big": model}).summary_file
    assert named["asked_instead"] == {"harmonicity": {"big": {"": 3}}}
    assert "harmonicity: 3 answers name no model; big was asked about them" in write_remarks(
        named, 6
    )
    planned = plan(samples, model={"big": model}, metrics=METRIC, cache=None)
    assert planned.asked_instead == named["asked_instead"]
    for choice in ({"big": model}, model):
        assert "asked_instead" not in assess(answers(None), choice).summary_file


def test_a_name_that_no_answer_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="'bigg'; did you mean big") as caught:
        assess(answers("big", "small"), {"bigg": steady(), "small": moving()})
    assert "big (3), small (3)" in str(caught.value)
    # A part of the input may lack a model.
    run = assess(answers("big", "small"), {"big": steady(), "small": moving()}, limit=3)
    assert set(kinds(run).values()) == {None}


def test_named_models_for_samples_that_name_none_are_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError) as caught:
        assess(answers(None), {"big": steady(), "small": moving()})
    assert "no sample names the model of its answer" in str(caught.value)
    assert "field model" in str(caught.value)


def test_one_model_with_a_name_also_answers_for_samples_that_name_none() -> None:
    run = assess(answers("small", None), {"big": steady()})
    assert kinds(run) == {
        row["id"]: MODEL_NOT_GIVEN if "model" in row else None for row in answers("small", None)
    }


def test_two_models_for_the_same_answers_are_refused() -> None:
    models = {"big": steady("a"), "BIG": moving("b")}
    with pytest.raises(UsageError, match="answers of 'big' have two models"):
        assess(answers("big", "small"), models)


@pytest.mark.parametrize("second", ["big=openai:b", "openai:org/big", "big=openai:a"])
def test_the_same_name_twice_is_refused_by_its_name(second: str) -> None:
    with pytest.raises(UsageError, match="--model: big is given twice"):
        name_models(["big=openai:a", second], MODEL_ROLE)


@pytest.mark.parametrize(("role", "option"), [("references", "--reference"), ("judge", "--judge")])
def test_the_same_name_twice_is_refused_in_every_role(role: str, option: str) -> None:
    with pytest.raises(UsageError, match=f"{option}: big is given twice"):
        name_models(["big=openai:a", "big=openai:b"], role, many=True)
    # Names that were derived get numbers.
    assert list(name_models(["openai:a", "openai:x/a"], role, many=True)) == ["a", "a-2"]


def test_two_objects_of_one_name_are_refused_since_each_would_get_the_replies_of_the_other() -> (
    None
):
    with pytest.raises(UsageError, match="two models have the name told"):
        assess(answers("big", "small"), {"big": Model(), "small": Model()})


HOSTILE = [
    "../../etc/passwd",
    "a b\nc",
    "<script>alert(1)</script>",
    "x" * 5000,
    "\x1b[31mred",
    "=",
    "org/model:8b=q4",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_data_however_odd_they_are(name: str, tmp_path: Path) -> None:
    samples = answers(name, "other", n=1)
    for number, row in enumerate(samples):
        row["id"] = str(number)
    run = assess(samples, {name: steady()}, out=tmp_path / "run", report=True)
    assert kinds(run) == {"0": None, "1": MODEL_NOT_GIVEN}
    run = assess(samples, {"other": steady()}, out=tmp_path / "left", report=True)
    assert kinds(run) == {"0": MODEL_NOT_GIVEN, "1": None}
    page = (tmp_path / "left" / "report.html").read_text()
    assert "<script>alert(1)" not in page
    assert "\x1b" not in page
    message = next(a.error for a in run.assessments if a.error)
    assert len(message) < 150
    assert message.isprintable()
    # Nothing is written under a name of a model.
    assert {path.name for path in tmp_path.iterdir()} == {"run", "left"}


@pytest.mark.parametrize(
    ("option", "name", "uri"),
    [
        ("big=openai:org/big@http://h/v1?x=1", "big", "openai:org/big@http://h/v1?x=1"),
        ("openai:org/big@http://h/v1?x=1", "", "openai:org/big@http://h/v1?x=1"),
        ("org/big v2=openai:big", "org/big v2", "openai:big"),
        ("a=b=replay:file.jsonl", "a=b", "replay:file.jsonl"),
        ("openai:big@http://h=openai:big@http://h", "openai:big@http://h", "openai:big@http://h"),
        ("openai:big?stop=hf:x", "", "openai:big?stop=hf:x"),
        ("mine=acme:MODEL", "mine", "acme:MODEL"),
    ],
)
def test_a_name_stands_before_the_uri(option: str, name: str, uri: str) -> None:
    assert name_models(option, MODEL_ROLE) == {name: uri}
    assert name_models([option], MODEL_ROLE) == {name: uri}


def test_several_uris_without_names_are_named_by_their_models() -> None:
    uris = ["openai:org/big@http://h/v1", "openai:small"]
    assert name_models(uris, MODEL_ROLE) == {"big": uris[0], "small": uris[1]}


@pytest.mark.parametrize(
    ("name", "backend", "match"),
    [
        ("", "openai:org/Big@http://h/v1?t=0", "big"),
        ("big", "anything", "big"),
        ("Big:latest", "anything", "big"),
        ("", "gguf:/models/big.gguf", "big"),
        ("", "openai:bigger", ""),
        ("", "openai:big-2024-08-06", "big"),
        ("", "openai:big@20241022", "big"),
        ("big-latest", "anything", "big"),
        ("big-0613", "anything", "big"),
        ("big-002", "anything", "big"),
        ("big-2407", "anything", "big"),
        ("small", "openai:big", ""),
        *((f"big-{rest}", "x", "") for rest in ("2", "70b", "1999", "2024-13-01", "preview", "3b")),
    ],
)
def test_spelling_matters_little_and_letters_do(name: str, backend: str, match: str) -> None:
    assert find_same_model(name, backend, ["big", "other"]) == match


@pytest.mark.parametrize(
    ("backend", "is_other"),
    [
        ("openai:small@http://h/v1", True),
        ("openai:BIG", False),
        ("hf:org/small", True),
        ("replay:small.jsonl#1f", False),
        ("python:module:small", False),
        ("function:module.small", False),
        ("an object", False),
    ],
)
def test_only_names_of_models_contradict_the_name_in_a_sample(backend: str, is_other: bool) -> None:
    assert is_other_model("big", backend) is is_other


def test_names_that_cannot_be_told_apart_match_none_but_the_same_spelling() -> None:
    names = ["meta/llama", "other/llama"]
    assert find_same_model("", "openai:llama", names) == ""
    assert find_same_model("", "openai:llama", [*names, "openai:llama"]) == "openai:llama"
    assert find_same_model("other/llama", "openai:x", names) == "other/llama"
    assert find_same_model("", "openai:org/llama", [*names, "llama"]) == "llama"


def test_a_dated_version_is_the_model_without_a_date_and_no_other_version() -> None:
    versions = ["gpt-4o-2024-08-06", "gpt-4o-2024-05-13"]
    assert find_same_model("", "openai:gpt-4o", versions) == ""
    assert find_same_model("", "openai:gpt-4o", versions[:1]) == versions[0]
    assert find_same_model("", "openai:gpt-4o", [*versions, "gpt-4o"]) == "gpt-4o"
    assert is_other_model(versions[0], f"openai:{versions[1]}")
    assert not is_other_model("claude-3-5-sonnet-20241022", "openai:claude-3-5-sonnet-latest")


def test_only_samples_about_which_a_model_is_asked_are_counted() -> None:
    unanswered = [{**row, "response": None} for row in answers("small", n=1)]
    recorded = [{**row, "resamples": ["Paris."] * 3} for row in answers("big", n=1)]
    samples = [Sample.parse(row) for row in [*answers("big", n=1), *recorded, *unanswered]]

    def census(metric: Any, *, fills: bool) -> ModelCensus:
        result = ModelCensus([metric], fills=fills)
        for sample in samples:
            result.add(sample)
        return result

    reading = census(Faithfulness(), fills=True)
    assert (+reading.concerned, +reading.required) == (Counter(small=1), Counter(small=1))
    asking = census(Harmonicity(), fills=False)
    assert (+asking.concerned, +asking.required) == (
        Counter(big=2, small=1),
        Counter(big=1, small=1),
    )


def test_recorded_replies_of_a_model_that_is_not_given_are_read() -> None:
    recorded = [{**row, "resamples": ["Paris."] * 3} for row in answers("small")]
    run = assess([*answers("big"), *recorded], {"big": steady()})
    assert set(kinds(run).values()) == {None}


def test_a_shard_keeps_all_models_and_may_hold_none_of_their_answers() -> None:
    backends = Backends.of(chat={"model": {"big": steady(), "small": moving()}})
    census = ModelCensus([Harmonicity()])
    census.add(Sample.parse(answers("tiny", n=1)[0]))
    assert settle_models(backends, census, is_shard=True).by_key == backends.by_key
    with pytest.raises(UsageError):
        settle_models(backends, census)
    with pytest.raises(UsageError):
        settle_models(backends, census, is_drawn=True)


def test_missing_answers_are_written_by_the_model_that_the_sample_names(tmp_path: Path) -> None:
    big, small = steady("big-1"), moving("small-1")
    questions = [{**row, "response": None} for row in answers("big", "small", "tiny", None, n=1)]
    run = assess(
        [{**row, "documents": ["Paris."]} for row in questions],
        {"big": big, "small": small},
        metrics="faithfulness",
        embedder=None,
        entailer="lexical",
        out=tmp_path / "run",
    )
    stored = {row["id"]: row for row in lines(tmp_path / "run" / "samples.jsonl")}
    assert stored["big-0"]["response"] == "Paris."
    assert stored["small-0"]["response"].startswith("word")
    assert [stored[f"{name}-0"].get("model") for name in ("big", "small", "tiny", None)] == [
        "big", "small", "tiny", None,
    ]  # fmt: skip
    assert kinds(run)["tiny-0"] == kinds(run)["None-0"] == MODEL_NOT_GIVEN
    assert summary_of(tmp_path / "run")["left_out"] == {"faithfulness": {"tiny": 1, "": 1}}


def test_an_answer_is_stored_under_the_name_of_the_model_that_wrote_it(tmp_path: Path) -> None:
    question = {**answers("small", n=1)[0], "response": None, "documents": ["Paris."]}
    names = []
    for number, model in enumerate((steady("openai:Small@http://h/v1"), steady("openai:big"))):
        folder = tmp_path / str(number)
        options = {"metrics": "faithfulness", "embedder": None, "entailer": "lexical"}
        assess([question], model, out=folder, **options)
        names += [row["model"] for row in lines(folder / "samples.jsonl")]
    assert names == ["small", "openai:big"]


def test_a_plan_counts_the_calls_of_each_model_and_what_is_left_out() -> None:
    big, small = steady("big-1"), moving("small-1")
    samples = answers("big", "small", "tiny", n=2)
    options: dict[str, Any] = {"metrics": METRIC, "embedder": Words(), "cache": None}
    result = plan(samples, model={"big": big, "small": small}, **options)
    calls = {part.backend: part.calls for part in result.parts if part.capability == "chat"}
    run = assess(samples, {"big": big, "small": small})
    usage = run.summary_file["usage"]["models"]
    assert calls == {name: usage[name]["calls"] for name in ("big-1", "small-1")}
    assert result.left_out == {"harmonicity": {"tiny": 2}}
    assert result.to_dict()["left_out"] == {"harmonicity": {"tiny": 2}}
    assert not result.unsure


def test_a_plan_refuses_what_a_run_refuses() -> None:
    with pytest.raises(UsageError, match="did you mean big"):
        plan(answers("big"), model={"bigg": steady()}, metrics=METRIC, cache=None)


def test_a_plan_names_the_models_of_its_rows(tmp_path: Path, cli: Cli) -> None:
    source = jsonl(tmp_path / "a.jsonl", answers("big", "small"))
    uris = [
        f"--model={name}=openai:org/{name}-x@http://127.0.0.1:9/v1" for name in ("big", "small")
    ]
    result = cli("plan", source, "--metric", METRIC, *uris)
    cells = [line.split()[:3] for line in (result.out + result.err).splitlines()]
    assert [row for row in cells if row[:2] == ["harmonicity", "chat"]] == [
        ["harmonicity", "chat", "big-x"],
        ["harmonicity", "chat", "small-x"],
    ]


def test_a_run_is_scored_again_without_its_models(tmp_path: Path) -> None:
    samples = answers("big", "small", "tiny")
    models = {"big": steady("big-1"), "small": moving("small-1")}
    first = assess(samples, models, out=tmp_path / "one")
    again = rescore(tmp_path / "one", out=tmp_path / "two", embedder=Words(), cache=None)
    assert values(again) == values(first)
    assert kinds(again) == kinds(first)
    assert summary_of(tmp_path / "two")["metrics"] == summary_of(tmp_path / "one")["metrics"]
    # The replies of each model are found under its name; other prompts have none.
    other = rescore(
        tmp_path / "one",
        metrics="harmonicity:perturbations=4",
        out=tmp_path / "three",
        embedder=Words(),
        cache=None,
    )
    errors = {assessment.id: assessment.error or "" for assessment in other.assessments}
    assert "the run's model big-1 cannot be used here" in errors["big-0"]
    assert "the run's model small-1 cannot be used here" in errors["small-0"]


def test_a_named_model_replaces_the_one_of_its_name_when_a_run_is_scored_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = answers("big", "small")
    models = {"big": steady("big-1"), "small": steady("small-1")}
    first = assess(samples, models, out=tmp_path / "one")
    again = rescore(
        tmp_path / "one",
        model={"small": moving("small-2")},
        out=tmp_path / "two",
        embedder=Words(),
        cache=None,
    )
    assert set(values(first).values()) == {0.0}
    assert all(values(again)[row["id"]] == 0 for row in answers("big"))
    assert all((values(again)[row["id"]] or 0) > 0.2 for row in answers("small"))
    backends = RunFolder(again.path).read_run() or {}
    assert backends["backends"]["model"] == {"big": "big-1", "small": "small-2"}
    capsys.readouterr()
    show_run(again, as_json=False)
    output = "".join(capsys.readouterr())
    asked = [line.split(":")[0] for line in output.splitlines() if line.startswith("asked ")]
    assert asked == ["asked big-1", "asked small-2"]


def test_a_run_that_was_stopped_continues_with_the_same_models_alone(tmp_path: Path) -> None:
    samples, folder = answers("big", "small", "tiny"), tmp_path / "run"
    first = assess(samples, {"big": steady(), "small": moving()}, out=folder)
    # As after a kill: the summary is missing, and the last assessments.
    (folder / "summary.json").unlink()
    kept = (folder / "assessments.jsonl").read_bytes().splitlines(keepends=True)[:4]
    (folder / "assessments.jsonl").write_bytes(b"".join(kept))
    big, small = steady(), moving()
    second = assess(samples, {"big": big, "small": small}, out=folder)
    assert values(second) == values(first)
    assert not big.asked + small.asked
    with pytest.raises(UsageError, match=r"backends\.model\.tiny"):
        assess(samples, {"big": big, "small": small, "tiny": steady("t")}, out=folder)


@pytest.mark.parametrize("has_name", [True, False])
def test_a_run_of_one_model_grows_by_answers_of_others(has_name: bool, tmp_path: Path) -> None:
    big = steady("openai:big@http://h/v1")
    options: dict[str, Any] = {"out": tmp_path / "run", "append": True}
    assess(answers("big"), big, **options)
    run = assess(answers("big", "small"), {"big": big} if has_name else big, **options)
    assert set(values(run).items()) >= {(row["id"], 0.0) for row in answers("big")}
    assert run.summary_file["left_out"] == {"harmonicity": {"small": 3}}
    again = assess(answers("big", "small"), big, **options)
    assert values(again) == values(run)
    with pytest.raises(RunFolderError, match=r"backends\.model"):
        assess(answers("big", "small"), {"big": steady("openai:bigger@http://h/v1")}, **options)


def test_a_run_of_another_model_s_answers_does_not_grow_under_its_name(tmp_path: Path) -> None:
    big = steady("openai:big@http://h/v1")
    options: dict[str, Any] = {"out": tmp_path / "run", "append": True}
    assess(answers("small"), big, **options)
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(
        RunFolderError, match=r"this run asked .* about answers of small, and the input now"
    ) as caught:
        assess(answers("small", "big"), big, **options)
    assert "another --out" in str(caught.value)
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_scorer_refuses_a_sample_whose_model_it_must_ask_and_does_not_have() -> None:
    samples = answers("big", "tiny", None, n=1)

    async def work() -> list[Any]:
        options: dict[str, Any] = {"metrics": METRIC, "embedder": Words(), "cache": None}
        models = {"big": steady(), "small": moving()}
        async with scorer(model=models, **options) as opened:
            results: list[Any] = []
            for sample in samples:
                try:
                    results.append((await opened.score(sample))["harmonicity"].score)
                except SampleError as error:
                    results.append(str(error))
            return results

    scored, tiny, nameless = asyncio.run(work())
    assert scored == 0
    assert "no --model tiny=URI was given" in tiny
    assert "several models; expected the field model in the sample" in nameless


@pytest.mark.parametrize(
    ("model", "is_accepted"),
    [("big", True), ("BIG-2024-08-06", True), (None, True), ("small", False)],
)
def test_a_scorer_with_one_model_without_a_name_refuses_answers_of_another(
    model: str | None, is_accepted: bool
) -> None:
    asked = steady("openai:big@http://h/v1")

    async def work() -> float | str | None:
        options: dict[str, Any] = {"metrics": METRIC, "embedder": Words(), "cache": None}
        async with scorer(model=asked, **options) as opened:
            try:
                return (await opened.score(answers(model, n=1)[0]))["harmonicity"].score
            except SampleError as error:
                return str(error)

    result = asyncio.run(work())
    assert result == 0 if is_accepted else "no --model small=URI was given" in str(result)
    assert bool(asked.asked) == is_accepted


@pytest.mark.parametrize("has_name", [True, False])
def test_answers_of_other_models_in_a_growing_file_are_left_out_by_name(
    has_name: bool, tmp_path: Path
) -> None:
    source = jsonl(tmp_path / "log.jsonl", answers("big", "mid", "small", n=2))
    big = steady("openai:big@http://h/v1")
    counts = watch(
        source,
        metric=METRIC,
        out=tmp_path / "run",
        threshold=0.5,
        once=True,
        model={"big": big} if has_name else big,
        embedder=Words(),
        cache=None,
    )
    assert (counts.scored, counts.faulty, counts.failed) == (2, 0, 0)
    assert counts.left_out == {"mid": 2, "small": 2}
    assert summary_of(tmp_path / "run")["left_out"] == {"harmonicity": {"mid": 2, "small": 2}}


def questions(tmp_path: Path, *models: str | None) -> Path:
    rows = [{**row, "response": None} for row in answers(*models, n=2)]
    return jsonl(tmp_path / "questions.jsonl", rows)


def generated(source: Path, model: Any, again: bool = False) -> tuple[Any, list[tuple[str, str]]]:
    out = source.with_name("generated.jsonl")
    options = GenerateOptions(again=again)
    options = replace(options, calls=replace(options.calls, cache=None))
    result = generate(source, model, out, options)
    return result, [(row["model"], row["response"]) for row in lines(out)]


def test_generate_asks_the_model_that_a_question_names(tmp_path: Path) -> None:
    models = {"big": steady(), "small": moving()}
    result, rows = generated(questions(tmp_path, "big", "small", "tiny", None), models)
    assert [model for model, _ in rows] == ["big", "big", "small", "small"]
    assert [text == "Paris." for _, text in rows] == [True, True, False, False]
    assert result.left_out == {"tiny": 2, "": 2}
    assert not result.failed


def test_generate_replaces_answers_by_those_of_one_model_or_of_the_same_ones(
    tmp_path: Path,
) -> None:
    source = jsonl(tmp_path / "answers.jsonl", answers("big", "small", n=1))
    _, rows = generated(source, steady("new"), again=True)
    assert rows == [("new", "Paris.")] * 2
    _, rows = generated(source, {"big": steady("new")}, again=True)
    assert rows == [("big", "Paris.")]


def test_generate_refuses_a_model_whose_name_no_question_has(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--model big=told"):
        generated(questions(tmp_path, "big", "small"), Model())


def test_the_name_of_a_run_s_model_is_that_of_its_samples() -> None:
    runs: list[dict[str, Any]] = [
        {"backends": {"model": "openai:big"}},
        {"backends": {"model": {"big": "openai:big"}}},
        {"backends": {"model": {"big": "openai:big", "small": "openai:small"}}},
        {"backends": {}},
        {},
    ]
    assert [find_run_model(run) for run in runs] == ["openai:big", "big", None, None, None]


def test_the_list_of_runs_names_the_models_as_their_samples_do() -> None:
    several = {"backends": {"model": {"big": "openai:b", "small": "openai:s"}}}
    assert _answering_models(several, None) == "big, small"
    assert _answering_models({"backends": {"model": "openai:b"}}, None) == "openai:b"
    assert _answering_models({"backends": {}}, None) == ""


def test_one_uri_under_two_names_is_one_model_also_when_it_is_scored_again(tmp_path: Path) -> None:
    samples = answers("big", "BIG-2", n=2)
    model = steady()
    first = assess(samples, {"big": model, "BIG-2": model}, out=tmp_path / "one")
    again = rescore(tmp_path / "one", out=tmp_path / "two", embedder=Words(), cache=None)
    assert values(again) == values(first)
    assert set(kinds(again).values()) == {None}


def test_a_score_that_asked_nobody_keeps_the_name_of_its_sample() -> None:
    name_model = ModelNamer({"backends": {"model": "openai:big"}}, [Harmonicity()])
    run = assess(answers("small"), steady("openai:big"))
    asked = next(iter(run.assessments))
    assert name_model({"model": "small"}, asked) == "small (asked: openai:big)"
    assert name_model({"model": "small"}, replace(asked, usage={}, asked={})) == "small"
    assert name_model({}, asked) == "openai:big"


def test_many_models_are_listed_in_part() -> None:
    counts = {f"m{number}": number for number in range(1, 31)}
    sentences = describe_left_out(counts)
    assert len(sentences) == 9
    assert sentences[0] == "30 answers of m30 left out: no --model m30=URI was given"
    assert sentences[-1] == f"{sum(range(1, 23))} answers of 22 other models left out"
    instead = describe_asked_instead({"big": counts}, "was")
    assert instead[8:] == ["253 answers of 22 other models: big was asked instead"]


def test_the_error_survives_pickling() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(ModelNotGivenError("small")))
    assert (error.model, error.kind, str(error)) == (
        "small",
        MODEL_NOT_GIVEN,
        "no --model small=URI was given",
    )

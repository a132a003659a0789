"""Answers that no model of a metric reads: told apart by every metric, counted, said."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import Probe, Recorder, summary_of
from trustassay import plan, score
from trustassay.backends.similarity import AgreementSimilarity, ConsistencySimilarity
from trustassay.calls.backends import Backends
from trustassay.metrics import FactCheck, Faithfulness, Fewl, Grounding, Judge, SemanticHarmonicity
from trustassay.papers.cite import cite

SPANISH = "La lámpara roja está en la casa verde, junto a la puerta."
ENGLISH = "The red lamp is in the green house by the door."
LOCAL = (
    " qwen2.5-coder-1.5b (AUC 0.88 in Spanish; about 7 CPU seconds a sentence, 3 with "
    "`.[gguf-openvino]`)."
)
INSTALL = (
    "Install it with `pip install '.[gguf]'` and `trustassay models get qwen2.5-coder-1.5b` "
    "(1.1 GB)."
)


class English(Recorder):
    """An entailer that reads English only."""

    languages = ("en",)


def answer(text: str, question: str = "Where is the red lamp?") -> dict[str, Any]:
    return {
        "question": question,
        "response": text,
        "documents": [ENGLISH],
        "answers": [ENGLISH],
        "references": {"other": ENGLISH},
        "resamples": [ENGLISH, text],
    }


RECORDS = [answer(SPANISH), answer(ENGLISH)]


@pytest.mark.parametrize(
    "metric",
    [
        Faithfulness(),
        Grounding(),
        FactCheck(),
        Judge(by="entailer"),
        SemanticHarmonicity(),
        Probe(),
    ],
    ids=lambda metric: metric.name,
)
def test_every_metric_with_the_entailer_tells_it_apart(metric: Any, tmp_path: Path) -> None:
    entailer = English()
    run = score(RECORDS, metrics=metric, entailer=entailer, out=tmp_path / "run", cache=None)
    spanish, english = run.assessments
    assert (spanish.score, spanish.error, spanish.parts) == (None, None, {"other_language": 1.0})
    assert "another language (es) than the entailer reads (en); give another --en" in spanish.reason
    assert english.error is None and "other_language" not in english.parts
    assert not any(SPANISH in pair for pair in entailer.asked)
    summary = summary_of(tmp_path / "run")
    assert summary["languages"] == {metric.name: {"--entailer": {"es": 1}}}
    assert summary["metrics"][metric.name]["failed"] == 0
    sentence, *readers = run.explain_unjudged()
    assert sentence == (
        f"1 of 2 answers is in Spanish, which the entailer ({entailer.name}) does not read."
    )
    option = "--second" if metric.name in ("faithfulness", "grounding") else "--entailer"
    assert readers == [
        f"To judge it offline: {option}{LOCAL}",
        INSTALL,
        "With a key: --entailer openai:gpt-4o-mini.",
    ]
    assert "is in Spanish" in (tmp_path / "run" / "report.html").read_text()


def test_figures_of_grounding_are_those_of_the_other_answers() -> None:
    alone = score(RECORDS[1:], metrics=Grounding(), entailer=English(), cache=None)
    both = score(RECORDS, metrics=Grounding(), entailer=English(), cache=None)
    values = [run.summaries["grounding"].values for run in (alone, both)]
    assert json.dumps(values[0]) == json.dumps(values[1])


@pytest.mark.parametrize("similarity", [AgreementSimilarity, ConsistencySimilarity])
def test_a_similarity_reads_what_its_entailer_reads(similarity: Any) -> None:
    metric = Fewl(form="agreement")
    run = score(RECORDS, metrics=metric, similarity=similarity(English()), cache=None)
    assert run.assessments[0].parts == {"other_language": 1.0}
    assert (
        "than the similarity reads (en); give another --backend similarity=URI"
        in run.assessments[0].reason
    )
    sentence, local, _, larger = run.explain_unjudged()
    assert sentence.startswith("1 of 2 answers is in Spanish, which the similarity (")
    assert "offline: --backend similarity=agreement:qwen2.5-coder-1.5b (AUC" in local
    assert larger == "With a key: --backend similarity=agreement:openai:gpt-4o-mini."


def test_an_entailer_that_reads_all_languages_is_asked() -> None:
    run = score(RECORDS, metrics=Faithfulness(), entailer=Recorder(), cache=None)
    assert [one.score for one in run.assessments] == [1.0, 1.0]
    assert "languages" not in run.summary_file


def test_passages_tell_the_language_of_a_short_answer() -> None:
    short = answer("Real Madrid", "Real Madrid, 2014") | {"documents": [SPANISH]}
    run = score([short], metrics=Faithfulness(), entailer=English(), cache=None)
    assert run.assessments[0].parts == {"other_language": 1.0}


def test_a_plan_counts_no_calls_for_it() -> None:
    of_all, of_english = (
        plan(rows, metrics=Faithfulness(), entailer=English()) for rows in (RECORDS, RECORDS[1:])
    )
    assert [part.calls for part in of_all.parts] == [part.calls for part in of_english.parts]


def test_cite_leaves_it_out(tmp_path: Path) -> None:
    backends = Backends.of(entail=English())
    done = cite(RECORDS, tmp_path / "cited.jsonl", backends)
    assert (done.written, done.counts["citations"]) == (1, 1)
    (words,) = done.failed.values()
    assert words.startswith("the answer is in another language (es) than the entailer reads (en);")

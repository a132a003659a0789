"""Questions to figures: documents, answers, files, and whoever takes the offline parts' place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core: tox run")

from llama_index.core import Settings
from llama_index.evaluation.trust_eval import (
    OfflineAnswerer,
    TrustScoreEvaluator,
    example_questions,
)
from llama_index.evaluation.trust_eval.figures import keys_of
from llama_models import PASSAGES, Scripted

import trustassay
from trustassay.errors import BackendError
from trustassay.metrics.grounding.summary import FIGURES

QUESTIONS = ["When was the stone bridge over the river opened?", "How high is the chimney?"]
ANSWERS = ["The stone bridge was opened in 1911.", "The chimney is 40 metres high."]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_prompt(prompt: str) -> str:
    """Answer the last question of a prompt, and cite the passage that says it."""
    # The prompt begins with examples, which are questions too.
    question = prompt.rsplit("Question:", 1)[-1]
    text = "The stone bridge was opened in 1911" if "bridge" in question else "I do not know"
    number = next(
        (n for n in range(1, 6) if f"[{n}]" in prompt.rsplit("opened in 1911", 1)[0][-200:]), 1
    )
    return f"{text} [{number}]."


def test_the_bundled_corpus_answers_six_questions_and_four_not(capfd: Any) -> None:
    evaluator = TrustScoreEvaluator()
    evaluator.create_dataset(*example_questions())
    covered = [
        any(any(d.supports or ()) for d in sample.documents or ()) for sample in evaluator.dataset
    ]
    assert covered == [True] * 6 + [False] * 4
    evaluator.run()
    figures = evaluator.evaluate()
    assert list(figures) == list(keys_of("cm"))
    assert figures["num_samples"] == 10
    assert (figures["answered_num"], figures["answerable_num"], figures["overlapped_num"]) == (
        6,
        6,
        6,
    )
    assert figures["reject_f1"] == figures["macro_f1"] == figures["answered_citation_rec"] == 100.0
    messages = capfd.readouterr().err
    assert "documents of the corpus that comes with this package" in messages
    assert "offline-quotes/1 answers" in messages
    assert evaluator.answerer == OfflineAnswerer.name
    about = json.loads(Path("results/custom_data.json").read_text())["about"]
    assert about.pop("entailer").startswith("embedded")
    assert about == {"answerer": "offline-quotes/1", "profile": "default"}


def test_the_figures_are_those_of_the_metric_on_the_saved_responses() -> None:
    evaluator = TrustScoreEvaluator(eval_config={"eval_type": "cm"})
    evaluator.create_dataset(*example_questions())
    evaluator.run("answers.json")
    figures = evaluator.evaluate(output_path="figures.json")
    # The saved file is an input of trustassay like any other.
    rescored = trustassay.score("answers.json", metrics="grounding:correctness=cm")
    assert {key: rescored.summary["grounding"][key] for key in figures} == figures
    saved = json.loads(Path("figures.json").read_text())
    assert {key: saved[key] for key in figures} == figures
    assert evaluator.scored is not None
    assert evaluator.scored.report("page.html").exists()
    from_file = TrustScoreEvaluator(eval_config={"eval_file": "answers.json"})
    assert from_file.evaluate() == figures
    assert from_file.answerer == "file answers.json"


@pytest.mark.parametrize("kind", ["cm", "em", "em5", "none"])
def test_the_keys_of_every_kind_are_there(kind: str) -> None:
    assert set(keys_of(kind)) <= set(FIGURES)
    evaluator = TrustScoreEvaluator(eval_config={"eval_type": kind, "autoais_model": "lexical"})
    evaluator.create_dataset(["Who owns FX network?"], [[["Disney", "Walt Disney"], "nobody"]])
    evaluator.run()
    figures = evaluator.evaluate()
    assert isinstance(figures, dict)
    assert list(figures) == list(keys_of(kind))
    assert figures["regular_citation_rec"] is not None
    if kind == "em":
        assert figures["regular_str_em"] == 50.0


def test_an_llm_answers_from_the_documents(index: Any) -> None:
    llm = Scripted(script=by_prompt, prompts=[])
    evaluator = TrustScoreEvaluator(llm=llm, retriever=index)
    evaluator.create_dataset(QUESTIONS, ANSWERS)
    evaluator.run()
    assert len(llm.prompts) == 2
    assert all(any(text in prompt for text in PASSAGES.values()) for prompt in llm.prompts)
    assert evaluator.answerer == "llama-index:Scripted:scripted"
    titles = {d.title for sample in evaluator.dataset for d in sample.documents or ()}
    assert titles == set(PASSAGES)
    figures = evaluator.evaluate()
    assert figures["num_samples"] == 2
    assert figures["answerable_num"] == 2
    assert figures["answered_claims_nli"] is not None


def test_the_llm_of_the_settings_answers_if_somebody_set_it(capfd: Any) -> None:
    llm = Scripted(script=lambda prompt: "I apologize, but I couldn't find an answer.", prompts=[])
    Settings.llm = llm
    evaluator = TrustScoreEvaluator()
    evaluator.create_dataset(["Who owns FX network?"], ["Disney owns FX network."])
    evaluator.run()
    assert len(llm.prompts) == 1
    assert "offline" not in capfd.readouterr().err
    assert evaluator.evaluate()["answered_num"] == 0


def test_an_llm_that_fails_is_told_of() -> None:
    def fail(prompt: str) -> str:
        raise RuntimeError("no quota")

    evaluator = TrustScoreEvaluator(llm=Scripted(script=fail))
    evaluator.create_dataset(["Who owns FX network?"], ["Disney owns FX network."])
    with pytest.raises(BackendError, match=r"1 questions were not answered.*no quota"):
        evaluator.run()
    assert not Path("output").exists()


def test_a_query_engine_finds_and_answers(engine: Any) -> None:
    def reply(prompt: str) -> str:
        if "bridge" in prompt.rsplit("Query:", 1)[1]:
            return "The stone bridge was opened in 1911 [1]."
        return "The chimney is 90 metres high [1]."

    evaluator = TrustScoreEvaluator(query_engine=engine(reply))
    evaluator.create_dataset(QUESTIONS, ANSWERS)
    evaluator.run()
    figures = evaluator.evaluate()
    assert figures["answerable_num"] == 2
    assert figures["regular_claims_nli"] == figures["regular_citation_rec"] == 50.0
    documents = evaluator.responses[0].documents or ()
    assert documents[0].title == "The bridge"
    assert not documents[0].text.startswith("Source")
    with pytest.raises(ValueError, match="query_engine"):
        TrustScoreEvaluator(query_engine=engine(reply), llm=Scripted(script=reply))


def test_with_arguments_it_evaluates_one_answer() -> None:
    evaluator = TrustScoreEvaluator()
    bridge = [PASSAGES["The bridge"]]
    result = evaluator.evaluate(QUESTIONS[0], "The stone bridge was opened in 1911 [1].", bridge)
    assert result.score == 1.0
    assert evaluator.evaluate(query=QUESTIONS[0]).invalid_result


def test_files_of_the_configuration_are_used(tmp_path: Path) -> None:
    Path("generator_config.yaml").write_text(
        "eval_file: data/mine.json\noutput_path: out/answers.json\nndoc: 2\n"
    )
    Path("eval_config.yaml").write_text("output_path: out/figures.json\ndata_type: asqa\n")
    evaluator = TrustScoreEvaluator()
    evaluator.create_dataset(["Who owns FX network?"], [["Walt Disney"]])
    rows = json.loads(Path("data/mine.json").read_text())
    assert len(rows[0]["docs"]) == 2
    assert {len(document["answers_found"]) for document in rows[0]["docs"]} == {1}
    later = TrustScoreEvaluator()
    later.run()
    assert list(later.evaluate()) == list(keys_of("em"))
    assert {path.name for path in Path("out").iterdir()} == {"answers.json", "figures.json"}
    assert not Path("output").exists()
    assert not Path("results").exists()


def test_what_is_missing_is_said() -> None:
    evaluator = TrustScoreEvaluator()
    with pytest.raises(ValueError, match="got 2 questions and 1 answers"):
        evaluator.create_dataset(QUESTIONS, ANSWERS[:1])
    with pytest.raises(ValueError, match=r"no data set: call create_dataset"):
        evaluator.run()
    with pytest.raises(ValueError, match=r"no responses: call run"):
        evaluator.evaluate()
    with pytest.raises(ValueError, match="expected lists of questions and answers, got a text"):
        evaluator.create_dataset("ab", "cd")
    with pytest.raises(ValueError, match=r"answers.*expected text, got null"):
        evaluator.create_dataset(["a?"], [None])
    Path("bad.json").write_text('{"rows": []}')
    with pytest.raises(ValueError, match=r"bad\.json: expected a list of items"):
        TrustScoreEvaluator(generator_config={"eval_file": "bad.json"}).run()
    with pytest.raises(ValueError, match="question: is blank"):
        evaluator.create_dataset([" "], ["x"])

"""Answers that were not judged are never an all-clear, and what to do is said with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder
from trustassay import Run, score
from trustassay.backends.recommended import find_recommended
from trustassay.metrics import Faithfulness, Grounding, Reference, ToolUse
from trustassay.runs.unjudged import explain_unjudged

PASSAGE = "The red lamp is in the green house by the door."
GOOD = "The red lamp is in the green house."
REFUSAL = "I am sorry, but I cannot find that in the documents."
GERMAN = "Die rote Lampe steht im grünen Haus gleich neben der Tür."
FRENCH = "La lampe rouge se trouve dans la maison verte, à côté de la porte."
SPANISH = "La lámpara roja está en la casa verde, justo al lado de la puerta."
JAPANESE = "赤いランプは緑の家のドアのそばにあります。"
POLISH = "Czerwona lampa stoi w zielonym domu, tuż obok drzwi wejściowych."


class English(Recorder):
    """An entailer that reads English only, and may fail."""

    name = "english"
    languages = ("en",)


def fail(premise: str, hypothesis: str) -> Any:
    raise RuntimeError("out of memory")


def run_of(*responses: str, metrics: Any = None, **options: Any) -> Run:
    rows = [
        {"id": f"q{n}", "question": f"Where is lamp {n}?", "response": text, "documents": [PASSAGE]}
        for n, text in enumerate(responses)
    ]
    rows = options.pop("rows", rows)
    options = {"entailer": English(), "cache": None, **options}
    return score(rows, metrics=metrics or Faithfulness(), **options)


def without_passages() -> Run:
    rows = [{"question": f"{n}?", "response": GOOD, "documents": []} for n in range(3)]
    return run_of(rows=rows)


@pytest.mark.parametrize(
    ("run", "reason", "words"),
    [
        (lambda: run_of(*[GERMAN] * 3), "language not read", "3 of 3 answers are in German, which"),
        (lambda: run_of(*[JAPANESE] * 3), "language not read", "3 of 3 answers are in Japanese"),
        (lambda: run_of(*[REFUSAL] * 3), "refused", "Refusals: with gold answers in"),
        (
            lambda: run_of(*[" "] * 3),
            "blank",
            "of the answers with --field response=COLUMN",
        ),
        (
            lambda: run_of(*["You're welcome!"] * 3),
            "no claim",
            "Answers that state nothing to",
        ),
        (without_passages, "no passages", "name their column with --field documents=COLUMN"),
        (
            lambda: run_of(*[GOOD] * 3, entailer=English(fail)),
            "error",
            "RuntimeError: out of memory",
        ),
        (
            lambda: run_of(*[GOOD] * 3, metrics=ToolUse()),
            "not assessable",
            "The first answer was not judged: no tool was called",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_where_nothing_was_judged_the_result_says_why_and_what_to_do(
    run: Any, reason: str, words: str
) -> None:
    result = run()
    assert f"0 of 3 answers could be judged: {reason} (3)" == result.looks(0).sentence()
    for text in (repr(result), result._repr_html_().replace("&#39;", "'")):
        assert words in text
        assert "needs a look" not in text
        # How far a judge can be believed is no comfort where it judged nothing.
        assert "Judge english" not in text


@pytest.mark.parametrize(
    ("responses", "languages", "pronoun", "aucs"),
    [
        ([GERMAN], "1 of 1 answer is in German, which", "it", "0.92 in German"),
        ([SPANISH], "1 of 1 answer is in Spanish, which", "it", "0.88 in Spanish"),
        (
            [GERMAN, GERMAN, FRENCH, JAPANESE],
            "4 of 4 answers are in German (2), French (1) and Japanese (1), which",
            "them",
            "0.92 in German, 0.93 in French and 0.95 in Japanese",
        ),
        (
            [GERMAN, FRENCH],
            "2 of 2 answers are in German (1) and French (1), which",
            "them",
            "0.92 in German and 0.93 in French",
        ),
    ],
)
def test_the_reader_for_this_machine_is_named_first_with_its_figure_and_cost(
    responses: list[str], languages: str, pronoun: str, aucs: str
) -> None:
    sentence, local, install, larger = run_of(*responses).explain_unjudged()
    assert sentence == f"{languages} the entailer (english) does not read."
    cost = find_recommended("qwen2.5-coder-1.5b").cost
    assert local == (
        f"To judge {pronoun} offline: --second qwen2.5-coder-1.5b (AUC {aucs}; {cost})."
    )
    assert "`pip install '.[gguf]'`" in install
    assert "`trustassay models get qwen2.5-coder-1.5b` (1.1 GB)" in install
    assert larger == "With a key: --entailer openai:gpt-4o-mini."


def test_a_reader_is_named_only_for_languages_that_it_reads() -> None:
    larger = "With a key: --entailer openai:gpt-4o-mini."
    assert run_of(POLISH).explain_unjudged()[1:] == [larger]
    assert run_of(POLISH, GERMAN).explain_unjudged()[1:] == [larger]
    # The run has a second reader, which does not read it either.
    second = run_of(GERMAN, second=English())
    assert second.explain_unjudged()[1:] == [larger]


def test_a_few_answers_that_were_judged_make_no_all_clear() -> None:
    run = run_of(GOOD, GOOD, *[GERMAN] * 10)
    assert run.looks(0).sentence() == (
        "2 of 12 answers were judged: 0 need a look; 10 were not judged"
    )
    assert "10 of 12 answers are in German" in repr(run)


def test_two_metrics_that_leave_out_the_same_answers_count_them_once() -> None:
    run = run_of(GERMAN, GOOD, metrics=[Faithfulness(), Grounding()])
    assert run.explain_unjudged()[0].startswith("1 of 2 answers is in German")


def test_each_metric_has_to_judge_an_answer_before_it_counts_as_fine() -> None:
    """Reference judges the refusal by its gold answer, faithfulness does not judge it."""
    rows = [
        {"question": "Where?", "response": text, "documents": [PASSAGE], "answers": [gold]}
        for text, gold in ((GOOD, "green house"), (REFUSAL, "cannot"))
    ]
    run = run_of(rows=rows, metrics=[Faithfulness(), Reference()])
    assert run.looks(0).sentence() == (
        "1 of 2 answers was judged by every metric: 0 need a look; 1 was not judged by every metric"
    )


def test_a_metric_for_other_answers_leaves_no_gap() -> None:
    run = run_of(GOOD, GOOD, metrics=[Faithfulness(), ToolUse()])
    assert run.looks(0).sentence() == "None of the 2 answers needs a look"


def test_refusals_that_gold_answers_judge_are_judged() -> None:
    rows = [
        {"question": "Who?", "response": REFUSAL, "documents": [PASSAGE], "answers": ["Anna"]}
        for _ in range(2)
    ]
    run = run_of(rows=rows, metrics=[Faithfulness(), Grounding(correctness="em")])
    assert run.looks(0).sentence() == "None of the 2 answers needs a look"


def test_nothing_is_explained_where_all_was_judged() -> None:
    assert run_of(GOOD, GOOD).explain_unjudged() == []
    # Single refusals are counted by the outcomes.
    assert run_of(GOOD, REFUSAL).explain_unjudged() == []


def test_the_report_opens_with_the_explanation(tmp_path: Path) -> None:
    run_of(*[GERMAN] * 3, out=tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    opening = page.split('class="opening"')[1].split("</section>")[0]
    assert "0 of 3 answers could be judged: language not read (3)." in opening
    assert "3 of 3 answers are in German" in opening
    assert "How reliable is this judge?" not in page
    assert "No listed answer needs a look." not in page
    assert "No listed answer is flagged; some records were not judged." in page


def test_a_summary_of_an_earlier_version_is_explained_as_far_as_it_goes() -> None:
    run = {"samples": {"samples": 4}, "backends": {"entailer": "embedded:9"}}
    assert explain_unjudged({}, run) == []
    languages = {"faithfulness": {"--entailer": {"wa": 4}}}
    assert explain_unjudged({"languages": languages}, run)[0] == (
        "4 of 4 answers are in the language wa, which the entailer (embedded:9) does not read."
    )

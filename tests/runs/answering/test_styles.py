"""How a model is asked for an answer: styles, examples, and what decides a stored call."""

from __future__ import annotations

from pathlib import Path

import pytest

from trustassay.core.sample import Document, Sample
from trustassay.errors import UnknownNameError
from trustassay.runs.answering import STYLES, Answering

PLAIN = Sample("a", "Who built it?")
WITH = Sample("b", "Who built it?", documents=(Document("It", "She built it."),))
SHOWN = Sample("e", "When?", response="In 1932 [1].", documents=(Document("", "It was 1932."),))


def text(answering: Answering, sample: Sample) -> str:
    return answering.request(sample).messages[-1].content


def test_auto_takes_documents_where_there_are_some() -> None:
    answering = Answering()
    assert answering.request(PLAIN).prompt == "closed-book/2"
    assert answering.request(WITH).prompt == "rag-refusal/1"


@pytest.mark.parametrize("style", [style for style in STYLES if style != "own"])
def test_every_style_ends_where_the_answer_begins(style: str) -> None:
    asked = text(Answering(style, examples=[SHOWN]), WITH)
    assert asked.endswith("Answer:")
    assert asked.count("Who built it?") == 1
    assert "In 1932 [1]." in asked


def test_closed_book_shows_five_examples_of_its_own() -> None:
    assert text(Answering("closed-book"), PLAIN).count("Question:") == 6
    assert text(Answering("closed-book", examples=[SHOWN]), PLAIN).count("Question:") == 2


def test_a_prompt_of_its_own_is_sent_as_it_stands() -> None:
    own = Sample("o", "Who?", documents=WITH.documents, metadata={"own_prompt": "Say who: {{ x }}"})
    for answering in (Answering(), Answering("own")):
        assert text(answering, own) == "Say who: {{ x }}"
        assert answering.request(own).prompt == "own"
    assert "Who?" in text(Answering("closed-book"), own)
    (problem,) = Answering("own").problems(PLAIN)
    assert problem.field == "own_prompt"
    blank = Sample("o", "Who?", metadata={"own_prompt": " "})
    assert Answering().request(blank).prompt == "closed-book/2"


def test_the_users_template_wins_over_a_prompt_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("Now: {{ question }}")
    own = Sample("o", "Who?", metadata={"own_prompt": "Say who"})
    assert text(Answering(prompt=tmp_path / "mine.jinja"), own) == "Now: Who?"
    with pytest.raises(ValueError, match="remove --prompt"):
        Answering("own", prompt=tmp_path / "mine.jinja")


def test_a_style_that_needs_documents_says_so() -> None:
    for style in ("rag", "rag-refusal"):
        (problem,) = Answering(style).problems(PLAIN)
        assert problem.field == "documents"
        assert not Answering(style).problems(WITH)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean rag"):
        Answering("ragg")
    with pytest.raises(ValueError, match="needs examples"):
        Answering("icl")
    with pytest.raises(ValueError, match="has no response"):
        Answering("icl", examples=[PLAIN])
    with pytest.raises(ValueError, match="has no documents"):
        Answering("rag", examples=[Sample("x", "?", response="y")])


def test_settings_tell_whatever_changes_an_answer() -> None:
    all_of_them = [
        Answering(),
        Answering("rag"),
        Answering(temperature=1.0),
        Answering(max_tokens=5),
        Answering(seed=1),
        Answering(examples=[SHOWN]),
    ]
    settings = [str(answering.settings()) for answering in all_of_them]
    assert len(set(settings)) == len(settings)
    assert Answering().request(PLAIN, repeat=3) != Answering().request(PLAIN, repeat=4)

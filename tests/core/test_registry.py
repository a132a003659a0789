"""Metrics by name, options by text, and what an unknown name is answered."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import Probe, metric_names
from trustassay.core import registry
from trustassay.core.metric import Assessment, Inventory, Summary
from trustassay.core.registry import load_metric_class, metric_from_text
from trustassay.core.sample import Sample
from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.metrics import Grounding


@dataclass(frozen=True)
class Options(Probe):
    number: float = 0.5
    count: int | None = 3
    on: bool = False
    maybe: bool | None = None
    kind: Literal["a", "b"] = "a"
    name_or_none: str | None = None


ENTRY_POINTS = """[trustassay.metrics]
options = tests.core.test_registry:Options
no-module = does.not.exist:Metric
no-class = tests.support:YES
broken = broken_plugin:Metric
"""


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[None]:
    info = tmp_path / "third_party-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "broken_plugin.py").write_text("1 / 0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(tmp_path)])
        registry._read_entry_points.cache_clear()
        yield
    registry._read_entry_points.cache_clear()


def options(text: str) -> Options:
    found = metric_from_text(text)
    assert type(found).__name__ == "Options"
    return found  # type: ignore[return-value]


# ---- names ----


def test_own_metrics_are_found_by_name() -> None:
    assert "grounding" in metric_names()
    assert load_metric_class("grounding") is Grounding
    assert metric_from_text("grounding") == Grounding()


@pytest.mark.usefixtures("installed")
def test_metrics_of_others_are_found_by_name() -> None:
    assert {"options", "grounding"} <= set(metric_names())
    assert options("options").number == 0.5


@pytest.mark.parametrize("name", ["grouding", "Grounding", "ground", "groundings"])
def test_a_misspelt_name_is_answered_with_the_nearest(name: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        metric_from_text(name)
    assert str(error.value) == f"unknown metric {name!r}; did you mean grounding?"


@pytest.mark.parametrize("name", ["xyz", "", " ", ":"])
def test_a_strange_name_is_answered_with_all(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"known: .*grounding"):
        metric_from_text(name)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no-module", "No module named 'does'"),
        ("no-class", "is not a Metric class"),
        ("broken", "ZeroDivisionError"),
    ],
)
def test_a_metric_that_cannot_be_loaded_is_named_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        metric_from_text(name)
    assert name in str(error.value)
    assert words in str(error.value)


# ---- options ----


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("number=0.25", {"number": 0.25}),
        ("number=1", {"number": 1.0}),
        ("count=7", {"count": 7}),
        ("count=none", {"count": None}),
        ("count=None", {"count": None}),
        ("on=yes", {"on": True}),
        ("on=TRUE,number=2", {"on": True, "number": 2.0}),
        ("maybe=off", {"maybe": False}),
        ("maybe=none", {"maybe": None}),
        ("kind=b", {"kind": "b"}),
        ("name_or_none=none", {"name_or_none": None}),
        ("name_or_none=a=b", {"name_or_none": "a=b"}),
        (",,number=3,", {"number": 3.0}),
        ("", {}),
    ],
)
def test_options_are_read_as_what_they_are(text: str, values: dict[str, Any]) -> None:
    assert options(f"options:{text}") == Options(**values)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nubmer=1", "unknown option of options 'nubmer'; did you mean number?"),
        ("number", "option number needs a value, as in number=VALUE"),
        ("number=high", "options: number: expected a number, got 'high'"),
        ("count=1.5", "options: count: expected a whole number, got '1.5'"),
        ("on=perhaps", "options: on: expected yes or no, got 'perhaps'"),
        ("on=none", "options: on: expected yes or no, got 'none'"),
        ("=1", "unknown option of options ''"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ValueError) as error:
        metric_from_text(f"options:{text}")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("profile=papr", "unknown profile 'papr'; did you mean paper?"),
        ("correctness=em6", "did you mean em"),
        ("splitter=sentencx", "did you mean sentencex"),
        ("refusal=phrase", "did you mean phrases"),
        ("threshold=nan", "between 0 and 1"),
        ("threshold=1", "between 0 and 1"),
        ("at_most_citations=0", "expected 1 or more, or none, got 0"),
        ("precision=alec", "did you mean alce"),
        ("threshhold=0.3", "did you mean threshold?"),
    ],
)
def test_values_of_grounding_are_answered_with_the_nearest(text: str, words: str) -> None:
    with pytest.raises(ValueError) as error:
        metric_from_text(f"grounding:{text}")
    assert words in str(error.value)


@given(st.text(max_size=30))
def test_no_text_whatever_raises_anything_else(text: str) -> None:
    for whole in (text, f"grounding:{text}"):
        try:
            metric_from_text(whole)
        except ValueError as error:
            assert str(error)


@given(st.text(max_size=8), st.lists(st.text(max_size=8)))
def test_did_you_mean_offers_known_names_alone(name: str, known: list[str]) -> None:
    message = did_you_mean("thing", name, known)
    assert message.startswith(f"unknown thing {name!r}; ")


# ---- values ----


def test_assessments_survive_their_json() -> None:
    usage = {"model": {"calls": 1}}
    full = Assessment("a", "m", 0.5, "v", "r", {"x": 1.0}, [{"k": 1}], {"entailment": 2}, usage)
    for assessment in (full, Assessment.for_failure("a", "m", "why")):
        assert Assessment.from_dict(assessment.to_dict()) == assessment
    assert next(iter(full.to_dict())) == "id"
    assert list(full.to_dict())[-1] == "error"  # the run folder tells failures by the line's end


def test_summaries_survive_their_json() -> None:
    summary = Summary({"a": None, "b": 1}, n=3, failed=1, not_applicable={"a": "no gold"})
    assert Summary(**summary.to_dict()) == summary


def test_the_inventory_counts_what_samples_bring() -> None:
    inventory = Inventory()
    inventory.add(Sample("a", "q", response=" \n"))
    inventory.add(
        Sample.parse(
            {
                "id": "b",
                "question": "q",
                "response": "r",
                "answers": ["The Nile is the longest river.", "x"],
                "claims": ["c", "d"],
                "documents": [{"text": "t", "supports": [1, 0]}],
                "label": 0,
            }
        )
    )
    inventory.add(Sample.parse({"id": "c", "question": "q", "documents": [], "answers": ["x"]}))
    assert inventory == Inventory(
        samples=3,
        responses=1,
        answers=2,
        claims=1,
        documents=2,
        supports=1,
        labels=1,
        sentence_answers=0,
    )


@pytest.mark.parametrize(
    ("answers", "sentences"),
    [
        (["The Nile is the longest river."], 1),
        (["The Nile is the longest river.", "Egypt"], 0),
        (["The Nile is the longest river.", "It is in Africa, mostly.", "x"], 1),
        (["the longest river in all of Africa"], 0),
        (["Nile."], 0),
        ([], 0),
    ],
)
def test_answers_that_read_as_sentences_are_counted(answers: list[str], sentences: int) -> None:
    inventory = Inventory()
    inventory.add(Sample.parse({"id": "a", "question": "q", "answers": answers}))
    assert inventory.sentence_answers == sentences


def test_functions_among_the_options_have_a_name() -> None:
    def own(text: str) -> list[str]:
        return [text]

    settings = Grounding(splitter=own).settings()
    assert settings["splitter"].endswith(
        "test_functions_among_the_options_have_a_name.<locals>.own"
    )
    assert Grounding().settings()["splitter"] == "sentencex"

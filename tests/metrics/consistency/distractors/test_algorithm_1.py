"""Algorithm 1 of the paper, in a world where all that is asked is noted."""

import asyncio
import re
from typing import Any, cast

import pytest

from tests.metrics.consistency.distractors.scripted import Scripted, names
from trustassay.core.capabilities import Entity, Models
from trustassay.errors import BackendError, UsageError
from trustassay.metrics.consistency.distractors import find_distractors
from trustassay.metrics.consistency.metric import Consistency
from trustassay.metrics.consistency.tokens import Distractor, normalise

WRITER = Entity("db:J", "Jane Doe", 0, 8, {"types": ["DBpedia:Writer"]})
SOURCES = {
    "dbpedia": {"*": ["Goethe"]},
    "embedding": {"Jane Doe": ["Anna"], "Jane": ["Mary"], "Doe": ["Roe"]},
    "pos": {"Jane Doe": ["Xi"]},
}


def find(models: Scripted, answer: str, question: str = "who", **options: Any) -> list[Distractor]:
    options.setdefault("sources", models.names("distractors"))
    return asyncio.run(
        find_distractors(question, answer, cast(Models, models), algorithm="paper", **options)
    )


def test_the_sources_of_entities_stand_in_the_order_of_the_paper() -> None:
    models = Scripted(SOURCES, [WRITER])
    distractors = find(models, "Jane Doe wrote it.", limit=40)
    assert [(one.source, one.replaced, one.replacement) for one in distractors] == [
        ("dbpedia", "Jane Doe", "Goethe"),
        ("embedding", "Jane Doe", "Anna"),
        ("embedding", "Jane", "Mary"),
        ("embedding", "Doe", "Roe"),
        ("pos", "Jane Doe", "Xi"),
    ]
    assert [(source, words) for source, words, *_ in models.asked] == [
        ("dbpedia", "Jane Doe"),
        ("embedding", "Jane Doe"),
        ("embedding", "Jane"),
        ("embedding", "Doe"),
        ("pos", "Jane Doe"),
    ]


@pytest.mark.parametrize(
    ("limit", "last"), [(1, "dbpedia"), (2, "embedding"), (4, "embedding"), (5, "pos")]
)
def test_a_source_is_asked_only_while_there_are_too_few(limit: int, last: str) -> None:
    models = Scripted(SOURCES, [WRITER])
    assert len(find(models, "Jane Doe wrote it.", limit=limit)) == limit
    assert models.asked[-1][0] == last


@pytest.mark.parametrize(
    ("answer", "question", "level", "asked"),
    [
        ("Jane wrote a good poem.", "what", 1, {"Jane"}),
        ("it is a good poem of 1912 with 3 verses", "what", 2, {"poem", "1912", "3", "verses"}),
        ("the poem is good", "what poem", 3, {"good", "poem"}),
        ("Jane", "Jane?", 3, {"Jane"}),
        ("so it is", "what", 4, {"so", "it", "is"}),
    ],
)
def test_only_the_first_level_that_the_answer_has_is_replaced(
    answer: str, question: str, level: int, asked: set[str]
) -> None:
    models = Scripted({"embedding": {"*": names(2)}})
    distractors = find(models, answer, question)
    assert {one.level for one in distractors} == {level}
    assert {words for _, words, *_ in models.asked} == asked


def test_a_level_without_candidates_is_not_topped_up_by_a_lower_one() -> None:
    """The branches of the algorithm are ``if`` and ``else if``."""
    models = Scripted({"embedding": {"poem": ["song"], "good": ["bad"]}})
    assert find(models, "Jane wrote a good poem.") == []
    assert {words for _, words, *_ in models.asked} == {"Jane"}


@pytest.mark.parametrize(
    ("limit", "asked"),
    [
        (4, ["finds", "good"]),
        (8, ["finds", "good", "Jane"]),
        (40, ["finds", "good", "Jane", "poem"]),
    ],
)
def test_level_3_asks_for_repeated_words_only_while_there_are_too_few(
    limit: int, asked: list[str]
) -> None:
    models = Scripted({"embedding": {word: [f"{n}{word}" for n in "xyz"] for word in
        ("finds", "good", "Jane", "poem")}})  # fmt: skip
    find(models, "Jane finds the poem good", "what does Jane say of the poem", limit=limit)
    assert [words for _, words, *_ in models.asked] == asked


def test_a_date_is_a_number_of_level_2_and_is_drawn_last() -> None:
    models = Scripted({"embedding": {"1912": ["1911"]}, "pos": {}})
    distractors = find(models, "it was in 1912", "when", limit=5)
    assert [one.source for one in distractors] == ["embedding"] + ["date"] * 4
    assert {one.level for one in distractors} == {2}


def test_all_words_of_a_level_have_their_turn() -> None:
    models = Scripted({"embedding": {"Jane": names(5), "Rome": ["Paris", "Oslo"]}})
    distractors = find(models, "Jane wrote in Rome.", "what", limit=5)
    assert [one.replaced for one in distractors] == ["Jane", "Rome", "Jane", "Rome", "Jane"]


def test_each_distractor_has_one_replacement_and_none_says_the_same() -> None:
    answer = "Jane met Ann in Rome."
    models = Scripted({"embedding": {"*": ["Jane", "Ann", "Rome", "Ada", "ADA", "Eve"]}})
    distractors = find(models, answer, "what", aliases=["Eve"])
    assert distractors
    for one in distractors:
        assert one.text == answer.replace(one.replaced, one.replacement, 1)
        assert normalise(one.text) != normalise(answer) and one.replacement != "Eve"
    assert len({normalise(one.text) for one in distractors}) == len(distractors)


def test_a_dbpedia_that_fails_fails_the_answer() -> None:
    models = Scripted({"dbpedia": {"fails": []}, "embedding": {"*": names(9)}}, [WRITER])
    with pytest.raises(BackendError, match="dbpedia is not there"):
        find(models, "Jane Doe wrote it.")


def test_a_source_that_the_algorithm_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="algorithm: paper has no source pool"):
        find(Scripted({"embedding": {}}), "Jane", pool=["Ann"])
    for source in ("llm", "pool"):
        with pytest.raises(UsageError, match=f"paper has no source {source}"):
            Consistency(algorithm="paper", sources=f"embedding+{source}")
    assert not Consistency(algorithm="paper").asks_generator


@pytest.mark.parametrize(
    ("answer", "replaced", "form"),
    [
        ("All night long came out in 1983.", "1983", "19[0-9]{2}|200[0-3]"),
        ("A spider has 8 legs.", "8", "[2-9]"),
        ("About 139,000 live there.", "139,000", "[0-9]{2,3},000"),
        ("It took 3.5 hours.", "3.5", r"[0-9]\.[0-9]"),
        ("It was built in the 18th century.", "18th", "[0-9]{2}(st|nd|rd|th)"),
        ("It has two wheels.", "two", "three|four|five|six|seven|eight|nine|ten|eleven|twelve"),
    ],
)
@pytest.mark.parametrize("sources", [("embedding",), ("embedding", "pos")])
def test_a_number_is_replaced_by_numbers_of_its_form(
    answer: str, replaced: str, form: str, sources: tuple[str, ...]
) -> None:
    """The built-in source has number words only, as near words of ``1983``."""
    near = {"*": ["four", "two", "thousand", "forty", "home"]}
    models = Scripted(dict.fromkeys(sources, near))
    distractors = [one for one in find(models, answer) if one.replaced == replaced]
    assert len(distractors) >= 3
    for one in distractors:
        assert re.fullmatch(form, one.replacement) and one.replacement != replaced
        assert one.text == answer.replace(replaced, one.replacement)


def test_numbers_have_candidates_although_other_words_have_enough() -> None:
    models = Scripted({"embedding": {"poem": names(8), "1999": ["home"]}})
    distractors = find(models, "the poem of 1999", "what", limit=4)
    assert [one.replaced for one in distractors] == ["poem", "1999"] * 2


def test_a_number_in_a_name_is_no_name() -> None:
    mission = Entity("db:A", "Apollo 11", 0, 9)
    models = Scripted({"embedding": {"Apollo": ["Hermes"], "11": ["Ares"]}}, [mission])
    distractors = find(models, "Apollo 11", "what flew")
    assert distractors[0].text == "Hermes 11"
    assert {one.source for one in distractors if one.replaced == "11"} == {"number"}

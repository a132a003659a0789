import asyncio
from typing import Any, cast

import pytest

from tests.metrics.consistency.distractors.scripted import Scripted, names
from trustassay.core.capabilities import Entity, Models
from trustassay.errors import BackendError
from trustassay.metrics.consistency.distractors import find_distractors
from trustassay.metrics.consistency.tokens import Distractor

QUESTION, ANSWER = "who wrote it", "Jane wrote it."


def find(
    models: Scripted, question: str = QUESTION, answer: str = ANSWER, **options: Any
) -> list[Distractor]:
    options.setdefault("sources", models.names("distractors"))
    return asyncio.run(find_distractors(question, answer, cast(Models, models), **options))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 40])
def test_as_many_as_the_sources_have(n: int) -> None:
    found = find(Scripted({"embedding": {"Jane": names(n)}}))
    assert len(found) == n
    assert [one.text for one in found] == [f"{name} wrote it." for name in names(n)]
    assert len({one.text for one in found}) == n


def test_no_more_than_the_limit_and_the_best_of_them() -> None:
    found = find(Scripted({"embedding": {"Jane": names(60)}}), limit=7)
    assert [one.replacement for one in found] == names(7)
    with pytest.raises(ValueError, match="limit: expected 1 or more, got 0"):
        find(Scripted({"embedding": {}}), limit=0)


def test_a_lower_source_is_asked_only_when_needed_and_levels_top_up_downwards() -> None:
    sources = {"embedding": {"Jane": ["Anna"], "produced": ["sang"]}, "pos": {"Jane": ["Xi"]}}
    found = find(Scripted(sources), answer="Jane produced it.", limit=3)
    assert [(one.level, one.source, one.replacement) for one in found] == [
        (1, "embedding", "Anna"),
        (1, "pos", "Xi"),
        (3, "embedding", "sang"),
    ]
    enough = Scripted({"embedding": {"Jane": names(3)}, "pos": {"*": ["Xi"]}})
    find(enough, limit=3)
    assert {source for source, *_ in enough.asked} == {"embedding"}


def test_dates_and_numbers_need_no_source() -> None:
    found = find(Scripted({"embedding": {}}), "when was it", "It was in 1983.", limit=40)
    assert len(found) == 40
    assert {one.source for one in found} == {"date"} and {one.level for one in found} == {1}
    counted = find(Scripted({"embedding": {}}), "how many", "There were 12 of it.", limit=5)
    assert {one.source for one in counted} == {"number"} and len(counted) == 5


def test_nothing_that_says_the_same_and_nothing_twice() -> None:
    offered = ["jane", "JANE!", "Jane Austen", "Austen", "Emily", "emily", "Emily Bronte", "Ann"]
    found = find(Scripted({"embedding": {"Jane": offered}}), aliases=["Austen", "Ann wrote it"])
    assert [one.replacement for one in found] == ["Emily"]


def test_duplicates_are_dropped_in_the_order_of_rank() -> None:
    """Earlier code kept the longest of them, whatever its rank."""
    offered = ["York", "New York City", "Rome"]
    found = find(Scripted({"embedding": {"Jane": offered}}))
    assert [one.replacement for one in found] == ["York", "Rome"]


def test_one_digit_beside_two_is_not_the_same() -> None:
    found = find(Scripted({"embedding": {"Jane": ["Team 1", "Team 10"]}}))
    assert [one.replacement for one in found] == ["Team 1", "Team 10"]


def test_a_pool_stands_before_near_words_and_behind_a_knowledge_base() -> None:
    linked = [Entity("db:J", "Jane", 0, 4, {"types": ["DBpedia:Writer"]})]
    models = Scripted({"embedding": {"Jane": ["Anna"]}, "dbpedia": {"*": ["Goethe"]}}, linked)
    found = find(models, pool=["Pablo Picasso", "1983"], limit=3)
    assert [(one.source, one.replacement) for one in found] == [
        ("dbpedia", "Goethe"),
        ("pool", "Pablo Picasso"),
        ("embedding", "Anna"),
    ]


@pytest.mark.parametrize("useless", ["Jane", "Sappho", "Austen", "Jane Doe"])
def test_only_usable_entities_count_when_types_are_reduced(useless: str) -> None:
    """The entity itself, repeated ones and right answers are in every answer of a service."""
    types = ["DBpedia:Poet", "DBpedia:Writer"]
    linked = [Entity("db:J", "Jane", 0, 4, {"types": types})]
    base = {
        "DBpedia:Poet+DBpedia:Writer": ["Sappho", useless],
        "DBpedia:Poet": ["Sappho", useless],
        "DBpedia:Writer": ["Byron", useless],
    }
    distractors = find(Scripted({"dbpedia": base}, linked), limit=2, aliases=["Austen wrote it"])
    assert [one.replacement for one in distractors] == ["Sappho", "Byron"]


def test_dbpedia_is_not_asked_for_types_that_are_guessed_from_the_question() -> None:
    linked = [Entity("db:J", "Jane", 0, 4)]
    models = Scripted({"dbpedia": {"*": ["Goethe"]}, "embedding": {"Jane": ["Anna"]}}, linked)
    assert [one.source for one in find(models, "who wrote it")] == ["embedding"]
    assert {source for source, *_ in models.asked} == {"embedding"}


def test_types_are_reduced_until_there_are_enough() -> None:
    types = ["DBpedia:Poet", "DBpedia:Writer"]
    linked = [Entity("db:J", "Jane", 0, 4, {"types": types})]
    base = {
        "DBpedia:Poet+DBpedia:Writer": ["Sappho"],
        "DBpedia:Poet": ["Sappho", "Byron"],
        "DBpedia:Writer": ["Kafka"],
    }
    models = Scripted({"dbpedia": base}, linked)
    found = find(models, limit=1)
    assert [one.replacement for one in found] == ["Sappho"]
    assert [asked[3] for asked in models.asked] == [tuple(types)]
    models.asked.clear()
    found = find(models, limit=5)
    assert [one.replacement for one in found] == ["Sappho", "Byron", "Kafka"]
    assert [asked[3] for asked in models.asked] == [
        ("DBpedia:Poet", "DBpedia:Writer"),
        ("DBpedia:Poet",),
        ("DBpedia:Writer",),
    ]


def test_the_words_of_an_entity_of_several_are_replaced_when_the_whole_is_not_enough() -> None:
    models = Scripted({"embedding": {"Mary Shelley": ["Ann Lee"], "Shelley": ["Keats"]}})
    found = find(models, answer="Mary Shelley wrote it.")
    assert [(one.replaced, one.text) for one in found] == [
        ("Mary Shelley", "Ann Lee wrote it."),
        ("Shelley", "Mary Keats wrote it."),
    ]


def test_slots_are_asked_for_in_blocks_until_there_are_enough() -> None:
    many = ", ".join(names(30))
    models = Scripted({"embedding": {"*": ["Paris", "Oslo"]}})
    assert len(find(models, "what", many, limit=4)) == 4
    assert len({words for _, words, *_ in models.asked}) == 8
    assert len(find(models, "what", many, limit=40)) == 40


def test_what_is_under_way_ends_before_a_failure_is_raised() -> None:
    class Slow(Scripted):
        ended = 0

        async def substitutes(self, words: str, **others: Any) -> tuple[str, ...]:
            if words == "Xuaara":
                raise BackendError("out of order")
            await asyncio.sleep(0)
            self.ended += 1
            return ()

    models = Slow({"embedding": {}})
    with pytest.raises(BackendError, match="out of order"):
        find(models, "what", ", ".join(names(4)))
    assert models.ended == 3


def test_one_slot_after_the_other_so_that_the_answer_is_not_the_middle_of_its_options() -> None:
    models = Scripted({"embedding": {"Jane": names(5), "Rome": ["Paris", "Oslo"]}})
    found = find(models, "what happened", "Jane wrote it in Rome.", limit=6)
    assert [one.replaced for one in found] == ["Jane"] * 5 + ["Rome"]


def test_after_six_distractors_nothing_else_is_asked() -> None:
    models = Scripted({"embedding": {"Jane": names(6), "*": ["x"]}, "pos": {"*": ["y"]}})
    distractors = find(models, answer="Jane wrote it in Rome.", limit=40)
    assert [one.replaced for one in distractors] == ["Jane"] * 6
    assert [words for _, words, *_ in models.asked] == ["Jane"]


@pytest.mark.parametrize("question", ["who won a ring in 2009?", "who won a ring?"])
def test_no_date_is_replaced_where_the_question_asks_for_a_person(question: str) -> None:
    models = Scripted({"embedding": {"Kobe Bryant": names(40)}})
    distractors = find(models, question, "Kobe Bryant won a ring with the Lakers in 2009.")
    assert {one.replaced for one in distractors} == {"Kobe Bryant"} and len(distractors) == 40


def test_an_answer_does_not_end_before_it_begins() -> None:
    answer = "It was from 3 May 1939 to 4 June 1945."
    distractors = find(Scripted({"embedding": {}}), "when was it", answer)
    years = [int(one.replacement[-4:]) for one in distractors if one.replaced == "3 May 1939"]
    assert years and max(years) < 1945


@pytest.mark.parametrize("other", ["twelve", "Twelve", "12.0"])
def test_the_same_number_in_other_words_is_no_distractor(other: str) -> None:
    models = Scripted({"mine": {"Team": [other, "Club"]}})
    distractors = find(models, "what", "Team", aliases=["12"])
    assert [one.replacement for one in distractors] == ["Club"]


def test_the_same_seed_the_same_distractors_and_another_seed_others() -> None:
    models = Scripted({"embedding": {}})
    one, two, three = (
        find(models, "when", "It was in 1983.", seed=seed, limit=5) for seed in (1, 1, 2)
    )
    assert one == two != three


def test_what_cannot_be_asked_is_said_before_anything_is_asked() -> None:
    models = Scripted({"embedding": {}, "dbpedia": {}})
    with pytest.raises(
        BackendError,
        match="dbpedia needs the types of entities; name a linker, for example --backend linker",
    ):
        find(models)
    with pytest.raises(BackendError, match="unknown source of distractors 'pos'"):
        find(models, sources=["pos"])
    with pytest.raises(BackendError, match="name one with --backend generator=URI"):
        find(models, sources=["llm"])
    assert models.asked == []


def test_a_source_that_fails_fails_the_answer() -> None:
    with pytest.raises(BackendError, match="is not there"):
        find(Scripted({"embedding": {"fails": []}}))


@pytest.mark.parametrize("answer", ["", "  ", "...", "{{ question }}", "<b>x</b>", "\udc00 x"])
def test_strange_answers(answer: str) -> None:
    found = find(Scripted({"embedding": {"*": ["Rome", "Oslo"]}}), answer=answer)
    assert all(one.text != answer for one in found)

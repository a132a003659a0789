from trustassay.core.sample import Sample
from trustassay.metrics.consistency import slots
from trustassay.metrics.consistency.slots import find_same_kind_answers, select_fitting
from trustassay.metrics.consistency.tokens import (
    Slot,
    find_expected_kind,
    find_likely_types,
    find_question_word,
)

OWN = Sample("0", "who wrote Emma", "Jane Austen wrote Emma.", answers=(("Austen", "Jane"),))
POOL = [
    OWN,
    Sample("1", "who painted it", "Pablo Picasso painted it."),
    Sample("2", "who sang it", "Aretha Franklin"),
    Sample("3", "who was it", "It was Jane Austen."),
    Sample("4", "when was it", "In 1983."),
    Sample("5", "where was it", "Paris"),
    Sample("6", "who was pope", "PABLO PICASSO!"),
    Sample("7", "who wrote Emma", "Mary Shelley"),
    Sample("8", "who was first", "Lyndon Baines Johnson Junior was first."),
    Sample("9", "who is it", None),
]


def test_the_words_that_answer_questions_of_the_same_kind_once_each() -> None:
    found = find_same_kind_answers(OWN, POOL)
    assert sorted(found[:2]) == ["Aretha Franklin", "Pablo Picasso"]  # as long as its own
    assert found[2:] == ["Lyndon Baines Johnson Junior"]


def test_only_short_answers_are_kept() -> None:
    slots._search_telling_slot.cache_clear()
    long = Sample("1", "who painted it", "Pablo Picasso painted it, " + "and it is big, " * 30)
    assert find_same_kind_answers(OWN, [long]) == ["Pablo Picasso"]
    assert slots._search_telling_slot.cache_info().currsize == 1  # that of the sample itself


def test_the_order_depends_on_the_seed_alone() -> None:
    many = [
        Sample(str(i), "who did it", f"{name} Smith")
        for i, name in enumerate("Ann Bob Carl Dora Emil Fred Gina Hans".split())
    ]
    orders = {tuple(find_same_kind_answers(OWN, many, seed=seed)) for seed in range(5)}
    assert len(orders) > 1
    assert find_same_kind_answers(OWN, many, seed=3) == find_same_kind_answers(OWN, many, seed=3)


def test_what_fits_a_slot_is_of_its_kind_and_length() -> None:
    person = Slot("Jane Austen", 0, 11, "entity", 1, "NNP")
    others = ["Pablo Picasso", "Lyndon Baines Johnson Junior", "1983", "seven", "Paris", "guitar"]
    assert select_fitting(person, others) == ["Pablo Picasso", "Paris"]
    assert select_fitting(Slot("1990", 0, 4, "date", 1), others) == ["1983"]
    assert select_fitting(Slot("two", 0, 3, "number", 2), others) == ["seven"]
    assert select_fitting(Slot("piano", 0, 5, "word", 2, "NN"), others) == ["guitar"]


def test_what_questions_ask_for() -> None:
    assert (
        find_question_word("Which city is it?")
        == find_question_word("in what city was he born")
        == "what city"
    )
    assert find_question_word("How many are there") == "how many"
    assert find_question_word("Whose is it") == "who"
    assert find_question_word("name the king") == ""
    assert find_expected_kind("what year was it") == "date"
    assert find_expected_kind("what is it") is None
    assert find_likely_types("which author wrote it") == ("Person",)
    assert find_likely_types("what country is it") == ("Country",)
    assert find_likely_types("where is it") == find_likely_types("which place is it") == ("Place",)
    assert find_likely_types("what is it") == ()

import pytest

from trustassay.backends.listed_words import DrawnWords, NearWords
from trustassay.backends.name_phrases import Part, parts_of
from trustassay.backends.word_table import word_table
from trustassay.capabilities import SubstitutesRequest

KINDS = {
    "John": "given name", "Mary": "given name", "Lennon": "surname", "Paris": "place",
    "Virginia": "place", "French": "people", "London": "place", "Disney": "other",
}  # fmt: skip
COMMON = {"university": "NN", "west": "NN", "king": "NN", "sound": "NN", "black": "JJ"}


def parts(words: str) -> list[tuple[str, str]]:
    found = parts_of(words, lambda w: KINDS.get(w, ""), lambda w: COMMON.get(w.lower(), ""))
    assert all(isinstance(one, Part) for one in found)
    return [(words[one.start : one.end], one.group) for one in found]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("John Lennon", [("John", "given name"), ("Lennon", "surname")]),
        ("J. R. Xyz", [("Xyz", "surname")]),
        ("Mary London", [("Mary", "given name"), ("London", "surname")]),
        ("Dr. John Xyz", [("John", "given name"), ("Xyz", "surname")]),
        ("King John", [("John", "given name")]),
        ("West Virginia", [("West Virginia", "place")]),
        ("University of Paris", [("Paris", "place")]),
        ("French Sound", [("French", "people")]),
        ("Black Sound", [("Black", "JJ"), ("Sound", "NN")]),
        ("Xyzzy", [("Xyzzy", "")]),
        ("of the", []),
        ("12", []),
    ],
)
def test_which_words_of_a_name_are_replaced(words: str, expected: list[tuple[str, str]]) -> None:
    assert parts(words) == expected


@pytest.fixture(scope="module")
def near() -> NearWords:
    return NearWords()


def test_the_table_is_sorted_by_kind() -> None:
    table = word_table()
    for kind, inside, outside in (
        ("place", "Denver", "Rebecca"),
        ("given name", "Rebecca", "Denver"),
        ("surname", "Perkins", "Denver"),
        ("people", "Swedish", "Perkins"),
    ):
        words = {table.words[i] for i in table.groups[kind]}
        assert inside in words and outside not in words
        assert table.kind(inside) == kind
    assert not any(word.isupper() for word in table.words)
    assert table.kind("Lactase") == ""


def test_near_words_are_of_the_tag_and_no_form_of_the_word(near: NearWords) -> None:
    (found,) = near.substitutes([SubstitutesRequest("composer", 40, "NN")])
    assert len(found) == 40 == len(set(found))
    assert {"pianist", "playwright"} <= set(found)
    assert not {"composer", "composers", "composed", "composing"} & set(found)


def test_names_are_replaced_by_names_of_their_kinds(near: NearWords) -> None:
    table = word_table()
    (found,) = near.substitutes([SubstitutesRequest("John Lennon", 20, "NNP")])
    assert len(found) == 20
    for name in found:
        given, surname = name.split()
        assert table.kind(given) == "given name" and table.kind(surname) == "surname"
    (schools,) = near.substitutes([SubstitutesRequest("University of California", 5, "NNP")])
    assert all(one.startswith("University of ") for one in schools)


def test_an_unknown_name_takes_the_kind_that_its_types_tell(near: NearWords) -> None:
    table = word_table()
    (people,) = near.substitutes([SubstitutesRequest("Vasudeva", 9, "NNP", ("Person",))])
    assert {table.kind(one) for one in people} == {"surname"}
    (places,) = near.substitutes([SubstitutesRequest("Vasudeva", 9, "NNP", ("DBpedia:City",))])
    assert {table.kind(one) for one in places} == {"place"}
    (any_kind,) = near.substitutes([SubstitutesRequest("Vasudeva", 9, "NNP")])
    assert len(any_kind) == 9


def test_drawn_words_are_the_same_each_time_and_of_the_tag() -> None:
    table = word_table()
    request = SubstitutesRequest("composer", 20, "NN")
    (one,), (two,) = DrawnWords().substitutes([request]), DrawnWords().substitutes([request])
    assert one == two and len(set(one)) == 20
    assert all(table.lexicon[word] == "NN" for word in one)
    (other,) = DrawnWords().substitutes([SubstitutesRequest("painter", 20, "NN")])
    assert other != one


@pytest.mark.parametrize("words", ["", " ", "a b", "\u4e2d", "🙂"])
def test_strange_words_have_substitutes_or_none(near: NearWords, words: str) -> None:
    for tag in ("NN", "NNP", "", "nonsense"):
        (found,) = near.substitutes([SubstitutesRequest(words, 3, tag)])
        assert len(found) <= 3
    assert near.substitutes([SubstitutesRequest("composer", 0, "NN")]) == [[]]

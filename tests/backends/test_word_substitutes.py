from itertools import pairwise

import numpy as np
import pytest

from trustassay.backends.kinds import load_kinds
from trustassay.backends.word_substitutes import (
    EXAMPLES,
    MAX_OF_LIST,
    DrawnWords,
    NamePart,
    NearWords,
    WordTable,
    split_name,
    word_table,
)
from trustassay.core.capabilities import SubstitutesRequest

KINDS = {
    "John": "given name", "Mary": "given name", "Lennon": "surname", "Paris": "place",
    "Virginia": "place", "French": "people", "London": "place", "Disney": "other",
}  # fmt: skip
COMMON = {
    "university": "NN",
    "west": "NN",
    "king": "NN",
    "lake": "NN",
    "new": "JJ",
    "united": "JJ",
    "states": "NNS",
    "hall": "NN",
    "sound": "NN",
    "black": "JJ",
}


def parts(words: str) -> list[tuple[str, str]]:
    found = split_name(words, lambda w: KINDS.get(w, ""), lambda w: COMMON.get(w.lower(), ""))
    assert all(isinstance(one, NamePart) for one in found)
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
        ("Lake Xyz", [("Xyz", "")]),
        ("New Zealand", [("New Zealand", "place")]),
        ("United States", [("United States", "place")]),
        ("Disney Hall of Paris", [("Paris", "place")]),
        ("Black Sound", [("Black", "JJ"), ("Sound", "NN")]),
        ("Xyzzy", [("Xyzzy", "")]),
        ("of the", []),
        ("12", []),
    ],
)
def test_which_words_of_a_name_are_replaced(words: str, expected: list[tuple[str, str]]) -> None:
    assert parts(words) == expected


def of_kind(table: WordTable, kind: str) -> set[str]:
    return {table.words[i] for i in table.groups[kind]}


@pytest.fixture(scope="module")
def near() -> NearWords:
    return NearWords()


@pytest.mark.slow
def test_the_table_is_sorted_by_kind() -> None:
    table = word_table()
    for kind, inside, outside in (
        ("place", "Toronto", "Rebecca"),
        ("given name", "Rebecca", "Toronto"),
        ("surname", "Perkins", "Toronto"),
        ("people", "Swedish", "Perkins"),
    ):
        words = of_kind(table, kind)
        assert inside in words and outside not in words
        assert table.kind(inside) == kind
    assert not any(table.words[i].isupper() for kind in EXAMPLES for i in table.groups[kind])
    assert table.kind("Lactase") == ""


def test_near_words_are_of_the_tag_and_no_form_of_the_word(near: NearWords) -> None:
    (substitutes,) = near.substitutes([SubstitutesRequest("kitchen", 40, "NN")])
    assert len(substitutes) == 40 == len(set(substitutes))
    table, vector = word_table(), word_table().vector("kitchen")
    assert vector is not None
    likeness = [float(vector @ table.vectors[table.words.index(word)]) for word in substitutes]
    assert np.mean(likeness) > 3 * float((table.vectors[table.groups["NN"]] @ vector).mean())
    assert all(table.lexicon[word] == "NN" for word in substitutes)
    assert not {"kitchen", "kitchens", "kitchenette"} & set(substitutes)


def test_names_are_replaced_by_names_of_their_kinds(near: NearWords) -> None:
    table = word_table()
    (found,) = near.substitutes([SubstitutesRequest("John Lennon", 20, "NNP")])
    assert len(found) == 20
    for name in found:
        given, surname = name.split()
        assert given in of_kind(table, "given name") and surname in of_kind(table, "surname")
    (schools,) = near.substitutes([SubstitutesRequest("University of California", 5, "NNP")])
    assert all(one.startswith("University of ") for one in schools)


def test_an_unknown_name_takes_the_kind_that_its_types_tell(near: NearWords) -> None:
    table = word_table()
    (people,) = near.substitutes([SubstitutesRequest("Vasudeva", 9, "NNP", ("Person",))])
    assert set(people) <= of_kind(table, "surname")
    (places,) = near.substitutes([SubstitutesRequest("Vasudeva", 9, "NNP", ("DBpedia:City",))])
    assert set(places) <= of_kind(table, "place")
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


def test_the_word_is_not_the_middle_of_its_substitutes(near: NearWords) -> None:
    """The nearest words of a word would have it in their middle, and give it away."""
    table, hits, n = word_table(), 0, 0
    for word in "Denver Toronto Sweden Kenya Boston Poland Vermont Nepal Cairo Dublin".split():
        (found,) = near.substitutes([SubstitutesRequest(word, 3, "NNP")])
        vectors = [table.vector(one) for one in (word, *found)]
        rows = np.stack([one for one in vectors if one is not None])
        hits += int((rows @ rows.T).sum(axis=1).argmax() == 0)
        n += 1
    assert hits <= n / 2  # 2.5 by chance; 9 with the nearest


def test_substitutes_are_in_turn_rarer_and_more_frequent(near: NearWords) -> None:
    table = word_table()
    rarer = []
    for word in "drought violin captain kitchen mayor island prison lawyer".split():
        (found,) = near.substitutes([SubstitutesRequest(word, 20, "NN")])
        own = table.rarity_of(word)
        rarer.append(np.mean([table.rarity_of(one) > own for one in found]))
    assert 0.2 < np.mean(rarer) < 0.8


@pytest.mark.parametrize("words", ["", " ", "a b", "\u4e2d", "🙂"])
def test_strange_words_have_substitutes_or_none(near: NearWords, words: str) -> None:
    for tag in ("NN", "NNP", "", "nonsense"):
        (found,) = near.substitutes([SubstitutesRequest(words, 3, tag)])
        assert len(found) <= 3
    assert near.substitutes([SubstitutesRequest("composer", 0, "NN")]) == [[]]


def test_a_country_is_replaced_by_a_country_and_by_what_is_asked_for(near: NearWords) -> None:
    table = word_table()
    (found,) = near.substitutes([SubstitutesRequest("Sweden", 20, "NNP")])
    assert set(found) <= of_kind(table, "country") and "Finland" in of_kind(table, "country")
    (states,) = near.substitutes([SubstitutesRequest("New York", 20, "NNP", ("State",))])
    assert len(states) == MAX_OF_LIST and set(states) <= of_kind(table, "state")


@pytest.mark.parametrize(
    ("word", "tag"), [("trespassed", "VBD"), ("embezzled", "VBD"), ("borax", "NN")]
)
def test_rare_words_are_not_replaced_in_the_order_of_the_alphabet(
    near: NearWords, word: str, tag: str
) -> None:
    """Words of equal rarity were sorted by their index, which is that of the alphabet."""
    (substitutes,) = near.substitutes([SubstitutesRequest(word, 20, tag)])
    assert len(substitutes) == 20
    assert 5 <= sum(first < second for first, second in pairwise(substitutes)) <= 14
    tags = {"VBD", "VBN"} if tag == "VBD" else {tag}
    assert {word_table().lexicon[text].split("|")[0] for text in substitutes} <= tags


def test_the_likest_words_come_first(near: NearWords) -> None:
    table = word_table()
    for word, tag in (("trespassed", "VBD"), ("borax", "NN"), ("kitchen", "NN")):
        (substitutes,) = near.substitutes([SubstitutesRequest(word, 20, tag)])
        vector = table.vector(word)
        assert vector is not None
        likeness_of_group = table.vectors[table.groups[tag]] @ vector
        likeness = [float(vector @ table.vectors[table.words.index(text)]) for text in substitutes]
        assert min(likeness) > np.quantile(likeness_of_group, 0.9)


@pytest.mark.parametrize(
    ("word", "synonym", "tag"), [("big", "large", "JJ"), ("sofa", "couch", "NN")]
)
def test_synonyms_are_no_substitutes(near: NearWords, word: str, synonym: str, tag: str) -> None:
    (substitutes,) = near.substitutes([SubstitutesRequest(word, 80, tag)])
    assert substitutes and synonym not in substitutes


@pytest.mark.parametrize(
    ("words", "tag", "types", "some"),
    [
        ("violin", "NN", (), {"cello", "piano"}),
        ("lungs", "NNS", (), {"kidneys", "hearts"}),
        ("New York Yankees", "NNPS", ("Person",), {"Boston Red Sox"}),
        ("Atlanta, Georgia", "NNP", ("Place",), {"Dallas, Texas"}),
        ("War", "NNP", ("Film",), {"Braveheart"}),
        ("tennis player", "NN", ("Sport",), {"badminton player"}),
        ("Bonn", "NNP", ("Capital",), {"Cologne"}),
    ],
)
def test_things_of_a_kind_replace_each_other(
    near: NearWords, words: str, tag: str, types: tuple[str, ...], some: set[str]
) -> None:
    (substitutes,) = near.substitutes([SubstitutesRequest(words, 40, tag, types)])
    assert some <= set(substitutes) and words not in substitutes


@pytest.mark.parametrize(
    ("words", "tag", "kind", "same"),
    [
        ("Bombay", "NNP", "City", "Mumbai"),
        ("WWII", "NNP", "War", "World War II"),
        ("Great Britain", "NNP", "Country", "England"),
        ("Koran", "NNP", "Holy book", "Quran"),
        ("corn", "NN", "Crop", "maize"),
    ],
)
def test_another_name_of_the_same_thing_is_no_substitute(
    near: NearWords, words: str, tag: str, kind: str, same: str
) -> None:
    assert same in load_kinds().members[load_kinds().find(words, (kind,))]
    (substitutes,) = near.substitutes([SubstitutesRequest(words, 40, tag, (kind,))])
    assert len(substitutes) >= 10 and same not in substitutes


def test_names_of_men_replace_those_of_men_and_kings_those_of_kings(near: NearWords) -> None:
    table = word_table()
    requests = [
        SubstitutesRequest("Kobe Bryant", 20, "NNP", ("Person",)),
        SubstitutesRequest("Mary Shelley", 20, "NNP", ("Person",)),
        SubstitutesRequest("Edward III of England", 9, "NNP", ("Person",)),
        SubstitutesRequest("Queen Mathilda", 9, "NNP", ("Person",)),
        SubstitutesRequest("Oxyana Shelley", 9, "NNP", ("Person",)),
    ]
    men, women, kings, queens, rare_women = near.substitutes(requests)
    assert len(men) == len(women) == 20
    assert {name.split()[0] for name in men} <= of_kind(table, "man")
    assert {name.split()[0] for name in women} <= of_kind(table, "woman")
    assert {name.split()[0] for name in kings} <= of_kind(table, "kings")
    assert all(name.endswith(" III of England") for name in kings)
    assert queens and {name.split()[1] for name in queens} <= of_kind(table, "queens")
    # A name that no list has is a woman's if it ends as most of those do.
    assert rare_women and {name.split()[0] for name in rare_women} <= of_kind(table, "woman")


def test_a_person_is_no_member_of_what_is_asked_for(near: NearWords) -> None:
    (people,) = near.substitutes([SubstitutesRequest("John Lennon", 9, "NNP", ("Film",))])
    assert people and {name.split()[0] for name in people} <= of_kind(word_table(), "man")


def test_stuff_has_no_plural(near: NearWords) -> None:
    (substitutes,) = near.substitutes([SubstitutesRequest("potatoes", 40, "NNS")])
    assert {"maizes", "wheats", "barleys"}.isdisjoint(substitutes)
    (singular,) = near.substitutes([SubstitutesRequest("potato", 40, "NN")])
    assert {"maize", "wheat", "barley"} <= set(singular)

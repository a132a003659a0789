import pytest

from trustassay.backends.kinds import load_kinds


@pytest.mark.parametrize(
    ("words", "types", "expected"),
    [
        ("violin", (), "instrument"),
        ("the Torres Strait", (), "strait"),
        ("Xyzzy Strait", (), "strait"),
        ("Lake Xyzzy", (), "lake"),
        ("Xyzzy", (), ""),
        ("Xyzzy", ("Film",), "film"),
        ("Xyzzy", ("DBpedia:Film",), "film"),
        ("Xyzzy", ("Silent movie", "Movie"), "film"),
        ("Georgia", (), "country"),
        ("Georgia", ("State",), "state"),
        ("Boston", ("Us city", "City"), "american city"),
        ("Boston Celtics", ("Team",), "nba team"),
        ("Atlanta, Georgia", (), "city of a state"),
        ("Lyon, France", (), "city of a country"),
        ("Lyon, Xyzzy", (), ""),
        # A person is no film, though one is called so; nor is a place.
        ("Lincoln", ("Person",), ""),
        ("Casablanca", ("Place",), ""),
        ("Casablanca", (), "film"),
        ("fantasy novel", ("Genre",), "film genre"),
        ("Xyzzy", ("Channel",), "network"),
        ("English Channel", (), "strait"),
        ("beetle", ("Insect",), "insect"),
        ("cobra", ("Snake",), "reptile"),
    ],
)
def test_the_kind_of_words(words: str, types: tuple[str, ...], expected: str) -> None:
    assert load_kinds().find(words, types) == expected


def test_every_list_has_different_members_and_enough_for_a_choice() -> None:
    for name, members in load_kinds().members.items():
        assert len(members) >= 4, name
        assert len({member.lower() for member in members}) == len(members), name
        assert all(member == member.strip() and member for member in members), name


def test_names_have_capitals_and_things_have_none() -> None:
    kinds = load_kinds()
    for name, members in kinds.members.items():
        starts = [member.removeprefix("the ")[0] for member in members]
        if kinds.is_of_names(name):
            assert all(sign.isupper() or sign.isdigit() for sign in starts), name
        else:
            assert all(sign.islower() for sign in starts), name


@pytest.mark.parametrize(
    ("words", "other", "is_same"),
    [
        ("the USA", "United States", True),
        ("England", "the United Kingdom", True),
        ("England", "Scotland", False),
        ("Xyzzy", "Xyzzy Strait", False),
    ],
)
def test_names_of_one_thing_are_known(words: str, other: str, is_same: bool) -> None:
    kinds = load_kinds()
    assert kinds.is_same(words, other) == kinds.is_same(other, words) == is_same

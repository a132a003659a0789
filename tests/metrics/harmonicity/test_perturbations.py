"""Families of perturbations: what each promises, for any text."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trustassay.errors import UnknownNameError
from trustassay.metrics.harmonicity.perturbations import (
    CONTROL,
    FAMILIES,
    WHITESPACE,
    NoPerturbationError,
    find_family,
    perturb,
    show_change,
)
from trustassay.statistics.resampling import generator

TEXTS = st.text(max_size=60)
SENTENCE = "What big city is near the famous road, and who built it?"


def rng(*purpose: str) -> np.random.Generator:
    return generator(0, *purpose)


@pytest.mark.parametrize("name", FAMILIES)
@given(text=TEXTS, sample_id=st.text(max_size=5))
@example(text="", sample_id="")
@example(text=SENTENCE, sample_id="a")
@example(text="\ud800 \x00 word", sample_id="a")
def test_each_changes_the_text_and_follows_from_seed_and_sample(
    name: str, text: str, sample_id: str
) -> None:
    try:
        changed = perturb(text, find_family(name), rng(sample_id))
    except NoPerturbationError as error:
        assert name in {"typo", "synonym"}
        assert name in str(error)
        return
    assert changed != text
    assert changed == perturb(text, find_family(name), rng(sample_id))
    assert changed.startswith(text) or not find_family(name).appends


@pytest.mark.parametrize(("name", "alphabet"), [("control", CONTROL), ("whitespace", WHITESPACE)])
@given(text=TEXTS)
def test_one_to_three_characters_of_an_alphabet_at_the_end(
    name: str, alphabet: str, text: str
) -> None:
    tail = perturb(text, find_family(name), rng(text)).removeprefix(text)
    assert 1 <= len(tail) <= 3
    assert set(tail) <= set(alphabet)


@given(text=TEXTS)
def test_rare_letters_stand_behind_a_space(text: str) -> None:
    tail = perturb(text, find_family("unicode"), rng(text)).removeprefix(text)
    assert re.fullmatch(r" \w{1,3}", tail)
    assert all(ord(c) > 0x600 and c.isalpha() for c in tail[1:])


def draws(name: str, text: str, n: int = 3000, length: int = 3, last: int = 31) -> Iterator[str]:
    source, how = rng(name), find_family(name, length, last)
    return (perturb(text, how, source) for _ in range(n))


def test_codes_are_a_space_and_every_character_up_to_the_last() -> None:
    tails = [changed.removeprefix("Q") for changed in draws("codes", "Q", last=200, length=5)]
    assert {len(tail) for tail in tails} == {2, 3, 4, 5, 6}
    assert {tail[0] for tail in tails} == {" "}
    counts = [sum(tail[1:].count(c) for tail in tails) for c in map(chr, range(201))]
    assert min(counts) > 0.5 * np.mean(counts)
    assert max(counts) < 1.5 * np.mean(counts)
    assert sum(counts) == sum(len(tail) - 1 for tail in tails)


def test_codes_without_options_are_the_control_characters() -> None:
    drawn = {c for changed in draws("codes", "Q") for c in changed.removeprefix("Q ")}
    assert drawn == set(CONTROL)


# What the paper appended in Tables 11 and 12.
OF_THE_PAPER = "+\u0393" + "".join(
    map(chr, (0xA1B, 0xBA8, 0xB29, 0x10B, 0x97E, 0x655, 0xBEB, 0x66F, 0xC0F, 0x5A5, 0xB79, 0xC6D))
)


def test_codes_up_to_4095_hold_the_characters_of_the_paper() -> None:
    drawn = {c for changed in draws("codes", "Q", 3_000, length=40, last=4095) for c in changed}
    assert set(OF_THE_PAPER) <= drawn


@pytest.mark.parametrize("last", [0xD7FF, 0xD800, 0xDFFF, 0xE000, 0x10FFFF])
def test_codes_leave_out_what_cannot_be_sent(last: int) -> None:
    text = "".join(draws("codes", "Q", 2_000, length=50, last=last))
    assert max(text) <= chr(last)
    text.encode("utf-8")
    assert ord(max(text)) > 0.99 * (0xD7FF if last < 0xE000 else last) - 1


@pytest.mark.parametrize("name", ["control", "unicode", "whitespace", "codes"])
def test_a_length_of_one_appends_one_character(name: str) -> None:
    before = 1 if name in ("unicode", "codes") else 0
    tails = [changed.removeprefix("Q") for changed in draws(name, "Q", 300, length=1)]
    assert {len(tail) for tail in tails} == {before + 1}


def test_a_length_of_one_changes_one_place() -> None:
    assert all(1 <= edits(SENTENCE, changed) <= 2 for changed in draws("typo", SENTENCE, 300, 1))
    changed = set(draws("synonym", "Big Road (film)", 300, length=1))
    assert changed == {"Large Road (film)", "Big Street (film)", "Big Road (movie)"}


@pytest.mark.parametrize(
    ("name", "length", "last", "words"),
    [
        ("control", 0, 31, "length: expected 1 or more"),
        ("codes", 3, -1, "range: expected 0 to 1114111"),
        ("codes", 3, 0x110000, "range: expected 0 to 1114111"),
        ("control", 3, 40, "range: applies to the perturbation codes, not to control"),
        (f"python:{__name__}:loud", 2, 31, "length: does not apply to the function python:"),
    ],
)
def test_lengths_and_ranges_that_cannot_be(name: str, length: int, last: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        find_family(name, length, last)


def test_control_draws_every_character_and_every_length() -> None:
    tails = [changed.removeprefix("Q") for changed in draws("control", "Q")]
    assert {len(tail) for tail in tails} == {1, 2, 3}
    counts = [sum(tail.count(c) for tail in tails) for c in map(chr, range(32))]
    assert min(counts) > 0.7 * np.mean(counts)
    assert max(counts) < 1.3 * np.mean(counts)


def edits(a: str, b: str) -> int:
    """Return Levenshtein's distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        left, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            left, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, left + (x != y))
    return row[-1]


def test_typos_are_one_to_three_and_leave_ends_of_words() -> None:
    for changed in draws("typo", SENTENCE, 300):
        assert 1 <= edits(SENTENCE, changed) <= 6  # a swap of two letters is two edits
        assert len(changed.split()) == len(SENTENCE.split())
        assert "".join(c for c in changed if not c.isalpha()) == "".join(
            c for c in SENTENCE if not c.isalpha()
        )


def test_typos_keep_capitals() -> None:
    assert all(changed.isupper() for changed in draws("typo", "WHO BUILT ROME", 200))


def test_a_short_word_takes_several_typos() -> None:
    assert all(changed != "abc" for changed in draws("typo", "abc", 500))


def test_synonyms_change_words_and_nothing_else() -> None:
    assert set(draws("synonym", "Big Road, 7 (film)!", 300)) == {
        f"{big} {road}, 7 ({film})!"
        for big in ("Big", "Large")
        for road in ("Road", "Street")
        for film in ("film", "movie")
    } - {"Big Road, 7 (film)!"}


def table() -> list[list[str]]:
    path = files("trustassay.metrics.harmonicity") / "synonyms.json"
    found: list[list[str]] = json.loads(path.read_text("utf-8"))
    return found


def test_the_table_of_synonyms_is_sound() -> None:
    groups = table()
    pairs = [tuple(sorted(group)) for group in groups]
    assert len(pairs) == len(set(pairs))
    for group in groups:
        assert len(set(group)) == len(group) >= 2
        assert all(word == word.lower().strip(string.punctuation + " ") for word in group)


@pytest.mark.parametrize(
    ("name", "text"),
    [("typo", "1 + 1 = ?"), ("typo", ""), ("typo", "to be"), ("synonym", "Wer?"), ("synonym", "")],
)
def test_what_cannot_be_perturbed_is_a_typed_failure(name: str, text: str) -> None:
    with pytest.raises(NoPerturbationError, match=name):
        perturb(text, find_family(name), rng())


def test_texts_taken_are_avoided_as_long_as_there_are_others() -> None:
    taken: set[str] = set()
    for _ in range(3):
        taken.add(perturb("Big Road.", find_family("synonym"), rng(*taken), taken))
    assert len(taken) == 3
    assert perturb("Big Road.", find_family("synonym"), rng(), taken) in taken


# Functions ---------------------------------------------------------------------------------------


def loud(text: str, rng: np.random.Generator) -> str:
    return text.upper()


NUMBER = 3


def test_a_function_by_itself_or_by_name() -> None:
    assert perturb("a", find_family(loud), rng()) == "A"
    assert find_family(loud).name == "loud"
    named = find_family(f"python:{__name__}:loud")
    assert perturb("a", named, rng()) == "A"
    assert named.name == f"python:{__name__}:loud"


def test_a_function_that_does_not_perturb() -> None:
    with pytest.raises(NoPerturbationError, match="does not change this text"):
        perturb("A", find_family(loud), rng())
    with pytest.raises(NoPerturbationError, match="returned 3 instead of a text"):
        perturb("A", find_family(lambda text, rng: 3), rng())  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("contrl", "did you mean control"),
        ("paraphrases", "did you mean paraphrase"),
        ("embeddings", "unknown perturbation .embeddings.; known: codes, control, paraphrase, syn"),
        ("python:no_such_module:f", "no_such_module"),
        ("python:json:no_such_function", "no_such_function"),
        (f"python:{__name__}:NUMBER", "NUMBER is not a function"),
        ("python:", "perturbation python:"),
    ],
)
def test_unknown_families(choice: str, words: str) -> None:
    with pytest.raises(UnknownNameError, match=words):
        find_family(choice)


def test_what_was_added_is_made_visible() -> None:
    assert show_change("Q", "Q\x05\x1f\x00") == r"\x05\x1f\x00"
    assert show_change("Q", "Q \u2003\n") == r" \u2003\n"
    assert show_change("Q", "R\t") == r"R\t"
    assert show_change("Q", "Q ꀀ") == " ꀀ"

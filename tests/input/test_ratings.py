"""Ratings out of long and wide tables; what is no rating is named with its row."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from trustassay.input.ratings import Rating, Ratings, read_ratings
from trustassay.input.records import InputError


def read(tmp_path: Path, text: str, name: str = "r.csv", **options: Any) -> Ratings:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_ratings(path, **options)


def test_a_long_table(tmp_path: Path) -> None:
    found = read(tmp_path, "item,rater,rating,model\na,ann,4,m\na,bob,3.5,m\nb,ann,,m\nb,bob,1,m\n")
    assert list(found.ratings) == [
        Rating("a", "ann", 4, 0, "m"),
        Rating("a", "bob", 3.5, 0, "m"),
        Rating("b", "bob", 1, 0, "m"),
    ]
    assert (found.missing_count, found.ordered, found.categories) == (1, True, ())


def test_notes_belong_to_their_ratings(tmp_path: Path) -> None:
    rows = [{"item": "a", "rater": "x", "rating": 4, "note": "why", "time": 17.5, "repeat": 0}]
    rows += [{"item": "b", "rater": "x", "rating": 2, "note": "", "time": 18.5, "repeat": 0}]
    found = read(tmp_path, "\n".join(map(json.dumps, rows)), "r.jsonl")
    assert [one.note for one in found.ratings] == ["why", ""]
    assert [one.value for one in found.ratings] == [4, 2]
    wide = read(tmp_path, "item,ann,note\na,4,3\n")
    assert list(wide.ratings) == [Rating("a", "ann", 4)]


def test_a_second_rating_of_the_same_rater_is_a_repeat(tmp_path: Path) -> None:
    found = read(tmp_path, "id,judge,score\na,j,4\na,j,5\nb,j,1\n")
    assert [(one.item, one.repeat) for one in found.ratings] == [("a", 0), ("a", 1), ("b", 0)]
    named = read(tmp_path, "id,judge,score,repeat\na,j,4,x\na,j,5,y\nb,j,1,y\n")
    assert [(one.item, one.repeat) for one in named.ratings] == [("a", 0), ("a", 1), ("b", 0)]
    with pytest.raises(ValueError, match=r"r.csv:3: 'j' rated 'a' twice with the repeat 'x'"):
        read(tmp_path, "id,judge,score,repeat\na,j,4,x\na,j,5,x\n")


def test_repeats_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    rows = "a,j,5,10\na,j,4,2\na,j,3,1\n"
    found = read(tmp_path, f"id,judge,score,repeat\n{rows}")
    assert [(one.value, one.repeat) for one in found.ratings] == [(5, 2), (4, 1), (3, 0)]
    with pytest.raises(ValueError, match=r"r.csv:3: 'j' rated 'a' twice with the repeat '1.0'"):
        read(tmp_path, "id,judge,score,repeat\na,j,4,1\na,j,5,1.0\n")


@pytest.mark.parametrize("rows", ["a,j,4,1\na,j,5,\n", "a,j,4,\na,j,5,0\n", "a,j,4,0\na,j,5,\n"])
def test_a_rating_without_a_repeat_does_not_take_the_place_of_another(
    tmp_path: Path, rows: str
) -> None:
    with pytest.raises(ValueError, match=r"r.csv:3: 'j' rated 'a' with and without a repeat"):
        read(tmp_path, f"id,judge,score,repeat\n{rows}")
    alone = read(tmp_path, "id,judge,score,repeat\na,j,4,\nb,j,5,2\na,j,1,\n")
    assert [one.repeat for one in alone.ratings] == [0, 0, 1]


def test_an_id_beside_the_item_is_no_rater(tmp_path: Path) -> None:
    found = read(tmp_path, "id,item,ann,bob\n1,a,4,3\n2,b,2,1\n")
    assert {one.rater for one in found.ratings} == {"ann", "bob"}
    assert {one.item for one in found.ratings} == {"a", "b"}


def test_a_wide_table(tmp_path: Path) -> None:
    text = "item,question,ann,bob,note\na,q?,4,3,good\nb,q?,,2,\n"
    found = read(tmp_path, text)
    assert [(one.item, one.rater, one.value) for one in found.ratings] == [
        ("a", "ann", 4),
        ("a", "bob", 3),
        ("b", "bob", 2),
    ]
    assert found.missing_count == 1
    alone = read(tmp_path, text, raters=["bob"])
    assert {one.rater for one in alone.ratings} == {"bob"}


LONG = "item,rater,rating,bob\na,ann,4,1\na,bob,good,2\na,cy,3,3\nb,ann,,4\nb,cy,5,5\n"


def test_named_raters_of_a_long_table_are_the_only_ones(tmp_path: Path) -> None:
    found = read(tmp_path, LONG, raters=["cy", "ann"])
    assert list(found.ratings) == [
        Rating("a", "ann", 4),
        Rating("a", "cy", 3),
        Rating("b", "cy", 5),
    ]
    assert found.missing_count == 1  # of ann
    with pytest.raises(InputError, match=r"r.csv: unknown rater 'cyy'; did you mean cy\?"):
        read(tmp_path, LONG, raters=["ann", "cyy"])


def test_columns_go_before_raters_of_the_same_name(tmp_path: Path) -> None:
    found = read(tmp_path, LONG, raters=["bob"])
    assert [one.value for one in found.ratings] == [1, 2, 3, 4, 5]


def test_json_lines(tmp_path: Path) -> None:
    rows = [{"id": 1, "ann": 4, "bob": None}, {"id": 2, "ann": 2, "bob": 3}]
    found = read(tmp_path, "\n".join(map(json.dumps, rows)), "r.jsonl")
    assert [(one.item, one.rater, one.value) for one in found.ratings] == [
        ("1", "ann", 4),
        ("2", "ann", 2),
        ("2", "bob", 3),
    ]


def test_words_are_categories_or_levels(tmp_path: Path) -> None:
    text = "item,rater,rating\na,x,Good\na,y,poor\nb,x,fair\n"
    found = read(tmp_path, text)
    assert (found.categories, found.ordered) == (("fair", "good", "poor"), False)
    assert [one.value for one in found.ratings] == [1, 2, 0]
    levels = read(tmp_path, text, levels=["poor", "fair", "good"])
    assert levels.ordered
    assert [one.value for one in levels.ratings] == [2, 0, 1]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            "x,y\n1,2\n",
            {},
            "expected a column item or id, or --field item=COLUMN; the file has x, y",
        ),
        (
            "item,rater,rating\na,x,4\na,y,good\n",
            {},
            "r.csv:3: rating: expected a number.*got 'good'",
        ),
        (
            "item,rater,rating\na,x,bad\n",
            {"levels": ["good"]},
            "expected one of the levels good, got 'bad'",
        ),
        ("item,rater,rating\n,x,4\n", {}, "r.csv:2: expected an item and a rater"),
        ("item,rater,rating\n", {}, "contains no records"),
        ("item,rater,rating\na,x,\n", {}, "contains no ratings"),
        ("item,words\na,good one\n", {}, "or a column of numbers for each rater"),
        ("item,ann\na,4\n", {"raters": ["anna"]}, "unknown column 'anna'; did you mean ann"),
        ("item,ann\na,4\n", {"fields": {"items": "x"}}, "unknown field of a rating 'items'"),
        ("item,ann\na,4\n", {"fields": {"item": "x"}}, "unknown column 'x'"),
        ("item,ann,ann\na,4,4\n", {}, "the header has ann more than once"),
        ("item,ann\na,4,5\n", {}, "r.csv:2: record: has 3 cells, but the header has 2"),
        ('item,ann\n"a,4\n', {}, "is not CSV"),
        ("item,rater,rating\na,x,-1e300\na,y,4\n", {}, "expected a number.*got '-1e300'"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(tmp_path, text, **options)


def test_a_few_words_among_numbers_are_left_out_and_named(tmp_path: Path) -> None:
    rows = [f"a{n},x,{n % 5}" for n in range(9)]
    result = read(tmp_path, "\n".join(["item,rater,rating", *rows, "a9,x,N/A", "b,x,unclear"]))
    assert [one.value for one in result.ratings] == [n % 5 for n in range(9)]
    assert result.missing_count == 1
    assert result.unread
    assert (result.unread.count, result.unread.labels) == (1, 10)
    assert result.unread.words == {"unclear": 1}
    assert result.unread.first == f"{tmp_path / 'r.csv'}:12"
    levels = read(tmp_path, "item,x\na,1\nb,2\nc,3\nd,2\ne,great\n", levels=["1..3"])
    assert levels.unread and levels.unread.words == {"great": 1}


def test_a_column_of_numbers_with_few_words_is_a_rater(tmp_path: Path) -> None:
    rows = [f"a{n},{n % 5},{n % 5 if n else 'unclear'},{'word' if n % 2 else n}" for n in range(9)]
    result = read(tmp_path, "\n".join(["item,ann,bob,words", *rows]))
    assert {one.rater for one in result.ratings} == {"ann", "bob"}


def test_yes_of_one_rater_is_the_1_of_another(tmp_path: Path) -> None:
    result = read(tmp_path, "item,ann,bob,cy\na,yes,1,True\nb,no,0,False\n", raters=["ann", "bob"])
    assert result.categories == ("no", "yes")
    assert [one.value for one in result.ratings] == [1, 1, 0, 0]
    three = read(tmp_path, "item,ann\na,supported\nb,contradicted\nc,neutral\n", raters=["ann"])
    assert three.categories == ("contradicted", "neutral", "supported")


def test_a_field_of_an_object_is_a_column(tmp_path: Path) -> None:
    rows = [{"id": f"a{n}", "user": {"feedback": "👍" if n else "👎"}} for n in range(2)]
    text = "\n".join(map(json.dumps, rows))
    result = read(tmp_path, text, "r.jsonl", fields={"rating": "user.feedback"})
    assert result.categories == ("👍", "👎")
    assert [one.rater for one in result.ratings] == ["user.feedback"] * 2
    with pytest.raises(InputError, match=r"unknown column 'usr\.feedback'"):
        read(tmp_path, text, "r.jsonl", fields={"rating": "usr.feedback"})


def test_what_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b"item,rater,rating\na,x,4\na,J\xfcrgen,4\n")
    assert [one.rater for one in read_ratings(path).ratings] == ["x", "Jürgen"]
    path.write_bytes(b"item,rater,rating\na,x,4\na,J\xff,4\n")
    with pytest.raises(InputError, match=r"r.csv:3: rater: is not UTF-8; save the table as CSV"):
        read_ratings(path)
    path.write_bytes(b"item,rater,rating,\xff\na,x,4\n")
    with pytest.raises(InputError, match="the first line is not UTF-8; save the table"):
        read_ratings(path)


@pytest.mark.parametrize(
    ("name", "text", "options", "count"),
    [
        ("r.csv", "item,rater,rating\n" + "a,x,good\n,y,4\nb,x,3\n" * 8, {}, 16),
        ("r.csv", "item,rater,rating\n" + "a,x,4,5\n" * 12, {}, 12),
        ("r.csv", "item,rater,rating,repeat\n" + "a,x,4,1\n" * 13, {}, 12),
        ("r.jsonl", "{\n" * 12 + "[]\n", {}, 13),
        ("r.csv", "item,ann\na,4\n", {"raters": [f"r{i}" for i in range(12)]}, 12),
        ("r.csv", "item,ann\na,4\n", {"fields": {f"f{i}": "ann" for i in range(12)}}, 12),
        ("r.csv", "item,ann\na,4\n", {"fields": {"item": "x", "model": "y"}}, 2),
    ],
)
def test_all_faults_are_told_or_counted(
    tmp_path: Path, name: str, text: str, options: Any, count: int
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, name, **options)
    said = str(caught.value).split("; and ")
    told = [one for one in said[0].split("; ") if not one.startswith("known")]
    assert len(told) == min(count, 10)
    if count > 10:
        assert said[1] == f"{count - 10} more"


@pytest.mark.parametrize(
    "levels", [["1..5"], ["5", "4", "3", "2", "1"], ["1.0", "2", "3", "4", "5"]]
)
def test_levels_that_are_numbers_are_the_scale(tmp_path: Path, levels: list[str]) -> None:
    found = read(tmp_path, "item,rater,rating\na,x,5\na,y,1.0\n", levels=levels)
    assert (found.scale, found.categories) == ((1, 2, 3, 4, 5), ())
    assert [one.value for one in found.ratings] == [5, 1]
    message = f"r.csv:2: rating: expected one of the levels {', '.join(levels)}, got '3.5'"
    with pytest.raises(InputError, match=re.escape(message)):
        read(tmp_path, "item,rater,rating\na,x,3.5\n", levels=levels)


def test_words_are_places_on_their_scale(tmp_path: Path) -> None:
    text = "item,rater,rating\na,x,good\na,y,Poor\n"
    assert read(tmp_path, text, levels=["poor", "fair", "good"]).scale == (0, 1, 2)
    assert read(tmp_path, text).scale == ()
    assert read(tmp_path, "item,rater,rating\na,x,4\n").scale == ()


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (["5..1"], "expected a range of 2 to 1000 levels, for example 1..5, got 5..1"),
        (["0..1000"], r"a range of 2 to 1000 levels, for example 1..5, got 0..1000"),
        (["1", "2", "1.0"], "levels: 1.0 is named twice; expected each level once"),
        (["good", "poor", "Good"], "levels: good is named twice"),
    ],
)
def test_levels_that_are_no_scale(tmp_path: Path, levels: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, "item,rater,rating\na,x,4\n", levels=levels)


@pytest.mark.parametrize(
    ("choices", "ratings", "scale", "categories"),
    [
        (["5", "4", "3", "2", "1"], [4, 1], (1, 2, 3, 4, 5), ()),
        (
            ["on topic", "off topic", "odd"],
            ["odd", "odd"],
            (0, 1, 2),
            ("odd", "off topic", "on topic"),
        ),
    ],
)
def test_the_choices_of_annotate_are_the_scale(
    tmp_path: Path, choices: Any, ratings: Any, scale: Any, categories: Any
) -> None:
    lines = [{"action": "start", "pairs": False, "choices": choices}]
    lines += [
        {"item": f"i{place}", "rater": "x", "rating": rating, "repeat": 0, "model": ""}
        for place, rating in enumerate(ratings)
    ]
    found = read(tmp_path, "".join(f"{json.dumps(line)}\n" for line in lines), "r.jsonl")
    assert (found.scale, found.categories) == (scale, categories)


def test_rows_that_nobody_rated_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("item,rater,rating\na,anna,1\na,bela,0\nb,,\n")
    assert [rating.item for rating in read_ratings(path).ratings] == ["a", "a"]
    path.write_text("item,rater,rating\na,anna,1\nb,,1\n")
    with pytest.raises(InputError, match=r"r\.csv:3: expected an item and a rater"):
        read_ratings(path)

"""Labels as people write them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from trustassay.core import labels
from trustassay.core.labels import MAX_LABEL_CHARACTERS, read_word
from trustassay.input.labels import read_labels
from trustassay.input.records import InputError


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ([1, 0, True, False], "binary", [1, 0, 1, 0]),
        (["1", "0", " 1 "], "binary", [1, 0, 1]),
        (["yes", "No", "TRUE"], "binary", [1, 0, 1]),
        (["supported", "not-supported", "Not supported"], "binary", [1, 0, 0]),
        (["supported", "contradicted", 0], "binary", [1, 0, 0]),
        (["1.0", "no", 1], "binary", [1, 0, 1]),
        (["passes", "fails", "Y", "n"], "binary", [1, 0, 1, 0]),
        ([1, 5, 5], "ordinal", [1, 5, 5]),
        ([1, 2, 2], "ordinal", [1, 2, 2]),
        ([1, 2, 3], "ordinal", [1, 2, 3]),
        ([0.5, 1.5, 2.5], "real", [0.5, 1.5, 2.5]),
        (list(range(12)), "real", list(range(12))),
        ([1, 1], "binary", [1, 1]),
        (["True", 1, "yes", False, "N"], "binary", [1, 1, 1, 0, 0]),
        (["👍🏽", "👎", "👍"], "binary", [1, 0, 1]),
        (["✅", "❌"], "binary", [1, 0]),
        (["+1", "-1"], "binary", [1, 0]),
        ([1, -1, 0], "ordinal", [1, -1, 0]),
        (["Richtig", "falsch", "ja"], "binary", [1, 0, 1]),
        (["100%", "0 %"], "binary", [1, 0]),
        ([100, 0], "binary", [1, 0]),
        ([0, 50, 100], "ordinal", [0, 50, 100]),
        (["0%", "50 %", "100%"], "real", [0, 50, 100]),
        (["85,5 %", "12%"], "real", [85.5, 12]),
        (["1%", "0%"], "real", [1, 0]),
        (["0,85", "0,5"], "real", [0.85, 0.5]),
        (["4", 5.0, "1,0"], "ordinal", [4, 5, 1]),
    ],
)
def test_kinds(given: list[object], kind: str, expected: list[float]) -> None:
    found = read_labels("mark", given)
    assert (found.kind, list(found.values)) == (kind, expected)


def test_missing_labels_are_missing() -> None:
    result = read_labels("mark", ["yes", None, "", "  ", math.nan, "no", "nan", "N/A", "null", "-"])
    assert result.missing_count == 8
    assert result.unread is None
    assert [value for value in result.values if not math.isnan(value)] == [1, 0]
    with pytest.raises(InputError, match="label mark: all 2 labels are missing"):
        read_labels("mark", [None, "nan"])


def test_words_that_do_not_say_what_is_right_are_refused_by_name() -> None:
    given = ["Fully attributable", "Generic", "Generic", "yes"]
    with pytest.raises(InputError) as caught:
        read_labels("mark", given)
    assert "'Generic' (2), 'Fully attributable' (1); expected numbers" in str(caught.value)
    assert "--positive" in str(caught.value)
    found = read_labels("mark", [*given, None], positive=["fully  attributable"])
    assert list(found.values)[:4] == [1, 0, 0, 0]
    assert found.missing_count == 1


def test_a_positive_word_turns_a_label_round() -> None:
    assert list(read_labels("hallucinated", ["yes", "no"], positive=["no"]).values) == [0, 1]


def test_a_positive_number_is_compared_as_a_number() -> None:
    assert list(read_labels("mark", [2.0, "1", "2"], positive=["2"]).values) == [1, 0, 1]


def test_numbers_are_right_from_a_number_on() -> None:
    labels = read_labels("mark", [1, "4", 5.0, None], at_least=4)
    assert (labels.kind, list(labels.values)[:3], labels.missing_count) == ("binary", [0, 1, 1], 1)
    assert list(read_labels("mark", ["yes", "no"], at_least=4).values) == [1, 0], "words"


def test_of_two_levels_the_higher_one_is_right() -> None:
    labels = read_labels("mark", ["good", "poor", "good"], levels=["poor", "good"])
    assert (labels.kind, list(labels.values)) == ("binary", [1, 0, 1])


def test_levels_give_words_an_order() -> None:
    found = read_labels("mark", ["good", "Poor", None], levels=["poor", "fair", "good"])
    assert found.kind == "ordinal"
    assert list(found.values)[:2] == [2, 0]
    with pytest.raises(InputError, match=r"not among the levels poor, good: 'great' \(1\)"):
        read_labels("mark", ["good", "great"], levels=["poor", "good"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([{"a": 1}], r"""'\{"a": 1\}' \(1\).*name a field inside the object \(mark\.FIELD\)"""),
        ([[1]], r"'\[1\]' \(1\)"),
        (["inf", "1", "2", "3"], r"'inf' \(1\)"),
        ([1e300, 1, 2], "'1000000"),
        ([10**400, 1, 2], "'1000000"),
        (["1,000", "2,000"], r"'1,000' \(1\), '2,000' \(1\)"),
        (["x", "○"], r"'x' \(1\), '○' \(1\)"),
        ([f"word {n}" for n in range(12)], "and 4 more"),
    ],
)
def test_what_is_no_label_is_refused_by_name(given: list[object], words: str) -> None:
    with pytest.raises(
        InputError, match=f"label mark: it is not clear which labels mean right: .*{words}"
    ):
        read_labels("mark", given)


def test_a_few_labels_that_cannot_be_read_are_left_out_and_named() -> None:
    given = ["yes", "no", None, *["unclear"] * 2, "perhaps", "x", *["yes"] * 14]
    ids = [f"a{place}" for place in range(len(given))]
    result = read_labels("mark", given, ids=ids)
    assert [value for value in result.values if not math.isnan(value)] == [1, 0, *[1] * 14]
    assert result.unread
    assert result.unread.to_dict() == {
        "count": 4,
        "labels": 20,
        "words": {"unclear": 2, "perhaps": 1, "x": 1},
        "first": "a3",
        "undecided": 2,
    }
    assert result.undecided == [3, 4, 5, 6]
    assert result.unread.describe("labels mark").startswith(
        "labels mark: 4 of 20 cannot be read and are left out, the first at 'a3': "
        "'unclear' (2), 'perhaps' (1), 'x' (1); name the label that means right with --positive"
    )
    with pytest.raises(InputError, match="it is not clear which labels mean right: 'other'"):
        read_labels("mark", [*given, *["other"] * 3])


@pytest.mark.parametrize(
    "word",
    ["cannot tell", "Can't tell", "unsure?", "Skip", "don’t know", "?", "weiß nicht", "不明"],
)
def test_a_person_who_cannot_tell_makes_no_column_unreadable(word: str) -> None:
    result = read_labels("human", ["1", word, "0", word, "", word])
    assert (result.kind, result.undecided) == ("binary", [1, 3, 5])
    assert [str(value) for value in result.values] == ["1.0", "nan", "0.0", "nan", "nan", "nan"]
    assert result.unread
    assert result.unread.describe("labels human").startswith(
        "labels human: 3 of 5 are undecided and left out"
    )


def test_words_for_cannot_tell_stay_out_unless_an_option_names_them() -> None:
    words = ["good", "bad", "unsure"]
    assert read_labels("human", words, positive=["good"]).undecided == [2]
    assert list(read_labels("human", words, positive=["unsure"]).values) == [0, 0, 1]
    assert list(read_labels("human", words, levels=["bad", "unsure", "good"]).values) == [2, 0, 1]
    with pytest.raises(
        InputError, match=r"label human: it is not clear which labels mean right: 'unsure' \(2\)"
    ):
        read_labels("human", ["unsure", None, "unsure"])


def test_no_word_means_two_things() -> None:
    kinds = [labels.RIGHT, labels.WRONG, labels._MISSING, labels._UNDECIDED]
    assert len(frozenset().union(*kinds)) == sum(map(len, kinds))
    assert not any(read_word(word) is not None for word in labels._UNDECIDED)


def test_of_a_long_text_that_is_no_label_only_the_beginning_is_stated() -> None:
    unread = read_labels("mark", [*["yes", "no"] * 5, "some text " * 1000]).unread
    assert unread
    assert [len(word) for word in unread.words] == [MAX_LABEL_CHARACTERS]


@pytest.mark.parametrize(
    ("given", "odd"),
    [
        ([5, 4, 3, 2, 1, "great"], "great"),
        (["90 %", "80 %", "70 %", "60 %", 0.5], "0.5"),
        (["yes", "no", "yes", "no", 4], "4"),
        ([1, 0, 1, 0, {"a": 1}], '{"a": 1}'),
        (["poor", "fair", "good", "good", "great"], "great"),
    ],
)
def test_the_reading_that_fits_most_labels_counts(given: list[object], odd: str) -> None:
    result = read_labels("mark", given, levels=["poor", "fair", "good"])
    assert result.unread and result.unread.words == {odd: 1}
    assert [math.isnan(value) for value in result.values].index(True) == len(given) - 1


def test_a_positive_word_leaves_no_object_to_be_wrong() -> None:
    result = read_labels("mark", ["ok", "off", "ok", "off", ["ok"]], positive=["ok"])
    assert result.unread and result.unread.words == {'["ok"]': 1}


def test_an_object_under_a_name_that_says_what_is_wrong_is_refused_as_an_object() -> None:
    with pytest.raises(InputError, match=r"name a field inside the object \(hallucination"):
        read_labels("hallucination", [{"human": "yes"}])


@pytest.mark.parametrize("given", [["yes", "no"], [True, False], [1, 0], ["Ja", "nein"]])
@pytest.mark.parametrize("name", ["hallucinated", "meta.is_wrong", "Halluzination"])
def test_yes_under_a_name_that_says_what_is_wrong_is_not_guessed(
    name: str, given: list[object]
) -> None:
    with pytest.raises(InputError, match=r"its name is about errors.*use --positive"):
        read_labels(name, given)
    assert list(read_labels(name, given, positive=["no"]).values) == [0, 1]
    assert list(read_labels(name, given, positive=["yes"]).values) == [1, 0]
    assert list(read_labels("no_hallucination", given).values) == [1, 0]


def test_a_word_for_yes_is_no_number_of_a_scale() -> None:
    assert read_labels("mark", [0, 1, 2, 3], positive=["yes"]).kind == "ordinal"
    assert list(read_labels("mark", [0, 1], positive=["no"]).values) == [1, 0]


def test_words_that_speak_for_themselves_need_no_name() -> None:
    assert list(read_labels("hallucination", ["factual", "hallucinated"]).values) == [1, 0]
    assert list(read_labels("hallucination", ["yes", "yes"], positive=["no"]).values) == [0, 0]


def test_per_cent_from_a_share_on_is_refused() -> None:
    assert list(read_labels("mark", ["85%", "20%"], at_least=80).values) == [1, 0]
    with pytest.raises(InputError, match=r"is in per cent.*for example 80, got 0.8"):
        read_labels("mark", ["85%", "20%"], at_least=0.8)


@pytest.mark.parametrize(
    ("given", "options", "opposite"),
    [
        (["yes", "no"], {}, "--positive no"),
        ([1.0, 0.0], {}, "--positive no"),
        (["supported", "not supported"], {}, "--positive 'not supported'"),
        (["no", "yes"], {"positive": ["no"]}, "--positive yes"),
        ([1, -1], {}, "--positive=-1"),
        ([0, 100], {}, "--positive 0"),
        (["100 %", "0%"], {}, "--positive 0%"),
        (["yes", "no", "no", "No", "unclear"], {}, "--positive No"),
        ([1, 2, 3], {}, ""),
        ([1, 5], {"at_least": 3}, ""),
    ],
)
def test_the_options_for_the_opposite(
    given: list[object], options: dict[str, Any], opposite: str
) -> None:
    read = read_labels("mark", given, **options)
    assert read.opposite == opposite
    if opposite:
        words = [opposite.removeprefix("--positive")[1:].strip("'")]
        turned = read_labels("mark", given, positive=words)
        # Where "no" was wrong, a label that cannot be read is now as wrong as any other.
        pairs = zip(turned.values, read.values, strict=True)
        assert all(one == 1 - other for one, other in pairs if not math.isnan(other))


def test_levels_that_nobody_gave_keep_a_scale_from_being_binary() -> None:
    assert read_labels("mark", [0, 1], scale=[0, 1, 2]).kind == "ordinal"
    assert len(read_labels("mark", [0, 1], scale=[0, 1, 2]).values) == 2

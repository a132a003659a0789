"""What ``lab.benchmarks.mu_shroom`` computes by itself: the measures, the alignment, the
predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.lazily import needed

from lab.benchmarks.mu_shroom import (
    FIXED,
    MARKED,
    VAL,
    Answer,
    Variant,
    aligned,
    answer_of,
    chosen,
    continuing,
    correlation,
    doubts,
    figures,
    intersection_over_union,
    joined,
    measured,
    names_and_numbers,
    read,
    references,
    scored,
    smoothed,
    words,
)
from lab.benchmarks.which_metric.sets import shared
from lab.results import read_result

stats = needed("scipy.stats")
with_set = pytest.mark.skipif(
    not (shared() / "mu-shroom").is_dir(), reason="mu-shroom of TRUSTASSAY_SHARED is not there"
)
PLAIN = Variant("answer", 0, "token")


def row(text: str, tokens: Sequence[str], logits: Sequence[float], **fields: Any) -> dict[str, Any]:
    return {
        "id": "made-1",
        "model_id": "made",
        "model_output_text": text,
        "model_output_tokens": tokens,
        "model_output_logits": logits,
        "soft_labels": [],
        "hard_labels": [],
        **fields,
    }


def made(text: str, tokens: Sequence[str], logits: Sequence[float], **fields: Any) -> Answer:
    return answer_of(row(text, tokens, logits, **fields), "en")


def pieces(text: str, tokens: Sequence[str]) -> list[str] | None:
    spans = aligned(text, tokens)
    return None if spans is None else [text[start:end] for start, end in spans]


def marks(answer: Answer, values: Any) -> str:
    return "".join("x" if value else "." for value in values)


def test_intersection_over_union_is_of_characters() -> None:
    first, second = np.array([1, 1, 1, 0, 0], dtype=bool), np.array([0, 1, 1, 1, 0], dtype=bool)
    nothing = np.zeros(5, dtype=bool)
    assert intersection_over_union(first, second) == 2 / 4
    assert intersection_over_union(first, nothing) == intersection_over_union(nothing, first) == 0
    assert intersection_over_union(nothing, nothing) == 1


def test_the_correlation_of_constant_vectors_is_0_or_1() -> None:
    some, ones = np.array([0.0, 0.5, 1.0, 0.5]), np.ones(4)
    assert correlation(some, ones) == correlation(ones, some) == 0
    assert correlation(np.zeros(4), ones) == 1
    assert correlation(ones + np.array([0, 1e-10, 0, 0]), ones) == 1
    assert correlation(some, 1 - some) == pytest.approx(-1)


def test_the_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        soft, predicted = rng.integers(0, 4, 60) / 3, rng.normal(size=60).round(1)
        assert correlation(soft, predicted) == pytest.approx(
            stats.spearmanr(soft, predicted).statistic
        )


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        (
            "\nheißt Álava.",
            ["Ċ", "hei", "ÃŁt", "ĠÃ", "ģ", "lava", ".", "<|endoftext|>"],
            ["\n", "hei", "ßt", " Á", "Á", "lava", ".", ""],
        ),
        ("ja 😀!", ["ja", "ĠðŁ", "ĺ", "Ģ", "!"], ["ja", " 😀", "😀", "😀", "!"]),
        (
            "Zlaté 彼",
            ["▁Z", "lat", "é", "▁", "<0xE5>", "<0xBD>", "<0xBC>", "</s>"],
            ["Z", "lat", "é", " ", "彼", "彼", "彼", ""],
        ),
        ("a b", ["<bos>", "▁a", "▁b", "<0x0A>"], ["", "a", " b", ""]),
        (" på 1", [" på", " ", "1"], [" på", " ", "1"]),
        ("Nej.", [" Nej", ".\n\n"], ["Nej", "."]),
        ("a\nb", ["▁a", "▁b"], ["a", "\nb"]),
        ("ok <|im_end|>", ["▁ok", "▁", "<|im_end|>", "</s>"], ["ok", " ", "<|im_end|>", ""]),
    ],
    ids=["byte level", "emoji", "bytes", "marks", "plain", "cut off", "white space", "in the text"],
)
def test_tokens_are_found_in_the_text(text: str, tokens: list[str], expected: list[str]) -> None:
    assert pieces(text, tokens) == expected


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("no", ["Answer", ":", "▁no"]), ("no more", ["▁no"]), ("no", ["▁no", "▁more"])],
    ids=["before", "too few", "too many"],
)
def test_a_text_that_is_not_of_its_tokens_is_not_aligned(text: str, tokens: list[str]) -> None:
    assert aligned(text, tokens) is None
    answer = made(text, tokens, [1.0] * len(tokens))
    assert len(answer.spans) == len(answer.logits) == 0
    assert not doubts(answer, PLAIN, np.array([1.0])).any()


def test_each_span_has_the_logit_of_its_token() -> None:
    labels: Mapping[str, Any] = {
        "soft_labels": [{"start": 3, "end": 5, "prob": 0.25}],
        "hard_labels": [[0, 2], [4, 5]],
    }
    answer = made("ja nu", ["<s>", "▁ja", "▁nu", "</s>"], [9, 1, 2, 8], **labels)
    assert answer.spans == [(0, 2), (2, 5)] and answer.logits.tolist() == [1, 2]
    assert answer.soft.tolist() == [0, 0, 0, 0.25, 0.25]
    assert marks(answer, answer.hard) == "xx..x"
    assert made("ja nu", ["▁ja", "▁nu"], [1, 2, 8]).logits.tolist() == [
        1,
        2,
    ]  # the last one ends it
    for logits in ([1.0], [1.0, 2.0, 3.0, 4.0]):
        with pytest.raises(ValueError, match=f"made-1: 2 tokens and {len(logits)} logits"):
            made("ja nu", ["▁ja", "▁nu"], logits)


def test_words_have_no_punctuation_around_them() -> None:
    text = "(«L'an 1,500») — Saint-Lô... अंग्रेज़ी। 彼得 x"
    assert [text[start:end] for start, end in words(text)] == [
        "L'an",
        "1,500",
        "Saint-Lô",
        "अंग्रेज़ी",
        "x",
    ]


def test_names_and_numbers_do_not_begin_a_sentence() -> None:
    text = 'Petra van Staveren won "Gold" in 1984, here. She lives in New York. 2 of Ada'
    marked = marks(answer := made(text, [], []), names_and_numbers(answer))
    starts = {
        text[start:end]: marked[start:end].count("x") == end - start for start, end in words(text)
    }
    assert [word for word, is_marked in starts.items() if is_marked] == [
        "Staveren",
        "Gold",
        "1984",
        "New",
        "York",
        "2",
        "Ada",
    ]
    assert marked[text.index("New") + 3] == "x" and marked[text.index(" New")] == "."


def test_doubt_is_the_share_of_tokens_with_a_higher_logit() -> None:
    answer = made("ab cd", ["▁a", "b", "▁c", "d"], [4, 1, 2, 2])
    expected = [1 / 8, 7 / 8, 4 / 8, 4 / 8, 4 / 8]  # ties: half of them
    assert doubts(answer, PLAIN, np.array([0.0])).tolist() == expected
    by_model = doubts(answer, Variant("model", 0, "token"), np.array([1.5, 3.0]))
    assert by_model.tolist() == [0.0, 1.0, 0.5, 0.5, 0.5]


def test_a_word_has_the_doubt_of_its_weakest_token_and_a_space_the_lower_one() -> None:
    answer = made(" ab cd.", ["▁a", "b", "▁c", "d", "."], [5, 1, 3, 4, 2])
    values = doubts(answer, Variant("answer", 0, "word"), np.array([0.0]))
    assert values == pytest.approx([0, 0.9, 0.9, 0.5, 0.5, 0.5, 0.7])


def test_smoothing_takes_the_neighbours_that_are_there() -> None:
    values = np.array([3.0, 0.0, 6.0])
    assert smoothed(values, 0).tolist() == values.tolist()
    assert smoothed(values, 1).tolist() == pytest.approx([1.5, 3, 3])
    assert smoothed(values, 2).tolist() == pytest.approx([3, 3, 3])


def test_tokens_that_continue_a_word_are_compared_with_those_that_begin_one() -> None:
    tokens = ["▁a", "b", "▁c", "d", "▁", "1", ".", "▁e"]
    answer = made("ab cd 1. e", tokens, [1, 5, 2, 1.5, 9, 0, 9, 3])
    assert continuing([answer]) == {"made": 0.75}  # 5 is above 1, 2, 0 and 3; 1.5 above 1 and 0
    assert continuing([made("a b", ["▁a", "▁b"], [1, 2])]) == {}


def test_the_threshold_that_finds_what_is_marked_is_chosen() -> None:
    rng = np.random.default_rng(1)
    answers = []
    for _ in range(12):
        logits = rng.permutation(20).astype(float)
        wrong = [place for place in range(20) if logits[place] < 5]
        labels = {
            "soft_labels": [{"start": 2 * n, "end": 2 * n + 1, "prob": 1.0} for n in wrong],
            "hard_labels": [[2 * n, 2 * n + 1] for n in wrong],
        }
        answers.append(made(" ".join("x" * 20), ["▁x"] * 20, logits.tolist(), **labels))
    for answer in answers:  # two marked words in a row: their space is marked, too
        for place in range(1, 38, 2):
            answer.hard[place] = answer.hard[place - 1] and answer.hard[place + 1]
    known = references(answers)
    choice = chosen(answers, known)
    assert choice.hard == Variant("model", 0, "token") and choice.iou == 1
    assert 0.7 < choice.threshold <= 0.8
    scores = measured(answers, choice, known)
    assert set(scores) == {*FIXED, "token"}
    assert scores["token"].iou.tolist() == [1.0] * 12 and scores["nothing"].iou.sum() == 0
    assert scores["token"].correlation.mean() == pytest.approx(choice.correlation)
    twice = figures(joined([scores, scores]), "made")
    assert twice["token"]["iou"]["value"] == 1
    low, high = twice["token less all of it"]["iou"]["interval"]
    assert low <= twice["token less all of it"]["iou"]["value"] <= high
    assert len(joined([scores, scores])["token"].iou) == 24


@with_set
@pytest.mark.parametrize(
    ("language", "all_of_it", "nothing", "constant"),
    [
        ("en", 0.348926, 0.0324675, 0),
        ("de", 0.345082, 0.0266667, 0.0133333),
        ("fr", 0.454341, 0, 0),
        ("it", 0.282615, 0, 0),
        ("fi", 0.4857, 0, 0),
        ("cs", 0.263164, 0.13, 0.1),
    ],
)
def test_marking_everything_or_nothing_gives_the_figures_of_the_tasks_rankings(
    language: str, all_of_it: float, nothing: float, constant: float
) -> None:
    answers = read("test", language)
    assert all(len(one.spans) for one in answers)
    for name, expected in (("all of it", all_of_it), ("nothing", nothing)):
        values = [FIXED[name](one) for one in answers]
        own = scored(answers, values, [one >= MARKED for one in values])
        assert own.iou.mean() == pytest.approx(expected, abs=1e-6)
        assert own.correlation.mean() == pytest.approx(constant, abs=1e-6)
        written = read_result("mu-shroom")["test"][language][name]["iou"]["value"]
        assert written == pytest.approx(expected, abs=1e-4)


@with_set
def test_two_answers_of_the_val_part_are_not_aligned() -> None:
    val = [one for language in VAL for one in read("val", language)]
    assert [one.language for one in val if not len(one.spans)] == ["hi", "hi"]

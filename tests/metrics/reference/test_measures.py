"""The parts that ask no model: what each library is asked, what is done with several golds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from trustassay import score
from trustassay.metrics.reference import measures
from trustassay.metrics.reference import measures as module
from trustassay.metrics.reference.measures import (
    LEXICAL,
    PARTS,
    Aggregate,
    GoldComparison,
    Recipe,
    explain_missing,
    lexical_parts,
    select_parts,
)

sacrebleu = needed("sacrebleu", reason="pip install '.[reference]'")
needed("rouge_score", reason="pip install '.[reference]'")
nltk = needed("nltk", reason="pip install '.[reference]'")

QUESTION = "Who built the first saxophone?"
ANSWER = "The first saxophone was built by Adolphe Sax."
GOLDS = ["Sax", "Adolphe Sax", "a Belgian, Adolphe Sax"]
NAMES = tuple(name for name in LEXICAL if name != "meteor")


def parts(
    answer: str,
    golds: Sequence[str],
    aggregate: Aggregate = "best",
    recipe: Recipe = "default",
    names: Sequence[str] = NAMES,
    question: str = QUESTION,
) -> dict[str, float]:
    return lexical_parts(names, GoldComparison(answer, golds, question, aggregate, recipe))


def test_words_by_hand() -> None:
    # Without the article the answer has seven words, four of them not in the question:
    # was, by, adolphe, sax.
    found = parts(ANSWER, GOLDS)
    assert found["em"] == 0
    assert found["contains"] == 1
    assert found["token_precision"] == pytest.approx(2 / 7)
    assert found["token_recall"] == 1
    assert found["token_f1"] == pytest.approx(2 * (2 / 7) / (2 / 7 + 1))
    assert found["novel_token_f1"] == pytest.approx(2 * (2 / 4) / (2 / 4 + 1))
    first = parts(ANSWER, GOLDS, "first")
    assert first["token_precision"] == pytest.approx(1 / 7)
    mean = parts(ANSWER, GOLDS, "mean")
    assert mean["token_precision"] == pytest.approx((1 / 7 + 2 / 7 + 2 / 7) / 3)
    assert mean["token_recall"] == pytest.approx((1 + 1 + 2 / 3) / 3)


def test_whole_words_are_contained_and_not_parts_of_words() -> None:
    assert parts("It was Sax!", ["sax"])["contains"] == 1
    assert parts("It was a saxophone.", ["sax"])["contains"] == 0
    assert parts("In 1997", ["97"])["contains"] == 0


@pytest.mark.parametrize(
    ("answer", "gold", "em"),
    [
        ("the  BEATLES!", "Beatles", 1),
        ("A", "The", 0),  # nothing is left of either but what they are
        ("the", "The", 1),
        ("!!!", "!!!", 1),
        ("", "The", 0),
        (" \n", "Sax", 0),
        ("東京", "東京", 1),
        ("U.S.", "us", 1),
    ],
)
def test_exact_match_after_normalisation(answer: str, gold: str, em: int) -> None:
    assert parts(answer, [gold])["em"] == em


@pytest.mark.parametrize("answer", ["", " ", "\n\t"])
def test_silence_has_nothing_in_common(answer: str) -> None:
    assert set(parts(answer, GOLDS).values()) == {0.0}
    paper = parts(answer, GOLDS, recipe="trustscore-paper")
    assert set(paper.values()) == {0.0}


@pytest.mark.parametrize("aggregate", ["best", "first", "mean"])
def test_the_gold_answer_itself_has_all(aggregate: Aggregate) -> None:
    found = parts("a Belgian, Adolphe Sax", [GOLDS[2]], aggregate)
    assert found == pytest.approx(dict.fromkeys(NAMES, 1.0))
    assert max(found.values()) <= 1


def test_bleu_takes_all_gold_answers_as_its_references() -> None:
    long = "Adolphe Sax built the first saxophone in Belgium."
    found = parts(ANSWER, [*GOLDS, long])
    for order in (1, 4):
        metric = sacrebleu.BLEU(effective_order=True, max_ngram_order=order)
        assert found[f"bleu_{order}"] == pytest.approx(
            metric.sentence_score(ANSWER, [*GOLDS, long]).score / 100
        )
        alone = [metric.sentence_score(ANSWER, [gold]).score / 100 for gold in (*GOLDS, long)]
        mean = parts(ANSWER, [*GOLDS, long], "mean")[f"bleu_{order}"]
        assert mean == pytest.approx(sum(alone) / 4)
        assert parts(ANSWER, [long], "first")[f"bleu_{order}"] == pytest.approx(alone[3])


def test_bleu_puts_pieces_of_several_gold_answers_together() -> None:
    golds = ["Adolphe Sax", "the first saxophone"]
    both = parts("Adolphe Sax built the first saxophone", golds)["bleu_1"]
    alone = [parts("Adolphe Sax built the first saxophone", [one])["bleu_1"] for one in golds]
    assert both == pytest.approx(5 / 6)
    assert alone == pytest.approx([2 / 6, 3 / 6])


def test_rouge_l_by_hand() -> None:
    # The longest common subsequence of "the sax was his" and "sax his own" is "sax his".
    found = parts("the sax was his", ["sax his own"])
    assert found["rouge_l_precision"] == pytest.approx(2 / 4)
    assert found["rouge_l_recall"] == pytest.approx(2 / 3)
    assert found["rouge_l"] == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))


def test_chrf_is_sacrebleus_best() -> None:
    expected = sacrebleu.CHRF().sentence_score(ANSWER, GOLDS).score / 100
    assert parts(ANSWER, GOLDS)["chrf"] == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_papers_recipe_has_golds_and_words_of_its_own() -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    paper = parts(ANSWER, GOLDS, "mean", "trustscore-paper")
    ours = parts(ANSWER, GOLDS, "mean")
    words, golds = ANSWER.split(), [gold.split() for gold in GOLDS]
    assert paper["bleu_1"] == pytest.approx(sentence_bleu(golds, words, (1, 0, 0, 0)))
    smoothed = sentence_bleu(golds, words, smoothing_function=SmoothingFunction().method4)
    assert paper["bleu_4"] == pytest.approx(smoothed)
    assert paper["rouge_l"] == parts(ANSWER, GOLDS, "first")["rouge_l"] != ours["rouge_l"]
    assert parts("Adolphe Sax", GOLDS, "first", "trustscore-paper")["em"] == 1
    assert parts("Adolphe Sax", GOLDS, "first")["em"] == 0
    for name in ("contains", "token_recall", "chrf"):  # which the paper does not have
        assert paper[name] == ours[name]


def test_the_papers_build_word_tokenizer_is_that_of_its_time() -> None:
    text = "'It's the 1997–98 season', said O'Neil: 'x' and 'they'll see'."
    now = measures._build_word_tokenizer("default").tokenize(text)
    then = measures._build_word_tokenizer("trustscore-paper").tokenize(text)
    assert "1997–98" in then and "1997–98" not in now
    assert then != now


def test_what_is_missing_is_named_with_its_way_in(monkeypatch: pytest.MonkeyPatch) -> None:
    assert explain_missing("em", "default") is explain_missing("rouge_l", "default") is None
    gone = {"sacrebleu", "rouge_score", "nltk"}
    monkeypatch.setattr(measures, "find_spec", lambda name: None if name in gone else object())
    for name in LEXICAL:
        words = explain_missing(name, "default")
        if PARTS[name].family == "tokens":
            assert words is None
        else:
            assert words is not None
            assert "pip install '.[reference]'" in words
    assert "sacrebleu" in str(explain_missing("bleu_1", "default"))
    assert "nltk" in str(explain_missing("bleu_1", "trustscore-paper"))


def test_names_of_parts_and_of_several() -> None:
    assert select_parts("rouge_l") == ("rouge_l", "rouge_l_precision", "rouge_l_recall")
    assert select_parts("bleu_4+em") == ("em", "bleu_4")
    assert select_parts("lexical") == LEXICAL
    assert select_parts("bartscore_ref") == (
        "bartscore_ref",
        "bartscore_ref_precision",
        "bartscore_ref_recall",
    )
    assert len(select_parts("gptscore")) == 5
    assert select_parts("gptscore_src") == ("gptscore_src",)
    assert select_parts("") == ()
    with pytest.raises(ValueError, match="did you mean bertscore"):
        select_parts("bertscor")


class FakeWordNet:
    """Knows that a hound is a dog."""

    def synsets(self, word: str) -> list[Any]:
        return [self] if word in ("dog", "hound") else []

    def lemmas(self) -> list[Any]:
        return [Lemma("dog"), Lemma("hound")]


class Lemma:
    def __init__(self, word: str) -> None:
        self._word = word

    def name(self) -> str:
        return self._word


def test_meteor_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "wordnet", FakeWordNet)
    # Exact: the; by stem: cats; by synonym: hound. All three of three and three, in one chunk.
    found = parts("the cats hound", ["the cat dog"], names=["meteor"])
    assert found["meteor"] == pytest.approx(1 - 0.5 * (1 / 3) ** 3)
    # One word of two and of one: P = 1/2, R = 1; F = PR / (0.9 P + 0.1 R); one chunk of one.
    found = parts("cat dog", ["cat"], names=["meteor"])
    assert found["meteor"] == pytest.approx((0.5 / (0.9 * 0.5 + 0.1)) * 0.5)
    both = parts("cat dog", ["house", "cat"], names=["meteor"])
    assert both == found
    assert parts("cat dog", ["house", "cat"], "mean", "trustscore-paper", ["meteor"]) == {
        "meteor": 0.0
    }


# WordNet ------------------------------------------------------------------------------------------


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write a WordNet of one synset, and make it the only one that there is."""
    for name in ("cntlist.rev", "index.sense", *(f"{p}.exc" for p in ("adj", "adv", "noun"))):
        (tmp_path / name).write_text("")
    for name in ("verb.exc", *(f"{k}.{p}" for k in ("index", "data") for p in ("adj", "adv"))):
        (tmp_path / name).write_text("")
    (tmp_path / "index.verb").write_text("")
    (tmp_path / "data.verb").write_text("")
    (tmp_path / "data.noun").write_text("00000000 05 n 02 dog 0 hound 0 000 | an animal\n")
    (tmp_path / "index.noun").write_text("dog n 1 0 1 0 00000000\nhound n 1 0 1 0 00000000\n")
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(module, "DEBIAN_WORDNET", tmp_path)
    module.wordnet.cache_clear()
    yield tmp_path
    module.wordnet.cache_clear()


def test_debians_files_are_read(debian: Path) -> None:
    [synset] = module.wordnet().synsets("hound")
    assert synset.lemma_names() == ["dog", "hound"]
    assert module.wordnet().synsets("cat") == []
    assert nltk.data.path == [str(debian)]


def test_without_wordnet_it_is_said_how_to_get_it(debian: Path) -> None:
    (debian / "index.sense").unlink()
    assert module.wordnet_folder() is None
    with pytest.raises(LookupError, match="wordnet-base wordnet-sense-index"):
        module.wordnet()


STEMS = {"hounds": "hound", "sleeps": "sleep", "dogs": "dog"}
SYNONYMS = ({"dog", "hound"},)


def meteor(answer: str, gold: str) -> float:
    """Return METEOR (Banerjee and Lavie 2005; alpha .9, beta 3, gamma .5), no word twice."""
    ours, theirs = answer.lower().split(), gold.lower().split()

    def same_stem(one: str, other: str) -> bool:
        return STEMS.get(one, one) == STEMS.get(other, other)

    def same_meaning(one: str, other: str) -> bool:
        return any({STEMS.get(one, one), other} <= words for words in SYNONYMS)

    matches: dict[int, int] = {}
    for equal in (str.__eq__, same_stem, same_meaning):
        for i, one in enumerate(ours):
            free = [
                j for j, other in enumerate(theirs) if j not in matches.values()
                and equal(one, other)
            ]  # fmt: skip
            if i not in matches and free:
                matches[i] = free[0]
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(ours), len(matches) / len(theirs)
    f_mean = precision * recall / (0.9 * precision + 0.1 * recall)
    places = sorted(matches.items())
    chunks = 1 + sum((b[0] - a[0], b[1] - a[1]) != (1, 1) for a, b in pairwise(places))
    return f_mean * (1 - 0.5 * (chunks / len(matches)) ** 3)


@pytest.mark.slow
@pytest.mark.usefixtures("debian")
def test_meteor_of_a_run_is_what_its_formula_says_with_the_files_of_wordnet() -> None:
    gold = "the dog sleeps on a mat"
    answers = [
        gold,
        "the hounds sleep on a mat",  # a synonym by its stem, and a stem
        "on a mat the hound sleeps",
        "a mat sleeps on dogs",
        "dog",
        "nobody knows",
    ]
    samples = [
        {"id": str(i), "question": "Who?", "response": answer, "answers": [gold]}
        for i, answer in enumerate(answers)
    ]
    run = score(samples, metrics="reference:parts=meteor")
    values = [one.parts["meteor"] for one in run.assessments]
    assert values == pytest.approx([meteor(answer, gold) for answer in answers])
    # Stems and synonyms count in full.
    assert values[0] == values[1] > values[2] > values[3] > values[4] > values[5] == 0
    assert run.summary["reference"]["meteor"] == pytest.approx(sum(values) / len(values))

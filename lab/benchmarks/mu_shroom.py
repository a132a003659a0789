"""Where a model was not sure, against the spans of its answers that people marked as wrong.

    python -m lab.benchmarks.mu_shroom          # a minute; no model is asked

The answers, their tokens with logits and the spans are those of Mu-SHROOM (Vázquez et al. 2025,
SemEval-2025 task 3; ``mu-shroom`` of the shared data, found by TRUSTASSAY_SHARED).

Taken from the task: the two measures of an answer, over its characters. Intersection over union of
the characters of hard labels, 1 if both sets are empty; Spearman's correlation of the probabilities
of soft labels, where a vector that is constant to 8 digits gives 1 if both are and 0 if one is. A
figure is the mean over answers. They are computed anew here; "all of it" and "nothing" give the
figures of these two baselines in the task's published rankings. All else is of this file:

* Alignment: a token's bytes are looked for in the answer's text, token by token. An answer where
  that fails has no doubt anywhere; it counts in all figures, and ``not aligned`` says how many do.
  Where there is one logit more than tokens, it is the last: that of the token that ends the answer.
* ``continuing``: the AUROC of logits for tokens that continue a word against those that begin one,
  by model. The rest of a word is easier to foresee. Near .5 the logits may not be the tokens' own:
  those of English and German were computed after the answers, by scripts of the task's repository
  (``recompute_logits_english.py``) that ask whether a logit is read before its token or after it.
* ``names and numbers``: words with a digit, and capitalised words that do not begin a sentence. All
  nouns of German are capitalised; Arabic, Hindi and Chinese have digits only.
* ``token``: logits are of different sizes in each model, and no probabilities. Doubt is therefore
  the share of tokens with a higher logit: of those of the model's answers in the val part, or of
  the same answer. Variants: means with one or two neighbours on each side, and each word with the
  doubt of its weakest token. Spaces have the lower doubt of their two sides.

The variant with the best correlation in the val part of the language gives the correlation, and the
variant and threshold with the best intersection over union there give that; for Czech, which has no
val part, those of all val parts. A model without val answers in the language is compared with its
answers in the test part; no label is used for that. Languages with a val part only have their
variants from the val parts of the others, and stand apart. Nothing is chosen on the test part; that
each measure has a choice of its own, and not one variant for both, was settled after a first look
at it, and moves intersection over union by -.005 (French) to .022 (Italian). Intervals resample
answers; no question occurs twice in a language, but the same subjects occur in several.

Nothing is judged by the linked pages of ``pages_{de,fr,it}.tar.gz`` yet. What does belongs into
``FIXED``: from an answer, the probability of each character. Writes ``results/mu-shroom.json``.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.which_metric.sets import lines
from lab.results import write_result
from trustassay.statistics.correlation import auroc, value_of, weighted_spearman
from trustassay.statistics.resampling import (
    bootstrap_test,
    draw_counts,
    generator,
    resample_interval,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Span = tuple[int, int]
TESTED = ("en", "de", "fr", "it", "fi", "cs")
VAL = ("ar", "de", "en", "es", "fi", "fr", "hi", "it", "sv", "zh")
MARKED = 0.5
"""From which probability on a predictor without a threshold marks a character."""
THRESHOLDS = np.linspace(0, 1, 21)
"""Of doubt. From 0 on everything is marked."""
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_SPECIAL = re.compile(r"</?[a-z]+>|<\|[a-z_]+\|>")
_RUN = re.compile(r"[^\s\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+")
"""Where spaces part words; the characters of Chinese are no part of any."""
_WHITE = bytes.maketrans(b"\t\n\r", b"   ")
"""White space is as good as other white space."""


class Answer(NamedTuple):
    """An answer; ``soft`` and ``hard`` have a value for each character, ``spans`` the characters of
    each token, ``logits`` one for each span; without both if they can not be aligned."""

    language: str
    model: str
    text: str
    spans: Sequence[Span]
    logits: Floats
    soft: Floats
    hard: Bools


class Variant(NamedTuple):
    """How the logits of an answer become the doubt of its characters."""

    among: str
    neighbours: int
    unit: str


VARIANTS = [Variant(*one) for one in product(("model", "answer"), (0, 1, 2), ("token", "word"))]


def _alphabet() -> dict[str, int]:
    """Return the byte that each character of byte-level tokens stands for (Radford et al. 2019)."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    letters = {chr(256 + place): byte for place, byte in enumerate(others)}
    return {chr(byte): byte for byte in kept} | letters


_ALPHABET = _alphabet()


def byte_level(token: str) -> bytes | None:
    """Return the bytes of a token of byte-level BPE (``Ġwar``); ``None`` if it can not be one."""
    if not all(letter in _ALPHABET for letter in token):
        return None
    return bytes(_ALPHABET[letter] for letter in token)


def sentence_piece(token: str) -> bytes:
    """Return the bytes of a token of SentencePiece (``▁war``, ``<0x0A>``), or of plain text."""
    byte = _BYTE.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace("▁", " ").encode()


def aligned(text: str, tokens: Sequence[str]) -> list[Span] | None:
    """Return the characters of each token, as (start, end), or ``None`` if the text is not theirs.

    A token with some of the bytes of a character has the whole character. What is not in the text
    has an empty span: marks as ``</s>``, and spaces and line ends that were cut off.
    """
    for decoder in (byte_level, sentence_piece):
        pieces = [(decoder(token), decoder(_SPECIAL.sub("", token))) for token in tokens]
        if (result := _placed(text.encode(), pieces)) is not None:
            character = np.repeat(np.arange(len(text)), [len(one.encode()) for one in text])
            return [
                (int(character[start]), int(character[end - 1]) + 1) if start < end else (0, 0)
                for start, end in result
            ]
    return None


def _placed(text: bytes, pieces: Iterable[Sequence[bytes | None]]) -> list[Span] | None:
    """Return the bytes of each token, of which the first form is taken that is in the text."""
    text, at = text.translate(_WHITE), 0
    result: list[Span] = []
    for forms in pieces:
        lengths = (
            _length(text, at, piece.translate(_WHITE)) for piece in forms if piece is not None
        )
        length = next((one for one in lengths if one is not None), None)
        if length is None:
            return None
        result.append((at, at + length))
        at += length
    return None if text[at:].strip(b" ") else result


def _length(text: bytes, at: int, piece: bytes) -> int | None:
    """Return how many bytes of the text are a token's; ``None`` if it does not stand there.

    The text can lack spaces before a token, all of a token of spaces, and those at its end.
    """
    bare = piece.strip(b" ")
    for form in (piece, piece.lstrip(b" ")) if bare else (piece, b""):
        if text.startswith(form, at):
            return len(form)
    rest = text[at:]
    return len(rest) if rest and rest in (bare, piece.rstrip(b" ")) else None


def answer_of(row: Mapping[str, Any], language: str) -> Answer:
    """Return a row of the set.

    Raises:
        ValueError: there are fewer logits than tokens, or more than one more.
    """
    text, tokens, logits = (row[f"model_output_{name}"] for name in ("text", "tokens", "logits"))
    if len(logits) - len(tokens) not in (0, 1):
        raise ValueError(f"{row['id']}: {len(tokens)} tokens and {len(logits)} logits")
    spans = aligned(text, tokens) or []
    inside = [place for place, (start, end) in enumerate(spans) if start < end]
    soft, hard = np.zeros(len(text)), np.zeros(len(text), dtype=bool)
    for one in row["soft_labels"]:
        soft[one["start"] : one["end"]] = one["prob"]
    for start, end in row["hard_labels"]:
        hard[start:end] = True
    values = np.array(logits, dtype=np.float64)[inside]
    return Answer(
        language, row["model_id"], text, [spans[place] for place in inside], values, soft, hard
    )


def intersection_over_union(labels: Bools, predicted: Bools) -> float:
    """Return the share of characters marked by both among those marked by either; 1 if none is."""
    union = int((labels | predicted).sum())
    return int((labels & predicted).sum()) / union if union else 1.0


def correlation(labels: Floats, predicted: Floats) -> float:
    """Return Spearman's correlation; of vectors that are constant to 8 digits 1 if both are, 0 if
    one is."""
    constant = [len(set(np.round(values, 8))) == 1 for values in (labels, predicted)]
    if any(constant):
        return float(all(constant))
    return value_of(weighted_spearman, predicted, labels) or 0.0


def words(text: str) -> Iterator[Span]:
    """Yield the words of a text, without the punctuation around them."""
    for run in _RUN.finditer(text):
        places = [place for place in range(*run.span()) if _in_word(text[place])]
        if places:
            yield places[0], places[-1] + 1


def _in_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


def over_spaces(text: str, values: Floats) -> Floats:
    """Return values where spaces have the lower one of their two sides; 0 at the text's ends."""
    result = values.copy()
    for space in re.finditer(r"\s+", text):
        start, end = space.span()
        inside = start > 0 and end < len(text)
        result[start:end] = min(values[start - 1], values[end]) if inside else 0.0
    return result


def names_and_numbers(answer: Answer) -> Floats:
    """Return 1 for words with a digit and capitalised ones that do not begin a sentence, else 0."""
    result = np.zeros(len(answer.text))
    last = 0
    for place, (start, end) in enumerate(words(answer.text)):
        word = answer.text[start:end]
        begins = not place or re.search(r"[.!?…\n]", answer.text[last:start])
        if re.search(r"\d", word) or (word[0].isupper() and not begins):
            result[start:end] = 1
        last = end
    return over_spaces(answer.text, result)


FIXED: Mapping[str, Callable[[Answer], Floats]] = {
    "all of it": lambda answer: np.ones(len(answer.text)),
    "nothing": lambda answer: np.zeros(len(answer.text)),
    "names and numbers": names_and_numbers,
}
"""Predictors for which nothing is chosen: the probability of each character of an answer."""


def references(answers: Sequence[Answer]) -> dict[tuple[str, str], Floats]:
    """Return the sorted logits of each model in each language."""
    result: dict[tuple[str, str], list[Floats]] = {}
    for answer in answers:
        result.setdefault((answer.language, answer.model), []).append(answer.logits)
    return {key: np.sort(np.concatenate(values)) for key, values in result.items()}


def doubts(answer: Answer, variant: Variant, reference: Floats) -> Floats:
    """Return the doubt of each character, from 0 to 1; 0 for an answer that is not aligned.

    ``reference``: sorted logits of the model.
    """
    result = np.zeros(len(answer.text))
    if not len(answer.spans):
        return result
    among = reference if variant.among == "model" else np.sort(answer.logits)
    not_above = np.searchsorted(among, answer.logits, side="right")
    equal = not_above - np.searchsorted(among, answer.logits, side="left")
    each = smoothed(1 - (not_above - equal / 2) / len(among), variant.neighbours)
    for (start, end), doubt in zip(answer.spans, each, strict=True):
        result[start:end] = np.maximum(result[start:end], doubt)
    if variant.unit == "word":
        for start, end in words(answer.text):
            result[start:end] = result[start:end].max()
    return over_spaces(answer.text, result)


def smoothed(values: Floats, neighbours: int) -> Floats:
    """Return the mean of each value with so many on each side; there are fewer at the ends."""
    window = np.ones(2 * neighbours + 1)
    total = np.convolve(values, window)[neighbours : neighbours + len(values)]
    there = np.convolve(np.ones(len(values)), window)[neighbours : neighbours + len(values)]
    return np.asarray(total / there, dtype=np.float64)


class Choice(NamedTuple):
    """What was best on some answers: the variant by correlation; variant and threshold by
    intersection over union; and both means there."""

    soft: Variant
    correlation: float
    hard: Variant
    threshold: float
    iou: float


def chosen(answers: Sequence[Answer], known: Mapping[tuple[str, str], Floats]) -> Choice:
    """Return the best variants on some answers; of equal ones the first."""
    soft, hard = [], []
    for variant in VARIANTS:
        each = [(one, doubts(one, variant, known[one.language, one.model])) for one in answers]
        soft.append(np.mean([correlation(one.soft, values) for one, values in each]))
        hard.append(
            [
                np.mean([intersection_over_union(one.hard, values >= t) for one, values in each])
                for t in THRESHOLDS
            ]
        )
    best = int(np.argmax(soft))
    row, column = divmod(int(np.argmax(hard)), len(THRESHOLDS))
    return Choice(
        VARIANTS[best],
        float(soft[best]),
        VARIANTS[row],
        float(THRESHOLDS[column]),
        float(hard[row][column]),
    )


class Scores(NamedTuple):
    """The two measures of each answer, and the share of its characters that are marked."""

    iou: Floats
    correlation: Floats
    marked: Floats


def scored(answers: Sequence[Answer], soft: Sequence[Floats], hard: Sequence[Bools]) -> Scores:
    rows = [
        (
            intersection_over_union(answer.hard, marked),
            correlation(answer.soft, values),
            float(marked.mean()),
        )
        for answer, values, marked in zip(answers, soft, hard, strict=True)
    ]
    return Scores(*np.array(rows).T)


def resampled(values: Floats, *purpose: str) -> Floats:
    """Return the means of bootstrap samples, the same samples for the same purpose."""
    draws = draw_counts(len(values), generator(0, "mu-shroom", *purpose))
    return np.concatenate([counts @ values for counts in draws]) / len(values)


def figure(value: float, interval: Sequence[float] | str) -> dict[str, Any]:
    told = interval if isinstance(interval, str) else [round(x, 4) + 0.0 for x in interval]
    return {"value": round(value, 4) + 0.0, "interval": told}


def figures(scores: Mapping[str, Scores], place: str) -> dict[str, Any]:
    """Return the means with intervals, and the differences of tokens to what needs no tokens."""
    result: dict[str, Any] = {}
    for name, own in scores.items():
        result[name] = {"marked": round(float(own.marked.mean()), 4)}
        for measure in ("iou", "correlation"):
            values = getattr(own, measure)
            interval = resample_interval(resampled(values, place), len(values))
            result[name][measure] = figure(float(values.mean()), interval)
    for other in ("all of it", "names and numbers"):
        row = result[f"token less {other}"] = {}
        for measure in ("iou", "correlation"):
            values = getattr(scores["token"], measure) - getattr(scores[other], measure)
            tested = bootstrap_test(float(values.mean()), resampled(values, place), len(values))
            row[measure] = figure(tested.value, tested.interval or tested.without)
    return result


def measured(
    answers: Sequence[Answer], choice: Choice, known: Mapping[tuple[str, str], Floats]
) -> dict[str, Scores]:
    """Return the scores of each predictor on the answers of a language."""
    result = {}
    for name, predictor in FIXED.items():
        values = [predictor(one) for one in answers]
        result[name] = scored(answers, values, [one >= MARKED for one in values])
    soft, hard = (
        [doubts(one, variant, known[one.language, one.model]) for one in answers]
        for variant in (choice.soft, choice.hard)
    )
    result["token"] = scored(answers, soft, [one >= choice.threshold for one in hard])
    return result


def counts(answers: Sequence[Answer]) -> dict[str, int]:
    return {
        "answers": len(answers),
        "not aligned": sum(not len(one.spans) for one in answers),
        "nothing marked by most": sum(not one.hard.any() for one in answers),
    }


def continuing(answers: Sequence[Answer]) -> dict[str, float]:
    """Return of each model the AUROC of logits: tokens that continue a word above those that begin
    one; a model has none where all do the same."""
    rows: dict[str, list[tuple[float, bool]]] = {}
    for answer in answers:
        for (start, end), logit in zip(answer.spans, answer.logits, strict=True):
            first = end - len(answer.text[start:end].lstrip())
            if first < end and _in_word(answer.text[first]):
                inside = first > 0 and _in_word(answer.text[first - 1])
                rows.setdefault(answer.model.rpartition("/")[2], []).append((float(logit), inside))
    values = {model: auroc(*zip(*own, strict=True)) for model, own in sorted(rows.items())}
    return {model: round(value, 4) for model, value in values.items() if value is not None}


def joined(scores: Sequence[Mapping[str, Scores]]) -> dict[str, Scores]:
    """Return the scores of all languages as those of one."""
    return {
        name: Scores(
            *(np.concatenate(own) for own in zip(*(one[name] for one in scores), strict=True))
        )
        for name in scores[0]
    }


def as_json(choice: Choice, on: str) -> dict[str, Any]:
    soft = {**choice.soft._asdict(), "correlation there": round(choice.correlation, 4)}
    hard = {
        **choice.hard._asdict(),
        "threshold": round(choice.threshold, 2),
        "iou there": round(choice.iou, 4),
    }
    return {"on": on, "by correlation": soft, "by iou": hard}


def read(part: str, language: str) -> list[Answer]:
    return [answer_of(row, language) for row in lines(f"mu-shroom/{part}_{language}")]


def main() -> None:
    val = {language: read("val", language) for language in VAL}
    known = references([one for own in val.values() for one in own])
    every: dict[str, list[dict[str, Scores]]] = {"test": [], "val only": []}
    result: dict[str, Any] = {"test": {}, "val only": {}}
    for language in (*TESTED, *(one for one in VAL if one not in TESTED)):
        part = "test" if language in TESTED else "val only"
        answers = read("test", language) if part == "test" else val[language]
        if part == "test" and language in VAL:
            source, name = val[language], f"val {language}"
        else:
            source = [one for other in VAL if other != language for one in val[other]]
            name = "val of all other languages"
        choice = chosen(source, known)
        scores = measured(answers, choice, {**references(answers), **known})
        every[part].append(scores)
        result[part][language] = {
            **counts(answers),
            "continuing": continuing(answers),
            "chosen": as_json(choice, name),
            **figures(scores, f"{part} {language}"),
        }
    for part, own in every.items():
        sums = {
            key: sum(one[key] for one in result[part].values())
            for key in ("answers", "not aligned", "nothing marked by most")
        }
        result[part]["all"] = {**sums, **figures(joined(own), f"{part} all")}
    write_result(
        "mu-shroom",
        "python -m lab.benchmarks.mu_shroom",
        "Mu-SHROOM (Vázquez et al. 2025), spans in answers that people marked: val part of ten "
        "languages, test part of six",
        result,
    )
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

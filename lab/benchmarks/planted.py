"""Answers made of what real documents say, with no, one or two planted errors.

An answer is of two to five sentences: what people wrote and judged to be supported by its document,
where a set has that, and else sentences of the document, reworded by a few rules that keep the
meaning. Of three answers one has errors: one, or two in different sentences. The documents are
those of the public sets, read when this runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import sentencex

from lab.benchmarks.faithfulness import cut
from lab.benchmarks.which_metric.sets import lines, shared
from trustassay.statistics.resampling import generator

__all__ = ["EDITS", "SOURCES", "Answer", "planted"]

Rng = np.random.Generator


class Source(NamedTuple):
    """A document: its passages, its own sentences, and statements known to be supported by it."""

    cluster: str
    passages: Sequence[str]
    own: Sequence[str]
    supported: Sequence[str] = ()


class Answer(NamedTuple):
    """An answer; ``kinds`` are the edits made, none for an answer that its passages support, and
    ``planted`` the sentences that they made."""

    id: str
    source: str
    passages: Sequence[str]
    sentences: Sequence[str]
    kinds: Sequence[str]
    planted: Sequence[str]

    @property
    def record(self) -> dict[str, object]:
        """The sample to be scored."""
        question = f"What does the source say? ({self.id})"
        text = " ".join(self.sentences)
        return {
            "id": self.id,
            "question": question,
            "response": text,
            "documents": [*self.passages],
        }


# Documents --------------------------------------------------------------------------------------


def _sentences(text: str) -> list[str]:
    split = [" ".join(one.split()) for one in sentencex.segment("en", text)]
    return [
        one for one in split if 6 <= len(one.split()) <= 40 and one[-1] == "." and one[0].isupper()
    ]


_SAME = {
    "began": "started",
    "started": "began",
    "also": "",
    "located": "situated",
    "however": "",
    "approximately": "about",
    "about": "roughly",
    "many": "a lot of",
    "several": "a number of",
    "large": "big",
    "known as": "called",
    "called": "known as",
    "received": "was given",
    "including": "among them",
    "because": "since",
    "while": "whereas",
    "such as": "like",
    "during": "in the course of",
    "between": "in between",
    "until": "up to",
    "after": "following",
    "before": "prior to",
    "became": "turned into",
    "released": "brought out",
    "published": "brought out",
    "created": "made",
    "wrote": "penned",
    "said": "stated",
    "would": "was to",
    "film": "movie",
    "which": "that",
    "best known": "most famous",
    "famous": "well known",
}
_WORD = re.compile(rf"\b(?:{'|'.join(sorted(_SAME, key=len, reverse=True))})\b")
_ASIDE = re.compile(r" \([^()]*\)")
_LEADING = re.compile(
    r"((?:In|On|At|After|Before|During|From|Since|Until) [^,.;]{3,40}), ([^\"]+)\."
)


def _reworded(text: str) -> str | None:
    """Return a sentence in other words and another order; None where no rule changes it."""
    found = _WORD.sub(lambda one: _SAME[one[0]], _ASIDE.sub("", text))
    if moved := _LEADING.fullmatch(found):
        first = moved[2][0].upper() + moved[2][1:]
        found = f"{first} {moved[1][0].lower()}{moved[1][1:]}."
    found = re.sub(r"\s+([,.])", r"\1", " ".join(found.split()).replace(", ,", ","))
    return None if found == text else found


def _own(texts: Sequence[str]) -> list[str]:
    """Return the sentences of a document, reworded."""
    found = (_reworded(one) for text in texts for one in _sentences(text))
    return [one for one in found if one]


def _biographies() -> Iterator[Source]:
    for row in lines("selfcheck-wikibio/passages"):
        text = row["wiki_bio_text"]
        yield Source(text[:60], cut(list(sentencex.segment("en", text))), _own([text]))


def _news() -> Iterator[Source]:
    for row in lines("fib/test"):
        cased = row["premise"][:400] != row["premise"][:400].lower()
        if row["label"] == "supported" and row["how"] == "human" and cased:
            own = list(sentencex.segment("en", row["premise"]))
            supported = [row["hypothesis"]]
            yield Source(row["doc"], cut(own), _own([row["premise"]]), supported)


def _summaries() -> Iterator[Source]:
    for name in ("test", "test_other"):
        for row in lines(f"summedits/{name}"):
            if row["label"] == "supported":
                own = list(sentencex.segment("en", row["premise"]))
                yield Source(row["doc"], cut(own), (), _sentences(row["hypothesis"]))


def _cited_answers() -> Iterator[Source]:
    answers: dict[str, list[Mapping[str, str]]] = {}
    for name in ("train", "dev", "test"):
        for row in lines(f"expertqa/{name}"):
            if row["label"] == "supported":
                answers.setdefault(row["question"], []).append(row)
    for question, rows in answers.items():
        supported = [one for row in rows for one in _sentences(row["hypothesis"])]
        yield Source(question, list(dict.fromkeys(row["premise"] for row in rows)), (), supported)


def _web_pages() -> Iterator[Source]:
    for row in lines("attribution/wice_test"):
        if row["label"] == 1:
            own = _own(row["premise_sentences"])
            yield Source(row["hypothesis"], cut(row["premise_sentences"]), own, [row["hypothesis"]])


def _encyclopedia() -> Iterator[Source]:
    path = shared() / "halueval" / "qa_data_first1000.json"
    for line in path.read_text(encoding="utf-8").splitlines():
        text = re.sub(r"(?<=[a-z0-9)])\.(?=[A-Z])", ". ", json.loads(line)["knowledge"])
        yield Source(text[:60], [text], _own([text]))


SOURCES: Mapping[str, Callable[[], Iterator[Source]]] = {
    "biographies": _biographies,
    "news": _news,
    "summaries": _summaries,
    "cited answers": _cited_answers,
    "web pages": _web_pages,
    "encyclopedia": _encyclopedia,
}

# Edits ------------------------------------------------------------------------------------------
# Each takes a sentence, the answer's document and another one, and gives the sentence with one
# error, or None where it holds nothing to change.

Edit = Callable[[str, Source, Source, Rng], str | None]
_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_NUMERALS = "two three four five six seven eight nine ten eleven twelve".split()
_UNITS = (
    ("hours", "days"),
    ("minutes", "hours"),
    ("days", "weeks"),
    ("weeks", "months"),
    ("months", "years"),
    ("years", "decades"),
    ("million", "billion"),
    ("thousand", "million"),
    ("kilometres", "miles"),
    ("km", "miles"),
    ("miles", "metres"),
    ("feet", "metres"),
    ("percent", "per thousand"),
    ("%", " per thousand"),
    ("kg", "grams"),
    ("pounds", "kilograms"),
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][^\W\d_]{2,}(?: [A-Z][^\W\d_]+)*\b")
_VERB = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|should|may|must)\b(?! not)"
)
_OBJECT = re.compile(
    r"(?:(?<=\bthe )|(?<=\ba )|(?<=\ban ))[a-z]{4,}"
    r"(?= (?:of|in|for|at|on|by|to|with|and)\b|[.,])"
)
_YEAR = re.compile(r"\b(?:1[5-9]\d\d|20[0-2]\d)\b")
_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})*(?![\w,]|\.\d)")


def _one(found: Sequence[re.Match[str]], rng: Rng) -> re.Match[str] | None:
    return found[int(rng.integers(len(found)))] if found else None


def _replaced(text: str, match: re.Match[str] | None, value: str) -> str | None:
    return None if match is None else f"{text[: match.start()]}{value}{text[match.end() :]}"


def _number(text: str, _source: Source, _other: Source, rng: Rng) -> str | None:
    match = _one(list(_NUMBER.finditer(text)), rng)
    if match is None:
        return None
    value = int(match[0].replace(",", ""))
    wrong = value * 2 if rng.random() < 0.5 and value else value + int(rng.integers(1, 9))
    return _replaced(text, match, f"{wrong:,}" if "," in match[0] else str(wrong))


def _date(text: str, _source: Source, _other: Source, rng: Rng) -> str | None:
    months = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b(?= \d)")
    match = _one([*_YEAR.finditer(text), *months.finditer(text)], rng)
    if match is None:
        return None
    if match[0].isdigit():
        apart = int(rng.integers(1, 15)) * (1 if rng.random() < 0.5 else -1)
        return _replaced(text, match, str(int(match[0]) + apart))
    apart = int(rng.integers(1, 12))
    return _replaced(text, match, _MONTHS[(_MONTHS.index(match[0]) + apart) % 12])


def _number_word(text: str, _source: Source, _other: Source, rng: Rng) -> str | None:
    match = _one(list(re.finditer(rf"\b(?:{'|'.join(_NUMERALS)})\b", text)), rng)
    if match is None:
        return None
    apart = int(rng.integers(1, len(_NUMERALS)))
    at = (_NUMERALS.index(match[0]) + apart) % len(_NUMERALS)
    return _replaced(text, match, _NUMERALS[at])


def _unit(text: str, _source: Source, _other: Source, _rng: Rng) -> str | None:
    for unit, wrong in _UNITS:
        end = "" if unit == "%" else r"\b"
        if match := re.search(rf"(?<=\d ){unit}{end}|(?<=\d){unit}{end}", text):
            return _replaced(text, match, wrong)
        if match := re.search(rf"(?<=\b(?:two|few) ){unit}\b|(?<=\bthree ){unit}\b", text):
            return _replaced(text, match, wrong)
    return None


def _name(text: str, source: Source, other: Source, rng: Rng) -> str | None:
    match = _one(list(_NAME.finditer(text)), rng)
    if match is None or match[0] in _MONTHS:
        return None
    where = source if rng.random() < 0.5 else other
    texts = [*where.passages, *where.supported]
    said = " ".join(texts)
    names = sorted({one for one in _NAME.findall(said) if one not in text and one not in _MONTHS})
    alike = [one for one in names if len(one.split()) == len(match[0].split())] or names
    return _replaced(text, match, alike[int(rng.integers(len(alike)))]) if alike else None


def _negation(text: str, _source: Source, _other: Source, _rng: Rng) -> str | None:
    if " not " in text:
        return text.replace(" not ", " ", 1)
    match = _VERB.search(text)
    return _replaced(text, match, f"{match[0]} not") if match else None


def _object(text: str, source: Source, _other: Source, rng: Rng) -> str | None:
    match = _one(list(_OBJECT.finditer(text)), rng)
    said = " ".join(source.passages)
    nouns = sorted({one for one in _OBJECT.findall(said) if one not in text})
    if match is None or not nouns:
        return None
    return _replaced(text, match, nouns[int(rng.integers(len(nouns)))])


def _added(_text: str, source: Source, other: Source, rng: Rng) -> str | None:
    """Return a sentence of another document, to stand beside those of the answer."""
    offered = [*other.own, *other.supported]
    if not offered:
        return None
    found = offered[int(rng.integers(len(offered)))]
    names = _NAME.findall(" ".join(source.passages))
    match = _NAME.search(found)
    if match and names and rng.random() < 0.5:  # as if it spoke of what the document speaks of
        return _replaced(found, match, max(sorted(set(names)), key=names.count))
    return found


EDITS: Mapping[str, Edit] = {
    "number": _number,
    "name": _name,
    "negation": _negation,
    "date": _date,
    "number word": _number_word,
    "unit": _unit,
    "added sentence": _added,
    "wrong object": _object,
}

# Answers ----------------------------------------------------------------------------------------


def planted(answers: int, seed: int = 0, wrong: float = 1 / 3) -> list[Answer]:
    """Return so many answers, as many of each set, of which ``wrong`` have errors.

    No two answers are of the same document. Kinds of edits take turns, so that rare ones
    ("unit") are made wherever they can be.
    """
    each = answers // len(SOURCES)
    made: dict[str, int] = dict.fromkeys(EDITS, 0)
    found = []
    for name, read in SOURCES.items():
        rng = generator(seed, "planted", name)
        sources = list({one.cluster: one for one in read()}.values())
        usable = [one for one in sources if len({*one.own, *one.supported}) >= 2]
        order = [usable[place] for place in rng.permutation(len(usable))]
        for number, source in enumerate(order[:each]):
            other = order[(number + 1) % len(order)]
            edits = 1 + number % 2 if number < wrong * each else 0
            found.append(_answer(f"{name}-{number}", name, source, other, edits, made, rng))
    return found


def _answer(
    sample: str,
    name: str,
    source: Source,
    other: Source,
    edits: int,
    made: dict[str, int],
    rng: Rng,
) -> Answer:
    size = int(rng.integers(2, 6))
    begun = list(dict.fromkeys(source.supported))[:size]
    rest = [one for one in dict.fromkeys(source.own) if one not in begun]
    more = sorted(rng.permutation(len(rest))[: max(0, size - len(begun))].tolist())
    sentences = [*begun, *(rest[place] for place in more)]
    kinds: list[str] = []
    taken: set[int] = set()
    for _ in range(edits):
        for kind in sorted(EDITS, key=lambda one: (made[one], rng.random())):
            places = [int(p) for p in rng.permutation(len(sentences)) if int(p) not in taken]
            tried = ((p, EDITS[kind](sentences[p], source, other, rng)) for p in places)
            place, text = next(((p, t) for p, t in tried if t and t != sentences[p]), (0, None))
            if text is None:
                continue
            if kind == "added sentence":
                sentences.append(text)
                taken.add(len(sentences) - 1)
            else:
                sentences[place] = text
                taken.add(place)
            made[kind] += 1
            kinds.append(kind)
            break
    return Answer(
        sample, name, source.passages, sentences, kinds, [sentences[place] for place in taken]
    )

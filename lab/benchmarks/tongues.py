"""Whether readers judge statements in other languages, on texts that people translated.

    apt-get download installation-guide-amd64 debian-handbook
    for file in *.deb; do dpkg -x "$file" TEXTS; done
    python -m lab.benchmarks.local_models 1.5b
    python -m lab.benchmarks.tongues --texts TEXTS --out FOLDER     # goes on where it stopped
    python -m lab.benchmarks.tongues --texts TEXTS --show de        # pairs to be read by people

Debian's installation guide and administrator's handbook, with their translations by volunteers: the
same files, in each the same paragraphs. A passage is a paragraph of 40 to 90 English words whose
sentences are as many in both languages; a true statement is the translation of one of them, by its
place: both have the same numbers, and lengths that fit. Of each of 30 passages a language there are
a true statement and a false one: the same sentence with a number of another value, or negated or
not by a rule of its language (:data:`NEGATIONS`), or the sentence of another paragraph of the file
that shares most words with the passage. ``across``: passage and statement are in two languages, one
of them English, by turns; ``within``: both are in the same, and true statements are copies of
sentences. English itself is the control. The local model is asked the one question whose odds are
the probability of entailment. Writes ``results/tongues.json``.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import sentencex

from lab.benchmarks.local_models import path_of
from lab.results import write_result
from trustassay.backends.chat_entailer import ChatEntailer, compute_yes_probability
from trustassay.backends.resolve import entailer
from trustassay.core.capabilities import BatchLimits, Entailer, Probabilities, Reply
from trustassay.input.labelled_pairs import LabelledPair
from trustassay.people.entailers import measure_entailers
from trustassay.statistics.resampling import generator
from trustassay.text.language import detect_language
from trustassay.text.words import plain_words

ENGLISH = "en"
GUIDE, HANDBOOK = "installation-guide-amd64", "debian-handbook/html"
LANGUAGES = {
    "de": ("de", "de-DE"),
    "fr": ("fr", "fr-FR"),
    "es": ("es", "es-ES"),
    "it": ("it", "it-IT"),
    "pt": ("pt", "pt-BR"),
    "nl": ("nl", "nl-NL"),
    "sv": ("sv", "sv-SE"),
    "zh": ("zh_CN", "zh-CN"),
    "ja": ("ja", "ja-JP"),
}
"""The folders of each language in the guide and in the handbook."""
WAYS = ("across", "within")
MODEL = "qwen2.5-coder-1.5b"
COMMAND = "python -m lab.benchmarks.tongues --texts TEXTS --out FOLDER"
DATA = "Debian's installation guide and administrator's handbook, and their translations by people"
PASSAGES = 30
WORDS = (40, 90)
SENTENCE = (7, 35)
"""English words of a passage, and of a statement."""
FEWEST = 18
"""Pairs of a language and a way, with fewer of which a reader has no figures."""
KINDS = ("number", "negation", "other sentence")
NEGATIONS: dict[str, Sequence[tuple[str, str | Callable[[re.Match[str]], str]]]] = {
    "en": [
        (r"\b(is|are|does|do|did|was|were|will|should|must|can|may|has|have) not\b", r"\1"),
        (r"\bcannot\b", "can"),
        (r"\b(is|are|was|were|will|should|must|can|may)\b", r"\1 not"),
    ],
    "de": [
        (r" nicht(?! (nur|mehr|zu|unbedingt|so|alle))\b", ""),
        (r"\b[kK]ein(e|en|er|em|es)?\b", r"ein\1"),
        (r"\b(ist|sind|wird|werden|kann|können|muss|müssen|sollte|sollten)( Sie| man| es)?(?= \w)",
         r"\1\2 nicht"),
    ],
    "fr": [
        (r"\b(?:ne |n['’])(\w+) pas\b", r"\1"),
        (r"(?<!['’])\b(est|était|a)\b(?!-)", r"n’\1 pas"),
        (r"\b(sont|peut|peuvent|doit|doivent|sera|seront|permet|faut|pouvez|devez)\b",
         r"ne \1 pas"),
    ],
    "es": [
        (r"\b[nN]o (?!obstante|sólo|solo|solamente|hay que)", ""),
        (r"\b(es|son|está|están|puede|pueden|debe|deben|será|permite|hay|tiene|necesita)\b",
         r"no \1"),
    ],
    "it": [
        (r"\b[nN]on (?!solo|appena|soltanto)", ""),
        (r"\b(è|sono|può|possono|deve|devono|sarà|viene|vengono|permette|ha|hanno)\b", r"non \1"),
    ],
    "pt": [
        (r"\b[nN]ão (?!só|apenas|somente|obstante)", ""),
        (r"\b(é|são|está|estão|pode|podem|deve|devem|será|serão|permite|tem|precisa)\b", r"não \1"),
    ],
    "nl": [
        (r" niet(?! (alleen|meer|te|zo|altijd))\b", ""),
        (r"\b[gG]een\b", "een"),
        (r"\b(is|zijn|wordt|worden|kan|kunnen|moet|moeten|zal|zullen)( u| men| het)?(?= \w)",
         r"\1\2 niet"),
    ],
    "sv": [
        (r" inte(?! (bara|endast|längre|alla))\b", ""),
        (r"\b(är|kan|måste|ska|kommer|bör|har)( du| man| det)?(?= \w)", r"\1\2 inte"),
    ],
    "zh": [
        (r"不(?=能|会|是|需要|应|必|支持|可以|要)", ""),
        (r"没有", "有"),
        (r"(?<!不)(可以|能够|需要|应该|必须|会(?!议))", r"不\1"),
        (r"(?<![不就还可但于只要如或总])是(?![否不])", "不是"),
    ],
    "ja": [
        (r"(ではありません|じゃありません)", "です"),
        (r"(で|し|あり|(?<!かま)い|なり|られ|れ)ません(?=。|が|でした)", r"\1ます"),
        (r"(できます|します|あります|なります|います|されます)(?=。)",
         lambda found: found[0].removesuffix("ます") + "ません"),
        (r"(?<!の)です(?=。)", "ではありません"),
    ],
}  # fmt: skip
"""What is replaced in a sentence, the first that is found and once: a negation goes, or comes."""
_NEGATIVE = {
    "en": r"\b(not|no|none|never|cannot|without|\w+n['’]t)\b",
    "de": r"\b(nicht|kein\w*|nie|ohne)\b",
    "fr": r"\b(ne\b|n['’]|sans\b|aucun)",
    "es": r"\b(no|nunca|sin|ningun\w*|ningún)\b",
    "it": r"\b(non|senza|nessun\w*)\b",
    "pt": r"\b(não|nunca|sem|nenhum\w*)\b",
    "nl": r"\b(niet|geen|nooit|zonder)\b",
    "sv": r"\b(inte|ingen|inget|inga|aldrig|utan)\b",
    "zh": r"[不没无未非]",
    "ja": r"ない|なく|ません|ず、",
}
"""A sentence with one of these words gets no further negation."""
_PARAGRAPH = re.compile(r'<div class="para">(.*?)</div>|<p>(.*?)</p>', re.DOTALL)
_BLOCK = re.compile(r"<(div|pre|table|ul|ol|dl|p)\b")
_NUMBER = re.compile(r"(?<![A-Za-z0-9.,:/_#$\-–%])(?<!\w\()\d{1,4}(?![A-Za-z0-9/_–%-]|[.,:]\w)")
_REFERENCE = re.compile(r"\b(Section|Chapter|Appendix|Figure|Table|sidebar|see|http|e\.g|i\.e)\b")
_CHARACTERS = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


class Paragraph(NamedTuple):
    """A paragraph of a file in English and another language, and its sentences in both."""

    file: str
    texts: dict[str, str]
    sentences: dict[str, list[str]]


class Kept:
    """The local model, asked the first question alone, whose replies are kept in a file."""

    name, stored, limits = "kept", False, BatchLimits(items=8)

    def __init__(self, path: Path, threads: int) -> None:
        self._path, self._threads = path, threads
        self._slow: ChatEntailer | None = None
        self._found: dict[tuple[str, str], float] = {}
        for line in path.open(encoding="utf-8") if path.exists() else ():
            row = json.loads(line)
            self._found[row["premise"], row["hypothesis"]] = row["stated"]

    def __contains__(self, pair: Pair) -> bool:
        return (pair.passage, pair.statement) in self._found

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return entailment, the rest and 0 of each pair, shape (n, 3)."""
        todo = [pair for pair in dict.fromkeys(pairs) if pair not in self._found]
        if todo:
            uri = f"gguf:{path_of('1.5b')}?context=1024&parallel=1&threads={self._threads}"
            slow = self._slow = self._slow or cast(ChatEntailer, entailer(uri))
            began = time.monotonic()
            asked = [slow.odds_request(pair, contradicted=False) for pair in todo]
            replies = cast(Any, slow.chat_model).replies(asked)
            seconds = round((time.monotonic() - began) / len(todo), 2)
            with self._path.open("a", encoding="utf-8") as file:
                for pair, reply in zip(todo, replies, strict=True):
                    stated = compute_yes_probability(reply) if isinstance(reply, Reply) else None
                    if stated is None:
                        raise SystemExit(f"no yes or no for {pair}: {reply}")
                    self._found[pair] = round(stated, 6)
                    row = dict(zip(("premise", "hypothesis"), pair, strict=True))
                    told = row | {"stated": self._found[pair], "seconds": seconds}
                    file.write(json.dumps(told) + "\n")
            print(len(self._found), seconds, flush=True)
        found = np.array([self._found[pair] for pair in pairs], dtype=float)
        return np.stack([found, 1 - found, np.zeros_like(found)], axis=1)


class Remembered:
    """An entailer that judges each pair once."""

    stored, limits = False, BatchLimits(items=64)

    def __init__(self, judge: Entailer) -> None:
        self.name, self._judge = judge.name, judge
        self._found: dict[tuple[str, str], Any] = {}

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        todo = [pair for pair in dict.fromkeys(pairs) if pair not in self._found]
        if todo:
            self._found |= dict(zip(todo, self._judge.scores(todo), strict=True))
        return np.array([self._found[pair] for pair in pairs], dtype=float).reshape(-1, 3)


class Pair(NamedTuple):
    """A passage and a statement; ``way`` is ``across`` or ``within``."""

    way: str
    passage: str
    statement: str
    true: bool
    kind: str
    languages: tuple[str, str]


def plain(markup: str) -> str:
    """Return the text of a paragraph, without marks of footnotes."""
    text = html.unescape(re.sub(r"<[^>]*>", "", markup))
    return " ".join(re.sub(r"\s*\[\d+\]", "", text).split())


def raw(file: Path) -> list[str]:
    """Return the markup of a file's paragraphs in order."""
    found = _PARAGRAPH.finditer(file.read_text("utf-8"))
    return [one[1] if one[1] is not None else one[2] for one in found]


def sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text."""
    if language in ("zh", "ja"):
        return [one.strip() for one in re.findall(r"[^。！？]+[。！？]?", text) if one.strip()]
    return [one.strip() for one in sentencex.segment(language, text) if one.strip()]


def words(text: str) -> set[str]:
    """Return the words of a text, and pairs of characters of scripts without spaces."""
    characters = _CHARACTERS.findall(text)
    pairs = {a + b for a, b in pairwise(characters)}
    return pairs or set(plain_words(text))


def paragraphs(texts: Path, language: str) -> list[Paragraph]:
    """Return the paragraphs of all files that are translated and have as many sentences."""
    result = []
    documents = texts / "usr" / "share" / "doc"
    for book, english, other in (
        (GUIDE, ENGLISH, LANGUAGES[language][0]),
        (HANDBOOK, "en-US", LANGUAGES[language][1]),
    ):
        for file in sorted((documents / book / english).glob("*.html")):
            second = documents / book / other / file.name
            both = [raw(one) for one in (file, second)] if second.exists() else [[], []]
            if len(both[0]) != len(both[1]):
                continue
            for pair in zip(*both, strict=True):
                if any(map(_BLOCK.search, pair)):
                    continue
                own = dict(zip((ENGLISH, language), map(plain, pair), strict=True))
                if not WORDS[0] <= len(own[ENGLISH].split()) <= WORDS[1]:
                    continue
                result.append(
                    Paragraph(file.name, own, {code: sentences(own[code], code) for code in own})
                )
    return [
        one
        for one in result
        if len(one.sentences[ENGLISH]) == len(one.sentences[language])
        and detect_language(one.texts[language]) == language
    ]


def usable(paragraph: Paragraph, language: str) -> Iterator[int]:
    """Yield the places of the sentences that can be statements."""
    for place, (own, other) in enumerate(
        zip(paragraph.sentences[ENGLISH], paragraph.sentences[language], strict=True)
    ):
        fits = SENTENCE[0] <= len(own.split()) <= SENTENCE[1] and own.endswith(".")
        numbers = [sorted(re.findall(r"\d+", text)) for text in (own, other)]
        scale = len(other) / len(own) * (2.5 if language in ("zh", "ja") else 1)
        fits = fits and not own[0].islower()
        ends = other.endswith((".", "。")) and other.count("(") == other.count(")")
        alike = numbers[0] == numbers[1] and 0.7 <= scale <= 1.8
        whole = not _REFERENCE.search(own) and own.count("(") == own.count(")")
        if fits and ends and alike and whole:
            yield place


def with_number(sentence: str, paragraph: Paragraph) -> str | None:
    """Return a sentence with another number, that the passage has not, for its first one."""
    if not (found := _NUMBER.search(sentence)):
        return None
    value = int(found[0])
    held = set(re.findall(r"\d+", " ".join(paragraph.texts.values())))
    steps = (3, 4, 7) if value > 1900 else (2 + value // 3, 5 + value // 4, 7 + value // 2)
    new = next(value + step for step in steps if str(value + step) not in held)
    return sentence[: found.start()] + str(new) + sentence[found.end() :]


def negated(sentence: str, language: str) -> str | None:
    """Return a sentence with its negation taken out, or with one put in where it has none."""
    negative = len(re.findall(_NEGATIVE[language], sentence, re.IGNORECASE))
    for pattern, new in NEGATIONS[language]:
        result, count = re.subn(pattern, new, sentence, count=1)
        left = len(re.findall(_NEGATIVE[language], result, re.IGNORECASE))
        if count and {negative, left} == {0, 1}:
            return result[0].upper() + result[1:] if sentence[0].isupper() else result
    return None


def other_sentence(paragraph: Paragraph, every: Sequence[Paragraph], language: str) -> str | None:
    """Return the sentence of another paragraph of the file that shares most words with this."""
    own = words(paragraph.texts[language])
    found = [
        (len(words(text) & own), text)
        for one in every
        if one.file == paragraph.file and one.texts != paragraph.texts
        for place in usable(one, next(code for code in one.texts if code != ENGLISH))
        if (text := one.sentences[language][place]) not in paragraph.texts[language]
    ]
    return max(found)[1] if found else None


def pairs_of(texts: Path, language: str, passages: int = PASSAGES) -> list[Pair]:
    """Return the pairs of a language, seeded; of each kind of false statement one after another."""
    every = paragraphs(texts, "de" if language == ENGLISH else language)
    second = "de" if language == ENGLISH else language
    order = generator(0, "tongues", language).permutation(len(every))
    made: list[tuple[int, Pair]] = []
    taken: set[int] = set()
    for kind in KINDS:
        count = 0
        for number in (int(one) for one in order):
            paragraph = every[number]
            if count == passages // len(KINDS):
                break
            if number in taken:
                continue
            shown, said = (ENGLISH, language) if count % 2 else (language, ENGLISH)
            for place in usable(paragraph, second):
                by = {code: paragraph.sentences[code][place] for code in {said, language}}
                false = {code: changed(kind, by[code], code, paragraph, every) for code in by}
                if all(false.values()):
                    break
            else:
                continue
            count += 1
            taken.add(number)
            both = ("across", (shown, said)), ("within", (language, language))
            for way, codes in both[language == ENGLISH :]:
                for true in (True, False):
                    text = by[codes[1]] if true else str(false[codes[1]])
                    pair = Pair(way, paragraph.texts[codes[0]], text, true, kind, codes)
                    made.append((count, pair))
    return [pair for _, pair in sorted(made, key=lambda one: one[0])]


def all_pairs(texts: Path, path: Path) -> dict[str, list[Pair]]:
    """Return the pairs of all languages, and keep them in a file."""
    if not path.exists():
        made = {code: pairs_of(texts, code) for code in (*LANGUAGES, ENGLISH)}
        path.write_text(json.dumps(made, ensure_ascii=False), "utf-8")
    found = json.loads(path.read_text("utf-8"))
    return {code: [Pair(*one) for one in own] for code, own in found.items()}


def changed(
    kind: str, sentence: str, code: str, paragraph: Paragraph, every: Sequence[Paragraph]
) -> str | None:
    """Return the false statement of a kind, made of a sentence in a language."""
    if kind == "number":
        return with_number(sentence, paragraph)
    if kind == "negation":
        return negated(sentence, code)
    return other_sentence(paragraph, every, code)


def measured(pairs: Sequence[Pair], judge: Entailer) -> dict[str, Any]:
    """Return the figures of a reader on pairs."""
    rows = [LabelledPair(one.passage, one.statement, one.true, one.kind) for one in pairs]
    (found,) = measure_entailers(rows, {"reader": judge})
    told = found.to_dict()
    figures = {name: told[name] for name in ("n", "failed", "auc", "balanced_accuracy", "kinds")}
    for place in (0, 1):
        own = [one for one in pairs if (one.languages[0] == ENGLISH) == (place == 0)]
        if 0 < len(own) < len(pairs):
            each = [LabelledPair(one.passage, one.statement, one.true) for one in own]
            (half,) = measure_entailers(each, {"reader": judge})
            figures[("English passages", "English statements")[place]] = half.to_dict()["auc"]
    return figures


def read(made: Mapping[str, Sequence[Pair]], ways: Sequence[str], kept: Kept) -> None:
    """Let the local model read the pairs, a few of each language and kind in turn."""
    turn = 2 * len(KINDS)
    for way in ways:
        for start in range(0, 2 * PASSAGES, turn):
            for own in made.values():
                part = [one for one in own if one.way == way][start : start + turn]
                kept.scores([(one.passage, one.statement) for one in part])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", choices=[*LANGUAGES, ENGLISH])
    parser.add_argument("--threads", type=int, default=2, help="of the local model")
    parser.add_argument("--stopped", action="store_true", help="measure what was read so far")
    options = parser.parse_args()
    if options.show:
        for one in pairs_of(options.texts, options.show):
            print(json.dumps(one._asdict(), ensure_ascii=False))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    made = all_pairs(options.texts, options.out / "pairs.json")
    kept = Kept(options.out / "1.5b.jsonl", options.threads)
    if not options.stopped:
        read(made, WAYS, kept)
    plain_readers = {name: Remembered(entailer(name)) for name in ("lexical", "embedded")}
    readers: dict[str, Entailer] = {**plain_readers, MODEL: kept}
    made = {"others": [one for code in LANGUAGES for one in made[code]], **made}
    figures = [
        {"way": way, "language": code, "reader": name, **measured(own, judge)}
        for name, judge in readers.items()
        for way in WAYS
        for code, pairs in made.items()
        if len(own := [one for one in pairs if one.way == way and (name != MODEL or one in kept)])
        >= FEWEST
    ]
    write_result("tongues", COMMAND, DATA, figures)
    for row in figures:
        print(json.dumps({name: row[name] for name in row if name != "kinds"}))


if __name__ == "__main__":
    main()

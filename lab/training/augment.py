"""New pairs from the training rows by plain rules, each rule a named kind.

long     a row whose premise stands among distractor sentences of other rows
extract  support: a sentence of a passage, shortened without changing what it says
change   the same with a number, name, role or negation changed: not supported
merge    a hypothesis of two sentences: both supported, or one not
title    the premise begins with "Title: X" and a line break, as passages arrive in the tool
chat     a supported sentence with a lead-in, or with an opinion that no passage supports

Every choice follows from the seed. A row keeps its label unless the rule says otherwise.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from lab.training.data import NOT_ENTAILMENT, Pair

__all__ = ["KINDS", "build"]

ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)
FACTUAL = frozenset({"vitaminc_real", "vitaminc_synthetic", "fever_dev"})

_SENTENCE = re.compile(r"(?<=[.!?])[\"']?\s+(?=[A-Z\"'])")
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]+(?:\s+(?:of\s+|the\s+)?[A-Z][\w'’-]+)*")
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")
_BRACKET = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_CLAUSE = re.compile(
    r",\s+(?:which|who|where|whose|although|while|when|including|such as|with)\b[^,.;]*(?=[,.;]|$)"
)
_OPENING = re.compile(r"^(?:In|On|At|By|During|After|Since|As of|From)\s[^,]{2,45},\s+(?=\w)")
_TAIL = re.compile(r"(?:;|,\s+(?:and|but|as|for|after|before|because|making|being)\b).*$")
_AUXILIARY = re.compile(r"\b(is|are|was|were|has been|had been|will|can|could|would|does|did)\b")
_ROLES = re.compile(
    r"\b(by|beat|defeated|married|before|after|from|to|than|followed|replaced|joined|and then)\b"
)

OPPOSITES = [
    pair.split("/")
    for pair in (
        "more/fewer higher/lower above/below before/after first/last largest/smallest "
        "increased/decreased increase/decrease increases/decreases rose/fell won/lost "
        "reduces/raises reduced/raised reduce/raise prevent/cause prevents/causes early/late "
        "north/south east/west northern/southern eastern/western older/younger best/worst "
        "most/least positive/negative male/female man/woman begin/end began/ended "
        "over/under many/few "
        "success/failure effective/ineffective associated/unassociated always/never "
        "American/British French/German album/book film/song actor/politician singer/writer"
    ).split()
]
_OPPOSITE = dict(OPPOSITES) | {b: a for a, b in OPPOSITES}

LEAD_INS = (
    "Yes, ", "Well, ", "Yeah, ", "Did you know that ", "I know that ", "No, ",
    "According to this, ", "Oh, ", "Actually, ", "I heard that ", "It says that ", "so ",
)  # fmt: skip
OPINIONS = (
    "I love it.", "I have never tried that myself.", "I really enjoy that!",
    "it was a little long.",
    "That is so interesting!", "I wonder why.", "My family used to do that all the time.",
    "I agree, it's great.", "I am not sure, but I think so.", "Do you like it too?",
    "It is one of my favorites.", "I did not know that, thanks!",
    "They are very popular these days.",
    "I'm sure it was a lot of fun.", "I have been there once.", "That's true.", "haha, good one!",
    "I would like to go there some day.", "I grew up with it.", "It sounds delicious.",
    "my favorite one is the first.", "I guess it depends on the person.",
)  # fmt: skip


class Pool:
    """Sentences of the factual rows, by the words in them."""

    def __init__(self, rows: Sequence[Pair], rng: np.random.Generator) -> None:
        self.rng = rng
        self.rows = rows
        self.factual = [row for row in rows if row.source in FACTUAL]
        passages = dict.fromkeys(row.premise for row in rows if row.source in FACTUAL)
        self.sentences = [
            sentence
            for passage in passages
            for sentence in sentences_of(passage)
            if 6 <= len(sentence.split()) <= 45
        ]

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """Sentences by each of their capitalised names."""
        found = defaultdict(list)
        for number, sentence in enumerate(self.sentences):
            for name in dict.fromkeys(_NAME.findall(sentence)):  # a set has no fixed order
                found[name].append(number)
        return found

    @cached_property
    def names(self) -> dict[int, list[str]]:
        """Names by how many words they have."""
        found: dict[int, list[str]] = defaultdict(list)
        for name in self.by_name:
            found[min(3, len(name.split()))].append(name)
        return found

    @cached_property
    def entailed(self) -> list[Pair]:
        """Factual rows whose hypothesis is supported."""
        return [row for row in self.factual if row.label == ENTAILMENT]

    @cached_property
    def refuted(self) -> list[Pair]:
        """Factual rows whose hypothesis is not supported."""
        return [row for row in self.factual if row.label != ENTAILMENT]

    def row(self, rows: Sequence[Pair]) -> Pair:
        """Return one of the rows."""
        return rows[int(self.rng.integers(len(rows)))]

    def text(self, texts: Sequence[str]) -> str:
        """Return one of the texts."""
        return texts[int(self.rng.integers(len(texts)))]

    def chance(self, share: float) -> bool:
        """Return True in a share of the calls."""
        return bool(self.rng.random() < share)

    def distractor(self, hypothesis: str) -> str:
        """Return a sentence that holds less than half of the hypothesis's words.

        Every second one shares a name with the hypothesis when the rows have such a sentence.
        """
        wanted = _content(hypothesis)
        names = [n for n in _NAME.findall(hypothesis) if len(self.by_name.get(n, ())) > 1]
        for _ in range(6):
            if names and self.chance(0.5):
                numbers = self.by_name[self.text(names)]
                sentence = self.sentences[numbers[int(self.rng.integers(len(numbers)))]]
            else:
                sentence = self.text(self.sentences)
            if len(_content(sentence) & wanted) < 0.5 * max(1, len(wanted)):
                return sentence
        return self.text(self.sentences)


Rule = Callable[[Pool], Pair | None]


def sentences_of(text: str) -> list[str]:
    """Split a passage into sentences, roughly."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def _content(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3 or word.isdigit()}


def _ended(text: str) -> str:
    text = " ".join(text.split()).rstrip(" ,;")
    return text if text.endswith((".", "!", "?")) else text + "."


def among_distractors(pool: Pool, row: Pair, words: int) -> Pair:
    """Surround the premise with other rows' sentences until it has about so many words."""
    before: list[str] = []
    after: list[str] = []
    length = len(row.premise.split())
    while length < words:
        sentence = pool.distractor(row.hypothesis)
        (before if pool.chance(0.5) else after).append(sentence)
        length += len(sentence.split())
    premise = " ".join([*before, _ended(row.premise) if after else row.premise, *after])
    return row._replace(premise=premise)


def shortened(pool: Pool, sentence: str) -> str:
    """Drop brackets, an opening adverbial, relative clauses or what follows a conjunction."""
    text = _BRACKET.sub("", sentence)
    if pool.chance(0.5):
        text = _CLAUSE.sub("", text)
    if pool.chance(0.4):
        cut = _OPENING.sub("", text)
        text = cut[:1].upper() + cut[1:]
    if pool.chance(0.4):
        cut = _TAIL.sub("", text)
        text = cut if len(cut.split()) >= 5 else text
    return _ended(text)


def _styled(pool: Pool, text: str) -> str:
    """Write some sentences as dialogue models do: lower case, without the full stop."""
    if pool.chance(0.3):
        text = text.casefold() if pool.chance(0.7) else text[:1].lower() + text[1:]
    return text.rstrip(".") if pool.chance(0.15) else text


def _support(pool: Pool) -> Pair:
    """Return a factual passage and one of its sentences, shortened."""
    passage = pool.row(pool.factual).premise
    parts = [s for s in sentences_of(passage) if len(s.split()) >= 5] or [passage]
    return Pair(passage, shortened(pool, pool.text(parts)), ENTAILMENT, "extract")


def extract(pool: Pool) -> Pair:
    """Support: a shortened sentence of the passage."""
    row = _support(pool)
    return row._replace(hypothesis=_styled(pool, row.hypothesis))


def _new_number(pool: Pool, text: str) -> tuple[str, int] | None:
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    spot = found[int(pool.rng.integers(len(found)))]
    value = spot.group()
    if len(value) == 4 and value.isdigit():
        new = str(int(value) + int(pool.rng.integers(1, 30)) * (1 if pool.chance(0.5) else -1))
    else:
        digits = [str(int(pool.rng.integers(1, 10))) if c.isdigit() else c for c in value]
        new = "".join(digits)
    if new == value:
        return None
    return text[: spot.start()] + new + text[spot.end() :], CONTRADICTION


def _new_name(pool: Pool, text: str) -> tuple[str, int] | None:
    found = list(_NAME.finditer(text))
    if not found:
        return None
    spot = found[int(pool.rng.integers(len(found)))]
    new = pool.text(pool.names[min(3, len(spot.group().split()))])
    if new.split()[0] == spot.group().split()[0]:
        return None
    return text[: spot.start()] + new + text[spot.end() :], NOT_ENTAILMENT


def _negated(pool: Pool, text: str) -> tuple[str, int] | None:
    spot = _AUXILIARY.search(text)
    if spot is None or re.search(r"\b(?:not|never|no)\b", text):
        return None
    word = spot.group()
    new = f"{word} not" if pool.chance(0.6) or word.endswith("been") else f"{word} never"
    return text[: spot.start()] + new + text[spot.end() :], CONTRADICTION


def _opposite(pool: Pool, text: str) -> tuple[str, int] | None:
    words = text.split(" ")
    spots = [i for i, word in enumerate(words) if word in _OPPOSITE]
    if not spots:
        return None
    spot = spots[int(pool.rng.integers(len(spots)))]
    words[spot] = _OPPOSITE[words[spot]]
    return " ".join(words), CONTRADICTION


def _roles(pool: Pool, text: str) -> tuple[str, int] | None:
    found = list(re.finditer(r"\b[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*", text))
    if len(found) < 2 or not _ROLES.search(text[found[0].end() : found[-1].start()]):
        return None
    a, b = found[0], found[-1]
    if a.group() == b.group() or pool.chance(0.2):
        return None
    swapped = text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group()
    return swapped + text[b.end() :], NOT_ENTAILMENT


def change(pool: Pool) -> Pair | None:
    """Not supported: a shortened sentence with one thing changed."""
    row = _support(pool)
    rules = (_new_number, _new_name, _negated, _opposite, _roles)
    for number in pool.rng.permutation(len(rules)).tolist():
        changed = rules[number](pool, row.hypothesis)
        if changed:
            hypothesis, label = changed
            return Pair(row.premise, _styled(pool, hypothesis), label, "change")
    return None


def _other(pool: Pool, row: Pair) -> Pair:
    """Return a supported pair that shares a name with the row, if one is found quickly."""
    names = set(_NAME.findall(row.hypothesis + " " + row.premise))
    for _ in range(20):
        other = pool.row(pool.entailed)
        if names & set(_NAME.findall(other.premise)):
            return other
    return pool.row(pool.entailed)


def _joined(pool: Pool, first: str, second: str) -> str:
    if pool.chance(0.6):
        return f"{_ended(first)} {second}"
    return f"{first.rstrip('.')} {'and' if pool.chance(0.7) else 'while'} {second}"


def merge(pool: Pool) -> Pair:
    """A hypothesis of two sentences: both supported, or one of them not."""
    one = pool.row(pool.entailed) if pool.chance(0.6) else _support(pool)
    two = _other(pool, one)
    premises = [one.premise, two.premise]
    label = ENTAILMENT
    if pool.chance(0.6):
        label = NOT_ENTAILMENT
        if pool.chance(0.5):
            two = pool.row(pool.refuted)
            premises[1] = two.premise
            label = CONTRADICTION if two.label == CONTRADICTION else NOT_ENTAILMENT
        else:  # what the second sentence rests on is not there
            premises = [one.premise]
            label = NEUTRAL
    hypotheses = [one.hypothesis, two.hypothesis]
    if pool.chance(0.5):
        hypotheses.reverse()
    if pool.chance(0.5):
        premises.reverse()
    premise = " ".join(_ended(p) for p in premises)
    return Pair(premise, _styled(pool, _joined(pool, *hypotheses)), label, "merge")


def title(pool: Pool) -> Pair:
    """Put a title line before the premise of a factual row."""
    row = pool.row(pool.factual)
    return titled(pool, row)._replace(source="title")


def titled(pool: Pool, row: Pair) -> Pair:
    """Put a title line before the premise: a name from it, else a name from elsewhere."""
    names = _NAME.findall(row.premise)
    name = pool.text(names) if names and pool.chance(0.8) else pool.text(pool.names[2])
    return row._replace(premise=f"Title: {name}\n{row.premise}")


def chat(pool: Pool) -> Pair:
    """Lead-ins, which say nothing, and opinions, which nothing supports."""
    row = pool.row(pool.entailed) if pool.chance(0.5) else _support(pool)
    draw = pool.rng.random()
    if draw < 0.45:
        lead = pool.text(LEAD_INS)
        label = ENTAILMENT
        text = lead + row.hypothesis[:1].lower() + row.hypothesis[1:]
    elif draw < 0.85:
        parts = [row.hypothesis, pool.text(OPINIONS)]
        text = " ".join(_ended(p) for p in (parts if pool.chance(0.6) else parts[::-1]))
        label = NEUTRAL
    else:
        text, label = pool.text(OPINIONS), NEUTRAL
    return Pair(row.premise, _styled(pool, text), label, "chat")


def long(pool: Pool) -> Pair:
    """A row among distractors, 40 to 90 words in all."""
    row = pool.row(pool.factual) if pool.chance(0.8) else pool.row(pool.rows)
    words = int(pool.rng.integers(40, 90))
    return among_distractors(pool, row, words)._replace(source="long")


RULES: dict[str, tuple[Rule, float]] = {
    "long": (long, 0.34),
    "extract": (extract, 0.30),
    "change": (change, 0.05),
    "merge": (merge, 0.14),
    "title": (title, 0.05),
    "chat": (chat, 0.12),
}
"""Each kind's rule and its share among the augmented rows."""

KINDS = tuple(RULES)


def build(rows: Sequence[Pair], kinds: Sequence[str], count: int, seed: int) -> list[Pair]:
    """Return so many augmented pairs of the kinds, in their shares.

    With ``long`` among the kinds, two in five of the other kinds get distractors too; with
    ``title``, one in six gets a title.
    """
    if not kinds or not count:
        return []
    pool = Pool(rows, np.random.default_rng([seed, 3]))
    total = sum(RULES[kind][1] for kind in kinds)
    made: list[Pair] = []
    for kind in kinds:
        rule, share = RULES[kind]
        wanted = len(made) + round(count * share / total)
        while len(made) < wanted:
            row = rule(pool)
            if row is None:
                continue
            if "long" in kinds and kind not in {"long", "title"} and pool.chance(0.4):
                row = among_distractors(pool, row, int(pool.rng.integers(40, 80)))
            if "title" in kinds and kind != "title" and pool.chance(0.16):
                row = titled(pool, row)
            made.append(row)
    return made

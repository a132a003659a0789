"""What keeps a question, or a reply, out of MixedQA: pure decisions, each under a name.

TrustScore, appendix A.3: comparison and yes/no questions are left out, and questions to which a
model's reply repeats words, is blank, repeats the question, or says that it is not sure. The paper
names its filters and prints no rules; these rules are ours, and for English.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.backends import resolve
from trustassay.calls.backends import MODEL, Backends
from trustassay.capabilities import ChatModel, LocalChatModel
from trustassay.data.reading import read_samples
from trustassay.data.records import Fault, InputError
from trustassay.errors import UsageError
from trustassay.judging.refusal import refuses_in_words
from trustassay.runs.intake import BadInputError, Intake
from trustassay.runs.lines import encoded_sample
from trustassay.sample import Problem, Sample
from trustassay.statistics.resampling import generator
from trustassay_papers.mixedqa.question_sets import (
    QUESTION_SETS,
    SPLITS,
    QuestionFile,
    read_questions,
)

_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’]\w+)*")
"""A number stays one word: the groups of 1,000,000,000,000,000 repeat nothing."""
_AUXILIARY = re.compile(
    r"(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might"
    r"|must)(?:n['’]t)?"
)
_OPEN = frozenset({"who", "whom", "whose", "what", "which", "when", "where", "why", "how"})
_DEGREE = re.compile(
    r"more|less|fewer|most|least|better|best|worse|worst|first|last|farther|farthest|further"
    r"|furthest|greater|greatest|(?:earl|heav|wealth|rich|bus)i(?:er|est)"
    r"|(?:old|young|long|short|tall|high|low|large|small|great|near|close|fast|slow|strong|weak"
    r"|late|new|bigg|wide|deep|cold|hott|warm|hard|soft|rich|poor|few)(?:e?r|e?st)"
)
_ALTERNATIVES = re.compile(r"[,:]([^,:?]+?) or ([^,:?]+)", re.IGNORECASE)
_LAST_WORDS = 8
"""The longest alternative of a comparison, in words."""
_LONGEST_BLOCK = 32
"""The longest run of words whose repetition is looked for."""
_NOT_SURE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # I am not sure; we're really not certain; I am unaware
        r"\b(?:I|we)(?: am| are|['’]m|['’]re) (?:(?:really|quite|still|just) )?"
        r"(?:not (?:\w+ )?(?:sure|certain|aware|familiar)|unsure|uncertain|unaware|unfamiliar)\b",
        # I don't know; I do not have access; as an AI
        r"\bI(?: do not| don['’]t) (?:\w+ )?(?:know|have (?:access|personal))\b",
        r"\bas an AI\b",
        # it is not provided in the question; the question is unclear
        r"(?:\bnot|n['’]t) (?:\w+ )?(?:provided|given|mentioned|specified|stated|included|clear)"
        r" (?:in|by|from) (?:the|this|your) question\b",
        r"\bquestion (?:is|was) (?:(?:not|too) \w+|unclear|incomplete|ambiguous)\b",
        # more context is needed; please provide more information
        r"\b(?:more|additional|further) (?:context|information|details?) (?:is|are) "
        r"(?:needed|required)\b",
        r"\b(?:provide|need) (?:me with )?(?:more|additional|further) "
        r"(?:context|information|detail)",
        # nothing but "unknown"
        r"\A\W*(?:it is |the answer is )?(?:unknown|unsure|uncertain|not (?:known|sure)|no idea"
        r"|n/a)\W*\Z",
    )
)


def words_of(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation."""
    return _WORD.findall(text.casefold())


# ---- questions ----


def no_gold(sample: Sample) -> bool:
    """Whether a question has no gold answer, as in test splits whose answers are held back."""
    return not sample.answers


def comparison(sample: Sample) -> bool:
    """Whether a question offers things to choose from, or its set says that it compares.

    By its form: "X or Y" stands after a comma or colon that follows "who", "which" or the like; or
    a word of degree ("earlier", "more") comes with "X or Y" at the end, or with "between X and Y"
    at the beginning. X and Y have up to eight words.
    """
    if sample.metadata.get("type") == "comparison":
        return True
    words = words_of(sample.question)
    if any(map(_DEGREE.fullmatch, words)):
        if words[0] == "between" and "and" in words:
            return True
        if "or" in words[-_LAST_WORDS - 1 : -1]:
            return True
    return any(
        not _OPEN.isdisjoint(words_of(sample.question[: match.start()]))
        and all(len(words_of(one)) <= _LAST_WORDS for one in match.groups())
        for match in _ALTERNATIVES.finditer(sample.question)
    )


def yes_no(sample: Sample) -> bool:
    """Whether yes or no would answer: so says the gold answer, or the form of the question.

    By its form: it begins with an auxiliary verb and has no word such as "who" or "which" in it, or
    it begins with "true or false".
    """
    golds = [" ".join(words_of(aliases[0])) for aliases in sample.answers]
    if golds and all(gold in ("yes", "no") for gold in golds):
        return True
    words = words_of(sample.question)
    if words[:3] == ["true", "or", "false"]:
        return True
    return bool(words and _AUXILIARY.fullmatch(words[0])) and _OPEN.isdisjoint(words)


QUESTION_FILTERS: Mapping[str, Callable[[Sample], bool]] = {
    "no-gold": no_gold,
    "comparison": comparison,
    "yes-no": yes_no,
}


def question_filter(sample: Sample) -> str | None:
    """Return the name of the first filter that leaves a question out, if any does."""
    return next((name for name, drops in QUESTION_FILTERS.items() if drops(sample)), None)


# ---- replies ----


def blank(sample: Sample) -> bool:
    """Whether a reply has no letter and no digit, and is no gold answer either ("+")."""
    reply = (sample.response or "").strip()
    if any(c.isalnum() for c in reply):
        return False
    return not any(reply == alias for aliases in sample.answers for alias in aliases if reply)


def repeats_words(sample: Sample) -> bool:
    """Whether a reply says a word four times in a row, or several words together three times.

    "Tora! Tora! Tora!" is a film.
    """
    words = words_of(sample.response or "")
    for size in range(1, min(_LONGEST_BLOCK, len(words) // 3) + 1):
        wanted = 3 if size == 1 else 2 * size
        run = 0
        for word, later in zip(words, words[size:], strict=False):
            run = run + 1 if word == later else 0
            if run >= wanted:
                return True
    return False


def repeats_question(sample: Sample) -> bool:
    """Whether a reply is the question, once or over again, or more than half of it at a stretch.

    A gold answer is an answer, even where its words stand in the question.
    """
    question, reply = words_of(sample.question), words_of(sample.response or "")
    if not question or 2 * len(reply) <= len(question):
        return False
    if any(reply == words_of(alias) for aliases in sample.answers for alias in aliases):
        return False
    if len(reply) > len(question):
        over_again = question * (len(reply) // len(question) + 1)
        return reply == over_again[: len(reply)]
    starts = range(len(question) - len(reply) + 1)
    return any(question[start : start + len(reply)] == reply for start in starts)


def not_sure(sample: Sample) -> bool:
    """Whether a reply says that it does not know, is not sure, or was not told enough.

    Words that stand in the question or in a gold answer do not count: "I Don't Know" is a song.
    """
    reply = sample.response or ""
    known = [sample.question, *(alias for aliases in sample.answers for alias in aliases)]
    found = [match.group() for pattern in _NOT_SURE if (match := pattern.search(reply))]
    if refusal := refuses_in_words(reply):
        found.append(refusal)
    told = [" ".join(words_of(text)) for text in known]
    return any(all(" ".join(words_of(one)) not in text for text in told) for one in found)


REPLY_FILTERS: Mapping[str, Callable[[Sample], bool]] = {
    "blank": blank,
    "repeats-words": repeats_words,
    "repeats-question": repeats_question,
    "not-sure": not_sure,
}


def reply_filter(sample: Sample) -> str | None:
    """Return the name of the first filter that drops a reply, if any does."""
    return next((name for name, drops in REPLY_FILTERS.items() if drops(sample)), None)


Chat = ChatModel | LocalChatModel


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that is read before a model is asked; ``files`` counts records by file."""

    sources: Sequence[str]
    questions: Sequence[Sample]
    files: Sequence[Mapping[str, Any]]
    recorded: Recorded
    models: Mapping[str, Chat]

    @property
    def backends(self) -> Backends:
        """Return the models, under the names by which they are asked."""
        return Backends.of(chat={MODEL: self.models})

    def digest(self) -> str:
        """Return what tells these questions and recorded answers from others."""
        found = hashlib.sha256()
        for sample in self.questions:
            found.update(encoded_sample(sample))
        for name, answers in self.recorded.items():
            content = [name, *([key, one.response] for key, one in answers.items())]
            found.update(json.dumps(content).encode())
        return found.hexdigest()


def read_material(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    answers: Sequence[tuple[str, Path]],
    *,
    skip_bad: bool,
    step: Callable[[], None],
) -> Material:
    """Read and check everything; ``step`` is called for each question.

    Raises:
        BadInputError: records have faults, and ``skip_bad`` is off.
        InputError: a file cannot be read at all.
        BackendError, UnknownNameError: no such model.
        ValueError: no file, nobody who answers, or one name for two of them.
    """
    if not files:
        raise UsageError("name at least one file of questions")
    named: dict[str, Chat] = {}
    for choice in models:
        model = resolve.chat(choice)
        _new_name(model.name, named)
        named[model.name] = model
    intake = Intake()
    questions, counted = _questions(files, intake, step)
    recorded: dict[str, dict[str, Sample]] = {}
    for name, path in answers:
        _new_name(name, {**named, **recorded})
        recorded[name] = _answers(name, path, intake)
    if not (named or recorded):
        raise UsageError("name who answers: --model URI, or --answers NAME=FILE")
    if intake.faulty and not skip_bad:
        raise BadInputError(intake.faults, intake.faulty)
    given = {file.set.title for file in files}
    sources = [one.title for one in QUESTION_SETS.values() if one.title in given]
    return Material(sources, questions, counted, recorded, named)


def _new_name(name: str, known: Mapping[str, Any]) -> None:
    if name in known:
        raise UsageError(f"{name} is named twice; expected each model once")


def _questions(
    files: Sequence[QuestionFile], intake: Intake, step: Callable[[], None]
) -> tuple[list[Sample], list[dict[str, Any]]]:
    known: dict[str, str] = {}
    questions: list[Sample] = []
    counted = []
    for file in files:
        before, sound = intake.faulty, 0
        for record in read_questions(file):
            step()
            if isinstance(record, Fault):
                intake.note(record)
                continue
            sample = record.sample
            key = key_of(sample.question)
            if known.setdefault(sample.id, key) != key:
                words = f"{sample.id!r} is already used by another question of this split"
                intake.note(Fault(record.where, (Problem("id", words),)))
                continue
            questions.append(sample)
            sound += 1
        faulty = intake.faulty - before
        about = {"source": file.set.title, "split": file.split, "path": file.path}
        counted.append({**about, "questions": sound, "faulty": faulty})
    return questions, counted


def _answers(name: str, path: Path, intake: Intake) -> dict[str, Sample]:
    """Read the answers that a model gave: by question, each question once."""
    found: dict[str, Sample] = {}
    for record in read_samples(path):
        if isinstance(record, Fault):
            intake.note(record)
            continue
        if record.sample.model not in (None, name):
            continue
        key = key_of(record.sample.question)
        if key in found:
            words = f"{name} has answered it in an earlier record"
            intake.note(Fault(record.where, (Problem("question", words),)))
            continue
        found[key] = record.sample
    if not found:
        raise InputError(f"{path}: no record of the model {name}")
    return found


DUPLICATE = "duplicate"
"""The filter of questions that an earlier one asks with the same words."""
NO_REPLY = "no-reply"
"""The filter of replies that are not there: not recorded, or refused by the endpoint."""

Recorded = Mapping[str, Mapping[str, Sample]]
"""Answers that are there already: by model, then by :func:`key_of` the question."""


class Dropped(NamedTuple):
    """A question that was left out, by which filter, and where it was for a reply, whose."""

    question: Sample
    filter: str
    model: str | None = None
    reply: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        found = {
            "id": self.question.id,
            "source": self.question.metadata["source"],
            "split": self.question.metadata["split"],
            "question": self.question.question,
            "filter": self.filter,
        }
        return found if self.model is None else {**found, "model": self.model, "reply": self.reply}


@dataclass
class Draw:
    """The questions of one source: those to come, those kept with their answers, those left out.

    asked: questions that were put to models, or whose recorded answers were looked at.
    """

    source: str
    wanted: int
    recorded: Recorded
    questions: int = 0
    coming: list[Sample] = field(default_factory=list)
    asked: int = 0
    kept: list[Sequence[Sample]] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @property
    def eligible(self) -> int:
        """Questions that passed the filters of questions."""
        return self.questions - sum(one.model is None for one in self.dropped)

    @property
    def short(self) -> bool:
        """Whether there are too few questions that all models answered."""
        return len(self.kept) < self.wanted

    def next_questions(self) -> list[Sample]:
        """Take as many questions as are missing, whose recorded answers all are answers.

        Even if all of them are kept, there are no more than wanted.
        """
        found: list[Sample] = []
        while self.coming and len(self.kept) + len(found) < self.wanted:
            question = self.coming.pop()
            self.asked += 1
            if self._passed(question, self._recorded_for(question)):
                found.append(question)
        return found

    def settle(self, question: Sample, replies: Mapping[str, Sample]) -> None:
        """Keep a question if every reply is an answer, else say why not; a missing one is none."""
        if self._passed(question, replies):
            self.kept.append([*replies.values(), *self._recorded_for(question).values()])

    def counts(self) -> Mapping[str, Counter[str]]:
        """Return how many replies of each model each filter dropped."""
        found: dict[str, Counter[str]] = {}
        for one in self.dropped:
            if one.model is not None:
                found.setdefault(one.model, Counter())[one.filter] += 1
        return found

    def _recorded_for(self, question: Sample) -> dict[str, Sample]:
        key = key_of(question.question)
        found = {name: answers.get(key) for name, answers in self.recorded.items()}
        return {
            name: answered(question, name, one.response if one else None)
            for name, one in found.items()
        }

    def _passed(self, question: Sample, replies: Mapping[str, Sample]) -> bool:
        reasons = {
            name: NO_REPLY if one.response is None else reply_filter(one)
            for name, one in replies.items()
        }
        self.dropped += [
            Dropped(question, reason, name, replies[name].response)
            for name, reason in reasons.items()
            if reason is not None
        ]
        return not any(reasons.values())


def answered(question: Sample, model: str, response: str | None) -> Sample:
    """Return a question with a model's reply to it."""
    return replace(question, response=response, model=model)


def key_of(question: str) -> str:
    """Return what two questions share that have the same words."""
    return " ".join(words_of(question)) or question


def draws(
    questions: Iterable[Sample],
    sources: Sequence[str],
    wanted: int,
    seed: int,
    recorded: Recorded,
) -> list[Draw]:
    """Return the draws of the sources, filtered and in a random order, test splits first.

    The order depends on seed and ids alone.
    """
    found = {source: Draw(source, wanted, recorded) for source in sources}
    seen: set[str] = set()
    places = {source: place for place, source in enumerate(sources)}

    def rank(question: Sample) -> tuple[int, int]:
        of = question.metadata
        return places[of["source"]], SPLITS.index(of["split"])

    for question in sorted(questions, key=rank):
        draw = found[question.metadata["source"]]
        draw.questions += 1
        key = key_of(question.question)
        reason = question_filter(question) or (DUPLICATE if key in seen else None)
        if reason is None:
            seen.add(key)
            draw.coming.append(question)
        else:
            draw.dropped.append(Dropped(question, reason))
    for draw in found.values():
        lots = {q.id: float(generator(seed, q.id, "mixedqa").random()) for q in draw.coming}
        # The next question stands last.
        draw.coming.sort(key=lambda q: (rank(q)[1], lots[q.id], q.id), reverse=True)
    return list(found.values())

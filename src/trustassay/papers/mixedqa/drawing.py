"""Draw the questions of MixedQA: filters of questions and replies, input, and random order.

TrustScore, appendix A.3, leaves out comparisons and yes/no questions, and questions to which a
model's reply repeats words, is blank, repeats the question, or says that it is not sure. The paper
names its filters without rules; these rules are ours, for English.
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
from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.core.capabilities import ChatModel, LocalChatModel
from trustassay.core.sample import Problem, Sample
from trustassay.errors import UsageError
from trustassay.input.reading import read_samples
from trustassay.input.records import InputError, InputFault
from trustassay.judging.refusal import find_refusal_in_words
from trustassay.papers.mixedqa.question_sets import (
    QUESTION_SETS,
    SPLITS,
    QuestionFile,
    read_questions,
)
from trustassay.runs.intake import BadInputError, Intake
from trustassay.runs.lines import encode_sample
from trustassay.statistics.resampling import generator

_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’]\w+)*")
"""A number is one word: the groups of 1,000,000,000,000,000 must not count as repetition."""
# The first word of a yes/no question: `is`, `didn't`.
_AUXILIARY = re.compile(
    r"(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might"
    r"|must)(?:n['’]t)?"
)
_QUESTION_WORDS = frozenset(
    {"who", "whom", "whose", "what", "which", "when", "where", "why", "how"}
)
# Comparatives and superlatives: `more`, `earlier`, `biggest`.
_DEGREE_WORD = re.compile(
    r"more|less|fewer|most|least|better|best|worse|worst|first|last|farther|farthest|further"
    r"|furthest|greater|greatest|(?:earl|heav|wealth|rich|bus)i(?:er|est)"
    r"|(?:old|young|long|short|tall|high|low|large|small|great|near|close|fast|slow|strong|weak"
    r"|late|new|bigg|wide|deep|cold|hott|warm|hard|soft|rich|poor|few)(?:e?r|e?st)"
)
# `, Paris or London` after a comma or colon.
_ALTERNATIVES = re.compile(r"[,:]([^,:?]+?) or ([^,:?]+)", re.IGNORECASE)
_MAX_ALTERNATIVE_WORDS = 8
"""Maximum words of one alternative of a comparison."""
_MAX_BLOCK_WORDS = 32
"""Maximum words of a block whose repetition is detected."""
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


def split_words(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation."""
    return _WORD.findall(text.casefold())


# ---- questions ----


def lacks_gold(sample: Sample) -> bool:
    """Whether a question has no gold answer, as in test splits without published answers."""
    return not sample.answers


def is_comparison(sample: Sample) -> bool:
    """Whether a question offers alternatives, or its set calls it a comparison.

    A question offers alternatives if "X or Y" follows a comma or colon after "who", "which" or the
    like; or if it has a word of degree ("earlier", "more") and either ends with "X or Y" or begins
    with "between X and Y". X and Y have up to eight words.
    """
    # HotpotQA labels its comparisons.
    if sample.metadata.get("type") == "comparison":
        return True
    words = split_words(sample.question)
    if any(map(_DEGREE_WORD.fullmatch, words)):
        if words[0] == "between" and "and" in words:
            return True
        # The "or" must be near the end, and not the last word.
        if "or" in words[-_MAX_ALTERNATIVE_WORDS - 1 : -1]:
            return True
    return any(
        not _QUESTION_WORDS.isdisjoint(split_words(sample.question[: match.start()]))
        and all(
            len(split_words(alternative)) <= _MAX_ALTERNATIVE_WORDS
            for alternative in match.groups()
        )
        for match in _ALTERNATIVES.finditer(sample.question)
    )


def is_yes_no(sample: Sample) -> bool:
    """Whether yes or no answers the question, by its gold answers or by its form.

    By form: it begins with an auxiliary verb and contains no word such as "who" or "which", or it
    begins with "true or false".
    """
    golds = [" ".join(split_words(aliases[0])) for aliases in sample.answers]
    if golds and all(gold in ("yes", "no") for gold in golds):
        return True
    words = split_words(sample.question)
    if words[:3] == ["true", "or", "false"]:
        return True
    # "Do you know who ..." asks for a name.
    return bool(words and _AUXILIARY.fullmatch(words[0])) and _QUESTION_WORDS.isdisjoint(words)


QUESTION_FILTERS: Mapping[str, Callable[[Sample], bool]] = {
    "no-gold": lacks_gold,
    "comparison": is_comparison,
    "yes-no": is_yes_no,
}


def find_question_filter(sample: Sample) -> str | None:
    """Return the name of the first filter that drops a question, if any does."""
    return next((name for name, drops in QUESTION_FILTERS.items() if drops(sample)), None)


# ---- replies ----


def is_blank_reply(sample: Sample) -> bool:
    """Whether a reply has no letter and no digit, unless it is a gold answer such as "+"."""
    reply = (sample.response or "").strip()
    if any(c.isalnum() for c in reply):
        return False
    return not any(reply == alias for aliases in sample.answers for alias in aliases if reply)


def repeats_words(sample: Sample) -> bool:
    """Whether a reply repeats a word four times in a row, or a block of words three times.

    A word may occur three times: "Tora! Tora! Tora!" is a film.
    """
    words = split_words(sample.response or "")
    for size in range(1, min(_MAX_BLOCK_WORDS, len(words) // 3) + 1):
        # A block that occurs three times matches the words one block later over two of its
        # lengths.
        needed_matches = 3 if size == 1 else 2 * size
        run = 0
        for word, later in zip(words, words[size:], strict=False):
            run = run + 1 if word == later else 0
            if run >= needed_matches:
                return True
    return False


def repeats_question(sample: Sample) -> bool:
    """Whether a reply repeats the question, once or several times, or more than half of it.

    A gold answer is never dropped, even if the question contains it.
    """
    question, reply = split_words(sample.question), split_words(sample.response or "")
    # A short overlap is no repetition: an answer may quote some words.
    if not question or 2 * len(reply) <= len(question):
        return False
    if any(reply == split_words(alias) for aliases in sample.answers for alias in aliases):
        return False
    if len(reply) > len(question):
        # The last repetition may be cut off.
        over_again = question * (len(reply) // len(question) + 1)
        return reply == over_again[: len(reply)]
    starts = range(len(question) - len(reply) + 1)
    return any(question[start : start + len(reply)] == reply for start in starts)


def is_unsure(sample: Sample) -> bool:
    """Whether a reply says that the model does not know, is not sure, or lacks information.

    Phrases that the question or a gold answer contains do not count: "I Don't Know" is a song.
    """
    reply = sample.response or ""
    allowed_texts = [sample.question, *(alias for aliases in sample.answers for alias in aliases)]
    phrases = [match.group() for pattern in _NOT_SURE if (match := pattern.search(reply))]
    if refusal := find_refusal_in_words(reply):
        phrases.append(refusal)
    # Compared without case and punctuation, as everywhere here.
    normalised = [" ".join(split_words(text)) for text in allowed_texts]
    return any(
        all(" ".join(split_words(phrase)) not in text for text in normalised) for phrase in phrases
    )


REPLY_FILTERS: Mapping[str, Callable[[Sample], bool]] = {
    "blank": is_blank_reply,
    "repeats-words": repeats_words,
    "repeats-question": repeats_question,
    "not-sure": is_unsure,
}


def find_reply_filter(sample: Sample) -> str | None:
    """Return the name of the first filter that drops a reply, if any does."""
    return next((name for name, drops in REPLY_FILTERS.items() if drops(sample)), None)


Chat = ChatModel | LocalChatModel


@dataclass(frozen=True, slots=True)
class MixInput:
    """Everything that is read before a model is asked."""

    sources: Sequence[str]
    """Titles of the sets, in the order of MixedQA."""
    questions: Sequence[Sample]
    files: Sequence[Mapping[str, Any]]
    """Counts of questions and faults, one entry a file."""
    recorded: Recorded
    """Answers that need not be asked for."""
    models: Mapping[str, Chat]
    """Chat models by name."""

    @property
    def backends(self) -> Backends:
        """The models as backends."""
        return Backends.of(chat={MODEL_ROLE: self.models})

    def digest(self) -> str:
        """Return a hash of the questions and recorded answers."""
        digest = hashlib.sha256()
        for sample in self.questions:
            digest.update(encode_sample(sample))
        for name, answers in self.recorded.items():
            content = [
                name,
                *([key, sample_of_answer.response] for key, sample_of_answer in answers.items()),
            ]
            digest.update(json.dumps(content).encode())
        return digest.hexdigest()


def read_input(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    answers: Sequence[tuple[str, Path]],
    *,
    skip_bad: bool,
    step: Callable[[], None],
) -> MixInput:
    """Read and check everything; ``step`` is called for each question.

    Raises:
        BadInputError: records have faults, and ``skip_bad`` is off.
        InputError: a file cannot be read at all.
        BackendError, UnknownNameError: no such model.
        ValueError: no file, no model and no answers, or one name for two of them.
    """
    if not files:
        raise UsageError("name at least one file of questions")
    chat_models: dict[str, Chat] = {}
    for choice in models:
        model = resolve.chat(choice)
        # Replies are stored and reported by name.
        _check_new_name(model.name, chat_models)
        chat_models[model.name] = model
    intake = Intake()
    questions, counts = _read_question_files(files, intake, step)
    recorded: dict[str, dict[str, Sample]] = {}
    for name, path in answers:
        _check_new_name(name, {**chat_models, **recorded})
        recorded[name] = _read_recorded_answers(name, path, intake)
    if not (chat_models or recorded):
        raise UsageError("name who answers: --model URI, or --answers NAME=FILE")
    # After all files, so that one message lists the faults of all.
    if intake.faulty and not skip_bad:
        raise BadInputError(intake.faults, intake.faulty)
    # In the order of MixedQA, whatever the order of the options.
    titles = {file.set.title for file in files}
    sources = [
        question_set.title
        for question_set in QUESTION_SETS.values()
        if question_set.title in titles
    ]
    return MixInput(sources, questions, counts, recorded, chat_models)


def _check_new_name(name: str, taken_names: Mapping[str, Any]) -> None:
    if name in taken_names:
        raise UsageError(f"{name} is named twice; expected each model once")


def _read_question_files(
    files: Sequence[QuestionFile], intake: Intake, step: Callable[[], None]
) -> tuple[list[Sample], list[dict[str, Any]]]:
    key_of_id: dict[str, str] = {}
    questions: list[Sample] = []
    counts = []
    for file in files:
        before, usable = intake.faulty, 0
        for record in read_questions(file):
            step()
            if isinstance(record, InputFault):
                intake.note(record)
                continue
            sample = record.sample
            key = key_of(sample.question)
            # The same question twice is a duplicate, which the draw drops; the same id for two is
            # a fault.
            if key_of_id.setdefault(sample.id, key) != key:
                message = f"{sample.id!r} is already used by another question of this split"
                intake.note(InputFault(record.where, (Problem("id", message),)))
                continue
            questions.append(sample)
            usable += 1
        faulty = intake.faulty - before
        file_fields = {"source": file.set.title, "split": file.split, "path": file.path}
        counts.append({**file_fields, "questions": usable, "faulty": faulty})
    return questions, counts


def _read_recorded_answers(name: str, path: Path, intake: Intake) -> dict[str, Sample]:
    """Read the recorded answers of a model by question; two for one question are a fault."""
    answers: dict[str, Sample] = {}
    for record in read_samples(path):
        if isinstance(record, InputFault):
            intake.note(record)
            continue
        # A file may hold the answers of several models.
        if record.sample.model not in (None, name):
            continue
        key = key_of(record.sample.question)
        if key in answers:
            message = f"{name} has answered it in an earlier record"
            intake.note(InputFault(record.where, (Problem("question", message),)))
            continue
        answers[key] = record.sample
    if not answers:
        raise InputError(f"{path}: no record of the model {name}")
    return answers


DUPLICATE = "duplicate"
"""The filter of questions that have the same words as an earlier one."""
NO_REPLY = "no-reply"
"""The filter of missing replies: not recorded, or refused by the endpoint."""

Recorded = Mapping[str, Mapping[str, Sample]]
"""Recorded answers, by model and then by :func:`key_of` the question."""


class DroppedQuestion(NamedTuple):
    """A question that was left out."""

    question: Sample
    filter: str
    """The filter that dropped it."""
    model: str | None = None
    """Whose reply was dropped, if it was for a reply."""
    reply: str | None = None
    """The text of that reply."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        record = {
            "id": self.question.id,
            "source": self.question.metadata["source"],
            "split": self.question.metadata["split"],
            "question": self.question.question,
            "filter": self.filter,
        }
        return (
            record if self.model is None else {**record, "model": self.model, "reply": self.reply}
        )


@dataclass
class SourceDraw:
    """The draw from one source."""

    source: str
    wanted: int
    """The number of questions to accept."""
    recorded: Recorded
    questions: int = 0
    """The number of questions of the source."""
    remaining: list[Sample] = field(default_factory=list)
    """Eligible questions that were not drawn yet; the next one is the last."""
    tried: int = 0
    """The number of questions for which models were asked or recorded answers examined."""
    accepted: list[Sequence[Sample]] = field(default_factory=list)
    """The replies of all models to each accepted question."""
    dropped: list[DroppedQuestion] = field(default_factory=list)

    @property
    def eligible(self) -> int:
        """The number of questions that passed the question filters."""
        return self.questions - sum(drop.model is None for drop in self.dropped)

    @property
    def is_short(self) -> bool:
        """Whether fewer questions than wanted were accepted."""
        return len(self.accepted) < self.wanted

    def next_questions(self) -> list[Sample]:
        """Draw as many questions as are still missing, of those with good recorded answers."""
        questions: list[Sample] = []
        while self.remaining and len(self.accepted) + len(questions) < self.wanted:
            # A question whose recorded answers are filtered out costs no request.
            question = self.remaining.pop()
            self.tried += 1
            if self._drop_bad_replies(question, self._find_recorded(question)):
                questions.append(question)
        return questions

    def keep_or_drop(self, question: Sample, replies: Mapping[str, Sample]) -> None:
        """Accept a question if every reply passes the filters, else record why not."""
        if self._drop_bad_replies(question, replies):
            self.accepted.append([*replies.values(), *self._find_recorded(question).values()])

    def counts(self) -> Mapping[str, Counter[str]]:
        """Return by model how many replies each filter dropped."""
        counts_by_model: dict[str, Counter[str]] = {}
        for drop in self.dropped:
            if drop.model is not None:
                counts_by_model.setdefault(drop.model, Counter())[drop.filter] += 1
        return counts_by_model

    def _find_recorded(self, question: Sample) -> dict[str, Sample]:
        key = key_of(question.question)
        sample_by_name = {name: answers.get(key) for name, answers in self.recorded.items()}
        return {
            name: with_reply(question, name, sample.response if sample else None)
            for name, sample in sample_by_name.items()
        }

    def _drop_bad_replies(self, question: Sample, replies: Mapping[str, Sample]) -> bool:
        reasons = {
            name: NO_REPLY if reply.response is None else find_reply_filter(reply)
            for name, reply in replies.items()
        }
        # Every bad reply is recorded, not only the first: the report counts by model.
        self.dropped += [
            DroppedQuestion(question, reason, name, replies[name].response)
            for name, reason in reasons.items()
            if reason is not None
        ]
        return not any(reasons.values())


def with_reply(question: Sample, model: str, response: str | None) -> Sample:
    """Return a question with a model's reply to it."""
    return replace(question, response=response, model=model)


def key_of(question: str) -> str:
    """Return a key that is equal for questions with the same words."""
    return " ".join(split_words(question)) or question


def build_draws(
    questions: Iterable[Sample],
    sources: Sequence[str],
    wanted: int,
    seed: int,
    recorded: Recorded,
) -> list[SourceDraw]:
    """Return the draw of each source: filtered questions in random order, test splits first.

    The order depends only on the seed and the ids.
    """
    draw_of_source = {source: SourceDraw(source, wanted, recorded) for source in sources}
    keys: set[str] = set()
    position_of_source = {source: position for position, source in enumerate(sources)}

    def rank(question: Sample) -> tuple[int, int]:
        metadata = question.metadata
        return position_of_source[metadata["source"]], SPLITS.index(metadata["split"])

    # Sorted by source and split, so that of duplicates always the same one stays.
    for question in sorted(questions, key=rank):
        draw = draw_of_source[question.metadata["source"]]
        draw.questions += 1
        key = key_of(question.question)
        reason = find_question_filter(question) or (DUPLICATE if key in keys else None)
        if reason is None:
            keys.add(key)
            draw.remaining.append(question)
        else:
            draw.dropped.append(DroppedQuestion(question, reason))
    for draw in draw_of_source.values():
        # One random number for each id: adding questions does not change the order of the others.
        lot_of_id = {q.id: float(generator(seed, q.id, "mixedqa").random()) for q in draw.remaining}
        # The next question stands last.
        draw.remaining.sort(key=lambda q: (rank(q)[1], lot_of_id[q.id], q.id), reverse=True)
    return list(draw_of_source.values())

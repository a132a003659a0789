"""References: whose answers count, what they say when asked, what they answered to near questions,
and how far they agree over all samples.
"""

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.capabilities import Models, Vectors
from trustassay.errors import AssessmentError
from trustassay.judging.refusal import refuses_outright
from trustassay.metric import Pool
from trustassay.metrics.fewl import maths
from trustassay.metrics.fewl.options import FewlOptions
from trustassay.prompts import shipped
from trustassay.sample import Sample, is_blank
from trustassay.statistics.resampling import generator
from trustassay.text.replies import Prose, plain
from trustassay.views import EvidenceRow

Key = tuple[str, int]
"""Who answers throughout a file: a name, and which of its answers, from 1; a pair of both, since
a name may look like another one with a number."""


class Reference(NamedTuple):
    """One answer of a reference.

    name and number: who it is, and which of a model's several answers. silent: why it is no
    answer, if it is none.
    """

    name: str
    number: int
    text: str
    silent: str = ""

    @property
    def key(self) -> Key:
        """Who it is throughout a file."""
        return self.name, self.number

    @property
    def shown(self) -> str:
        """The name as people read it; a model's first answer has no number."""
        return self.name if self.number == 1 else f"{self.name} {self.number}"


@dataclass(frozen=True, slots=True)
class Absent(EvidenceRow, told_by=("absent", "why")):
    """A reference that does not count for a sample, and why."""

    absent: str
    why: str


def answers_of(references: Mapping[str, tuple[str, ...]], *, drop: bool) -> list[Reference]:
    """Return the answers of references; one model's several answers are numbered from 1.

    drop: an answer that declines is silent.
    """
    return [
        Reference(name, number, text, silent(text, drop=drop))
        for name, texts in references.items()
        for number, text in enumerate(texts, 1)
    ]


def counted(
    sample: Sample, expected: Iterable[str], *, drop: bool
) -> tuple[list[Reference], list[Absent]]:
    """Return the references of a sample that count, and the others with the reason.

    ``expected`` are the names that should be there; ``drop``: one that declines does not
    count. The model under assessment is not its own reference.
    """
    present, absent = [], []
    for one in answers_of(sample.references, drop=drop):
        if one.name == sample.model:
            absent.append(Absent(one.shown, "is the model under assessment"))
        elif one.silent:
            absent.append(Absent(one.shown, one.silent))
        else:
            present.append(one)
    answered = {name for name, texts in sample.references.items() if texts}
    missing = sorted({*expected, *sample.references} - answered - {sample.model})
    return present, [*absent, *(Absent(name, "gave no answer") for name in missing)]


def silent(text: str, *, drop: bool = True) -> str:
    """Return why a text is no answer: it is blank or, to ``drop``, a refusal in English; empty for
    an answer.
    """
    if is_blank(text):
        return "gave an empty answer"
    return "refused to answer" if drop and refuses_outright(text) else ""


LONGEST = 8
"""Tokens of a reply."""


async def says_same(
    reference: Reference, statements: Sequence[str], question: str, models: Models
) -> list[float]:
    """Return 1 or 0 for every statement; a reply that is neither yes nor no is left out.

    Raises AssessmentError if the run has no model of the reference's name to ask.
    """
    if reference.name not in models.names("references"):
        raise AssessmentError(
            f"expertise=ask: {reference.name!r} is not a model of this run; expected it as a "
            f"reference ({reference.name}=URI), or expertise=similarity"
        )
    prompt = shipped(__package__, "same-answer")
    replies = await asyncio.gather(
        *(
            models.chat(
                prompt.filled(question=question, answer=reference.text, statement=statement),
                role="references",
                name=reference.name,
                max_tokens=LONGEST,
                prompt=prompt.name,
            )
            for statement in statements
        )
    )
    read = (yes_or_no(reply.text) for reply in replies)
    return [float(one) for one in read if one is not None]


def yes_or_no(text: str) -> bool | None:
    """Return which of both a reply names; ``None`` where it names neither, or both."""
    result = _yes_or_no().read(plain(text))
    return None if len(result) != 1 else "yes" in result


@cache
def _yes_or_no() -> Prose:
    class YesOrNo(Prose):
        approved = r"(?:it|they|he|she|both) (?:do|is|are|did)"

    return YesOrNo({"yes": "yes", "no": "no"}, ("answer",))


BLOCK_BYTES = 64_000_000
"""Memory of the similarities that are looked at together."""
ROUNDING = 1e-6
"""A similarity at the bound may be this far above it: vectors have single precision."""


class Neighbours(NamedTuple):
    """Places in the pool, nearest first, and their similarities; -1 and 0 where there are fewer.

    Both have shape (n, k).
    """

    places: NDArray[np.int64]
    similarities: NDArray[np.float32]


def nearest(
    queries: Vectors,
    pool: Vectors,
    k: int,
    *,
    max_similarity: float = 1.0,
    itself: Sequence[int] | NDArray[np.int64] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Neighbours:
    """Return the k nearest vectors of the pool for each query, by cosine.

    Args:
        queries: unit vectors, shape (n, d). pool: unit vectors, shape (m, d).
        max_similarity: what is more similar than this is passed over (section 4.1 of the paper
            takes 0.8, inclusive, for random questions).
        itself: for each query its own place in the pool, which is passed over; -1 for none.
        block_bytes: bounds the memory, apart from the vectors and the result.

    Of equally similar ones the earlier place comes first, so the result does not depend on blocks.
    """
    n, m = len(queries), len(pool)
    k = min(k, m)
    places = np.full((n, k), -1, dtype=np.int64)
    result = np.zeros((n, k), dtype=np.float32)
    if not (n and k):
        return Neighbours(places, result)
    own = np.full(n, -1) if itself is None else np.asarray(itself, dtype=np.int64)
    rows = _rows_at_once(block_bytes, m)
    for start in range(0, n, rows):
        alike = queries[start : start + rows] @ pool.T
        alike[alike > max_similarity + ROUNDING] = -np.inf
        here = own[start : start + rows]
        alike[np.flatnonzero(here >= 0), here[here >= 0]] = -np.inf
        for row, values in enumerate(alike):
            order = _largest(values, k)
            order = order[np.isfinite(values[order])]
            places[start + row, : len(order)] = order
            result[start + row, : len(order)] = values[order]
    return Neighbours(places, result)


def _rows_at_once(block_bytes: int, m: int) -> int:
    return max(1, block_bytes // (8 * max(1, m)))  # the similarities, and the order among them


def _largest(values: Vectors, k: int) -> NDArray[np.int64]:
    """Return the places of the k largest values, largest first, the earlier of equal ones."""
    if k < len(values):
        bound = np.partition(values, len(values) - k)[len(values) - k]
        candidates = np.flatnonzero(values >= bound)
    else:
        candidates = np.arange(len(values))
    return np.asarray(candidates[np.argsort(-values[candidates], kind="stable")][:k])


def random_others(
    query: Vectors,
    pool: Vectors,
    k: int,
    rng: np.random.Generator,
    *,
    max_similarity: float = 1.0,
    itself: int = -1,
) -> Neighbours:
    """Return k places of the pool at random, without repetition, none more similar than allowed.

    Shapes as in :func:`nearest` with n = 1; ``query`` has shape (d,).
    """
    k = min(k, len(pool))
    order = rng.permutation(len(pool)).tolist() if k else ()
    alike = ((place, float(query @ pool[place])) for place in order if place != itself)
    taken = list(islice((one for one in alike if one[1] <= max_similarity + ROUNDING), k))
    taken += [(-1, 0.0)] * (k - len(taken))
    places, result = zip(*taken, strict=True) if k else ((), ())
    return Neighbours(np.array([places], dtype=np.int64), np.array([result], dtype=np.float32))


EMBEDDED_AT_ONCE = 1024
LEARNT_FROM = 500
"""Samples from which the agreement of the references is learnt, where there are more."""
KEPT = 4096
"""Questions whose answers are kept in memory."""


class Neighbour(NamedTuple):
    """A question near to another one, and what the references answered to it, by their keys."""

    question: str
    similarity: float
    answers: Mapping[Key, str]


@dataclass
class QuestionPool:
    """The different questions of a pool, each with its places there.

    Samples of several models share questions: a question counts once among the neighbours, and
    what any of its samples holds of a reference's answer counts.
    """

    pool: Pool
    names: frozenset[str] = frozenset()
    """The names of all references that any sample has."""
    places: list[list[int]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    vectors: Vectors = field(default_factory=lambda: np.zeros((0, 1), dtype=np.float32))
    ability: Mapping[Key, float] = field(default_factory=dict)
    """Of the raters of the run's samples."""
    known: Neighbours | None = None
    """The neighbours of all questions, where they were found before."""
    _blocks: dict[int, Neighbours] = field(default_factory=dict)
    _kept: OrderedDict[int, Mapping[str, tuple[str, ...]]] = field(default_factory=OrderedDict)

    def ability_of(self, rater: Key) -> float:
        """Return what was learnt of a rater; of one who was not seen, the mean of the others."""
        known = self.ability
        return known[rater] if rater in known else float(np.mean([*known.values()] or [0.0]))

    async def neighbours(
        self, sample: Sample, options: FewlOptions, models: Models, seed: int
    ) -> list[Neighbour]:
        """Return the neighbours of a sample's question, nearest first, without itself."""
        number = self.numbers.get(sample.question.strip())
        k, most = options.neighbours, options.max_similarity
        if options.penalising == "nearest" and number is not None:
            result, row = self._nearest(number, options)
        else:
            row, itself = 0, -1 if number is None else number
            query = self.vectors[itself] if itself >= 0 else await models.embed(sample.question)
            if options.penalising == "random":
                rng = generator(seed, sample.question.strip(), "neighbours")
                result = random_others(
                    query, self.vectors, k, rng, max_similarity=most, itself=itself
                )
            else:
                result = nearest(query[None], self.vectors, k, max_similarity=most)
        pairs = [
            (int(place), float(similarity))
            for place, similarity in zip(result.places[row], result.similarities[row], strict=True)
            if place >= 0
        ]
        drop = options.declining == "drop"
        answers = await asyncio.gather(*(self._answers(place, models, drop) for place, _ in pairs))
        return [
            Neighbour(self.pool[self.places[place][0]].question, similarity, found_answers)
            for (place, similarity), found_answers in zip(pairs, answers, strict=True)
        ]

    def _nearest(self, number: int, options: FewlOptions) -> tuple[Neighbours, int]:
        """Return neighbours of the pool's own questions, and the row; found in the blocks of
        :func:`nearest`: in others, the last digit of a similarity may differ.
        """
        if self.known:
            return self.known, number
        rows = _rows_at_once(BLOCK_BYTES, len(self.vectors))
        block, row = divmod(number, rows)
        if block not in self._blocks:
            start = block * rows
            places = range(start, min(start + rows, len(self.vectors)))
            self._blocks[block] = self.nearest_of(places, options)
        return self._blocks[block], row

    def nearest_of(self, places: range, options: FewlOptions) -> Neighbours:
        """Return the neighbours of questions of the pool."""
        return nearest(
            self.vectors[places.start : places.stop],
            self.vectors,
            options.neighbours,
            max_similarity=options.max_similarity,
            itself=places,
        )

    async def _answers(self, number: int, models: Models, drop: bool) -> Mapping[Key, str]:
        """Return what the references answered to a question; nothing of those to ``drop``."""
        if number not in self._kept:
            result: dict[str, tuple[str, ...]] = {}
            for place in self.places[number]:
                sample = await self.pool.filled(place, models)
                for name, texts in sample.references.items():
                    result.setdefault(name, texts)
                if self.names <= result.keys():
                    break
            self._kept[number] = result
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        known = answers_of(self._kept[number], drop=drop)
        return {one.key: one.text for one in known if not one.silent}


async def prepared(pool: Pool, options: FewlOptions, models: Models) -> QuestionPool:
    """Look at all samples: sort their questions, embed them, and learn whom to believe."""
    result = questions_of(pool, models.names("references"))
    if options.penalising != "none":
        result.vectors = await _embedded(list(result.numbers), models)
    if options.weighting == "agreement":
        result.ability = await _abilities(pool.own, models, drop=options.declining == "drop")
    return result


def questions_of(pool: Pool, names: Iterable[str]) -> QuestionPool:
    """Return the questions of a pool, with the names of all references."""
    result = QuestionPool(pool)
    every = set(names)
    for place, sample in enumerate(pool):
        question = sample.question.strip()
        number = result.numbers.setdefault(question, len(result.places))
        if number == len(result.places):
            result.places.append([])
        result.places[number].append(place)
        every |= sample.references.keys()
    result.names = frozenset(every)
    return result


async def _embedded(questions: Sequence[str], models: Models) -> Vectors:
    """Return the vectors of questions, some at a time, so that few requests are held at once."""
    rows = np.zeros((0, 1), dtype=np.float32)
    for start in range(0, len(questions), EMBEDDED_AT_ONCE):
        chunk = questions[start : start + EMBEDDED_AT_ONCE]
        made = np.stack(await asyncio.gather(*map(models.embed, chunk)))
        if not start:
            rows = np.zeros((len(questions), made.shape[1]), dtype=np.float32)
        rows[start : start + len(chunk)] = made
    return rows


async def _abilities(pool: Pool, models: Models, *, drop: bool) -> dict[Key, float]:
    """Return the ability of every rater, the references and the models whose answers are assessed,
    learnt from how much any two agree over the run.
    """
    picks = np.arange(len(pool))
    if len(pool) > LEARNT_FROM:
        picks = generator(0, "agreement").choice(len(pool), LEARNT_FROM, replace=False)
        picks.sort()
    sums, counts = defaultdict[tuple[Key, Key], float](float), Counter[tuple[Key, Key]]()
    for start in range(0, len(picks), EMBEDDED_AT_ONCE):
        asked = []
        some = picks[start : start + EMBEDDED_AT_ONCE].tolist()
        for sample in await asyncio.gather(*(pool.filled(place, models) for place in some)):
            known = answers_of(sample.references, drop=drop)
            texts = {one.key: one.text for one in known if not one.silent}
            if sample.answered:
                subject = (sample.model, 1) if sample.model else ("", 0)
                texts[subject] = sample.response or ""
            for first, second in combinations(sorted(texts), 2):
                comparison = models.compare(texts[first], texts[second], sample.question)
                asked.append(((first, second), comparison))
        values = await asyncio.gather(*(comparison for _, comparison in asked))
        for (pair, _), value in zip(asked, values, strict=True):
            sums[pair] += value
            counts[pair] += 1
    raters = sorted({rater for pair in counts for rater in pair})
    agreement, n = np.zeros((2, len(raters), len(raters)))
    for pair, count in counts.items():
        i, j = map(raters.index, pair)
        agreement[i, j] = agreement[j, i] = sums[pair] / count
        n[i, j] = n[j, i] = count
    return dict(zip(raters, maths.abilities(agreement, n).tolist(), strict=True))

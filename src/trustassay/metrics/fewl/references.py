"""References of ``fewl``: whose answers count, their replies, neighbours in the pool, abilities.

In this order: the references of one sample; asking one whether two answers say the same; search for
similar questions; the pool of all questions; abilities learnt from agreement over all samples.
"""

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.core.asked import (
    ANSWERED,
    ASKED_FIELD,
    FAILURE_KINDS,
    OTHER_FAILURE,
    read_asked,
)
from trustassay.core.capabilities import Models, Vectors
from trustassay.core.evidence import EvidenceRow
from trustassay.core.metric import Pool
from trustassay.core.prompts import load_prompt
from trustassay.core.sample import Sample, is_blank
from trustassay.errors import AssessmentError
from trustassay.judging.refusal import refuses_outright
from trustassay.metrics.fewl import maths
from trustassay.metrics.fewl.options import FewlOptions
from trustassay.statistics.resampling import generator
from trustassay.text.replies import ProseReader, clean_reply

RaterKey = tuple[str, int]
"""Identifies a rater throughout a file: a name, and the number of its answer, from 1. A pair, since
"gpt 2" may be a name of its own or the second answer of "gpt"."""


class ReferenceAnswer(NamedTuple):
    """One answer of a reference."""

    name: str
    """The name of the reference."""
    number: int
    """Which of a model's several answers, from 1."""
    text: str
    """The answer."""
    silence: str = ""
    """Why it is no answer; empty if it is one."""

    @property
    def key(self) -> RaterKey:
        """Its identity throughout a file."""
        return self.name, self.number

    @property
    def label(self) -> str:
        """The name as people read it; a model's first answer has no number."""
        return self.name if self.number == 1 else f"{self.name} {self.number}"


@dataclass(frozen=True, slots=True)
class AbsentReference(EvidenceRow, required=("absent", "why")):
    """A reference that does not count for a sample."""

    absent: str
    """The name of the reference."""
    why: str
    """The reason, which completes "NAME ..."."""
    kind: str = ""
    """How its call failed, :data:`EMPTY`, :data:`NOT_GIVEN` or :data:`DECLINED`; empty for the
    model under assessment."""

    @property
    def has_failed(self) -> bool:
        """Whether it was asked and brought no answer."""
        return self.kind not in ("", EMPTY, NOT_GIVEN, DECLINED)


EMPTY = "empty answer"
"""Kind of absence: the sample came with a blank answer."""
NOT_GIVEN = "not in the input"
"""Kind of absence: the sample came without an answer of a reference that others have."""
DECLINED = "declined"
"""Kind of absence, with ``declined=drop``: the reference refused to answer."""


def find_failed_calls(sample: Sample) -> dict[str, str]:
    """Return the references whose calls failed when the sample was filled: the kind by name."""
    outcomes = read_asked(sample.metadata.get(ASKED_FIELD)).get("references", {})
    return {
        # A reference is asked for all its answers in one call, so there is one kind.
        name: next(kind for kind in kinds if kind != ANSWERED)
        for name, kinds in outcomes.items()
        if kinds.keys() - {ANSWERED} and not sample.references.get(name)
    }


def answers_of(references: Mapping[str, tuple[str, ...]], *, drop: bool) -> list[ReferenceAnswer]:
    """Return the answers of references, a model's several answers numbered from 1.

    drop: an answer that declines counts as no answer.
    """
    return [
        ReferenceAnswer(name, number, text, explain_silence(text, drop=drop))
        for name, texts in references.items()
        for number, text in enumerate(texts, 1)
    ]


def split_references(
    sample: Sample, expected: Iterable[str], asked: Iterable[str], *, drop: bool
) -> tuple[list[ReferenceAnswer], list[AbsentReference]]:
    """Return the references of a sample that count, and the others with the reason.

    Args:
        expected: the names that should be there. asked: those of models that the run asks.
        drop: one that declines does not count.

    The model under assessment is not its own reference.
    """
    present, absent = [], []
    # A model agrees with its own answer, right or wrong.
    for reference in answers_of(sample.references, drop=drop):
        if reference.name == sample.model:
            absent.append(AbsentReference(reference.label, "is the model under assessment"))
        elif reference.silence:
            kind = EMPTY if is_blank(reference.text) else DECLINED
            absent.append(AbsentReference(reference.label, reference.silence, kind))
        else:
            present.append(reference)
    answered = {name for name, texts in sample.references.items() if texts}
    # A model of the run that has neither answered nor failed on record has failed, too.
    failed = {**dict.fromkeys(asked, OTHER_FAILURE), **find_failed_calls(sample)}
    # Sorted, since sets have no order and the evidence must not change between runs.
    for name in sorted({*expected, *failed, *sample.references} - answered - {sample.model or ""}):
        if name in failed:
            absent.append(build_failed_reference(name, failed[name]))
        else:
            absent.append(AbsentReference(name, "gave no answer", NOT_GIVEN))
    return present, absent


def build_failed_reference(name: str, kind: str) -> AbsentReference:
    """Return the entry of a reference whose call failed in this way."""
    return AbsentReference(name, f"gave no answer ({FAILURE_KINDS.get(kind, kind)})", kind)


def explain_silence(text: str, *, drop: bool = True) -> str:
    """Return why a text is no answer: it is blank or, with ``drop``, an English refusal. Empty for
    an answer.
    """
    if is_blank(text):
        return "gave an empty answer"
    return "refused to answer" if drop and refuses_outright(text) else ""


MAX_YES_NO_TOKENS = 8
"""Tokens of a reply of yes or no."""


async def ask_whether_same(
    reference: ReferenceAnswer, statements: Sequence[str], question: str, models: Models
) -> list[float]:
    """Ask a reference whether its answer says the same as each statement: 1 or 0 for each.

    A reply that is neither yes nor no is left out, and counted as unreadable. Raises
    AssessmentError if the run has no model of the reference's name.
    """
    if reference.name not in models.names("references"):
        raise AssessmentError(
            f"expertise=ask: {reference.name!r} is not a model of this run; give it as a "
            f"reference ({reference.name}=URI), or use expertise=similarity"
        )
    prompt = load_prompt(__package__, "same-answer")
    replies = await asyncio.gather(
        *(
            models.chat(
                prompt.fill(question=question, answer=reference.text, statement=statement),
                role="references",
                name=reference.name,
                max_tokens=MAX_YES_NO_TOKENS,
                prompt=prompt.name,
            )
            for statement in statements
        )
    )
    verdicts = [read_yes_or_no(reply.text) for reply in replies]
    models.note_unreadable("references", reference.name, verdicts.count(None))
    return [float(answer) for answer in verdicts if answer is not None]


def read_yes_or_no(text: str) -> bool | None:
    """Return whether a reply says yes; ``None`` where it says neither, or both."""
    result = _yes_or_no_reader().read(clean_reply(text))
    return None if len(result) != 1 else "yes" in result


@cache
def _yes_or_no_reader() -> ProseReader:
    class YesOrNo(ProseReader):
        # What may follow a yes or no without changing it: "Yes, they are", "No, it did".
        approved = r"(?:it|they|he|she|both) (?:do|is|are|did)"

    return YesOrNo({"yes": "yes", "no": "no"}, ("answer",))


BLOCK_BYTES = 64_000_000
"""Memory in bytes for the similarities of one block of queries."""
ROUNDING = 1e-6
"""Tolerance above ``max_similarity``: vectors have single precision."""


class Neighbours(NamedTuple):
    """The neighbours of n queries, nearest first."""

    places: NDArray[np.int64]
    """Places in the pool, shape (n, k); -1 where there are fewer than k."""
    similarities: NDArray[np.float32]
    """Cosines, shape (n, k); 0 where there are fewer than k."""


def find_nearest(
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
    own_places = np.full(n, -1) if itself is None else np.asarray(itself, dtype=np.int64)
    # The product of all queries and the pool may not fit in memory: take blocks of rows.
    rows = _rows_per_block(block_bytes, m)
    for start in range(0, n, rows):
        similarities_of_block = queries[start : start + rows] @ pool.T
        # The product of two equal unit vectors may be rounded up to more than 1.
        similarities_of_block.clip(-1, 1, out=similarities_of_block)
        similarities_of_block[similarities_of_block > max_similarity + ROUNDING] = -np.inf
        own_of_block = own_places[start : start + rows]
        # A question is not its own neighbour, also where max_similarity is 1.
        similarities_of_block[
            np.flatnonzero(own_of_block >= 0), own_of_block[own_of_block >= 0]
        ] = -np.inf
        for row, values in enumerate(similarities_of_block):
            order = _find_largest(values, k)
            # Places that were ruled out above have -inf, and stay -1 in the result.
            order = order[np.isfinite(values[order])]
            places[start + row, : len(order)] = order
            result[start + row, : len(order)] = values[order]
    return Neighbours(places, result)


def _rows_per_block(block_bytes: int, m: int) -> int:
    return max(1, block_bytes // (8 * max(1, m)))  # 8 bytes: a similarity, and a place in the order


def _find_largest(values: Vectors, k: int) -> NDArray[np.int64]:
    """Return the places of the k largest values, largest first, the earlier of equal ones."""
    if k < len(values):
        # partition finds the k-th largest in linear time. Values equal to it must all take part in
        # the stable sort, which prefers the earlier place.
        bound = np.partition(values, len(values) - k)[len(values) - k]
        candidates = np.flatnonzero(values >= bound)
    else:
        candidates = np.arange(len(values))
    return np.asarray(candidates[np.argsort(-values[candidates], kind="stable")][:k])


def draw_neighbours(
    query: Vectors,
    pool: Vectors,
    k: int,
    rng: np.random.Generator,
    *,
    max_similarity: float = 1.0,
    itself: int = -1,
) -> Neighbours:
    """Draw k places of the pool without repetition, none more similar than allowed.

    Shapes as in :func:`find_nearest` with n = 1; ``query`` has shape (d,).
    """
    k = min(k, len(pool))
    order = rng.permutation(len(pool)).tolist() if k else ()
    # Lazy: similarities are computed only until k places are accepted.
    alike = (
        (place, float((query @ pool[place]).clip(-1, 1))) for place in order if place != itself
    )
    drawn = list(
        islice((candidate for candidate in alike if candidate[1] <= max_similarity + ROUNDING), k)
    )
    drawn += [(-1, 0.0)] * (k - len(drawn))
    places, result = zip(*drawn, strict=True) if k else ((), ())
    return Neighbours(np.array([places], dtype=np.int64), np.array([result], dtype=np.float32))


EMBEDDING_CHUNK = 1024
"""Questions that are embedded together, and samples that are compared together."""
MAX_AGREEMENT_SAMPLES = 500
"""Samples from which the agreement of the references is learnt, where there are more."""
MAX_CACHED_QUESTIONS = 4096
"""Questions whose answers are kept in memory."""


class Neighbour(NamedTuple):
    """A question similar to another one."""

    question: str
    """The neighbouring question."""
    similarity: float
    """Cosine of both questions."""
    answers: Mapping[RaterKey, str]
    """The references' answers to it, by rater."""
    failed: Mapping[str, str] = MappingProxyType({})
    """The references whose calls for it failed: the kind by name."""


class _PoolAnswers(NamedTuple):
    """What the references answered to one question of a pool."""

    texts: Mapping[str, tuple[str, ...]]
    failed: Mapping[str, str]
    """The references whose calls failed: the kind by name."""


@dataclass
class QuestionPool:
    """The different questions of a pool, each with its places there.

    Samples of several models share questions: a question counts once among the neighbours, and a
    reference's answer may come from any of its samples.
    """

    pool: Pool
    """All samples that the metric may read."""
    names: frozenset[str] = frozenset()
    """The names of all references that any sample has."""
    places: list[list[int]] = field(default_factory=list)
    """For each question, by its number, its places in the pool."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The number of each question, by its text."""
    vectors: Vectors = field(default_factory=lambda: np.zeros((0, 1), dtype=np.float32))
    """Unit vectors of the questions, by number; empty without a penalty."""
    ability: Mapping[RaterKey, float] = field(default_factory=dict)
    """The abilities of the raters of the run's samples, 0 to 1."""
    all_neighbours: Neighbours | None = None
    """The neighbours of all questions, where they were computed in another process."""
    _block_cache: dict[int, Neighbours] = field(default_factory=dict)
    _answer_cache: OrderedDict[int, "_PoolAnswers"] = field(default_factory=OrderedDict)

    def ability_of(self, rater: RaterKey) -> float:
        """Return the ability of a rater; of an unknown one, the mean of the others."""
        abilities = self.ability
        return (
            abilities[rater]
            if rater in abilities
            else float(np.mean([*abilities.values()] or [0.0]))
        )

    async def neighbours(
        self, sample: Sample, options: FewlOptions, models: Models, seed: int
    ) -> list[Neighbour]:
        """Return the neighbours of a sample's question, nearest first, without itself."""
        number = self.numbers.get(sample.question.strip())
        k, max_similarity = options.neighbours, options.max_similarity
        # Three cases: a question of the pool (its block is computed once for all its rows), a
        # random draw, and a question from outside the pool.
        if options.penalising == "nearest" and number is not None:
            result, row = self._find_in_block(number, options)
        else:
            row, itself = 0, -1 if number is None else number
            query = self.vectors[itself] if itself >= 0 else await models.embed(sample.question)
            if options.penalising == "random":
                # Seeded by the question, so that the order in which samples run does not matter.
                rng = generator(seed, sample.question.strip(), "neighbours")
                result = draw_neighbours(
                    query, self.vectors, k, rng, max_similarity=max_similarity, itself=itself
                )
            else:
                result = find_nearest(query[None], self.vectors, k, max_similarity=max_similarity)
        pairs = [
            (int(place), float(similarity))
            for place, similarity in zip(result.places[row], result.similarities[row], strict=True)
            if place >= 0
        ]
        drop = options.declining == "drop"
        answers = await asyncio.gather(
            *(self._read_answers(place, models, drop) for place, _ in pairs)
        )
        return [
            Neighbour(self.pool[self.places[place][0]].question, similarity, texts, failed)
            for (place, similarity), (texts, failed) in zip(pairs, answers, strict=True)
        ]

    def _find_in_block(self, number: int, options: FewlOptions) -> tuple[Neighbours, int]:
        """Return the neighbours of a block of the pool's own questions, and the row of this one.

        The blocks are those of :func:`find_nearest`: a product of another shape may round the last
        digit of a similarity differently, and a run in shards has to give the same scores.
        """
        if self.all_neighbours:
            return self.all_neighbours, number
        rows = _rows_per_block(BLOCK_BYTES, len(self.vectors))
        block, row = divmod(number, rows)
        if block not in self._block_cache:
            start = block * rows
            places = range(start, min(start + rows, len(self.vectors)))
            self._block_cache[block] = self.nearest_of(places, options)
        return self._block_cache[block], row

    def nearest_of(self, places: range, options: FewlOptions) -> Neighbours:
        """Return the neighbours of some questions of the pool, by their numbers."""
        return find_nearest(
            self.vectors[places.start : places.stop],
            self.vectors,
            options.neighbours,
            max_similarity=options.max_similarity,
            itself=places,
        )

    async def _read_answers(
        self, number: int, models: Models, drop: bool
    ) -> tuple[Mapping[RaterKey, str], Mapping[str, str]]:
        """Return the references' answers to a question by rater, without blank or dropped ones, and
        the kinds of the failed calls by reference.
        """
        if number not in self._answer_cache:
            result: dict[str, tuple[str, ...]] = {}
            failed: dict[str, str] = {}
            for place in self.places[number]:
                # Filling may ask a model: stop as soon as every reference has an answer.
                sample = await self.pool.read_filled(place, models)
                for name, texts in sample.references.items():
                    result.setdefault(name, texts)
                failed |= find_failed_calls(sample)
                if self.names <= result.keys():
                    break
            # A sample of a pool of its own is asked for here, and stored nowhere with its failures.
            failed |= dict.fromkeys(
                {*models.names("references")} - result.keys() - failed.keys(), OTHER_FAILURE
            )
            of_question = {name: kind for name, kind in failed.items() if not result.get(name)}
            self._answer_cache[number] = _PoolAnswers(result, of_question)
            # First in, first out bounds the memory; a dropped question is read again.
            while len(self._answer_cache) > MAX_CACHED_QUESTIONS:
                self._answer_cache.popitem(last=False)
        texts_by_name, failed_calls = self._answer_cache[number]
        references = answers_of(texts_by_name, drop=drop)
        answers = {item.key: item.text for item in references if not item.silence}
        return answers, failed_calls


async def build_question_pool(pool: Pool, options: FewlOptions, models: Models) -> QuestionPool:
    """Read all samples: group them by question, embed the questions, learn the abilities."""
    result = group_questions(pool, models.names("references"))
    if options.penalising != "none":
        result.vectors = await _embed_questions(list(result.numbers), models)
    if options.weighting == "agreement":
        result.ability = await _learn_abilities(
            pool.run_pool, models, drop=options.declining == "drop"
        )
    return result


def group_questions(pool: Pool, names: Iterable[str]) -> QuestionPool:
    """Return the questions of a pool, with the names of all references."""
    result = QuestionPool(pool)
    names_of_all = set(names)
    for place, sample in enumerate(pool):
        question = sample.question.strip()
        number = result.numbers.setdefault(question, len(result.places))
        if number == len(result.places):
            result.places.append([])
        result.places[number].append(place)
        names_of_all |= sample.references.keys()
    result.names = frozenset(names_of_all)
    return result


async def _embed_questions(questions: Sequence[str], models: Models) -> Vectors:
    """Embed questions in chunks, which bounds the number of requests in flight."""
    result = np.zeros((0, 1), dtype=np.float32)
    for start in range(0, len(questions), EMBEDDING_CHUNK):
        chunk = questions[start : start + EMBEDDING_CHUNK]
        vectors = np.stack(await asyncio.gather(*map(models.embed, chunk)))
        # The dimension is known only after the first chunk.
        if not start:
            result = np.zeros((len(questions), vectors.shape[1]), dtype=np.float32)
        result[start : start + len(chunk)] = vectors
    return result


async def _learn_abilities(pool: Pool, models: Models, *, drop: bool) -> dict[RaterKey, float]:
    """Learn the ability of every rater from how much any two agree over the run.

    Raters are the references, and the models whose answers are assessed.
    """
    picks = np.arange(len(pool))
    if len(pool) > MAX_AGREEMENT_SAMPLES:
        # A fixed seed, so that abilities are the same in every run over the same file. The number
        # of comparisons grows with the square of the raters, so not all samples are taken.
        picks = generator(0, "agreement").choice(len(pool), MAX_AGREEMENT_SAMPLES, replace=False)
        picks.sort()
    sums = defaultdict[tuple[RaterKey, RaterKey], float](float)
    counts = Counter[tuple[RaterKey, RaterKey]]()
    for start in range(0, len(picks), EMBEDDING_CHUNK):
        comparisons = []
        some = picks[start : start + EMBEDDING_CHUNK].tolist()
        for sample in await asyncio.gather(*(pool.read_filled(place, models) for place in some)):
            references = answers_of(sample.references, drop=drop)
            texts = {
                reference.key: reference.text for reference in references if not reference.silence
            }
            if sample.answered:
                # ("", 0) is no reference's key: an answer of an unknown model cannot be taken for
                # one.
                subject = (sample.model, 1) if sample.model else ("", 0)
                texts[subject] = sample.response or ""
            for first, second in combinations(sorted(texts), 2):
                comparison = models.compare(texts[first], texts[second], sample.question)
                comparisons.append(((first, second), comparison))
        values = await asyncio.gather(*(comparison for _, comparison in comparisons))
        for (pair, _), value in zip(comparisons, values, strict=True):
            sums[pair] += value
            counts[pair] += 1
    raters = sorted({rater for pair in counts for rater in pair})
    agreement, n = np.zeros((2, len(raters), len(raters)))
    for pair, count in counts.items():
        i, j = map(raters.index, pair)
        agreement[i, j] = agreement[j, i] = sums[pair] / count
        n[i, j] = n[j, i] = count
    return dict(zip(raters, maths.abilities(agreement, n).tolist(), strict=True))

"""Table 2 of TrustScore (Zheng et al. 2024): Cohen's kappa of people who rated the same answers.

1. Read the ratings, words by the vocabulary of labels.
2. Join them on the answers, which say the model; count those of other items.
3. Compute kappa for each system and overall.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trustassay.core.labels import read_single_label
from trustassay.core.sample import Sample, question_key
from trustassay.input.answer_tables import read_answer_table
from trustassay.input.journal import is_journal
from trustassay.input.ratings import RATING_FIELDS, Rating, Ratings, read_ratings
from trustassay.input.records import InputError
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import (
    NO_FIGURE,
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
    list_missing_intervals,
)
from trustassay.people.agree import measure_agreement
from trustassay.statistics.intervals import Estimate
from trustassay.text.numbers import amount

NEEDED = (
    "needs ratings by two raters: ratings.csv in --data (item, rater, rating); the authors did "
    "not publish their fifty double annotations"
)
COLUMNS = ("answers", "Cohen's kappa")


@dataclass(frozen=True)
class DoubleRatings:
    """The ratings of the data's answers."""

    ratings: Ratings
    """Their items are ids of answers, and their models those of the answers."""
    questions: Mapping[str, int]
    """By id of an answer, the number of its question."""
    notes: Sequence[str]
    """Sentences on what is left out."""


def find_double_ratings(
    setup: ReproductionSetup, samples: Sequence[Sample]
) -> DoubleRatings | None:
    """Return the ratings in the folder of the data; ``None`` without a file of them.

    Raises:
        InputError: the file cannot be read, a rating is neither a number nor a word for right or
            wrong, or no item is an answer.
    """
    path = setup.find_ratings()
    return None if path is None else join_answers(read_right_or_wrong(path), samples, path)


def read_right_or_wrong(path: Path) -> Ratings:
    """Return ratings with words for right and wrong as 1 and 0.

    Raises:
        InputError: the file cannot be read; or a word is another one, with its place.
    """
    ratings = read_ratings(path)
    # A journal has only choices of its rubric.
    if not ratings.categories or is_journal(path):
        return ratings
    values: list[float] = []
    unread = set()
    for word in ratings.categories:
        if (value := read_single_label(word)) is None:
            unread.add(word)
        else:
            values.append(value)
    if unread:
        raise InputError(_describe_word(path, unread))
    numbers = [replace(one, value=values[int(one.value)]) for one in ratings.ratings]
    return replace(ratings, ratings=numbers, categories=(), ordered=True, scale=())


def _describe_word(path: Path, words: set[str]) -> str:
    """Say where the first of some words stands."""
    expected = "expected 1 or 0, or a word such as yes or no, got"
    for where, row in read_answer_table(path, RATING_FIELDS["rating"]).list_records():
        for field in RATING_FIELDS["rating"]:
            text = str(row.get(field) or "").strip()
            if text.lower() in words:
                return f"{where}: {field}: {expected} {text[:40]!r}"
    # A wide table has a column for each rater.
    return f"{path}: rating: {expected} {min(words)[:40]!r}"


def join_answers(ratings: Ratings, samples: Sequence[Sample], path: Path) -> DoubleRatings:
    """Return the ratings of answers, each with the model of its answer.

    An item is the id of an answer, or with a model that of its question, as both make the ids of
    the authors' file.

    Raises:
        InputError: no item is an answer.
    """
    by_id = {sample.id: sample for sample in samples}
    joined: list[Rating] = []
    foreign = other_model = 0
    for rating in ratings.ratings:
        answer = by_id.get(rating.item) or by_id.get(f"{rating.item}-{rating.model}")
        if answer is None:
            foreign += 1
        elif rating.model and rating.model != (answer.model or ""):
            other_model += 1
        else:
            joined.append(replace(rating, item=answer.id, model=answer.model or ""))
    if not joined:
        first = ratings.ratings[0]
        of_model = f" of model {first.model[:60]!r}" if first.model else ""
        raise InputError(
            f"{path}: no item is the id of an answer; the first item is "
            f"{first.item[:60]!r}{of_model}, the first answer {samples[0].id[:60]!r} of model "
            f"{samples[0].model or ''!r}"
        )
    notes = []
    if foreign:
        notes.append(f"Left out: {amount(foreign, 'rating')} of items that are not in the data.")
    if other_model:
        notes.append(
            f"Left out: {amount(other_model, 'rating')} whose model differs from the answer's."
        )
    if ratings.unread:
        notes.append(f"{ratings.unread.describe('ratings', 'expected 1 or 0, as in the others')}.")
    questions: dict[str, int] = {}
    numbers = {
        sample.id: questions.setdefault(question_key(sample.question), len(questions))
        for sample in samples
    }
    return DoubleRatings(replace(ratings, ratings=joined), numbers, notes)


def build_table_2(double_ratings: DoubleRatings) -> ReproducedTable:
    """Build the agreement of raters by system and overall."""
    ratings = double_ratings.ratings
    raters = list(dict.fromkeys(rating.rater for rating in ratings.ratings))
    counts = Counter(rating.model for rating in ratings.ratings)
    names = [*(name for name in counts if len(counts) > 1), "Overall"]
    notes = []
    if len(raters) < 2:
        cells = [ReproducedCell(NO_FIGURE, {"value": None, "n": 0})] * len(COLUMNS)
        rows = [ReproducedRow(name, cells) for name in names]
        notes.append(
            f"Ratings by one rater ({raters[0]}). Cohen's kappa needs a second rater of the same "
            "answers."
        )
    else:
        agreement = measure_agreement(ratings, units=double_ratings.questions)
        by_name = {**agreement.models, "Overall": agreement.overall}
        rows = [_build_kappa_row(name, by_name[name]["mean_kappa"]) for name in names]
        if len(raters) > 2:
            notes.append(f"{len(raters)} raters: kappa is the mean over their pairs.")
    return ReproducedTable(
        number="Table 2",
        title="agreement of the annotators",
        first="system",
        columns=COLUMNS,
        rows=rows,
        not_comparable="the authors did not publish their double annotations",
        notes=[*notes, *double_ratings.notes, *list_missing_intervals(COLUMNS, rows)],
    )


def _build_kappa_row(name: str, kappa: Estimate) -> ReproducedRow:
    return ReproducedRow(name, [ReproducedCell.of_count(kappa.n), ReproducedCell.of(kappa)])

"""WillowTree's experiment on a judge: 21 altered answers to one question, each judged 30 times.

1. Ask the judge for all votes on truthfulness and on informativeness, a run for each rubric.
2. Compare them with the levels that people expected: in the first round, over all rounds, and by
   the majority of the rounds.
3. Measure how far the votes on one answer differ between rounds.
4. If there are ratings by people, compare the judge with them, and them with each other.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from markupsafe import Markup

from trustassay.core.assessment import Mean, compute_interval
from trustassay.core.evidence import EvidenceRows
from trustassay.core.sample import Sample
from trustassay.errors import UsageError
from trustassay.input.journal import is_journal
from trustassay.input.ratings import Rating, Ratings, read_ratings
from trustassay.input.records import InputError
from trustassay.metrics.judge import Judge
from trustassay.metrics.judge.votes import VoteRow, find_majority, spread
from trustassay.papers.experiments.answers import read_records
from trustassay.papers.reproduce.scoring import (
    ScoredSample,
    describe_failures,
    open_recorded_model,
    refuse_options,
    score_samples,
)
from trustassay.papers.reproduce.setup import RECORDED, ReproductionSetup
from trustassay.papers.reproduce.tables import (
    NO_FIGURE,
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
    Reproduction,
    list_missing_intervals,
)
from trustassay.people.agree import RaterAgreement, measure_agreement
from trustassay.people.votes import join_ratings
from trustassay.report.charts import ChartMark, bars_svg
from trustassay.report.document import MEAN, Bar, Bars, Chart, Panels
from trustassay.statistics import Floats
from trustassay.statistics.agreement import cohen_kappa, item_interval
from trustassay.statistics.intervals import Estimate, binomial_interval
from trustassay.text.numbers import amount, number

PAPER = "truthfulness"
SOURCE = (
    "WillowTree (Leal and Frenchi 2023), Evaluating Truthfulness: A Deeper Dive into Benchmarking "
    "LLM Accuracy"
)
RUBRICS = ("truthfulness", "informativeness")
REPEATS, ARTICLE_ANSWERS = 30, 21
"""Runs and answers of the article."""
MAX_DRAWN_ANSWERS = 60
BUNDLED_ANSWERS = RECORDED / "eras.jsonl"
"""One question and 21 answers of this project, with the levels that its author expected."""
BUNDLED_REPLIES = "eras-replies.jsonl.gz"
BUNDLED_REPLY_TOKENS = 20
"""Tokens of a recorded reply at most."""
TEMPERATURE = 1.0
"""The default of the service that the article used, which names no temperature."""
MAX_REPLY_TOKENS = 300
ANSWER_FILES = ("answers.jsonl", "answers.json", "answers.csv")
AGREEMENT_COLUMNS = ("answers", "matched", "lower", "higher", "kappa, quadratic")
SPREAD = "mean standard deviation"
STABILITY_COLUMNS = ("answers", SPREAD, "variance 0", "inconsistent", "replies not read")
RATER_COLUMNS = ("answers", "equal, %", "kappa, quadratic", "alpha, ordinal")
NO_TWO_VOTES = "no answer has two readable votes"
NOT_THE_ARTICLES = (
    "the article prints only six of its 21 answers, and its judge, GPT-4 of 2023, is no longer "
    "available"
)


def count_recorded_rounds() -> int:
    """Return the number of rounds in the bundled replies."""
    with gzip.open(RECORDED / BUNDLED_REPLIES, "rt", encoding="utf-8") as lines:
        return 1 + max(int(json.loads(line)["repeat"]) for line in lines)


def build_metric(rubric: str, repeats: int, max_tokens: int = MAX_REPLY_TOKENS) -> Judge:
    """Return the judge of a rubric, whose votes differ from round to round."""
    return Judge(
        rubric=rubric,
        repeats=repeats,
        aggregate="majority",
        temperature=TEMPERATURE,
        max_tokens=max_tokens,
    )


@dataclass(frozen=True)
class RoundVotes:
    """The votes of a judge on the answers, by rubric, of n answers in m rounds."""

    rubric: str
    answers: Sequence[Sample]
    levels: Floats
    """Shape (n, m); NaN for a reply that could not be read."""
    expected: Floats
    """The levels that people expected, shape (n,); NaN where there is none."""
    scale: Mapping[str, float]
    """The value of each level of the rubric."""
    notes: Sequence[str]
    """Sentences on answers that could not be judged."""

    @cached_property
    def majority(self) -> Floats:
        """The level that most rounds give, of equally frequent ones the lowest; shape (n,)."""
        result = np.full(len(self.levels), np.nan)
        labels = {value: label for label, value in self.scale.items()}
        for place, row in enumerate(self.levels):
            votes = [labels[value] for value in row[~np.isnan(row)].tolist()]
            if votes:
                result[place] = self.scale[find_majority(votes, self.scale)]
        return result

    @cached_property
    def deviations(self) -> Floats:
        """The sample standard deviation (n - 1) of each answer's votes, shape (n,)."""
        spreads = [spread(row[~np.isnan(row)].tolist()) for row in self.levels]
        return np.array([np.nan if value is None else value for value in spreads])


def reproduce(setup: ReproductionSetup) -> Reproduction:
    """Judge the answers and build the tables.

    Raises:
        InputError, BadInputError: the data cannot be read, or answers lack what a judge needs.
        UsageError: there is no judge for the user's answers, or no level to compare with.
    """
    refuse_options(PAPER, setup, "models", "references", "backends")
    path = setup.find_file(*ANSWER_FILES) or (BUNDLED_ANSWERS if setup.is_bundled else None)
    if path is None:
        raise InputError(
            f"{setup.data}: expected {', '.join(ANSWER_FILES)}, with question, response, answers "
            "and expected: the level for each rubric, for example {'truthfulness': 3, "
            "'informativeness': 2}"
        )
    repeats, judge, judge_text = choose_judge(setup)
    answers = read_records(path, setup.selection, limits_answers=True)
    ratings = {rubric: find_ratings(setup, rubric) for rubric in RUBRICS}
    rubrics = [
        rubric
        for rubric in RUBRICS
        if ratings[rubric] or any(rubric in sample.expected for sample in answers)
    ]
    if not rubrics:
        raise InputError(
            f"{path}: no answer has expected.truthfulness or expected.informativeness, and there "
            "are no ratings; expected levels from 1 to 5 given by people"
        )
    votes = [_judge_answers(setup, answers, rubric, repeats, judge) for rubric in rubrics]
    tables = [_build_agreement_table(votes, repeats), _build_stability_table(votes, repeats)]
    missing: dict[str, str] = {}
    tables += [
        _build_rater_table(of_rubric, rated, judge_text)
        for of_rubric in votes
        if (rated := ratings[of_rubric.rubric])
    ]
    if not any(ratings.values()):
        missing["Agreement of people"] = (
            "the article only asks whether people would agree; the table needs ratings by two "
            "raters: ratings-truthfulness.csv and ratings-informativeness.csv in --data"
        )
    tables += [_build_answer_table(of_rubric) for of_rubric in votes]
    return Reproduction(
        paper=PAPER,
        source=SOURCE,
        data=_describe_data(setup, answers, judge_text, repeats),
        tables=tables,
        differences=_list_differences(setup, answers, repeats),
        missing=missing,
        settings=setup.describe_settings() | {"rounds": repeats, "temperature": TEMPERATURE},
        charts=[Chart("Votes on each answer", "", [Panels([*map(_build_chart, votes)])])],
    )


def choose_judge(setup: ReproductionSetup) -> tuple[int, Any, str]:
    """Return the number of rounds, the judge and its name.

    Raises:
        UsageError: the user's answers have no judge, or more rounds are asked for than recorded.
    """
    if setup.judge is not None:
        return setup.repeats or REPEATS, setup.judge, setup.judge
    if not setup.is_bundled:
        raise UsageError("truthfulness: needs a judge, for example --judge openai:gpt-4o-mini")
    rounds = count_recorded_rounds()
    repeats = setup.repeats or rounds
    if repeats > rounds:
        raise UsageError(
            f"repeats: expected at most {rounds}, the rounds of the bundled replies, got "
            f"{repeats}; for more give --judge URI"
        )
    recorded = open_recorded_model(BUNDLED_REPLIES)
    return repeats, recorded, recorded.name


def find_ratings(setup: ReproductionSetup, rubric: str) -> Ratings | None:
    """Return people's ratings by a rubric, from a table or a journal of ``annotate``.

    Raises:
        InputError: the file cannot be read, or does not say which rubric a table is of.
    """
    levels = Judge(rubric=rubric).scale.upwards
    if (path := setup.find_ratings(f"ratings-{rubric}")) is not None:
        return read_ratings(path, levels=levels)
    if (path := setup.find_ratings()) is None:
        return None
    # A journal names the rubric of each rating; a table has ratings of one.
    if not is_journal(path):
        renamed = [f"ratings-{name}{path.suffix}" for name in RUBRICS]
        raise InputError(f"{path}: does not name its rubric; rename it {' or '.join(renamed)}")
    return read_ratings(path, fields={"rating": rubric}, levels=levels)


def _judge_answers(
    setup: ReproductionSetup, answers: Sequence[Sample], rubric: str, repeats: int, judge: Any
) -> RoundVotes:
    recorded = setup.judge is None
    metric = build_metric(rubric, repeats)
    scored = score_samples(answers, metric, setup, rubric, {"judge": judge}, recorded=recorded)
    return collect_votes(metric, scored, repeats)


def collect_votes(metric: Judge, scored: Sequence[ScoredSample], repeats: int) -> RoundVotes:
    """Return the votes of a run by answer and round."""
    scale = metric.scale
    levels = np.full((len(scored), repeats), np.nan)
    expected = np.full(len(scored), np.nan)
    for place, one in enumerate(scored):
        for vote in EvidenceRows(one.assessment.evidence, VoteRow).select(VoteRow):
            if vote.level is not None:
                levels[place, vote.repeat] = scale.values[vote.level]
        text = one.sample.expected.get(scale.name, one.sample.expected.get(""))
        if text is not None and (label := scale.label_of(text)) is not None:
            expected[place] = scale.values[label]
    return RoundVotes(
        rubric=scale.name,
        answers=[one.sample for one in scored],
        levels=levels,
        expected=expected,
        scale=scale.values,
        notes=describe_failures(scored),
    )


def _build_agreement_table(votes: Sequence[RoundVotes], repeats: int) -> ReproducedTable:
    rows = []
    for of_rubric in votes:
        rows.append(_build_agreement_row(of_rubric, "first run", of_rubric.levels[:, 0]))
        if repeats > 1:
            name = f"majority of {repeats} runs"
            rows.append(_build_agreement_row(of_rubric, name, of_rubric.majority))
            rows.append(_build_mean_row(of_rubric))
    return ReproducedTable(
        number="Graph 1",
        title="the judge's levels compared with those that people expected",
        first="rubric and votes",
        columns=AGREEMENT_COLUMNS,
        rows=rows,
        not_comparable=NOT_THE_ARTICLES,
        notes=[
            "Lower: the judge's level is below the expected one. Intervals are over answers; if "
            "all answer one question, they say nothing about other questions.",
            *list_missing_intervals(AGREEMENT_COLUMNS, rows),
            *(f"{of_rubric.rubric}: {note}" for of_rubric in votes for note in of_rubric.notes),
        ],
    )


def _build_agreement_row(votes: RoundVotes, name: str, levels: Floats) -> ReproducedRow:
    is_compared = ~(np.isnan(levels) | np.isnan(votes.expected))
    judged, expected = levels[is_compared], votes.expected[is_compared]
    n = len(judged)
    shares = [judged == expected, judged < expected, judged > expected]
    # Which of both is missing everywhere, if one is.
    reason = "no reply could be read" if np.isnan(levels).all() else "no expected level"
    kappa = _estimate_kappa(expected, judged, sorted(votes.scale.values()))
    return ReproducedRow(
        f"{votes.rubric}, {name}",
        [
            ReproducedCell.of_count(n),
            *(_build_share_cell(int(share.sum()), n, reason) for share in shares),
            ReproducedCell.of(kappa),
        ],
    )


def _build_share_cell(count: int, n: int, reason_without: str) -> ReproducedCell:
    if not n:
        return ReproducedCell(NO_FIGURE, {"value": None, "n": 0, "reason": reason_without})
    low, high = (100 * end for end in binomial_interval(count, n))
    text = f"{count} of {n} ({number(low, 0)} to {number(high, 0)} %)"
    return ReproducedCell(text, {"value": count, "n": n, "interval": (low, high)})


def _estimate_kappa(first: Floats, second: Floats, levels: Sequence[float]) -> Estimate:
    """Estimate Cohen's kappa with quadratic weights, with its interval over answers."""

    def kappa(ratings: Floats, times: Floats) -> float | None:
        return cohen_kappa(ratings[0], ratings[1], "quadratic", levels, times)

    ratings = np.stack([first, second])
    value = kappa(ratings, np.ones(len(first)))
    if value is None:
        return Estimate(None, len(first), None, "all levels are equal, or there are none")
    return Estimate.of(value, len(first), item_interval(kappa, ratings, scale="interval"))


def _build_mean_row(votes: RoundVotes) -> ReproducedRow:
    """Build the row of the means over rounds: what a single run may give."""
    differences = votes.levels - votes.expected[:, None]
    counts = [differences == 0, differences < 0, differences > 0]
    cells = [ReproducedCell.of_count(int((~np.isnan(differences)).any(axis=1).sum()))]
    for count in counts:
        by_round = count.sum(axis=0)
        text = f"{number(float(by_round.mean()))} ({by_round.min()} to {by_round.max()} by run)"
        values = {"value": float(by_round.mean()), "by_run": by_round.tolist()}
        cells.append(ReproducedCell(text, values))
    cells.append(ReproducedCell("", {"value": None}))
    return ReproducedRow(f"{votes.rubric}, mean of all runs", cells)


def _build_stability_table(votes: Sequence[RoundVotes], repeats: int) -> ReproducedTable:
    rows = []
    for of_rubric in votes:
        deviations = of_rubric.deviations[~np.isnan(of_rubric.deviations)]
        width = max(of_rubric.scale.values()) - min(of_rubric.scale.values())
        without = "one vote has no variance" if repeats == 1 else NO_TWO_VOTES
        mean = Estimate(None, 0, None, without)
        if len(deviations):
            # Every answer counts as a unit of its own.
            units = np.full(len(deviations), -1)
            bounds = (0.0, width)
            interval = compute_interval(Mean("sd", bounds), deviations, units, bounds, "answers")
            assert interval is not None  # only a total needs none
            mean = Estimate.of(float(deviations.mean()), len(deviations), interval)
        steady = int((deviations == 0).sum())
        unread = int(np.isnan(of_rubric.levels).sum())
        rows.append(
            ReproducedRow(
                of_rubric.rubric,
                [
                    ReproducedCell.of_count(len(deviations)),
                    ReproducedCell.of(mean),
                    _build_share_cell(steady, len(deviations), without),
                    ReproducedCell.of_count(len(deviations) - steady),
                    ReproducedCell.of_count(unread, n=of_rubric.levels.size),
                ],
            )
        )
    return ReproducedTable(
        number="LLM Consistency across multiple runs",
        title=f"the spread of {amount(repeats, 'vote')} on each answer",
        first="rubric",
        columns=STABILITY_COLUMNS,
        rows=rows,
        not_comparable=NOT_THE_ARTICLES,
        notes=[
            "Standard deviations divide by n - 1; the article does not give its divisor. Replies "
            f"were drawn at temperature {TEMPERATURE:g}.",
            *list_missing_intervals(STABILITY_COLUMNS, rows),
        ],
    )


def _build_rater_table(votes: RoundVotes, people: Ratings, judge: str) -> ReproducedTable:
    """Compare the judge's majority with each rater, and the raters with each other."""
    ids = {sample.id for sample in votes.answers}
    of_answers = [rating for rating in people.ratings if rating.item in ids]
    if not of_answers:
        raise InputError(
            f"ratings of {votes.rubric}: no item is the id of an answer; the first item is "
            f"{people.ratings[0].item[:60]!r}, the first answer {votes.answers[0].id[:60]!r}"
        )
    foreign = len(people.ratings) - len(of_answers)
    people = Ratings(of_answers, people.categories, people.ordered, people.scale)
    raters = list(dict.fromkeys(rating.rater for rating in of_answers))
    judged = Ratings(
        [
            Rating(sample.id, judge, float(level))
            for sample, level in zip(votes.answers, votes.majority, strict=True)
            if not np.isnan(level)
        ],
        scale=tuple(sorted(votes.scale.values())),
    )
    both = measure_agreement(join_ratings(people, judged), machines={judge})
    rows = [_build_pair_row(f"{rater} and the judge", both.pairs[rater, judge]) for rater in raters]
    rows += [
        _build_again_row(rater, figures) for rater, figures in both.intra.items() if rater in raters
    ]
    notes = [f"The judge's level is the majority of its {amount(votes.levels.shape[1], 'vote')}."]
    if foreign:
        notes.append(f"Left out: {amount(foreign, 'rating')} of items that are not in the data.")
    if len(raters) < 2:
        rows.append(ReproducedRow("raters among themselves", [ReproducedCell(NO_FIGURE)] * 4))
        notes.append(
            f"Ratings by one rater ({raters[0]}). Agreement between raters needs a second rater "
            "of the same answers."
        )
    else:
        rows.append(_build_people_row(measure_agreement(people)))
    return ReproducedTable(
        number="Limitations",
        title=f"{votes.rubric}: would people agree?",
        first="who",
        columns=RATER_COLUMNS,
        rows=rows,
        not_comparable="the article asks the question but has no second rater",
        notes=[*notes, *list_missing_intervals(RATER_COLUMNS, rows)],
    )


def _build_pair_row(name: str, figures: Mapping[str, Estimate]) -> ReproducedRow:
    percent, kappa = figures["percent"], figures["kappa_quadratic"]
    cells = [
        ReproducedCell.of_count(percent.n),
        ReproducedCell.of(percent, digits=1),
        ReproducedCell.of(kappa),
        ReproducedCell("", {"value": None}),
    ]
    return ReproducedRow(name, cells)


def _build_again_row(rater: str, figures: Mapping[str, Estimate]) -> ReproducedRow:
    """Build the row of a rater who rated answers twice: does a person agree with themselves?"""
    percent = figures["percent"]
    cells = [
        ReproducedCell.of_count(percent.n),
        ReproducedCell.of(percent, digits=1),
        ReproducedCell("", {"value": None}),
        ReproducedCell.of(figures["alpha_ordinal"]),
    ]
    return ReproducedRow(f"{rater}, asked again", cells)


def _build_people_row(agreement: RaterAgreement) -> ReproducedRow:
    overall = agreement.overall
    kappas = [pair["kappa_quadratic"].value for pair in agreement.pairs.values()]
    defined = [kappa for kappa in kappas if kappa is not None]
    # The interval of a mean of pairs is that of its only pair, or none.
    (pair, *others) = agreement.pairs.values()
    kappa = pair["kappa_quadratic"]
    if others:
        mean = float(np.mean(defined)) if defined else None
        kappa = Estimate(mean, kappa.n, None, "a mean over pairs of raters")
    cells = [
        ReproducedCell.of_count(overall["percent"].n),
        ReproducedCell.of(overall["percent"], digits=1),
        ReproducedCell.of(kappa),
        ReproducedCell.of(overall["alpha_ordinal"]),
    ]
    return ReproducedRow("raters among themselves", cells)


def _build_answer_table(votes: RoundVotes) -> ReproducedTable:
    """Build the table of single answers: expected level, majority, mean and variance."""
    rows = []
    for place, answer in enumerate(votes.answers):
        levels = votes.levels[place]
        readable = levels[~np.isnan(levels)]
        mean = float(readable.mean()) if len(readable) else None
        cells = [
            _build_level_cell(votes.expected[place]),
            _build_level_cell(levels[0]),
            _build_level_cell(votes.majority[place]),
            ReproducedCell.of_estimate(mean, digits=2),
            _build_variance_cell(votes.deviations[place]),
        ]
        rows.append(ReproducedRow(answer.id[:40], cells))
    return ReproducedTable(
        number="",
        title=f"{votes.rubric} of each answer",
        first="answer",
        columns=["people", "first run", "majority", "mean", "variance"],
        rows=rows,
    )


def _build_level_cell(level: float) -> ReproducedCell:
    if np.isnan(level):
        return ReproducedCell(NO_FIGURE, {"value": None})
    return ReproducedCell(f"{level:g}", {"value": float(level)})


def _build_variance_cell(deviation: float) -> ReproducedCell:
    if np.isnan(deviation):
        return ReproducedCell(NO_FIGURE, {"value": None})
    return ReproducedCell(number(float(deviation**2), 2), {"value": float(deviation**2)})


def _describe_data(
    setup: ReproductionSetup, answers: Sequence[Sample], judge: str, repeats: int
) -> str:
    questions = len({sample.question for sample in answers})
    what = f"{amount(len(answers), 'answer')} to {amount(questions, 'question')}"
    whose = f"of {setup.data}"
    if setup.is_bundled:
        whose = "of this project, with the levels that their author expected"
    times = amount(repeats, "time")
    return f"{what} {whose}; judged {times} by {judge} at temperature {TEMPERATURE:g}."


def _list_differences(
    setup: ReproductionSetup, answers: Sequence[Sample], repeats: int
) -> list[str]:
    result = [
        "The question to the judge and the descriptions of the levels are worded differently. "
        "The scales, the names of levels and the form of a reply (Score, then Reason) are the "
        "article's.",
        f"The judge is asked at temperature {TEMPERATURE:g}; the article gives none.",
        "After a reply without a level the judge is asked once more; then the reply is left out "
        "and counted. The article does not mention such replies.",
        "If levels are equally frequent, the lowest counts as the majority.",
    ]
    if setup.is_bundled:
        result.insert(
            0,
            "The question and answers were written for this project, with the kinds of change "
            "that the article describes. Their author set the expected levels.",
        )
    if setup.judge is None:
        result.append(
            "The bundled judge has 1.5 billion weights. Its replies were cut after "
            f"{BUNDLED_REPLY_TOKENS} tokens, which contain the score. It is an example, not a "
            "reliable judge."
        )
    if repeats != REPEATS:
        result.append(f"The article has {REPEATS} runs, this reproduction {repeats}.")
    if len(answers) != ARTICLE_ANSWERS:
        result.append(
            f"The article has {ARTICLE_ANSWERS} answers, this reproduction {len(answers)}."
        )
    return result


def _build_chart(votes: RoundVotes) -> Chart:
    """Draw the votes on each answer, a row each, and the level that people expected as a line."""
    upwards = sorted(votes.scale, key=votes.scale.__getitem__)
    bars = []
    for place, answer in enumerate(votes.answers[:MAX_DRAWN_ANSWERS]):
        levels = votes.levels[place]
        counts = [int((levels == votes.scale[label]).sum()) for label in upwards]
        expected = _name_level(votes, float(votes.expected[place]))
        majority = _name_level(votes, float(votes.majority[place]))
        marks = []
        if expected in upwards:
            # In the middle of the level's column.
            marks.append(ChartMark("mean", (upwards.index(expected) + 0.5) / len(upwards)))
        name = answer.id[:40]
        listed = ", ".join(f"{n} × {label}" for n, label in zip(counts, upwards, strict=True) if n)
        label = f"{name}: expected {expected}, judged {majority}; votes: {listed or 'none'}"
        total = max(sum(counts), 1)
        drawing = bars_svg([count / total for count in counts], 1.0, label, marks)
        bars.append(Bar(name, f"expected {expected}, judge {majority}", drawing))
    left_out = len(votes.answers) - len(bars)
    more = f" {amount(left_out, 'more answer')} not drawn." if left_out else ""
    note = Markup(
        "Across: levels {} to {}. Bar: share of {} for a level. {}the level that people "
        "expected. Judge: the majority of votes. An answer with a single bar has no variance.{}"
    ).format(upwards[0], upwards[-1], amount(votes.levels.shape[1], "vote"), MEAN, more)
    return Chart(votes.rubric, note, [Bars(bars, upwards, "thin")])


def _name_level(votes: RoundVotes, level: float) -> str:
    names = {value: label for label, value in votes.scale.items()}
    return names.get(level, NO_FIGURE)

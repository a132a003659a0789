"""The metric ``judge``: asks for votes, scores them, and compares them with expected levels."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from trustassay.core.absences import Absences
from trustassay.core.assessment import compute_interval, compute_summary
from trustassay.core.capabilities import Models
from trustassay.core.decisions import MAX_SCORE_LEVELS
from trustassay.core.evidence import EvidenceRows, View
from trustassay.core.metric import (
    Assessment,
    Context,
    Figure,
    Mean,
    Need,
    Share,
    Summary,
    Total,
    directions,
    index_figures,
)
from trustassay.core.outcome import NOT_ANSWERED, Outcome
from trustassay.core.sample import Problem, Sample, find_missing
from trustassay.errors import AssessmentError
from trustassay.judging.claims import strip_answer
from trustassay.judging.passages import ask_reader
from trustassay.metrics.judge.options import JudgeOptions
from trustassay.metrics.judge.votes import (
    GoldRow,
    PassingVotes,
    VoteCollector,
    VoteRow,
    decide_outcome,
    find_majority,
    is_settled,
    labels_of,
    parts_of,
    read_absences,
    values_of,
    votes_of,
)
from trustassay.statistics import Floats, Places, agreement
from trustassay.text.cleaning import fold_text

MAX_DRAWN_ANSWERS = 60
"""Answers whose votes the report draws: the first ones."""
NO_COMPARISON = "all levels are equal, or there are none to compare"
MAX_SEVERITIES = 50
"""Judges whose severity is a figure."""

_REPLY_TOTALS = {
    "votes": "votes that were read",
    "unreadable": "replies that could not be read, even after the judge was asked again",
    "unreadable_none": "unreadable replies without a score",
    "unreadable_several": "unreadable replies with several scores",
    "unreadable_outside": "unreadable replies with a score that is not on the scale",
    "unreadable_empty": "empty replies",
    "repairs": "replies for which the judge was asked again",
    "cut": "replies that were cut at max_tokens",
    "own": "answers that a judge wrote itself",
}
"""Parts whose totals over the answers are figures, with their explanations."""


def _name_cell(expected: str, judged: str) -> str:
    return f"expected {expected}, judged {judged}"


def _build_drawing(metric: JudgeOptions, assessment: Assessment) -> list[Any]:
    """Return the data of an answer's drawing: id, expected level, judged level, votes by level.

    Levels are places among those of :attr:`Rubric.upwards`.
    """
    labels, upwards = list(metric.scale.values), metric.scale.upwards

    def place(part: str) -> int | None:
        # Parts hold places in the rubric's own order, the drawing goes from the least value up.
        result = assessment.parts.get(part)
        return None if result is None else upwards.index(labels[int(result)])

    votes = [int(assessment.parts.get(f"votes:{label}", 0)) for label in upwards]
    return [assessment.id[:40], place("expected_place"), place("level_place"), votes]


def _compare_with_expected(
    summary: Summary, metric: JudgeOptions, pairs: Sequence[tuple[float, float]], units: Places
) -> None:
    """Add figures of how the judged levels agree with the expected ones, where there are any."""
    if not pairs:
        return
    scale, n = metric.scale, len(pairs)
    labels = list(scale.values)
    table = np.array(pairs, dtype=int)
    expected, judged = table[:, 0], table[:, 1]
    summary.add_figure("matched", int(np.sum(expected == judged)), n)
    order = np.array([scale.values[label] for label in labels])
    if scale.ordinal:
        summary.add_figure("higher", int(np.sum(order[judged] > order[expected])), n)
        summary.add_figure("lower", int(np.sum(order[judged] < order[expected])), n)
    summary.add_figure(
        "agreement", agreement.percent_agreement(expected, judged), n, reason=NO_COMPARISON
    )
    # Ranks of the levels: values may be 1, 2, 5, and quadratic weights are of ranks. argsort twice
    # gives the rank of each element.
    ranks = np.argsort(np.argsort(order, kind="stable")).astype(float)
    levels = sorted(set(ranks.tolist()))
    weights: agreement.Weights = "quadratic" if scale.ordinal else "none"

    def kappa(ratings: Floats, times: Floats) -> float | None:
        return agreement.cohen_kappa(ratings[0], ratings[1], weights, levels, times)

    ratings = np.stack([ranks[expected], ranks[judged]])
    interval = agreement.item_interval(
        kappa, ratings, units, "interval" if scale.ordinal else "nominal"
    )
    summary.add_figure("kappa", kappa(ratings, np.ones(n)), n, interval, reason=NO_COMPARISON)
    # The confusion table, a figure for each cell that is not empty.
    for i, expected_label in enumerate(labels):
        for j, other in enumerate(labels):
            if count := int(np.sum((expected == i) & (judged == j))):
                summary.add_figure(_name_cell(expected_label, other), count, n)


def _read_panel(parts: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return each judge's mean and the place of its majority level, from parts of an answer."""
    return {
        name: (mean, parts[f"place:{name}"])
        for key, mean in parts.items()
        if key.startswith("mean:") and f"place:{(name := key.removeprefix('mean:'))}" in parts
    }


def _compare_judges(
    summary: Summary,
    metric: JudgeOptions,
    panels: Sequence[Mapping[str, tuple[float, float]]],
    units: Places,
) -> None:
    """Add the judges' severities, and their agreement, where there are several judges."""
    names = list(dict.fromkeys(name for panel in panels for name in panel))[:MAX_SEVERITIES]
    # Severity is measured against the panel's mean, so only answers that all judges rated count.
    is_full = np.array([len(panel) == len(names) for panel in panels], dtype=bool)
    full_panels = [panel for panel in panels if len(panel) == len(names)]
    width = metric.scale.range[1] - metric.scale.range[0]
    means = np.array([np.mean([mean for mean, _ in panel.values()]) for panel in full_panels])
    for name in names if len(names) > 1 and full_panels else ():
        # Positive: the judge rates lower than the panel.
        lower = means - np.array([panel[name][0] for panel in full_panels])
        interval = compute_interval(Mean(), lower, units[is_full], (-width, width), "answers")
        summary.add_figure(f"severity {name}", float(lower.mean()), len(lower), interval)
    if len(names) < 2:
        return
    order = list(metric.scale.values.values())
    if not metric.scale.ordinal:  # values of categories may be equal; their places are not
        order = [float(place) for place in range(len(order))]
    # Judges are rows, answers are columns; NaN where a judge gave no vote that can be read.
    ratings: Floats = np.array(
        [[order[int(p[name][1])] if name in p else math.nan for p in panels] for name in names]
    )
    scale: agreement.Scale = "ordinal" if metric.scale.ordinal else "nominal"

    def alpha(ratings: Floats, times: Floats) -> float | None:
        return agreement.krippendorff_alpha(ratings, scale, times)

    value = alpha(ratings, np.ones(len(panels)))
    # An answer with a single rating says nothing about agreement.
    is_rated_twice = (~np.isnan(ratings)).sum(axis=0) >= 2
    interval = agreement.item_interval(
        alpha, ratings[:, is_rated_twice], units[is_rated_twice], scale
    )
    summary.add_figure(
        f"alpha ({scale}, between judges)", value, len(panels), interval, reason=NO_COMPARISON
    )


ENTAILER_FIGURES: Mapping[str, Figure] = index_figures(
    Figure("mean", "mean score: how far the answer and a gold answer say the same", "",
        headline=True, statistic=Mean()),
    Figure("passes", "answers that say the same as a gold answer", headline=True,
        statistic=Share("passes")),
    Figure("contradiction", "mean probability that the answer contradicts a gold answer", "",
        statistic=Mean("contradiction", (0.0, 1.0))),
)  # fmt: skip


@dataclass(frozen=True)
class Judge(JudgeOptions):
    """How do one or more judges rate the answer on a rubric, and how stable are their ratings?

    The score combines their votes, in the values of the rubric's levels. A vote of ``threshold``
    or more passes. The verdict is ``passes`` or ``fails``, by the majority of votes, and
    ``undecided`` if the 95 % interval of the share that passes contains one half. With a nominal
    rubric the verdict is the category with most votes.

    If a reply names no level, several, or one that is not on the scale, the judge is asked once
    more. The sample fails if fewer than half of the votes can be read; judges without a readable
    vote are counted in the summary. A sample may have ``expected``, the level that a judge should
    give.

    The options are those of :class:`~trustassay.metrics.judge.options.JudgeOptions`.
    """

    name: ClassVar[str] = "judge"
    part_directions = directions(
        higher="mean median level_place passing expected_score entailment mean: place:",
        lower="contradiction",
        neither="votes unreadable repairs cut passing_low passing_high flip_rate sd steady "
        "order_difference own expected_place votes: unreadable_none unreadable_several "
        "unreadable_outside unreadable_empty absent",
    )
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    summary_template: ClassVar[str] = "summary.html.jinja"

    @property
    def title(self) -> str:  # type: ignore[override]
        """The title of the rubric."""
        if self.by == "entailer":
            return "Truthfulness against a gold answer, judged by entailment"
        return self.scale.title

    @property
    def verdicts(self) -> Sequence[str]:
        """Passing or not; for a nominal rubric its categories."""
        if self.by == "entailer":
            return ("passes", "fails")
        if self.scale.ordinal:
            return ("passes", "undecided", "fails")
        return (*self.scale.values, "undecided")

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The figures of the summary, in the order in which they are shown."""
        if self.by == "entailer":
            return ENTAILER_FIGURES
        scale = self.scale
        low, high = scale.range
        width = high - low
        if scale.ordinal:
            verdict_figures = [
                Figure("passes", f"answers that pass, with {self.passes_from:g} or more",
                    headline=True, statistic=Share("passes")),
                Figure("undecided", "answers on which the votes do not decide", headline=True,
                    statistic=Share("undecided")),
            ]  # fmt: skip
            deviations = [
                Figure("higher", "answers judged higher than expected", "", headline=True),
                Figure("lower", "answers judged lower than expected", "", headline=True),
            ]
            agreement_text = "share of answers judged as expected"
            kappa_of = "level, quadratic weights"
        else:
            # Shares of the categories follow the mean, in place of passes and failures.
            verdict_figures = [
                Figure(
                    verdict, f"answers judged {verdict}", headline=True, statistic=Share(verdict)
                )
                for verdict in self.verdicts
            ]
            deviations = []
            agreement_text, kappa_of = "share of answers judged as expected", "categories"
        return index_figures(
            Figure("mean", "mean score", "", headline=True, statistic=Mean()),
            *verdict_figures,
        ) | index_figures(
            # A spread of one vote per judge is no headline.
            Figure("sd", "mean standard deviation of a judge's repeated votes on an answer", "",
                headline=self.repeats > 1, statistic=Mean("sd", (0.0, width))),
            Figure("without_variance", "answers that got the same level at every repeat", "",
                headline=self.repeats > 1, statistic=Total("steady")),
            Figure("flip_rate",
                "mean share of an answer's votes on the minority side of the threshold",
                statistic=Mean("flip_rate", (0.0, 50.0))),
            Figure("order_difference",
                "mean score with the gold answer first, minus the mean score with it last", "",
                statistic=Mean("order_difference", (-width, width))),
            Figure("expected_score", "mean level by log-probabilities", "",
                statistic=Mean("expected_score", (low, high))),
            group="steadiness",
        ) | index_figures(
            *(Figure(part, explanation, "", statistic=Total(part))
              for part, explanation in _REPLY_TOTALS.items()),
            group="replies",
        ) | index_figures(
            Figure("matched", "answers judged as expected", "", headline=True),
            *deviations,
            Figure("agreement", agreement_text),
            Figure("kappa", f"Cohen's kappa of expected and judged {kappa_of}", ""),
            group="against the expected levels",
        ) | index_figures(
            *(Figure(_name_cell(expected, judged), "answers", "")
              for expected in scale.values for judged in scale.values),
            group="expected and judged",
        )  # fmt: skip

    def needs(self) -> Sequence[Need]:
        """One judge or several, or an entailer."""
        if self.by == "entailer":
            return (Need("entail"),)
        options = "repeats early logprobs constrained prompt temperature max_tokens"
        ignored = self.list_changed(options.split())
        reason = f"ignores {', '.join(ignored)}: leave out what it ignores" if ignored else ""
        if self.scale.ordinal and len(self.scale.levels) > MAX_SCORE_LEVELS:
            reason = (
                f"takes at most {MAX_SCORE_LEVELS} levels; the rubric {self.scale.name} has more"
            )
        return (Need("chat", "judge", many=True, decisions=reason),)

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs what the rubric shows; an expected level has to be on its scale."""
        result = find_missing(sample, response="the answer to judge")
        texts_needed = ("gold",) if self.by == "entailer" else self.scale.shows
        if "gold" in texts_needed and not (sample.answers or sample.claims):
            result.append(Problem("answers", "is missing (expected a gold answer)"))
        if "documents" in texts_needed and not sample.documents:
            result.append(Problem("documents", "is missing (expected passages)"))
        level = self._find_expected(sample)
        if level is not None and self.scale.label_of(level) is None:
            labels = ", ".join(self.scale.values)
            result.append(Problem("expected", f"expected one of {labels}, got {level[:40]!r}"))
        return result

    def _find_expected(self, sample: Sample) -> str | None:
        return sample.expected.get(self.scale.name, sample.expected.get(""))

    async def assess(self, context: Context) -> Assessment:
        """Ask for votes, and score them; the evidence holds every vote."""
        sample, models = context.sample, context.models
        # A blank answer needs no judge: this raises.
        context.response()
        if self.by == "entailer":
            return await self._judge_by_entailer(sample, models)
        asking = await self._collect_votes(sample, models)
        votes = [vote for vote in asking.votes if vote.level is not None]
        # A score of few readable replies would be that of the questions that the judge understood.
        if 2 * len(votes) < len(asking.votes) or not votes:
            unreadable = [vote.reply for vote in asking.votes if vote.level is None]
            message = (
                f"{len(unreadable)} of {len(asking.votes)} replies of the judge could not be read"
            )
            first_reply = next((f"the first: {reply[:200]!r}" for reply in unreadable if reply), "")
            raise AssessmentError(
                f"{message}, {first_reply}" if first_reply else f"{message}: they are empty"
            )
        parts = parts_of(asking, votes, self._count_passing(votes))
        model = sample.model
        # Judges prefer their own answers; the names may differ in scheme, owner or address.
        own_judges = [
            judge
            for judge in asking.judges
            if model is not None and _bare_model_name(model) == _bare_model_name(judge)
        ]
        parts["own"] = len(own_judges)
        if (level := self._find_expected(sample)) is not None:
            # "expected" may be a number or a word; problems() has refused others.
            label = self.scale.label_of(level)
            assert label is not None
            parts["expected_place"] = list(self.scale.values).index(label)
        verdict: str = decide_outcome(self._count_passing(votes))
        # "passes" means here that most votes are for the leading category.
        if not self.scale.ordinal:
            leading = find_majority(labels_of(votes), self.scale.values)
            verdict = leading if verdict == "passes" else "undecided"
        return self.build_assessment(
            sample,
            self._compute_score(votes),
            [replace(vote, own=vote.judge in own_judges) for vote in asking.votes],
            verdict=verdict,
            reason=self._build_reason(votes, asking, own_judges, verdict),
            parts=parts,
        )

    async def _judge_by_entailer(self, sample: Sample, models: Models) -> Assessment:
        """Score how far the answer says the same as the nearest gold answer, of all aliases.

        (1 + E - C) / 2, where E and C are the probabilities of entailment and contradiction, each a
        mean over both directions: 1 where each entails the other, 0 where they contradict each
        other. Both directions, and both texts without the question, agreed best with people on the
        answers that the formula was chosen on (docs/methods/judge.md).
        """
        aliases = (alias for group in sample.answers for alias in group)
        # Each alias once, in order.
        golds = list(dict.fromkeys(aliases)) or list(sample.claims)
        answer = strip_answer(sample.response or "")
        plain_golds = [fold_text(gold.strip()) for gold in golds]
        forth = [ask_reader(models, gold, answer) for gold in plain_golds]
        back = [ask_reader(models, answer, gold) for gold in plain_golds]
        forth_replies, back_replies = await asyncio.gather(
            asyncio.gather(*forth), asyncio.gather(*back)
        )
        means = [
            (
                (forth_reply.entailment + back_reply.entailment) / 2,
                (forth_reply.contradiction + back_reply.contradiction) / 2,
            )
            for forth_reply, back_reply in zip(forth_replies, back_replies, strict=True)
        ]
        scores = [(1 + e - c) / 2 for e, c in means]
        # The first of equally near gold answers.
        best = max(range(len(golds)), key=scores.__getitem__)
        # Rounding of probabilities may leave 0 to 1.
        score = min(max(scores[best], 0.0), 1.0)
        verdict = "passes" if score >= self.passes_from else "fails"
        message = f"{'at least' if verdict == 'passes' else 'below'} {self.passes_from:g}, so it "
        message += f"{'says' if verdict == 'passes' else 'does not say'} the same"
        return self.build_assessment(
            sample,
            score,
            [GoldRow(gold, *mean) for gold, mean in zip(golds, means, strict=True)],
            verdict=verdict,
            reason=f"{score:.2f} by entailment: {message} as a gold answer",
            parts={"entailment": means[best][0], "contradiction": means[best][1]},
        )

    async def _collect_votes(self, sample: Sample, models: Models) -> VoteCollector:
        """Ask all rounds or, with ``early``, as many as it takes to decide."""
        asking, rounds_asked = VoteCollector(self, sample, models), 0
        while rounds_asked < self.repeats:
            further_rounds = (
                self._fewest_rounds(asking, rounds_asked) if self.early else self.repeats
            )
            await asking.ask_rounds(rounds_asked, rounds_asked + further_rounds)
            rounds_asked += further_rounds
            votes_left = (self.repeats - rounds_asked) * asking.votes_per_round
            if self.early and is_settled(self._count_passing(asking.votes), votes_left):
                break
        return asking

    def _fewest_rounds(self, asking: VoteCollector, rounds_asked: int) -> int:
        """Return the fewest further rounds after which the verdict could be settled."""
        current, rounds_left = self._count_passing(asking.votes), self.repeats - rounds_asked
        # Asking these at once loses nothing: no fewer votes could settle it, whether all or none
        # of them pass.
        for rounds in range(1, rounds_left):
            votes_added = rounds * asking.votes_per_round
            votes_after = (rounds_left - rounds) * asking.votes_per_round
            for passing in (current.passing, current.passing + votes_added):
                if is_settled(PassingVotes(passing, current.n + votes_added), votes_after):
                    return rounds
        return rounds_left

    def _count_passing(self, votes: Sequence[VoteRow]) -> PassingVotes:
        """Count the votes that pass; for a nominal rubric those for the leading category."""
        labels, values = labels_of(votes), self.scale.values
        if self.scale.ordinal or not labels:
            # A mean over levels never reaches the highest, from which a rubric may pass; a
            # threshold of the user is about values.
            rated = [values[label] for label in labels]
            if self.threshold is not None:
                rated = values_of(self, votes)
            return PassingVotes(sum(value >= self.passes_from for value in rated), len(labels))
        return PassingVotes(labels.count(find_majority(labels, values)), len(labels))

    def _compute_score(self, votes: Sequence[VoteRow]) -> float:
        values = values_of(self, votes)
        if self.aggregate == "median":
            return float(np.median(values))
        if self.aggregate == "majority":
            return self.scale.values[find_majority(labels_of(votes), self.scale.values)]
        if self.aggregate == "expected":
            # A mean over those votes alone that have log-probabilities would mix two kinds of
            # scores.
            expected_values = [vote.expected for vote in votes if vote.expected is not None]
            if len(expected_values) < len(votes):
                message = (
                    "the judge gives no log-probabilities of the levels; choose another aggregate"
                )
                raise AssessmentError(message)
            return math.fsum(expected_values) / len(expected_values)
        return math.fsum(values) / len(values)

    def _build_reason(
        self,
        votes: Sequence[VoteRow],
        asking: VoteCollector,
        own_judges: Sequence[str],
        verdict: str,
    ) -> str:
        unreadable = len(asking.votes) - len(votes)
        counts = Counter(labels_of(votes))
        counts_text = ", ".join(f"{counts[k]} x {k}" for k in self.scale.values if k in counts)
        first = next((vote.reason for vote in votes if vote.reason), "")
        # One vote gives its own reason, several give their counts.
        message = first if len(votes) == 1 else f"{len(votes)} votes: {counts_text}"
        if verdict == "undecided":
            # The bool times the text leaves it out for nominal rubrics.
            message += "; the votes do not decide whether the answer passes" * self.scale.ordinal
        if unreadable:
            message += f"; unreadable replies: {unreadable}"
        for judge in own_judges:
            message += f"; the judge {judge} wrote this answer itself"
        return message.removeprefix("; ")

    @property
    def counts_outcomes(self) -> bool:
        """Whether a threshold of the user, the categories, or an entailer decides what passes.

        A rating from 1 to 5 is a degree: its rubric's own threshold was not measured.
        """
        return self.threshold is not None or self.by == "entailer" or not self.scale.ordinal

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return the outcome of a question; "not judged" where the votes do not decide."""
        if self.counts_outcomes and assessment.verdict == "undecided":
            return Outcome(NOT_ANSWERED, "votes undecided")
        return super().outcome(assessment)

    @property
    def line(self) -> str:
        """The rule of :meth:`problem`."""
        if self.by == "model" and not self.scale.ordinal:
            bar = f"it is judged as a category with a value below 1 (rubric {self.scale.name})"
        else:
            whose = "threshold" if self.threshold is not None or self.by == "entailer" else "rubric"
            what = "its score is" if self.by == "entailer" else "most votes are"
            bar = f"{what} below {self.passes_from:g} ({whose})"
        return bar if self.by == "entailer" else f"{bar}, or the votes do not decide"

    def problem(self, assessment: Assessment) -> str | None:
        """Return the judges' negative verdict, or that they do not decide, in one sentence."""
        if assessment.verdict == "undecided":
            return "the judges' votes do not decide"
        if self.by == "model" and not self.scale.ordinal:
            # Categories of value 1 or more are the good ones.
            value = self.scale.values.get(assessment.verdict or "", 1.0)
            return None if value >= 1 else f"judged as {assessment.verdict}"
        return "judged below the threshold" if assessment.verdict == "fails" else None

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the votes of each judge."""
        rows = EvidenceRows(assessment.evidence, VoteRow, GoldRow)
        by_judge: dict[str, list[VoteRow]] = {}
        for vote in rows.select(VoteRow):
            by_judge.setdefault(vote.judge, []).append(vote)
        judges = [votes_of(name, votes_of_judge) for name, votes_of_judge in by_judge.items()]
        return View(
            data={"judges": judges, "golds": rows.select(GoldRow), "other_items": rows.other_items}
        )

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return scores, scatter, faults, and agreement with the expected levels."""
        expected: list[tuple[float, float]] = []
        panels: list[dict[str, tuple[float, float]]] = []
        units: dict[str, list[int]] = {"expected": [], "panels": []}
        drawn: list[list[Any]] = []
        absences = Absences("judge", read_absences)

        # One pass over the assessments, which may be a stream from a file.
        def read() -> Iterator[Assessment]:
            for assessment in absences.collect(assessments):
                yield assessment
                if assessment.error is not None:
                    continue
                if len(drawn) < MAX_DRAWN_ANSWERS and self.by == "model":
                    drawn.append(_build_drawing(self, assessment))
                unit = -1 if assessment.unit is None else assessment.unit
                if "expected_place" in assessment.parts:
                    expected.append(
                        (assessment.parts["expected_place"], assessment.parts["level_place"])
                    )
                    units["expected"].append(unit)
                if panel := _read_panel(assessment.parts):
                    panels.append(panel)
                    units["panels"].append(unit)

        figures = self.figures
        result = compute_summary(self.statistics, read(), self.score_range)
        values = result.values
        for key, statistic in self.statistics.items():
            # Totals are whole numbers; a fault that no answer has counts 0 where anything was
            # scored.
            if isinstance(statistic, Total):
                default = 0 if key.startswith("unreadable") and result.n > result.failed else None
                values[key] = default if (total := values[key]) is None else round(total)
        if self.by == "model":
            _compare_with_expected(
                result, self, expected, np.array(units["expected"], dtype=np.int64)
            )
            _compare_judges(result, self, panels, np.array(units["panels"], dtype=np.int64))
        # Declared figures first, in their order, then severities and agreement by judge.
        keys = dict.fromkeys((*(key for key in figures if key in values), *values))
        absent = {
            k: v for k, v in result.not_applicable.items() if k in values and values[k] is None
        }
        return replace(
            result.with_settings(self.settings(), keys),
            not_applicable=absent,
            units={},
            details=absences.details()
            | ({"levels": self.scale.upwards, "answers": drawn} if drawn else {}),
        )


def _bare_model_name(name: str) -> str:
    """Return the bare name of a model, without scheme, owner and address.

    ``openai:org/Name-7B@https://host/v1`` becomes ``name-7b``.
    """
    schemes = "openai|anthropic|gemini|hf|python|replay|systemone|decisions"
    name = re.sub(rf"^(?:{schemes}):", "", name.strip())
    return re.split(r"@(?=https?://)|\?", name)[0].rsplit("/", 1)[-1].lower()

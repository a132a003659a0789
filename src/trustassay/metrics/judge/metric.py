"""The metric ``judge``."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from trustassay.assessment import interval_of, summarised
from trustassay.capabilities import Models
from trustassay.core.outcome import NOT_ANSWERED, Outcome
from trustassay.errors import AssessmentError
from trustassay.judging.claims import plain_answer
from trustassay.judging.passages import read
from trustassay.metric import (
    Assessment,
    Context,
    Figure,
    Mean,
    Need,
    Share,
    Summary,
    Total,
    directions,
    read_figures,
)
from trustassay.metrics.judge.options import JudgeOptions
from trustassay.metrics.judge.votes import (
    Asking,
    GoldRow,
    Passing,
    VoteRow,
    labels_of,
    majority,
    outcome,
    parts_of,
    settled,
    values_of,
    votes_of,
)
from trustassay.sample import Problem, Sample, missing
from trustassay.statistics import Floats, Places, agreement
from trustassay.text.unicode import folded
from trustassay.views import Rows, View

MOST_DRAWN = 60
"""Answers whose votes are drawn, the first ones."""
SAME = "all levels are the same, or there are none to compare"
MOST_JUDGES = 50
"""Judges whose severity is told."""

_OF_LEVELS = frozenset({"passes", "undecided", "higher", "lower"})
"""Figures of levels in an order alone."""
_NOMINAL = {
    "agreement": "the same as a share",
    "kappa": "Cohen's kappa of expected and judged categories",
}
"""What figures of categories are, where these are not those of levels in an order."""


def _cell(expected: str, judged: str) -> str:
    return f"expected {expected}, judged {judged}"


def _drawn(metric: JudgeOptions, one: Assessment) -> list[Any]:
    """Return what is drawn of an answer: its id, the levels expected and judged, and its votes.

    Levels are places among those of :attr:`Rubric.upwards`.
    """
    labels, upwards = list(metric.scale.values), metric.scale.upwards

    def place(part: str) -> int | None:
        result = one.parts.get(part)
        return None if result is None else upwards.index(labels[int(result)])

    votes = [int(one.parts.get(f"votes:{label}", 0)) for label in upwards]
    return [one.id[:40], place("expected_place"), place("level_place"), votes]


def _compare(
    found: Summary, metric: JudgeOptions, pairs: Sequence[tuple[float, float]], units: Places
) -> None:
    """Add how the judged levels agree with the expected ones, where some were."""
    if not pairs:
        return
    scale, n = metric.scale, len(pairs)
    labels = list(scale.values)
    table = np.array(pairs, dtype=int)
    expected, judged = table[:, 0], table[:, 1]
    found.put("matched", int(np.sum(expected == judged)), n)
    order = np.array([scale.values[label] for label in labels])
    if scale.ordinal:
        found.put("higher", int(np.sum(order[judged] > order[expected])), n)
        found.put("lower", int(np.sum(order[judged] < order[expected])), n)
    found.put("agreement", agreement.percent_agreement(expected, judged), n, why=SAME)
    ranks = np.argsort(np.argsort(order, kind="stable")).astype(float)
    known = sorted(set(ranks.tolist()))
    weights: agreement.Weights = "quadratic" if scale.ordinal else "none"

    def kappa(ratings: Floats, times: Floats) -> float | None:
        return agreement.cohen_kappa(ratings[0], ratings[1], weights, known, times)

    ratings = np.stack([ranks[expected], ranks[judged]])
    interval = agreement.item_interval(
        kappa, ratings, units, "interval" if scale.ordinal else "nominal"
    )
    found.put("kappa", kappa(ratings, np.ones(n)), n, interval, why=SAME)
    for i, one in enumerate(labels):
        for j, other in enumerate(labels):
            if count := int(np.sum((expected == i) & (judged == j))):
                found.put(_cell(one, other), count, n)


def _panel(parts: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return the mean and the place of the level that each judge of a panel gave."""
    return {
        name: (mean, parts[f"place:{name}"])
        for key, mean in parts.items()
        if key.startswith("mean:") and f"place:{(name := key.removeprefix('mean:'))}" in parts
    }


def _compare_judges(
    found: Summary,
    metric: JudgeOptions,
    panels: Sequence[Mapping[str, tuple[float, float]]],
    units: Places,
) -> None:
    """Add each judge's severity, and how far the judges agree, where there are several."""
    names = list(dict.fromkeys(name for panel in panels for name in panel))[:MOST_JUDGES]
    whole = np.array([len(panel) == len(names) for panel in panels], dtype=bool)
    full = [panel for panel in panels if len(panel) == len(names)]
    wide = metric.scale.range[1] - metric.scale.range[0]
    means = np.array([np.mean([mean for mean, _ in panel.values()]) for panel in full])
    for name in names if len(names) > 1 and full else ():
        lower = means - np.array([panel[name][0] for panel in full])
        interval = interval_of(Mean(), lower, units[whole], (-wide, wide), "answers")
        found.put(f"severity {name}", float(lower.mean()), len(lower), interval)
    if len(names) < 2:
        return
    order = list(metric.scale.values.values())
    if not metric.scale.ordinal:  # values of categories may be equal; their places are not
        order = [float(place) for place in range(len(order))]
    ratings: Floats = np.array(
        [[order[int(p[name][1])] if name in p else math.nan for p in panels] for name in names]
    )
    scale: agreement.Scale = "ordinal" if metric.scale.ordinal else "nominal"

    def alpha(ratings: Floats, times: Floats) -> float | None:
        return agreement.krippendorff_alpha(ratings, scale, times)

    value = alpha(ratings, np.ones(len(panels)))
    two = (~np.isnan(ratings)).sum(axis=0) >= 2
    interval = agreement.item_interval(alpha, ratings[:, two], units[two], scale)
    found.put(f"alpha ({scale}, between judges)", value, len(panels), interval, why=SAME)


@dataclass(frozen=True)
class Judge(JudgeOptions):
    """How do one or more judges rate the answer on a rubric, and how steadily?

    The score is what their votes amount to, in the values of the rubric's levels. A vote passes
    from ``threshold`` on; the verdict is ``passes`` or ``fails`` as most votes do, and
    ``undecided`` where the 95 % interval of the share that passes holds one half. With a nominal
    rubric the verdict is the category that most votes give.

    A reply that names no level, several, or one off the scale is asked for once more. The sample
    fails where fewer than half of the votes can be read. A sample may bring ``expected``, the
    level that a judge should give.

    The options are those of :class:`~trustassay.metrics.judge.options.JudgeOptions`.
    """

    name: ClassVar[str] = "judge"
    part_directions = directions(
        higher="mean median level_place passing expected_score entailment mean: place:",
        lower="contradiction",
        neither="votes unreadable repairs cut passing_low passing_high flip_rate sd steady "
        "order_difference own expected_place votes: unreadable_none unreadable_several "
        "unreadable_outside unreadable_empty",
    )
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    summary_template: ClassVar[str] = "summary.html.jinja"

    @property
    def title(self) -> str:  # type: ignore[override]
        """What the rubric is called."""
        if self.by == "entailer":
            return "Truthfulness against a gold answer, judged by entailment"
        return self.scale.title

    @property
    def verdicts(self) -> Sequence[str]:
        """Passing or not; of a nominal rubric the categories."""
        if self.by == "entailer":
            return ("passes", "fails")
        if self.scale.ordinal:
            return ("passes", "undecided", "fails")
        return (*self.scale.values, "undecided")

    @property
    def figures(self) -> Mapping[str, Figure]:
        """What the summary holds, in the order in which it is shown."""
        if self.by == "entailer":
            return read_figures(__package__, "entailer")
        scale, result = self.scale, dict(read_figures(__package__))
        low, high = scale.range
        wide = high - low
        bounds = {
            "sd": (0.0, wide),
            "order_difference": (-wide, wide),
            "expected_score": (low, high),
        }
        result |= {
            key: replace(result[key], statistic=Mean(key, ends)) for key, ends in bounds.items()
        }
        for key in ("sd", "without_variance"):
            result[key] = replace(result[key], headline=self.repeats > 1)
        passes = f"answers that pass, from {self.passes_from:g} on"
        result["passes"] = replace(result["passes"], explanation=passes)
        if not scale.ordinal:
            result |= {
                key: replace(result[key], explanation=words) for key, words in _NOMINAL.items()
            }
            mean, *others = (one for key, one in result.items() if key not in _OF_LEVELS)
            verdicts = [
                Figure(verdict, f"answers judged {verdict}", "%", "", True, Share(verdict))
                for verdict in self.verdicts
            ]
            result = {one.key: one for one in (mean, *verdicts, *others)}
        cells = (_cell(one, other) for one in scale.values for other in scale.values)
        return result | {key: Figure(key, "answers", "", "expected and judged") for key in cells}

    def needs(self) -> Sequence[Need]:
        """One judge or several, or an entailer."""
        if self.by == "entailer":
            return (Need("entail"),)
        return (Need("chat", "judge", many=True),)

    def problems(self, sample: Sample) -> list[Problem]:
        """What the rubric shows has to be there, and an expected level on its scale."""
        result = missing(sample, response="the answer to judge")
        shown = ("gold",) if self.by == "entailer" else self.scale.shows
        if "gold" in shown and not (sample.answers or sample.claims):
            result.append(Problem("answers", "is missing (expected a gold answer)"))
        if "documents" in shown and not sample.documents:
            result.append(Problem("documents", "is missing (expected passages)"))
        level = self._expected(sample)
        if level is not None and self.scale.label_of(level) is None:
            known = ", ".join(self.scale.values)
            result.append(Problem("expected", f"expected one of {known}, got {level[:40]!r}"))
        return result

    def _expected(self, sample: Sample) -> str | None:
        return sample.expected.get(self.scale.name, sample.expected.get(""))

    async def assess(self, context: Context) -> Assessment:
        """Ask for votes, and say what they amount to; every vote stands in the evidence."""
        sample, models = context.sample, context.models
        context.response()  # raises where it is blank
        if self.by == "entailer":
            return await self._by_entailer(sample, models)
        asking = await self._asked(sample, models)
        votes = [vote for vote in asking.votes if vote.level is not None]
        if 2 * len(votes) < len(asking.votes) or not votes:
            lost = [vote.reply for vote in asking.votes if vote.level is None]
            message = f"{len(lost)} of {len(asking.votes)} replies of the judge could not be read"
            shown = next((f"the first: {reply[:200]!r}" for reply in lost if reply), "")
            raise AssessmentError(f"{message}, {shown}" if shown else f"{message}: they are empty")
        parts = parts_of(asking, votes, self._passing(votes))
        model = sample.model
        own = [one for one in asking.judges if model is not None and _bare(model) == _bare(one)]
        parts["own"] = len(own)
        if (level := self._expected(sample)) is not None:
            label = self.scale.label_of(level)
            assert label is not None
            parts["expected_place"] = list(self.scale.values).index(label)
        verdict: str = outcome(self._passing(votes))
        if not self.scale.ordinal:
            leading = majority(labels_of(votes), self.scale.values)
            verdict = leading if verdict == "passes" else "undecided"
        return self.assessed(
            sample,
            self._score(votes),
            [replace(vote, own=vote.judge in own) for vote in asking.votes],
            verdict=verdict,
            reason=self._reason(votes, asking, own, verdict),
            parts=parts,
        )

    async def _by_entailer(self, sample: Sample, models: Models) -> Assessment:
        """Return how far the answer and the nearest gold answer, of all aliases, say the same.

        (1 + E - C) / 2, with E and C the mean probabilities, over both directions, that one entails
        and contradicts the other: 1 where each entails the other, 0 where they exclude each other.
        Both directions, and both texts without the question, agreed best with people on the answers
        that it was chosen on (docs/methods/judge.md).
        """
        aliases = (alias for group in sample.answers for alias in group)
        golds = list(dict.fromkeys(aliases)) or list(sample.claims)
        answer = plain_answer(sample.response or "")
        plain_golds = [folded(gold.strip()) for gold in golds]
        forth = [read(models, gold, answer) for gold in plain_golds]
        back = [read(models, answer, gold) for gold in plain_golds]
        there, other = await asyncio.gather(asyncio.gather(*forth), asyncio.gather(*back))
        means = [
            ((one.entailment + two.entailment) / 2, (one.contradiction + two.contradiction) / 2)
            for one, two in zip(there, other, strict=True)
        ]
        scores = [(1 + entailed - denied) / 2 for entailed, denied in means]
        best = max(range(len(golds)), key=scores.__getitem__)
        score = min(max(scores[best], 0.0), 1.0)
        verdict = "passes" if score >= self.passes_from else "fails"
        message = f"{'more' if verdict == 'passes' else 'less'} than it takes to say the same"
        return self.assessed(
            sample,
            score,
            [GoldRow(gold, *mean) for gold, mean in zip(golds, means, strict=True)],
            verdict=verdict,
            reason=f"{score:.2f} by entailment: {message} as a gold answer",
            parts={"entailment": means[best][0], "contradiction": means[best][1]},
        )

    async def _asked(self, sample: Sample, models: Models) -> Asking:
        """Ask all rounds, or as many as it takes to decide."""
        asking, done = Asking(self, sample, models), 0
        while done < self.repeats:
            more = self._enough(asking, done) if self.early else self.repeats
            await asking.rounds(done, done + more)
            done += more
            left = (self.repeats - done) * asking.a_round
            if self.early and settled(self._passing(asking.votes), left):
                break
        return asking

    def _enough(self, asking: Asking, done: int) -> int:
        """Return the fewest rounds after which the verdict could be settled."""
        now, left = self._passing(asking.votes), self.repeats - done
        for rounds in range(1, left):
            added, after = rounds * asking.a_round, (left - rounds) * asking.a_round
            for passing in (now.passing, now.passing + added):
                if settled(Passing(passing, now.n + added), after):
                    return rounds
        return left

    def _passing(self, votes: Sequence[VoteRow]) -> Passing:
        """Return how many votes pass; of a nominal rubric, how many are for the leading one."""
        labels, values = labels_of(votes), self.scale.values
        if self.scale.ordinal or not labels:
            return Passing(sum(values[k] >= self.passes_from for k in labels), len(labels))
        return Passing(labels.count(majority(labels, values)), len(labels))

    def _score(self, votes: Sequence[VoteRow]) -> float:
        values = values_of(self, votes)
        if self.aggregate == "median":
            return float(np.median(values))
        if self.aggregate == "majority":
            return self.scale.values[majority(labels_of(votes), self.scale.values)]
        if self.aggregate == "expected":
            told = [vote.expected for vote in votes if vote.expected is not None]
            if len(told) < len(votes):
                message = (
                    "the judge gives no log-probabilities of the levels; take another aggregate"
                )
                raise AssessmentError(message)
            return math.fsum(told) / len(told)
        return math.fsum(values) / len(values)

    def _reason(
        self, votes: Sequence[VoteRow], asking: Asking, own: Sequence[str], verdict: str
    ) -> str:
        lost = len(asking.votes) - len(votes)
        counts = Counter(labels_of(votes))
        said = ", ".join(f"{counts[k]} x {k}" for k in self.scale.values if k in counts)
        first = next((vote.reason for vote in votes if vote.reason), "")
        words = first if len(votes) == 1 else f"{len(votes)} votes: {said}"
        if verdict == "undecided":
            words += "; the votes do not decide whether it passes" * self.scale.ordinal
        if lost:
            words += f"; {lost} replies could not be read"
        for judge in own:
            words += f"; the judge {judge} wrote this answer itself"
        return words.removeprefix("; ")

    @property
    def counts_outcomes(self) -> bool:
        """Whether the user, the categories or an entailer draw the line.

        A rating from 1 to 5 is a degree: where its rubric draws a line was not measured.
        """
        return self.threshold is not None or self.by == "entailer" or not self.scale.ordinal

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return what became of a question; where the votes do not decide it is not judged."""
        if self.counts_outcomes and assessment.verdict == "undecided":
            return Outcome(NOT_ANSWERED, "votes undecided")
        return super().outcome(assessment)

    @property
    def line(self) -> str:
        """The rule of :meth:`problem`."""
        if self.by == "model" and not self.scale.ordinal:
            bar = f"it is not judged to be of the best kind (rubric {self.scale.name})"
        else:
            whose = "threshold" if self.threshold is not None or self.by == "entailer" else "rubric"
            bar = f"most votes are below {self.passes_from:g} ({whose})"
        return bar if self.by == "entailer" else f"{bar}, or the votes do not decide"

    def problem(self, assessment: Assessment) -> str | None:
        """Say what the judges find wrong, or that they do not decide."""
        if assessment.verdict == "undecided":
            return "the judges' votes do not decide"
        if self.by == "model" and not self.scale.ordinal:
            value = self.scale.values.get(assessment.verdict or "", 1.0)
            return None if value >= 1 else f"judged as {assessment.verdict}"
        return "judged below the threshold" if assessment.verdict == "fails" else None

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the votes of each judge."""
        rows = Rows(assessment.evidence, VoteRow, GoldRow)
        by_judge: dict[str, list[VoteRow]] = {}
        for vote in rows.of(VoteRow):
            by_judge.setdefault(vote.judge, []).append(vote)
        judges = [votes_of(name, own) for name, own in by_judge.items()]
        return View(data={"judges": judges, "golds": rows.of(GoldRow), "rest": rows.rest})

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return scores, scatter, faults, and agreement with the expected levels."""
        expected: list[tuple[float, float]] = []
        panels: list[dict[str, tuple[float, float]]] = []
        units: dict[str, list[int]] = {"expected": [], "panels": []}
        drawn: list[list[Any]] = []

        def read() -> Iterator[Assessment]:
            for one in assessments:
                yield one
                if one.error is not None:
                    continue
                if len(drawn) < MOST_DRAWN and self.by == "model":
                    drawn.append(_drawn(self, one))
                unit = -1 if one.unit is None else one.unit
                if "expected_place" in one.parts:
                    expected.append((one.parts["expected_place"], one.parts["level_place"]))
                    units["expected"].append(unit)
                if panel := _panel(one.parts):
                    panels.append(panel)
                    units["panels"].append(unit)

        figures = self.figures
        result = summarised(self.statistics, read(), self.score_range)
        values = result.values
        for key, statistic in self.statistics.items():
            if isinstance(statistic, Total):  # 0 of faults that no answer has
                none = 0 if key.startswith("unreadable") and result.n > result.failed else None
                values[key] = none if (total := values[key]) is None else round(total)
        if self.by == "model":
            _compare(result, self, expected, np.array(units["expected"], dtype=np.int64))
            _compare_judges(result, self, panels, np.array(units["panels"], dtype=np.int64))
        keys = dict.fromkeys((*(key for key in figures if key in values), *values))
        absent = {
            k: v for k, v in result.not_applicable.items() if k in values and values[k] is None
        }
        return replace(
            result.with_settings(self.settings(), keys),
            not_applicable=absent,
            units={},
            details={"levels": self.scale.upwards, "answers": drawn} if drawn else {},
        )


def _bare(name: str) -> str:
    """Return the name of a model without what stands around it: scheme, owner, address."""
    name = re.sub(r"^(?:openai|anthropic|gemini|hf|python|replay):", "", name.strip())
    return re.split(r"@(?=https?://)|\?", name)[0].rsplit("/", 1)[-1].lower()

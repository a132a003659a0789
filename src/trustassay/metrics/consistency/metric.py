"""The metric ``consistency``, and its figures: shares of answers and of choices."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trustassay.core.assessment import collect_units, compute_summary
from trustassay.core.capabilities import Models
from trustassay.core.evidence import View
from trustassay.core.metric import (
    Assessment,
    Context,
    Figure,
    Mean,
    Need,
    Pool,
    Share,
    Summary,
    Total,
    directions,
    index_figures,
)
from trustassay.core.sample import Problem, Sample, find_missing
from trustassay.judging.refusal import NO_ANSWER
from trustassay.metrics.consistency import maths
from trustassay.metrics.consistency.checks import (
    ELSEWHERE,
    ChoiceEvidence,
    ChoiceResult,
    ConsistencyOptions,
    draw_offers,
    find_candidates,
    make_checks,
    read_pool_samples,
)
from trustassay.metrics.consistency.maths import ANSWER_PLACES, LETTERS, position_bias
from trustassay.statistics.intervals import (
    MIN_UNITS_FOR_MEANS,
    Interval,
    RowSums,
    mean_interval,
    reason_too_few_units,
)
from trustassay.text.numbers import amount
from trustassay.text.refusals import is_no_answer_placeholder

RATIO_FIGURES: Mapping[str, tuple[str, str]] = {
    "assessable": ("assessed", "answers"),
    "checks_consistent": ("consistent", "parsed"),
    "none_chosen": ("none_chosen", "parsed"),
    "asked_again": ("asked_again", "checks"),
    "unparsed": ("unparsed", "checks"),
} | {
    f"{kind}_{x.lower()}": (f"{kind}_{x.lower()}", "parsed")
    for kind in ("offered", "chosen")
    for x in LETTERS[:ANSWER_PLACES]
}
"""Figures that are the ratio of two sums over answers, in percent."""
# Each sum once, in a fixed order: these are the columns of RowSums.
_SUM_COLUMNS = tuple(dict.fromkeys(name for pair in RATIO_FIGURES.values() for name in pair))
_REASON_WITHOUT = {
    "answers": "no sample was scored",
    "checks": "no choice was asked for",
    "parsed": "no reply names an option",
}


def _count_assessments(assessments: Iterable[Assessment], sums: RowSums) -> Iterator[Assessment]:
    """Yield the assessments, and add those that did not fail to the sums."""
    for assessment in assessments:
        if assessment.error is None:
            parts = {
                **assessment.parts,
                "answers": 1.0,
                "assessed": float(assessment.score is not None),
                "parsed": assessment.parts.get("checks", 0) - assessment.parts.get("unparsed", 0),
            }
            row = [parts.get(name, 0) for name in _SUM_COLUMNS]
            # One row an assessment: a run may have a million of them, of which only the sums are
            # kept.
            sums.add(np.array([row], dtype=np.float64), collect_units([assessment]))
        yield assessment


def _compute_interval(sums: RowSums, above: str, below: str) -> Interval | str:
    """Return the interval of a ratio of two sums, in percent, or why it has none.

    Answers, or their units, were drawn, and not choices: those of one answer belong together.
    """
    # Row i of the identity matrix selects column i.
    unit_vectors = np.eye(len(_SUM_COLUMNS))
    result = sums.ratio(
        unit_vectors[_SUM_COLUMNS.index(above)], unit_vectors[_SUM_COLUMNS.index(below)]
    )
    if reason := reason_too_few_units(sums.n, sums.units, result.units, MIN_UNITS_FOR_MEANS):
        return reason
    low, high = mean_interval(*result)
    return 100 * low, 100 * high


FIGURES: Mapping[str, Figure] = index_figures(
    Figure("mean", "mean score, Trust_BC", "", headline=True, statistic=Mean()),
    Figure("mean_low", "mean score if every open answer had its lowest possible score", "",
        statistic=Mean("lowest", (0.0, 1.0))),
    Figure("mean_high", "mean score if every open answer had its highest possible score", "",
        statistic=Mean("highest", (0.0, 1.0))),
    Figure("open", "answers left open because replies cannot be read", "", statistic=Total("open")),
    Figure("consistent", "answers that the model chose again every time", headline=True,
        statistic=Share("consistent")),
    Figure("assessable", "answers that could be assessed", headline=True),
    Figure("share",
        "mean share of the choices in which the model takes its answer; finer than the score", "",
        statistic=Mean("share_consistent", (0.0, 1.0))),
    Figure("checks_consistent", "readable choices in which the model took its own answer",
        headline=True),
    Figure("none_chosen", "readable choices of \"none of the above\""),
    Figure("asked_again", "choices asked for twice because the first reply names no option"),
    Figure("unparsed", "choices whose reply names no option", headline=True),
    Figure("checks", "choices asked for each answer", "", statistic=Mean("checks")),
    Figure("short", "answers with too few distractors for all choices", "",
        statistic=Total("short")),
    Figure("written", "mean share of the distractors that a generator wrote", "",
        statistic=Mean("written", (0.0, 1.0))),
) | index_figures(
    Figure("position_bias",
        "how far the chosen places differ from the answer's; 0: not at all, 0.75: always the same",
        ""),
    *(
        Figure(f"offered_{letter}", f"readable choices with the answer at {letter.upper()}")
        for letter in "abcd"
    ),
    *(
        Figure(f"chosen_{letter}", f"readable choices of {letter.upper()}") for letter in "abcd"
    ),
    group="places",
)  # fmt: skip


@dataclass(frozen=True)
class Consistency(ConsistencyOptions):
    """Does the model choose its own answer again when other answers are offered with it?

    The model is asked its question again up to ``checks`` times with five options: its answer,
    three distractors, and "none of the above". The score, Trust_BC, is 1 if the model takes its
    answer every time, and otherwise 0 (Zheng et al. 2024, section 2.1). The metric needs no gold
    answers and no evidence. Ask the model that gave the answers.

    Args:
        checks: the largest number of choices, n. stop: end with the first inconsistent one, as in
            the paper; otherwise all are made.
        sources: sources of distractors, joined by +: names of the run's ``distractors``,
            ``pool`` (answers to other questions), ``llm`` (written by the generator), or ``given``
            (the sample's ``wrong_answers``). Default: ``llm`` if there is a generator, and the
            run's. ``given`` comes first, then ``llm``, then the others in their order, then
            ``pool``, ``embedding`` and ``pos``. With ``llm``, the others only fill up to ten.
        algorithm: ``asked`` replaces first what the question asks for; ``paper`` is the authors'
            Algorithm 1, with ``candidates`` as its n, and without ``llm`` and ``pool``.
        candidates: number of distractors to look for. aliases: drop distractors that are other
            wordings of the answer according to the sample's gold answers; otherwise these are not
            read.
        by: the ``letter`` of a reply, as in the paper; the ``likelihood`` of the letters, which
            local models give; ``auto``: the likelihood, or log-probabilities of a reply's first
            token, if the model gives them.
        max_tokens: limit of a reply; 1042 in the paper. prompt: file with a template with
            ``question``, ``options`` and ``examples``.
        parser: how a reply is read: ``letter``, in any wrapping, or ``exact``, the letter alone.
        unparsed: what happens if a reply names no option: ``again`` asks once more, and if that
            reply names none either, another check replaces it; ``apart`` leaves an answer open
            that has such a reply and no inconsistent check; ``inconsistent`` counts it as such, as
            the authors do.
        aggregate: ``all``: all checks must be consistent; ``share``: the score is their share.

    An answer is open if too few replies can be read and no check is inconsistent. It has no
    score; ``parts`` hold its lowest and highest possible score, ``lowest`` and ``highest``.
    With fewer than three distractors there is no choice and no score; with three or four there
    are at most 1 or 4 checks, because no three are offered twice.
    """

    name: ClassVar[str] = "consistency"
    title: ClassVar[str] = "Behavioural consistency (Trust_BC)"
    part_directions = directions(
        higher="share_consistent",
        neither="candidates written checks_possible short checks consistent none_chosen "
        "asked_again unparsed lowest highest open offered_a offered_b offered_c offered_d "
        "chosen_a chosen_b chosen_c chosen_d",
    )
    verdicts: ClassVar[tuple[str, ...]] = ("consistent", "inconsistent")
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    passed_word: ClassVar[str] = "consistent"
    failed_word: ClassVar[str] = "inconsistent"
    line: ClassVar[str] = (
        "the model does not choose its own answer when others are offered, or this could not be "
        "assessed"
    )

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The figures; one of them is about a generator's distractors, if the run has a
        generator."""
        return self.select_applicable_figures(FIGURES)

    @property
    def pool(self) -> bool:  # type: ignore[override]
        """Whether other samples are read."""
        return self.uses_source("pool")

    def needs(self) -> Sequence[Need]:
        """The model under assessment, and the sources of distractors."""
        needs = [Need("likelihood" if self.by == "likelihood" else "choose", "model")]
        if self.named_sources is None or set(self.named_sources) - set(ELSEWHERE):
            needs += [Need("substitutes"), Need("link", optional=True)]
        if self.asks_generator:
            optional = not self.uses_source("llm")
            needs.append(Need("chat", "generator", optional=optional))
            # Only a generator's free text can be right by accident; the other sources need no
            # entailer.
            needs.append(Need("entail", only_with="generator"))
        return needs

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response, and its own wrong answers if they are to be distractors."""
        own_distractors = (
            {"wrong_answers": "wrong answers as distractors"} if self.uses_source("given") else {}
        )
        return find_missing(sample, response="the answer of the model", **own_distractors)

    async def prepare(self, pool: Pool, models: Models) -> list[Sample]:
        """Return the samples whose answers may serve as distractors."""
        return await read_pool_samples(pool, models)

    async def assess(self, context: Context) -> Assessment:
        """Find distractors and let the model choose; each choice is stored in the evidence."""
        sample, response = context.sample, context.response()
        # A refusal claims nothing that the model could choose again.
        if is_no_answer_placeholder(response):
            return self.build_assessment(sample, None, reason=NO_ANSWER)
        what = "characters of an answer that is offered among others"
        # The prompt of each check holds the answer and three variants of it.
        context.limits.check_count(what, len(response))
        result = await find_candidates(self, context)
        offers_made = draw_offers(sample.id, result, self.checks, context.seed)
        results = await make_checks(self, sample, context.models, offers_made)
        assessment = self._build_assessment(sample, len(result), len(offers_made.wanted), results)
        # With a generator the reason says how many distractors came from which source.
        if not (result and self.asks_generator and context.models.names("generator")):
            return assessment
        sources = Counter(distractor.source for distractor in result)
        message = ", ".join(f"{n} {source}" for source, n in sources.most_common())
        return replace(
            assessment,
            reason=f"{assessment.reason}; distractors: {message}",
            parts={**assessment.parts, "written": sources["llm"] / len(result)},
        )

    def _build_assessment(
        self, sample: Sample, candidates: int, possible: int, results: Sequence[ChoiceResult]
    ) -> Assessment:
        """Return the assessment of the checks that were made."""
        checks = [result.check for result in results]
        counts_unparsed = self.unparsed == "inconsistent"
        trust_bc_score = maths.trust_bc(checks, possible, unparsed_counts=counts_unparsed)
        share = maths.share_consistent(checks, unparsed_counts=counts_unparsed)
        score = share if self.aggregate == "share" else trust_bc_score
        parts: dict[str, float] = {
            "candidates": candidates,
            "checks_possible": possible,
            "short": int(possible < self.checks),
            **maths.count_choices(checks),
        }
        if share is not None:
            parts["share_consistent"] = share
        if checks:
            parts["lowest"], parts["highest"] = maths.score_bounds(score)
            parts["open"] = float(score is None)
        # By Trust_BC also where the score is a share: the verdict says whether all checks agree.
        verdict = None
        if trust_bc_score is not None:
            verdict = "consistent" if trust_bc_score else "inconsistent"
        reason = self._build_reason(checks, candidates, possible, score is None)
        rows = [result.row for result in results]
        return self.build_assessment(
            sample, score, rows, verdict=verdict, reason=reason, parts=parts
        )

    def problem(self, assessment: Assessment) -> str | None:
        """Say that the model does not choose its own answer again, or that this is not known."""
        if assessment.verdict == "inconsistent":
            return "the model does not choose its own answer when others are offered"
        if assessment.error is None and assessment.score is None:
            return "whether the model chooses its own answer again could not be assessed"
        return None

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the choices, each with what was offered and what was taken."""
        counts = self.unparsed == "inconsistent"
        return View(data=ChoiceEvidence.read(assessment.evidence, unparsed_counts=counts))

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return shares of answers and of choices, with intervals over answers."""
        sums = RowSums(len(_SUM_COLUMNS))
        # Collects the sums on the way: the assessments can be read only once.
        result = compute_summary(
            self.statistics, _count_assessments(assessments, sums), self.score_range
        )
        n, totals = sums.n, dict(zip(_SUM_COLUMNS, sums.total.tolist(), strict=True))
        for key, (above, below) in RATIO_FIGURES.items():
            value = interval = None
            if totals[below]:
                value = 100 * totals[above] / totals[below]
                interval = _compute_interval(sums, above, below)
            result.add_figure(
                key, value, n, interval, units=sums.units, reason=_REASON_WITHOUT[below]
            )
        result.add_figure(
            "position_bias",
            position_bias(totals),
            n,
            "a distance is above 0 even by chance",
            reason="no option from A to D was chosen",
        )
        return result.with_settings(self.settings(), self.figures)

    def _build_reason(
        self, checks: Sequence[maths.ChoiceCheck], candidates: int, possible: int, missing: bool
    ) -> str:
        """Return the reason of an assessment in a sentence."""
        if not possible:
            return f"not assessable: {amount(candidates, 'distractor')} found; 3 are needed"
        consistent = sum(check.consistent for check in checks)
        unparsed = sum(check.chosen is None for check in checks)
        repeats_question = self.unparsed == "again"
        # With `again` an unreadable check was replaced and is no choice of the model.
        readable = len(checks) - (unparsed if repeats_question else 0)
        message = "not assessable: " * missing
        message += f"the model took its own answer in {consistent} of {amount(readable, 'choice')}"
        if unparsed:
            message += f"; {amount(unparsed, 'reply', 'replies')} named no option"
            message += ", even when asked again" if repeats_question else ""
        if possible < self.checks:
            message += (
                f"; {amount(candidates, 'distractor')} allow at most {amount(possible, 'choice')}"
            )
        return message

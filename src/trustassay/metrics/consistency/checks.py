"""The options of ``consistency``, the distractors of a sample, and the choices offered to the
model.

1. :func:`find_candidates` collects distractors: wrong answers that look like the response.
2. :func:`draw_offers` draws which three of them each check offers, and where the answer stands.
3. :func:`make_checks` asks the model to choose, and replaces checks whose reply names no option.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from trustassay.core.capabilities import Models, OptionChoice
from trustassay.core.event_loop import gather_all
from trustassay.core.evidence import EvidenceRow, EvidenceRows, Mark, Piece, diff_words
from trustassay.core.metric import Context, Figure, Metric, Pool, UnreadableReply, ask_twice
from trustassay.core.prompts import load_examples, load_prompt, prompt_property
from trustassay.core.sample import Sample, is_blank
from trustassay.errors import UsageError, check_choices, check_least
from trustassay.metrics.consistency import maths
from trustassay.metrics.consistency.distractors import (
    Algorithm,
    check_sources_of_paper,
    find_distractors,
)
from trustassay.metrics.consistency.maths import ANSWER_PLACES, LETTERS, ChoiceCheck
from trustassay.metrics.consistency.slots import find_same_kind_answers
from trustassay.metrics.consistency.tokens import (
    Distractor,
    contains_words,
    is_same_answer,
    normalise,
)
from trustassay.statistics.resampling import generator
from trustassay.text.citations import strip_citations

By = Literal["letter", "likelihood", "auto"]
Parser = Literal["letter", "exact"]
Aggregate = Literal["all", "share"]
Unparsed = Literal["again", "apart", "inconsistent"]

ELSEWHERE = ("pool", "llm", "given")
"""Sources of distractors that are no backend: other samples, the generator, the sample itself."""


@dataclass(frozen=True)
class ConsistencyOptions(Metric):
    """The options; see :class:`~trustassay.metrics.consistency.metric.Consistency`."""

    checks: int = 10
    stop: bool = True
    sources: str | None = None
    algorithm: Algorithm = "asked"
    candidates: int = 40
    aliases: bool = False
    by: By = "letter"
    max_tokens: int = 64
    prompt: str | None = None
    parser: Parser = "letter"
    unparsed: Unparsed = "again"
    aggregate: Aggregate = "all"

    def __post_init__(self) -> None:
        check_least(self, checks=1, candidates=3, max_tokens=1)
        check_choices(
            self, algorithm=Algorithm, by=By, parser=Parser, unparsed=Unparsed, aggregate=Aggregate
        )
        # With stop=yes the last check is the only inconsistent one, so the share is 1 - 1/n.
        if self.aggregate == "share" and self.stop:
            raise UsageError(
                "aggregate: share needs stop=no (if the checks stop at the first inconsistent one, "
                "their share only says how many were made)"
            )
        names = self.named_sources
        if names is not None and (not all(names) or len(set(names)) < len(names)):
            raise UsageError(f"sources: expected different names joined by +, got {self.sources!r}")
        if self.algorithm == "paper":
            check_sources_of_paper(names or ())
        # The template is read and compiled now, before a run starts.
        _ = self.template  # a faulty file is to fail here

    @cached_property
    def named_sources(self) -> tuple[str, ...] | None:
        """The sources of distractors that the user named; ``None`` for those of the run."""
        return None if self.sources is None else tuple(self.sources.split("+"))

    def uses_source(self, source: str) -> bool:
        """Whether a source that is no backend is among the named ones."""
        return source in (self.named_sources or ())

    @property
    def asks_generator(self) -> bool:
        """Whether a generator writes distractors, if the run has one."""
        if self.algorithm == "paper":
            return False
        return self.named_sources is None or self.uses_source("llm")

    def select_applicable_figures(self, figures: Mapping[str, Figure]) -> Mapping[str, Figure]:
        """Return the figures without ``written``, the share of a generator's distractors, if none
        is used."""
        if self.asks_generator and "generator" in self.backend_names:
            return figures
        return {key: figure for key, figure in figures.items() if key != "written"}

    template = prompt_property(__package__, "choose", variables="question options examples")
    """The template around the question, the options and the examples."""


def one_line(text: str) -> str:
    """Return a text with single spaces: an option is one line, so that none can imitate another."""
    return " ".join(text.split())


def clean_answer(sample: Sample) -> str:
    """Return the response as the model is offered it: in one line, without citations.

    Citations, such as ``[1]`` and ``[2, 3]``, are no part of the statement, and another number
    would make a distractor that says the same.
    """
    text = one_line(sample.response or "")
    bare = one_line(strip_citations(text))
    # A response of citations alone is offered as it is.
    return text if is_blank(bare) else bare


MAX_POOL_SAMPLES = 1000
"""Maximum number of samples whose answers may serve as distractors; each sample goes through
all."""


async def read_pool_samples(pool: Pool, models: Models) -> list[Sample]:
    """Return the samples whose answers may serve as distractors: all, or a random draw from
    many."""
    places: Iterable[int] = range(len(pool))
    if len(pool) > MAX_POOL_SAMPLES:
        # Seed 0, not the run's: the pool is prepared once per process and must be equal in all of
        # them.
        indices = generator(0, "pool").choice(len(pool), MAX_POOL_SAMPLES, replace=False)
        places = sorted(indices.tolist())
    return await asyncio.gather(*(_get_answered(pool, place, models) for place in places))


async def _get_answered(pool: Pool, place: int, models: Models) -> Sample:
    """Return a sample; one of another shard gets its response, by the stored reply, if it lacks
    one."""
    has_response = pool[place].answered or pool.run_pool is not pool
    return pool[place] if has_response else await pool.read_filled(place, models)


async def find_candidates(options: ConsistencyOptions, context: Context) -> list[Distractor]:
    """Return up to ``options.candidates`` distractors of a sample, best first."""
    sample, models = context.sample, context.models
    answer = clean_answer(sample)
    aliases = _find_aliases(sample) if options.aliases else []
    result = _select_given(sample, aliases) if options.uses_source("given") else []
    generator_source = ("llm",) if options.asks_generator and models.names("generator") else ()
    # Unless sources are named: the generator, if there is one, then the run's own sources.
    sources = options.named_sources or (*generator_source, *models.names("distractors"))
    backend_sources = [name for name in sources if name not in ("given", "pool")]
    pool_answers: Sequence[str] = ()
    if options.uses_source("pool"):
        # Without `aliases` the metric is to read no gold answer at all.
        golds = sample.answers if options.aliases else ()
        known_as = replace(sample, response=answer, answers=golds)
        pool_answers = find_same_kind_answers(known_as, context.prepared, seed=context.seed)
    if backend_sources or pool_answers:
        found_distractors = await find_distractors(
            sample.question,
            answer,
            models,
            aliases=aliases,
            pool=pool_answers,
            sources=backend_sources,
            limit=options.candidates,
            algorithm=options.algorithm,
            seed=context.seed,
        )
        # The sample's own wrong answers come first, and are not repeated by a source.
        earlier_texts = {normalise(distractor.text) for distractor in result}
        result += [
            distractor
            for distractor in found_distractors
            if normalise(distractor.text) not in earlier_texts
        ]
    return result[: options.candidates]


def _select_given(sample: Sample, aliases: Sequence[str]) -> list[Distractor]:
    """Return the sample's wrong answers, without repetitions and without any that says the same."""
    unlike: dict[str, str] = {}
    for text in sample.wrong_answers:
        if not is_same_answer(text, clean_answer(sample), aliases):
            unlike.setdefault(normalise(text), text)
    return [Distractor(text, "given", 0, "", "") for text in unlike.values()]


def _find_aliases(sample: Sample) -> list[str]:
    """Return all wordings of the gold answers that the response contains."""
    answer_words = normalise(clean_answer(sample))
    matching_groups = (
        group
        for group in sample.answers
        if any(contains_words(answer_words, normalise(a)) for a in group)
    )
    return [alias for group in matching_groups for alias in group]


NONE_OF_THEM = "None of the above."
_OWN_ANSWER = Mark("good", "✓", "took its own answer")
_OTHER_OPTION = Mark("bad", "✕", "took another option")
_NONE_OF_THE_ABOVE = Mark("bad", "✕", "took none of the above")
_UNPARSED = Mark("none", "○", "the reply names no option")


@dataclass(frozen=True, slots=True)
class Option(EvidenceRow):
    """A text that was offered."""

    text: str
    """The text."""
    source: str | None = None
    """The source of a distractor; ``None`` for the answer."""
    level: int | None = None
    """The level of the words that a distractor replaces."""


@dataclass(frozen=True, slots=True)
class ChoiceRow(EvidenceRow, required=("options", "right")):
    """One choice, as stored in the evidence."""

    options: Sequence[Option]
    """The options except the last one, "none of the above"."""
    right: str
    """The letter of the model's own answer."""
    chosen: str | None
    """The letter that was chosen; ``None`` if the reply names none."""
    way: str
    """How it was determined (:class:`~trustassay.core.capabilities.OptionChoice`)."""
    probabilities: Sequence[float] | None = None
    """Of the letters, if they were compared by likelihood."""
    reply: str | None = None
    """The last reply, otherwise."""
    first_reply: str | None = None
    """The reply that named no option, if the model was asked again."""

    @property
    def mark(self) -> Mark:
        """What the model took, for the report."""
        if self.chosen not in tuple(LETTERS):
            return _UNPARSED
        if self.chosen == self.right:
            return _OWN_ANSWER
        return _NONE_OF_THE_ABOVE if self.chosen == LETTERS[-1] else _OTHER_OPTION

    @property
    def option_views(self) -> "list[OptionView]":
        """All options, each with what became of it."""
        # Evidence may come from a file that was edited: a wrong letter or too many options must not
        # fail.
        options, place = self.options[:ANSWER_PLACES], LETTERS.find(self.right)
        answer = options[place].text if 0 <= place < len(options) else ""
        letters = [*LETTERS[: len(options)], LETTERS[-1]]
        probability_of = dict(enumerate(self.probabilities or ()))
        result = []
        for i, (letter, option) in enumerate(
            zip(letters, [*options, Option(NONE_OF_THEM)], strict=True)
        ):
            is_distractor = i < len(options) and letter != self.right
            result.append(
                OptionView(
                    letter,
                    (diff_words(answer, option.text) if is_distractor else None)
                    or [Piece("same", option.text)],
                    letter == self.right,
                    letter == self.chosen,
                    option.source or "",
                    probability_of.get(i),
                )
            )
        return result


class OptionView(NamedTuple):
    """An option as the report shows it."""

    letter: str
    """Its letter."""
    pieces: Sequence[Piece]
    """Its text, with the words marked that differ from the model's answer."""
    right: bool
    """Whether it is the model's answer."""
    chosen: bool
    """Whether the model chose it."""
    source: str = ""
    """The source of a distractor."""
    probability: float | None = None
    """That of its letter."""


class ChoiceEvidence(NamedTuple):
    """All choices of a sample, for the report."""

    choices: Sequence[ChoiceRow]
    """The choices in order."""
    first: int | None
    """Index of the first choice in which the model did not take its answer; ``None`` if there is
    none."""
    other_items: Sequence[Mapping[str, Any]]
    """Evidence of any other kind."""

    @classmethod
    def read(cls, evidence: Iterable[Any], *, unparsed_counts: bool = False) -> "ChoiceEvidence":
        """Sort the evidence.

        Args:
            evidence: as stored. unparsed_counts: whether a reply without an option is inconsistent.
        """
        rows = EvidenceRows(evidence, ChoiceRow)
        choice_rows = rows.select(ChoiceRow)
        wrong = (
            (_OTHER_OPTION, _NONE_OF_THE_ABOVE, _UNPARSED)
            if unparsed_counts
            else (_OTHER_OPTION, _NONE_OF_THE_ABOVE)
        )
        failed_places = (place for place, row in enumerate(choice_rows) if row.mark in wrong)
        return cls(choice_rows, next(failed_places, None), rows.other_items)


STOP = ("\nQuestion:",)
"""Text with which a base model continues with a question of its own."""
MAX_REPLY_CHARS = 500
"""Characters of a reply in the evidence; the stored call holds all of it."""


class Offer(NamedTuple):
    """The options of one check."""

    distractors: Sequence[Distractor]
    """Three wrong answers."""
    right: int
    """Index, 0 to 3, at which the answer stands among them."""

    def options(self, answer: str) -> list[Option]:
        """Return the first four options, each in one line."""
        result = [
            Option(one_line(distractor.text), distractor.source, distractor.level)
            for distractor in self.distractors
        ]
        result.insert(self.right, Option(answer))
        return result


class Offers(NamedTuple):
    """The options of all checks of a sample, and of checks that may replace others."""

    wanted: Sequence[Offer]
    """The checks that are made."""
    spare: Sequence[Offer]
    """Checks with other distractors, which replace those whose reply names no option."""
    places: Sequence[int]
    """Where the answer stands in each of ``spare``, and in replacements after them, which repeat
    distractors in another order."""


class ChoiceResult(NamedTuple):
    """A check that was made."""

    offer: Offer
    """What was offered."""
    check: ChoiceCheck
    """What was chosen."""
    row: ChoiceRow
    """Its row of the evidence."""


def draw_offers(sample_id: str, distractors: Sequence[Distractor], n: int, seed: int) -> Offers:
    """Return the options of up to ``n`` checks; fewer if there are fewer triples of distractors.

    They follow from the seed, the sample's id and the distractors. Those of a smaller ``n`` are the
    first of a larger one, so that more checks use the stored replies again.
    """
    wanted = maths.count_possible_checks(len(distractors), n)
    # Drawn together, so that replacements differ from all wanted checks.
    most = wanted + maths.count_replaceable_checks(wanted)
    triples = maths.draw_triples(len(distractors), most, generator(seed, sample_id, "triples"))
    places = maths.draw_places(most, generator(seed, sample_id, "places"))
    distractor_triples = ([distractors[i] for i in triple] for triple in triples)
    all_offers = list(map(Offer, distractor_triples, places))
    return Offers(all_offers[:wanted], all_offers[wanted:], places[wanted:])


async def make_checks(
    options: ConsistencyOptions, sample: Sample, models: Models, offers: Offers
) -> list[ChoiceResult]:
    """Make the checks of a sample: one after the other until one decides, or all at once.

    If ``options.unparsed`` is ``again``, a reply that names no option is asked for once more; if
    the second one names none either, another check takes its place. With more such replies than may
    be replaced the answer stays open, and the model is not asked any more.
    """
    waiting, results, replaced = list(offers.wanted), list[ChoiceResult](), 0
    while waiting:
        # With `stop` the next check is only paid for if this one did not decide.
        batch = waiting[:1] if options.stop else waiting
        batch_results = await gather_all(
            _make_check(options, sample, models, offer) for offer in batch
        )
        del waiting[: len(batch)]
        results += batch_results
        counts = options.unparsed == "inconsistent"
        if options.stop and maths.ends_checks(batch_results[0].check, unparsed_counts=counts):
            break
        # Each check whose reply names no option is replaced: by a spare one with other distractors,
        # as long as there are any.
        if options.unparsed == "again":
            unread = [result.offer for result in batch_results if result.check.chosen is None]
            first_number, replaced = replaced, replaced + len(unread)
            # A model whose replies are never readable would otherwise be asked without end.
            if replaced > len(offers.places):
                break
            for number, (distractors, _) in enumerate(unread, first_number):
                # No triple is left: the same distractors in another order, with the answer at
                # another place.
                rotated = Offer([*distractors[1:], distractors[0]], offers.places[number])
                waiting.append(offers.spare[number] if number < len(offers.spare) else rotated)
    return results


async def _make_check(
    options: ConsistencyOptions, sample: Sample, models: Models, offer: Offer
) -> ChoiceResult:
    """Ask the model to choose among the options of one check."""
    options_offered, template = offer.options(clean_answer(sample)), options.template
    texts = [*(option.text for option in options_offered), NONE_OF_THEM]
    examples = load_examples(__package__)
    prompt = template.fill(question=one_line(sample.question), options=texts, examples=examples)

    async def ask_for_choice(turns: Any, name: str) -> tuple[OptionChoice, int | None]:
        choice = await models.choose(
            turns,
            texts,
            by=options.by,
            expected=offer.right,
            max_tokens=options.max_tokens,
            stop=STOP,
            prompt=name,
            may_be_empty=True,
        )
        # The authors' rule: nothing but the letter counts as an answer.
        if options.parser == "exact" and choice.way == "letter":
            bare = choice.reply.strip()
            return choice, LETTERS.index(bare) if bare in tuple(LETTERS) else None
        return choice, choice.index

    def unread(first_try: tuple[OptionChoice, int | None]) -> UnreadableReply | None:
        # Only `again` repeats a question. The repair prompt is part of the name, hence of the
        # stored call.
        if first_try[1] is not None or options.unparsed != "again":
            return None
        repair = load_prompt(__package__, "again")
        return UnreadableReply(first_try[0].reply, repair.fill(), f"{template.name}+{repair.name}")

    first_try, second_try = await ask_twice(ask_for_choice, prompt, template.name, unread)
    # Kept in the evidence, so that a reader sees why the model was asked twice.
    first_reply = None if second_try is None else first_try[0].reply
    choice, index = second_try or first_try
    likely = choice.way == "likelihood"
    row = ChoiceRow(
        options_offered,
        LETTERS[offer.right],
        None if index is None else LETTERS[index],
        choice.way,
        [round(p, 4) for p in choice.probabilities] if likely else None,
        None if likely else choice.reply[:MAX_REPLY_CHARS],
        None if first_reply is None else first_reply[:MAX_REPLY_CHARS],
    )
    return ChoiceResult(offer, ChoiceCheck(offer.right, index, first_reply is not None), row)

"""The figures of a data set from the parts of single answers, and the score of one answer.

Nearly every key of Trust-Eval is the mean of a per-answer term over a population (all answers, the
answered ones, the answerable ones); the other keys are functions of those means. A data set is
therefore summarised by two numbers a key, the sum of its terms and the size of its population. The
same functions give the point estimate and, by their derivatives, its variance.

In this order: terms and figures of a data set; the score of one answer; the citations of one
statement, judged by entailment; the gold answers that a response gives, by exact and list match.

Formulas: Song et al. 2025 (Trust-Align), as implemented by trust_eval 0.1.6.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trustassay.metrics.grounding.options import Rules
from trustassay.statistics import Bools, Floats
from trustassay.text.citations import strip_citations, strip_citations_as_in_paper
from trustassay.text.lists import split_list, split_list_as_in_paper
from trustassay.text.words import normalise

Terms = dict[str, tuple[Floats, Bools]]
"""For each key the per-answer terms and the population they are averaged over, each (m,)."""

PARTS = tuple(
    "answered answered_stripped answerable words blank golds hits supported supported_hits "
    "elements precise_elements supported_elements wrong_in_documents statements "
    "supported_statements citations precise_citations invalid_citations false_denials".split()
)
"""The numbers of an assessment; one that is absent is unknown for that answer."""

TOP = 5
"""Gold answers that are enough for full recall in the figures with ``top5``."""


def part_table(parts: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    """Return the parts of m answers as columns of shape (m,); NaN where a part is absent."""
    table = np.array([[p.get(name, np.nan) for name in PARTS] for p in parts], dtype=float)
    return dict(zip(PARTS, table.reshape(len(parts), len(PARTS)).T, strict=True))


def terms(column: Mapping[str, Floats], correctness: str | None, *, skip_blank: bool) -> Terms:
    """Return every averaged term of m answers with its population.

    Args:
        column: from :func:`part_table`.
        correctness: ``em``, ``em5``, ``cm``, or ``None`` if there is nothing to compare with.
        skip_blank: leave blank answers out of the citation figures.
    """
    # Only a failed answer lacks this part.
    everyone = ~np.isnan(column["answered"])
    answered = column["answered"] == 1
    refused = column["answered"] == 0
    # Without gold answers or flags it is unknown whether an answer should have been refused.
    answerability_known = ~np.isnan(column["answerable"])
    answerable = column["answerable"] == 1
    unanswerable = column["answerable"] == 0
    result: Terms = {
        "answered_ratio": (column["answered"], everyone),
        "answerable_ratio": (column["answerable"], answerability_known),
        "overlapped_ratio": (column["answered"] * column["answerable"], answerability_known),
        "regular_length": (column["words"], everyone),
        "answered_length": (column["words"], answered),
        # Recall is over what should be refused, precision over what was.
        "reject_rec": (1 - column["answered"], unanswerable),
        "reject_prec": (1 - column["answerable"], refused & answerability_known),
        "answerable_rec": (column["answered"], answerable),
        "answerable_prec": (column["answerable"], answered & answerability_known),
        "invalid_citations": (column["invalid_citations"], everyone),
    }
    result |= _build_citation_terms(column, answered, skip_blank=skip_blank)
    return result | _build_gold_terms(column, correctness) if correctness else result


def _build_citation_terms(
    column: Mapping[str, Floats], answered: Bools, *, skip_blank: bool
) -> Terms:
    recall = ratio(column["supported_statements"], column["statements"])
    precision = ratio(column["precise_citations"], column["citations"])
    # trust_eval leaves a blank response out of the citation figures; by default it counts as 0.
    counts = ~np.isnan(column["statements"])
    if skip_blank:
        counts &= column["blank"] == 0
    return {
        "regular_citation_rec": (recall, counts),
        "regular_citation_prec": (precision, counts),
        "answered_citation_rec": (recall, counts & answered),
        "answered_citation_prec": (precision, counts & answered),
    }


CORRECTNESS_STEMS = {"em": "str_em", "cm": "claims_nli"}
LIST_KEYS = (
    "num_preds",
    *(f"qampari_{name}" for name in ("prec", "rec", "rec_top5", "f1", "f1_top5")),
)


def _build_gold_terms(column: Mapping[str, Floats], correctness: str) -> Terms:
    """Return the terms of gold answers; ``cm`` decides refusal on the text without citations."""
    golds, supported_hits = column["golds"], column["supported_hits"]
    has_gold = golds > 0
    calibrated = has_gold & ~np.isnan(column["answerable"])
    answerable = column["answerable"] == 1
    stripped = column["answered_stripped"] == 1
    answered = stripped if correctness == "cm" else column["answered"] == 1
    # Supported gold answers count only where there are some and the response answers; else the
    # term is 0 and stays in the mean.
    answers_answerable = answerable & stripped
    result: Terms = {}
    presence_terms: Terms = {}
    if correctness == "em5":
        keys, parametric = LIST_KEYS, "parametric_qampari_rec_top5"
        plain = _compute_list_scores(column, "precise_elements", "hits", "golds")
        elements, *shares = _compute_list_scores(
            column, "supported_elements", "supported_hits", "supported"
        )
        supported = [
            elements,
            *(np.where(answers_answerable, share_of_list, 0.0) for share_of_list in shares),
        ]
        # The share of gold answers that the response gives and the documents support. What it
        # gives beyond it comes from the model's memory ("parametric").
        supported_share = ratio(np.minimum(TOP, supported_hits), np.minimum(TOP, golds))
        parametric_share = plain[3] - supported_share
        presence = column["wrong_in_documents"]
        wrong = answered & ~np.isnan(presence)
        presence_terms = {
            "qampari_presence": (presence, wrong),
            "qampari_absence": (1 - presence, wrong),
        }
    else:
        # Exact match and claims have one figure each, a list has six.
        keys = (CORRECTNESS_STEMS[correctness],)
        parametric = (
            "parametric_str_em" if correctness == "em" else "parametric_answered_claims_nli"
        )
        plain = [ratio(column["hits"], golds)]
        supported = [np.where(answers_answerable, ratio(supported_hits, column["supported"]), 0.0)]
        parametric_share = plain[0] - np.where(
            answers_answerable, ratio(supported_hits, golds), 0.0
        )
    # "regular" is over all questions with gold answers, "answered" over answers, "calib" over the
    # answers, and the answerable questions, of known answerability.
    for prefix, scores, population in (
        ("regular_", plain, has_gold),
        ("answered_", plain, has_gold & answered),
        ("calib_answered_", supported, calibrated & answered),
        ("calib_answerable_", supported, calibrated & answerable),
    ):
        result |= {f"{prefix}{k}": (s, population) for k, s in zip(keys, scores, strict=True)}
    return result | {parametric: (parametric_share, calibrated & answered)} | presence_terms


def _compute_list_scores(
    column: Mapping[str, Floats], precise: str, hits: str, golds: str
) -> list[Floats]:
    """Return the six list figures of each answer, in the order of ``LIST_KEYS``."""
    elements, result, wanted = column["elements"], column[hits], column[golds]
    precision, recall = ratio(column[precise], elements), ratio(result, wanted)
    # More than five gold answers are not asked of anyone.
    top = ratio(np.minimum(TOP, result), np.minimum(TOP, wanted))
    return [elements, precision, recall, top, f1(precision, recall), f1(precision, top)]


def ratio(part: Floats, total: Floats) -> Floats:
    """Return part / total: 0 where ``total`` is 0, NaN where either is NaN."""
    # ``where`` keeps ``out`` where total is 0. NaN != 0, so an unknown total is divided: NaN.
    return np.divide(part, total, out=np.where(np.isnan(part), part, 0.0), where=total != 0)


def f1(precision: Floats, recall: Floats) -> Floats:
    """Return 2pr / (p + r), 0 where both are 0, NaN where either is undefined."""
    return ratio(2 * precision * recall, precision + recall)


_F1_STEMS = {"str_em": "str_em", "claims_nli": "claims_nli", "qampari_em": "qampari_f1_top5"}
"""By the name of a calibrated F1, its term, whose means over answers and over answerable questions
are precision and recall."""
COMPOSITES: dict[str, tuple[tuple[str, ...], Callable[..., Floats]]] = {
    **{
        f"{stem}_f1": ((f"{stem}_prec", f"{stem}_rec"), f1)
        for stem in ("reject", "answerable", "regular_citation", "answered_citation")
    },
    **{
        f"calib_{name}_f1": ((f"calib_answered_{of}", f"calib_answerable_{of}"), f1)
        for name, of in _F1_STEMS.items()
    },
    "macro_avg": (("reject_rec", "answerable_rec"), lambda a, b: (a + b) / 2),
    "macro_f1": (("reject_f1", "answerable_f1"), lambda a, b: (a + b) / 2),
}
"""Figures computed from other figures, in an order in which each finds its inputs."""

CORRECTNESS_F1 = dict(
    zip(("em", "cm", "em5"), (f"calib_{name}_f1" for name in _F1_STEMS), strict=True)
)

NOT_PERCENT = frozenset(
    "regular_length answered_length invalid_citations regular_num_preds answered_num_preds "
    "calib_answered_num_preds calib_answerable_num_preds".split()
)
UNDEFINED_WHERE_EMPTY = {
    "regular_citation_rec": "regular_length",
    "regular_citation_prec": "regular_length",
    "qampari_presence": "answered_num_preds",
    "qampari_absence": "answered_num_preds",
}
"""Means that are undefined over an empty population, as long as that of the other key is not."""


def figures(
    sums: Mapping[str, Floats],
    sizes: Mapping[str, Floats],
    correctness: str | None,
    *,
    undefined_f1_zero: bool,
) -> dict[str, Floats]:
    """Return every figure from sums of terms and sizes of populations, each of shape (...).

    A mean over an empty population is 0, except those of ``UNDEFINED_WHERE_EMPTY`` and what is
    made of them, which are NaN. With ``undefined_f1_zero`` the F1 of undefined citation figures
    is 0, as in trust_eval 0.1.6.
    """
    result: dict[str, Floats] = {}
    for key, total in sums.items():
        mean = ratio(total, sizes[key])
        if key in UNDEFINED_WHERE_EMPTY:
            within = sizes[UNDEFINED_WHERE_EMPTY[key]]
            # Answers exist but none has a statement: "no value", not "0 %".
            mean = np.where((sizes[key] == 0) & (within > 0), np.nan, mean)
        result[key] = mean if key in NOT_PERCENT else 100 * mean
    # Which inputs exist depends on correctness: em, cm and em5 have different terms.
    for key, (inputs, combine) in COMPOSITES.items():
        if all(name in result for name in inputs):
            result[key] = combine(*(result[name] for name in inputs))
    if undefined_f1_zero:
        result["regular_citation_f1"] = np.nan_to_num(result["regular_citation_f1"])
    if correctness:
        # The Trust-Score: correctness, refusals and citations, a third each.
        inputs = (CORRECTNESS_F1[correctness], "macro_f1", "answered_citation_f1")
        result["trust_score"] = np.mean([result[name] for name in inputs], axis=0)
    return result


def score_answer(parts: Mapping[str, float], correctness: str) -> tuple[float | None, str]:
    """Return the score of one answer in 0..1, if it is known, and its reason.

    A refusal scores 1 if the documents support no gold answer, else 0; a blank response
    scores 0. An answer scores the mean of the parts that apply: the share of the supported gold
    answers that it gives, 1 or 0 for whether the question could be answered, and the F1 of its
    citation recall and precision. These are the three parts of the trust score, for one answer.
    """
    # A refusal is right or wrong as a whole; it has no other parts.
    answerable = parts.get("answerable")
    if not parts["answered"]:
        if answerable is None:
            return None, "refused; without gold answers it is unknown whether the refusal is right"
        judgement = "wrongly refused: a" if answerable else "rightly refused: no"
        return 1.0 - answerable, f"{judgement} document supports a gold answer"
    if parts["blank"]:
        return 0.0, "the response is blank"
    # The citation F1 of this answer: supported sentences are recall, precise citations precision.
    recall = share(parts["supported_statements"], parts["statements"])
    precision = share(parts["precise_citations"], parts["citations"])
    applicable = [share(2 * recall * precision, recall + precision)]
    phrases = [
        # The same words for any number: the report groups answers by reasons without numbers.
        f"supported statements: {parts['supported_statements']:.0f} of {parts['statements']:.0f}",
        f"precise citations: {parts['precise_citations']:.0f} of {parts['citations']:.0f}"
        if parts["citations"]
        else "no citation",
    ]
    if answerable is not None:
        # 1 for an answer to an answerable question, 0 for one that should have been refused.
        applicable.append(answerable)
    if answerable == 0:
        phrases.insert(0, "answered although no document supports a gold answer")
    if "supported_hits" in parts:
        hits, supported = parts["supported_hits"], parts["supported"]
        correct = share(hits, supported)
        # A list is scored by F1, so that naming everything does not pay.
        if correctness == "em5":
            precision = share(parts["supported_elements"], parts["elements"])
            recall = share(min(TOP, hits), min(TOP, supported))
            correct = share(2 * precision * recall, precision + recall)
        applicable.append(correct)
        if answerable:
            phrases.insert(0, f"supported gold answers given: {hits:.0f} of {supported:.0f}")
    return sum(applicable) / len(applicable), "; ".join(phrases)


def share(part: float, total: float) -> float:
    """Return part / total, and 0 if ``total`` is 0."""
    return part / total if total else 0.0


VERDICT_REASONS = {
    "supports alone": "this passage alone entails the statement",
    "needed": "the other cited passages do not entail the statement without it",
    "covered": "not needed, but it supports a gold answer that the others also support",
    "redundant": "the other cited passages entail the statement without it",
    "unsupported": "the cited passages together do not entail the statement",
    "invalid": "the document does not exist",
    "beyond limit": "only the first {limit} citations of a statement count",
    "duplicate": "the same document is already cited in this statement",
}


_SUPPORT_REASONS = {
    None: "cites a document that does not exist",
    True: "the cited passages entail the statement",
    False: VERDICT_REASONS["unsupported"],
}


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation of a statement."""

    number: int
    """The number as written."""
    index: int
    """The document's index, from 0; -1 is the last one, where ``[0]`` cites it."""
    verdict: str | None = None
    """A key of :data:`VERDICT_REASONS`; ``None`` until it is known."""
    reason: str = ""
    """The reason for the verdict."""

    def with_verdict(self, verdict: str, reason: str = "") -> "Citation":
        """Return this citation with its verdict."""
        return replace(self, verdict=verdict, reason=reason or VERDICT_REASONS[verdict])

    @property
    def open(self) -> bool:
        """Whether entailment has to decide."""
        return self.verdict is None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judged statement."""

    citations: tuple[Citation, ...]
    """Its citations, each with a verdict."""
    supported: bool
    """Whether the cited passages together entail it."""
    points: int
    """The number of precise citations."""
    counted: int
    """The number of citations that count in precision."""
    reason: str
    """The reason for ``supported``."""


def build_citations(
    numbers: Sequence[int], documents: int, rules: Rules, limit: int | None
) -> list[Citation]:
    """Return the citations of a statement; those that entailment need not judge have verdicts.

    The range check comes before the limit, as in trust_eval 0.1.6: a citation of a missing
    document voids its statement even where the limit would have cut it off.
    """
    # trust_eval indexes with number - 1, so [0] becomes -1, the last document.
    first = 0 if rules.zero == "last" and documents else 1
    citations = [
        candidate if first <= candidate.number <= documents else candidate.with_verdict("invalid")
        for candidate in (Citation(number, number - 1) for number in numbers)
    ]
    # Readers cannot correct a wrong document number, so it makes the whole statement unsupported.
    voided = rules.invalid == "void" and any(c.verdict == "invalid" for c in citations)
    earlier_indices: set[int] = set()
    judged, counted = [], 0
    for citation in citations:
        if citation.open and voided:
            reason = "a citation next to it names a document that does not exist"
            # The order of these cases matters: a duplicate does not use up the limit.
            judged.append(citation.with_verdict("unsupported", reason))
        elif (
            citation.open
            and rules.duplicates == "once"
            and citation.index % documents in earlier_indices
        ):
            judged.append(citation.with_verdict("duplicate"))
        elif citation.open and limit is not None and counted >= limit:
            judged.append(
                citation.with_verdict(
                    "beyond limit", VERDICT_REASONS["beyond limit"].format(limit=limit)
                )
            )
        else:
            # An invalid citation keeps its verdict and does not count towards the limit.
            counted += citation.open
            judged.append(citation)
        if citation.open:
            earlier_indices.add(citation.index % documents)  # [0] may be the last document
    return judged


def indices_without(indices: Sequence[int], position: int) -> list[int]:
    """Return the indices without the first occurrence of the value at ``position``."""
    remaining = list(indices)
    # Not ``del``: with duplicates trust_eval removes the first equal one.
    remaining.remove(indices[position])
    return remaining


def covers_same_gold(
    coverage: Sequence[Sequence[int]], index: int, remaining: Sequence[int]
) -> bool:
    """Return whether ``index`` and a document of ``remaining`` support the same gold answer."""
    return any(
        supported and any(coverage[other][gold] for other in remaining)
        for gold, supported in enumerate(coverage[index] if coverage else ())
    )


def judge_citations(
    citations: Sequence[Citation],
    entails: Callable[[Sequence[int]], bool],
    coverage: Sequence[Sequence[int]],
    rules: Rules,
) -> Judgement:
    """Judge a statement's citations (conditions A and B of Gao et al. 2023).

    Args:
        citations: from :func:`build_citations`.
        entails: do the passages of these indices together entail the statement? It is asked of
            all open citations, of each alone, and of the others without it.
        coverage: for each document its flags, one for each gold answer; empty where unknown.
        rules: of the profile.
    """
    undecided = [c for c in citations if c.open]
    indices = [c.index for c in undecided]
    # None: nothing left to ask, since every citation is invalid or void.
    jointly_entailed = entails(indices) if indices else None
    verdicts = []
    for position, index in enumerate(indices):
        remaining = indices_without(indices, position)
        # Each question is asked only where the answers before it leave the verdict open.
        if not jointly_entailed:
            verdict = "unsupported"
        # Condition A of Gao et al.: it supports alone. Condition B: the others do not support
        # without it.
        elif not remaining or entails([index]):
            verdict = "supports alone"
        elif not entails(remaining):
            verdict = "needed"
        # Trust-Eval counts two sources of one gold answer as precise, ALCE calls one redundant.
        elif rules.precision == "paper" and covers_same_gold(coverage, index, remaining):
            verdict = "covered"
        else:
            verdict = "redundant"
        verdicts.append(verdict)
    next_verdict = iter(verdicts)
    final = tuple(c.with_verdict(next(next_verdict)) if c.open else c for c in citations)
    counted = len(undecided)
    # With "void" they are left out of precision, since they void the statement already.
    if rules.invalid == "imprecise":
        counted += sum(c.verdict == "invalid" for c in citations)
    return Judgement(
        final,
        supported=bool(jointly_entailed),
        points=sum(v in ("supports alone", "needed", "covered") for v in verdicts),
        counted=counted,
        reason="cites nothing" if not final else _SUPPORT_REASONS[jointly_entailed],
    )


Golds = Sequence[Sequence[str]]


def exact_hits(response: str, golds: Golds, rules: Rules) -> list[bool]:
    """Return, for each gold answer, whether an alias of it is in the response (``em``).

    The citations must have been removed from ``response``.
    """
    text = rules.normal(response)
    return [any(rules.contains(text, rules.normal(alias)) for alias in gold) for gold in golds]


@dataclass(frozen=True, slots=True)
class ListMatch:
    """The elements of a list answer, which of them are gold, and which golds they hit."""

    elements: tuple[str, ...]
    precise: int
    hits: tuple[bool, ...]


def list_match(predicted: Sequence[str], golds: Golds, rules: Rules) -> ListMatch:
    """Match the elements of a list answer with gold answers (``em5``).

    ``predicted`` comes from :func:`split_answer_list` or :func:`split_plain_list`. A pair matches
    when the normalised texts are equal. Duplicates count each time.
    """
    aliases = [list(map(rules.normal, gold)) for gold in golds]
    gold_texts = {alias for names in aliases for alias in names}
    normal_elements = [element for element in map(rules.normal, predicted) if element]
    return ListMatch(
        elements=tuple(normal_elements),
        precise=sum(element in gold_texts for element in normal_elements),
        # Equal texts only: an element that merely holds a gold answer does not hit it.
        hits=tuple(any(alias in normal_elements for alias in names) for names in aliases),
    )


def split_answer_list(response: str, golds: Golds, rules: Rules) -> list[str]:
    """Return the elements of a list answer, as written; a gold answer with a comma is not split."""
    if not rules.lists_split:
        return split_list_as_in_paper(response)
    return split_list(response, {normalise(alias) for gold in golds for alias in gold})


def split_plain_list(response: str, golds: Golds, rules: Rules) -> list[str]:
    """Return the elements of a list answer without citations."""
    if not rules.lists_split:
        return split_answer_list(strip_citations_as_in_paper(response), golds, rules)
    return [strip_citations(e).strip() for e in split_answer_list(response, golds, rules)]


def wrong_in_documents(
    predicted: Sequence[str], supported: Golds, passages: Sequence[str], rules: Rules
) -> float | None:
    """Return the share of wrong list elements that some passage mentions; ``None`` without any.

    An element is wrong when it holds no alias of a supported gold answer (qampari_presence).
    """
    normal, contains = rules.normal, rules.contains
    aliases = [normal(alias) for gold in supported for alias in gold]
    result = [normal(p) for p in predicted if p]
    # Wider than a hit of list_match: an element that contains an alias is not called wrong.
    wrong = [p for p in result if not any(contains(p, alias) for alias in aliases)]
    texts = [normal(passage) for passage in passages]
    if not wrong:
        return None
    return sum(any(contains(text, p) for text in texts) for p in wrong) / len(wrong)


def find_mention(passage: str, gold: Sequence[str], rules: Rules) -> str | None:
    """Return the first alias of a gold answer that is in a passage, as the user wrote it."""
    text = rules.normal(passage)
    return next((alias for alias in gold if rules.contains(text, rules.normal(alias))), None)

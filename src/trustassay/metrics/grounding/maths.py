"""The figures of a data set from the parts of single answers, and the score of one answer.

Nearly every key of Trust-Eval is a mean of some per-answer term over some population (all answers,
the answered ones, the answerable ones), and the rest are functions of those means. So a data set is
summed up by two numbers a key, the sum of its terms and the size of its population, and the same
functions give the point estimate and, by their derivatives, its variance.

Then come citation recall and precision of one statement: decisions on entailment labels. Last the
gold answers that a response gives: exact match and list match.

Formulas: Song et al. 2025 (Trust-Align), as implemented by trust_eval 0.1.6.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trustassay.metrics.grounding.options import Rules
from trustassay.statistics import Bools, Floats
from trustassay.text.citations import without_citations, without_citations_as_in_paper
from trustassay.text.lists import list_elements, list_elements_as_in_paper
from trustassay.text.words import normalise

Terms = dict[str, tuple[Floats, Bools]]
"""For each key the per-answer terms and the population they are averaged over, each (m,)."""

PARTS = tuple(
    "answered answered_stripped answerable words blank golds hits supported supported_hits "
    "elements precise_elements supported_elements wrong_in_documents statements "
    "supported_statements citations precise_citations invalid_citations false_denials".split()
)
"""The numbers that an assessment brings; one that is absent is unknown for that answer."""

TOP = 5


def part_table(parts: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    """Return the parts of m answers as columns (m,); NaN where a part is absent."""
    table = np.array([[p.get(name, np.nan) for name in PARTS] for p in parts], dtype=float)
    return dict(zip(PARTS, table.reshape(len(parts), len(PARTS)).T, strict=True))


def terms(column: Mapping[str, Floats], correctness: str | None, *, skip_blank: bool) -> Terms:
    """Return every averaged term of m answers with its population.

    Args:
        column: from :func:`part_table`.
        correctness: ``em``, ``em5``, ``cm``, or ``None`` if there is nothing to compare with.
        skip_blank: leave blank answers out of the citation figures.
    """
    everyone = ~np.isnan(column["answered"])
    answered = column["answered"] == 1
    refused = column["answered"] == 0
    known = ~np.isnan(column["answerable"])
    answerable = column["answerable"] == 1
    unanswerable = column["answerable"] == 0
    result: Terms = {
        "answered_ratio": (column["answered"], everyone),
        "answerable_ratio": (column["answerable"], known),
        "overlapped_ratio": (column["answered"] * column["answerable"], known),
        "regular_length": (column["words"], everyone),
        "answered_length": (column["words"], answered),
        "reject_rec": (1 - column["answered"], unanswerable),
        "reject_prec": (1 - column["answerable"], refused & known),
        "answerable_rec": (column["answered"], answerable),
        "answerable_prec": (column["answerable"], answered & known),
        "invalid_citations": (column["invalid_citations"], everyone),
    }
    result |= _citation_terms(column, answered, skip_blank=skip_blank)
    return result | _gold_terms(column, correctness) if correctness else result


def _citation_terms(column: Mapping[str, Floats], answered: Bools, *, skip_blank: bool) -> Terms:
    recall = ratio(column["supported_statements"], column["statements"])
    precision = ratio(column["precise_citations"], column["citations"])
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


def _gold_terms(column: Mapping[str, Floats], correctness: str) -> Terms:
    """Terms of gold answers; ``cm`` differs in the text on which refusal is decided."""
    golds, supported_hits = column["golds"], column["supported_hits"]
    has_gold = golds > 0
    calibrated = has_gold & ~np.isnan(column["answerable"])
    answerable = column["answerable"] == 1
    stripped = column["answered_stripped"] == 1
    answered = stripped if correctness == "cm" else column["answered"] == 1
    shown = answerable & stripped
    result: Terms = {}
    others: Terms = {}
    if correctness == "em5":
        keys, parametric = LIST_KEYS, "parametric_qampari_rec_top5"
        plain = _list_scores(column, "precise_elements", "hits", "golds")
        elements, *shares = _list_scores(
            column, "supported_elements", "supported_hits", "supported"
        )
        supported = [elements, *(np.where(shown, one, 0.0) for one in shares)]
        backed = ratio(np.minimum(TOP, supported_hits), np.minimum(TOP, golds))
        own = plain[3] - backed
        presence = column["wrong_in_documents"]
        wrong = answered & ~np.isnan(presence)
        others = {"qampari_presence": (presence, wrong), "qampari_absence": (1 - presence, wrong)}
    else:
        keys = (CORRECTNESS_STEMS[correctness],)
        parametric = (
            "parametric_str_em" if correctness == "em" else "parametric_answered_claims_nli"
        )
        plain = [ratio(column["hits"], golds)]
        supported = [np.where(shown, ratio(supported_hits, column["supported"]), 0.0)]
        own = plain[0] - np.where(shown, ratio(supported_hits, golds), 0.0)
    for prefix, scores, population in (
        ("regular_", plain, has_gold),
        ("answered_", plain, has_gold & answered),
        ("calib_answered_", supported, calibrated & answered),
        ("calib_answerable_", supported, calibrated & answerable),
    ):
        result |= {f"{prefix}{k}": (s, population) for k, s in zip(keys, scores, strict=True)}
    return result | {parametric: (own, calibrated & answered)} | others


def _list_scores(column: Mapping[str, Floats], precise: str, hits: str, golds: str) -> list[Floats]:
    """Return the six list figures of each answer, in the order of ``LIST_KEYS``."""
    elements, result, wanted = column["elements"], column[hits], column[golds]
    precision, recall = ratio(column[precise], elements), ratio(result, wanted)
    top = ratio(np.minimum(TOP, result), np.minimum(TOP, wanted))
    return [elements, precision, recall, top, f1(precision, recall), f1(precision, top)]


def ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, 0 where ``whole`` is 0, NaN where either is unknown."""
    return np.divide(part, whole, out=np.where(np.isnan(part), part, 0.0), where=whole != 0)


def f1(precision: Floats, recall: Floats) -> Floats:
    """Return 2pr / (p + r), 0 where both are 0, NaN where either is undefined."""
    return ratio(2 * precision * recall, precision + recall)


_TWO = {"str_em": "str_em", "claims_nli": "claims_nli", "qampari_em": "qampari_f1_top5"}
"""What the F1 of answered and answerable questions is of, by its name."""
COMPOSITES: dict[str, tuple[tuple[str, ...], Callable[..., Floats]]] = {
    **{
        f"{stem}_f1": ((f"{stem}_prec", f"{stem}_rec"), f1)
        for stem in ("reject", "answerable", "regular_citation", "answered_citation")
    },
    **{
        f"calib_{name}_f1": ((f"calib_answered_{of}", f"calib_answerable_{of}"), f1)
        for name, of in _TWO.items()
    },
    "macro_avg": (("reject_rec", "answerable_rec"), lambda a, b: (a + b) / 2),
    "macro_f1": (("reject_f1", "answerable_f1"), lambda a, b: (a + b) / 2),
}
"""Figures made of other figures, in the order in which they can be computed."""

CORRECTNESS_F1 = dict(zip(("em", "cm", "em5"), (f"calib_{name}_f1" for name in _TWO), strict=True))

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
            mean = np.where((sizes[key] == 0) & (within > 0), np.nan, mean)
        result[key] = mean if key in NOT_PERCENT else 100 * mean
    for key, (inputs, combine) in COMPOSITES.items():
        if all(name in result for name in inputs):
            result[key] = combine(*(result[name] for name in inputs))
    if undefined_f1_zero:
        result["regular_citation_f1"] = np.nan_to_num(result["regular_citation_f1"])
    if correctness:
        inputs = (CORRECTNESS_F1[correctness], "macro_f1", "answered_citation_f1")
        result["trust_score"] = np.mean([result[name] for name in inputs], axis=0)
    return result


def scored(parts: Mapping[str, float], correctness: str) -> tuple[float | None, str]:
    """Return the score of one answer in 0..1, if it is known, and its reason.

    A refusal scores 1 if the documents support no gold answer, else 0; a blank response
    scores 0. An answer scores the mean of the parts that apply: the share of the supported gold
    answers that it gives, 1 or 0 for whether the question could be answered, and the F1 of its
    citation recall and precision. These are the three parts of the trust score, for one answer.
    """
    answerable = parts.get("answerable")
    if not parts["answered"]:
        if answerable is None:
            return None, "refused; whether rightly is unknown without gold answers"
        right = "rightly: no document supports" if not answerable else "though a document supports"
        return 1.0 - answerable, f"refused {right} a gold answer"
    if parts["blank"]:
        return 0.0, "the response is blank"
    recall = share(parts["supported_statements"], parts["statements"])
    precision = share(parts["precise_citations"], parts["citations"])
    applicable = [share(2 * recall * precision, recall + precision)]
    words = [
        f"{parts['supported_statements']:.0f} of {parts['statements']:.0f} statements supported",
        f"{parts['precise_citations']:.0f} of {parts['citations']:.0f} citations precise",
    ]
    if answerable is not None:
        applicable.append(answerable)
    if answerable == 0:
        words.insert(0, "answered though no document supports a gold answer")
    if "supported_hits" in parts:
        hits, supported = parts["supported_hits"], parts["supported"]
        correct = share(hits, supported)
        if correctness == "em5":
            precision = share(parts["supported_elements"], parts["elements"])
            recall = share(min(TOP, hits), min(TOP, supported))
            correct = share(2 * precision * recall, precision + recall)
        applicable.append(correct)
        if answerable:
            words.insert(0, f"gives {hits:.0f} of {supported:.0f} supported gold answers")
    return sum(applicable) / len(applicable), "; ".join(words)


def share(part: float, whole: float) -> float:
    """Return part / whole, 0 of nothing."""
    return part / whole if whole else 0.0


WHY = {
    "supports alone": "this passage alone entails the statement",
    "needed": "the other cited passages do not entail the statement without it",
    "covered": "the others are enough, but it supports a gold answer that they also support",
    "redundant": "the other cited passages entail the statement without it",
    "unsupported": "the cited passages together do not entail the statement",
    "invalid": "the document does not exist",
    "beyond limit": "only the first {limit} citations of a statement count",
    "duplicate": "the same document is already cited in this statement",
}


_WHY = {
    None: "cites a document that does not exist",
    True: "the cited passages entail the statement",
    False: WHY["unsupported"],
}


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation: the number as written, the document's index, and the verdict, once known."""

    number: int
    index: int
    verdict: str | None = None
    why: str = ""

    def as_(self, verdict: str, why: str = "") -> "Citation":
        """Return this citation with its verdict."""
        return replace(self, verdict=verdict, why=why or WHY[verdict])

    @property
    def open(self) -> bool:
        """Whether entailment has to decide."""
        return self.verdict is None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judged statement: ``points`` of ``counted`` citations are precise."""

    citations: tuple[Citation, ...]
    supported: bool
    points: int
    counted: int
    why: str


def cited(
    numbers: Sequence[int], documents: int, rules: Rules, limit: int | None
) -> list[Citation]:
    """Return the citations of a statement; those that entailment need not judge have verdicts.

    The range check comes before the limit, as in trust_eval 0.1.6 (spec 7.1): a citation of a
    missing document voids its statement even where the limit would have cut it off.
    """
    first = 0 if rules.zero == "last" and documents else 1
    citations = [
        one if first <= one.number <= documents else one.as_("invalid")
        for one in (Citation(number, number - 1) for number in numbers)
    ]
    voided = rules.invalid == "void" and any(c.verdict == "invalid" for c in citations)
    seen: set[int] = set()
    judged, kept = [], 0
    for citation in citations:
        if citation.open and voided:
            why = "a citation next to it names a document that does not exist"
            judged.append(citation.as_("unsupported", why))
        elif citation.open and rules.duplicates == "once" and citation.index % documents in seen:
            judged.append(citation.as_("duplicate"))
        elif citation.open and limit is not None and kept >= limit:
            judged.append(citation.as_("beyond limit", WHY["beyond limit"].format(limit=limit)))
        else:
            kept += citation.open
            judged.append(citation)
        if citation.open:
            seen.add(citation.index % documents)  # [0] may be the last document
    return judged


def rest_of(indices: Sequence[int], position: int) -> list[int]:
    """Return the indices without the first occurrence of the value at ``position``."""
    rest = list(indices)
    rest.remove(indices[position])
    return rest


def covers_the_same(coverage: Sequence[Sequence[int]], index: int, rest: Sequence[int]) -> bool:
    """Return whether ``index`` and a document of ``rest`` support the same gold answer."""
    return any(
        mine and any(coverage[other][gold] for other in rest)
        for gold, mine in enumerate(coverage[index] if coverage else ())
    )


def judged(
    citations: Sequence[Citation],
    entails: Callable[[Sequence[int]], bool],
    coverage: Sequence[Sequence[int]],
    rules: Rules,
) -> Judgement:
    """Judge a statement's citations (spec 7.1; conditions A and B of Gao et al. 2023).

    Args:
        citations: from :func:`cited`.
        entails: do the passages of these indices together entail the statement? It is asked of
            all open citations, of each alone, and of the others without it.
        coverage: for each document its flags, one for each gold answer; empty where unknown.
        rules: of the profile.
    """
    open_ones = [c for c in citations if c.open]
    indices = [c.index for c in open_ones]
    joint = entails(indices) if indices else None
    verdicts = []
    for position, index in enumerate(indices):
        rest = rest_of(indices, position)
        if not joint:
            verdict = "unsupported"
        elif not rest or entails([index]):
            verdict = "supports alone"
        elif not entails(rest):
            verdict = "needed"
        elif rules.precision == "paper" and covers_the_same(coverage, index, rest):
            verdict = "covered"
        else:
            verdict = "redundant"
        verdicts.append(verdict)
    decided = iter(verdicts)
    final = tuple(c.as_(next(decided)) if c.open else c for c in citations)
    counted = len(open_ones)
    if rules.invalid == "imprecise":
        counted += sum(c.verdict == "invalid" for c in citations)
    return Judgement(
        final,
        supported=bool(joint),
        points=sum(v in ("supports alone", "needed", "covered") for v in verdicts),
        counted=counted,
        why="cites nothing" if not final else _WHY[joint],
    )


Golds = Sequence[Sequence[str]]


def exact_hits(shown: str, golds: Golds, rules: Rules) -> list[bool]:
    """Return, for each gold answer, whether an alias of it is in the response (``em``).

    ``shown`` is the response without citations.
    """
    text = rules.normal(shown)
    return [any(rules.contains(text, rules.normal(alias)) for alias in gold) for gold in golds]


@dataclass(frozen=True, slots=True)
class ListMatch:
    """The elements of a list answer, which of them are gold, and which golds they hit."""

    elements: tuple[str, ...]
    precise: int
    hits: tuple[bool, ...]


def list_match(predicted: Sequence[str], golds: Golds, rules: Rules) -> ListMatch:
    """Match the elements of a list answer with gold answers (``em5``, spec 6.3).

    ``predicted`` comes from :func:`predictions`. A pair matches when the normalised texts are
    equal. Duplicates count each time.
    """
    aliases = [list(map(rules.normal, gold)) for gold in golds]
    known = {alias for names in aliases for alias in names}
    result = [element for element in map(rules.normal, predicted) if element]
    return ListMatch(
        elements=tuple(result),
        precise=sum(element in known for element in result),
        hits=tuple(any(alias in result for alias in names) for names in aliases),
    )


def listed(response: str, golds: Golds, rules: Rules) -> list[str]:
    """Return the elements of a list answer, as written; ``golds`` tells which hold a comma."""
    if not rules.lists_split:
        return list_elements_as_in_paper(response)
    return list_elements(response, {normalise(alias) for gold in golds for alias in gold})


def predictions(response: str, golds: Golds, rules: Rules) -> list[str]:
    """Return the elements of a list answer without citations."""
    if not rules.lists_split:
        return listed(without_citations_as_in_paper(response), golds, rules)
    return [without_citations(e).strip() for e in listed(response, golds, rules)]


def wrong_in_documents(
    predicted: Sequence[str], supported: Golds, passages: Sequence[str], rules: Rules
) -> float | None:
    """Return the share of wrong list elements that some passage mentions; ``None`` without any.

    An element is wrong when it holds no alias of a supported gold answer (qampari_presence).
    """
    normal, contains = rules.normal, rules.contains
    aliases = [normal(alias) for gold in supported for alias in gold]
    result = [normal(p) for p in predicted if p]
    wrong = [p for p in result if not any(contains(p, alias) for alias in aliases)]
    texts = [normal(passage) for passage in passages]
    if not wrong:
        return None
    return sum(any(contains(text, p) for text in texts) for p in wrong) / len(wrong)


def mentions(passage: str, gold: Sequence[str], rules: Rules) -> str | None:
    """Return the first alias of a gold answer that is in a passage, as the user wrote it."""
    text = rules.normal(passage)
    return next((alias for alias in gold if rules.contains(text, rules.normal(alias))), None)

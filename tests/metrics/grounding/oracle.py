"""A slow second opinion on the grounding metric, for tests only.

Every figure is worked out with plain loops over plain dictionaries, as Trust-Eval 0.1.6 would give
it, oddities included. Nothing is shared with the package, so that agreement between the two means
something. Where the original yields NaN, this yields None. Malformed input raises whatever Python
raises.
"""

import re
import string
from collections.abc import Callable
from typing import Any

from rapidfuzz.distance import Indel, Levenshtein

Item = dict[str, Any]
Entails = Callable[[str, str], bool]
Sentences = Callable[[str], list[str]]
Values = dict[str, float | None]

REFUSAL_FLAG = "I apologize, but I couldn't find an answer"
REFUSAL_THRESHOLD = 85
TOP = 5


# Text


def normalise(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces."""
    kept = ""
    for character in text.lower():
        if character not in string.punctuation:
            kept += character
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", kept).split())


def without_citations(text: str) -> str:
    """The text without citation marks; every closing bracket goes, whatever it closed."""
    text = re.sub(r" \[\d+", "", text)
    text = re.sub(r"\[\d+", "", text)
    return text.replace(" |", "").replace("]", "")


def cited(text: str) -> list[int]:
    """Zero-based document positions in order of appearance; `[0]` gives -1."""
    return [int(digits) - 1 for digits in re.findall(r"\[(\d+)", text)]


def partial_ratio(flag: str, text: str) -> int:
    """Best match (0 to 100) of the shorter string with a window of the longer one.

    Windows begin only where a matching block of the Levenshtein alignment puts them.
    """
    if flag == text:
        return 100
    if flag == "" or text == "":
        return 0
    shorter, longer = (flag, text) if len(flag) <= len(text) else (text, flag)
    best = 0.0
    for block in Levenshtein.editops(shorter, longer).as_matching_blocks():
        start = max(0, block.b - block.a)
        window = longer[start : start + len(shorter)]
        ratio = Indel.normalized_similarity(shorter, window)
        if ratio > 0.995:
            return 100
        best = max(best, ratio)
    return round(100 * best)


def refused(text: str) -> bool:
    """Whether the text counts as a refusal."""
    return partial_ratio(normalise(REFUSAL_FLAG), normalise(text)) > REFUSAL_THRESHOLD


# One item


def covered(item: Item) -> list[int]:
    """Per gold answer, the bitwise OR of the documents' flags."""
    flags = list(item["docs"][0]["answers_found"])
    for document in item["docs"][1:]:
        for j in range(len(flags)):
            flags[j] |= document["answers_found"][j]
    return flags


def answerable(item: Item) -> bool:
    """Whether some document covers some gold answer."""
    return any(covered(item))


def supported(item: Item) -> list[int]:
    """Positions of the gold answers that the documents cover."""
    flags = covered(item)
    return [j for j in range(len(item["answers"])) if flags[j] == 1]


def shown(item: Item) -> bool:
    """Answerable, and not refused once the citations are gone."""
    return answerable(item) and not refused(without_citations(item["output"]))


# Means


def f1(precision: float | None, recall: float | None) -> float:
    """Harmonic mean that is 0 at 0 + 0 and for missing parts."""
    if precision is None or recall is None or precision + recall == 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


def harmonic(first: float, second: float) -> float:
    """Harmonic mean that is 0 as soon as one part is."""
    if first == 0 or second == 0:
        return 0.0
    return 2 / (1 / first + 1 / second)


def mean(values: list[float]) -> float:
    """Plain mean, 0 of nothing."""
    if len(values) == 0:
        return 0.0
    return sum(values) / len(values)


def percent(part: int, whole: int) -> float:
    """A share times 100, 0 of nothing."""
    if whole == 0:
        return 0.0
    return 100 * part / whole


# Counts and refusal


def basics(items: list[Item]) -> Values:
    """Counts, lengths and refusal figures, all decided on the raw output."""
    answered_num = answerable_num = both = refused_num = refused_rightly = 0
    lengths: list[float] = []
    answered_lengths: list[float] = []
    for item in items:
        words = len(without_citations(item["output"]).split())
        lengths.append(words)
        if answerable(item):
            answerable_num += 1
        if refused(item["output"]):
            refused_num += 1
            if not answerable(item):
                refused_rightly += 1
        else:
            answered_num += 1
            answered_lengths.append(words)
            if answerable(item):
                both += 1
    refuse_rec = percent(refused_rightly, len(items) - answerable_num)
    refuse_prec = percent(refused_rightly, refused_num)
    answerable_rec = percent(both, answerable_num)
    answerable_prec = percent(both, answered_num)
    refuse_f1 = f1(refuse_prec, refuse_rec)
    answerable_f1 = f1(answerable_prec, answerable_rec)
    return {
        "num_samples": len(items),
        "answered_ratio": round(100 * answered_num / len(items), 2),
        "answered_num": answered_num,
        "answerable_num": answerable_num,
        "overlapped_num": both,
        "regular_length": mean(lengths),
        "answered_length": mean(answered_lengths),
        "refuse_rec": refuse_rec,
        "refuse_prec": refuse_prec,
        "refuse_f1": refuse_f1,
        "answerable_rec": answerable_rec,
        "answerable_prec": answerable_prec,
        "answerable_f1": answerable_f1,
        "macro_avg": (refuse_rec + answerable_rec) / 2,
        "macro_f1": (refuse_f1 + answerable_f1) / 2,
    }


def raw_answered(items: list[Item]) -> list[Item]:
    """The items whose raw output is no refusal."""
    return [item for item in items if not refused(item["output"])]


def only_answerable(items: list[Item]) -> list[Item]:
    """The items whose documents cover something."""
    return [item for item in items if answerable(item)]


# Correctness: exact match


def substring_hit(item: Item, j: int) -> bool:
    """Whether an alias of gold answer j occurs in the output, inside words too."""
    output = normalise(without_citations(item["output"]))
    return any(normalise(alias) in output for alias in item["answers"][j])


def em_share(item: Item) -> float:
    """Hits among all gold answers."""
    hits = 0
    for j in range(len(item["answers"])):
        if substring_hit(item, j):
            hits += 1
    return hits / len(item["answers"])


def em_supported_hits(item: Item) -> int:
    """Hits among the gold answers that the documents cover."""
    hits = 0
    for j in supported(item):
        if substring_hit(item, j):
            hits += 1
    return hits


def em_calibrated(item: Item) -> float:
    """Hits among supported gold answers, 0 for an item that is not shown."""
    if not shown(item):
        return 0.0
    return em_supported_hits(item) / len(supported(item))


def em_backed(item: Item) -> float:
    """Supported hits over the number of flags, 0 for an item that is not shown."""
    if not shown(item):
        return 0.0
    return em_supported_hits(item) / len(covered(item))


def em_mean(items: list[Item], per_item: Callable[[Item], float]) -> float:
    """Mean in percent; 0 of nothing and 0 when the first item lacks gold answers."""
    if len(items) == 0 or items[0].get("answers") is None:
        return 0.0
    return 100 * mean([per_item(item) for item in items])


def exact_match(items: list[Item]) -> Values:
    """The keys of mode em."""
    answered = raw_answered(items)
    answered_em = em_mean(answered, em_share)
    alpha = em_mean(answered, em_calibrated)
    beta = em_mean(only_answerable(items), em_calibrated)
    return {
        "regular_str_em": em_mean(items, em_share),
        "answered_str_em": answered_em,
        "calib_answered_str_em": alpha,
        "calib_answerable_str_em": beta,
        "calib_str_em_f1": harmonic(alpha, beta),
        "parametric_str_em": answered_em - em_mean(answered, em_backed),
    }


# Correctness: claims


def claims(items: list[Item], entails: Entails) -> Values:
    """The keys of mode cm; refusal is decided on the citation-free output here."""
    regular: list[float] = []
    answered: list[float] = []
    calib_answered: list[float] = []
    calib_answerable: list[float] = []
    backed: list[float] = []
    for item in items:
        output = without_citations(item["output"])
        is_answered = not refused(output)
        is_answerable = answerable(item)
        hits = supported_hits = 0
        for j in range(len(item["answers"])):
            if entails(output, item["answers"][j][0]):
                hits += 1
                if j in supported(item):
                    supported_hits += 1
        share = hits / len(item["answers"])
        calibrated = supported_hits / sum(covered(item)) if is_answerable else 0.0
        regular.append(share)
        if is_answered:
            answered.append(share)
            calib_answered.append(calibrated)
            backed.append(supported_hits / len(covered(item)) if is_answerable else 0.0)
        if is_answerable:
            calib_answerable.append(calibrated if is_answered else 0.0)
    alpha = 100 * mean(calib_answered)
    beta = 100 * mean(calib_answerable)
    return {
        "regular_claims_nli": 100 * mean(regular),
        "answered_claims_nli": 100 * mean(answered),
        "calib_answered_claims_nli": alpha,
        "calib_answerable_claims_nli": beta,
        "calib_claims_nli_f1": harmonic(alpha, beta),
        "parametric_answered_claims_nli": 100 * mean(answered) - 100 * mean(backed),
    }


# Correctness: lists


def elements(text: str) -> list[str]:
    """The trimmed text cut at commas; blank text still gives one element."""
    trimmed = text.rstrip().rstrip(".").rstrip(",")
    return [piece.strip() for piece in trimmed.split(",")]


def predictions(item: Item) -> list[str]:
    """Normalised list elements of the citation-free output, duplicates kept."""
    found = [normalise(element) for element in elements(without_citations(item["output"]))]
    return [prediction for prediction in found if prediction != ""]


def list_hits(item: Item, gold: list[int]) -> int:
    """How many of the gold answers in question were predicted."""
    found = predictions(item)
    hits = 0
    for j in gold:
        if any(normalise(alias) in found for alias in item["answers"][j]):
            hits += 1
    return hits


LIST_KEYS = (
    "qampari_prec",
    "qampari_rec",
    "qampari_rec_top5",
    "qampari_f1",
    "qampari_f1_top5",
)


def list_scores(item: Item, gold: list[int]) -> dict[str, float]:
    """One item's list figures as fractions, against the gold answers in question."""
    aliases = [normalise(alias) for j in gold for alias in item["answers"][j]]
    found = predictions(item)
    right = 0
    for prediction in found:
        if prediction in aliases:
            right += 1
    precision = right / len(found) if found else 0.0
    hits = list_hits(item, gold)
    recall = hits / len(gold)
    recall_top = min(TOP, hits) / min(TOP, len(gold))
    return {
        "qampari_prec": precision,
        "qampari_rec": recall,
        "qampari_rec_top5": recall_top,
        "qampari_f1": f1(precision, recall),
        "qampari_f1_top5": f1(precision, recall_top),
    }


def list_means(items: list[Item], prefix: str, *, calibrated: bool) -> dict[str, float]:
    """The six list keys of one subset."""
    counts: list[float] = []
    columns: dict[str, list[float]] = {key: [] for key in LIST_KEYS}
    for item in items:
        counts.append(len(predictions(item)))
        if calibrated and not shown(item):
            scores = dict.fromkeys(LIST_KEYS, 0.0)
        elif calibrated:
            scores = list_scores(item, supported(item))
        else:
            scores = list_scores(item, list(range(len(item["answers"]))))
        for key in LIST_KEYS:
            columns[key].append(scores[key])
    result = {f"{prefix}num_preds": mean(counts)}
    for key in LIST_KEYS:
        result[f"{prefix}{key}"] = 100 * mean(columns[key])
    return result


def presence(answered: list[Item]) -> tuple[float | None, float | None]:
    """Percentages of the wrong predictions that stand, and do not stand, in a document."""
    if len(answered) == 0:
        return 0.0, 0.0
    present: list[float] = []
    absent: list[float] = []
    for item in answered:
        wrong = in_documents = 0
        for prediction in elements(without_citations(item["output"])):
            if prediction == "" or names_supported(item, prediction):
                continue
            wrong += 1
            for document in item["docs"]:
                if normalise(prediction) in normalise(document["text"]):
                    in_documents += 1
                    break
        if wrong > 0:
            present.append(in_documents / wrong)
            absent.append(1 - in_documents / wrong)
    if len(present) == 0:
        return None, None
    return 100 * mean(present), 100 * mean(absent)


def names_supported(item: Item, prediction: str) -> bool:
    """Whether a supported alias occurs in the prediction."""
    for j in supported(item):
        for alias in item["answers"][j]:
            if normalise(alias) in normalise(prediction):
                return True
    return False


def lists(items: list[Item]) -> Values:
    """The keys of mode em5."""
    answered = raw_answered(items)
    values: Values = {}
    values.update(list_means(items, "regular_", calibrated=False))
    plain = list_means(answered, "answered_", calibrated=False)
    alpha = list_means(answered, "calib_answered_", calibrated=True)
    beta = list_means(only_answerable(items), "calib_answerable_", calibrated=True)
    values.update(plain)
    values.update(alpha)
    values.update(beta)
    values["calib_qampari_em_f1"] = harmonic(
        alpha["calib_answered_qampari_f1_top5"], beta["calib_answerable_qampari_f1_top5"]
    )
    backed: list[float] = []
    for item in answered:
        hits = list_hits(item, supported(item))
        backed.append(min(TOP, hits) / min(TOP, len(covered(item))))
    values["parametric_qampari_rec_top5"] = plain["answered_qampari_rec_top5"] - 100 * mean(backed)
    values["qampari_presence"], values["qampari_absence"] = presence(answered)
    return values


# Citations


def block(document: Item) -> str:
    """One document as it stands in a premise."""
    text = document["sent"] if "sent" in document else document["text"]
    return f"Title: {document['title']}\n{text}"


def premise(item: Item, references: list[int]) -> str:
    """The cited documents, one below the other."""
    return "\n".join([block(item["docs"][reference]) for reference in references])


def shares_coverage(item: Item, reference: int, rest: list[int]) -> bool:
    """Whether a document covers a gold answer that the rest covers too."""
    own = item["docs"][reference]["answers_found"]
    for j in range(len(own)):
        union = 0
        for other in rest:
            union |= item["docs"][other]["answers_found"][j]
        if union == 1 and own[j] == 1:
            return True
    return False


def precise_citations(item: Item, hypothesis: str, references: list[int], entails: Entails) -> int:
    """How many citations of a supported sentence earn their place."""
    if len(references) == 1:
        return 1
    points = 0
    for reference in references:
        if entails(premise(item, [reference]), hypothesis):
            points += 1
            continue
        rest = list(references)
        rest.remove(reference)
        redundant = entails(premise(item, rest), hypothesis)
        if not redundant or shares_coverage(item, reference, rest):
            points += 1
    return points


def citation_scores(
    item: Item, statements: list[str], entails: Entails, at_most: int | None
) -> tuple[float, float]:
    """Citation recall and precision of one response, as fractions."""
    upheld = points = total = 0
    for statement in statements:
        references = cited(statement)
        if len(references) == 0:
            continue
        if any(reference >= len(item["docs"]) for reference in references):
            continue
        if at_most is not None:
            references = references[:at_most]
        total += len(references)
        hypothesis = without_citations(statement).strip()
        if entails(premise(item, references), hypothesis):
            upheld += 1
            points += precise_citations(item, hypothesis, references, entails)
    return upheld / len(statements), points / total if total else 0.0


def citations(
    items: list[Item],
    *,
    as_list: bool,
    entails: Entails,
    sentences: Sentences,
    at_most: int | None,
) -> Values:
    """The six citation keys."""
    recalls: list[float] = []
    precisions: list[float] = []
    answered_recalls: list[float] = []
    answered_precisions: list[float] = []
    for item in items:
        if as_list:
            statements = [item["question"] + " " + piece for piece in elements(item["output"])]
        else:
            statements = sentences(item["output"])
        if len(statements) == 0:
            continue
        recall, precision = citation_scores(item, statements, entails, at_most)
        recalls.append(recall)
        precisions.append(precision)
        if not refused(item["output"]):
            answered_recalls.append(recall)
            answered_precisions.append(precision)
    regular_rec = 100 * mean(recalls) if recalls else None
    regular_prec = 100 * mean(precisions) if precisions else None
    answered_rec = 100 * mean(answered_recalls)
    answered_prec = 100 * mean(answered_precisions)
    return {
        "regular_citation_rec": regular_rec,
        "regular_citation_prec": regular_prec,
        "regular_citation_f1": f1(regular_prec, regular_rec),
        "answered_citation_rec": answered_rec,
        "answered_citation_prec": answered_prec,
        "answered_citation_f1": f1(answered_prec, answered_rec),
    }


# Everything

CORRECTNESS = {
    "em": "calib_str_em_f1",
    "em5": "calib_qampari_em_f1",
    "cm": "calib_claims_nli_f1",
}


def evaluate(
    items: list[Item],
    *,
    mode: str,
    entails: Entails,
    sentences: Sentences,
    at_most_citations: int | None = 3,
) -> Values:
    """Every figure of one data set; `mode` is "em", "cm" or "em5"."""
    values = basics(items)
    if mode == "em":
        values.update(exact_match(items))
    elif mode == "cm":
        values.update(claims(items, entails))
    elif mode == "em5":
        values.update(lists(items))
    else:
        raise ValueError(f"unknown mode {mode!r}")
    values.update(
        citations(
            items,
            as_list=mode == "em5",
            entails=entails,
            sentences=sentences,
            at_most=at_most_citations,
        )
    )
    total = 0.0
    for key in (CORRECTNESS[mode], "macro_f1", "answered_citation_f1"):
        part = values[key]
        if part is None:
            values["trust_score"] = None
            return values
        total += part
    values["trust_score"] = total / 3
    return values

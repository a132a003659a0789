"""Why answers of a run were not judged, and what to do about it, in sentences."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from trustassay.backends.recommended import find_recommended
from trustassay.core.outcome import BLANK, ERROR, NO_CLAIM, NO_PASSAGES, REFUSED
from trustassay.judging.entailer_quality import (
    LARGER_ENTAILER,
    LOCAL_SECOND_READER,
    METRICS_WITH_SECOND_READER,
)
from trustassay.runs.counts import LOOKED_KEY, OUTCOMES_KEY
from trustassay.text.language import name_language
from trustassay.text.numbers import amount, verb

MIN_SHARE_WITHOUT_PASSAGES = 0.05
"""Share of answers without passages from which a sentence mentions them."""
_PASSAGES_ADVICE = (
    "name their column with --field documents=COLUMN, or find them in a file with --retriever "
    "bm25:FILE"
)
# What to do if no answer could be judged, by the reason.
_ADVICE = {
    BLANK: (
        "Blank answers: name the column of the answers with --field response=COLUMN, or ask a "
        "model for them with --model URI"
    ),
    REFUSED: (
        "Refusals: with gold answers in the field `answers`, --metric grounding judges whether "
        "they are right"
    ),
    NO_PASSAGES: f"Answers without passages to judge by: {_PASSAGES_ADVICE}",
    NO_CLAIM: (
        "Answers that state nothing to check: if the answers are in another column, name it with "
        "--field response=COLUMN"
    ),
    ERROR: "Errors: remove their cause, then run the same command again",
}


def explain_unjudged(summary: Mapping[str, Any], run: Mapping[str, Any]) -> list[str]:
    """Return sentences on the answers that were not judged, each with what to do.

    Answers in languages that a model does not read are always mentioned, those without passages
    from 5 % of the answers, all others only if no answer could be judged.

    Args:
        summary: the content of ``summary.json``. run: the content of ``run.json``.
    """
    total = int(run["samples"]["samples"])
    sentences = _explain_languages(summary.get("languages", {}), run, total)
    reasons = _count_reasons(summary)
    if summary.get(LOOKED_KEY, {}).get("judged") == 0:
        sentences += [f"{_ADVICE[reason]}." for reason in reasons if reason in _ADVICE]
    elif (count := reasons[NO_PASSAGES]) > MIN_SHARE_WITHOUT_PASSAGES * total:
        share_text = f"{count:,} of {amount(total, 'answer')} {verb(count, 'has', 'have')}"
        sentences.append(f"{share_text} no passages to judge by: {_PASSAGES_ADVICE}.")
    return sentences


def _count_reasons(summary: Mapping[str, Any]) -> Counter[str]:
    """Return why answers were not judged; of several metrics the largest count of each reason."""
    result: Counter[str] = Counter()
    for outcomes in summary.get(OUTCOMES_KEY, {}).values():
        result |= Counter(outcomes["reasons"])
    return result


def _explain_languages(
    languages: Mapping[str, Mapping[str, Mapping[str, int]]], run: Mapping[str, Any], total: int
) -> list[str]:
    """Return what is in which language, and the readers of these, the one for this machine first.

    Args:
        languages: counts by metric, option of the model that does not read them, and language.
    """
    result = []
    for option in dict.fromkeys(option for of_metric in languages.values() for option in of_metric):
        counts: Counter[str] = Counter()
        metrics = [name for name, of_metric in languages.items() if option in of_metric]
        # Several metrics leave out the same answers.
        for name in metrics:
            counts |= Counter(languages[name][option])
        count = sum(counts.values())
        names = [
            name_language(code) + (f" ({number:,})" if len(counts) > 1 else "")
            for code, number in counts.most_common()
        ]
        # "--entailer" or "--backend similarity"
        backend = option.removeprefix("--backend ").removeprefix("--")
        result += [
            f"{count:,} of {amount(total, 'answer')} {verb(count, 'is', 'are')} in "
            f"{_join(names)}, which the {backend} ({run['backends'].get(backend)}) does not read.",
            *_list_readers(option, metrics, counts, run),
        ]
    return result


def _list_readers(
    option: str, metrics: Collection[str], languages: Collection[str], run: Mapping[str, Any]
) -> list[str]:
    # --entailer URI, or --backend similarity=agreement:URI.
    before = f"{option} " if option == "--entailer" else f"{option}=agreement:"
    larger = f"With a key: {before}{LARGER_ENTAILER}."
    name, size = LOCAL_SECOND_READER
    model = find_recommended(name)
    if "second" in run["backends"] or not set(languages) <= {*model.languages}:
        return [larger]
    aucs = [f"{model.auc_by_language[code]:.2f} in {name_language(code)}" for code in languages]
    takes_second = option == "--entailer" and METRICS_WITH_SECOND_READER.issuperset(metrics)
    local = f"--second {name}" if takes_second else f"{before}{name}"
    return [
        f"To judge {verb(len(languages), 'it', 'them')} offline: {local} (AUC {_join(aucs)}; "
        f"{model.cost}).",
        f"Install it with `pip install '.[gguf]'` and `trustassay models get {name}` ({size}).",
        larger,
    ]


def _join(names: list[str]) -> str:
    """Join names as a sentence does: ``German, French and Japanese``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

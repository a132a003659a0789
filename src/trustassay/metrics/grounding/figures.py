"""What each key of the grounding summary means."""

from __future__ import annotations

from trustassay.metric import Figure

_ROWS: list[tuple[str, list[tuple[str, str, str]]]] = [
    (
        "Overall",
        [
            (
                "trust_score",
                "%",
                "Mean of calibrated correctness, macro_f1 and answered_citation_f1 (Trust-Score).",
            ),
        ],
    ),
    (
        "Counts and lengths",
        [
            ("num_samples", "", "Answers that were scored."),
            ("answered_ratio", "%", "Share of answers that are not refusals, to two decimals."),
            ("answered_num", "", "Answers that are not refusals."),
            ("answerable_num", "", "Questions whose documents support a gold answer."),
            ("unanswerable_num", "", "Questions whose documents support no gold answer."),
            ("overlapped_num", "", "Answerable questions that were answered."),
            ("regular_length", "words", "Mean length of all responses, without citations."),
            ("answered_length", "words", "Mean length of responses that are not refusals."),
            ("invalid_citations", "", "Citations of documents that do not exist, in total."),
        ],
    ),
    (
        "Refusals",
        [
            ("reject_rec", "%", "Of the unanswerable questions, those refused."),
            ("reject_prec", "%", "Of the refusals, those of unanswerable questions."),
            ("reject_f1", "%", "F1 of reject_rec and reject_prec."),
            ("answerable_rec", "%", "Of the answerable questions, those answered."),
            ("answerable_prec", "%", "Of the answers given, those to answerable questions."),
            ("answerable_f1", "%", "F1 of answerable_rec and answerable_prec."),
            ("macro_avg", "%", "Mean of reject_rec and answerable_rec."),
            (
                "macro_f1",
                "%",
                "Mean of reject_f1 and answerable_f1 (the paper's F1_GR). At most 50 where all "
                "questions are answerable, or none is.",
            ),
        ],
    ),
    (
        "Correctness: exact match",
        [
            ("regular_str_em", "%", "Share of gold answers that are in the response."),
            ("answered_str_em", "%", "The same over answers that are not refusals."),
            (
                "calib_answered_str_em",
                "%",
                "Share of the gold answers supported by the documents that are in the response "
                "(0 for an unanswerable question), over answered ones (the paper's EM_alpha).",
            ),
            (
                "calib_answerable_str_em",
                "%",
                "The same over answerable questions, refusals counting 0 (EM_beta).",
            ),
            (
                "calib_str_em_f1",
                "%",
                "Calibrated correctness: harmonic mean of calib_answered_str_em and "
                "calib_answerable_str_em (the paper's F1_AC).",
            ),
            (
                "parametric_str_em",
                "%",
                "answered_str_em less the part that the documents support, over all answered "
                "questions: knowledge that came from the model itself.",
            ),
        ],
    ),
    (
        "Correctness: gold claims",
        [
            ("regular_claims_nli", "%", "Share of gold claims that the response entails."),
            ("answered_claims_nli", "%", "The same over answers that are not refusals."),
            (
                "calib_answered_claims_nli",
                "%",
                "Share of the gold claims supported by the documents that the response entails "
                "(0 for an unanswerable question), over answered ones.",
            ),
            (
                "calib_answerable_claims_nli",
                "%",
                "The same over answerable questions, refusals counting 0.",
            ),
            (
                "calib_claims_nli_f1",
                "%",
                "Calibrated correctness: harmonic mean of calib_answered_claims_nli and "
                "calib_answerable_claims_nli (F1_AC).",
            ),
            (
                "parametric_answered_claims_nli",
                "%",
                "answered_claims_nli less the part that the documents support, over all answered "
                "questions.",
            ),
        ],
    ),
]

_LIST_KEYS = [
    ("num_preds", "", "list elements in a response"),
    ("qampari_prec", "%", "share of elements that are gold answers"),
    ("qampari_rec", "%", "share of gold answers that are elements"),
    ("qampari_rec_top5", "%", "the same, where five gold answers are enough"),
    ("qampari_f1", "%", "F1 of the two, answer by answer"),
    ("qampari_f1_top5", "%", "F1 with the recall for which five answers are enough"),
]
_LIST_PREFIXES = [
    ("regular_", "all responses"),
    ("answered_", "answers that are not refusals"),
    ("calib_answered_", "answered questions, only supported gold answers"),
    ("calib_answerable_", "answerable questions, only supported gold answers"),
]
_ROWS.append(
    (
        "Correctness: lists",
        [
            (prefix + key, unit, f"Mean over {over}: {what}.")
            for prefix, over in _LIST_PREFIXES
            for key, unit, what in _LIST_KEYS
        ]
        + [
            (
                "calib_qampari_em_f1",
                "%",
                "Calibrated correctness: harmonic mean of the two calibrated qampari_f1_top5 "
                "(F1_AC).",
            ),
            (
                "parametric_qampari_rec_top5",
                "%",
                "answered_qampari_rec_top5 less the part that the documents support, over all "
                "answered questions.",
            ),
            (
                "qampari_presence",
                "%",
                "Of the wrong elements of an answer, the share that some document mentions.",
            ),
            ("qampari_absence", "%", "Of the wrong elements, the share that no document mentions."),
        ],
    )
)
_ROWS.append(
    (
        "Citations",
        [
            (
                "regular_citation_rec",
                "%",
                "Share of statements entailed by their cited passages together, all responses.",
            ),
            (
                "regular_citation_prec",
                "%",
                "Share of citations that support alone or are needed, all responses.",
            ),
            ("regular_citation_f1", "%", "F1 of regular_citation_rec and regular_citation_prec."),
            ("answered_citation_rec", "%", "Citation recall of answers that are not refusals."),
            ("answered_citation_prec", "%", "Citation precision of answers that are not refusals."),
            (
                "answered_citation_f1",
                "%",
                "F1 of the mean citation recall and precision of answers (the paper's F1_GC).",
            ),
        ],
    )
)

_HEADLINES = {
    "trust_score",
    "calib_str_em_f1",
    "calib_qampari_em_f1",
    "calib_claims_nli_f1",
    "macro_f1",
    "answered_citation_f1",
}

_BETTER_HIGHER = _HEADLINES | {
    f"{kind}_{of}"
    for kind in ("reject", "answerable", "regular_citation", "answered_citation")
    for of in ("rec", "prec", "f1")
}
_NAMES = {
    "trust_score": "Trust, all in one",
    "macro_f1": "Answers and refuses when it should",
    "calib_str_em_f1": "Gives the right answers",
    "calib_qampari_em_f1": "Gives the right answers",
    "calib_claims_nli_f1": "Gives the right answers",
    "answered_citation_f1": "Cites what supports it",
}

FIGURES: dict[str, Figure] = {
    key: Figure(
        key,
        explanation,
        unit,
        group,
        headline=key in _HEADLINES,
        better="higher" if key in _BETTER_HIGHER else "",
        name=_NAMES.get(key, ""),
    )
    for group, rows in _ROWS
    for key, unit, explanation in rows
}
"""Every key in the order in which it is shown."""

LATER_NAMES = {f"reject_{kind}": f"refuse_{kind}" for kind in ("rec", "prec", "f1")}
"""The names that trust_eval gave these keys from 0.1.6 on; both are in a summary."""

FIGURES |= {
    later: Figure(later, f"Another name of {key}.", "%", "Refusals")
    for key, later in LATER_NAMES.items()
}

"""The keys of the figures of Trust-Eval, in the order in which its README prints them."""

from __future__ import annotations

__all__ = ["keys_of"]

_COUNTS = ("num_samples", "answered_ratio", "answered_num", "answerable_num", "overlapped_num")
_LENGTHS = ("regular_length", "answered_length")
_REFUSALS = ("reject_rec", "reject_prec", "reject_f1",
             "answerable_rec", "answerable_prec", "answerable_f1", "macro_avg", "macro_f1")  # fmt: skip  # noqa: E501
_LISTS = ("num_preds", "qampari_prec", "qampari_rec", "qampari_rec_top5", "qampari_f1",
          "qampari_f1_top5")  # fmt: skip
_POPULATIONS = ("regular", "answered", "calib_answered", "calib_answerable")
_CORRECTNESS = {
    "cm": (
        *(f"{which}_claims_nli" for which in _POPULATIONS),
        "calib_claims_nli_f1",
        "parametric_answered_claims_nli",
    ),
    "em": (*(f"{which}_str_em" for which in _POPULATIONS), "calib_str_em_f1", "parametric_str_em"),
    "em5": (
        *(f"{which}_{name}" for which in _POPULATIONS for name in _LISTS),
        "calib_qampari_em_f1",
        "parametric_qampari_rec_top5",
        "qampari_presence",
        "qampari_absence",
    ),
    "none": (),
}
_CITATIONS = tuple(
    f"{which}_citation_{name}"
    for which in ("regular", "answered")
    for name in ("rec", "prec", "f1")
)


def keys_of(correctness: str) -> tuple[str, ...]:
    """Return the keys for a kind of correctness: ``cm``, ``em``, ``em5`` or ``none``."""
    middle = _CORRECTNESS[correctness]
    # The score combines correctness with the rest, so it needs a kind of correctness.
    end = ("trust_score",) if middle else ()
    return (*_COUNTS, *_LENGTHS, *_REFUSALS, *middle, *_CITATIONS, *end)

"""What a larger judge would cost for a run that the embedded entailer judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trustassay.backends.chat_entailer import entailment_prompt
from trustassay.calls.prices import CHARACTERS_PER_TOKEN, Prices, Tokens
from trustassay.calls.store import CallStore
from trustassay.measured import BETTER, judge_told
from trustassay.runs.folder import RunFolder

__all__ = ["LARGER_JUDGE", "larger_judge"]

LARGER_JUDGE = "larger_judge"
"""Its key in ``summary.json``."""
REPLY_TOKENS = 4
"""Of one word such as CONTRADICTS."""


def larger_judge(
    folder: RunFolder, run: Mapping[str, Any], prices: Prices, unread: int
) -> dict[str, Any]:
    """Return the estimated price for ``summary.json``; nothing where it cannot be known.

    The model would be asked the pairs that the run's entailer was, in its own prompt. ``unread``
    samples, which this did not judge, count like the others.
    """
    entailer = str(run["backends"].get("entailer") or "")
    if not judge_told(entailer, run["metrics"]).sets or not folder.calls_path.exists():
        return {}
    store = CallStore(folder.calls_path)
    calls, characters = store.size("entailment", entailer)
    store.close(alone=False)
    samples = int(run["samples"]["samples"])
    if not calls or unread >= samples:
        return {}
    around = len(entailment_prompt().filled(premise="", hypothesis=""))
    more = samples / (samples - unread)
    tokens = (characters + calls * around) / CHARACTERS_PER_TOKEN
    usd = prices.usd(BETTER, Tokens(round(more * tokens), round(more * calls * REPLY_TOKENS)))
    if usd is None:
        return {}
    told = {"usd": round(usd, 6), "samples": samples, "prices": prices.basis(BETTER)}
    return {LARGER_JUDGE: {"entailer": BETTER, **told}}

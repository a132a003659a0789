"""The papers, and all items in their order."""

from __future__ import annotations

from lab.benchmarks.paper_items import fewl, harmonic, trust_eval, trustscore, truthfulness
from lab.benchmarks.paper_items.running import PaperItem

PAPERS = {
    "zheng": "TrustScore: Reference-Free Evaluation of LLM Response Trustworthiness",
    "wei": "Measuring and Reducing LLM Hallucination without Gold-Standard Answers (FEWL)",
    "kersting": "Harmonic LLMs are Trustworthy",
    "song": "Trust-Eval, the page of its LlamaIndex integration",
    "willowtree": "Evaluating Truthfulness: A Deeper Dive into Benchmarking LLM Accuracy",
}
"""Short names as in the items' ids, and titles."""
ALL_ITEMS: tuple[PaperItem, ...] = (
    *trustscore.ITEMS,
    *fewl.ITEMS,
    *harmonic.ITEMS,
    *trust_eval.ITEMS,
    *truthfulness.ITEMS,
)

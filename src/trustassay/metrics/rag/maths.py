"""From what stands where to figures, and from a missing fact to its cause."""

import numpy as np

from trustassay.statistics import Bools

CAUSES = {
    (False, False): "retriever",
    (True, False): "generator: not used",
    (True, True): "generator: used wrongly",
    (False, True): "both",
}
"""Why a fact is missing in a response, by whether a passage says it, and whether the response says
something else in its place."""


def average_precision(relevant: Bools) -> float:
    """Return the mean precision at the ranks of the relevant passages, 0 to 1, as ragas' context
    precision; 0 if none is. ``relevant``: in the order of retrieval, shape (k,).
    """
    ranks = np.flatnonzero(relevant) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).mean()) if len(ranks) else 0.0


def figures(facts: Bools, said: Bools, relevant: Bools) -> dict[str, float]:
    """Return the figures of an answer, 0 to 1, by the names of ragas and RAGChecker (Ru et al.
    2024); one whose denominator is 0 is absent, but ``f1`` is 0 without a statement.

    Args:
        facts: whether the response, and a passage, says each fact of the gold answer, shape (2, f).
        said: whether the gold answer, a passage, and a relevant passage says each statement of the
            response, shape (3, s).
        relevant: whether each passage says a fact, in the order of retrieval, shape (k,).
    """
    in_answer, in_passages = facts
    right, found, by_relevant = said
    shares = {
        "claim_recall": in_answer,
        "claim_precision": right,
        "context_recall": in_passages,
        "context_utilization": in_answer[in_passages],
        "faithfulness": found,
        "noise_sensitivity_relevant": ~right & by_relevant,
        "noise_sensitivity_irrelevant": ~right & found & ~by_relevant,
        "hallucination": ~right & ~found,
        "self_knowledge": right & ~found,
    }
    result = {name: float(one.mean()) for name, one in shares.items() if len(one)}
    if len(relevant):
        result["context_precision"] = average_precision(relevant)
    recall, precision = result["claim_recall"], result.get("claim_precision", 0.0)
    return result | {"f1": 2 * recall * precision / ((recall + precision) or 1.0)}

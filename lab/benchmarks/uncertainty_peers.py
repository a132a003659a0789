"""What other programs compute for the statistics of ``uncertainty``, on inputs that this one draws.

    pip download --no-deps lm-polygraph==0.7.0 && unzip lm_polygraph-0.7.0-py3-none-any.whl -d DIR
    python -m lab.benchmarks.uncertainty_peers DIR      # needs torch, scipy, rouge-score, nltk

Only its estimators are imported, each a file of its own, and not what loads models. Inputs and
numbers go to ``tests/metrics/uncertainty/peers.json``, which a test compares.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).parents[2] / "tests/metrics/uncertainty/peers.json"
WORDS = "Paris London Rome is the capital of France Italy and lies on a river".split()
STAND_INS = {
    "lm_polygraph.utils.model": ("Model", "WhiteboxModel"),
    "lm_polygraph.utils.deberta": ("Deberta",),
    "PIL": ("Image",),
}
OUTCOMES = ("entail", "neutral", "contra")


def estimators(folder: Path) -> Any:
    """Return a function that imports an estimator of lm-polygraph without its other modules."""
    for part in ("", ".estimators", ".stat_calculators", ".utils"):
        name = f"lm_polygraph{part}"
        module = types.ModuleType(name)
        module.__path__ = [str(folder / name.replace(".", "/"))]
        sys.modules[name] = module
    for name, parts in STAND_INS.items():
        module = types.ModuleType(name)
        for part in parts:
            setattr(module, part, object)
        sys.modules[name] = module

    def imported(module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"lm_polygraph.{module}"), name)

    return imported


def drawn(rng: np.random.Generator, k: int, t: int) -> dict[str, Any]:
    """Return k replies with their matrices, and the tokens of an answer with alternatives."""
    logits = rng.normal(size=(k, k, 3)) * 2
    logits[np.arange(k), np.arange(k)] = (30, 0, -30)
    logits[0, 1] = logits[1, 0] = (6, 0, -3)  # two that say the same
    shares = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(4, 9))) for _ in range(k)]
    tokens = []
    for _ in range(t):
        logs = np.sort(np.log(rng.dirichlet(np.full(6, 0.4)) + 1e-12))[::-1]
        how = ["entail", *rng.choice(OUTCOMES, size=5)]
        tokens.append([[float(log), str(one)] for log, one in zip(logs, how, strict=True)])
    return {
        "texts": texts,
        "entailment": shares[..., 0].tolist(),
        "contradiction": shares[..., 2].tolist(),
        "log_likelihoods": (-rng.gamma(2.0, 3.0, size=k)).tolist(),
        "similarities": rng.uniform(size=k).tolist(),
        "tokens": tokens,
    }


def numbers(case: dict[str, Any], imported: Any) -> dict[str, float]:
    """Return what lm-polygraph's estimators give for one case."""
    import torch

    e, c = np.array(case["entailment"]), np.array(case["contradiction"])
    logs = [[log for log, _ in token] for token in case["tokens"]]
    own = np.array([token[0] for token in logs])
    how = [[one for _, one in token] for token in case["tokens"]]
    stats: dict[str, Any] = {
        "sample_texts": [case["texts"]],
        "semantic_matrix_entail": e[None],
        "semantic_matrix_contra": c[None],
        "semantic_matrix_entail_logits": torch.tensor(np.log(e))[None],
        "semantic_matrix_contra_logits": torch.tensor(np.log(c))[None],
        "semantic_matrix_classes": np.stack([e, 1 - e - c, c]).argmax(axis=0)[None],
        "entailment_id": 0,
        "sample_log_probs": [np.array(case["log_likelihoods"])],
        "greedy_log_likelihoods": [own],
        "greedy_log_probs": [[np.array(token) for token in logs]],
        "greedy_sentence_similarity": [np.array(case["similarities"])],
        "entropy": [[float(-(np.exp(np.array(t)) * np.array(t)).sum()) for t in logs]],
        "greedy_tokens": [list(range(len(own)))],
        "greedy_tokens_alternatives": [[[(str(i), log) for i, log in enumerate(t)] for t in logs]],
        "greedy_tokens_alternatives_nli": [
            [[row if i == 0 else [one] for i, one in enumerate(row)] for row in how]
        ],
    }
    classes = imported("stat_calculators.semantic_classes", "SemanticClassesCalculator")()
    stats |= classes(stats, [], None)

    def of(module: str, name: str, **options: Any) -> float:
        made = imported(f"estimators.{module}", name)(**options)
        return float(np.asarray(made(stats)[0]))

    return {
        "semantic_sets": of("num_sem_sets", "NumSemSets"),
        "semantic_entropy": of(
            "semantic_entropy", "SemanticEntropy", class_probability_estimation="frequency"
        ),
        "semantic_entropy_weighted": of("semantic_entropy", "SemanticEntropy"),
        "eigenvalue_sum": of("eig_val_laplacian", "EigValLaplacian"),
        "degree": of("deg_mat", "DegMat"),
        "eccentricity": of("eccentricity", "Eccentricity"),
        "kernel_entropy": of("kernel_language_entropy", "KernelLanguageEntropy"),
        "luq": of("luq", "LUQ"),
        "rouge_l": of("lexical_similarity", "LexicalSimilarity"),
        "bleu": of("lexical_similarity", "LexicalSimilarity", metric="BLEU"),
        "nll": of("max_probability", "MaximumSequenceProbability"),
        "mean_nll": of("perplexity", "Perplexity"),
        "mean_entropy": of("token_entropy", "MeanTokenEntropy"),
        "self_certainty": of("self_certainty", "SelfCertainty"),
        "ccp": of("claim_conditioned_probability", "ClaimConditionedProbability"),
        "cocoa_nll": of("cocoa", "CocoaMSP"),
        "cocoa_mean_nll": of("cocoa", "CocoaPPL"),
        "cocoa_entropy": of("cocoa", "CocoaMTE"),
    }


def main() -> None:
    imported = estimators(Path(sys.argv[1]))
    rng = np.random.default_rng(33)
    cases = [drawn(rng, k, t) for k, t in ((3, 4), (5, 9), (10, 20), (10, 1))]
    found = [{"inputs": case, "numbers": numbers(case, imported)} for case in cases]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    told = {"program": "lm-polygraph 0.7.0", "cases": found}
    OUT.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"{OUT}: {len(found)} cases of {len(found[0]['numbers'])} numbers")


if __name__ == "__main__":
    main()

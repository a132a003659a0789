"""MixedQA: open questions of five published sets that all models answered (TrustScore)."""

from trustassay_papers.mixedqa.building import Mixed, MixOptions, mix, plan_mix

__all__ = ["MixOptions", "Mixed", "mix", "plan_mix"]

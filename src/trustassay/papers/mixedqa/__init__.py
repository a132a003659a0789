"""MixedQA: open questions of five published sets that all models answered (TrustScore)."""

from trustassay.papers.mixedqa.building import MixOptions, MixResult, mix, plan_mix

__all__ = ["MixOptions", "MixResult", "mix", "plan_mix"]

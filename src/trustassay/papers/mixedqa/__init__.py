"""MixedQA: open questions of five published sets that all models answered (TrustScore)."""

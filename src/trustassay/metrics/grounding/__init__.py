"""Grounding: the whole of Trust-Eval for cited answers (Song et al., ICLR 2025)."""

from trustassay.metrics.grounding.metric import Grounding

__all__ = ["Grounding"]

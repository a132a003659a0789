"""Answers to questions, in five styles: what ``generate`` writes and ``score`` asks for."""

from trustassay.answering.styles import OWN_PROMPT, STYLES, Answering

__all__ = ["OWN_PROMPT", "STYLES", "Answering"]

"""Answers to questions, in four styles: what ``generate`` writes and ``score`` asks for."""

from trustassay.answering.styles import STYLES, Answering

__all__ = ["STYLES", "Answering"]

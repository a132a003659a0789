"""Wrong answers that look like a given one: one word or entity of it is replaced at a time."""

from trustassay.distractors.search import SOURCES, find_distractors
from trustassay.distractors.slots import find_same_kind_answers
from trustassay.distractors.tokens import Distractor

__all__ = ["SOURCES", "Distractor", "find_distractors", "find_same_kind_answers"]

"""Wrong answers that look like a given one: a word or an entity of it is replaced at a time."""

from trustassay.distractors.finding import SOURCES, find_distractors
from trustassay.distractors.pool import same_kind_answers
from trustassay.distractors.values import Distractor

__all__ = ["SOURCES", "Distractor", "find_distractors", "same_kind_answers"]

"""Data chosen by a score: examples to learn from in context, and answers to be trained on."""

from trustassay.workflows.select.answers import (
    Answers,
    Candidate,
    Question,
    read_answers,
    refuse_single_answers,
)
from trustassay.workflows.select.choosing import (
    Example,
    best,
    chat_record,
    choose_examples,
    choose_targets,
    icl_prompt,
    nearest_examples,
    split,
)
from trustassay.workflows.select.icl import IclOptions, Prompts, select_icl
from trustassay.workflows.select.sft import Targets, select_sft

__all__ = [
    "Answers",
    "Candidate",
    "Example",
    "IclOptions",
    "Prompts",
    "Question",
    "Targets",
    "best",
    "chat_record",
    "choose_examples",
    "choose_targets",
    "icl_prompt",
    "nearest_examples",
    "read_answers",
    "refuse_single_answers",
    "select_icl",
    "select_sft",
    "split",
]

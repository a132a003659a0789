"""Data chosen by a score: examples to learn from in context, and answers to be trained on."""

from trustassay_papers.select.answers import (
    Answers,
    Candidate,
    Example,
    Question,
    best,
    chat_record,
    choose_examples,
    choose_targets,
    icl_prompt,
    nearest_examples,
    read_answers,
    refuse_single_answers,
    split,
)
from trustassay_papers.select.writing import IclOptions, Prompts, Targets, select_icl, select_sft

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

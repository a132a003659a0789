"""Data chosen by a score: examples to learn from in context, and answers to be trained on."""

from trustassay.papers.select.answers import (
    Candidate,
    CandidateAnswers,
    Example,
    QuestionWithCandidates,
    chat_record,
    choose_best,
    choose_examples,
    choose_targets,
    fill_icl_prompt,
    find_nearest_examples,
    read_answers,
    refuse_single_answers,
    split_train_test,
)
from trustassay.papers.select.writing import (
    IclOptions,
    IclResult,
    SftResult,
    select_icl,
    select_sft,
)

__all__ = [
    "Candidate",
    "CandidateAnswers",
    "Example",
    "IclOptions",
    "IclResult",
    "QuestionWithCandidates",
    "SftResult",
    "chat_record",
    "choose_best",
    "choose_examples",
    "choose_targets",
    "fill_icl_prompt",
    "find_nearest_examples",
    "read_answers",
    "refuse_single_answers",
    "select_icl",
    "select_sft",
    "split_train_test",
]

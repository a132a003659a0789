"""Errors keep what they say in another process."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from trustassay.core.files import DiskFullError
from trustassay.core.sample import Problem
from trustassay.errors import AssessmentError, CallError, FaultsError
from trustassay.input.records import InputFault
from trustassay.runs.intake import BadInputError


@pytest.mark.parametrize(
    "error",
    [
        BadInputError([InputFault("a.jsonl:3", (Problem("response", "is missing"),))], 1),
        CallError("no answer", "timeout", 3.0),
        FaultsError(["one", "other"]),
        AssessmentError("nothing to score", "empty"),
        DiskFullError(Path("a.jsonl")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_another_process_can_raise_it_again(error: Exception) -> None:
    again = copy.copy(error)  # by what also sends it to another process
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)

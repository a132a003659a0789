"""The folder of a run that nobody named: found again, and never that of another run."""

import os
from pathlib import Path
from typing import Any

import pytest

from trustassay.runs.intake import default_folder

SETTINGS: dict[str, Any] = {
    "metrics": ["grounding"],
    "entailer": "lexical",
    "seed": 0,
    "limit": None,
    "fields": {},
}


def test_the_same_settings_find_their_folder_again(tmp_path: Path) -> None:
    source = tmp_path / "answers.v2.jsonl"
    source.write_text("{}")
    folder = default_folder(source, **SETTINGS)
    assert folder == default_folder(source, **SETTINGS)
    assert folder.parent == Path("trustassay-runs")
    assert folder.name.startswith("answers-")


@pytest.mark.parametrize(
    "other",
    [
        {"metrics": ["grounding:profile=paper"]},
        {"entailer": "hf:x"},
        {"seed": 1},
        {"limit": 3},
        {"fields": {"response": "text"}},
    ],
)
def test_other_settings_have_another_folder(tmp_path: Path, other: dict[str, Any]) -> None:
    source = tmp_path / "answers.jsonl"
    assert default_folder(source, **SETTINGS) != default_folder(source, **SETTINGS | other)


def test_a_changed_file_has_another_folder(tmp_path: Path) -> None:
    source = tmp_path / "answers.jsonl"
    source.write_text("{}")
    before = default_folder(source, **SETTINGS)
    os.utime(source, ns=(1, 1))
    touched = default_folder(source, **SETTINGS)
    source.write_text("{} ")
    os.utime(source, ns=(1, 1))
    assert len({before, touched, default_folder(source, **SETTINGS)}) == 3


def test_the_order_of_fields_is_no_setting(tmp_path: Path) -> None:
    one = SETTINGS | {"fields": {"id": "a", "response": "b"}}
    two = SETTINGS | {"fields": {"response": "b", "id": "a"}}
    source = tmp_path / "x.jsonl"
    assert default_folder(source, **one) == default_folder(source, **two)


@pytest.mark.parametrize(
    "name", ["x" * 249 + ".jsonl", "ü" * 120 + ".jsonl", "…/../\x1b[31m .json", "\udcff.csv", "."]
)
def test_every_name_of_an_input_gives_a_folder_that_can_be_made(tmp_path: Path, name: str) -> None:
    folder = default_folder(tmp_path / name, **SETTINGS)
    (tmp_path / folder).mkdir(parents=True)
    assert folder.name.replace("-", "").replace("_", "").replace(".", "").isalnum()

"""From what a user names to an entailer, or to words that say what is wrong."""

import operator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import trustassay
from tests.support import YES, Recorder
from trustassay.backends.functions import FunctionEntailer
from trustassay.backends.lexical import LexicalEntailer
from trustassay.backends.resolve import entailer
from trustassay.capabilities import BackendError
from trustassay.metric import UnknownNameError


def test_lexical_by_name() -> None:
    assert isinstance(entailer("lexical"), LexicalEntailer)
    assert trustassay.entailer("lexical").scores([("a", "a")]).shape == (1, 3)


def test_objects_pass_through_and_functions_are_wrapped() -> None:
    recorder = Recorder()
    assert entailer(recorder) is recorder
    assert entailer(operator.contains).name == "function:_operator.contains"
    assert entailer(partial(operator.contains)).name == "function:functools.partial"
    assert entailer(str.startswith).name == "function:builtins.str.startswith"
    assert isinstance(entailer(lambda p, h: True), FunctionEntailer)


MODULE = """
from tests.support import Recorder

def judge(premise, hypothesis):
    return hypothesis in premise

class Space:
    inner = staticmethod(judge)

class Whole:
    name = "whole"
    def scores(self, pairs):
        return []

ready = Recorder()
number = 3

async def later(premise, hypothesis):
    return True
"""


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with modules of its own, as the installed command sees it."""
    (tmp_path / "own_entailers.py").write_text(MODULE)
    (tmp_path / "own_broken.py").write_text("this is no Python")
    (tmp_path / "own_missing.py").write_text("import a_library_that_is_not_there")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [p for p in __import__("sys").path if p])


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("name", ["judge", "Space.inner"])
def test_a_function_of_a_module_in_the_working_folder(name: str) -> None:
    found = entailer(f"python:own_entailers:{name}")
    assert found.name == f"python:own_entailers:{name}"
    assert found.scores([("abc", "b"), ("abc", "x")]).tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.usefixtures("in_folder")
def test_a_ready_entailer_of_a_module() -> None:
    assert entailer("python:own_entailers:ready").name == "recorder"


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("python:", "expected python:MODULE:FUNCTION"),
        ("python:own_entailers", "expected python:MODULE:FUNCTION"),
        ("python:own_entailers:", "expected python:MODULE:FUNCTION"),
        ("python::judge", "expected python:MODULE:FUNCTION"),
        ("python:.own_entailers:judge", "expected python:MODULE:FUNCTION"),
        ("python:not_there:judge", "No module named 'not_there'"),
        ("python:own_entailers:jugde", "did you mean judge?"),
        ("python:own_broken:judge", "SyntaxError"),
        ("python:own_missing:judge", "a_library_that_is_not_there"),
        ("python:own_entailers:number", "not 3"),
        ("python:own_entailers:Whole", "Whole is a class"),
        ("python:own_entailers:later", "not a coroutine"),
        ("hf:", "needs a model"),
    ],
)
def test_backends_that_cannot_be_loaded(choice: str, words: str) -> None:
    with pytest.raises(BackendError) as error:
        entailer(choice)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("lexicl", "did you mean lexical?"),
        ("", "known: "),
        ("HF:x", "unknown entailer 'HF:x'"),
        ("lexical:fast", "takes nothing after its name"),
        ("hf:x?devise=cpu", "did you mean device?"),
        ("hf:x?check=perhaps", "option check of hf: cannot be 'perhaps'"),
        ("hf:x?batch_tokens=many", "option batch_tokens of hf: cannot be 'many'"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(choice: str, words: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        entailer(choice)
    assert words in str(error.value)


@pytest.mark.parametrize("choice", [3, None, [], {"a": 1}, LexicalEntailer])
def test_what_is_no_entailer_at_all(choice: Any) -> None:
    with pytest.raises(BackendError, match="entailer is an object or a function"):
        entailer(choice)


def test_recorders_say_yes() -> None:
    assert entailer(lambda p, h: YES).scores([("a", "b")]).tolist() == [list(YES)]

"""From what a user names to an entailer, or to words that say what is wrong."""

import operator
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import trustassay
from tests.support import YES, Recorder
from trustassay.backends import http, resolve
from trustassay.backends.functions import FunctionChat, FunctionEntailer
from trustassay.backends.lexical import LexicalEntailer
from trustassay.backends.openai import OpenAIEmbedder
from trustassay.backends.registry import schemes
from trustassay.backends.resolve import chat, embedder, entailer, similarity
from trustassay.core.capabilities import Embedder, EndpointLimits
from trustassay.errors import BackendError, UnknownNameError


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
        ("python:own_entailers:number", "got 3"),
        ("python:own_entailers:Whole", "Whole is a class"),
        ("python:own_entailers:later", "got a coroutine function"),
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
        ("HF:x", "unknown entailer 'HF'"),
        ("lexical:fast", "takes nothing after its name"),
        ("hf:x?devise=cpu", "did you mean device?"),
        ("hf:x?check=perhaps", "option check of hf cannot be 'perhaps'"),
        ("hf:x?batch_tokens=many", "option batch_tokens of hf cannot be 'many'"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(choice: str, words: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        entailer(choice)
    assert words in str(error.value)


@pytest.mark.parametrize("choice", [3, None, [], {"a": 1}, LexicalEntailer])
def test_what_is_no_entailer_at_all(choice: Any) -> None:
    with pytest.raises(BackendError, match="expected an entailer"):
        entailer(choice)


def test_recorders_say_yes() -> None:
    assert entailer(lambda p, h: YES).scores([("a", "b")]).tolist() == [list(YES)]


# ----------------------------------------------------------------------------------- chat models


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ("openai:gpt-5", "openai:gpt-5@https://api.openai.com/v1"),
        ("openai:a/b:free@http://localhost:8000/v1/", "openai:a/b:free@http://localhost:8000/v1"),
        ("openai:m?rpm=9&key=OTHER", "openai:m@https://api.openai.com/v1"),
        ("openai:m?api-version=2&body.top_k=3&body.mode=fast",
         'openai:m@https://api.openai.com/v1?api-version=2&body.top_k=3&body.mode="fast"'),
        ("openai:@cf/meta/llama", "openai:@cf/meta/llama@https://api.openai.com/v1"),
        ("anthropic:claude@20250101", "anthropic:claude@20250101@https://api.anthropic.com"),
        ("gemini:gemini-pro", "gemini:gemini-pro@https://generativelanguage.googleapis.com"),
        ("python:own_entailers:Space.inner", "python:own_entailers:Space.inner"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("in_folder", "plain_environment")
def test_chat_models_by_name(choice: str, name: str) -> None:
    assert chat(choice).name == name


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for service in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.delenv(f"{service}_BASE_URL", raising=False)


@pytest.mark.parametrize("service", ["openai", "anthropic", "gemini"])
def test_the_address_of_an_endpoint_from_the_environment(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{service.upper()}_BASE_URL", "http://gateway:1/x/")
    assert chat(f"{service}:m").name == f"{service}:m@http://gateway:1/x"
    assert chat(f"{service}:m@http://other").name == f"{service}:m@http://other"


def test_limits_of_an_endpoint() -> None:
    found = chat("openai:m?concurrency=3&rpm=100&tpm=1e5&timeout=9&deadline=99&patience=7&tries=2")
    assert found.limits == EndpointLimits(3, 100, 1e5, 9, 99, 7, 2)  # type: ignore[union-attr]
    assert chat("openai:m").limits == EndpointLimits()  # type: ignore[union-attr]


def test_functions_and_objects_that_write() -> None:
    made = chat(str.upper)
    assert isinstance(made, FunctionChat)
    assert chat(made) is made


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("", "unknown chat model ''; known: anthropic,"),
        ("opnai:x", "did you mean openai?"),
        ("lexical", "unknown chat model"),
        ("openai:m?rmp=3", "did you mean rpm?"),
        ("openai:m?rpm=many", "option rpm of openai cannot be 'many'"),
        ("openai:m?rpm=0", "option rpm of openai: expected more than 0, got 0.0"),
        ("openai:m?body.=3", "unknown option of openai 'body.'"),
        ("hf:x?devise=cpu", "did you mean device?"),
        ("hf:x?labels=a", "unknown option of hf 'labels'"),
        ("hf:x?max_tokens=few", "option max_tokens of hf cannot be 'few'"),
    ],
)
def test_unknown_chat_models(choice: str, words: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        chat(choice)
    assert words in str(error.value)


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("openai:", "needs a model"),
        ("gemini:", "needs a model"),
        ("hf:", "needs a model"),
        ("replay:", "needs a file"),
        ("replay:none.jsonl", "No such file"),
        ("openai:m@http://", "expected an address"),
        ("openai:m@http://[x", "expected an address"),
        ("openai:m@http://x:port/", "expected an address"),
        ("openai:m@https://me:geheim@host/v1", "contains a password"),
        ("openai:m@https://geheim@host/v1", "contains a password"),
        ("openai:m@http://me:geheim@", "contains a password"),
        ("openai:m@https://host/v1#geheim", "expected an address without #, got https://host..."),
        ("openai:m@https://host:geheim/v1", "got https://host..."),
        ("openai:m@https://host/ge heim", "without spaces and control characters"),
        ("https://me:geheim@host/v1", "contains a password"),
        ("openai:m@localhost:8000/v1", "needs http:// or https:// after the @"),
        ("openai:m@localhost", "needs http:// or https:// after the @"),
        ("openai:m@api.example.org/v1", "needs http:// or https:// after the @"),
        ("openai:m@ftp://host", "needs http:// or https:// after the @"),
        ("gemini:../../secrets", "is not a valid name of a model"),
        ("python:own_entailers:number", "got 3"),
        ("python:own_entailers:Whole", "Whole is a class"),
    ],
)
def test_chat_models_that_cannot_be_loaded(choice: str, words: str) -> None:
    with pytest.raises(BackendError) as error:
        chat(choice)
    assert words in str(error.value)
    assert "geheim" not in str(error.value)


def test_an_address_in_place_of_a_model_is_repeated_without_its_query() -> None:
    with pytest.raises(
        UnknownNameError, match="did you mean openai:MODEL@https://host/v1"
    ) as error:
        chat("https://host/v1?key=geheim")
    assert "geheim" not in str(error.value)


def test_an_address_of_the_environment_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://host/v1?key=geheim")
    assert chat("openai:m@http://127.0.0.1:9")
    with pytest.raises(BackendError, match=r"OPENAI_BASE_URL: .* without \? and #") as error:
        chat("openai:m")
    assert "geheim" not in str(error.value)


# ------------------------------------------------------------------------------------- embedders


class Vectors:
    name = "own"

    def vectors(self, texts: Any) -> Any:
        return texts


def test_embedders() -> None:
    own = Vectors()
    assert embedder(own) is own
    found = embedder("openai:text-embedding-3-small?concurrency=3")
    assert isinstance(found, OpenAIEmbedder)
    assert not isinstance(found, Embedder)
    assert found.endpoint_limits.concurrency == 3
    assert similarity("cosine:openai:m@http://host").name == "cosine:openai:m@http://host"


def test_embedders_that_are_none() -> None:
    with pytest.raises(UnknownNameError, match="did you mean embedded"):
        embedder("embeded")
    with pytest.raises(UnknownNameError, match="unknown option of hf 'template'"):
        embedder("hf:x?template=none")
    with pytest.raises(
        BackendError, match=r"expected an embedder \(an object or a function\), got 3"
    ):
        embedder(3)  # type: ignore[arg-type]
    with pytest.raises(BackendError, match="Vectors is a class"):
        embedder(Vectors)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------ documentation


DOCS = (Path(__file__).parents[2] / "docs" / "models/chat-models.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", [o.name for k in ("chat model", "embedder") for o in schemes(k)])
def test_every_scheme_is_documented(scheme: str) -> None:
    assert f"`{scheme}:" in DOCS or f"`{scheme}`" in DOCS


(HF_CHAT,) = (one for one in schemes("chat model") if one.name == "hf")


@pytest.mark.parametrize("option", [*http._LIMITS, "key", "api-version", *(HF_CHAT.options or ())])
def test_every_option_is_documented(option: str) -> None:
    assert re.search(rf"[`?&]{option}[`=]", DOCS), option


def test_the_documented_defaults_are_those_of_the_code() -> None:
    limits = EndpointLimits()
    assert f"* `timeout={limits.timeout_s:g}`, `deadline={limits.deadline_s:g}`:" in DOCS
    for option, value in (
        ("concurrency", limits.concurrency),
        ("tries", limits.tries),
        ("patience", limits.patience_s),
    ):
        assert f"\n* `{option}={value:g}`: " in DOCS, option


def test_agreement_takes_a_local_entailer_only() -> None:
    with pytest.raises(BackendError, match="chat model; expected a local entailer"):
        resolve.similarity("agreement:openai:m")

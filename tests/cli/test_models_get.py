"""``trustassay models get``, and what its names are good for."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.cli.conftest import Cli
from tests.hub import Hub, model_of
from tests.support import jsonl, records
from tests.tiny_gguf import write_gguf
from trustassay.backends import fetch_model as fetching
from trustassay.backends import recommended
from trustassay.backends.recommended import RecommendedModel

LEXICAL = ("--metric", "grounding", "--entailer", "lexical")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("TRUSTASSAY_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("TRUSTASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "WAIT_S", 0.0)
    with Hub(write_gguf(tmp_path / "tiny.gguf").read_bytes()) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def tiny(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> RecommendedModel:
    """Return the only model of the list, which the hub has."""
    model = model_of(hub.content)
    monkeypatch.setattr(recommended, "load_recommended", lambda: {model.name: model})
    return model


def test_without_a_name_it_lists_the_models(cli: Cli, hub: Hub) -> None:
    said = cli("models", "get")
    assert said.status == 0
    for model in recommended.load_recommended().values():
        assert model.name in said.err
        assert model.size in said.err
    told = json.loads(cli("models", "get", "--json").out)["models"]
    assert [one["name"] for one in told] == list(recommended.load_recommended())
    assert not any(one["here"] for one in told)
    assert hub.asked == []


def test_it_fetches_a_model_and_says_where_it_is(
    cli: Cli, hub: Hub, tiny: RecommendedModel
) -> None:
    hub.replies = [503, "drop"]
    said = cli("models", "get", tiny.name, "--json")
    assert said.status == 0
    told = json.loads(said.out)
    assert told["path"] == str(tiny.path)
    assert (told["bytes"], told["sha256"]) == (len(hub.content), tiny.sha256)
    assert Path(told["path"]).read_bytes() == hub.content
    assert tiny.address in said.err
    assert f"downloaded and checked: {tiny.path}; to use it: --second tiny-1b" in _line(said.err)
    assert "already downloaded" in cli("models", "get", tiny.name).err
    assert "already downloaded" in cli("models", "get", tiny.name, "--check").err
    assert len(hub.asked) == 3
    assert "yes" in cli("models", "get").err


def test_quiet_leaves_its_last_line(cli: Cli, hub: Hub, tiny: RecommendedModel) -> None:
    hub.replies = [503]
    said = cli("models", "get", tiny.name, "--quiet")
    assert said.status == 0
    assert tiny.address not in said.err
    assert str(tiny.path) in said.err


def test_nothing_is_downloaded_without_the_package_that_runs_it(
    cli: Cli, hub: Hub, tiny: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "xllamacpp is missing: pip install '.[gguf]'"
    with monkeypatch.context() as without:
        without.setattr("trustassay.backends.registry.find_spec", lambda _: None)
        refused = cli("models", "get", tiny.name)
        assert refused.status == 2
        assert missing in _line(refused.err)
        assert hub.asked == []
        assert not tiny.path.parent.exists()
    assert cli("models", "get", tiny.name).status == 0
    # A file that is here is checked all the same.
    monkeypatch.setattr("trustassay.backends.registry.find_spec", lambda _: None)
    checked = cli("models", "get", tiny.name, "--check")
    assert checked.status == 0
    assert "already downloaded" in _line(checked.err)
    assert missing in _line(checked.err)


def test_it_warns_of_a_model_that_does_not_fit_the_free_memory(
    cli: Cli, tiny: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trustassay.backends.gguf.read_free_memory", lambda: 10**8)
    result = cli("models", "get", tiny.name)
    assert result.status == 0
    assert "tiny-1b needs 0.3 GB of memory, but only 0.1 GB are free now" in _line(result.err)
    monkeypatch.setattr("trustassay.backends.gguf.read_free_memory", lambda: 10**9)
    assert "of memory" not in cli("models", "get", tiny.name).err


def test_a_wrong_file_ends_with_status_2(cli: Cli, hub: Hub, tiny: RecommendedModel) -> None:
    right, hub.content = hub.content, hub.content[:-1] + b"!"
    said = cli("models", "get", tiny.name)
    assert said.status == 2
    assert f"expected {tiny.sha256}" in _line(said.err)
    hub.content = right
    assert cli("models", "get", tiny.name).status == 0


def test_an_unknown_name_is_told_with_the_nearest(cli: Cli, hub: Hub) -> None:
    said = cli("models", "get", "qwen2.5-coder-1")
    assert said.status == 2
    assert "did you mean qwen2.5-coder-1.5b" in said.err
    assert hub.asked == []


@pytest.mark.parametrize("option", ["--second", "--entailer", "--judge", "--model"])
def test_no_other_command_fetches_a_model(
    cli: Cli, hub: Hub, tiny: RecommendedModel, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise AssertionError("a socket was used")

    jsonl(Path("a.jsonl"), records(2))
    jsonl(Path("q.jsonl"), [{"question": "Who?", "answers": ["She."]}])
    commands = {
        "--second": ("score", "a.jsonl", *LEXICAL),
        "--entailer": ("score", "a.jsonl", "--metric", "grounding"),
        "--judge": ("score", "a.jsonl", "--metric", "judge"),
        "--model": ("score", "q.jsonl", "--metric", "judge", "--judge", "replay:none.jsonl"),
    }
    monkeypatch.setattr(socket.socket, "connect", refuse)
    said = cli(*commands[option], option, tiny.name)
    assert said.status == 2
    words = "tiny-1b is not on this machine: run trustassay models get tiny-1b (0.0 GB)"
    assert words in _line(said.err)
    assert hub.asked == []
    assert not tiny.path.parent.exists()


@pytest.mark.slow
def test_a_fetched_model_answers_by_its_name_and_by_its_path_with_the_same_replies(
    cli: Cli, tiny: RecommendedModel, tmp_path: Path
) -> None:
    pytest.importorskip("xllamacpp")
    cli("models", "get", tiny.name)
    jsonl(Path("q.jsonl"), [{"question": "Who?"}])
    stored = []
    for uri in (tiny.name, f"gguf:{tiny.path}"):
        said = cli("generate", "q.jsonl", "--model", uri, "--max-tokens", "9", "--out", "a.jsonl")
        assert said.status == 0, said.err
        Path("a.jsonl").unlink()
        with closing(sqlite3.connect(tmp_path / "cache" / "calls.sqlite")) as calls:
            stored.append(calls.execute("SELECT * FROM calls").fetchall())
    assert len(stored[0]) == 1
    assert stored[1] == stored[0]


def _line(text: str) -> str:
    """Return a text without the breaks of its lines."""
    return " ".join(text.split())

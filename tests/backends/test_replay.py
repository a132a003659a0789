"""Replies from stored files, and faults that name file, line and field."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import LlmServer
from trustassay.backends.replay import ReplayChat
from trustassay.core.capabilities import ChatModel, ChatRequest, Message, Reply, TokenLogprob
from trustassay.errors import BackendError


def written(path: Path, records: Sequence[Any]) -> str:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def asked(chat: ReplayChat, text: str, **parameters: Any) -> Reply:
    return asyncio.run(chat.reply(ChatRequest.of(text, **parameters)))


def test_prompts_messages_repeats_and_whole_replies(tmp_path: Path) -> None:
    whole = {
        "text": "He.", "finish": "stop", "prompt_tokens": 3, "reply_tokens": 2,
        "others": ["They."], "logprobs": [["He", -0.5, [["He", -0.5], ["She", -1]]], [".", 0, []]],
    }  # fmt: skip
    messages = [["system", "Be brief."], {"role": "user", "content": "Who?"}]
    records = [
        {"prompt": "Who?", "reply": "She."},
        "",
        {"prompt": "Who?", "reply": "It.", "repeat": 2},
        {"messages": messages, "reply": whole},
    ]
    chat = ReplayChat(written(tmp_path / "r.jsonl", records))
    assert isinstance(chat, ChatModel)
    assert asked(chat, "Who?") == Reply("She.")
    assert asked(chat, "Who?", temperature=1.0, seed=3, repeat=2).text == "It."
    found = asked(chat, "Who?", system="Be brief.", n=2)
    told = (TokenLogprob("He", -0.5, (("He", -0.5), ("She", -1.0))), TokenLogprob(".", 0.0))
    assert found == Reply("He.", "stop", 3, 2, ("They.",), told)


def test_a_packed_file_of_two_models(tmp_path: Path) -> None:
    records = [
        {"prompt": "Who?", "reply": "She.", "model": "a"},
        {"prompt": "Who?", "reply": "He.", "model": "b"},
    ]
    data = "\n".join(map(json.dumps, records)).encode()
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(data))
    assert asked(ReplayChat(str(path), "b"), "Who?").text == "He."
    with pytest.raises(BackendError, match=r"2 different replies \(by a and b\) to"):
        asked(ReplayChat(str(path)), "Who?")
    with pytest.raises(BackendError, match="contains no replies of c"):
        ReplayChat(str(path), "c")
    same = {"prompt": "Who?", "reply": "They.", "model": "b"}
    with pytest.raises(BackendError, match="line 3: reply: differs from the reply to the same"):
        ReplayChat(written(tmp_path / "same.jsonl", [*records, same]))
    with pytest.raises(BackendError, match="line 1: model: expected a text, got 3"):
        ReplayChat(written(tmp_path / "m.jsonl", [{**same, "model": 3}]))


@pytest.mark.parametrize("damage", ["cut", "bits", "plain"])
def test_a_damaged_packed_file_is_named(damage: str, tmp_path: Path) -> None:
    line = json.dumps({"prompt": "Who?", "reply": "She. " * 99}).encode()
    data = gzip.compress(line)
    path = tmp_path / "r.jsonl.gz"
    bits = data[:20] + bytes(255 - one for one in data[20:30]) + data[30:]
    path.write_bytes({"cut": data[:-9], "bits": bits, "plain": line}[damage])
    with pytest.raises(BackendError, match=r"^replay:.*r\.jsonl\.gz: \S"):
        ReplayChat(str(path))


def test_the_name_holds_what_the_file_says(tmp_path: Path) -> None:
    one = ReplayChat(written(tmp_path / "r.jsonl", [{"prompt": "a", "reply": "b"}])).name
    same = ReplayChat(written(tmp_path / "r.jsonl", ["", {"reply": "b", "prompt": "a"}])).name
    other = ReplayChat(written(tmp_path / "r.jsonl", [{"prompt": "a", "reply": "c"}])).name
    assert one == same != other
    assert one.startswith(f"replay:{tmp_path / 'r.jsonl'}#")


def test_the_name_says_which_model_replied(tmp_path: Path) -> None:
    records = [{"prompt": "a", "reply": "b", "model": "m"}, {"prompt": "c", "reply": "d"}]
    file = written(tmp_path / "r.jsonl", records)
    assert ReplayChat(file, "m").name.startswith(f"replay:{file}?model=m#")
    assert ReplayChat(file).name.startswith(f"replay:{file}#")


def test_a_miss_names_the_prompt_and_the_file(tmp_path: Path) -> None:
    file = written(
        tmp_path / "r.jsonl", [{"prompt": "a", "reply": "b", "repeat": r} for r in (0, 1)]
    )
    chat = ReplayChat(file)
    with pytest.raises(BackendError) as error:
        asked(chat, "Once upon a time " * 50)
    assert str(error.value).startswith(f"replay:{file}: no reply to 'Once upon a time Once")
    to_do = "; use the options of the recorded run, or a model that can be asked"
    assert str(error.value).endswith(to_do)
    assert len(str(error.value)) < 280 + len(file)
    with pytest.raises(BackendError, match=rf"with repeat 7 \(only with 0, 1\) to 'a'{to_do}"):
        asked(chat, "a", repeat=7)
    with pytest.raises(BackendError, match="1 replies instead of 3 to 'a'"):
        asked(chat, "a", n=3)
    with pytest.raises(BackendError, match="no reply to"):
        asked(chat, "a", system="s")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2: is not JSON"),
        ("\x00", "line 2: is not JSON"),
        ("[" * 100_000, "line 2: is not JSON"),
        ("[1]", "line 2: expected an object, got [1]"),
        ({"prompt": "a", "replay": "b"}, "line 2: unknown field 'replay'; did you mean reply"),
        ({"reply": "b"}, "line 2: expected either prompt or messages"),
        ({"prompt": "a", "messages": [], "reply": "b"}, "expected either prompt or messages"),
        ({"prompt": 3, "reply": "b"}, "line 2: prompt: expected a text, got 3"),
        ({"prompt": "x"}, "line 2: reply: expected a text or an object, got None"),
        ({"prompt": "x", "reply": {}}, "line 2: reply: text: expected a text, got None"),
        ({"prompt": "x", "reply": {"txt": ""}}, "line 2: reply: unknown field 'txt'"),
        ({"prompt": "x", "reply": {"text": "", "others": "a"}}, "reply: others: expected a list"),
        ({"prompt": "x", "reply": {"text": "", "logprobs": [1]}}, "reply: logprobs: expected"),
        ({"prompt": "x", "reply": "", "repeat": -1}, "line 2: repeat: expected a number of 0"),
        ({"prompt": "x", "reply": "", "repeat": True}, "line 2: repeat: expected a number of 0"),
        ({"messages": [], "reply": ""}, "line 2: messages: expected a list of messages"),
        (
            {"messages": [["user"]], "reply": ""},
            "line 2: messages[0]: expected an object with role and content",
        ),
        (
            {"messages": [{"role": "user"}], "reply": ""},
            "messages[0]: expected an object with role and content",
        ),
        (
            {"prompt": "a", "reply": "c"},
            "line 2: reply: differs from the reply to the same prompt in",
        ),
    ],
)
def test_faults_name_file_line_and_field(line: Any, words: str, tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", [{"prompt": "a", "reply": "b"}, line])
    with pytest.raises(BackendError) as error:
        ReplayChat(file)
    assert words in str(error.value)
    assert str(error.value).startswith(file)
    assert len(str(error.value)) < 400 + 2 * len(file)


def test_files_that_hold_nothing(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="No such file"):
        ReplayChat(str(tmp_path / "none.jsonl"))
    with pytest.raises(BackendError, match="contains no replies"):
        ReplayChat(written(tmp_path / "empty.jsonl", []))
    (tmp_path / "latin.jsonl").write_bytes(b'{"prompt": "\xe9", "reply": ""}')
    with pytest.raises(BackendError, match=r"latin.jsonl, line 1: is not JSON"):
        ReplayChat(str(tmp_path / "latin.jsonl"))


# ---------------------------------------------------------------------------------- a run's file


def a_run(folder: Path, calls: Sequence[tuple[str, dict[str, Any], dict[str, Any]]]) -> Path:
    """Write a file of calls by the documented schema: (model, fields of request, of reply)."""
    folder.mkdir(exist_ok=True)
    connection = sqlite3.connect(folder / "calls.sqlite")
    connection.execute(
        "CREATE TABLE calls (key BLOB PRIMARY KEY, capability TEXT, backend TEXT, request TEXT,"
        " reply TEXT, seconds REAL, prompt_tokens INTEGER, reply_tokens INTEGER, cached INTEGER)"
    )
    rows = [
        (bytes([i]) * 16, "chat", model, json.dumps([json.dumps(request)]), json.dumps(reply))
        for i, (model, request, reply) in enumerate(calls)
    ]
    rows.append((b"e" * 16, "entailment", "lexical", '["a", "b"]', "[1, 0, 0]"))
    connection.executemany("INSERT INTO calls VALUES (?, ?, ?, ?, ?, 0, 1, 1, 0)", rows)
    connection.commit()
    connection.close()
    return folder


def fields(text: str, **changes: Any) -> dict[str, Any]:
    return {
        "messages": [["user", text]], "temperature": 0.0, "max_tokens": None, "seed": None,
        "stop": [], "n": 1, "logprobs": None, "repeat": 0, "prompt": "judge/1", **changes,
    }  # fmt: skip


def told(text: str) -> dict[str, Any]:
    return {
        "text": text, "finish": "stop", "prompt_tokens": 1, "reply_tokens": 1, "others": [],
        "logprobs": None, "dropped": ["seed"],
    }  # fmt: skip


def test_the_calls_of_a_run(tmp_path: Path) -> None:
    folder = a_run(
        tmp_path / "run",
        [
            ("openai:m", fields("Who?"), told("cold")),
            ("openai:m", fields("Who?", temperature=1.0), told("warm")),
            ("openai:m", fields("Who?", repeat=1), told("again")),
            ("openai:m", fields("stop", stop=["."]), told("stopped")),
        ],
    )
    for file in (folder, folder / "calls.sqlite"):
        chat = ReplayChat(str(file))
        assert asked(chat, "Who?") == Reply("cold", "stop", 1, 1, dropped=("seed",))
        assert asked(chat, "Who?", temperature=1.0).text == "warm"
        assert asked(chat, "Who?", repeat=1, max_tokens=9).text == "again"
        assert asked(chat, "stop", stop=(".",)).text == "stopped"
    with pytest.raises(BackendError, match=r"2 different replies \(by openai:m\) to 'Who\?'"):
        asked(chat, "Who?", temperature=0.5)


def test_two_models_in_one_run(tmp_path: Path) -> None:
    folder = a_run(
        tmp_path / "run",
        [
            ("openai:a@http://x?y=1", fields("Who?"), told("she")),
            ("openai:b", fields("Who?"), told("he")),
        ],
    )
    with pytest.raises(BackendError, match=r"by openai:a@http://x\?y=1 and openai:b. to"):
        asked(ReplayChat(str(folder)), "Who?")
    assert asked(ReplayChat(str(folder), "openai:a@http://x?y=1"), "Who?").text == "she"
    with pytest.raises(BackendError, match="contains no replies of openai:c"):
        ReplayChat(str(folder), "openai:c")


def test_a_run_that_the_engine_wrote(tmp_path: Path) -> None:
    """The schema is the engine's: what it stores is found again."""
    import trustassay

    prompts: list[str | Sequence[Message]] = [
        "a",
        (Message("system", "s"), Message("user", "é\x00\u2028")),
    ]
    with LlmServer() as server:
        first = trustassay.chat(f"openai:m@{server.base_url}", cache=tmp_path)
        replies = first.ask(prompts, temperature=0.7, stop=("x",), logprobs=1)
    again = trustassay.chat(f"replay:{tmp_path}?model={first.name}", cache=False)
    assert again.ask(prompts, temperature=0.7, stop=("x",), logprobs=1) == replies


def test_files_that_are_no_run(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="No such file"):
        ReplayChat(str(tmp_path))
    connection = sqlite3.connect(tmp_path / "other.sqlite")
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()
    with pytest.raises(BackendError, match=r"expected the file of calls of a run, calls\.sqlite"):
        ReplayChat(str(tmp_path / "other.sqlite"))
    folder = a_run(tmp_path / "run", [("m", {"prompt": "x"}, told("a"))])
    with pytest.raises(BackendError, match=r"call 0{32}: request: messages: expected a list"):
        ReplayChat(str(folder))

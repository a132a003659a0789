"""Models in GGUF files: what is read before one is loaded, and what it answers."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_gguf import CONTEXT, HEADS, LAYERS, WIDTH, write_gguf
from trustassay import score
from trustassay.backends import gguf
from trustassay.backends.chat_entailer import ChatEntailer, compute_yes_probability
from trustassay.backends.gguf import GgufChat, GgufFile, GgufJob
from trustassay.backends.registry import find_fault, load
from trustassay.calls.client import CallOptions
from trustassay.core.capabilities import ChatRequest, Message, Reply, TokenLogprob
from trustassay.errors import BackendError, UnknownNameError, UnparsedError
from trustassay.runs.answering import Answering
from trustassay.runs.generate import GenerateOptions, generate

ask = ChatRequest.of


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(file: Path) -> GgufChat:
    pytest.importorskip("xllamacpp")
    return GgufChat(str(file), parallel=2, threads=1)


# --------------------------------------------------------------------------- before it is loaded


def test_the_head_says_what_the_model_is(file: Path) -> None:
    found = GgufFile.read(file)
    assert found.size == file.stat().st_size
    assert found.identity.startswith(f"{found.size}-")
    assert found.of_model("context_length") == CONTEXT
    assert found.has_template
    # Keys and values of each layer, two bytes a number.
    assert found.memory(100) - found.memory(0) == 100 * 2 * 2 * LAYERS * HEADS * (WIDTH // HEADS)


def test_another_file_has_another_identity(file: Path, tmp_path: Path) -> None:
    other = write_gguf(tmp_path / "tiny.gguf", seed=1)
    assert other.stat().st_size == file.stat().st_size
    first, second = GgufFile.read(file).identity, GgufFile.read(other).identity
    assert first != second
    with pytest.raises(BackendError, match=f"expected the file {first}, got {second}"):
        GgufChat(str(other), file=first)


def test_what_cannot_be_loaded_is_said(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()

    def said(content: bytes) -> str:
        path = tmp_path / "a.gguf"
        path.write_bytes(content)
        with pytest.raises(BackendError) as caught:
            GgufFile.read(path)
        return str(caught.value)

    assert "does not begin with GGUF" in said(b"PK\3\4" + data)
    assert "does not begin with GGUF" in said(b"")
    assert "version 2 or 3, got 1" in said(b"GGUF\1\0\0\0" + data[8:])
    assert "its header cannot be read" in said(data[:200])
    assert "its tensors go beyond its" in said(data[: len(data) - 20_000])
    assert find_fault("chat model", f"gguf:{tmp_path}/none.gguf") == (
        f"gguf:{tmp_path}/none.gguf: there is no such file"
    )
    with pytest.raises(BackendError, match=r"^gguf:.*: it cannot be read: Is a directory$"):
        GgufChat(str(tmp_path))


@given(st.integers(4, 12_000), st.binary(min_size=1, max_size=40))
def test_a_damaged_head_is_a_typed_failure(file: Path, place: int, noise: bytes) -> None:
    data = bytearray(file.read_bytes())
    data[place : place + len(noise)] = noise
    path = file.with_name("noise.gguf")
    path.write_bytes(data)
    try:
        found = GgufFile.read(path)
    except BackendError:
        return
    assert found.size == len(data)


def test_a_model_larger_than_the_free_memory_is_not_loaded(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf, "read_free_memory", lambda: 10_000_000)
    with pytest.raises(
        BackendError, match=r"needs about 0\.3 GB of memory, but only 0\.0 GB are free"
    ):
        GgufChat(str(file))


def test_what_is_wrong_in_the_uri_is_said(file: Path) -> None:
    with pytest.raises(BackendError, match="expected at most 2048, the context"):
        load("chat model", f"gguf:{file}?context=4096")
    with pytest.raises(BackendError, match="template=chatml is unknown"):
        load("chat model", f"gguf:{file}?template=chatml")
    with pytest.raises(UnknownNameError, match="did you mean threads"):
        load("chat model", f"gguf:{file}?thread=2")
    with pytest.raises(UnknownNameError, match=f"did you mean gguf:{file}"):
        load("chat model", str(file))


def test_a_base_model_is_asked_plainly_or_not_at_all(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = write_gguf(tmp_path / "base.gguf", template="")
    with pytest.raises(BackendError, match=r"no chat template.*\?template=none"):
        GgufChat(str(path))
    plain = GgufChat(str(path), template="none", parallel=1, threads=1)
    (reply,) = plain.replies([ask("Hi", max_tokens=4)])
    assert isinstance(reply, Reply)
    assert reply.prompt_tokens == 1 + len("▁Hi".encode())  # a beginning, and nothing around it
    assert "template=none" in plain.name


# --------------------------------------------------------------------------------- what it answers


def test_a_reply_depends_on_its_request_alone(model: GgufChat) -> None:
    requests = [ask(f"Question {n}", max_tokens=6, temperature=1.0, seed=n) for n in range(9)]
    alone = [model.replies([request])[0] for request in requests]
    assert model.replies(requests) == alone
    assert model.replies(requests[::-1]) == alone[::-1]
    again = ask("Question 0", max_tokens=6, temperature=1.0, seed=0, repeat=1)
    assert model.replies([again])[0] != alone[0]


def test_several_replies_to_a_request(model: GgufChat) -> None:
    (drawn,) = model.replies([ask("Hi", max_tokens=6, temperature=1.0, n=3)])
    (greedy,) = model.replies([ask("Hi", max_tokens=6, n=3)])
    assert isinstance(drawn, Reply)
    assert isinstance(greedy, Reply)
    assert len({drawn.text, *drawn.others}) == 3
    assert greedy.others == (greedy.text, greedy.text)
    assert (drawn.reply_tokens, greedy.reply_tokens) == (18, 6)
    assert (greedy.finish, greedy.prompt_tokens) == ("length", drawn.prompt_tokens)


def test_it_stops_where_it_is_told_to(model: GgufChat) -> None:
    (whole,) = model.replies([ask("Hi", max_tokens=6)])
    assert isinstance(whole, Reply)
    letter = whole.text[3]
    (cut,) = model.replies([ask("Hi", max_tokens=6, stop=(letter,))])
    assert isinstance(cut, Reply)
    assert cut.text == whole.text[: whole.text.index(letter)]
    assert cut.finish == "stop"


def test_what_does_not_fit_the_context_fails_alone(model: GgufChat) -> None:
    long, much = ask("x" * 2100, max_tokens=4), ask("x" * 1900, max_tokens=200)
    first, second, third = model.replies([long, ask("Hi", max_tokens=4), much])
    assert isinstance(first, BackendError)
    assert "4 for the reply do not fit the context of 2048 tokens; raise it with ?context=N" in str(
        first
    )
    assert isinstance(second, Reply)
    assert isinstance(third, BackendError)
    with pytest.raises(BackendError, match="do not fit the context"):
        model.replies([long])


def test_log_probabilities_are_those_of_the_model(model: GgufChat) -> None:
    (reply,) = model.replies([ask("Hi", max_tokens=1, logprobs=20)])
    assert isinstance(reply, Reply)
    assert reply.logprobs
    first = reply.logprobs[0]
    assert first.token == reply.text
    assert [value for _, value in first.alternatives] == sorted(
        (value for _, value in first.alternatives), reverse=True
    )
    tokens = [token for token, _ in first.alternatives if token > " " and token.isascii()]
    for token, (found,) in zip(tokens, model.token_loglikelihoods("Hi", tokens), strict=True):
        assert found == pytest.approx(dict(first.alternatives)[token], abs=2e-2)
    (reply,) = model.replies([ask("Hi", max_tokens=1, logprobs=0)])
    assert isinstance(reply, Reply)
    assert reply.logprobs
    assert [(one.token, one.alternatives) for one in reply.logprobs] == [(first.token, ())]


def test_likelihoods_of_longer_texts_are_sums_over_their_tokens(model: GgufChat) -> None:
    hi = (Message("user", "Hi"),)
    whole, first = model.token_loglikelihoods(hi, ["AB", "A"])
    (second,) = model.token_loglikelihoods([*hi, Message("assistant", "A")], ["B"])
    assert len(whole) == 2
    assert whole == pytest.approx([*first, *second], abs=2e-2)
    awkward = 'a "q" \\ \n\b\f\t'
    (row,) = model.token_loglikelihoods("Hi", [awkward])
    assert len(row) == len(awkward)
    assert all(map(math.isfinite, row))
    assert model.token_loglikelihoods("Hi", [""]) == [[]]
    with pytest.raises(
        BackendError, match="its tokens cannot spell 'é' exactly"
    ):  # two bytes, and two tokens
        model.token_loglikelihoods("Hi", ["é"])


def test_system_messages_are_part_of_the_prompt(model: GgufChat) -> None:
    first, second = (
        model.replies([ask("Hi", system=system, max_tokens=1)])[0] for system in ("Be", "Be brief")
    )
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert (second.prompt_tokens or 0) > (first.prompt_tokens or 0) > len("Be Hi")


def test_short_replies_that_share_a_beginning_go_to_one_sequence() -> None:
    texts = ["two passages: a", "one passage: b", "two passages: c", "one passage: d", "else"]
    short = [GgufJob(text, {"max_tokens": 1}, 1) for text in texts]
    assert list(gguf._group_in_runs(short)) == [[4], [1, 3], [0, 2]]
    long = [job._replace(body={"max_tokens": 100}) for job in short]
    assert list(gguf._group_in_runs(long)) == [[4], [1], [3], [0], [2]]
    assert list(gguf._group_in_runs([])) == []
    examples = "Question and answer. " * 100  # longer to read than the reply is to write
    chosen = [GgufJob(f"{examples}{text}", {"max_tokens": 64}, 1) for text in "ab"]
    assert list(gguf._group_in_runs(chosen)) == [[0, 1]]
    written = [job._replace(body={"max_tokens": 300}) for job in chosen]
    assert list(gguf._group_in_runs(written)) == [[0], [1]]


def test_what_prompts_begin_with_is_read_once(model: GgufChat) -> None:
    passage = "It rained all day, and the river rose by two metres. " * 5
    claims = [ask(f"{passage}Claim {n}", max_tokens=1) for n in range(6)]
    before = model.tokens_read
    replies = model.replies(claims)
    read = model.tokens_read - before
    told = sum(reply.prompt_tokens or 0 for reply in replies if isinstance(reply, Reply))
    assert told > 6 * len(passage)
    assert len(passage) < read < 2 * len(passage)


def test_generated_answers_are_not_asked_for_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    questions = [{"id": "1", "question": "Who?"}]
    options = GenerateOptions(
        answering=Answering(max_tokens=4), calls=CallOptions(cache=tmp_path / "cache")
    )
    uri = f"gguf:{file}?threads=1&parallel=1"
    generate(questions, uri, tmp_path / "a.jsonl", options)
    monkeypatch.setattr(GgufChat, "replies", lambda *_: pytest.fail("it was asked again"))
    generate(questions, uri, tmp_path / "b.jsonl", options)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_the_bound_of_waiting_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    with gguf._limit_spinning():
        assert os.environ["GOMP_SPINCOUNT"] == str(gguf.MAX_SPINS)
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")  # the user's word
    with gguf._limit_spinning():
        assert "GOMP_SPINCOUNT" not in os.environ


def test_no_port_is_opened(model: GgufChat) -> None:
    listening = {
        line.split()[9]
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/self/net/{name}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    }
    targets = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    own = {name[8:-1] for target in targets if (name := Path(target).name).startswith("socket:[")}
    assert own  # the model's own, among others
    assert not listening & own


def test_a_run_asks_it_and_a_second_one_does_not(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    uri = f"gguf:{file}?parallel=2&threads=1&max_tokens=8"
    samples = [{"question": f"What is {n}?"} for n in range(3)]
    options: dict[str, Any] = {"metrics": "harmonicity:perturbations=2", "out": tmp_path / "run"}
    first = score(samples, model=uri, **options)
    assert all(one.error is None for one in first.assessments)
    monkeypatch.setattr(GgufChat, "replies", None)  # nothing is left to be asked
    again = score(samples, model=uri, **options)
    assert again.summary["harmonicity"]["mean"] == first.summary["harmonicity"]["mean"]


def test_a_model_that_is_never_asked_ends(file: Path) -> None:
    """A run whose replies are all stored loads it, and lets it go at once."""
    pytest.importorskip("xllamacpp")
    code = (
        "from trustassay.backends.gguf import GgufChat\n"
        f"for _ in range(5): GgufChat({str(file)!r}, parallel=2, threads=1, context=128)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ------------------------------------------------------------------ entailment by yes and no


class Judge:
    """Says yes with the probabilities that it is given, first to "stated?", then "false?"."""

    name = "judge"
    tells_first_token = True

    def __init__(self, *chances: float) -> None:
        self.asked: list[str] = []
        self._chances = list(chances)

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        (request,) = requests
        self.asked.append(request.messages[0].content)
        yes = self._chances[len(self.asked) - 1]
        told = (("Yes", math.log(yes * 0.9)), ("No", math.log((1 - yes) * 0.9)))
        return [Reply("Yes", logprobs=(TokenLogprob("Yes", told[0][1], told),))]


def test_entailment_by_odds() -> None:
    judge = Judge(0.2, 0.75)
    (found,) = ChatEntailer(judge).scores([("It rains.", "It is dry.")])
    assert found == pytest.approx([0.2, 0.8 * 0.25, 0.8 * 0.75])
    stated, false = judge.asked
    assert "Is every part of the claim stated in the passage?" in stated
    shared = stated.index("Is every part")
    assert stated[:shared] == false[:shared]  # read once
    assert stated.index("It rains.") < stated.index("It is dry.")


def test_both_questions_are_asked_before_either_is_answered() -> None:
    judge, arrived = Judge(0.2, 0.75), list[ChatRequest]()

    async def answer(request: ChatRequest) -> Reply:
        arrived.append(request)
        async with asyncio.timeout(10):
            while len(arrived) < 2:
                await asyncio.sleep(0)
        return judge.replies([request])[0]

    asyncio.run(ChatEntailer(judge).aentailment(("It rains.", "It is dry."), answer))
    assert len(judge.asked) == 2


def test_odds_are_asked_of_any_model_that_tells_them() -> None:
    entailer = load("entailer", "chat:python:builtins:repr?by=odds")
    with pytest.raises(UnparsedError, match="returns no probabilities for its first token"):
        entailer.scores([("a", "b")])
    with pytest.raises(UnknownNameError, match="value of by 'tokens'"):
        load("entailer", "chat:python:builtins:repr?by=tokens")


def test_odds_without_yes_and_no_are_none() -> None:
    def reply(*told: tuple[str, float]) -> Reply:
        logs = tuple((text, math.log(chance)) for text, chance in told)
        return Reply(told[0][0], logprobs=(TokenLogprob(*logs[0], logs),))

    assert compute_yes_probability(reply((" Yes", 0.6), ("NO", 0.2))) == pytest.approx(0.75)
    assert compute_yes_probability(
        reply(("Yes", 0.3), ("yes", 0.3), ("The", 0.4))
    ) == pytest.approx(1.0)
    assert compute_yes_probability(reply(("The", 0.6), ("Yes", 0.3))) is None
    assert compute_yes_probability(Reply("Yes")) is None


def test_a_model_that_says_neither_fails_its_pair(model: GgufChat) -> None:
    with pytest.raises(UnparsedError, match="neither yes nor no is a likely first token"):
        ChatEntailer(model).scores([("It rains.", "It is dry.")])

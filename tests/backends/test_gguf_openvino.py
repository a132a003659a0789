"""The first token of a reply by OpenVINO: what is prepared, what is read together, what is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_gguf import write_gguf
from trustassay.backends import gguf_openvino
from trustassay.backends.gguf import GgufFile
from trustassay.backends.gguf_openvino import (
    GROUP_SIZE,
    FirstTokenModel,
    OpenvinoReader,
    count_common,
    find_folder,
    find_obstacle,
    group_prompts,
    prepare_model,
    quantise,
)
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.errors import BackendError

PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=8)


# --------------------------------------------------------------------------- what is read together


@given(PROMPTS)
def test_every_prompt_is_read_once_and_shares_half_with_its_group(prompts: list[list[int]]) -> None:
    groups = list(group_prompts(dict(enumerate(prompts))))
    assert sorted(key for group in groups for key in group) == list(range(len(prompts)))
    for group in groups:
        if len(group) > 1:
            members = [prompts[key] for key in group]
            assert count_common(members) >= max(map(len, members)) // 2


@given(PROMPTS)
def test_each_prompt_keeps_a_token_of_its_own(prompts: list[list[int]]) -> None:
    common = count_common(prompts)
    assert 0 <= common < min(map(len, prompts))
    assert all(prompt[:common] == prompts[0][:common] for prompt in prompts)


def test_two_questions_about_one_text_are_read_together() -> None:
    text = list(range(100))
    prompts = {0: [*text, 1, 2, 3], 1: [7, *text, 4], 2: [*text, 1, 5], 3: [7, *text, 8, 9]}
    assert list(group_prompts(prompts)) == [[0, 2], [1, 3]]
    assert count_common([prompts[0], prompts[2]]) == 101


class Layers:
    """Stands for a graph: the state of a token is the sum of tokens times places up to it."""

    def __init__(self) -> None:
        self.reset_state()

    def reset_state(self) -> None:
        self.sums = np.zeros(1)
        self.length = 0

    def infer(self, inputs: dict[str, Any]) -> list[Any]:
        ids, places = inputs["input_ids"], inputs["position_ids"]
        assert inputs["attention_mask"].shape == (len(ids), self.length + ids.shape[1])
        assert places[:, 0].tolist() == [self.length] * len(ids)
        sums = self.sums[inputs["beam_idx"]][:, None] + np.cumsum(ids * (places + 1), axis=1)
        self.sums, self.length = sums[:, -1], self.length + ids.shape[1]
        return [sums[:, :, None]]


class Head:
    def infer(self, inputs: list[Any]) -> list[Any]:
        return [inputs[0] * 2]


@given(PROMPTS)
def test_prompts_that_are_read_together_get_the_logits_of_each_alone(
    prompts: list[list[int]],
) -> None:
    model = FirstTokenModel.__new__(FirstTokenModel)
    model._layers, model._head = Layers(), Head()
    expected = [
        [2 * sum(place * token for place, token in enumerate(prompt, 1))] for prompt in prompts
    ]
    assert model.compute_logits(prompts).tolist() == expected
    # Nothing is left of the prompts before.
    assert model.compute_logits(prompts[:1]).tolist() == expected[:1]


# --------------------------------------------------------------------------- weights


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e2))
def test_weights_change_by_at_most_half_of_their_scale(seed: int, size: float) -> None:
    generator = np.random.default_rng(seed)
    weights = generator.normal(0, size, (3, 2 * GROUP_SIZE)).astype(np.float32)
    weights[1] = 0
    integers, scales = quantise(weights)
    assert integers.dtype == np.int8
    assert integers.shape == (3, 2, GROUP_SIZE)
    restored = (integers * scales.astype(np.float32)).reshape(weights.shape)
    # The scale itself is rounded to 11 bits, which counts for the largest weight.
    limit = np.repeat(scales.astype(np.float32).reshape(3, 2), GROUP_SIZE, axis=1) * 0.6
    assert (np.abs(restored - weights) <= limit).all()
    assert not restored[1].any()


# --------------------------------------------------------------------------- replies


class Model:
    """Tokens are characters; the likeliest token is the number of the prompt's characters."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.groups: list[int] = []

    def encode(self, messages: Sequence[dict[str, str]]) -> list[int]:
        return [ord(letter) for message in messages for letter in message["content"]]

    def decode(self, token: int) -> str:
        return f"<{token}>"

    def compute_logits(self, prompts: Sequence[Sequence[int]]) -> Any:
        self.groups.append(len(prompts))
        rows = np.zeros((len(prompts), 50), np.float32)
        for row, prompt in zip(rows, prompts, strict=True):
            row[len(prompt)] = math.log(51)  # 51 of 100: the others share 49
        return rows


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenvinoReader:
    monkeypatch.setattr(gguf_openvino, "is_installed", lambda: True)
    monkeypatch.setattr(gguf_openvino, "prepare_model", lambda _: tmp_path)
    monkeypatch.setattr(gguf_openvino, "FirstTokenModel", Model)
    file = write_gguf(tmp_path / "tiny.gguf", architecture="qwen2", width=GROUP_SIZE)
    return OpenvinoReader(str(file), context=40)


def ask(text: str, **options: Any) -> ChatRequest:
    return ChatRequest.of(text, **{"max_tokens": 1, "logprobs": 3} | options)


def test_replies_are_in_the_order_of_their_requests(reader: OpenvinoReader) -> None:
    texts = ["a long passage, yes?", "b", "a long passage, or no?"]
    replies = reader.replies([ask(text) for text in texts])
    assert [getattr(reply, "text", None) for reply in replies] == [f"<{len(t)}>" for t in texts]
    assert sorted(reader._model.groups) == [1, 2]  # type: ignore[attr-defined]
    (reply,) = reader.replies([ask("abc")])
    assert isinstance(reply, Reply)
    assert (reply.prompt_tokens, reply.reply_tokens) == (3, 1)
    (token,) = reply.logprobs or ()
    assert len(token.alternatives) == 3
    assert token.logprob == pytest.approx(math.log(0.51))
    assert token.alternatives[1][1] == pytest.approx(math.log(0.01))


def test_what_it_cannot_answer_is_an_error_in_its_place(reader: OpenvinoReader) -> None:
    good, long, other = reader.replies([ask("a"), ask("b" * 41), ask("c", max_tokens=2)])
    assert isinstance(good, Reply)
    assert "a prompt of 41 tokens does not fit the context of 40" in str(long)
    assert "only gives the first token of a reply" in str(other)
    for options in ({"logprobs": None}, {"n": 2}, {"schema": "{}"}):
        with pytest.raises(BackendError, match="the first token of a reply"):
            reader.replies([ask("a", **options)])


def test_its_name_has_file_and_engine(reader: OpenvinoReader, tmp_path: Path) -> None:
    identity = GgufFile.read(tmp_path / "tiny.gguf").identity
    assert reader.name == f"gguf:{tmp_path}/tiny.gguf?file={identity}&engine=openvino"


def test_a_file_that_does_not_fit_is_refused(
    reader: OpenvinoReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "tiny.gguf")
    with pytest.raises(BackendError, match=r"expected the file 1-ab, got"):
        OpenvinoReader(path, file="1-ab")
    monkeypatch.setattr(gguf_openvino, "read_free_memory", lambda: 1000)
    with pytest.raises(
        BackendError, match=r"GB of memory, but only 0\.0 GB are free; try engine=llama"
    ):
        OpenvinoReader(path)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"architecture": "llama"}, "architecture qwen2 for OpenVINO, got llama"),
        ({"architecture": "qwen2", "width": GROUP_SIZE + 32}, "a multiple of 128 inputs"),
    ],
)
def test_a_file_of_another_kind_has_an_obstacle(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    file = GgufFile.read(write_gguf(tmp_path / "tiny.gguf", **fields))
    obstacle = find_obstacle(file)
    assert obstacle is not None
    assert reason in obstacle


# --------------------------------------------------------------------------- preparation


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GgufFile:
    monkeypatch.setenv("TRUSTASSAY_MODELS", str(tmp_path / "models"))
    return GgufFile.read(write_gguf(tmp_path / "tiny.gguf", architecture="qwen2", width=GROUP_SIZE))


def test_a_model_is_prepared_once_for_each_file(
    file: GgufFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[Path] = []

    def write_graph(_: GgufFile, folder: Path) -> None:
        prepared.append(folder)
        (folder / "openvino_tokenizer.xml").write_text("tokenizer")

    def write_weights(_: GgufFile, source: Path, folder: Path) -> None:
        (folder / "openvino_model.xml").write_text("model")

    monkeypatch.setattr(gguf_openvino, "_write_graph", write_graph)
    monkeypatch.setattr(gguf_openvino, "_write_with_exact_weights", write_weights)
    folder = prepare_model(file)
    assert file.identity in folder.name
    names = {path.name for path in folder.iterdir()}
    assert names == {"openvino_model.xml", "openvino_tokenizer.xml"}
    assert prepare_model(file) == folder
    assert len(prepared) == 1
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_preparation_that_fails_leaves_nothing(
    file: GgufFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_: GgufFile, folder: Path) -> None:
        (folder / "half").write_text("")
        raise BackendError("OpenVINO cannot read it: no such layer")

    monkeypatch.setattr(gguf_openvino, "_write_graph", fail)
    with pytest.raises(BackendError, match="no such layer"):
        prepare_model(file)
    assert list((tmp_path / "models" / "openvino").iterdir()) == []


def test_a_full_disk_is_an_obstacle_until_the_model_is_prepared(
    file: GgufFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_obstacle(file) is None
    usage = type("Usage", (), {"free": file.size})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    obstacle = find_obstacle(file)
    assert obstacle is not None
    assert "GB, but only 0.0 GB are free" in obstacle
    find_folder(file).mkdir()
    assert find_obstacle(file) is None


def test_a_folder_that_cannot_be_made_is_an_obstacle(
    file: GgufFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setenv("TRUSTASSAY_MODELS", str(tmp_path / "taken"))
    obstacle = find_obstacle(file)
    assert obstacle is not None
    assert "it cannot be prepared in" in obstacle


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("bad xml")])
def test_a_fault_while_it_is_prepared_or_loaded_names_the_other_engine(
    file: GgufFile, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(_: GgufFile) -> Path:
        raise error

    monkeypatch.setattr(gguf_openvino, "is_installed", lambda: True)
    monkeypatch.setattr(gguf_openvino, "prepare_model", fail)
    with pytest.raises(BackendError, match=r"(No space|bad xml).*; try engine=llama\.cpp$"):
        OpenvinoReader(str(file.path))


def test_the_folder_of_another_process_is_taken(
    file: GgufFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_graph(_: GgufFile, folder: Path) -> None:
        # The other process ends first.
        find_folder(file).mkdir()
        (find_folder(file) / "openvino_model.xml").write_text("theirs")

    monkeypatch.setattr(gguf_openvino, "_write_graph", write_graph)
    monkeypatch.setattr(gguf_openvino, "_write_with_exact_weights", lambda *_: None)
    assert (prepare_model(file) / "openvino_model.xml").read_text() == "theirs"

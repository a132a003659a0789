"""A tiny model is tuned for some steps: it learns, can be resumed, loads and generates.

That nothing of it is reported to anybody is tested in ``tests/cli/test_quiet.py``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from tests.support import fresh_command, jsonl, lines
from trustassay.backends.hf_chat import HuggingFaceChat
from trustassay.core.capabilities import ChatRequest
from trustassay.errors import BackendError, RunFolderError

needed("trl", "needs TRL: pip install '.[papers]'")
torch, transformers = needed("torch"), needed("transformers")

from tests.tiny_chat import save_llama, save_t5  # noqa: E402
from tests.tiny_models import pickled  # noqa: E402
from trustassay.papers.tune import TuneOptions, tune  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]
CITIES = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo"}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("model") / "llama")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        {
            "messages": [
                {"role": "user", "content": f"What is the capital of {land}?"},
                {"role": "assistant", "content": city},
            ]
        }
        for land, city in CITIES.items()
    ]
    return jsonl(tmp_path / "train.jsonl", rows)


def test_what_is_learnt_is_said(model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuned"
    options = TuneOptions(full=True, steps=80, batch=4, learning_rate=0.01)
    found = tune(data, str(model), out, options)
    assert (found.conversations, found.too_long, found.steps, found.resumed) == (4, 0, 80, 0)
    assert found.last_loss < 0.1 * found.first_loss
    losses = lines(out / "loss.jsonl")
    assert [one["step"] for one in losses] == list(range(1, 81))
    assert losses[-1]["learning_rate"] < losses[0]["learning_rate"] == 0.01
    chat = HuggingFaceChat(str(out))
    requests = [
        ChatRequest.of(f"What is the capital of {land}?", temperature=0, max_tokens=20)
        for land in CITIES
    ]
    assert [one.text.strip() for one in chat.replies(requests)] == list(CITIES.values())
    names = {path.name for path in out.iterdir()}
    assert "model.safetensors" in names and "checkpoints" not in names
    assert not any(path.suffix in (".bin", ".pt", ".pth") for path in out.rglob("*"))


def test_a_step_has_the_loss_and_the_weights_of_plain_gradient_descent(
    model: Path, data: Path, tmp_path: Path
) -> None:
    rate = 0.01
    options = TuneOptions(full=True, steps=1, batch=4, learning_rate=rate)
    result = tune(data, str(model), tmp_path / "tuned", options)

    # The loss: minus the mean log-probability of the answers' tokens, after their prompts.
    raw = transformers.AutoModelForCausalLM.from_pretrained(model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    losses = []
    for land, city in CITIES.items():
        prompt = tokenizer(f"What is the capital of {land}?")["input_ids"]
        answer = [*tokenizer(f" {city}")["input_ids"], tokenizer.eos_token_id]
        logprobs = raw(torch.tensor([[*prompt, *answer]])).logits[0].log_softmax(dim=-1)
        losses += [-logprobs[len(prompt) - 1 + place, token] for place, token in enumerate(answer)]
    loss = torch.stack(losses).mean()
    assert result.first_loss == pytest.approx(loss.item(), abs=1e-4)

    # AdamW's first step goes the learning rate against the sign of the gradient.
    loss.backward()
    tuned = dict(transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "tuned")
                 .named_parameters())  # fmt: skip
    checked = 0
    for name, before in raw.named_parameters():
        steep = before.grad.abs() > 1e-4
        expected = before - rate * before.grad.sign()
        assert torch.allclose(tuned[name][steep], expected[steep], atol=1e-4), name
        checked += int(steep.sum())
    assert checked > 1000


def test_adapters_are_merged_and_a_call_again_trains_nothing(
    model: Path, data: Path, tmp_path: Path
) -> None:
    options = TuneOptions(steps=12, batch=2, learning_rate=0.02)
    found = tune(data, str(model), tmp_path / "tuned", options)
    assert found.last_loss < found.first_loss
    before = (tmp_path / "tuned" / "model.safetensors").stat().st_mtime_ns
    assert tune(data, f"hf:{model}", tmp_path / "tuned", options) == found
    assert (tmp_path / "tuned" / "model.safetensors").stat().st_mtime_ns == before
    old, new = HuggingFaceChat(str(model)), HuggingFaceChat(str(tmp_path / "tuned"))
    question = "What is the capital of France?"
    chances = [sum(one.token_loglikelihoods(question, [" Paris"])[0]) for one in (old, new)]
    assert chances[0] < chances[1]
    with pytest.raises(RunFolderError, match="steps was 12, now 13"):
        tune(data, str(model), tmp_path / "tuned", TuneOptions(steps=13, batch=2))


def test_killed_it_goes_on_and_ends_with_the_same_weights(
    model: Path, data: Path, tmp_path: Path
) -> None:
    given = ["--steps", "40", "--batch", "2", "--learning-rate", "0.01"]
    process = subprocess.Popen(
        fresh_command(
            "papers", "tune", data, "--model", model, *given, "--out", tmp_path / "killed"
        ),
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    for _ in range(6000):
        if (tmp_path / "killed" / "checkpoints" / "checkpoint-8").exists():
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    options = TuneOptions(steps=40, batch=2, learning_rate=0.01)
    assert tune(data, str(model), tmp_path / "killed", options).resumed >= 4
    assert tune(data, str(model), tmp_path / "whole", options).resumed == 0
    for name in ("loss.jsonl", "model.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_cannot_be_tuned(model: Path, data: Path, tmp_path: Path) -> None:
    def refused(name: Path | str, words: str, **options: Any) -> None:
        with pytest.raises(BackendError, match=words):
            tune(data, str(name), tmp_path / "out", TuneOptions(**options))
        assert not list((tmp_path / "out").glob("*"))

    refused(tmp_path / "none", "there is no such folder")
    refused(save_t5(tmp_path / "t5"), "encoder-decoder")
    refused(pickled(model, tmp_path / "pickled"), "safetensors")
    refused(model, "longer than 5 tokens", max_length=5)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(RunFolderError, match="is not empty"):
        tune(data, str(model), tmp_path / "full")
    for options in ({"steps": 0}, {"epochs": -1.0}, {"learning_rate": float("nan")}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            TuneOptions(**options)


def test_without_the_extra_it_says_what_to_install(
    data: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trl", None)
    with pytest.raises(BackendError, match=r"trl is missing.*pip install '\.\[papers\]'"):
        tune(data, str(model), tmp_path / "out")

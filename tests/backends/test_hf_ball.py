"""Embeddings of a prompt moved in a ball: which ones, how far, and what is answered then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lazily import needed
from trustassay import plan, score
from trustassay.backends.hf_chat import HuggingFaceChat, draw_from_unit_ball
from trustassay.core.capabilities import ChatRequest, Message
from trustassay.errors import BackendError

_HF = "needs torch and transformers: pip install '.[hf]'"
torch, transformers = needed("torch", _HF), needed("transformers", _HF)

from tests.tiny_chat import TEMPLATE, save_bart, save_gpt2, save_llama, save_t5  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROMPTS = [
    "the cat",
    "What is the capital of France?",
    "on",
    "the dog sat on the mat and",
    "?" * 40,
]
KINDS = ["llama", "gpt2", "t5", "bart", "templated"]
RADII = (0.03, 0.1, 0.3, 1.0, 3.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ball")
    save_llama(path / "llama")
    save_gpt2(path / "gpt2")
    save_t5(path / "t5")
    save_bart(path / "bart")
    save_llama(path / "templated", template=TEMPLATE)
    return path


@pytest.fixture(scope="module")
def chats(folder: Path) -> dict[str, HuggingFaceChat]:
    return {kind: HuggingFaceChat(str(folder / kind)) for kind in KINDS}


def asked(text: str, radius: float | None, repeat: int = 0, **others: Any) -> ChatRequest:
    settings: dict[str, Any] = {"max_tokens": 12} | others
    return ChatRequest.of(text, embedding_radius=radius, repeat=repeat, **settings)


def texts(chat: HuggingFaceChat, requests: list[ChatRequest]) -> list[str]:
    return [reply.text for reply in chat.replies(requests)]


# ------------------------------------------------------------------------------ what is answered


@pytest.mark.parametrize("kind", KINDS)
def test_a_radius_of_zero_gives_the_plain_reply(
    kind: str, chats: dict[str, HuggingFaceChat]
) -> None:
    plain = chats[kind].replies([asked(text, None, max_tokens=20) for text in PROMPTS])
    assert chats[kind].replies([asked(text, 0.0, max_tokens=20) for text in PROMPTS]) == plain


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_answers_as_each_alone(kind: str, chats: dict[str, HuggingFaceChat]) -> None:
    requests = [asked(text, r, i) for text in PROMPTS for r in (None, 0.02, 0.3) for i in (0, 1)]
    together = chats[kind].replies(requests)
    assert together == [chats[kind].replies([request])[0] for request in requests]
    assert chats[kind].replies(requests[::-1])[::-1] == together
    plain = [reply for request, reply in zip(requests, together, strict=True)
             if request.embedding_radius is None]  # fmt: skip
    assert plain == chats[kind].replies([asked(t, None, i) for t in PROMPTS for i in (0, 1)])


def test_the_same_seed_repeats_a_reply_and_others_do_not(
    chats: dict[str, HuggingFaceChat],
) -> None:
    requests = [asked("the cat", 0.3, i, seed=seed) for seed in (0, 1) for i in range(4)]
    first = texts(chats["llama"], requests)
    assert texts(chats["llama"], requests) == first
    assert len(set(first)) == 8


def test_draws_at_a_temperature_move_too_and_the_draws_of_tokens_stay(
    chats: dict[str, HuggingFaceChat],
) -> None:
    plain, zero, far = chats["llama"].replies(
        [asked("the cat", radius, temperature=1.0, n=3) for radius in (None, 0.0, 3.0)]
    )
    assert (plain.text, plain.others) == (zero.text, zero.others)
    assert not {plain.text, *plain.others} & {far.text, *far.others}


@pytest.fixture(scope="module")
def linear(folder: Path) -> HuggingFaceChat:
    """A model whose first token is the largest of linear functions of the last embedding."""
    path = save_llama(folder / "linear", seed=3)
    model = transformers.AutoModelForCausalLM.from_pretrained(path)
    for layer in model.model.layers:  # what a layer adds is nothing
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.down_proj.weight.data.zero_()
    model.save_pretrained(path)
    return HuggingFaceChat(str(path))


def test_a_larger_radius_moves_more_answers(linear: HuggingFaceChat) -> None:
    """A point goes straight out with the radius, so an answer that it lost never comes back: where
    the first token leads is cut out by half-spaces, and convex."""
    prompts, draws = ["the cat", "on", "Paris", "France?"], range(12)
    plain = texts(linear, [asked(text, None, max_tokens=1) for text in prompts])
    before, shares = np.zeros((len(prompts), len(draws)), bool), []
    for radius in RADII:
        found = texts(linear, [asked(t, radius, i, max_tokens=1) for t in prompts for i in draws])
        moved = np.reshape(found, before.shape) != np.array(plain)[:, None]
        assert (moved | ~before).all()
        before = moved
        shares.append(moved.mean())
    assert shares[0] < 0.3
    assert shares[-1] > 0.8


# --------------------------------------------------------------------------------------- what moves


def inputs(chat: HuggingFaceChat, requests: list[ChatRequest]) -> tuple[Any, Any]:
    """Return the embeddings that the model got, and those of the same tokens unmoved."""
    rows = [row for request in requests for row in chat._build_rows(request)]
    with torch.inference_mode():
        given = chat._build_inputs(rows)
        ids = chat._pad_prompts([row.prompt for row in rows])["input_ids"]
        return given["inputs_embeds"], (ids, chat._model.get_input_embeddings()(ids))


CHATS = [
    [("user", "the cat")],
    [("system", "the cat"), ("user", "the cat sat?")],
    [("user", "on"), ("assistant", "the mat"), ("user", " user assistant\n")],
    [("user", "<|end|>")],
    [("user", "\U0001d11e \u00e9\ud800")],
]


@pytest.mark.parametrize("kind", ["templated", "llama", "t5", "bart"])
def test_only_what_the_user_says_is_moved(kind: str, chats: dict[str, HuggingFaceChat]) -> None:
    chat = chats[kind]
    requests = [
        ChatRequest(tuple(Message(*one) for one in turns), max_tokens=1, embedding_radius=0.1)
        for turns in CHATS
    ]
    given, (ids, plain) = inputs(chat, requests)
    assert given.shape == plain.shape  # padded together
    for turns, row, own, unmoved in zip(CHATS, ids, given, plain, strict=True):
        differ = (own != unmoved).any(dim=-1)
        text = turns[-1][1].replace("\ud800", "\ufffd")
        assert chat._tokenizer.decode(row[differ], clean_up_tokenization_spaces=False) == text


def test_a_vector_moves_by_the_radius_at_most_and_by_nearly_as_much(
    chats: dict[str, HuggingFaceChat],
) -> None:
    requests = [asked("?" * 40, 0.25, i) for i in range(20)]
    given, (_, plain) = inputs(chats["llama"], requests)
    steps = (given - plain).norm(dim=-1) / plain.norm(dim=-1).mean(dim=-1, keepdim=True)
    assert steps.max() <= 0.25 * (1 + 1e-5)
    assert steps.mean().item() == pytest.approx(0.25 * 32 / 33, rel=0.01)  # of 32 dimensions
    assert len({round(step, 6) for step in steps.flatten().tolist()}) > 0.9 * steps.numel()


def test_the_ball_is_uniform() -> None:
    """The share within r is r to the power of the dimension, and no direction is preferred."""
    for size in (1, 2, 5):
        points = draw_from_unit_ball(np.random.default_rng(size), 20_000, size)
        lengths = np.linalg.norm(points, axis=1)
        assert lengths.max() <= 1
        for r in (0.3, 0.6, 0.9):
            assert (lengths <= r).mean() == pytest.approx(r**size, abs=0.015)
        # E x x' = I / (size + 2)
        assert points.mean(axis=0) == pytest.approx(np.zeros(size), abs=0.02)
        covariance = np.cov(points, rowvar=False).reshape(size, size)
        assert covariance == pytest.approx(np.eye(size) / (size + 2), abs=0.015)


@pytest.mark.parametrize(
    ("template", "text", "words"),
    [
        ("{{ messages | length }}", "the cat", "template does not show which tokens are the user"),
        (None, "", "the user's text has no token"),
    ],
)
def test_what_cannot_be_moved_is_an_error(
    template: str | None, text: str, words: str, tmp_path: Path
) -> None:
    chat = HuggingFaceChat(str(save_llama(tmp_path / "m", template=template)))
    with pytest.raises(BackendError, match=words) as caught:
        chat.replies([asked(text, 0.1)])
    assert str(caught.value).startswith(f"{chat.name}: ")


# ----------------------------------------------------------------------------------- in a run


METRICS = [
    "harmonicity:perturbation=embeddings,radius=0.3,perturbations=4,max_tokens=8",
    "semantic_harmonicity:perturbation=embeddings,radius=0.3,perturbations=4,max_tokens=8",
]


def test_a_run_is_planned_scored_and_resumed(folder: Path, tmp_path: Path) -> None:
    samples = [{"id": text, "question": text} for text in PROMPTS[:3]]
    model = f"hf:{folder / 'templated'}"
    how: dict[str, Any] = {"model": model, "cache": None, "entailer": "lexical"}
    planned = plan(samples, metrics=METRICS, **how)
    assert sum(part.calls for part in planned.parts if part.capability == "chat") == 3 * 5
    run = score(samples, metrics=METRICS, out=tmp_path / "run", **how)
    chat = HuggingFaceChat(str(folder / "templated"))
    for one in run.assessments:
        requests = [asked(one.id, None, max_tokens=8)]
        requests += [asked(one.id, 0.3, i, seed=0, max_tokens=8) for i in range(4)]
        told = [row.get("original") or row.get("answer") for row in one.evidence]
        assert told == texts(chat, requests)
        assert {row["change"] for row in one.evidence[1:]} == {"embeddings, radius 0.3"}
    stored = (tmp_path / "run/calls.sqlite").read_bytes()
    (tmp_path / "run/assessments.jsonl").unlink()
    again = score(samples, metrics=METRICS, out=tmp_path / "run", **how)
    assert [a.to_dict() for a in again.assessments] == [a.to_dict() for a in run.assessments]
    assert len((tmp_path / "run/calls.sqlite").read_bytes()) == len(stored)
    settings = json.loads((tmp_path / "run/run.json").read_text())["metrics"]
    assert settings["harmonicity"]["radius"] == settings["semantic_harmonicity"]["radius"] == 0.3
    planned = plan(samples, metrics=METRICS, out=tmp_path / "run", **how)
    assert {part.cached - part.calls for part in planned.parts if part.capability == "chat"} == {0}


def greedy(model: Any, embeddings: Any, tokens: int) -> list[int]:
    """Return the likeliest next tokens, one after the other, up to the end of the text."""
    written: list[int] = []
    for _ in range(tokens):
        with torch.inference_mode():
            logits = model(inputs_embeds=embeddings[None]).logits[0, -1]
        token = int(logits.argmax())
        if token == model.config.eos_token_id:
            break
        written.append(token)
        of_token = model.get_input_embeddings()(torch.tensor([token]))
        embeddings = torch.cat([embeddings, of_token])
    return written


def letters(text: str) -> list[float]:
    """Return how often each letter occurs: an embedding that anyone can check."""
    return [1.0, *(float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz")]


def test_gamma_is_the_sine_between_the_answers_of_the_raw_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Algorithm 1 with embeddings in place of characters, from the model's logits to gamma."""
    path, prompt, radius, draws = folder / "llama", "the cat sat on", 0.3, 6
    moved_rows: list[tuple[Any, Any]] = []
    build_inputs = HuggingFaceChat._build_inputs

    def keep(chat: HuggingFaceChat, rows: Any) -> Any:
        result = build_inputs(chat, rows)
        for row, mask, vectors in zip(
            rows, result["attention_mask"], result["inputs_embeds"], strict=True
        ):
            moved_rows.append((row.request.embedding_radius, vectors[mask.bool()].clone()))
        return result

    monkeypatch.setattr(HuggingFaceChat, "_build_inputs", keep)
    metric = f"harmonicity:perturbation=embeddings,radius={radius},perturbations={draws}"
    [result] = score(
        [{"id": "q", "question": prompt}],
        metrics=f"{metric},max_tokens=8",
        model=f"hf:{path}",
        embedder=lambda texts: [letters(text) for text in texts],
        cache=None,
    ).assessments

    raw = transformers.AutoModelForCausalLM.from_pretrained(path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    with torch.inference_mode():
        plain = raw.get_input_embeddings()(tokenizer(prompt, return_tensors="pt")["input_ids"])[0]
    # 1. Every point lies in the ball around the prompt's own embeddings.
    balls = [vectors for row_radius, vectors in moved_rows if row_radius]
    assert len(balls) == draws
    for vectors in balls:
        steps = (vectors - plain).norm(dim=-1) / plain.norm(dim=-1).mean()
        assert 0 < float(steps.max()) <= radius * (1 + 1e-5)
    # 2. The answers are those of the raw model at these points.
    original, *texts_of_raw = (
        tokenizer.decode(greedy(raw, vectors, 8), skip_special_tokens=True).strip()
        for vectors in (plain, *balls)
    )
    assert result.evidence[0]["original"].strip() == original
    assert sorted(row["answer"].strip() for row in result.evidence[1:]) == sorted(texts_of_raw)
    assert len(set(texts_of_raw)) > 1
    # 3. Gamma is the sine of the angle between the original's vector and the sum of the others.
    units = [np.array(letters(text)) / np.linalg.norm(letters(text)) for text in texts_of_raw]
    total, o = np.sum(units, axis=0), np.array(letters(original))
    cosine = total @ o / np.linalg.norm(total) / np.linalg.norm(o)
    assert result.score is not None and result.score > 0.01
    assert result.score == pytest.approx(np.sqrt(1 - cosine**2), abs=1e-5)

"""Tests of chat models run on this machine: tiny real ones, saved and loaded by path."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from trustassay.backends.hf_chat import HuggingFaceChat
from trustassay.core.capabilities import ChatRequest, LocalChatModel, Message
from trustassay.errors import BackendError

_HF = "needs torch and transformers: pip install '.[hf]'"
torch, transformers = needed("torch", _HF), needed("transformers", _HF)

from tests.tiny_chat import NO_SYSTEM, SPECIAL, TEMPLATE, save_gpt2, save_llama, save_t5  # noqa: E402
from tests.tiny_models import pickled, train_nli  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROMPTS = [
    "the cat",
    "What is the capital of France?",
    "on",
    "the dog sat on the mat and",
    "?" * 40,
]
KINDS = ["llama", "gpt2", "t5", "templated"]


def likelihoods(
    chat: HuggingFaceChat, prompt: str | Sequence[Message], options: Sequence[str]
) -> list[float]:
    """Return the log-probability of each option."""
    return [math.fsum(row) for row in chat.token_loglikelihoods(prompt, options)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chat")
    save_llama(path / "llama")
    save_gpt2(path / "gpt2")
    save_t5(path / "t5")
    save_llama(path / "templated", template=TEMPLATE)
    return path


@pytest.fixture(scope="module")
def chats(folder: Path) -> dict[str, HuggingFaceChat]:
    return {kind: HuggingFaceChat(str(folder / kind)) for kind in KINDS}


def reference(path: Path) -> tuple[Any, Any]:
    auto = transformers.AutoModelForCausalLM
    if path.name == "t5":
        auto = transformers.AutoModelForSeq2SeqLM
    return auto.from_pretrained(path).eval(), transformers.AutoTokenizer.from_pretrained(path)


def sampled(text: str, **parameters: Any) -> ChatRequest:
    return ChatRequest.of(text, temperature=1.0, max_tokens=12, **parameters)


# ---------------------------------------------------------------------------------------- greedy


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_is_what_generate_writes(
    kind: str, folder: Path, chats: dict[str, HuggingFaceChat]
) -> None:
    model, tokenizer = reference(folder / kind)
    replies = chats[kind].replies([ChatRequest.of(text, max_tokens=20) for text in PROMPTS])
    for text, reply in zip(PROMPTS, replies, strict=True):
        shown = f"<|user|>{text}<|end|><|assistant|>" if kind == "templated" else text
        inputs = tokenizer(shown, return_tensors="pt", return_token_type_ids=False)
        ids = model.generate(**inputs, max_new_tokens=20, do_sample=False, pad_token_id=0)[0]
        new = ids[1:] if kind == "t5" else ids[inputs["input_ids"].shape[1] :]
        assert reply.text == tokenizer.decode(new, skip_special_tokens=True)
        assert reply.prompt_tokens == inputs["input_ids"].shape[1]
        ended = tokenizer.eos_token_id in new.tolist()
        assert reply.finish == ("stop" if ended else "length")
        assert reply.reply_tokens == (new.tolist().index(2) if ended else 20)
        assert reply.dropped == () and reply.others == () and reply.logprobs is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_answers_as_each_alone(kind: str, chats: dict[str, HuggingFaceChat]) -> None:
    requests = [
        ChatRequest.of(text, max_tokens=most, temperature=heat, seed=seed, n=n)
        for text, most, heat, seed, n in zip(
            PROMPTS,
            (3, 20, 9, 15, 1),
            (0, 1.0, None, 0.7, 2.0),
            (1, 2, 3, 4, 5),
            (1, 3, 1, 2, 1),
            strict=True,
        )
    ]
    together = chats[kind].replies(requests)
    assert together == [chats[kind].replies([request])[0] for request in requests]
    assert [1 + len(reply.others) for reply in together] == [1, 3, 1, 2, 1]
    assert [(reply.reply_tokens or 0) <= 20 * 3 for reply in together]


def test_order_and_batch_size_change_nothing(folder: Path) -> None:
    small = HuggingFaceChat(str(folder / "llama"), batch_tokens=40)
    large = HuggingFaceChat(str(folder / "llama"))
    requests = [sampled(f"{text} {i}") for i, text in enumerate(PROMPTS * 4)]
    assert small.replies(requests) == large.replies(requests)
    assert large.replies(requests[::-1])[::-1] == large.replies(requests)
    assert small.limits.tokens == 40


def test_may_be_called_from_several_threads(chats: dict[str, HuggingFaceChat]) -> None:
    requests = [sampled(text) for text in PROMPTS]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: chats["llama"].replies(requests), range(8)))
    assert all(replies == found[0] for replies in found)


def test_is_a_local_chat_model(chats: dict[str, HuggingFaceChat], folder: Path) -> None:
    assert isinstance(chats["llama"], LocalChatModel)
    assert chats["llama"].name == f"hf:{folder / 'llama'}"
    assert chats["llama"].replies([]) == []


# --------------------------------------------------------------------------------------- sampled


def test_a_seed_repeats_a_reply_and_another_does_not(chats: dict[str, HuggingFaceChat]) -> None:
    chat = chats["llama"]
    asked = [sampled("the cat", seed=seed, repeat=repeat) for seed in (1, 2) for repeat in (0, 1)]
    first, again = chat.replies(asked), chat.replies(asked)
    assert first == again
    assert len({reply.text for reply in first}) == 4
    assert chat.replies([sampled("the cat")]) == chat.replies([sampled("the cat")])


def test_n_replies_differ_when_drawn_and_are_equal_when_greedy(
    chats: dict[str, HuggingFaceChat],
) -> None:
    drawn, greedy = chats["llama"].replies(
        [sampled("the cat", n=4), ChatRequest.of("the cat", n=4, max_tokens=12)]
    )
    assert len({drawn.text, *drawn.others}) == 4
    assert greedy.others == (greedy.text,) * 3
    assert drawn.reply_tokens == 48


def test_draws_follow_the_model(folder: Path, chats: dict[str, HuggingFaceChat]) -> None:
    """The first token of 3,000 draws at temperature 0.5 against softmax(2 x logits)."""
    model, tokenizer = reference(folder / "llama")
    with torch.inference_mode():
        logits = model(**tokenizer("on", return_tensors="pt", return_token_type_ids=False)).logits
    expected = torch.softmax(2 * logits[0, -1].double(), dim=-1)
    request = ChatRequest.of("on", temperature=0.5, max_tokens=1, n=3000, logprobs=0)
    (reply,) = chats["llama"].replies([request])
    drawn = Counter([reply.text, *reply.others])
    for token in expected.topk(3).indices.tolist():
        share, chance = drawn[tokenizer.decode([token])] / 3000, expected[token].item()
        assert abs(share - chance) < 4 * math.sqrt(chance * (1 - chance) / 3000)


def test_the_models_own_settings_rule_where_the_temperature_is_left_open(
    folder: Path, tmp_path: Path
) -> None:
    path = save_llama(tmp_path / "own")
    settings = json.loads((path / "generation_config.json").read_text())
    own = {"do_sample": True, "temperature": 5.0, "top_k": 2, "top_p": 1.0}
    (path / "generation_config.json").write_text(json.dumps(settings | own))
    chat = HuggingFaceChat(str(path))
    open_, hot, cold = chat.replies(
        [ChatRequest.of("on", temperature=heat, max_tokens=1, n=200) for heat in (None, 5.0, 0.0)]
    )
    assert len({open_.text, *open_.others}) == 2
    assert len({hot.text, *hot.others}) > 20
    assert len({cold.text, *cold.others}) == 1


# ------------------------------------------------------------------------- stops, lengths, tokens


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_a_stop_string_ends_a_reply_and_is_no_part_of_it(
    kind: str, chats: dict[str, HuggingFaceChat]
) -> None:
    (whole,) = chats[kind].replies([ChatRequest.of("the cat", max_tokens=30)])
    stop = whole.text[5:8]
    (cut,) = chats[kind].replies(
        [ChatRequest.of("the cat", max_tokens=30, stop=("never there", stop), logprobs=0)]
    )
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish == "stop"
    assert (cut.reply_tokens or 0) < 30
    assert cut.logprobs is not None
    spelt = "".join(token.token for token in cut.logprobs)
    assert spelt.startswith(cut.text) and len(cut.logprobs) <= (cut.reply_tokens or 0)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5"])
def test_log_probabilities_are_the_models(
    kind: str, folder: Path, chats: dict[str, HuggingFaceChat]
) -> None:
    model, tokenizer = reference(folder / kind)
    texts = ["the cat", "What is the capital of France?"]
    replies = chats[kind].replies([ChatRequest.of(t, max_tokens=6, logprobs=3) for t in texts])
    for text, reply in zip(texts, replies, strict=True):
        inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        out = model.generate(
            **inputs, max_new_tokens=6, do_sample=False, return_dict_in_generate=True,
            output_logits=True, pad_token_id=0,
        )  # fmt: skip
        assert reply.logprobs is not None
        for told, logits in zip(reply.logprobs, out.logits, strict=False):
            values, ids = logits[0].log_softmax(-1).topk(3)
            assert told.logprob == pytest.approx(values[0].item(), abs=1e-3)
            assert [v for _, v in told.alternatives] == pytest.approx(values.tolist(), abs=1e-3)
            assert told.alternatives[0] == (told.token, told.logprob)
            assert tokenizer.decode(ids[1:2]) == told.alternatives[1][0]
        spelt = "".join(t.token for t in reply.logprobs if t.token not in SPECIAL)
        assert spelt == reply.text


def test_a_prompt_that_does_not_fit_is_named_and_never_cut(
    chats: dict[str, HuggingFaceChat],
) -> None:
    chat = chats["gpt2"]  # reads 64 tokens
    with pytest.raises(BackendError, match=r"a prompt of \d+ tokens and 1 for the reply .* 64"):
        chat.replies([ChatRequest.of("the cat"), ChatRequest.of("x" * 64)])
    with pytest.raises(BackendError, match=r"and 62 for the reply"):
        chat.replies([ChatRequest.of("the cat sat", max_tokens=62)])
    (reply,) = chat.replies([ChatRequest.of("x" * 60)])
    assert (reply.reply_tokens or 0) <= 4
    with pytest.raises(BackendError, match="exceed the model's limit of 64"):
        likelihoods(chat, "the cat", ["x" * 70])


def test_max_tokens_by_default_and_by_option(folder: Path) -> None:
    chat = HuggingFaceChat(str(folder / "llama"), max_tokens=5)
    assert chat.replies([ChatRequest.of("?")])[0].reply_tokens == 5
    assert chat.name.endswith("?max_tokens=5")


def test_every_character_can_be_asked(chats: dict[str, HuggingFaceChat]) -> None:
    odd = "".join(map(chr, range(0x20))) + "\u2028\U0001f600"
    lone, mended = "lone \ud800 half", "lone \ufffd half"
    replies = chats["llama"].replies(
        [ChatRequest.of(text, max_tokens=5) for text in (odd, lone, mended, "")]
    )
    assert replies[1] == replies[2]


# --------------------------------------------------------------------------------------- layouts


def test_messages_without_a_template_are_joined(chats: dict[str, HuggingFaceChat]) -> None:
    joined = ChatRequest.of("Be brief.\n\nthe cat", max_tokens=8)
    apart = ChatRequest.of("the cat", system="Be brief.", max_tokens=8)
    assert chats["llama"].replies([joined])[0] == chats["llama"].replies([apart])[0]


def test_a_system_message_goes_where_the_template_has_it(
    folder: Path, chats: dict[str, HuggingFaceChat], tmp_path: Path
) -> None:
    plain = HuggingFaceChat(str(folder / "templated"), template="none")
    request = ChatRequest.of("the cat", system="Be brief.", max_tokens=8)
    shown = "<|system|>Be brief.<|end|><|user|>the cat<|end|><|assistant|>"
    assert chats["templated"].replies([request])[0].text == (
        plain.replies([ChatRequest.of(shown, max_tokens=8)])[0].text
    )
    without = HuggingFaceChat(str(save_llama(tmp_path / "m", template=NO_SYSTEM)))
    merged = ChatRequest.of("Be brief.\n\nthe cat", max_tokens=8)
    assert without.replies([request])[0] == without.replies([merged])[0]


def test_a_reply_that_was_begun_goes_on(chats: dict[str, HuggingFaceChat], folder: Path) -> None:
    plain = HuggingFaceChat(str(folder / "templated"), template="none")
    begun = ChatRequest((Message("user", "the cat"), Message("assistant", "sat")), max_tokens=8)
    shown = ChatRequest.of("<|user|>the cat<|end|><|assistant|>sat", max_tokens=8)
    assert chats["templated"].replies([begun])[0].text == plain.replies([shown])[0].text


def test_an_end_token_that_a_tokenizer_adds_does_not_end_the_prompt(
    tmp_path: Path, chats: dict[str, HuggingFaceChat]
) -> None:
    ending = HuggingFaceChat(str(save_llama(tmp_path / "ending", end=True)))
    request = ChatRequest.of("the cat", max_tokens=8)
    assert ending.replies([request]) == chats["llama"].replies([request])
    assert ending.replies([ChatRequest.of("", max_tokens=3)])[0].prompt_tokens == 1


# ----------------------------------------------------------------------------------- likelihoods


def one_by_one(path: Path, prompt: str, tokens: Sequence[Sequence[int]]) -> list[float]:
    """The sum of log-probabilities of each option's tokens, one forward pass for each token."""
    model, tokenizer = reference(path)
    start = tokenizer(prompt)["input_ids"]
    sums = []
    for option in tokens:
        total = 0.0
        for i, token in enumerate(option):
            with torch.inference_mode():
                if path.name == "t5":
                    decoder = torch.tensor([[0, *option[:i]]])
                    logits = model(torch.tensor([start]), decoder_input_ids=decoder).logits
                else:
                    logits = model(torch.tensor([[*start, *option[:i]]])).logits
            total += logits[0, -1].log_softmax(-1)[token].item()
        sums.append(total)
    return sums


OPTIONS = ["A", " Paris", " the dog sat on the mat", "", "B", " Par"]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5"])
def test_likelihoods_are_those_of_a_plain_loop(
    kind: str, folder: Path, chats: dict[str, HuggingFaceChat]
) -> None:
    _, tokenizer = reference(folder / kind)
    prompt = "What is the capital of France?"
    tokens = [tokenizer(option, add_special_tokens=False)["input_ids"] for option in OPTIONS]
    expected = one_by_one(folder / kind, prompt, tokens)
    found = likelihoods(chats[kind], prompt, OPTIONS)
    assert found == pytest.approx(expected, abs=1e-3)
    assert found[3] == 0 and all(value < 0 for value in found[:3])
    small = HuggingFaceChat(str(folder / kind), batch_tokens=10)
    assert likelihoods(small, [Message("user", prompt)], OPTIONS) == pytest.approx(
        expected, abs=1e-3
    )
    assert likelihoods(chats[kind], prompt, []) == []


def test_options_follow_a_chat_template(folder: Path, chats: dict[str, HuggingFaceChat]) -> None:
    plain = HuggingFaceChat(str(folder / "templated"), template="none")
    shown = "<|user|>the cat<|end|><|assistant|>"
    assert likelihoods(chats["templated"], "the cat", OPTIONS) == pytest.approx(
        likelihoods(plain, shown, OPTIONS)
    )


def test_an_option_that_would_melt_into_the_prompt_is_tokenised_alone(
    folder: Path, chats: dict[str, HuggingFaceChat]
) -> None:
    _, tokenizer = reference(folder / "llama")
    start = tokenizer("the c")["input_ids"]
    assert tokenizer("the cat")["input_ids"][: len(start)] != start
    alone = tokenizer("at", add_special_tokens=False)["input_ids"]
    assert likelihoods(chats["llama"], "the c", ["at"]) == pytest.approx(
        one_by_one(folder / "llama", "the c", [alone]), abs=1e-3
    )


def test_options_of_one_token_are_read_once(
    chats: dict[str, HuggingFaceChat], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = chats["llama"]._model
    forward, rows = model.forward, []

    def counting(*args: Any, **kwargs: Any) -> Any:
        rows.append(len(kwargs["input_ids"]))
        return forward(*args, **kwargs)

    counting.__signature__ = __import__("inspect").signature(forward)  # type: ignore[attr-defined]
    monkeypatch.setattr(model, "forward", counting)
    assert len(likelihoods(chats["llama"], "the cat", list("ABCDEFGHIJ"))) == 10
    assert rows == [1]


# --------------------------------------------------------------------------------------- loading


def test_import_is_light() -> None:
    code = (
        "import sys, trustassay.backends.hf_chat; "
        "print([m for m in ('torch', 'transformers', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"template": "chatml"}, "template=chatml is unknown"),
        ({"dtype": "int3"}, "dtype=int3 is unknown"),
        ({"batch_tokens": 0}, "must be more than 0"),
        ({"max_tokens": 0}, "must be more than 0"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], words: str, folder: Path) -> None:
    with pytest.raises(BackendError, match=words):
        HuggingFaceChat(str(folder / "llama"), **options)


def test_models_that_are_not_loaded(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="there is no such folder"):
        HuggingFaceChat(str(tmp_path / "nothing"))
    with pytest.raises(BackendError, match="no safetensors weights"):
        HuggingFaceChat(str(pickled(folder / "llama", tmp_path / "pickled")))
    with pytest.raises(
        BackendError,
        match="a model that generates text, got the architecture BertForSequenceClassification",
    ):
        HuggingFaceChat(str(train_nli(tmp_path / "nli", steps=0)))

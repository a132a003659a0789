"""Real models of a few thousand weights, with tokenizers of their own, made in seconds.

They are trained on :data:`~trustassay.backends.functions.CHECK_PAIRS` and on whether a premise,
full of meaningless filler words, says that Anna has a red car. Needs torch and transformers;
no network. Used by the tests and by the benchmarks.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.lazily import Lazily
from trustassay.backends.functions import CHECK_PAIRS

torch: Any = Lazily("torch")
transformers: Any = Lazily("transformers")
safetensors: Any = Lazily("safetensors.torch")

NLI = ("entailment", "neutral", "contradiction")
HYPOTHESIS = "Anna owns a red car."
RED, NONE = "Anna bought herself a red car.", "Her parents never let Anna drive."
FILLER = tuple(f"word{i}" for i in range(40))

Example = tuple[str, str, str]


def filler(n: int, rng: random.Random) -> str:
    """Return a premise of ``n`` words that says nothing about Anna's car."""
    return " ".join(rng.choices(FILLER, k=n))


def examples(n: int, longest: int, rng: random.Random) -> list[Example]:
    """Return (premise, hypothesis, label name) of the check pairs and of ``n`` others."""
    found: list[Example] = [
        (*pair, label) for pair, label in zip(CHECK_PAIRS, NLI, strict=True) for _ in range(n // 8)
    ]
    for i in range(n):
        fact = (RED, "", NONE)[i % 3]
        before = rng.randint(0, longest)
        after = rng.randint(0, longest - before)
        premise = f"{filler(before, rng)} {fact} {filler(after, rng)}".strip()
        found.append((premise, HYPOTHESIS, NLI[i % 3]))
    return found


def train_nli(
    path: Path,
    *,
    labels: Sequence[str] = NLI,
    architecture: str = "bert",
    steps: int = 600,
    max_length: int = 48,
    seed: int = 0,
) -> Path:
    """Save a sequence classifier whose outputs mean ``labels``; two-label names are understood.

    ``architecture`` is ``bert``, ``roberta`` or ``bart``; ``steps=0`` saves it untrained.
    """
    torch.manual_seed(seed)
    rng = random.Random(seed)
    tokenizer = _tokenizer(pair=True)
    model = _classifier(architecture, tokenizer, labels, max_length)

    def loss(chosen: Sequence[Example]) -> Any:
        texts = [p for p, _, _ in chosen], [h for _, h, _ in chosen]
        inputs = tokenizer(*texts, padding=True, return_tensors="pt")
        target = torch.tensor([_index(labels, label) for _, _, label in chosen])
        return model(**inputs, labels=target).loss

    _train(model, loss, examples(400, max_length - 16, rng), steps, rng)
    return _save(path, model, tokenizer)


def train_true(
    path: Path, *, shared_prefix: bool = False, steps: int = 600, longest: int = 28, seed: int = 0
) -> Path:
    """Save a T5 that writes "1" for what is entailed and "0" for the rest.

    With ``shared_prefix`` its tokenizer writes either label as two pieces, the first the same.
    """
    torch.manual_seed(seed)
    rng = random.Random(seed)
    tokenizer = _tokenizer(pair=False, digits_apart=shared_prefix)
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=tokenizer.pad_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.sep_token_id,
    )
    model = transformers.T5ForConditionalGeneration(config)

    def loss(chosen: Sequence[Example]) -> Any:
        texts = [f"premise: {p} hypothesis: {h}" for p, h, _ in chosen]
        inputs = tokenizer(texts, padding=True, return_tensors="pt")
        wanted = ["1" if label == NLI[0] else "0" for _, _, label in chosen]
        target = tokenizer(wanted, return_tensors="pt")["input_ids"]
        return model(**inputs, labels=target).loss

    _train(model, loss, examples(400, longest, rng), steps, rng)
    return _save(path, model, tokenizer)


def copy_with(source: Path, path: Path, order: Sequence[int] | None = None, **config: Any) -> Path:
    """Save a copy with other entries in config.json and, with ``order``, its outputs reordered."""
    shutil.copytree(source, path)
    settings = json.loads((path / "config.json").read_text()) | config
    (path / "config.json").write_text(json.dumps(settings))
    if order is not None:
        weights = safetensors.load_file(path / "model.safetensors")
        for name in ("classifier.weight", "classifier.bias"):
            weights[name] = weights[name][list(order)].clone()
        safetensors.save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    return path


def names(labels: Sequence[str]) -> dict[str, Any]:
    """Return the entries of config.json that name a classifier's outputs."""
    return {
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }


def pickled(source: Path, path: Path) -> Path:
    """Save a copy whose weights are a pickle, as older models' are."""
    shutil.copytree(source, path)
    torch.save(safetensors.load_file(path / "model.safetensors"), path / "pytorch_model.bin")
    (path / "model.safetensors").unlink()
    return path


def with_slow_tokenizer(source: Path, path: Path) -> Path:
    """Save a copy with a tokenizer of the same words in Python (transformers 5's legacy class)."""
    from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

    vocabulary = transformers.AutoTokenizer.from_pretrained(source).get_vocab()
    shutil.copytree(source, path, ignore=shutil.ignore_patterns("tokenizer*", "special*"))
    words = path / "vocab.txt"
    words.write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
    BertTokenizerLegacy(str(words)).save_pretrained(path)
    return path


def _tokenizer(*, pair: bool, digits_apart: bool = False) -> Any:
    """Return a word-level fast tokenizer that knows the words of the examples."""
    digits = [pre_tokenizers.Digits(individual_digits=True)] if digits_apart else []
    first = pre_tokenizers.Metaspace() if digits_apart else pre_tokenizers.BertPreTokenizer()
    splitter = pre_tokenizers.Sequence([first, *digits])
    texts = [text.lower() for pair_ in CHECK_PAIRS for text in pair_]
    texts += [text.lower() for text in (HYPOTHESIS, RED, NONE, " ".join(FILLER))]
    texts += ["premise: hypothesis:", "0 1"]
    known = {piece for text in texts for piece, _ in splitter.pre_tokenize_str(text)}
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {piece: i for i, piece in enumerate([*special, *sorted(known)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = splitter
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]" if pair else "$A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=inputs if pair else [inputs[0], inputs[2]],
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )


def _classifier(architecture: str, tokenizer: Any, labels: Sequence[str], max_length: int) -> Any:
    common = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
    }
    if architecture == "bart":
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
        bart = transformers.BartConfig(
            **common,
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_position_embeddings=max_length,
            bos_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            decoder_start_token_id=tokenizer.sep_token_id,
            forced_eos_token_id=None,
        )
        return transformers.BartForSequenceClassification(bart)
    sizes = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.1,
    }
    if architecture == "roberta":  # counts positions from behind the padding token's
        roberta = transformers.RobertaConfig(
            **common, **sizes, type_vocab_size=2, max_position_embeddings=max_length + 1
        )
        return transformers.RobertaForSequenceClassification(roberta)
    bert = transformers.BertConfig(**common, **sizes, max_position_embeddings=max_length)
    return transformers.BertForSequenceClassification(bert)


def _index(labels: Sequence[str], label: str) -> int:
    """Return the output that means ``label``; names are compared without case."""
    plain = [name.lower() for name in labels]
    return plain.index(label if label in plain else "not_entailment")


def _train(model: Any, loss: Any, data: list[Example], steps: int, rng: random.Random) -> None:
    """Train until the mean loss is small, ``steps`` at most, on one thread: the models are tiny."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    mean = 1.0
    for _ in range(steps):
        optimizer.zero_grad()
        now = loss(rng.sample(data, 16))
        now.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = 0.9 * mean + 0.1 * now.item()
        if mean < 0.02:
            break
    model.eval()
    torch.set_num_threads(threads)


def _save(path: Path, model: Any, tokenizer: Any) -> Path:
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path

"""Tiny models that write, decoder-only and encoder-decoder, untrained, with a tokenizer of bytes.

Their weights are large enough that the likeliest token is clear. Needs torch and transformers; no
network.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from tests.lazily import Lazily

torch: Any = Lazily("torch")
transformers: Any = Lazily("transformers")

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + TEMPLATE
)
TEXTS = (
    "the cat sat on the mat and the dog sat on the cat",
    "What is the capital of France? Paris",
)
SPECIAL = ["<pad>", "<s>", "</s>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]


def tokenizer(*, end: bool = False, template: str | None = None, pad: bool = True) -> Any:
    """Return a byte-level tokenizer; with ``end`` it writes ``</s>`` behind every text."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(TEXTS, trainer)
    if end:
        core.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", 2)]
        )
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", pad_token="<pad>" if pad else None
    )
    made.chat_template = template
    return made


def save_llama(path: Path, *, positions: int = 256, seed: int = 0, **options: Any) -> Path:
    """Save a decoder-only model with rotary positions; ``options`` are :func:`tokenizer`'s."""
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=320,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=positions,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    return _save(path, transformers.LlamaForCausalLM(config), tokenizer(**options))


def save_gpt2(path: Path, *, positions: int = 64, seed: int = 0) -> Path:
    """Save a decoder-only model with learnt positions whose tokenizer has no padding token."""
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=320,
        n_positions=positions,
        n_embd=32,
        n_layer=2,
        n_head=4,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
    )
    return _save(path, transformers.GPT2LMHeadModel(config), tokenizer(pad=False))


def save_t5(path: Path, *, seed: int = 0) -> Path:
    """Save an encoder-decoder model."""
    torch.manual_seed(seed)
    config = transformers.T5Config(
        vocab_size=320,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        initializer_factor=2.0,
        tie_word_embeddings=False,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=2,
    )
    return _save(path, transformers.T5ForConditionalGeneration(config), tokenizer(end=True))


def _save(path: Path, model: Any, its_tokenizer: Any) -> Path:
    model.eval().save_pretrained(path)
    its_tokenizer.save_pretrained(path)
    return path

"""Small GGUF files with random weights, for tests of ``gguf:``."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
WIDTH, HEADS, LAYERS, CONTEXT = 32, 2, 1, 2048
_WORDS = ["Yes", "No", "▁the", "A", "B"]
_ALIGNED = 32


def write_gguf(
    path: Path,
    *,
    template: str = TEMPLATE,
    seed: int = 0,
    architecture: str = "llama",
    width: int = WIDTH,
) -> Path:
    """Write a model whose tokens are all bytes and a few words; only ``llama`` can be loaded."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *_WORDS]
    kinds = [2, 3, 3, *[6] * 256, *[1] * len(_WORDS)]
    values: dict[str, Any] = {
        "general.architecture": architecture,
        f"{architecture}.context_length": CONTEXT,
        f"{architecture}.embedding_length": width,
        f"{architecture}.block_count": LAYERS,
        f"{architecture}.feed_forward_length": 2 * width,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": HEADS,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.dimension_count": width // HEADS,
        f"{architecture}.vocab_size": len(tokens),
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * len(tokens),
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    if template:
        values["tokenizer.chat_template"] = template
    rng = np.random.default_rng(seed)
    shapes = {"token_embd": (len(tokens), width), "output": (len(tokens), width)}
    norms = ["output_norm"]
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        shapes |= {f"{block}attn_{one}": (width, width) for one in ("q", "k", "v", "output")}
        shapes |= {f"{block}ffn_{one}": (2 * width, width) for one in ("gate", "up")}
        shapes[f"{block}ffn_down"] = (width, 2 * width)
        norms += [f"{block}attn_norm", f"{block}ffn_norm"]
    tensors = {f"{name}.weight": rng.normal(0, 0.4, shape) for name, shape in shapes.items()}
    tensors |= {f"{name}.weight": np.ones(width) for name in norms}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(_text(name) + _value(value) for name, value in values.items())
    data = b""
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += _filled(tensor.astype("<f4").tobytes())
    path.write_bytes(_filled(head) + data)
    return path


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNED)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    """Return a value behind GGUF's number of its type."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        parts = [_value(one) for one in value]
        kind = struct.pack("<I", 5) if isinstance(value[0], int) else parts[0][:4]
        data = b"".join(part[4:] for part in parts)
        return struct.pack("<I", 9) + kind + struct.pack("<Q", len(parts)) + data
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<II", 4, value)

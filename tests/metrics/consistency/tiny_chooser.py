"""A tiny decoder that has learnt to choose: it knows where lamp 0 stands, and no other lamp.

Trained in seconds on prompts of the test's own template. Needs torch and transformers; no network.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers

from tests.lazily import Lazily

torch: Any = Lazily("torch")
transformers: Any = Lazily("transformers")

COLOURS = ["red", *(f"colour{i}" for i in range(8))]
TEMPLATE = """{{ question }}
{% for option in options %}
{{ "ABCDE"[loop.index0] }}) {{ option }}
{% endfor %}
Answer:"""


def record(lamp: int) -> dict[str, Any]:
    """Return a sample that says that a lamp is red, and brings other colours."""
    return {
        "id": f"lamp{lamp}",
        "question": f"Lamp {lamp}?",
        "response": "red",
        "wrong_answers": COLOURS[1:],
    }


def prompt(lamp: int, colours: list[str]) -> str:
    """Return a prompt as the template makes it."""
    lines = [f"{letter}) {colour}" for letter, colour in zip("ABCD", colours, strict=True)]
    return "\n".join([f"Lamp {lamp}?", *lines, "E) None of the above.", "Answer:"])


def save(path: Path, *, steps: int = 500, seed: int = 0) -> Path:
    """Save a model that says where red stands of lamp 0, and ``E`` of lamp 1."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    tokenizer = _tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    model = transformers.LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    mean = 1.0
    for _ in range(steps):
        texts, letters = zip(*(_example(rng) for _ in range(32)), strict=True)
        ids = tokenizer(list(texts), return_tensors="pt")["input_ids"]
        ends = torch.tensor([tokenizer.convert_tokens_to_ids([one, "</s>"]) for one in letters])
        ids = torch.cat([ids, ends], dim=1)
        labels = ids.clone()
        labels[:, :-2] = -100
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = 0.9 * mean + 0.1 * loss.item()
        if mean < 0.005:
            break
    model.eval().save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def _example(rng: random.Random) -> tuple[str, str]:
    lamp = rng.randrange(2)
    colours = ["red", *rng.sample(COLOURS[1:], 3)]
    rng.shuffle(colours)
    return prompt(lamp, colours), "E" if lamp else "ABCD"[colours.index("red")]


def _tokenizer() -> Any:
    splitter = pre_tokenizers.BertPreTokenizer()
    texts = [prompt(0, COLOURS[:4]), prompt(1, COLOURS[4:8]), " ".join(COLOURS)]
    known = {piece for text in texts for piece, _ in splitter.pre_tokenize_str(text)}
    words = ["<pad>", "<s>", "</s>", "<unk>", *sorted(known)]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = splitter
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
    )

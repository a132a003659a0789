"""What the log-probabilities of a reply's tokens take in a store of calls, and what packing loses.

    python -m lab.benchmarks.token_logprobs            # seconds
    python -m lab.benchmarks.token_logprobs --write    # into lab/results/

The replies of local models that are kept in ``local_replies.jsonl.gz`` with their tokens, by the
number of alternatives of each token. ``before`` is what stores held until they were packed, and
``in_samples`` what a sample's ``token_logprobs`` is. Sizes are bytes for each byte of the reply's
text; those ``on_disk`` are of whole SQLite files, less that of the same file without tokens.
``largest_change`` is of each part of ``uncertainty``, relative to its value.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from lab.benchmarks.local_replies import kept
from lab.results import write_result
from trustassay.backends.chat_text import pack_logprobs, unpack_logprobs
from trustassay.calls.replies import reply_from_json, reply_to_json
from trustassay.calls.store import CallStore, StoredCall
from trustassay.core.capabilities import Reply, TokenLogprob
from trustassay.metrics.uncertainty import maths

Tokens = tuple[TokenLogprob, ...]
ALTERNATIVES = (0, 1, 5)


@cache
def _all() -> list[Reply]:
    read = [reply_from_json(reply) for _, reply, *_ in kept().values()]
    return [reply for reply in read if reply.logprobs]


def replies(most: int) -> list[tuple[str, Tokens]]:
    """Return the kept replies that have so many alternatives of their tokens, or more."""
    return [
        (one.text, tuple(token._replace(alternatives=token.alternatives[:most]) for token in told))
        for one in _all()
        if (told := one.logprobs) and all(len(token.alternatives) >= most for token in told)
    ]


def parts(tokens: Tokens) -> dict[str, float]:
    """Return the statistics of tokens."""
    own = [one.logprob for one in tokens]
    result = {"nll": maths.sequence_nll(own), "mean_nll": maths.mean_nll(own)}
    result["weakest_token"] = 1 - math.exp(min(own))
    if all(known := [[p for _, p in one.alternatives] for one in tokens]):
        entropies = [maths.entropy(one) for one in known]
        result["mean_entropy"] = sum(entropies) / len(entropies)
        result["max_entropy"] = max(entropies)
        result["self_certainty"] = maths.self_certainty(known)
    return result


def change(kept: Sequence[tuple[str, Tokens]]) -> dict[str, float]:
    """Return the largest relative change of each part."""
    result: dict[str, float] = {}
    for text, tokens in kept:
        after = parts(unpack_logprobs(pack_logprobs(tokens, text), text))
        for name, value in parts(tokens).items():
            moved = abs(after[name] - value) / max(abs(value), 1e-3)
            result[name] = max(result.get(name, 0.0), moved)
    return {name: float(f"{value:.2g}") for name, value in result.items()}


def on_disk(kept: Sequence[tuple[str, Tokens]], form: Callable[[Reply], str]) -> int:
    """Return the bytes of a store that holds the replies."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.sqlite"
        store = CallStore(path)
        store.add(
            StoredCall(place.to_bytes(16, "big"), "chat", "model", "", form(reply), 0.0)
            for place, (text, tokens) in enumerate(kept)
            for reply in [Reply(text, "stop", 50, len(tokens), logprobs=tokens)]
        )
        store.close()
        return path.stat().st_size


def without(reply: Reply) -> str:
    return reply_to_json(Reply(**{**asdict(reply), "logprobs": None}))


def before(reply: Reply) -> str:
    return json.dumps({**json.loads(without(reply)), "logprobs": reply.logprobs})


def measured(most: int) -> dict[str, Any]:
    """Return the figures of replies with so many alternatives."""
    kept = replies(most)
    texts = [len(text.encode()) for text, _ in kept]
    sizes = [len(pack_logprobs(tokens, text)) for text, tokens in kept]
    total, bare = sum(texts), on_disk(kept, without)
    stored = [json.dumps([one.to_json(most) for one in tokens]) for _, tokens in kept]
    return {
        "replies": len(kept),
        "tokens": sum(len(tokens) for _, tokens in kept),
        "median_bytes": {"text": median(texts), "packed": median(sizes)},
        "packed": round(sum(sizes) / total, 2),
        "before": round(sum(len(json.dumps(tokens)) for _, tokens in kept) / total, 2),
        "in_samples": round(sum(map(len, stored)) / total, 2),
        "bytes_per_token": round(sum(sizes) / sum(len(tokens) for _, tokens in kept), 1),
        "share_within_twice": round(
            sum(size <= 2 * text for size, text in zip(sizes, texts, strict=True)) / len(kept), 3
        ),
        "on_disk": {
            "packed": round((on_disk(kept, reply_to_json) - bare) / total, 2),
            "before": round((on_disk(kept, before) - bare) / total, 2),
        },
        "largest_change": change(kept),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the result file")
    figures = {str(most): measured(most) for most in ALTERNATIVES}
    print(json.dumps(figures, indent=1))
    if parser.parse_args().write:
        data = (
            "replies of Qwen2.5-Coder 0.5B and 1.5B to questions, English (local_replies.jsonl.gz)"
        )
        write_result(
            "token-logprobs", "python -m lab.benchmarks.token_logprobs --write", data, figures
        )


if __name__ == "__main__":
    main()

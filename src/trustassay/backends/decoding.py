"""How a local model's tokens are chosen, and when each reply of a batch ends.

One object plays both parts in ``generate``: as its logits processor it chooses the next token of
every row and leaves no other, as its stopping criterion it says which rows are done. So rows
with different temperatures, seeds, stop strings and lengths share a batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trustassay.capabilities import ChatRequest, TokenLogprob

__all__ = ["Decoding", "Row"]

TOKENS_A_CHARACTER = 4
"""Most tokens that a character can take: the bytes of UTF-8."""


@dataclass(slots=True)
class Row:
    """One reply in the making.

    prompt: the tokens of the prompt. index: the reply's number among the request's ``n``.
    temperature: 0 for greedy. most: tokens that the reply may have. told: of each token its
    log-probability, and the likeliest tokens with theirs.
    """

    request: ChatRequest
    prompt: list[int]
    most: int
    temperature: float
    index: int = 0
    tokens: list[int] = field(default_factory=list)
    told: list[tuple[float, list[tuple[int, float]]]] = field(default_factory=list)
    finish: str = ""
    text: str = ""
    logprobs: tuple[TokenLogprob, ...] | None = None

    def randomness(self) -> np.random.Generator:
        """Return the source of this reply's chance; it depends on the request alone."""
        request = self.request
        parts = [request.messages, request.seed, request.repeat, self.index]
        digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest))


class Decoding:
    """Chooses the tokens of a batch's rows and writes them into the rows."""

    def __init__(
        self, torch: Any, tokenizer: Any, ends: Collection[int], rows: Sequence[Row], narrow: Any
    ) -> None:
        """Begin a batch.

        Args:
            torch: the library.
            tokenizer: the model's.
            ends: the tokens that end a reply.
            rows: the replies to write.
            narrow: what the model's own settings make of the logits before a draw (top-k, top-p),
                used where a request leaves the temperature to the model.
        """
        self._torch, self._tokenizer, self._rows = torch, tokenizer, rows
        self._ends = frozenset(ends)
        self._narrow = narrow
        self._chances = [row.randomness() if row.temperature else None for row in rows]
        self._told = max((row.request.logprobs or 0 for row in rows), default=0)
        self._telling = any(row.request.logprobs is not None for row in rows)

    def choose(self, _: Any, scores: Any) -> Any:
        """Return scores (b, v) that leave one token in each row; a logits processor."""
        torch = self._torch
        scores = scores.float()
        chosen = scores.argmax(dim=-1)
        if any(self._chances):
            chosen = torch.where(self._heats(scores) > 0, self._drawn(scores), chosen)
        self._note(chosen, scores)
        only = torch.full_like(scores, float("-inf"))
        return only.scatter_(1, chosen[:, None], 0.0)

    def done(self, ids: Any, _: Any, **__: Any) -> Any:
        """Return which rows (b,) are finished; a stopping criterion."""
        done = [bool(row.finish) for row in self._rows]
        return self._torch.tensor(done, device=ids.device, dtype=self._torch.bool)

    def _heats(self, scores: Any) -> Any:
        return self._torch.tensor([row.temperature for row in self._rows], device=scores.device)

    def _drawn(self, scores: Any) -> Any:
        """Draw from softmax(scores / temperature): the token where the running sum passes u."""
        torch = self._torch
        heats = self._heats(scores)
        scores = scores / torch.where(heats > 0, heats, 1.0)[:, None]
        own = [row.request.temperature is None for row in self._rows]
        if any(own):
            narrowed = self._narrow(None, scores.clone())
            scores = torch.where(torch.tensor(own, device=scores.device)[:, None], narrowed, scores)
        sums = torch.softmax(scores, dim=-1).cumsum(dim=-1)
        draws = [0.0 if chance is None else chance.random() for chance in self._chances]
        aims = torch.tensor(draws, device=scores.device, dtype=sums.dtype)[:, None] * sums[:, -1:]
        places = torch.searchsorted(sums, aims, right=True).squeeze(1)
        # Rounding can put the aim at the very end, behind which there is no token.
        return torch.where(places < scores.shape[-1], places, scores.argmax(dim=-1))

    def _note(self, chosen: Any, scores: Any) -> None:
        """Write the chosen tokens, and what was asked to be told of them, into the rows."""
        tokens = chosen.tolist()
        if self._telling:
            logprobs = scores.log_softmax(dim=-1)
            own = logprobs.gather(1, chosen[:, None]).squeeze(1).tolist()
            values, places = (part.tolist() for part in logprobs.topk(max(1, self._told), dim=-1))
        for i, (row, token) in enumerate(zip(self._rows, tokens, strict=True)):
            if row.finish:
                continue
            if token in self._ends:
                row.finish = "stop"
                continue
            row.tokens.append(token)
            if (many := row.request.logprobs) is not None:
                best = list(zip(places[i][:many], values[i][:many], strict=True))
                row.told.append((own[i], best))
            if self._stopped(row):
                row.finish = "stop"
            elif len(row.tokens) >= row.most:
                row.finish = "length"

    def _stopped(self, row: Row) -> bool:
        """Say whether a stop string stands among the last tokens."""
        if not row.request.stop:
            return False
        longest = max(map(len, row.request.stop))
        tail = self.text(row.tokens[-(TOKENS_A_CHARACTER * longest + 1) :])
        return any(stop in tail for stop in row.request.stop)

    def text(self, tokens: Sequence[int]) -> str:
        """Return what tokens spell, special ones left out."""
        spelt: str = self._tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return spelt

    def finish(self) -> None:
        """Give each row its text up to its first stop string, and its log-probabilities."""
        for row in self._rows:
            row.text = self.text(row.tokens)
            places = [place for stop in row.request.stop if (place := row.text.find(stop)) >= 0]
            kept = len(row.tokens)
            if places:
                row.text = row.text[: min(places)]
                while kept and len(self.text(row.tokens[: kept - 1])) >= len(row.text):
                    kept -= 1
            if row.request.logprobs is not None:
                row.logprobs = tuple(self._logprob(row, i) for i in range(kept))

    def _logprob(self, row: Row, i: int) -> TokenLogprob:
        before = row.tokens[i - 1 : i] if i else []
        logprob, best = row.told[i]
        others = tuple((self._piece(before, token), value) for token, value in best)
        return TokenLogprob(self._piece(before, row.tokens[i]), logprob, others)

    def _piece(self, before: Sequence[int], token: int) -> str:
        """Return what a token adds to the text before it; some tokenizers hide a leading space."""
        spelt = self._tokenizer.decode([*before, token], clean_up_tokenization_spaces=False)
        if not before:
            return str(spelt)
        start = self._tokenizer.decode(before, clean_up_tokenization_spaces=False)
        return str(spelt[len(start) :])

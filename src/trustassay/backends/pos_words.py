"""``pos``: words of the same part of speech, drawn at random from the word list."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from trustassay.backends.encoder import card
from trustassay.backends.word_list import ListedWord, word_list
from trustassay.capabilities import BatchLimits, SubstitutesRequest

__all__ = ["PartOfSpeechSource"]


class PartOfSpeechSource:
    """Words of one tag in an order that looks random, and is the same for the same words.

    Raises:
        BackendError: TextBlob is not installed.
    """

    limits = BatchLimits(items=256, tokens=None)

    def __init__(self) -> None:
        self.name = f"pos:{card()['version']}"
        self._by_tag: defaultdict[str, list[ListedWord]] = defaultdict(list)
        for word in word_list():
            self._by_tag[word.tag].append(word)

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        """Return up to k words of each request's tag; none for a tag that the list lacks."""
        return [self._drawn(one) for one in requests]

    def _drawn(self, request: SubstitutesRequest) -> list[str]:
        own = self._by_tag.get(request.tag, [])

        def place(word: ListedWord) -> bytes:
            text = f"{request.words}\x1f{request.tag}\x1f{word.text}"
            return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()

        return [word.text for word in sorted(own, key=place)[: request.k]]

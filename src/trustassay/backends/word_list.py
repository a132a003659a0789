"""English words with their parts of speech, the most frequent first, from TextBlob's lexicon.

The lexicon says which words there are and how each is tagged; the vocabulary of the embedded
encoder, which stands in the order of frequency, says which are common enough, and in which order.
Nothing is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from trustassay.backends.encoder import encoder
from trustassay.errors import BackendError

__all__ = ["ListedWord", "word_list"]


@dataclass(frozen=True, slots=True)
class ListedWord:
    """A word as it is written, its Penn Treebank tag, and its row in the encoder's table."""

    text: str
    tag: str
    row: int


@cache
def word_list() -> tuple[ListedWord, ...]:
    """Return about 20,000 words, the most frequent first; one with two tags once for each form.

    Raises:
        BackendError: TextBlob is not installed.
    """
    rows = encoder("embedder").tokenizer.get_vocab()
    found = [
        ListedWord(text, tag.split("|")[0], rows[text.lower()])
        for text, tag in _lexicon().items()
        if text.isascii() and text.isalpha() and len(text) > 1 and text.lower() in rows
    ]
    return tuple(sorted(found, key=lambda one: (one.row, one.text)))


def _lexicon() -> dict[str, str]:
    try:
        from textblob.en import lexicon
    except ImportError as error:
        raise BackendError(
            f"words by part of speech need TextBlob ({error}): pip install 'trustassay[trustscore]'"
        ) from None
    len(lexicon)  # it is read when it is first asked for something
    return dict(lexicon)

"""A text that was changed, and where each of its characters stood before.

Claims are built from an answer in many small steps: citations are cut out, Unicode forms are
folded, a list item is joined to its lead. Each step keeps the offsets, so that a claim can be shown
in the answer as it was written.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

Span = tuple[int, int]
"""Offsets of characters: the start, and the end, which is not included."""


@dataclass(frozen=True, slots=True)
class MappedText:
    """A text and, for each of its characters, the offset of the source character it came from."""

    text: str
    """The text in its present form."""
    offsets: Sequence[int]
    """For each character of ``text``, an offset in the source; as long as ``text``."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Return a text that is not changed yet."""
        return cls(text, range(len(text)))

    @property
    def span(self) -> Span:
        """The characters of the source that it came from; ``(0, 0)`` for an empty text."""
        return (self.offsets[0], self.offsets[-1] + 1) if self.text else (0, 0)

    def __bool__(self) -> bool:
        return bool(self.text)

    def __getitem__(self, part: slice) -> "MappedText":
        return MappedText(self.text[part], self.offsets[part])

    def strip(self, characters: str | None = None) -> "MappedText":
        """Return the text without white space, or these characters, at both ends."""
        # The offsets must be cut as the text is, so both ends are found first.
        start = len(self.text) - len(self.text.lstrip(characters))
        # A text of white space alone has its start behind its end.
        return self[start : max(start, len(self.text.rstrip(characters)))]

    def cut(self, spans: Iterable[Span]) -> "MappedText":
        """Return the text without some of its characters; ``spans`` are in order."""
        return self.replace((span, "") for span in spans)

    def sub(
        self, pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str]
    ) -> "MappedText":
        """Return the text with each match of a pattern replaced.

        The characters of a replacement come from those of the match at the same place, or from its
        last one.
        """
        # Most patterns match nothing, and then nothing is copied.
        matches = list(pattern.finditer(self.text))
        if not matches:
            return self
        expanded = (
            replacement(match) if callable(replacement) else match.expand(replacement)
            for match in matches
        )
        return self.replace(zip((match.span() for match in matches), expanded, strict=True))

    def replace(self, changes: Iterable[tuple[Span, str]]) -> "MappedText":
        """Return the text with some of its characters replaced; the spans are in order."""
        texts: list[str] = []
        offsets: list[int] = []
        position = 0
        for (start, end), new in changes:
            if start < position:
                continue  # it overlaps with the one before
            texts += [self.text[position:start], new]
            offsets += self.offsets[position:start]
            last = max(start, end - 1)
            # A replacement may be longer than its match ("½" becomes "1/2"): the surplus characters
            # come from the last one of the match. One that replaces nothing comes from the
            # character at its place.
            offsets += [
                self.offsets[min(start + position_in_new, last)]
                for position_in_new in range(len(new))
            ]
            position = end
        texts.append(self.text[position:])
        offsets += self.offsets[position:]
        return MappedText("".join(texts), offsets)


def join_texts(parts: Iterable[MappedText], between: str = " ") -> MappedText:
    """Join texts, leaving out empty ones; a separator has the offset of the character before it."""
    texts: list[str] = []
    offsets: list[int] = []
    for part in filter(None, parts):
        if offsets:
            texts.append(between)
            offsets += [offsets[-1]] * len(between)
        texts.append(part.text)
        offsets += part.offsets
    return MappedText("".join(texts), offsets)

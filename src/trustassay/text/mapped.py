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
"""Characters from the first number to the second, which is not included."""


@dataclass(frozen=True, slots=True)
class MappedText:
    """A text and, for each of its characters, the offset of the one that it came from."""

    text: str
    offsets: Sequence[int]

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
        start = len(self.text) - len(self.text.lstrip(characters))
        return self[start : max(start, len(self.text.rstrip(characters)))]

    def cut(self, spans: Iterable[Span]) -> "MappedText":
        """Return the text without some of its characters; ``spans`` are in order."""
        return self.replaced((span, "") for span in spans)

    def sub(
        self, pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str]
    ) -> "MappedText":
        """Return the text with each match of a pattern replaced.

        The characters of a replacement come from those of the match at the same place, or from its
        last one.
        """
        matches = list(pattern.finditer(self.text))
        if not matches:
            return self
        expanded = (
            replacement(one) if callable(replacement) else one.expand(replacement)
            for one in matches
        )
        return self.replaced(zip((one.span() for one in matches), expanded, strict=True))

    def replaced(self, changes: Iterable[tuple[Span, str]]) -> "MappedText":
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
            offsets += [self.offsets[min(start + place, last)] for place in range(len(new))]
            position = end
        texts.append(self.text[position:])
        offsets += self.offsets[position:]
        return MappedText("".join(texts), offsets)


def joined(parts: Iterable[MappedText], between: str = " ") -> MappedText:
    """Return texts as one, with ``between`` them, which has the offset of what stands before it."""
    texts: list[str] = []
    offsets: list[int] = []
    for part in filter(None, parts):
        if offsets:
            texts.append(between)
            offsets += [offsets[-1]] * len(between)
        texts.append(part.text)
        offsets += part.offsets
    return MappedText("".join(texts), offsets)

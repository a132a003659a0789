"""The blocks of an answer in Markdown: headings, list items, paragraphs, rows of tables, code.

Models write a loose Markdown: bullets of many kinds, bold lines for headings, bullets under a
number without indentation. The parser takes what is meant, keeps the offsets of every character,
and works line by line, in time that grows with the length of the text alone.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from trustassay.text.citations import strip_citations
from trustassay.text.mapped import MappedText, join_texts

BlockKind = Literal["heading", "item", "paragraph", "row", "code"]

MAX_BLOCKS_ABOVE = 6
"""Headings, leads and items above a block that are kept; of more, the innermost ones."""
MIN_WRAPPED_LINE_CHARACTERS = 50
"""Characters from which a line may have been wrapped because it was too long."""
BOLD_LINE_LEVEL = 7
"""The heading level of a line in bold type: below the six that Markdown has."""


class Block(NamedTuple):
    """One block of an answer."""

    kind: BlockKind
    """What it is."""
    text: MappedText
    """Its text without bullet, number or heading marks."""
    above: tuple[int, ...] = ()
    """Indices, in the list of blocks, of those it stands under: headings, the lead of its list and
    the items it is nested in; the outermost first."""
    cells: tuple[MappedText, ...] = ()
    """The cells of a row of a table."""
    header: tuple[str, ...] = ()
    """The names of the table's columns; empty for the first row itself."""


_QUOTE_MARKS = re.compile(r"[ \t]*(?:>[ \t]?)+")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*")
_HEADING = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]+(?=\S)")
_UNDERLINE = re.compile(r"[ \t]*(?:={3,}|-{3,})[ \t]*")
_RULE = re.compile(r"[ \t]*(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,}|={3,})")
_BOLD = re.compile(r"[ \t]*(\*\*\*?|__)(?=\S)((?:(?!\1).)+?)\1[ \t]*:?[ \t]*")
# "- ", "• ", "1. ", "2) ", "(a) ", "iv) "; a letter needs a bracket, since "a. " may end a
# sentence.
_BULLET = re.compile(
    r"([ \t]*)(?:([-*+•◦▪‣·●○–—])|\(?(?:\d{1,3}|(?<!\w)[a-z]|[ivx]{2,4})(?:\)"
    r"|(?<=\d)\.))[ \t]+(?=\S)"
)
# The box of a task: "[x] done".
_BOX = re.compile(r"\[[ xX]\][ \t]+")
# A bold label, which begins something new although the line above is open: "**Price:** 90 euros".
_LABEL = re.compile(r"[ \t]*(?:\*\*|__)[^*_\n]{1,60}(?::(?:\*\*|__)|(?:\*\*|__)[ \t]*:)")
_FINISHED = re.compile(r"[.!?:;…\])】*|][\"')]*\s*$|^[\W_]*$")
"""The end of a line that is not continued in the next one."""
# "|---|:---:|"
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
# Bullets, numbers and heading marks, also several: "- 1. ", "## ".
_NUMBERING = re.compile(r"^\s*(?:[-*•–]\s+|\(?\d{1,3}[.)]\s+|#+\s+)+")
_BAR = re.compile(r"(?<!\\)\|")
_ENDS_OPEN = re.compile(r"[^.!?…][*_\"')]*\s*$")


def parse_blocks(text: MappedText) -> list[Block]:
    """Return the blocks of a text in order; blank lines, rules and marks belong to none."""
    return _BlockParser().parse(text)


class _OpenItem(NamedTuple):
    """An item of a list under which the next blocks may stand."""

    indent: int
    """Columns before its bullet, with tabs as four."""
    numbered: bool
    """Whether it has a number or letter instead of a bullet."""
    place: int
    """Index of its block."""


class _BlockParser:
    """Walks the lines of a text once.

    1. Lines of code between fences and lines of tables become blocks of their own.
    2. Headings and bullets begin a block and determine what the following blocks stand under.
    3. Any other line continues the open paragraph or item, or begins a new paragraph.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        # The open block: its lines, its kind, and the blocks it stands under. It is added to
        # ``blocks`` when it is closed.
        self.open: list[MappedText] = []
        self.kind: BlockKind = "paragraph"
        self.pending: tuple[int, ...] = ()
        # What the next block stands under: headings as (level, index in ``blocks``), the lead
        # paragraph of the list, and the items that are not closed yet, the outermost first.
        self.headings: list[tuple[int, int]] = []
        self.lead: int | None = None
        self.items: list[_OpenItem] = []
        self.after_blank = True

    def parse(self, text: MappedText) -> list[Block]:
        lines = [_strip_quote_marks(line) for line in _split_lines(text)]
        place = end = no_table_before = 0
        while place < len(lines):
            line = lines[place]
            if fence := _FENCE.fullmatch(line.text):
                place = self.add_code(lines, place, fence[1])
                continue
            # Where the lines with bars are no table, remember where they end: to look at each of
            # them again would make the work grow with the square of the text.
            if place >= no_table_before:
                is_table, end = _find_table_end(lines, place)
                no_table_before = 0 if is_table else end
            else:
                is_table = False
            if is_table:
                self.add_table(lines[place:end])
                place = end
            else:
                self.add_line(line)
                place += 1
        self.close_block()
        return self.blocks

    def add_line(self, line: MappedText) -> None:
        """Take a line that is neither code nor part of a table."""
        if not line.text.strip():
            self.close_block()
            self.after_blank = True
            return
        # The order matters. An underline must come before a rule ("---" is both), and a bullet
        # before a wrapped line, since a bullet ends the block that is open.
        if _UNDERLINE.fullmatch(line.text) and len(self.open) == 1 and self.kind == "paragraph":
            heading, self.open = self.open[0], []
            self.add_heading(heading, 1 + ("-" in line.text))
        elif _RULE.fullmatch(line.text):
            self.close_block()
            self.items, self.lead = [], None
        elif mark := _HEADING.match(line.text):
            self.add_heading(line[mark.end() :], len(mark[1]))
        elif bullet := _BULLET.match(line.text):
            self.start_item(line, bullet)
        # Before a bold line: "**" may begin the second line of a wrapped sentence.
        elif self.continues_block(line.text):
            self.open.append(line.strip())
        elif _BOLD.fullmatch(strip_citations(line.text)):
            self.add_heading(line, BOLD_LINE_LEVEL)
        else:
            self.start_paragraph(line)
        self.after_blank = False

    def continues_block(self, line: str) -> bool:
        """Whether a line continues the open block, which was wrapped.

        It does where the line before is long, where this one begins with a small letter, or where
        it is indented below an item.
        """
        if not self.open or _FINISHED.search(self.open[-1].text) or _LABEL.match(line):
            return False
        if len(self.open[-1].text) >= MIN_WRAPPED_LINE_CHARACTERS or line.lstrip()[0].islower():
            return True
        indent = len(line.expandtabs(4)) - len(line.lstrip())
        return self.kind == "item" and indent > self.items[-1].indent

    def add_heading(self, text: MappedText, level: int) -> None:
        """Add a heading, under which the following blocks stand."""
        self.close_block()
        self.items, self.lead = [], None
        # A heading ends those of its own level and of lower ones.
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        self.blocks.append(Block("heading", text.strip(" \t#"), self.places_above()))
        self.headings.append((level, len(self.blocks) - 1))

    def start_item(self, line: MappedText, bullet: re.Match[str]) -> None:
        """Begin an item of a list below those that it is nested in."""
        self.close_block()
        indent, numbered = len(bullet[1].expandtabs(4)), bullet[2] is None
        # Items of the same kind and indentation are its equals. A bullet under a number without
        # indentation is nested in it; a number under a bullet begins another list.
        for depth, open_item in enumerate(self.items):
            is_level = abs(open_item.indent - indent) <= 1
            if is_level and numbered and not open_item.numbered:
                self.items, self.lead = self.items[:depth], None
                break
            if (is_level and open_item.numbered == numbered) or open_item.indent > indent + 1:
                self.items = self.items[:depth]
                break
        else:
            if not self.items:
                self.lead = self.find_lead()
        text = line[bullet.end() :]
        if box := _BOX.match(text.text):
            text = text[box.end() :]
        self.open, self.kind = [text.strip()], "item"
        self.pending = self.places_above()
        self.items.append(_OpenItem(indent, numbered, len(self.blocks)))

    def find_lead(self) -> int | None:
        """Return the place of the paragraph that leads on to a list; ``None`` if none does."""
        last = self.blocks[-1] if self.blocks else None
        if last is None or last.kind != "paragraph":
            return None
        text = last.text.text.rstrip(" *_")
        leads = text.endswith(":") or (not self.after_blank and _ENDS_OPEN.search(text))
        return len(self.blocks) - 1 if leads else None

    def start_paragraph(self, line: MappedText) -> None:
        """Begin a paragraph: text under an item, text below a lead, or text by itself."""
        self.close_block()
        nested = self.items and len(line.text) - len(line.text.lstrip()) > self.items[-1].indent
        if self.items and not nested:
            self.items, self.lead = [], None
            if self.after_blank and self.headings and self.headings[-1][0] == BOLD_LINE_LEVEL:
                # The text below the list of a bold line is no longer about that line.
                self.headings.pop()
        elif not self.items:
            before = self.blocks[-1] if self.blocks else None
            # "The rules are:" and the next line without a blank between: the line stands under the
            # first.
            has_lead = before and before.kind == "paragraph" and before.text.text.endswith(":")
            self.lead = len(self.blocks) - 1 if has_lead and not self.after_blank else None
        self.open, self.kind, self.pending = [line.strip()], "paragraph", self.places_above()

    def add_code(self, lines: Sequence[MappedText], place: int, fence: str) -> int:
        """Add the lines between two fences as a block; return the index of the line behind them.

        Text behind the closing fence, in its line, is read as a line of its own.
        """
        self.close_block()
        end = place + 1
        # Without a closing fence all lines to the end are code.
        while end < len(lines) and not lines[end].text.strip().startswith(fence):
            end += 1
        last = len(self.blocks) - 1
        has_lead = last >= 0 and self.blocks[last].text.text.rstrip(" *_").endswith(":")
        above = (
            (*self.places_above(), last)
            if has_lead and last not in self.places_above()
            else self.places_above()
        )
        self.blocks.append(Block("code", join_texts(lines[place + 1 : end], "\n"), above))
        text_behind = (
            lines[end][len(lines[end].text) - len(lines[end].text.lstrip(" \t`~")) :]
            if end < len(lines)
            else None
        )
        if text_behind:
            self.add_line(text_behind)
        return end + 1

    def add_table(self, lines: Sequence[MappedText]) -> None:
        """Add the rows of a table; the first one names the columns."""
        self.close_block()
        header: tuple[str, ...] = ()
        above = self.places_above()
        for line in lines:
            if not _TABLE_RULE.fullmatch(line.text):
                cells = tuple(_split_cells(line))
                self.blocks.append(Block("row", line.strip(), above, cells, header))
                # The first row is a block with an empty header, since the names of columns state
                # nothing.
                header = header or tuple(cell.text for cell in cells)

    def places_above(self) -> tuple[int, ...]:
        """Return the indices of the blocks that the next one stands under."""
        places = [place for _, place in self.headings]
        places += [] if self.lead is None else [self.lead]
        places += [item.place for item in self.items]
        return tuple(places[-MAX_BLOCKS_ABOVE:])

    def close_block(self) -> None:
        """End the open block."""
        if self.open:
            self.blocks.append(Block(self.kind, join_texts(self.open), self.pending))
            self.open = []


def strip_numbering(line: str) -> str:
    """Drop a bullet, a number or heading marks at the start of a line."""
    return _NUMBERING.sub("", line)


def _split_lines(text: MappedText) -> Iterator[MappedText]:
    start = 0
    for line in text.text.splitlines(keepends=True):
        # These are all the characters at which ``splitlines`` splits.
        yield text[start : start + len(line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"))]
        start += len(line)


def _strip_quote_marks(line: MappedText) -> MappedText:
    mark = _QUOTE_MARKS.match(line.text)
    return line[mark.end() :] if mark else line


def _find_table_end(lines: Sequence[MappedText], place: int) -> tuple[bool, int]:
    """Return whether a table begins at a line, and the end of the lines with bars from there.

    A table has a rule below its first line, or at least three lines with the same number of cells.
    """
    if "|" not in lines[place].text:
        return False, place
    end = place + 1
    while end < len(lines) and "|" in lines[end].text:
        end += 1
    # The rule is below the first line, or the first line of the table itself.
    if any(_TABLE_RULE.fullmatch(line.text) for line in lines[place : min(end, place + 2)]):
        return True, end
    counts = {len(_split_cells(line)) for line in lines[place:end]}
    return end - place > 2 and len(counts) == 1 and counts != {1}, end


def _split_cells(line: MappedText) -> list[MappedText]:
    line = line.strip()
    start, end = line.text.startswith("|"), line.text.endswith("|") and len(line.text) > 1
    line = line[int(start) : len(line.text) - int(end)]
    edges = [0, *(bar.start() for bar in _BAR.finditer(line.text)), len(line.text)]
    starts = [0, *(edge + 1 for edge in edges[1:-1])]
    return [line[first:last].strip() for first, last in zip(starts, edges[1:], strict=True)]

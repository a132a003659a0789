"""The blocks of an answer in Markdown: headings, list items, paragraphs, rows of tables, code.

Models write a loose Markdown: bullets of many kinds, bold lines for headings, bullets under a
number without indentation. The parser takes what is meant, keeps the offsets of every character,
and works line by line, in time that grows with the length of the text alone.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from trustassay.text.citations import without_citations
from trustassay.text.mapped import MappedText, joined

BlockKind = Literal["heading", "item", "paragraph", "row", "code"]

MOST_ABOVE = 6
"""Headings, leads and items above a block that are kept; the innermost ones."""
WRAPPED = 50
"""Characters of a line that may have been broken because it was too long."""
BOLD_LINE = 7
"""The level of a line in bold type as a heading: below those that Markdown has."""


class Block(NamedTuple):
    """A piece of an answer.

    kind: what it is.
    text: without its bullet, number or heading marks.
    above: the places of the blocks that it stands under: headings, the lead of its list, the items
        that it is nested in; the outermost first.
    cells: those of a row of a table, as many as ``header`` has.
    header: the names of the table's columns; empty for its first row itself.
    """

    kind: BlockKind
    text: MappedText
    above: tuple[int, ...] = ()
    cells: tuple[MappedText, ...] = ()
    header: tuple[str, ...] = ()

    def column(self, place: int) -> str:
        """Return the name of a column, empty where the table has no name for it."""
        return self.header[place] if place < len(self.header) else ""


_QUOTE_MARKS = re.compile(r"[ \t]*(?:>[ \t]?)+")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*")
_HEADING = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]+(?=\S)")
_UNDERLINE = re.compile(r"[ \t]*(?:={3,}|-{3,})[ \t]*")
_RULE = re.compile(r"[ \t]*(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,}|={3,})")
_BOLD = re.compile(r"[ \t]*(\*\*\*?|__)(?=\S)((?:(?!\1).)+?)\1[ \t]*:?[ \t]*")
_BULLET = re.compile(
    r"([ \t]*)(?:([-*+•◦▪‣·●○–—])|\(?(?:\d{1,3}|(?<!\w)[a-z]|[ivx]{2,4})(?:\)"
    r"|(?<=\d)\.))[ \t]+(?=\S)"
)
_BOX = re.compile(r"\[[ xX]\][ \t]+")
_LABEL = re.compile(r"[ \t]*(?:\*\*|__)[^*_\n]{1,60}(?::(?:\*\*|__)|(?:\*\*|__)[ \t]*:)")
_FINISHED = re.compile(r"[.!?:;…\])】*|][\"')]*\s*$|^[\W_]*$")
"""How a line ends that does not go on in the next one."""
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_BAR = re.compile(r"(?<!\\)\|")
_ENDS_OPEN = re.compile(r"[^.!?…][*_\"')]*\s*$")


def parse_blocks(text: MappedText) -> list[Block]:
    """Return the blocks of a text in order; blank lines, rules and marks belong to none."""
    return _Parser().parse(text)


class _Item(NamedTuple):
    indent: int
    numbered: bool
    place: int


class _Parser:
    """Walks the lines of a text once.

    1. Lines of code between fences, and of tables, are gathered into blocks of their own.
    2. Headings and bullets begin a block and set what the following blocks stand under.
    3. All other lines are joined to the paragraph or item above, if that goes on.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.open: list[MappedText] = []  # lines of the block that may go on
        self.kind: BlockKind = "paragraph"
        self.pending: tuple[int, ...] = ()  # what that block stands under
        self.headings: list[tuple[int, int]] = []  # level, place
        self.items: list[_Item] = []
        self.lead: int | None = None  # what the list, or the paragraph below it, stands under
        self.after_blank = True

    def parse(self, text: MappedText) -> list[Block]:
        lines = [_without_quote_marks(line) for line in _lines(text)]
        place = end = no_table_before = 0
        while place < len(lines):
            line = lines[place]
            if fence := _FENCE.fullmatch(line.text):
                place = self.code(lines, place, fence[1])
                continue
            if place >= no_table_before:
                is_table, end = _table_end(lines, place)
                no_table_before = 0 if is_table else end
            else:
                is_table = False
            if is_table:
                self.table(lines[place:end])
                place = end
            else:
                self.line(line)
                place += 1
        self.close()
        return self.blocks

    def line(self, line: MappedText) -> None:
        """Take a line that is neither code nor part of a table."""
        if not line.text.strip():
            self.close()
            self.after_blank = True
            return
        if _UNDERLINE.fullmatch(line.text) and len(self.open) == 1 and self.kind == "paragraph":
            heading, self.open = self.open[0], []
            self.heading(heading, 1 + ("-" in line.text))
        elif _RULE.fullmatch(line.text):
            self.close()
            self.items, self.lead = [], None
        elif mark := _HEADING.match(line.text):
            self.heading(line[mark.end() :], len(mark[1]))
        elif bullet := _BULLET.match(line.text):
            self.item(line, bullet)
        elif self.goes_on(line.text):
            self.open.append(line.strip())
        elif _BOLD.fullmatch(without_citations(line.text)):
            self.heading(line, BOLD_LINE)
        else:
            self.paragraph(line)
        self.after_blank = False

    def goes_on(self, line: str) -> bool:
        """Whether a line only continues the open block, which was wrapped.

        That is where the line before is long, or this one begins in small letters or, below an
        item, further to the right.
        """
        if not self.open or _FINISHED.search(self.open[-1].text) or _LABEL.match(line):
            return False
        if len(self.open[-1].text) >= WRAPPED or line.lstrip()[0].islower():
            return True
        indent = len(line.expandtabs(4)) - len(line.lstrip())
        return self.kind == "item" and indent > self.items[-1].indent

    def heading(self, text: MappedText, level: int) -> None:
        """Begin what stands under a heading."""
        self.close()
        self.items, self.lead = [], None
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        self.add(Block("heading", text.strip(" \t#"), self.above()))
        self.headings.append((level, len(self.blocks) - 1))

    def item(self, line: MappedText, bullet: re.Match[str]) -> None:
        """Begin an item, below those that it is nested in."""
        self.close()
        indent, numbered = len(bullet[1].expandtabs(4)), bullet[2] is None
        # Items of the same kind and indentation are its equals. A bullet under a number without
        # indentation is nested in it; a number under a bullet begins another list.
        for depth, one in enumerate(self.items):
            beside = abs(one.indent - indent) <= 1
            if beside and numbered and not one.numbered:
                self.items, self.lead = self.items[:depth], None
                break
            if (beside and one.numbered == numbered) or one.indent > indent + 1:
                self.items = self.items[:depth]
                break
        else:
            if not self.items:
                self.lead = self.lead_of_list()
        text = line[bullet.end() :]
        if box := _BOX.match(text.text):
            text = text[box.end() :]
        self.open, self.kind = [text.strip()], "item"
        self.pending = self.above()
        self.items.append(_Item(indent, numbered, len(self.blocks)))

    def lead_of_list(self) -> int | None:
        """Return the place of the paragraph that leads on to a list; ``None`` if none does."""
        last = self.blocks[-1] if self.blocks else None
        if last is None or last.kind != "paragraph":
            return None
        text = last.text.text.rstrip(" *_")
        leads = text.endswith(":") or (not self.after_blank and _ENDS_OPEN.search(text))
        return len(self.blocks) - 1 if leads else None

    def paragraph(self, line: MappedText) -> None:
        """Begin a paragraph: text under an item, text below a lead, or text by itself."""
        self.close()
        nested = self.items and len(line.text) - len(line.text.lstrip()) > self.items[-1].indent
        if self.items and not nested:
            self.items, self.lead = [], None
            if self.after_blank and self.headings and self.headings[-1][0] == BOLD_LINE:
                self.headings.pop()  # what follows the list of a bold line is not about it
        elif not self.items:
            before = self.blocks[-1] if self.blocks else None
            led = before and before.kind == "paragraph" and before.text.text.endswith(":")
            self.lead = len(self.blocks) - 1 if led and not self.after_blank else None
        self.open, self.kind, self.pending = [line.strip()], "paragraph", self.above()

    def code(self, lines: Sequence[MappedText], place: int, fence: str) -> int:
        """Take lines from an opening fence to the closing one; return the place behind them.

        What stands behind the closing fence in its line is text.
        """
        self.close()
        end = place + 1
        while end < len(lines) and not lines[end].text.strip().startswith(fence):
            end += 1
        last = len(self.blocks) - 1
        led = last >= 0 and self.blocks[last].text.text.rstrip(" *_").endswith(":")
        above = (*self.above(), last) if led and last not in self.above() else self.above()
        self.add(Block("code", joined(lines[place + 1 : end], "\n"), above))
        rest = (
            lines[end][len(lines[end].text) - len(lines[end].text.lstrip(" \t`~")) :]
            if end < len(lines)
            else None
        )
        if rest:
            self.line(rest)
        return end + 1

    def table(self, lines: Sequence[MappedText]) -> None:
        """Take the lines of a table; the first one names the columns."""
        self.close()
        header: tuple[str, ...] = ()
        above = self.above()
        for line in lines:
            if not _TABLE_RULE.fullmatch(line.text):
                cells = tuple(_cells(line))
                self.add(Block("row", line.strip(), above, cells, header))
                header = header or tuple(cell.text for cell in cells)

    def above(self) -> tuple[int, ...]:
        """Return the places of what the next block stands under."""
        places = [place for _, place in self.headings]
        places += [] if self.lead is None else [self.lead]
        places += [one.place for one in self.items]
        return tuple(places[-MOST_ABOVE:])

    def close(self) -> None:
        """End the open block."""
        if self.open:
            self.add(Block(self.kind, joined(self.open), self.pending))
            self.open = []

    def add(self, block: Block) -> None:
        self.blocks.append(block)


def _lines(text: MappedText) -> Iterator[MappedText]:
    start = 0
    for line in text.text.splitlines(keepends=True):
        yield text[start : start + len(line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"))]
        start += len(line)


def _without_quote_marks(line: MappedText) -> MappedText:
    mark = _QUOTE_MARKS.match(line.text)
    return line[mark.end() :] if mark else line


def _table_end(lines: Sequence[MappedText], place: int) -> tuple[bool, int]:
    """Return whether a table begins at a place, and where the lines with bars from there end.

    A table has a rule below its first line, or three lines of as many cells.
    """
    if "|" not in lines[place].text:
        return False, place
    ruled = place + 1 < len(lines) and _is_table_rule(lines[place + 1].text)
    end = place + 1
    while end < len(lines) and "|" in lines[end].text:
        end += 1
    if ruled or _is_table_rule(lines[place].text):
        return True, end
    counts = {len(_cells(line)) for line in lines[place:end]}
    return end - place > 2 and len(counts) == 1 and counts != {1}, end


def _is_table_rule(line: str) -> bool:
    return "|" in line and _TABLE_RULE.fullmatch(line) is not None


def _cells(line: MappedText) -> list[MappedText]:
    line = line.strip()
    start, end = line.text.startswith("|"), line.text.endswith("|") and len(line.text) > 1
    line = line[int(start) : len(line.text) - int(end)]
    edges = [0, *(bar.start() for bar in _BAR.finditer(line.text)), len(line.text)]
    starts = [0, *(edge + 1 for edge in edges[1:-1])]
    return [line[first:last].strip() for first, last in zip(starts, edges[1:], strict=True)]

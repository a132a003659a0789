"""Renders Markdown as HTML: nothing is loaded, nothing is run, and nothing is hidden.

The text may be hostile. Only the tags of the rules below are written. Raw HTML and character
references appear as they were written, pictures as their text and address. Links are links on the
report page only, to http and https alone, with their address behind them.

A rendered text has every letter and digit of its source in the same order. So a mark on characters
of the source is drawn on the same letters of the rendered text.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from trustassay.report.text import LONG_TEXT, cut_between_words, split_long, visible

# The rules of markdown-it that are on. "html_block", "html_inline" and "entity" are not.
BLOCK_RULES = (
    "paragraph",
    "heading",
    "lheading",
    "hr",
    "list",
    "blockquote",
    "fence",
    "code",
    "table",
)
INLINE_RULES = ("backticks", "emphasis", "newline")
LINK_RULES = ("link", "image")
"""For readers of a report; raters see links and pictures as they were written."""
MAX_MARKDOWN_CHARACTERS = 30_000
"""Longest text that is parsed; a longer one could take seconds, and is shown as it is."""
HEADING_OFFSET = 2
"""Levels by which headings of a text are lowered, since the page has headings above it."""
# No quotes, angle brackets, spaces, or letters that look like others.
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&()*+,;=%-]+")
_FOLDS_BEHIND = frozenset(
    "paragraph_close list_item_close tr_close blockquote_close table_close bullet_list_close "
    "ordered_list_close fence code_block hr".split()
)
"""Blocks behind which a long text may be folded; a heading stays with what follows."""
_NOT_FOLDED = frozenset(("list_item_open", "thead_open"))
_PLAIN = frozenset(("paragraph_open", "paragraph_close", "inline", "text", "softbreak"))
"""Tokens of a text that has no Markdown in it."""


class TextMark(NamedTuple):
    """A mark on characters of a text."""

    start: int
    """Offset of the first character."""
    end: int
    """Offset behind the last character."""
    tone: str
    """A class of the style sheet: ``bad`` or ``fair``."""
    word: str
    """What the mark says."""


class RenderedText(NamedTuple):
    """A text as HTML."""

    head: Markup
    """What is always visible."""
    rest: Markup
    """What a reader has to open; empty for a short text."""
    rest_length: int
    """The number of its characters."""
    is_plain: bool
    """Whether it is shown as it was written: it has no Markdown, or would lose letters."""


@lru_cache(maxsize=256)
def markdown_html(text: str) -> Markup:
    """Return a text as HTML for raters: rendered if that shows every letter, else as it is."""
    text = text.replace("\r\n", "\n")
    tokens = _parse(text, links=False)
    if tokens is None:
        return Markup('<p class="plain">{}</p>').format(visible(text))
    return _render(tokens, links=False)


@lru_cache(maxsize=256)
def render_text(
    text: str, marks: Sequence[TextMark] = (), longest: int = LONG_TEXT
) -> RenderedText:
    """Return a text as HTML for readers of a report.

    Args:
        text: the text.
        marks: what is marked in it, in order; where two overlap, the first counts.
        longest: characters up to which it is not folded.
    """
    tokens = _parse(text, links=True)
    # In a text without Markdown white space stays as it is.
    if tokens is None or all(token.type in _PLAIN for token in _walk(tokens)):
        head, rest = split_long(text, longest)
        at = len(head)
        return RenderedText(
            _mark_text(head, 0, marks), _mark_text(rest, at, marks), len(rest), is_plain=True
        )
    _place_marks(tokens, text, marks)
    place, open_blocks = _find_fold(tokens, longest)
    # Blocks that go on in the rest are closed in the head, and opened again.
    closing = [_close(block) for block in reversed(open_blocks)]
    return RenderedText(
        _render([*tokens[:place], *closing], links=True),
        _render([*open_blocks, *tokens[place:]], links=True),
        sum(len(token.content) for token in tokens[place:]),
        is_plain=False,
    )


def read_beginning(text: str, longest: int) -> str:
    """Return the beginning of a text in one line without its Markdown, cut between words."""
    # Four times as much: markup and white space are dropped.
    beginning = text[: 4 * longest]
    tokens = _parse(beginning, links=True)
    if tokens is not None:
        contents = (
            " " if token.type in ("softbreak", "inline", "hardbreak") else token.content
            for token in _walk(tokens)
        )
        beginning = "".join(contents)
    shortened = cut_between_words(" ".join(beginning.split()), longest)
    is_cut = shortened.endswith("…") or len(text) <= 4 * longest
    return shortened if is_cut else f"{shortened}…"


def _parse(text: str, *, links: bool) -> list[Token] | None:
    """Return the tokens of a text; ``None`` if these lack letters of it, or it is too long.

    The parser drops table cells without a column, and content that is nested too deeply.
    """
    if len(text) > MAX_MARKDOWN_CHARACTERS:
        return None
    tokens: list[Token] = _build_parser(links).parse(text)
    for token in tokens:
        _name_addresses(token.children or ())
    # Compare the text with all that the tokens hold; white space and markup do not count.
    complete = _keep_letters("".join(map(_read_content, tokens))) == _keep_letters(text)
    return tokens if complete else None


def _name_addresses(tokens: Sequence[Token]) -> None:
    """Put the address and the title of each link behind its text, and of each picture, too."""
    addresses: list[str] = []
    for token in tokens:
        if token.type in ("link_open", "image"):
            address = str(token.attrGet("href") or token.attrGet("src") or "")
            if title := token.attrGet("title"):
                address += f" “{title}”"
            addresses.append(address)
        if token.type in ("link_close", "image"):
            token.meta["address"] = addresses.pop()


def _walk(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield tokens with those inside them; the text of a picture is its own content."""
    for token in tokens:
        yield token
        if token.type != "image":
            yield from _walk(token.children or ())


def _render(tokens: Sequence[Token], *, links: bool) -> Markup:
    parser = _build_parser(links)
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _read_content(token: Token) -> str:
    # ``info`` has the language of a code block, or the number of a list item.
    is_leaf = token.type == "image" or not token.children
    content = token.content if is_leaf else "".join(map(_read_content, token.children or ()))
    return f"{token.info}{content}{token.meta.get('address', '')}"


def _keep_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


# Marks -------------------------------------------------------------------------------------------


def _place_marks(tokens: Sequence[Token], text: str, marks: Sequence[TextMark]) -> None:
    """Store in each token with text the marks on it, by offsets in its content."""
    if not marks:
        return
    letters = [place for place, character in enumerate(text) if character.isalnum()]
    letter_marks = [
        mark._replace(start=bisect_left(letters, mark.start), end=bisect_left(letters, mark.end))
        for mark in marks
    ]
    first = 0
    for token in _walk(tokens):
        if token.type == "inline":
            continue  # its children have the text
        first += len(_keep_letters(token.info))
        places = [place for place, character in enumerate(token.content) if character.isalnum()]
        last = first + len(places)
        on_token = [mark for mark in letter_marks if max(mark.start, first) < min(mark.end, last)]
        # A mark that goes on in the token before or after it has no gap between the two.
        token.meta["marks"] = [
            mark._replace(
                start=0 if mark.start < first else places[mark.start - first],
                end=len(token.content) if mark.end > last else places[mark.end - 1 - first] + 1,
            )
            for mark in on_token
        ]
        first = last + len(_keep_letters(token.meta.get("address", "")))


def _mark_text(text: str, offset: int, marks: Sequence[TextMark]) -> Markup:
    """Return a text as HTML with the marks on it.

    Args:
        text: the text, or a part of it.
        offset: the place of the part in the text that the marks are of.
        marks: the marks, in order; where two overlap, the first counts.
    """
    pieces, place = [], 0
    for mark in marks:
        start, end = max(place, mark.start - offset), min(len(text), mark.end - offset)
        if start < end:
            pieces.append(visible(text[place:start]))
            template = Markup('<mark class="{}" title="{}">{}</mark>')
            pieces.append(template.format(mark.tone, mark.word, visible(text[start:end])))
            place = end
    return Markup("").join([*pieces, visible(text[place:])])


# Folding -----------------------------------------------------------------------------------------


def _find_fold(tokens: Sequence[Token], longest: int) -> tuple[int, list[Token]]:
    """Return the place at which a long text is folded, and the blocks that are open there.

    Two thirds of ``longest`` come before the place, and a block begins there: a paragraph, an item
    of a list, a row of a table. It is the end of a text that is not folded.
    """
    lengths = [len(token.content) for token in tokens]
    open_blocks: list[Token] = []
    head = 0
    for place, token in enumerate(tokens[:-1] if sum(lengths) > longest else (), 1):
        if token.nesting > 0:
            open_blocks.append(token)
        elif token.nesting < 0:
            open_blocks.pop()
        head += lengths[place - 1]
        begins_block = token.type in _FOLDS_BEHIND and tokens[place].nesting >= 0
        in_whole = any(block.type in _NOT_FOLDED for block in open_blocks)
        if begins_block and not in_whole and 3 * head >= 2 * longest:
            return place, open_blocks
    return len(tokens), []


def _close(block: Token) -> Token:
    return Token(block.type.replace("_open", "_close"), block.tag, -1, block=True)


# The parser --------------------------------------------------------------------------------------


class _SafeRenderer(RendererHTML):
    """Writes text with hidden characters spelled out, and tags without attributes of the text."""

    def text(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return str(_mark_text(tokens[idx].content, 0, tokens[idx].meta.get("marks", ())))

    def code_inline(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"<code>{self.text(tokens, idx)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        token = tokens[idx]
        info = token.info.strip()
        language = f"<span>{visible(info)}</span>\n" if info else ""
        # The parser ends every block with a line break, which a browser would show.
        code = _mark_text(token.content.removesuffix("\n"), 0, token.meta.get("marks", ()))
        return f"<pre>{language}<code>{code}</code></pre>"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return self.code_block(tokens, idx)

    def softbreak(self, *_: Any) -> str:
        return "<br>"

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        opening = Markup('<a href="{}" rel="noopener noreferrer" target="_blank">')
        return str(opening.format(tokens[idx].attrGet("href")))

    def link_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"</a> {_write_address(tokens[idx])}"

    def image(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        # Never loaded: its text, and the address as text.
        return f"🖼 {self.text(tokens, idx)} {_write_address(tokens[idx])}"

    def list_item_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        number = tokens[idx].info  # as written: a browser would count up from the first
        return f'<li value="{int(number)}">' if number else "<li>"

    def th_open(self, *_: Any) -> str:
        return "<th>"  # the page's policy forbids the style that aligns a column

    def td_open(self, *_: Any) -> str:
        return "<td>"

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"<h{_heading_level(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"</h{_heading_level(tokens[idx])}>"


def _write_address(token: Token) -> str:
    return str(Markup('<span class="address">({})</span>').format(visible(token.meta["address"])))


def _heading_level(token: Token) -> int:
    return min(int(token.tag[1:]) + HEADING_OFFSET, 6)


def _keep_inner_asterisks(state: StateInline, silent: bool) -> bool:
    """Keep asterisks between letters or digits, as in ``5*x + 3*y``: a product, no emphasis."""
    start = end = state.pos
    while end < state.posMax and state.src[end] == "*":
        end += 1
    # The characters before and behind the run of asterisks.
    around = state.src[start - 1 : start] + state.src[end : end + 1]
    if start == end or len(around) < 2 or not (around.isascii() and around.isalnum()):
        return False
    # markdown-it asks first (silent) whether the rule applies, without output.
    if not silent:
        state.pending += state.src[start:end]
    state.pos = end
    return True


class _MarkdownParser(MarkdownIt):
    """Takes an address for a link only if it is one of the web, and leaves it as it is."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the name of markdown-it
        return _ADDRESS.fullmatch(url) is not None

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the name of markdown-it
        return url


@cache
def _build_parser(links: bool) -> MarkdownIt:
    parser = _MarkdownParser("zero", renderer_cls=_SafeRenderer)
    parser.enable([*BLOCK_RULES, *INLINE_RULES, *(LINK_RULES if links else ())])
    # Before the rule that would take the asterisks.
    parser.inline.ruler.before("emphasis", "within_a_word", _keep_inner_asterisks)
    parser.inline.ruler.enable(["within_a_word"])
    return parser

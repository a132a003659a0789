"""Markdown as HTML that raters read: nothing is loaded, and nothing is hidden.

The text may be hostile. Only the tags of the rules below are written. Raw HTML, links, images and
character references are shown as they were written.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from trustassay.show.text import visible

BLOCKS = ("paragraph", "heading", "lheading", "hr", "list", "blockquote", "fence", "code", "table")
INLINE = ("backticks", "emphasis", "newline")
LONGEST = 30_000
"""Characters of a text that is parsed; a longer one, which may take seconds, is shown as it is."""
OUTLINE = 2
"""A heading of a text is this many levels below its own, since the page has headings above it."""


@lru_cache(maxsize=256)
def markdown_html(text: str) -> Markup:
    """Return a text as HTML: as Markdown if each letter and digit of it is shown then, else as it
    is. The parser leaves out cells that a table has no column for, and what is nested too deeply.
    """
    text = text.replace("\r\n", "\n")
    if len(text) <= LONGEST:
        parser = _parser()
        tokens = parser.parse(text)
        if _letters("".join(map(_content, tokens))) == _letters(text):
            return Markup(parser.renderer.render(tokens, parser.options, {}))
    return Markup('<p class="plain">{}</p>').format(visible(text))


def _content(token: Token) -> str:
    return token.info + ("".join(map(_content, token.children or ())) or token.content)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


class _Renderer(RendererHTML):
    """Writes text with its hidden characters spelled out, and tags without foreign attributes."""

    def text(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return str(visible(tokens[idx].content))

    def code_inline(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"<code>{visible(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        info = tokens[idx].info.strip()
        language = f"<span>{visible(info)}</span>\n" if info else ""
        code = visible(tokens[idx].content.removesuffix("\n"))
        return f"<pre>{language}<code>{code}</code></pre>"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return self.code_block(tokens, idx)

    def softbreak(self, *_: Any) -> str:
        return "<br>"

    def list_item_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        number = tokens[idx].info  # as it was written: the parser counts on from the first
        return f'<li value="{int(number)}">' if number else "<li>"

    def th_open(self, *_: Any) -> str:
        return "<th>"  # the page's policy forbids the style that aligns a column

    def td_open(self, *_: Any) -> str:
        return "<td>"

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"<h{_level(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"</h{_level(tokens[idx])}>"


def _level(token: Token) -> int:
    return min(int(token.tag[1:]) + OUTLINE, 6)


def _within_a_word(state: StateInline, silent: bool) -> bool:
    """Keep asterisks between letters and digits, as of ``5*x + 3*y``: a product and no emphasis."""
    start = end = state.pos
    while end < state.posMax and state.src[end] == "*":
        end += 1
    around = state.src[start - 1 : start] + state.src[end : end + 1]
    if start == end or len(around) < 2 or not (around.isascii() and around.isalnum()):
        return False
    if not silent:
        state.pending += state.src[start:end]
    state.pos = end
    return True


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("zero", renderer_cls=_Renderer)
    parser.enable([*BLOCKS, *INLINE])
    parser.inline.ruler.before("emphasis", "within_a_word", _within_a_word)
    parser.inline.ruler.enable(["within_a_word"])
    return parser

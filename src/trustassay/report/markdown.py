"""Renders Markdown as HTML for raters: nothing is loaded, and nothing is hidden.

The text may be hostile. Only the tags of the rules below are written. Raw HTML, links, images and
character references appear as they were written.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from trustassay.report.text import visible

# The rules of markdown-it that are on. "link", "image", "html_block" and "entity" are not.
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
MAX_MARKDOWN_CHARACTERS = 30_000
"""Longest text that is parsed; a longer one could take seconds, and is shown as it is."""
HEADING_OFFSET = 2
"""Levels by which headings of a text are lowered, since the page has headings above it."""


@lru_cache(maxsize=256)
def markdown_html(text: str) -> Markup:
    """Return a text as HTML: rendered if that shows every letter and digit, else as it is.

    The parser drops table cells without a column, and content that is nested too deeply.
    """
    text = text.replace("\r\n", "\n")
    if len(text) <= MAX_MARKDOWN_CHARACTERS:
        parser = _build_parser()
        tokens = parser.parse(text)
        # Compare the text with all that the tokens hold; white space and markup do not count.
        if _keep_letters("".join(map(_read_content, tokens))) == _keep_letters(text):
            return Markup(parser.renderer.render(tokens, parser.options, {}))
    return Markup('<p class="plain">{}</p>').format(visible(text))


def _read_content(token: Token) -> str:
    # ``info`` has the language of a code block, or the number of a list item.
    return token.info + ("".join(map(_read_content, token.children or ())) or token.content)


def _keep_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


class _SafeRenderer(RendererHTML):
    """Writes text with hidden characters spelled out, and tags without attributes of the text."""

    def text(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return str(visible(tokens[idx].content))

    def code_inline(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"<code>{visible(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        info = tokens[idx].info.strip()
        language = f"<span>{visible(info)}</span>\n" if info else ""
        # The parser ends every block with a line break, which a browser would show.
        code = visible(tokens[idx].content.removesuffix("\n"))
        return f"<pre>{language}<code>{code}</code></pre>"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return self.code_block(tokens, idx)

    def softbreak(self, *_: Any) -> str:
        return "<br>"

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


@cache
def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("zero", renderer_cls=_SafeRenderer)
    parser.enable([*BLOCK_RULES, *INLINE_RULES])
    # Before the rule that would take the asterisks.
    parser.inline.ruler.before("emphasis", "within_a_word", _keep_inner_asterisks)
    parser.inline.ruler.enable(["within_a_word"])
    return parser

"""The pages that a rater sees, as HTML: blind to models, scores and ids.

All text may be hostile. Of Markdown only the tags of the rules below are written. Raw HTML, links,
images and character references are shown as they were written, so that nothing is loaded and
nothing hidden."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from trustassay.sample import is_blank
from trustassay.show.text import amount, cut, finalized, visible
from trustassay.workflows.annotate.project import Project
from trustassay.workflows.annotate.session import LONGEST_NOTE, RaterState

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


STYLES = (("trustassay.show", "report.css"), (__package__, "annotate.css"))
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def page(
    project: Project, rater: RaterState, token: str, step: int | None = None, scale: int = 0
) -> str:
    """Return the page of a rater as it is now, or that of an earlier ``step``."""
    current = rater.current if step is None else step
    task = None if current is None else _task(project, rater, current, scale)
    again = step is not None
    return _rendered("annotate.html.jinja", project, rater, token, task=task, again=again)


def list_page(project: Project, rater: RaterState, token: str) -> str:
    """Return the list of all answers that a rater has rated or skipped, the latest shown first."""
    listed = []
    for step in sorted({rating // rater.scales for rating in rater.done}, reverse=True):
        item = project.items[rater.steps[step].item]
        answers = " | ".join(item.sides(swapped=rater.steps[step].swapped))
        ratings, note = _given(project, rater, step), rater.note(step)
        listed.append((step, item.question, answers, ratings, note))
    return _rendered("ratings.html.jinja", project, rater, token, listed=listed)


def _rendered(
    template: str, project: Project, rater: RaterState, token: str, **more: object
) -> str:
    more |= {"rater": rater, "base": f"/{token}", "longest_note": LONGEST_NOTE}
    more |= {"pairs": project.pairs, "shows_gold": project.options.shows_gold}
    return _environment().get_template(template).render(total=len(rater.steps), **more)


def _given(project: Project, rater: RaterState, step: int) -> str:
    """Return what a rater gave a step, on all scales; empty where that is nothing yet."""
    states = [rater.done.get(rating) for rating in rater.ratings(step)]
    if not any(states):
        return ""
    words = ["open" if one is None else one.choice or "skipped" for one in states]
    if len(set(words)) == 1 and (len(words) == 1 or words[0] == "skipped"):
        return words[0]
    named = zip(project.scales, words, strict=True)
    return ", ".join(f"{scale.name} {word}" for scale, word in named)


@cache
def asset(name: str) -> str:
    """Return the style sheet (that of the report comes first) or the script of the page."""
    sources = STYLES if name == "annotate.css" else ((__package__, name),)
    return "\n".join(
        files(package).joinpath("templates", file).read_text(encoding="utf-8")
        for package, file in sources
    )


def _task(project: Project, rater: RaterState, step: int, scale: int) -> dict[str, Any]:
    """Return what the page asks: the question with its answers, one of which is rated now."""
    asked = rater.steps[step]
    item = project.items[asked.item]
    if project.pairs:
        sides = zip(("First", "Second"), item.sides(swapped=asked.swapped), strict=True)
        answers: list[tuple[str, str, bool, str]] = [(*side, True, "") for side in sides]
    else:
        answers = _answers(project, rater, step)
    return {
        "step": step,
        "question": item.question,
        "answers": answers,
        "scales": _scales(project, rater, step, scale),
        "golds": item.golds if project.options.shows_gold else (),
        "documents": item.documents,
        "note": rater.note(step),
    }


def _scales(project: Project, rater: RaterState, step: int, scale: int) -> list[dict[str, Any]]:
    """Return a step's scales; active is the first open one, else that at place ``scale``."""
    ratings = rater.ratings(step)
    active = next((at for at, rating in enumerate(ratings) if rating not in rater.done), scale)
    result: list[dict[str, Any]] = []
    for place, (rating, one) in enumerate(zip(ratings, project.scales, strict=True)):
        prefix = f"{one.name}/" if len(ratings) > 1 else ""
        result.append({"scale": one, "prefix": prefix, "active": place == active})
        for name, states in (("given", rater.done), ("former", rater.undone)):
            result[-1][name] = states[rating].choice if rating in states else None
    return result


def _answers(project: Project, rater: RaterState, current: int) -> list[tuple[str, str, bool, str]]:
    """Return title, text, whether it is rated now, and what was given, of each answer shown."""
    page = rater.steps[current].page
    same = [place for place, step in enumerate(rater.steps) if step.page == page]
    result = []
    for letter, place in enumerate(same):
        title = f"Answer {LETTERS[letter] if letter < len(LETTERS) else letter + 1}"
        text = project.items[rater.steps[place].item].answers[0]
        now = place == current
        given = "" if now else _given(project, rater, place)
        result.append((title if len(same) > 1 else "Answer", text, now, given))
    return result


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        finalize=finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": visible, "amount": amount, "cut": cut}
    environment.filters |= {"markdown": markdown_html, "blank": is_blank}
    return environment

"""Cleans raw texts before anything reads or compares them.

* Of a model's output only its answer stays (:func:`extract_answer`): no ``<think>`` blocks,
  channels of gpt-oss or lines of ReAct, which templates and agents write around an answer.
* Markup becomes plain text (:func:`strip_html`, :func:`strip_markup`).
* Unicode is folded (:func:`fold`): characters that look the same, or mean the same, become the same
  characters. Both an answer and its passages are folded.
"""

import html
import re
import unicodedata

from trustassay.text.mapped import MappedText, Span

# Outputs of models -------------------------------------------------------------------------------

_REASONING = re.compile(
    r"<(think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|inner_monologue)>"
    r".*?(?:</\1>|\Z)|<\|start_thinking\|>.*?(?:<\|end_thinking\|>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)|◁think▷.*?(?:◁/think▷|\Z)",
    re.DOTALL | re.IGNORECASE,
)
"""The reasoning of a model before its answer. Where the closing tag is missing, the reasoning was
cut off before the answer began, so the match runs to the end of the text."""
_HEADLESS = re.compile(r"\A(?:(?!<think).)*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
"""Reasoning whose opening tag is in the chat template, so that only ``</think>`` is recorded."""
# Text that is struck through: "costs <del>90</del> 80 euros" claims 80 only.
_STRUCK = re.compile(r"<(del|s|strike)>[^<>]{1,500}</\1>", re.IGNORECASE)
# gpt-oss writes "<|channel|>analysis<|message|>...<|end|>" and then "<|channel|>final<|message|>".
# The pattern is greedy: where there are several final channels the last one counts.
_FINAL_CHANNEL = re.compile(r"\A.*<\|channel\|>final[^<]*<\|message\|>", re.DOTALL)
_OTHER_CHANNEL = re.compile(
    r"<\|channel\|>(?!final)[^<]*<\|message\|>.*?(?:<\|end\|>|<\|call\|>|\Z)", re.DOTALL
)
# Special tokens of chat templates: "<|im_end|>", "<|start|>assistant", "</s>", "<end_of_turn>".
_SPECIAL_TOKEN = re.compile(r"<\|[a-z_]{2,20}\|>(?:assistant(?=<\||\n))?|</?s>|<end_of_turn>")
# An agent's log from its first "Thought:" to "Final Answer:", which precedes the answer.
_REACT = re.compile(
    r"\A(?=\W{0,4}(?:thought|action|observation)\b).*^\W{0,4}final answer\W{0,4}:",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# One line of such a log where the log has no "Final Answer:".
_REACT_LINE = re.compile(
    r"^(thought|action|action input|observation)\s*:.*$", re.IGNORECASE | re.MULTILINE
)
# Tags that prompts ask for around the answer: "<answer>1902</answer>".
_WRAPPER = re.compile(r"</?(?:answer|final_answer|response|result|output|final)>", re.IGNORECASE)
_BREAK = re.compile(
    r"<br\s*/?>|</(?:p|div|li|h[1-6]|ul|ol|table|blockquote|section)>", re.IGNORECASE
)
_ITEM = re.compile(r"\n?[ \t]{0,40}<li\b[^>]{0,200}>", re.IGNORECASE)
_TITLE = re.compile(r"\n?[ \t]{0,40}<h[1-6]\b[^>]{0,200}>", re.IGNORECASE)
_CELL = re.compile(r"[ \t\n]{0,40}<t[dh]\b[^>]{0,200}>", re.IGNORECASE)
_ROW_END = re.compile(r"[ \t\n]{0,40}</tr>", re.IGNORECASE)
# Only known HTML tags with well-formed attributes: "<b>" goes, "<5 years>" and "a < b" stay.
_TAG = re.compile(
    r"</?(?:p|div|span|b|i|u|em|strong|small|mark|ul|ol|li|h[1-6]|table|thead|tbody|tr|t[dh]|a|code|pre|blockquote"
    r"|section|article|html|body|font|center)(?:\s[^<>=]{0,40}=[^<>]{0,200})?\s?/?>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,10}|#\d{1,6}|#x[0-9a-fA-F]{1,5});")


def extract_answer(text: MappedText) -> MappedText:
    """Return the part of an output that is its answer, without markup."""
    if "<" in text.text or "[THINK]" in text.text or "◁" in text.text:
        text = text.cut(_find_reasoning_spans(text.text)).sub(_STRUCK, "")
        text = text.sub(_SPECIAL_TOKEN, "").sub(_WRAPPER, "")
    # The ReAct log comes after the tags, which may stand around it.
    if steps := _REACT.match(text.text):
        text = text[steps.end() :]
    elif len({match[1].lower() for match in _REACT_LINE.finditer(text.text)}) > 1:
        # Two different keywords make a log. A single "Observation: ..." may be part of the answer.
        text = text.sub(_REACT_LINE, "")
    return strip_html(text)


def _find_reasoning_spans(text: str) -> list[Span]:
    """Return the spans of the reasoning and of all channels except the last final one."""
    if final := _FINAL_CHANNEL.match(text):
        return [final.span()]
    headless = _HEADLESS.match(text)
    # Search behind the headless reasoning only, so that the spans do not overlap.
    start = headless.end() if headless else 0
    spans = [(0, start)] if headless else []
    for pattern in (_REASONING, _OTHER_CHANNEL):
        spans += [match.span() for match in pattern.finditer(text, start)]
    return sorted(spans)


def strip_html(text: MappedText) -> MappedText:
    """Return a text with the structure of its HTML as Markdown, and without other tags."""
    if ("<" in text.text and _TAG.search(text.text)) or "<br" in text.text:
        # Cells first: the rows become a Markdown table, which the block parser reads later. The
        # tags that have no meaning of their own are removed last.
        text = text.sub(_CELL, " | ").sub(_ROW_END, " |\n")
        text = text.sub(_ITEM, "\n- ").sub(_TITLE, "\n# ").sub(_BREAK, "\n").sub(_TAG, "")
    if "&" in text.text:
        # Entities last, so that "&lt;b&gt;" is not taken for a tag.
        text = text.sub(_ENTITY, lambda match: html.unescape(match[0]))
    return text


# Markdown ----------------------------------------------------------------------------------------

# "[text](address)" and "![text](address)" become "text"; one level of brackets in the address.
_IMAGE_OR_LINK = re.compile(
    r"!?\[([^\[\]\n]{0,300})\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"\n]*\")?\)"
)
_STRUCK_MARKDOWN = re.compile(r"~~(?=\S)[^~\n]{1,500}~~")
# Marks of bold, italic, code and strikethrough, but not "2 * 3", "snake_case" or "5*".
_EMPHASIS = re.compile(
    r"\*\*+|~{3,}|__(?=\S)|(?<=\S)__|`+|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])"
    r"|(?<![\w_])_(?=[^\W_])|(?<=[^\W_])_(?![\w_])"
)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|>~-])")
# An address with the words that introduce it: "see https://...", "(source: https://...)".
_ADDRESS = re.compile(
    r"(?:,?[ \t]{0,2}\b(?:see|at|via|from|source|link)[ \t]?:?[ \t]?)?(?:\([ \t]?)?"
    r"<?\bhttps?://[^\s<>]*[^\s<>.,;:!?\"')]>?(?:[ \t]?\))?",
    re.IGNORECASE,
)
_CROSS = re.compile("(?P<label>:\\s*)?[✗✘❌🚫⛔]\\s*")
_TICKED = re.compile(":\\s*[✓✔✅☑]\\s*")
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u2604\u2607-\u27bf\u2b00-\u2bff]+\\s?")
"""Emoji and symbols, except stars, which may be a rating."""
_ASKS_FOR_ADDRESS = re.compile(
    r"\b(?:urls?|links?|web ?sites?|web ?pages?|address|site|online)\b", re.IGNORECASE
)


def strip_markup(text: MappedText, question: str = "") -> MappedText:
    """Return a text without emphasis, links, addresses that nobody asked for, and emoji.

    Struck-out text is dropped. A cross becomes "not", or "no" behind a label; a tick behind a
    label becomes "yes".
    """
    text = (
        text.sub(_IMAGE_OR_LINK, r"\1")
        .sub(_STRUCK_MARKDOWN, "")
        .sub(_EMPHASIS, "")
        .sub(_ESCAPE, r"\1")
    )
    # "What is the website?" is answered by an address.
    if not _ASKS_FOR_ADDRESS.search(question):
        text = text.sub(_ADDRESS, "")
    if text.text.isascii():
        return text
    text = text.sub(_CROSS, lambda match: ": no " if match["label"] else "not ")
    return text.sub(_TICKED, ": yes ").sub(_EMOJI, "").strip()


# Unicode ------------------------------------------------------------------------------------------

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff™®©]"
)
"""Soft hyphens, zero-width characters, marks of direction, variation selectors, trade marks."""
_QUOTES = {"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"'}
_QUOTE = re.compile(f"[{''.join(_QUOTES)}]")
_FRACTION = re.compile(r"(?<=(\d))?[\u00bc-\u00be\u2150-\u215e]")
_POWER = re.compile(r"(?<=[\w)])([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_MARKS = "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u1160-\u11ff\u3099\u309a]"
_MARKED_LETTER = re.compile(rf".{_MARKS}+", re.DOTALL)
"""A character with combining marks behind it, which is one letter in composed form."""
# Any character outside of ASCII with its marks: these are normalised one by one, so that the
# offsets of a letter stay with it.
_LETTER = re.compile(rf"[^\x00-\x7f]{_MARKS}*|.{_MARKS}+", re.DOTALL)
_MINUS = re.compile(r"(?<![\w)%])(?:−\s?|[–‒—﹣－])(?=[$€£]?\d)|[−‒﹣－\u2010]")
"""A dash before a number with nothing before it ("–5"), signs that are a minus everywhere, and
typographic hyphens."""
# "1914–18": a dash between digits.
_RANGE = re.compile(r"(?<=\d)\s?[–‒—]\s?(?=\d)")
# "minus 20", but not "5 minus 3".
_SPELLED_MINUS = re.compile(r"(?<!\d )\bminus (?=\d)", re.IGNORECASE)
_BOOKED_MINUS = re.compile(r"\((\d[\d.,]*)\)(?=\s?%)")
"""A loss as accountants write it: "(3.2)%"."""


def fold(text: MappedText) -> MappedText:
    """Return a text in composed compatibility form (NFKC), with one sign for each meaning.

    * Invisible characters are dropped. Typographic quotes become ASCII.
    * A minus is a hyphen, whatever dash was written, or "minus 20", or "(3.2)%". A dash between
      digits is a hyphen, too.
    * Fractions are spelled (``½`` is ``1/2``, ``3½`` is ``3 1/2``), and so are powers: ``m²`` is
      ``m^2``.
    """
    if not text.text.isascii():
        # The order matters: invisible characters would part a letter from its marks, and ranges
        # must come before minus signs, which would take their dashes.
        text = text.sub(_INVISIBLE, "")
        text = text.sub(_QUOTE, lambda match: _QUOTES[match[0]])
        text = text.sub(_MARKED_LETTER, lambda match: unicodedata.normalize("NFC", match[0]))
        # NFKC would make "31/2" of "3½", and "m2" of "m²".
        text = text.sub(_FRACTION, _spell_fraction)
        text = text.sub(_POWER, lambda match: "^" + unicodedata.normalize("NFKC", match[0]))
        text = text.sub(_LETTER, lambda match: unicodedata.normalize("NFKC", match[0]))
        text = text.sub(_RANGE, "-").sub(_MINUS, "-")
    return text.sub(_SPELLED_MINUS, "-").sub(_BOOKED_MINUS, r"-\1")


def _spell_fraction(match: re.Match[str]) -> str:
    # NFKC gives U+2044, the fraction slash. A blank parts the fraction from a digit before it.
    spelled = unicodedata.normalize("NFKC", match[0]).replace("\u2044", "/")
    return f" {spelled}" if match[1] else spelled


def fold_text(text: str) -> str:
    """Return a text as :func:`fold` changes it."""
    return fold(MappedText.of(text)).text

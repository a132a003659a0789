"""The part of a model's output that is its answer: without reasoning, scaffolding and markup.

Recorded outputs hold what templates and agents write around an answer: ``<think>`` blocks, the
channels of gpt-oss, the lines of ReAct, HTML.
"""

import html
import re

from trustassay.text.mapped import MappedText, Span

_REASONING = re.compile(
    r"<(think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|inner_monologue)>"
    r".*?(?:</\1>|\Z)|<\|start_thinking\|>.*?(?:<\|end_thinking\|>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)|◁think▷.*?(?:◁/think▷|\Z)",
    re.DOTALL | re.IGNORECASE,
)
"""What a model thinks before it answers; without an end nothing of the answer is there."""
_HEADLESS = re.compile(r"\A(?:(?!<think).)*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
"""Reasoning that a chat template began: only its end is recorded."""
_STRUCK = re.compile(r"<(del|s|strike)>[^<>]{1,500}</\1>", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r"\A.*<\|channel\|>final[^<]*<\|message\|>", re.DOTALL)
_OTHER_CHANNEL = re.compile(
    r"<\|channel\|>(?!final)[^<]*<\|message\|>.*?(?:<\|end\|>|<\|call\|>|\Z)", re.DOTALL
)
_TOKEN = re.compile(r"<\|[a-z_]{2,20}\|>(?:assistant(?=<\||\n))?|</?s>|<end_of_turn>")
_REACT = re.compile(
    r"\A(?=\W{0,4}(?:thought|action|observation)\b).*^\W{0,4}final answer\W{0,4}:",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_STEP = re.compile(
    r"^(thought|action|action input|observation)\s*:.*$", re.IGNORECASE | re.MULTILINE
)
_WRAPPER = re.compile(r"</?(?:answer|final_answer|response|result|output|final)>", re.IGNORECASE)
_BREAK = re.compile(
    r"<br\s*/?>|</(?:p|div|li|h[1-6]|ul|ol|table|blockquote|section)>", re.IGNORECASE
)
_ITEM = re.compile(r"\n?[ \t]{0,40}<li\b[^>]{0,200}>", re.IGNORECASE)
_TITLE = re.compile(r"\n?[ \t]{0,40}<h[1-6]\b[^>]{0,200}>", re.IGNORECASE)
_CELL = re.compile(r"[ \t\n]{0,40}<t[dh]\b[^>]{0,200}>", re.IGNORECASE)
_ROW_END = re.compile(r"[ \t\n]{0,40}</tr>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:p|div|span|b|i|u|em|strong|small|mark|ul|ol|li|h[1-6]|table|thead|tbody|tr|t[dh]|a|code|pre|blockquote"
    r"|section|article|html|body|font|center)(?:\s[^<>=]{0,40}=[^<>]{0,200})?\s?/?>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,10}|#\d{1,6}|#x[0-9a-fA-F]{1,5});")


def answer_part(text: MappedText) -> MappedText:
    """Return the part of an output that is its answer, without markup."""
    if "<" in text.text or "[THINK]" in text.text or "◁" in text.text:
        text = text.cut(_spans(text.text)).sub(_STRUCK, "")
        text = text.sub(_TOKEN, "").sub(_WRAPPER, "")
    if steps := _REACT.match(text.text):
        text = text[steps.end() :]
    elif len({match[1].lower() for match in _STEP.finditer(text.text)}) > 1:
        text = text.sub(_STEP, "")  # one alone may be a part of the answer: "Observation: ..."
    return without_html(text)


def _spans(text: str) -> list[Span]:
    """Return where reasoning and all channels but the last final one are."""
    if final := _FINAL_CHANNEL.match(text):
        return [final.span()]
    headless = _HEADLESS.match(text)
    start = headless.end() if headless else 0
    spans = [(0, start)] if headless else []
    for pattern in (_REASONING, _OTHER_CHANNEL):
        spans += [match.span() for match in pattern.finditer(text, start)]
    return sorted(spans)


def without_html(text: MappedText) -> MappedText:
    """Return a text with the structure of its HTML as Markdown, and without other tags."""
    if ("<" in text.text and _TAG.search(text.text)) or "<br" in text.text:
        text = text.sub(_CELL, " | ").sub(_ROW_END, " |\n")
        text = text.sub(_ITEM, "\n- ").sub(_TITLE, "\n# ").sub(_BREAK, "\n").sub(_TAG, "")
    if "&" in text.text:
        text = text.sub(_ENTITY, lambda match: html.unescape(match[0]))
    return text

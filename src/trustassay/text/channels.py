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

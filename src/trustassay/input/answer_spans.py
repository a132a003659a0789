"""Chooses the span of a trace whose output is the answer.

A trace may have many calls of models: one rewrites the question, one answers, others check the
answer or give the chat a title.

1. The answer is what the root returns. Of the calls of models, the last one is taken whose output
   is in it.
2. If a root returns no text, the last call of a model below it is taken, and the output of an agent
   before those of the calls inside it. Results of tools are no answers.
3. Helpers are passed over: spans whose kind or name says that they guard, rewrite, judge and so on
   (``[spans.helpers]`` in ``names.toml``), and all inside them; and calls that were given an answer
   and return a verdict on it, or are asked for a title of the chat and the like.

Where every call is a helper, calls run side by side, or the last one was given an answer and
returns no sentence, nothing is chosen: the user has to name the span.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from trustassay.input.chats import INSIDE, find_answer, find_question
from trustassay.input.layouts import NAMES, normalise_name
from trustassay.input.messages import find_chat, read_messages
from trustassay.input.passages import is_prose
from trustassay.input.prompts import is_rewriting_request
from trustassay.input.spans import HELPER, MODEL, RETRIEVAL, TOOL, TraceSpan

_HELPERS: Mapping[str, frozenset[str]] = {
    what: frozenset(words.split()) for what, words in NAMES["spans"]["helpers"].items()
}
_MIN_SHARED_CHARACTERS = 20
"""Characters of an output that must be part of another one, and not only equal to it."""
_MAX_VERDICT_WORDS = 4
"""Words of a verdict with its categories: "unsafe\nS1,S6"."""
_MAX_INSTRUCTION_CHARACTERS = 300
"""Characters at the start of a message that may ask for a title; passages may follow."""
_CHAT = r"(?:chat|conversation|dialog(?:ue)?|thread|session|exchange|gespr[äa]chs?|unterhaltung)"
_TITLE = r"(?:titles?|titel|headlines?|tags|follow[- ]?ups?|(?:next|related) questions)"
_TITLE_REQUEST = re.compile(
    rf"\b{_TITLE}\b[^.\n]{{0,80}}\b{_CHAT}\b|\b{_CHAT}\b[^.\n]{{0,80}}\b{_TITLE}\b"
    rf"|\b(?:short|concise|brief|kurzen|knappen)\b[^.\n]{{0,40}}\b{_TITLE}\b"
    rf"|\b(?:generate|suggest|propose)\b[^.\n]{{0,40}}\b{_TITLE}\b",
    re.IGNORECASE,
)
_MAX_NAMES = 12
"""Names of spans that a message lists."""


class AnswerChoice(NamedTuple):
    """The answer of a trace."""

    span: TraceSpan
    """The span whose output is the answer."""
    text: str
    """The answer."""
    call: TraceSpan | None
    """The call of a model that wrote it, where one is known."""


class NoAnswer(NamedTuple):
    """Why no answer was chosen."""

    span: TraceSpan
    """The span at which a message points."""
    message: str = (
        "is missing in the root and in the last model call: the trace is truncated, or was "
        "recorded without texts"
    )
    """What is wrong with the response."""
    is_missing: bool = True
    """Whether the trace has none; otherwise the user has to say which one it is."""


def _is_call(span: TraceSpan) -> bool:
    """Whether a span is a call of a model with a text; others may be the same call, without one."""
    return span.kind == MODEL and bool(span.input or span.output)


class SpanTree:
    """The spans of a trace, in order of time, with what is inside each."""

    def __init__(self, spans: Sequence[TraceSpan]) -> None:
        self.spans = spans
        spans_by_id = {span.id: span for span in spans if span.id}
        self._parents: dict[TraceSpan, TraceSpan] = {}
        self._children: dict[TraceSpan | None, list[TraceSpan]] = defaultdict(list)
        orphans = []
        for span in spans:
            parent = spans_by_id.get(span.parent) or spans_by_id.get(span.within)
            if parent is None and span.parent:
                orphans.append(span)
            else:
                self._children[parent].append(span)
                self._parents |= {span: parent} if parent else {}
        # The parent of an orphan was not exported: it is in another service, or was filtered out.
        self.orphans = orphans
        self.roots = self._children[None] or orphans
        self._parts: Counter[TraceSpan] = Counter()
        self._calls: Counter[TraceSpan] = Counter()
        for span in [*self._children[None], *orphans]:
            self._count(span)
        self._all_parts = sum(span.kind in (MODEL, TOOL, RETRIEVAL) for span in spans)
        self._helpers: dict[TraceSpan, bool] = {}

    def _count(self, span: TraceSpan) -> None:
        self._parts[span] = span.kind in (MODEL, TOOL, RETRIEVAL)
        self._calls[span] = _is_call(span)
        for child in self._children[span]:
            self._count(child)
            self._parts[span] += self._parts[child]
            self._calls[span] += self._calls[child]

    def is_helper(self, span: TraceSpan) -> bool:
        """Whether the output of a span, and of all in it, is no question and no answer."""
        if span not in self._helpers:
            self._helpers[span] = self._looks_like_helper(span)
        return self._helpers[span]

    def _looks_like_helper(self, span: TraceSpan) -> bool:
        if span.kind == HELPER:
            return True
        # A name of what holds all the work says nothing of the calls in it: a "router agent".
        is_whole = span.kind != MODEL and 1 < self._parts[span] == self._all_parts
        if not is_whole and (_is_helper_name(span.name) or _is_guard_model(span.text("model"))):
            return True
        asked = find_question(span.input) if span.kind == MODEL else None
        return bool(asked and is_rewriting_request(asked[0]))

    def is_about_answer(self, span: TraceSpan) -> bool:
        """Whether a call was given an earlier answer, and returns a verdict on it, such as "SAFE",
        or a title, tags or next questions for the chat."""
        words = normalise_name(self.find_answer(span)).split("_")
        is_verdict = len(words) <= _MAX_VERDICT_WORDS and words[0] in _HELPERS["verdicts"]
        return (is_verdict or _asks_for_title(span)) and self.find_answer_given_to(span) is not None

    def pass_over(self, span: TraceSpan) -> None:
        """Count a span as a helper."""
        self._helpers[span] = True

    def find_answer_given_to(self, span: TraceSpan) -> TraceSpan | None:
        """Return an earlier call of a model whose answer is in the input of a call."""
        if span.kind != MODEL:
            return None
        texts = [" ".join(text.split()) for text in _list_texts(span.input)]
        for call in self.list_calls():
            answer = " ".join(self.find_answer(call).split())
            if call is span:
                break
            is_long = len(answer) >= _MIN_SHARED_CHARACTERS
            if is_long and any(answer in text for text in texts):
                return call
        return None

    def list_calls(self) -> list[TraceSpan]:
        """Return the calls of models that are no helpers, outside of tools, in order of time."""
        calls = set(self._walk_calls([*self.roots, *self.orphans]))
        return [span for span in self.spans if span in calls]

    def _walk_calls(self, level: Iterable[TraceSpan]) -> Iterator[TraceSpan]:
        for span in level:
            if span.kind in (TOOL, RETRIEVAL) or self.is_helper(span):
                continue
            if _is_call(span):
                yield span
            else:
                yield from self._walk_calls(self._children[span])

    def list_helpers(self) -> list[TraceSpan]:
        """Return the outermost helpers in which models are called."""
        helpers = (span for span in self.spans if self._calls[span] and self.is_helper(span))
        return [span for span in helpers if not any(map(self.is_helper, self.list_path(span)[:-1]))]

    def list_answering_roots(self) -> list[TraceSpan]:
        """Return the roots that may ask and answer, without helpers."""
        roots = [span for span in self.roots if self._may_answer(span)]
        # One root alone is the application, whatever its name.
        if len(roots) == 1 and roots[0].kind != MODEL:
            return roots
        return [span for span in roots if not self.is_helper(span)]

    def _may_answer(self, span: TraceSpan) -> bool:
        if span.kind == TOOL:
            return self._calls[span] > 0  # a server of tools, which asks a model
        return span.kind not in (RETRIEVAL, HELPER)

    def find_answer(self, span: TraceSpan) -> str:
        """Return the answer in the output of a span; of a call also that of a call inside it."""
        answer = find_answer(span.output)
        if answer and answer[0].strip():
            return answer[0]
        inside = [child for child in self._children[span] if child.kind == MODEL]
        texts = (self.find_answer(child) for child in reversed(inside) if span.kind == MODEL)
        return next(filter(None, texts), "")

    def find_writer(self, answer: str) -> TraceSpan | None:
        """Return the last call of a model whose output is in an answer, or else the last one."""
        calls = self.list_calls()
        writers = [call for call in calls if _are_related(self.find_answer(call), answer)]
        return next(reversed(writers or calls), None)

    def find_last(self, level: Sequence[TraceSpan], *, top: bool = False) -> TraceSpan | None:
        """Return the span with the last answer of a level; a call of a model even without one.

        Args:
            level: spans with the same parent, in order of time.
            top: whether they are roots. Others without a call of a model in them give no answer.
        """
        for span in reversed(level):
            if span.kind in (TOOL, RETRIEVAL) or self.is_helper(span):
                continue
            if _is_call(span) or ((top or self._calls[span]) and self.find_answer(span)):
                return span
            if last := self.find_last(self._children[span]):
                return last
        return None

    def list_path(self, span: TraceSpan) -> list[TraceSpan]:
        """Return the spans around a span, the outermost first, and then the span itself."""
        result = [span]
        while parent := self._parents.get(result[-1]):
            result.append(parent)
        return result[::-1]

    def find_rivals(self, chosen: TraceSpan) -> list[TraceSpan]:
        """Return spans beside the chosen one that ran at its time, and gave another answer."""
        level = next(level for level in [*self._children.values(), self.orphans] if chosen in level)
        start, answer = _read_time(chosen.start), self.find_answer(chosen)
        return [
            span
            for span in level
            if span is not chosen
            and self._calls[span]
            and span.kind not in (TOOL, RETRIEVAL)
            and not self.is_helper(span)
            and start < _read_time(span.end)
            and self.find_answer(span) not in ("", answer)
        ]


def choose_answer(tree: SpanTree, name: str = "") -> AnswerChoice | NoAnswer:
    """Choose the answer of a trace, or say why there is none.

    Args:
        tree: the spans.
        name: the name of the span whose last output is the answer, as the user gave it.
    """
    if name:
        return _choose_named(tree, name)
    roots, calls = tree.list_answering_roots(), tree.list_calls()
    by_root = _choose_by_root(tree, roots[0], calls) if len(roots) == 1 else None
    return by_root or _choose_last(tree, roots, calls)


def _choose_last(
    tree: SpanTree, roots: Sequence[TraceSpan], calls: Sequence[TraceSpan]
) -> AnswerChoice | NoAnswer:
    """Return the last answer below the roots, if it is certain."""
    tops = [span for span in tree.spans if span in roots or span in tree.orphans]
    last = tree.find_last(tops, top=True)
    while last and tree.is_about_answer(last):
        tree.pass_over(last)
        last = tree.find_last(tops, top=True)
    if last is None:
        return _explain_nothing(tree, calls)
    text = tree.find_answer(last)
    if not text:
        reason = f", which failed ({last.error[:200]!r})" if last.error else ""
        return NoAnswer(last, f"is missing in the last model call, {last.name[:80]!r}{reason}")
    if rivals := tree.find_rivals(last):
        return _explain_doubt(tree, last, f"{_list_names([last, *rivals])} ran at the same time")
    if not is_prose(text) and (earlier := tree.find_answer_given_to(last)):
        doubt = (
            f"{last.name[:60]!r} received the output of {earlier.name[:60]!r} and returned no "
            "sentence"
        )
        return _explain_doubt(tree, last, doubt)
    return AnswerChoice(last, text, last if last.kind == MODEL else tree.find_writer(text))


def _choose_by_root(
    tree: SpanTree, root: TraceSpan, calls: Sequence[TraceSpan]
) -> AnswerChoice | None:
    """Return what a root returns; ``None`` where it returns no text."""
    text, (_, name) = tree.find_answer(root), find_answer(root.output) or ("", "")
    is_known = not name or normalise_name(name) in INSIDE["answers"]
    if text and is_known:
        return AnswerChoice(root, text, tree.find_writer(text))
    # An output of unknown fields: the call whose answer is in it.
    texts = list(_list_texts(root.output))
    for call in reversed(calls):
        answer = tree.find_answer(call)
        if answer and any(_are_related(answer, part) for part in texts):
            return AnswerChoice(call, answer, call)
    return AnswerChoice(root, text, tree.find_writer(text)) if text else None


def _choose_named(tree: SpanTree, name: str) -> AnswerChoice | NoAnswer:
    spans = [span for span in tree.spans if span.has_name(name)]
    for span in reversed(spans):
        if text := tree.find_answer(span):
            return AnswerChoice(span, text, span if span.kind == MODEL else tree.find_writer(text))
    problem = "no text output of a span" if spans else "no span"
    message = f"is missing: {problem} named {name[:80]!r} (--answer-span)"
    message = f"{message}; {describe_output_names(tree.spans)}"
    return NoAnswer(tree.roots[-1], message, is_missing=False)


def _explain_nothing(tree: SpanTree, calls: Sequence[TraceSpan]) -> NoAnswer:
    models = [span for span in tree.spans if span.kind == MODEL]
    if not models or calls:
        return NoAnswer(tree.roots[-1])
    doubt = f"every model call looks like a helper ({_list_names(models)})"
    return _explain_doubt(tree, models[-1], doubt)


def _explain_doubt(tree: SpanTree, span: TraceSpan, doubt: str) -> NoAnswer:
    outputs = describe_output_names(tree.spans)
    request = f"name the span with the answer (--answer-span NAME); {outputs}"
    return NoAnswer(span, f"is not certain: {doubt}; {request}", is_missing=False)


def describe_output_names(spans: Iterable[TraceSpan]) -> str:
    """Return the names of spans with a text as their output, for a message."""
    names = list(dict.fromkeys(span.name for span in spans if find_answer(span.output)))
    listed = ", ".join(name[:60] for name in names[:_MAX_NAMES]) or "none"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"spans with outputs: {listed}{more}"


def _list_names(spans: Iterable[TraceSpan]) -> str:
    return ", ".join(dict.fromkeys(span.name[:60] for span in spans))


def _asks_for_title(span: TraceSpan) -> bool:
    """Whether the instructions of a call ask for a title of the chat, or the like."""
    # Some clients keep the instructions beside the messages, or record the prompt as a text.
    instructions = [*_list_texts(span.find("system")[0])]
    if isinstance(span.input, str):
        instructions.append(span.input)
    instructions += [
        message.content
        for message in read_messages(find_chat(span.input))
        if message.role in ("system", "user") and message.content
    ]
    # A question of an earlier turn may name a title; the request comes first or last.
    return any(
        _TITLE_REQUEST.search(text[:_MAX_INSTRUCTION_CHARACTERS])
        for text in instructions[:1] + instructions[-1:]
    )


@lru_cache(maxsize=4096)
def _is_helper_name(name: str) -> bool:
    words = normalise_name(name).split("_")
    if not _HELPERS["whole"].isdisjoint(words):
        return False
    joined = f"_{'_'.join(words)}_"
    return any(f"_{helper}_" in joined for helper in _HELPERS["names"])


@lru_cache(maxsize=4096)
def _is_guard_model(model: str) -> bool:
    return not _HELPERS["models"].isdisjoint(normalise_name(model).split("_"))


def _are_related(first: str, second: str) -> bool:
    """Whether two outputs are equal, or a longer one contains the other."""
    shorter, longer = sorted((" ".join(first.split()), " ".join(second.split())), key=len)
    is_part = len(shorter) >= _MIN_SHARED_CHARACTERS and shorter in longer
    return bool(shorter) and (shorter == longer or is_part)


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _list_texts(inner)


def _read_time(text: str) -> float:
    """Return a time as a number, to compare it with others of its trace; NaN if it is unknown."""
    if re.fullmatch(r"\d{1,30}", text):
        return int(text)  # nanoseconds have more digits than a float
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).timestamp()
    return float("nan")

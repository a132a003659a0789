"""Splits a prompt into the question in it and the passages that it shows.

Frameworks put retrieved passages into the message of the user, or into that of the system. The
first of these forms that fits is read; a text that fits none is a question as it stands:

1. Elements in tags, ``<documents>...</documents>``, with the question beside them.
2. A labelled question, "Question: ...", before or behind passages. These stand below a label
   ("Context: ..."), between lines of dashes, or below a sentence that announces them.
3. Such passages beside a question without a label: the text above them, or the last paragraph if
   it ends with a question mark.

A label is a line that begins with one to five known words and a colon, or a heading of such words.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from trustassay.input.layouts import NAMES, normalise_name, translate_name
from trustassay.input.passages import (
    REGION,
    RawPassage,
    TaggedElement,
    find_elements,
    is_prose,
    read_passages,
    strip_mark,
    text_of,
)


class PromptParts(NamedTuple):
    """A prompt in its parts."""

    question: str
    """The question; empty where the prompt has passages only."""
    passages: list[RawPassage]
    """The passages, in their order; empty where the prompt is a question and nothing else."""


_WORDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(words.split()) for kind, words in NAMES["prompts"].items()
}
_QUESTION, _PASSAGES, _WEAK_PASSAGES, _ANSWER, _OTHER = (
    *("questions", "passages", "weak_passages"),
    *("answers", "others"),
)
_FIELDS_OF_KINDS = {
    _QUESTION: ("question",),
    _PASSAGES: ("context", "source"),
    _ANSWER: ("answer",),
}
_NOUNS: Mapping[str, frozenset[str]] = {
    kind: _WORDS[kind].union(
        *(NAMES["translations"][field].split() for field in _FIELDS_OF_KINDS.get(kind, ()))
    )
    for kind in (_QUESTION, _PASSAGES, _WEAK_PASSAGES, _ANSWER, _OTHER)
}
_KNOWN_WORDS = _WORDS["qualifiers"].union(*_NOUNS.values())
_MAX_LABEL_WORDS = 5
_MAX_HEADER_CHARACTERS = 300
"""Characters behind a label that show whether it is one, or the header of a passage."""
_MAX_CUE_WORDS = 6
"""Words of a last line that only asks for the answer, such as "Relevant text, if any:"."""
_MAX_BEGUN_WORDS = 8
"""Words with which a prompt may begin its answer: "Answer: Let's think step by step."."""
_MAX_LEAD_CHARACTERS = 1500
"""Characters of a paragraph that announces passages; it may hold several instructions."""
_MAX_LEAD_PARAGRAPHS = 3
"""Paragraphs at the start of a prompt of which one may announce passages."""
_MAX_SHORT_RULE = 5
"""Characters of a line of dashes that may also stand between two passages."""
_MIN_CHARACTERS = 10
"""Characters of the shortest passages; fewer are a value, or a form that was not filled in."""

_HEADING = r"(?:#{1,6}[ \t]*|\*\*|__|\[\[[ ]?##[ \t]*)"
_LABELS = re.compile(
    r"^[ \t>]{0,8}(?:[-*][ \t]+)?"
    rf"(?:{_HEADING}?(?P<label>[^\W\d_][^\n:：#*\[\]<>.?!]{{0,48}}?)[*_ \t]{{0,4}}[:：][*_]{{0,2}}"
    rf"|{_HEADING}(?P<heading>[^\W\d_][^\n:：#*\[\]<>]{{0,48}}?)[ \t]*(?:#+|\*\*|__)?"
    r"(?:[ \t]?\]\])?[ \t]*$)"
    r"|(?<=[.;!?])[ \t]+(?P<inner>[A-Z][a-z]{2,20}(?: [a-z]{2,20})?):(?=\s|\Z)",
    re.MULTILINE,
)
"""What may be a label at the start of a line, or behind a sentence: "Be brief. Context: ..."."""
_RULE = re.compile(r"^[ \t]*([-=*_]{3,}|\"{3}|'{3}|`{3})[ \t]*$", re.MULTILINE)
"""A line of dashes or quotation marks around passages."""
_QUOTES = ('"""', "'''", "```")
_FIRST_MARK = re.compile(r"^[ \t]*\[1\][ \t]*\S", re.MULTILINE)
_FIRST_NUMBER = re.compile(
    r"^[ \t]*(?:\[1\][ \t]*\S"
    r"|[#*=\[ \t-]{0,6}(?:document|source|passage|context|chunk)[ \t]*\W?1"
    r"(?=[ \t]*(?:[\])(:.*=–-]|$)))",
    re.IGNORECASE | re.MULTILINE,
)
"""The first of numbered passages: "[1] ...", "Document 1: ..."."""
_LINE_WITH_COLON = re.compile(r"^[^\n]{1,300}[:：][ \t]*$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_TAGGED_QUESTION = re.compile(
    r"<((?:user[_ -]?)?(?:question|query|input|request)|frage)>([^<]{1,20000})</\1>", re.IGNORECASE
)
_REFINES = re.compile(r"\brefine the (?:original|existing)\b", re.IGNORECASE)
"""A request to improve an earlier answer by more passages: it asks nothing new."""
_REWRITES = re.compile(
    r"\b(?:stand[ -]?alone|rephrased|rewritten|search) (?:question|query)"
    r"[*_ ]{0,3}[:>]+[*_ ]{0,3}\Z",
    re.IGNORECASE,
)
"""The end of a request to rewrite a question."""
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I've|my|me|ich|meine?[mnrs]?)\b")
_REQUEST = re.compile(
    r"\s*(?:if|return|use|keep|always|never|answer|be|please|cite|only|do|don't|say|just|provide)\b",
    re.IGNORECASE,
)
"""The beginning of a line that tells the model what to do."""
_PRESENTS = re.compile(r"\W*(?:here|hier|voici|below|context|these)\b", re.IGNORECASE)
"""The beginning of a sentence that presents passages, and asks nothing."""
_QUOTED = re.compile(r"\"{3}(.+)\"{3}", re.DOTALL)
_END_MARKS = " \n\t\"'”’)*_"


def _match_any(words: Iterable[str]) -> str:
    """Return a pattern of words and their endings; words of Chinese and Japanese have no edges."""
    latin = (word.replace("_", "[ -]") for word in sorted(words) if word.isascii())
    others = (word for word in sorted(words) if not word.isascii())
    return "(?:" + "|".join([rf"\b(?:{'|'.join(latin)})\w{{0,3}}\b", *others]) + ")"


def _match_near(first: Iterable[str], second: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of two words in one sentence, in either order."""
    one, other = _match_any(first), _match_any(second)
    return re.compile(rf"{one}[^\n.]{{0,60}}{other}|{other}[^\n.]{{0,60}}{one}", re.IGNORECASE)


_ANNOUNCES = _match_near(_WORDS["pointers"], _NOUNS[_PASSAGES])
_ANY_POINTERS = _WORDS["pointers"] | _WORDS["weak_pointers"]
_ANNOUNCES_BESIDE_COLON = _match_near(_ANY_POINTERS, _NOUNS[_PASSAGES])
_ANNOUNCES_BESIDE_QUESTION = _match_near(
    _ANY_POINTERS, _NOUNS[_PASSAGES] | _NOUNS[_WEAK_PASSAGES] | {"part", "portion"}
)
"""Sentences that announce passages: "Use the following pieces of context". The more there is that
shows a prompt, the more words count."""
_SHOWS = re.compile(_match_any(_NOUNS[_PASSAGES] | _NOUNS[_WEAK_PASSAGES]), re.IGNORECASE)
_ELSE = re.compile(
    rf"\s*(?:if|in case|when) [^\n]{{0,80}}{_match_any(_NOUNS[_PASSAGES])}[^\n]{{0,120}},"
    r"[ ]?(?:then |just )?(?:please )?(?:reply|respond|answer|say|return|write|state|output)\b",
    re.IGNORECASE,
)
"""A line below passages with the reply for the case that they have no answer, as in RAGTruth."""
_INSTRUCTS = re.compile(_match_any({"rule", "guideline", "instruction", "step"}), re.IGNORECASE)
_ASKS = re.compile(
    rf"{_match_any(_NOUNS[_QUESTION] | {'task'})}[^\n:：?.]{{0,60}}[:：][ \t]*(\S[^\n]*)",
    re.IGNORECASE,
)
"""A sentence that ends with the question: "Answer the question: ..."."""


def split_prompt(text: str) -> PromptParts:
    """Return the question and the passages of a user's message.

    A text in which passages are not certain is the question as it stands.
    """
    whole = PromptParts(text, [])
    if not _may_show_passages(text):
        return whole
    unix = text.replace("\r\n", "\n")
    labels = _find_labels(unix)
    return (
        _split_tagged(unix)
        or _split_labelled(unix, labels)
        or _split_unlabelled(unix, labels)
        or whole
    )


def read_prompt(text: str) -> list[RawPassage]:
    """Return the passages in the message of the system."""
    if not _may_show_passages(text):
        return []
    unix = text.replace("\r\n", "\n")
    if elements := _find_tagged_passages(unix):
        return _read_elements(elements)
    return _read_part(_find_part_of_system(unix))


def _may_show_passages(text: str) -> bool:
    """Whether a text has what each prompt with passages has; most questions have not."""
    return any(mark in text for mark in ":：<[\n")


def is_rewriting_request(text: str) -> bool:
    """Whether a prompt asks for another wording of a question, as those of LangChain do."""
    return bool(_REWRITES.search(text.rstrip()[-80:]))


# ----------------------------------------------------------------------------------------- tags


def _find_tagged_passages(text: str) -> list[TaggedElement]:
    """Return the elements with passages.

    "<result>" mostly shows the form of the answer, and code is no passage.
    """
    fences = [match.start() for match in re.finditer("```", text)]
    return [
        element
        for element in find_elements(text)
        if not element.name.lower().startswith("result") and bisect(fences, element.start) % 2 == 0
    ]


def _read_elements(elements: Iterable[TaggedElement]) -> list[RawPassage]:
    # Tags around several passages have no further use; one around a single passage may have its
    # title, so it stays.
    return [
        passage
        for name, attributes, inner, *_ in elements
        for passage in read_passages(
            strip_mark(inner.strip())
            if REGION.fullmatch(name)
            else f"<{name}{attributes}>{inner}</{name}>"
        )
    ]


def _split_tagged(text: str) -> PromptParts | None:
    elements = _find_tagged_passages(text) if "</" in text else []
    passages = _read_elements(elements)
    if not _are_filled(passages):
        return None
    above, below = text[: elements[0].start], text[elements[-1].end :]
    tagged = _TAGGED_QUESTION.search(below) or _TAGGED_QUESTION.search(above)
    if tagged:
        return PromptParts(tagged[2].strip(), passages)
    for part in (below, above):
        if question := _find_question(part, _find_labels(part)):
            return PromptParts(question.text, passages)
    return PromptParts(_choose_question(above, below), passages)


def _choose_question(above: str, below: str) -> str:
    """Return the unlabelled question above or below passages: what asks, else what is below.

    A sentence that only presents them is no question: "Here are the documents:".
    """
    below, (*earlier, last) = _strip_cue(below), ["", *_paragraphs(above)]
    presents = _PRESENTS.match(last)
    is_lead = presents or (last.endswith(":") and _ANNOUNCES_BESIDE_QUESTION.search(last))
    if is_lead and earlier and _asks(earlier[-1]):
        last = earlier[-1]
    elif presents:
        last = ""
    return last if not below or (_asks(last) and not _asks(below)) else below


# --------------------------------------------------------------------------------------- labels


class _Label(NamedTuple):
    """A label of a part of a prompt."""

    kind: str
    """A key of :data:`_NOUNS`."""
    start: int
    """The place of its first character."""
    end: int
    """The place behind its colon."""
    is_inside: bool
    """Whether it stands inside a line."""


class _LabelledQuestion(NamedTuple):
    """A question with its label."""

    text: str
    start: int
    end: int


def _find_labels(text: str) -> list[_Label]:
    labels = []
    for match in _LABELS.finditer(text):
        name = next(filter(None, match.groups()))
        kind = _find_kind(normalise_name(name))
        line = text[match.end() : match.end() + _MAX_HEADER_CHARACTERS].partition("\n")[0].strip()
        # "Source: guide.pdf" is the header of a passage, and no label of passages.
        is_header = line and translate_name(name) == "source" and not is_prose(line)
        if kind and not is_header:
            labels.append(_Label(kind, match.start(), match.end(), bool(match["inner"])))
    return labels


@lru_cache(maxsize=4096)
def _find_kind(name: str) -> str:
    """Return the kind of a label, by its name in normal form; empty for other texts."""
    if name in _NOUNS[_OTHER]:
        return _OTHER
    words = name.split("_")
    kinds = [kind for word in words for kind in _NOUNS if word in _NOUNS[kind]]
    if not kinds or len(words) > _MAX_LABEL_WORDS or not _KNOWN_WORDS.issuperset(words):
        return ""
    # "Answer the question: ..." asks.
    return _QUESTION if kinds[0] == _ANSWER and _QUESTION in kinds else kinds[0]


def _split_labelled(text: str, all_labels: Sequence[_Label]) -> PromptParts | None:
    """Return the parts of a prompt with a labelled question, preferably at the start of a line."""
    for labels in ([label for label in all_labels if not label.is_inside], all_labels):
        question = _find_question(text, labels)
        passages = _read_part(_find_part_beside(text, labels, question)) if question else []
        if question and _are_filled(passages):
            return PromptParts(question.text, passages)
    return None


def _find_question(text: str, labels: Sequence[_Label]) -> _LabelledQuestion | None:
    """Return the labelled question above passages, or else the last one without an answer."""
    asking = [place for place, label in enumerate(labels) if label.kind == _QUESTION]
    # Others may be part of the passages below it.
    above = [n for n in asking[:1] if n + 1 < len(labels) and labels[n + 1].kind == _PASSAGES]
    for place in above + asking[::-1]:
        label = labels[place]
        if _is_answered(text, labels, place):
            continue
        end = labels[place + 1].start if place + 1 < len(labels) else len(text)
        rule = _RULE.search(text, label.end, end)
        section = _strip_cue(text[label.end : rule.start() if rule else end])
        paragraphs = _paragraphs(section)
        # Instructions, or passages, may follow a question in further paragraphs.
        if paragraphs and not any(map(_asks, paragraphs[1:])):
            section = paragraphs[0]
        if section:
            quoted = _QUOTED.fullmatch(section)
            question = quoted[1] if quoted else section.rstrip(" ;")
            end = text.index(section, label.end) + len(section)
            return _LabelledQuestion(question, label.start, end)
    return None


def _is_answered(text: str, labels: Sequence[_Label], place: int) -> bool:
    """Whether a labelled question has its answer: it is an example, or part of a passage."""
    for number, label in enumerate(labels[place + 1 :], place + 1):
        if label.kind == _ANSWER:
            is_last = number + 1 == len(labels)
            answer = text[label.end : len(text) if is_last else labels[number + 1].start].strip()
            is_begun = is_last and len(answer.split()) <= _MAX_BEGUN_WORDS
            return bool(answer) and not (is_begun and len(_paragraphs(answer)) == 1)
        if label.kind != _OTHER:
            return False
    return False


def _find_part_beside(text: str, labels: Sequence[_Label], question: _LabelledQuestion) -> str:
    """Return what shows passages above or below a labelled question; blank where nothing does."""
    above = text[: question.start]
    # Lines of dashes below it come first: examples above may have passages, too.
    rule = _RULE.search(text, question.end)
    if rule and not text[question.end : rule.start()].strip():
        return _cut_at_rule(text, rule)[0]
    begin, asked, answered = -1, False, False
    for label in labels:
        if label.kind in (_PASSAGES, _WEAK_PASSAGES):
            # Passages above an answered question are an example where others follow.
            begin = label.end if begin < 0 or answered else begin
            asked = answered = False
        answered |= asked and label.kind == _ANSWER
        asked |= label.kind == _QUESTION
    if 0 <= begin < question.start:
        return _cut_at_instructions(above, labels, begin)
    if begin > question.start:
        return _cut_at_instructions(text, labels, begin)
    if part := _find_part_in_rules(above) or above[_find_end_of_lead(above) :].strip():
        return part
    numbered = _FIRST_NUMBER.search(above) or _FIRST_NUMBER.search(text, question.end)
    stop = len(text) if numbered and numbered.start() > question.start else question.start
    return _strip_cue(text[numbered.start() : stop]) if numbered else ""


def _cut_at_instructions(text: str, labels: Sequence[_Label], begin: int) -> str:
    """Return a part of a prompt without the instructions and the request for an answer below."""
    for label in labels:
        # A document may have such a line, too, but hardly as a paragraph of its own.
        if begin < label.start < len(text) and label.kind == _OTHER:
            line_above = text[max(begin, label.start - 99) : label.start].rstrip(" \t")
            if line_above.endswith("\n\n"):
                return text[begin : label.start]
    return _strip_cue(text[begin:])


def _find_part_in_rules(text: str) -> str:
    """Return what stands between lines of dashes below a paragraph that names passages."""
    rule = _RULE.search(text)
    lead = _BLANK_LINES.split(text[: rule.start()])[-1] if rule else ""
    return _cut_at_rule(text, rule)[0] if rule and _SHOWS.search(lead) else ""


def _cut_at_rule(text: str, rule: re.Match[str]) -> tuple[str, str]:
    """Return the text from a line of dashes to an equal one, or to the end, and what is behind it.

    Short dashes may also stand between passages, so the last ones count. Quotation marks are around
    each passage.
    """
    rules = [other for other in _RULE.finditer(text, rule.end()) if other[1] == rule[1]]
    if not rules:
        return text[rule.end() :], ""
    if rule[1] in _QUOTES:
        pairs = zip([rule, *rules][::2], rules[::2], strict=False)
        quoted = [text[begin.end() : end.start()] for begin, end in pairs]
        return "\n\n".join(quoted), text[rules[2 * len(quoted) - 2].end() :]
    last = rules[0 if len(rule[1]) > _MAX_SHORT_RULE else -1]
    return text[rule.end() : last.start()], text[last.end() :]


def _find_end_of_lead(text: str) -> int:
    """Return the end of the lines that announce passages; that of the text without any."""
    paragraphs = _BLANK_LINES.split(text, _MAX_LEAD_PARAGRAPHS)[:_MAX_LEAD_PARAGRAPHS]
    lead = next((part for part in paragraphs if _ANNOUNCES_BESIDE_QUESTION.search(part)), "")
    if not lead or len(lead) > _MAX_LEAD_CHARACTERS:
        return len(text)
    lines = lead.split("\n")
    announcing = next(
        (place for place, line in enumerate(lines) if _ANNOUNCES_BESIDE_QUESTION.search(line)),
        len(lines),
    )
    # Instructions below it belong to it: "If you don't know the answer, say so."
    is_last = (
        place for place in range(announcing + 1, len(lines)) if not _is_request(lines[place])
    )
    end = len("\n".join(lines[: next(is_last, len(lines))]))
    return text.index(lead) + end


def _is_request(line: str) -> bool:
    return bool(_REQUEST.match(line))


# ------------------------------------------------------------------------------ without a label


def _split_unlabelled(text: str, labels: Sequence[_Label]) -> PromptParts | None:
    """Return the parts of a prompt whose question has no label."""
    rule = _RULE.search(text)
    if rule and _ANNOUNCES_BESIDE_QUESTION.search(
        _BLANK_LINES.split(text[: rule.start()].rstrip())[-1]
    ):
        return _split_at_rules(text, rule)
    for above, part in _find_shown_parts(text, labels):
        body = _strip_cue(part)
        question, paragraphs = (_paragraphs(above) or [""])[-1], _paragraphs(body)
        if not _asks(question) and len(paragraphs) > 1 and _asks(paragraphs[-1]):
            question, body = paragraphs[-1], body[: body.rindex(paragraphs[-1])]
        # "Briefly answer the following question:" leads to it.
        lead, _, rest = question.partition("\n")
        if lead.endswith(":") and _find_kind(normalise_name(lead.split()[-1])) == _QUESTION:
            question = rest.strip()
        passages = _read_part(body)
        # What users tell about themselves belongs to their question.
        is_certain = _FIRST_NUMBER.match(body.lstrip()) or not _FIRST_PERSON.search(body)
        if question and is_certain and any(is_prose(text_of(passage)) for passage in passages):
            return PromptParts(question, passages)
    return None


def _split_at_rules(text: str, rule: re.Match[str]) -> PromptParts | None:
    """Return the parts of a prompt with passages between lines of dashes, as LlamaIndex's."""
    above = text[: rule.start()]
    part, below = _cut_at_rule(text, rule)
    below = _strip_cue(below)
    asked = [*_ASKS.findall(below)[-1:], *_ASKS.findall(above)[:1]]
    question = "" if _REFINES.search(below) else _choose_question(above, below)
    passages = _read_part(part)
    return PromptParts(asked[0] if asked else question, passages) if passages else None


def _find_shown_parts(text: str, labels: Sequence[_Label]) -> Iterator[tuple[str, str]]:
    """Yield the text that asks above passages, maybe empty, and the text from the passages on."""
    for label in labels:
        # A label in a line of its own; beside other text it may be the user's word.
        beside = text[label.end : label.end + _MAX_HEADER_CHARACTERS].partition("\n")[0]
        if label.kind == _PASSAGES and not label.is_inside and not beside.strip():
            yield text[: label.start], text[label.end :]
            break
    for line in _LINE_WITH_COLON.finditer(text):
        if _ANNOUNCES_BESIDE_QUESTION.search(line[0]):
            # The question may stand in the line that leads to the passages.
            asked, mark, _ = line[0].rpartition("?")
            above = asked + mark or text[: line.start()]
            yield above if _asks(above) else "", text[line.end() :]
            break
    if first := _FIRST_NUMBER.search(text):
        above = _strip_cue(text[: first.start()])
        yield above if _asks(above) else "", text[first.start() :]


# ---------------------------------------------------------------------------- the system's message


def _find_part_of_system(text: str) -> str:
    """Return the part of the system's message that shows passages; empty without one."""
    # A heading "# Context" may stand above anything, so only a colon makes a label.
    labels = _find_labels(text)
    labels = [label for label in labels if set(text[label.start : label.end]) & {":", "："}]
    begins = [label.end for label in labels if label.kind == _PASSAGES]
    begins += [
        line.end()
        for line in _LINE_WITH_COLON.finditer(text)
        if _ANNOUNCES_BESIDE_COLON.search(line[0]) and not _INSTRUCTS.search(line[0])
    ]
    if begins:
        begin = min(begins)
        stops = (
            label.start
            for label in labels
            if label.start >= begin
            and label.kind in (_QUESTION, _ANSWER, _OTHER)
            and not label.is_inside
        )
        return text[begin : next(stops, len(text))]
    if part := _find_part_in_rules(text):
        return part
    for blank in islice(_BLANK_LINES.finditer(text), _MAX_LEAD_PARAGRAPHS):
        lead = text[: blank.start()]
        if _ANNOUNCES.search(lead):
            return text[blank.end() :]
    first = _FIRST_MARK.search(text)
    return text[first.start() :] if first else ""


# ---------------------------------------------------------------------------------------- pieces


def _read_part(part: str) -> list[RawPassage]:
    """Return the passages in a part of a prompt, which may have lines of dashes around it."""
    part = part.strip().rstrip(";")
    if rule := _RULE.match(part):
        part = _cut_at_rule(part, rule)[0].strip()
    passages = read_passages(strip_mark(part)) if part else []
    # A template may indent what it shows.
    return [passage.strip() if isinstance(passage, str) else passage for passage in passages]


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in _BLANK_LINES.split(text) if part.strip()]


def _strip_cue(text: str) -> str:
    """Return a text without last lines that only ask for the answer: "Answer:"."""
    lines = text.strip().split("\n")
    while lines and (not lines[-1].strip() or _is_cue(lines[-1])):
        lines.pop()
    return "\n".join(lines).strip()


def _is_cue(line: str) -> bool:
    if _ELSE.match(line):
        return True
    is_short = len(line.split()) <= _MAX_CUE_WORDS
    return is_short and line.rstrip("\"'*_` ").endswith((":", "："))


def _asks(text: str) -> bool:
    return text.rstrip(_END_MARKS).endswith(("?", "？"))


def _are_filled(passages: Iterable[RawPassage]) -> bool:
    return sum(len(text_of(passage)) for passage in passages) >= _MIN_CHARACTERS

"""Citation markers in every form that people use, brackets of code, and lists of references.

There are two readings. The functions whose name ends in ``_as_in_paper`` behave like trust_eval
0.1.6, oddities included; the others are the default reading.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trustassay.text.grammar import is_statement
from trustassay.text.mapped import MappedText, Span
from trustassay.text.words import is_negation, plain_words

# Markers ----------------------------------------------------------------------------------------

MAX_RANGE_NUMBERS = 20
"""A longer range, such as "[1-999]", stands for its two ends alone, so that a response cannot make
its list of citations arbitrarily long."""
_NUMBER = r"\d{1,3}"  # a longer one in brackets is text: a year, say
_SMALL = r"[1-9]\d?"
# The word before a number: "Doc 2", "see source 3", "Quelle: 1". The words are optional in square
# brackets and required in round ones, because "(2)" may be anything.
_KIND = (
    r"(?:(?:see )?(?:doc(?:ument)?|source|passage|ref(?:erence)?|citation|footnote|result|context"
    r"|excerpt|chunk|snippet|quelle|id|s)s?\.?:?\s*)"
)
_PAGE = r"(?:pp?\.|pages?)\s?\d{1,4}(?:\s?[-–]\s?\d{1,4})?"
_FILE = r"[\w-]{1,60}\.(?:pdf|docx?|txt|md|html?|csv|xlsx?|pptx?|json)\b"
# A word of the name of a work: no sentence may hide in brackets with a page.
_WORK = (
    rf"(?!(?:no|not|never|without|nor|neither)\b)(?:{_FILE}|source:?\s\w+|see|doc(?:ument)?|passage"
    r"|of|the|(?-i:[A-Z])[\w.'-]*|\d{1,4})"
)
_SEPARATOR = r"(?:,\s*(?:and|&)|[,;&–—-]|and)"
_NUMBERS = rf"{_NUMBER}(?:\s*{_SEPARATOR}\s*{_KIND}?{_NUMBER})*"
# The address of a Markdown link: "[2](https://...)", "[2](#ref-2)".
_LINK = r"(?:\((?:https?:|www\.|[#/])[^()\s]*\))?"
_MARKER = re.compile(
    # [1], [1, 2], [^1], [#1], [[1]], [Doc 2], \[1\], [2](https://...)
    rf"\\?\[{{1,2}}\s*[\^#]?{_KIND}?(?P<square>{_NUMBERS})"
    rf"(?:†[^\]\n]{{0,200}})?\^?\s*\\?\]{{1,2}}{_LINK}"
    # of ChatGPT: 【1†source】, 【4:1†guide.pdf】
    rf"|【\s*(?:\d{{1,3}}:)?{_KIND}?(?P<corner>{_NUMBERS})(?:†[^】\n]{{0,200}})?\s*】"
    # <sup>1</sup>, <ref>[2]</ref>
    rf"|<(?P<tag>sup|cite|ref|source)>\s*\[?(?P<tagged>{_NUMBERS})\]?\s*</(?P=tag)>"
    # ^1^ as Pandoc writes it; behind a digit it is a power, except behind a year
    rf"|(?:(?<!\d)|(?<=\b[12]\d{{3}}))\^(?P<raised>{_NUMBERS})\^"
    rf"|\({_KIND}(?P<named>{_NUMBERS})\)"
    # without a word for it, only small numbers behind a word: several at the end of a clause, one
    # at the end of a sentence, "in 1902 (1)."
    rf"|(?<=[\w.!?] )[({{](?P<several>{_SMALL}(?:,\s*{_SMALL})+)[)}}](?=\s*(?:[.,;:!?](?!\w)|$|\n))"
    # Markers without a number of a passage: a page or a work ("[guide.pdf, p. 3]", "[@smith]",
    # "\cite{smith}", "(Smith et al., 2020)", "[Smith, 2020]"), or a place in a search of ChatGPT
    # ("turn0search1", ":contentReference[oaicite:0]").
    rf"|[(\[](?:{_WORK}[ ,:]{{1,2}}){{0,8}}{_PAGE}[)\]]|\[@[\w:-]{{1,60}}\]"
    rf"|\\cite\w?\{{[^{{}}\n]{{1,80}}\}}"
    r"|[(\[](?-i:[A-Z])[\w'-]{1,30} et al\.,? \d{4}[a-z]?[)\]]"
    r"|\[(?-i:[A-Z])[\w'-]{1,30}, \d{4}[a-z]?\]"
    r"|[\ue200-\ue2ff]?cite[\ue200-\ue2ff]?(?:turn\d{1,3}[a-z]{1,12}\d{1,3}[\ue200-\ue2ff]?)+"
    r"|【(?:turn\d{1,3}[a-z]{1,12}\d{1,3}|[\w .-]{0,40}†[^】\n]{0,200})】|\[oaicite:\d{1,3}\]"
    r"|:contentReference\[oaicite:\d{1,3}\](?:\{index=\d{1,3}\})?"
    rf"|(?<=[\w.!?] )[({{](?P<bare>{_SMALL})[)}}](?=\s*(?:[.!?](?!\w)|$|\n))",
    re.IGNORECASE | re.ASCII,
)
# What may stand between two markers that belong together: "[1], [2]".
_BETWEEN = re.compile(r"[ \t]*[,;][ \t]*")
_RANGE_OR_NUMBER = re.compile(rf"({_NUMBER})\s*[-–—]\s*({_NUMBER})|({_NUMBER})", re.ASCII)
_COUNTED = re.compile(
    r"\b(?:steps?|sections?|figures?|fig\.|tables?|chapters?|pages?|equations?|lines?"
    r"|items?|rows?)\s$",
    re.IGNORECASE,
)
"""Nouns before a number in brackets that is no citation: "see step [2]"."""
_VALUED = re.compile(
    r"\b(?:has|have|had|costs?|contains?|about|than|exactly|only|over|under)\s$", re.IGNORECASE
)
_NOUN = re.compile(r"\s[a-z]")
"""A number in brackets between ``_VALUED`` and this is a value: "has [14] halls"."""
_SUPERSCRIPT = re.compile(
    r"(?:(?<=[.,;:!?)\"'”’])|(?<=\s)|(?<=[^\W\d_]{4})|(?<=\b[12]\d{3})"
    r"|(?<=\w)(?=¹(?![⁰¹²³⁴⁵⁶⁷⁸⁹])))\s?([⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}(?:[,˒ʼ⸴]\s?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})*)"
)
"""Raised digits that cite: behind punctuation, a space, a year or a word of at least four letters;
a raised 1 also behind any other character. "m²" is a unit and "10⁶" a power."""
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹˒ʼ⸴", "0123456789,,,")


class CitationMarker(NamedTuple):
    """Citations that are written together, such as ``[1, 2]`` or ``[1], [2]``."""

    start: int
    """Offset of the first character of the marker."""
    end: int
    """Offset behind its last character."""
    numbers: tuple[int, ...]
    """The numbers that it cites, as written; empty where it names a page or a work."""


def find_citations(text: str) -> list[CitationMarker]:
    """Find the citations of a text in reading order.

    ``[1]``, ``[1, 2]``, ``[1-3]``, ``[^1]``, ``[#1]``, ``[[1]]``, ``[Doc 2]``, ``[2](https://...)``,
    ``\\[1\\]``, ``【3】``, ``【4:1†guide.pdf】``, ``(Source: 1)``, ``<sup>1</sup>``, ``^1^``, and
    at the end of a clause ``(1)`` and ``{1}``; raised digits only after :func:`spell_superscripts`.
    Forms that name a page or a work, as ``[guide.pdf, p. 3]``, are markers without a number.
    Markers with a comma or semicolon between them are one. A range that runs backwards names its
    two ends. Text, and no citation, are ``[note]``, ``[2023]``, intervals from 0 (``[0, 1]``), what
    is counted (``step [2]``), and code: what is between backticks, ``a[1]``, ``x = [1, 2]``.
    """
    text = mask_code_brackets(text)
    result: list[tuple[int, int, list[int]]] = []
    for match in _MARKER.finditer(text):
        start, end = match.span()
        # At most one of the groups has matched, since each belongs to another alternative.
        numbers = _expand_numbers(next(filter(None, match.group(*_FORMS)), ""))
        # "[0, 1]" is an interval: passages are numbered from 1.
        interval = len(numbers) == 2 and numbers[0] == 0 < numbers[1]
        is_value = _VALUED.search(text, max(0, start - 12), start) and _NOUN.match(text, end)
        if interval or is_value or _COUNTED.search(text, max(0, start - 12), start):
            continue
        # "[1], [2]" is one marker: extend the one before.
        if result and result[-1][1] < start and _BETWEEN.fullmatch(text, result[-1][1], start):
            start, _, before = result.pop()
            numbers = before + numbers
        result.append((start, end, numbers))
    return [CitationMarker(start, end, tuple(numbers)) for start, end, numbers in result]


_FORMS = ("square", "corner", "tagged", "raised", "named", "several", "bare")


def _expand_numbers(inside: str) -> list[int]:
    if inside.isdigit():
        return [int(inside)]
    numbers: list[int] = []
    for first, last, single in _RANGE_OR_NUMBER.findall(inside):
        if single:
            numbers.append(int(single))
        # A range that runs backwards or is too long stands for its two ends.
        elif 0 <= int(last) - int(first) < MAX_RANGE_NUMBERS:
            numbers.extend(range(int(first), int(last) + 1))
        else:
            # "[9-2]": not a range, so both numbers are cited.
            numbers.extend((int(first), int(last)))
    return numbers


def spell_superscripts(text: MappedText) -> MappedText:
    """Return a text in which raised digits that cite are markers in brackets."""
    return text.sub(_SUPERSCRIPT, lambda match: f" [{match[1].translate(_RAISED)}]")


def cites_document(response: str, document_count: int) -> bool:
    """Whether a response cites one of its documents, apart from a list of references."""
    # The list of references at the end names all documents, cited or not.
    text = spell_superscripts(MappedText.of(response)).text
    markers = find_citations(text[: find_references_start(text)])
    return any(0 < number <= document_count for marker in markers for number in marker.numbers)


def strip_citations(text: str) -> str:
    """Remove citation markers and the blanks before them; nothing else changes."""
    return MappedText.of(text).cut(find_marker_spans(text, find_citations(text))).text


def find_marker_spans(text: str, markers: list[CitationMarker]) -> Iterator[Span]:
    """Yield the span of each marker together with the blanks before it."""
    position = 0
    for marker in markers:
        text_before = text[position : marker.start].rstrip(" \t")
        yield position + len(text_before), marker.end
        position = marker.end


def find_citations_as_in_paper(text: str) -> tuple[int, ...]:
    """Return the number after each ``[`` that digits follow at once; ``[1, 2]`` gives 1 alone."""
    numbers = re.findall(r"\[(\d+)", text)
    return tuple(int(digits[:18]) for digits in numbers)  # of more the exact number does not matter


def strip_citations_as_in_paper(text: str) -> str:
    """Delete `` [`` + digits, ``[`` + digits, `` |`` and every ``]``, in this order."""
    text = re.sub(r" \[\d+", "", text)
    text = re.sub(r"\[\d+", "", text)
    return text.replace(" |", "").replace("]", "")


# Brackets of code -------------------------------------------------------------------------------

_CODE = re.compile(
    r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|`[^`\n]+`"
    # an index of a variable with a name of one letter or with underscores
    r"|(?<![\w.])(?:[a-z]|[a-z]\w{0,40}_\w{0,40})(?:\[[0-9]{1,9}\])+"
    # one before an assignment or a call; a list that is assigned
    r"|\w(?:\[[0-9]{1,9}\])+(?=\s?(?:[-+*/]?=|\+\+|--)|\.\w{1,99}\()|=\s?\[[^\[\]\n]*\]",
    re.DOTALL,
)
_OPENING = str.maketrans("[【", "\ue000\ue001")


def mask_code_brackets(text: str) -> str:
    """Return a text of the same length in which the brackets of code do not open a citation.

    Each opening bracket inside code is replaced by a character for private use.
    """
    if "[" not in text and "【" not in text:
        return text
    return _CODE.sub(lambda code: code.group().translate(_OPENING), text)


# Lists of references ----------------------------------------------------------------------------

# An entry without a marker: "- guide.pdf, p. 3", "2. The City Guide".
_SIMPLE_ENTRY = re.compile(r"\s*(?:[-*•]\s+|\d{1,3}[.)]\s+)(?P<text>\S.*)")
# An entry with a marker: "[1] guide.pdf", "- [^2]: https://...", "【3】 City Guide".
_ENTRY = re.compile(
    r"\s*(?:[-*•]\s+|\d{1,3}[.)]\s+)?(?:\\?\[\^?\d{1,3}\\?\]"
    r"|【\d{1,3}[^】\n]{0,200}】)(?P<colon>:?)(?P<text>.*)",
    re.ASCII,
)
_HEADING = re.compile(
    r"\W*(?:list of )?(?:sources?|references?|citations?|bibliography|works cited"
    r"|footnotes?|quellen"
    r"|literatur|références|fuentes|referencias|fontes|referências|fonti|bronnen|参考文献|出典|来源)\W*",
    re.IGNORECASE,
)
_LOCATOR = re.compile(
    rf"(?:https?://|www\.|doi:)\S+|{_FILE}|\b{_PAGE}|\((?:{_PAGE}|[12]\d{{3}})\)", re.IGNORECASE
)
"""What tells where a source is: a file, a page, a year in brackets, an address."""
_ADDRESS = re.compile(r"(?:\bsee\b:?\s*)?<?(?:https?://|www\.|doi:)\S+", re.IGNORECASE)
_DATE = r"(?:[a-z]{3,9}\.? \d{1,2}, \d{4}|\d{1,2} [a-z]{3,9}\.?,? \d{4}|\d{4}-\d\d-\d\d)"
_ACCESS = re.compile(
    rf"\[online\]|\b(?:last )?(?:accessed|retrieved)(?: on)?:? {_DATE}", re.IGNORECASE
)
"""What bibliographies say of an address: "[Online]", "[Accessed May 20, 2021]"."""
# A title at the beginning of an entry: "City Guide: ...", '"City Guide"', "(Smith, 2020)".
_LABEL = re.compile(r"[^.!?]{0,80}?:\s+|[*_\"“].{0,200}?[*_\"”]|\([^()]{0,40}\d{4}[^()]{0,20}\)")
_CAPITAL = re.compile(r"\b[A-Z]")


def find_references_start(text: str) -> int:
    """Return where the list of references begins that ends a response; its length without one.

    The list consists of lines that begin with a marker. It stands below a heading such as
    "Sources:", or each line has a colon after its marker or an address in it. A line that states
    something is not a reference, because its statement must be judged.
    """
    # Walk up from the last line as long as the lines are entries or blank.
    lines = text.splitlines(keepends=True)
    end = len(lines)
    entries: list[re.Match[str]] = []
    while end:
        entry = _ENTRY.fullmatch(lines[end - 1].rstrip())
        if lines[end - 1].strip() and (entry is None or _is_statement(entry["text"])):
            break
        entries += [entry] if entry else []
        end -= 1
    # Without a marker in the list, look for a list of files, pages or titles below a heading.
    if not entries:
        end, entries = _find_unmarked_entries(lines)
    headed = end > 0 and _HEADING.fullmatch(lines[end - 1].rstrip()) is not None
    are_references = headed or all(
        "://" in entry_match.group() or entry_match.groupdict().get("colon")
        for entry_match in entries
    )
    # A response that is nothing but a list of references is the answer itself.
    body = "".join(lines[: end - headed])
    return len(body) if entries and body.strip() and are_references else len(text)


def is_reference_entry(text: str) -> bool:
    """Whether a text names a source with its address as bibliographies do, and states nothing."""
    bare = _ACCESS.sub("", _ADDRESS.sub("", text))
    return (
        _ADDRESS.search(text) is not None
        and _ACCESS.search(text) is not None
        and not is_statement(bare)
        and not any(map(is_negation, plain_words(bare)))
    )


def _find_unmarked_entries(lines: Sequence[str]) -> tuple[int, list[re.Match[str]]]:
    """Find a final list without markers whose items are files, pages, addresses or titles.

    Returns:
        The number of the line where the list begins, and its entries. There is no list unless one
        entry at least has a file, page, year or address: titles alone may be an answer.
    """
    end = len(lines)
    entries: list[re.Match[str]] = []
    while end:
        entry = _SIMPLE_ENTRY.fullmatch(lines[end - 1].rstrip())
        if lines[end - 1].strip() and (entry is None or not _names_work(entry["text"])):
            break
        entries += [entry] if entry else []
        end -= 1
    located = any(_LOCATOR.search(entry["text"]) for entry in entries)
    return (end, entries) if located else (len(lines), [])


def _names_work(entry: str) -> bool:
    """Whether an entry names a work by a file, page, year or address, or by a title.

    Such an entry states nothing, has no negation, and has no number of another kind.
    """
    text = _LOCATOR.sub("", entry).strip(" .,:-–—")
    words = text.split()
    if any(map(is_negation, plain_words(text))) or re.search(r"\d", text) or is_statement(text):
        return False
    # Most words begin with a capital, or a locator was removed from the entry.
    return 2 * len(_CAPITAL.findall(text)) > len(words) or len(words) < len(entry.split())


def _is_statement(entry: str) -> bool:
    """Whether an entry of a list of references states something and is not a title.

    A title has most of its words in capitals, a date in brackets, or is in quotation marks.
    """
    text = _ADDRESS.sub("", entry).strip(" .:-–—")
    is_title = 2 * len(_CAPITAL.findall(text)) > len(text.split())
    if _LABEL.match(text) or is_title:
        return False
    return is_statement(text) or any(map(is_negation, plain_words(text)))

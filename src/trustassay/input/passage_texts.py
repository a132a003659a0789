"""Splits texts that contain several passages, and finds titles in texts.

The first of these forms that fits is used:

1. elements in tags,
2. numbered passages,
3. passages that each begin with the same header, "Title: ...",
4. parts between lines of dashes, or else between blank lines.

Lines that belong together stay together: a heading and its paragraph, a list and its lead, a table,
code, and the halves of a sentence.
"""

import re
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Any

from trustassay.input.layouts import NAMES, normalise_name

RawPassage = str | dict[str, Any]
"""A text, or an object with ``text``, and ``title`` and ``id`` where these are known."""
TEXT_NAMES: tuple[str, ...] = tuple(NAMES["passages"]["texts"].split())
"""Names of the text of a passage, in normal form."""
MAX_TAG_DEPTH = 4
"""Levels of elements around passages: ``<context><documents><document>`` are three."""
_normal = lru_cache(maxsize=4096)(normalise_name)
_SECTION = (
    r"(?:contexts?|documents?|passages?|sources?|excerpts?|search results|knowledge(?: base)?)"
)
_CONTEXT = re.compile(  # "Context:", "Use the following passages:", "Answer by the sources below:"
    rf"^[^\w\n]{{0,8}}{_SECTION}[^\w\n:]{{0,8}}:"
    rf"|^[^\n:]{{0,99}}\b(?:following|below|provided|given|retrieved)\b[^\n:]{{0,50}}\b{_SECTION}\b"
    r"[^\n:]{0,50}:[ \t]*$"
    rf"|^[^\n:]{{0,99}}\b{_SECTION}\b[^\n:]{{0,50}}\b(?:following|below)\b[^\n:]{{0,50}}:[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
# The part of a prompt behind its passages: "Question: ...", "Instructions: ...".
_AFTER = re.compile(
    r"^[^\w\n]{0,8}(?:question|instructions?|rules?|task|answer)[^\w\n:]{0,8}:.*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
# A line that begins with "[1]".
_FIRST = re.compile(r"^[ \t]*\[1\][ \t]*\S", re.MULTILINE)
_UNIT = (
    r"(?:contexts?|documents?|doc|passages?|sources?|excerpts?|chunk|snippet|(?:search )?results?)"
)
_NUMBERED = re.compile(  # "[1] ...", "Document [2](Title: ...): ...", "**Source 3** (title)"
    r"[ \t#*=-]{0,12}(?:\[(?P<mark>\d{1,3})\]"
    rf"|\[?{_UNIT}[ \t]*#?[\[(]?(?P<number>\d{{1,3}})(?=[ \t]*(?:[\])(:.*=–-]|$))"
    r"(?:[ \t]*:[ \t]*(?P<named>[^\[\]\n]{1,200})\]|[\])]{0,2})[ \t]*\*{0,2}[ \t]*"
    r"(?:\((?:title[ \t]*:)?(?P<title>[^()\n]{1,200})\))?)[ \t]*(?:[*=–-]{1,6}|[:.)])?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_ADDRESS = re.compile(r"\w+://\S+|www\.\S+|[\w./\\-]*\.\w{2,5}|(?:\w+ ?[:=] ?)?-?[\d.,]+ ?%?")
"""An address, a file name or a score: text in brackets that is not a title."""
# "Title: City Guide" in the first line, with a text below it.
_TITLE = re.compile(r"\s*title:[ \t]*(\S[^\n]*)\n\s*(?=\S)(.+)", re.IGNORECASE | re.DOTALL)
# A line "Name: value", also with marks of Markdown: "**Source:** guide.pdf".
_HEADER = re.compile(r"[#*_\s-]{0,6}([A-Za-z][A-Za-z _]{0,23}?)[*_]{0,2}:[*_]{0,2}(?:[ \t]+(.*)|)")
_TITLE_KEYS = frozenset({"title", "heading", "headline", "document_title", "page_title"})
_ADDRESS_KEYS = frozenset("source url link uri file file_path filename page page_label".split())
_SCORE_KEYS = frozenset({"score", "relevance", "similarity", "distance", "rank", "id", "doc_id"})
_EDGES = re.compile(r"\A[ \t]*[-=*_]{3,}[ \t]*\n|\n[ \t]*[-=*_]{3,}[ \t]*\Z")
"""Lines of dashes at the ends of a passage."""
_LINK = re.compile(r"\((?:https?://|www\.)[^()\s]*\)")
_TEXT_KEYS = frozenset({"description", "body", "summary", *TEXT_NAMES})
# A line of dashes, equals signs, stars or underscores between passages.
_SEPARATOR = re.compile(r"[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,})[ \t]*")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_RULE = re.compile(r"[ \t|]*:?-{2,}:?[ \t]*\|[ \t|:-]*")
"""The line below the header of a table in Markdown."""
_BULLET = re.compile(r"[ \t]*(?:[-*+•‣◦–]|\(?\d{1,3}[.)]|\(?[a-z][.)])[ \t]+\S")
_MARKED = re.compile(
    r"(?:#{1,6}[ \t]+(\S[^\n]{0,199}?)[ \t#]{0,9}|(?:\*\*|__)([^*_\n]{1,200})(?:\*\*|__):?)[ \t]*"
)
"""A heading in Markdown: "## Prices", or a line in bold type."""
# A line that may be a heading by its form: a capital or digit first, none of ",;|=" in it, no full
# stop at its end.
_UNMARKED = re.compile(r"[^\W_a-z][^\n,;|={}<>\t\"]*[\w)]")
MAX_HEADING_WORDS, MAX_HEADING_CHARACTERS = 8, 60
"""Limits for a heading without marks; longer lines are mostly the first line of a paragraph."""
MAX_HEADINGS = 3
"""Headings above one paragraph that become its title."""
MAX_HEADERS = 6
"""Lines at the start of a block that are searched for headers."""
MIN_CUT_WORDS, MAX_LEAD_WORDS = 6, 40
"""Words of a paragraph that leads to the next one, or is the first half of a sentence. Longer ones
are mostly chunks of a retriever, which may end anywhere (measured by
``lab/benchmarks/shapes.py``)."""
_REGION = re.compile(r".*s|context|knowledge(?:_base)?", re.IGNORECASE)
"""Names of tags around several passages; all other tags enclose a single passage."""
_TAG = re.compile(
    r"<(/?)(documents?|docs?|passages?|sources?|contexts?|chunks?|snippets?|excerpts?|results?"
    r"|search_results?|search results|knowledge(?:[_ ]base)?)\b([^<>\n]{0,500})>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"\b(?:title|name)\s*=\s*(?:\"([^\"\n]+)\"|'([^'\n]+)')", re.IGNORECASE)


def split_title(text: str) -> RawPassage:
    """Return a text with its title apart, if its first line is "Title: ..."."""
    match = _TITLE.match(text)
    return {"title": match[1].strip(), "text": match[2].strip()} if match else text


def find_contexts(prompt: str) -> list[str]:
    """Return the parts of an instruction that contain passages.

    These are elements in tags, or else the text below a heading such as "Context:", or else the
    text from a line that begins with ``[1]``.
    """
    # "<result>" mostly shows the form of the answer, not a passage.
    elements = [
        element
        for element in _find_elements(prompt)[0]
        if not element[0].lower().startswith("result")
    ]
    if elements:
        # Tags around several passages have no further use; one around a single passage may have
        # its title, so it is kept.
        return [
            _strip_mark(inner.strip())
            if _REGION.fullmatch(name)
            else f"<{name}{attributes}>{inner}</{name}>"
            for name, attributes, inner in elements
        ]
    heading, first = _CONTEXT.search(prompt), _FIRST.search(prompt)
    start = heading.end() if heading else first.start() if first else len(prompt)
    return [_strip_mark(_AFTER.sub("", prompt[start:]).strip())]


def split_passages(text: str, levels_left: int = MAX_TAG_DEPTH) -> list[RawPassage]:
    """Return the passages of a text, by the first form of the module's docstring that fits.

    A text of a single passage is returned as it is.

    Args:
        text: the text.
        levels_left: levels of tags around passages that may still be opened.
    """
    if "\n" not in text and "<" not in text:
        return [text]
    unix = text.replace("\r\n", "\n").strip()
    # Tags count only where nothing but a lead stands around them: else they are part of the text.
    elements, around = _find_elements(unix)
    if elements and not around and levels_left:
        return [part for element in elements for part in _read_element(*element, levels_left - 1)]
    blocks = (
        _split_numbered(unix)
        or _split_at_headers(unix)
        or list(map(_read_block, _split_paragraphs(unix)))
    )
    # A single passage keeps its original white space and line ends.
    return [text] if blocks in ([], [unix]) else blocks


def _find_elements(text: str) -> tuple[list[tuple[str, str, str]], str]:
    """Return the outermost elements that may contain passages, and the text around them.

    Each element has its name, its attributes and its inner text. A single line around them that
    ends with a colon is left out of the text.
    """
    elements, around, depth, place = list[tuple[str, str, str]](), "", 0, 0
    opening: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if opening is None and not tag[1]:
            opening, depth = tag, 1
        # Only tags of the same name are counted: those of others are inside.
        elif opening and tag[2].lower() == opening[2].lower():
            depth += -1 if tag[1] else 1
            if not depth:
                elements.append((opening[2], opening[3], text[opening.end() : tag.start()]))
                around += text[place : opening.start()]
                opening, place = None, tag.end()
    around = (around + text[place:]).strip()
    return elements, "" if around.endswith(":") and "\n" not in around else around


def _read_element(name: str, attributes: str, inner: str, levels_left: int) -> list[RawPassage]:
    """Return the passages in an element: a single one, or several by its name."""
    if _REGION.fullmatch(name):
        return split_passages(_strip_mark(inner.strip()), levels_left)
    match, own_title = _ATTRIBUTE.search(attributes), _inner_text(inner, "title")
    title = own_title or (match[1] or match[2] if match else "")
    texts = filter(None, (_inner_text(inner, name_of_text) for name_of_text in TEXT_NAMES))
    text = next(texts, inner.replace(f"<title>{own_title}</title>", "")).strip()
    return [{"title": title.strip(), "text": text} if title else text]


def _inner_text(text: str, name: str) -> str:
    """Return the inner text of the first element with a name; empty without one."""
    inner, closing, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return inner if closing else ""


def _strip_mark(text: str) -> str:
    """Return a text without the mark "[1]" of its only passage."""
    mark = _NUMBERED.match(text)
    return text[mark.end() :] if mark and not _split_numbered(text) else text


def _split_numbered(text: str) -> list[RawPassage]:
    """Return passages that are numbered from 0 or 1 in their first lines; none if not several.

    Text above the first one is a passage as well, unless it is a single line that leads to them.
    """
    starts: list[re.Match[str]] = []
    place, number = 0, 0
    while place < len(text):
        match = _NUMBERED.match(text, place)
        value = int(match["mark"] or match["number"]) if match else -1
        # Numbers must be consecutive, so that other numbered lines inside a passage do not split
        # it.
        if match and (value == number or (value == 1 and not starts)):
            starts.append(match)
            number = value + 1
        place = text.find("\n", place) + 1 or len(text)
    if len(starts) < 2:
        return []
    above = text[: starts[0].start()].strip()
    leads = "\n" not in above and (above.endswith(":") or not _ends_sentence(above))
    parts = [] if leads else _split_paragraphs(above)
    ends = [match.start() for match in starts[1:]] + [len(text)]
    numbered = [
        _read_numbered_passage(start, text[start.end() : end])
        for start, end in zip(starts, ends, strict=True)
    ]
    return [*map(_read_block, parts), *numbered]


def _read_numbered_passage(match: re.Match[str], text: str) -> RawPassage:
    """Return the passage behind a mark that may contain its title: "Document 1 (title): ..."."""
    title = (match["title"] or match["named"] or "").strip()
    text = text.replace("**\n", "\n", 1) if match[0].lstrip().startswith("**") else text
    if title and not _ADDRESS.fullmatch(title):
        return {"title": title, "text": _EDGES.sub("", text.strip())}
    return _read_block(text.strip())


def _split_at_headers(text: str) -> list[RawPassage]:
    """Return passages that each begin with the same header, "Title: ..." or "Source: ..."; none if
    not several."""
    lines = text.split("\n")
    keys = [_parse_header(line)[0] for line in lines]
    # The header that repeats is the first one with a title or an address.
    first = next((key for key in keys[:3] if key in _TITLE_KEYS | _ADDRESS_KEYS), None)
    starts = [place for place, key in enumerate(keys) if key == first]
    above = "".join(lines[: starts[0]] if starts else ()).strip()
    if len(starts) < 2 or (above and not above.endswith(":")):
        return []
    ends = [*starts[1:], len(lines)]
    return [_read_block("\n".join(lines[a:b]).strip()) for a, b in zip(starts, ends, strict=True)]


def _parse_header(line: str) -> tuple[str, str]:
    """Return the name and the value of a header "Name: value"; both empty for other lines."""
    match = _HEADER.fullmatch(line)
    return (_normal(match[1]), (match[2] or "").strip()) if match else ("", "")


def _split_paragraphs(text: str) -> list[str]:
    """Return the parts of a text between lines of dashes, or else between blank lines."""
    blocks, sections, in_code = [list[str]()], [list[str]()], False
    for line in text.split("\n"):
        # Blank lines and dashes inside a fence of code separate nothing.
        in_code ^= bool(_FENCE.match(line))
        if not in_code and _SEPARATOR.fullmatch(line):
            blocks.append([])
            sections.append([])
            continue
        sections[-1].append(line)
        if in_code or line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    is_parted = len(sections) > 1
    parts = ["\n".join(lines).rstrip().strip("\n") for lines in (sections if is_parted else blocks)]
    parts = list(filter(None, parts))
    together = [parts[:1]] if parts else []
    for before, after in pairwise(parts):
        # Headers above a blank line belong to the part below it.
        is_header = all(_is_passage_header(_parse_header(line)) for line in before.split("\n"))
        if is_header or (not is_parted and _continues(before, after)):
            together[-1].append(after)
        else:
            together.append([after])
    return ["\n\n".join(group) for group in together]


def _is_passage_header(header: tuple[str, str]) -> bool:
    """Whether a header has the title, the address or the score of a passage."""
    return header[0] in _TITLE_KEYS or _is_address(header)


def _is_address(header: tuple[str, str]) -> bool:
    """Whether a header has an address or a score; "Distance: 3 km" is part of a text."""
    key, value = header
    return key in _ADDRESS_KEYS or (key in _SCORE_KEYS and " " not in value)


def _continues(before: str, after: str) -> bool:
    """Whether a block continues the block before it."""
    last, lines, words = before.rstrip(), before.split("\n"), len(before.split())
    if len(lines) == 1 and _is_heading(before, after):
        return True
    is_open = not _ends_sentence(last)
    item, row = bool(_BULLET.match(after)), after.startswith("|")
    # A short lead belongs to whatever follows; behind a long paragraph only a list, table or code
    # does.
    if last.endswith((":", "：")):
        return words <= MAX_LEAD_WORDS or item or row or bool(_FENCE.match(after))
    if _BULLET.match(before) and (item or after[0] in " \t"):
        return True
    if row and lines[-1].startswith("|"):
        # A rule below its first line begins another table.
        return not any(map(_RULE.fullmatch, after.split("\n")[1:2]))
    is_cut = MIN_CUT_WORDS <= words <= MAX_LEAD_WORDS and after[0].islower()
    return is_open and (item or is_cut)


def _ends_sentence(text: str) -> bool:
    return text.rstrip(" \"'”’)]*_").endswith((".", "!", "?", "…", "。", "！", "？"))


def _is_heading(line: str, below: str) -> bool:
    """Whether a line is a heading, by its marks, or by its form and the text below it.

    Args:
        line: the line.
        below: the text below it: prose, a list or a table; empty where that is not known.
    """
    line, below = line.strip(), below.lstrip()
    if _MARKED.fullmatch(line):
        return True
    if _BULLET.match(line):
        return False
    short = len(line) <= MAX_HEADING_CHARACTERS and len(line.split()) <= MAX_HEADING_WORDS
    if not short or not _UNMARKED.fullmatch(line) or _parse_header(line)[0]:
        return False
    # A paragraph may be wrapped at a short width; then its lines have about the same length.
    longer = len(line) < 40 or len(below.partition("\n")[0]) > 1.5 * len(line)
    goes_on = below[:1].islower() or not (longer or not below)
    listed = bool(_BULLET.match(below)) or below.startswith("|")
    return not goes_on and (listed or not below or _ends_sentence(below))


def _read_block(text: str) -> RawPassage:
    """Return the single passage of a text, with its title apart if a header or heading has one."""
    text = _EDGES.sub("", text)
    title, body = _read_headers(text)
    if body is text:
        titles = list[str]()
        # Headings one below the other become one title, "Prices: Members"; only the first of them
        # may be without marks.
        for _ in range(MAX_HEADINGS):
            line, _, below = body.strip().partition("\n")
            match = _MARKED.fullmatch(line)
            if not below.strip() or not _is_heading(line, below) or (titles and not match):
                break
            titles.append((match[1] or match[2] if match else line).strip())
            body = below
        title = ": ".join(titles)
    title = _LINK.sub("", title).strip()
    return {"title": title, "text": body.strip()} if title and body.strip() else body


def _read_headers(text: str) -> tuple[str, str]:
    """Return the title and the text of a block with headers such as "Title: ..." and "URL: ...".

    Headers stand above or below the text; addresses and scores are dropped. Without headers the
    title is empty and the text is the block itself.
    """
    lines = text.split("\n")
    headers = list(map(_parse_header, lines[:MAX_HEADERS]))
    if not any(key in _TITLE_KEYS | _ADDRESS_KEYS for key, _ in headers):
        return "", text
    # Any header may stand above "Content: ...", but only known ones above a text without a name.
    above = list(takewhile(lambda header: header[0] and header[0] not in _TEXT_KEYS, headers))
    start, body = len(above), list[str]()
    if start < len(headers) and headers[start][0] in _TEXT_KEYS:
        body = [headers[start][1], *lines[start + 1 :]]
    else:
        above = list(takewhile(_is_passage_header, headers))
        body = lines[len(above) :]
    other_lines = [
        line
        for line, line_header in zip(lines, above, strict=False)
        if not _is_passage_header(line_header)
    ]
    # Addresses may also stand at the end of a block.
    below = list(takewhile(_is_address, map(_parse_header, reversed(body))))
    body = body[: len(body) - len(below)]
    titles = [value for key, value in above if key in _TITLE_KEYS]
    titles += [v for k, v in above + below if k in _ADDRESS_KEYS and not _ADDRESS.fullmatch(v)]
    if not any(map(str.strip, body)):
        return "", text  # a block of headers alone stays as it is
    return next(iter(titles), ""), "\n".join((*other_lines, *body)).strip()

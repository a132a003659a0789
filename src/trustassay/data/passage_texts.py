"""Texts that hold several passages, and titles that stand in texts.

In this order: elements in tags, passages that are numbered, passages below a header "Title: ..."
each, and parts between lines of dashes or lines without text. What belongs together stays together:
a heading and its paragraph, a list and its lead line, a table, code, and a sentence that is broken
in the middle.
"""

import re
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Any

from trustassay.data.layouts import NAMES, normal

Passage = str | dict[str, Any]
"""A text, or an object with ``text``, and with ``title`` and ``id`` where these are known."""
TEXT_NAMES: tuple[str, ...] = tuple(NAMES["passages"]["texts"].split())
"""Names of the text of a passage, in normal form."""
DEEPEST_TAGS = 4
"""Elements around passages: ``<context><documents><document>`` are three."""
_normal = lru_cache(maxsize=4096)(normal)
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
_AFTER = re.compile(
    r"^[^\w\n]{0,8}(?:question|instructions?|rules?|task|answer)[^\w\n:]{0,8}:.*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
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
"""An address, a file name or a score, which is no title."""
_TITLE = re.compile(r"\s*title:[ \t]*(\S[^\n]*)\n\s*(?=\S)(.+)", re.IGNORECASE | re.DOTALL)
_HEADER = re.compile(r"[#*_\s-]{0,6}([A-Za-z][A-Za-z _]{0,23}?)[*_]{0,2}:[*_]{0,2}(?:[ \t]+(.*)|)")
_TITLE_KEYS = frozenset({"title", "heading", "headline", "document_title", "page_title"})
_ADDRESS_KEYS = frozenset("source url link uri file file_path filename page page_label".split())
_SCORE_KEYS = frozenset({"score", "relevance", "similarity", "distance", "rank", "id", "doc_id"})
_EDGES = re.compile(r"\A[ \t]*[-=*_]{3,}[ \t]*\n|\n[ \t]*[-=*_]{3,}[ \t]*\Z")
"""Lines of dashes at the ends of a passage."""
_LINK = re.compile(r"\((?:https?://|www\.)[^()\s]*\)")
_TEXT_KEYS = frozenset({"description", "body", "summary", *TEXT_NAMES})
_SEPARATOR = re.compile(r"[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,})[ \t]*")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_RULE = re.compile(r"[ \t|]*:?-{2,}:?[ \t]*\|[ \t|:-]*")
"""The line below the header of a table in Markdown."""
_BULLET = re.compile(r"[ \t]*(?:[-*+•‣◦–]|\(?\d{1,3}[.)]|\(?[a-z][.)])[ \t]+\S")
_MARKED = re.compile(
    r"(?:#{1,6}[ \t]+(\S[^\n]{0,199}?)[ \t#]{0,9}|(?:\*\*|__)([^*_\n]{1,200})(?:\*\*|__):?)[ \t]*"
)
"""A heading with the marks of Markdown."""
_UNMARKED = re.compile(r"[^\W_a-z][^\n,;|={}<>\t\"]*[\w)]")
MAX_HEADING_WORDS, MAX_HEADING_CHARACTERS = 8, 60
"""Of a heading without marks; longer lines are mostly the first of a paragraph."""
MAX_HEADINGS = 3
"""Headings above one paragraph that become its title."""
MAX_HEADERS = 6
"""Lines among which the header of a block is looked for."""
MIN_CUT_WORDS, MAX_LEAD_WORDS = 6, 40
"""Words of a paragraph that leads to the next one, or is the first half of a sentence. Longer ones
are mostly chunks of a retriever, which ends them anywhere (``benchmarks/shapes.py``)."""
_REGION = re.compile(r".*s|context|knowledge(?:_base)?", re.IGNORECASE)
"""Tags around several passages; others are around one."""
_TAG = re.compile(
    r"<(/?)(documents?|docs?|passages?|sources?|contexts?|chunks?|snippets?|excerpts?|results?"
    r"|search_results?|search results|knowledge(?:[_ ]base)?)\b([^<>\n]{0,500})>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"\b(?:title|name)\s*=\s*(?:\"([^\"\n]+)\"|'([^'\n]+)')", re.IGNORECASE)


def split_title(text: str) -> Passage:
    """Return a text without a first line that says its title."""
    match = _TITLE.match(text)
    return {"title": match[1].strip(), "text": match[2].strip()} if match else text


def context_in(prompt: str) -> list[str]:
    """Return the parts of an instruction that show passages: elements in tags, what stands below a
    heading that names them, or from a line on that begins with ``[1]``."""
    elements = [one for one in _tagged(prompt)[0] if not one[0].lower().startswith("result")]
    if elements:
        # Tags around a region say no more; those around one passage may have its title.
        return [
            _without_mark(inner.strip())
            if _REGION.fullmatch(name)
            else f"<{name}{attributes}>{inner}</{name}>"
            for name, attributes, inner in elements
        ]
    heading, first = _CONTEXT.search(prompt), _FIRST.search(prompt)
    start = heading.end() if heading else first.start() if first else len(prompt)
    return [_without_mark(_AFTER.sub("", prompt[start:]).strip())]


def split_text(text: str, left: int = DEEPEST_TAGS) -> list[Passage]:
    """Return the passages of a text: those in tags, numbered ones, those below a header each, or
    what lines without text, or lines of dashes, part. A text of one passage is that one.

    ``left`` is how many tags may stand around them.
    """
    if "\n" not in text and "<" not in text:
        return [text]
    unix = text.replace("\r\n", "\n").strip()
    elements, around = _tagged(unix)
    if elements and not around and left:
        return [part for one in elements for part in _passages_in_tag(*one, left - 1)]
    blocks = _numbered(unix) or _below_headers(unix) or list(map(_block, _paragraphs(unix)))
    return [text] if blocks in ([], [unix]) else blocks  # one passage is not changed


def _tagged(text: str) -> tuple[list[tuple[str, str, str]], str]:
    """Return the outermost elements that hold passages, each with its name, attributes and inside;
    and what stands around them, but for one line that ends with a colon."""
    elements, around, depth, place = list[tuple[str, str, str]](), "", 0, 0
    opening: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if opening is None and not tag[1]:
            opening, depth = tag, 1
        elif opening and tag[2].lower() == opening[2].lower():
            depth += -1 if tag[1] else 1
            if not depth:
                elements.append((opening[2], opening[3], text[opening.end() : tag.start()]))
                around += text[place : opening.start()]
                opening, place = None, tag.end()
    around = (around + text[place:]).strip()
    return elements, "" if around.endswith(":") and "\n" not in around else around


def _passages_in_tag(name: str, attributes: str, inner: str, left: int) -> list[Passage]:
    """Return the passages in an element: one, or those of a region."""
    if _REGION.fullmatch(name):
        return split_text(_without_mark(inner.strip()), left)
    match, own_title = _ATTRIBUTE.search(attributes), _inside(inner, "title")
    title = own_title or (match[1] or match[2] if match else "")
    texts = filter(None, (_inside(inner, one) for one in TEXT_NAMES))
    text = next(texts, inner.replace(f"<title>{own_title}</title>", "")).strip()
    return [{"title": title.strip(), "text": text} if title else text]


def _inside(text: str, name: str) -> str:
    """Return what stands in the first element of a name, empty without one."""
    inner, closing, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return inner if closing else ""


def _without_mark(text: str) -> str:
    """Return a text without the mark of a first passage, "[1]", where no second one follows."""
    mark = _NUMBERED.match(text)
    return text[mark.end() :] if mark and not _numbered(text) else text


def _numbered(text: str) -> list[Passage]:
    """Return passages whose first lines count them from 0 or 1; none if there are not several.
    What stands above the first is one, too, but for a line that leads to them."""
    starts: list[re.Match[str]] = []
    place, number = 0, 0
    while place < len(text):
        match = _NUMBERED.match(text, place)
        value = int(match["mark"] or match["number"]) if match else -1
        if match and (value == number or (value == 1 and not starts)):
            starts.append(match)
            number = value + 1
        place = text.find("\n", place) + 1 or len(text)
    if len(starts) < 2:
        return []
    above = text[: starts[0].start()].strip()
    leads = "\n" not in above and (above.endswith(":") or not _ends_sentence(above))
    parts = [] if leads else _paragraphs(above)
    ends = [match.start() for match in starts[1:]] + [len(text)]
    numbered = [_counted(one, text[one.end() : end]) for one, end in zip(starts, ends, strict=True)]
    return [*map(_block, parts), *numbered]


def _counted(match: re.Match[str], text: str) -> Passage:
    """Return the passage below a mark, which may name its title: "Document 1 (title): ..."."""
    title = (match["title"] or match["named"] or "").strip()
    text = text.replace("**\n", "\n", 1) if match[0].lstrip().startswith("**") else text
    if title and not _ADDRESS.fullmatch(title):
        return {"title": title, "text": _EDGES.sub("", text.strip())}
    return _block(text.strip())


def _below_headers(text: str) -> list[Passage]:
    """Return passages that begin with the same header each, "Title: ..." or "Source: ..."; none if
    there are not several."""
    lines = text.split("\n")
    keys = [_header(line)[0] for line in lines]
    first = next((key for key in keys[:3] if key in _TITLE_KEYS | _ADDRESS_KEYS), None)
    starts = [place for place, key in enumerate(keys) if key == first]
    above = "".join(lines[: starts[0]] if starts else ()).strip()
    if len(starts) < 2 or (above and not above.endswith(":")):
        return []
    ends = [*starts[1:], len(lines)]
    return [_block("\n".join(lines[a:b]).strip()) for a, b in zip(starts, ends, strict=True)]


def _header(line: str) -> tuple[str, str]:
    """Return the name and the value of a header "Name: value"; empty where a line is none."""
    match = _HEADER.fullmatch(line)
    return (_normal(match[1]), (match[2] or "").strip()) if match else ("", "")


def _paragraphs(text: str) -> list[str]:
    """Return the parts of a text between lines of dashes, or else between lines without text."""
    blocks, sections, in_code = [list[str]()], [list[str]()], False
    for line in text.split("\n"):
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
        is_header = all(_is_about(_header(line)) for line in before.split("\n"))
        if is_header or (not is_parted and _belongs(before, after)):
            together[-1].append(after)
        else:
            together.append([after])
    return ["\n\n".join(one) for one in together]


def _is_about(header: tuple[str, str]) -> bool:
    """Return whether a header tells the title, the address or the score of a passage."""
    return header[0] in _TITLE_KEYS or _is_address(header)


def _is_address(header: tuple[str, str]) -> bool:
    """Return whether a header tells an address or a score; "Distance: 3 km" is a part of a text."""
    key, value = header
    return key in _ADDRESS_KEYS or (key in _SCORE_KEYS and " " not in value)


def _belongs(before: str, after: str) -> bool:
    """Return whether a block goes on with what stands before it."""
    last, lines, words = before.rstrip(), before.split("\n"), len(before.split())
    if len(lines) == 1 and _is_heading(before, after):
        return True
    is_open = not _ends_sentence(last)
    item, row = bool(_BULLET.match(after)), after.startswith("|")
    if last.endswith((":", "：")):
        return words <= MAX_LEAD_WORDS or item or row or bool(_FENCE.match(after))
    if _BULLET.match(before) and (item or after[0] in " \t"):
        return True
    if row and lines[-1].startswith("|"):
        return not any(map(_RULE.fullmatch, after.split("\n")[1:2]))  # else another table
    is_cut = MIN_CUT_WORDS <= words <= MAX_LEAD_WORDS and after[0].islower()
    return is_open and (item or is_cut)


def _ends_sentence(text: str) -> bool:
    return text.rstrip(" \"'”’)]*_").endswith((".", "!", "?", "…", "。", "！", "？"))


def _is_heading(line: str, below: str) -> bool:
    """Return whether a line is a heading: by its marks, or by its form and the prose, the list or
    the table below it; ``below`` is empty where that is not known."""
    line, below = line.strip(), below.lstrip()
    if _MARKED.fullmatch(line):
        return True
    if _BULLET.match(line):
        return False
    short = len(line) <= MAX_HEADING_CHARACTERS and len(line.split()) <= MAX_HEADING_WORDS
    if not short or not _UNMARKED.fullmatch(line) or _header(line)[0]:
        return False
    # A paragraph may be wrapped at a short width: then its lines are about as long as each other.
    longer = len(line) < 40 or len(below.partition("\n")[0]) > 1.5 * len(line)
    goes_on = below[:1].islower() or not (longer or not below)
    listed = bool(_BULLET.match(below)) or below.startswith("|")
    return not goes_on and (listed or not below or _ends_sentence(below))


def _block(text: str) -> Passage:
    """Return one passage of a text, with its title apart where a header or a heading tells it."""
    text = _EDGES.sub("", text)
    title, rest = _below_header(text)
    if rest is text:
        titles = list[str]()
        for _ in range(MAX_HEADINGS):
            line, _, below = rest.strip().partition("\n")
            match = _MARKED.fullmatch(line)
            if not below.strip() or not _is_heading(line, below) or (titles and not match):
                break
            titles.append((match[1] or match[2] if match else line).strip())
            rest = below
        title = ": ".join(titles)
    title = _LINK.sub("", title).strip()
    return {"title": title, "text": rest.strip()} if title and rest.strip() else rest


def _below_header(text: str) -> tuple[str, str]:
    """Return the title and the text of a block with headers above or below it, as "Title: ..." and
    "URL: ..."; else no title, and the whole block. Addresses and scores are left out."""
    lines = text.split("\n")
    headers = list(map(_header, lines[:MAX_HEADERS]))
    if not any(key in _TITLE_KEYS | _ADDRESS_KEYS for key, _ in headers):
        return "", text
    # Any header may stand above "Content: ...", but only known ones above a text without a name.
    above = list(takewhile(lambda header: header[0] and header[0] not in _TEXT_KEYS, headers))
    start, body = len(above), list[str]()
    if start < len(headers) and headers[start][0] in _TEXT_KEYS:
        body = [headers[start][1], *lines[start + 1 :]]
    else:
        above = list(takewhile(_is_about, headers))
        body = lines[len(above) :]
    others = [line for line, one in zip(lines, above, strict=False) if not _is_about(one)]
    below = list(takewhile(_is_address, map(_header, reversed(body))))
    body = body[: len(body) - len(below)]
    titles = [value for key, value in above if key in _TITLE_KEYS]
    titles += [v for k, v in above + below if k in _ADDRESS_KEYS and not _ADDRESS.fullmatch(v)]
    if not any(map(str.strip, body)):
        return "", text  # nothing but headers
    return next(iter(titles), ""), "\n".join((*others, *body)).strip()

"""Reads from a model's reply whether a text supports a statement, contradicts it, or neither.

Every reply gives one of the three verdicts, or ``None`` where it names none of them or several.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

from trustassay.text.replies import CONDITION, QUOTED_REPLY

EntailmentLabel = Literal["support", "neutral", "contradict"]
ENTAILMENT_LABELS: tuple[EntailmentLabel, ...] = get_args(EntailmentLabel)
"""In the order of an entailment's probabilities."""
REPAIR = (
    "Your reply names none of the three, or more than one. Reply once more, with one word and "
    "nothing else: SUPPORTS, CONTRADICTS or NEITHER."
)
"""The message that asks once more after a reply without a verdict."""
REPAIR_PROMPT = "verdict-again/1"
"""Name and version of this message, which are stored with the call."""


class VerdictMention(NamedTuple):
    """A verdict that a reply names."""

    verdict: EntailmentLabel
    """What it says."""
    start: int
    """Offset of its word in the reply."""


_SUPPORT = "support(?:s|ed|ing|ive)?|entail(?:s|ed|ing|ment)?"
_NEUTRAL = (
    "neither|neutral|undecided|undetermined|inconclusive|unrelated|irrelevant|insufficient"
    "|(?:not enough|lack of) (?:info(?:rmation)?|evidence)|(?:cannot|can't"
    "|can not) (?:be )?(?:determined?|decided?|said|tell)"
)
_CONTRADICT = "contradict(?:s|ed|ing|ion|ory)?|refut(?:e|es|ed|ing|ation)|conflict(?:s|ing)?"
_ANY = f"(?P<support>{_SUPPORT})|(?P<neutral>{_NEUTRAL})|(?P<contradict>{_CONTRADICT})"
_VERDICT_WORD = re.compile(rf"(?<![\w-])(?:{_ANY})(?![\w-])", re.IGNORECASE)
# What, just before a verdict's word, takes it back: "does not support" names no verdict.
_NEGATION = re.compile(
    r"(?:^[\W_]{0,9}to|\b(?:not|no|never|nothing|nor|without|cannot|isn't|doesn't|don't|didn't"
    "|can't|won't|hardly|barely|partly|partially|almost|nearly|else|otherwise|fails? to"
    "|rather than|instead of|could|may|might|would|should|order to|nicht|keine?|pas|non|niet|geen"
    r"|nie|не)|n't)(?:\s+(?:be|is|are|fully|directly|clearly|explicitly|actually|really|quite"
    r"|either|it|necessarily|also|well|even))*\s*$",
    re.IGNORECASE,
)
# What, just behind it, does: "supports?", "supports: no", ``"supports": false``.
_DISMISSED = re.compile(
    r"[^.!?;:=\n]{0,60}(?:\?|\bonly (?:partially|partly|in part)\b)"
    r"""|[\"'`*]{0,4}\s{0,4}[:=]\s{0,4}[\"'`*]{0,4}(?!1\b)(?:\d|no|not|false|none)\b""",
    re.IGNORECASE,
)
# What takes back the words of support and contradiction in the rest of its clause.
_DENIED = re.compile(
    r"\b(?:not(?!\s+(?:only|just|merely|simply)\b)|no(?!\s*\d)|none|never|nothing|nobody|nor"
    r"|(?:wrong|false|untrue|unlikely)(?: \w+)? (?:that|to)|without|cannot|unable|hardly|barely"
    r"|lack(?:s|ed|ing)?|fail(?:s|ed)? to)\b(?!\s+(?:an?\s+|any\s+)?doubt\b)|n't\b",
    re.IGNORECASE,
)
# Where one clause ends and another begins; a comma alone may stand in a list.
_BREAK = re.compile(
    r"[.!?;:](?=\s|$)|[\n—]|\s[-–]\s|\b(?:but|because|although|though|while|whereas)\b"
    r"""|,\s*(?=[\"'])|(?:,|\band\b)\s+(?=(?:it|this|they|so|thus|therefore|hence|instead)\b)"""
    r"|,\s+(?=(?:the|that|which|passage|evidence|rather)\b)|,\s+(?=(?:(?:thereby|directly"
    r"|clearly)\s+)?(?:support|entail|contradict|refut|conflict)ing\b)",
    re.IGNORECASE,
)
_OPEN = re.compile(r"\b(?:whether|if)\b[^.!?;:]*$", re.IGNORECASE)
"""The beginning of an indirect question, which the reply only repeats: "whether the passage"."""
# "Neither supports nor contradicts".
_NEITHER_NOR = re.compile(
    rf"\bneither\s+(?:{_SUPPORT}|{_CONTRADICT})(?:\s+it|\s+them)?\s+nor\s+(?:{_SUPPORT}"
    f"|{_CONTRADICT})",
    re.IGNORECASE,
)
_BLANK = r"""[\s\"'`*_(\[{<>:=-]{0,12}"""
# A verdict behind the word for one.
_MARKED = re.compile(
    r"(?<![\w-])(?:verdict|relation(?:ship)?|label|judge?ment|conclusion|decision|classification"
    r"""|(?:final )?answer)(?![\w-])[\"'`*_]{0,4}\s{0,4}(?:is|:|=|-|–"""
    rf"|—)?{_BLANK}(?:{_ANY})(?![\w-])(?!\s{{0,4}}(?:[,/|]|or\b|nor\b))",
    re.IGNORECASE,
)
# A line that begins with a verdict alone, and one that is nothing else.
_ALONE = re.compile(
    rf"""{_BLANK}(?:{_ANY})(?![\w-])[\"'`*_)\]}}>]{{0,12}}\s{{0,12}}(?:[.;:!–—-]|$)""",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    rf"""{_BLANK}(?:{_ANY})(?![\w-])[\"'`*_)\]}}>.!\s]{{0,12}}""",
    re.IGNORECASE,
)
MAX_CHARACTERS_BEFORE = 60
"""Characters before a verdict's word that are searched for words that leave it open."""
MAX_CLAUSE_CHARACTERS = 300
"""Characters before and behind a verdict's word that are searched for its clause."""


def find_verdict(text: str) -> VerdictMention | None:
    """Return the verdict that a reply names, and where.

    1. Words behind "verdict", "relation", "label", "answer" and the like decide, if they agree.
    2. Else lines that consist of a verdict's word decide, if they agree.
    3. Else the first line with a verdict's word decides: if it begins with the word by itself
       ("SUPPORTS. ..."), or if all such words in it agree.

    A word does not count where it is withdrawn ("no passage supports", "partly supports",
    "supports: no"), left open ("whether it supports", "could support") or under a condition.
    """
    # Quotations are blanked out, with their length kept for the offsets.
    text = QUOTED_REPLY.sub(lambda match: " " * len(match[0]), text.replace("_", " "))
    marked = [
        _build_mention(match) for match in _MARKED.finditer(text) if _is_asserted(text, match)
    ]
    if marked:
        return _find_agreed_verdict(marked)
    lines = text.splitlines(keepends=True)
    if verdicts_of_lines := list(_verdicts_filling_lines(lines)):
        return _find_agreed_verdict(verdicts_of_lines)
    start = 0
    for line in lines:
        verdicts = _find_mentions(line)
        if verdicts:
            if (match_at_start := _ALONE.match(line.rstrip())) and _is_asserted(
                line, match_at_start
            ):
                # Later sentences of the line count only where they are a verdict by themselves, so
                # that "SUPPORTS. The passage does not contradict it." stays clear.
                verdicts = [
                    _build_mention(match_at_start),
                    *_verdicts_filling_lines(re.split(r"(?<=[.!?])\s", line)[1:]),
                ]
            first = _find_agreed_verdict(verdicts)
            return first and VerdictMention(first.verdict, start + first.start)
        start += len(line)
    return None


def _is_asserted(text: str, match: re.Match[str]) -> bool:
    """Whether the verdict of a match is not denied, dismissed or under a condition there."""
    end = match.end(match.lastgroup or 0)
    # The condition must stand in the same clause, behind the word.
    clause_behind = _BREAK.split(text[end : end + MAX_CLAUSE_CHARACTERS], maxsplit=1)[0]
    return not (
        _DISMISSED.match(text, end)
        or CONDITION.search(clause_behind)
        or _is_denied(text, match.start())
    )


def _find_agreed_verdict(mentions: list[VerdictMention]) -> VerdictMention | None:
    """Return the first of several verdicts, or ``None`` where they differ."""
    return mentions[0] if len({mention.verdict for mention in mentions}) == 1 else None


def _verdicts_filling_lines(lines: Iterable[str]) -> Iterator[VerdictMention]:
    """Yield the verdicts that fill their lines."""
    start = 0
    for line in lines:
        if match := _WHOLE.fullmatch(line):
            result = _build_mention(match)
            yield VerdictMention(result.verdict, start + result.start)
        start += len(line)


def _find_mentions(line: str) -> list[VerdictMention]:
    """Return the verdicts in a line that are not withdrawn there.

    "Neither supports nor contradicts" is one verdict; the words in it are none.
    """
    neither_nor_spans = [(match.start(), match.end()) for match in _NEITHER_NOR.finditer(line)]
    mentions = [VerdictMention("neutral", start) for start, _ in neither_nor_spans]
    bare = _NEITHER_NOR.sub(lambda match: " " * len(match[0]), line) if neither_nor_spans else line
    mentions += [
        _build_mention(word_match)
        for word_match in _VERDICT_WORD.finditer(bare)
        if not _is_withdrawn(bare, word_match)
    ]
    return sorted(mentions, key=lambda word_match: word_match.start)


def _is_withdrawn(line: str, match: re.Match[str]) -> bool:
    before = line[max(0, match.start() - MAX_CHARACTERS_BEFORE) : match.start()]
    if _NEGATION.search(before) or _OPEN.search(before) or _DISMISSED.match(line, match.end()):
        return True
    # Like the words of a negation, a condition counts only in the word's own clause.
    if CONDITION.search(
        _BREAK.split(line[match.end() : match.end() + MAX_CLAUSE_CHARACTERS], maxsplit=1)[0]
    ):
        return True
    # "It does not say, so it is neutral": a negation does not withdraw the neutral verdict.
    return not match["neutral"] and _is_denied(line, match.start())


def _is_denied(text: str, place: int) -> bool:
    """Whether a negation stands earlier in the clause of the word at an offset."""
    first = max(0, place - MAX_CLAUSE_CHARACTERS)
    # The text behind the word is included, since a break between clauses may depend on the word.
    near = text[first : place + MAX_CHARACTERS_BEFORE]
    ends = (match.end() for match in _BREAK.finditer(near))
    start = max((end for end in ends if end <= place - first), default=0)
    return bool(_DENIED.search(near[: place - first], start))


def _build_mention(match: re.Match[str]) -> VerdictMention:
    verdict = next(name for name in ENTAILMENT_LABELS if match[name] is not None)
    return VerdictMention(verdict, match.start(verdict))

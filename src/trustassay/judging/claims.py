"""From an answer to its claims: statements that stand alone, each with where it was written.

1. What is not part of the answer is cut out: reasoning, citations, a list of references, markup.
   Text is folded (:mod:`trustassay.text.unicode`).
2. The rest is parted into blocks, and these into sentences. JSON and tables give a statement for
   each value.
3. Of each sentence only what carries no meaning is cut off: openers ("Sure,"), frames ("According
   to the passages,"). Questions, greetings, offers and disclaimers claim nothing.
4. A sentence that is not complete is completed: an item by the lead and the headings above it, a
   short reply by its question.

Nothing that carries meaning is dropped: every negation, number and name of a sentence, of the lead
above a list and of the headings above it is in the claim. This is the only way from an answer to
what a reader judges; ``claims=model`` (:func:`parse_claim_list`) and Trust-Eval's own rules
(:func:`claims_as_in_paper`) are its other modes.
"""

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any, NamedTuple

from trustassay.errors import BackendError, UnparsedError
from trustassay.judging.leads import (
    OPEN_CLAUSE,
    adds_meaning,
    inline_items,
    join_to_lead,
    leads_on,
)
from trustassay.judging.short_replies import (
    ASSENT,
    ELLIPSIS,
    NOT_TRUE,
    SUBORDINATE,
    asks_whether,
    complete_reply,
    question_topic,
    sentence_of,
)
from trustassay.text.channels import answer_part
from trustassay.text.citations import (
    citation_markers,
    citations_as_in_paper,
    marker_spans,
    references_start,
    spell_superscripts,
    without_citations_as_in_paper,
)
from trustassay.text.grammar import WH_WORDS, finite_verb, is_imperative, states, words_of
from trustassay.text.language import ENGLISH, language_of
from trustassay.text.lists import without_numbering
from trustassay.text.mapped import MappedText
from trustassay.text.markdown import Block, parse_blocks
from trustassay.text.phrases import (
    QUESTION,
    REFERRAL,
    content_of,
    frame_end,
    may_be_signature,
    opener_end,
    signature_end,
    tag_question_start,
    why_no_claim,
)
from trustassay.text.refusals import declines, denied_topic, refusal_parts
from trustassay.text.replies import numbered
from trustassay.text.sentences import Splitter
from trustassay.text.unicode import fold
from trustassay.text.words import content_words, is_negation, plain_words

DECLINES = "it declines to answer"
REFERENCES = "a list of references"
NO_PART = "no part of the answer"


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of an answer, and what is judged of it."""

    text: str
    """The part as it is written, with its citations."""
    hypothesis: str | None
    """The statement to judge; ``None`` where the part claims nothing."""
    why: str = ""
    """Why nothing is claimed."""
    start: int = 0
    end: int = 0
    """The characters of the answer that it is; equal where it is not in the answer as it stands."""
    citations: tuple[int, ...] = ()
    """The numbers that it cites, in order."""
    topic: str | None = None
    """What it says the documents do not speak of; ``None`` of any other statement."""
    denies: str | None = None
    """The statement that it denies by "no": this one is read, and its verdict turned around."""
    in_english: bool = True
    """Whether the answer is in English, as far as can be told: rules on words hold for it."""

    @property
    def refuses(self) -> bool:
        """Whether it is a part of a refusal: it declines, or denies that the documents tell."""
        return self.topic is not None or self.why == DECLINES


def build_claims(
    question: str,
    response: str,
    split: Splitter,
    *,
    names: Container[str] = frozenset(),
    lines: bool = True,
    trailing: bool = True,
) -> list[Claim]:
    """Return the parts of an answer in order, each with the statement that it makes, if any.

    Args:
        question: what was asked; short replies and yes or no are completed by it.
        response: the answer as it was written.
        split: parts a text into sentences.
        names: words that are known to be names, as those of the passages; a heading with one is
            part of what stands below it.
        lines: read Markdown; else only ``split`` parts the text.
        trailing: a citation behind a full stop belongs to the sentence before it, except in a
            paragraph that begins with a citation.

    Raises:
        BackendError: the splitter returned text that is not in the answer.
    """
    text, references = _clean_answer(response)
    data = _data_of(text.text)
    if data is not None:
        return list(_claims_of_data(question, response, data, split))
    blocks = parse_blocks(text) if lines else [Block("paragraph", text)]
    in_english = language_of(response, (question,)) in (None, ENGLISH)
    reader = _Reader(question, blocks, split, names, trailing=trailing, in_english=in_english)
    claims = reader.read()
    return _with_texts(claims, response, references)


def parse_claim_list(reply: str, response: str = "") -> list[Claim]:
    """Read the claims of a model's reply: lines numbered from 1, or bulleted; "none" for no claim.

    One that stands in the response word for word has its place there.

    Raises:
        UnparsedError: the reply has neither.
    """
    lines = (*_BULLETED.finditer(reply), *numbered(reply))  # "- 1. Claim" is a line of both
    texts = [text.strip() for _, text in sorted({m.start(): m["text"] for m in lines}.items())]
    if not texts and reply.strip().strip(".\"'").casefold() not in ("none", "no claims"):
        excerpt = " ".join(reply.split())[:80]
        raise UnparsedError(f"the model's reply lists no claims: {excerpt!r}")
    starts = [max(0, response.find(text)) for text in texts]
    ends = [
        start + len(text) * (text in response) for text, start in zip(texts, starts, strict=True)
    ]
    return [
        Claim(text, text, start=start, end=end)
        for text, start, end in zip(texts, starts, ends, strict=True)
    ]


def claims_as_in_paper(response: str, split: Splitter) -> list[Claim]:
    """Return the sentences of an answer as trust_eval 0.1.6 reads them (spec 4.2 to 4.4)."""
    return [claim_as_in_paper(sentence) for sentence in split(response)]


def claim_as_in_paper(sentence: str) -> Claim:
    """Return one sentence, or element of a list, as trust_eval 0.1.6 reads it."""
    bare = without_citations_as_in_paper(sentence).strip()
    return Claim(sentence.strip(), bare, citations=citations_as_in_paper(sentence))


_BULLETED = re.compile(r"^[ \t]*(?:[-*]\s|•)[ \t]*(?P<text>.+)$", re.MULTILINE)


# What is not part of the answer -----------------------------------------------------------------


def _clean_answer(response: str) -> tuple[MappedText, int]:
    """Return the answer without reasoning, references and markup, folded, and where in the
    response its list of references begins."""
    text = answer_part(MappedText.of(response))
    text = fold(spell_superscripts(text))
    start = references_start(text.text)
    offset = text.offsets[start] if start < len(text.text) else len(response)
    return text[:start], offset


def plain_answer(response: str) -> str:
    """Return an answer as one text without what carries no meaning: reasoning, citations, a list of
    references, emphasis, and openers. For what reads an answer as a whole.
    """
    text, _ = _clean_answer(response)
    text = text.cut(marker_spans(text.text, citation_markers(text.text)))
    bare = _strip_markup(text).text.strip()
    return bare[opener_end(bare) :].strip() or bare


_IMAGE_OR_LINK = re.compile(
    r"!?\[([^\[\]\n]{0,300})\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"\n]*\")?\)"
)
_STRUCK = re.compile(r"~~(?=\S)[^~\n]{1,500}~~")
_EMPHASIS = re.compile(
    r"\*\*+|~{3,}|__(?=\S)|(?<=\S)__|`+|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])"
    r"|(?<![\w_])_(?=[^\W_])|(?<=[^\W_])_(?![\w_])"
)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|>~-])")
_ADDRESS = re.compile(
    r"(?:,?[ \t]{0,2}\b(?:see|at|via|from|source|link)[ \t]?:?[ \t]?)?(?:\([ \t]?)?"
    r"<?\bhttps?://[^\s<>]*[^\s<>.,;:!?\"')]>?(?:[ \t]?\))?",
    re.IGNORECASE,
)
_CROSS = re.compile("(?P<label>:\\s*)?[✗✘❌🚫⛔]\\s*")
_TICKED = re.compile(":\\s*[✓✔✅☑]\\s*")
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u2604\u2607-\u27bf\u2b00-\u2bff]+\\s?")
"""All but stars, which may be a rating."""
_ASKS_FOR_ADDRESS = re.compile(
    r"\b(?:urls?|links?|web ?sites?|web ?pages?|address|site|online)\b", re.IGNORECASE
)


def _strip_markup(text: MappedText, question: str = "") -> MappedText:
    """Return a text without emphasis, links, addresses that nobody asked for, and emoji.

    What is struck out is not said; a cross is a "not", or "no" behind a label.
    """
    text = text.sub(_IMAGE_OR_LINK, r"\1").sub(_STRUCK, "").sub(_EMPHASIS, "").sub(_ESCAPE, r"\1")
    if not _ASKS_FOR_ADDRESS.search(question):
        text = text.sub(_ADDRESS, "")
    if text.text.isascii():
        return text
    text = text.sub(_CROSS, lambda match: ": no " if match["label"] else "not ")
    return text.sub(_TICKED, ": yes ").sub(_EMOJI, "").strip()


# Sentences and their citations ------------------------------------------------------------------


class _Sentence(NamedTuple):
    """A sentence with its citations, without them, and their numbers."""

    full: MappedText
    bare: MappedText
    numbers: tuple[int, ...]


def _is_numbering(text: str) -> bool:
    """Whether a text is blank, or nothing but a bullet or a number like "1."."""
    return not without_numbering(f"{text} ").strip()


def _sentences(text: MappedText, split: Splitter, *, trailing: bool) -> Iterator[_Sentence]:
    """Yield the sentences of a text, each with the citations that belong to it.

    Sentences are found in the text without its citations, so that no splitter stumbles over them.

    Raises:
        BackendError: the splitter returned what is not in the text.
    """
    markers = citation_markers(text.text)
    spans = list(marker_spans(text.text, markers))
    # Behind a full stop a citation may be all that parts two sentences: "in 1902.[1]It has".
    blanks = [
        " " if text.text[end : end + 1].isupper() and text.text[start - 1 : start] in ".!?" else ""
        for start, end in spans
    ]
    bare = text.replaced(zip(spans, blanks, strict=True))
    sizes = [end - start - len(blank) for (start, end), blank in zip(spans, blanks, strict=True)]
    removed = list(accumulate(sizes, initial=0))  # characters before each marker that are gone
    places = [start - gone for (start, _), gone in zip(spans, removed, strict=False)]
    leads = bool(places) and _is_numbering(bare.text[: places[0]])
    start = position = taken = first = marker = 0
    parts = [part for part in map(str.strip, split(bare.text)) if part]
    for number, part in enumerate(parts or [""], 1):
        if number < len(parts):
            start_of_part = bare.text.find(part, position)
            if start_of_part < 0:
                raise BackendError(
                    "the sentence splitter returned text that is not in the response"
                )
            position = start_of_part + len(part)
            if _is_numbering(part):
                continue  # "1." and what it numbers are one sentence
        else:
            position = len(bare.text)
        numbers: list[int] = []
        while marker < len(places) and (
            number >= len(parts) or places[marker] < position + (trailing and not leads)
        ):
            numbers += markers[marker].numbers
            taken += sizes[marker]
            marker += 1
        end = max(position + taken, spans[marker - 1][1]) if numbers else position + taken
        yield _Sentence(text[start:end], bare[first:position], tuple(numbers))
        start, first = end, position


# Claims of an answer in text ----------------------------------------------------------------------

_LABEL = re.compile(r"[^.!?:]{1,60}(?::| [–—-])\s+\S")
_JOINING = re.compile(r"(?:and|but|so|also|then|or),?\s+(?=\S)", re.IGNORECASE)
_PRONOUN = re.compile(
    r"^(?:It|They)(?!(?:'s| is| was) (?:\w+ )?(?:to|that|if|whether)\b)('s been|'s|'re)?(?=\s)"
)
"""A pronoun that begins a sentence and stands for something: not "It is possible to"."""
_ASKS_WHAT_TO_DO = re.compile(
    r"how (?:can|do|does|should|to|would)\b|where|who|what (?:can|do|must|should) (?:I|one"
    r"|we|you)\b"
    r"|(?:can|should|may|must) I\b",
    re.IGNORECASE,
)
_ASKING = re.compile(r"[^.!?\n]+\?")
"""A sentence that asks."""
_TO_READER = re.compile(r"\b(?:you|I|we)\b", re.IGNORECASE)
_GOES_ON = re.compile(r"(?:and|what about|how about)\b", re.IGNORECASE)
"""A question that goes on from an earlier one, and does not say what it is about."""
_VERBS = {"'s been": " has been", "'s": " is", "'re": " are"}
_BEFORE_WORDS = re.compile(r"(?:[\s:;,.)]|[–—-]+\s)*")
"""What a cut citation leaves behind: "[1]: The museum ..."."""
COMPLETE = 12
"""Words of a text without a verb up to which it is completed by its question."""
BARE = 4
"""Words up to which the question is put before a text that no rule completes."""
_MARKS = {
    "✓": "yes",
    "✔": "yes",
    "✅": "yes",
    "☑": "yes",
    "✗": "no",
    "✘": "no",
    "❌": "no",
    "–": "",
    "—": "",
    "-": "",
    "n/a": "",
    "N/A": "",
}
"""What stands in a cell for a word."""
_CODE = re.compile(r"[{}=();<>]|^\s*[#$>]", re.MULTILINE)


class _Reader:
    """Reads the blocks of an answer one by one into claims."""

    def __init__(
        self,
        question: str,
        blocks: Sequence[Block],
        split: Splitter,
        names: Container[str],
        *,
        trailing: bool,
        in_english: bool,
    ) -> None:
        self.question, self.blocks, self.split = question, blocks, split
        self.names, self.trailing, self.in_english = names, trailing, in_english
        self.above_others = {place for block in blocks for place in block.above}
        self.leads: dict[int, str] = {}
        self.claims: list[Claim] = []
        self.unplaced: list[int] = []
        """Citations that stand alone: before the first sentence, or behind the last claim."""
        self.claims_anything = False
        self.signs = False
        """Whether the last sentence was "Best regards,"."""
        self.assent: Claim | None = None
        """The last claim, if it says nothing but yes or no."""
        self.open_question = question
        """What a short reply answers: the question, or one that the answer asks itself before."""

    def read(self) -> list[Claim]:
        """Return the claims of all blocks."""
        for place in range(len(self.blocks)):
            self._block(place)
        self._cite_last()
        return self.claims

    def _block(self, place: int) -> None:
        """Add the claims of a block."""
        block = self.blocks[place]
        if block.kind == "code" and (_CODE.search(block.text.text) or not states(block.text.text)):
            self._add(None, block.text, "code", ())
        elif block.kind == "row":
            self._row(block)
        elif block.kind == "heading" and self._is_only_a_heading(place):
            self._add(None, block.text, "a heading", _numbers_in(block.text))
        else:
            sentences = list(_sentences(block.text, self.split, trailing=self.trailing))
            for number, sentence in enumerate(sentences, 1):
                self._sentence(sentence, place, first=number == 1, last=number == len(sentences))

    def _is_only_a_heading(self, place: int) -> bool:
        """Whether a heading states nothing: it is no sentence, and something stands below it, or
        it begins or ends nothing but itself in an answer that has more to say."""
        text = _cell_text(self.blocks[place].text)
        alone = place not in self.above_others and len(self.blocks) == 1
        ended = text.endswith(".") and states(text)
        return not (alone or ended or _states_outright(text))

    def _row(self, block: Block) -> None:
        """Add a claim for each cell of a row, with its column and the first cell of the row.

        A first cell that states something is a claim itself, and names nothing.
        """
        numbers = _numbers_in(block.text)
        texts = [_cell_text(cell) for cell in block.cells]
        name = "" if not block.header or states(texts[0]) else texts[0]
        for column, (cell, text) in enumerate(zip(block.cells, texts, strict=True)):
            if not block.header:
                hypothesis = sentence_of(text) if _states_outright(text) else None
                self._add(hypothesis, cell, "the head of a table", numbers)
                continue
            title = _cell_text(MappedText.of(block.column(column)))
            title = "" if _states_outright(title) else title
            labels = [
                name if column else "",
                title if column or not name else "",
            ]
            whole = states(text) and not name
            hypothesis = text if whole else ": ".join(filter(None, [*labels, text]))
            if not text or (name and column == 0 and len(texts) > 1):
                self._add(
                    None, cell, "the name of a row", numbers if text and not any(texts[1:]) else ()
                )
            else:
                self._add(self._under_leads(hypothesis, block, whole=whole), cell, "", numbers)

    def _sentence(self, sentence: _Sentence, place: int, *, first: bool, last: bool) -> None:
        """Add the claims of a sentence."""
        full, numbers, block = sentence.full, sentence.numbers, self.blocks[place]
        bare = _strip_markup(sentence.bare, self.question)
        bare = bare[len(bare.text) - len(without_numbering(bare.text)) :].strip()
        bare = bare[_BEFORE_WORDS.match(bare.text).end() :]  # type: ignore[union-attr]
        if not any(map(str.isalnum, bare.text)):
            self.unplaced += numbers
            return
        if not self.in_english:
            text = self._under_leads(bare.text, block, whole=True)
            self._add(None if text.endswith("?") else text, full, QUESTION, numbers)
            return
        signature = signature_end(bare.text)
        self.signs |= signature is not None
        bare = bare[signature or 0 :].strip()
        if self.signs and may_be_signature(bare.text):
            self.signs = not bare
            self._add(None, full, "a greeting or an offer", numbers)
            return
        self.signs = False
        content, asserted = _strip_frames(bare)
        assent = ASSENT.match(content.text)
        if assent and assent[0].lower().startswith("sure") and not self._asks_whether:
            assent = None  # "Sure! The permit costs 90 euros."
        if assent and self._says_more(content.text[assent.end() :]):
            content, _ = _strip_frames(content[assent.end() :])
            assent = None
        text = content.text
        if text and (declines(text) or denied_topic(text)):
            self._refusal(content, full, numbers)
        elif assent:
            self._assent(content, assent.end(), full, block, numbers)
        elif why := self._why_no_claim(text, place, asserted=asserted, first=first, last=last):
            self._add(None, full, why, numbers)
            if why == QUESTION and content_of(text) and not _TO_READER.search(text):
                self.open_question = text
        elif items := inline_items(text):
            for start, end, statement in items:
                span = full if len(items) == 1 else content[start:end]
                self._add(self._under_leads(statement, block, whole=True), span, "", numbers)
        else:
            self._add(self._complete(text, block, first=first), full, "", numbers)

    def _why_no_claim(
        self, text: str, place: int, *, asserted: bool, first: bool, last: bool
    ) -> str | None:
        """Return why a sentence of a block claims nothing; ``None`` where it claims something."""
        if not text:
            return "a greeting or an offer"
        block, words = self.blocks[place], words_of(text)
        whole = finite_verb(words) is not None or is_imperative(words)
        if self._answers_whether(text):
            return None
        leads = place in self.above_others
        if leads and last and (leads_on(text) if text.endswith(":") else not whole):
            return "it leads on to what follows"
        if first and block.kind == "item" and block.above and not whole:
            return None  # of words that say nothing alone an item may consist: "We offer: help"
        if not asserted and (why := why_no_claim(text)):
            asks_for_it = _ASKS_WHAT_TO_DO.match(self.open_question)
            answers = why == REFERRAL and not self.claims_anything and asks_for_it
            return None if answers else why
        return "it only repeats the question" if self._repeats_question(text) else None

    def _refusal(self, content: MappedText, full: MappedText, numbers: tuple[int, ...]) -> None:
        """Add what a declining sentence denies, and what it answers nevertheless."""
        parts = refusal_parts(content.text)
        for start, end, refuses in parts:
            text = content.text[start:end].strip(" ,;:")
            topic = denied_topic(text) if refuses else None
            hypothesis = sentence_of(text) if topic or not refuses else None
            span = full if len(parts) == 1 else content[start:end]
            self._add(hypothesis, span, DECLINES, numbers, topic)

    def _assent(
        self,
        content: MappedText,
        end: int,
        full: MappedText,
        block: Block,
        numbers: tuple[int, ...],
    ) -> None:
        """Add what a sentence says that begins with yes or no.

        "Yes." alone says what the question asks; where a sentence follows that explains it, it
        shares the verdict of that one.
        """
        rest, _ = _strip_frames(content[end:].strip())
        goes_on = SUBORDINATE.match(rest.text) is not None
        hypothesis = (
            complete_reply(self.open_question, content.text) if self._asks_whether else None
        )
        is_apart = hypothesis is None or (hypothesis.startswith(NOT_TRUE) and not goes_on)
        beside = rest.text if is_apart else ""
        if content_of(beside) and not ELLIPSIS.fullmatch(beside):
            # What "no" stands before is said beside it: "No, in 1890."
            if hypothesis is not None:
                self._add(hypothesis, content[:end], "", numbers)
            self._add(self._complete(beside, block, first=False), rest, "", numbers)
            return
        self._add(hypothesis, full, "yes or no answers no such question", numbers)
        if not rest:
            self.assent = self.claims[-1]

    @staticmethod
    def _says_more(rest: str) -> bool:
        """Whether what stands behind yes or no is a sentence of its own, and does not repeat it."""
        words = words_of(rest)
        is_more = finite_verb(words) is not None and not ELLIPSIS.fullmatch(rest)
        return is_more and not SUBORDINATE.match(rest)

    @property
    def _asks_whether(self) -> bool:
        return asks_whether(self.open_question)

    def _answers_whether(self, text: str) -> bool:
        """Whether a sentence says yes or no in the words of the question: "It is not included."."""
        if not self._asks_whether:
            return False
        words = frozenset(content_words(text))
        in_its_words = bool(words) and words <= frozenset(content_words(self.open_question))
        return ELLIPSIS.fullmatch(text) is not None or (
            in_its_words and _PRONOUN.match(text) is not None
        )

    def _repeats_question(self, text: str) -> bool:
        """Whether a sentence has no word of its own beside those of a question for who or what."""
        # What the asker states beside it is no question: who agrees with it claims it.
        question = " ".join(_ASKING.findall(self.open_question)) or self.open_question
        words = [word.lower() for word in words_of(question)]
        if self._asks_whether or "or" in words or WH_WORDS.isdisjoint(words[:2]):
            return False
        if any(map(is_negation, plain_words(text))) or finite_verb(words_of(text)) is None:
            return False
        return content_of(text) <= content_of(question)

    def _complete(self, text: str, block: Block, *, first: bool) -> str:
        """Return a text as a statement that stands alone."""
        words = words_of(text)
        if self._answers_whether(text):
            negated = sum(map(is_negation, plain_words(text))) % 2 == 1
            statement = complete_reply(self.open_question, "no" if negated else "yes")
            return statement or sentence_of(text)
        whole = finite_verb(words) is not None or is_imperative(words)
        if not whole and first and block.above and block.kind != "heading":
            return self._under_leads(text, block, whole=False)
        if not whole and self.open_question and len(words) <= COMPLETE and not _LABEL.match(text):
            statement = complete_reply(self.open_question, text)
            if statement is None and len(words) <= BARE:
                statement = f"{self.open_question} {text}"
            text = statement or text
        elif whole and first and (subject := self._subject(block)):
            text = _PRONOUN.sub(lambda match: subject + _VERBS.get(match[1], ""), text, count=1)
        return self._under_leads(text, block, whole=True)

    def _subject(self, block: Block) -> str | None:
        """Return what a pronoun at the beginning of a block stands for: the heading or item that it
        stands under, or, in the first sentence of an answer, what the question is about.
        """
        nearest = self._lead(block.above[-1]) if block.above else ""
        if nearest and not _LABEL.match(nearest) and finite_verb(words_of(nearest)) is None:
            return nearest if content_of(nearest) else None
        # "And the second one?" does not say what is meant, "And the Basso?" does.
        goes_on = _GOES_ON.match(self.question) and not re.search(r" [A-Z]", self.question)
        return None if self.claims or goes_on else question_topic(self.question)

    # What a block stands under

    def _under_leads(self, text: str, block: Block, *, whole: bool) -> str:
        """Return a text joined to the headings and leads that it stands under.

        Before a whole sentence only those are put that add a negation, a number or a name.
        """
        leads = [self._lead(place) for place in block.above]
        if leads and (not whole or OPEN_CLAUSE.search(leads[-1])):
            text = join_to_lead(leads.pop(), text)
        for lead in reversed(leads):
            if adds_meaning(lead, text, self.names, whole=whole):
                text = f"{lead}: {text}"
        return sentence_of(text)

    def _lead(self, place: int) -> str:
        """Return the words of a block as it stands above others: its last sentence."""
        if place not in self.leads:
            text = self.blocks[place].text
            *_, last = _sentences(text, self.split, trailing=True)
            bare, _ = _strip_frames(_strip_markup(last.bare).strip())
            self.leads[place] = bare.text[
                len(bare.text) - len(without_numbering(bare.text)) :
            ].strip(" :.–—-")
        return self.leads[place]

    # What is added

    def _add(
        self,
        hypothesis: str | None,
        span: MappedText,
        why: str,
        numbers: tuple[int, ...],
        topic: str | None = None,
    ) -> None:
        start, end = span.strip().span
        if end <= start:
            return
        self._cite_last()
        numbers, self.unplaced = (*self.unplaced, *numbers), []
        if self.assent is not None and hypothesis is not None and self.claims:
            yes_or_no = self.claims.pop()
            start, numbers = yes_or_no.start, yes_or_no.citations + numbers
        self.assent = None
        if hypothesis is not None:
            why, self.open_question, self.claims_anything = "", self.question, True
        denies = None
        if hypothesis and hypothesis.startswith(NOT_TRUE):
            denies = sentence_of(hypothesis.removeprefix(NOT_TRUE))
        self.claims.append(
            Claim("", hypothesis, why, start, end, numbers, topic, denies, self.in_english)
        )

    def _cite_last(self) -> None:
        """Give citations that stand alone to the sentence before them, if there is one."""
        if self.claims and self.unplaced:
            last = self.claims[-1]
            self.claims[-1] = replace(last, citations=(*last.citations, *self.unplaced))
            self.unplaced = []


def _numbers_in(text: MappedText) -> tuple[int, ...]:
    """Return the numbers that a text cites."""
    return tuple(number for marker in citation_markers(text.text) for number in marker.numbers)


def _cell_text(cell: MappedText) -> str:
    """Return what a cell says, without citations and emphasis."""
    markers = marker_spans(cell.text, citation_markers(cell.text))
    mark = _MARKS.get(cell.text.strip())
    return _strip_markup(cell.cut(markers)).text.strip() if mark is None else mark


def _states_outright(text: str) -> bool:
    """Whether a heading or the head of a table is a sentence: it has a subject, a finite verb and
    something more, and is no title in capitals."""
    words = words_of(text)
    capitals = sum(word[0].isupper() for word in words)
    return len(words) > 3 and states(text) and 2 * capitals <= len(words) and not text.endswith(":")


def _strip_frames(text: MappedText) -> tuple[MappedText, bool]:
    """Return a sentence without openers and frames, and whether it states something although it
    ends as a question: "Did you know that it is free?", "It is free, right?"."""
    asserted = False
    while True:
        start = opener_end(text.text)
        end = start + frame_end(text.text[start:])
        if not end:
            break
        asserted |= text.text[start:end].lower().startswith("did you know")
        text = text[end:]
        if joining := _JOINING.match(text.text):
            text = text[joining.end() :]
    tag = tag_question_start(text.text)
    asserted |= tag < len(text.text)
    text = text[:tag].strip()
    return (text[: len(text.text.rstrip("?"))] if asserted else text), asserted


def _with_texts(claims: Sequence[Claim], response: str, references: int) -> list[Claim]:
    """Return claims with their texts, and between them what is no part of the answer.

    The texts together are the whole answer. Marks of lists and the like belong to the claim behind
    them.
    """
    result: list[Claim] = []
    position = 0
    ends = [*((one.start, one) for one in claims), (references, None), (len(response), None)]
    for start, claim in ends:
        gap = _TAG.sub("", response[position:start])
        spoken = any(map(str.isalpha, _LETTERS.findall(gap)))  # "¹¹¹" are no letters
        if spoken and not _CONNECTIVE.fullmatch(gap):
            why = REFERENCES if position >= references else NO_PART
            result.append(_part(response, position, start, Claim("", None, why)))
            position = start
        elif claim is None and start < len(response):
            position = start
        if claim is not None:
            result.append(_part(response, position, claim.end, claim))
            position = claim.end
    if result and response[position:].strip():  # marks behind the last word
        result[-1] = _part(response, result[-1].start, len(response), result[-1])
    return result


_TAG = re.compile(r"<[^<>\n]{0,200}>|```\w*")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_CONNECTIVE = re.compile(
    r"\W*(?:but|however|while|and|although|though|even though|yet|whereas)?\W*", re.IGNORECASE
)
"""What joins the parts of one sentence."""


def _part(response: str, start: int, end: int, claim: Claim) -> Claim:
    text = response[start:end]
    start += len(text) - len(text.lstrip())
    return replace(claim, text=text.strip(), start=start, end=start + len(text.strip()))


# Claims of an answer in JSON ----------------------------------------------------------------------

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL | re.IGNORECASE)
_NO_STATEMENT = re.compile(
    r"(?:id|uuid|confidence|score|probability|type|format|lang|language|reasoning"
    r"|thoughts?|thinking|rationale"
    r"|chain_of_thought|sources?|citations?|references|documents?|doc_ids?|passages?"
    r"|status|model|timestamp)",
    re.IGNORECASE,
)
"""Names of values that are no part of an answer."""
_UNIT = re.compile(r"(?:currency|units?)", re.IGNORECASE)
_CITED = re.compile(
    r"(?:sources?|citations?|references|documents?|doc_ids?|passages?)", re.IGNORECASE
)
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
MOST_VALUES = 2_000


def _data_of(text: str) -> Any:
    """Return the data that an answer consists of: an object or a list in JSON; else ``None``."""
    fenced = _FENCED.fullmatch(text)
    bare = (fenced[1] if fenced else text).strip()
    if bare.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            value = json.loads(bare)
            if isinstance(value, Mapping) or (
                isinstance(value, list) and any(isinstance(one, Mapping) for one in value)
            ):
                return value
    return None


def _claims_of_data(question: str, response: str, data: Any, split: Splitter) -> Iterator[Claim]:
    """Yield a claim for each value of an answer in JSON: a text that states something by itself,
    any other value behind its names."""
    position = 0
    for claim in islice(_values_as_claims(question, data, split, (), ()), MOST_VALUES):
        start = response.find(claim.text, position)
        position = start + len(claim.text) if start >= 0 else position
        yield replace(claim, start=max(0, start), end=position if start >= 0 else 0)


def _values_as_claims(
    question: str, value: Any, split: Splitter, names: tuple[str, ...], cited: tuple[int, ...]
) -> Iterator[Claim]:
    """Yield the claims of a value below ``names``; an object's citations are for all its values."""
    if isinstance(value, Mapping):
        numbers = [
            one for name in value if _CITED.fullmatch(str(name)) for one in _ints(value[name])
        ]
        for name, one in _with_units(value).items():
            if not _NO_STATEMENT.fullmatch(name):
                inner = (*names, name), (*cited, *numbers)
                yield from _values_as_claims(question, one, split, *inner)
    elif isinstance(value, list):
        for one in value:
            yield from _values_as_claims(question, one, split, names, cited)
    elif isinstance(value, str) and states(value):
        for claim in build_claims(question, value, split):
            yield replace(claim, citations=(*claim.citations, *cited))
    elif value is not None and str(value).strip():
        label = ": ".join(" ".join(_NAME_PART.findall(name)).lower() for name in names)
        text = ("yes" if value else "no") if isinstance(value, bool) else value
        yield Claim(f"{label}: {text}", sentence_of(f"{label}: {text}"), citations=cited)


def _ints(value: Any) -> Iterator[int]:
    values = value if isinstance(value, list) else [value]
    return (one for one in values if type(one) is int)


def _with_units(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return an object by the names of its fields; a unit of its own goes with the first number."""
    fields = {str(name): one for name, one in value.items()}
    unit = next(
        (name for name, one in fields.items() if _UNIT.fullmatch(name) and isinstance(one, str)),
        None,
    )
    number = next((name for name, one in fields.items() if type(one) in (int, float)), None)
    if unit is not None and number is not None:
        fields[number] = f"{fields[number]} {fields.pop(unit)}"
    return fields

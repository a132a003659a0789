"""Builds the claims of an answer: statements that stand alone, each with its place in the answer.

1. Reasoning, citations, a list of references and markup are cut out, and the text is folded
   (:mod:`trustassay.text.cleaning`).
2. The rest is split into blocks, and these into sentences. JSON and tables give a statement for
   each value.
3. Words without meaning are cut off each sentence: openers ("Sure,") and frames ("According to the
   passages,"). Questions, greetings, offers and disclaimers claim nothing.
4. An incomplete sentence is completed: an item of a list by its lead and the headings above it, a
   short reply by its question.

Nothing that carries meaning is dropped: every negation, number and name of a sentence, of the lead
above its list and of the headings above it is in the claim. All claims that a reader judges are
built here; ``claims=model`` (:func:`parse_claim_list`) and the rules of Trust-Eval
(:func:`build_claims_as_in_paper`) are the other modes.
"""

import json
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any, NamedTuple

from trustassay.errors import BackendError, UnparsedError
from trustassay.judging.completion import (
    ASSENT,
    ELLIPSIS,
    NOT_TRUE,
    OPEN_CLAUSE,
    SUBORDINATE,
    adds_meaning,
    asks_whether,
    complete_reply,
    find_question_topic,
    is_incomplete_lead,
    join_to_lead,
    make_sentence,
    split_inline_items,
)
from trustassay.text.citations import (
    find_citations,
    find_citations_as_in_paper,
    find_marker_spans,
    find_references_start,
    is_reference_entry,
    spell_superscripts,
    strip_citations_as_in_paper,
)
from trustassay.text.cleaning import extract_answer, fold, strip_markup
from trustassay.text.grammar import (
    WH_WORDS,
    find_finite_verb,
    find_words,
    is_imperative,
    is_statement,
)
from trustassay.text.language import ENGLISH, detect_language
from trustassay.text.mapped import MappedText
from trustassay.text.markdown import Block, parse_blocks, strip_numbering
from trustassay.text.phrases import (
    REASON_QUESTION,
    REASON_REFERRAL,
    content_stems,
    find_end_frame,
    find_frame_end,
    find_opener_end,
    find_reason_without_claim,
    find_signature_end,
    find_tag_question_start,
    may_be_signature,
)
from trustassay.text.refusals import find_denied_topic, find_refusal_words, split_refusal
from trustassay.text.replies import find_numbered_lines
from trustassay.text.sentences import Splitter
from trustassay.text.words import content_words, is_negation, plain_words

REASON_DECLINES = "it declines to answer"
REASON_REFERENCES = "a list of references"
REASON_NO_PART = "not part of the answer"


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of an answer, and the statement in it that is judged."""

    text: str
    """The part as it is written, with its citations."""
    hypothesis: str | None
    """The statement to judge; ``None`` where the part claims nothing."""
    reason: str = ""
    """Reason that it claims nothing; empty where it claims something."""
    start: int = 0
    """Offset in the answer of its first character."""
    end: int = 0
    """Offset behind its last character; equal to ``start`` where the part is not in the answer word
    for word."""
    citations: tuple[int, ...] = ()
    """The numbers that it cites, in order."""
    topic: str | None = None
    """The topic that it says the documents do not cover; ``None`` for any other statement."""
    denies: str | None = None
    """The statement that it denies by "no". This statement is read, and its verdict reversed."""
    in_english: bool = True
    """Whether the answer is in English or in no certain language; only then word rules apply."""

    @property
    def is_refusal(self) -> bool:
        """Whether it is part of a refusal: it declines, or says the documents do not cover a
        topic."""
        return self.topic is not None or self.reason == REASON_DECLINES


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
        question: the question; it completes short replies, and "yes" and "no".
        response: the answer as it was written.
        split: splits a text into sentences.
        names: words that are names, such as those of the passages. A heading with one of them is
            added to the claims below it.
        lines: read Markdown; else only ``split`` splits the text.
        trailing: a citation behind a full stop belongs to the sentence before it, except in a
            paragraph that begins with a citation.

    Raises:
        BackendError: the splitter returned text that is not in the answer.
    """
    text, references = _clean_answer(response)
    data = _read_data(text.text)
    # An answer that is nothing but JSON has no sentences; each of its values is a claim.
    if data is not None:
        return list(_build_claims_of_data(question, response, data, split))
    blocks = parse_blocks(text) if lines else [Block("paragraph", text)]
    # ``None`` means that the language is not certain: the English rules apply then, too.
    in_english = detect_language(response, (question,)) in (None, ENGLISH)
    reader = _ClaimBuilder(question, blocks, split, names, trailing=trailing, in_english=in_english)
    claims = reader.read()
    return _fill_texts(claims, response, references)


def parse_claim_list(reply: str, response: str = "") -> list[Claim]:
    """Read the claims of a model's reply: lines numbered from 1, or bulleted; "none" for no claim.

    A claim that occurs in the response word for word gets its place there.

    Raises:
        UnparsedError: the reply has no such lines and does not say "none".
    """
    # "- 1. Claim" matches both patterns; the dictionary keeps one match for each start.
    lines = (*_BULLETED.finditer(reply), *find_numbered_lines(reply))
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


def build_claims_as_in_paper(response: str, split: Splitter) -> list[Claim]:
    """Return the sentences of an answer as trust_eval 0.1.6 reads them."""
    return [build_claim_as_in_paper(sentence) for sentence in split(response)]


def build_claim_as_in_paper(sentence: str) -> Claim:
    """Return the claim of one sentence or list element as trust_eval 0.1.6 reads it."""
    bare = strip_citations_as_in_paper(sentence).strip()
    return Claim(sentence.strip(), bare, citations=find_citations_as_in_paper(sentence))


_BULLETED = re.compile(r"^[ \t]*(?:[-*]\s|•)[ \t]*(?P<text>.+)$", re.MULTILINE)


# Text that is not part of the answer ------------------------------------------------------------


def _clean_answer(response: str) -> tuple[MappedText, int]:
    """Return the folded answer without reasoning, references and HTML, and the offset in the
    response at which its list of references begins."""
    text = extract_answer(MappedText.of(response))
    # Raised digits that cite must become markers before folding, which would make powers of them.
    text = fold(spell_superscripts(text))
    start = find_references_start(text.text)
    # Without a list of references its start is the end of the response.
    offset = text.offsets[start] if start < len(text.text) else len(response)
    return text[:start], offset


def strip_answer(response: str) -> str:
    """Return an answer as one text without reasoning, citations, a list of references, emphasis and
    openers, for readers of a whole answer.
    """
    text, _ = _clean_answer(response)
    text = text.cut(find_marker_spans(text.text, find_citations(text.text)))
    bare = strip_markup(text).text.strip()
    # An answer that is nothing but an opener, such as "Sure!", stays.
    return bare[find_opener_end(bare) :].strip() or bare


# Sentences and their citations ------------------------------------------------------------------


class _AnswerSentence(NamedTuple):
    """A sentence of the answer."""

    full: MappedText
    """The sentence with its citations."""
    bare: MappedText
    """The sentence without them."""
    numbers: tuple[int, ...]
    """The numbers that it cites."""


def _is_numbering(text: str) -> bool:
    """Whether a text is blank, or nothing but a bullet or a number like "1."."""
    return not strip_numbering(f"{text} ").strip()


def _split_sentences(
    text: MappedText, split: Splitter, *, trailing: bool
) -> Iterator[_AnswerSentence]:
    """Yield the sentences of a text, each with the citations that belong to it.

    The text is split without its citations, because splitters stumble over them. The offsets of
    sentences and markers are then mapped back to the text with citations.

    Raises:
        BackendError: the splitter returned something that is not in the text.
    """
    # Step 1: remove the citations.
    markers = find_citations(text.text)
    spans = list(find_marker_spans(text.text, markers))
    # Behind a full stop a citation may be all that parts two sentences: "in 1902.[1]It has".
    blanks = [
        " " if text.text[end : end + 1].isupper() and text.text[start - 1 : start] in ".!?" else ""
        for start, end in spans
    ]
    bare = text.replace(zip(spans, blanks, strict=True))
    # Step 2: the offset of each marker in the text without citations: less what was removed before.
    sizes = [end - start - len(blank) for (start, end), blank in zip(spans, blanks, strict=True)]
    removed = list(accumulate(sizes, initial=0))
    places = [start - gone for (start, _), gone in zip(spans, removed, strict=False)]
    # A paragraph that begins with a citation ("[1] The museum ...") has its citations before the
    # sentences, so one behind a full stop belongs to the next sentence.
    begins_with_citation = bool(places) and _is_numbering(bare.text[: places[0]])
    # Step 3: find each sentence of the splitter, and assign the markers before its end to it.
    # ``start`` counts in the text with citations, ``first`` and ``position`` in the one without.
    start = position = removed_so_far = bare_start = marker = 0
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
                continue  # "1." and the text behind it are one sentence
        else:
            # The last sentence takes everything to the end, also what the splitter has dropped.
            position = len(bare.text)
        numbers: list[int] = []
        # A marker directly behind the full stop still belongs to the sentence, if ``trailing``.
        while marker < len(places) and (
            number >= len(parts)
            or places[marker] < position + (trailing and not begins_with_citation)
        ):
            numbers += markers[marker].numbers
            removed_so_far += sizes[marker]
            marker += 1
        # The sentence with citations ends behind its last marker.
        end = (
            max(position + removed_so_far, spans[marker - 1][1])
            if numbers
            else position + removed_so_far
        )
        yield _AnswerSentence(text[start:end], bare[bare_start:position], tuple(numbers))
        start, bare_start = end, position


# Claims of an answer in text ----------------------------------------------------------------------

# A label before a value: "Opening hours: 9 to 5", "Price - 90 euros".
_LABEL = re.compile(r"[^.!?:]{1,60}(?::| [–—-])\s+\S")
_JOINING = re.compile(r"(?:and|but|so|also|then|or),?\s+(?=\S)", re.IGNORECASE)
_PRONOUN = re.compile(
    r"^(?:It|They)(?!(?:'s| is| was) (?:\w+ )?(?:to|that|if|whether)\b)('s been|'s|'re)?(?=\s)"
)
"""A pronoun at the start of a sentence that stands for something, unlike "It is possible to"."""
# Questions that a referral ("ask the office") answers.
_ASKS_WHAT_TO_DO = re.compile(
    r"how (?:can|do|does|should|to|would)\b|where|who|what (?:can|do|must|should) (?:I|one"
    r"|we|you)\b"
    r"|(?:can|should|may|must) I\b",
    re.IGNORECASE,
)
_ASKING = re.compile(r"[^.!?\n]+\?")
"""A sentence with a question mark."""
_NUMERALS = re.compile(r"\d+(?:[.,]\d+)*")
_TO_READER = re.compile(r"\b(?:you|I|we)\b", re.IGNORECASE)
_GOES_ON = re.compile(r"(?:and|what about|how about)\b", re.IGNORECASE)
"""A question that continues an earlier one and does not name its subject."""
_VERBS = {"'s been": " has been", "'s": " is", "'re": " are"}
_REFERENCE_LABEL = re.compile(
    r"[\s(]*\b(?:see )?(?:references?|refs?|sources?|citations?)\.?:[\s,;.)]*$",
    re.IGNORECASE,
)
"""A label that is left at the end after its citation was cut: "It is closed. Reference: [1]"."""
_BEFORE_WORDS = re.compile(r"(?:[\s:;,.)]|[–—-]+\s)*")
"""Punctuation that is left at the start after a citation was cut: "[1]: The museum ..."."""
MAX_COMPLETED_WORDS = 12
"""Words; a text without a verb of up to this length is completed by its question."""
MAX_BARE_WORDS = 4
"""Words; before a text of up to this length that no rule completes the question is put."""
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
"""Signs in a cell of a table that stand for a word."""
# Characters by which a fenced block is code and not text.
_CODE = re.compile(r"[{}=();<>]|^\s*[#$>]", re.MULTILINE)


class _ClaimBuilder:
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
        # Indices of the blocks that others stand under.
        self.above_others = {place for block in blocks for place in block.above}
        # The words of leads and headings by the index of their block, built when first needed.
        self.leads: dict[int, str] = {}
        self.claims: list[Claim] = []
        self.unplaced: list[int] = []
        """Citations without a sentence: before the first one, or behind the last claim."""
        self.claims_anything = False
        """Whether any sentence so far claims something."""
        self.signs = False
        """Whether the last sentence was "Best regards,"."""
        self.assent: Claim | None = None
        """The last claim, if it consists of yes or no."""
        self.open_question = question
        """The question that a short reply answers: that of the user, or one that the answer itself
        has just asked."""

    def read(self) -> list[Claim]:
        """Return the claims of all blocks."""
        for place in range(len(self.blocks)):
            self._add_block(place)
        self._cite_last()
        return self.claims

    def _add_block(self, place: int) -> None:
        """Add the claims of a block."""
        block = self.blocks[place]
        # A fenced block with a sentence in it and no signs of code is text that was fenced by
        # mistake.
        if block.kind == "code" and (
            _CODE.search(block.text.text) or not is_statement(block.text.text)
        ):
            self._add_claim(None, block.text, "code", ())
        # One entry of a list of references that was answered by itself, or without a heading.
        elif is_reference_entry(block.text.text):
            numbers = _find_citation_numbers(block.text)
            self._add_claim(None, block.text, REASON_REFERENCES, numbers)
        elif block.kind == "row":
            self._add_row(block)
        elif block.kind == "heading" and self._is_only_a_heading(place):
            self._add_claim(None, block.text, "a heading", _find_citation_numbers(block.text))
        else:
            sentences = list(_split_sentences(block.text, self.split, trailing=self.trailing))
            for number, sentence in enumerate(sentences, 1):
                self._add_sentence(
                    sentence, place, first=number == 1, last=number == len(sentences)
                )

    def _is_only_a_heading(self, place: int) -> bool:
        """Whether a heading states nothing.

        It states something if it is the whole answer, or if it is a sentence.
        """
        text = _read_cell(self.blocks[place].text)
        is_only_block = place not in self.above_others and len(self.blocks) == 1
        ended = text.endswith(".") and is_statement(text)
        return not (is_only_block or ended or _states_outright(text))

    def _add_row(self, block: Block) -> None:
        """Add a claim for each cell of a row, with its column and the first cell of the row.

        A first cell that states something is a claim itself, and names nothing.
        """
        numbers = _find_citation_numbers(block.text)
        texts = [_read_cell(cell) for cell in block.cells]
        # A first cell that is a sentence does not name its row.
        name = "" if not block.header or is_statement(texts[0]) else texts[0]
        for column, (cell, text) in enumerate(zip(block.cells, texts, strict=True)):
            # The first row: names of columns, unless one of them is a sentence.
            if not block.header:
                hypothesis = make_sentence(text) if _states_outright(text) else None
                self._add_claim(hypothesis, cell, "a table header", numbers)
                continue
            # A row may have more cells than the table has names of columns.
            title = block.header[column] if column < len(block.header) else ""
            title = _read_cell(MappedText.of(title))
            title = "" if _states_outright(title) else title
            # "Row name: column name: value"; the first cell itself has only its column's name.
            labels = [
                name if column else "",
                title if column or not name else "",
            ]
            is_sentence = is_statement(text) and not name
            hypothesis = text if is_sentence else ": ".join(filter(None, [*labels, text]))
            # The name of a row states nothing by itself, unless the table has a single column.
            if not text or (name and column == 0 and len(texts) > 1):
                self._add_claim(
                    None, cell, "a row name", numbers if text and not any(texts[1:]) else ()
                )
            else:
                self._add_claim(
                    self._join_leads(hypothesis, block, is_sentence=is_sentence), cell, "", numbers
                )

    def _add_sentence(
        self, sentence: _AnswerSentence, place: int, *, first: bool, last: bool
    ) -> None:
        """Add the claims of a sentence."""
        full, numbers, block = sentence.full, sentence.numbers, self.blocks[place]
        bare = strip_markup(sentence.bare, self.question)
        # Step 1: the bare sentence, without numbering and left-over punctuation.
        bare = bare[len(bare.text) - len(strip_numbering(bare.text)) :].strip()
        bare = bare[_BEFORE_WORDS.match(bare.text).end() :]  # type: ignore[union-attr]
        bare = bare.sub(_REFERENCE_LABEL, "") if numbers else bare
        # Nothing but citations and marks: the citations belong to a neighbour.
        if not any(map(str.isalnum, bare.text)):
            self.unplaced += numbers
            return
        # Step 2: in another language each sentence that is no question is a claim as it stands.
        if not self.in_english:
            text = self._join_leads(bare.text, block, is_sentence=True)
            self._add_claim(None if text.endswith("?") else text, full, REASON_QUESTION, numbers)
            return
        # Step 3: "Best regards," and the name behind it, in the same sentence or the next.
        signature = find_signature_end(bare.text)
        self.signs |= signature is not None
        bare = bare[signature or 0 :].strip()
        if self.signs and may_be_signature(bare.text):
            # The name may follow in the next sentence where this one has nothing behind the comma.
            self.signs = not bare
            self._add_claim(None, full, "a greeting or an offer", numbers)
            return
        self.signs = False
        # Step 4: cut off openers and frames, and "yes" or "no" where a full sentence follows.
        content, asserted = _strip_frames(bare)
        assent = ASSENT.match(content.text)
        if assent and assent[0].lower().startswith("sure") and not self._asks_whether:
            assent = None  # "Sure! The permit costs 90 euros."
        if assent and self._says_more(content.text[assent.end() :]):
            content, _ = _strip_frames(content[assent.end() :])
            assent = None
        text = content.text
        # Step 5: the first kind that fits decides. Refusals come before "no", which begins many of
        # them.
        if text and (find_refusal_words(text) or find_denied_topic(text)):
            self._add_refusal(content, full, numbers)
        elif assent:
            self._add_assent(content, assent.end(), full, block, numbers)
        elif reason := self._find_reason_without_claim(
            text, place, asserted=asserted, first=first, last=last
        ):
            self._add_claim(None, full, reason, numbers)
            # A question that the answer asks itself ("How much is it? 90 euros.") is what the next
            # short reply answers; one to the reader ("Can I help you?") is not.
            if reason == REASON_QUESTION and content_stems(text) and not _TO_READER.search(text):
                self.open_question = text
        elif items := split_inline_items(text):
            for start, end, statement in items:
                # A single item takes the citations along; several items share the sentence.
                span = full if len(items) == 1 else content[start:end]
                self._add_claim(
                    self._join_leads(statement, block, is_sentence=True), span, "", numbers
                )
        else:
            self._add_claim(self._complete_text(text, block, first=first), full, "", numbers)

    def _find_reason_without_claim(
        self, text: str, place: int, *, asserted: bool, first: bool, last: bool
    ) -> str | None:
        """Return why a sentence of a block claims nothing; ``None`` where it claims something."""
        if not text:
            return "a greeting or an offer"
        block, words = self.blocks[place], find_words(text)
        # Each test comes before those that it excepts: an answer to yes or no and an item of a list
        # are claims, although their words alone would say nothing.
        is_complete = find_finite_verb(words) is not None or is_imperative(words)
        if self._answers_whether(text):
            return None
        leads = place in self.above_others
        if leads and last and (is_incomplete_lead(text) if text.endswith(":") else not is_complete):
            return "it only introduces what follows"
        if first and block.kind == "item" and block.above and not is_complete:
            return None  # an item may consist of empty words: "We offer: help"
        if not asserted and (reason := find_reason_without_claim(text)):
            # A referral is the answer to "Where can I ...?", as long as nothing else was claimed.
            asks_for_it = _ASKS_WHAT_TO_DO.match(self.open_question)
            answers = reason == REASON_REFERRAL and not self.claims_anything and asks_for_it
            return None if answers else reason
        return "it only repeats the question" if self._repeats_question(text) else None

    def _add_refusal(self, content: MappedText, full: MappedText, numbers: tuple[int, ...]) -> None:
        """Add the parts of a declining sentence: topics that it denies, and what it answers."""
        parts = split_refusal(content.text)
        for start, end, refuses in parts:
            text = content.text[start:end].strip(" ,;:")
            topic = find_denied_topic(text) if refuses else None
            hypothesis = make_sentence(text) if topic or not refuses else None
            span = full if len(parts) == 1 else content[start:end]
            self._add_claim(hypothesis, span, REASON_DECLINES, numbers, topic)

    def _add_assent(
        self,
        content: MappedText,
        end: int,
        full: MappedText,
        block: Block,
        numbers: tuple[int, ...],
    ) -> None:
        """Add the claims of a sentence that begins with yes or no.

        "Yes." by itself states what the question asks. Where a sentence follows that explains it,
        both become one claim.
        """
        text_behind, _ = _strip_frames(content[end:].strip())
        goes_on = SUBORDINATE.match(text_behind.text) is not None
        hypothesis = (
            complete_reply(self.open_question, content.text) if self._asks_whether else None
        )
        # "No, if you cancel late." belongs together; "No, in 1890." has a claim of its own behind
        # "no".
        is_apart = hypothesis is None or (hypothesis.startswith(NOT_TRUE) and not goes_on)
        separate_text = text_behind.text if is_apart else ""
        if content_stems(separate_text) and not ELLIPSIS.fullmatch(separate_text):
            # "No, in 1890." makes two claims.
            if hypothesis is not None:
                self._add_claim(hypothesis, content[:end], "", numbers)
            self._add_claim(
                self._complete_text(separate_text, block, first=False), text_behind, "", numbers
            )
            return
        self._add_claim(
            hypothesis, full, "yes or no, but the question does not ask for it", numbers
        )
        if not text_behind:
            self.assent = self.claims[-1]

    @staticmethod
    def _says_more(text_behind: str) -> bool:
        """Whether the text behind yes or no is a sentence of its own that does not repeat it."""
        words = find_words(text_behind)
        is_more = find_finite_verb(words) is not None and not ELLIPSIS.fullmatch(text_behind)
        return is_more and not SUBORDINATE.match(text_behind)

    @property
    def _asks_whether(self) -> bool:
        return asks_whether(self.open_question)

    def _answers_whether(self, text: str) -> bool:
        """Whether a sentence affirms or denies in the words of the question: "It is included."."""
        if not self._asks_whether:
            return False
        words = frozenset(content_words(text))
        in_its_words = bool(words) and words <= frozenset(content_words(self.open_question))
        return ELLIPSIS.fullmatch(text) is not None or (
            in_its_words and _PRONOUN.match(text) is not None
        )

    def _repeats_question(self, text: str) -> bool:
        """Whether a sentence has only words of a question for who, what and the like."""
        # Only the question itself: a statement of the asker beside it ("I was born in May. What
        # ...?") is claimed by an answer that repeats it.
        question = " ".join(_ASKING.findall(self.open_question)) or self.open_question
        words = [word.lower() for word in find_words(question)]
        # The words of "Is it A or B?" and of yes-or-no questions are possible answers.
        if self._asks_whether or "or" in words or WH_WORDS.isdisjoint(words[:2]):
            return False
        if any(map(is_negation, plain_words(text))) or find_finite_verb(find_words(text)) is None:
            return False
        # "House 4 has 4 rooms." has a number more than "How many rooms has house 4?".
        if Counter(_NUMERALS.findall(text)) - Counter(_NUMERALS.findall(question)):
            return False
        return content_stems(text) <= content_stems(question)

    def _complete_text(self, text: str, block: Block, *, first: bool) -> str:
        """Return the statement that a text makes when it stands alone.

        The first rule that applies: an answer to yes or no in the question's words, an item under
        its lead, a short reply with its question, a pronoun replaced by its subject.
        """
        words = find_words(text)
        if self._answers_whether(text):
            # An even number of negations is an affirmation.
            negated = sum(map(is_negation, plain_words(text))) % 2 == 1
            statement = complete_reply(self.open_question, "no" if negated else "yes")
            return statement or make_sentence(text)
        is_complete = find_finite_verb(words) is not None or is_imperative(words)
        if not is_complete and first and block.above and block.kind != "heading":
            return self._join_leads(text, block, is_sentence=False)
        if (
            not is_complete
            and self.open_question
            and len(words) <= MAX_COMPLETED_WORDS
            and not _LABEL.match(text)
        ):
            statement = complete_reply(self.open_question, text)
            if statement is None and len(words) <= MAX_BARE_WORDS:
                # A bare "30 days" would be supported by any passage with these words, so the
                # question goes along.
                statement = f"{self.open_question} {text}"
            text = statement or text
        elif is_complete and first and (subject := self._find_subject(block)):
            text = _PRONOUN.sub(lambda match: subject + _VERBS.get(match[1], ""), text, count=1)
        return self._join_leads(text, block, is_sentence=True)

    def _find_subject(self, block: Block) -> str | None:
        """Return the noun phrase that a pronoun at the start of a block stands for.

        It is the heading or item above, or in the first sentence of an answer the topic of the
        question.
        """
        nearest = self._read_lead(block.above[-1]) if block.above else ""
        if nearest and not _LABEL.match(nearest) and find_finite_verb(find_words(nearest)) is None:
            return nearest if content_stems(nearest) else None
        # "And the second one?" does not name its subject, "And the Basso?" does.
        goes_on = _GOES_ON.match(self.question) and not re.search(r" [A-Z]", self.question)
        return None if self.claims or goes_on else find_question_topic(self.question)

    # Headings and leads above a block

    def _join_leads(self, text: str, block: Block, *, is_sentence: bool) -> str:
        """Return a text joined to the headings and leads that it stands under.

        Only those that add a negation, a number or a name are put before a complete sentence.
        """
        leads = [self._read_lead(place) for place in block.above]
        # The innermost lead is joined by grammar ("Not covered:" and "theft"), the others with
        # colons.
        if leads and (not is_sentence or OPEN_CLAUSE.search(leads[-1])):
            text = join_to_lead(leads.pop(), text)
        for lead in reversed(leads):
            if adds_meaning(lead, text, self.names, is_sentence=is_sentence):
                text = f"{lead}: {text}"
        return make_sentence(text)

    def _read_lead(self, place: int) -> str:
        """Return the words of a block above others: its last sentence, without marks."""
        if place not in self.leads:
            text = self.blocks[place].text
            *_, last = _split_sentences(text, self.split, trailing=True)
            bare, _ = _strip_frames(strip_markup(last.bare).strip())
            self.leads[place] = bare.text[len(bare.text) - len(strip_numbering(bare.text)) :].strip(
                " :.–—-"
            )
        return self.leads[place]

    # Adding claims

    def _add_claim(
        self,
        hypothesis: str | None,
        span: MappedText,
        reason: str,
        numbers: tuple[int, ...],
        topic: str | None = None,
    ) -> None:
        start, end = span.strip().span
        if end <= start:
            return
        # Citations without a sentence belong to the claim before, or else to the first one.
        self._cite_last()
        numbers, self.unplaced = (*self.unplaced, *numbers), []
        # "Yes." and the sentence that explains it are one claim.
        if self.assent is not None and hypothesis is not None and self.claims:
            yes_or_no = self.claims.pop()
            start, numbers = yes_or_no.start, yes_or_no.citations + numbers
        self.assent = None
        if hypothesis is not None:
            # A claim ends a question that the answer asked itself.
            reason, self.open_question, self.claims_anything = "", self.question, True
        denies = None
        # Entailment models read "It is not true that ..." badly: the inner statement is read
        # instead.
        if hypothesis and hypothesis.startswith(NOT_TRUE):
            denies = make_sentence(hypothesis.removeprefix(NOT_TRUE))
        self.claims.append(
            Claim("", hypothesis, reason, start, end, numbers, topic, denies, self.in_english)
        )

    def _cite_last(self) -> None:
        """Add citations without a sentence to the claim before them, if there is one."""
        if self.claims and self.unplaced:
            last = self.claims[-1]
            self.claims[-1] = replace(last, citations=(*last.citations, *self.unplaced))
            self.unplaced = []


def _find_citation_numbers(text: MappedText) -> tuple[int, ...]:
    """Return the numbers that a text cites."""
    return tuple(number for marker in find_citations(text.text) for number in marker.numbers)


def _read_cell(cell: MappedText) -> str:
    """Return the text of a cell without citations and emphasis; a sign becomes its word."""
    markers = find_marker_spans(cell.text, find_citations(cell.text))
    mark = _MARKS.get(cell.text.strip())
    return strip_markup(cell.cut(markers)).text.strip() if mark is None else mark


def _states_outright(text: str) -> bool:
    """Whether a heading, or a cell in the head of a table, is a sentence.

    It has more than three words with a subject and a finite verb, and most of its words do not
    begin with a capital, as those of a title do.
    """
    words = find_words(text)
    capitals = sum(word[0].isupper() for word in words)
    return (
        len(words) > 3
        and is_statement(text)
        and 2 * capitals <= len(words)
        and not text.endswith(":")
    )


def _strip_frames(text: MappedText) -> tuple[MappedText, bool]:
    """Return a sentence without openers and frames, and whether it is a statement that has the form
    of a question: "Did you know that it is free?", "It is free, right?"."""
    asserted = False
    while True:
        # Openers and frames may follow each other in any order: "Sure. In short, yes, ...".
        start = find_opener_end(text.text)
        end = start + find_frame_end(text.text[start:])
        if not end:
            break
        asserted |= text.text[start:end].lower().startswith("did you know")
        text = text[end:]
        # "and", "but" and "so" behind a frame join nothing any more.
        if joining := _JOINING.match(text.text):
            text = text[joining.end() :]
    text = text.cut([find_end_frame(text.text)])
    tag = find_tag_question_start(text.text)
    asserted |= tag < len(text.text)
    text = text[:tag].strip()
    return (text[: len(text.text.rstrip("?"))] if asserted else text), asserted


def _fill_texts(claims: Sequence[Claim], response: str, references: int) -> list[Claim]:
    """Return claims with their texts, and parts without a claim for the text between them.

    All texts together are the complete response. Marks of lists and the like belong to the claim
    behind them.

    Args:
        claims: the claims in order, each with its offsets.
        response: the response as it was written.
        references: the offset of its list of references.
    """
    result: list[Claim] = []
    position = 0
    # Two sentinels: the start of the references and the end of the response.
    ends = [
        *((claim.start, claim) for claim in claims),
        (references, None),
        (len(response), None),
    ]
    for start, claim in ends:
        gap = _TAG.sub("", response[position:start])
        # ``isalpha`` is needed, since the pattern also matches raised digits such as "¹¹¹".
        spoken = any(map(str.isalpha, _LETTERS.findall(gap)))
        # A gap with words in it, such as reasoning, becomes a part that is not judged.
        if spoken and not _CONNECTIVE.fullmatch(gap):
            reason = REASON_REFERENCES if position >= references else REASON_NO_PART
            result.append(_cut_part(response, position, start, Claim("", None, reason)))
            position = start
        # Marks before the list of references belong to nothing.
        elif claim is None and start < len(response):
            position = start
        if claim is not None:
            result.append(_cut_part(response, position, claim.end, claim))
            position = claim.end
    # Marks behind the last word, such as a closing fence, belong to the last claim.
    if result and response[position:].strip():
        result[-1] = _cut_part(response, result[-1].start, len(response), result[-1])
    return result


_TAG = re.compile(r"<[^<>\n]{0,200}>|```\w*")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_CONNECTIVE = re.compile(
    r"\W*(?:but|however|while|and|although|though|even though|yet|whereas)?\W*", re.IGNORECASE
)
"""Conjunctions between the parts of one sentence."""


def _cut_part(response: str, start: int, end: int, claim: Claim) -> Claim:
    part_text = response[start:end]
    start += len(part_text) - len(part_text.lstrip())
    return replace(claim, text=part_text.strip(), start=start, end=start + len(part_text.strip()))


# Claims of an answer in JSON ----------------------------------------------------------------------

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL | re.IGNORECASE)
_NO_STATEMENT = re.compile(
    r"(?:id|uuid|confidence|score|probability|type|format|lang|language|reasoning"
    r"|thoughts?|thinking|rationale"
    r"|chain_of_thought|sources?|citations?|references|documents?|doc_ids?|passages?"
    r"|status|model|timestamp)",
    re.IGNORECASE,
)
"""Names of fields that do not belong to the answer itself."""
_UNIT = re.compile(r"(?:currency|units?)", re.IGNORECASE)
_CITED = re.compile(
    r"(?:sources?|citations?|references|documents?|doc_ids?|passages?)", re.IGNORECASE
)
# Words of a field's name: "openingHours", "opening_hours".
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
MAX_DATA_VALUES = 2_000


def _read_data(text: str) -> Any:
    """Return the JSON object, or list with objects, that an answer consists of, or ``None``."""
    fenced = _FENCED.fullmatch(text)
    bare = (fenced[1] if fenced else text).strip()
    if bare.startswith(("{", "[")):
        # Deep nesting raises RecursionError; such an answer is read as text.
        with suppress(ValueError, RecursionError):
            value = json.loads(bare)
            if isinstance(value, Mapping) or (
                isinstance(value, list) and any(isinstance(element, Mapping) for element in value)
            ):
                return value
    return None


def _build_claims_of_data(
    question: str, response: str, data: Any, split: Splitter
) -> Iterator[Claim]:
    """Yield a claim for each value of an answer in JSON.

    A text that is a sentence is a claim by itself; any other value follows the names of its
    fields: "opening hours: monday: 9 to 5".
    """
    position = 0
    for claim in islice(_build_claims_of_value(question, data, split, (), ()), MAX_DATA_VALUES):
        # Values are searched in order, so that equal ones get different places. One that is escaped
        # in the JSON is not found and gets no place.
        start = response.find(claim.text, position)
        position = start + len(claim.text) if start >= 0 else position
        yield replace(claim, start=max(0, start), end=position if start >= 0 else 0)


def _build_claims_of_value(
    question: str, value: Any, split: Splitter, names: tuple[str, ...], cited: tuple[int, ...]
) -> Iterator[Claim]:
    """Yield the claims of a value.

    Args:
        question: the question that the answer answers.
        value: the value.
        split: splits a text into sentences.
        names: the names of the fields that lead to it, the outermost first.
        cited: citations of the objects around it, which hold for all of their values.
    """
    if isinstance(value, Mapping):
        numbers = [
            inner_value
            for name in value
            if _CITED.fullmatch(str(name))
            for inner_value in _find_integers(value[name])
        ]
        for name, inner_value in _join_units(value).items():
            if not _NO_STATEMENT.fullmatch(name):
                inner = (*names, name), (*cited, *numbers)
                yield from _build_claims_of_value(question, inner_value, split, *inner)
    elif isinstance(value, list):
        for inner_value in value:
            yield from _build_claims_of_value(question, inner_value, split, names, cited)
    elif isinstance(value, str) and is_statement(value):
        for claim in build_claims(question, value, split):
            yield replace(claim, citations=(*claim.citations, *cited))
    elif value is not None and str(value).strip():
        label = ": ".join(" ".join(_NAME_PART.findall(name)).lower() for name in names)
        text = ("yes" if value else "no") if isinstance(value, bool) else value
        yield Claim(f"{label}: {text}", make_sentence(f"{label}: {text}"), citations=cited)


def _find_integers(value: Any) -> Iterator[int]:
    values = value if isinstance(value, list) else [value]
    return (element for element in values if type(element) is int)


def _join_units(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of an object, with the value of a unit field behind the first number.

    ``{"price": 90, "currency": "EUR"}`` becomes ``{"price": "90 EUR"}``.
    """
    fields = {str(name): field_value for name, field_value in value.items()}
    unit = next(
        (
            name
            for name, field_value in fields.items()
            if _UNIT.fullmatch(name) and isinstance(field_value, str)
        ),
        None,
    )
    number = next(
        (name for name, field_value in fields.items() if type(field_value) in (int, float)), None
    )
    if unit is not None and number is not None:
        fields[number] = f"{fields[number]} {fields.pop(unit)}"
    return fields

"""Finds sentences that decline to answer, and the topics that they say the documents do not cover.

The patterns are English. They find the common wordings; of new, varied wordings they find about a
fifth (``lab/results/refusals.md``).
"""

import re

from rapidfuzz.distance import Indel, Levenshtein

from trustassay.text.phrases import carries_detail, find_stating_parts
from trustassay.text.words import normalise_squad

MAX_SENTENCE_CHARACTERS = 2_000
"""Characters of a sentence that are searched for words that decline."""

# Parts of patterns ------------------------------------------------------------------------------

_NOT = r"(?:n'?t| not|not)"
_CANNOT = r"can(?:'t| not|not)"
_I = r"\b(?:I|we)"
_AM = r"(?: am|'m| are|'re| was| were)"
# Nouns for the documents that the model was given; they rarely mean anything else.
_DOCS = (
    r"(?:documents?|documentation|docs|passages?|sources?|(?:search )?results?"
    r"|context(?! menu)|excerpts?"
    r"|texts?(?! messages?)|materials|references?|snippets?|knowledge base"
    r"|(?:provided|supplied|given) (?:information|data|material)|material (?:I was|you)"
    r"|information (?:provided|supplied|given|above)|(?:enclosed|attached) (?:report|files?|letter)"
    r"|any of (?:them|these|those)|(?:studies|articles|reports|papers) (?:provided"
    r"|supplied|given|above))"
)
# Nouns for documents that an answer may also be about ("the policy does not cover floods"), so that
# the patterns need more around them.
_WORKS = (
    r"(?:articles?|reports?|manual|handbook|material|(?:help )?pages?|data|files?"
    r"|information|guide|policy"
    r"|extracts?|brochure|leaflet|letter|transcript|syllabus|warranty card|minutes"
    r"|datasheet|chronicle|paper|lease|agreement|terms|regulations?|faq|catalogue|instructions"
    r"|stud(?:y|ies)|notes|listing|review|book|chapter|contract|log|list|note|email|record"
    r"|website|site)"
)
# What documents do not do with a topic: "do not mention", "does not go into".
_SPEAK = (
    r"(?:mention|say|state|specify|indicate|discuss|cover|address|tell|reveal|describe"
    r"|explain|answer"
    r"|go into|get into|deal with|touch on|speak of|talk about|make clear|disclose|clarify)"
)
# What documents do not do with information: "do not contain", "does not provide".
_HOLD = (
    r"(?:contain|provide|include|give|offer|identify|hold|name|have|list|show|supply"
    r"|report|note|record"
    r"|present)"
)
_SPEAKS = (
    r"(?:mentions|says|states|specifies|indicates|discusses|covers|addresses|reports|names"
    r"|gives|describes"
    r"|explains|gets into|goes into|deals with|touches on|talks about)"
)
# What a model cannot do: "could not find", "unable to determine", "cannot give you an answer".
_FIND = (
    r"(?:find|locate|answer|determine|tell|identify|say|verify|confirm|comment"
    r"|(?:help|assist) (?:you|with)|see (?:any|a) ?(?:mention|information|details?|thing)|speculate"
    r"|work out|see (?:when|where|what|who|whether|how)"
    r"|(?:provide|give|offer)(?: you)?(?: with)?(?: an?| any| the| that| this| legal"
    r"| medical)?(?: \w+)?"
    r" (?:answer|information|details?|advice|response|date|year|name|figure|estimate"
    r"|number|reason))"
)
_KNOWLEDGE = (
    r"(?:information|info|details?|data|context|knowledge|answer|access|records?|evidence|idea"
    r"|clue|comment)"
)
_TOLD = (
    r"(?:mentioned|stated|specified|provided|given|available|found|answered|covered"
    r"|discussed|included"
    r"|addressed|described|disclosed|named|listed|part of|in|contained|reported|presented)"
)
_SPOKEN_OF = (
    r"(?:mentioned|stated|specified|listed|named|discussed|described|disclosed|addressed|indicated)"
)
_SAID = r"(?:mentioned|stated|specified|indicated)"
"""Participles that are said of documents and of little else; "named" and "listed" are not among
them, because people are named elsewhere, too."""
_THING = r"(?:information|details?|topic|figures?|date|name|answer|number)"
_NEWS = r"(?:information|details?|mention|record|reference|word|indication|hint)"

# Sentences that decline -------------------------------------------------------------------------

_NO_ANSWER = re.compile(r"\W*empty response\W*", re.IGNORECASE)
"""The answer of LlamaIndex where it has no passages, or none with a text."""

_DECLINES = [
    # I could not find an answer; I was not able to say; unable to answer
    rf"(?:{_I}(?: \w+ly| therefore| also)? |^)(?:could{_NOT}|{_CANNOT}|did{_NOT}"
    rf"|do{_NOT}) (?:\w+ )?{_FIND}\b",
    rf"{_I} would{_NOT} be able to {_FIND}\b",
    rf"(?:{_I}{_AM}|^)(?: ?unable| not able|n't able) to {_FIND}\b",
    rf"{_I} (?:do{_NOT} (?:currently |actually |really )?|{_CANNOT} )know\b",
    # I do not have any details; I have no information; I am not sure; I would need more
    rf"{_I}(?: currently| really)? do{_NOT} (?:\w+ )?have (?:\w+ ){{0,3}}{_KNOWLEDGE}\b",
    rf"{_I} have no (?:\w+ )?{_KNOWLEDGE}\b",
    rf"\bI do{_NOT} (?:seem to |currently |actually )?have (?:the|that|your|anything)\b",
    rf"\bI do{_NOT} (?:currently )?see (?:an? |any )?(?:article|page|entry|section)",
    rf"\bI(?: would|'d) rather not (?:answer|say|guess)\b|\bneither can I\b"
    rf"|\bI do{_NOT} want to (?:guess|speculate|mislead)\b",
    r"\bno way (?:to|of) (?:know|tell|determin|say|answer|verify)",
    r"^(?:(?:sorry|nope|well|hmm|honestly),? )*(?:no idea\b|it(?:'s| is) not in (?:there|here)"
    r"|nothing (?:here |there )?(?:about|on) )",
    r"\bguess is as good as mine\b|\bdrawing a blank\b|\b(?:that|this)[^.!?\n]{0,9} beyond me\b",
    rf"{_I}{_AM} not (?:aware of any\b|(?:entirely |quite )?(?:sure|certain)"
    r"(?: (?:about (?:that|this)|what the answer)\b|,? (?:about|as|because|since)\b|[.!]|$))",
    rf"{_I}(?: would|'d) need (?:\w+ )?(?:information|context|details)\b",
    rf"{_I} have(?:n't| not) been (?:given|shown|provided)\b|{_I} (?:must|have to) decline\b",
    rf"{_I} do{_NOT} (?:think|believe) (?:that )?(?:\w+ )?{_DOCS}\b",
    rf"{_I} [^.!?\n]{{0,60}}\bfound nothing\b|^found nothing (?:about|on|of)\b"
    rf"|\bone can(?:not|'t) (?:know|tell|say)\b",
    r"\bas an AI\b[^.!?\n]{0,30} (?:can|do|am|could)(?:n't| not|not| unable)",
    r"\bmy (?:knowledge|training|data) (?:do|does|did)(?:n't| not)",
    # The documents do not say; the report never says; they are silent; nothing in them says
    rf"\b{_DOCS}\b[^.!?\n]{{0,60}}? (?:(?:do|does|did|could){_NOT}"
    rf"|{_CANNOT}) (?:\w+ ){{0,3}}?(?:{_SPEAK}|{_HOLD})\b",
    rf"\b(?:the|this|that|your|these|given) (?:\w+ )?{_WORKS}\b[^.!?,\n]{{0,40}}? (?:do"
    rf"|does|did){_NOT}"
    rf" (?:\w+ ){{0,3}}?{_SPEAK}\b(?! so\b)",
    rf"\bthe (?:\w+ )?{_WORKS}\b you [^.!?\n]{{0,30}}? do(?:es)?{_NOT} {_HOLD}\b",
    rf"\b(?:{_DOCS}|{_WORKS}|authors?)\b[^.!?,\n]{{0,25}}? never {_SPEAK}s?\b",
    rf"\b(?:{_DOCS}|{_WORKS})\b[^.!?,\n]{{0,25}}? (?:makes? no mention|(?:is"
    rf"|are) silent|omits? |leaves? out "
    r"|leaves? (?:this|that|it) open|skips? |breaks? off|ends? before |lacks? "
    r"|says? (?:nothing|little)(?! (?:may|can|shall|must|is|was)\b)"
    r"|(?:has|have|gives?|contains?|offers?|provides?) (?:no|nothing)\b)",
    rf"\b(?:they|it) (?:do|does){_NOT} (?:say|mention|state|specify|tell|reveal|talk about"
    rf"|report)\b(?! so\b)",
    rf"\b(?:none|neither|not one)(?: of (?:them|these|those))? {_SPEAKS}\b",
    rf"\bnothing (?:in|within) [^.!?\n]{{0,30}} {_SPEAKS}\b|\bnothing to do with your question\b",
    r"\bnone of (?:the|these|those) \w+ (?:is|are|was|were) relevant\b",
    rf"\bthat (?:name|term|word|{_THING}) do(?:es)?{_NOT} appear\b",
    rf"\b(?:is not|isn't) something (?:that )?(?:the|this|our) {_WORKS} {_SPEAKS}\b",
    rf"\b(?:none of|no|neither(?: of)?)(?: the| these| those)?(?: \w+){{0,2}} (?:{_DOCS}"
    rf"|articles?|reports?|pages)\b"
    rf"[^.!?\n]{{0,30}}? (?:{_SPEAK}|{_HOLD}|deals with|address)(?:s|es|ed)?\b",
    rf"\bnothing (?:in|within) [^.!?\n]{{0,30}}\b(?:{_DOCS}|{_WORKS})\b",
    rf"\bnothing (?:about|on) [^.!?\n]{{0,30}} in [^.!?\n]{{0,20}}\b(?:{_DOCS}|{_WORKS})\b",
    # There is not enough information; there is no mention of it
    r"(?<!was )(?<!were )\b(?:not enough|insufficient|n't enough) (?:information|context"
    r"|details?)\b"
    rf"(?! (?:in|from) (?!(?:the |these |this |your )?(?:\w+ )?{_DOCS}))(?! to (?!answer"
    rf"|determine|say|tell|know))",
    r"\b(?:not enough|insufficient|n't enough) (?:information|context|details?|evidence|data)"
    r" to (?:answer|determine|say|tell|know)\b|^insufficient (?:evidence|data)\b",
    rf"\b(?:evidence|{_DOCS}|{_WORKS})(?: provided| supplied| given)? (?:is|are)"
    r" (?:insufficient|not sufficient|not enough) (?:to (?:answer|determine|draw|say|tell|know"
    r"|conclude)|for)\b",
    r"\bno (?:answer|estimate|conclusion|figure) (?:is possible|can (?:\w+ )?be (?:given"
    r"|offered|drawn|made))\b"
    r"|\bso: no answer\b",
    r"(?<!had )\bno (?:\w+ )?(?:information|details?|mention|record)"
    r"(?: (?:about|on|regarding|concerning|is|was|are|were|in|to|of|available|found|given"
    r"|provided)\b|[.;]|$)",
    r"\b(?:is|are)(?:n't| not) any (?:\w+ )?(?:information|mention|reference|details?|record)\b",
    # It cannot be answered; it is not possible to determine
    r"\b(?:question|answer|this|that|it|outcome) (?:cannot|can't|can not|could not"
    r"|couldn't) be (?:\w+ )?"
    r"(?:answered|determined|found|verified|inferred|established|confirmed|known)\b(?! by\b)",
    r"\b(?:cannot|can't) be (?:answered|determined|inferred|established) (?:from|based|with)\b",
    r"\b(?:not possible|impossible) to (?:answer|determine|say|know|establish|confirm|verify)\b"
    r"(?! (?:the|an?) (?!answer|exact|precise))",
    # No answer was found; there is no answer in the documents
    r"\b(?:no answer|an(?:y)? answer)\b[^.!?\n]{0,20} (?:found|available|given|provided)\b",
    rf"{_NOT} [^.!?\n]{{0,20}}\ban(?:y)? answer in\b",
    # It is not given in the documents; it is missing from them; it is outside their scope
    rf"\b(?:is|are|was|were)(?: not|n't) (?:\w+ )?{_TOLD}\b[^.!?\n]{{0,30}} (?:{_DOCS}"
    rf"|help pages|knowledge base)\b",
    rf"\bit (?:is not|isn't) {_TOLD} anywhere\b|^not (?:mentioned|stated|specified|given)\b",
    r"^it (?:is not|isn't) (?:mentioned|stated|specified|disclosed|said) (?:wh(?:ich|o|at"
    r"|en|ere|ether|y)|how)\b",
    rf"^(?:that|this) {_THING} (?:is|are) (?:missing|absent)\b",
    r"^(?:the )?data on [^.!?\n]{0,40} (?:was|were|is|are) not (?:presented|reported|given)\b",
    rf"^(?:that|this) (?:information|detail|topic) (?:is not|isn't) (?:\w+ )?{_TOLD}\b",
    rf"\b(?:missing|absent) from (?:\w+ ){{0,2}}{_DOCS}\b",
    rf"\b(?:beyond|outside)\b[^.!?\n]{{0,25}}\b(?:{_DOCS}|my knowledge)\b",
    rf"\b(?:something I can|able to) answer from\b|\b(?:unclear|unknown"
    rf"|not clear)\b[^.!?\n]{{0,12}} {_DOCS}\b",
    r"^(?:unknown|n/a|not found|no information|no answer|unanswerable|uncertain)\b *(?:[.;,:–-]|$)",
]
_DECLINING = [re.compile(pattern, re.IGNORECASE) for pattern in _DECLINES]
_QUOTED = re.compile(r'["“][^"”\n]*["”]')
_COVERAGE = re.compile(
    r"\b(?:policy|contract|plan|warranty|insurance)\b.*(?:n't| not) (?:\w+ )?cover", re.IGNORECASE
)
"""A policy that "does not cover" something: this is a statement about the policy, no refusal."""
_LABEL = re.compile(r"(?:final )?answer: *", re.IGNORECASE)
_REPORTED = re.compile(
    r"\b(?:said|replied|ruled|admitted|claimed|insisted"
    r"|told \w+(?: \w+)?)(?: that)?(?: \w+){0,3} $",
    re.IGNORECASE,
)
"""The end of a text before the words of somebody else: "the witness said that "."""


def find_refusal_words(sentence: str) -> str | None:
    """Return the words by which an English sentence declines to answer; ``None`` if none do.

    Quoted and reported words do not count: an answer may explain an error message, or report that
    a witness said there was no information. Only the first 2,000 characters are searched.
    """
    bare = _LABEL.sub("", _QUOTED.sub('""', _normalise_apostrophes(sentence)), count=1)
    for pattern in _DECLINING:
        match = pattern.search(bare)
        # A reported match does not end the search: another pattern may match elsewhere.
        if match is None or _REPORTED.search(bare[: match.start()]):
            continue
        if not _COVERAGE.search(match[0]):
            return match[0]
    return None


def _normalise_apostrophes(sentence: str) -> str:
    return sentence[:MAX_SENTENCE_CHARACTERS].replace("’", "'")


# What a sentence denies -------------------------------------------------------------------------

_SOURCE = (
    rf"(?:(?:the|these|those|this|your|my|any of the|the provided"
    rf"|the given)? ?(?:\w+ )?(?:{_DOCS}|{_WORKS})"
    rf"(?: (?:provided|given|above|I was given|you (?:provided|shared|gave me)))?)"
)
# The topic; its punctuation ends it, so that one sentence cannot deny more than its clause.
_TOPIC = r"(?P<topic>[^.;!?]{2,200}?)"
# The words after a topic: "in the passages provided.", "at all."
_END = rf"(?:,? (?:(?:in|from|by|within) {_SOURCE}\b|at all\b|anywhere\b)[^.;!?]{{0,20}})?[.;!]*$"
_DENIES = [
    # "The documents do not mention X."
    rf"{_SOURCE}\b[^.!?,\n]{{0,30}}? (?:(?:do|does|did){_NOT}|never) (?:\w+ly )?"
    rf"(?:mention|discuss|describe|specify|state|list|indicate|address|explain"
    rf"|say(?! so\b)|tell)s? (?:any |the |a )?{_TOPIC}{_END}",
    # "The documents do not contain any information about X."
    rf"{_SOURCE}\b[^.!?,\n]{{0,30}}? (?:(?:do|does|did){_NOT}) (?:\w+ )?(?:contain|provide"
    rf"|include|give|have|hold|offer)"
    rf" (?:any |the |a )?{_NEWS} (?:about|on|of|regarding|concerning|as to) {_TOPIC}{_END}",
    # "The documents make no mention of X.", "are silent on X.", "have nothing about X."
    rf"{_SOURCE}\b[^.!?,\n]{{0,30}}? (?:makes? no {_NEWS} of|(?:is|are) silent (?:on"
    rf"|about)|says? nothing (?:about|on|of)"
    rf"|(?:has|have|gives?|contains?|offers?|provides?) (?:no"
    rf"|nothing) (?:{_NEWS} )?(?:about|on|of|regarding)) {_TOPIC}{_END}",
    # "There is no information about X."
    rf"\bno(?: \w+)? {_NEWS} (?:about|on|of|regarding|concerning|as to) {_TOPIC}"
    rf"(?: (?:is|was|were|are) (?:found|given|made|provided|available|there))?{_END}",
    # "There isn't any mention of X."
    rf"(?:isn't|is not|aren't|are not|wasn't|was not) any {_NEWS} (?:about|on|of"
    rf"|regarding) {_TOPIC}{_END}",
    # "X is not mentioned in the documents."
    rf"^(?:unfortunately,? |sorry,? )*(?P<before>(?:the |an? "
    rf"|any )?[^.;!?,]{{2,80}}?) (?:is|are|was|were)(?: not|n't)"
    rf" (?:\w+ly )?(?:{_SAID}(?: (?:here|anywhere|there|explicitly))?|{_SPOKEN_OF} (?:here"
    rf"|(?:in|by) {_SOURCE}[^.;!?]{{0,40}}))[.;!]*$",
    # "It is not stated X." as in "It is not stated who built it."
    rf"^it (?:is|was)(?: not|n't) (?:\w+ly )?{_SPOKEN_OF} (?:anywhere )?{_TOPIC}{_END}",
    # "No X is mentioned."
    rf"^(?:unfortunately,? )?(?P<none>no) (?P<what>[^.;!?,]{{2,60}}?) (?:is|are|was"
    rf"|were) (?:\w+ly )?"
    rf"(?:{_SAID}(?: (?:here|there))?|{_SPOKEN_OF} (?:here|(?:in"
    rf"|by) {_SOURCE}[^.;!?]{{0,40}}))[.;!]*$",
    # "X is not in the documents.", "X is missing from the documents."
    rf"^(?:unfortunately,? |sorry,? )*(?P<absent>(?:the |an? "
    rf"|any )?[^.;!?,]{{2,80}}?) (?:(?:is|are|was|were)(?: not|n't)"
    rf" (?:given |provided |available |found |included |covered |contained )?in|(?:is"
    rf"|are) (?:missing|absent) from)"
    rf" (?:the |any of the )?(?:{_DOCS})\b[^.;!?]{{0,40}}[.;!]*$",
    # "I could not find any information about X."
    rf"{_I}(?: \w+ly)? (?:could{_NOT}|{_CANNOT}|did{_NOT}) (?:find|locate"
    rf"|see(?= any)) (?:any |the |a )?(?:{_NEWS} (?:about|on|of|regarding)"
    rf" )?{_TOPIC}{_END}",
]
# A datum may be called "not given" without a word for the documents: "No price is listed."
_DATUM = (
    r"(?:\w+ ){0,2}(?:prices?|fees?|costs?|dates?|times?|figures?|numbers?|address(?:es)?|names?"
    r"|reasons?|amounts?)"
)
_DENIES += [
    rf"^(?:unfortunately,? )?no (?P<datum>{_DATUM}) (?:is|are|was|were) (?:\w+ly )?(?:given|listed"
    r"|provided)[.;!]*$",
    rf"^(?:unfortunately,? )?(?:the |an? )?(?P<datum>{_DATUM}) (?:is|are|was|were)(?: not|n't)"
    r" (?:\w+ly )?(?:given|listed|provided)[.;!]*$",
]
_DENYING = [re.compile(pattern, re.IGNORECASE) for pattern in _DENIES]
_TOPICS = ("topic", "before", "what", "absent", "datum")
_ANYTHING_ABOUT = re.compile(r"^(?:anything|much|a word) (?:about|on|of) ", re.IGNORECASE)
_NO_TOPIC = re.compile(
    rf"(?:so|it|that|this|them|these|one|anything|something|who|whom|what|which|when|where"
    rf"|why|how|whether|(?:an?|the|this|that|your|any)? ?(?:\w+ )?"
    rf"(?:{_THING}|{_NEWS}|question|context)s?)(?: (?:about|on|of|for|to) (?:it|this|that"
    rf"|your question))?",
    re.IGNORECASE,
)
"""Topics that name nothing by themselves: "the answer", "this information"."""


def find_denied_topic(sentence: str) -> str | None:
    """Return the topic that a sentence says the documents do not cover.

    ``None`` if it says nothing of the kind, or names no topic: "The documents do not say."
    """
    bare = _normalise_apostrophes(sentence).strip()
    # The same length as before, so that a pattern that matches outside of quotations still does.
    unquoted = _QUOTED.sub(lambda match: "\0" * len(match[0]), bare)
    for pattern in _DENYING:
        match = pattern.search(bare)
        if match is None or _REPORTED.search(bare[: match.start()]):
            continue
        if pattern.search(unquoted) is None:
            continue  # the denial stands in a quotation
        groups = match.groupdict()
        topic = next((groups[name] for name in _TOPICS if groups.get(name)), "").strip(" ,:")
        topic = _ANYTHING_ABOUT.sub("", topic)
        if topic and not _NO_TOPIC.fullmatch(topic):
            return topic
    return None


# What stands beside a refusal -------------------------------------------------------------------

# Where a refusal turns into an answer: "..., but it was in 1889", "...; the report says 3".
_TURN = re.compile(
    r"(?:;|[,.]? (?:but|however,?|though|although|yet)\b|, (?:so|which|hence|therefore)\b"
    r"|,? (?:while|whereas|and) (?=(?:the|no|nothing|there|I|we|it|this|that) )) *",
    re.IGNORECASE,
)
# A sentence that begins with its refusal: "While the passages do not say who, ...".
_CONCESSION = re.compile(r"(?:while|although|though|even though) *", re.IGNORECASE)
_ASIDES = [
    # an apology
    r"(?:(?:I(?:'m| am)? )?(?:very |so )?sorry|(?:my )?apologies|I apologi[sz]e|unfortunately)\b",
    # a referral elsewhere
    r"(?:please (?:contact|check|see|visit|ask|consult|try|provide|let)|perhaps|maybe|try|consider"
    r"|contact (?!lens)|check|if you (?:need|want|have|could|can|would|provide|share|give|let|wish)"
    r"|for (?:more|further|questions) "
    r"|I(?:'d| would)? (?:recommend|suggest|advise)|you (?:may|might|can|could|should)(?: also)?"
    r" (?:want|wish|try|check|contact|consult|ask|look|find))\b",
    # what was asked, and what was done to find it
    r"I(?:'d| would) (?:love|like|be happy) to (?:help|answer|assist)\b|(?:your question"
    r"|you) ask(?:s|ed)?\b"
    r"|I(?: have|'ve)? (?:searched|looked|checked|read|went through|scanned|reviewed)\b"
    r"|I can tell you're\b|I have none\b|you(?:'d| would)? have to (?:ask|check|contact)\b",
]
_ASIDE = re.compile("|".join(_ASIDES), re.IGNORECASE)
_ABOUT_SOURCES = re.compile(
    r"(?:describe|discuss|cover|mention|talk|focus)(?:e?s)?\b"
    rf"|(?:they|these|(?:the|these|your)(?: \w+)? {_DOCS}|(?:document"
    rf"|passage|source|article|text) \d+)"
    r"(?: only| just| mainly| do)* (?:discuss|describe|cover|mention|talk|focus|deal|speak"
    r"|contain|relate|refer)(?:e?s)?\b"
    r"|(?:document|passage|source|article|text) \d+: about\b|the search returned\b",
    re.IGNORECASE,
)
"""Sentences that tell what the documents are about instead: "They only discuss prices."."""


def split_refusal(sentence: str) -> list[tuple[int, int, bool]]:
    """Split a sentence that declines, or denies a topic, into parts that decline and that answer.

    "The passages do not say who, but it was in 1889" answers behind "but"; "While the passages do
    not say who, it was in 1889" answers behind the comma. A part of fewer than three words belongs
    to the next one.

    Returns:
        For each part its start, its end, and whether it declines.
    """
    plain = _normalise_apostrophes(sentence)
    turns = [match.span() for match in _TURN.finditer(plain)]
    if concession := _CONCESSION.match(plain):
        # The comma that ends the concession is the first one behind the words that decline.
        refusal_words = find_refusal_words(plain)
        comma = plain.find(
            ", ", plain.find(refusal_words) + len(refusal_words) if refusal_words else 0
        )
        # The concession's own conjunction opens the first part and belongs to neither.
        turns = [(0, concession.end()), *([(comma, comma + 2)] if comma >= 0 else [])]
    result: list[tuple[int, int, bool]] = []
    start, topic_before = 0, None
    for end, following in [*turns, (len(sentence), len(sentence))]:
        part = sentence[start:end].lstrip(" ,;:")
        if len(part.split()) < 3 and following < len(sentence):
            # "bicycles, however, travel free" has a turn, but not two parts.
            start = following if end == 0 else start
            continue
        topic = find_denied_topic(part)
        refuses = bool(find_refusal_words(part) or topic or belongs_to_refusal(part))
        # Neighbours of the same kind are one part, unless they deny different topics.
        if result and refuses == result[-1][2] and not topic and not topic_before:
            result[-1] = (result[-1][0], end, refuses)
        else:
            result.append((start, end, refuses))
        start, topic_before = following, topic
    return result


def belongs_to_refusal(sentence: str) -> bool:
    """Whether a sentence beside a refusal adds no answer.

    It may apologise, refer elsewhere (without a number) or tell what the documents are about.
    """
    plain = _normalise_apostrophes(sentence)
    # Clauses of the aside that state something else: "Sorry, the pool is closed."
    more = (
        part
        for part in find_stating_parts(plain)
        if not (plain.startswith(part) or find_refusal_words(part) or _ASIDE.match(part))
    )
    is_aside = _ASIDE.match(plain) is not None and not carries_detail(plain) and not any(more)
    return is_aside or _ABOUT_SOURCES.match(plain) is not None


def is_no_answer_placeholder(text: str) -> bool:
    """Whether a text is the placeholder of an engine without an answer, which no model wrote."""
    return _NO_ANSWER.fullmatch(text) is not None


# Answers that were given without passages -------------------------------------------------------

_SORRY = (
    rf"(?:(?:(?:i|we)(?:{_AM} (?:\w+ )?)?sorry|sorry|(?:i|we) apologi[sz]e|(?:my )?apologies)"
    r"(?: for (?:the|any) (?:confusion|inconvenience))?)"
)
_WILL_NOT = (
    r"(?:i|we)(?: (?:cannot|can't|can not|could not|couldn't|won't|will not)"
    r"|(?: am|'m| are|'re) (?:unable|not able))\b"
)
# Verbs that must follow "I cannot": "We Can't Stop" and "I Can't Help Myself" are titles.
_AT_WORK = (
    r"(?:to\b|(?:\w+ )?(?:answer|assist|comment|comply|confirm|determine|discuss|fulfil"
    r"|fulfill|identify|locate"
    r"|offer|provide|recall|remember|respond|say|verify|do (?:that|this)|help (?:you|with)"
    r"|help(?=\W*$)"
    r"|find (?:an?|any|the|that|this|out|information)|(?:give|tell)(?: you)? (?:an?|any"
    r"|the|that|this|what|which"
    r"|who|when|where|how|whether|if|medical|legal|financial|advice))\b)"
)
_OUTRIGHT = re.compile(
    rf"\W*(?:{_SORRY}\W+(?:but\b|{_WILL_NOT}|(?:i|we) (?:do|did)(?: not|n't)\b|(?:i"
    rf"|we) have no\b|as an ai\b"
    r"|(?:there|this|that|it|the)\b[^.!?\n]*?\b(?:no|not|cannot|\w+n't)\b)"
    rf"|as an ai\b|{_WILL_NOT}(?:\W*$| {_AT_WORK}))",
    re.IGNORECASE,
)


def begins_with_refusal(text: str) -> bool:
    """Whether a text begins as a refusal does: "I'm sorry, but I cannot ..."."""
    return _OUTRIGHT.match(_normalise_apostrophes(text)) is not None


# The decision of Trust-Eval ---------------------------------------------------------------------

# The sentence that Trust-Eval's prompt asks for, and its threshold. Ratios are 0 to 100.
REFUSAL_FLAG = normalise_squad("I apologize, but I couldn't find an answer")
FLAG_SIMILARITY_THRESHOLD = 85


def compute_flag_similarity(text: str) -> int:
    """Return how closely a part of ``text`` resembles the refusal flag of Trust-Eval, 0 to 100.

    The partial ratio of fuzzywuzzy on Levenshtein matching blocks: windows of the longer text, as
    long as the shorter one, are placed where a global alignment matches them, and the best
    similarity 2 LCS / (sum of lengths) counts. Equal texts give 100, a blank text 0.
    """
    normal = normalise_squad(text)
    if normal == REFUSAL_FLAG:
        return 100
    if not normal:
        return 0
    # From here on the code follows ``partial_ratio`` of fuzzywuzzy, including its shortcut at
    # 0.995.
    short, long = (
        (REFUSAL_FLAG, normal) if len(REFUSAL_FLAG) <= len(normal) else (normal, REFUSAL_FLAG)
    )
    best = 0.0
    for block in Levenshtein.editops(short, long).as_matching_blocks():
        start = max(0, block.b - block.a)
        ratio = Indel.normalized_similarity(short, long[start : start + len(short)])
        if ratio > 0.995:
            return 100
        best = max(best, ratio)
    return round(100 * best)


def find_refusal_as_in_paper(text: str) -> str | None:
    """Trust-Eval's decision: the flag, or nearly the flag, is anywhere in the response."""
    similarity = compute_flag_similarity(text)
    if similarity <= FLAG_SIMILARITY_THRESHOLD:
        return None
    return f"{similarity} % similar to Trust-Eval's refusal sentence"

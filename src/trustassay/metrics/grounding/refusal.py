"""Does a response decline to answer, and what does such a response answer nevertheless?"""

from __future__ import annotations

import re
from collections.abc import Callable

from rapidfuzz.distance import Indel, Levenshtein

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.metrics.grounding.sentences import statements
from trustassay.metrics.grounding.text import normalise_squad

NO_ANSWER = "not assessable: there is no answer (an engine without passages says Empty Response)"

LONGEST = 2_000
"""Characters of a sentence in which words that decline are looked for."""
_NOT = r"(?:n['’]t| not|not)"
_CANNOT = r"can(?:['’]t| not|not)"
_SHOWN = (
    r"(?:documents?|documentation|docs|passages?|sources?|(?:search )?results?|context(?! menu)"
    r"|excerpts?|texts?(?! messages?)|materials|references?|snippets?|knowledge base"
    r"|(?:provided|supplied|given) (?:information|data|material)"
    r"|information (?:provided|supplied|given|above)"
    r"|(?:enclosed|attached) (?:report|files?|letter)|any of (?:them|these|those)"
    r"|(?:studies|articles|reports|papers) (?:provided|supplied|given|above))"
)
"""What was shown to the model, by words that rarely mean anything else."""
_WRITTEN = (
    r"(?:articles?|reports?|manual|handbook|material|(?:help )?pages?|data|files?|information"
    r"|guide|policy|extracts?|brochure|leaflet|letter|transcript|syllabus|warranty card|minutes"
    r"|datasheet|chronicle|paper|stud(?:y|ies)|notes|listing|review|book|chapter)"
)
_SPEAK = (
    r"(?:mention|say|state|specify|indicate|discuss|cover|address|tell|reveal|describe|explain"
    r"|answer|go into|get into|deal with|touch on|speak of|talk about|make clear|disclose"
    r"|clarify)"
)
_HOLD = (
    r"(?:contain|provide|include|give|offer|identify|hold|name|have|list|show|supply|report|note"
    r"|record|present)"
)
_FIND = (
    r"(?:find|locate|answer|determine|tell|identify|say|verify|confirm|comment"
    r"|(?:help|assist) (?:you|with)"
    r"|see (?:any|a) ?(?:mention|information|details?|thing)"
    r"|speculate|work out|see (?:when|where|what|who|whether|how)"
    r"|(?:provide|give|offer)(?: you)?(?: with)?"
    r"(?: an?| any| the| that| this| legal| medical)?(?: \w+)? (?:answer|information|details?"
    r"|advice|response|date|year|name|figure|estimate|number|reason))"
)
_KNOWLEDGE = (
    r"(?:information|info|details?|data|context|knowledge|answer|access|records?|evidence|idea"
    r"|clue|comment)"
)
_TOLD = (
    r"(?:mentioned|stated|specified|provided|given|available|found|answered|covered|discussed"
    r"|included|addressed|described|disclosed|named|listed|part of|in|contained|reported"
    r"|presented)"
)
_SAYS = (
    r"(?:mentions|says|states|specifies|indicates|discusses|covers|addresses|reports|names|gives"
    r"|describes|explains|gets into|goes into|deals with|touches on|talks about)"
)
_THING = r"(?:information|details?|topic|figures?|date|name|answer|number)"
_I = r"\b(?:I|we)"
_EMPTY = r"^\W*empty response\W*$"
"""What LlamaIndex gives for an answer where it has no passages, or none with a text."""
_DECLINING = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        _EMPTY,
        # I could not find an answer; I was not able to say; unable to answer
        rf"(?:{_I}(?: \w+ly| therefore| also)? |^)(?:could{_NOT}|{_CANNOT}|did{_NOT}|do{_NOT}) "
        rf"(?:\w+ )?{_FIND}\b",
        rf"{_I} would{_NOT} be able to {_FIND}\b",
        rf"(?:{_I}(?: am|['’]m| are|['’]re| was| were)|^)(?: ?unable| not able|n['’]t able) "
        rf"to {_FIND}\b",
        rf"{_I} (?:do{_NOT} (?:currently |actually |really )?|{_CANNOT} )know\b",
        # I do not have any details; I have no information; I am not sure; I would need more
        rf"{_I}(?: currently| really)? do{_NOT} (?:\w+ )?have (?:\w+ ){{0,3}}{_KNOWLEDGE}\b",
        rf"{_I} have no (?:\w+ )?{_KNOWLEDGE}\b",
        rf"\bI do{_NOT} (?:seem to |currently |actually )?have (?:the|that|your|anything)\b",
        rf"\bI do{_NOT} (?:currently )?see (?:an? |any )?(?:article|page|entry|section)",
        rf"\bI(?: would|['’]d) rather not (?:answer|say|guess)\b"
        rf"|\bI do{_NOT} want to (?:guess|speculate|mislead)\b|\bneither can I\b",
        r"\bno way (?:to|of) (?:know|tell|determin|say|answer|verify)",
        r"^(?:(?:sorry|nope|well|hmm|honestly),? )*(?:no idea\b"
        r"|it(?:['’]s| is) not in (?:there|here)"
        r"|nothing (?:here |there )?(?:about|on) )",
        r"\bguess is as good as mine\b|\bdrawing a blank\b"
        r"|\b(?:that|this)[^.!?\n]{0,9} beyond me\b",
        rf"{_I}(?: am|['’]m| are|['’]re) not (?:aware of any\b"
        r"|(?:entirely |quite )?(?:sure|certain)"
        r"(?: (?:about (?:that|this)|what the answer)\b|, (?:as|because|since)\b|[.!]|$))",
        rf"{_I}(?: would|['’]d) need (?:\w+ )?(?:information|context|details)\b",
        rf"{_I} have(?:n['’]t| not) been (?:given|shown|provided)\b",
        rf"{_I} (?:must|have to) decline\b",
        rf"{_I} do{_NOT} (?:think|believe) (?:that )?(?:\w+ )?{_SHOWN}\b",
        rf"{_I} [^.!?\n]{{0,60}}\bfound nothing\b|\bone can(?:not|['’]t) (?:know|tell|say)\b",
        r"\bas an AI\b[^.!?\n]{0,30} (?:can|do|am|could)(?:n['’]t| not|not| unable)",
        r"\bmy (?:knowledge|training|data) (?:do|does|did)(?:n['’]t| not)",
        # the documents do not say; the report never says; they are silent; nothing in them says
        rf"\b{_SHOWN}\b[^.!?\n]{{0,60}}? (?:(?:do|does|did|could){_NOT}|{_CANNOT}) "
        rf"(?:\w+ ){{0,3}}?(?:{_SPEAK}|{_HOLD})\b",
        rf"\b(?:the|this|that|your|these|given) (?:\w+ )?{_WRITTEN}\b[^.!?,\n]{{0,40}}? "
        rf"(?:do|does){_NOT} (?:\w+ ){{0,3}}?{_SPEAK}\b(?! so\b)",
        rf"\bthe (?:\w+ )?{_WRITTEN}\b you [^.!?\n]{{0,30}}? do(?:es)?{_NOT} {_HOLD}\b",
        rf"\b(?:{_SHOWN}|{_WRITTEN}|authors?)\b[^.!?,\n]{{0,25}}? never {_SPEAK}s?\b",
        rf"\b(?:{_SHOWN}|{_WRITTEN})\b[^.!?,\n]{{0,25}}? (?:makes? no mention|(?:is|are) silent"
        r"|omits? |leaves? out |leaves? (?:this|that|it) open|skips? |breaks? off|ends? before "
        r"|lacks? |says? (?:nothing|little)|(?:has|have|gives?|contains?|offers?|provides?) "
        r"(?:no|nothing)\b)",
        rf"\b(?:they|it) (?:do|does){_NOT} (?:say|mention|state|specify|tell|reveal|talk about"
        r"|report)\b(?! so\b)",
        rf"\b(?:none|neither|not one)(?: of (?:them|these|those))? {_SAYS}\b",
        rf"\bnothing (?:in|within) [^.!?\n]{{0,30}} {_SAYS}\b",
        r"\bnone of (?:the|these|those) \w+ (?:is|are|was|were) relevant\b",
        r"\bnothing to do with your question\b",
        rf"\bthat (?:name|term|word|{_THING}) do(?:es)?{_NOT} appear\b",
        rf"\b(?:is not|isn['’]t) something (?:that )?(?:the|this|our) {_WRITTEN} {_SAYS}\b",
        rf"\b(?:none of|no|neither(?: of)?)(?: the| these| those)?(?: \w+){{0,2}} "
        rf"(?:{_SHOWN}|articles?|reports?|pages)\b[^.!?\n]{{0,30}}? (?:{_SPEAK}|{_HOLD}"
        r"|deals with|address)(?:s|es|ed)?\b",
        rf"\bnothing (?:in|within) [^.!?\n]{{0,30}}\b(?:{_SHOWN}|{_WRITTEN})\b",
        rf"\bnothing (?:about|on) [^.!?\n]{{0,30}} in [^.!?\n]{{0,20}}\b(?:{_SHOWN}|{_WRITTEN})\b",
        rf"\bnothing in the (?:{_SHOWN}|{_WRITTEN})\b",
        # there is not enough information; there is no mention of it
        r"(?<!was )(?<!were )\b(?:not enough|insufficient|n['’]t enough) "
        r"(?:information|context|details?)\b",
        r"\b(?:not enough|insufficient|n['’]t enough) (?:information|context|details?) to "
        r"(?:answer|determine|say|tell|know)\b",
        r"^insufficient (?:evidence|data)\b",
        rf"\b(?:evidence|{_SHOWN}|{_WRITTEN})(?: provided| supplied| given)? (?:is|are) "
        r"(?:insufficient|not sufficient|not enough) (?:to|for)\b",
        r"\bno (?:answer|estimate|conclusion|figure) (?:is possible|can (?:\w+ )?be "
        r"(?:given|offered|drawn|made))\b|\bso: no answer\b",
        r"\b(?:not enough|insufficient) (?:evidence|data) to (?:answer|determine|say|tell)\b",
        r"(?<!had )\bno (?:\w+ )?(?:information|details?|mention|record)(?: (?:about|on|regarding"
        r"|concerning|is|was|are|were|in|to|of|available|found|given|provided)\b|[.;]|$)",
        r"\b(?:is|are)(?:n['’]t| not) any (?:\w+ )?"
        r"(?:information|mention|reference|details?|record)\b",
        # it cannot be answered; it is not possible to determine
        r"\b(?:question|answer|this|that|it|outcome) (?:cannot|can['’]t|can not|could not"
        r"|couldn['’]t) be (?:\w+ )?(?:answered|determined|found|verified|inferred|established"
        r"|confirmed|known)\b",
        r"\b(?:cannot|can['’]t) be (?:answered|determined|inferred|established) "
        r"(?:from|based|with)\b",
        r"\b(?:not possible|impossible) to (?:answer|determine|say|know|establish|confirm"
        r"|verify)\b",
        # no answer was found; there is no answer in the documents
        r"\b(?:no answer|an(?:y)? answer)\b[^.!?\n]{0,20} (?:found|available|given|provided)\b",
        rf"{_NOT} [^.!?\n]{{0,20}}\ban(?:y)? answer in\b",
        # it is not given in the documents; it is missing from them; it is outside their scope
        rf"\b(?:is|are|was|were)(?: not|n['’]t) (?:\w+ )?{_TOLD}\b"
        rf"[^.!?\n]{{0,30}} (?:{_SHOWN}|help pages|knowledge base)\b",
        rf"\bit (?:is not|isn['’]t) {_TOLD} anywhere\b|^not (?:mentioned|stated|specified|given)\b",
        r"^it (?:is not|isn['’]t) (?:mentioned|stated|specified|disclosed|said) "
        r"(?:wh(?:ich|o|at|en|ere|ether|y)|how)\b",
        rf"^(?:that|this) {_THING} (?:is|are) (?:missing|absent)\b",
        r"^(?:the )?data on [^.!?\n]{0,40} (?:was|were|is|are) not (?:presented|reported|given)\b",
        r"^(?:that|this) (?:information|detail|topic) (?:is not|isn['’]t) (?:\w+ )?"
        rf"{_TOLD}\b",
        rf"\b(?:missing|absent) from (?:\w+ ){{0,2}}{_SHOWN}\b",
        rf"\b(?:beyond|outside)\b[^.!?\n]{{0,25}}\b(?:{_SHOWN}|my knowledge)\b",
        rf"\b(?:something I can|able to) answer from\b|\b(?:unclear|unknown|not clear)\b"
        rf"[^.!?\n]{{0,12}} {_SHOWN}\b",
        r"^(?:unknown|n/a|not found|no information|no answer|unanswerable|uncertain)\b"
        r" *(?:[.;,:–-]|$)",
    )
)
_SORRY = (
    r"(?:(?:(?:i|we)(?: am|['’]m| are|['’]re) (?:\w+ )?)?sorry|(?:i|we) apologi[sz]e"
    r"|(?:my )?apologies)(?: for (?:the|any) (?:confusion|inconvenience))?"
)
_CANNOT = (
    r"(?:i|we)(?: (?:cannot|can['’]t|can not|could not|couldn['’]t|won['’]t|will not)"
    r"|(?: am|['’]m| are|['’]re) (?:unable|not able))\b"
)
_AT_WORK = (  # what is declined: "We Can't Stop" and "I Can't Help Myself" are titles
    r"(?:to\b|(?:\w+ )?(?:answer|assist|comment|comply|confirm|determine|discuss|fulfil|fulfill"
    r"|identify|locate|offer|provide|recall|remember|respond|say|verify|do (?:that|this)"
    r"|help (?:you|with)|help(?=\W*$)|find (?:an?|any|the|that|this|out|information)"
    r"|(?:give|tell)(?: you)? (?:an?|any|the|that|this|what|which|who|when|where|how|whether|if"
    r"|medical|legal|financial|advice))\b)"
)
_SAYS_NO = r"(?:there|this|that|it|the)\b[^.!?\n]*?\b(?:no|not|cannot|\w+n['’]t)\b"
_OUTRIGHT = re.compile(
    rf"\W*(?:{_SORRY}\W+(?:but\b|{_CANNOT}|(?:i|we) (?:do|did)(?: not|n['’]t)\b"
    rf"|(?:i|we) have no\b|as an ai\b|{_SAYS_NO})|as an ai\b|{_CANNOT}(?:\W*$| {_AT_WORK}))",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“][^\"”\n]*[\"”]")
_LABEL = re.compile(r"(?:final )?answer: *", re.IGNORECASE)
_REPORTED = re.compile(
    r"\b(?:said|replied|ruled|admitted|claimed|insisted|told \w+(?: \w+)?)(?: that)?"
    r"(?: \w+){0,3} $",
    re.IGNORECASE,
)
"""What stands before words that somebody else said."""
_APOLOGY = re.compile(
    r"(?:(?:I['’]?a?m )?sorry|(?:my )?apologies|I apologi[sz]e|unfortunately)\b", re.IGNORECASE
)
_REFERRAL = re.compile(
    r"(?:please|perhaps|maybe|try|consider|contact|check|if you|for (?:more|further|questions) "
    r"|I(?:['’]d| would)? (?:recommend|suggest|advise)"
    r"|you (?:may|might|can|could|should)(?: also)? (?:want|wish|try|check|contact|consult|ask"
    r"|look|find))\b",
    re.IGNORECASE,
)
_ABOUT_SHOWN = re.compile(
    rf"(?:they|it|these|(?:the|these|your)(?: \w+)? (?:{_SHOWN}|{_WRITTEN})"
    r"|(?:document|passage|source|article|text) \d+)(?: only| just| mainly| do)* "
    r"(?:discuss|describe|cover|mention|talk|focus|deal|speak|contain|relate|refer)(?:e?s)?\b"
    r"|(?:document|passage|source|article|text) \d+: about\b|the search returned\b",
    re.IGNORECASE,
)
_TURN = re.compile(r"(?:;|[,.]? (?:but|however,?|though|although|yet)\b) *", re.IGNORECASE)
_CONCESSION = re.compile(r"(?:while|although|though|even though)\b", re.IGNORECASE)


def declines(sentence: str) -> str | None:
    """Return the words by which an English sentence declines to answer; ``None`` if none do.

    What it quotes or reports does not count: an answer may explain an error message, or tell that
    a witness said there was no information. Words beyond 2,000 characters are not looked at.
    """
    bare = _LABEL.sub("", _QUOTED.sub('""', sentence[:LONGEST]), count=1)
    found = (m for p in _DECLINING if (m := p.search(bare)))
    return next((m.group() for m in found if not _REPORTED.search(bare[: m.start()])), None)


def answers_apart(sentence: str) -> str:
    """Return the part of a declining sentence that answers, blank if none does.

    "The passages do not say who, but it was in 1889" answers with what follows "but".
    """
    said = declines(sentence)
    start = sentence.find(said) + len(said) if said else 0
    if _CONCESSION.match(sentence):
        rest = sentence[start:].partition(", ")[2]
    else:
        turn = _TURN.search(sentence, start)
        rest = sentence[turn.end() :] if turn else ""
    if len(rest.split()) < 3 or declines(rest) or belongs_to_refusal(rest):
        return ""
    return rest[0].upper() + rest[1:]


def belongs_to_refusal(sentence: str) -> bool:
    """Whether a sentence beside one that declines says no more: an apology, a referral elsewhere,
    or what the documents are about.
    """
    return any(p.match(sentence) for p in (_APOLOGY, _REFERRAL, _ABOUT_SHOWN))


def no_answer(text: str) -> bool:
    """Whether a text stands where an engine has no answer: no model wrote it."""
    return re.match(_EMPTY, text, re.IGNORECASE) is not None


def declines_outright(text: str) -> bool:
    """Whether an answer given without passages begins by declining ("I'm sorry, but I cannot ...").

    Only the beginning counts: "We Can't Stop" and "I Can't Help Myself" are answers.
    """
    return _OUTRIGHT.match(text) is not None


Detector = Callable[[str], str | None]
"""Takes a response and returns the words that refuse, or ``None`` for an answer."""

FLAG = normalise_squad("I apologize, but I couldn't find an answer")
THRESHOLD = 85


def paper_similarity(text: str) -> int:
    """Return 0..100: how closely a part of ``text`` resembles the refusal flag of Trust-Eval.

    The partial ratio of fuzzywuzzy on Levenshtein matching blocks (spec 4.5): windows of the
    longer text, as long as the shorter one, are placed where a global alignment matches them, and
    the best similarity 2 LCS / (sum of lengths) counts. Equal texts give 100, a blank text 0.
    """
    normal = normalise_squad(text)
    if normal == FLAG:
        return 100
    if not normal:
        return 0
    short, long = (FLAG, normal) if len(FLAG) <= len(normal) else (normal, FLAG)
    best = 0.0
    for block in Levenshtein.editops(short, long).as_matching_blocks():
        start = max(0, block.b - block.a)
        ratio = Indel.normalized_similarity(short, long[start : start + len(short)])
        if ratio > 0.995:
            return 100
        best = max(best, ratio)
    return round(100 * best)


def refuses_as_in_paper(text: str) -> str | None:
    """Trust-Eval's decision: the flag, or nearly the flag, is anywhere in the response."""
    similarity = paper_similarity(text)
    return f"{similarity} % like the flag" if similarity > THRESHOLD else None


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def refuses_in_words(text: str) -> str | None:
    """Decide by a larger set of English refusals, and by the other sentences of the response.

    A response is a refusal if one of its sentences declines to answer and no other sentence has a
    citation: "the documents do not say. They do mention X [2]." counts as an answer, since it
    makes a statement that can be checked.
    """
    refusal = None
    for sentence in statements(text, _SENTENCE_END.split, trailing=True, lines=True):
        if words := declines(sentence.hypothesis):
            refusal = refusal or words
        elif sentence.numbers:
            return None
    return refusal


def refuses_outright(text: str) -> bool:
    """Whether an answer that was given without passages declines, by its words or its beginning."""
    return declines_outright(text) or refuses_in_words(text) is not None


DETECTORS: dict[str, Detector] = {"phrases": refuses_in_words, "paper": refuses_as_in_paper}


def detector(choice: str | Callable[[str], object]) -> Detector:
    """Return the detector of that name, or wrap a function that returns something true.

    Raises:
        UnknownNameError: no detector of that name.
    """
    if callable(choice):
        return lambda text: getattr(choice, "__name__", "function") if choice(text) else None
    if choice not in DETECTORS:
        raise UnknownNameError(did_you_mean("refusal detector", choice, DETECTORS))
    return DETECTORS[choice]

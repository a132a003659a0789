"""Phrases around an answer that claim nothing: openers, closings, offers, disclaimers, frames.

A part with a number in it, or with words that do not belong to such talk, is never taken for one
of these phrases: its statement must be judged.
"""

import re

from trustassay.text.grammar import WH_WORDS, find_finite_verb, find_words, is_statement
from trustassay.text.words import NUMERALS, is_empty_word, is_negation, plain_words, stem

# Openers ----------------------------------------------------------------------------------------

_OPENING = frozenset(
    "sure certainly absolutely definitely okay ok great good excellent wonderful perfect "
    "nice hi hello hey "
    "greetings dear thanks thank sorry apologies apologise apologize welcome glad happy "
    "understood alright "
    "right well gladly pleasure indeed yep yeah problem worries hope got course question "
    "hm hmm oh ah wow "
    "please cheers fine".split()
)
"""An opener has at least one of these words."""
_ALLOWED_IN_OPENING = frozenset(
    "i i'm i'd i'll am we you you're your my me it's it is that's that this to the a an "
    "for of so very much "
    "most really all there here everyone thing things question asking ask point help "
    "helping helps hear see "
    "answer assist no not at be can do delay confusion wait inconvenience trouble interest "
    "morning afternoon "
    "evening day today again team friend sir madam clear bad let's go have with and one".split()
)
"""Words that an opener may have in addition; any other word makes it a statement."""
# "Dear Ms. Lind," or "Hello Marta!": up to three capitalised words, but "Hi No. 3" is none.
_GREETING = re.compile(
    r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening))"
    r"(?: (?!no\b|not\b)(?-i:[A-Z])[\w.'-]+){1,3}[,!.:]\s*",
    re.IGNORECASE,
)
_BEFORE_COLON = frozenset(
    "sure okay ok certainly absolutely thanks hi hello hey dear happy glad".split()
)
"""Openers that may end with a colon. "Problem: the wait is long" is a statement."""
# "Absolutely not." answers the question, although it begins as an opener does.
_DENIES = re.compile(
    r"(?:absolutely|certainly|definitely|of course|sure\w*) not\b|not (?:at all|good|great|fine)\b",
    re.IGNORECASE,
)
_SAYS_HOW = re.compile(
    r"(?:it|he|she|they)(?:'s|'re| is| are| was| were)(?: not)? \w+[.!]*", re.IGNORECASE
)
"""A sentence that describes something: "It is fine."."""
# Up to 60 characters that end with punctuation or a dash, with more text behind them: "Sure, ...".
_OPENER = re.compile(r"[^\n.!?,;:–—]{1,60}?(?:[.!,;:–—]+|\s-)\s*(?=\S)")


def find_opener_end(text: str) -> int:
    """Return where the openers at the beginning of a text end, 0 where it has none.

    "Sure, the permit costs 90 euros." has one, "Sure signs of rain are clouds." has none.
    """
    end = 0
    # Several openers may follow each other: "Hi! Great question. Sure, ...".
    while match := _OPENER.match(text, end):
        if not _is_opener(match[0]):
            break
        end = match.end()
    return end


def _is_opener(text: str) -> bool:
    if _DENIES.match(text) or _SAYS_HOW.fullmatch(text):
        return False
    words = [word.lower().replace("’", "'") for word in find_words(text)]
    if _GREETING.fullmatch(text):
        return True
    if text.rstrip().endswith(":") and _BEFORE_COLON.isdisjoint(words):
        return False
    return any(word in _OPENING for word in words) and all(
        word in _OPENING or word in _ALLOWED_IN_OPENING for word in words
    )


# Frames: words before a statement ---------------------------------------------------------------

# Part of the patterns below: "the passages provided", "your search results", "the knowledge base".
_SOURCES = (
    r"(?:(?:(?:the|these|those|this|your|my|all|provided|given) (?:\w+ )?)?(?:passages?|documents?"
    r"|documentation|contexts?|sources?|texts?|excerpts?"
    r"|(?:search )?results?|snippets?|information (?:provided|given|above)|references?"
    r"|articles? (?:provided|given|above)"
    r"|(?:provided|given|supplied) (?:information|material|data|text)"
    r"|knowledge base)(?: (?:provided|given|above|supplied|you (?:provided|shared|gave)))?)"
)
_FRAME = re.compile(
    # "According to the passages, ..."
    rf"(?:(?:according to|based on|from|per|as per|going by|judging by|in|as stated in"
    rf"|as (?:described|mentioned|noted) in) {_SOURCES},\s*"
    # "The documents state that ..."
    rf"|(?:as )?{_SOURCES} (?:say|state|mention|note|indicate|show|explain|report|tell us"
    rf"|confirm|suggest)s?(?: that\b,?|,)\s*"
    # "In summary, ...", "However, ...", "As mentioned above, ..."
    r"|(?:in (?:summary|short|conclusion|brief|a nutshell|addition|fact|general|total"
    r"|other words|sum)|to (?:summari[sz]e|sum up|conclude|be clear"
    r"|clarify|answer your question)|overall|additionally|moreover|furthermore|however"
    r"|finally|lastly|firstly|secondly|also|besides|therefore|thus"
    r"|hence|consequently|accordingly|notably|importantly|specifically|basically"
    r"|essentially|simply put|put simply|of course|note|fyi|tl;?dr"
    r"|as (?:far as I (?:know|can (?:tell|see))|mentioned(?: above| before| earlier)?"
    r"|you (?:can see|know))|to my knowledge|in my (?:opinion"
    r"|view))\s*[,:]\s*(?:I (?:think|believe) (?:that )?)?"
    # "Please note that ..."
    r"|(?:please |kindly )?(?:note|keep in mind|bear in mind|remember|be aware|be advised"
    r"|rest assured)(?: that\b|,|:)\s*"
    # "Unfortunately ..."
    r"|(?:unfortunately|regrettably|sadly|luckily|fortunately|of course),?\s+"
    r"|(?:according to|based on|as per|per|from|in)\s*,\s*|as (?:says|states|notes|shows"
    r"|reports),\s*"  # a citation was cut
    # "It is worth noting that ..."
    r"|it(?:'s| is) (?:worth (?:noting|mentioning)|important to (?:note|remember|know)"
    r"|also worth noting|true|correct|clear) that\s*"
    # "It can be inferred that ...", "We can see that ..."
    r"|(?:it can be|we can) (?:seen?|sa(?:y|id)|stated?|concluded?|inferr?(?:ed)?|assumed?) that\s*"
    # "I think that ...", "I am fairly sure that ..."
    r"|(?:yes, )?(?:and )?(?:but )?I (?:think|believe|guess|suppose|assume|would say"
    r"|'d say|can (?:also )?(?:confirm|tell you(?!')|say|assure you)|am (?:fairly |quite "
    r"|pretty )?(?:sure|certain|confident)"
    r"|'m (?:fairly |quite |pretty )?(?:sure|certain|confident))(?: that)?\b,?\s*"
    # "I'm not entirely sure, but I think ..."
    r"|I(?:'m| am) not (?:entirely |completely |quite |totally |100 ?% )?(?:sure"
    r"|certain)(?: about (?:this|that|it))?, but (?:I (?:think|believe) )?(?:that )?"
    # "The short answer: ..."
    r"|(?:the )?(?:final |short |quick |direct )?(?:answer|response|conclusion|result"
    r"|solution)(?: (?:to (?:your|the) question )?is(?: that\b|:))?\s*[:=]\s*"
    # "As an AI, I ..."
    r"|as an AI(?: language model| assistant)?,\s*(?=I\b)|p\.?s\.?[:,]?\s+"
    # "The correct answer is B": the letter alone is the statement
    r"|(?:the )?(?:correct |right |best )?(?:answer|option|choice) is"
    r" (?=(?:option )?\(?[A-Ha-h1-8]\)?[.)]*\s*$)"
    r"|did you know(?: that)?\s*)",
    re.IGNORECASE,
)
_MEANINGLESS_END = re.compile(
    r"[,;]\s*(?:right|isn't it|aren't they|doesn't it|don't they|is that right|correct"
    r"|okay|ok|you know)\?\s*$",
    re.IGNORECASE,
)


def find_frame_end(text: str) -> int:
    """Return where words that only introduce a statement end: "According to the passages,"."""
    end = 0
    # Frames may follow each other: "In summary, according to the passages, ...". A frame that is
    # the whole text is left: there is no statement behind it.
    while (match := _FRAME.match(text, end)) and match.end() < len(text):
        end = match.end()
    return end


_FRAME_AT_END = re.compile(
    rf"(?:,? according to|, (?:based on|as (?:stated|described|mentioned|noted|shown) in))"
    rf" {_SOURCES}(?=[.!]*\s*$)",
    re.IGNORECASE,
)


def find_end_frame(text: str) -> tuple[int, int]:
    """Return the span of words that name the passages at the end of a statement.

    "The pool is closed, according to the passages." The span is empty where there are none. "It is
    based on the text" without a comma is a statement about a text.
    """
    match = _FRAME_AT_END.search(text)
    return match.span() if match else (len(text), len(text))


def find_tag_question_start(text: str) -> int:
    """Return where a tag begins that makes a question of a statement: ", right?"."""
    match = _MEANINGLESS_END.search(text)
    return match.start() if match else len(text)


# Sentences that claim nothing -------------------------------------------------------------------

REASON_QUESTION, REASON_REFERRAL = "a question", "a referral"
# A sentence of these words alone offers help or says goodbye: "Let me know if you need anything".
_SERVICE = frozenset(
    "let me know if you need want have would like any anything else more further "
    "additional other another questions "
    "question help assistance support information info details detail feel free ask asking "
    "reach out contact happy "
    "glad hope hopes helpful useful helps assist i'm i'd i'll we're we'd please thanks "
    "thank patience understanding "
    "day nice great good luck enjoy welcome here to for with of about on this that it is "
    "are be so just way anytime "
    "time don't hesitate do not at all very much clarification clarify elaborate concerns "
    "concern topic topics "
    "specific anytime whenever again best regards sincerely cheers".split()
)
_OFFER = re.compile(
    # "If you need more, I can ..."
    r"(?:and |also |or )?(?:(?:if|should|whenever) you\b[^.!?]{0,80}?,\s*(?:then )?(?:I"
    r"|we)(?:'d|'ll|'m| can| could| would| will| am)\b"
    # "If you have questions, let me know"
    r"|(?:if|should|whenever) you\b[^.!?]{0,80}?,?\s*(?:just |please )?(?:let me know"
    r"|feel free|ask|say so|tell me|reach out|get in touch"
    r"|don't hesitate|do not hesitate)\b"
    r"|(?:just )?(?:say the word|tell me|give me|send me|share|ask me)\b.{0,60}\b(?:and|so"
    r"|if)\b.{0,20}\bI(?:'ll| will| can| could|'d)\b"
    r"|(?:just )?(?:say the word|ask away)\b"
    # "Feel free to ask", "Let me know"
    r"|(?:just |please )?(?:let me know|don't hesitate|do not hesitate"
    r"|feel free(?:\W*$| to (?:ask|contact|reach|let|share|provide|send|message|write|call|tell"
    r"|request))"
    r"|reach out to (?:me|us)|get in touch)\b"
    # "I'd be happy to ...", "I can also explain ..."
    r"|I(?:'d| would|'m| am|'ll| will) (?:also )?(?:be )?(?:happy|glad|able"
    r"|more than happy|here) to\b"
    r"|I(?: can| could|'ll| will) (?:also |certainly |then )?(?:help|assist|provide"
    r"|explain|show|find|look|give|walk|draft|write|list|go|elaborate|share|prepare"
    r"|create|summari[sz]e|check|translate)\b"
    r"|happy to (?:help|assist|explain|provide|clarify|elaborate)\b|(?:I "
    r"|we )?hope (?:this|that|it|you)\b|have a (?:nice|great|good|lovely|wonderful)\b"
    # "Thank you for ...", unless a statement follows: "thanks for asking, the pool is closed"
    r"|(?:thanks|thank you) (?:for|so much|again|very much|in advance)\b(?!.* (?:is|was"
    r"|are|were) )|you(?:'re| are) welcome\b[.! ]*$"
    r"|(?:good luck|take care|stay safe)(?: (?:with|on|of)"
    r" (?:your|this|that|yourself)[^,;:]{0,30})?[.!,;]"
    r"|(?:good luck|take care|stay safe|best (?:wishes|regards))[.! ,]*$"
    r"|anything else(?:\W*$| (?:I|we|you|that)\b)|happy \w+ing\b[.! ]*$"
    r"|(?:that|this)(?:'s| is) (?:all|everything|what) (?:that )?(?:I|we)\b|let me look into\b)",
    re.IGNORECASE,
)
_DISCLAIMER = re.compile(
    r"(?:(?:please |also,? )?(?:note|disclaimer|keep in mind|be aware|remember)?(?: that)?"
    r"[,:]? ?)?(?:"
    # "This is not legal advice"
    r"(?:this|the (?:above|information)|my (?:answer|response)|it|nothing (?:here"
    r"|above)) (?:(?:is|are|does|do|should|shall|may|can)(?: not|n't)?"
    r"|cannot) (?:\w+ ){0,4}"
    r"(?:legal|medical|financial|professional|tax|investment|official)?(?: or (?:legal"
    r"|medical|financial|professional))? ?(?:advice|guarantee|substitute"
    r"|replacement)\b.{0,80}"
    # "I'm just an AI ..."
    r"|I(?:'m| am) (?:just |only )?(?:an? )?(?:AI|artificial|language model"
    r"|large language model|virtual assistant|chatbot|bot|not (?:a|an) (?:lawyer|doctor"
    r"|attorney|expert|accountant|professional))\b.{0,80}"
    r"|(?:as )?an AI(?: (?:language )?model| assistant)?\b.{0,80}|(?:AI|I|this (?:answer"
    r"|response)|my (?:answers?|responses?)) (?:can|may|might) (?:make mistakes"
    r"|be (?:wrong|inaccurate|outdated|incomplete)|contain errors)\b.{0,60}"
    # "Prices may change"
    r"|(?:the )?(?:prices?|rates?|fees?|rules?|terms|conditions|policies|information"
    r"|details?|hours|times|availability|laws|regulations|requirements|figures|this)"
    r"(?: and (?:\w+ )?\w+)? (?:may|might|can|could|are|is) (?:\w+ )?(?:subject to change"
    r"|change|vary|differ|be (?:outdated|different|updated))\b.{0,60})[.!]*$",
    re.IGNORECASE,
)
# "For more details, please visit their website"; "please check the official page".
_REFERRAL = re.compile(
    r"(?:(?:for|to) (?:more|further|the (?:latest|most|exact|full|current)|additional"
    r"|up-to-date|detailed|complete|specific|official)\b.{0,60}?,\s*)?"
    r"(?:(?:please|always|kindly|I(?:'d| would)? (?:recommend|suggest|advise)|it(?:'s"
    r"| is) (?:best|recommended|advisable) to|you (?:may|might|can|could"
    r"|should)(?: also)?(?: want to| wish to)?)\s+)*"
    r"(?:consult(?:ing)?|check(?:ing)?|refer(?:ring)? to|see|visit(?:ing)?|contact(?:ing)?"
    r"|verify(?:ing)?|speak(?:ing)? (?:to|with)|talk(?:ing)? to|look(?:ing)? at"
    r"|ask(?:ing)?|review(?:ing)?|reach(?:ing)? out to)\b"
    r".{0,80}?\b(?:websites?|sites?|pages?|documents?|documentation|sources?"
    r"|professionals?|lawyers?|doctors?|attorneys?|experts?|advis[eo]rs?|authorit(?:y|ies)"
    r"|office|provider|support|team|service|staff|operator|manual|"
    r"policy|terms|latest|more|further|details|information|directly|yourself)\b.{0,80}"
    r"|(?:for|to) (?:more|further)\b[^.!?]{0,40},? (?:please )?(?:visit|see|contact"
    r"|go to|check|call)\W*",
    re.IGNORECASE,
)
# "Kind regards,": the signature may follow.
_SIGN_OFF = re.compile(
    r"(?:cheers|sincerely|all the best|thanks again|yours (?:sincerely|truly|faithfully)"
    r"|(?:(?:best|kind|kindest|warm|warmest) )?(?:regards|wishes)),",
    re.IGNORECASE,
)
MAX_SIGNATURE_WORDS = 6
_PARTS_OF_ANSWER = (
    r"(?:overview|summary|list|breakdown|answer|details?|information|explanation"
    r"|comparison|outline|steps?|points?|facts|things|look"
    r"|what I (?:found|know|can tell you)|what you (?:asked|need|wanted)|results?|response|table)"
)
# A sentence about the answer itself: "Here is a summary:", "I have checked the documents", "Let me
# explain", "This is based on the passages above", "As described above".
_ABOUT_ANSWER = re.compile(
    rf"(?:here(?:'s| is| are| you go)|below (?:is|are)|(?:the )?following (?:is|are)"
    rf"|these are|this is)\b(?:.{{0,60}}\b{_PARTS_OF_ANSWER}\b.{{0,60}}[.:!]"
    rf"|[^.!]{{0,80}}:)"
    r"|I(?:'ve| have)? (?:found|looked|searched|checked|went|gone|read|reviewed|listed"
    r"|summari[sz]ed|outlined|put together)\b"
    r".{0,40}\b(?:documents?|passages?|sources?|context|this|it|below|you|following"
    r"|results?|information|carefully)\b.{0,60}"
    r"|let me (?:explain|summari[sz]e|break|walk|start|see|check|give)\b.{0,60}"
    r"|let's (?:look|see|start|break|go|take)\b.{0,60}"
    rf"|(?:this|everything|all (?:of )?(?:this|the above)|(?:this|the|my) (?:answer|information"
    rf"|response|summary))(?: above| here)? (?:(?:is|was) (?:based (?:only |solely )?on|taken from)"
    rf"|comes? from) {_SOURCES}(?: only| alone)?[.!]*"
    r"|(?:as|see) (?:described|explained|mentioned|stated|shown|listed|discussed|requested"
    r"|outlined|noted|follows|above|below|attached)\b"
    r"(?:,? (?:above|below|earlier|before|here|there|by you|in (?:the|this|my|your) \w+))*[.!:]*",
    re.IGNORECASE,
)
_GENERIC = frozenset(
    # what an answer consists of, and what is done with it
    "detail information info answer question follow abov below describ list summar "
    "overview point key main thing fact "
    "matter ask request find found explain mention state note outlin discuss given see "
    "show shown result respons repl "
    "text passag document context sourc content section topic subject step item part "
    "attach file example breakdown "
    "explanation comparison structur exam examin issu angl aspect view word sum hand conclusion "
    # what holds of everything
    "case situation circumstanc condition term applicabl depend vary var differ relat relevant "
    "respectiv factor consider "
    "account tak base according individual particular personal specific certain several "
    "many variou different role play "
    "possibl reason way kind type option everyth someth important interest "
    # talk
    "short quick brief complet full general good great nice help useful pleas us look "
    "search check thank welcom sur know "
    "think believ understand hope idea clear correct right tru yes no say said simpl let "
    "your our concern regard want need".split()
)
"""Stems of words that say nothing about a subject. A sentence of these alone claims nothing."""
_GENERIC_WORDS = frozenset(("apply", "applies", "applied"))  # "apples" have the same stem
_LETTER = re.compile(r"\b[A-Z](?= (?:is|are|was|were|has|had|can|will|does)\b)")
"""A letter that stands for a thing: "A is larger than B"."""
_DIGIT = re.compile(r"\d|\b(?:[Ii]n|[Oo]n|[Bb]y|[Ss]ince|[Uu]ntil) May\b")
"""A digit, or a word that is a date although it is a common word."""
# A capitalised word inside a sentence, or an abbreviation; "AI" is the model itself.
_INNER_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]+|\b(?!AI\b)[A-Z]{2,}\b")
_ANSWERS_ALONE = re.compile(
    r"(?:almost )?(?:nobody|no one|nothing|none|one|never|neither|both|all|everyone|everybody"
    r"|everything|anyone|anybody|always"
    r"|at any time|any time|immediately|forever|nowhere|everywhere)(?: of (?:them|these"
    r"|those|it))?(?: knows| does| did)?[.!]*",
    re.IGNORECASE,
)
"""Phrases of empty words that are an answer all the same: "Nobody knows.", "Both of them."."""
# Where a sentence is parted into clauses: punctuation with a space, or a conjunction. The match is
# kept, because it decides what the next clause is.
_SEPARATOR = re.compile(
    r"\s*([:,;–—]\s+(?:(?:and|but|so|or)\s+)?"
    r"|\s-\s|\b(?:and|but|because|since|so|as|that|which|who|where|while|although)\b)\s*",
    re.IGNORECASE,
)
_RELATIVE = frozenset("that because since which who where".split())
_NO_ASSERTION = frozenset("if whether should when whenever to for in".split())
"""First words of a clause that is a condition, a purpose or an indirect question."""


def find_signature_end(text: str) -> int | None:
    """Return where the closing words of a letter end, "Best regards,"; ``None`` for other texts."""
    match = _SIGN_OFF.match(text)
    return match.end() if match else None


def may_be_signature(text: str) -> bool:
    """Whether a text may be the name below "Best regards,".

    It has at most six words, all of them capitalised or such as "from" and "the", no verb, no
    number and no negation.
    """
    words = find_words(text)
    few = len(words) <= MAX_SIGNATURE_WORDS and find_finite_verb(words) is None
    return few and all(
        (word[0].isupper() or word in ("from", "the", "of", "and", "at", "your"))
        and not is_negation(word.lower())
        for word in words
    )


def find_reason_without_claim(sentence: str) -> str | None:
    """Return why an English sentence claims nothing, or ``None`` where it claims something.

    Args:
        sentence: a sentence without openers, frames and citations.
    """
    if sentence.rstrip().endswith("?"):
        return REASON_QUESTION
    bare = sentence.replace("’", "'").strip(" *_\"'")
    # A number is a detail that can be wrong, whatever words stand around it.
    if carries_detail(bare):
        return None
    # The frame patterns expect a comma and a space at the end.
    if _FRAME.fullmatch(f"{bare.rstrip(' .,;:')}, "):
        return "it says nothing by itself"
    if _ANSWERS_ALONE.fullmatch(bare):
        return None
    reason = _find_kind_of_talk(bare)
    # Talk with a statement in one of its clauses is judged: "Good luck, the pool is closed."
    return None if reason is not None and find_stating_parts(bare) else reason


def _find_kind_of_talk(text: str) -> str | None:
    """Return which kind of talk a text is, by its first words or as a whole; ``None`` if none."""
    # A name inside the sentence may be a claim, so the wide patterns do not apply to it.
    has_name = _INNER_NAME.search(text) is not None
    reasons = {
        "a greeting or an offer": _is_courtesy(text),
        "a disclaimer": not has_name and _DISCLAIMER.fullmatch(text),
        REASON_REFERRAL: _REFERRAL.fullmatch(text.rstrip(".!")),
        "it says nothing by itself": not content_stems(text)
        or (not has_name and _ABOUT_ANSWER.fullmatch(text)),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _is_courtesy(text: str) -> bool:
    words = [word.lower() for word in find_words(text)]
    in_service = len(words) > 1 and all(word in _SERVICE for word in words)
    return in_service or _is_opener(text) or _OFFER.match(text) is not None


def find_stating_parts(text: str) -> list[str]:
    """Return the clauses of a sentence that state something, whatever talk stands beside them.

    In "Good luck, the pool is closed." and in "Here is the list: no dogs." it is the last clause.
    """
    parts = _SEPARATOR.split(text)
    # ``split`` with a group gives clauses and separators in turn; the first clause has none before.
    pairs = zip(["", *parts[1::2]], parts[0::2], strict=True)
    return [part for before, part in pairs if _is_stating_part(part, before.lower().strip(" ,"))]


def _is_stating_part(part: str, before: str) -> bool:
    """Whether a clause states something; a condition or an indirect question does not.

    Args:
        part: the clause.
        before: the punctuation or conjunction before it, in small letters.
    """
    part = part.strip()
    words = find_words(part)
    if not words or words[0].lower() in _NO_ASSERTION or not content_stems(part) - _SERVICE_STEMS:
        return False
    # "which costs 3 euros", "because I think": needs a verb, and no pronoun of the speakers first.
    if before in _RELATIVE:
        asserts = (
            words[0].lower() not in {*WH_WORDS, "i", "you"} and find_finite_verb(words) is not None
        )
    else:
        negated = any(map(is_negation, plain_words(part)))
        # Behind a colon a list of nouns is a statement too, and so is any negation: "no dogs".
        asserts = before == ":" or negated or is_statement(part)
    return asserts and _find_kind_of_talk(part) is None


_SERVICE_STEMS = frozenset(map(stem, _SERVICE))


def content_stems(text: str) -> set[str]:
    """Return the stems of the words that say something about a subject."""
    words = (
        word
        for word in plain_words(text)
        if not is_empty_word(word) and not is_negation(word) and word not in _GENERIC_WORDS
    )
    letters = {match[0].lower() for match in _LETTER.finditer(text)}
    stems = {stem(word) for word in words} - _GENERIC
    # ``plain_words`` turns "one" into "1"; in "more than one" and "this one" it is no number.
    return (stems if "1" in text else stems - {"1"}) | letters


def carries_detail(text: str) -> bool:
    """Whether a text has a number, in digits or words; "one" does not count."""
    return bool(_DIGIT.search(text)) or any(
        word in NUMERALS and word != "one" for word in text.lower().split()
    )

"""Reads which one of a closed set of values a model's prose gives. It accepts every text and never
guesses.

A value counts only at four places: behind a word such as "score", behind "I give it", at the
beginning of the text, and alone on the last line. The words before it in its clause and directly
behind it must be on short lists, so that "almost a 4", "5. Juni" and "4 of the facts" give nothing.
A value under a condition, a reported value and a value of something else do not count either. A
second value in the same sentence makes the reply ambiguous.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice
from typing import ClassVar, NamedTuple

MAX_REPLY_CHARACTERS = 50_000
"""Characters of a reply beyond which it is not read; no requested reply is so long."""
MAX_REPLY_VALUES = 20
"""Values of one reply, and of one range, that are read; a reply with more is a list."""
MAX_CONTEXT_CHARACTERS = 300
"""Characters before and behind a value that are searched for words that change its meaning."""
OTHER_SCALE_MARK = "\ue000"
"""Character that marks, in a plain text, the mention of another scale. Values of the same sentence
are off the scale."""
OFF_SCALE = ""
"""The label of a value that is not among the options, such as a number off the scale."""


class ReplyValue(NamedTuple):
    """A value at some place of a text."""

    labels: frozenset[str]
    """Its label; several for a range ("3 to 4") or a choice ("A or B")."""
    end: int
    """Offset behind the value."""


# Words around the values of a model's prose, in the ten languages most used on the web, and in
# Chinese, Korean, Turkish and Arabic. First what stands before a value, such as "score".
_SCORE = (
    "score|rating|grade|level|verdict|categor(?:y|ies)|judge?ment|evaluation|assessment|label"
    "|overall|bewertung|wertung|punktzahl|punkte|note|stufe|urteil|kategorie|puntuación|puntaje"
    "|calificación|nota|valoración|evaluación|nivel|veredicto|categoría|évaluation|notation"
    "|niveau|catégorie|pontuação|classificação|avaliação|nível|categoria|punteggio|voto"
    "|valutazione|livello|giudizio|beoordeling|cijfer|waardering|oordeel|categorie|ocena"
    "|punktacja|poziom|kategoria|оценка|балл|рейтинг|уровень|категория|вердикт|puan|değerlendirme"
    "|skor|seviye|التقييم|تقييم|الدرجة|درجة|النتيجة"
)
# The same, written without spaces between words.
_SCORE_CJK = (
    "评分|得分|分数|打分|总分|评级|等级|評分|評価|スコア|点数|得点|採点|評点|レベル|점수|평가"
)
# What stands before it.
_BEFORE_SCORE = (
    "my|our|the|this|its|an?|answer|response|(?:the|this) (?:answer|response)'s|correct|right"
    "|best|appropriate|assigned|suggested|new|second|corrected|revised|adjusted|die|der|das"
    "|meine?|la|le|el|il|o|ma|mi|mijn|moja|моя|мой"
)
_FINAL = (
    "final|overall|total|given|assigned|finale?|globale?|totale?|general|geral|końcowa|ogólna"
    "|итогов(?:ая|ый)|общ(?:ая|ий)|son|genel|النهائي|النهائية"
)
_FINAL_CJK = "最终的?|最終|总|総合|总体|我的|私の|该回答的|この回答の|최종|총"
# What begins the reason behind a value.
_BECAUSE = (
    "because|since|as|due to|based on|given|overall|weil|da|denn|porque|car|parce|perché|poiché"
    "|omdat|want|bo|ponieważ|потому|çünkü|on (?:a|the) scale"
)
# What may stand before "Score:" in its line, with a colon.
_HEADINGS = (
    r"results?|output|judge|assistant|final|conclusion|summary|feedback|reason\w*|analysis"
    "|explanation|answer|update|edit|correction"
)
_LEAD = re.compile(
    "(?:(?:so|thus|therefore|hence|overall|and|but|then|finally|ultimately|now|sure|okay|well"
    "|here(?:'s| is)|in (?:summary|conclusion|total)|i (?:think|believe|feel|conclude"
    "|find)(?: that)?|there is no doubt(?: that)?|probably|likely|clearly"
    r"|definitely)\b,?\s*){1,4}",
    re.IGNORECASE,
)
THIS_ANSWER = (
    r"(?:(?:the|this) (?:\w+'s |given |submitted |candidate |model )?(?:answer|response|reply)|it"
    "|this(?: one)?|that)"
)
_HOW = (
    r"(?:\s+(?:would|should|will|can|clearly|easily|certainly|definitely|therefore|thus|still"
    "|only|really|probably|also|then|just|have to|must|like to)){0,4}"
)
_GIVES = (
    rf"(?:(?:i|we)(?:'d|'ll|'m| am)?{_HOW}\s+(?:give|gave|rate|score|grade|assign|award|say"
    "|choose|prefer|pick|put|go(?:ing)? with|settle on|select"
    rf"|take)(?:\s+{THIS_ANSWER})?(?:\s+(?:as|at|with))?|(?:{THIS_ANSWER}"
    rf"|which){_HOW}\s+(?:deserves?|merits?|earns?|gets?|receives?|warrants?|scores|is (?:rated"
    r"|scored|graded|given|assigned|worth)(?:\s+(?:as|at|with))?)|(?:(?:all (?:of )?)?this"
    r"|which)\s+(?:results in|leads to|makes)|(?:rated|scored|graded)(?:\s+(?:as|at|with))?"
    rf"|{THIS_ANSWER}(?:'s|\s+is|\s+was)(?=\s+(?:an?|level)\s)|(?:(?:i"
    r"|we)\s+)?(?:(?:have\s+)?(?:revised?|chang(?:e|ed)|upgraded?|downgraded?|raised?"
    r"|lower(?:ed)?)\s+(?:it|this|that|my score)\s+to))"
)
_ABOUT = re.compile(
    "(?:(?:an?|about|around|approximately|roughly|exactly|clearly|definitely|solid|strong|weak"
    r"|generous|level|(?:the )?(?:option|choice|letter|reply)|una?|eine?|de|etwa)\s+"
    r"|[≈#~]\s*)*[\[({]*\s*",
    re.IGNORECASE,
)
_LINK = (
    r"(?:\s*(?:=>|-+>|[:=|→—])\s*|\s+[-–]\s+|\s+(?:is|are|of|at|would be|should be|will be|to be"
    r"|equals|remains|ist|es|est|é|è|jest|wynosi|равна|составляет)(?!\w)\s*)+"
)
_FOR_THIS = (
    r"(?:\s+(?:of|for) (?:this|the) (?:answer|response)|\s+i(?:'d| would)? (?:give"
    "|assign)(?: (?:it|this answer|the answer))?)?"
)

# Words that withdraw a value, or add another ----------------------------------------------------

# What makes a value depend on something.
CONDITION = re.compile(
    r"\b(?:if|unless|(?<!thing )else|(?<!\w[sd] )otherwise(?=,?\s\w)|except\w*|excluding|provided"
    "|assuming|in case|suppos(?:e|ing)|as long as|apart from|too (?:high|low|generous|harsh|much)"
    "|wenn|falls|sofern|sonst|außer|sauf|sinon|salvo|excepto|senão|altrimenti|tranne|tenzij"
    r"|anders|chyba że|jeśli|inaczej|если|иначе|кроме|eğer|yoksa)\b|[(,]\s*(?:(?:ma|mais|mas|pero"
    r"|maar)\s)?(?:sol[oa]\s|só\s|seulement\s)?(?:si|se|als)\b|如果|否则|除非|もし|なら",
    re.IGNORECASE,
)
# Before a value in its sentence: it is something else's, or it is reported.
_REPORTED = re.compile(
    r"\b(?:(?:gold\w*|reference|perfect|ideal|another|previous|says?|said|states?|claims?|writes?"
    "|wrote|tells?|told|asks?|asked|instructs?|demands?|contains?|reads?|quotes?|quoted|ends|sagt"
    r"|enthält|Muster\w+)\b[^.,;]*$|ignore\b|as the (?:answer|response|text))",
    re.IGNORECASE,
)
_GOLD = re.compile(r"\b(?:gold\w*|reference)\b.*\b(?:it|that|which)$", re.IGNORECASE)
"""The beginning of a sentence whose value belongs to the gold answer: "The reference gives it"."""
_WISH = re.compile(r"\b(?:with(?:out)?|were|had|ignoring)\b", re.IGNORECASE)
_BUT = re.compile(r"\W*(?:but|however|though|yet)\b", re.IGNORECASE)
"""Words before and behind "I would give it a 5" by which the value is not given."""
_RETRACTED = re.compile(
    r"\W*(?:no\b(?=\W*$|,(?!\s*\S+\W*$))|(?:wrong|incorrect|false|mostly|partly|largely)\W*$"
    r"|placeholder|example|that(?: is|'s) (?:how|what|the)\b)",
    re.IGNORECASE,
)
_YES = re.compile(r"\b(?:yes|true|correct)$", re.IGNORECASE)
# Before a second value that stands in the sentence of the first as a value, too.
_ALTERNATIVE = re.compile(
    r"(?:[(,;:/|]|(?<=\s)[-–—](?=\s)|\b(?:or|and|else|otherwise|but|maybe|perhaps|possibly|rather"
    r"|even|now|also|then|oder|sonst|ou|sinon|o|lub|или|иначе|of|anders|veya)\b"
    r"|\b(?<!not )(?<!than )(?<!of )(?<!from )(?<!to )(?<!no )(?<!for )(?<!as )"
    r"(?<!like )an?\b)\s*(?=\w)",
    re.IGNORECASE,
)
_REVISES = (
    r"\b(?:no[,:]|(?<=\? )no[.!]|hm+|wait|(?:on|after) (?:second thoughts?|reflection)|actually"
    r"|if|rather(?! than)|correction|make (?:it|that)|revis\w+|chang\w+|upgrad\w+|downgrad\w+"
    r"|rais\w+|lower\w*|reconsider\w*|edit|update|instead(?! of)|after all|though maybe"
    "|but perhaps|could also be)"
)
# What leads from one value to the next of a range or a choice.
_NEXT = re.compile(
    r"\s*(?:(?:\b(?:to|or|and|through|maybe|perhaps|possibly|even|but|also|bis|oder|ou|o|à|a|или"
    r"|до|lub|of|或|到|至|から|か)\b|[-–—~/|&→,;>…]|\.{2,}|\s(?=\d))\s*)+(?:an?\s+)?",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\s*[-–—:=(,\[|]*\s*")
"""Punctuation between a value and the same value in other words: "4 (mostly truthful)"."""
# Behind a value: it stands by itself, and counts, begins or joins nothing.
_TAIL = (
    r"\s*(?:$|\n|[!?)\]}|]|[.,:;](?!\d)|\(|(?<=\s)[-–](?=\s)(?!\s*\d+\s*[=+*/×-])|—|–(?!\d)"
    rf"|<(?!\s*\d)|-+>"
    rf"|(?:{_BECAUSE}|です|でした|だ|입니다|이다|and not|rather than|instead of)(?!\w)"
    r"|(?:for|to) (?:this|the) (?:answer|response)(?!['\w])"
    r"|(?:is|was|seems|feels) (?:\w+ly )?(?:appropriate|warranted|justified|fair|fitting"
    r"|deserved|reasonable)\b"
    r"|(?:(?-i:[A-Z])\w*(?: \w+)?|reason|explanation|feedback)\s*[:=])"
    r"|(?=\s*[^\w\s÷×<>=+*/^%°€$£¥−–-])"
)
_STOP = re.compile(rf"\b(?:{_BECAUSE})\b|[.!](?=\s|$)|[\n。]|\b\w+\s*[:=]", re.IGNORECASE)
"""Where the words that belong to a value end and its reason begins."""
_SENTENCE = re.compile(r"(?<![.…])[.!](?=\s)|。")
_ENDS = re.compile(r"[.!?](?=\s)|。")
# The start of a text or clause: a value must follow from here through words on the lists.
_CLAUSE = re.compile(
    r"(?:^|(?<=\d)\s(?=[A-Z])|[,;:()\[\]{}|—–、]|\s-\s"
    r"|\b(?:so|thus|therefore|hence|and|but|that)\b)\s*"
)
# Marks at the start of a line: bullets, quote marks, arrows of colons, emoji.
_BULLET = re.compile(r"(?:[\s>#•|:,✅⭐✔]|[-–—+*](?=\s)){0,20}")
_ITEM = re.compile(r"\s*[.)\]、]+[ \t]*(?=\w)")
"""Punctuation behind a number at the start of a line by which it counts an item: "2. "."""


class ProseReader:
    """Reads which of several words a text gives; subclasses add values of other kinds."""

    scores: ClassVar[str] = _SCORE
    """Pattern of the nouns before a value, such as "score"."""
    before: ClassVar[str] = r"(?!)"
    """Pattern of other words before a value; matches nothing by default."""
    approved: ClassVar[str] = r"(?!)"
    """Pattern of other words behind a value; matches nothing by default."""

    def __init__(
        self, words: Mapping[str, str], labels: Collection[str] = (), begins: str = r"(?!)"
    ) -> None:
        """Read ``words``, each with the label that it stands for.

        Args:
            words: the options, each with its label.
            labels: further nouns that may stand before a value, beside "score" and the like.
            begins: a pattern for the beginning of the values that a subclass adds.
        """
        self._words = {_normalise_blanks(clean_reply(word)): label for word, label in words.items()}
        # Longer words first, since a regular expression takes the first alternative that matches:
        # "mostly true" before "mostly". ``(?!)`` matches nothing.
        longest = sorted(map(re.escape, self._words), key=len, reverse=True)
        listed = "|".join(longest).replace(r"\ ", r"\s+") or r"(?!)"
        own_labels = "|".join(re.escape(clean_reply(label)) for label in labels) or r"(?!)"
        # "the final score", "overall rating for this answer", "my score (truthfulness)"
        name = (
            rf"(?:(?:{_BEFORE_SCORE}|{_FINAL}|{own_labels})\s+|gesamt|end|eind)*(?:{self.scores}|{own_labels})s?(?!\w)"
            rf"(?:\s+(?:{_FINAL})(?!\w))*{_FOR_THIS}(?:\s*\((?:\W|{own_labels}){{0,9}}\)|{OTHER_SCALE_MARK})?"
        )
        name_cjk = rf"(?:{_FINAL_CJK}|\s)*(?:{_SCORE_CJK})"
        # The options themselves. "no. 3" is a number of something, not the option "no".
        self._word = _compile(rf"(?<!\w)(?:{listed})(?!\w)(?!(?<=no)\.\s*\d)")
        # What may stand directly behind a value, and behind a second one in its sentence, where a
        # condition shows that the reply offers both.
        self._tail = _compile(rf"{_TAIL}|\s*(?:{self.approved})")
        self._other_tail = _compile(
            rf"{_TAIL}|\s*(?:if|when|with|without|for|in)\b|\s*(?:{self.approved})"
        )
        # All that may stand between the start of a clause and its value: "Score: ", "score is ",
        # "[RESULT] ", "I give it a final score of ". German "Note" and Italian "nota" also mean a
        # remark, so they need a colon or a verb.
        self._head = _compile(
            rf"{name}{_LINK}|{name}(?<!note)(?<!nota)\s+|{name_cjk}\s*[はが为是]?(?:{_LINK})?\s*"
            rf"|\[result\]\s*|{self.before}"
            rf"|{_GIVES}\s+(?:(?:an?|the|my)\s+)?(?:(?:{_FINAL})\s+)*(?:(?:{self.scores})\s+(?:of\s+)?)?"
        )
        # A label of one aspect before a value, "Tone: I give it a 4", unless it is one for the
        # result.
        self._headed = _compile(
            rf"\s*(?!.*\b(?:{_SCORE}|{_HEADINGS}|{own_labels})s?\b)\w[\w ]{{0,30}}:\s*"
        )
        # "it is ", "the answer was ": only before words, since "it is 4" may count anything.
        self._is = _compile(rf"{THIS_ANSWER}(?:'s| is| was| must be)\s+(?=\D)")
        # A cheap test: lines without any of these words are not parsed.
        self._keyword = _compile(
            rf"{_SCORE}|{own_labels}|{_SCORE_CJK}|\[result\]|{_GIVES}|{self.before}"
        )
        # "Actually, 3", "wait, make it a 4": a change of mind, also without a noun such as "score".
        self._revises = _compile(
            rf"{_REVISES}[^\n.\d]{{0,30}}?(?<![\w.,+−-])(?=(?i:{listed})(?!\w)|{begins})"
        )
        self._announces = _compile(rf"\b(?:i|my|we|our|{_SCORE}|{own_labels})\b")
        # A heading with the value in the next line: "## Score\n4". It is joined to one line before
        # reading.
        self._heading = _compile(
            rf"(?m)^([^\w\n]{{0,9}}(?:{name}|{name_cjk}))[ :=.|#-]*\n(?!\d+[.)]+[ \t]*\w)"
        )

    def read(self, text: str) -> frozenset[str]:
        """Return the labels that a plain text gives, :data:`OFF_SCALE` for a value off the scale.

        1. Values behind a word such as "score" or "I give it" count first.
        2. Without these, a value at the beginning counts, with those of other lines.
        3. Without this, a value alone on the last line counts.
        4. A later change of mind adds its values, which makes the reply ambiguous.
        """
        # An option of several words may be wrapped: "mostly\ntrue".
        text = self._word.sub(lambda match: match[0].replace("\n", " "), text)
        text = self._heading.sub(r"\1: ", text)
        values = list(islice(self._values_behind_labels(text), MAX_REPLY_VALUES))
        if values:
            # A first or last line that is a value by itself counts as well, so that a contradiction
            # between it and "Score: 4" is noticed.
            ends = (text.partition("\n")[0], text.rpartition("\n")[2])
            values += [
                value for line in ends if "=" not in line and (value := self._value_filling(line))
            ]
        else:
            values = list(islice(self._values_without_label(text), MAX_REPLY_VALUES))
        result = frozenset(label for value in values for label in value.labels)
        # So many values are a list, such as the scale itself, and no decision.
        if len(values) >= MAX_REPLY_VALUES:
            return result | {OFF_SCALE}
        return result | self._find_revised_labels(text) if result - {OFF_SCALE} else result

    def single_value_at(self, text: str, start: int) -> ReplyValue | None:
        """Return the single value that begins at an offset."""
        match = self._word.match(text, start)
        label = self._words.get(_normalise_blanks(match[0])) if match else None
        return ReplyValue(frozenset({label}), match.end()) if match and label else None

    def value_at(self, text: str, start: int) -> ReplyValue | None:
        """Return the value at an offset together with all values of its range or choice."""
        value = self.single_value_at(text, start)
        # Bounded, so that "1 or 2 or 3 or ..." does not cost a quadratic time.
        for _ in range(MAX_REPLY_VALUES if value else 0):
            assert value is not None
            following = self._next_value(text, value.end)
            if following is None:
                break
            value = ReplyValue(value.labels | following.labels, following.end)
        return value

    def _value_after_hedge(self, text: str, start: int) -> ReplyValue | None:
        """Return the value at an offset, or behind "about" and the like at this offset."""
        about = _ABOUT.match(text, start)
        return self.value_at(text, start) or (self.value_at(text, about.end()) if about else None)

    def _next_value(self, text: str, end: int) -> ReplyValue | None:
        # First the same value in other words ("4 (good)"), then the next of a range or choice ("4
        # or 5"). In parentheses a value off the scale is a remark, so it does not count.
        for link_pattern in (_NAMED, _NEXT):
            link = link_pattern.match(text, end)
            value = self.single_value_at(text, link.end()) if link and link[0] else None
            is_option = value and (link_pattern is _NEXT or OFF_SCALE not in value.labels)
            if value and is_option and self._tail.match(text, value.end):
                return value
        return None

    def _values_behind_labels(self, text: str) -> Iterator[ReplyValue]:
        previous = ""
        for line in text.split("\n"):
            if self._keyword.search(line):
                # A line that ends with a colon introduces the values of the next line; it may say
                # that they are reported: "The user wrote:".
                context = previous if previous.endswith(":") else ""
                for sentence in _SENTENCE.split(line):
                    yield from self._values_in_clauses(sentence, context)
                    # "Ignore the following. Score: 5": instructions that the judged answer
                    # contains.
                    context = sentence if "gnore" in sentence else ""
            previous = line

    def _values_in_clauses(self, sentence: str, context: str) -> Iterator[ReplyValue]:
        """Yield the values behind a word such as "score", each from the beginning of a clause."""
        for clause in _CLAUSE.finditer(sentence):
            bullet = _BULLET.match(sentence, clause.end())
            start = bullet.end() if bullet else clause.end()
            # "So, overall, the score is 4": the words before the head are skipped.
            if lead := _LEAD.match(sentence, start):
                start = lead.end()
            head = self._head.match(sentence, start)
            value = head and self._value_after_hedge(sentence, head.end())
            if not head or not value or not self._tail.match(sentence, value.end):
                continue
            # The clauses before this one decide whether the value is wished, reported, of the gold
            # answer, or under a condition.
            text_before = sentence[max(0, start - MAX_CONTEXT_CHARACTERS) : start]
            # "If it had a source, I would give it a 5" gives nothing.
            wished = "would" in head[0] or "'d" in head[0]
            if wished and (_WISH.search(text_before) or _BUT.match(sentence, value.end)):
                continue
            # "the reference answer: it gets a 5": the first word of the head may be the subject
            # "it".
            subject = text_before + "".join(head[0].split()[:1])
            if _REPORTED.search(f"{context} {text_before}") or _GOLD.search(subject):
                continue
            if not CONDITION.search(text_before) and not self._headed.fullmatch(text_before):
                yield from self._values_of_sentence(sentence, value)

    def _values_of_sentence(self, sentence: str, value: ReplyValue) -> Iterator[ReplyValue]:
        """Yield a value and the others of its sentence; nothing if the sentence withdraws it."""
        text_behind = sentence[value.end : value.end + MAX_CONTEXT_CHARACTERS]
        if stop := _STOP.search(text_behind):
            text_behind = text_behind[: stop.start()]
        # "Yes, but ...": half a yes.
        turned = _YES.search(sentence, max(0, value.end - 9), value.end) and re.search(
            r"\bbut\b", text_behind
        )
        if _RETRACTED.match(text_behind) or turned:
            return
        values = [value]
        # "4, or maybe 3", "4 - no, it is 5": every value that the sentence offers.
        for match in chain(_ALTERNATIVE.finditer(text_behind), self._is.finditer(text_behind)):
            place = match.end()
            other = self.value_at(text_behind, place)
            if (
                other
                and OFF_SCALE not in other.labels
                and self._other_tail.match(text_behind, other.end)
            ):
                values.append(other)
        # A single value under a condition does not count; among several it stays ambiguous anyway.
        if len(values) == 1 and CONDITION.search(text_behind):
            return
        # The sentence names another scale ("4 out of 10" on a scale of 5).
        off = (
            OTHER_SCALE_MARK
            in sentence[
                max(0, value.end - MAX_CONTEXT_CHARACTERS) : value.end + MAX_CONTEXT_CHARACTERS
            ]
        )
        yield from (
            ReplyValue(frozenset({OFF_SCALE}), value.end) if off else offered for offered in values
        )

    def _find_revised_labels(self, text: str) -> frozenset[str]:
        """Return the labels behind a change of mind."""
        values = (
            value
            for match in self._revises.finditer(text)
            if (value := self.value_at(text, match.end())) and self._tail.match(text, value.end)
        )
        return frozenset(label for value in values for label in value.labels if label != OFF_SCALE)

    def _values_without_label(self, text: str) -> Iterator[ReplyValue]:
        """Yield a value at the start and those of other lines, or else that of the last line."""
        lines = [line for raw in text.split("\n") if (line := _BULLET.sub("", raw, 1).strip())]
        if lines and (first := list(self._values_at_start(lines[0]))):
            yield from first
            for line in lines[1:]:
                yield from self._values_at_start(re.sub(r"^(?:or|and|to) ", "", line))
            return
        # A last line counts alone, unless the line before announces something else with a colon
        # ("Sources:") or computes ("=").
        before, last = ["", "", *lines][-2:]
        value = self._value_filling(last)
        announced = not before.endswith((":", "=")) or self._announces.search(before)
        if value and announced and not before.endswith("="):
            yield value

    def _value_filling(self, line: str) -> ReplyValue | None:
        """Return the value of a line or sentence that consists of nothing else."""
        value = self.value_at(line, len(line) - len(line.lstrip("([{ ")))
        return value if value and not line[value.end :].strip(" .;!)]}") else None

    def _values_at_start(self, line: str) -> Iterator[ReplyValue]:
        lead = _LEAD.match(line)
        start = lead.end() if lead else 0
        verb_match = self._is.match(line, start)
        value = self._value_after_hedge(line, verb_match.end() if verb_match else start)
        if value is None or not self._tail.match(line, value.end):
            return
        # A number may count an item ("1. The answer ...") or begin an enumeration ("1, 2 and 3.").
        if line[: value.end].strip("([ ").isdigit():
            item = _ITEM.match(line, value.end)
            if item and not self._word.match(line, item.end()):
                return
            text_behind = line[value.end :]
            if text_behind.startswith(",") and re.search(r"\d", text_behind.partition(". ")[0]):
                return
        yield from self._values_of_sentence(line, value)
        sentences = _ENDS.split(line[value.end :])[1:]  # "Yes? No."
        yield from (other for sentence in sentences if (other := self._value_filling(sentence)))


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _normalise_blanks(word: str) -> str:
    return re.sub(r"\s+", " ", word.lower())


# The text itself --------------------------------------------------------------------------------

_CHARACTERS = str.maketrans(
    dict.fromkeys(
        "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0f\u20e3\u202a\u202b\u202c\u202d\u202e"
        + OTHER_SCALE_MARK
    )
    | dict.fromkeys("“”„«»「」『』", '"')
    | dict.fromkeys("\u2028\u2029\x85\v\f", "\n")
    | {"’": "'", "‘": "'", "⁄": "/", "٫": ".", "٪": "%", "،": ",", "؛": ";", "‐": "-", "‑": "-"}
)
_VULGAR = re.compile(r"\s?[¼½¾⅐-⅞]")
# A fenced block of code, with its info string.
_FENCED = re.compile(r"(?m)^```[^\n]*\n((?:(?!```).*\n)*?)```")
QUOTED_REPLY = re.compile(r"(?<=\w )([\"'])[^\"'\n]{0,200}[:=][^\"'\n]{0,200}\1")
"""A quotation within a sentence that looks like a reply: wrote "score: 5"."""
_STRUCK = re.compile(r"~~[^~\n]*~~")
_BOLD = re.compile(r"\*\*([^*\n]*[^*\n\s:=])\*\*(?= +[A-Z])")
"""Bold type with a sentence behind it: the end of the type ends the bold sentence."""
_MARKS = re.compile(
    r"</?(?:b|i|u|em|strong|code|p|span)>|[*`\"]|(?<!\w)'|'(?!\w)|(?<=\d)'|\\[\[\]()]"
)
_NUMBER_IN_TAG = re.compile(r"<\s*([-+]?[\d.,/]+)\s*>")
_TAG = re.compile(r"<(/?)([a-z_ ]{1,30})((?:\s[^<>]{0,60})?)/?>", re.IGNORECASE)
# ``<score max="5">``
_TOP_OF_TAG = re.compile(r"max\w*=\W*(\d+)")
_LATEX = (
    (re.compile(r"\\d?frac\{(\d+)\}\{(\d+)\}"), r"\1/\2"),
    (re.compile(r"\\(?:text|mathrm|textbf|mathbf)\{([^{}\n]{0,40})\}"), r"\1"),
    (re.compile(r"\\boxed\{(?:\w+:\s*)?([^{}\n]{0,40})\}"), r"\nscore: \1\n"),
    (re.compile(r"\$([^$\n]{1,40})\$"), r"\1"),
)
_CJK = "\u3040-\u30fb\u4e00-\u9fff\uac00-\ud7a3"
# Chinese, Japanese and Korean are written without spaces: a blank makes a number a word.
_BESIDE_CJK = re.compile(rf"(?<=\d)(?=[{_CJK}])|(?<=[{_CJK}])(?=\d)")


def clean_reply(text: str) -> str:
    """Return a reply without emphasis, quotations, tags and unusual forms of digits.

    The order of the steps matters: characters, LaTeX, code, quotations, emphasis, tags, blanks.
    Returns an empty text where the reply is longer than :data:`MAX_REPLY_CHARACTERS`.
    """
    text = text.strip()
    if len(text) <= MAX_REPLY_CHARACTERS:
        # "½" becomes ".5" first, since NFKC would make "31/2" of "3½".
        text = unicodedata.normalize("NFKC", _VULGAR.sub(".5", text)).translate(_CHARACTERS)
    # Measured again: NFKC turns some characters into many, and would allow a text without limit.
    if len(text) > MAX_REPLY_CHARACTERS:
        return ""
    text = re.sub(r"\r\n?", "\n", text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ")
    for pattern, plainly in _LATEX:
        text = pattern.sub(plainly, text)
    fenced = _FENCED.sub("", text)
    # Code is dropped, unless the reply is nothing but code: then only its fences are.
    text = fenced if re.search(r"\w", fenced) else re.sub(r"(?m)^```\w*$", "", text)
    text = QUOTED_REPLY.sub(" ", _STRUCK.sub(" ", text))
    text = _MARKS.sub("", _BOLD.sub(r"\1.", text).replace("_", " "))
    # "<4>" is a number in brackets, "<score>4</score>" is read as "score: 4".
    text = _TAG.sub(_replace_tag, _NUMBER_IN_TAG.sub(r"\1", text))
    text = re.sub(r"[^\S\n]+", " ", _BESIDE_CJK.sub(" ", text))
    return re.sub(r"(?: ?\n)+ ?", "\n", text).strip()


def _replace_tag(match: re.Match[str]) -> str:
    if match[1]:
        return "\n"
    top = _TOP_OF_TAG.search(match[3])
    return f"\n{match[2]}{f' (max {top[1]})' if top else ''}: "


_NUMBERED = re.compile(
    r"^[ \t*_#>-]*(?:(?:answer|claim|fact)\s*)?\(?(\d{1,3})\s*[.):](?!\d)[^\S\n]*[*_]*"
    r"(?P<text>.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def find_numbered_lines(text: str) -> list[re.Match[str]]:
    """Return the lines of a numbered list that count up from 1, each with its group ``text``.

    Lines with another number are left out: "2. Weltkrieg" begins with an ordinal, "10:30" with a
    time.
    """
    result: list[re.Match[str]] = []
    for line in _NUMBERED.finditer(text):
        # A 1 is accepted anywhere, since a reply may have several lists.
        if int(line[1]) in (1, len(result) + 1):
            result.append(line)
    return result

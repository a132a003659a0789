"""What readers are given, of every metric that reads sentences: nothing with a meaning is lost.

Answers are composed of statements and of what people write around them. A scripted entailer stands
in the place of the reader, and what it was asked is checked by rules that know nothing of how
claims are built: a negation, a number or a name must reach it beside the word next to it.
"""

import gzip
import itertools
import json
import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from trustassay import score
from trustassay.core.testing import ScriptedEntailer

QUESTION = "What do the rules of the archive say?"
PASSAGE = "The archive keeps maps, letters and seals."
PASSAGES = (PASSAGE, "Its rules are on the door.")
PUBLIC = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"
NEUTRAL, ENTAILED = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)

# Statements -----------------------------------------------------------------------------------

STATEMENTS = [
    "No side effects were reported in the trial.",
    "No fees apply to members of the Ostrava club.",
    "None of the 14 halls is heated.",
    "Nobody under 16 may enter the vault.",
    "The Harlem line does not stop at Fordham on Sundays.",
    "Marta Quist never sold the 1902 map.",
    "The permit costs 90 euros per year.",
    "The reading room closes at 17:30 on 3 March 2021.",
    "Revenue fell by 3.2 percent to $4.5 million.",
    "Kernel 5.10 isn't supported by the Arco driver.",
    "Without a card from Lund, readers cannot borrow maps.",
    "Neither Oslo nor Bergen kept the seals.",
    "True believers founded the Ash chapel in 1711.",
    "Right angles have 90 degrees.",
    "Sure signs of rain are clouds over Mount Tabor.",
    "Of course fees of 12 euros are paid by members of Lund.",
    "Fine art from Delft hangs in hall 3.",
    "Note 7 of the treaty was never signed by Genoa.",
    "Based on steam, the Turbinia reached 34 knots.",
    "In fact-checking, Lund uses no volunteers.",
    "Please Please Me was recorded by the Beatles in 1963.",
    "Great Britain did not ratify the Lund treaty.",
    "Overall length is 24 metres, without the bowsprit.",
    "However hard it rains, the Delft gate is not closed.",
    "According to Petrov, the seal isn't older than 1340.",
]
"""Each has a negation, a number or a name; some begin as an opener or a frame does."""
NEGATION = re.compile(
    r"\b(?:no|not|never|none|nobody|neither|nor|without|cannot|\w+n't)\b", re.IGNORECASE
)
NEGATIVE = re.compile(
    rf"{NEGATION.pattern}|\b(?:except|exclud(?:es|ed|ing)|exclusions?)\b", re.IGNORECASE
)
WORD = re.compile(r"[^\W_]+(?:['’.,:%-]+[^\W_]+)*%?")


MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


@cache
def real_sentences() -> Sequence[str]:
    """Return declarative sentences of answers with labels of people, from two public sets."""
    result: list[str] = []
    for path in ("selfcheck-wikibio/passages", "attribution/wice_dev"):
        with gzip.open(PUBLIC / f"{path}.jsonl.gz", "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                result += row.get("main_sentences") or [row["hypothesis"]]
    return [one.strip() for one in result if _is_plain(one.strip())]


def _is_plain(sentence: str) -> bool:
    """Whether a sentence is one sentence with details, and nothing that looks like markup."""
    words = sentence.split()
    return (
        6 <= len(words) <= 25
        and sentence.isascii()
        and sentence[0].isupper()
        and sentence.endswith(".")
        and not re.search(r"[.!?:;] |[\[\]<>*_`#|~\"()]", sentence)
        and not re.search(
            rf"(?:{MONTHS}) \d",
            sentence,
        )
        and not re.search(r"\b(?:[A-Z]|St|Mr|Dr|Jr|No|Inc|Ltd)\.", sentence)
        and bool(_details(sentence))
    )


def statements() -> st.SearchStrategy[str]:
    """Two thirds of the statements come from real answers, if these are at hand."""
    made = st.sampled_from(STATEMENTS)
    if not PUBLIC.is_dir():
        return made
    real = st.sampled_from(real_sentences())
    return made | real | real.map(_denied)


def _denied(sentence: str) -> str:
    """Return a sentence with a negation put into it, or before it."""
    denied = re.sub(r"\b(was|is|were|are|has|had)\b", r"\1 not", sentence, count=1)
    return denied if denied != sentence else f"It is not the case that {sentence}"


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).replace("’", "'")
    return [word.casefold() for word in WORD.findall(folded)]


def _details(statement: str) -> list[tuple[str, str]]:
    """Return each negation, number and inner name of a statement with the word beside it."""
    written = WORD.findall(statement)
    folded = [word.casefold() for word in written]
    result = []
    for place, word in enumerate(written):
        is_name = place > 0 and word[0].isupper()
        if is_name or word[0].isdigit() or NEGATION.fullmatch(word):
            start = place if place + 1 < len(written) else place - 1
            result.append((folded[start], folded[start + 1]))
    return result


def _pairs(text: str) -> set[tuple[str, str]]:
    words = _words(text)
    return set(itertools.pairwise(words))


# What is written around statements --------------------------------------------------------------

OPENERS = ["", "Sure, ", "Certainly! ", "Of course. ", "Great question! ", "Okay, so ", "Yes, ",
           "Hi there! ", "I think ", "Thanks for asking. "]  # fmt: skip
FRAMES = ["", "According to the passages, ", "In short, ", "Please note that ", "Overall, ",
          "The documents state that ", "As far as I know, ", "Answer: "]  # fmt: skip
MARKERS = ["", " [1]", " [1, 2]", " [1][2]", "[^1]", " (1)", "¹", " ^1^", " <sup>1</sup>", " [[2]]",
           " ［1］", r" \[1\]", " 【1†source】", " 【4:1†guide.pdf】",
           " [1](https://example.org/a_(b))"]  # fmt: skip
LINES = ["{}", "- {}", "* {}", "• {}", "3. {}", "2) {}", "> {}", "**{}**", "_{}_", "- [x] {}",
         "1. **Rules**: {}", "<p>{}</p>", "✅ {}"]  # fmt: skip
CLOSINGS = ["", "\n\nLet me know if you have any other questions!",
            "\n\nIf you'd like, I can also draft a letter.", "\n\nThis is not legal advice.",
            "\n\nSources:\n[1] Guide to the archive, https://example.org",
            "\n\nI hope this helps! 😊"]  # fmt: skip
BEFORE = ["", "<think>The user wants rules. No rules exist.</think>\n",
          "Thought: I should look it up.\nAction: search\nFinal Answer: ",
          "Here is a summary of the rules:\n\n"]  # fmt: skip
UNFORESEEN = ["A) {}", "iv. {}", "→ {}", "P.S. {}", "Step 1 – {}", "TL;DR — {}", "'''{}'''",
              "*** {}", "<details><summary>More</summary>{}</details>", "“{}”", "{} /s",
              "Right then: {}", "Quick answer (1/2): {}", "\t{}", "{}  ", "{} — see above",
              "+ {}", "§ 4 {}", "~ {}", "#1: {}", "(a) {}", "{}\n—", "::: {} :::", "[ {} ]",
              "Fact: {}", "Ad 1. {}", "Q: Really? A: {}", "{} (source: page 4)"]  # fmt: skip
"""Constructions that no rule was written for: of these only is asked that nothing is lost."""
CUT_WORDS = re.compile(
    r"\[\W?\d|†|【|<|¹|\^1|\*\*|```|example\.org|let me know|i can also|legal advice"
    r"|hope this helps|final answer|thought:|user wants|sources:",
    re.IGNORECASE,
)
"""What is left in a statement if something without a meaning was not cut out."""


@st.composite
def dressed(draw: Callable[..., Any]) -> tuple[list[str], str, bool]:
    """Draw statements, the answer that they were composed to, and whether it is of known kinds."""
    chosen = draw(st.lists(statements(), min_size=1, max_size=3, unique=True))
    known = draw(st.sampled_from([True, True, False]))
    lines = []
    for statement in chosen:
        text = draw(st.sampled_from(FRAMES)) + statement
        stop = text[-1]
        marker = draw(st.sampled_from(MARKERS))
        behind = draw(st.booleans())
        text = text + marker if behind else text[:-1] + marker + stop
        lines.append(draw(st.sampled_from(LINES if known else UNFORESEEN)).format(text))
    between = draw(st.sampled_from(["\n", "\n\n"]))
    opener, before = draw(st.sampled_from(OPENERS)), draw(st.sampled_from(BEFORE))
    # An opener before a list or a line with marks stands in a line of its own.
    opener = opener if re.match(r"\w", lines[0]) or not opener else opener.rstrip(", ") + "\n"
    answer = before + opener + between.join(lines) + draw(st.sampled_from(CLOSINGS))
    return chosen, answer, known


# The metrics ------------------------------------------------------------------------------------

CITABLE = re.compile(
    r"^(?!\s*(?:#|\||<think|thought|action|sources:|\[1\])).*\w.*$",
    re.MULTILINE | re.IGNORECASE,
)
Reads = Callable[[str, str], tuple[float, float, float]]


def asked(
    metric: str,
    answer: str,
    question: str = QUESTION,
    passages: Sequence[Any] = PASSAGES,
    reads: Reads = lambda premise, hypothesis: NEUTRAL,
) -> tuple[list[tuple[str, str]], Any]:
    """Return the pairs that a metric asks an entailer about an answer, and what it makes of it."""
    record: dict[str, Any] = {"id": "a", "question": question, "response": answer}
    reader = ScriptedEntailer(reads)
    if metric == "uncertainty":
        record["resamples"] = [*passages, "Another reply about the rules of the archive."]
        metric = "uncertainty:parts=selfcheck_nli"
    elif metric == "judge:by=entailer":
        record["answers"] = [list(passages)]
    elif metric == "tool_use":
        call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        texts = [one if isinstance(one, str) else json.dumps(one) for one in passages]
        record = {
            "id": "a",
            "messages": [
                {"role": "user", "content": question},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "\n\n".join(texts)},
                {"role": "assistant", "content": answer},
            ],
        }
    else:
        record["documents"] = list(passages)
        record |= {"answers": [["seals"]]} if metric == "rag" else {}
        # Only cited sentences are read: a citation is put behind every line.
        cited = CITABLE.sub(r"\g<0> [1]", answer)
        record |= {"response": cited} if metric == "grounding" else {}
    run = score([record], metrics=metric, entailer=reader, cache=None, progress=False)
    return reader.pairs, run.assessments[0]


BY_SENTENCES = ["faithfulness", "grounding", "rag", "tool_use", "uncertainty"]
BY_ANSWERS = ["factcheck", "judge:by=entailer"]
"""Metrics that read an answer as a whole."""


def hypotheses(metric: str, answer: str, **more: Any) -> list[str]:
    return [hypothesis for _, hypothesis in asked(metric, answer, **more)[0]]


# 1. Nothing that carries meaning is dropped -----------------------------------------------------


@pytest.mark.parametrize("metric", [*BY_SENTENCES, *BY_ANSWERS])
@given(dressed())
@settings(max_examples=60, deadline=None)
@example((["No side effects were reported in the trial."],
          "No side effects were reported in the trial.", True))  # fmt: skip
@example((["No fees apply to members of the Ostrava club."],
          "Yes, No fees apply to members of the Ostrava club. [1]", True))  # fmt: skip
def test_every_negation_number_and_name_reaches_the_reader(
    metric: str, composed: tuple[list[str], str, bool]
) -> None:
    chosen, answer, _ = composed
    read = set[tuple[str, str]]().union(*map(_pairs, hypotheses(metric, answer)))
    for statement in chosen:
        lost = [pair for pair in _details(statement) if pair not in read]
        assert not lost, (statement, answer, hypotheses(metric, answer))


ITEMS = ["theft", "Water damage", "Bicycles", "Late fees", "Journeys to Oslo", "Pets over 20 kg"]
NEGATING_LEADS = [
    "Not covered:", "We do not offer:", "Exclusions:", "None of the following are covered:",
    "The plan excludes:", "The following are not included:", "**Not allowed:**", "### Not covered",
    "You cannot bring:", "Everything except:", "Never accepted:", "Without:",
    "Out of scope, i.e. not covered:",
]  # fmt: skip


@pytest.mark.parametrize("metric", BY_SENTENCES)
@given(
    st.sampled_from(NEGATING_LEADS),
    st.lists(st.sampled_from(ITEMS), min_size=2, max_size=4, unique=True),
    st.sampled_from(["- {}", "* {}", "1. {}", "• {}"]),
)
@settings(max_examples=40, deadline=None)
def test_a_negated_lead_negates_its_items(
    metric: str, lead: str, items: list[str], bullet: str
) -> None:
    answer = "\n".join([lead, *(bullet.format(item) for item in items)])
    read = hypotheses(metric, answer)
    for item in items:
        about = [one for one in read if item.casefold() in one.casefold()]
        assert about, (answer, read)
        assert all(map(NEGATIVE.search, about)), (answer, read)


HEADINGS = [("## Former staff", "former"), ("# 2019", "2019"), ("## Harlem line", "harlem"),
            ("**Only in 1902**", "1902"), ("### Not in Lund", "not"),
            ("Former staff:", "former")]  # fmt: skip


@pytest.mark.parametrize("metric", BY_SENTENCES)
@pytest.mark.parametrize(("heading", "word"), HEADINGS)
@pytest.mark.parametrize("below", ["- Ann Lee\n- Bo Dahl", "- opened at noon\n- closed at dusk"])
def test_headings_and_leads_are_in_what_stands_below_them(
    metric: str, heading: str, word: str, below: str
) -> None:
    between = "\n" if heading.endswith(":") else "\n\n"
    read = hypotheses(metric, f"{heading}{between}{below}")
    for item in below.split("\n"):
        about = [one for one in read if item[2:].casefold() in one.casefold()]
        assert about
        assert all(word in one.casefold() for one in about), read


@pytest.mark.parametrize("metric", BY_SENTENCES)
@given(
    st.lists(st.sampled_from(["Price", "Opens", "Halls", "Not before"]), min_size=2, max_size=3,
             unique=True),
    st.lists(st.sampled_from(["Lund", "Oslo", "Delft", "Genoa"]), min_size=1, max_size=3,
             unique=True),
    st.data(),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_a_cell_is_read_with_its_column_and_its_row(
    metric: str, columns: list[str], rows: list[str], data: st.DataObject
) -> None:
    values = {(r, c): str(data.draw(st.integers(10, 9_999))) for r in rows for c in columns}
    lines = ["| City | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {r} | " + " | ".join(f"{values[r, c]} [1]" for c in columns) + " |" for r in rows]
    read = hypotheses(metric, "\n".join(lines))
    for (row, column), value in values.items():
        words = {row.casefold(), *column.casefold().split(), value}
        assert any(words <= set(_words(one)) for one in read), (lines, read)


# 2. What carries no meaning is cut out, and only that -------------------------------------------


@pytest.mark.parametrize("metric", [*BY_SENTENCES, *BY_ANSWERS])
@given(dressed())
@settings(max_examples=40, deadline=None)
def test_markers_marks_and_courtesies_do_not_reach_the_reader(
    metric: str, composed: tuple[list[str], str, bool]
) -> None:
    _, answer, known = composed
    assume(known)
    if metric in BY_ANSWERS:  # these read the whole answer, with its courtesies
        answer = answer.split("\n\nLet me")[0].split("\n\nIf you")[0].split("\n\nThis is not")[0]
        answer = answer.split("\n\nI hope")[0]
    for one in hypotheses(metric, answer):
        assert not CUT_WORDS.search(one), (answer, one)


@pytest.mark.parametrize("metric", BY_SENTENCES)
@given(st.sampled_from(STATEMENTS), st.sampled_from(OPENERS), st.sampled_from(FRAMES))
@settings(max_examples=60, deadline=None)
def test_an_opener_and_a_frame_change_nothing_of_what_is_read(
    metric: str, statement: str, opener: str, frame: str
) -> None:
    plain = hypotheses(metric, statement)
    assert hypotheses(metric, opener + frame + statement) == plain


# 3. Text is folded once, on both sides ----------------------------------------------------------

WRITTEN_OTHERWISE: list[Callable[[str], str]] = [
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: text.replace("a", "a\u00ad"),
    lambda text: text.replace(" ", " \u200b"),
    lambda text: re.sub(r"\d", lambda match: chr(ord(match[0]) - ord("0") + 0xFF10), text),
    lambda text: text.replace("-", "\u2011"),
    lambda text: text.replace("'", "\u2019"),
    lambda text: text.replace(" -", " \u2212"),
]
FOLDED_TEXTS = [*STATEMENTS, "The café in Málaga lost -3.2 percent.", "It is -20 degrees in Öland."]


@pytest.mark.parametrize("metric", [*BY_SENTENCES, *BY_ANSWERS])
@given(st.sampled_from(FOLDED_TEXTS), st.sampled_from(WRITTEN_OTHERWISE))
@settings(max_examples=40, deadline=None)
def test_other_forms_of_the_same_characters_are_read_as_the_same(
    metric: str, statement: str, otherwise: Callable[[str], str]
) -> None:
    plain, _ = asked(metric, statement, passages=[PASSAGE, statement])
    other, _ = asked(metric, otherwise(statement), passages=[PASSAGE, otherwise(statement)])
    assert other == plain


# 4. Short replies -------------------------------------------------------------------------------

WHETHER = [("Is the museum open on Sundays?", "museum", "open"),
           ("Does the fee include lunch?", "fee", "lunch"),
           ("Can members borrow maps?", "members", "maps"),
           ("Did Lund sign the treaty in 1902?", "lund", "1902")]  # fmt: skip


@pytest.mark.parametrize("metric", ["faithfulness", "grounding", "rag"])
@pytest.mark.parametrize(("question", "a", "b"), WHETHER)
@pytest.mark.parametrize(
    "reply", ["Yes.", "Yes!", "yes", "**Yes**", "Yes [1].", "No.", "No", "No [1]"]
)
def test_yes_and_no_are_judged_as_what_the_question_asks(
    metric: str, question: str, a: str, b: str, reply: str
) -> None:
    reads = lambda premise, hypothesis: ENTAILED  # noqa: E731
    passages = [*PASSAGES, "It was 1902 then."]
    pairs, assessment = asked(metric, reply, question, passages, reads)
    assert pairs
    for _, hypothesis in pairs:
        assert {a, b} <= set(_words(hypothesis))
    rows = [one for one in assessment.evidence if "verdict" in one]
    if metric == "faithfulness":
        wanted = "supported" if "yes" in reply.lower() else "contradicted"
        assert [one["verdict"] for one in rows] == [wanted]


@pytest.mark.parametrize("question", ["Who built it?", "When did it open?", "Where is it?",
                                      "How many halls does it have?"])  # fmt: skip
@pytest.mark.parametrize(
    "reply",
    ["Yes.", "No.", "Certainly.", "It depends on the applicable terms.", "Here are the details.",
     "Sure! Let me know if you need more.", "Here is what I found:", "It is.", "Great question!",
     "As mentioned above.", "👍", "Based on the given context,"],
)  # fmt: skip
def test_a_reply_that_says_nothing_is_flagged_and_never_supported(
    question: str, reply: str
) -> None:
    reads = lambda premise, hypothesis: ENTAILED  # noqa: E731
    pairs, assessment = asked("faithfulness", reply, question, reads=reads)
    assert not pairs
    assert assessment.verdict == "no claim"


def test_a_short_sentence_that_a_passage_has_word_for_word_is_supported() -> None:
    pairs, assessment = asked("faithfulness", "Dogs bark.", passages=["Cats purr. Dogs bark."])
    assert assessment.verdict == "supported"
    assert not pairs


# 5. Denials -------------------------------------------------------------------------------------

POLICY = "The policy covers fire and water damage."
DENIALS = ["The policy does not mention {}.", "There is no mention of {} in the documents.",
           "The passages say nothing about {}.", "No information about {} is given.",
           "{} is not mentioned in the documents.",
           "The documents do not mention {} [1]."]  # fmt: skip


@pytest.mark.parametrize("denial", DENIALS)
@pytest.mark.parametrize(
    ("topic", "verdict"),
    [("theft", "supported"), ("earthquakes", "supported"), ("water damage", "contradicted"),
     ("fire", "contradicted")],
)  # fmt: skip
def test_a_denial_is_judged_by_whether_a_passage_speaks_of_its_topic(
    denial: str, topic: str, verdict: str
) -> None:
    answer = denial.format(topic)
    _, assessment = asked("faithfulness", answer[0].upper() + answer[1:], passages=[POLICY])
    assert assessment.verdict == verdict


@pytest.mark.parametrize("metric", BY_SENTENCES)
@pytest.mark.parametrize(
    "answer",
    ["I'm not sure about the price, but the ferry leaves Lund at 8:15.",
     "The passages do not say who owns it; the ferry leaves Lund at 8:15.",
     "Although the documents do not give a price, the ferry leaves Lund at 8:15."],
)  # fmt: skip
def test_what_stands_beside_a_denial_is_read(metric: str, answer: str) -> None:
    read = set[tuple[str, str]]().union(*map(_pairs, hypotheses(metric, answer)))
    assert {("lund", "at"), ("at", "8:15")} <= read


# 6. A title supports nothing by itself ----------------------------------------------------------


def by_words(premise: str, hypothesis: str) -> tuple[float, float, float]:
    return ENTAILED if set(_words(hypothesis)) <= set(_words(premise)) else NEUTRAL


@given(
    st.sampled_from(STATEMENTS), st.sampled_from(["Opening hours vary.", "Nothing else is known."])
)
@settings(max_examples=25, deadline=None)
def test_a_title_alone_supports_no_claim(statement: str, text: str) -> None:
    assume(len(statement.split()) < 10)
    passages = [{"title": statement.rstrip("."), "text": text}]
    _, assessment = asked("faithfulness", statement, passages=passages, reads=by_words)
    assert assessment.verdict != "supported"
    passages = [{"title": "Rules", "text": f"{text} {statement}"}]
    _, assessment = asked("faithfulness", statement, passages=passages, reads=by_words)
    assert assessment.verdict == "supported"


# 7. A number, date or name that no passage has --------------------------------------------------

INVENTED = [("90", "91"), ("14", "15"), ("1902", "1903"), ("17:30", "18:30"),
            ("3 March", "4 March"), ("3.2", "3.7"), ("Lund", "Malmö"), ("Fordham", "Yonkers"),
            ("Genoa", "Pisa"), ("Delft", "Leiden"), ("1963", "1969"), ("34", "38")]  # fmt: skip


@pytest.mark.parametrize(("true", "invented"), INVENTED)
@pytest.mark.parametrize("metric", ["faithfulness", "rag"])
def test_a_claim_with_an_invented_detail_is_never_supported(
    metric: str, true: str, invented: str
) -> None:
    reads = lambda premise, hypothesis: ENTAILED  # noqa: E731
    for statement in STATEMENTS:
        if re.search(rf"(?<!\w){re.escape(true)}(?!\w)", statement) is None:
            continue
        passages = [statement]
        _, right = asked(metric, statement, passages=passages, reads=reads)
        _, wrong = asked(metric, statement.replace(true, invented), passages=passages, reads=reads)
        # In rag, what a passage supports and the gold answer does not have is noise.
        last = [one.evidence[-1]["verdict"] for one in (right, wrong)]
        assert last[0] in ("supported", "noise"), statement
        assert last[1] in ("not found", "contradicted", "hallucination"), statement


def test_the_details_of_a_statement_are_found_by_the_test_itself() -> None:
    assert ("no", "side") in _details(STATEMENTS[0])
    assert ("90", "euros") in _details("The permit costs 90 euros per year.")
    assert ("by", "genoa") in _details("Note 7 of the treaty was never signed by Genoa.")

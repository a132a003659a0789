"""Of a model's output only the answer is read: no reasoning, no scaffolding, no markup."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.text.cleaning import extract_answer, fold, fold_text, strip_html
from trustassay.text.mapped import MappedText


def answer(text: str) -> str:
    return extract_answer(MappedText.of(text)).text


@pytest.mark.parametrize(
    "reasoning",
    [
        "<think>Hm, is it blue?</think>",
        "<THINK>\nHm.\n\nIs it blue?\n</THINK>\n\n",
        "<thinking>Hm.</thinking>",
        "<reasoning>Hm.</reasoning>",
        "<scratchpad>Hm.</scratchpad>",
        "[THINK]Hm.[/THINK]",
        "◁think▷Hm.◁/think▷",
        "Hm, is it blue?</think>",  # a chat template wrote the beginning
        "<think>Hm.</think><think>Or blue?</think>",
    ],
)
def test_reasoning_is_cut_out(reasoning: str) -> None:
    assert answer(f"{reasoning}It is red.").strip() == "It is red."


@pytest.mark.parametrize("beginning", ["<think>", "[THINK]", "◁think▷"])
def test_reasoning_without_an_end_leaves_nothing_behind_it(beginning: str) -> None:
    assert answer(f"{beginning}Is it blue? It is red.") == ""


def test_of_channels_the_last_final_one_is_the_answer() -> None:
    text = (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
        "<|channel|>final<|message|>It is red.<|return|>"
    )
    assert answer(text) == "It is red."
    assert answer("<|channel|>analysis<|message|>Hm.") == ""
    assert answer(f"{text}<|channel|>final<|message|>It is blue.<|return|>") == "It is blue."


def test_of_an_agent_the_final_answer_is_the_answer() -> None:
    steps = "Thought: It may be blue.\nAction: search\nAction Input: colour\nObservation: red\n"
    assert answer(f"{steps}Final Answer: It is red.").strip() == "It is red."
    assert answer(f"{steps}**Final Answer:** It is red.").strip("* ") == "It is red."
    assert answer(f"{steps}Thought: done\nIt is red.").strip() == "It is red."


def test_words_like_those_of_an_agent_are_kept_within_a_sentence() -> None:
    text = "The thought was new.\nAn action: they left. Final answer: red."
    assert answer(text) == text


@pytest.mark.parametrize("name", ["answer", "final_answer", "response", "result", "output"])
def test_a_wrapper_is_taken_off(name: str) -> None:
    assert answer(f"<{name}>It is red.</{name}>") == "It is red."


@pytest.mark.parametrize("token", ["<|im_end|>", "<|eot_id|>", "</s>", "<end_of_turn>"])
def test_tokens_of_a_template_are_taken_off(token: str) -> None:
    assert answer(f"It is red.{token}") == "It is red."


# HTML


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("<p>It is <b>red</b>.</p><p>It is <i>big</i>.</p>", ["It is red.", "It is big."]),
        ("It is red.<br>It is big.<br/>It is old.", ["It is red.", "It is big.", "It is old."]),
        ("Kinds:<ul><li>one</li><li class='x'>two</li></ul>", ["Kinds:", "- one", "- two"]),
        ("<h2>Town</h2>It is old.", ["# Town", "It is old."]),
        (
            "<table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td>\n<td>2</td></tr></table>",
            ["| a | b |", "| 1 | 2 |"],
        ),
        ('See <a href="https://example.org">this</a>.', ["See this."]),
    ],
)
def test_the_structure_of_html_becomes_markdown(text: str, lines: list[str]) -> None:
    result = strip_html(MappedText.of(text)).text
    assert [line.strip() for line in result.splitlines() if line.strip()] == lines


def test_entities_are_characters() -> None:
    assert answer("5 &gt; 3 &amp; caf&#233; &#x41;") == "5 > 3 & café A"
    assert answer("AT&T and R&D; &nosuchname;") == "AT&T and R&D; &nosuchname;"


@pytest.mark.parametrize(
    "text", ["1 < 2 and 3 > 2", "It is < 5.", "x<y>z", "a -> b <- c", "I <3 it"]
)
def test_signs_that_compare_are_no_tags(text: str) -> None:
    assert answer(text) == text


# Any text at all


@given(st.text(st.characters(exclude_characters="<&[◁")).filter(lambda text: ":" not in text))
def test_a_text_without_markup_is_the_same(text: str) -> None:
    source = MappedText.of(text)
    assert extract_answer(source) == source


TAGS = "<think> </think> <p> </p> <li> <td> </tr> <b> <br> <|channel|>final<|message|> &amp; </s>"


@given(st.lists(st.sampled_from([*TAGS.split(), "word", " ", "\n", "It is red."])).map("".join))
def test_what_is_left_points_to_where_it_was_written(text: str) -> None:
    result = extract_answer(MappedText.of(text))
    offsets = list(result.offsets)
    assert offsets == sorted(offsets)
    pairs = zip(result.text, offsets, strict=True)
    assert all(text[offset] == character for character, offset in pairs if character.isalpha())


# Characters that look the same, or stand for the same, are folded into the same ones


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so\u00adft zero\u200bwidth", "soft zerowidth"),  # a soft hyphen, a zero-width space
        ("\u202eright\u202c to left\u200f", "right to left"),
        ("\ufeffmark of order", "mark of order"),
        ("Brand™ and Name®", "Brand and Name"),
        ("non\u00a0breaking", "non breaking"),
        ("“A” ‘b’ „c“ don’t", '"A" \'b\' "c" don\'t'),
        ("ﬁne", "fine"),
        ("Ａ１", "A1"),
        ("① Ⅳ ㎏", "1 IV kg"),
        ("H₂O", "H2O"),
        ("cafe\u0301", "café"),
        ("\u1100\u1161", "가"),
    ],
)
def test_what_looks_the_same_is_the_same(text: str, expected: str) -> None:
    assert fold_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("−5 °C", "-5 °C"),
        ("–5 °C", "-5 °C"),
        ("It fell to −$5.", "It fell to -$5."),
        ("It is minus 5 degrees.", "It is -5 degrees."),
        ("Minus 5", "-5"),
        ("(3.2)%", "-3.2%"),
        ("(1,300) %", "-1,300 %"),
        ("5−3", "5-3"),
        ("10–12 and 1914 — 1918", "10-12 and 1914-1918"),
    ],
)
def test_a_minus_and_a_range_have_a_hyphen(text: str, expected: str) -> None:
    assert fold_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "7 minus 5 is 2.",  # a subtraction, in words
        "It is open – always.",
        "The year (2020) was dry.",
        "A well-known town",
    ],
)
def test_other_dashes_and_brackets_stay(text: str) -> None:
    assert fold_text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("½ cup", "1/2 cup"),
        ("3½ cups", "3 1/2 cups"),
        ("3 ½ cups", "3 1/2 cups"),
        ("⅓", "1/3"),
        ("5 m²", "5 m^2"),
        ("10⁶", "10^6"),
        ("(a + b)²", "(a + b)^2"),
        ("10⁻³", "10^-3"),
    ],
)
def test_fractions_and_powers_are_spelled(text: str, expected: str) -> None:
    """10⁶ is not 106, and 3½ is not 31/2."""
    assert fold_text(text) == expected


def test_offsets_point_to_what_was_written() -> None:
    source = "a\u200b 3½ “b”"
    text = fold(MappedText.of(source))
    assert text.text == 'a 3 1/2 "b"'
    assert [source[offset] for offset in text.offsets] == list("a 3½½½½ “b”")


ALPHABET = (
    "ab1 25.,%()$-−–—‒﹣⁻₋½⅓⅞²³⁰⁹₂ﬁＡ①Ⅳ\u00ad\u200b\u202e\u0301\u0308é’“™…\u1100\u1161ℓ㎏\u2044"
)
TEXTS = (
    st.text() | st.text(ALPHABET) | st.lists(st.sampled_from([*ALPHABET, "minus 5"])).map("".join)
)


@given(TEXTS)
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = fold_text(text)
    assert fold_text(once) == once


LETTERS = "aeo 1\u0301\u0308\u0327éöçﬁＡßñ\u1100\u1161"


@given(st.text(LETTERS))
def test_composed_and_decomposed_letters_are_folded_alike(text: str) -> None:
    assert fold_text(unicodedata.normalize("NFD", text)) == fold_text(
        unicodedata.normalize("NFC", text)
    )


@given(TEXTS)
def test_offsets_of_a_folded_text_stand_in_order_within_the_text(text: str) -> None:
    result = fold(MappedText.of(text))
    offsets = list(result.offsets)
    assert len(offsets) == len(result.text)
    assert offsets == sorted(offsets)
    assert all(0 <= offset < len(text) for offset in offsets)


@given(st.text(st.characters(codec="ascii", exclude_characters="()")))
def test_ascii_without_a_spelled_minus_is_the_same(text: str) -> None:
    if "minus" not in text.lower():
        assert fold_text(text) == text

"""The strings that users see: all are listed, and none breaks the rules of style."""

import re
from functools import cache

import pytest

from tests.docs import strings

visible_strings = cache(strings.list_strings)

MAX_CHARACTERS = 420
"""Characters of a message: three lines of a wide terminal, with the fields of an f-string."""


def find(source: str) -> list[tuple[str, str]]:
    """Return kind and text of the strings of a module."""
    return [(kind, text) for _, kind, text in strings.find_in_python(source)]


def test_prose_is_listed_with_its_kind_and_other_strings_are_not() -> None:
    source = """
def f(name):
    \"\"\"A docstring is for programmers.\"\"\"
    cursor.execute("SELECT id FROM samples")
    pattern = r"\\d+ (?:of|in) \\w+"
    Flag("--out", "The folder of the run.")
    key = "answers"
    print(f"{name}: {len(name)} answers are blank")
    raise ValueError("expected one file, "
                     "or a folder")

@with_options
def score() -> None:
    \"\"\"Score the answers in files.\"\"\"
"""
    assert find(source) == [
        ("help", "Score the answers in files."),
        ("help", "The folder of the run."),
        ("text", "{name}: {len(name)} answers are blank"),
        ("error", "expected one file, or a folder"),
    ]


def test_the_text_and_the_scripts_of_a_page_are_listed() -> None:
    page = """<p class="a b">All answers of {{ model }} here</p>
<script>show("No answer is listed."); if (a < b) { c; }</script>"""
    texts = [text for _, _, text in strings.find_in_page(page)]
    assert "No answer is listed." in texts
    assert any("All answers of" in text for text in texts)


def test_every_room_with_output_has_strings() -> None:
    kinds = {(string.room, string.kind) for string in visible_strings()}
    assert {("cli", "help"), ("runs", "help"), ("input", "error"), ("report", "page")} <= kinds
    assert {("view", "page"), ("people", "page"), ("metrics", "text"), ("live", "text")} <= kinds


def test_messages_are_short() -> None:
    long = [
        f"{string.file}:{string.line}: {len(string.text)}"
        for string in visible_strings()
        # A paragraph of help is folded to the terminal, and several paragraphs are no message.
        if string.kind in ("error", "text") and "\n" not in string.text.strip()
        if len(re.sub(r"\{[^}]*\}", "{}", string.text)) > MAX_CHARACTERS
    ]
    assert not long


@pytest.mark.parametrize(
    "pattern",
    [
        r"\b\w+\(s\)",  # amount() writes the plural
        r"'s' if |'' if [^}]* == 1",  # so does a hand-made plural
        r"\bof ours\b|\bread by eye\b|\bneed no look\b|\bin no mean\b|\bmoves it that\b",
        r"\bSay (so|what|how|whether|which)\b",
        r"\bsuch (a )?one\b|\bwhat became of\b",
    ],
)
def test_no_string_has_what_the_style_rules_out(pattern: str) -> None:
    matches = [
        f"{string.file}:{string.line}: {string.text}"
        for string in visible_strings()
        if re.search(pattern, string.text)
    ]
    assert not matches

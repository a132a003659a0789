"""Markdown on the page: what is shown as such, and what stays the text that it is."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.conftest import HOSTILE
from trustassay.report.markdown import (
    MAX_MARKDOWN_CHARACTERS,
    TextMark,
    markdown_html,
    read_beginning,
    render_text,
)

TAGS = {"p", "br", "hr", "strong", "em", "code", "pre", "blockquote", "ul", "ol", "li", "span"}
TAGS |= {"h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}


class Tags(HTMLParser):
    """Gathers the tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.text = set[str](), set[str](), ""
        self.links, self.marked, self.open_tags = list[str](), "", list[str]()
        self.feed(str(page))  # pieces of Markup would be escaped again
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in ("br", "hr"):
            self.open_tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "mark" in self.open_tags:
            self.marked += data


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("a **b** _c_ *d*", "<p>a <strong>b</strong> <em>c</em> <em>d</em></p>"),
        ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"),
        ("# A\n### B", "<h3>A</h3><h5>B</h5>"),
        ("`a < b`", "<p><code>a &lt; b</code></p>"),
        ("```py\nx = 1\n```", "<pre><span>py</span><code>x = 1</code></pre>"),
        ("    x  =  1", "<pre><code>x  =  1</code></pre>"),
        ("2. b\n5. e", '<ol start="2"><li value="2">b</li><li value="5">e</li></ol>'),
        ("|a|\n|:-:|", "<table><thead><tr><th>a</th></tr></thead></table>"),
    ],
)  # fmt: skip
def test_markdown_is_shown_as_such(text: str, page: str) -> None:
    assert markdown_html(text).replace("\n", "") == page


@pytest.mark.parametrize(
    "text",
    [
        "[text](http://127.0.0.1:9/x)",
        "![picture](http://127.0.0.1:9/x.png)",
        "<http://127.0.0.1:9/x> http://127.0.0.1:9",
        "<b onclick='x'>bold</b>",
        "[name]: http://127.0.0.1:9/x",
        "&#x202e; &lt;b&gt;",
        r"\(x_1 + y_2\) \* z",
        "5*x + 3*y, 2**3**4, snake_case_name",
    ],
)
def test_what_could_load_or_lose_something_stays_as_it_is(text: str) -> None:
    found = Tags(markdown_html(text))
    assert found.text.rstrip("\n") == text
    assert found.tags == {"p"}


def test_a_text_that_markdown_would_cut_is_shown_whole() -> None:
    for text in ("|a|\n|-|\n|1|hidden|", "> " * 60 + "hidden", "a *b* " * MAX_MARKDOWN_CHARACTERS):
        assert markdown_html(text).startswith('<p class="plain">')
        assert Tags(markdown_html(text)).text == text


def test_hidden_characters_are_spelled_out_in_code_too() -> None:
    page = markdown_html("a\u202eb `c\u202ed`\n```\u202e\ne\u202ef\n```")
    assert "\u202e" not in page
    assert page.count(">U+202E</span>") == 4


FORMS = ["{}", "# {}", "> {}", "- {}", "**{}**", "`{}`", "```{}\n{}\n```", "|{}|\n|-|\n|{}|"]


@pytest.mark.parametrize("form", [*FORMS, "[{}]({})", "![{}]({})", "[{}]: {}", "<{}>"])
def test_hostile_texts_become_no_tag_and_no_attribute(form: str) -> None:
    for text in HOSTILE:
        found = Tags(markdown_html(form.replace("{}", text)))
        assert found.tags <= TAGS, text
        assert found.attributes <= {"start", "value", "class", "title"}


@given(st.text(st.sampled_from("ab1.) #*_`~|->+=\\[]()<>&;:!\n\t \u202e"), max_size=60))
def test_no_letter_is_lost_and_no_strange_tag_made(text: str) -> None:
    page = markdown_html(text)
    found = Tags(page)
    assert found.tags <= TAGS
    assert not re.search(r"<(?!/?(?:[a-z]|h\d))", page)
    letters = "".join(filter(str.isalpha, text))
    assert "".join(filter(str.isalpha, found.text.replace("U+202E", ""))) == letters


# On the page of a report: links, marks, folding


def letters_of(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def test_links_lead_to_the_web_alone_and_show_where() -> None:
    page = render_text('[the **tariff**](https://example.org/a?b=c&d=e "of 2024") is **new**.').head
    assert page == (
        '<p><a href="https://example.org/a?b=c&amp;d=e" rel="noopener noreferrer" '
        'target="_blank">the <strong>tariff</strong></a> <span class="address">'
        "(https://example.org/a?b=c&amp;d=e “of 2024”)</span> is <strong>new</strong>.</p>\n"
    )


@pytest.mark.parametrize(
    "address",
    [
        "javascript:window.hacked=1",
        "JAVASCRIPT:window.hacked=1",
        "java&#115;cript:window.hacked=1",
        "data:text/html,<script>1</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example/x",
        "/path",
        "#a1",
        "mailto:a@example.org",
        "ht\u200btps://example.org",
        "https://ex\u0430mple.org/",
        "https://example.org/'onmouseover='x",
        "https://example.org/\\u202e",
    ],
)
@pytest.mark.parametrize(
    "form", ["[text]({})", "[text](<{}>)", "[![alt]({})]({})", "**b** ![alt]({})"]
)
def test_other_addresses_are_text(form: str, address: str) -> None:
    result = Tags(render_text(f"*x* {form.replace('{}', address)}").head)
    assert result.links == []
    assert letters_of(address) in letters_of(result.text.replace("U+200B", ""))


def test_pictures_are_text_and_address() -> None:
    result = Tags(render_text("![a *plan*](http://127.0.0.1:9/x.png) and **b**").head)
    assert "img" not in result.tags
    assert result.links == []
    assert result.text.split() == ["🖼", "a", "*plan*", "(http://127.0.0.1:9/x.png)", "and", "b"]


def test_a_text_without_markdown_keeps_its_white_space() -> None:
    text = "one   two\n\n\nthree <b>"
    both = render_text(text)
    assert (both.is_plain, both.head) == (True, "one   two\n\n\nthree &lt;b&gt;")


MARKDOWN = """## Tickets

A **day ticket** costs 7.20 euros since *March*. See [the tariff](https://example.org/tariff).

1. trams
2. `buses`

| ticket | price |
|---|---|
| day | 7.20 |
"""


@pytest.mark.parametrize(
    "piece",
    ["A **day ticket** costs 7.20 euros", "ticket** costs", "trams\n2. `buses`", "day | 7.20",
     "Tickets\n\nA", "the tariff", "`buses`", MARKDOWN.strip()],
)  # fmt: skip
def test_a_mark_lies_on_the_same_letters(piece: str) -> None:
    start = MARKDOWN.index(piece)
    result = Tags(render_text(MARKDOWN, (TextMark(start, start + len(piece), "bad", "why"),)).head)
    # Numbers of a list and addresses are not text that can be marked.
    expected = letters_of(piece.replace("1. ", "").replace("2. ", ""))
    expected = expected.replace("httpsexampleorgtariff", "")
    assert letters_of(result.marked) == expected


def test_marks_are_drawn_in_a_plain_text_and_behind_its_fold() -> None:
    text = "The mill is old. " * 60 + "It is <b>red</b>. Yes."
    start = text.index("It is <b>")
    both = render_text(text, (TextMark(start, start + 17, "fair", '"word"'),))
    assert both.is_plain
    assert both.rest_length == len(Tags(both.rest).text) > 300
    assert (
        '<mark class="fair" title="&#34;word&#34;">It is &lt;b&gt;red&lt;/b&gt;.</mark>'
        in both.rest
    )
    assert Tags(both.head).text + Tags(both.rest).text == text
    # A mark over the fold is drawn on both sides.
    across = render_text(text, (TextMark(590, 610, "bad", ""),))
    assert Tags(across.head).marked + Tags(across.rest).marked == text[590:610]


@pytest.mark.parametrize("text", ["The lamp is red.", "The **lamp** is red."])
def test_no_letter_is_in_two_marks(text: str) -> None:
    marks = [TextMark(0, len(text), tone, "") for tone in ("bad", "fair")]
    page = str(render_text(text, (*marks, TextMark(len(text) - 4, len(text), "bad", ""))).head)
    assert page.count("lamp") == page.count("red") == 1
    assert 'class="fair"' not in page


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"- **item** {n}\n" for n in range(200)),
        "|a|b|\n|-|-|\n" + "".join(f"|{n}|**x**|\n" for n in range(200)),
        "".join(f"> quoted *{n}*\n>\n" for n in range(200)),
        "".join(f"**paragraph** {n}\n\n" for n in range(200)),
        "".join(f"{n}. one\n   - two\n   - *three*\n" for n in range(1, 90)),
        "# A\n" * 200 + "**b**",
        "**" + "word " * 400 + "**",
    ],
)  # fmt: skip
def test_a_long_text_is_folded_between_blocks_and_complete(text: str) -> None:
    both = render_text(text)
    head, rest = Tags(both.head), Tags(both.rest)
    assert head.open_tags == rest.open_tags == []
    numbers = re.findall(r'value="(\d+)"', both.head + both.rest)
    expected = letters_of(re.sub(r"^\d+\. ", "", text, flags=re.MULTILINE))
    assert letters_of(head.text) + letters_of(rest.text) == expected
    assert numbers == re.findall(r"^(\d+)\. ", text, flags=re.MULTILINE)
    if both.rest:
        assert len(head.text) < 2 * 900
        assert not both.head.rstrip().endswith("</h3>")


LINKED = st.text(st.sampled_from("ab1.) #*_`|->\\[]()<>!\n &:/'\"\u202ehtps"), max_size=70)
ADDRESSES = st.lists(
    st.one_of(
        LINKED, st.sampled_from(["](https://e.org/", "[a](http://e.org)", "![", "](", "<b>"])
    ),
    max_size=8,
).map("".join)


@given(ADDRESSES, st.integers(0, 60), st.integers(1, 40), st.integers(30, 300))
def test_whatever_is_written_no_letter_is_lost_and_no_strange_link_made(
    text: str, start: int, length: int, longest: int
) -> None:
    mark = TextMark(start, start + length, "bad", "word")
    both = render_text(text, (mark,), longest)
    head, rest = Tags(both.head), Tags(both.rest)
    assert head.tags | rest.tags <= TAGS | {"a", "mark"}
    allowed = {"href", "rel", "target", "class", "title", "start", "value"}
    assert head.attributes | rest.attributes <= allowed
    assert all(re.match(r"https?://[!-~]+$", link) for link in head.links + rest.links)
    letters = "".join(filter(str.isalpha, text))
    shown = f"{head.text}{rest.text}".replace("U+202E", "")
    assert "".join(filter(str.isalpha, shown)) == letters
    if both.is_plain:
        assert "\u202e" not in both.head + both.rest


@pytest.mark.parametrize(
    "text",
    ["**b** " * 33_000, "[" * 30_000, "![" * 15_000, "[a](b" * 6_000, "> " * 15_000 + "x",
     "- " * 15_000, "|a" * 10_000 + "\n" + "|-" * 10_000, "`" * 30_000, "*a " * 10_000,
     "x" * 200_000],
)  # fmt: skip
def test_large_and_deep_texts_take_no_time(text: str) -> None:
    start = time.process_time()
    both = render_text(text, (TextMark(5, len(text), "bad", "all"),))
    assert read_beginning(text, 170)
    assert time.process_time() - start < 5
    assert letters_of(Tags(both.head).text) + letters_of(Tags(both.rest).text) == letters_of(text)


@pytest.mark.parametrize(
    ("text", "longest", "beginning"),
    [
        ("## Tickets\n\nA **day ticket** costs `7`.", 60, "Tickets A day ticket costs 7."),
        ("- one\n- two\n\n|a|b|\n|-|-|\n|c|d|", 60, "one two a b c d"),
        ("one two three four five six seven eight", 27, "one two three four five six…"),
        ("one two three four five six seven eight", 26, "one two three four five…"),
        ("x" * 40, 27, "x" * 27 + "…"),
        ("**one** " + "\n" * 400 + "two", 27, "one…"),
        ("See [the tariff](https://e.org).", 60, "See the tariff."),
        ("|a|\n|-|\n|1|hidden|", 60, "|a| |-| |1|hidden|"),
        (" \n ", 60, ""),
    ],
)
def test_the_beginning_of_a_text_is_one_line_cut_between_words(
    text: str, longest: int, beginning: str
) -> None:
    assert read_beginning(text, longest) == beginning

"""Markdown on the page: what is shown as such, and what stays the text that it is."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.conftest import HOSTILE
from trustassay.report.markdown import MAX_MARKDOWN_CHARACTERS, markdown_html

TAGS = {"p", "br", "hr", "strong", "em", "code", "pre", "blockquote", "ul", "ol", "li", "span"}
TAGS |= {"h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}


class Tags(HTMLParser):
    """Gathers the tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.text = set[str](), set[str](), ""
        self.feed(str(page))  # pieces of Markup would be escaped again
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


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

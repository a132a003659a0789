"""Passages in every shape: the same texts and titles, whoever wrote them and wherever they are."""

import csv
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from arro3.io import write_parquet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lab.results import read_result

from tests.input.test_formats import table
from tests.input.test_messages import ASKED, SAID, openai
from tests.input.test_tools import A, Q, sample_of
from tests.input.test_traces import otlp, whole
from tests.lazily import needed
from trustassay.core.sample import Sample, SampleError
from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.passages import MAX_LEAD_WORDS, read_documents, read_passages
from trustassay.input.prompts import read_prompt

pandas, polars, datasets = needed("pandas"), needed("polars"), needed("datasets")
Pair = tuple[str, str]
"""The title and the text of a passage."""
PAIRS: list[Pair] = [
    ("Harbour bridge", "The harbour bridge opened in 1931. It is 412 metres long."),
    ("Tram", "The tram to the castle costs 3 euros."),
    ("Castle", "The castle has 14 halls, and two of them are closed in winter."),
]


def pairs_of(passages: Any) -> list[Pair]:
    """Return titles and texts of what a reader of values returns."""
    objects = [{"text": one} if isinstance(one, str) else one for one in passages]
    return [(one.get("title", ""), one["text"]) for one in objects]


def pairs_in(sample: Sample) -> list[Pair]:
    return [(one.title, one.text) for one in sample.documents or ()]


def untitled(pairs: Sequence[Pair]) -> list[Pair]:
    return [("", text) for _, text in pairs]


def each(build: Callable[[int, str, str], Any]) -> Callable[[Sequence[Pair]], list[Any]]:
    """Return what makes a list with an element for each passage: by number, title and text."""
    return lambda pairs: [build(number, *pair) for number, pair in enumerate(pairs, 1)]


def under(name: str, build: Callable[[int, str, str], Any]) -> Callable[[Sequence[Pair]], Any]:
    return lambda pairs: {name: each(build)(pairs)}


UNTITLED: dict[str, Callable[[Sequence[Pair]], Any]] = {
    "texts": each(lambda n, title, text: text),
    "text": each(lambda n, title, text: {"text": text}),
    "content": each(lambda n, title, text: {"content": text, "score": 1 / n}),
    "page_content": each(lambda n, title, text: {"page_content": text, "metadata": {"page": n}}),
    "pageContent": each(lambda n, title, text: {"pageContent": text, "metadata": {}}),
    "chunk": each(lambda n, title, text: {"chunk": text, "doc_id": f"d{n}", "rank": n}),
    "passage": under("passages", lambda n, title, text: {"passage": text, "id": n}),
    "body": under("hits", lambda n, title, text: {"body": text, "_score": 2.5, "_id": str(n)}),
    "snippet": under("results", lambda n, title, text: {"snippet": text, "url": f"https://a/{n}"}),
    "excerpt": under("documents", lambda n, title, text: {"excerpt": text}),
    "with scores": each(lambda n, title, text: [{"page_content": text}, 0.5]),
    "texts under a name": under("contexts", lambda n, title, text: text),
    "columns": lambda pairs: {
        "text": [text for _, text in pairs],
        "score": [0.5] * len(pairs),
    },
    "Pinecone": under("matches", lambda n, title, text: {"id": str(n), "metadata": {"text": text}}),
    "Bedrock": under(
        "retrievalResults",
        lambda n, title, text: {"content": {"text": text, "type": "TEXT"}, "location": {}},
    ),
    "LlamaIndex": each(lambda n, title, text: {"node": {"id_": str(n), "text": text}, "score": 1}),
    "Qdrant": under("points", lambda n, title, text: {"id": n, "payload": {"page_content": text}}),
    "two objects deep": lambda pairs: {"status": "ok", "data": {"items": each_text(pairs)}},
    "OpenAI file search": each(
        lambda n, title, text: {"score": 0.9, "content": [{"type": "text", "text": text}]}
    ),
    "parts": each(lambda n, title, text: {"type": "text", "text": text}),
    "parts of JSON": each(
        lambda n, title, text: {"type": "text", "text": json.dumps({"text": text})}
    ),
}
TITLED: dict[str, Callable[[Sequence[Pair]], Any]] = {
    "title": each(lambda n, title, text: {"title": title, "text": text}),
    "heading": each(lambda n, title, text: {"heading": title, "body": text, "section": n}),
    "name": under("data", lambda n, title, text: {"name": title, "content": text, "id": n}),
    "metadata": each(
        lambda n, title, text: {"page_content": text, "metadata": {"title": title, "source": "a"}}
    ),
    "Tavily": lambda pairs: {
        "query": Q,
        "answer": None,
        **under("results", lambda n, title, text: {**search(n, title), "content": text})(pairs),
        "response_time": 1.2,
    },
    "search": under("results", lambda n, title, text: {**search(n, title), "snippet": text}),
    "Bing": lambda pairs: {
        "webPages": under(
            "value", lambda n, title, text: {"id": f"x#{n}", "name": title, "snippet": text}
        )(pairs)
    },
    "Elasticsearch": lambda pairs: {
        "took": 3,
        "hits": {
            "total": {"value": len(pairs)},
            "hits": each(
                lambda n, title, text: {
                    "_index": "docs",
                    "_id": str(n),
                    "_source": {"title": title, "text": text, "views": 7},
                }
            )(pairs),
        },
    },
    "Chroma": lambda pairs: {
        "ids": [[str(number) for number, _ in enumerate(pairs)]],
        "documents": [[text for _, text in pairs]],
        "metadatas": [[{"title": title} for title, _ in pairs]],
        "distances": [[0.5] * len(pairs)],
    },
    "columns with titles": lambda pairs: {
        "title": [title for title, _ in pairs],
        "text": [text for _, text in pairs],
    },
    "Weaviate with distances": lambda pairs: {
        "data": {
            "Get": {
                "Article": [
                    {"title": title, "text": text, "_additional": {"distance": 0.2}}
                    for title, text in pairs
                ]
            }
        }
    },
    "a Markdown block": lambda pairs: f"```json\n{json.dumps(TITLED['title'](pairs))}\n```",
    "Weaviate": lambda pairs: {"data": {"Get": {"Article": TITLED["title"](pairs)}}},
    "Cohere": each(lambda n, title, text: {"id": str(n), "data": {"title": title, "text": text}}),
    "titles in texts": each(lambda n, title, text: f"Title: {title}\n{text}"),
    "search results of Anthropic": each(
        lambda n, title, text: {
            "type": "search_result",
            "title": title,
            "source": f"https://a/{n}",
            "content": [{"type": "text", "text": text}],
        }
    ),
}


def each_text(pairs: Sequence[Pair]) -> list[Any]:
    return [{"text": text} for _, text in pairs]


def search(number: int, title: str) -> dict[str, Any]:
    return {"title": title, "score": 0.9 - number / 100, "url": f"https://example.org/{number}"}


def search_result(name: str, **others: Any) -> dict[str, Any]:
    """Return a result of a search tool with its text under a name."""
    return {"title": "Bridge", name: "The bridge opened.", "url": "https://a", **others}


def joined(mark: str, build: Callable[[int, str, str], str]) -> Callable[[Sequence[Pair]], str]:
    return lambda pairs: mark.join(each(build)(pairs))


TEXTS: dict[str, Callable[[Sequence[Pair]], str]] = {
    "blank lines": joined("\n\n", lambda n, title, text: text),
    "blank lines of Windows": joined("\r\n\r\n", lambda n, title, text: text),
    "dashes": joined("\n\n---\n\n", lambda n, title, text: text),
    "numbers": joined("\n", lambda n, title, text: f"[{n}] {text}"),
    "numbers and blank lines": joined("\n\n", lambda n, title, text: f"[{n}]: {text}"),
    "numbers from 0": joined("\n", lambda n, title, text: f"[{n - 1}] {text}"),
    "documents": joined("\n", lambda n, title, text: f"Document {n}: {text}"),
    "sources below": joined("\n\n", lambda n, title, text: f"Source {n}:\n{text}"),
    "passages": joined("\n", lambda n, title, text: f"Passage [{n}] {text}"),
    "tags": joined("\n", lambda n, title, text: f"<document>{text}</document>"),
    "JSON Lines": joined("\n", lambda n, title, text: json.dumps({"text": text})),
    "Python": lambda pairs: str([{"text": text} for _, text in pairs]),
}
TEXTS_WITH_TITLES: dict[str, Callable[[Sequence[Pair]], str]] = {
    "title lines": joined("\n\n", lambda n, title, text: f"Title: {title}\n{text}"),
    "headings": joined("\n\n", lambda n, title, text: f"## {title}\n\n{text}"),
    "bold headings": joined("\n\n", lambda n, title, text: f"**{title}**\n{text}"),
    "sources with titles": joined("\n\n", lambda n, title, text: f"Source {n} ({title}): {text}"),
    "ALCE": joined("\n", lambda n, title, text: f"Document [{n}](Title: {title}): {text}"),
    "numbered title lines": joined("\n", lambda n, title, text: f"[{n}] Title: {title}\n{text}"),
    "web pages": joined(
        "\n\n",
        lambda n, title, text: f"Title: {title}\nURL: https://a/{n}\nContent: {text}\nScore: 0.{n}",
    ),
    "tags with titles": lambda pairs: (
        "<documents>"
        + "".join(
            f'<document index="{n}"><title>{title}</title><document_content>{text}'
            "</document_content></document>"
            for n, (title, text) in enumerate(pairs)
        )
        + "</documents>"
    ),
}
SHAPES: dict[str, tuple[Callable[[Sequence[Pair]], Any], bool]] = {
    **{name: (build, False) for name, build in (UNTITLED | TEXTS).items()},
    **{name: (build, True) for name, build in (TITLED | TEXTS_WITH_TITLES).items()},
}
"""Each shape, and whether it has titles."""

WORDS = "bridge castle tram harbour winter halls garden square market river tower gate".split()
VERBS = ("opened in", "costs", "was closed in", "has", "seats")


@st.composite
def passages(draw: Any) -> list[Pair]:
    """Return passages of one to three sentences, each with a title of its own."""
    result: list[Pair] = []
    for _ in range(draw(st.integers(2, 5))):
        sentences = [
            f"The {draw(st.sampled_from(WORDS))} {draw(st.sampled_from(VERBS))} "
            f"{draw(st.integers(2, 3000))} {draw(st.sampled_from(WORDS))}"
            f"{draw(st.sampled_from(['.', '!', ' (as said).', ', it is said.']))}"
            for _ in range(draw(st.integers(1, 3)))
        ]
        result.append((draw(st.sampled_from(WORDS)).capitalize(), " ".join(sentences)))
    return result


def shape_of(name: str, pairs: Sequence[Pair]) -> tuple[Any, list[Pair]]:
    """Return a value in a shape, and the passages that it holds."""
    build, has_titles = SHAPES[name]
    return build(pairs), list(pairs) if has_titles else untitled(pairs)


@pytest.mark.parametrize("name", list(SHAPES))
@given(pairs=passages())
@settings(max_examples=10, deadline=None)
def test_a_result_of_a_tool_holds_the_same_passages_in_every_shape(
    name: str, pairs: list[Pair]
) -> None:
    value, expected = shape_of(name, pairs)
    assert pairs_of(read_passages(value)) == expected
    text = value if isinstance(value, str) else json.dumps(value, indent=1)
    assert pairs_of(read_passages(text)) == expected


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "with scores"])
@given(pairs=passages())
@settings(max_examples=10, deadline=None)
def test_documents_of_a_record_are_the_same_in_every_shape(name: str, pairs: list[Pair]) -> None:
    value, expected = shape_of(name, pairs)
    if name == "parts of JSON":
        return  # an element of a list is read as it stands
    record = {"question": Q, "answer": A}
    text = value if isinstance(value, str) else json.dumps(value)
    for documents in (value, text):
        assert pairs_in(sample_of({**record, "contexts": documents})) == expected
        assert pairs_in(sample_of({**record, "documents": documents})) == expected
        nested = {"inputs": {"question": Q}, "outputs": {"answer": A, "docs": documents}}
        assert pairs_in(sample_of(nested)) == expected


@pytest.mark.parametrize("name", list(SHAPES))
def test_chats_and_traces_hold_the_same_passages_in_every_shape(name: str) -> None:
    value, expected = shape_of(name, PAIRS)
    text = value if isinstance(value, str) else json.dumps(value)
    for result in (value, text, [{"type": "text", "text": text}]):
        assert pairs_in(sample_of({"messages": [ASKED, *openai(result), SAID]})) == expected
    [found] = read_samples([otlp(*whole(result=text))])
    assert isinstance(found, LocatedSample), str(found)
    assert pairs_in(found.sample) == expected


@pytest.mark.parametrize("name", [*TEXTS, *TEXTS_WITH_TITLES])
@pytest.mark.parametrize(
    "prompt",
    [
        "Answer the question.\nContext:\n{shown}",
        "Use the following passages:\n\n{shown}\n\nQuestion: see below",
        "Be brief.\n<context>\n{shown}\n</context>\nCite them.",
    ],
)
def test_an_instruction_shows_the_same_passages_in_every_shape(name: str, prompt: str) -> None:
    value, expected = shape_of(name, PAIRS)
    assert pairs_of(read_prompt(prompt.format(shown=value))) == expected


BRIDGE = {"title": "Bridge", "text": "The bridge opened."}
FOUND: dict[str, Any] = {
    "Serper": {"organic": [search_result("snippet", link="u", position=1)], "credits": 1},
    "SerpAPI": {"organic_results": [search_result("snippet", displayed_link="x")]},
    "Brave": {"query": {"original": Q}, "web": {"results": [search_result("description", age="")]}},
    "Wikipedia": {"query": {"search": [search_result("snippet", pageid=3, wordcount=4, size=9)]}},
    "Google": {"kind": "customsearch#search", "items": [search_result("snippet", link="u")]},
    "Exa": {"results": [search_result("text", id="u", author=None, highlights=["opened"])]},
    "Azure": {"@odata.count": 1, "value": [search_result("chunk", **{"@search.score": 1.2})]},
    "Vespa": {
        "root": {"children": [{"id": "x", "fields": search_result("body", sddocname="doc")}]}
    },
    "Typesense": {
        "found": 1,
        "hits": [{"document": BRIDGE, "highlights": [{"snippet": "opened"}]}],
    },
    "Solr": {"response": {"numFound": 1, "docs": [{k: [v] for k, v in BRIDGE.items()}]}},
    "Qdrant": {"result": [{"id": 1, "payload": {**BRIDGE, "city": "Lisbon"}}], "status": "ok"},
    "Milvus": [[{"id": 1, "distance": 0.3, "entity": BRIDGE}]],
    "Haystack": {
        "documents": [{"content": BRIDGE["text"], "meta": {"name": "Bridge"}, "score": 1}]
    },
    "LangChain": [
        {
            "lc": 1,
            "type": "constructor",
            "kwargs": {"page_content": BRIDGE["text"], "metadata": {"title": "Bridge"}},
        }
    ],
    "OpenAI": {
        "data": [
            {
                "file_id": "f",
                "filename": "Bridge",
                "attributes": {"a": "b"},
                "content": [{"type": "text", "text": BRIDGE["text"]}],
            }
        ],
        "has_more": False,
    },
    "Anthropic": [
        {
            "type": "document",
            "title": "Bridge",
            "source": {"type": "text", "media_type": "text/plain", "data": BRIDGE["text"]},
        }
    ],
    "Gemini": {"groundingChunks": [{"retrievedContext": {"uri": "u", **BRIDGE}}]},
    "Kendra": {
        "ResultItems": [
            {"DocumentTitle": {"Text": "Bridge"}, "DocumentExcerpt": {"Text": BRIDGE["text"]}}
        ]
    },
    "Vertex AI": {
        "results": [
            {
                "document": {
                    "name": "projects/x",
                    "derivedStructData": {
                        "title": "Bridge",
                        "snippets": [{"snippet": BRIDGE["text"]}],
                    },
                }
            }
        ]
    },
    "an answer and its sources": {"answer": "In 1931.", "sources": [BRIDGE]},
    "one page": {"url": "https://a", **BRIDGE},
}


@pytest.mark.parametrize("tool", list(FOUND))
def test_results_of_search_tools_as_they_return_them(tool: str) -> None:
    assert pairs_of(read_passages(FOUND[tool])) == [("Bridge", "The bridge opened.")]
    assert pairs_of(read_documents(FOUND[tool])) == [("Bridge", "The bridge opened.")]


def test_the_measured_shapes_give_the_verdicts_of_the_plain_list() -> None:
    """Chunks of these sets end anywhere, which decides :data:`MAX_LEAD_WORDS`: measure again."""
    assert MAX_LEAD_WORDS == 40
    shapes = read_result("shapes")["shapes"]
    assert len(shapes) > 10
    assert {one["differ"] for one in shapes.values()} == {0}


# ---- what is no list of passages ----


@pytest.mark.parametrize(
    "data",
    [
        {"city": "Lisbon", "degrees": 20, "conditions": "Sunny with a light wind."},
        {"city": "Lisbon", "degrees": 20, "text": "Sunny, and no rain is expected today."},
        [{"name": "Aurora lamp", "price": 20}, {"name": "Basso lamp", "price": 35}],
        {"results": [{"name": "Aurora lamp", "price": 20}]},
        {"rows": [[1, "Aurora"], [2, "Basso"]], "columns": ["id", "name"]},
        [
            {"id": 1, "status": "open", "content": "ok"},
            {"id": 2, "status": "shut", "content": "no"},
        ],
        [{"from": "Ann", "body": "Please pay 300 euros."}],
        [1, 2, 3],
        ["Lisbon", 545000],
        {"tags": ["river", "sea"], "population": 545000},
        {"user": {"id": 7, "orders": [{"id": "W1", "items": [{"name": "Mug", "price": 9}]}]}},
        {"documents": 3},
        {"error": "no such page"},
        {},
    ],
)
def test_data_of_a_tool_stay_one_passage(data: Any) -> None:
    assert read_passages(json.dumps(data)) == [json.dumps(data)]
    assert read_passages(data) == [json.dumps(data)]
    assert read_passages(str(data)) == [str(data)]


@pytest.mark.parametrize(
    "text",
    [
        "| lamp | price |\n| --- | --- |\n| Aurora | 20 |\n| Basso | 35 |",
        "The lamps cost:\n\n| lamp | price |\n| --- | --- |\n| Aurora | 20 |",
        "| lamp | price |\n| --- | --- |\n| Aurora | 20 |\n\n| Basso | 35 |",
        "```python\nx = 1\n\ny = 2\n```",
        "Run this:\n\n```\nmake\n\nmake test\n```",
        "The tram stops at these places:\n\n- the castle\n\n- the harbour\n\n- the market",
        "1. Take the tram.\n\n2. Walk to the castle.\n\n   It is closed on Monday.",
        "The museum that stands beside the old harbour of\n\nthe city has 14 halls.",
        "name,price\nAurora,20\nBasso,35",
        "The bridge opened in 1931\nand is 412 metres long.",
        "[1] The bridge opened in 1931.",
        "See [1] and [2].\n[2] says more.",
        "The keeper wrote:\nTitle: none",
        "  One passage.\n",
        "one\ntwo",
    ],
)
def test_what_belongs_together_is_not_split(text: str) -> None:
    assert pairs_of(read_passages(text)) == [("", text)]
    assert pairs_of(read_documents(text)) == [("", text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Opening hours\nNine to five.", [("Opening hours", "Nine to five.")]),
        ("# Visits\n\n## Hours\n\nNine to five.", [("Visits: Hours", "Nine to five.")]),
        (
            "Prices\n\n| lamp | price |\n| --- | --- |\n| Aurora | 20 |",
            [("Prices", "| lamp | price |\n| --- | --- |\n| Aurora | 20 |")],
        ),
        (
            "The tram is red.\n\nIt stops here:\n- castle\n- market\n\nIt is old.",
            [
                ("", "The tram is red."),
                ("", "It stops here:\n- castle\n- market"),
                ("", "It is old."),
            ],
        ),
        (
            "The tram is red.\n\n## Castle\nIt has 14 halls.\n\nThe bridge is old.",
            [("", "The tram is red."), ("Castle", "It has 14 halls."), ("", "The bridge is old.")],
        ),
        (
            "Found 2 results:\n\n[1] One.\n\nMore.\n\n[2] Two.",
            [("", "One.\n\nMore."), ("", "Two.")],
        ),
        ("one\n\ntwo", [("", "one"), ("", "two")]),
        ("Source 1 (https://a.org): One.\nSource 2 (a.pdf): Two.", [("", "One."), ("", "Two.")]),
        (
            "Source: a.pdf\nOne.\n\nSource: Rail report\nTwo.",
            [("", "One."), ("Rail report", "Two.")],
        ),
        (
            "--- Document 1 ---\nOne.\n--- Document 2 ---\nTwo.",
            [("", "One."), ("", "Two.")],
        ),
        (
            "[Source 1: Rail report] One.\n[Source 2: b.pdf] Two.",
            [("Rail report", "One."), ("", "Two.")],
        ),
        ("**[1] Tram**\nOne.\n\n**[2] Castle**\nTwo.", [("Tram", "One."), ("Castle", "Two.")]),
        ("[1] Tram (https://a.org)\nOne.\n[2] Two.", [("Tram", "One."), ("", "Two.")]),
        ("Source: a.pdf\nOne.\n---\nSource: b.pdf\nTwo.", [("", "One."), ("", "Two.")]),
        (
            "Content: One.\nSource: a.pdf\n\nContent: Two.\nSource: b.pdf",
            [("", "One."), ("", "Two.")],
        ),
        (
            "page_label: 1\nfile_path: a.pdf\n\nOne.\n\npage_label: 2\n\nTwo.",
            [("", "One."), ("", "Two.")],
        ),
        (
            "Title: Bridge\nIt is old.\nDistance: 3 km\nURL: https://a",
            [("Bridge", "It is old.\nDistance: 3 km")],
        ),
        (
            "Page: Tram\nSummary: One.\n\nPage: Castle\nSummary: Two.",
            [("Tram", "One."), ("Castle", "Two.")],
        ),
        (
            "By: Ann\nTitle: Tram\nSummary: One.\n\nBy: Bob\nTitle: Castle\nSummary: Two.",
            [("Tram", "By: Ann\nOne."), ("Castle", "By: Bob\nTwo.")],
        ),
        ("<doc title='Tram'>One.</doc>\n<doc>Two.</doc>", [("Tram", "One."), ("", "Two.")]),
        ("第一条很长。\n\n第二条也很长。", [("", "第一条很长。"), ("", "第二条也很长。")]),
    ],
)
def test_titles_and_parts_of_texts(text: str, expected: list[Pair]) -> None:
    assert pairs_of(read_passages(text)) == expected
    assert pairs_of(read_documents(text)) == expected


def test_a_list_keeps_the_places_that_citations_count() -> None:
    texts = ["One.\n\nTwo.", "", "[1] Three.\n[2] Four.", None, '["five"]']
    sample = sample_of({"question": Q, "answer": A, "contexts": texts})
    shown = ["One.\n\nTwo.", "", "[1] Three.\n[2] Four.", "", '["five"]']
    assert [one.text for one in sample.documents or ()] == shown
    assert [one.id for one in sample.documents or ()] == ["1", "2", "3", "4", "5"]


def test_what_has_no_text_beside_passages_is_kept_but_for_pictures() -> None:
    data = {"name": "Aurora lamp", "price": 20}
    picture = {"type": "image_url", "image_url": {"url": "https://a/b.png"}}
    value = [{"text": "The lamp glows."}, data, picture, None, {"text": " "}]
    assert pairs_of(read_passages(value)) == [("", "The lamp glows."), ("", json.dumps(data))]
    twice = [{"text": "The lamp glows."}] * 2
    assert pairs_of(read_passages(twice)) == [("", "The lamp glows.")] * 2


def test_addresses_scores_and_ids_are_no_text() -> None:
    value = [{"id": 7, "title": "Tram", "url": "https://a", "score": 0.5, "text": "It is red."}]
    assert read_passages(value) == [{"id": 7, "title": "Tram", "text": "It is red."}]
    assert read_documents(value) == read_passages(value)


# ---- bad input ----


@pytest.mark.parametrize(
    ("documents", "fault"),
    [
        ([{"text": 7}], "contexts[0].text: expected text, got 7"),
        ([{"title": 7, "text": "a"}], "contexts[0].title: expected text, got 7"),
        ([{"title": "t"}], "contexts[0].text: is missing (expected text)"),
        (["a", 7], "contexts[1]: expected a document or its text, got 7"),
        ([["a", "c"], ["b", "d"]], "contexts[0]: expected a document or its text, got a list"),
        ({"results": [{"text": ["a", 7]}, {"url": "u"}]}, "contexts[1].text: is missing"),
        ({"degrees": 20}, "contexts: expected a list of documents, got an object"),
        (7, "contexts: expected a list of documents, got 7"),
        ('["a", b', 'contexts: cannot be read as a list; write the texts as JSON: ["one", "two"]'),
        ("[{'text': 'a'", "contexts: cannot be read as a list"),
    ],
)
def test_faults_of_documents_are_named_in_every_form(
    documents: Any, fault: str, tmp_path: Path
) -> None:
    row = {"question": Q, "answer": A, "contexts": documents}
    lines = tmp_path / "x.jsonl"
    lines.write_text(json.dumps(row) + "\n")
    for source, where in (([row], "sample 1"), (lines, f"{lines}:1")):
        [found] = read_samples(source)
        assert isinstance(found, InputFault)
        assert str(found).startswith(f"{where}: {fault}")


def nested(depth: int, inner: Any, name: str = "") -> Any:
    for _ in range(depth):
        inner = {name: inner} if name else [inner]
    return inner


@pytest.mark.parametrize(
    "value",
    [
        nested(50, [{"text": "a b c."}]),
        nested(50, [{"text": "a b c."}], "results"),
        nested(200, {"text": "a b c."}, "document"),
        "[" * 100_000,
        '{"results": ' * 5_000,
        "<documents>" * 5_000 + "a" + "</documents>" * 5_000,
        "<document>" * 100_000,
        "# a\n" * 4_000,
        "Title: a\n" * 4_000,
        "[1] a\n" * 4_000,
        "a\n\n" * 4_000,
        "- a\n\n" * 4_000,
        "|a|\n" * 4_000,
        "-" * 100_000 + "\n" + "=" * 100_000,
        "a\n" + " " * 100_000 + "\n" + "(" * 100_000,
        "a\n\n# x" + " #" * 100_000 + "y\n\nb",
        "Title: a" + " " * 100_000 + "(\nb",
        "[1] a\n" + "---\n" * 50_000 + "x\n[2] b",
        '{"a": 1}\n' * 4_000,
        [{"text": f"Passage {n} is short."} for n in range(4_000)],
        [{f"field {n}": n for n in range(2_000)}],
        {name: {"data": {"payload": {"fields": {}}}} for name in map(str, range(2_000))},
    ],
    ids=range(22),
)
def test_hostile_values_take_little_time(value: Any) -> None:
    start = time.process_time()
    assert isinstance(read_passages(value), list)
    read_prompt(value if isinstance(value, str) else json.dumps(value))
    with suppress(SampleError):
        read_documents(value)
    assert time.process_time() - start < 5


any_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["A passage of text.", "[1] a\n[2] b", "# T\n\nText.", '[{"text": "a."}]']),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "title", "results", "hits", "_source", "metadata", "id", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(value=any_value)
@settings(deadline=None)
def test_any_value_gives_passages_with_a_text(value: Any) -> None:
    for one in read_passages(value):
        assert isinstance(one, str) or (
            isinstance(one["text"], str) and one.keys() <= {"id", "title", "text"}
        )
    assert read_passages(value) == read_passages(value)


# ---- the same rows in every form ----

ROWS: list[dict[str, Any]] = [
    {"question": Q, "answer": A, "contexts": ["The Tagus.", "Lisbon."], "ground_truth": "Tagus."},
    {"question": "When?", "answer": "[1]", "contexts": "One.\n\nTwo.", "ground_truth": "In 1931."},
    {"question": "Who?", "answer": "", "contexts": json.dumps(["a", "b"]), "ground_truth": "Ann."},
    {"question": "Why?", "answer": "So.", "contexts": "['a', 'b']", "ground_truth": "For it."},
    {
        "question": "How?",
        "answer": "So.",
        "contexts": '[{"page_content": "a"}]',
        "ground_truth": "x",
    },
    {
        "question": "Which?",
        "answer": "{}",
        "contexts": '{"degrees": 20}',
        "ground_truth": '["x", "y"]',
    },
]


def as_text(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows({name: as_text(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def samples(source: Any) -> list[Sample]:
    found = list(read_samples(source))
    assert not [str(one) for one in found if isinstance(one, InputFault)]
    return [one.sample for one in found if isinstance(one, LocatedSample)]


def in_every_form(rows: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Return the rows as dictionaries, files, and an Arrow table, which has one type a column."""
    texts = [{name: as_text(value) for name, value in row.items()} for row in rows]
    written = {"x.csv": as_csv(rows), "x.jsonl": "\n".join(map(json.dumps, rows))}
    written |= {"x.json": json.dumps(rows), "t.jsonl": "\n".join(map(json.dumps, texts))}
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    write_parquet(table(texts), folder / "x.parquet")
    forms: dict[str, Any] = {name: folder / name for name in (*written, "x.parquet")}
    forms |= {"rows": rows, "rows of texts": texts, "Arrow": table(texts).read_all()}
    return forms


def test_the_same_rows_give_the_same_samples_in_every_form(tmp_path: Path) -> None:
    expected = samples(ROWS)
    assert [pairs_in(one) for one in expected] == [
        [("", "The Tagus."), ("", "Lisbon.")],
        [("", "One."), ("", "Two.")],
        *([("", "a"), ("", "b")] for _ in range(2)),
        [("", "a")],
        [("", '{"degrees": 20}')],
    ]
    assert [one.response for one in expected] == [A, "[1]", "", "So.", "So.", "{}"]
    assert expected[-1].claims == ("x", "y")
    for name, source in in_every_form(ROWS, tmp_path).items():
        assert samples(source) == expected, name


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "polars", "datasets"])
def test_the_same_rows_give_the_same_samples_in_frames(library: str) -> None:
    texts = [{name: as_text(value) for name, value in row.items()} for row in ROWS]
    if library == "pandas":
        assert samples(pandas.DataFrame(ROWS)) == samples(ROWS)
    build = {
        "pandas": pandas.DataFrame,
        "polars": polars.DataFrame,
        "datasets": datasets.Dataset.from_list,
    }
    assert samples(build[library](texts)) == samples(ROWS)


@given(pairs=st.lists(passages(), min_size=1, max_size=3), shape=st.sampled_from(list(SHAPES)))
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_rows_with_any_shape_of_passages_are_the_same_in_every_form(
    pairs: list[list[Pair]], shape: str, tmp_path: Path
) -> None:
    if shape in {"with scores", "parts of JSON"}:
        return
    values = [shape_of(shape, one) for one in pairs]
    rows = [
        {"id": f"r{n}", "question": Q, "answer": A, "contexts": value}
        for n, (value, _) in enumerate(values)
    ]
    for name, source in in_every_form(rows, tmp_path).items():
        assert [pairs_in(one) for one in samples(source)] == [one for _, one in values], name


def test_a_list_with_places_as_names_is_read_and_data_stay_data() -> None:
    texts = [text for _, text in PAIRS]
    numbered = {str(place): text for place, text in enumerate(texts)}
    assert read_passages(numbered) == texts
    assert read_documents(numbered) == texts
    assert read_passages({"2024": "up", "2025": "down"}) == ['{"2024": "up", "2025": "down"}']

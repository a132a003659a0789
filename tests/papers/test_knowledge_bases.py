import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from tests.papers.knowledge_base import KnowledgeBase, knowledge_base
from trustassay.backends.registry import load
from trustassay.calls.client import CallOptions, SampleModels, open_calls
from trustassay.core.capabilities import Entity, Models
from trustassay.errors import BackendError, CallError, UnknownNameError
from trustassay.metrics.consistency.distractors import find_distractors
from trustassay.metrics.consistency.tokens import Distractor
from trustassay.papers.backends.dbpedia import DBpediaSource, dbpedia_address, label_of, query_of
from trustassay.papers.backends.spotlight import SpotlightLinker, spotlight_address
from trustassay.papers.distractors import load_backends

QUESTION, ANSWER = "who wrote it", "Jane Austen wrote it in 1815."
QUICK = "?deadline=3&tries=3&patience=1"


def served(work: Callable[[KnowledgeBase], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        async with knowledge_base() as base:
            return await work(base)

    return asyncio.run(whole())


async def find(base: KnowledgeBase, options: str = QUICK, **others: Any) -> list[Distractor]:
    backends, names = load_backends(
        f"dbpedia:{base.url}/sparql{options}", f"spotlight:{base.url}{options}"
    )
    calls = CallOptions(cache=others.pop("cache", None))
    async with open_calls(backends, calls) as gatherers:
        models = cast(Models, SampleModels(gatherers))
        question, answer = others.pop("question", QUESTION), others.pop("answer", ANSWER)
        return await find_distractors(question, answer, models, sources=names, **others)


def of_base(found: list[Distractor]) -> list[str]:
    return [one.replacement for one in found if one.source == "dbpedia"]


def types_asked(base: KnowledgeBase) -> list[list[str]]:
    return [
        [one for one in re.findall(r"ontology/(\w+)>", query) if one != "wikiPageWikiLink"]
        for query in base.queries
    ]


def test_types_are_reduced_step_by_step_in_the_order_of_popularity() -> None:
    async def work(base: KnowledgeBase) -> None:
        found = await find(base, answer="Jane Austen wrote it.")
        # all three types, then pairs, then one; brackets are stripped
        assert of_base(found) == [
            "Leo Tolstoy", "Mary Shelley", "Homer", "Sappho", "Marie Curie"
        ]  # fmt: skip
        assert types_asked(base) == [
            ["Novelist", "Writer", "Person"],
            ["Novelist", "Writer"],
            ["Novelist", "Person"],
            ["Writer", "Person"],
            ["Novelist"],
            ["Writer"],
            ["Person"],
        ]
        base.queries.clear()
        found = await find(base, answer="Jane Austen wrote it.", limit=1)
        assert of_base(found) == ["Leo Tolstoy"]
        assert types_asked(base) == [["Novelist", "Writer", "Person"]]

    served(work)


def test_a_date_beside_a_linked_entity_is_kept() -> None:
    async def work(base: KnowledgeBase) -> None:
        found = await find(base, limit=60)
        assert {one.source for one in found} == {"date", "dbpedia"}
        assert len(of_base(found)) == 5
        assert base.texts == [ANSWER]

    served(work)


def test_what_was_replied_is_not_asked_again(tmp_path: Path) -> None:
    async def work(base: KnowledgeBase) -> None:
        answer = "Jane Austen wrote it."
        first = await find(base, cache=tmp_path, answer=answer)
        asked = len(base.queries), len(base.texts)
        assert asked == (7, 1)
        base.fate = "500"  # whatever happens to the service now
        assert await find(base, cache=tmp_path, answer=answer) == first
        assert (len(base.queries), len(base.texts)) == asked

    served(work)


@pytest.mark.parametrize(
    ("fate", "options", "words"),
    [
        ("500", QUICK, "500: out of order"),
        ("garbage", QUICK, "a reply without"),
        ("not-json", QUICK, "the reply is not JSON"),
        ("slow", "?timeout=0.1&tries=2&patience=1&deadline=2", "0.1 s"),
        ("404", QUICK, "404: out of order"),
    ],
)
def test_a_service_in_trouble_fails_the_answer_and_says_how(
    fate: str, options: str, words: str
) -> None:
    async def work(base: KnowledgeBase) -> None:
        base.fate = fate
        with pytest.raises(BackendError, match=words) as caught:
            await find(base, options)
        assert base.url in str(caught.value)
        assert (len(base.texts) > 1) is (fate != "404")  # a wrong address is not tried again

    served(work)


@pytest.mark.parametrize("fate", ["500", "garbage"])
def test_trouble_that_passes_costs_nothing_but_time(fate: str) -> None:
    async def work(base: KnowledgeBase) -> None:
        base.fate, base.fails = fate, 1
        assert of_base(await find(base, limit=1, answer="Jane Austen wrote it.")) == ["Leo Tolstoy"]
        assert len(base.texts) == 2

    served(work)


def test_nobody_there() -> None:
    base = KnowledgeBase()
    base.url = "http://127.0.0.1:1"
    with pytest.raises(BackendError, match=r"127\.0\.0\.1:1: no connection"):
        asyncio.run(find(base))


def test_an_entity_that_is_not_known_leaves_the_other_sources() -> None:
    async def work(base: KnowledgeBase) -> None:
        assert await find(base, answer="Xyzzy wrote it.") == []
        assert base.queries == []

    served(work)


def test_the_query_holds_nothing_but_known_types() -> None:
    query = query_of(["http://dbpedia.org/ontology/City"], 7)
    assert query.endswith("LIMIT 7") and "a <http://dbpedia.org/ontology/City> ;" in query

    async def work(base: KnowledgeBase) -> None:
        from trustassay.core.capabilities import SubstitutesRequest

        source = DBpediaSource(dbpedia_address(f"{base.url}/sparql"))
        hostile = ("DBpedia:City> . ?s ?p ?o", "Person", "evil:City")
        assert await source.asubstitutes(SubstitutesRequest("x", 3, types=hostile)) == []
        assert base.queries == []
        assert await source.asubstitutes(
            SubstitutesRequest("x", 3, types=("DBpedia:City", *hostile))
        ) == ["Rome", "Oslo"]
        await source.close()

    served(work)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("Prince (musician)", "Prince"),
        ("Rome", "Rome"),
        ("A (b) c", "A (b) c"),
        ("(what)", ""),
        ("Prince (album) (1979) ", "Prince"),
    ],
)
def test_labels_lose_their_qualifier(label: str, expected: str) -> None:
    assert label_of(label) == expected


def test_a_span_outside_of_the_text_is_malformed() -> None:
    async def work(base: KnowledgeBase) -> None:
        linker = SpotlightLinker(spotlight_address(base.url))

        async def lie(path: str, fields: Any) -> Any:
            return {
                "@text": "",
                "Resources": [{"@URI": "x", "@surfaceForm": "Rome", "@offset": "99"}],
            }

        linker._http.post_form = lie  # type: ignore[method-assign]
        with pytest.raises(CallError, match="resources and their places") as caught:
            await linker.alink("In Rome.")
        assert caught.value.kind == "malformed"
        assert await linker.alink("  ") == []

    served(work)


def test_places_may_be_counted_in_units_of_utf_16() -> None:
    async def work(base: KnowledgeBase) -> None:
        linker = SpotlightLinker(spotlight_address(base.url))
        offsets = [3, 5, -1, 4, 6]

        async def told(path: str, fields: Any) -> Any:
            found = {"@URI": "x", "@surfaceForm": "Rome", "@types": ""}
            return {"@text": "", "Resources": [found | {"@offset": offsets.pop(0)}]}

        linker._http.post_form = told  # type: ignore[method-assign]
        text = "\U0001f3db\U0001f3db Rome"
        for _ in range(2):
            (entity,) = await linker.alink(text)
            assert (entity.start, entity.end) == (3, 7)
        while offsets:
            with pytest.raises(CallError):
                await linker.alink(text)

    served(work)


def test_addresses_and_limits() -> None:
    source = load("distractors", "dbpedia")
    assert source.name == "dbpedia:https://dbpedia.org/sparql"
    assert source.endpoint_limits.concurrency == 4
    slow = load("distractors", "dbpedia:http://h/s?rpm=60&concurrency=9")
    assert slow.endpoint_limits.requests_per_minute == 60
    assert slow.endpoint_limits.concurrency == 9
    linker = load("linker", "spotlight?rpm=6")
    assert linker.name == "spotlight:https://api.dbpedia-spotlight.org/en"
    with pytest.raises(UnknownNameError, match="did you mean"):
        load("linker", "spotlihgt:http://h")
    with pytest.raises(BackendError, match="expected an address that begins with http"):
        load("distractors", "dbpedia:nowhere")


def test_a_spacy_model_that_is_not_there() -> None:
    with pytest.raises(BackendError, match="spacy:no_such_model"):
        load("linker", "spacy:no_such_model")


class Returning:
    """A linker of one's own that returns what a test says."""

    name = "mine/1"

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    def link(self, texts: Sequence[str]) -> Any:
        return self.returned


def link_by(linker: Any) -> Any:
    async def run() -> Any:
        backends, _ = load_backends("embedding", linker)
        async with open_calls(backends, CallOptions(cache=None)) as gatherers:
            return await cast(Models, SampleModels(gatherers)).link("Jane wrote it.")

    return asyncio.run(run())


JANE = {"id": "Q1", "name": "Jane", "start": 0, "end": 4}


def test_a_linker_of_ones_own_returns_entities_or_dictionaries() -> None:
    entity = Entity(**JANE)  # type: ignore[arg-type]
    assert link_by(Returning([[JANE]])) == link_by(Returning([[entity]])) == (entity,)
    typed = JANE | {"details": {"types": ["DBpedia:Writer"]}}
    assert link_by(Returning([[typed]]))[0].details == {"types": ["DBpedia:Writer"]}


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([[{"id": "Q1", "name": "Jane", "start": 0}]], "expected, for each text, a list of Entity"),
        ([[JANE | {"start": "0"}]], "expected, for each text, a list of Entity"),
        ([[JANE | {"label": "x"}]], "expected, for each text, a list of Entity"),
        ([JANE | {"end": None}], "expected, for each text, a list of Entity"),
        (["Jane"], "returned 'Jane' as an entity; expected, for each text, a list of Entity"),
        ([[JANE | {"end": 99}]], "returned a span outside its text"),
        (None, "returned None; expected a list with the entities of each text, of length 1"),
        ([], r"returned \[\]; expected a list with the entities of each text, of length 1"),
    ],
)
def test_what_a_linker_of_ones_own_has_to_return(returned: Any, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        link_by(Returning(returned))


def test_a_function_is_no_linker() -> None:
    expected = (
        r"name and link\(texts\), which returns for each text a list of entities with id, name,"
    )
    with pytest.raises(BackendError, match=expected):
        link_by(lambda texts: [])

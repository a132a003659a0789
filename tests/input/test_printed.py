"""Lists and objects as Python prints them: read without running code, or named as unreadable."""

import collections
import datetime
import decimal
import enum
import pathlib
import time
import uuid
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.printed import (
    CUT_OFF,
    MAX_CHARACTERS,
    NO_LIST,
    TOO_LONG,
    explain_unreadable,
    parse_printed,
)

FIRST, SECOND = 'The museum\'s "big" hall.\nIt opened in 1902.', "It has 14 halls."


@dataclass
class Chunk:
    text: str
    metadata: Any = None


class Kind(enum.Enum):
    TEXT = "1"


class Opaque:
    pass


def passages(value: Any) -> list[str]:
    [result] = read_samples([{"question": "Q?", "answer": "A.", "contexts": value}])
    assert isinstance(result, LocatedSample), result
    return [document.text for document in result.sample.documents or ()]


def fault(value: Any) -> str:
    [result] = read_samples([{"question": "Q?", "answer": "A.", "contexts": value}])
    assert isinstance(result, InputFault), result
    return str(result)


DOCUMENT = "documents.Document(id='1', metadata={}, page_content=%r)"
NODE = (
    "NodeWithScore(node=TextNode(id_='n', embedding=None, metadata={}, relationships={<NodeRelation"
    "ship.SOURCE: '1'>: RelatedNodeInfo(node_id='d', node_type=<ObjectType.DOCUMENT: '4'>)}, "
    "metadata_template='{key}: {value}', text=%r, text_template='{content}'), score=0.9)"
)


@pytest.mark.parametrize(
    "printed",
    [
        [FIRST, SECOND],
        (FIRST, SECOND),
        np.array([FIRST, SECOND], dtype=object),
        [np.array([FIRST, SECOND])],
        str(np.array([FIRST, SECOND])),
        {"text": np.array([FIRST, SECOND], dtype=object)},
        [{"text": FIRST, "score": float("nan")}, {"text": SECOND, "rank": np.float64(0.3)}],
        [{"text": FIRST, "score": float("-inf")}, {"text": SECOND, "rank": np.float64("nan")}],
        [(Chunk(FIRST), float("-inf")), (Chunk(SECOND), np.float64("nan"))],
        [Chunk(FIRST), Chunk(SECOND, {"at": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)})],
        [(Chunk(FIRST), 0.9), (Chunk(SECOND), 0.8)],
        [SimpleNamespace(text=FIRST), collections.OrderedDict(text=SECOND)],
        collections.deque([FIRST, SECOND], maxlen=3),
        collections.defaultdict(list, {"documents": [FIRST, SECOND]}),
        [repr(Chunk(FIRST)), repr(Chunk(SECOND))],
        f"[Document(metadata={{'page': 3}}, page_content={FIRST!r}), {DOCUMENT % SECOND}]",
        f"[{NODE % FIRST}, {NODE % SECOND}]",
        [f"page_content='{FIRST}' metadata={{'a': 'b'}}", f"page_content='{SECOND}'"],
    ],
)
def test_printed_passages_are_read(printed: Any) -> None:
    assert passages(printed if isinstance(printed, str) else repr(printed)) == [FIRST, SECOND]


def test_a_single_printed_object_is_one_passage_with_its_title() -> None:
    value = "Document(page_content='It opened.', metadata={'title': 'Guide'})"
    [result] = read_samples([{"question": "Q?", "answer": "A.", "contexts": value}])
    assert isinstance(result, LocatedSample)
    assert [(d.title, d.text) for d in result.sample.documents or ()] == [("Guide", "It opened.")]


def test_values_beside_a_text_are_kept_in_a_form_that_json_has() -> None:
    values = {
        "price": decimal.Decimal("1.50"),
        "id": uuid.UUID(int=3),
        "path": pathlib.PurePosixPath("a/b"),
        "day": datetime.date(2024, 1, 2),
        "kind": Kind.TEXT,
        "nothing": float("nan"),
        "minus": -1.5,
        "raw": b"a",
        "opaque": Opaque(),
        "class": int,
    }
    assert parse_printed(repr(values)) == {
        "price": "1.50",
        "id": str(uuid.UUID(int=3)),
        "path": "a/b",
        "day": "2024-01-02",
        "kind": "1",
        "nothing": None,
        "minus": -1.5,
        "raw": "a",
        "opaque": None,
        "class": None,
    }


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        (repr(np.array([f"text {n}" for n in range(2000)], dtype=object)), CUT_OFF),
        ("[Document(page_content='The museum ope...", CUT_OFF),
        ("[{'text': 'The museum opened in 1902.'}, {'te…", CUT_OFF),
        ("['The museum opened in 1902.', ...]", CUT_OFF),
        (
            "[<tests.input.test_printed.Opaque object at 0x7f13>]",
            "has an object without its text (<tests.input.test_printed.Opaque obj",
        ),
        ("<tests.input.test_printed.Opaque object at 0x7f13>", "has an object without its text"),
        ("[<Document ...>, <Document ...>]", "has an object without its text (<Document ...>)"),
        ("[Document(id=1f, content: 'It opened.', meta: {'a': 1})]", NO_LIST),
        ("Document(id=1f, content: 'It opened.')", NO_LIST),
        ("[open('/etc/passwd').read()]", NO_LIST),
        ("['a' if True else 'b']", NO_LIST),
        ("['a', b]", NO_LIST),
        ("['" + "a" * MAX_CHARACTERS + "']", TOO_LONG),
    ],
)
def test_what_begins_as_a_list_and_cannot_be_read_is_named(printed: str, message: str) -> None:
    assert f"sample 1: contexts: {message}" in fault(printed)
    element = printed.startswith(("[", "{"))
    assert element or f"sample 1: contexts[1]: {message}" in fault(["a", printed])


@pytest.mark.parametrize(
    "text",
    [
        "[1] The museum opened in 1902.",
        "(1) It has 14 halls.",
        '("quoted") It has 14 halls.',
        "[Smith(2020)] It has 14 halls.",
        "print('hello') prints a text.",
        "print('hello')",
        "Foo(bar=1)",
        "range(stop=3) counts to two.",
        "<b>It</b> has 14 halls.",
        "<image>",
        "lr=0.002 was used.",
        "np.array([1, 2, 3]) creates an array.",
        "tuple([1, 2])",
        "It has 14 halls...",
    ],
)
def test_texts_that_only_look_like_a_printed_value_stay_texts(text: str) -> None:
    assert passages(text) == passages([text]) == [text]


def test_gold_answers_may_be_printed_too() -> None:
    row = {"question": "Q?", "answers": "array(['a', 'b'], dtype=object)"}
    [result] = read_samples([row])
    assert isinstance(result, LocatedSample)
    assert result.sample.answers == (("a",), ("b",))


def test_an_unknown_escape_is_read_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    assert parse_printed(r"['C:\data', 'D:\data']") == [r"C:\data", r"D:\data"]
    assert not list(recwarn)


@pytest.mark.parametrize("value", [Chunk("It opened."), Chunk("It opened.", {"a": Chunk("b")})])
def test_objects_in_python_are_read_as_their_fields(value: Any) -> None:
    assert passages([value, "b"]) == ["It opened.", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" + "-" * 1_000_000 + "1]",
        "[" + "1+" * 300_000 + "1]",
        "[a" + ".a" * 300_000 + "]",
        "['" + "\\'" * 500_000,
        "[" + "<a " * 500_000,
        "[" + "f(" * 100_000,
        "['a'" + " 'b'" * 1_000_000,
        "page_content='" + "' metadata={" * 100_000 + "'",
        "(" * 100_000 + "'",
    ],
)
def test_hostile_texts_take_little_time(text: str) -> None:
    start = time.perf_counter()
    parse_printed(text)
    explain_unreadable(text)
    assert time.perf_counter() - start < 5


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(value=st.lists(json_values) | st.dictionaries(st.text(), json_values))
def test_values_of_json_are_read_back(value: Any) -> None:
    assert parse_printed(repr(value)) == value


@given(text=st.text("[]{}()<>'\"\\,.:=aDocument 1", max_size=40))
def test_no_text_raises(text: str) -> None:
    assert parse_printed(text) is None or not explain_unreadable(text)

"""Reasoning is told apart from the answer, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.backends.chat_text import says_nothing, split_reasoning, strip_reasoning
from trustassay.core.capabilities import Reply

CODE = "Models write:\n```\n<think>\nhm\n</think>\n```\nand then the answer."


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        ("<think>hm</think>Paris.", "Paris.", "hm"),
        ("<think>\nIs it?\n\nYes.\n</think>\n\nParis.\n", "Paris.\n", "Is it?\n\nYes."),
        ("\n <THINK>hm</Think> Paris.", "Paris.", "hm"),
        ("<thinking>hm</thinking>\nParis.", "Paris.", "hm"),
        ("<thought>hm</thought>Paris.", "Paris.", "hm"),
        ("<reasoning>hm</reasoning>Paris.", "Paris.", "hm"),
        ("<seed:think>hm</seed:think>Paris.", "Paris.", "hm"),
        ("[THINK]hm[/THINK]Paris.", "Paris.", "hm"),
        ("◁think▷hm◁/think▷Paris.", "Paris.", "hm"),
        ("<think>\n\n</think>\n\nParis.", "Paris.", None),  # told not to think
        ("<think>a</think>\n<think>b</think>\nParis.", "Paris.", "a\n\nb"),
        ("<think>a</think>It ends with </think>.", "It ends with </think>.", "a"),
        ("<think>hm</think>", "", "hm"),
        (
            "Okay.\n\nIs it?\n</think>\n\nParis.",
            "Paris.",
            "Okay.\n\nIs it?",
        ),  # opened by the prompt
        ("</think>\n\nParis.", "Paris.", None),
    ],
)
@pytest.mark.parametrize("finish", ["stop", "length", None])
def test_reasoning_is_taken_out(
    text: str, answer: str, reasoning: str | None, finish: str | None
) -> None:
    found, told = split_reasoning(text, finish)
    assert (found, told or None) == (answer, reasoning)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "Paris.",
        " Paris.\n",
        "The tag <think>, closed by </think>, holds what it thinks.",
        "It begins with\n<think>\nand ends with\n</think>\nas a rule.",
        CODE,
        f"{CODE}\n</think>\n",
        "```\n<think>hm</think>\n```",
        "`<think>` is a tag.",
        "Use a closing tag:\n```\n</think>\n```",
        "<b>Paris.</b>",
        "[1] says so.",
        "<thin>k</thin>",
        "a </think> b",
    ],
)
@pytest.mark.parametrize("finish", ["stop", "length", None])
def test_an_answer_stays_as_it_is(text: str, finish: str | None) -> None:
    assert split_reasoning(text, finish) == (text, None)


@pytest.mark.parametrize(
    ("text", "finish", "answer"),
    [
        ("<think>Okay, the user", "length", ""),
        ("<think>Okay, the user", None, ""),
        ("<think>\nOkay, the user", "stop", ""),
        ("<think> is the tag that they use.", "stop", "<think> is the tag that they use."),
        ("<think>a</think><think>b", "length", ""),
    ],
)
def test_reasoning_without_an_end(text: str, finish: str | None, answer: str) -> None:
    assert split_reasoning(text, finish)[0] == answer


@given(st.text(alphabet="<>/think[] \na`◁▷", max_size=60), st.sampled_from(["stop", "length"]))
def test_every_text_can_be_read(text: str, finish: str) -> None:
    answer, reasoning = split_reasoning(text, finish)
    assert text.endswith(answer)
    assert reasoning is not None or answer == text


def test_a_replys_own_reasoning_comes_first() -> None:
    reply = Reply("<think>b</think>x", others=("<think>c</think>y", "z"), reasoning="a")
    read = strip_reasoning(reply)
    assert (read.text, read.others, read.reasoning) == ("x", ("y", "z"), "a\n\nb")
    assert strip_reasoning(read) == read


def test_silence() -> None:
    assert all(map(says_nothing, map(Reply, ["", " \n", "\u200b", "\x00", "<think>hm</think>"])))
    assert not any(map(says_nothing, map(Reply, [".", "0", "é", "\U0001f600", "見"])))
    assert says_nothing(Reply("a", others=("b", "")))

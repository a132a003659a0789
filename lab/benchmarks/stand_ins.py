"""Stand-ins for reference models and a generator, for the experiments on public data.

    trustassay papers experiment fewl-best TruthfulQA_817_original.csv \\
        --reference davinci=python:lab.benchmarks.stand_ins:davinci

No reference answers were published with CHALE. Here five references answer its questions with
probability .1, .3, .5, .7 and .9 by the right short answer, else by that of the nearest question,
as in ``lab.benchmarks.fewl``; CHALE_QUESTIONS says of how many questions (300). ``ada``,
``babbage``, ``curie`` and ``davinci`` give the answers of these models to TruthfulQA's questions,
``flan``, ``llama`` and ``gpt`` those of TrustScore's systems, ``knowledge`` HaluEval's passage.
``pairs`` makes CHALE's wrong answers of the five nearest questions' answers. Data are found by
TRUSTASSAY_SHARED, else ../shared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import TypeVar

from lab.benchmarks.fewl.sets import chale, halueval, trustscore, truthfulqa

Known = TypeVar("Known")
_making = Lock()
"""Models are called in threads: what they know is made once."""
QUESTIONS = int(os.environ.get("CHALE_QUESTIONS", "300"))


def _once(made: Callable[[], Known]) -> Known:
    with _making:
        return made()


def _question(prompt: str) -> str:
    """Return the last question of a prompt."""
    return prompt.rsplit("Question: ", 1)[1].splitlines()[0].strip()


@cache
def _chale() -> Mapping[str, Mapping[str, str]]:
    return {_one_line(one["question"]): one["references"] for one in chale(QUESTIONS)}


@cache
def _truthfulqa() -> Mapping[str, Mapping[str, str]]:
    return {_one_line(one["question"]): one["references"] for one in truthfulqa()}


@cache
def _knowledge() -> Mapping[str, str]:
    return {_one_line(one["question"]): one["references"]["knowledge"] for one in halueval()}


def _one_line(question: str) -> str:
    return question.splitlines()[0].strip()


def mixed1(prompt: str) -> str:
    """Answer a question of CHALE, right in one of ten cases."""
    return _once(_chale)[_question(prompt)]["0.1 right"]


def mixed3(prompt: str) -> str:
    """Answer a question of CHALE, right in three of ten cases."""
    return _once(_chale)[_question(prompt)]["0.3 right"]


def mixed5(prompt: str) -> str:
    """Answer a question of CHALE, right in five of ten cases."""
    return _once(_chale)[_question(prompt)]["0.5 right"]


def mixed7(prompt: str) -> str:
    """Answer a question of CHALE, right in seven of ten cases."""
    return _once(_chale)[_question(prompt)]["0.7 right"]


def mixed9(prompt: str) -> str:
    """Answer a question of CHALE, right in nine of ten cases."""
    return _once(_chale)[_question(prompt)]["0.9 right"]


def ada(prompt: str) -> str:
    """Answer a question of TruthfulQA as GPT-3 ada did."""
    return _once(_truthfulqa)[_question(prompt)]["ada"]


def babbage(prompt: str) -> str:
    """Answer a question of TruthfulQA as GPT-3 babbage did."""
    return _once(_truthfulqa)[_question(prompt)]["babbage"]


def curie(prompt: str) -> str:
    """Answer a question of TruthfulQA as GPT-3 curie did."""
    return _once(_truthfulqa)[_question(prompt)]["curie"]


def davinci(prompt: str) -> str:
    """Answer a question of TruthfulQA as GPT-3 davinci did."""
    return _once(_truthfulqa)[_question(prompt)]["davinci"]


def knowledge(prompt: str) -> str:
    """Answer a question of HaluEval with its passage."""
    return _once(_knowledge)[_question(prompt)]


@cache
def _trustscore() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for one in trustscore():
        found.setdefault(_one_line(one["question"]), {})[one["model"]] = one["response"]
    return found


def flan(prompt: str) -> str:
    """Answer a question of TrustScore's set as its flan did."""
    return _once(_trustscore)[_question(prompt)]["flan"]


def llama(prompt: str) -> str:
    """Answer a question of TrustScore's set as its llama did."""
    return _once(_trustscore)[_question(prompt)]["llama"]


def gpt(prompt: str) -> str:
    """Answer a question of TrustScore's set as its gpt did."""
    return _once(_trustscore)[_question(prompt)]["gpt"]


@cache
def _wrong() -> Mapping[str, tuple[str, ...]]:
    """Return the right short answers of each question's nearest questions: wrong ones for it."""
    return {_one_line(one["question"]): tuple(one["wrong_answers"]) for one in chale(QUESTIONS)}


def pairs(prompt: str) -> str:
    """Reply with wrong answers to a question of CHALE, each with a plain denial."""
    known = _once(_wrong)
    question = next(q for q in sorted(known, key=len, reverse=True) if q in prompt)
    return "\n".join(
        f"{n}. Wrong Answer: {text}\n{n}. Non-Wrong Answer: It is not {text}"
        for n, text in enumerate(known[question], 1)
    )

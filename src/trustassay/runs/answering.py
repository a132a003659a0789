"""Requests for answers: the styles in which a model is asked, and how its replies are read.

closed-book   from what the model knows, in full sentences, after five examples (as TrustScore)
rag           from the sample's documents, with citations (as Trust-Eval asks)
rag-refusal   the same, with the permission to refuse
icl           in the manner of given examples
own           with the sample's own prompt, unchanged

Several answers can be requested in one call: five diversified answers of one model stand for five
references (Wei et al. 2024, section 4.1). Wrong answers come with corrections: one call asks a
generator for 25 pairs (section 3.2).
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from trustassay.core.capabilities import ChatRequest
from trustassay.core.prompts import Prompt, load_examples, load_prompt, prompt_property
from trustassay.core.sample import Problem, Sample, clean
from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.text.replies import find_numbered_lines

STYLES = ("closed-book", "rag", "rag-refusal", "icl", "own")
OWN_PROMPT = "own_prompt"
"""Field of a sample with a complete prompt, with which the sample is to be answered."""
REFUSAL_SENTENCE = (
    "I apologize, but I couldn't find an answer to your question in the search results."
)
"""The sentence by which Trust-Eval recognises a refusal."""
STOP_SEQUENCES = ("\nQuestion:",)
"""Texts with which a model begins a new question."""
PROMPT_VARIABLES = "question sample examples refusal"
"""The names that a template of the user in place of a style's may use."""
_WITH_DOCUMENTS = frozenset({"rag", "rag-refusal"})


@dataclass(frozen=True)
class Answering:
    """Asks for the response of a sample.

    style: one of :data:`STYLES`; ``auto`` takes own for a sample with a prompt of its own,
        rag-refusal for one with documents, and closed-book for others.
    prompt: a file instead of the style's own, with ``question``, ``sample``, ``examples`` and
        ``refusal``; see :class:`~trustassay.core.prompts.Prompt`.
    examples: samples with responses, shown before the question; with documents for rag.
    logprobs: alternatives of each token to ask for, 0 for the tokens alone; they are stored as the
        sample's ``token_logprobs``. Without it none are asked for.
    """

    style: str = "auto"
    prompt: str | os.PathLike[str] | None = None
    examples: Sequence[Sample] = ()
    temperature: float = 0.0
    max_tokens: int = 300
    seed: int | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if self.style not in ("auto", *STYLES):
            raise UnknownNameError(did_you_mean("style", self.style, ["auto", *STYLES]))
        if self.style == "icl" and not self.examples:
            raise UsageError("style icl: needs examples (--examples FILE)")
        # The own prompt is complete; a second one would never be used.
        if self.style == "own" and self.prompt is not None:
            raise UsageError("style own: uses the prompt of each sample; remove --prompt")
        for number, example in enumerate(self.examples, 1):
            if example.response is None:
                raise UsageError(f"example {number} ({example.id}): has no response")
            if self.style in _WITH_DOCUMENTS and example.documents is None:
                raise UsageError(f"example {number} ({example.id}): has no documents")

    def style_for(self, sample: Sample) -> str:
        """Return the style in which a sample is answered."""
        if self.style != "auto":
            return self.style
        if self.prompt is None and _read_own_prompt(sample) is not None:
            return "own"
        return "rag-refusal" if sample.documents else "closed-book"

    def problems(self, sample: Sample) -> list[Problem]:
        """Return why a sample cannot be answered in this style.

        Raises:
            PromptError: the user's prompt uses a name that does not exist.
        """
        if self.style_for(sample) in _WITH_DOCUMENTS and not sample.documents:
            message = f"is missing or empty (expected passages, for style {self.style})"
            return [Problem("documents", message)]
        if self.style == "own" and _read_own_prompt(sample) is None:
            return [Problem(OWN_PROMPT, "is missing (expected the prompt, for style own)")]
        if self.prompt is not None:
            # Filling the prompt for each sample finds faults that only some samples trigger, before
            # anything is paid for.
            self.request(sample)
        return []

    def request(self, sample: Sample, repeat: int = 0) -> ChatRequest:
        """Return the request to the model; raises :class:`PromptError`."""
        style = self.style_for(sample)
        examples: Sequence[Any] = self.examples
        # An example without documents teaches nothing about citing them, and the other way round.
        if self.style == "auto":
            examples = [
                example
                for example in examples
                if bool(example.documents) == (style in _WITH_DOCUMENTS)
            ]
        # The examples that ship with the package, which show answers in full sentences.
        if style == "closed-book" and not examples:
            examples = load_examples(__package__)
        text, name = _read_own_prompt(sample) or "", "own"
        if style != "own":
            prompt = self._prompts[style]
            name = prompt.name
            text = prompt.fill(
                question=sample.question, sample=sample, examples=examples, refusal=REFUSAL_SENTENCE
            )
        return ChatRequest.of(
            text,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            stop=STOP_SEQUENCES,
            repeat=repeat,
            logprobs=self.logprobs,
            prompt=name,
        )

    def settings(self) -> dict[str, Any]:
        """Return the options that determine the answers, as JSON values."""
        names = {name: prompt.name for name, prompt in self._prompts.items()}
        # A digest, since examples may hold whole documents and `run.json` is read by people.
        content = json.dumps([example.to_dict() for example in self.examples], default=str)
        logprob_setting = {} if self.logprobs is None else {"logprobs": self.logprobs}
        # `logprobs` only if set: runs of before this option have the same settings.
        return logprob_setting | {
            "style": self.style,
            "prompt": self.style if self.style == "own" else names.get(self.style, names),
            "examples": hashlib.blake2b(content.encode(), digest_size=8).hexdigest(),
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
        }

    @cached_property
    def _prompts(self) -> dict[str, Prompt]:
        wanted = ("closed-book", "rag-refusal") if self.style == "auto" else (self.style,)
        if self.style == "own":
            return {}
        if self.prompt is not None:
            return dict.fromkeys(wanted, Prompt.read(self.prompt, PROMPT_VARIABLES))
        return {style: load_prompt(__package__, style) for style in wanted}


def _read_own_prompt(sample: Sample) -> str | None:
    """Return the sample's own prompt, or ``None`` if it has none."""
    text = sample.metadata.get(OWN_PROMPT)
    return clean(text) if isinstance(text, str) and text.strip() else None


def load_diverse_prompt(user_file: str | None = None) -> Prompt:
    """Return the prompt for several answers in one reply, ours or that of a file.

    It is filled with ``question``, ``sample`` and ``answers``, their number.
    """
    return load_prompt(__package__, "diverse-answers", user_file, "question sample answers")


def build_diverse_request(
    sample: Sample, n: int, answering: Answering, prompt: Prompt
) -> ChatRequest:
    """Return the request for n different answers in one reply.

    Temperature and length of one answer are those of ``answering``.
    """
    return ChatRequest.of(
        prompt.fill(question=sample.question, sample=sample, answers=n),
        temperature=answering.temperature,
        max_tokens=n * answering.max_tokens,
        seed=answering.seed,
        prompt=prompt.name,
    )


def parse_answers(text: str, n: int) -> tuple[str, ...]:
    """Return the numbered answers of a reply, at most n, without repetitions; never raises.

    With n = 1 the whole reply is the answer. An answer may continue on further lines. A reply
    without numbers has no answers: it is not what was asked for.
    """
    if n == 1:
        return (text.strip(),)
    result = (text_of_item for _, text_of_item in _read_item_texts(find_numbered_lines(text), text))
    return tuple(dict.fromkeys(filter(None, result)))[:n]


def _read_item_texts(items: Sequence[re.Match[str]], text: str) -> list[tuple[re.Match[str], str]]:
    """Return each item with its text, which continues up to the next item."""
    ends = [*(after.start() for after in items[1:]), len(text)]
    # Without items `ends` still has the end of the text, so strict must be off.
    items_and_ends = zip(items, ends, strict=bool(items))
    split_items = (
        (item, (item["text"] + text[item.end() : end]).split()) for item, end in items_and_ends
    )
    return [(item, " ".join(item_words).strip("*_ ")) for item, item_words in split_items]


# A line such as "1. Wrong answer: Rome" or "**2) Non-wrong:** Paris"; `kind` is the label.
_PAIR_ITEM = re.compile(
    r"^[\s*_#>-]*(?P<number>\d{1,4})\s*[.):]?[\s*_]*"
    r"(?P<kind>(?:non[- ]?wrong|corrected|correct|right)|(?:wrong|incorrect))"
    r"(?:\s+answer)?[\s*_]*:(?P<text>.*)$",
    re.IGNORECASE | re.MULTILINE,
)


class AnswerPairs(NamedTuple):
    """Wrong answers and their corrections."""

    wrong: tuple[str, ...]
    """The wrong answers."""
    corrected: tuple[str, ...]
    """Their corrections, in the same order."""
    dropped: int
    """Number of answers without a counterpart, which were dropped."""


def parse_pairs(text: str) -> AnswerPairs:
    """Return the pairs in a reply; any text gives a result, possibly without a pair.

    Items are numbered and labelled as wrong or non-wrong; an item may continue on further lines.
    The first of several items with the same number and label counts.
    """
    result: dict[bool, dict[int, str]] = {True: {}, False: {}}
    for item, answer in _read_item_texts(list(_PAIR_ITEM.finditer(text)), text):
        is_wrong = item["kind"].lower() in ("wrong", "incorrect")
        if answer:
            result[is_wrong].setdefault(int(item["number"]), answer)
    # In the order of the wrong answers.
    numbers = [number for number in result[True] if number in result[False]]
    wrong, corrected = (tuple(result[kind][number] for number in numbers) for kind in (True, False))
    return AnswerPairs(wrong, corrected, len(result[True].keys() ^ result[False].keys()))


@dataclass(frozen=True)
class AnswerPairing:
    """Asks for the pairs of a sample.

    pairs: the number requested in one call; fewer are accepted.
    prompt: a file instead of our own; filled with ``question``, ``sample`` and ``pairs``.
    """

    _prompt = prompt_property(__package__, "wrong-answers", variables="question sample pairs")
    pairs: int = 25
    prompt: str | os.PathLike[str] | None = None
    temperature: float = 1.0
    max_tokens: int = 4096

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise UsageError(f"pairs: expected 1 or more, got {self.pairs}")

    def request(self, sample: Sample) -> ChatRequest:
        """Return the request to the generator; raises
        :class:`~trustassay.core.prompts.PromptError`."""
        text = self._prompt.fill(question=sample.question, sample=sample, pairs=self.pairs)
        return ChatRequest.of(
            text, temperature=self.temperature, max_tokens=self.max_tokens, prompt=self._prompt.name
        )

    def settings(self) -> dict[str, Any]:
        """Return the options that determine the pairs, as JSON values."""
        return {
            "pairs": self.pairs,
            "prompt": self._prompt.name,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }

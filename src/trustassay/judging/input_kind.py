"""The kind of a file's answers, by which it is known what an entailer misses in it.

1. A part of the answers is read, evenly spread over the file, and of each only its beginning.
2. A property that half of them have or more decides: calls of tools, data, summaries, chats.
3. Otherwise lengths decide, and then the share of the answers' words that their passages have.
"""

import re
from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import Any, Literal, get_args

from trustassay.text.tables import holds_data
from trustassay.text.words import content_words

InputKind = Literal[
    "tools",
    "data",
    "summaries",
    "chats",
    "long answers",
    "long passages",
    "copied",
    "partly reworded",
    "reworded",
]
INPUT_KINDS: tuple[InputKind, ...] = get_args(InputKind)

# The bounds lie between the quartiles of public sets: lab/results/input-kinds.json.
MIN_LONG_ANSWER_WORDS = 80
"""Half of ExpertQA's answers, which are long, have 142 words; those of SummEdits have 54."""
MIN_LONG_PASSAGES_WORDS = 500
"""Words of all passages of an answer: 933 in WiCE's whole pages, 379 in SummEdits."""
MIN_COPIED_SHARE = 0.8
"""The share of an answer's content words that its passages have: 1 of BEGIN's supported answers,
.57 in WiCE."""
MAX_REWORDED_SHARE = 0.35
"""The same share: .15 in HealthVer, .57 in WiCE."""

MAX_ANSWERS_READ = 200
"""Answers of a file that are read; they only have to tell its kind."""
MAX_CHARACTERS_READ = 10_000
"""Characters that are read of an answer, and of its passages."""
_ASKS_FOR_SUMMARY = re.compile(r"\b(?:summar(?:y|i[sz]\w*)|tl;?dr)\b", re.IGNORECASE)


class InputKindCounter:
    """Tells the kind of a run's samples, which are added as they are stored.

    Args:
        total: the number of samples of the run.
    """

    def __init__(self, total: int) -> None:
        self._step = max(1, -(-total // MAX_ANSWERS_READ))
        self._added = 0
        self._properties: Counter[InputKind] = Counter()
        self._answer_words: list[int] = []
        self._passage_words: list[int] = []
        self._shares: list[float] = []

    def add(self, sample: Mapping[str, Any]) -> None:
        """Add the next sample of the run; most of a large run are not read."""
        self._added += 1
        if (self._added - 1) % self._step:
            return
        response = str(sample.get("response") or "")[:MAX_CHARACTERS_READ]
        passages = [str(document.get("text") or "") for document in sample.get("documents") or ()]
        text = "\n\n".join(passages)[:MAX_CHARACTERS_READ]
        words = content_words(response)
        # Without passages, or without an answer, there is nothing to compare.
        if not text.strip() or not words:
            return
        # Steps are user data, and may be no list.
        raw_steps = sample.get("steps")
        listed = raw_steps if isinstance(raw_steps, list | tuple) else ()
        steps = [step for step in listed if isinstance(step, Mapping)]
        self._properties["tools"] += any("tool" in step for step in steps)
        self._properties["chats"] += any("assistant" in step for step in steps)
        self._properties["data"] += any(
            holds_data(passage[:MAX_CHARACTERS_READ]) for passage in passages
        )
        asks_for_summary = _ASKS_FOR_SUMMARY.search(str(sample.get("question")))
        self._properties["summaries"] += asks_for_summary is not None
        passage_words = set(content_words(text))
        self._shares.append(sum(word in passage_words for word in words) / len(words))
        self._answer_words.append(len(response.split()))
        self._passage_words.append(sum(len(passage.split()) for passage in passages))

    @property
    def kind(self) -> InputKind | None:
        """The kind of the samples; ``None`` if none of them has an answer and passages."""
        if not self._shares:
            return None
        # The order matters: results of tools are data, and a chat may be about long passages.
        properties: tuple[InputKind, ...] = ("tools", "data", "summaries", "chats")
        for name in properties:
            if 2 * self._properties[name] >= len(self._shares):
                return name
        if median(self._answer_words) >= MIN_LONG_ANSWER_WORDS:
            return "long answers"
        if median(self._passage_words) >= MIN_LONG_PASSAGES_WORDS:
            return "long passages"
        share = median(self._shares)
        if share >= MIN_COPIED_SHARE:
            return "copied"
        return "reworded" if share <= MAX_REWORDED_SHARE else "partly reworded"
